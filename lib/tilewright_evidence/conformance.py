"""Command `tilewright conformance`: comparison with numbers of the reference tool."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import Problems
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.terminal import echo, echo_text

if TYPE_CHECKING:
    from tilewright_evidence.reference_numbers import ConformanceReport


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "--hardware-directory",
    type=FILE,
    help="Folder of the hardware files. Default: a folder `hardware` in a folder above the file.",
)
@common_options
def command(files: tuple[Path, ...], hardware_directory: Path | None, verbose: bool, as_json: bool) -> int:
    """Compare our numbers with numbers of the reference tool, from points files (.jsonl, .jsonl.gz) and flow files
    (.json).

    Prints the number of points, the number of equal points, and the worst relative difference. The exit code is 1 if a
    point differs.

    Example: tilewright conformance tests/conformance/data/reference-points.jsonl.gz
    """
    from tilewright_evidence.reference_numbers import report_text

    reports = []
    for file, report in _compared(files, hardware_directory):
        reports.append(report)
        if verbose:
            echo(f"{file.name}: {report.equal} of {report.points} equal", err=True)
    if as_json:
        echo_json([report.__dict__ for report in reports])
    else:
        echo_text(report_text(reports), nl=True)
    return 0 if all(report.passed for report in reports) else 1


def conformance(files: Sequence[FilePath], hardware_directory: FilePath | None = None) -> "list[ConformanceReport]":
    """Comparison of each file of reference numbers, a points file (.jsonl, .jsonl.gz) or a flow file (.json), with our
    numbers.

    Hardware files are read from `hardware_directory`; the default is a folder `hardware` in a folder above the file of
    reference numbers. Raises InputError with every file that is missing or wrong.
    """
    directory = None if hardware_directory is None else Path(hardware_directory)
    return [report for _, report in _compared(tuple(map(Path, files)), directory)]


def _compared(files: Sequence[Path], hardware_directory: Path | None) -> "Iterator[tuple[Path, ConformanceReport]]":
    """(file, comparison) of each file; each pair is yielded as soon as it is available."""
    from tilewright.pipeline.sources import existing_file

    from tilewright_evidence.reference_numbers import compare_flow, compare_points

    told = Problems()
    for file in files:
        told.attempt(existing_file, file, "reference")
    told.finish()
    for file in files:
        directory = hardware_directory or next(
            (parent / "hardware" for parent in file.resolve().parents if (parent / "hardware").is_dir()), Path()
        )
        compare = compare_flow if file.suffix == ".json" else compare_points
        yield file, compare(file, directory)


__all__ = ["command", "conformance"]
