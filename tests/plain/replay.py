"""A replay of one mapping: it walks the loop nest, moves tiles element by element, and counts what moves.

The replay shares no code and no formula with the cost model, only the names of the four links. It assumes:

* **Lanes and passes.** A loop dimension of size n over f lanes and t passes is divided evenly: pass p has the
  iterations from ceil(p n / t) to ceil((p + 1) n / t). Each operand is replayed alone. Its lanes stand between its
  memories: a side of the array is below the innermost memory that serves it. In every dimension, inner loops take the
  nearer iterations, so a memory holds a range of a dimension. If lanes do not divide a dimension, their number is the
  average of a pass. Each lane with its own memory then moves as much as the first lane. Only for sums that windows
  revisit, every lane is looked at.
* **Contents of a memory.** While the loops above a memory stand still, its own loops and lanes, and all below it,
  touch some elements. The memory holds these elements. It exchanges them when a loop above that indexes the operand
  moves on. A loop that does not index the operand exchanges nothing until an indexing loop inside it begins again. The
  allocation of loops decides which memory has room; second copies of tiles change no count.
* **Windows.** Elements that two windows share are one element inside a tile. Nothing is kept from one tile to the next:
  the elements in both tiles move again.
* **Inputs** come down. A memory reads an input once for all memories below that need it, as they listen together, and
  each of these writes it. A multiplier keeps its input until it needs another.
* **Outputs.** Every operation hands its result up in its cycle; neighbouring lanes that work on one element add it up
  on the way. A memory hands its whole tile up when it exchanges it. Elements that lie in the memory above by then come
  back down before the next tile begins. An element that no memory below has handed up before is new, and is not read.
  Each memory that adds to an element gets a copy, though all but one would need only a zero. Between two memories,
  lanes also add up what goes up.
* **Widths.** A sum to which something is added later, also on its way up, is as wide as a partial sum, and at least
  as wide as the final output. A link has one width. It is the final width if nothing is added later, by lanes or by
  loops, to anything that moves up over the link. Sums that come back are partial sums.
* **Words.** One transfer of one memory moves whole parts of the narrowest width of its port. All parts together count
  in words of the full width, rounded up once.

Lanes over a dimension that does not index the operand hold copies; their number is the average of a pass.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

Element = tuple[int, ...]
Loops = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Loop:
    """A loop in the nest of one operand."""

    dimension: str
    factor: Fraction
    is_lane: bool
    level: int
    """Number of the memory that keeps a temporal loop; for a loop over lanes, the memory m above the lanes.

    The lanes of level m lie between memory m - 1 and memory m. For m = 0, they lie between the array and memory 0.
    """

    @property
    def count(self) -> int:
        """Number of values that the loop takes."""
        return math.ceil(self.factor)


@dataclass
class Link:
    """Counts of what one link moves."""

    parts: Fraction = Fraction(0)
    elements: Fraction = Fraction(0)
    most_elements: int = 0
    """Largest number of elements that one memory moves at a time."""
    transfers: int = 0
    """Number of times at which something moves."""
    bits: int = 0
    """Bits of an element."""
    words: int = 0
    cycles: int = 0
    """Cycles of the largest transfer."""


@dataclass
class Replay:
    """The links of all memories of all operands."""

    links: dict[tuple[str, int, str], Link] = field(default_factory=dict)
    distinct_outputs: int = 0
    energy_pj: float = 0.0


def replay(layer: Layer, core: Core, links: Sequence[tuple[str, str]], unrolling: Unrolling,
           temporal: Mapping[str, Sequence[Loops]]) -> Replay:  # fmt: skip
    """Replay a mapping. `temporal` has the loops of each memory of each operand, inner to outer."""
    result = Replay()
    lanes = dealt_out(layer, core, unrolling)
    memory_operand = dict(links)
    for operand in layer.operands:
        memories = [memory for memory in core.memories if memory_operand[operand] in memory.operands]
        served = [memory.served_dimensions for memory in memories]
        walk = OperandWalk(layer, operand, nest_of(lanes, served, temporal[operand]), len(memories))
        for m, memory in enumerate(memories):
            for direction, link in walk.links_of(m).items():
                if not link.transfers:
                    continue
                port = memory.ports[memory.port_of[memory_operand[operand], direction]]
                narrow, wide = port.bandwidth_min_bits, port.bandwidth_max_bits
                moved = walk.moved[m, direction]
                link.parts = sum((times * math.ceil(Fraction(n * link.bits, narrow)) for n, times in moved.items()),
                                 start=Fraction(0))  # fmt: skip
                link.words = math.ceil(link.parts * Fraction(narrow, wide))
                link.cycles = math.ceil(Fraction(link.most_elements * link.bits, wide))
                cost = memory.read_energy_pj if direction in ("tl", "th") else memory.write_energy_pj
                result.energy_pj += link.words * cost
                result.links[operand, m, direction] = link
        if operand == "O":
            result.distinct_outputs = len(walk.seen)
    return result


def dealt_out(layer: Layer, core: Core, unrolling: Unrolling) -> dict[str, list[tuple[str, Fraction]]]:
    """Side of the array -> (dimension, average lanes).

    If a dimension is unrolled on several sides, only the lanes on its widest side can be partly idle.
    """
    units = dict(core.operational_array.dimensions)
    given = {(side, d): min(f, units[side]) for side, factors in unrolling for d, f in factors}
    used: dict[tuple[str, str], Fraction] = {place: Fraction(f) for place, f in given.items()}
    asked = {(side, d): f for side, factors in unrolling for d, f in factors}
    for dimension in {d for _, d in given}:
        places = [place for place in given if place[1] == dimension]
        widest = max(places, key=lambda place: asked[place])
        others = math.prod(given[place] for place in places if place != widest)
        passes = math.ceil(Fraction(layer.size_of[dimension], given[widest] * others))
        used[widest] = Fraction(layer.size_of[dimension], passes * others)
    return {side: [(d, used[side, d]) for d, _ in factors] for side, factors in unrolling}


def nest_of(
    lanes: Mapping[str, list[tuple[str, Fraction]]], served: Sequence[Sequence[str]], temporal: Sequence[Loops]
) -> list[Loop]:
    """The loops of an operand from the array outwards."""
    nest, left = [], dict(lanes)
    for level in range(len(served) + 1):
        row: dict[str, Fraction] = {}  # sides of one level are one row of lanes
        for side in [side for side in left if level == len(served) or side in served[level]]:
            for d, factor in left.pop(side):
                row[d] = row.get(d, Fraction(1)) * factor
        nest += [Loop(d, factor, True, level) for d, factor in row.items()]
        if level < len(served):
            nest += [Loop(d, Fraction(size), False, level) for d, size in temporal[level]]
    return nest


class OperandWalk:
    """The walk over the nest of one operand."""

    def __init__(self, layer: Layer, operand: str, nest: list[Loop], memories: int) -> None:
        self.layer, self.operand, self.nest, self.memories = (layer, operand, nest, memories)
        self.is_output = operand == "O"
        own = dict(layer.operand_dimensions)[operand]
        windows = {relation.data_dimension: relation.terms for relation in layer.relations}
        self.axes = [windows.get(axis, ((axis, 1),)) for axis in own]
        self.in_windows = {d for axis in self.axes if len(axis) > 1 for d, _ in axis}
        for group in [{d for d, _ in axis} for axis in self.axes] * len(self.axes):
            self.in_windows |= group if group & self.in_windows else set()
        self.indexing = {d for axis in self.axes for d, _ in axis if d in layer.size_of}
        bits = layer.bits_of
        self.sum_bits = max(bits["O"], bits["O_final"]) if self.is_output else bits[operand]
        self.final_bits = bits["O_final"] if self.is_output else bits[operand]
        self.moved: dict[tuple[int, str], dict[int, Fraction]] = {}
        self.most: dict[tuple[int, str], int] = {}
        self.times: dict[tuple[int, str], int] = {}
        self.seen: set[Element] = set()
        self.touched_by: dict[tuple[int, str], dict[Element, object]] = {}
        self.added_later: set[tuple[int, str]] = set()
        self.copies = {(m, at): self._copies(m, at) for m in range(memories) for at in ("below", "above")}
        self.known: dict[object, frozenset[Element]] = {}
        self._walk()

    # loops and ranges -------------------------------------------------------------------------------------------------

    def _is_inside(self, loop: Loop, m: int, at: str) -> bool:
        """Whether a loop is part of the tile that memory m holds (`at` is "above") or sends down at once ("below")."""
        if loop.is_lane:
            return loop.level <= m
        return loop.level < m or (at == "above" and loop.level == m)

    def ranges(self, dimension: str, values: Mapping[int, int], inside: set[int]) -> range:
        """Iterations of a dimension in a tile; `values` has the values of the outer loops, by position in the nest."""
        size = Fraction(1)
        strides: list[tuple[int, Loop, Fraction]] = []
        tile = Fraction(1)
        for i, loop in enumerate(self.nest):
            if loop.dimension == dimension:
                strides.append((i, loop, size))
                size *= loop.factor
                if i in inside:
                    tile *= loop.factor
        assert size == self.layer.size_of[dimension], (dimension, size)
        start, end = Fraction(0), size
        for i, loop, stride in reversed(strides):
            if i not in inside:
                end = min(end, start + loop.factor * stride)  # a pass over lanes ends where the next one begins
                start += values[i] * stride
        return range(math.ceil(start), math.ceil(min(end, start + tile)))

    def elements(self, m: int, at: str, values: Mapping[int, int]) -> frozenset[Element]:
        """The elements of one tile."""
        inside = {i for i, loop in enumerate(self.nest) if self._is_inside(loop, m, at)}
        key = (m, at, tuple(v for i, v in sorted(values.items()) if i not in inside))
        if key not in self.known:
            names = sorted(self.indexing)
            spans = [self.ranges(name, values, inside) for name in names]
            found = set()
            for point in itertools.product(*spans):
                index = dict(zip(names, point, strict=True))
                found.add(tuple(sum(c * index.get(d, 0) for d, c in axis) for axis in self.axes))
            self.known[key] = frozenset(found)
        return self.known[key]

    def _copies(self, m: int, at: str) -> Fraction:
        """Average number of memories m side by side that hold equal data."""
        outside = (loop for loop in self.nest if loop.is_lane and not self._is_inside(loop, m, at))
        return math.prod((x.factor for x in outside if x.dimension not in self.indexing), start=Fraction(1))

    def _like_this(self, lane: Mapping[int, int], direction: str) -> Fraction:
        """Weight of a lane. With a fractional number of lanes, the first lane stands for all, and the others have 0."""
        weight = Fraction(1)
        for i, value in lane.items():
            loop = self.nest[i]
            comes_back = self.is_output and direction in ("tl", "fh")
            if loop.factor.denominator > 1 and not (comes_back and loop.dimension in self.in_windows):
                weight *= loop.factor if value == 0 else 0
        return weight

    def _values(self, places: Sequence[int]) -> Iterator[dict[int, int]]:
        """All values of some loops; the outermost loop varies slowest."""
        backwards = list(reversed(places))
        for values in itertools.product(*(range(self.nest[i].count) for i in backwards)):
            yield dict(zip(backwards, values, strict=True))

    # the walk ---------------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Walk through time. `held` has the tiles in each memory's instances, `_sums` the outputs of these tiles."""
        flat = [i for i, loop in enumerate(self.nest) if not loop.is_lane]
        lanes = {m: self._lanes_above(m) for m in range(self.memories + 1)}
        key_of = {
            m: [i for i in flat if self.nest[i].level >= m and self.nest[i].dimension in self.indexing]
            for m in range(self.memories)
        }
        if self.is_output:
            self._sums: list[dict[tuple[int, ...], set[Element]]] = [{} for _ in range(self.memories)]
            self._sums[-1] = {tuple(v.values()): set() for v in lanes[self.memories - 1]}
        held: dict[int, dict[int, int]] = {}
        keys: dict[int, tuple[int, ...]] = {}
        for now in self._values(flat):
            changed = [m for m in key_of if keys.get(m) != tuple(now[i] for i in key_of[m])]
            # key_of[m] are the loops from memory m on: what memory m - 1, or the array, has at a time.
            top = max(changed, default=-1)
            for m in range(top + 1):
                if m in held and (m > 0 or not self.is_output):
                    self._leave(m, held[m], lanes)
            for m in range(top, -1, -1):
                keys[m], held[m] = tuple(now[i] for i in key_of[m]), now
                if m > 0 or not self.is_output:
                    self._enter(m, now, lanes)
            if self.is_output:  # every operation hands its result up
                self._enter(0, now, lanes)
                self._leave(0, now, lanes)
        for m in range(self.memories):
            if m > 0 or not self.is_output:
                self._leave(m, held.get(m, {}), lanes)

    def _lanes_above(self, m: int) -> list[dict[int, int]]:
        """Values of the lanes that distinguish instances of memory m with different data."""
        places = [
            i for i, loop in enumerate(self.nest) if loop.is_lane and loop.level > m and loop.dimension in self.indexing
        ]
        return list(self._values(places))

    def _name(self, lane: Mapping[int, int], m: int) -> tuple[int, ...]:
        """Name of the instance of memory m to which a lane belongs."""
        return tuple(value for i, value in lane.items() if self.nest[i].level > m)

    def _enter(self, m: int, now: dict[int, int], lanes: Mapping[int, list[dict[int, int]]]) -> None:
        """Move data down over the links between memory m and the level below it."""
        moved = []
        for lane in lanes[m]:
            tile = self.elements(m, "below", now | lane)
            here = tile & self._sums[m][self._name(lane, m)] if self.is_output else tile
            moved.append((len(here), self._like_this(lane, "tl")))
        self._count(m, "tl", moved)
        if m == 0:
            return
        moved = []
        for lane in lanes[m - 1]:
            here = self.elements(m - 1, "above", now | lane)
            if self.is_output:
                here &= self._sums[m][self._name(lane, m)]
                self._sums[m - 1][self._name(lane, m - 1)] = set(here)
            moved.append((len(here), self._like_this(lane, "fh")))
        self._count(m - 1, "fh", moved)

    def _leave(self, m: int, then: dict[int, int], lanes: Mapping[int, list[dict[int, int]]]) -> None:
        """Move outputs up over the links below memory m; sums that meet on the way are one element."""
        if not self.is_output or (m > 0 and not then and any(not loop.is_lane for loop in self.nest)):
            return
        arriving, moved = [], []
        for lane in lanes[m]:
            tile = self.elements(m, "below", then | lane)
            arriving.append((self._name(lane, m), tile))
            moved.append((len(tile), self._like_this(lane, "fl")))
            self._touch(m, "fl", tile, self._place(m, "below", then, lane))
            self.seen |= tile
        self._count(m, "fl", moved)
        if m > 0:
            moved = []
            for lane in lanes[m - 1]:
                tile = self.elements(m - 1, "above", then | lane)
                moved.append((len(tile), self._like_this(lane, "th")))
                self._touch(m - 1, "th", tile, self._place(m - 1, "above", then, lane))
            self._count(m - 1, "th", moved)
        for name, tile in arriving:
            self._sums[m][name] |= tile

    def _place(self, m: int, at: str, then: Mapping[int, int], lane: Mapping[int, int]) -> object:
        """Identity of a tile of a link, without the loops that do not index the operand."""
        values = {**{i: v for i, v in then.items() if self.nest[i].dimension in self.indexing}, **lane}
        return tuple(sorted((i, v) for i, v in values.items() if not self._is_inside(self.nest[i], m, at)))

    def _touch(self, m: int, direction: str, tile: frozenset[Element], place: object) -> None:
        """Note whether an element is in two tiles of a link: then something is added to it after it has moved."""
        known = self.touched_by.setdefault((m, direction), {})
        for element in tile:
            if known.setdefault(element, place) != place:
                self.added_later.add((m, direction))

    def _count(self, m: int, direction: str, moved: Sequence[tuple[int, Fraction]]) -> None:
        """Count one transfer of each instance, given as (elements, lanes for which it stands)."""
        at = "below" if direction in ("tl", "fl") else "above"
        row = self.moved.setdefault((m, direction), {})
        for elements, weight in moved:
            row[elements] = row.get(elements, Fraction(0)) + self.copies[m, at] * weight
        most = max((elements for elements, weight in moved if weight), default=0)
        self.most[m, direction] = max(most, self.most.get((m, direction), 0))
        self.times[m, direction] = self.times.get((m, direction), 0) + (most > 0)

    # what came out ----------------------------------------------------------------------------------------------------

    def _width(self, m: int, direction: str) -> int:
        """Bits of an element on a link."""
        if not self.is_output or direction in ("tl", "fh"):
            return self.sum_bits
        at = "below" if direction == "fl" else "above"
        outside = [loop for loop in self.nest if not self._is_inside(loop, m, at)]
        later = any(loop.factor > 1 and loop.dimension not in self.indexing for loop in outside)
        return self.sum_bits if later or (m, direction) in self.added_later else self.final_bits

    def links_of(self, m: int) -> dict[str, Link]:
        """The links of one memory."""
        found = {}
        for direction in ("tl", "fl", "th", "fh"):
            moved = self.moved.get((m, direction), {})
            if any(elements for elements in moved):
                bits = self._width(m, direction)
                found[direction] = Link(
                    elements=sum((n * times for n, times in moved.items()), start=Fraction(0)),
                    most_elements=self.most[m, direction],
                    transfers=self.times[m, direction] if bits else 0,
                    bits=bits,
                )
        return found
