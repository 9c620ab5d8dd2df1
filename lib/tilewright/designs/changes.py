"""Changes of a hardware file or a mapping file that can be tried on a run (docs/bottlenecks/explain.md#explain-a-run).

A change sets one of three things: a number in a hardware file, the type of cells of an SRAM in a hardware file, or a
spatial mapping in a mapping file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tilewright.base.errors import KeyPath
from tilewright.base.json_values import JsonObject
from tilewright.base.units import BANDWIDTH_UNITS, NUMBER_PATTERN, is_energy_per_bit
from tilewright.base.yamlfile import YamlDocument, items, table
from tilewright.designs.space_reader import CORES, SystemBase
from tilewright.hardware.attributes import UNIT_ENERGY_BITS, Owner, attributes
from tilewright.hardware.core import Core
from tilewright.hardware.core_paths import contained_cores
from tilewright.hardware.dotted_paths import path_text
from tilewright.hardware.memory_costs import USUAL_CELLS
from tilewright.hardware.silicon.memory_cost import CELLS, SRAM
from tilewright.mapping.constraints import Mapping, MappingConstraints, Unrolling
from tilewright.mapping.yaml_writer import as_entry
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

BANDWIDTH, SIZE, SIDE, ENERGY, LINK = "bandwidth", "size", "array side", "energy", "link"
ATTRIBUTE, COUNT = "attribute", "count"
"""Kinds of changes of attributes (`hardware.attributes`) other than energies and powers: COUNT for a whole number or a
size, ATTRIBUTE for any other number. An increase and a decrease can both help, so neither counts as a reduction of a
resource.
"""
CELLS_OF_SRAM = "cells"
"""Kind of change that sets another type of cells for an SRAM whose costs come from the library."""
SPATIAL, SET = "spatial mapping", "set of changes"
"""Two kinds of changes. SPATIAL: one spatial mapping in a mapping file is changed. SET: several changes are made
together. All other kinds of changes are in a hardware file.
"""
_ARRAYS = ("operational_array", "multipliers")
_LINK_ENERGIES = ("energy_per_bit", "unit_energy_cost")
_UNIT_ENERGIES = ("unit_energy", "multiplier_energy")
_OLD_WIDTHS = {"r_bw": "min_r_granularity", "w_bw": "min_w_granularity"}
"""Keys of a port in older hardware files: key of the port's width -> key of its smallest access."""
_QUANTITY = re.compile(rf"\s*({NUMBER_PATTERN})(\s*\S*)\s*")
SET_SIGN = " + "
"""Separator between the parts of a set of changes, in its `key`, `before` and `after`."""
_SET_NAMES = ("key", "before", "after")
_SIGNIFICANT = 12
"""Number of significant digits with which a changed decimal number is written."""


@dataclass(frozen=True)
class FileChange:
    """Change of an input file. In a hardware file, it changes one number, or the type of cells of one SRAM. In a
    mapping file, it changes one spatial mapping. It can also be a set of such changes (`together`).
    """

    kind: str
    path: KeyPath
    key: str
    """Path of the changed number as text. The path gives a port by its name, as in the file of a design space."""
    file: str
    line: int
    before: Any
    """Value before the change, as written in the file."""
    after: Any
    more: bool
    """False if the change reduces a resource; True for all other changes. Other changes add a resource, lower an energy
    or a static power, change another attribute, or set other cells or another spatial mapping.
    """
    also: tuple[tuple[KeyPath, Any], ...] = ()
    """Further settings that the change needs. For example, if a port becomes narrower, its smallest access must also
    shrink.
    """
    within: KeyPath = ()
    """Path at which the content of `file` stands after the core files are inserted into the accelerator file. For a
    core file, it is a path below `core_files`; for any other file, it is ().
    """
    is_sourced: bool = False
    """True if the energies and the area of the changed memory come from the cost library. A change of the size or of a
    port width then also changes these energies and this area.
    """
    is_per_bit: bool = False
    """True if the file gives the energies of the changed memory per bit. The energy of a word then changes with its
    width.
    """
    written: Any = None
    """Value to write into the file. None means that `after` is the value to write. If `written` is not None, `after` is
    only a text for readers.
    """
    parts: "tuple[FileChange, ...]" = ()
    """Single changes of which this set of changes consists; () for a single change."""

    @classmethod
    def together(cls, parts: "Sequence[FileChange]") -> "FileChange":
        """Set of changes as one change. `file` is '' if the changes belong to several files."""
        if len(parts) == 1:
            return parts[0]
        key, before, after = (SET_SIGN.join(str(getattr(one, name)) for one in parts) for name in _SET_NAMES)
        files = {one.file for one in parts}
        file, line = (parts[0].file, parts[0].line) if len(files) == 1 else ("", 0)
        more = all(one.more for one in parts)
        return cls(SET, parts[0].path, key, file, line, before, after, more, parts=tuple(parts))

    @property
    def single(self) -> "tuple[FileChange, ...]":
        """Single changes of the set. For a single change, the only item is the change itself."""
        return self.parts or (self,)

    @property
    def settings(self) -> tuple[tuple[KeyPath, Any], ...]:
        """Settings of the change, as pairs (path in the changed file, value)."""
        if self.parts:
            return tuple(setting for part in self.parts for setting in part.settings)
        return ((self.path, self.after if self.written is None else self.written), *self.also)

    @property
    def is_of_mapping(self) -> bool:
        """True if the change is in the mapping file, false if it is in a hardware file."""
        return self.kind == SPATIAL

    @property
    def system_settings(self) -> tuple[tuple[KeyPath, Any], ...]:
        """Settings of the change, as pairs (path, value). The paths are valid in an accelerator file into which the
        core files are inserted (`within`).
        """
        if self.parts:
            return tuple(setting for part in self.parts for setting in part.system_settings)
        return tuple(((*self.within, *path), value) for path, value in self.settings)

    @property
    def words(self) -> str:
        """Change as text."""
        return " and ".join(f"{one.key}: {one.before} -> {one.after}" for one in self.single)


def possible_changes(document: YamlDocument, factor: Fraction) -> tuple[FileChange, ...]:
    """Changes of a hardware file, in two groups. The changes of the first group multiply or divide one number by
    `factor` > 1. The changes of the second group set another type of cells for an SRAM with costs from the library.
    Each group has the order of the file.

    For each number, the change that adds a resource or lowers an energy comes first. For numbers other than energies
    and static powers, the change in the other direction follows. A change is left out if the number would stay the same
    or become 0, or if the value is not a number.
    """
    return (*_changes(document, factor, _numbers), *_other_cells(document))


def _other_cells(document: YamlDocument) -> Iterator[FileChange]:
    """Changes that set another type of cells for an SRAM whose costs come from the library."""
    for name, memory in table(document.data.get("memories")).items():
        cost = table(table(memory).get("cost"))
        if cost.get("from") != SRAM:
            continue
        path: KeyPath = ("memories", name, "cost", "cells")
        before = cost.get("cells") or USUAL_CELLS
        line = document.line_of(path if "cells" in cost else path[:-1])
        key = f"{path_text(document.data, path[:-1])}.cells"
        for after in CELLS:
            if after != before and before in CELLS:
                yield FileChange(CELLS_OF_SRAM, path, key, document.file, line, before, after, True, is_sourced=True)


def system_changes(document: YamlDocument, base: SystemBase, factor: Fraction) -> tuple[FileChange, ...]:
    """Changes of an accelerator with several cores: first of its links, then of each core in the accelerator file, then
    of each distinct core file.

    `document` is the accelerator file as written. `base` is the accelerator with the contents of its core files. The
    keys of the changes are paths as in a space with several cores: the key of a change in a core starts with
    `core_files.<name>`.
    """
    found = list(_changes(document, factor, _link_numbers))
    for name in contained_cores(document.data) or ():
        found += _changes(document, factor, lambda data, name=name: _numbers_within(data, (CORES, name)))  # type: ignore[misc]
    for name, part in base.parts.items():
        within: KeyPath = (CORES, name)
        found += [
            replace(one, key=f"{CORES}.{name}.{one.key}", within=within) for one in possible_changes(part, factor)
        ]
    return tuple(found)


Paths = tuple[KeyPath, ...]
_Numbers = Iterator[tuple[str, Paths, Paths]]
"""Iterator of triples, one for each number that a change can set. A triple has the kind of the number, the paths that
change together, and further paths. For the width of a port, the further paths are those of the port's smallest access.
"""


def _changes(
    document: YamlDocument, factor: Fraction, numbers: Callable[[Table[Any, Any]], _Numbers]
) -> Iterator[FileChange]:
    for kind, (path, *others), smallest in numbers(table(document.data)):
        before = document.written(path)
        is_energy = kind == ENERGY
        for more in (True,) if is_energy else (True, False):
            is_whole = kind not in (ENERGY, ATTRIBUTE)
            after = scaled(before, 1 / factor if is_energy or not more else factor, is_whole=is_whole)
            if after is None or after == before:
                continue
            also = tuple((other, after) for other in others)
            also += () if more else tuple(one for part in smallest for one in _narrower(document, part, after))
            adds = more or kind in (ATTRIBUTE, COUNT)
            place = path_text(document.data, path), document.file, document.line_of(path)
            memory = _memory_at(document.data, path)
            is_sourced = bool({"cost", "auto_cost_extraction"} & memory.keys())
            is_per_bit = any(is_energy_per_bit(memory.get(key)) for key in ("r_cost", "w_cost"))
            yield FileChange(
                kind, path, *place, before, after, adds, also, is_sourced=is_sourced, is_per_bit=is_per_bit
            )


def _memory_at(data: Any, path: KeyPath) -> Table[Any, Any]:
    """Table of the memory that contains the value at a path; {} if the value is not part of a memory."""
    if "memories" not in path:
        return {}
    for key in path[: path.index("memories") + 2]:
        data = table(data).get(key)
    return table(data)


def _link_numbers(data: Table[Any, Any]) -> _Numbers:
    """Numbers of links that a change can set (see `_Numbers`). `data` is the content of an accelerator file.

    There are three groups: numbers for all links, numbers for the links of the core graph, and numbers of each listed
    link.
    """
    listed = enumerate(items(data.get("core_connectivity")))
    places: list[KeyPath] = [(), ("graph",), *(("core_connectivity", index) for index, _ in listed)]
    for place in places:
        links: Any = data
        for key in place:
            links = links[int(key)] if isinstance(links, list) else table(links).get(key)
        if "bandwidth" in table(links):
            yield LINK, ((*place, "bandwidth"),), ()
        for name in _LINK_ENERGIES:
            if name in table(links):
                yield ENERGY, ((*place, name),), ()


def _numbers_within(data: Table[Any, Any], within: KeyPath) -> _Numbers:
    """Numbers of a core that a change can set (see `_Numbers`). The accelerator file with the content `data` has the
    description of the core at the path `within`. The paths of the numbers are paths in this file.
    """
    inner: Any = data
    for key in within:
        inner = table(inner).get(key)
    for kind, paths, smallest in _numbers(table(inner)):
        yield kind, tuple((*within, *path) for path in paths), tuple((*within, *path) for path in smallest)


def _numbers(data: Table[Any, Any]) -> _Numbers:
    """Numbers of one core that a change can set (see `_Numbers`). `data` is the description of the core in a hardware
    file.
    """
    for name in _ARRAYS:
        array = table(data.get(name))
        for index, _ in enumerate(items(array.get("sizes"))):
            yield SIDE, ((name, "sizes", index),), ()
        for key in _UNIT_ENERGIES:
            if key in array:
                yield ENERGY, ((name, key),), ()
        yield from _attribute_numbers(array, "array", (name,))
    for name, memory in table(data.get("memories")).items():
        here: KeyPath = ("memories", name)
        keys = table(memory)
        for kind, key in ((SIZE, "size"), (ENERGY, "r_cost"), (ENERGY, "w_cost")):
            if key in keys:
                yield kind, ((*here, key),), ()
        for widths in _old_widths(keys):
            paths = tuple((*here, key) for key in widths)
            yield BANDWIDTH, paths, tuple((*here, _OLD_WIDTHS[key]) for key in widths)
        for index, port in enumerate(items(keys.get("ports"))):
            if "bandwidth_max" in table(port):
                place = (*here, "ports", index)
                yield BANDWIDTH, ((*place, "bandwidth_max"),), ((*place, "bandwidth_min"),)
        yield from _attribute_numbers(keys, "memory", here)
    yield from _attribute_numbers(data, "core", ())


def _attribute_numbers(keys: Table[Any, Any], owner: Owner, here: KeyPath) -> _Numbers:
    """Attributes of a memory, array or core at the path `here`, including attributes of plug-ins. `UNIT_ENERGY_BITS` is
    left out, because it changes no cost.
    """
    kinds = {"size_bits": COUNT, "count": COUNT, "number": ATTRIBUTE}  # all others are energies and powers
    for attribute in attributes(owner):
        if attribute.key in keys and attribute != UNIT_ENERGY_BITS:
            yield kinds.get(attribute.quantity, ENERGY), ((*here, attribute.key),), ()


def _old_widths(keys: Table[Any, Any]) -> list[tuple[str, ...]]:
    """Keys of the port widths of a memory in an older file, one group per port.

    If a port reads and writes, its one width has two keys in the file.
    """
    found = [key for key in _OLD_WIDTHS if key in keys]
    return [tuple(found)] if found and keys.get("rw_port") else [(key,) for key in found]


def _narrower(document: YamlDocument, smallest: KeyPath, after: Any) -> tuple[tuple[KeyPath, Any], ...]:
    """Tuple of one setting (path `smallest`, value `after`), which reduces the smallest access of a port to the port's
    new width `after`.

    () if the smallest access is not wider than this width, or if one of the two values is not a width.
    """
    part, word = (_quantity(value) for value in (document.written(smallest), after))
    return ((smallest, after),) if part is not None and word is not None and part > word else ()


def _quantity(value: Any) -> Fraction | None:
    """Width in bits per cycle for a value in a file. None if the value is not a width."""
    match = _QUANTITY.fullmatch(str(value))
    if isinstance(value, bool) or match is None:
        return None
    unit = match[2].strip()
    scale = BANDWIDTH_UNITS.get(unit, 1 if not unit else None)
    return None if scale is None else Fraction(match[1].replace("_", "")) * scale


def scaled(value: Any, factor: Fraction, *, is_whole: bool) -> Any:
    """Number times a factor, in the form in which the number is written (possibly text with a unit).

    None if the value is not a number, or if the result is 0. If `is_whole` is true, a number without a unit is rounded
    down to an integer.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    number = Fraction(match[1].replace("_", "")) * factor
    unit = match[2]
    if is_whole and not unit.strip():
        number = Fraction(int(number))
    if number <= 0:
        return None
    if isinstance(value, int) and number.denominator == 1:
        return int(number)
    if isinstance(value, str):
        return f"{_decimal(number)}{unit}"
    return float(number)


def _decimal(number: Fraction) -> str:
    return str(int(number)) if number.denominator == 1 else f"{float(number):.{_SIGNIFICANT}g}"


LEFT_OUT = "left out"


@dataclass(frozen=True)
class MappingChange:
    """Change of the mapping file, with the mapping after the change."""

    change: FileChange
    mapping: Mapping


def mapping_changes(
    mapping: Mapping, core: Core, network: Workload, document: YamlDocument | None
) -> tuple[MappingChange, ...]:
    """Changes of the mapping file, in the order of the file.

    Each change sets another spatial mapping in one entry that layers of the network use. `document` is the mapping
    file. It is None if there is no file; the changes then have no line numbers.
    """
    layers: dict[int, list[Layer]] = {}
    place_of = {id(entry): place for place, entry in enumerate(mapping.entries)}
    for node in network.nodes:
        if node.layer is not None:
            layers.setdefault(place_of[id(mapping.constraints_for(node.layer))], []).append(node.layer)
    found = []
    for place in sorted(layers):
        entry = mapping.entries[place]
        for side, spatial in _others(entry, core, layers[place]):
            entries = (*mapping.entries[:place], replace(entry, spatial_mapping=spatial), *mapping.entries[place + 1 :])
            found.append(MappingChange(_change(place, entry, side, spatial, document), Mapping(entries)))
    return tuple(found)


def _others(entry: MappingConstraints, core: Core, layers: Sequence[Layer]) -> Iterator[tuple[str, Unrolling]]:
    """Pairs (side of the array, new spatial mapping), one per change of the mapping file. The side is '' if the change
    removes all unrollings.

    A loop is unrolled only if at least one of the layers has it.
    """
    given = entry.spatial_mapping
    if len(given) > 1:
        yield "", ()
    loops = dict.fromkeys(name for layer in layers for name, size in layer.loop_sizes if size > 1)
    for side, factors in given:
        yield side, tuple(one for one in given if one[0] != side)
        units = core.operational_array.size_of.get(side, 0)
        for loop in loops:
            other = ((loop, units),)
            if units > 1 and other != factors:
                yield side, tuple((name, other if name == side else own) for name, own in given)


def _change(
    place: int, entry: MappingConstraints, side: str, spatial: Unrolling, document: YamlDocument | None
) -> FileChange:
    path = (place, "spatial_mapping", *((side,) if side else ()))
    sides = [dict(factors) for factors in (entry.spatial_mapping, spatial)]
    words = [_words(own, side) for own in sides]
    return FileChange(
        kind=SPATIAL,
        path=path[:2],
        key=f"mapping: {'.'.join((entry.name, 'spatial_mapping', *((side,) if side else ())))}",
        file="" if document is None else document.file,
        line=0 if document is None else document.line_of(path),
        before=words[0],
        after=words[1],
        more=True,
        written=_written(entry, spatial),
    )


def _words(factors: dict[str, tuple[tuple[str, int], ...]], side: str) -> str:
    """Text of the loops that are unrolled along `side` of the array. If `side` is '', the text has the names of all
    sides with unrolled loops.
    """
    if not side:
        return ", ".join(factors) or LEFT_OUT
    if side not in factors:
        return LEFT_OUT
    return ", ".join(f"{loop} {lanes}" for loop, lanes in factors[side]) or "-"


def _written(entry: MappingConstraints, spatial: Unrolling) -> JsonObject:
    """Value of the key `spatial_mapping` for this entry in the changed mapping file."""
    written: dict[str, Any] = as_entry(replace(entry, spatial_mapping=spatial)).get("spatial_mapping", {})
    return written
