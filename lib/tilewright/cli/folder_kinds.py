"""Kinds of folders that a user can give by mistake in place of the folder of a run."""

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
    """Kind of folder that a user can mistake for the folder of a run, with a hint for the user."""

    files: tuple[str, ...]
    """Patterns of file names. A folder has this kind if a file matches one of them."""
    what: str
    remedy: str
    """Text that names the verb which reads or completes this folder."""


RUN = "a folder that `tilewright map`, `tilewright schedule` or `tilewright fuse` wrote"
KINDS = (
    FolderKind((SCHEDULE,), "a schedule without its summary", f"`tilewright schedule` writes {SUMMARY} beside it"),
    FolderKind((ALLOCATION,), "an allocation without a schedule", "`tilewright schedule` completes the run"),
    FolderKind((FUSION,), "a plan without its schedule", "`tilewright fuse` writes both"),
    FolderKind(
        (CN_GRAPH,),
        "computation nodes without a schedule",
        "`tilewright cost`, `allocate` and `schedule` complete the run",
    ),
    FolderKind(
        (LAYERS,), f"layers without {SUMMARY}", "`tilewright map` writes both; `tilewright compare` reads the layers"
    ),
    FolderKind(
        (SUMMARY,), f"{SUMMARY} without its layers or its schedule", "run the command that wrote this file again"
    ),
    FolderKind(
        (f"{SPACE}.parquet", "shards"),
        "designs that `tilewright explore` evaluated",
        "`tilewright decide` chooses one, `tilewright.load` reads the table, `tilewright compare` takes FOLDER:DESIGN",
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
        "tables or reports about a run, not the run",
        "give the folder of the run itself",
    ),
    FolderKind(
        ("*_simple.json", "*_complete.json", "*_loop_nest.svg"),
        f"files that pipeline stages or `tilewright export` wrote ({EXPORTS})",
        "give the folder of the run itself",
    ),
    FolderKind(
        ("*.jsonl",),
        "rows of `tilewright evaluate`",
        "`tilewright map` with the same --mapping makes the run, and `tilewright.load` reads the rows",
    ),
    FolderKind((f"*/{SUMMARY}",), "folders of runs", "give one of these folders"),
    FolderKind(("*.yaml", "*.yml"), "YAML files", "`tilewright validate` reads them, and `tilewright map` makes runs"),
)
"""All kinds of folders. A folder has the first kind that matches."""


def kind_of_folder(folder: Path) -> FolderKind | None:
    """Kind of a folder; None if it is unknown."""
    return next((kind for kind in KINDS if any(next(folder.glob(name), None) for name in kind.files)), None)


def said_of_folder(folder: Path) -> str:
    """Text for a message on a path that is not a folder for the verb. The text describes the path or its content, and
    names verbs that read it, if any.
    """
    if not folder.exists():
        return "is not there"
    if not folder.is_dir():
        return "is a file, not the folder of a run"
    if (folder / SUMMARY).is_file() and any((folder / one).is_file() for one in (LAYERS, SCHEDULE)):
        return "is the folder of a run: `tilewright explain`, `report` and `compare` read it"
    kind = kind_of_folder(folder)
    if kind is None:
        nothing = next(folder.iterdir(), None) is None
        what = "is empty" if nothing else "has no files of a run"
        return f"{what}: it has neither {LAYERS} nor {SCHEDULE}"
    return f"has {kind.what}: {kind.remedy}"


def other_folder(folder: Path, wanted: str = RUN) -> ArtifactError:
    """Error for a folder that is not a finished run. `wanted` names the folder that is needed."""
    return ArtifactError([Problem(f"has no finished run: it {said_of_folder(folder)}", str(folder), allowed=wanted)])
