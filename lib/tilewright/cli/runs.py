"""Readers of the artifacts in the folder of a run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.envelope import Artifact, read_artifact
from tilewright.base.artifacts.files import existing_file
from tilewright.base.artifacts.seals import REMEDY, read_sealed
from tilewright.base.errors import ArtifactError, InputError, Label, Problem, nearest_name, some_of
from tilewright.base.steps import ALLOCATION, CN_GRAPH, LAYERS, MULTI, SCHEDULE, SINGLE, SUMMARY
from tilewright.cli.folder_kinds import RUN, other_folder, said_of_folder

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord


_FLOW_OF = {"tilewright/single-summary": SINGLE, "tilewright/multi-summary": MULTI}
"""Flow of a run, by schema of the summary."""
UNFINISHED_KEYS = ("run", "flow", "state", "workload", "hardware")
"""Columns of the table of unfinished runs, which are the runs that are not up to date."""

RESULTS = Path("results")
"""Folder with the results of the pipeline, relative to the working folder."""


def existing_run(folder: Path) -> Path:
    """Folder `folder`, unchanged, after a check that it is the folder of a run.

    Raises InputError if the folder does not exist; the message suggests a run with the same or a similar name. Raises
    ArtifactError if the folder is not a run; the message names a verb that reads it.
    """
    if folder.exists():
        if not any((folder / name).is_file() for name in (LAYERS, SCHEDULE)):
            raise other_folder(folder)
        return folder
    places = [
        place / flow for place in (RESULTS, *sorted(RESULTS.glob("configurations/*"))) for flow in (SINGLE, MULTI)
    ]
    made = [place / folder.name for place in places if (place / folder.name).is_dir()]
    siblings = sorted(path.name for path in folder.parent.iterdir() if path.is_dir()) if folder.parent.is_dir() else []
    alike = nearest_name(folder.name, siblings)
    nearest = str(made[0]) if made else str(folder.parent / alike) if alike else ""
    there = [str(folder.parent / name) for name in siblings if (folder.parent / name / SUMMARY).is_file()]
    message = "no such run" + (f"; existing runs are {some_of(there)}" if there and not nearest else "")
    raise InputError([Problem(message, path=Label(folder), nearest=nearest)])


def read_records(directory: Path) -> "tuple[LayerRecord, ...]":
    """Records in the folder of a run on one core. Raises ArtifactError if the file is missing or damaged, or is not a
    file of records.
    """
    path = directory / LAYERS
    return records_of(read_artifact(path, "tilewright/layers"), path)


def records_of(artifact: Artifact, path: Path) -> "tuple[LayerRecord, ...]":
    """Records of an artifact that was read from a path. Raises ArtifactError if a row is not a record."""
    from tilewright.cost.record import record_of_row

    try:
        return tuple(record_of_row(row) for row in artifact.payload)
    except ValueError as error:
        raise ArtifactError([Problem(f"artifact is damaged: {error}; {REMEDY}", str(path))]) from error


def read_summary(directory: Path) -> dict[str, Any]:
    """Summary of the run on one core in a folder. Raises ArtifactError if it is missing or damaged, or is not the
    summary of such a run.
    """
    summary: dict[str, Any] = read_artifact(directory / SUMMARY, "tilewright/single-summary").payload
    return summary


def read_any_summary(directory: Path) -> tuple[str, dict[str, Any]]:
    """Pair (flow, summary) of the run in a folder. The flow is SINGLE or MULTI. Raises ArtifactError if the summary is
    missing, damaged, or not that of a run.
    """
    path = directory / SUMMARY
    artifact = read_artifact(path)
    if artifact.schema not in _FLOW_OF:
        allowed = ", ".join(_FLOW_OF)
        raise ArtifactError([Problem("wrong kind of artifact", str(path), value=artifact.schema, allowed=allowed)])
    return _FLOW_OF[artifact.schema], artifact.payload


def run_directories(directories: tuple[Path, ...]) -> list[Path]:
    """Folders of runs. A given folder that is not a run stands for the runs in its subfolders."""
    found = []
    for directory in directories:
        if (directory / SUMMARY).is_file():
            found.append(directory)
        else:
            found += sorted(path.parent for path in directory.glob(f"*/{SUMMARY}"))
    if not found:
        raise ArtifactError(
            [
                Problem(f"there is no finished run ({SUMMARY}) in {place}, which {said_of_folder(place)}", allowed=RUN)
                for place in directories
            ]
        )
    return found


def read_unfinished(path: Path | None) -> list[dict[str, Any]]:
    """Rows of unfinished runs, from a file that `tilewright results` wrote; [] if no file is given. Raises InputError
    if the file is missing, or is not a file of this kind.
    """
    if path is None:
        return []
    try:
        rows = json.loads(existing_file(path).read_text("utf-8"))
        return [{key: str(row[key]) for key in UNFINISHED_KEYS} for row in rows]
    except (ValueError, TypeError, KeyError):
        raise InputError([Problem("is not a file that `tilewright results` wrote", str(path))]) from None


def is_multi_run(folder: Path) -> bool:
    """True if a folder has a run on several cores, finished or not."""
    return any((folder / name).is_file() for name in (SCHEDULE, ALLOCATION, CN_GRAPH))


def graph_size(file: Path | str) -> int:
    """Number of computation nodes plus number of edges in the file of a CN graph. The pipeline estimates the main
    memory of a job from this number.
    """
    with Path(file).open("rb") as stream:
        content = stream.read()
    try:
        payload = json.loads(content)["payload"]
        nodes = sum(int(layer["cn_count"]) for layer in payload["layers"])
        return nodes + sum(int(link["edge_count"]) for link in payload["links"])
    except (ValueError, KeyError, TypeError):
        return 0


def made_of(artifact: Artifact) -> dict[str, str]:
    """Digests of the inputs from which the bottlenecks of a run are computed: the input files and the records.
    `artifact` is the artifact with the records.
    """
    return {**artifact.provenance.get("inputs", {}), LAYERS.partition(".")[0]: artifact.digest}


def read_bottlenecks(path: Path) -> dict[str, Any] | None:
    """Content of a JSON file that `tilewright explain` wrote; None if the file is missing, damaged, or of another
    kind.
    """
    try:
        content = json.loads(read_sealed(path))
    except (ArtifactError, ValueError):
        return None
    return content if isinstance(content, dict) else None
