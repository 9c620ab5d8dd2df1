"""Kinds of folders that users give to a verb instead of a run, and the verbs that read them."""

from pathlib import Path
from typing import NamedTuple

from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.report_files import BOTTLENECKS, LAYER_TABLE
from tilewright.base.steps import (
    ALLOCATION,
    ATTENTION,
    CN_GRAPH,
    COURT,
    DEPTH_FIRST,
    EXPORTS,
    FRONT,
    FUSION,
    LAYERS,
    SCHEDULE,
    SPACE,
    SUMMARY,
)


class FolderKind(NamedTuple):
    """Kind of folder that a verb writes."""

    files: tuple[str, ...]
    """Patterns of files, of which at least one exists."""
    what: str
    remedy: str
    """Text that names the verb for the folder."""


RUN = "a folder that `tilewright map`, `tilewright schedule` or `tilewright fuse` wrote"
KINDS = (
    FolderKind((SCHEDULE,), "a schedule without its summary", f"`tilewright schedule` writes {SUMMARY} beside it"),
    FolderKind(
        (ALLOCATION,), "an allocation, and the run has no schedule yet", "`tilewright schedule` makes the run of it"
    ),
    FolderKind((FUSION,), "a plan without its schedule", "`tilewright fuse` writes both"),
    FolderKind(
        (CN_GRAPH,),
        "computation nodes, and the run has no schedule yet",
        "`tilewright cost`, `allocate` and `schedule` make the run of them",
    ),
    FolderKind((LAYERS,), f"layers without {SUMMARY}", "`tilewright map` writes both; `tilewright compare` takes them"),
    FolderKind((SUMMARY,), f"{SUMMARY} without the layers or the schedule of it", "the verb that wrote it writes both"),
    FolderKind(
        (f"{SPACE}.parquet", "shards"),
        "designs that `tilewright explore` evaluated",
        "`tilewright.load` reads their table, and `tilewright compare` takes FOLDER:DESIGN",
    ),
    FolderKind(
        ("certificate.parquet", "costs/*.parquet"),
        "complete fronts of `tilewright front`",
        f"`tilewright check-front` checks them, and `tilewright.load` reads {FRONT}.parquet",
    ),
    FolderKind(
        (DEPTH_FIRST,),
        "depth-first schedules of `tilewright depth-first`",
        "`tilewright check` checks the certificates of `--optimum`, and `tilewright.load` reads the table",
    ),
    FolderKind((ATTENTION,), "attentions of `tilewright attention`", "`tilewright check` checks their certificates"),
    FolderKind(("tokens.json", "tokens.csv"), "costs of tokens of `tilewright tokens`", "`tilewright.load` reads them"),
    FolderKind((COURT,), "verdicts of `tilewright accuracy`", "`tilewright.load` reads them"),
    FolderKind(
        (f"{BOTTLENECKS}.json", "advice.json", LAYER_TABLE, "differences.json"),
        "what was said of a run, not the run",
        "give the folder of the run itself",
    ),
    FolderKind(
        ("*_simple.json", "*_complete.json", "*_loop_nest.svg"),
        f"files that stages or `tilewright export` wrote ({EXPORTS})",
        "give the folder of the run itself",
    ),
    FolderKind(
        ("*.jsonl",),
        "rows of `tilewright evaluate`",
        "`tilewright map` with the same --mapping makes the run, and `tilewright.load` reads the rows",
    ),
    FolderKind((f"*/{SUMMARY}",), "folders of runs", "give one of them"),
    FolderKind(("*.yaml", "*.yml"), "YAML files", "`tilewright validate` reads them, and `tilewright map` makes runs"),
)
"""Kinds of folders; the first match counts."""


def kind_of_folder(folder: Path) -> FolderKind | None:
    """Kind of a folder; None if it is unknown."""
    return next((kind for kind in KINDS if any(next(folder.glob(name), None) for name in kind.files)), None)


def said_of_folder(folder: Path) -> str:
    """Text on the content of a path that is no run, with the verb for it."""
    if not folder.exists():
        return "is not there"
    if not folder.is_dir():
        return "is a file, and no folder of a run"
    kind = kind_of_folder(folder)
    if kind is None:
        nothing = next(folder.iterdir(), None) is None
        what = "is empty" if nothing else "holds nothing that tilewright reads as a run"
        return f"{what}: no such artifact as {LAYERS} or {SCHEDULE}"
    return f"holds {kind.what}: {kind.remedy}"


def other_folder(folder: Path, wanted: str = RUN) -> ArtifactError:
    """Error for a folder that is no finished run."""
    return ArtifactError([Problem(f"no finished run: {said_of_folder(folder)}", str(folder), allowed=wanted)])
