"""Writing of the files of a report.

Each file is described by a row in `base/report_files.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.files import make_folder, write_atomically, writing
from tilewright.base.report_files import ReportFile
from tilewright.results.other_widths import latex_files, remove_files
from tilewright.results.sheet import FIGURE_ENDS, WIDTHS_INCHES


def write_report(files: Iterable[ReportFile], run: object, folder: Path) -> list[Path]:
    """Write the files of the report of a run into a folder. Returns the paths.

    `run` is the argument of the functions that make the files. Files that another command writes, and figures for which
    the run has no data, are left out.
    """
    make_folder(folder)
    paths: list[Path] = []
    made = [file for file in files if file.made_by]
    tables = {file.name: _maker(file)(run) for file in made if file.name.endswith(".csv")}
    in_paper = {file.name: _in_paper(file, run, tables[file.name]) for file in made if file.name in tables}
    units = _common_units([file for file in made if tables.get(file.name) is not None], in_paper)
    with writing(folder):
        for file in made:
            content = tables[file.name] if file.name in tables else _maker(file)(run)
            paths += _written(file, content, folder / file.name, in_paper.get(file.name, (None, ())), units)
    return paths


def _in_paper(file: ReportFile, run: object, table: Any) -> tuple[Any, Sequence[str]]:
    """Pair (table for a paper, sentences below this table). The pair comes from the function `table_in_paper` of the
    module that makes the file; without such a function, the table for a paper is `table`.
    """
    make = getattr(import_module(file.made_by.partition(":")[0]), "table_in_paper", None)
    return (table, ()) if make is None or table is None else make(run)


def _common_units(files: Sequence[ReportFile], tables: Mapping[str, tuple[Any, Sequence[str]]]) -> Any:
    """Units of all tables of the report for a paper; None if the report has no tables. `tables` are the results of
    `_in_paper` by name of the file.
    """
    if not files:
        return None
    from tilewright.results.paper_tables import common_units

    return common_units((tables[file.name][0], _columns(file)) for file in files)


def _columns(file: ReportFile) -> Sequence[str]:
    """Columns of the table of a file that are shown in a paper; () for all columns."""
    found: Sequence[str] = getattr(import_module(file.made_by.partition(":")[0]), "IN_PAPER", ())
    return found


def _maker(file: ReportFile) -> Any:
    """Function that makes the content of a file."""
    module, _, name = file.made_by.partition(":")
    return getattr(import_module(module), name)


def _written(
    file: ReportFile, content: Any, path: Path, in_paper: tuple[Any, Sequence[str]], units: Any
) -> tuple[Path, ...]:
    """Write a file of a report. Returns the paths of the file itself and of further files of the same figure or table.
    `in_paper` is the result of `_in_paper` for a table, and `units` are the units of all tables of the report.

    If `content` is None, no file is written, and the result is (). If only some runs have the file
    (`file.of_some_runs`), files of this name from an earlier run are then removed; otherwise, they stay.
    """
    if content is None:
        if file.of_some_runs:  # of an earlier run in this folder
            widths = (f"-{width}{end}" for width in WIDTHS_INCHES for end in FIGURE_ENDS)
            found = [path.with_name(path.stem + end) for end in (path.suffix, ".png", ".md", *widths)]
            found += [file for width in WIDTHS_INCHES for file in latex_files(path.with_suffix(""), width)]
            remove_files(file for file in found if file.is_file())
        return ()
    if path.suffix == ".svg":
        from tilewright.results.figure_files import save_figure

        return save_figure(content, path.with_suffix(""), file.dots_per_inch)
    if path.suffix == ".csv":
        from tilewright.results.paper_tables import write_table

        table, below = in_paper
        return write_table(content, path, _columns(file), table, below, usual=units, below=below)
    write_atomically(path, content)
    return (path,)
