"""Sides of an array of which some units never work, since every entry of a mapping file fixes fewer lanes."""

import math
from collections.abc import Iterable, Iterator

from tilewright.errors import Problems
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping
from tilewright.workload.graph import Workload


def note_idle_units(problems: Problems, mapping: Mapping, core: Core, workload: Workload | None = None) -> None:
    """Note each such side once, at the entry that takes most of it. `problems` are of the document of the mapping.

    With a network only the entries count that its layers have.
    """
    whose = "no entry of this file" if workload is None else f"no entry that layers of {workload.name} have"
    for side, place, lanes in _idle_sides(mapping, core, _places(mapping, workload)):
        units = core.operational_array.size_of[side]
        message = (
            f"{whose} takes more than {lanes} of the {units} units of {side} of {core.name}: the others never work"
        )
        problems.notice((place, "spatial_mapping", side), message)


def _places(mapping: Mapping, workload: Workload | None) -> list[int]:
    place_of = {id(entry): place for place, entry in enumerate(mapping.entries)}
    if workload is None:
        return list(place_of.values())
    layers = (node.layer for node in workload.nodes if node.layer is not None)
    return sorted({place_of[id(mapping.constraints_for(layer))] for layer in layers})


def _idle_sides(mapping: Mapping, core: Core, places: Iterable[int]) -> Iterator[tuple[str, int, int]]:
    """(side, entry that takes most lanes of it, how many) of the sides that all entries fix, and none fills."""
    entries = [(place, dict(mapping.entries[place].spatial_mapping)) for place in places]
    for side, units in core.operational_array.dimensions:
        lanes = [(math.prod(n for _, n in fixed[side]), place) for place, fixed in entries if side in fixed]
        if lanes and len(lanes) == len(entries):
            most = max(count for count, _ in lanes)
            if most < units:
                yield side, next(place for count, place in lanes if count == most), most
