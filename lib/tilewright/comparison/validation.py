"""`tilewright validation`: comparison with chips."""

from dataclasses import replace
from pathlib import Path

import click

from tilewright.cli.options import FILE, common_options, echo_json, echo_notices
from tilewright.errors import InputError, Problem


@click.command()
@click.argument("folder", type=FILE)
@click.option("--case", "cases", multiple=True, metavar="NAME", help="This case only; may be given several times.")
@click.option("--steps", is_flag=True, help="Also the steps from stream-2023 to the default model, one switch each.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Never changes a result.")
@common_options
def command(folder: Path, cases: tuple[str, ...], steps: bool, threads: int, verbose: bool, as_json: bool) -> int:
    """Compare published cases in FOLDER: chip, reference tool, our model of the reference, our own model.

    A case is a folder with accelerator.yaml, workload.yaml, mapping.yaml, run.yaml and expected.yaml; see
    docs/validation.md. What is wrong with a case is told after the others.

    Example: tilewright validation ../shared/validation --steps
    """
    from tilewright.comparison.chips.case import find_cases, read_case
    from tilewright.comparison.chips.comparison import as_plain, compare_case, comparison_text

    found = []
    problems: list[Problem] = []
    for name, files in find_cases(folder, cases).items():
        try:
            compared = compare_case(read_case(name, files), threads, steps)
        except InputError as error:
            problems += [_of_case(problem, name, files.folder) for problem in error.problems]
            continue
        found.append(compared)
        problems += [Problem(text) for text in compared.problems]
        if verbose:
            echo_notices([f"{name}: {notice}" for notice in compared.notices])
    if as_json:
        echo_json([as_plain(case) for case in found])
    elif found:
        click.echo(comparison_text(found, verbose), nl=False)
    if problems:
        raise InputError(problems)
    return 0


def _of_case(problem: Problem, name: str, folder: Path) -> Problem:
    """A problem that says which case it is of."""
    if problem.file.startswith(str(folder)):
        return problem
    return replace(problem, file=f"{name}, {problem.file}" if problem.file else name)


__all__ = ["command"]
