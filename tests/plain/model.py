"""A second, slow, plain-Python allocator and cost model, written only from the definitions of the model.

It shares no code with the compiled kernels, only the data types of layers and cores, and is compared with them.
Formulas of zigzag-dse 3.9.1 use its floating point; repaired formulas use exact fractions. Where a definition marks
transfer windows on a time line, this model does so cycle by cycle.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tilewright.hardware.core import Core, Memory
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

from tests.plain.allocation import Allocator, Boundaries
from tests.plain.control import obeys
from tests.plain.in_memory import operations_energy_pj, phases_of
from tests.plain.latency import LatencyModel, LinkName, PortName, PortTable, Transfer
from tests.plain.relevancy import Loops, Number, relevancy_of
from tests.plain.reuse import DIRECTIONS, Levels, Link, OperandModel, Reuse, merged_down, temporal_cycles
from tests.plain.spatial import DoesNotFitError, SpatialMapping
from tests.plain.switches import REFERENCE, Switches, switches_of
from tests.plain.zeros import PlainZeros

Links = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cost:
    """The costs of a mapping, and all other values that the laws use."""

    energy_pj: float
    memory_energy_pj: float
    mac_energy_pj: float
    latency_cycles: Number
    parts: dict[str, Number]
    words: dict[str, list[dict[str, int]]]
    temporal_mapping: dict[str, Levels]
    """Operand -> loops of each level after merging down."""
    allocated: dict[str, Levels]
    port_stalls: dict[PortName, int]
    transfers: dict[PortName, dict[LinkName, Transfer]]
    utilization: dict[str, list[Fraction]]
    """Share of each memory level that an operand's tile takes."""
    effective_bits: dict[str, list[int]]
    """Bits of each level's tile that stay while the outermost relevant loops of the level replace the rest."""
    memory_share: list[Fraction]
    """Share of each memory that all tiles take."""
    traffic_elements: dict[str, list[dict[str, Number]]]
    """Number of elements that each link moves in all."""
    traffic_bits: dict[str, list[dict[str, Number]]]


@dataclass
class OperandCost:
    """The part of an operand's costs that does not depend on other operands."""

    energy: Reuse
    time: Reuse
    words: list[dict[str, int]] | None
    """Accesses in words; None if data move without a port."""
    energy_by_level: list[float] = field(default_factory=list)


class PlainModel:
    """A layer on a core with a spatial mapping; `cost` evaluates one temporal mapping."""

    def __init__(
        self,
        layer: Layer,
        core: Core,
        links: Links,
        unrolling: Unrolling,
        even: bool = False,
        model: str | Switches = REFERENCE,
    ) -> None:
        """Raises DoesNotFitError if the spatial mapping is impossible."""
        self.layer, self.core, self.unrolling = layer, core, unrolling
        self.switches = switches_of(model) if isinstance(model, str) else model
        self.link = {operand: memory for operand, memory in links if operand in layer.operands}
        self.operands = layer.operands
        self.chains: dict[str, list[Memory]] = {
            o: [m for m in core.memories if self.link[o] in m.operands] for o in self.operands
        }
        spatial = SpatialMapping(layer, core, self.chains, unrolling, self.switches)
        self.temporal_sizes = spatial.temporal_sizes
        self.phases = phases_of(core.operational_array)
        self.zeros = PlainZeros(layer, core, self.link)
        self.mac_energy_pj = operations_energy_pj(core, layer, unrolling, self.switches) * float(self.zeros.active())
        self.models = {
            o: OperandModel(o, relevancy_of(layer, o, self.switches), spatial, self.switches, self.phases)
            for o in self.operands
        }
        sums = self.models["O"].bits_of["O"]
        places = [core.memories.index(memory) for memory in self.chains["O"]]
        self.models["O"].sum_bits = [self.zeros.sum_bits(k, sums) for k in places]
        self.table = PortTable(core, self.link, self.chains, self.zeros)
        self.time = LatencyModel(self.operands, self.table, self.switches, self.phases)
        self.allocator = Allocator(core, self.link, self.models, self.chains, self.switches, even)
        self.held = {k: self.allocator.held(memory) for k, memory in enumerate(core.memories)}
        self.memo: dict[tuple[str, Levels], OperandCost] = {}

    # costs ----------------------------------------------------------------------------------------------------------

    def allocate(self, order: Loops, boundaries: Boundaries | None = None) -> dict[str, Levels]:
        """Loops of each level before merging down. Raises DoesNotFitError if they do not fit."""
        levels = self.allocator.greedy(order) if boundaries is None else self.allocator.given(order, boundaries)
        if not obeys(order, levels, self.chains, self.allocator.reused):
            raise DoesNotFitError
        return levels

    def cost(self, order: Any, boundaries: Boundaries | None = None) -> Cost:
        """All costs of a mapping. Raises DoesNotFitError if it does not fit."""
        order = tuple((d, s) for d, s in order)
        allocated = self.allocate(order, boundaries)
        merged = {o: merged_down(levels, self.models[o].rel.irrelevant) for o, levels in allocated.items()}
        costs = {o: self.operand_cost(o, merged[o]) for o in self.operands}
        memory_energy = self._memory_energy(costs)
        total = temporal_cycles(order) * self.phases
        reuse = {o: cost.time for o, cost in costs.items()}
        links = self._links(reuse)
        held_bits = self._held_bits(costs, allocated)
        effective = self._effective(held_bits, costs)
        choices = self.time.buffer_choices(effective, self.held)
        stall, on, off, transfers, stalls = self.time.spans(links, reuse, choices, total)
        ideal = math.ceil(self.layer.mac_count / math.prod(s for _, s in self.core.operational_array.dimensions))
        ideal *= self.phases
        drain = self.drain()
        return Cost(
            energy_pj=memory_energy + self.mac_energy_pj,
            memory_energy_pj=memory_energy,
            mac_energy_pj=self.mac_energy_pj,
            latency_cycles=total + stall + on + off + drain,
            parts={
                "ideal": ideal,
                "spatial_stall": total - ideal,
                "temporal_stall": stall,
                "onloading": on,
                "offloading": off,
                "drain": drain,
            },
            words={o: cost.words or [] for o, cost in costs.items()},
            temporal_mapping=merged,
            allocated=allocated,
            port_stalls=stalls,
            transfers=transfers,
            utilization={
                o: [Fraction(held_bits[o, m]) / memory.size_bits for m, memory in enumerate(self.chains[o])]
                for o in self.operands
            },
            effective_bits={o: [effective[o, m] for m in range(len(self.chains[o]))] for o in self.operands},
            memory_share=[
                sum((Fraction(held_bits[o, self.chains[o].index(memory)]) for o in self.held[k]), start=Fraction(0))
                / memory.size_bits
                for k, memory in enumerate(self.core.memories)
            ],
            traffic_elements={o: self._traffic(cost, lambda link: 1) for o, cost in costs.items()},
            traffic_bits={o: self._traffic(cost, lambda link: link.bits) for o, cost in costs.items()},
        )

    def figures(
        self, order: Loops, allocated: dict[str, Levels], seen: dict[object, tuple[float, Number]]
    ) -> tuple[float, Number]:
        """(energy, latency) of an allocated temporal mapping; `seen` keeps earlier results."""
        merged = {o: merged_down(levels, self.models[o].rel.irrelevant) for o, levels in allocated.items()}
        costs = {o: self.operand_cost(o, merged[o]) for o in self.operands}
        held_bits = self._held_bits(costs, allocated)
        key = (tuple(merged.values()), tuple(held_bits.values()))
        if key not in seen:
            reuse = {o: cost.time for o, cost in costs.items()}
            choices = self.time.buffer_choices(self._effective(held_bits, costs), self.held)
            total = temporal_cycles(order) * self.phases
            stall, on, off, _, _ = self.time.spans(self._links(reuse), reuse, choices, total)
            energy = self._memory_energy(costs) + self.mac_energy_pj
            seen[key] = energy, total + stall + on + off + self.drain()
        return seen[key]

    def drain(self) -> int:
        """Cycles in which the last results leave a systolic array."""
        return sum(
            max(math.ceil(math.prod(f for _, f in factors)) - 1, 0)
            for name, factors in self.unrolling
            if name in self.core.operational_array.systolic_dimensions
        )

    def operand_cost(self, o: str, merged: Levels) -> OperandCost:
        """Reuse and word accesses of one operand with its loops."""
        key = (o, merged)
        if key not in self.memo:
            energy, time = self.models[o].reuse(merged)
            cost = OperandCost(energy, time, None)
            try:
                cost.words = [self._words(o, m, energy) for m in range(len(merged))]
            except DoesNotFitError:
                cost.words = None
            for memory, row in zip(self.chains[o], cost.words or [], strict=False):
                reads = row["th"] * memory.read_energy_pj + row["tl"] * memory.read_energy_pj
                writes = row["fh"] * memory.write_energy_pj + row["fl"] * memory.write_energy_pj
                cost.energy_by_level.append(reads + writes)
            self.memo[key] = cost
        return self.memo[key]

    def _words(self, o: str, m: int, reuse: Reuse) -> dict[str, int]:
        """Accesses of full words by direction."""
        row = {}
        for direction in DIRECTIONS:
            link = reuse.links[m, direction]
            if link.amount * link.bits == 0 or link.count == 0:
                row[direction] = 0
                continue
            narrow, wide = self.table.widths((o, m, direction))
            if wide == 0:
                raise DoesNotFitError
            units = reuse.units[m + 1]
            taken = Fraction(1)
            if m == 0 and direction == "tl":
                taken = self.zeros.taken(o, tuple(self.models[o].exact[0]), link.period // self.phases)
            if "whole_tiles" not in self.switches:
                words = math.ceil(link.amount * link.bits / narrow) * (narrow / wide) * link.count * units
                row[direction] = int(words if taken == 1 else words * float(taken))
                continue
            tile = reuse.tiles[m, direction]
            parts = sum(
                (share * math.ceil(Fraction(elements * link.bits, narrow)) for elements, share in tile.shares),
                start=Fraction(0),
            )
            row[direction] = math.ceil(parts * Fraction(narrow, wide) * link.count * Fraction(units) * taken)
        return row

    def _memory_energy(self, costs: dict[str, OperandCost]) -> float:
        """Energy of memories, in the order of operands and levels. Raises DoesNotFitError if data move without
        a port.
        """
        energy: float = 0
        for cost in costs.values():
            if cost.words is None:
                raise DoesNotFitError
            for level in cost.energy_by_level:
                energy += level
        for pick in ("energy", "time"):
            if len({getattr(cost, pick).units[0] for cost in costs.values()}) > 1:
                raise DoesNotFitError
        return energy

    def _links(self, reuse: dict[str, Reuse]) -> dict[LinkName, Link]:
        return {(o, m, d): link for o, own in reuse.items() for (m, d), link in own.links.items()}

    # what memories hold -----------------------------------------------------------------------------------------------

    def _held_bits(self, costs: dict[str, OperandCost], allocated: dict[str, Levels]) -> dict[tuple[str, int], int]:
        """Bits of the tile that an operand keeps in a memory level."""
        result = {}
        for o, cost in costs.items():
            for m in range(len(self.chains[o])):
                bits = cost.energy.precision[m + 1]
                if "room_for_final_outputs" in self.switches:
                    left = tuple(loop for loops in allocated[o][m:] for loop in loops)
                    bits = self.allocator.element_bits(o, m, left)
                result[o, m] = cost.energy.elements[m + 1] * bits
        return result

    def _effective(
        self, held_bits: dict[tuple[str, int], int], costs: dict[str, OperandCost]
    ) -> dict[tuple[str, int], int]:
        """Bits of tiles without the part that their outermost relevant loops replace."""
        result = {}
        for (o, m), bits in held_bits.items():
            elements, top = (costs[o].energy.elements[m + 1], costs[o].energy.top_relevant[m])
            if "best_double_buffers" in self.switches:
                result[o, m] = math.ceil(Fraction(elements, top)) * (bits // elements)
            else:
                result[o, m] = bits // top
        return result

    def _traffic(self, cost: OperandCost, bits_of: Any) -> list[dict[str, Number]]:
        rows = []
        for m in range(len(cost.energy.top_relevant)):
            row: dict[str, Number] = {}
            for direction in DIRECTIONS:
                link = cost.energy.links[m, direction]
                tile = cost.energy.tiles.get((m, direction))
                amount: Number = 0 if link.count == 0 else link.amount if tile is None else tile.mean
                row[direction] = amount * bits_of(link) * link.count * cost.energy.units[m + 1]
            rows.append(row)
        return rows
