"""CPU seconds and jobs of `make run` with many short runs: from scratch, and again without anything to do.

`python benchmarks/many_runs.py --networks 20 --cores 100` makes a project of tiny networks and cores in a separate
folder. It runs the project twice and prints a row of a table in Markdown.
"""

import argparse
import resource
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.clones import HARDWARE, MAPPING, WORKLOAD, Clone

CONFIG = """\
lpf_limit: 3
preset: zigzag
sweeps:
  tiny: {workload: "config/workload/*", hardware: "config/hardware/*", mapping: free}
"""


def create(folder: Path, networks: int, cores: int) -> Clone:
    """Make a project with the requested numbers of networks and cores. Each of them has different numbers."""
    clone = Clone.create(folder)
    for kind in ("hardware", "workload"):
        shutil.rmtree(clone.file(f"config/{kind}"))
        clone.file(f"config/{kind}").mkdir()
    for number in range(networks):
        text = WORKLOAD.replace("loop_sizes: [4, 8, 4]", f"loop_sizes: [{number + 2}, 8, 4]")
        clone.file(f"config/workload/net{number:03}.yaml").write_text(text)
    for number in range(cores):
        text = HARDWARE.replace("r_cost: 50", f"r_cost: {number + 50}").replace(
            "name: narrow", f"name: core{number:03}"
        )
        clone.file(f"config/hardware/core{number:03}.yaml").write_text(text)
    clone.file("config/mapping/free.yaml").write_text(MAPPING)
    clone.file("config/config.yaml").write_text(CONFIG)
    return clone


def cpu_seconds() -> float:
    """CPU time of all processes that this process started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(clone: Clone) -> tuple[float, str]:
    """Pair (CPU seconds of a run, last line of its output). Raises RuntimeError if the run fails."""
    before = cpu_seconds()
    done = clone.run()
    if done.returncode:
        raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
    said = [line for line in done.stdout.splitlines() if line.startswith(("done in", "nothing had"))]
    return cpu_seconds() - before, said[-1] if said else ""


def main() -> None:
    """Measure, and print the row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--cores", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        clone = create(Path(scratch) / "project", arguments.networks, arguments.cores)
        first, said = measured(clone)
        measured(clone)  # files that had only just been written are read once more
        second, nothing = measured(clone)
    runs = arguments.networks * arguments.cores
    print("| runs | from scratch, CPU s | nothing to do, CPU s | what it said |\n| --- | --- | --- | --- |")
    print(f"| {runs:,} | {first:.0f} | {second:.1f} | {said}; {nothing} |")


if __name__ == "__main__":
    main()
