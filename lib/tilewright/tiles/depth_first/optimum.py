"""Best depth-first schedule of a chain over all tile sizes, modes and cuts, with a proof that no schedule of the space
is better (docs/tiles/optimal-depth-first.md).

Lower bounds are computed for all tile sizes of a stack together. These bounds exclude tile sizes that cannot be part of
a schedule better than the best known schedule. The costs of the other tile sizes are computed, the most promising size
first, until each tile size has a cost or is excluded.
"""

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.proof import ROUNDING
from tilewright.tiles.depth_first.bounds import StackBounds, check_boundable, quick_bounds, stack_bounds, stack_floor
from tilewright.tiles.depth_first.certificate import Costed, DepthFirstSpace, Layers, Optimum, Unmappable
from tilewright.tiles.depth_first.options import TileOptions
from tilewright.tiles.depth_first.schedule import DepthFirstSchedule, ScheduledStack
from tilewright.tiles.depth_first.stack_cost import StackModel

FIRST_TILES = 64
"""Size of the first batch: the number of tile sizes whose quick bounds are refined first. Each further batch has twice
as many tile sizes as the batch before it.
"""
TILES_COSTED_AHEAD = 12
"""Largest number of tile sizes, for each mode, whose cost is computed before all bounds are known. Costs are computed
so early only for the stack of the whole chain."""


@dataclass(frozen=True)
class _Stream:
    """Tile sizes of a stack in one mode, the most promising size first. A size is included only if a schedule with this
    size could be better than the best known schedule.

    The attributes are arrays with one entry for each tile size. The index of an entry is called `place`.
    """

    bound: np.ndarray
    """Lower bounds of the objective, one for each tile size. The bound of a tile size holds for all schedules that
    contain the stack in tiles of this size.

    The bound of a schedule also contains bounds of its other stacks: those that were known when this object was made.
    """
    energy_pj: np.ndarray
    """Lower bound of the energy of the stack in pJ, for each tile size."""
    latency_cycles: np.ndarray
    """Lower bound of the latency of the stack in cycles, for each tile size."""
    tile: np.ndarray
    """Tile sizes, as an array [place, 2]. Each row has the width and the height of one tile size."""


def _merged(streams: list[_Stream], value: float) -> _Stream:
    """Stream of the tile sizes in `streams` with a bound below `value`. The tile sizes are sorted by rising bound."""
    empty = _Stream(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 2), int))
    all_of = [empty, *streams]
    bound = np.concatenate([one.bound for one in all_of])
    tile = np.concatenate([one.tile for one in all_of])
    (left,) = np.nonzero(bound < value * (1 - ROUNDING))
    order = left[np.lexsort((tile[left, 1], tile[left, 0], bound[left]))]
    energy = np.concatenate([one.energy_pj for one in all_of])
    cycles = np.concatenate([one.latency_cycles for one in all_of])
    return _Stream(bound[order], energy[order], cycles[order], tile[order])


@dataclass
class _Search:
    """Branch and bound over the stacks of a chain."""

    model: StackModel
    space: DepthFirstSpace
    objective: str
    costed: list[Costed] = field(default_factory=list)
    bounded: list[Layers] = field(default_factory=list)
    unmappable: list[Unmappable] = field(default_factory=list)
    reason: MappingError | None = None
    """Error for the first stack in `unmappable`. The error says why no mapping fits."""
    best: tuple[Costed, ...] = ()
    value: float = math.inf
    is_interrupted: bool = False
    _floors: dict[Layers, tuple[float, float]] = field(default_factory=dict)
    _streams: dict[tuple[int, int, int], _Stream] = field(default_factory=dict)
    _fronts: dict[Layers, list[Costed]] = field(default_factory=dict)
    _heap: list[tuple[float, int, int, int, int]] = field(default_factory=list)
    """Heap of tuples (bound, first layer, last layer, mode, place). The bound holds for all schedules that contain the
    stack with this tile size; `place` is the index of the tile size in the stream of the mode.

    The mode is -1 for a stack whose tile sizes are not bounded yet.
    """

    @property
    def _count(self) -> int:
        return len(self.model.chain.layers)

    def run(self, seconds: float, advance: Callable[[int], None]) -> float:
        """Search until the best schedule is proven, `seconds` have passed, or Ctrl-C ends the search. Returns a lower
        bound of the objective over all schedules."""
        end = time.monotonic() + seconds
        stacks = [(first, last) for first in range(self._count) for last in range(first, self._count)]
        self._floors = {layers: stack_floor(self.model.chain, *layers) for layers in stacks}
        for layer in range(self._count):
            whole = tuple([self.space.sizes(axis, self._size(layer, axis))[-1] for axis in (0, 1)])
            self._cost((layer, layer), self.space.modes[0], (int(whole[0]), int(whole[1])))
            advance(1)
        for layers in stacks:
            self._push(layers, -1, 0)
        try:
            if self._count > 1:  # the whole chain first: a good schedule early saves most of the bounds
                self._open((0, self._count - 1))
            while self._heap and self._heap[0][0] < self.value * (1 - ROUNDING) and time.monotonic() <= end:
                self._look(advance)
        except KeyboardInterrupt:
            self.is_interrupted = True
        return min(self.value, self._heap[0][0]) if self._heap else self.value

    def _look(self, advance: Callable[[int], None]) -> None:
        """Refine the entry of the heap with the least bound. The entry leaves the heap only after it is refined.

        If the bounds of other stacks have improved, the bound of the entry is raised, and nothing else happens.
        Otherwise, there are two cases. An entry without a tile size is replaced by bounds for all tile sizes of its
        stack. For an entry with a tile size, the cost of the stack is computed, and the next tile size of the stream
        gets an entry.
        """
        known, first, last, mode, place = self._heap[0]
        bound = self._bound((first, last), mode, place)
        if bound > known:  # the bounds of other stacks have improved since the entry was added
            heapq.heapreplace(self._heap, (bound, first, last, mode, place))
            return
        if mode < 0 and (first, last) not in self.bounded:
            self._open((first, last))
        elif mode >= 0:
            x, y = self._streams[first, last, mode].tile[place].tolist()
            self._cost((first, last), self.space.modes[mode], (x, y))
            advance(1)
            self._push((first, last), mode, place + 1)
        self._heap.remove((known, first, last, mode, place))
        heapq.heapify(self._heap)

    def _push(self, layers: Layers, mode: int, place: int) -> None:
        """Add an entry for the stack `layers` to the heap. If `mode` is -1, the entry has no tile size. Otherwise, the
        entry has the tile size with index `place` in the stream (sorted list of tile sizes) of the stack in this mode.
        If the stream has no such index, no entry is added."""
        if mode < 0 or place < len(self._streams[(*layers, mode)].tile):
            heapq.heappush(self._heap, (self._bound(layers, mode, place), *layers, mode, place))

    def _bound(self, layers: Layers, mode: int, place: int) -> float:
        """Lower bound of the objective over all schedules that contain the stack `layers`.

        If `mode` is -1, the bound covers all modes and tile sizes of the stack. Otherwise, the bound covers one mode
        and one tile size: `mode` is the index of the mode, and `place` is the index of the tile size in the stream of
        the stack in this mode.
        """
        if mode < 0:
            return float(self._completed(layers, *self._floors[layers]))
        stream = self._streams[(*layers, mode)]
        if all(OBJECTIVES[self.objective]):
            return float(stream.bound[place])  # with better bounds of other stacks the tiles would be in another order
        return float(self._completed(layers, float(stream.energy_pj[place]), float(stream.latency_cycles[place])))

    def _size(self, layer: int, axis: int) -> int:
        return self.model.chain.layers[layer].window(axis).output_size

    def _completed(self, layers: Layers, energy_pj: Any, latency_cycles: Any) -> Any:
        """Lower bound of the objective over all schedules in which the stack `layers` has this energy and latency."""
        before, after = self._least(0, layers[0]), self._least(layers[1] + 1, self._count)
        powers = OBJECTIVES[self.objective]
        return powers.value(energy_pj + before[0] + after[0], latency_cycles + before[1] + after[1])

    def _least(self, start: int, end: int) -> tuple[float, float]:
        """Lower bounds (energy in pJ, latency in cycles) of the layers from `start` to `end` - 1."""
        least = [(math.inf, math.inf)] * (end - start + 1)
        least[0] = (0.0, 0.0)
        for stop in range(start + 1, end + 1):
            options = [
                (before[0] + floor[0], before[1] + floor[1])
                for first in range(start, stop)
                for before, floor in [(least[first - start], self._floors[first, stop - 1])]
            ]
            least[stop - start] = (min(e for e, _ in options), min(c for _, c in options))
        return least[-1]

    def _open(self, layers: Layers) -> None:
        """Compute bounds for all tile sizes of a stack. Make one stream per mode, with the tile sizes that can be part
        of a better schedule. Add the most promising tile size of each stream to the heap.
        """
        least = [(math.inf, math.inf)]
        for place, mode in enumerate(self.space.modes):
            self._streams[(*layers, place)] = stream = self._stream(layers, mode)
            if len(stream.bound):
                least.append((float(stream.energy_pj.min()), float(stream.latency_cycles.min())))
        floor = self._floors[layers]
        self._floors[layers] = (
            max(floor[0], min(energy for energy, _ in least)),
            max(floor[1], min(cycles for _, cycles in least)),
        )
        for place in range(len(self.space.modes)):
            self._push(layers, place, 0)
        self.bounded.append(layers)

    def _stream(self, layers: Layers, mode: str) -> _Stream:
        """Stream of a stack in one mode, with the tile sizes that can be part of a better schedule.

        Quick bounds order the tile sizes and exclude most of them. The bounds of the other tile sizes are refined in
        growing batches. If the stack is the whole chain, the cost of the most promising tile size is computed after
        each of the first TILES_COSTED_AHEAD batches, because a good schedule excludes most of the remaining tile sizes.
        """
        chain, is_all = self.model.chain, layers == (0, self._count - 1)
        sizes = (self.space.sizes(0, self._size(layers[1], 0)), self.space.sizes(1, self._size(layers[1], 1)))
        quick = quick_bounds(chain, *layers, mode, sizes)
        floor = self._floors[layers]
        energy, cycles = (
            np.maximum(quick.energy_pj.sum(axis=0), floor[0]),
            np.maximum(quick.latency_cycles.sum(axis=0), floor[1]),
        )
        values = self._completed(layers, energy, cycles) * (1 - ROUNDING)
        xs, ys = np.nonzero(values < self.value * (1 - ROUNDING))
        order = np.lexsort((ys, xs, values[xs, ys]))
        xs, ys, values = xs[order], ys[order], values[xs, ys][order]
        found: list[_Stream] = []
        start, many = 0, FIRST_TILES
        while start < len(xs) and values[start] < self.value * (1 - ROUNDING):
            x, y = xs[start : start + many], ys[start : start + many]
            tiles = np.stack([sizes[0][x], sizes[1][y]], axis=1)
            known = StackBounds(quick.energy_pj[:, x, y], quick.latency_cycles[:, x, y])
            one = self._bounded(layers, mode, tiles, known)
            if is_all and len(one.bound) and len(found) < TILES_COSTED_AHEAD:
                self._cost(layers, mode, (int(one.tile[0, 0]), int(one.tile[0, 1])))
            found.append(one)
            start, many = start + many, many * 2
        return _merged(found, self.value)

    def _bounded(self, layers: Layers, mode: str, tiles: np.ndarray, known: StackBounds) -> _Stream:
        """Stream of the tile sizes in `tiles` with which a schedule could be better than the best known schedule.
        `known` has bounds [layer, tile size] that were computed earlier.
        """
        powers, floor = OBJECTIVES[self.objective], self._floors[layers]

        def values(energy_pj: np.ndarray, latency_cycles: np.ndarray) -> np.ndarray:
            least = (np.maximum(energy_pj, floor[0]), np.maximum(latency_cycles, floor[1]))
            result: np.ndarray = self._completed(layers, *least) * (1 - ROUNDING)
            return result

        def excluded(energy_pj: np.ndarray, latency_cycles: np.ndarray) -> np.ndarray:
            result: np.ndarray = values(energy_pj, latency_cycles) >= self.value * (1 - ROUNDING)
            return result

        needs = (powers.energy, powers.latency)
        bounds = stack_bounds(self.model.chain, *layers, mode, tiles, known, excluded, needs)
        own = values(bounds.energy_pj, bounds.latency_cycles)
        return _merged([_Stream(own, bounds.energy_pj, bounds.latency_cycles, tiles)], self.value)

    def _cost(self, layers: Layers, mode: str, tile: tuple[int, int]) -> None:
        """Compute the cost of a stack with one tile size and mode. Update the best schedule."""
        try:
            ledger = self.model.cost(*layers, tile, mode)
        except MappingError as error:
            self.unmappable.append(Unmappable(layers, mode, tile))
            self.reason = self.reason or error
            return
        one = Costed(layers, mode, tile, ledger.energy_pj, ledger.latency_cycles())
        self.costed.append(one)
        front = self._fronts.setdefault(layers, [])
        if any(o.energy_pj <= one.energy_pj and o.latency_cycles <= one.latency_cycles for o in front):
            return
        worse = [o for o in front if one.energy_pj <= o.energy_pj and one.latency_cycles <= o.latency_cycles]
        self._fronts[layers] = [*[o for o in front if o not in worse], one]
        self._choose()

    def _choose(self) -> None:
        """Update the best schedule: the best combination of costed stacks."""
        powers = OBJECTIVES[self.objective]
        labels: list[list[tuple[float, float, tuple[Costed, ...]]]] = [[(0.0, 0.0, ())]]
        for stop in range(1, self._count + 1):
            found = [
                (energy + one.energy_pj, cycles + one.latency_cycles, (*parts, one))
                for first in range(stop)
                for energy, cycles, parts in labels[first]
                for one in self._fronts.get((first, stop - 1), [])
            ]
            labels.append(_front(found))
        for energy, cycles, parts in labels[-1]:
            value = float(powers.value(energy, cycles))
            if value < self.value:
                self.value, self.best = value, parts


def _front(found: list[tuple[float, float, tuple[Costed, ...]]]) -> list[tuple[float, float, tuple[Costed, ...]]]:
    """Pareto front, by energy and latency, of the schedules in `found`. Of equal schedules, the first is kept."""
    kept: list[tuple[float, float, tuple[Costed, ...]]] = []
    for label in sorted(found, key=lambda one: one[:2]):
        if not kept or label[1] < kept[-1][1]:
            kept.append(label)
    return kept


def find_optimum(
    model: StackModel,
    space: DepthFirstSpace,
    options: TileOptions,
    seconds: float = math.inf,
    advance: Callable[[int], None] = lambda _: None,
) -> Optimum:
    """Best schedule of a space, with a lower bound of the objective over all schedules of the space. If the search ends
    early, after `seconds` or by Ctrl-C, the result has the best schedule found so far.

    `options` gives the model profile and the objective. `advance` is called with 1 after steps of the search, to show
    progress. Raises InputError if the lower bounds are not proven for the chain, for its core, or for the model
    profile. Raises MappingError if every schedule that was tried has a layer for which no mapping fits.
    """
    check_boundable(model.chain, options.profile)
    search = _Search(model, space, options.objective)
    bound = search.run(seconds, advance)
    if not search.best and search.reason is not None:
        raise search.reason
    stacks = [
        ScheduledStack(*one.layers, one.mode, *one.tile, model.cost(*one.layers, one.tile, one.mode))
        for one in search.best
    ]
    schedule = DepthFirstSchedule(model.chain, model.reading, tuple(stacks))
    return Optimum(
        schedule,
        space,
        options.objective,
        search.value,
        min(bound, search.value),
        _schedules(model, space),
        tuple(search.bounded),
        tuple(search.costed),
        tuple(search.unmappable),
        search.is_interrupted,
    )


def _schedules(model: StackModel, space: DepthFirstSpace) -> int:
    """Number of schedules in the space.

    A schedule of the first n layers consists of a last stack, with any mode and tile size, and of a schedule of the
    layers before this stack.
    """
    layers = model.chain.layers
    counts: Sequence[int] = [1]
    for stop in range(1, len(layers) + 1):
        windows = layers[stop - 1]
        choices = len(space.modes)
        for axis in (0, 1):
            choices *= len(space.sizes(axis, windows.window(axis).output_size))
        counts = [*counts, sum(counts) * choices]
    return counts[-1]
