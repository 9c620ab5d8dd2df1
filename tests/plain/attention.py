"""Attention in tiles, walked tile by tile: a second, slow implementation of plans (docs/tiles/attention.md).

The costs of layers of tiles and of copies come from the search. This walk finds the layers and copies, the places of
tensors, and the room that is left, one tile after the other.
"""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product

from tilewright.base.objectives import OBJECTIVES
from tilewright.tiles.attention.costs import AttentionCosts
from tilewright.tiles.attention.program import CopyProblem, TileLayerProblem
from tilewright.tiles.attention.space import AttentionPlan, TensorPlace, Tile

FIRST = """
softmax.max: s > m
softmax.exp: s m > p
softmax.sum: p > l
values: p v > o
"""
LATER = """
softmax.max: s > mt
online.max: m0 mt > m
softmax.exp: s m > p
online.factor: m0 m > f
softmax.sum: p > lt
online.sum_rescale: l0 f > l1
online.sum: l1 lt > l
values: p v > ot
online.output_rescale: o0 f > o1
online.output: o1 ot > o
"""
ROWS = ("online.div", "online.max", "online.factor", "online.sum_rescale", "online.sum")
ROWS += ("online.output_rescale", "online.output")


def sequence(stages: tuple[str, ...], is_first: bool) -> list[tuple[str, str, str, str]]:
    """(layer, first, second, made) in order; the softmax reads the scores `s`."""
    names = [*[f"s{place}" for place in range(len(stages))], "s"]
    lines = [("scores", "q", "k", names[0])]
    lines += [(stage, names[place], "", names[place + 1]) for place, stage in enumerate(stages)]
    for line in (FIRST if is_first else LATER).split("\n"):
        if line:
            layer, _, rest = line.partition(": ")
            read, _, made = rest.partition(" > ")
            first, _, second = read.partition(" ")
            lines.append((layer, first, second, made))
    return lines


class Walk:
    """The walk over the tiles of one plan."""

    def __init__(self, costs: AttentionCosts, plan: AttentionPlan) -> None:
        self.costs, self.plan, self.shape, self.memories = costs, plan, costs.attention.shape, costs.memories
        self.done: Counter[TileLayerProblem | CopyProblem] = Counter()
        self.fits = True
        for units in pieces(self.shape.units, plan.tile.units):
            self.walk(len(units))

    def place(self, tensor: str) -> TensorPlace:
        """The place of a tensor."""
        plan = self.plan
        own = {"q": plan.queries, "k": plan.keys, "v": plan.values}
        if tensor in own:
            return own[tensor]
        return TensorPlace(plan.scores) if tensor[0] in "sp" else plan.output

    def bits(self, tensor: str, units: int, heads: int, queries: int, keys: int) -> int:
        """Bits of a part of a tensor with these numbers of units, heads, queries and keys."""
        shape, rows = self.shape, units * heads * queries
        if tensor == "q":
            return rows * shape.key_width * shape.bits.queries
        if tensor == "k":
            return units * keys * shape.key_width * shape.bits.keys
        if tensor == "v":
            return units * keys * shape.value_width * shape.bits.values
        if tensor[0] in "sp":
            return rows * keys * shape.bits.activations
        return rows * shape.bits.activations * (shape.value_width if tensor[0] == "o" else 1)

    def tiles(self) -> Iterator[tuple[range, range, range]]:
        """(heads, queries, keys) of tiles in order, if some query of the tile sees some key."""
        shape, tile = self.shape, self.plan.tile
        heads, queries, keys = (
            pieces(size, part)
            for size, part in ((shape.heads, tile.heads), (shape.queries, tile.queries), (shape.keys, tile.keys))
        )
        if self.plan.order == "queries-outer":
            turns = product(heads, queries, keys)
        else:
            turns = ((h, q, k) for k, h, q in product(keys, heads, queries))
        for h, q, k in turns:
            if any(sees(shape, one, other) for one in q for other in k):
                yield h, q, k

    def walk(self, units: int) -> None:
        """Walk all tiles of some units."""
        shape, top = self.shape, self.memories.top
        for kind in ("q", "k", "v"):
            place = self.place(kind)
            if place.is_whole:
                self.bring(kind, self.bits(kind, units, shape.heads, shape.queries, shape.keys))
        here: dict[str, object] = {}
        left = Counter((h, q) for h, q, _ in self.tiles())
        begun: set[tuple[range, range]] = set()
        row_here = None
        for h, q, k in self.tiles():
            for kind, own in (("q", (h, q)), ("k", k), ("v", k)):
                if here.get(kind) != own and not self.place(kind).is_whole:
                    self.bring(kind, self.bits(kind, units, len(h), len(q), len(k)))
                here[kind] = own
            state = self.plan.output
            if row_here != (h, q) and not state.is_whole and state.memory != top:
                if row_here is not None and left[row_here]:
                    self.swap(units, row_here, is_away=True)
                if (h, q) in begun:
                    self.swap(units, (h, q), is_away=False)
            row_here = h, q
            self.tile(units, h, q, k, sequence(shape.stages, (h, q) not in begun))
            begun.add((h, q))
            left[h, q] -= 1
            if not left[h, q]:
                self.tile(units, h, q, range(self.plan.tile.keys), [("online.div", "o", "l", "result")])

    def bring(self, kind: str, bits: int) -> None:
        """Copy a tensor from the outermost memory to its place."""
        place, operand = self.place(kind).memory, "I" if kind == "q" else "W"
        if place != self.memories.top:
            name = {"q": "queries", "k": "keys", "v": "values"}[kind]
            self.done[CopyProblem(name, bits, (operand, self.memories.top), (operand, place))] += 1

    def swap(self, units: int, row: tuple[range, range], is_away: bool) -> None:
        """Copy the output, extremes and sums of a row to the outermost memory or back."""
        ends = [("O", self.plan.output.memory), ("O", self.memories.top)]
        start, end = ends if is_away else ends[::-1]
        for tensor, name in (("o", "output"), ("m", "statistics"), ("l", "statistics")):
            bits = self.bits(tensor, units, len(row[0]), len(row[1]), 0)
            self.done[CopyProblem(name, bits, start, end)] += 1

    def tile(self, units: int, h: range, q: range, k: range, lines: list[tuple[str, str, str, str]]) -> None:
        """Run the layers of a tile, each with the room that other data leave."""
        size, top = (units, len(h), len(q), len(k)), self.memories.top
        known = {made for _, _, _, made in lines}
        is_end = lines[0][0] == "online.div"
        before = {t for line in lines for t in line[1:3] if t} - known - {"q", "k", "v"}
        copied: dict[str, int] = {}
        for number, (layer, first, second, made) in enumerate(lines):
            alive = {"q", "k", "v"} | {m for *_, m in lines[: number + 1]} | before
            later = {t for line in lines[number:] for t in line[1:3]} | {made}
            kept = set() if is_end else {"m", "l", "o"}
            alive = {t for t in alive if t in later | {"q", "k", "v"} | (kept & {m for *_, m in lines[: number + 1]})}
            own = {first: self.place(first).memory, made: top if made == "result" else self.place(made).memory}
            reach = {"I": own[first], "O": own[made]}
            copies = {t for t in copied if t in {line[2] for line in lines[number:]}}
            if second:
                where = self.place(second).memory
                if where not in self.memories.seconds:
                    bits = self.bits(second, *size)
                    room = [m for m in self.memories.seconds if self.costs.core.memories[m].size_bits >= bits]
                    if second not in copied:
                        copied[second] = (room or [top])[0]
                        name = "output" if second[0] == "o" else "statistics"
                        self.done[CopyProblem(name, bits, ("O", where), ("W", copied[second]))] += 1
                    reach["W"] = copied[second]
                    copies.discard(second)
                else:
                    reach["W"] = own[second] = where
            taken: Counter[int] = Counter()
            for tensor in alive - set(own):
                taken[self.place(tensor).memory] += self.bits(tensor, *size)
            for tensor in copies:
                taken[copied[tensor]] += self.bits(tensor, *size)
            for tensor, full in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "oml")):
                if self.place(tensor).is_whole:
                    whole = (units, self.shape.heads, self.shape.queries, self.shape.keys)
                    for one in full:
                        taken[self.place(tensor).memory] += self.bits(one, *whole) - self.bits(one, *size)
            reserved = tuple(sorted((m, bits) for m, bits in taken.items() if bits and m != top))
            sized = Tile(*size)._replace(keys=1) if layer in ROWS else Tile(*size)
            self.done[TileLayerProblem(layer, sized, tuple(sorted(reach.items())), reserved)] += 1
            for tensor, m in own.items():
                taken[m] += self.bits(tensor, *size) if tensor != "result" else 0
            if second and second not in own:
                taken[reach["W"]] += self.bits(second, *size)
            sizes = self.costs.core.memories
            self.fits = self.fits and all(sizes[m].size_bits >= bits for m, bits in taken.items() if m != top)

    def cost(self) -> tuple[float, float]:
        """(energy, latency); infinite if some data do not fit."""
        if not self.fits:
            return math.inf, math.inf
        energy = cycles = 0.0
        for problem, count in self.done.items():
            is_copy = isinstance(problem, CopyProblem)
            ledger = self.costs.of_copy(problem) if is_copy else self.costs.of_layer(problem)
            if ledger is None:
                return math.inf, math.inf
            energy, cycles = energy + count * ledger.energy_pj, cycles + count * ledger.latency_cycles()
        return energy, cycles


def pieces(size: int, part: int) -> list[range]:
    """The positions of an axis, in tiles."""
    return [range(start, min(start + part, size)) for start in range(0, size, part)]


def sees(shape, query: int, key: int) -> bool:
    """Whether a query sees a key; the last query is at the position of the last key."""
    if not shape.is_causal:
        return True
    own = shape.keys - shape.queries + query
    return key <= own and (shape.window is None or key > own - shape.window)


def all_plans(costs: AttentionCosts, sizes: dict[str, list[int]]) -> Iterator[AttentionPlan]:
    """Every combination of tile sizes, loop orders and memories of tensors; some combinations are equal.

    A memory can hold a whole tensor only if the loops use its tiles several times. These tensors are keys and values if
    the loop over queries is outermost, and queries and outputs if the loop over keys is outermost.
    """
    memories, shape = costs.memories, costs.attention.shape
    made = memories.made
    for tile, order in product(product(*(sizes[axis] for axis in Tile._fields)), ("queries-outer", "keys-outer")):
        own = Tile(*tile)
        comes_back = (own.queries < shape.queries or own.heads < shape.heads) and own.keys < shape.keys
        keys_back = comes_back and order == "queries-outer"
        rows_back = comes_back and order == "keys-outer"
        seconds = places(memories.seconds, keys_back)
        rows = [places(some, rows_back) for some in (memories.inputs, made)]
        for score, q, k, v, o in product([m for m in made if m != memories.top], rows[0], seconds, seconds, rows[1]):
            yield AttentionPlan(own, order, score, q, k, v, o)


def places(memories: tuple[int, ...], with_whole: bool) -> list[TensorPlace]:
    """A tile of the tensor in each memory, and the whole tensor in each but the outermost."""
    return [TensorPlace(m) for m in memories] + [TensorPlace(m, True) for m in memories[:-1] if with_whole]


def least_value(costs: AttentionCosts, sizes: dict[str, list[int]]) -> float:
    """The least value of the objective over all plans and the unfused attention."""
    powers, unfused = OBJECTIVES[costs.options.objective], costs.unfused()
    least = powers.value(unfused.energy_pj, unfused.latency_cycles())
    for plan in all_plans(costs, sizes):
        cost = Walk(costs, plan).cost()
        if cost[0] < math.inf:
            least = min(least, powers.value(*cost))
    return least
