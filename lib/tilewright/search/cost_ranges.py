"""Ranges of the energy and the area of a run, computed from the ranges of the costs of memories.

A mapping fixes how often each memory is read and written. Energy and area are therefore linear in the costs of the
memories. Each memory has a range of factors, which describes how uncertain its costs are. The energy and the area of
the memory are multiplied by a factor in this range.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2, ENERGY_PJ
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.hardware.system import area_breakdown_mm2, on_chip_memories


class CostPart(NamedTuple):
    """Energy and area that one memory contributes, and the range of the costs of this memory."""

    memory: str
    law: str
    """Type of memory for which the library of costs gave the costs, as text such as `sram 22 nm hp`. The costs of
    memories of the same type are always multiplied by the same factor.
    """
    energy_pj: float
    area_mm2: float
    low: float
    """Smallest factor by which energy and area are multiplied."""
    high: float
    """Largest factor by which energy and area are multiplied."""


def cost_ranges(
    core: Core,
    records: Iterable[LayerRecord],
    energy_pj: float,
    area_mm2: float | None,
    profile: ModelProfile = REFERENCE,
) -> JsonObject:
    """Ranges of `energy_pj` and `area_mm2` as [least, most], and the `parts` from which the ranges follow.

    If the area is unknown, its range is null. `parts` has the fields of `CostPart` for each memory whose costs have a
    range. Returns {} if there is no such memory.
    """
    parts = range_parts(core, _memory_energies_pj(records), profile)
    return ranges_of(parts, energy_pj, area_mm2) if parts else {}


def ranges_of(parts: Sequence[CostPart], energy_pj: float, area_mm2: float | None) -> JsonObject:
    """Ranges of energy and area, in the form that `cost_ranges` returns. `parts` has the contributions of the memories
    whose costs have a range.
    """
    return {
        ENERGY_PJ: _ends(energy_pj, [(part.energy_pj, part) for part in parts]),
        AREA_MM2: None if area_mm2 is None else _ends(area_mm2, [(part.area_mm2, part) for part in parts]),
        "parts": [part._asdict() for part in parts],
    }


def range_parts(core: Core, memory_energies_pj: Mapping[str, float], profile: ModelProfile) -> tuple[CostPart, ...]:
    """Contributions of memories to the energy and area of a core. There is one contribution for each memory that has a
    range of costs; () if there is no such memory.

    `memory_energies_pj` has the energy of each memory by name.
    """
    ranged = [
        (memory.name, memory.cost_source)
        for memory in core.memories
        if memory.cost_source is not None and memory.cost_source.relative_range != (1.0, 1.0)
    ]
    if not ranged:
        return ()
    areas = _memory_areas_mm2(core, profile)
    return tuple(
        CostPart(name, source.law, memory_energies_pj.get(name, 0.0), areas.get(name, 0.0), *source.relative_range)
        for name, source in ranged
    )


def _memory_areas_mm2(core: Core, profile: ModelProfile) -> dict[str, float]:
    """Area in mm2 of each on-chip memory, by memory name. The area of the core counts only some instances of a memory;
    the areas of these instances are summed.
    """
    if found := area_breakdown_mm2(core, profile):
        return found["memories"]
    memories = {index: core.memories[index] for index in on_chip_memories(core)}
    return {memory.name: memory.area_mm2 * instance_count(core, index) for index, memory in memories.items()}


def _ends(total: float, shares: list[tuple[float, CostPart]]) -> list[float]:
    return [
        total + sum(share * (part.low - 1) for share, part in shares),
        total + sum(share * (part.high - 1) for share, part in shares),
    ]


def _memory_energies_pj(records: Iterable[LayerRecord]) -> dict[str, float]:
    energies: dict[str, float] = {}
    for record in records:
        for operand, names in record.memory_levels.items():
            for level, name in enumerate(names):
                energy = sum(record.energy_breakdown_pj[operand][level].values())
                energies[name] = energies.get(name, 0.0) + energy
    return energies
