"""Cost of a stack that runs depth-first: the layers of its tiles, and the copies between memories (DeFiNES, section
IV).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from tilewright.base.errors import MappingError
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ
from tilewright.cost.energy_terms import further_energy_terms
from tilewright.hardware.core import DIRECTIONS, FH, FL, TH, TL, Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.tiles.depth_first.chain import Chain
from tilewright.tiles.depth_first.locations import MemoryPlaces, Stack, TileKind, tile_kinds
from tilewright.tiles.depth_first.options import Reading

LATENCY_PARTS = ("ideal", "spatial_stall", "temporal_stall", "onloading", "offloading", "drain", "copies")
"""Parts of the latency in cycles: ideal use of the array, idle units, waiting for transfers, loading before a layer of
a tile, off-loading after a layer of a tile, drain, and copies between layers."""
COPY = "copy"
"""Cause of an access that belongs to a copy between memories. All other causes are operands of layers."""
Key = TypeVar("Key")
Cause = tuple[str, str]
"""Pair (name of a memory, cause of accesses to this memory). The cause is an operand of a layer, or COPY."""


@dataclass
class Ledger:
    """Energy, accesses and cycles, summed over tiles."""

    energy_pj: float = 0.0
    terms_pj: dict[str, float] = field(default_factory=dict)
    """Energy in pJ by term, such as the energy of multiply-accumulates. The energy of memory accesses is not included.
    """
    memory_pj: dict[Cause, float] = field(default_factory=dict)
    read_words: dict[Cause, float] = field(default_factory=dict)
    written_words: dict[Cause, float] = field(default_factory=dict)
    cycles: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LATENCY_PARTS, 0.0))
    mac_count: int = 0
    tile_count: int = 0

    def add(self, other: "Ledger", times: int = 1) -> None:
        """Add the numbers of another ledger, multiplied by `times`."""
        self.energy_pj += other.energy_pj * times
        self.mac_count += other.mac_count * times
        self.tile_count += other.tile_count * times
        _add(self.terms_pj, other.terms_pj, times)
        _add(self.memory_pj, other.memory_pj, times)
        _add(self.read_words, other.read_words, times)
        _add(self.written_words, other.written_words, times)
        _add(self.cycles, other.cycles, times)

    def accesses(self, cause: str) -> list[JsonObject]:
        """Energy, words read and words written, for each pair (memory, cause), as JSON values. `cause` is the JSON key
        under which each object has its cause.
        """
        return [
            {
                "memory": memory,
                cause: why,
                ENERGY_PJ: self.memory_pj[memory, why],
                "read_words": self.read_words.get((memory, why), 0.0),
                "written_words": self.written_words.get((memory, why), 0.0),
            }
            for memory, why in sorted(self.memory_pj)
        ]

    def latency_cycles(self, with_offloading: bool = True) -> float:
        """Latency in cycles: the sum of its parts. If `with_offloading` is false, as with the rules of DeFiNES,
        off-loading is left out.
        """
        left_out = 0.0 if with_offloading else self.cycles["offloading"]
        return sum(self.cycles.values()) - left_out


def _add(mine: dict[Key, float], theirs: dict[Key, float], times: int) -> None:
    for key, value in theirs.items():
        mine[key] = mine.get(key, 0.0) + value * times


@dataclass(frozen=True)
class HopSide:
    """Side of a hop: the memory port that is read or written."""

    memory: int
    port: tuple[int, int]
    """Port, as (memory, index of the port)."""
    narrow_bits: int
    wide_bits: int
    word_pj: float

    def words(self, bits: int) -> float:
        """Number of accesses for `bits` bits, in words of full width. The number can be fractional, because the last
        access can be as narrow as the port allows.
        """
        return math.ceil(bits / self.narrow_bits) * (self.narrow_bits / self.wide_bits)


@dataclass(frozen=True)
class Hop:
    """Transfer of data from one memory to the next, as a part of a copy."""

    read: HopSide
    write: HopSide

    def cycles(self, bits: int) -> int:
        """Number of cycles in which a hop moves `bits` bits. The slower side of the hop determines this number."""
        return max(math.ceil(bits / self.read.wide_bits), math.ceil(bits / self.write.wide_bits))


@dataclass(frozen=True)
class Copy:
    """Copy of data from one memory to another, hop by hop."""

    bits: int
    hops: tuple[Hop, ...]

    @property
    def path(self) -> tuple[int, ...]:
        """Indexes of the memories through which the data pass, including the source and the destination; () for a copy
        without hops.
        """
        return (self.hops[0].read.memory, *[hop.write.memory for hop in self.hops]) if self.hops else ()


@dataclass(frozen=True)
class CopyCost:
    """Cost of several copies that run at the same time. Each copy moves data from one memory to another."""

    energy_pj: float
    latency_cycles: int
    words: tuple[tuple[int, float, float], ...]
    """Tuples (index of a memory, number of words read, number of words written)."""


@lru_cache(maxsize=4096)
def hops_between(core: Core, source_operand: str, source: int, operand: str, target: int) -> tuple[Hop, ...]:
    """Hops from the memory `source`, which holds data as `source_operand`, to the memory `target`, which holds these
    data as `operand`.

    If one of the two operands is held by both memories, the path goes along the memories of this operand. Otherwise,
    the path goes through the innermost memory that holds both operands and is not below the source.
    """
    if source == target:
        return ()
    hierarchy = memory_hierarchy(core)
    up, down = hierarchy.memories_of(source_operand), hierarchy.memories_of(operand)
    for chain, name in ((down, operand), (up, source_operand)):
        if source in chain and target in chain:
            return _straight(core, name, chain, source, target)
    shared = next(k for k in up[up.index(source) :] if k in down)
    climb = _straight(core, source_operand, up, source, shared)
    return climb + _straight(core, operand, down, shared, target)


def _straight(core: Core, operand: str, chain: tuple[int, ...], source: int, target: int) -> tuple[Hop, ...]:
    first, last = chain.index(source), chain.index(target)
    step = 1 if last > first else -1
    leave, enter = (TH, FL) if step > 0 else (TL, FH)
    return tuple(
        [
            Hop(_link(core, operand, chain[m], leave), _link(core, operand, chain[m + step], enter))
            for m in range(first, last, step)
        ]
    )


def _link(core: Core, operand: str, memory: int, direction: int) -> HopSide:
    """Side of a hop: the port through which data leave or enter a memory.

    The first choice is the port for this operand and direction. The second choice is another port of the operand for
    the same kind of access (read or write). The third choice is a port of another operand for this kind of access.
    Raises MappingError if the memory has no port for this kind of access.
    """
    held = core.memories[memory]
    reads = direction in (TL, TH)
    ways = [DIRECTIONS[x] for x in (direction, *((TL, TH) if reads else (FH, FL)))]
    links = [(owner, way) for owner in (operand, *held.operands) for way in ways]
    place = next((held.port_of[link] for link in links if link in held.port_of), None)
    if place is None:
        raise MappingError(
            f"memory '{held.name}' has no port through which copies could {'leave' if reads else 'enter'}"
        )
    port = held.ports[place]
    cost = held.read_energy_pj if reads else held.write_energy_pj
    return HopSide(memory, (memory, place), port.bandwidth_min_bits, port.bandwidth_max_bits, cost)


def cost_of_copies(copies: Sequence[Copy], time_passes_on_used_ports: bool) -> CopyCost:
    """Cost of copies that start at the same time and share ports. The latency is the time until the last port has
    finished.

    A hop is the transfer from one memory to the next. The hops of a copy run one after another. If
    `time_passes_on_used_ports` is false, there is one exception: a hop that writes through a used port runs at the same
    time as the next hop. A port is used if the hop itself reads through this port, or if an earlier hop of the copy has
    read or written through this port.

    A port finishes at one of two times, whichever is later: the start of its first use plus its total busy time, or the
    time at which its last transfer would end if ports were not shared.
    """
    energy = 0.0
    words: dict[int, list[float]] = {}
    busy: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for copy in copies:
        time = 0
        used: set[tuple[int, int]] = set()
        for hop in copy.hops:
            out, into = hop.read.words(copy.bits), hop.write.words(copy.bits)
            energy += out * hop.read.word_pj + into * hop.write.word_pj
            words.setdefault(hop.read.memory, [0.0, 0.0])[0] += out
            words.setdefault(hop.write.memory, [0.0, 0.0])[1] += into
            cycles = hop.cycles(copy.bits)
            busy.setdefault(hop.read.port, []).append((time, time + cycles))
            busy.setdefault(hop.write.port, []).append((time, time + cycles))
            passes = time_passes_on_used_ports or hop.write.port not in used | {hop.read.port}
            used |= {hop.read.port, hop.write.port}
            time += cycles if passes else 0
    latency = max((_port_cycles(ranges) for ranges in busy.values()), default=0)
    return CopyCost(energy, latency, tuple([(k, *counts) for k, counts in words.items()]))  # type: ignore[misc]


def _port_cycles(ranges: list[tuple[int, int]]) -> int:
    start, end = min(first for first, _ in ranges), max(last for _, last in ranges)
    return max(end, start + sum(last - first for first, last in ranges))


@dataclass(frozen=True)
class TileProblem:
    """Mapping problem of one layer of a tile. The layer uses the memories from the array up to the memories that hold
    the data of the layer.
    """

    layer: int
    made: tuple[int, int]
    """Numbers of output positions that the tile makes, along (x, y)."""
    read: tuple[int, int]
    """Numbers of positions of the layer's input that the tile reads, along (x, y)."""
    input_memory: int
    output_memory: int
    weight_memory: int | None


TileCosts = Callable[[TileProblem], Ledger | None]
"""Function from a layer of a tile to the ledger (energy, accesses and cycles) of its best mapping; None if no mapping
fits."""


@dataclass(frozen=True)
class LayerStep:
    """Layer of a tile, with the copies that must end before the layer starts."""

    layer: int
    """Index of the layer in the chain; -1 for the copy that fetches the input of the stack."""
    copies: tuple[Copy, ...]
    problem: TileProblem | None


@dataclass(frozen=True)
class StackModel:
    """Cost model of the stacks of a chain."""

    chain: Chain
    reading: Reading
    tile_costs: TileCosts

    def cost(self, first: int, last: int, tile: tuple[int, int], mode: str) -> Ledger:
        """Ledger (energy, accesses and cycles) of a stack. Raises MappingError if no mapping fits for a layer of a
        tile.
        """
        total = Ledger()
        for _, count, ledger in self.kinds(first, last, tile, mode):
            total.add(ledger, count)
        return total

    def kinds(self, first: int, last: int, tile: tuple[int, int], mode: str) -> Iterator[tuple[TileKind, int, Ledger]]:
        """Triples (kind of tile, number of tiles of this kind, ledger of one such tile). A ledger has the energy,
        accesses and cycles. The first tile of a stack also loads the weights of the stack from the outermost memory.
        """
        stack = Stack(MemoryPlaces(self.chain), first, last)
        found = tile_kinds(stack, tile, mode, self.reading)
        is_first = True
        for kind, count in found.items():
            if is_first:
                is_first = False
                yield kind, 1, self._tile_cost(stack, kind, True)
                count -= 1
            if count:
                yield kind, count, self._tile_cost(stack, kind, False)

    def _tile_cost(self, stack: Stack, kind: TileKind, weights_from_top: bool) -> Ledger:
        total = Ledger(tile_count=1)
        for step in self.steps(stack, kind, weights_from_top):
            if step.copies:
                total.add(copy_ledger(self.chain.core, step.copies, self.reading.time_passes_on_used_ports))
            if step.problem is not None:
                cost = self.tile_costs(step.problem)
                assert cost is not None
                total.add(cost)
        return total

    def steps(self, stack: Stack, kind: TileKind, weights_from_top: bool) -> Iterator[LayerStep]:
        """Steps of a tile, in order: the copy that fetches the input of the stack, if there is one, and then the layers
        with the memories of their data. A layer that makes no output positions in this tile is left out.

        If `weights_from_top` is true, the layers read weights from the outermost memory, as in the first tile of a
        stack. Raises MappingError if no mapping fits for a layer.
        """
        places, core = stack.places, self.chain.core
        bits = stack.tensor_bits(0) * kind.x.made[0] * kind.y.made[0]
        lies_in = places.for_output(bits, 0, None)
        fetched = hops_between(core, self.chain.output, places.top, self.chain.output, lies_in)
        if fetched and bits:
            yield LayerStep(-1, (Copy(bits, fetched),), None)
        weights = places.weights[-1] if weights_from_top and places.weights else kind.weights
        waiting: list[Copy] = []
        for i in range(len(stack.input_bits)):
            if not kind.x.made[i + 1] * kind.y.made[i + 1]:
                continue
            problem = self._problem(stack, kind, i, weights)
            copies = [*waiting, *_input_copies(stack, kind, i, problem.input_memory, lies_in)]
            yield LayerStep(stack.first + i, tuple(copies), problem)
            waiting = _kept_copies(stack, kind, i + 1, problem.output_memory)
            lies_in = problem.output_memory

    def _problem(self, stack: Stack, kind: TileKind, i: int, weights: int | None) -> TileProblem:
        """Mapping problem of layer `i` of a stack for one kind of tile. The input and the output lie in the innermost
        memories with room for them. If no mapping fits with these memories, the input and the output lie further out
        (`_raises`). The output of the last layer always lies in the outermost memory. `weights` is the memory in which
        the weights of the layer lie.

        Raises MappingError if no mapping fits with any memories.
        """
        places, is_last = stack.places, stack.first + i == stack.last
        made, read = (kind.x.made[i + 1], kind.y.made[i + 1]), (kind.x.read[i], kind.y.read[i])
        input_bits = stack.input_bits[i] * read[0] * read[1]
        input_memory = places.for_input(input_bits)
        output_bits = stack.output_bits[i] * made[0] * made[1]
        output_memory = places.top if is_last else places.for_output(output_bits, input_bits, input_memory)
        weighs = weights if self.chain.layers[stack.first + i].weight_operand is not None else None
        for more_output, more_input in _raises(len(places.outputs) + len(places.inputs)):
            problem = TileProblem(
                stack.first + i,
                made,
                read,
                _raised(places.inputs, input_memory, more_input),
                _raised(places.outputs, output_memory, more_output),
                weighs,
            )
            if self.tile_costs(problem) is not None:
                return problem
        name = self.chain.layers[stack.first + i].layer.name
        raise MappingError(
            f"layer '{name}' in tiles of {made[0]} x {made[1]} does not fit into the memories of the core"
        )


def _raises(most: int) -> Iterator[tuple[int, int]]:
    """Pairs (output, input): numbers of levels by which the memory of the output and the memory of the input move
    outwards, each at most `most`. The pairs are tried in this order until a mapping fits the layer of a tile.
    """
    for level in range(most):
        yield level, level
        yield level + 1, level
        yield level, level + 1


def _raised(memories: tuple[int, ...], memory: int, more: int) -> int:
    return memories[min(memories.index(memory) + more, len(memories) - 1)]


def _input_copies(stack: Stack, kind: TileKind, i: int, memory: int, lies_in: int) -> Iterator[Copy]:
    """Copies to `memory` that assemble the input of layer `i` of a stack. There are up to three sources: the output of
    the previous layer (or the fetched input of the stack) in memory `lies_in`, the kept columns, and the kept rows.
    Columns and rows of the input are kept from earlier tiles.
    """
    inputs, x, y, chain = stack.places.inputs, kind.x, kind.y, stack.places.chain
    core, output, activation = chain.core, chain.output, chain.activation
    made = stack.tensor_bits(i) * x.made[i] * y.made[i]
    below = lies_in in inputs and inputs.index(lies_in) < inputs.index(memory)
    if made and lies_in != memory and not (i == 0 and below):
        yield Copy(made, hops_between(core, output, lies_in, activation, memory))
    columns = stack.input_bits[i] * x.reused[i] * y.read[i] if kind.columns_from is not None else 0
    if columns and kind.columns_from != memory:
        yield Copy(columns, hops_between(core, activation, kind.columns_from, activation, memory))
    width = x.read[i] - (x.reused[i] if kind.columns_from is not None else 0)
    rows = stack.input_bits[i] * width * y.reused[i] if kind.rows_from is not None else 0
    if rows and kind.rows_from != memory:
        yield Copy(rows, hops_between(core, activation, kind.rows_from, activation, memory))


def _kept_copies(stack: Stack, kind: TileKind, tensor: int, memory: int) -> list[Copy]:
    """Copies of a tensor's kept rows and columns, which later tiles need again. The source is `memory`, and the targets
    are the memories that keep the rows and the columns. Data in a row and in a column are copied only with the row.
    """
    if tensor > len(stack.input_bits) - 1:
        return []
    x, y, bits, chain = kind.x, kind.y, stack.tensor_bits(tensor), stack.places.chain
    found = []
    high = y.made[tensor]
    if kind.rows_to is not None and kind.rows_to != memory:
        rows = y.kept[tensor]
        found.append((bits * x.made[tensor] * rows, kind.rows_to))
        high -= rows
    if kind.columns_to is not None and kind.columns_to != memory:
        found.append((bits * x.kept[tensor] * high, kind.columns_to))
    return [
        Copy(amount, hops_between(chain.core, chain.output, memory, chain.output, target))
        for amount, target in found
        if amount
    ]


@lru_cache(maxsize=65536)
def copy_ledger(core: Core, copies: tuple[Copy, ...], time_passes_on_used_ports: bool) -> Ledger:
    """Ledger (energy, accesses and cycles) of copies that run at the same time, each from one memory to another.
    Callers must not change the ledger, because later calls return the same object.
    """
    cost = cost_of_copies(copies, time_passes_on_used_ports)
    ledger = Ledger(cost.energy_pj)
    ledger.cycles["copies"] = float(cost.latency_cycles)
    for name, term in further_energy_terms(core).items():
        if energy_pj := term.waiting_pj_a_cycle(core) * cost.latency_cycles:
            ledger.energy_pj += energy_pj
            ledger.terms_pj[name] = energy_pj
    for k, read, written in cost.words:
        memory = core.memories[k]
        cause = (memory.name, COPY)
        ledger.read_words[cause], ledger.written_words[cause] = read, written
        ledger.memory_pj[cause] = read * memory.read_energy_pj + written * memory.write_energy_pj
    return ledger
