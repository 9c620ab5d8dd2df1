"""Checks across the fields of a mapping file, and of a mapping against the core and the network it is used
with."""

from pathlib import Path
from typing import Any

from tilewright.errors import InputError, KeyPath, Problem, Problems
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_checks import is_usual_loop
from tilewright.mapping.constraints import DEFAULT, LAYER_KINDS, WILDCARD, Mapping, MappingConstraints
from tilewright.mapping.memory_reach import reach_faults
from tilewright.mapping.yaml_schema import LinksEntry, MappingEntry
from tilewright.validation import each, whole
from tilewright.workload.graph import Workload
from tilewright.yamlfile import YamlDocument, items, load_yaml, table

_NEWEST_DIALECT = ("kernel", "layers", "fused_groups")
"""Keys of mapping files of Stream after 2025, which have another form."""


def refuse_multi_core(data: Any, problems: Problems) -> bool:
    """True, with problems recorded, if the file uses keys of the newest multi-core dialect."""
    entries = [((), data)] if isinstance(data, dict) else [((index,), entry) for index, entry in enumerate(items(data))]
    for path, entry in entries:
        for key in table(entry):
            if key in _NEWEST_DIALECT:
                problems.at((*path, key), "this form of mapping files (layers, fused_groups, kernel) is not supported")
    return bool(problems.found)


def check_mapping(problems: Problems, entries: list[MappingEntry]) -> None:
    """Record every problem across fields, and notices of what is unusual."""
    names = [None if entry is None else entry.name for entry in entries]
    if entries and DEFAULT not in names:
        problems.at((), "an entry with `name: default` is required, for layers that no other entry selects")
    for index, entry in each(entries):
        one = problems.within(index)
        if entry.name is not None and entry.name in names[:index]:
            one.at(("name",), "another entry has the same name", entry.name)
        if entry.name is not None and entry.name.startswith("@") and entry.name[1:] not in LAYER_KINDS:
            one.unknown_name(("name",), "no such kind of layer", entry.name, [f"@{kind}" for kind in LAYER_KINDS])
        _check_links(one.within("memory_operand_links"), entry.memory_operand_links)
        for dimension, loops in (entry.spatial_mapping or {}).items():
            _note_repeated_dimensions(one.within("spatial_mapping", dimension), loops)
        _check_boundaries(one, entry)
        _check_cores(one, entry)


def _check_boundaries(problems: Problems, entry: MappingEntry) -> None:
    """Boundaries count the loops of an ordering that leaves nothing open, and never fall from level to level."""
    if entry.level_boundaries is None:
        return
    loops = entry.temporal_ordering
    if not problems.has("temporal_ordering") and (not loops or any(loop.size is None for loop in whole(loops))):
        problems.at(("level_boundaries",), "needs a temporal_ordering that gives every loop with its size")
    for operand in ("O", "W", "I"):
        counts = whole(getattr(entry.level_boundaries, operand))
        if counts != sorted(counts):
            path = ("level_boundaries", operand)
            problems.at(path, "a level cannot end before the one below it", str(counts))


def _check_cores(problems: Problems, entry: MappingEntry) -> None:
    """A core is given once, unless groups are fixed to it; a name of a dimension once; fixed cores are named."""
    if not entry.core_allocation_is_fixed:
        problems.repeated(("core_allocation",), entry.core_allocation or (), "this core is named before")
    elif not entry.core_allocation and not problems.has("core_allocation"):
        problems.at(("core_allocation_is_fixed",), "needs a core_allocation")
    problems.repeated(("layer_dimension_names",), entry.layer_dimension_names or (), "this name is given before")


def _check_links(problems: Problems, links: LinksEntry | None) -> None:
    used: dict[str, str] = {}
    for operand, memory_operand in {} if links is None else links:
        if memory_operand in used:
            message = f"is linked to operand {used[memory_operand]} too; links must be one to one"
            problems.at((operand,), message, memory_operand)
        if memory_operand is not None:
            used.setdefault(memory_operand, operand)


def _note_repeated_dimensions(problems: Problems, loops: list[tuple[str, int]]) -> None:
    seen: set[str] = set()
    for index, (dimension, _) in each(loops):
        if dimension in seen:
            problems.notice((index,), f"{dimension} is given twice here, the last one counts")
        seen.add(dimension)


def check_mapping_against_core(mapping: Mapping, core: Core, file: str | Path = "") -> list[Problem]:
    """What in a mapping does not exist on the core: array dimensions, memory operands and memories.

    `file` is the file that the mapping was read from; problems then carry its lines. A factor larger than the array
    is no problem (it is capped), and hints for other arrays are never read.
    """
    document = document_behind(mapping, str(file))
    problems = Problems(document)
    dimensions = [name for name, _ in core.operational_array.dimensions]
    held = sorted({operand for memory in core.memories for operand in memory.operands})
    for index, entry in enumerate(mapping.entries):
        for dimension, _ in entry.spatial_mapping:
            if dimension not in dimensions:
                path: KeyPath = (index, "spatial_mapping", dimension)
                message = f"core {core.name} has no such array dimension"
                problems.unknown_name(path, message, dimension, dimensions)
        for operand, memory_operand in entry.memory_operand_links:
            if memory_operand not in held:
                path = (index, "memory_operand_links", operand)
                message = f"core {core.name} has no memory for this memory operand"
                problems.unknown_name(path, message, memory_operand, held)
        _check_reach(index, entry, core, problems)
    return problems.found


def _check_reach(index: int, entry: MappingConstraints, core: Core, problems: Problems) -> None:
    """The memories of a reach are memories of the core, hold the operand, and have the room that is occupied."""
    given = entry.memory_reach
    for fault in reach_faults(core, entry.memory_operand_links, given) if given else ():
        path: KeyPath = (index, "memory_reach", *fault.path)
        if fault.is_unknown:
            problems.unknown_name(path, fault.message, str(fault.value), [memory.name for memory in core.memories])
        else:
            problems.at(path, fault.message, fault.value)


def check_mapping_against_workload(mapping: Mapping, workload: Workload, file: str | Path = "") -> list[Problem]:
    """Loop dimensions in a mapping that neither the network nor any usual kind of layer has: slips of the pen.

    A usual dimension that this network lacks is no problem (mapping files are used for several networks).
    """
    document = document_behind(mapping, str(file))
    problems = Problems(document)
    known = list(dict.fromkeys(d for node in workload.layers_in_order if node.layer for d in node.layer.size_of))
    message = f"no layer of {workload.name} has this loop dimension"
    for index, entry in enumerate(mapping.entries):
        named: list[tuple[KeyPath, str]] = [
            ((index, "spatial_mapping", name), dimension)
            for name, factors in entry.spatial_mapping
            for dimension, _ in factors
        ]
        named += [
            ((index, "spatial_mapping_hint", name), dimension)
            for name, dimensions in entry.spatial_mapping_hint
            for dimension in dimensions
        ]
        named += [
            ((index, "temporal_ordering", position), loop.dimension)
            for position, loop in enumerate(entry.temporal_ordering)
            if loop.dimension != WILDCARD
        ]
        named += [
            ((index, key, position), loop.dimension)
            for key in ("intra_core_tiling", "inter_core_tiling")
            for position, loop in enumerate(getattr(entry, key))
            if loop.dimension not in entry.layer_dimension_names
        ]
        for path, dimension in named:
            if dimension not in known and not is_usual_loop(dimension):
                problems.unknown_name(path, message, dimension, known)
    return problems.found


def document_behind(mapping: Mapping, file: str) -> YamlDocument:
    """The document that a mapping was read from, for the lines of its entries; without lines if it is another one.

    The mapping may have one more entry, `default`, which has no line.
    """
    known = YamlDocument(file, [_lists_of(entry) for entry in mapping.entries])
    try:
        document = load_yaml(file) if file else known
    except InputError:
        return known
    names = [entry.name for entry in mapping.entries]
    written = [name if isinstance(name := table(entry).get("name"), str) else "" for entry in items(document.data)]
    return document if names in (written, [*written, DEFAULT]) else known


def _lists_of(entry: MappingConstraints) -> dict[str, Any]:
    """The name and the lists of an entry, for the paths of problems."""
    keys = ("core_allocation", "intra_core_tiling", "inter_core_tiling", "temporal_ordering")
    return {"name": entry.name} | {key: list(getattr(entry, key)) for key in keys}
