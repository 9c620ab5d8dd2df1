"""Ranges of energy and area of a schedule, computed from the ranges of memory costs.

A schedule fixes the number of accesses to each memory. Some accesses are made by computation nodes; the cost tables
have the energy of these accesses. All other accesses come from data that move between cores. The energy of all accesses
is linear in the costs of the memory.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tilewright.base.json_values import JsonObject
from tilewright.hardware.core import Memory
from tilewright.hardware.hierarchy import instance_count
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.multicore.scheduling.system_assembly import scheduled_memories
from tilewright.results.multi.summary import core_uses
from tilewright.search.cost_ranges import CostPart, ranges_of

_Place = tuple[int, str]
"""Pair (core id, name of a memory in the file of this core). A memory that several cores share has one pair for each of
these cores. Its energy and area are listed only once, under the pair of the first core.
"""


def schedule_cost_parts(
    artifact: ScheduleArtifact, costs: Mapping[str, Sequence[CoreCostRow]], accelerator: MultiCoreAccelerator
) -> tuple[CostPart, ...]:
    """Contributions to energy and area, one for each memory whose costs have a range. () if there is no such memory.

    `costs` are the cost tables by core file. Names of memories begin with the ids of their cores: `0: sram`, or `0+1:
    sram` if cores share the memory.
    """
    first_of = _first_places(accelerator)
    memories = {place: memory for place, memory in _memories(accelerator) if _has_range(memory)}
    if not any(first_of.get(place, place) == place for place in memories):
        return ()
    energies = _on_cores_pj(artifact, costs, first_of)
    for place, energy_pj in _moved_pj(artifact, accelerator).items():
        energies[place] += energy_pj
    return tuple(
        _part(place, memory, energies.get(place, 0.0), accelerator)
        for place, memory in memories.items()
        if first_of.get(place, place) == place
    )


def range_fields(
    artifact: ScheduleArtifact,
    costs: Mapping[str, Sequence[CoreCostRow]],
    accelerator: MultiCoreAccelerator,
    area_mm2: float | None,
) -> JsonObject:
    """JSON object with the summary field `cost_ranges`, as for a run on one core; {} if no costs have a range."""
    parts = schedule_cost_parts(artifact, costs, accelerator)
    return {"cost_ranges": ranges_of(parts, artifact.schedule.energy_pj, area_mm2)} if parts else {}


def _has_range(memory: Memory) -> bool:
    return memory.cost_source is not None and memory.cost_source.relative_range != (1.0, 1.0)


def _memories(accelerator: MultiCoreAccelerator) -> Iterator[tuple[_Place, Memory]]:
    """Pairs ((core id, memory name), memory) of all cores. A memory that cores share is listed once for each of these
    cores.
    """
    for core_id, core in accelerator.core_of.items():
        for memory in core.memories:
            yield (core_id, memory.name), memory


def _first_places(accelerator: MultiCoreAccelerator) -> dict[_Place, _Place]:
    """Table that gives, for the key of each outermost memory, the key under which its energy and area are listed. A key
    is a pair (core id, memory name). A memory that several cores share is listed under the key of the first of these
    cores. Any other memory is listed under its own key.
    """
    return {
        place: places[0]
        for instance in accelerator.memory_instances
        for places in (list(zip(instance.core_ids, instance.names, strict=True)),)
        for place in places
    }


def _on_cores_pj(
    artifact: ScheduleArtifact, costs: Mapping[str, Sequence[CoreCostRow]], first_of: Mapping[_Place, _Place]
) -> dict[_Place, float]:
    """Energy in pJ of the accesses that CNs make to the memories of their cores, by memory (`_Place`). A memory that
    cores share has one entry, under the pair that `first_of` gives (`_first_places`).
    """
    found: dict[_Place, float] = defaultdict(float)
    for row in core_uses(artifact, costs):
        for name, energy_pj in row.memory_energy_pj.items():
            place = (row.core, name)
            found[first_of.get(place, place)] += energy_pj
    return found


def _moved_pj(artifact: ScheduleArtifact, accelerator: MultiCoreAccelerator) -> dict[_Place, float]:
    """Energy in pJ of data that move between memories, for each memory that the data leave or reach."""
    schedule, system = artifact.schedule, artifact.system
    read = schedule.words_read.sum(axis=0) * system.memory_read_energy_pj
    moved: np.ndarray = read + schedule.words_written.sum(axis=0) * system.memory_write_energy_pj
    places = [(one.core_ids[0], one.names[0]) for one in scheduled_memories(accelerator)]
    return dict(zip(places, moved.tolist(), strict=True))


def _part(place: _Place, memory: Memory, energy_pj: float, accelerator: MultiCoreAccelerator) -> CostPart:
    core_id, name = place
    source = memory.cost_source
    assert source is not None
    core = accelerator.core_of[core_id]
    is_on_chip = accelerator.place_of[core_id].role != OFFCHIP
    area = memory.area_mm2 * instance_count(core, core.memories.index(memory)) if is_on_chip else 0.0
    users = next((i.core_ids for i in accelerator.memory_instances if (i.core_ids[0], i.names[0]) == place), (core_id,))
    return CostPart(f"{'+'.join(map(str, users))}: {name}", source.law, energy_pj, area, *source.relative_range)
