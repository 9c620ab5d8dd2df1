"""Searches for fusion plans of the designs of a space, block by block.

A block has consecutive designs, which are searched one after another. Designs with the least lower bounds come first. A
search starts from the plans of the nearest designs among the earlier designs of the block. At the end, each design is
searched once more, from its own plan and from the plans of later designs. A design is skipped if an earlier design of
the block has results that dominate the lower bounds of the skipped design. The results of a block do not depend on
other blocks, and therefore not on shards and processes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES, energy_delay_product
from tilewright.designs.clocks import latency_s
from tilewright.designs.columns import DROPPED_BY, SCHEDULES, START_DESIGN
from tilewright.designs.design_cost import DesignCost
from tilewright.designs.design_evaluator import DesignEvaluator, accelerator_of
from tilewright.designs.evaluate_system import schedule_cost
from tilewright.designs.plan_gaps import bound_columns, gap_columns
from tilewright.designs.results import DROPPED, ENERGY, INVALID, OK
from tilewright.designs.space import Design, FusedSystemOptions, Space
from tilewright.hardware.static_power import system_clock_period_ns
from tilewright.hardware.system import MultiCoreAccelerator, system_area
from tilewright.mapping.source import MappingSource
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import MODEL, system_problem
from tilewright.pipeline.stages.multi.plan_search import PLAN_ENGINES, FoundPlan, PlanBounds, PlanCall
from tilewright.pipeline.stages.preflight.network import preflight
from tilewright.workload.graph import Workload

STARTS = 4
"""Largest number of earlier designs from whose plans a search starts. The nearest designs are taken."""
LIKE = 1.05
"""Factor by which start plans may be worse than the plans of the nearest designs. Plans are compared by the ratio of
the objective to the lower bound of the design. If the least ratio of the start plans is above LIKE times the least
ratio of the nearest designs, the search also takes its usual first steps (`Opening`).
"""
RETURN_SHARE = 0.25
"""Share of a design's plans and schedules that is reserved for its second search. The second search starts from plans
of designs that were searched later.
"""
NETWORK_MODEL = MODEL
"""Name of the model profile with which networks for designs with several cores are read."""


class FusedEvaluator(DesignEvaluator):
    """Evaluator of one network on designs with several cores, which searches a plan for each design."""

    def __init__(self, network: Workload, mapping: MappingSource | None, options: FusedSystemOptions) -> None:
        super().__init__(network, mapping)
        self._options = options.of_search
        self._engine = PLAN_ENGINES[options.fusion]()

    def call(self, accelerator: MultiCoreAccelerator) -> PlanCall:
        """Search object that finds a plan for the network on a design. Raises InputError if the design is not valid for
        the network.
        """
        given = Descriptions(mapping=self.mapping, accelerator=accelerator, network=self.network)
        problem = system_problem(given)
        wrong = preflight(problem, TilingOptions(), ()).problems
        if wrong:
            raise InputError(wrong)
        return self._engine.call(problem, self._options)

    def evaluated(self, accelerator: MultiCoreAccelerator) -> DesignCost:
        """Costs of the plan that a search without a start plan finds."""
        call = self.call(accelerator)
        return plan_cost(call.found(), call.bounds(), accelerator)


def plan_cost(found: FoundPlan, bounds: PlanBounds, accelerator: MultiCoreAccelerator, start: str = "") -> DesignCost:
    """Costs of a plan on a design, with the gaps to the lower bounds. `start` is the name of the design whose plan was
    the start of the search; '' if there is none.
    """
    cost = schedule_cost(found.artifact, found.costs, accelerator)
    said = bound_columns(bounds.energy_pj, bounds.latency_cycles)
    said |= gap_columns(said, _measures(cost)) | {SCHEDULES: float(found.schedules)}
    return replace(cost, further={**cost.further, **said}, texts={**cost.texts, START_DESIGN: start, DROPPED_BY: ""})


@dataclass(eq=False)
class _Candidate:
    """Design of a block, with its lower bounds and its known costs."""

    design: Design
    name: str
    positions: tuple[int, ...]
    accelerator: MultiCoreAccelerator | None = None
    calls: dict[str, PlanCall] = field(default_factory=dict)
    """Search object for plans, by network. A network is left out if the design is not valid for it, or if no mapping
    fits.
    """
    bounds: dict[str, PlanBounds] = field(default_factory=dict)
    """Lower bounds over every plan, by network."""
    costs: dict[str, DesignCost] = field(default_factory=dict)
    """Costs by network, as far as they are known."""
    plans: dict[str, FoundPlan] = field(default_factory=dict)
    """Plans that were found, by network."""

    @property
    def area_mm2(self) -> float:
        """Area of the design in mm2; NaN if it is not known."""
        area = None if self.accelerator is None else system_area(self.accelerator).mm2
        return np.nan if area is None else area

    @property
    def period_ns(self) -> float | None:
        """Clock period of the design; None if it is not known."""
        return None if self.accelerator is None else system_clock_period_ns(self.accelerator)


class FusedBlocks:
    """Searches for the plans of all designs of a space. The space is divided into blocks of consecutive designs, and
    one block is searched at a time. Only the results of the latest block are kept.

    Designs that a constraint excludes before evaluation have no results.
    """

    def __init__(self, space: Space, evaluators: Mapping[str, FusedEvaluator]) -> None:
        assert isinstance(space.options, FusedSystemOptions)
        self._space, self._evaluators = space, evaluators
        self._objective = OBJECTIVES[space.options.objective]
        self._first = -1
        self._found: dict[int, _Candidate] = {}

    def costs(self, index: int) -> dict[str, DesignCost]:
        """Costs of a design on each network, in the order of the networks."""
        found = self._block_of(index)[index].costs
        return {name: found[name] for name in self._evaluators}

    def plan(self, index: int, network: str) -> FoundPlan:
        """Plan of a design for a network. Raises InputError with the reason if there is no such plan."""
        found = self._block_of(index)[index]
        if network not in found.plans:
            raise InputError([Problem(found.costs[network].reason, path=f"{found.name} on {network}")])
        return found.plans[network]

    def _block_of(self, index: int) -> dict[int, _Candidate]:
        size = self._space.block_size
        first = index - index % size
        if first != self._first:
            designs = map(self._space.design, range(first, min(first + size, len(self._space))))
            found = {one.index: self._candidate(one) for one in designs if not one.excluded_by}
            self._search(list(found.values()))
            self._first, self._found = first, found
        return self._found

    def _candidate(self, design: Design) -> _Candidate:
        """Design with its lower bounds, or with the reasons why it is not valid."""
        made = _Candidate(design, self._space.design_name(design.index), self._space.positions(design.index))
        refused = DesignCost(INVALID, design.problem)
        if not design.problem:
            try:
                accelerator = accelerator_of(design.hardware, self._space.is_of_systems)
                assert isinstance(accelerator, MultiCoreAccelerator)
                made.accelerator = accelerator
            except InputError as error:
                refused = DesignCost.refused(error)
        for name, evaluator in self._evaluators.items():
            if made.accelerator is None:
                made.costs[name] = _without_plan(refused)
                continue
            try:
                call = evaluator.call(made.accelerator)
                made.bounds[name], made.calls[name] = call.bounds(), call
            except (InputError, MappingError) as error:
                made.costs[name] = _without_plan(DesignCost.refused(error))
        return made

    def _search(self, candidates: Sequence[_Candidate]) -> None:
        """Search for a plan for each design of a block and each network.

        Designs are searched in ascending order of the sum of their lower bounds. If two designs have equal sums, the
        design with the smaller index comes first. A design is skipped if an earlier design has results that dominate
        the lower bounds of the skipped design.
        """
        searched: list[_Candidate] = []
        drops: dict[int, list[_Candidate]] = {}
        for one in sorted(candidates, key=lambda one: (self._bound_sum(one), one.design.index)):
            better = next((other for other in searched if self._is_beaten(one, other)), None)
            for name, call in one.calls.items():
                if better is not None:
                    one.costs[name] = _dropped(one, better, name)
                    drops.setdefault(better.design.index, []).append(one)
                else:
                    self._search_plan(one, name, call, searched)
            searched += [one] if one.plans else []
        for place, one in enumerate(searched):
            for name in one.plans:
                self._search_again(one, name, searched[place + 1 :], drops.get(one.design.index, ()))

    def _bound_sum(self, one: _Candidate) -> float:
        """Sum of the design's lower bounds of the objective, over the networks for which the design is valid."""
        return sum(self._bound(one, name) for name in one.bounds)

    def _search_plan(self, one: _Candidate, name: str, call: PlanCall, searched: Sequence[_Candidate]) -> None:
        """Search for a plan of the design `one` for the network `name`.

        The search starts from the plans of the nearest designs in `searched` that have a plan for this network. If
        there is no such design, the search has no start plan.
        """
        assert one.accelerator is not None
        nearest = _nearest(one, name, call, searched)
        starts = [other.plans[name].as_start for other in nearest]
        starts += [alone for other in nearest[:1] if (alone := other.plans[name].layer_by_layer) is not None]
        try:
            found = call.found(starts, 1 - RETURN_SHARE, self._enough(one, name, nearest))
        except (InputError, MappingError) as error:
            one.costs[name] = _without_plan(DesignCost.refused(error))
            return
        one.plans[name] = found
        start = nearest[0].name if nearest else ""
        one.costs[name] = plan_cost(found, one.bounds[name], one.accelerator, start)

    def _enough(self, one: _Candidate, name: str, nearest: Sequence[_Candidate]) -> float:
        """Largest objective at which a start plan is good enough for the design `one`. It is the product of three
        numbers: the least ratio (objective / lower bound) of the designs `nearest`, LIKE, and the lower bound of `one`.
        Infinite if `nearest` is empty.
        """
        ratios = [
            self._objective.value(cost.energy_pj, float(cost.latency_cycles)) / bound
            for other in nearest
            if (cost := other.costs[name]).status == OK and (bound := self._bound(other, name)) > 0
        ]
        return LIKE * min(ratios) * self._bound(one, name) if ratios else math.inf

    def _bound(self, one: _Candidate, name: str) -> float:
        """Lower bound of the objective, for one network."""
        bound = one.bounds[name]
        return float(self._objective.value(bound.energy_pj, float(bound.latency_cycles)))

    def _search_again(
        self, one: _Candidate, name: str, later: Sequence[_Candidate], dropped: Sequence[_Candidate]
    ) -> None:
        """Search once more for a plan of the design `one`, from its own plan and from the plans of the nearest designs
        in `later`. Without a later design with a plan, the search starts from its own plan only.

        The new plan is at least as good in the objective. The designs in `dropped` were skipped because the earlier
        plan dominates their lower bounds. If the new plan does not dominate all of these bounds, the earlier plan is
        kept. The reasons for skipping these designs then name the results of the kept plan.
        """
        assert one.accelerator is not None
        before, cost, call = one.plans[name], one.costs[name], one.calls[name]
        starts = [before, *(other.plans[name] for other in _nearest(one, name, call, later))]
        alone = [] if before.layer_by_layer is None else [before.layer_by_layer]
        found = call.found([*(plan.as_start for plan in starts), *alone], RETURN_SHARE)
        found = replace(found, schedules=before.schedules + found.schedules)
        one.plans[name] = found
        one.costs[name] = plan_cost(found, one.bounds[name], one.accelerator, cost.texts[START_DESIGN])
        if not all(self._is_beaten(other, one) for other in dropped):
            one.plans[name] = replace(before, schedules=found.schedules)
            one.costs[name] = plan_cost(one.plans[name], one.bounds[name], one.accelerator, cost.texts[START_DESIGN])
        for other in dropped:
            if name in other.calls:
                other.costs[name] = _dropped(other, one, name)

    def _is_beaten(self, one: _Candidate, other: _Candidate) -> bool:
        """True if the results of the design `other` dominate the lower bounds of the design `one`, on each network for
        which `one` has bounds.

        On each of these networks, `other` must meet all constraints. Its energy, latency in cycles, latency in seconds
        and EDP must not be above the bounds of `one`. Its area must not be above that of `one`, and `other` must be
        better in at least one objective of the space. All measures are compared, because a later comparison can use
        other objectives.
        """
        if not one.bounds or not _is_known_alike(one, other):
            return False
        return all(self._is_beaten_on(one, other, name) for name in one.bounds)

    def _is_beaten_on(self, one: _Candidate, other: _Candidate, name: str) -> bool:
        cost, bound = other.costs[name], one.bounds[name]
        if cost.status != OK:
            return False
        results = _measures(cost)
        known = {key: value for key, value in {**cost.further, **results}.items() if value == value}
        if self._space.unmet(self._space.values(other.design.index), known):
            return False
        least = {
            ENERGY_PJ: bound.energy_pj,
            LATENCY_CYCLES: float(bound.latency_cycles),
            EDP_PJ_CYCLES: energy_delay_product(bound.energy_pj, bound.latency_cycles),
            AREA_MM2: one.area_mm2,
        }
        is_slower = one.period_ns is not None and (
            latency_s(results[LATENCY_CYCLES], other.period_ns) > latency_s(least[LATENCY_CYCLES], one.period_ns)
        )
        is_worse = any(results[key] > least[key] for key in least)
        return not is_slower and not is_worse and any(results[key] < least[key] for key in self._space.objectives)


def _is_known_alike(one: _Candidate, other: _Candidate) -> bool:
    """True if the clock is known for both designs or for neither, and the area is known for both designs or for
    neither.
    """
    has_clocks = (one.period_ns is None) == (other.period_ns is None)
    return has_clocks and np.isnan(one.area_mm2) == np.isnan(other.area_mm2)


def _nearest(one: _Candidate, name: str, call: PlanCall, others: Sequence[_Candidate]) -> list[_Candidate]:
    """Designs in `others`, at most STARTS, whose plans the search for the design `one` tries first; the nearest design
    comes first. Each of them has a plan for the network `name`, and the lower bounds of `one` hold for this plan, too.
    """
    fitting = [other for other in others if name in other.plans and call.takes(other.plans[name].as_start)]
    return sorted(fitting, key=lambda other: _distance(one, other))[:STARTS]


def _distance(one: _Candidate, other: _Candidate) -> tuple[int, int, int]:
    """Distance of two designs, as a triple that is compared element by element. The elements are the number of axes in
    which the designs differ, the sum of the steps between them along all axes, and the index of the design `other`.
    """
    steps = [abs(mine - its) for mine, its in zip(one.positions, other.positions, strict=True)]
    return sum(step > 0 for step in steps), sum(steps), other.design.index


def _measures(cost: DesignCost) -> dict[str, float]:
    """Measures of a design by column."""
    product = energy_delay_product(cost.energy_pj, cost.latency_cycles)
    return dict(_pairs(cost.energy_pj, float(cost.latency_cycles), product, cost.area_mm2))


def _pairs(energy_pj: float, latency_cycles: float, product: float, area_mm2: float) -> Iterator[tuple[str, float]]:
    yield from ((ENERGY_PJ, energy_pj), (LATENCY_CYCLES, latency_cycles), (EDP_PJ_CYCLES, product))
    yield AREA_MM2, area_mm2


def _without_plan(cost: DesignCost) -> DesignCost:
    """Copy of `cost`, the result of a design without a plan. In the copy, the text columns START_DESIGN and DROPPED_BY
    are empty.
    """
    return replace(cost, texts={START_DESIGN: "", DROPPED_BY: ""})


def _dropped(one: _Candidate, better: _Candidate, name: str) -> DesignCost:
    """Result, without costs, of the design `one` on the network `name`. No plan is searched, because the results of the
    design `better` dominate the lower bounds of `one`. The result has these bounds and the name of `better`.
    """
    bound, cost = one.bounds[name], better.costs[name]
    has_area = one.area_mm2 == one.area_mm2
    reason = (
        f"not searched, because no plan can be better than {better.name}: every plan takes at least"
        f" {bound.latency_cycles:,} cycles and"
        f" {ENERGY.text(bound.energy_pj)} {ENERGY.unit}; {better.name} takes {cost.latency_cycles:,} cycles and"
        f" {ENERGY.text(cost.energy_pj)} {ENERGY.unit}{', and its area is not larger' if has_area else ''}"
    )
    said = bound_columns(bound.energy_pj, bound.latency_cycles)
    texts = {START_DESIGN: "", DROPPED_BY: better.name}
    return DesignCost(DROPPED, reason, area_mm2=one.area_mm2, further=said, texts=texts)
