"""`tilewright check-front`: verification of the certificate of complete fronts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem
from tilewright.base.harmless import terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits
from tilewright.cli.folder_kinds import kind_of_folder, said_of_folder
from tilewright.cli.front import CERTIFICATE, SPACE_PATH
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, verb

if TYPE_CHECKING:
    from tilewright.designs.certify import CertificateVerdict

SAMPLE = 100


def _verdict(
    folder: FilePath,
    space: FilePath | None,
    sample: int,
    seed: int,
    everything: bool,
    jobs: int,
    show_progress: bool = False,
) -> "CertificateVerdict":
    from tilewright.designs.certify import certify as check
    from tilewright.designs.space_reader import read_space
    from tilewright.search.progress import search_progress

    folder = Path(folder)
    if not (folder / CERTIFICATE).is_file() and folder.is_dir() and kind_of_folder(folder) is not None:
        message = f"no complete fronts: {said_of_folder(folder)}"
        raise InputError([Problem(message, str(folder), allowed="a folder that `tilewright front` wrote")])
    source = _space_of(folder) if space is None else Path(space)
    read = read_space(source)
    with search_progress(None, read.name, show_progress, unit="steps", least=1) as advance:
        return check(source, read, folder / CERTIFICATE, sample, seed, everything, jobs, advance)


def _show(verdict: "CertificateVerdict", as_json: bool) -> int:
    if as_json:
        echo_json(_as_dict(verdict))
    else:
        echo_text(verdict_text(verdict), nl=True)
    return 1 if verdict.problems else 0


@verb(
    """Check the certificate in FOLDER, which `tilewright front` made, and report what was checked.

    All designs of the space are counted and their areas recomputed. Dominance is checked for all designs. The costs of
    the designs on the fronts, and of a sample of the others, are recomputed one by one, as `tilewright map` does it.
    With --all the families of all designs are recomputed too. The exit code is 1 if anything is wrong.

    Example: tilewright check-front results/front/edge_sram
    """,
    run=_verdict,
    show=_show,
)
def check_front(
    folder: Annotated[FilePath, ARGUMENT],
    space: Annotated[FilePath | None, Help("The file of the space, if it is not where it was.")] = None,
    sample: Annotated[int, Limits(least=0), Help("Designs to cost alone.")] = SAMPLE,
    seed: Annotated[int, Limits(least=0), Help("Which designs these are.")] = 0,
    everything: Annotated[bool, Help("Cost all families again.", flag="--all")] = False,
    jobs: int = 1,
) -> "JsonObject":
    """Result of checking the certificate in a folder: what was checked, and `problems`, [] if the certificate is true.

    Raises InputError if there is no certificate, or no space.
    """
    return _as_dict(_verdict(folder, space, sample, seed, everything, jobs))


def verdict_text(verdict: "CertificateVerdict") -> str:
    """Lines on what was checked and what is wrong."""
    checked = [
        f"{verdict.designs:,} designs counted, with their areas; {verdict.fronts} fronts compared",
        f"{verdict.members:,} designs on fronts and {verdict.costed:,} others costed again, each alone",
    ]
    if verdict.families:
        checked.append(f"all {verdict.families:,} families costed again")
    elif not verdict.problems:
        checked.append("costs of all others: as the certificate says (--all makes them again)")
    result = [f"WRONG: {problem.message}: {problem.value}".rstrip(": ") for problem in verdict.problems]
    return terminal_lines([*checked, *(result or ["the certificate is true as far as this was checked"])])


def _as_dict(verdict: "CertificateVerdict") -> "JsonObject":
    counts = {key: getattr(verdict, key) for key in ("designs", "fronts", "members", "costed", "families")}
    return {**counts, "problems": [f"{problem.message}: {problem.value}".rstrip(": ") for problem in verdict.problems]}


def _space_of(folder: Path) -> Path:
    """File of the space that a folder names. Raises InputError if it names none."""
    try:
        return Path(folder / (folder / SPACE_PATH).read_text(encoding="utf-8").strip())
    except OSError:
        message = "does not say which space it is of: give its file"
        raise InputError([Problem(message, str(folder / SPACE_PATH), path="--space")]) from None
