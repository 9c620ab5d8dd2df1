"""What a stack of layers costs that runs depth-first: tiles of each kind, layer by layer, with the copies between
(DeFiNES, section IV).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from tilewright.depth_first.chain import Chain
from tilewright.depth_first.copies import Copy, cost_of_copies, hops_between
from tilewright.depth_first.ledger import COPY, Ledger
from tilewright.depth_first.locations import Places, Stack
from tilewright.depth_first.reading import Reading
from tilewright.depth_first.tiles import TileKind, tile_kinds
from tilewright.errors import MappingError
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import leakage_pj_a_cycle


@dataclass(frozen=True)
class TileProblem:
    """A layer of a tile, to be mapped with the memories above its data cut off."""

    layer: int
    made: tuple[int, int]
    """Positions of its output along x and y."""
    read: tuple[int, int]
    """Positions of its input."""
    input_memory: int
    output_memory: int
    weight_memory: int | None


TileCosts = Callable[[TileProblem], Ledger | None]
"""What the best mapping of a layer of a tile costs; None where nothing fits."""


@dataclass(frozen=True)
class LayerStep:
    """A layer of a tile, with the copies before it."""

    layer: int
    """-1: no layer, the copy that fetches the input of the stack."""
    copies: tuple[Copy, ...]
    problem: TileProblem | None


@dataclass(frozen=True)
class StackModel:
    """Costs stacks of a chain."""

    chain: Chain
    reading: Reading
    tile_costs: TileCosts

    def cost(self, first: int, last: int, tile: tuple[int, int], mode: str) -> Ledger:
        """The ledger of a stack. Raises MappingError where a layer of a tile fits in no way."""
        total = Ledger()
        for _, count, ledger in self.kinds(first, last, tile, mode):
            total.add(ledger, count)
        return total

    def kinds(self, first: int, last: int, tile: tuple[int, int], mode: str) -> Iterator[tuple[TileKind, int, Ledger]]:
        """Each kind of tile, how many there are, and what one costs.

        The first tile of all brings the weights of its stack from the outermost memory.
        """
        stack = Stack(Places(self.chain), first, last)
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
        """The layers of a tile in order, with where their data lie. Raises MappingError where one fits in no way."""
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
        """The problem of a layer of a tile, with the lowest memories in which it can be mapped."""
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
        raise MappingError(f"layer '{name}' in tiles of {made[0]} x {made[1]} fits into no memories of the core")


def _raises(most: int) -> Iterator[tuple[int, int]]:
    """(memories further out for the output, for the input), in the order in which they are tried."""
    for level in range(most):
        yield level, level
        yield level + 1, level
        yield level, level + 1


def _raised(memories: tuple[int, ...], memory: int, more: int) -> int:
    return memories[min(memories.index(memory) + more, len(memories) - 1)]


def _input_copies(stack: Stack, kind: TileKind, i: int, memory: int, lies_in: int) -> Iterator[Copy]:
    """What brings the input of a layer together: what the layer before has made, kept columns, kept rows."""
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
    """What of a tensor goes to where it is kept for other tiles: rows, and columns without what is in these rows."""
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


LEAKAGE = "leakage"
"""The term of the energy that it is in layers, too."""


@lru_cache(maxsize=65536)
def copy_ledger(core: Core, copies: tuple[Copy, ...], time_passes_on_used_ports: bool) -> Ledger:
    """What copies that take place together cost. Not to be changed."""
    cost = cost_of_copies(copies, time_passes_on_used_ports)
    ledger = Ledger(cost.energy_pj)
    ledger.cycles["copies"] = float(cost.latency_cycles)
    leaked = leakage_pj_a_cycle(core) * cost.latency_cycles
    if leaked:  # a core leaks while data are copied, as while it computes
        ledger.energy_pj += leaked
        ledger.terms_pj[LEAKAGE] = leaked
    for k, read, written in cost.words:
        memory = core.memories[k]
        cause = (memory.name, COPY)
        ledger.read_words[cause], ledger.written_words[cause] = read, written
        ledger.memory_pj[cause] = read * memory.read_energy_pj + written * memory.write_energy_pj
    return ledger
