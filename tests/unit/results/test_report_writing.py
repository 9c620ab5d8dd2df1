"""Files of reports: each row names an existing function, its content, and a file that the steps declare."""

import re
from importlib import import_module
from pathlib import Path

import pandas
import pytest
from matplotlib.figure import Figure
from tilewright.base.report_files import (
    FIGURES,
    ONE_CORE_FILES,
    SEVERAL_CORES_FILES,
    TABLES,
    ReportFile,
    makers_of,
    names_of,
)
from tilewright.base.steps import REPORT, STEPS
from tilewright.results.report_writing import write_report
from tilewright.results.sheet import drawn_for

ROWS = (*ONE_CORE_FILES, *SEVERAL_CORES_FILES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.made_by or row.name)
def test_a_row_is_complete(row: ReportFile) -> None:
    """A row has an existing function, a part and a content."""
    assert row.part in (TABLES, FIGURES)
    assert row.content[:1].islower() or row.content[:1] == "["
    assert not row.content.endswith(".")
    if row.made_by:
        module, _, name = row.made_by.partition(":")
        assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize(
    ("step", "files", "part"),
    [
        ("report", ONE_CORE_FILES, TABLES),
        ("figures", ONE_CORE_FILES, FIGURES),
        ("report_multi", SEVERAL_CORES_FILES, TABLES),
        ("figures_multi", SEVERAL_CORES_FILES, FIGURES),
    ],
)
def test_steps_write_the_files_of_the_rows(step: str, files: tuple[ReportFile, ...], part: str) -> None:
    """The steps write all files of the rows, in order."""
    assert STEPS[step].writes == tuple(f"{REPORT}/{name}" for name in names_of(files, part))


def drawn(run: str) -> Figure | None:
    """A figure with the name of the run; None for a run without a name."""
    if not run:
        return None
    figure = Figure(figsize=(2, 1))
    figure.text(0.5, 0.5, run)
    return figure


def text(run: str) -> str:
    """The name of the run."""
    return run


def large(_: str) -> pandas.DataFrame:
    """A table with large numbers."""
    return pandas.DataFrame({"layer": ["a"], "edp_pj_cycles": [3e16]})


def small(_: str) -> pandas.DataFrame:
    """A table with small numbers."""
    return pandas.DataFrame({"layer": ["a"], "edp_pj_cycles": [5e9]})


def test_tables_of_a_report_have_the_same_units(tmp_path: Path) -> None:
    """Tables of one report have the same units: in the headings of LaTeX and Markdown, in the names of CSV columns."""
    rows = [ReportFile(f"{name}.csv", TABLES, f"{__name__}:{name}") for name in ("large", "small")]
    with drawn_for("column"):
        assert len(write_report(rows, "", tmp_path)) == 6
    for name, value in (("large", "30,000"), ("small", "0.005")):
        for end in (".md", "-column.tex"):
            written = (tmp_path / f"{name}{end}").read_text()
            assert re.search(r"EDP[^0-9]*J cycles", written)
            assert value in written
        assert (tmp_path / f"{name}.csv").read_text().startswith("layer,edp_pj_cycles\n")


def test_a_further_file_is_a_row_and_its_function(tmp_path: Path) -> None:
    """A row for a figure gives two files, drawn at its resolution, or none if the run lacks the figure.

    Rows whose functions belong to another verb are skipped.
    """
    rows = [
        ReportFile("new.svg", FIGURES, f"{__name__}:drawn", dots_per_inch=50),
        ReportFile("new.txt", TABLES, f"{__name__}:text"),
        ReportFile("other.svg", FIGURES, ""),
    ]
    assert makers_of(rows) == (__name__,)
    names = ["new.svg", "new.png", "new.txt"]
    assert [path.name for path in write_report(rows, "run", tmp_path / "a")] == names
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(names)
    assert (tmp_path / "a" / "new.png").read_bytes()[16:24] == (100).to_bytes(4, "big") + (50).to_bytes(4, "big")
    assert [path.name for path in write_report(rows, "", tmp_path / "b")] == ["new.txt"]
