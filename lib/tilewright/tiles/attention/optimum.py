"""Search for the best plan of an attention: a best-first search over all plans, with lower bounds that become tighter
as layers are searched.

A plan consists of parts: copies, and layers of tiles. The bound of a plan is the sum over its parts. A copy counts with
its cost. A layer of a tile counts with its cost if its mapping has been searched; otherwise it counts with a lower
bound of its cost (its floor). If all layers of a plan have been searched, the bound is the cost of the plan.

The plan with the least bound is refined first: among its layers that have not been searched, the one with the most
cycles is searched. The search ends when no bound is below the value of the best known plan.

The floor of a layer of a tile is a lower bound of its cost over all mappings (docs/tiles/optimal-attention.md, "The
bounds").
"""

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from tilewright.base.objectives import OBJECTIVES
from tilewright.base.proof import ROUNDING, BoundedValue
from tilewright.hardware.core import DIRECTIONS, FH, FL, TH, TL, Core
from tilewright.hardware.hierarchy import instance_count, memory_hierarchy
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.spatial_space import passes_of
from tilewright.tiles.attention.costs import AttentionCosts
from tilewright.tiles.attention.program import CopyProblem, PlanPart, PlanProgram, TileLayerProblem
from tilewright.tiles.attention.shape import tile_layer
from tilewright.tiles.attention.space import AttentionPlan, AttentionSpace, Sizes
from tilewright.tiles.depth_first.stack_cost import Ledger
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer


def floor(costs: AttentionCosts, problem: TileLayerProblem) -> tuple[float, float]:
    """Lower bounds (energy in pJ, latency in cycles) over all mappings of a layer of a tile.

    The energy includes all operations. The energy also includes one transfer of each element of a tensor over each
    boundary between the array and the memory of the tensor. The latency is the larger of two numbers: the least cycles
    of the array, and the busy time of the busiest port.
    """
    template = costs.attention.templates()[problem.layer]
    layer = tile_layer(template, problem.layer, costs.attention.shape, problem.tile)
    given, core = costs.constraints(problem.layer), costs.core
    energy = layer.mac_count * core.operational_array.unit_energy_pj
    busy: dict[tuple[int, int], float] = {}
    links = dict(given.memory_operand_links)
    for operand, outermost in problem.reach:
        bits = _elements(layer, operand) * _least_bits(layer, operand)
        for memory, direction in _crossings(core, links[operand], outermost, operand == OUTPUT):
            held = core.memories[memory]
            place = held.port_of.get((links[operand], DIRECTIONS[direction]))
            if place is None:  # without a port, the cost of this crossing is not known
                continue
            words = bits / held.ports[place].bandwidth_max_bits
            energy += words * (held.read_energy_pj if direction in (TL, TH) else held.write_energy_pj)
            if instance_count(core, memory) == 1:
                busy[memory, place] = busy.get((memory, place), 0.0) + words
    cycles = max(_passes(layer, core, given), max(busy.values(), default=0.0))
    return energy * (1 - ROUNDING), cycles * (1 - ROUNDING)


def _elements(layer: Layer, operand: str) -> int:
    return math.prod(layer.size_of[dimension] for dimension in dict(layer.operand_dimensions)[operand])


def _least_bits(layer: Layer, operand: str) -> int:
    """Least number of bits of one element of an operand. For the output, the result is the smaller of two numbers: the
    bits of a partial sum, and the bits of a final result.
    """
    return min(layer.bits_of[operand], layer.bits_of[FINAL_OUTPUT]) if operand == OUTPUT else layer.bits_of[operand]


@lru_cache(maxsize=4096)
def _crossings(core: Core, operand: str, outermost: int, is_output: bool) -> tuple[tuple[int, int], ...]:
    """Pairs (memory, direction), one for each access of an element on its way between the array and the memory
    `outermost`.
    """
    chain = memory_hierarchy(core).memories_of(operand)
    chain = chain[: chain.index(outermost) + 1]
    if is_output:
        return tuple([(k, FL) for k in chain] + [(k, TH) for k in chain[:-1]])
    return tuple([(k, TL) for k in chain] + [(k, FH) for k in chain[:-1]])


def _passes(layer: Layer, core: Core, given: MappingConstraints) -> int:
    """Lower bound of the number of cycles in which the array computes the layer.

    If the mapping file fixes the unrolled loops on all sides of the array, the bound follows from these loops.
    Otherwise, the bound is the number of multiply-accumulates divided by the number of units of the array, rounded up.
    """
    sides = {name for name, _ in core.operational_array.dimensions}
    if {name for name, _ in given.spatial_mapping} != sides:
        return math.ceil(layer.mac_count / core.operational_array.unit_count)
    return passes_of(layer, given.spatial_mapping)


@dataclass
class Bounds:
    """Lower bounds of plans. The bound of a plan is a sum over its parts. A part is a layer of a tile, or a copy of
    data from one memory to another. Each copy, and each layer in `searched`, adds its cost. Each other layer adds a
    lower bound of its cost (`floor`).
    """

    costs: AttentionCosts
    searched: dict[TileLayerProblem, tuple[float, float] | None] = field(default_factory=dict)
    """Costs (energy in pJ, latency in cycles) of searched layers; None if no mapping fits."""
    _floors: dict[TileLayerProblem, tuple[float, float]] = field(default_factory=dict)
    _copies: dict[CopyProblem, tuple[float, float]] = field(default_factory=dict)

    def of_part(self, problem: TileLayerProblem | CopyProblem) -> tuple[float, float]:
        """Lower bounds (energy in pJ, latency in cycles) of a part of a plan; infinite if no mapping fits the part."""
        if isinstance(problem, CopyProblem):
            if problem not in self._copies:
                ledger = self.costs.of_copy(problem)
                self._copies[problem] = (ledger.energy_pj, ledger.latency_cycles())
            return self._copies[problem]
        if problem in self.searched:
            return self.searched[problem] or (math.inf, math.inf)
        key = problem._replace(reserved=())
        if key not in self._floors:
            self._floors[key] = floor(self.costs, key)
        return self._floors[key]

    def of_program(self, program: PlanProgram) -> tuple[float, float]:
        """Lower bounds (energy in pJ, latency in cycles) of a plan; infinite if its tensors do not fit into their
        memories.
        """
        if not program.fits(self.costs.memories):
            return math.inf, math.inf
        energy = cycles = 0.0
        for problem, times in program.parts:
            one = self.of_part(problem)
            energy, cycles = energy + one[0] * times, cycles + one[1] * times
        return energy, cycles


@dataclass(frozen=True)
class AttentionOptimum(BoundedValue):
    """Best known way to run an attention: a fused plan or unfused execution. The lower bound limits how much better any
    other plan of the space can be.
    """

    costs: AttentionCosts
    sizes: Sizes
    plan: AttentionPlan | None
    """Best plan; None if unfused execution is best."""
    ledger: Ledger
    unfused: Ledger
    value: float
    """Value of the objective for the best plan or for unfused execution, whichever is better."""
    lower_bound: float
    """Lower bound of the objective, up to rounding. The bound covers all plans of the space and unfused execution."""
    plans_in_space: int
    searched: dict[TileLayerProblem, tuple[float, float] | None]
    """Costs (energy in pJ, latency in cycles) of the searched layers of tiles, in the order of the search; None for a
    layer if no mapping fits.
    """


def find_optimum(
    costs: AttentionCosts,
    sizes: Sizes,
    time_budget_s: float = math.inf,
    advance: Callable[[int], None] = lambda _: None,
) -> AttentionOptimum:
    """Best plan of the space, or unfused execution if no plan is better.

    After `time_budget_s` seconds, the result is the best plan found so far. Raises InputError if the costs of the
    attention cannot be computed. Raises MappingError if no mapping fits for a layer of the network.
    """
    costs.check()
    unfused = costs.unfused()
    powers = OBJECTIVES[costs.options.objective]
    best, value = None, powers.value(unfused.energy_pj, unfused.latency_cycles())
    bounds = Bounds(costs)
    plans = list(AttentionSpace(costs.attention.shape, costs.memories, sizes).plans())
    heap = []
    for place, plan in enumerate(plans):
        bound = powers.value(*bounds.of_program(costs.program(plan)))
        if bound < value:
            heap.append((bound, place))
    heapq.heapify(heap)
    is_late, stop = False, time.monotonic() + time_budget_s
    while heap and heap[0][0] < value * (1 - ROUNDING) and not is_late:
        bound, place = heap[0]
        program = costs.program(plans[place])
        now = powers.value(*bounds.of_program(program))
        missing = [part for part in program.parts if _is_open(part, bounds)]
        if now > bound * (1 + ROUNDING) and (missing or now >= value):
            heapq.heapreplace(heap, (now, place))
        elif missing:
            problem = max(missing, key=lambda part: _weight(part, bounds)).problem
            assert isinstance(problem, TileLayerProblem)
            ledger = costs.of_layer(problem)
            bounds.searched[problem] = None if ledger is None else (ledger.energy_pj, ledger.latency_cycles())
            advance(1)
        else:
            heapq.heappop(heap)
            if now < value:
                best, value = plans[place], now
        is_late = time.monotonic() > stop
    lower = min([value, *[bound for bound, _ in heap[:1]]])
    ledger = unfused if best is None else costs.of_plan(best)
    assert ledger is not None
    return AttentionOptimum(costs, sizes, best, ledger, unfused, value, lower, len(plans) + 1, bounds.searched)


def _is_open(part: PlanPart, bounds: Bounds) -> bool:
    return isinstance(part.problem, TileLayerProblem) and part.problem not in bounds.searched


def _weight(part: PlanPart, bounds: Bounds) -> float:
    """Lower bound of the cycles that all runs of a part of a plan take together. The search refines the part with the
    largest bound next.
    """
    return bounds.of_part(part.problem)[1] * part.times
