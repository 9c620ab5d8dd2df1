"""Number of kernel files that verbs make after `tilewright warm-up` in a fresh cache: it should be 0.

    .venv/bin/python benchmarks/first_use.py [--verb NAME ...]

Every verb runs in a separate process on small inputs of `config/` and `tests/workflow`. All verbs use one cache folder,
which warm-up has filled before. Prints the seconds of warm-up, and for each verb its exit code, seconds and new files.
The exit code is 1 if a verb made a kernel file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SMALL = "--workload tests/workflow/tiny/workload/two_layers.yaml"
TINY = f"--hardware tests/workflow/tiny/hardware/narrow.yaml {SMALL} --mapping tests/workflow/tiny/mapping/free.yaml"
CALLS = {
    "map, loma": f"map {TINY} --no-store",
    "map, salsa": f"map {TINY} --no-store --temporal-mapping-search-engine salsa",
    "map, exact": f"map {TINY} --no-store --temporal-mapping-search-engine exact",
    "map, exact free": f"map {TINY} --no-store --temporal-mapping-search-engine exact --allocation free",
    "explain": f"explain {TINY}",
    "advise": f"advise {TINY}",
    "fuse": f"fuse --hardware config/hardware/multi/quad_core.yaml {SMALL} --nb-plans 2 --jobs 1",
    "attention": "attention --hardware config/hardware/zigzag/tpu_like.yaml --workload config/workload/attention.yaml"
    " --mapping config/mapping/zigzag/tpu_like.yaml --time-budget-s 1",
}
RUN = """
import sys
from pathlib import Path
from tilewright.base import compiled
compiled.cache_directory = lambda: Path(sys.argv[1])
from tilewright.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def files(folder: Path) -> set[Path]:
    """All files of a folder."""
    return {path for path in folder.rglob("*") if path.is_file()}


def call(folder: Path, arguments: str) -> tuple[int, float, int]:
    """Triple (exit code, seconds, number of new kernel files) of a call."""
    before, start = files(folder), time.monotonic()
    command = [sys.executable, "-c", RUN, str(folder), *arguments.split()]
    code = subprocess.run(command, cwd=PROJECT, capture_output=True, check=False).returncode
    return code, time.monotonic() - start, len(files(folder) - before)


def main() -> int:
    """Run all verbs. Returns 1 if a verb compiled a kernel, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verb", action="append", choices=sorted(CALLS), help="these calls only")
    chosen = parser.parse_args().verb or list(CALLS)
    late = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, seconds, made = call(folder, "warm-up")
        print(f"warm-up: {seconds:.0f} s, {made} files")
        for verb in chosen:
            code, seconds, made = call(folder, CALLS[verb])
            late += made
            print(f"{verb}: exit code {code}, {seconds:.1f} s, {made} new files", flush=True)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
