"""Reader of mapping files of stream-dse 2.x (2.1.1: `stream/parser/mapping_validator.py`, `mapping_factory.py`).

The file is a table with `layers` and `fused_groups`, or only the list of layers. Older releases of Stream have another
list: there, cores are a plain list, and tilings are texts such as `OY, 4` (`mapping.yaml_reader`).
"""

from typing import Any

from tilewright.base.errors import KeyPath, Problems
from tilewright.base.validation import each, validate, whole
from tilewright.base.yamlfile import YamlDocument, items, table
from tilewright.mapping.network_plans import NetworkPlan, PlanGroup, PlanLayer, PlanSplit, PlanTile
from tilewright.mapping.plan_forms import PlanForm
from tilewright.peers.stream.applied_mapping import applied
from tilewright.peers.stream.mapping_schema import GroupEntry, PlacedLayerEntry, StreamMappingFile

STREAM_2 = "stream-2"
"""Name of the form of mapping files of stream-dse 2.x."""
_TABLE_KEYS = ("layers", "fused_groups", "runtime_args")
_OLD_KEYS = (
    *("core_allocation_is_fixed", "intra_core_tiling", "spatial_mapping", "spatial_mapping_hint"),
    *("memory_operand_links", "temporal_ordering", "layer_dimension_names", "reduction"),
)
"""Keys that an entry has only in the older form."""
_CORES, _PARTS = "core_allocation", "inter_core_tiling"
_EXAMPLES = {
    _CORES: "a list with one list of cores, such as [[0, 1]]",
    _PARTS: "a list with one list of cuts, such as [[{dim: D2, split: 4}]]",
}
"""Texts on the form of the two keys whose value is a list with one list."""
_KEYS = "name, core_allocation, inter_core_tiling, kernel"


def has_form(data: Any) -> bool:
    """True if the data of a mapping file are a table of stream-dse 2.x, or a list with an entry of stream-dse 2.x."""
    if isinstance(data, dict):
        return any(key in data for key in _TABLE_KEYS)
    return any(_is_new(entry) for entry in items(data))


def _is_new(entry: Any) -> bool:
    """True if an entry of a list has a value that only entries of stream-dse 2.x have.

    Two kinds of lists do not count, because both forms forbid them: a list with values of both forms, such as [2, [3]],
    and a list of empty lists.
    """
    cores, parts = list(items(table(entry).get(_CORES))), list(items(table(entry).get(_PARTS)))
    in_lists = bool(cores) and all(isinstance(one, list) and one for one in cores)
    in_tables = bool(parts) and all(isinstance(one, list | dict) and one for one in parts)
    return in_lists or in_tables or "kernel" in table(entry)


def read(document: YamlDocument, problems: Problems) -> NetworkPlan:
    """Network plan that a document contains. Problems and notices of the document are reported in `problems`."""
    is_list = isinstance(document.data, list)
    at: KeyPath = () if is_list else ("layers",)
    layers = document.data if is_list else table(document.data).get("layers")
    sound = _without_old_forms(layers, problems, at)
    entries: list[PlacedLayerEntry] = []
    groups: list[GroupEntry] = []
    if is_list:
        entries = validate(list[PlacedLayerEntry], sound, problems) or []
    else:
        file = validate(StreamMappingFile, {**document.data, **({} if sound is None else {"layers": sound})}, problems)
        if file is not None:
            entries, groups = file.layers or [], file.fused_groups or []
            if file.runtime_args:
                problems.unused(("runtime_args",), "has no effect: it is for the generation of code")
    _check_layers(entries, problems, at)
    _check_groups(entries, groups, problems)
    if problems.found:
        return NetworkPlan(STREAM_2, ())
    return NetworkPlan(STREAM_2, tuple(map(_layer, entries)), tuple(map(_group, groups)))


def _without_old_forms(layers: Any, problems: Problems, at: KeyPath) -> Any:
    """Entries of the layers, without values of the older form and without second lists. Each of these values is
    reported as a problem.
    """
    if not isinstance(layers, list):
        return layers
    kept = []
    for index, entry in enumerate(layers):
        if not isinstance(entry, dict):
            kept.append(entry)
            continue
        told = problems.within(*at, index)
        sound = {}
        for key, value in entry.items():
            if key == _CORES and isinstance(value, list) and any(type(one) is int for one in value):
                _tell_old(told, key, value, _EXAMPLES[key])
                sound[key] = [[0]]
            elif key == _PARTS and isinstance(value, list) and any(isinstance(one, str) for one in value):
                _tell_old(told, key, value, _EXAMPLES[key])
            elif key in _EXAMPLES and isinstance(value, list) and len(value) > 1:
                told.at((key,), f"has {len(value)} lists, but only one list is read", value, _EXAMPLES[key])
                sound[key] = value[:1]
            elif key in _OLD_KEYS:
                allowed = "intra_core_tiling of a group in `fused_groups`" if key == "intra_core_tiling" else _KEYS
                _tell_old(told, key, value, allowed)
            else:
                sound[key] = value
        if entry.get("name") == "default":
            message = "entries of stream-dse 2.x select layers by name or operator type"
            told.at(("name",), message, "default", "the name of a layer, or an operator type such as Conv")
        kept.append(sound)
    return kept


def _tell_old(problems: Problems, key: str, value: Any, allowed: str) -> None:
    message = "has the form of Stream before 2.0, but other parts of the file have the form of stream-dse 2.x"
    problems.at((key,), message, value, allowed)


def _check_layers(entries: list[PlacedLayerEntry], problems: Problems, at: KeyPath) -> None:
    """Report problems that involve several values of an entry or several entries."""
    names = [None if entry is None else entry.name for entry in entries]
    for index, entry in each(entries):
        one = problems.within(*at, index)
        if entry.name is not None and entry.name in names[:index]:
            first = names.index(entry.name)
            message = f"entry {first + 1} of `layers` has the same name"
            one.at(("name",), message, entry.name, "one entry for each name")
        for cores in whole(entry.core_allocation):
            one.repeated((_CORES, 0), cores, "this core is named twice; each core can be in the list once")
        for cuts in whole(entry.inter_core_tiling):
            loops = [None if cut is None else cut.dim for cut in cuts]
            for place, loop in enumerate(loops):
                if loop is not None and loop in loops[:place]:
                    allowed = "one cut of each loop; its `split` is the product of the numbers of parts"
                    one.at((_PARTS, 0, place, "dim"), "this loop is cut twice", f"D{loop}", allowed)
        if entry.kernel is not None and entry.kernel.name:
            one.unused(("kernel",), "has no effect: it is for the generation of code", entry.kernel.name)


def _check_groups(entries: list[PlacedLayerEntry], groups: list[GroupEntry], problems: Problems) -> None:
    """Report three faults of groups: a layer that is unknown, a layer that is in several groups, and a tile whose layer
    is not in the group.
    """
    known = list(dict.fromkeys(entry.name for entry in whole(entries) if entry.name))
    seen: dict[str, int] = {}
    for index, group in each(groups):
        told = problems.within("fused_groups", index)
        for place, name in each(group.layers):
            if name not in known:
                told.unknown_name(("layers", place), "no entry of `layers` has this name", name, known)
            elif name in seen:
                other = groups[seen[name]].name or ""
                where = (
                    "the list has this layer twice" if seen[name] == index else f"the group {other} has this layer, too"
                )
                told.at(("layers", place), where, name, "each layer once, in one group")
            seen.setdefault(name, index)
        for place, tile in each(group.intra_core_tiling or []):
            if tile.dim is not None and group.layers and tile.dim[0] not in whole(group.layers):
                path = ("intra_core_tiling", place, "dim")
                told.unknown_name(path, "the group has no such layer", tile.dim[0], whole(group.layers))


def _layer(entry: PlacedLayerEntry) -> PlanLayer:
    cuts = [cut for part in entry.inter_core_tiling or () for cut in part]
    return PlanLayer(entry.name, tuple(entry.core_allocation[0]), tuple(PlanSplit(cut.dim, cut.split) for cut in cuts))


def _group(entry: GroupEntry) -> PlanGroup:
    tiles = tuple(PlanTile(*tile.dim, tile.tile) for tile in entry.intra_core_tiling or ())
    return PlanGroup(entry.name, tuple(entry.layers), tiles)


FORM = PlanForm(has_form, read, applied, "a mapping file of stream-dse 2.x")
"""Form of the mapping files of stream-dse 2.x."""
