"""Search for the cores on which the parts of layers run.

The search schedules initial allocations (warm starts, and the cores of an earlier plan if there is one). Then it
improves the best allocation step by step.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.base.objectives import ranking
from tilewright.multicore.allocation.search import warm_starts
from tilewright.multicore.allocation.space import AllocationSpace
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.pipeline.stages.multi.run import MultiCoreProblem
from tilewright.plans.arrangements import Shape, arrangements
from tilewright.plans.detours import DetourSteps, Layers

LayerCores = tuple[tuple[int, ...], ...]
"""Core of each part of each layer, as a position in `accelerator.core_ids` (one tuple for each layer, with one entry
for each part).
"""
PartCores = tuple[int, ...]
"""Core of each part, one entry per part. Parts are numbered as in the allocation space."""
ALIKE_PROBABILITY = 0.4
"""Probability that a step which spreads the parts of a layer over cores treats several similar layers in the same way.
Similar layers have the same number of parts and the same allowed cores.
"""
DETOUR_PROBABILITY = 0.5
"""Probability that a step changes the detours instead of the cores, if the search may change both. A layer with a
detour moves its results through the off-chip memory.
"""
RECUT_PROBABILITY = 0.6
"""Probability that a step changes a recut layer. A layer is recut if its number of parts differs from its number of
parts in the earlier plan that gives the first cores of the search. All other steps can change any layer with a choice
of cores.
"""
SPREAD_STARTS = 5
"""Number of warm starts (initial allocations) that spread the work over cores. These warm starts come first. In each
further warm start, one core runs all parts that it is allowed to run.
"""


@dataclass(frozen=True)
class PlanFigures:
    """Latency and energy of a schedule."""

    latency_cycles: int
    energy_pj: float

    def rank(self, objective: str) -> tuple[float, ...]:
        """Sort key of the schedule for an objective; the schedule with the smaller key is better. The first number is
        the value of the objective. If the objective is the latency, the energy breaks ties. If the objective is the
        energy, the latency breaks ties.
        """
        return tuple(float(value) for value in ranking(objective, self.energy_pj, self.latency_cycles))


Judge = Callable[[PartCores, Layers], PlanFigures | None]
"""Function that schedules an allocation. Arguments: the core of each part, and the layers with detours. Result: latency
and energy, or None if there is no schedule.
"""


class SchedulingJudge:
    """Evaluator of the allocations of one problem, which runs the compiled scheduler."""

    def __init__(self, problem: MultiCoreProblem) -> None:
        self._scheduler = Scheduler(problem.assembled.problem, replace(problem.options, record=False))
        self._part_of_cn = problem.space.part_of_cn

    def __call__(self, cores: PartCores, by_off_chip: Layers) -> PlanFigures | None:
        """Latency and energy of an allocation; None if the allocation has no schedule."""
        try:
            found = self._scheduler(np.array(cores, np.int64)[self._part_of_cn], by_off_chip)
        except MappingError:
            return None
        return PlanFigures(found.latency_cycles, found.energy_pj)

    def recorded(self, cores: PartCores, by_off_chip: Layers) -> Schedule:
        """Schedule of an allocation, with the logs of the scheduler. `by_off_chip` has the layers with detours through
        the off-chip memory. Raises MappingError if the allocation has no schedule.
        """
        return self._scheduler(np.array(cores, np.int64)[self._part_of_cn], by_off_chip, record=True)


def starts(space: AllocationSpace, known: LayerCores | None, thorough: bool) -> Iterator[PartCores]:
    """Initial allocations of a search. A warm start is an initial allocation that does not depend on an earlier plan.

    If `known` (the cores of a similar plan) is given, the first three allocations are made from these cores, and one
    warm start follows. If `known` is None, the allocations are the first SPREAD_STARTS warm starts. With `thorough`,
    all warm starts are included in both cases.
    """
    spread = [space.part_cores(genome) for genome in warm_starts(space)]
    if known is not None:
        balanced = _balanced_start(spread)
        for other in (None, balanced, spread[-1]):
            yield handed_on(space, known, other)
        if not thorough:
            yield balanced
            return
    yield from spread if thorough else spread[:SPREAD_STARTS]


def _balanced_start(spread: Sequence[PartCores]) -> PartCores:
    return spread[min(2, len(spread) - 1)]


def handed_on(space: AllocationSpace, known: LayerCores, other: PartCores | None) -> PartCores:
    """Allocation made from the cores `known` of an earlier plan. Each part of a layer has a counterpart in the earlier
    plan: the part at the same relative position in the layer.

    If `other` is None, a part takes the core of its counterpart. If this core is not allowed, the part takes its first
    allowed core.

    If `other` (an allocation) is given, a part takes the core of its counterpart only under three conditions. The core
    is allowed. The earlier plan cuts the layer into several parts. The present and the earlier number of parts are
    equal, or one is a multiple of the other. In all other cases, the part takes its core in `other`.
    """
    counts = _part_counts(space)
    found = []
    for part, (layer, group) in enumerate(space.parts):
        before = known[layer] if layer < len(known) else ()
        core = before[group * len(before) // counts[layer]] if before else -1
        is_like = len(before) % counts[layer] == 0 or counts[layer] % max(len(before), 1) == 0
        stays = other is None or (is_like and len(before) > 1)
        instead = space.choices[part][0] if other is None else other[part]
        found.append(core if stays and core in space.choices[part] else instead)
    return tuple(found)


def recut_parts(space: AllocationSpace, known: LayerCores | None) -> tuple[int, ...]:
    """Positions in `space.parts` of the parts of recut layers. Only parts with several allowed cores are included. A
    layer is recut if its number of parts differs from its number of parts in `known` (the cores of an earlier plan).
    The result is () if `known` is None.
    """
    if known is None:
        return ()
    counts = _part_counts(space)
    return tuple(part for part in space.flexible if len(known[layer := space.parts[part][0]]) != counts[layer])


def _part_counts(space: AllocationSpace) -> Counter[int]:
    """Number of parts of each layer, by layer."""
    return Counter(layer for layer, _ in space.parts)


def layer_cores(space: AllocationSpace, cores: PartCores, layers: int) -> LayerCores:
    """Core of each part of each layer: `cores`, with the parts grouped by layer. `layers` is the number of layers."""
    found: list[list[int]] = [[] for _ in range(layers)]
    for (layer, _), core in zip(space.parts, cores, strict=True):
        found[layer].append(core)
    return tuple(map(tuple, found))


@dataclass(frozen=True)
class CutParts:
    """Data that the search for cores needs about one plan. A plan can divide a layer into parts; each part runs on one
    core.
    """

    recut: Sequence[int]
    """Indexes of the parts of recut layers. Only parts with several allowed cores are included. A layer is recut if it
    has another number of parts than in the earlier plan. The search starts from the cores of this earlier plan.
    """
    shapes: Mapping[int, Shape]
    """Number of parts along each loop that is split between cores, by position of the layer."""


class CoreSearch:
    """Search for the cores of one plan, step by step. No allocation is scheduled twice with the same detours."""

    def __init__(
        self,
        space: AllocationSpace,
        judge: Judge,
        objective: str,
        draw: random.Random,
        by_off_chip: Layers = (),
        parts: CutParts | None = None,
    ) -> None:
        self.space, self.objective, self._judge, self._draw = space, objective, judge, draw
        self._recut, self._shapes = (parts.recut, parts.shapes) if parts else ((), {})
        self.best: PartCores | None = None
        self.by_off_chip = by_off_chip
        self.figures: PlanFigures | None = None
        self._known: set[tuple[PartCores, Layers]] = set()
        self._parts_of: dict[int, list[int]] = {}
        for part in space.flexible:
            self._parts_of.setdefault(space.parts[part][0], []).append(part)

    @property
    def evaluations(self) -> int:
        """Number of pairs (allocation, detours) for which a schedule was tried."""
        return len(self._known)

    def look_at(self, cores: PartCores, by_off_chip: Layers | None = None) -> bool:
        """Schedule an allocation, and keep it if it is the best so far. Returns True if it was kept. `by_off_chip` has
        the layers with detours through the off-chip memory; None stands for the detours of the best allocation.
        """
        detours = self.by_off_chip if by_off_chip is None else by_off_chip
        if (cores, detours) in self._known:
            return False
        self._known.add((cores, detours))
        found = self._judge(cores, detours)
        if found is None:
            return False
        if self.figures is not None and found.rank(self.objective) >= self.figures.rank(self.objective):
            return False
        self.best, self.by_off_chip, self.figures = cores, detours, found
        return True

    def improve(self, tries: int, is_over: Callable[[], bool], detours: DetourSteps | None = None) -> None:
        """Try `tries` neighbours of the best allocation. With `detours`, some neighbours have other detours instead of
        other cores. A layer has a detour if its results go through the off-chip memory. The search stops when `is_over`
        returns True.
        """
        if self.best is None or not (self.space.flexible or detours):
            return
        for _ in range(tries):
            if is_over():
                return
            if detours and (not self.space.flexible or self._draw.random() < DETOUR_PROBABILITY):
                self.look_at(self.best, detours.next(self._draw, self.by_off_chip))
            else:
                self.look_at(self._neighbour(self.best))

    def _neighbour(self, cores: PartCores) -> PartCores:
        """Neighbour of an allocation, made by one of four changes.

        (1) One part moves to another core. (2) Two parts of a layer exchange their cores. (3) Each part of a layer
        takes the core of the part before it. (4) The parts of one layer, or of several similar layers, are spread over
        the cores again.
        """
        draw, changed = self._draw, list(cores)
        is_recut = self._recut and draw.random() < RECUT_PROBABILITY
        part = draw.choice(self._recut if is_recut else self.space.flexible)
        layer = self.space.parts[part][0]
        members = self._parts_of[layer]
        kind = draw.random()
        if kind < 0.35:
            changed[part] = draw.choice([core for core in self.space.choices[part] if core != cores[part]])
        elif kind < 0.45:
            other = draw.choice(members)
            if cores[other] in self.space.choices[part] and cores[part] in self.space.choices[other]:
                changed[part], changed[other] = cores[other], cores[part]
        elif kind < 0.55:
            for place, member in enumerate(members):
                core = cores[members[place - 1]]
                if core in self.space.choices[member]:
                    changed[member] = core
        else:
            self._spread(changed, part)
        return tuple(changed)

    def _spread(self, cores: list[int], part: int) -> None:
        """Spread the parts of a layer over some of its allowed cores: the fastest cores, or random cores.

        Parts go to the cores round-robin, or consecutive parts share a core. If several loops cut the layer, one of the
        results of `arrangements` is drawn. Sometimes, later layers with the same number of parts and the same cores are
        spread in the same way; this choice is random.
        """
        draw, choices = self._draw, self.space.choices[part]
        layer = self.space.parts[part][0]
        layers = [layer]
        if draw.random() < ALIKE_PROBABILITY:
            alike = [
                other
                for other, its_parts in self._parts_of.items()
                if len(its_parts) == len(self._parts_of[layer]) and self.space.choices[its_parts[0]] == choices
            ]
            place = alike.index(layer)
            layers = alike[place : place + draw.choice((2, 3, 4, len(alike)))]
        count = draw.randint(1, len(choices))
        ordered = sorted(choices, key=lambda core: (int(self.space.runtime_cycles[part, core]), draw.random()))
        chosen = ordered[:count] if draw.random() < 0.7 else draw.sample(choices, count)
        parts, shape = len(self._parts_of[layer]), self._shapes.get(layer, ())
        if len(shape) > 1 and math.prod(shape) == parts:
            places = draw.choice(arrangements(shape, min(count, parts)))
        elif draw.random() < 0.3:
            places = tuple(place * count // parts for place in range(parts))
        else:
            places = tuple(place % count for place in range(parts))
        for other in layers:
            for place, member in zip(places, self._parts_of[other], strict=True):
                if chosen[place] in self.space.choices[member]:
                    cores[member] = chosen[place]
