"""Copies of the inputs of a run in its folder, so that later verbs need only this folder.

The inputs are hardware, workload and mapping. A schedule also has CN graph, cost tables and allocation as inputs.
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import is_artifact, provenance, read_artifact, write_document
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import (
    ALLOCATION,
    CN_COLUMNS,
    CN_GRAPH,
    COSTS,
    FIXED_MAPPING,
    GENERATIONS,
    PARETO,
    cost_table,
)
from tilewright.cli.described_run import HARDWARE, KEPT, MAPPING, WORKLOAD, paths_of
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.hardware.core import Accelerator
    from tilewright.mapping.constraints import Mapping as MappingOfLayers
    from tilewright.workload.graph import Workload

_BESIDE_ALLOCATION = (GENERATIONS, PARETO, FIXED_MAPPING)
"""Names of the files that `tilewright allocate` writes beside an allocation."""


def keep_descriptions(
    folder: Path,
    step: str,
    accelerator: "Accelerator",
    workload: "Workload",
    mapping: "MappingOfLayers",
    sources: Mapping[str, object],
    network_options: NetworkOptions = NetworkOptions(),  # noqa: B008  frozen
) -> None:
    """Write hardware, workload and mapping of a run into its folder.

    An input that the commands of tilewright find at its present path is not written. `sources` has the source of each
    input (a path or an object), by kind. `network_options` are the options with which the file of the network was read.
    """
    from tilewright.hardware.source import schema_of
    from tilewright.hardware.whole_text import FILE_TEXT, whole_text

    parsed: dict[str, tuple[str, object]] = {
        HARDWARE: (schema_of(accelerator), accelerator),
        WORKLOAD: ("tilewright/workload", workload),
        MAPPING: ("tilewright/mapping", mapping),
    }
    for kind, (schema, description) in parsed.items():
        source = sources.get(kind)
        if _lies_with_run(folder, kind, source):
            continue
        payload = encode(description)
        stated = _stated_of_network(source, network_options) if kind == WORKLOAD else {}
        made_by = provenance(step, {kind: content_digest(payload)}, stated)
        if kind == HARDWARE and (text := whole_text(source, accelerator)):
            made_by[FILE_TEXT] = text
        write_document(folder / KEPT[kind], schema, payload, made_by)


def _stated_of_network(source: object, options: NetworkOptions) -> JsonObject:
    """Options with which a network was read, as JSON; {} for the default options. For an artifact, these are the
    options in the provenance of the artifact.
    """
    if isinstance(source, str | PathLike) and is_artifact(path := Path(source)):
        options = NetworkOptions.of_stated(read_artifact(path).provenance.get("options", {}))
    return {} if options == NetworkOptions() else options.stated()


def keep_parts_of_schedule(
    folder: Path, cns: object, costs: object, allocation: object, cores: tuple[str, ...]
) -> None:
    """Copy the inputs of a schedule into its folder: the CN graph, the cost tables of `cores`, and the allocation with
    the files beside it.

    A file that is already in this folder is not copied again. An input that is an object in memory has no file, so it
    is not copied.
    """
    if isinstance(cns, str | PathLike):
        _copy({Path(cns) / name: folder / name for name in (CN_GRAPH, CN_COLUMNS)})
    if isinstance(costs, str | PathLike):
        _copy({cost_table(Path(costs), name): cost_table(folder / COSTS, name) for name in cores})
    if isinstance(allocation, str | PathLike):
        beside = {Path(allocation).parent / name: folder / name for name in _BESIDE_ALLOCATION}
        _copy({Path(allocation): folder / ALLOCATION, **beside})


def _copy(files: Mapping[Path, Path]) -> None:
    for source, target in files.items():
        if source.is_file() and source.resolve() != target.resolve():
            write_atomically(target, source.read_bytes())


def _lies_with_run(folder: Path, kind: str, source: object) -> bool:
    if not isinstance(source, str | PathLike):
        return False
    place = Path(source).resolve()
    return any(path.resolve() == place for path in paths_of(folder, kind))
