"""Command `tilewright conformance`: comparison with numbers of the reference tool."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import Problems
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import Argument, Help, Tell, silent, verb

if TYPE_CHECKING:
    from tilewright_evidence.reference_numbers import ConformanceReport


def _reported(
    files: "Sequence[FilePath]", hardware_directory: FilePath | None = None, verbose: bool = False, tell: Tell = silent
) -> "list[ConformanceReport]":
    """Comparisons of our results with reference numbers, one for each file. If `verbose` is true, the number of equal
    points of a file is printed as soon as its comparison is complete.
    """
    directory = None if hardware_directory is None else Path(hardware_directory)
    reports = []
    for file, report in _compared(tuple(map(Path, files)), directory):
        reports.append(report)
        if verbose:
            tell([f"{file.name}: {report.equal} of {report.points} equal"])
    return reports


def _show(reports: "list[ConformanceReport]", as_json: bool) -> int:
    """Print the comparisons. Returns the exit code."""
    from tilewright_evidence.reference_numbers import report_text

    if as_json:
        echo_json([report.__dict__ for report in reports])
    else:
        echo_text(report_text(reports), nl=True)
    return 0 if all(report.passed for report in reports) else 1


@verb(
    """Compare our numbers with numbers of the reference tool, from points files (.jsonl, .jsonl.gz) and flow files
    (.json).

    Prints the number of points, the number of equal points, and the worst relative difference. The exit code is 1 if a
    point differs.

    Example: tilewright conformance tests/conformance/data/reference-points.jsonl.gz
    """,
    run=_reported,
    show=_show,
)
def conformance(
    files: Annotated[Sequence[FilePath], Argument(is_required=True)],
    hardware_directory: Annotated[
        FilePath | None,
        Help("Folder of the hardware files. Default: a folder `hardware` in a folder above the file."),
    ] = None,
) -> "list[ConformanceReport]":
    """Comparisons of our results with the reference numbers in each file.

    A file is a points file (.jsonl, .jsonl.gz) or a flow file (.json). Hardware files are in `hardware_directory`. Its
    default is a folder `hardware` in a folder above the file. Raises InputError with every file that is missing or
    wrong.
    """
    return _reported(files, hardware_directory)


def _compared(files: Sequence[Path], hardware_directory: Path | None) -> "Iterator[tuple[Path, ConformanceReport]]":
    """Pairs (file, comparison of this file). Each pair is yielded when it is complete."""
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


__all__ = ["conformance"]
