"""Command `tilewright compare-chips`: comparison of our results for published cases with measurements on chips, and
with results of the reference tool.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Tell, silent, verb

if TYPE_CHECKING:
    from tilewright_evidence.chips.comparison import CaseComparison


def _all_compared(
    folder: FilePath,
    cases: Sequence[str] = (),
    steps: bool = False,
    jobs: int = 1,
    verbose: bool = False,
    tell: Tell = silent,
) -> "tuple[list[CaseComparison], list[Problem]]":
    """Pair (comparisons of the valid cases, problems). A problem is a mistake in an invalid case, or the reason why a
    model has no schedule.

    If `verbose` is true, the notices of a case are passed to `tell` when its comparison is complete.
    """
    problems: list[Problem] = []
    found = []
    for compared in _compared(Path(folder), tuple(cases), steps, jobs, problems):
        found.append(compared)
        if verbose:
            tell([f"{compared.case}: {notice}" for notice in compared.notices])
    return found, problems


def _show(compared: "tuple[list[CaseComparison], list[Problem]]", verbose: bool, as_json: bool) -> None:
    from tilewright_evidence.chips.comparison import as_plain, comparison_text

    found, problems = compared
    if as_json:
        echo_json([as_plain(case) for case in found])
    elif found:
        echo_text(comparison_text(found, verbose))
    if problems:
        raise InputError(problems)


@verb(
    """Compare the published cases in FOLDER: chip, reference tool, our model of the reference tool, our default model.

    A case is a folder with accelerator.yaml, workload.yaml, mapping.yaml, run.yaml and expected.yaml; see
    docs/formats/spaces-and-cases.md#cases-of-chips. Mistakes in a case are printed after the results of the other
    cases.

    Example: tilewright compare-chips ../shared/validation --steps
    """,
    run=_all_compared,
    show=_show,
)
def compare_chips(
    folder: Annotated[FilePath, ARGUMENT],
    cases: Annotated[
        Sequence[str],
        Help(
            "Name of a case to compare. Without the option, all cases are compared. The option can be given several"
            " times.",
            flag="--case",
            metavar="NAME",
        ),
    ] = (),
    steps: Annotated[
        bool,
        Help(
            "Also compare the models between stream-2023 and the default model. Each model changes one more switch than"
            " the model before it."
        ),
    ] = False,
    jobs: int = 1,
) -> "list[CaseComparison]":
    """Comparisons of the published cases in a folder: chip, reference tool, our model of the reference tool, our
    default model.

    `cases` are the names of the cases to compare; () means all cases. If `steps` is true, further models between our
    two models are compared. Each further model changes one more switch. Raises InputError with all mistakes in any
    case.
    """
    found, problems = _all_compared(folder, cases, steps, jobs)
    if problems:
        raise InputError(problems)
    return found


def _compared(
    folder: Path, cases: tuple[str, ...], steps: bool, jobs: int, problems: list[Problem]
) -> "Iterator[CaseComparison]":
    """Comparisons of the valid cases, one after the other. Problems of invalid cases, and reasons why a model has no
    schedule, are added to `problems`.
    """
    from tilewright_evidence.chips.case import find_cases, read_case
    from tilewright_evidence.chips.comparison import compare_case

    for name, files in find_cases(folder, cases).items():
        try:
            compared = compare_case(read_case(name, files), jobs, steps)
        except InputError as error:
            problems += [_of_case(problem, name, files.folder) for problem in error.problems]
            continue
        problems += [Problem(text) for text in compared.problems]
        yield compared


def _of_case(problem: Problem, name: str, folder: Path) -> Problem:
    """Copy of a case's problem in which the name of the case precedes the file name. If the file is below `folder`, the
    problem is returned unchanged, because the path of the file already names the case.
    """
    if problem.file.startswith(str(folder)):
        return problem
    return replace(problem, file=f"{name}, {problem.file}" if problem.file else name)


__all__ = ["compare_chips"]
