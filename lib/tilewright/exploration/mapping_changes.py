"""Changes of one entry of a mapping file: its spatial mapping left out, as a whole or on one side of the array, or one
other loop along a side (docs/explain.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.exploration.changes import SPATIAL, Change
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping, MappingConstraints, Unrolling
from tilewright.mapping.yaml_writer import as_entry
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer
from tilewright.yamlfile import YamlDocument

LEFT_OUT = "left out"


@dataclass(frozen=True)
class MappingChange:
    """A change of the mapping file, and the mapping that the changed file holds."""

    change: Change
    mapping: Mapping


def mapping_changes(
    mapping: Mapping, core: Core, network: Workload, document: YamlDocument | None
) -> tuple[MappingChange, ...]:
    """All changes of the spatial mapping of one entry that layers of the network have, in the order of the file.

    `document` is the file of the mapping; None where there is none, and so no lines.
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
    """(side of the array, '' for all, spatial mapping) of each change; a loop is one that some layer has."""
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
) -> Change:
    path = (place, "spatial_mapping", *((side,) if side else ()))
    sides = [dict(factors) for factors in (entry.spatial_mapping, spatial)]
    words = [_words(own, side) for own in sides]
    return Change(
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
    """What runs along a side; of all of them their names."""
    if not side:
        return ", ".join(factors) or LEFT_OUT
    if side not in factors:
        return LEFT_OUT
    return ", ".join(f"{loop} {lanes}" for loop, lanes in factors[side]) or "-"


def _written(entry: MappingConstraints, spatial: Unrolling) -> dict[str, Any]:
    """The value of `spatial_mapping` in the changed file."""
    written: dict[str, Any] = as_entry(replace(entry, spatial_mapping=spatial)).get("spatial_mapping", {})
    return written
