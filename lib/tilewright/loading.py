"""`tilewright.load`, which reads the folder of a run, or any file that a run wrote, as Python objects."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.envelope import Artifact, is_artifact, read_artifact, read_object
from tilewright.base.artifacts.files import YAML_SUFFIXES, FilePath
from tilewright.base.artifacts.seals import read_sealed
from tilewright.base.errors import InputError, Problem
from tilewright.base.harmless import from_csv_table
from tilewright.base.json_values import JsonObject
from tilewright.base.missing_files import missing_file
from tilewright.base.steps import CN_COLUMNS, CN_GRAPH, FRONT, MULTI, SPACE, SUMMARY

if TYPE_CHECKING:
    from tilewright.pipeline.stages.items import MappedWorkload

_TABLE_FILES = tuple(f"{name}.parquet" for name in (SPACE, FRONT))
"""Names of the files with a table of designs: `space.parquet` in the folder of an exploration, and `front.parquet` in
the folder of complete fronts.
"""
_DRAWN = (".html", ".md", ".pdf", ".png", ".svg")
"""Suffixes of files that contain figures or pages. `load` cannot read these files."""
_UNREADABLE = "is not a file that tilewright.load can read"
_ALLOWED = (
    "the folder of a run, of a space or of a front; .json, .jsonl, .npz, .csv, .parquet, .txt files of results; a"
    " hardware, workload, mapping or space file"
)


def load(path: FilePath) -> Any:
    """Content of a file or folder, as a Python object. The object equals the result of the function that wrote the file
    or folder.

    * Folder of a run: the result of `tilewright.map`, or the schedule on several cores with its summary. Both results
      have the tables `layers`, `energy` and `schedule`.
    * Folder of an exploration or of complete fronts: the table of designs.
    * Artifact: records, checks, descriptions, graphs, schedules and cost tables as objects; totals as dicts.
    * CSV or Parquet file: a table, in which every number is exactly the double that was written.
    * Text file: its text.
    * Hardware, workload, mapping or space file: the object that is parsed from the file.

    Raises ArtifactError for a file that is damaged, and for a file of another version of tilewright. Raises InputError
    for any other path.
    """
    place = Path(path)
    if place.is_dir():
        return _folder(place)
    if not place.is_file():
        raise InputError([missing_file(place, "file or folder")])
    if place.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[place.suffix](place)
    drawn = " (it is a figure or a page; its numbers are in the tables of its report)" * (place.suffix in _DRAWN)
    raise InputError([Problem(f"{_UNREADABLE}{drawn}", str(place), allowed=_ALLOWED)])


# folders --------------------------------------------------------------------------------------------------------------


def _folder(folder: Path) -> Any:
    from tilewright.cli.folder_kinds import said_of_folder
    from tilewright.cli.run_ledgers import scheduled_run
    from tilewright.cli.runs import read_any_summary

    if (folder / SUMMARY).is_file():
        flow, summary = read_any_summary(folder)
        return scheduled_run(folder) if flow == MULTI else _mapped(folder, summary)
    table = next((folder / name for name in _TABLE_FILES if (folder / name).is_file()), None)
    if table is not None:
        return _parquet(table)
    below = sorted(path.parent.name for path in folder.glob(f"*/{SUMMARY}"))
    message = f"is not the folder of a run: {said_of_folder(folder)}"
    raise InputError([Problem(message, str(folder), allowed=", ".join(below) or _ALLOWED)])


def _mapped(folder: Path, summary: JsonObject) -> "MappedWorkload":
    from tilewright.cli.runs import read_records
    from tilewright.pipeline.stages.items import MappedWorkload

    return MappedWorkload(read_records(folder), summary)


# files ----------------------------------------------------------------------------------------------------------------


def _artifact(path: Path) -> Any:
    """Content of an artifact. A JSON file that is not an artifact, such as a report, is returned as parsed JSON (dicts,
    lists, texts and numbers).
    """
    if not is_artifact(path):
        return _plain_json(path)
    artifact = read_artifact(path)
    read = _BY_SCHEMA.get(artifact.schema.removeprefix("tilewright/"))
    return artifact.payload if read is None else read(path, artifact)


def _plain_json(path: Path) -> Any:
    """Content of a file with plain JSON. For a `.json` file, it is the value in the file. For any other file, it is the
    list of the values on its lines; lines that `tilewright evaluate` wrote become objects of LayerRecord.
    """
    with _told_of(path):
        text = read_sealed(path, is_required=False).decode()
        if path.suffix == ".json":
            return json.loads(text)
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        from tilewright.cost.record import record_of_row

        return [record_of_row(row) if isinstance(row, dict) and "loop_order" in row else row for row in rows]


def _accelerator(path: Path, _: Artifact) -> Any:
    from tilewright.pipeline.sources import parse_accelerator

    return parse_accelerator(path)


def _workload(path: Path, _: Artifact) -> Any:
    from tilewright.pipeline.sources import parse_workload

    return parse_workload(path)


def _mapping(path: Path, _: Artifact) -> Any:
    from tilewright.pipeline.sources import parse_mapping

    return parse_mapping(path, plans=True)


def _core(path: Path, artifact: Artifact) -> Any:
    from tilewright.hardware.core import Core

    return read_object(Core, path, artifact.schema)


def _records(path: Path, artifact: Artifact) -> Any:
    from tilewright.cli.runs import records_of

    return records_of(artifact, path)


def _checks(_: Path, artifact: Artifact) -> Any:
    from tilewright.results.checks import Check

    return [Check(**row) for row in artifact.payload["checks"]]


def _costs(path: Path, _: Artifact) -> Any:
    from tilewright.multicore.scheduling.core_costs import read_core_costs

    return read_core_costs(path)


def _graph(path: Path, _: Artifact) -> Any:
    from tilewright.multicore.nodes.graph import read_cn_graph

    return read_cn_graph(path, path.with_suffix(Path(CN_COLUMNS).suffix))


_BY_SCHEMA: dict[str, Callable[[Path, Artifact], Any]] = {
    "accelerator": _accelerator,
    "multi-core-accelerator": _accelerator,
    "core": _core,
    "workload": _workload,
    "mapping": _mapping,
    "layers": _records,
    "checks": _checks,
    "core-costs": _costs,
    "cn-graph": _graph,
}
"""Functions that read the content of an artifact as an object of this package, by schema. For other schemas, the
payload is returned as parsed JSON.
"""


def _columns(path: Path) -> Any:
    """Content of a `.npz` file: the CN graph if the file is `cn_graph.npz`, otherwise the schedule. The CN graph is
    read from this file and from `cn_graph.json` in the same folder.
    """
    if path.name == CN_COLUMNS:
        return _artifact(path.with_name(CN_GRAPH))
    from tilewright.multicore.scheduling.result import read_schedule

    return read_schedule(path)


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Context for reading a file of results that is not an artifact.

    Raises InputError if the file cannot be read or parsed, for example because it is cut off or has another format.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        said = str(error).partition("\n")[0][:120]
        message = f"cannot be read as a {path.suffix} file of results: {said}"
        raise InputError([Problem(message, str(path), allowed=_ALLOWED)]) from None


def _csv(path: Path) -> Any:
    import pandas

    with _told_of(path):
        # Only an empty cell is a missing value, because a layer can be called "NA".
        return from_csv_table(pandas.read_csv(path, keep_default_na=False, na_values=[""]))


def _parquet(path: Path) -> Any:
    import io

    import pandas

    with _told_of(path):
        return pandas.read_parquet(io.BytesIO(read_sealed(path, is_required=False)))


def _description(path: Path) -> Any:
    """Object that is parsed from a YAML file that the user wrote."""
    from tilewright.base import file_kinds
    from tilewright.base.yamlfile import load_yaml
    from tilewright.pipeline.sources import parse_accelerator, parse_mapping, parse_workload

    def space(source: Path) -> Any:
        from tilewright.designs.space_reader import read_space

        return read_space(source)

    readers: dict[str, Callable[[Path], Any]] = {
        file_kinds.HARDWARE: parse_accelerator,
        file_kinds.WORKLOAD: parse_workload,
        file_kinds.MAPPING: lambda path: parse_mapping(path, plans=True),
        file_kinds.SPACE: space,
    }
    read = readers.get(file_kinds.kind_of(load_yaml(path).data))
    if read is None:
        allowed = "a hardware, workload, mapping or space file"
        raise InputError([Problem(_UNREADABLE, str(path), allowed=allowed)])
    return read(path)


def _text(path: Path) -> str:
    with _told_of(path):
        return path.read_text("utf-8")


def _network(path: Path) -> Any:
    from tilewright.pipeline.sources import parse_workload

    return parse_workload(path)


_BY_SUFFIX: dict[str, Callable[[Path], Any]] = {
    ".json": _artifact,
    ".jsonl": _artifact,
    ".npz": _columns,
    ".csv": _csv,
    ".parquet": _parquet,
    ".txt": _text,
    ".onnx": _network,
    **dict.fromkeys(YAML_SUFFIXES, _description),
}
