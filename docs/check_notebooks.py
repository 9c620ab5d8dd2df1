"""Executes the notebooks in docs/notebooks, and compares their output with the output that the files contain.

A cell that fails is a problem. A text, table or number that differs from the output in the file is also a problem;
pictures may differ.

Usage: python docs/check_notebooks.py [--write] [NOTEBOOK ...]. `--write` stores the new output in the files.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import nbformat

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
SECONDS_A_CELL = 600
LARGEST_BYTES = 300_000
"""Largest size in bytes of a notebook, with its pictures."""


def notebooks() -> list[Path]:
    """Paths of all notebooks, in order of their names."""
    return sorted((DOCS / "notebooks").glob("*.ipynb"))


def executed(path: Path) -> Any:
    """Notebook after a fresh run in the project root. Raises CellExecutionError for a cell that fails."""
    from nbclient import NotebookClient
    from traitlets.config import Config

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # A kernel that is reached by files, not by ports of the machine.
        config = Config({"AsyncKernelManager": {"transport": "ipc", "ip": str(Path(folder) / "kernel")}})
        resources = {"metadata": {"path": str(ROOT)}}
        NotebookClient(
            notebook, config=config, timeout=SECONDS_A_CELL, resources=resources, record_timing=False
        ).execute()
    notebook.metadata.pop("language_info", None)  # has the version of Python in it
    return notebook


def said(cell: Any) -> list[tuple[str, str]]:
    """Output of a cell without pictures, as pairs (kind, text). Text that is printed in several pieces is joined."""
    found: list[tuple[str, str]] = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            name = output.name
            before = found.pop()[1] if found and found[-1][0] == name else ""
            found.append((name, before + output.text))
        else:
            data = output.get("data", {})
            found += [(kind, text) for kind, text in sorted(data.items()) if kind.startswith("text/")]
    return found


def differences(path: Path, kept: Any, now: Any) -> Iterator[str]:
    """Sentences, one for each cell whose output differs from the output in the file. A sentence names the first line
    that differs.
    """
    for number, (before, after) in enumerate(zip(kept.cells, now.cells, strict=True), 1):
        texts = [[line for _, text in said(cell) for line in text.splitlines()] for cell in (before, after)]
        if texts[0] != texts[1]:
            pairs = zip([*texts[0], "nothing"], [*texts[1], "nothing"], strict=False)
            old, new = next((pair for pair in pairs if pair[0] != pair[1]), ("less", "more"))
            yield f"{path.name}: cell {number} prints {new!r}, but the file has {old!r}"


def check(path: Path, *, write: bool) -> list[str]:
    """Problems of a notebook. If `write` is true, the new output is stored in the file."""
    from nbclient.exceptions import CellExecutionError  # only `make docs` installs it

    try:
        now = executed(path)
    except CellExecutionError as error:
        return [f"{path.name}: {error}"]
    if write:
        nbformat.write(now, path)
    found = list(differences(path, nbformat.read(path, as_version=4), now))
    size = path.stat().st_size
    return [*found, *([f"{path.name}: has {size:,} bytes, at most {LARGEST_BYTES:,}"] if size > LARGEST_BYTES else [])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute the given notebooks, or all notebooks. Returns 1 if there is a problem, else 0."""
    parser = argparse.ArgumentParser(description="Execute the notebooks of the documentation.")
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="store the new output in the files")
    options = parser.parse_args(arguments)
    # Kernels are of this interpreter and use the package of this checkout, whatever else is installed.
    os.environ["PYTHONPATH"] = str(ROOT / "lib")
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(partial(check, write=options.write), options.notebooks or notebooks())
        problems = [problem for of_one in found for problem in of_one]
    print("\n".join(problems) or "notebooks: no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
