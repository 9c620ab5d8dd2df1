"""Command `tilewright accuracy`: comparison of our predictions with measurements by others, set by set."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.harmless import csv_text, terminal, terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits, OneOf
from tilewright.base.steps import COURT, COURT_TABLE
from tilewright.cli.options import echo_json, echo_paths, keep_font_cache_here
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import Argument, Help, Tell, silent, verb

from tilewright_evidence.court.case import CourtSet
from tilewright_evidence.court.eyeriss import EYERISS
from tilewright_evidence.court.gemmini import GEMMINI
from tilewright_evidence.court.gpu import GPU
from tilewright_evidence.court.language_attention import CONFIGURATOR as CONFIGURATOR_ATTENTION
from tilewright_evidence.court.language_attention import SERVING as SERVING_ATTENTION
from tilewright_evidence.court.language_products import COMPASS, VIDUR
from tilewright_evidence.court.language_products import SERVING as SERVING_PRODUCTS
from tilewright_evidence.court.tenstorrent import TENSTORRENT
from tilewright_evidence.court.timeloop import TIMELOOP
from tilewright_evidence.court.tpu import TPU
from tilewright_evidence.court.xdna import XDNA

if TYPE_CHECKING:
    from tilewright_evidence.court.calibration import Judge
    from tilewright_evidence.court.case import Case
    from tilewright_evidence.court.fit import Draws
    from tilewright_evidence.court.verdict import VerdictPart


HELD_OUT, PACKAGE = JUDGES = ("held-out", "package")
"""Values of the option --error-bars. HELD_OUT: a row is judged by the errors of other machines. PACKAGE: a row is
judged by the table of errors in the package.
"""
PAIR_DRAWS = 20
"""Number of draws of pairs by which error bars are judged."""
DEFAULT_DATA = Path("../shared/third-party")
"""Folder of the full sets, if the user names no folder."""


def _compared(
    sets: Sequence[str],
    data: FilePath | None,
    package_samples: bool,
    refit: bool,
    draws: int,
    error_bars: str | None,
    output: FilePath | None,
    tell: Tell = silent,
) -> "tuple[list[Heard], list[Path], Judge | None]":
    """Triple (results of the comparison for each chosen set, paths of the written files, judge of the error bars). No
    files are written if `output` is None. If `error_bars` is None, the judge is None.
    """
    notices: list[str] = []
    folder = None if package_samples else _folder(None if data is None else Path(data))
    found = _heard(tuple(sets), folder, refit, notices, draws)
    tell(notices)
    judge = _judge(found, error_bars) if error_bars else None
    return found, [] if output is None else _write(found, Path(output)), judge


def _judge(found: "Sequence[Heard]", kind: str) -> "Judge":
    """Judge of the error bars of all rows. `kind` is one of JUDGES. Raises InputError for another kind, and if the rows
    have too few machines.
    """
    if kind not in JUDGES:
        allowed, nearest = ", ".join(JUDGES), nearest_name(kind, JUDGES)
        problem = Problem("unknown value", path="error_bars", value=repr(kind), allowed=allowed, nearest=nearest)
        raise InputError([problem])
    from tilewright.results.error_bars.table import error_table

    from tilewright_evidence.court.calibration import judge_of
    from tilewright_evidence.court.error_rows import error_rows

    table = error_table() if kind == PACKAGE else None
    return judge_of(error_rows({one.court_set.name: one.cases for one in found}), table)


def _show(compared: "tuple[list[Heard], list[Path], Judge | None]", as_json: bool) -> int:
    """Print the comparisons. Returns the exit code."""
    from tilewright_evidence.court.calibration import calibration_text, calibrations
    from tilewright_evidence.court.verdict import LEGEND, set_text

    found, paths, judge = compared
    if as_json:
        told = [] if judge is None else [asdict(one) for one in calibrations(judge, PAIR_DRAWS)]
        echo_json([*_object(found), *([{"error_bars": told}] if told else [])])
    else:
        for one in found:
            echo_text(set_text(one.court_set, one.parts), nl=True)
            echo_text("\n".join((_constants_text(one), *map(terminal, _draw_lines(one)))) + "\n", nl=True)
        echo_text(LEGEND, nl=True)
        if judge is not None:
            echo_text(calibration_text(judge, PAIR_DRAWS) + "\n", nl=True)
        if paths:
            echo_paths(paths, as_json)
    return 1 if any(part.unexplained for one in found for part in one.parts) else 0


@verb(
    """Compare our predictions with measurements by others, for all sets or for the named sets.

    Prints a table for each set. The exit code is 1 if a measurement is below our bound without a known reason. Our
    errors and their reasons are described in docs/accuracy/measurements.md.

    Example: tilewright accuracy gemmini-rtl -o results/court
    """,
    run=_compared,
    show=_show,
)
def accuracy(
    sets: Annotated[Sequence[str], Argument(metavar="[SET]...")] = (),
    *,
    data: Annotated[
        FilePath | None,
        Help(
            f"Folder with one subfolder of rows for each set. Default: {DEFAULT_DATA} if it exists, otherwise the"
            " samples of the package."
        ),
    ] = None,
    package_samples: Annotated[
        bool, Help("Use the samples of the package, even if there is a folder of full sets.")
    ] = False,
    refit: Annotated[bool, Help("Fit the constants again, to the rows that the rule of each set chooses.")] = False,
    draws: Annotated[
        int,
        Limits(least=0),
        Help(
            "Number of further fits of the constants, each to another random draw of rows; 0: none. The spread of the"
            " errors over these draws is printed."
        ),
    ] = 0,
    error_bars: Annotated[
        str | None,
        OneOf(JUDGES),
        Help(
            "Also make statements 'A is faster than B' on pairs of rows, and compare these statements with the"
            " measurements. held-out: the statement on a pair uses the errors of all other machines in the rows."
            " package: the statement uses the table of errors in the package; choose this value only if the table was"
            " not made from these rows."
        ),
    ] = None,
    output: Annotated[FilePath | None, Help(f"Folder for {COURT_TABLE}, {COURT} and the figures.")] = None,
) -> "list[Heard]":
    """Comparisons of our predictions with measurements by others: the cases of each set, and the errors of its parts.

    The arguments are the options of the command. Raises InputError with all mistakes.
    """
    return _compared(sets, data, package_samples, refit, draws, error_bars, output)[0]


@dataclass(frozen=True)
class Heard:
    """Set of measurements, with the results of the comparison for this set."""

    court_set: "CourtSet"
    cases: "list[Case]"
    parts: "list[VerdictPart]"
    constants: dict[str, dict[str, float]]
    """Values of the constants that the predictions use, by device and by name of the constant."""
    is_sample: bool
    draws: "list[Draws]"
    """Spread of the errors over random draws of the fitted rows; [] if no draws were requested or if nothing is fitted.
    """


def _folder(data: Path | None) -> Path | None:
    """Folder of the full sets; None if there is none. Raises InputError if the named folder does not exist."""
    if data is None:
        return DEFAULT_DATA if DEFAULT_DATA.is_dir() else None
    if not data.is_dir():
        raise InputError([Problem("no such folder", str(data), path="data")])
    return data


def _heard(names: Sequence[str], folder: Path | None, refit: bool, notices: list[str], draws: int) -> list[Heard]:
    """Comparisons of our predictions with the measurements of the sets in `names`; () means all sets. `folder` is the
    folder of the full sets; None means the samples of the package. If `refit` is true, the constants are fitted again.
    `draws` is the number of random draws of the fitted rows. Notices are appended to `notices`. Raises InputError with
    all unknown names and the mistakes in the sets.
    """
    from tilewright_evidence.court.case import DATA, set_files

    problems = [
        Problem(
            "no such set", path="SET", value=repr(name), allowed=", ".join(SETS), nearest=nearest_name(name, list(SETS))
        )
        for name in names
        if name not in SETS
    ]
    found = []
    for name, court_set in SETS.items():
        if names and name not in names:
            continue
        place = (folder or DATA) / name
        if folder is not None and not names and not place.is_dir():
            notices.append(f"{name}: {folder} has no folder for this set; the sample of the package is used")
            place = DATA / name
        try:
            found.append(_of_set(court_set, set_files(place, court_set.patterns), refit, DATA in place.parents, draws))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def _of_set(court_set: "CourtSet", files: list[Path], refit: bool, is_sample: bool, draws: int) -> Heard:
    from tilewright_evidence.court.fit import fitted_constants, redrawn, with_fitted_roofline
    from tilewright_evidence.court.verdict import parts_of

    rows = court_set.prepare(files)
    constants = fitted_constants(court_set, rows) if refit else court_set.values()
    cases = with_fitted_roofline(court_set, rows, [row.case(constants) for row in rows])
    others = redrawn(court_set, rows, draws) if draws else []
    return Heard(court_set, cases, parts_of(cases), constants, is_sample, others)


def _constants_text(one: Heard) -> str:
    lines = [f"  {'sample of the set' if one.is_sample else 'rows of the folder'}; source: {one.court_set.source}"]
    for device, constants in one.court_set.constants.items():
        for constant in constants:
            value = one.constants[device][constant.name]
            lines.append(f"  fitted, {device}: {constant.name} {value:g} {constant.unit} ({constant.meaning})")
    return terminal_lines(lines)


def _draw_lines(one: Heard) -> list[str]:
    return [
        f"  other draws of the fitted rows, {draws.part}: median error {draws.middle:.1%} (median of"
        f" {draws.count} {'draw' if draws.count == 1 else 'draws'}; 10 % and 90 % quantile: {draws.low:.1%} and"
        f" {draws.high:.1%}); {draws.worse:.0%} of the draws give a larger error than the draw that tilewright uses"
        for draws in one.draws
    ]


def _object(found: Sequence[Heard]) -> list[JsonObject]:
    """Results as JSON values."""
    return [
        {
            "set": one.court_set.name,
            "title": one.court_set.title,
            "unit": one.court_set.unit,
            "source": one.court_set.source,
            "is_sample": one.is_sample,
            "fitted_rows": one.court_set.rule,
            "peer": one.court_set.peer,
            "second": one.court_set.second,
            "constants": one.constants,
            "published": [asdict(published) for published in one.court_set.published],
            "parts": [asdict(part) for part in one.parts],
            **({"draws": [asdict(draws) for draws in one.draws]} if one.draws else {}),
        }
        for one in found
    ]


def _write(found: Sequence[Heard], folder: Path) -> list[Path]:
    """Write the table of all cases, the results as JSON, and the plots of each set. Returns the paths of the files."""
    keep_font_cache_here()
    import pandas
    from tilewright.base.artifacts.digests import document_text
    from tilewright.base.artifacts.files import make_folder, write_atomically

    from tilewright_evidence.court.figures import write_figure
    from tilewright_evidence.court.verdict import table

    make_folder(folder)
    frames = [table(one.cases) for one in found]
    for one, frame in zip(found, frames, strict=True):
        frame.insert(0, "set", one.court_set.name)
        frame.insert(4, "unit", one.court_set.unit)
    paths = [folder / COURT_TABLE, folder / COURT]
    write_atomically(paths[0], csv_text(pandas.concat(frames)))
    write_atomically(paths[1], document_text(_object(found)))
    for one in found:
        paths += write_figure(one.court_set, one.cases, folder)
    return paths


SETS: dict[str, CourtSet] = {
    one.name: one
    for one in (
        *(GEMMINI, TIMELOOP, GPU, TPU, EYERISS, TENSTORRENT, XDNA),
        *(VIDUR, SERVING_PRODUCTS, SERVING_ATTENTION, CONFIGURATOR_ATTENTION, COMPASS),
    )
}
"""Sets of measurements, by name."""
