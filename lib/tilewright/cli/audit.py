"""`tilewright audit`: a random sample of the results in a folder, recomputed and compared bit by bit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import ArtifactError, InputError, Problem, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits
from tilewright.cli.auditing.inputs import GivenDescriptions
from tilewright.cli.auditing.items import (
    PLURALS,
    AuditItem,
    LeftOut,
    Made,
    NotAudited,
    drawn,
    read_share,
    share_text,
    value_text,
)
from tilewright.cli.folder_kinds import said_of_folder
from tilewright.cli.options import echo_json, echo_notices, network_keywords
from tilewright.cli.terminal import echo
from tilewright.cli.verb import ARGUMENT, Help, verb
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.cli.auditing.items import Audited

SHARE = "1%"
SEED = 0
MOST_TOLD = 10
"""Limit on printed lines. It applies to the differences of each result, and to the results that the audit leaves out.
With -v, there is no limit.
"""


@dataclass(frozen=True)
class Audit:
    """Comparison of the stored results of a folder with recomputed results."""

    folder: Path
    share: Fraction
    seed: int
    items: Sequence[AuditItem]
    """Results from which the sample was drawn."""
    made: Sequence[Made]
    """Results of the sample that were recomputed and compared."""
    left_out: Sequence[LeftOut]
    not_audited: Sequence[NotAudited]
    notes: Sequence[str]

    @property
    def different(self) -> list[Made]:
        """Recomputed results that differ from the stored results in at least one value."""
        return [made for made in self.made if made.differences]

    @property
    def sentence(self) -> str:
        """Sentence that sums up the comparison of all recomputed results. Users can quote it."""
        kinds = _joined([words for kind, words in PLURALS.items() if any(item.kind == kind for item in self.items)])
        how = f"{share_text(self.share)}, seed {self.seed}"
        verb = "was" if len(self.made) == 1 else "were"
        head = f"{len(self.made):,} of {len(self.items):,} {kinds} ({how}) of {self.folder} {verb} made again"
        return "; ".join([f"{head}: {self._outcome}", *self._exceptions()]) + "."

    @property
    def _outcome(self) -> str:
        if not self.made:
            return "nothing to compare"
        if not self.different:
            return f"{'all ' if len(self.made) > 1 else ''}equal, bit by bit"
        names = some_of([str(made.item) for made in self.different])
        equal = len(self.made) - len(self.different)
        return f"{len(self.different):,} different ({names}), {equal:,} equal, bit by bit"

    def _exceptions(self) -> Iterator[str]:
        """Parts of `sentence` that limit its statement, at most three. They count results that the audit leaves out,
        folders and files that cannot be recomputed, and files of another version of the code.
        """
        if self.left_out:
            counts = Counter(left.item.kind for left in self.left_out)
            told = _joined([_several(counts[kind], kind, PLURALS[kind]) for kind in PLURALS if counts[kind]])
            is_one = len(self.left_out) == 1
            ended = "ended" if all(left.is_sure for left in self.left_out) else "ended, or may have ended,"
            are, their = ("is", "its") if is_one else ("are", "their")
            yield f"{told} {are} left out, because a time budget {ended} {their} search"
        if self.not_audited:
            yield f"{_several(len(self.not_audited), 'folder or file', 'folders or files')} cannot be made again"
        if self.notes:
            is_one = len(self.notes) == 1
            told = _several(len(self.notes), "file", "files")
            yield f"{told} {'was' if is_one else 'were'} made by another version of the code"

    def lines(self, most: int | None) -> list[str]:
        """Lines on differences (with both values), on results that the audit leaves out, and on results that cannot be
        recomputed.

        At most `most` differences are listed for each result, and at most `most` results that the audit leaves out. If
        there are more, a further line says how many. If `most` is None, there is no limit.
        """
        told = []
        for made in self.different:
            told += [f"DIFFERENT  {made.item}: {one}" for one in made.differences[:most]]
            if most is not None and len(made.differences) > most:
                told.append(f"DIFFERENT  {made.item}: and {len(made.differences) - most:,} more values (-v lists all)")
        told += [f"left out  {left.item}: {left.reason}" for left in self.left_out[:most]]
        if most is not None and len(self.left_out) > most:
            told.append(f"left out  ... and {len(self.left_out) - most:,} more (-v lists all)")
        return told + [f"not audited  {one.place}: {one.reason}" for one in self.not_audited]

    def as_dict(self) -> JsonObject:
        """Result as a JSON object."""
        return {
            "folder": str(self.folder),
            "share": share_text(self.share),
            "seed": self.seed,
            "total": len(self.items),
            "made_again": [str(made.item) for made in self.made],
            "equal": len(self.made) - len(self.different),
            "differences": [
                {
                    "result": str(made.item),
                    "column": one.column,
                    "stored": value_text(one.stored),
                    "again": value_text(one.again),
                }
                for made in self.different
                for one in made.differences
            ],
            "left_out": [{"result": str(left.item), "reason": left.reason} for left in self.left_out],
            "not_audited": [one._asdict() for one in self.not_audited],
            "notes": list(self.notes),
            "sentence": self.sentence,
        }


def _several(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _audited(
    folder: FilePath,
    share: str | float,
    seed: int,
    hardware: FilePath | None,
    workload: FilePath | None,
    mapping: FilePath | None,
    space: FilePath | None,
    network_options: NetworkOptions | None,
    show_progress: bool = False,
) -> Audit:
    from tilewright.cli.auditing.folders import audited_folders

    part, folder = read_share(share), Path(folder)
    named = {"hardware": hardware, "workload": workload, "mapping": mapping}
    files = {kind: None if file is None else Path(file) for kind, file in named.items()}
    options = network_options or NetworkOptions()
    given = GivenDescriptions(files, None if space is None else Path(space), options)
    if not folder.is_dir():
        raise InputError([Problem(said_of_folder(folder), str(folder))])
    _verify(folder)
    found, refused = audited_folders(folder, given)
    items = [item for one in found for item in one.items]
    left_out = [left for one in found for left in one.left_out]
    if not items:
        reasons = [Problem(f"cannot be made again: {one.reason}", one.place) for one in refused]
        reasons += [Problem(f"cannot be made again: {left.reason}", str(left.item)) for left in left_out[:MOST_TOLD]]
        raise InputError(
            reasons or [Problem(f"has no results that can be made again: it {said_of_folder(folder)}", str(folder))]
        )
    chosen = drawn(items, part, seed, folder)
    made = _made_again(found, chosen, refused, show_progress)
    left_out += [LeftOut(one.item, one.ended) for one in made if one.ended]
    compared = [one for one in made if not one.ended]
    notes = [note for one in found for note in one.notes]
    return Audit(folder, part, seed, items, compared, left_out, refused, notes)


def _show(found: Audit, verbose: bool, as_json: bool) -> int:
    if as_json:
        echo_json(found.as_dict())
    else:
        echo_notices(found.notes)
        for line in (*found.lines(None if verbose else MOST_TOLD), found.sentence):
            echo(line)
    return 1 if found.different else 0


@verb(
    """Recompute a random share of the layers, computation nodes and designs in FOLDER, and compare them bit by bit.
    FOLDER is a folder that tilewright wrote, or a folder with such folders in it. The command first verifies all files.
    It writes nothing to FOLDER and does not reuse stored results. It prints a sentence that sums up the audit. The exit
    code is 1 if a value differs.

    Example: tilewright audit results --share 1% --seed 7
    """,
    run=_audited,
    show=_show,
)
@network_keywords
def audit(
    folder: Annotated[FilePath, ARGUMENT],
    share: Annotated[
        str | float,
        Help("Share of the results to recompute, as a percentage (1%) or as a fraction (0.01).", metavar="SHARE"),
    ] = SHARE,
    seed: Annotated[int, Limits(least=0), Help("Seed of the random choice of results.")] = SEED,
    hardware: Annotated[FilePath | None, Help("Hardware file of a run; only needed if it is not found.")] = None,
    workload: Annotated[FilePath | None, Help("Workload of a run; only needed if it is not found.")] = None,
    mapping: Annotated[FilePath | None, Help("Mapping file of a run; only needed if it is not found.")] = None,
    space: Annotated[FilePath | None, Help("File of a space of designs; only needed if it is not found.")] = None,
    network_options: NetworkOptions | None = None,
) -> dict[str, Any]:
    """Recompute a random share of the results in a folder, compare bit by bit, and return the outcome as JSON values.

    `sentence` sums up the outcome. `differences` has a row for each value that differs. `left_out` has a row for each
    result that cannot be compared: the user or a time budget ended its search early, or a time budget may have done so.
    `not_audited` has a row for each folder or file that cannot be recomputed. `notes` has remarks. Raises InputError
    for a folder without results, for a wrong share, and if no result can be recomputed. Raises ArtifactError for
    damaged files.
    """
    return _audited(folder, share, seed, hardware, workload, mapping, space, network_options).as_dict()


def _joined(words: Sequence[str]) -> str:
    """Text of a list: `layers, schedules and designs`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _verify(folder: Path) -> None:
    """Raise ArtifactError if files were changed after tilewright wrote them. The error names each of these files."""
    from tilewright.base.artifacts.verification import verify_part

    verified = verify_part(folder)
    if verified.problems:
        raise ArtifactError(verified.problems.values())


def _made_again(
    found: "Sequence[Audited]", chosen: Sequence[AuditItem], refused: list[NotAudited], show_progress: bool
) -> list[Made]:
    """Recomputed results of the sample, folder by folder. A folder that cannot be recomputed is added to `refused`."""
    from tilewright.search.progress import search_progress

    wanted = set(map(id, chosen))
    made = []
    with search_progress(len(chosen), "audit", show_progress, unit="results", least=20) as advance:
        for one in found:
            own = [item for item in one.items if id(item) in wanted]
            try:
                for result in one.again(own) if own else ():
                    made.append(result)
                    advance(1)
            except InputError as error:
                refused.append(NotAudited(str(own[0].folder), "; ".join(str(error).splitlines())))
    return made
