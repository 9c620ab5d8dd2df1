"""Data that one operand keeps at each level and moves over each link, for given loops of its levels."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from tests.plain.relevancy import Loops, Number, Relevancy, Tile, product, sizes_by_dimension
from tests.plain.spatial import SpatialMapping
from tests.plain.switches import Switches

DIRECTIONS = ("tl", "fl", "th", "fh")
Levels = tuple[Loops, ...]


@dataclass(frozen=True)
class Link:
    """Data movement of a level in one direction."""

    amount: Number = 0
    """Elements of one transfer, as counted for latency."""
    bits: int = 0
    """Bits of an element."""
    period: int = 0
    count: int = 0
    """Number of periods in which data move."""
    bandwidth: Number = 0
    """Average bits for each operation, not rounded."""
    window: int = 0
    """Cycles at the end of a period in which the lower level no longer uses its tile, if it has no double buffer."""
    is_widened: bool = False
    """Whether partial sums count with more bits than they have, because final outputs beside them are compressed."""


@dataclass(frozen=True)
class Reuse:
    """One operand with its loops, in one representation of the spatial mapping."""

    elements: tuple[int, ...]
    """[a] elements that one instance of architecture level a holds."""
    precision: tuple[int, ...]
    """[a] bits of an element that level a hands upward."""
    units: tuple[Number, ...]
    """[a] number of active instances."""
    boost: tuple[int, ...]
    """[a] number of instances of level a with different data that belong to one instance of level a + 1."""
    top_relevant: tuple[int, ...]
    """[m] product of the relevant loops at the outer end of memory level m."""
    links: dict[tuple[int, str], Link]
    tiles: dict[tuple[int, str], Tile]
    """(memory level, direction) -> tile that a transfer moves; only if tiles are whole."""


def merged_down(levels: Levels, irrelevant: tuple[str, ...]) -> Levels:
    """Levels after moving irrelevant loops at the inner end of a level to the level below, until nothing changes."""
    result = [list(loops) for loops in levels]
    changed = True
    while changed:
        changed = False
        for m in range(1, len(result)):
            while result[m] and result[m][0][0] in irrelevant:
                result[m - 1].append(result[m].pop(0))
                changed = True
    return tuple(tuple(loops) for loops in result)


def run_at_outer_end(loops: Loops, dimensions: tuple[str, ...]) -> int:
    """Product of the loops over `dimensions` at the outer end."""
    return int(product(itertools.takewhile(lambda loop: loop[0] in dimensions, reversed(loops))))


def run_at_inner_end(loops: Loops, dimensions: tuple[str, ...]) -> int:
    """Product of the loops over `dimensions` at the inner end."""
    return int(product(itertools.takewhile(lambda loop: loop[0] in dimensions, loops)))


class OperandModel:
    """Reuse of one operand of a layer under a spatial mapping."""

    def __init__(
        self, operand: str, rel: Relevancy, spatial: SpatialMapping, switches: Switches, phases: int = 1
    ) -> None:
        self.operand, self.rel, self.switches, self.phases = (operand, rel, switches, phases)
        self.whole = "whole_tiles" in switches
        self.fractional, self.integer = (spatial.fractional[operand], spatial.integer[operand])
        self.exact = spatial.exact[operand]
        self.bits_of = dict(rel.layer.bits_of)
        if "room_for_final_outputs" in switches:
            self.bits_of["O"] = max(self.bits_of["O"], self.bits_of["O_final"])
        self.sum_bits: list[int] = []
        """[m] bits of a partial sum in transfers between memory m and its neighbours; empty for inputs."""
        self.memo_of_tiles: dict[object, Tile] = {}
        self.integer_boost = self._boost(self.integer, exactly=False)

    def reuse(self, levels: Levels) -> tuple[Reuse, Reuse]:
        """(reuse for energy, reuse for latency); `levels` must be merged down."""
        if self.whole:
            both = self._analysed(levels, self.exact)
            return both, both
        return self._analysed(levels, self.fractional), self._analysed(levels, self.integer)

    def tile(self, m: int, temporal: dict[str, Number]) -> Tile:
        """The tile that an instance of memory m holds or takes for temporal loops, with the spatial loops S[0..m]."""
        key = (m, frozenset(temporal.items()))
        if key not in self.memo_of_tiles:
            self.memo_of_tiles[key] = self.rel.tile(self._with_lanes(temporal, m + 1))
        return self.memo_of_tiles[key]

    def _with_lanes(self, temporal: dict[str, Number], levels: int) -> dict[str, Number]:
        """Sizes of temporal loops together with the innermost levels of spatial loops."""
        sizes = dict(temporal)
        for loops in self.exact[:levels]:
            for dimension, size in loops:
                sizes[dimension] = sizes.get(dimension, 1) * size
        return sizes

    def _boost(self, spatial: Levels, exactly: bool) -> tuple[int, ...]:
        relevant = [[s for kind, s in kinds if kind == "r"] for kinds in self.rel.decouple(spatial, exactly)]
        unique = [math.prod(math.prod(sizes) for sizes in relevant[a:]) for a in range(len(spatial))]
        return tuple(round(unique[a] / unique[a + 1]) for a in range(len(spatial) - 1))

    def _analysed(self, levels: Levels, spatial: Levels) -> Reuse:
        o, rel, count = self.operand, self.rel, len(levels)
        n1 = rel.decouple([spatial[0], *(levels[m] + spatial[m + 1] for m in range(count))], self.whole)
        irrelevant = [[size for kind, size in kinds if kind == "ir"] for kinds in n1]
        flags = [any(s > 1 for sizes in irrelevant[a + 1 :] for s in sizes) for a in range(count + 1)]
        left = [math.prod(math.prod(sizes) for sizes in irrelevant[a:]) for a in range(count + 1)] + [1, 1]
        bits = self.bits_of
        precision = tuple(bits[o] if o != "O" or flags[a] else bits["O_final"] for a in range(count + 1))
        cycles = [1, *(int(product(x for level in levels[: m + 1] for x in level)) for m in range(count))]
        periods_below = [1 if o == "O" else run_at_inner_end(levels[0], rel.irrelevant), *cycles[1:]]
        tops = [1, *(run_at_outer_end(loops, rel.irrelevant) for loops in levels)]
        tiles: dict[tuple[int, str], Tile] = {}
        if self.whole:
            boost = self.integer_boost
            elements = [1]
            below, above = [], []
            for m in range(count):
                wide = self.tile(m, sizes_by_dimension(x for level in levels[:m] for x in level))
                held = self.tile(m, sizes_by_dimension(x for level in levels[: m + 1] for x in level))
                tiles |= dict.fromkeys([(m, "tl"), (m, "fl")], wide) | dict.fromkeys([(m, "th"), (m, "fh")], held)
                elements.append(held.whole)
                below.append((wide.whole, Fraction(wide.whole * precision[m], periods_below[m])))
                above.append((held.whole, Fraction(held.whole * precision[m + 1], cycles[m + 1])))
            units: list[Number] = [
                math.prod((s for loops in spatial[a:] for _, s in loops), start=Fraction(1)) for a in range(count + 1)
            ]
        else:
            flat = [math.prod(size for _, size in kinds) for kinds in rel.decouple(spatial)]
            units = [round(round(math.prod(flat[a:]), 3)) for a in range(count + 1)]
            boost = self._boost(spatial, exactly=False)
            n2 = rel.decouple([(), *(levels[m] + spatial[m] for m in range(count))])
            parts = [math.prod(size for kind, size in kinds if kind == "r") for kinds in n2]
            elements = [round(math.prod(parts[: a + 1])) for a in range(count + 1)]
            rates = [elements[m] * precision[m] / periods_below[m] for m in range(count)]
            below = [(elements[m] * boost[m], rates[m] * boost[m]) for m in range(count)]
            above = [(elements[m + 1], elements[m + 1] * precision[m + 1] / cycles[m + 1]) for m in range(count)]

        def link(a: int, moved: tuple[Number, Number], periods: list[int]) -> Link:
            period, window = (self.phases * periods[a], self.phases * (periods[a] // tops[a]))
            return Link(moved[0], 0, period, cycles[count] // periods[a], moved[1], window)

        links: dict[tuple[int, str], Link] = {}
        for m in range(count):
            low, high = link(m, below[m], periods_below), link(m + 1, above[m], cycles)
            lanes_add = any(d in rel.irrelevant and size > 1 for d, size in spatial[m + 1])
            outputs = o == "O"
            placed = self._outputs(m, low, high, levels, flags, left, lanes_add) if outputs else self._inputs(low, high)
            if m == count - 1:
                placed["th"] = placed["fh"] = Link()
            links |= {(m, direction): placed[direction] for direction in DIRECTIONS}
        top_relevant = tuple(run_at_outer_end(loops, rel.relevant) for loops in levels)
        return Reuse(tuple(elements), precision, tuple(units), boost, top_relevant, links, tiles)

    def _inputs(self, low: Link, high: Link) -> dict[str, Link]:
        bits = self.bits_of[self.operand]
        return {"tl": replace(low, bits=bits), "fl": Link(), "th": Link(), "fh": replace(high, bits=bits)}

    def _outputs(
        self, m: int, low: Link, high: Link, levels: Levels, flags: list[bool], left: list[Number], lanes_add: bool
    ) -> dict[str, Link]:
        """Links of outputs: sums go up, and sums that are not final come down to be added to."""
        sums, final = self.bits_of["O"], self.bits_of["O_final"]
        tensor = self.rel.elements(self.rel.layer.loop_sizes)

        def pair(up: Link, not_final: bool, again: bool, visits: int) -> tuple[Link, Link]:
            up = replace(up, bits=sums if again else final)
            if not not_final:
                return up, Link()
            count = up.count
            if "skip_first_accumulation_read" in self.switches:
                count -= count // visits
            if count == 0:
                return up, Link()
            return up, replace(up, bits=sums if again else 0, count=count)

        def visits(first: int) -> int:
            return int(product(x for loops in levels[first:] for x in loops if x[0] in self.rel.irrelevant))

        again = [flags[a] if self.whole else int(tensor * (left[a + 1] - 1)) != 0 for a in (m, m + 1)]
        up_low, back_low = pair(low, flags[m], again[0], visits(m))
        up_high, back_high = pair(high, flags[m + 1], again[1], visits(m + 1))
        wide_high = again[1] or ("wide_until_added" in self.switches and lanes_add)
        if "wide_until_added" in self.switches and lanes_add:
            up_high = replace(up_high, bits=sums)  # lanes above have yet to add it up (B47)
        up_low, up_high = (self._widened(link, again, m) for link, again in ((up_low, again[0]), (up_high, wide_high)))
        return {"tl": back_low, "fl": up_low, "th": up_high, "fh": back_high}

    def _widened(self, link: Link, again: bool, m: int) -> Link:
        """The link with the bits of partial sums at memory m, if it moves partial sums."""
        sums = self.bits_of["O"]
        if not again or self.sum_bits[m] == sums or link.period == 0:
            return link
        bandwidth = link.bandwidth * self.sum_bits[m] / sums
        return replace(link, bits=self.sum_bits[m], bandwidth=bandwidth, is_widened=True)


def temporal_cycles(loops: Iterable[tuple[str, Number]]) -> int:
    """Cycles of a complete order."""
    return int(product(loops))
