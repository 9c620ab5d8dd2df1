"""Checks of a mapping file against the core and the network for which it is used."""

from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.base.errors import WRITTEN, InputError, KeyPath, Problem, Problems
from tilewright.base.yamlfile import YamlDocument, items, load_yaml, table
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_checks import is_usual_loop
from tilewright.mapping.constraints import (
    DEFAULT,
    WILDCARD,
    Mapping,
    MappingConstraints,
)
from tilewright.mapping.control_rules import unrolling_fault
from tilewright.mapping.memory_reach import reach_faults
from tilewright.mapping.plan_forms import form_of
from tilewright.workload.graph import Workload


def check_mapping_against_core(mapping: Mapping, core: Core, file: str | Path = "") -> list[Problem]:
    """Problems in a mapping: names that do not exist in the core (array dimensions, memory operands, memories), and
    loops that the array cannot unroll.

    `file` is the file of the mapping; with this file, problems have line numbers. A factor larger than the array is no
    problem, because the factor is reduced. A hint for an unknown array dimension is no problem, either.
    """
    document = document_behind(mapping, str(file))
    problems = Problems(document)
    dimensions = [name for name, _ in core.operational_array.dimensions]
    held = sorted({operand for memory in core.memories for operand in memory.operands})
    for index, entry in enumerate(mapping.entries):
        for dimension, factors in entry.spatial_mapping:
            if dimension not in dimensions:
                path: KeyPath = (index, "spatial_mapping", dimension)
                message = f"core {core.name} has no such array dimension"
                problems.unknown_name(path, message, dimension, dimensions)
            if broken := unrolling_fault(core, dimension, factors):
                problems.at((index, "spatial_mapping", dimension), broken, WRITTEN)
        for operand, memory_operand in entry.memory_operand_links:
            if memory_operand not in held:
                path = (index, "memory_operand_links", operand)
                message = f"core {core.name} has no memory for this memory operand"
                problems.unknown_name(path, message, memory_operand, held)
        _check_reach(index, entry, core, problems)
    return problems.found


def _check_reach(index: int, entry: MappingConstraints, core: Core, problems: Problems) -> None:
    """Report problems of `memory_reach`: unknown memories, memories that do not hold the operand, and memories smaller
    than their `occupied_bits` (the bits of other tensors that stay in the memory while the layer runs)."""
    given = entry.memory_reach
    for fault in reach_faults(core, entry.memory_operand_links, given) if given else ():
        path: KeyPath = (index, "memory_reach", *fault.path)
        if fault.is_unknown:
            problems.unknown_name(path, fault.message, str(fault.value), [memory.name for memory in core.memories])
        else:
            problems.at(path, fault.message, fault.value)


def check_mapping_against_workload(mapping: Mapping, workload: Workload, file: str | Path = "") -> list[Problem]:
    """Problems of loop dimensions that neither the network nor any usual kind of layer has. Such names are probably
    misspelt.

    A usual dimension that this network lacks is no problem, because several networks can share a mapping file. Such
    dimensions, and entries that select no layer, are left to `unused_entries.note_unused`.
    """
    document = document_behind(mapping, str(file))
    problems = Problems(document)
    layers = [node.layer for node in workload.layers_in_order if node.layer is not None]
    known = list(dict.fromkeys(dimension for layer in layers for dimension in layer.size_of))
    used = {id(mapping.constraints_for(layer)) for layer in layers}
    message = f"no layer of {workload.name} has this loop dimension"
    for index, entry in enumerate(mapping.entries):
        tiled = [
            ((key, position), loop.dimension)
            for key in ("intra_core_tiling", "inter_core_tiling")
            for position, loop in enumerate(getattr(entry, key))
            if loop.dimension not in entry.layer_dimension_names
        ]
        for path, dimension in (*named_loops(entry), *tiled) if id(entry) in used else ():
            if dimension not in known and not is_usual_loop(dimension):
                problems.unknown_name((index, *path), message, dimension, known)
    return problems.found


def named_loops(entry: MappingConstraints) -> list[tuple[KeyPath, str]]:
    """Pairs (path in the entry, loop dimension) for all loop dimensions in the spatial mapping, the hints and the
    temporal ordering of the entry. Gaps (`*`) of the temporal ordering are left out.
    """
    unrolled: list[tuple[KeyPath, str]] = [
        (("spatial_mapping", side), dimension) for side, factors in entry.spatial_mapping for dimension, _ in factors
    ]
    hinted: list[tuple[KeyPath, str]] = [
        (("spatial_mapping_hint", side), dimension)
        for side, dimensions in entry.spatial_mapping_hint
        for dimension in dimensions
    ]
    ordered: list[tuple[KeyPath, str]] = [
        (("temporal_ordering", position), loop.dimension)
        for position, loop in enumerate(entry.temporal_ordering)
        if loop.dimension != WILDCARD
    ]
    return [*unrolled, *hinted, *ordered]


def document_behind(mapping: Mapping, file: str) -> YamlDocument:
    """Document of a mapping, with the line numbers of the entries. It has no line numbers if `file` cannot be read, or
    if the entries of the file have other names than the entries of the mapping.

    Two kinds of entries can be in the mapping but not in the document. An added entry `default` has no line number. An
    entry that `cut_reductions` added has the lines of the file's entry that `part_of_entry` names.
    """
    is_plan = bool(mapping.places) or mapping.plan is not None
    known = YamlDocument(file, {} if is_plan else [_lists_of(entry) for entry in mapping.entries])
    try:
        document = load_yaml(file) if file else known
    except InputError:
        return _with_parts(known, mapping)
    if is_plan:
        return _with_parts(document if form_of(document.data) else known, mapping)
    names = [entry.name for entry in mapping.entries if not entry.part_of_entry]
    written = [name if isinstance(name := table(entry).get("name"), str) else "" for entry in items(document.data)]
    return _with_parts(document if names in (written, [*written, DEFAULT]) else known, mapping)


@dataclass(frozen=True)
class _WithParts(YamlDocument):
    """Document of a mapping to which `cut_reductions` has added entries. The field `part_of_entry` of an added entry
    names an entry of the file. The added entry has the lines and values of this entry of the file.
    """

    sources: Table[int, int] = field(default_factory=dict)
    """Index of an entry that `cut_reductions` added -> index of the file's entry from which the added entry was
    made."""
    places: tuple[int, ...] = ()
    """Position that each entry of the mapping has in the file's network plan (`Mapping.places`); () for a file with
    ordinary entries."""

    def line_of(self, path: KeyPath) -> int:
        """Line number of the value at `path` or, if this line is unknown, of the nearest enclosing value with a known
        line; 0 if there is none.
        """
        return super().line_of(self._of_file(path))

    def written(self, path: KeyPath) -> Any:
        """Value at a path; None if there is none."""
        return super().written(self._of_file(path))

    def dotted(self, path: KeyPath) -> str:
        """Text of `path` for messages. For an entry that `cut_reductions` added, the text names the file's entry from
        which the added entry was made.
        """
        return super().dotted(self._of_file(path))

    def _of_file(self, path: KeyPath) -> KeyPath:
        first = path[0] if path else ""
        if not isinstance(first, int):
            return path
        index = self.sources.get(first, first)
        return self._of_plan(index, path[1:]) if self.places else (index, *path[1:])

    def _of_plan(self, index: int, rest: KeyPath) -> KeyPath:
        """Path of a value of the entry `index` in a file with a network plan, which gives the cores as a list of lists.
        A loop of a tiling has the path of the whole tiling, because the loops can have another order in the entry than
        in the file.
        """
        root: KeyPath = () if isinstance(self.data, list) else ("layers",)
        place = self.places[index] if index < len(self.places) else -1
        if place < 0:
            return root
        if rest[:1] == ("core_allocation",):
            rest = ("core_allocation", *((0, *rest[1:]) if len(rest) > 1 else ()))
        elif rest[:1] == ("inter_core_tiling",):
            rest = rest[:1]
        elif rest[:1] == ("intra_core_tiling",):
            rest = ()
        return (*root, place, *rest)


def _with_parts(document: YamlDocument, mapping: Mapping) -> YamlDocument:
    """Copy of `document` that also has lines and values for the entries that `cut_reductions` added. An added entry has
    the lines and values of the file's entry that `part_of_entry` names. In a file with a network plan, paths lead to
    values of the plan. If there are neither added entries nor a network plan, the result is `document` itself.
    """
    places = {entry.name: place for place, entry in enumerate(mapping.entries) if not entry.part_of_entry}
    sources = {
        place: places[entry.part_of_entry]
        for place, entry in enumerate(mapping.entries)
        if entry.part_of_entry in places
    }
    if not sources and not mapping.places:
        return document
    return _WithParts(document.file, document.data, document.lines, document.repeated, sources, mapping.places)


def _lists_of(entry: MappingConstraints) -> dict[str, Any]:
    """Name, cores, tilings and temporal ordering of an entry, by their keys in a mapping file. Messages about problems
    quote these values.
    """
    keys = ("core_allocation", "intra_core_tiling", "inter_core_tiling", "temporal_ordering")
    return {"name": entry.name} | {key: list(getattr(entry, key)) for key in keys}
