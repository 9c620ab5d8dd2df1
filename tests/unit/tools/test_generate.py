"""`python -m tools.generate`: it runs every generator of the project, and lists the files that changed."""

import subprocess
from pathlib import Path

import pytest

from tools.generate import GENERATORS, PROJECT, Generator, generate

OTHER_PROGRAMS = {
    "docs/check_docs.py": "checks pages",
    "docs/check_notebooks.py": "runs the notebooks",
    "docs/website/__main__.py": "builds the web site",
    "lib/tilewright/__main__.py": "is the command line",
    "lib/tilewright/main_stage/__main__.py": "runs scripts of users",
    "lib/tilewright/main_stage/theirs.py": "runs scripts of users",
    "lib/tilewright/workload/onnx/resolution/inference_child.py": "infers shapes for another process",
    "lib/tilewright_evidence/court/document.py": "needs the results of measurements",
    "lib/tilewright_evidence/court/error_table.py": "needs the results of measurements",
    "lib/tilewright_evidence/court/eyeriss_search.py": "prints a comparison with measurements",
    "lib/tilewright_evidence/court/make_sample.py": "needs the results of measurements",
    "tools/compare_numbers.py": "compares results",
    "tools/generate.py": "runs the generators",
}
"""Module that can be run -> what it does, or why it is no generator."""


def test_every_generator_is_run() -> None:
    """Each module that can be run is a generator, or is listed here with what it does."""
    folders = [PROJECT / "docs", PROJECT / "tools", *(PROJECT / "lib").glob("tilewright*")]
    paths = {path for folder in folders for path in folder.rglob("*.py")}
    found = {path for path in paths if path.name == "__main__.py" or '__main__"' in path.read_text("utf-8")}
    modules = {f"{one.module.replace('.', '/')}.py" for one in GENERATORS}
    listed = {name if (PROJECT / name).is_file() else f"lib/{name}" for name in modules}
    assert {path.relative_to(PROJECT).as_posix() for path in found} == listed | OTHER_PROGRAMS.keys()


def test_the_files_of_generators_exist() -> None:
    """Each pattern has a file, and no file has two generators."""
    files = [path for one in GENERATORS for pattern in one.files for path in PROJECT.glob(pattern)]
    assert all(any(PROJECT.glob(pattern)) for one in GENERATORS for pattern in one.files)
    assert len(files) == len(set(files))


def test_files_that_changed_are_listed(tmp_path: Path) -> None:
    """Changed and new files are listed, unchanged ones are not; a generator that fails raises an error."""
    (tmp_path / "made.py").write_text(
        "import sys, pathlib\nfor name in sys.argv[1:]: pathlib.Path(name).write_text('new')\n"
    )
    for name, text in (("a.txt", "old"), ("b.txt", "new")):
        (tmp_path / name).write_text(text)
    maker = Generator("made", ("*.txt",), ("a.txt", "b.txt", "c.txt"))
    assert generate(tmp_path, [maker]) == ["a.txt", "c.txt"]
    assert generate(tmp_path, [maker]) == []
    with pytest.raises(subprocess.CalledProcessError):
        generate(tmp_path, [maker._replace(arguments=("no/folder/x",))])
