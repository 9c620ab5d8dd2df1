"""Writing of the files of a report, each by its row in `base/report_files.py`."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.files import make_folder, write_atomically, writing
from tilewright.base.report_files import ReportFile


def write_report(files: Iterable[ReportFile], run: object, folder: Path) -> list[Path]:
    """Write files of the report of a run into a folder. Returns the paths.

    `run` is the object that the functions of the rows take. Files that another verb writes, and figures that the run
    does not have, are left out.
    """
    make_folder(folder)
    paths: list[Path] = []
    with writing(folder):
        for file in files:
            if file.made_by:
                paths += _written(file, _maker(file)(run), folder / file.name)
    return paths


def _maker(file: ReportFile) -> Any:
    """Function that makes a file."""
    module, _, name = file.made_by.partition(":")
    return getattr(import_module(module), name)


def _written(file: ReportFile, content: Any, path: Path) -> tuple[Path, ...]:
    """Paths of a file that was written, with the PNG beside an SVG; () if there is no content."""
    if content is None:
        return ()
    if path.suffix == ".svg":
        from tilewright.results.figure_files import save_figure

        return save_figure(content, path.with_suffix(""), file.dots_per_inch)
    if path.suffix == ".csv":
        from tilewright.results.text_tables import write_csv

        write_csv(content, path)
    else:
        write_atomically(path, content)
    return (path,)
