"""Make all generated files of the project again, and list the files that changed: `python -m tools.generate`.

Generated files are made from the code alone: tables of pages, captions, schemas, types, and a table of memories.
Notebooks and the results on the pages of docs/accuracy.md are not made again, because they need runs.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
AGAIN = "a generated file is not up to date; run: python -m tools.generate"
"""Message of tests that compare a generated file with the code."""


class Generator(NamedTuple):
    """Module that writes generated files when it is run."""

    module: str
    files: tuple[str, ...]
    """Files that the module writes, as patterns relative to the project."""
    arguments: tuple[str, ...] = ()


GENERATORS = (
    Generator("docs.rooms", ("CONTRIBUTING.md", "docs/architecture.md")),
    Generator("docs.columns", ("docs/artifacts/*.md", "docs/formats/*.md", "docs/multi-core/*.md")),
    Generator("docs.captions", ("workflow/report/files/*.rst",)),
    Generator("tilewright.workload.onnx.document", ("docs/operators.md",)),
    Generator("tilewright.pipeline.stages.document", ("docs/stages/*.md",), ("docs/stages",)),
    Generator("tilewright.pipeline.configuration.document", ("config/README.md",), ("config/README.md",)),
    Generator("tilewright.hardware.silicon.sram_law", ("lib/tilewright/hardware/silicon/cacti_filled.csv",)),
    Generator("tools.validate_files", ("workflow/schemas/*.schema.json",)),
    Generator("tools.type_stub", ("lib/tilewright/__init__.pyi",)),
)


def generate(project: Path = PROJECT, generators: Sequence[Generator] = GENERATORS) -> list[str]:
    """Run the generators in the folder of a project. Returns the files that changed, sorted.

    Raises CalledProcessError if a generator fails.
    """
    before = _contents(project, generators)
    paths = os.pathsep.join([str(project / "lib"), str(project)])
    for one in generators:
        command = [sys.executable, "-m", one.module, *one.arguments]
        environment = os.environ | {"PYTHONPATH": paths}
        subprocess.run(command, cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = _contents(project, generators)
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _contents(project: Path, generators: Sequence[Generator]) -> dict[str, bytes]:
    """Content of each generated file, by its path in the project."""
    paths = {path for one in generators for pattern in one.files for path in project.glob(pattern)}
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in paths}


if __name__ == "__main__":
    changed = generate()
    print("\n".join(changed) if changed else "all generated files are up to date")
