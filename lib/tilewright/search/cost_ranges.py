"""Between what the energy and the area of a run lie, by the ranges of the costs of its memories.

A mapping fixes how often each memory is read and written, so both are linear in the costs: what a memory contributes,
times a factor between the ends of its range.
"""

from collections.abc import Iterable
from typing import Any

from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.hardware.system import area_breakdown_mm2, on_chip_memories
from tilewright.profile import REFERENCE, ModelProfile


def cost_ranges(
    core: Core,
    records: Iterable[LayerRecord],
    energy_pj: float,
    area_mm2: float | None,
    profile: ModelProfile = REFERENCE,
) -> dict[str, Any]:
    """`energy_pj` and `area_mm2` as [least, most], the area null where it is not known, and the `parts`: for each
    memory whose costs have a range its energy, its area, its law, and the ends of its factor.

    {} where no costs have a range.
    """
    energies = _memory_energies_pj(records)
    areas = _memory_areas_mm2(core, profile)
    parts = [
        {
            "memory": memory.name,
            "law": memory.cost_source.law,
            "energy_pj": energies.get(memory.name, 0.0),
            "area_mm2": areas.get(memory.name, 0.0),
            "low": memory.cost_source.relative_range[0],
            "high": memory.cost_source.relative_range[1],
        }
        for memory in core.memories
        if memory.cost_source is not None and memory.cost_source.relative_range != (1.0, 1.0)
    ]
    if not parts:
        return {}
    return {
        "energy_pj": _ends(energy_pj, parts, "energy_pj"),
        "area_mm2": None if area_mm2 is None else _ends(area_mm2, parts, "area_mm2"),
        "parts": parts,
    }


def _memory_areas_mm2(core: Core, profile: ModelProfile) -> dict[str, float]:
    """Of the memories on the chip, as they count in the area of the core."""
    if found := area_breakdown_mm2(core, profile):
        return found["memories"]
    memories = {index: core.memories[index] for index in on_chip_memories(core)}
    return {memory.name: memory.area_mm2 * instance_count(core, index) for index, memory in memories.items()}


def _ends(total: float, parts: list[dict[str, Any]], quantity: str) -> list[float]:
    return [total + sum(part[quantity] * (part[end] - 1) for part in parts) for end in ("low", "high")]


def _memory_energies_pj(records: Iterable[LayerRecord]) -> dict[str, float]:
    energies: dict[str, float] = {}
    for record in records:
        for operand, names in record.memory_levels.items():
            for level, name in enumerate(names):
                energy = sum(record.energy_breakdown_pj[operand][level].values())
                energies[name] = energies.get(name, 0.0) + energy
    return energies
