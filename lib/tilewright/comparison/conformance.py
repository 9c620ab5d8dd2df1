"""`tilewright conformance`: comparison with numbers of the reference tool."""

from pathlib import Path

import click

from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.errors import InputError, Problem


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--hardware-directory", type=FILE, help="Folder of hardware files; default: `hardware` beside a file.")
@common_options
def command(files: tuple[Path, ...], hardware_directory: Path | None, verbose: bool, as_json: bool) -> int:
    """Compare with reference numbers: points files (.jsonl, .jsonl.gz) and flow files (.json).

    Prints points, equal ones and the worst relative difference; exit code 1 if something differs.

    Example: tilewright conformance tests/conformance/data/reference-points.jsonl.gz
    """
    from tilewright.comparison.reference_numbers import compare_flow, compare_points, report_text
    from tilewright.sources import existing_file

    problems: list[Problem] = []
    for file in files:
        try:
            existing_file(file, "reference")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    reports = []
    for file in files:
        directory = hardware_directory or next(
            (parent / "hardware" for parent in file.resolve().parents if (parent / "hardware").is_dir()), Path()
        )
        compare = compare_flow if file.suffix == ".json" else compare_points
        reports.append(compare(file, directory))
        if verbose:
            click.echo(f"{file.name}: {reports[-1].equal} of {reports[-1].points} equal", err=True)
    if as_json:
        echo_json([report.__dict__ for report in reports])
    else:
        click.echo(report_text(reports))
    return 0 if all(report.passed for report in reports) else 1


__all__ = ["command"]
