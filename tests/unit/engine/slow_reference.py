"""A second, slow, plain-Python allocator and cost model, written from the formulas of zigzag-dse 3.9.1 alone.

It shares no code with the compiled kernel, only the data types of layers and cores, and exists to be compared with it.
Where the formulas mark transfer windows on a time line, this does so cycle by cycle.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

from tilewright.hardware.core import Core, Memory
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import DimensionRelation, Layer

from tests.unit.engine.time_line import union_on_time_line

Loop = tuple[str, float]
Loops = list[Loop]
Links = tuple[tuple[str, str], ...]

ARRAY_DIMENSION_HASHES = {
    "D1": 2048910558639910025,
    "D2": 386846459442819546,
    "D3": 286093410687053097,
    "D4": 1190809941726157689,
}
"""Hashes of array dimensions in the reference; a set of them gives its iteration order."""


class DoesNotFitError(Exception):
    """The mapping is rejected."""


def product(loops: Loops) -> float:
    """Product of loop sizes, left to right."""
    return math.prod(size for _, size in loops)


def unique_positions(c2: int, a: int, c3: int, b: int) -> int:
    """Distinct window positions; the second factor is not clipped (B12)."""
    g = math.gcd(c2, c3)
    return a * b - max(0, b - c2 // g) * (a - c3 // g)


@dataclass
class Relevancy:
    """r, ir and pr of one operand."""

    layer: Layer
    relevant: list[str]
    irrelevant: list[str]
    relations: list[DimensionRelation]

    def data_size(self, relation: DimensionRelation, sizes: dict[str, float]) -> int:
        """Size of a window's data dimension for partial loop sizes."""
        (d2, c2), (d3, c3) = relation.terms
        explicit = dict(self.layer.data_dimension_sizes)
        full = self.layer.size_of
        if explicit:
            largest = explicit[relation.data_dimension]
        else:
            padding = dict(self.layer.padding).get(relation.data_dimension, (0, 0))
            largest = unique_positions(c2, full.get(d2, 1), c3, full.get(d3, 1)) - sum(padding)
        return min(largest, unique_positions(c2, int(sizes.get(d2, 1)), c3, int(sizes.get(d3, 1))))

    def elements(self, loops: Loops) -> float:
        """Tensor size for the loops of a tile."""
        sizes: dict[str, float] = {}
        for dimension, size in loops:
            sizes[dimension] = sizes.get(dimension, 1) * size
        elements: float = 1
        for dimension in self.relevant:
            elements *= sizes.get(dimension, 1)
        for relation in self.relations:
            elements *= self.data_size(relation, sizes)
        return elements

    def decouple(self, levels: list[Loops]) -> list[list[tuple[str, float]]]:
        """Levels with every loop as ('r' | 'ir' | '', size); window loops are split."""
        running: dict[str, dict[str, float]] = {r.data_dimension: {} for r in self.relations}
        before = {r.data_dimension: (1.0, 1.0) for r in self.relations}
        result = []
        for loops in levels:
            kinds: list[tuple[str, float]] = []
            for dimension, size in loops:
                windows = [r for r in self.relations if dimension in dict(r.terms)]
                if dimension in self.relevant:
                    kinds.append(("r", size))
                elif dimension in self.irrelevant:
                    kinds.append(("ir", size))
                elif not windows:
                    kinds.append(("", size))
                else:
                    for relation in windows:
                        sizes = running[relation.data_dimension]
                        sizes[dimension] = sizes.get(dimension, 1) * size
                        (d2, _), (d3, _) = relation.terms
                        distinct = self.data_size(relation, sizes)
                        reuse = sizes.get(d2, 1) * sizes.get(d3, 1) / distinct
                        distinct_before, reuse_before = before[relation.data_dimension]
                        kinds += [("r", distinct / distinct_before), ("ir", reuse / reuse_before)]
                        before[relation.data_dimension] = (distinct, reuse)
            result.append(kinds)
        return result


def relevancy_of(layer: Layer, operand: str) -> Relevancy:
    """Relevancy lists of one operand."""
    own = dict(layer.operand_dimensions)[operand]
    size = layer.size_of
    others = [d for d in size if d not in own]
    if any(relation.data_dimension in own for relation in layer.relations):
        coupled = {d for r in layer.relations for d in (r.data_dimension, r.terms[0][0], r.terms[1][0])}
        relevant = [d for d in own if d not in coupled]
        irrelevant = [d for d in others if d not in coupled and size[d] != 1]
        return Relevancy(layer, relevant, irrelevant, list(layer.relations))
    return Relevancy(layer, [d for d in own if size[d] != 1], [d for d in others if size[d] != 1], [])


def adjusted_factors(unrolling: Unrolling, layer: Layer, core: Core, integer: bool) -> list[tuple[str, Loops]]:
    """Non-dividing factors spread evenly, as fractions or truncated to integers."""
    array = dict(core.operational_array.dimensions)
    best: dict[str, int] = {}
    for _, factors in unrolling:
        for dimension, factor in factors:
            best[dimension] = max(best.get(dimension, 0), factor)
    done: set[str] = set()
    early: dict[str, float] = {}
    result = []
    for name, factors in unrolling:
        converted: Loops = []
        for dimension, given in factors:
            factor: float = min(given, array[name])
            size = layer.size_of[dimension]
            if factor > size:
                raise DoesNotFitError
            if given == best[dimension] and dimension not in done:
                done.add(dimension)
                passes = math.ceil(size / (factor * early.get(dimension, 1)))
                factor = size / passes / early.get(dimension, 1)
                factor = int(factor) if integer else factor
            early[dimension] = early.get(dimension, 1) * factor
            converted.append((dimension, factor))
        result.append((name, converted))
    return result


def merged_per_dimension(groups: list[Loops]) -> Loops:
    """One loop per dimension, in order of first appearance."""
    merged: dict[str, float] = {}
    for loops in groups:
        for dimension, factor in loops:
            merged[dimension] = merged[dimension] * factor if dimension in merged else factor
    return list(merged.items())


def spatial_levels(factors: list[tuple[str, Loops]], memories: list[Memory]) -> list[Loops]:
    """S_o: per architecture level the spatial loops, innermost serving memory first."""
    left = dict(factors)
    levels = []
    for memory in memories:
        hashes = {ARRAY_DIMENSION_HASHES[name]: name for name in memory.served_dimensions}
        table: set[int] = set()
        for value in hashes:
            table.add(value)
        levels.append(merged_per_dimension([left.pop(hashes[value]) for value in table if hashes[value] in left]))
    levels.append(merged_per_dimension(list(left.values())))
    return levels


def temporal_sizes(layer: Layer, flat_spatial: Loops) -> dict[str, int]:
    """What the spatial mapping leaves to iterate over."""
    sizes = dict(layer.loop_sizes)
    for dimension, factor in flat_spatial:
        if dimension in sizes:
            quotient = math.ceil(sizes[dimension] / factor)
            if quotient == 1:
                del sizes[dimension]
            else:
                sizes[dimension] = quotient
    return {dimension: size for dimension, size in sizes.items() if size != 1}


@dataclass
class Analysis:
    """One mapping analysis: tiles and data movement, for one representation of the spatial mapping."""

    elements: dict[str, list[int]] = field(default_factory=dict)
    precision: dict[str, list[int]] = field(default_factory=dict)
    units: dict[str, list[int]] = field(default_factory=dict)
    links: dict[tuple[str, int, str], "Link"] = field(default_factory=dict)


@dataclass
class Link:
    """One data movement record."""

    amount: int = 0
    bits: int = 0
    period: int = 0
    count: int = 0
    bandwidth: int = 0
    window: int = 0


class SlowModel:
    """A layer on a core with a user-level spatial mapping; `cost` evaluates one loop order."""

    def __init__(self, layer: Layer, core: Core, links: Links, unrolling: Unrolling, even: bool = False) -> None:
        self.layer, self.core, self.even = layer, core, even
        self.link = {operand: memory for operand, memory in links if operand in layer.operands}
        self.operands = layer.operands
        self.unrolling = unrolling
        self.rel = {operand: relevancy_of(layer, operand) for operand in self.operands}
        self.chain = {o: [m for m in core.memories if self.link[o] in m.operands] for o in self.operands}
        fractional = adjusted_factors(unrolling, layer, core, integer=False)
        integer = adjusted_factors(unrolling, layer, core, integer=True)
        self.spatial = [
            {o: spatial_levels(factors, self.chain[o]) for o in self.operands} for factors in (fractional, integer)
        ]
        first_input = self.operands[1]
        self.temporal_sizes = temporal_sizes(layer, [x for level in self.spatial[0][first_input] for x in level])

    def held(self, memory: Memory) -> list[str]:
        """Layer operands of a memory, in its order."""
        by_memory_operand = {m: o for o, m in self.link.items()}
        return [by_memory_operand[name] for name in memory.operands if name in by_memory_operand]

    # allocation -----------------------------------------------------------------------------------------------------

    def allocate(self, order: Loops) -> dict[str, list[Loops]]:
        """T_o: per memory level of each operand its temporal loops. Raises DoesNotFitError."""
        done = {o: list(self.spatial[0][o][0]) for o in self.operands}
        left = {o: list(order) for o in self.operands}
        temporal: dict[str, list[Loops]] = {o: [] for o in self.operands}
        for memory in self.core.memories:
            operands = self.held(memory)
            slices = [self._slices(memory, o, done[o], left[o], len(temporal[o])) for o in operands]
            chosen = self._combination(memory, operands, slices, left, len(order))
            for operand, count in zip(operands, chosen, strict=True):
                level = len(temporal[operand])
                temporal[operand].append(left[operand][:count])
                done[operand] += left[operand][:count] + self.spatial[0][operand][level + 1]
                left[operand] = left[operand][count:]
                if level == len(self.chain[operand]) - 1 and left[operand]:
                    raise DoesNotFitError
        return temporal

    def _slices(self, memory: Memory, o: str, done: Loops, left: Loops, level: int) -> list[tuple[int, float, float]]:
        """Candidates (loops, bits, cost) of one operand."""
        bits = self.layer.bits_of[o]
        if o == "O":
            above = {d for d, _ in left} | {d for loops in self.spatial[0][o][level + 1 :] for d, _ in loops}
            bits = self.layer.bits_of["O" if above & set(self.rel[o].irrelevant) else "O_final"]
        whole = self.rel[o].elements(done + left) * bits
        sizes = []
        for i in range(len(left) + 1):
            size = self.rel[o].elements(done + left[:i]) * bits
            if memory.force_double_buffering and i < len(left) and size < whole:
                size *= 2
            if size > memory.size_bits:
                break
            sizes.append((i, size, product(left[i:]) * size))
        if not sizes:
            raise DoesNotFitError
        if level == len(self.chain[o]) - 1:
            return [(sizes[-1][0], sizes[-1][1], 0)]
        return sizes

    def _combination(self, memory: Memory, operands: list[str], slices: list, left: dict, total: int) -> list[int]:
        best, best_cost = None, math.inf
        for number, combination in enumerate(itertools.product(*slices)):
            if sum(size for _, size, _ in combination) > memory.size_bits:
                if number == 0:
                    raise DoesNotFitError
                continue
            counts = [count for count, _, _ in combination]
            cost = sum(cost for _, _, cost in combination)
            if cost <= best_cost and (not self.even or self._is_even(operands, counts, left, total)):
                best, best_cost = counts, cost
        return best if best is not None else [0] * len(operands)

    @staticmethod
    def _is_even(operands: list[str], counts: list[int], left: dict[str, Loops], total: int) -> bool:
        """No loop position allocated here by one operand stays above for another."""
        here, above = [], []
        for operand, count in zip(operands, counts, strict=True):
            first = total - len(left[operand])
            positions = [(first + i, loop) for i, loop in enumerate(left[operand])]
            here.append(set(positions[:count]))
            above.append(set(positions[count:]))
        return not any(here[i] & above[j] for i in range(len(here)) for j in range(len(here)) if i != j)

    # analysis -------------------------------------------------------------------------------------------------------

    def merge_down(self, temporal: dict[str, list[Loops]]) -> dict[str, list[Loops]]:
        """Leading irrelevant loops of a level move to the level below until nothing changes."""
        result = {o: [list(loops) for loops in levels] for o, levels in temporal.items()}
        changed = True
        while changed:
            changed = False
            for operand, levels in result.items():
                for m in range(1, len(levels)):
                    while levels[m] and levels[m][0][0] in self.rel[operand].irrelevant:
                        levels[m - 1].append(levels[m].pop(0))
                        changed = True
        return result

    def stationarity(self, operand: str, temporal: list[Loops]) -> int:
        """mac_st."""
        run = itertools.takewhile(lambda loop: loop[0] in self.rel[operand].irrelevant, temporal[0])
        return int(product(list(run)))

    def top_run(self, operand: str, loops: Loops, dimensions: list[str]) -> int:
        """Product of the run of loops over `dimensions` at the outer end."""
        return int(product(list(itertools.takewhile(lambda loop: loop[0] in dimensions, reversed(loops)))))

    def analyse(self, temporal: dict[str, list[Loops]], spatial: dict[str, list[Loops]]) -> Analysis:
        """Tiles, units and data movement of all operands."""
        result = Analysis()
        for o in self.operands:
            rel, levels, loops = self.rel[o], len(self.chain[o]), temporal[o]
            flat = [[size for _, size in kinds] for kinds in rel.decouple(spatial[o])]
            relevant = [[size for kind, size in kinds if kind == "r"] for kinds in rel.decouple(spatial[o])]
            everything = [math.prod(sizes) for sizes in flat]
            unique = [math.prod(math.prod(sizes) for sizes in relevant[a:]) for a in range(levels + 1)]
            units = [round(round(math.prod(everything[a:]), 3)) for a in range(levels + 1)]
            boost = [round(unique[a] / unique[a + 1]) for a in range(levels)]
            n1 = rel.decouple([list(spatial[o][0]), *(loops[m] + spatial[o][m + 1] for m in range(levels))])
            n2 = rel.decouple([[], *(loops[m] + spatial[o][m] for m in range(levels))])
            tiles = [math.prod(size for kind, size in kinds if kind == "r") for kinds in n2]
            elements = [round(math.prod(tiles[: a + 1])) for a in range(levels + 1)]
            irrelevant = [[size for kind, size in kinds if kind == "ir"] for kinds in n1]
            flags = [any(s > 1 for sizes in irrelevant[a + 1 :] for s in sizes) for a in range(levels + 1)]
            caal = [math.prod(math.prod(sizes) for sizes in irrelevant[a:]) for a in range(levels + 1)] + [1, 1]
            bits = self.layer.bits_of
            precision = [bits[o] if o != "O" or flags[a] else bits["O_final"] for a in range(levels + 1)]
            result.elements[o], result.precision[o], result.units[o] = elements, precision, units
            cycles = [1, *(int(product([x for level in loops[: m + 1] for x in level])) for m in range(levels))]
            low_cycles = [self.stationarity(o, loops) if o != "O" else 1, *cycles[1:]]
            top_i = [1, *(self.top_run(o, loops[m], rel.irrelevant) for m in range(levels))]

            def link(amount: int, a: int, rate: float, period: list[int], tops: list[int], n: int) -> Link:
                return Link(amount, 0, period[a], n // period[a], int(rate), int(period[a] / tops[a]))

            total = cycles[levels]
            for m in range(levels):
                low = elements[m] * precision[m] / low_cycles[m]
                below = link(elements[m] * boost[m], m, low * boost[m], low_cycles, top_i, total)
                high = elements[m + 1] * precision[m + 1] / cycles[m + 1]
                above = link(elements[m + 1], m + 1, high, cycles, top_i, total)
                if m == levels - 1:
                    above = Link()
                self._place(result, o, m, below, above, flags, caal)
        return result

    def _place(self, result: Analysis, o: str, m: int, below: Link, above: Link, flags: list, caal: list) -> None:
        bits = self.layer.bits_of
        empty = Link()
        if o != "O":
            below.bits = above.bits = bits[o]
            links = {"tl": below, "fl": empty, "th": empty, "fh": above}
        else:
            elements = self.rel["O"].elements([(d, s) for d, s in self.layer.loop_sizes])
            is_top = m == len(self.chain[o]) - 1
            back_low = int(elements * (caal[m + 1] - 1)) != 0
            back_high = int(elements * (caal[m + 2] - 1)) != 0
            below.bits = bits["O"] if back_low else bits["O_final"]
            above.bits = bits["O"] if back_high else bits["O_final"]
            read_low = Link(**{**vars(below), "bits": bits["O"] if back_low else 0}) if flags[m] else empty
            read_high = Link(**{**vars(above), "bits": bits["O"] if back_high else 0}) if flags[m + 1] else empty
            if is_top:
                above = read_high = empty
            links = {"tl": read_low, "fl": below, "th": above, "fh": read_high}
        for direction, value in links.items():
            result.links[o, m, direction] = value

    # cost -----------------------------------------------------------------------------------------------------------

    def cost(self, order: Loops) -> dict[str, Any]:
        """Energy, latency parts, word accesses and merged allocation. Raises DoesNotFitError."""
        before = self.allocate(order)
        temporal = self.merge_down(before)
        fractional, integer = (self.analyse(temporal, spatial) for spatial in self.spatial)
        for analysis in (fractional, integer):
            if len({analysis.units[o][0] for o in self.operands}) > 1:
                raise DoesNotFitError
        words, memory_energy = self._energy(fractional)
        mac_energy = self.core.operational_array.unit_energy_pj * self.layer.mac_count
        units = math.prod(size for _, size in self.core.operational_array.dimensions)
        ideal = math.ceil(self.layer.mac_count / units)
        total = int(product(order))
        stall, ports, load = self._ports(temporal, fractional, integer, total)
        onloading, offloading = self._onloading(load), self._offloading(load)
        drain = sum(
            max(math.ceil(math.prod(f for _, f in factors)) - 1, 0)
            for name, factors in self.unrolling
            if name in self.core.operational_array.systolic_dimensions
        )
        return {
            "energy_pj": memory_energy + mac_energy,
            "memory_energy_pj": memory_energy,
            "mac_energy_pj": mac_energy,
            "latency_cycles": float(total) + stall + onloading + offloading + drain,
            "parts": {
                "ideal": ideal,
                "spatial_stall": total - ideal,
                "temporal_stall": stall,
                "onloading": onloading,
                "offloading": offloading,
                "drain": drain,
            },
            "words": words,
            "temporal_mapping": temporal,
            "allocated": before,
            "port_stalls": ports,
        }

    def port(self, o: str, m: int, direction: str) -> tuple[int, int] | None:
        """(index of the memory, index of the port) of a link."""
        memory = self.chain[o][m]
        found = None
        for index, port in enumerate(memory.ports):
            if (self.link[o], direction) in port.allocation:
                found = (self.core.memories.index(memory), index)
        return found

    def width(self, o: str, m: int, direction: str) -> tuple[int, int]:
        """(narrowest, widest) bandwidth of a link in bits; zeros without port."""
        place = self.port(o, m, direction)
        if place is None:
            return 0, 0
        port = self.core.memories[place[0]].ports[place[1]]
        return port.bandwidth_min_bits, port.bandwidth_max_bits

    def _energy(self, analysis: Analysis) -> tuple[dict[str, list[dict[str, int]]], float]:
        words: dict[str, list[dict[str, int]]] = {}
        energy: float = 0
        for o in self.operands:
            words[o] = []
            for m, memory in enumerate(self.chain[o]):
                row = {}
                for direction in ("tl", "fl", "th", "fh"):
                    link = analysis.links[o, m, direction]
                    if link.amount * link.bits == 0:
                        row[direction] = 0
                        continue
                    narrow, wide = self.width(o, m, direction)
                    if wide == 0:
                        raise DoesNotFitError
                    parts = math.ceil(link.amount * link.bits / narrow)
                    row[direction] = int(parts * (narrow / wide) * link.count * analysis.units[o][m + 1])
                words[o].append(row)
                reads = row["th"] * memory.read_energy_pj + row["tl"] * memory.read_energy_pj
                energy += reads + (row["fh"] * memory.write_energy_pj + row["fl"] * memory.write_energy_pj)
        return words, energy

    def double_buffers(self, temporal: dict[str, list[Loops]], analysis: Analysis) -> dict[str, list[bool]]:
        """db[o][m + 1]; db[o][0] is False."""
        own: dict[tuple[str, int], float] = {}
        for o in self.operands:
            for m, memory in enumerate(self.chain[o]):
                top_r = self.top_run(o, temporal[o][m], self.rel[o].relevant)
                bits = analysis.elements[o][m + 1] * analysis.precision[o][m + 1] // top_r
                own[o, m] = bits / memory.size_bits
        group = {
            (o, m): [(p, self.chain[p].index(memory)) for p in self.held(memory)]
            for o in self.operands
            for m, memory in enumerate(self.chain[o])
        }
        shared = {place: sum(own[other] for other in others) for place, others in group.items()}
        result = {o: [False] for o in self.operands}
        for o in self.operands:
            for m in range(len(self.chain[o])):
                enough = shared[o, m] <= 0.5
                if not enough and own[o, m] <= 1 - shared[o, m]:
                    enough = True
                    for other in group[o, m]:
                        shared[other] += own[o, m]
                result[o].append(enough)
        return result

    def services(self) -> list[tuple[tuple[int, int], list[tuple[str, int, str]]]]:
        """Per port the links it serves: by operand of the memory, directions in the order first named."""
        result = []
        for k, memory in enumerate(self.core.memories):
            named = list(dict.fromkeys(pair for port in memory.ports for pair in port.allocation))
            lists: dict[int, list] = {p: [] for p in range(len(memory.ports))}
            for o in self.held(memory):
                m = self.chain[o].index(memory)
                for owner, direction in named:
                    if owner == self.link[o]:
                        lists[self.port(o, m, direction)[1]].append((o, m, direction))
            result += [((k, p), served) for p, served in lists.items() if served]
        return result

    def _ports(self, temporal: dict, fractional: Analysis, integer: Analysis, total: int) -> tuple[int, dict, dict]:
        buffered = self.double_buffers(temporal, fractional)
        values, stall = {}, 0
        for place, served in self.services():
            activities = []
            for o, m, direction in served:
                link = integer.links[o, m, direction]
                if link.count <= 0:
                    continue
                real = math.ceil(link.amount * link.bits / self.width(o, m, direction)[1])
                flag = buffered[o][m] if direction in ("tl", "fl") else buffered[o][m + 1]
                activities.append((real, link.period if flag else link.window, link.period, link.count))
            values[place] = self._port_value(activities)
            stall = max(stall, values[place])
        load: dict[tuple[str, int, str], float] = {}
        for _, served in self.services():
            load |= self._load_port(served, integer, total + stall)
        return stall, values, load

    @staticmethod
    def _port_value(activities: list[tuple[int, int, int, int]]) -> int:
        slack = [(real - allowed) * (count - 1) for real, allowed, _, count in activities]
        if len(activities) < 2:
            return sum(slack)
        windows = sum(allowed * (count - 1) for _, allowed, _, count in activities)
        union = union_on_time_line([(allowed, period, count) for _, allowed, period, count in activities])
        negative = sum(s for s in slack if s <= 0)
        return sum(s for s in slack if s > 0) + max(0, negative + windows - union)

    def _load_port(self, served: list, analysis: Analysis, busy: float) -> dict[tuple[str, int, str], float]:
        load: dict[tuple[str, int, str], float] = {}
        one, required = [], 0
        wide = 0
        for place in served:
            o, _, direction = place
            wide = self.width(*place)[1]
            link = analysis.links[place]
            if (o == "O" and direction in ("tl", "fh")) or link.count == 0:
                continue
            real = math.ceil(link.amount * link.bits / wide)
            if link.count > 1:
                load[place] = real
                required += link.bandwidth
            else:
                floor = math.ceil(analysis.elements[o][1] * analysis.precision[o][1] / wide)
                one.append((real, floor, place))
        spare = max(0, ((wide - required) / wide) * busy)
        for real, floor, place in sorted(one, key=lambda entry: -entry[0]):
            reduction = min(max(0, real - floor), spare)
            load[place] = real - reduction
            spare -= reduction
        return load

    def _both_inputs(self, o: str, m: int, direction: str) -> bool:
        place = self.port(o, m, direction)
        if place is None:
            return False
        port = self.core.memories[place[0]].ports[place[1]]
        memory = self.core.memories[place[0]]
        mine = {owner for owner, d in port.allocation if memory.port_of[owner, d] == place[1]}
        return {"I1", "I2"} <= mine & set(memory.operands)

    def _onloading(self, load: dict) -> float:
        parts = []
        for o in self.operands[1:]:
            shared = half = individual = 0.0
            for m in range(len(self.chain[o]) - 1):
                cycles = max(load.get((o, m, "fh"), 0), load.get((o, m + 1, "tl"), 0))
                flags = self._both_inputs(o, m, "fh") + self._both_inputs(o, m + 1, "tl")
                if flags == 2:
                    shared += cycles
                elif flags == 1:
                    half = cycles
                else:
                    individual += cycles
            parts.append((shared, half, individual))
        if len(parts) == 1:
            return parts[0][2]
        (sx, hx, ix), (sy, hy, iy) = parts
        return min(sx + max(sy + hy + iy, hx + ix), sy + max(sx + hx + ix, hy + iy))

    def _offloading(self, load: dict) -> float:
        levels = len(self.chain["O"])
        return sum(max(load.get(("O", m, "th"), 0), load.get(("O", m + 1, "fl"), 0)) for m in range(levels - 1))
