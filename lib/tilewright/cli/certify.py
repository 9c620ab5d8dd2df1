"""`tilewright check-front`: check of a certificate of complete Pareto fronts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.harmless import terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits
from tilewright.cli.folder_kinds import kind_of_folder, said_of_folder
from tilewright.cli.front import CERTIFICATE
from tilewright.cli.options import echo_json
from tilewright.cli.space_path import SPACE_PATH
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
        message = f"has no complete fronts: it {said_of_folder(folder)}"
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
    """Check the certificate that `tilewright front` wrote to FOLDER.

    The command counts all designs of the space, recomputes their areas, and checks which designs are dominated. It
    recomputes the costs of each design on the fronts, and of a sample of the other designs, one by one as `tilewright
    map` does. With --all it also recomputes the costs of all other designs, family by family as `tilewright front`
    does. The exit code is 1 if the certificate is wrong.

    Example: tilewright check-front results/front/edge_sram
    """,
    run=_verdict,
    show=_show,
)
def check_front(
    folder: Annotated[FilePath, ARGUMENT],
    space: Annotated[FilePath | None, Help("File of the space, if it was moved.")] = None,
    sample: Annotated[
        int, Limits(least=0), Help("Number of random designs outside the fronts; their costs are recomputed.")
    ] = SAMPLE,
    seed: Annotated[int, Limits(least=0), Help("Seed of the random choice of designs for --sample.")] = 0,
    everything: Annotated[bool, Help("Recompute the costs of all designs.", flag="--all")] = False,
    jobs: int = 1,
) -> "JsonObject":
    """Check the certificate in a folder. Returns counts of the checked parts, and the errors found as `problems`.

    `problems` is [] if the certificate is true. Raises InputError if the certificate or the file of the space is
    missing.
    """
    return _as_dict(_verdict(folder, space, sample, seed, everything, jobs))


def verdict_text(verdict: "CertificateVerdict") -> str:
    """Lines on the checked parts and on the errors that were found."""
    checked = [
        f"areas recomputed: {count_of(verdict.designs, 'design')}; fronts compared: {verdict.fronts:,}",
        f"costs recomputed one by one: {count_of(verdict.members, 'design')} on fronts,"
        f" {count_of(verdict.costed, 'other design')}",
    ]
    if verdict.families:
        checked.append(f"costs of all {verdict.families:,} families recomputed")
    elif not verdict.problems:
        checked.append("not recomputed: the costs of all other designs (--all recomputes them)")
    result = [f"WRONG: {problem.message}: {problem.value}".rstrip(": ") for problem in verdict.problems]
    return terminal_lines([*checked, *(result or ["no error found: the checked parts of the certificate are true"])])


def _as_dict(verdict: "CertificateVerdict") -> "JsonObject":
    counts = {key: getattr(verdict, key) for key in ("designs", "fronts", "members", "costed", "families")}
    return {**counts, "problems": [f"{problem.message}: {problem.value}".rstrip(": ") for problem in verdict.problems]}


def _space_of(folder: Path) -> Path:
    """Path of the space file from which a folder was made, read from the file SPACE_PATH in the folder. Raises
    InputError if SPACE_PATH does not exist.
    """
    try:
        return Path(folder / (folder / SPACE_PATH).read_text(encoding="utf-8").strip())
    except OSError:
        message = "does not name the file of the space: name the file with the option space"
        raise InputError([Problem(message, str(folder / SPACE_PATH))]) from None
