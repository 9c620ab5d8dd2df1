"""Stages that choose the spatial mappings to try: one, several, or all of them for a proven optimum.

`CustomSpatialMappingGenerator` uses the rule by which Stream chooses the spatial mappings of computation nodes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import MappingError, TimeBudgetError
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import ModelChoice, ModelProfile
from tilewright.base.proof import Bounded, SpatialKind, SpatialMappings
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.control_rules import control_keys
from tilewright.mapping.spatial_generation import (
    MaximumUnrolling,
    given_draft,
    maximum_unrolling,
    size_limits,
    spatial_candidates,
)
from tilewright.mapping.spatial_space import SpatialChoice, SpatialSpace, SpatialTable, passes_of
from tilewright.pipeline.stages.base import Rest, Same, Stage, is_own
from tilewright.pipeline.stages.items import (
    CandidateTally,
    Evaluations,
    LayerProblem,
    Notes,
    SpatialCandidate,
    Tally,
    TemporalProblem,
)
from tilewright.pipeline.stages.layers import what_is_minimised
from tilewright.pipeline.stages.temporal import Best, BestForNetwork, BoundedMapper, Exact, ExactAnswer, TemporalMapper
from tilewright.search.options import DEFAULT_SPATIAL_MAPPINGS, MOST_STARTS, SpatialParameters
from tilewright.search.run_bound import FrontEnd, FrontEnds

if TYPE_CHECKING:
    from tilewright.pipeline.stages.layer_front import FrontSearch, FrontSource
    from tilewright.search.exact.choice import Choice
    from tilewright.search.exact.search import ExactResult
    from tilewright.search.exact.space_floors import SpaceFloors
    from tilewright.search.exact.staircase import Staircase
    from tilewright.search.front import Values

EFFORT_OF_ENDS, GAP_OF_ENDS = 32, 0.02
"""Limits of the search for each end of a layer's Pareto front (least energy, least latency). The search gets the
layer's effort divided by EFFORT_OF_ENDS, and may end if the gap to its bound is at most GAP_OF_ENDS. If the bound of
an end is 2 % too low, the bound of the network's EDP is less than 1 % too low.
"""
KEPT_SPACES, KEPT_ROWS = 64, 5000
"""Limits for bounds that stay in memory. The bounds of at most KEPT_SPACES spaces (sets of spatial mappings) are kept.
A space with more than KEPT_ROWS spatial mappings is not kept.
"""
REASONS = 100
"""Limit on the length of a list of reasons, each of which says why one spatial mapping has no loop order."""


def mapper_of(rest: Rest) -> Exact | None:
    """Stage Exact or Best, which searches all spatial mappings of a layer together; None if the pipeline has neither.

    Subclasses that a user wrote are ignored.
    """
    return next((stage for stage in rest.stages if isinstance(stage, Exact) and is_own(type(stage))), None)


def bounded_mapper_of(rest: Rest) -> BoundedMapper | None:
    """Stage Loma or Salsa, if the user asks for a lower bound of its results and this bound is valid; otherwise None.

    The bound is valid only if all stages are tilewright's own and keep the mapping with the least value of an
    objective. A stage that a user wrote could change costs or refuse mappings.
    """
    mapper = next((stage for stage in rest.stages if isinstance(stage, BoundedMapper) and stage.bounds), None)
    is_valid = all(is_own(type(stage)) for stage in rest.stages) and what_is_minimised(rest.stages) in OBJECTIVES
    return mapper if is_valid else None


def results_of(
    candidates: Sequence[SpatialCandidate], rest: Rest, covered: SpatialMappings, profile: ModelProfile
) -> Iterator[Evaluations]:
    """Results for the spatial mappings `candidates` of a layer. Lower bounds and proofs cover the spatial mappings that
    `covered` names.

    If the temporal mapper proves optima, one search covers all spatial mappings (section 7 of
    docs/proofs/exact-search.md). The tally then has rows only for spatial mappings that gave the best known mapping at
    some time of the search. If no mapping fits, it has rows with the reasons.
    """
    mapper = mapper_of(rest)
    is_given = any(candidate.constraints.level_boundaries for candidate in candidates)
    if mapper is None or is_given:
        bounded = None if is_given else bounded_mapper_of(rest)
        if bounded is not None:
            yield from _Separately(rest, bounded, candidates[0], profile, candidates, covered).results()
            return
        for candidate in candidates:
            yield from rest(candidate)
        return
    starts, others = candidates[:MOST_STARTS], candidates[MOST_STARTS:]
    choices = [SpatialChoice(one.unrolling, passes_of(one.layer, one.unrolling), 0.0) for one in others]
    yield from _Together(rest, mapper, candidates[0], profile, starts, covered, choices).results()


@dataclass(frozen=True)
class _Ranked:
    """Spatial mappings of a layer, all with their lower bounds. A search can begin with the spatial mapping that has
    the least bound.
    """

    space: SpatialSpace
    table: SpatialTable
    floors: "SpaceFloors"

    @classmethod
    def of(cls, space: SpatialSpace, problem: LayerProblem) -> "_Ranked | None":
        """Spatial mappings of a space, all with their lower bounds. None if the space is too large for a table, or if
        the model profile of the space has no such bounds.
        """
        # One lookup, because another thread may forget the space after a first one.
        if (kept := _kept.get(space)) is not None:
            return kept[0]
        from tilewright.search.exact.space_floors import space_floors

        table = space.table()
        links = problem.constraints.memory_operand_links
        floors = None if table is None else space_floors(problem.layer, problem.core, links, space.profile, table)
        ranked = None if table is None or floors is None else cls(space, table, floors)
        if table is None or len(table.lanes) <= KEPT_ROWS:
            if len(_kept) >= KEPT_SPACES:
                _kept.pop(next(iter(_kept)), None)
            _kept[space] = (ranked,)
        return ranked

    def by_bound(self, objective: str, pj_a_cycle: float) -> Iterator[tuple[Unrolling, float]]:
        """Pairs (spatial mapping, lower bound of the objective), the least bound first. In the objective, each cycle of
        latency counts as `pj_a_cycle` pJ of energy. Spatial mappings whose data certainly do not fit are left out.
        """
        bounds = self.floors.values(objective, pj_a_cycle)
        for place in np.argsort(bounds, kind="stable").tolist():
            for unrolling in self.space.of_table(self.table, place) if self.floors.fits[place] else ():
                yield unrolling, float(bounds[place])

    def by_distance(self, known: "Staircase") -> "Iterator[tuple[Unrolling, tuple[Values, Values], float]]":
        """Triples (spatial mapping, lower bounds of its energy and its latency, upper limit of a distance). The
        distance is that between the mappings with this spatial mapping and the known points of a front, as a fraction.
        The spatial mapping with the largest upper limit comes first. Spatial mappings whose data certainly do not fit
        are left out.
        """
        misses = self.floors.misses(known)
        for place in np.argsort(-misses, kind="stable").tolist():
            for unrolling in self.space.of_table(self.table, place) if self.floors.fits[place] else ():
                yield unrolling, self.floors.pairs(place), float(misses[place])


_kept: dict[SpatialSpace, tuple[_Ranked | None]] = {}
"""Cache: the spatial mappings of each space, with their bounds; (None,) for a space without bounds. A second search of
a layer, for the EDP of its network (`network_choice`), uses the cached spatial mappings.
"""


@dataclass
class _Spatial:
    """Spatial mappings of a layer, with their temporal problems. A temporal problem (the search problem for loop
    orders) is made when a search requests it.
    """

    rest: Rest
    mapper: TemporalMapper
    problem: LayerProblem
    profile: ModelProfile
    starts: Sequence[SpatialCandidate]
    """Spatial mappings that are searched first: those that loma and salsa try. With any time budget, the result is
    therefore at least as good as that of loma and salsa.
    """
    covered: SpatialMappings
    """Spatial mappings that the proof covers."""
    others: Iterable[SpatialChoice] = ()
    """Spatial mappings to search after those in `starts`. Spatial mappings that fill more lanes come earlier. Some of
    them can also be in `starts`.
    """
    ranked: _Ranked | None = None
    """Spatial mappings with lower bounds. They are searched in place of `others`. None if the search uses `others`."""
    problems: dict[Unrolling, TemporalProblem | None] = field(default_factory=dict)
    """Temporal problems made so far, by spatial mapping; None if the spatial mapping has no loop orders.
    All searches of the layer share this table.
    """
    made: list[SpatialCandidate] = field(default_factory=list)
    impossible: list[Evaluations] = field(default_factory=list)
    """Evaluations without a mapping: each has the reason why a spatial mapping allows no loop order. The list has at
    most REASONS items.
    """

    def _choices(self, objective: str, pj_a_cycle: float = 0.0) -> "Iterator[Choice]":
        """Spatial mappings for one search that minimises `objective`, those in `starts` first. Each cycle of latency
        counts as `pj_a_cycle` pJ of additional energy. Other spatial mappings follow in the order of `ranked`, or in
        the order of `others` if `ranked` is None or `objective` is ''.
        """
        from tilewright.search.exact.choice import Choice
        from tilewright.search.exact.floors import tensor_floors

        layer, core, links = self.problem.layer, self.problem.core, self.problem.constraints.memory_operand_links
        floors = tensor_floors(layer, core, links, self.profile)
        for index, (candidate, passes, rest_passes, least, rest) in enumerate(self._each(objective, pj_a_cycle)):
            self.made.append(candidate)
            make = partial(self._prepared, index)
            choice = Choice(index, passes, rest_passes, layer, core, floors, make, least=least, rest_least=rest)
            yield choice.priced(pj_a_cycle)

    def _each(self, objective: str, pj_a_cycle: float) -> Iterator[tuple[SpatialCandidate, int, float, float, float]]:
        """Tuples of five values, one tuple for each spatial mapping. No spatial mapping occurs twice. The values are:

        * The spatial mapping.
        * Lower bound of its number of passes over the array.
        * Lower bound of the number of passes, for this and all later spatial mappings.
        * Lower bound of its objective; 0.0 if unknown.
        * Lower bound of the objective, for this and all later spatial mappings; 0.0 if unknown.
        """
        layer, known = self.problem.layer, {candidate.unrolling for candidate in self.starts}
        least = math.prod(size for _, size in layer.loop_sizes) / self.problem.core.operational_array.unit_count
        ranked = self.ranked.by_bound(objective, pj_a_cycle) if self.ranked is not None and objective else None
        first = None if ranked is None else next(ranked, None)
        for candidate in self.starts:
            passes = passes_of(candidate.layer, candidate.unrolling)
            yield candidate, passes, least, 0.0, 0.0 if first is None else first[1]
        if ranked is None:
            for choice in self.others:
                if choice.unrolling not in known:
                    made = SpatialCandidate.of(self.problem, choice.unrolling)
                    yield made, choice.passes, choice.rest_passes, 0.0, 0.0
            return
        for unrolling, bound in chain(() if first is None else (first,), ranked):
            if unrolling not in known:
                made = SpatialCandidate.of(self.problem, unrolling)
                yield made, passes_of(layer, unrolling), least, bound, bound

    def _choices_of_sweep(self, known: "Staircase") -> "Iterator[Choice]":
        """Spatial mappings for a sweep, which searches the Pareto front: those in `starts` first, then those that can
        be furthest from the known points. Without `ranked`, the result is that of `_choices`.
        """
        if self.ranked is None:
            yield from self._choices("")
            return
        from tilewright.search.exact.choice import Choice
        from tilewright.search.exact.floors import tensor_floors

        layer, core, links = self.problem.layer, self.problem.core, self.problem.constraints.memory_operand_links
        floors = tensor_floors(layer, core, links, self.profile)
        least = math.prod(size for _, size in layer.loop_sizes) / core.operational_array.unit_count
        starts = [candidate.unrolling for candidate in self.starts]
        others = (one for one in self.ranked.by_distance(known) if one[0] not in starts)
        for index, (unrolling, pairs, rest) in enumerate(chain(((one, None, math.inf) for one in starts), others)):
            self.made.append(SpatialCandidate.of(self.problem, unrolling))
            make = partial(self._prepared, index)
            passes = passes_of(layer, unrolling)
            yield Choice(index, passes, least, layer, core, floors, make, pairs=pairs, rest_miss=rest)

    def _prepared(self, index: int) -> TemporalProblem | None:
        """Temporal problem (the search problem for loop orders) of a spatial mapping. If the spatial mapping has no
        loop orders, the result is None, and the reason is added to `impossible`.
        """
        candidate = replace(self.made[index], index=index)
        if candidate.unrolling not in self.problems:
            self.problems[candidate.unrolling] = self._problem_of(candidate)
        problem = self.problems[candidate.unrolling]
        return None if problem is None else replace(problem, candidate=index)

    def _problem_of(self, candidate: SpatialCandidate) -> TemporalProblem | None:
        place = self.rest.stages.index(self.mapper)
        makers = tuple(stage for stage in self.rest.stages[:place] if stage.gives is not Same)
        problem: TemporalProblem | None = None
        for found in replace(self.rest, stages=makers, end=_the_item)(candidate):
            if isinstance(found, TemporalProblem):
                problem = found
            elif len(self.impossible) < REASONS:
                self.impossible.append(found)
        return problem


@dataclass
class _Separately(_Spatial):
    """Search that Loma or Salsa makes for each spatial mapping separately, one after another. Afterwards, one lower
    bound is computed that holds for all of these spatial mappings.
    """

    mapper: BoundedMapper

    def results(self) -> Iterator[Evaluations]:
        """Results of the temporal mapper, unchanged. If at least one of them has a mapping that fits, an additional
        result comes last. The additional result has no costs, but tallies with notes on the lower bound of the layer.
        """
        objective = what_is_minimised(self.rest.stages)
        powers = OBJECTIVES[objective]
        tally = Tally()
        known, least = (math.inf, math.inf), math.inf
        for candidate in self.starts:
            for found in self.rest(candidate):
                tally.add(found.tally)
                if found.costs is not None and found.costs.fits.any():
                    energy, latency = found.costs.energy_pj, found.costs.latency_cycles
                    values = np.where(found.costs.fits, powers.value(energy, latency), np.inf)
                    row = int(values.argmin())
                    if values[row] < least:
                        known, least = (float(energy[row]), float(latency[row])), float(values[row])
                yield found
        if least < math.inf:
            proof = self._proof(objective, known, least)
            rows = [CandidateTally(*entry.key, notes=(*entry.notes, *proof)) for entry in tally if entry.feasible]
            yield Evaluations(None, tuple(rows))

    def _proof(self, objective: str, known: tuple[float, float], value: float) -> Notes:
        """Notes on the lower bound of the layer's objective. `known` is the pair (energy in pJ, latency in cycles) of
        the best mapping, and `value` is the objective of this mapping.
        """
        from tilewright.search.exact.rounds import Incumbent

        energy_pj, latency_cycles = known
        best = Incumbent(energy_pj=energy_pj, latency_cycles=latency_cycles)
        ordering = self.problem.constraints.temporal_ordering
        bounds = self.mapper.bounds_of(list(self._choices(objective)), ordering, objective, best, self.rest.control)
        stated = Bounded(value, min(bounds.value, value)).stated()
        if stated["proven"]:
            stated["lower_bound"] = value
        both = {ENERGY_PJ: bounds.energy_pj, LATENCY_CYCLES: bounds.latency_cycles}
        return (
            ("engine", self.mapper.name().lower()),
            ("allocation", "greedy"),
            *stated.items(),
            ("covers", self.covered.text),
            *((("lower_bounds", both),) if all(OBJECTIVES[objective]) else ()),
        )


@dataclass
class _Together(_Spatial):
    """One search over all spatial mappings of a layer by a temporal mapper that proves optima."""

    mapper: Exact
    was_cut_short: bool = field(default=False, kw_only=True)
    """True if a limit ended the search before it found a mapping. A mapping that fits can still exist."""

    def results(self) -> Iterator[Evaluations]:
        """Best mapping with its certificate, and the tally of other spatial mappings. If no mapping fits, the results
        have the reasons.
        """
        ordering = self.problem.constraints.temporal_ordering
        mapper, weight = self.mapper, 0.0
        if isinstance(mapper, BestForNetwork):
            mapper, weight = replace(mapper, objective="energy"), mapper.pj_a_cycle
        try:
            choices = self._choices(mapper.objective, weight)
            control, looks = self.rest.control, not isinstance(mapper, BestForNetwork)
            found = mapper.search(choices, len(self.starts), ordering, control, looks_at_all=looks)
        except MappingError as error:
            self.was_cut_short = isinstance(error, TimeBudgetError)
            yield from self.impossible
            for index, candidate in enumerate(self.made[:REASONS]):
                yield Evaluations(None, (CandidateTally(index, candidate.unrolling, reason=str(error)),))
            return
        yield from self.impossible
        if found is not None:
            yield from self._of(found)
            return
        for index in range(min(len(self.made), REASONS)):
            if self._prepared(index) is not None:
                yield from self.rest(replace(self.made[index], index=index))

    def _of(self, found: "ExactResult") -> Iterator[Evaluations]:
        """Yield the results of one search over all spatial mappings. The last result is the final mapping with its
        tally. Before it, there is a tally for each other spatial mapping that gave the best known mapping for a while.
        """
        search = self._front_search(self.mapper) if isinstance(self.mapper, Best) else None
        weight = self.mapper.pj_a_cycle if isinstance(self.mapper, BestForNetwork) else 0.0
        trade_off = () if search is None else tuple(self._trade_off(found, search))
        if search is not None and search.mapper.near_optimum and not all(OBJECTIVES[search.mapper.objective]):
            trade_off = (*trade_off, ("least_value", encode(FrontEnd(found.energy_pj, found.latency_cycles))))
            found = self._near_optimum(found, search)
        for index, energy_pj, latency_cycles in found.improved:
            if index != found.candidate:
                unrolling = self.made[index].unrolling
                energy_pj -= weight * latency_cycles  # the search counts the weighted latency as energy
                row = CandidateTally(index, unrolling, feasible=1, energy_pj=energy_pj, latency_cycles=latency_cycles)
                yield Evaluations(None, (row,))
        counts = {name: getattr(found, name) for name in ("allowed", "searched", "settled_by_bound")}
        allocation, place = self.mapper.allocation, self.rest.stages.index(self.mapper)
        notes = (
            *found.notes(self.mapper.engine, allocation),
            ("spatial_mappings", counts),
            ("covers", self.covered.text),
            *trade_off,
        )
        best = replace(self.made[found.candidate], index=found.candidate)
        answer = ExactAnswer(found, best.unrolling, allocation, notes)
        stages = (*self.rest.stages[:place], answer, *self.rest.stages[place + 1 :])
        yield from replace(self.rest, stages=stages)(best)

    def _trade_off(self, found: "ExactResult", search: "FrontSearch") -> Iterator[tuple[str, object]]:
        """Notes on the trade-off between energy and latency, as pairs (name, JSON value).

        The note `front` has the Pareto front, if the temporal mapper searches the front. The note `ends` has two
        mappings, if the temporal mapper searches them: the mapping with the least energy, and the mapping with the
        least latency. These two mappings are the ends of a searched Pareto front. The note `ends` is also left out if
        the objective is energy alone or latency alone.
        """
        mapper = search.mapper
        front = search.run(found, self._own_source()) if mapper.front else None
        if mapper.ends and all(OBJECTIVES[mapper.objective]):
            chosen = FrontEnd(found.energy_pj, found.latency_cycles)
            ends = self._ends(found, mapper) if front is None else replace(front.ends, chosen=chosen)
            if ends is not None:
                yield "ends", encode(ends)
        if front is not None:
            yield "front", {**encode(front), "largest_miss": front.stated_miss}

    def _ends(self, found: "ExactResult", mapper: Best) -> FrontEnds | None:
        """Costs of the mappings with the least energy and the least latency; None if a search finds no mapping.

        Each of the two mappings is searched separately, beginning with `found`. If the bounds show that `found` is
        close enough to the least value, no loop order is searched.
        """
        from tilewright.search.exact.rounds import Incumbent

        known = Incumbent(found.order, found.boundaries, found.energy_pj, found.latency_cycles, found.candidate)
        effort = None if mapper.effort is None else mapper.effort // EFFORT_OF_ENDS
        mapper = replace(mapper, effort=effort, largest_gap=max(mapper.largest_gap, GAP_OF_ENDS))
        ordering = self.problem.constraints.temporal_ordering
        ends = {}
        for goal, own in (("energy", found.energy_pj), ("latency", found.latency_cycles)):
            choices = replace(self, made=[], impossible=[])._choices(goal)
            end = replace(mapper, objective=goal).search(choices, len(self.starts), ordering, self.rest.control, known)
            if end is None:
                return None
            best = end if end.value < own else found
            ends[goal] = FrontEnd(best.energy_pj, best.latency_cycles, min(end.lower_bound, own))
        return FrontEnds(**ends, chosen=FrontEnd(found.energy_pj, found.latency_cycles))

    def _front_search(self, mapper: Best) -> "FrontSearch":
        """Search for the Pareto front over the spatial mappings of the layer, not yet begun."""
        from tilewright.pipeline.stages.layer_front import FrontSearch, FrontSource

        def source(objective: str, pj_a_cycle: float, known: "Staircase | None" = None) -> FrontSource:
            search = replace(self, made=[], impossible=[])
            choices = search._choices(objective, pj_a_cycle) if known is None else search._choices_of_sweep(known)
            return FrontSource(choices, search.made.__getitem__, search._prepared)

        ordering = self.problem.constraints.temporal_ordering
        return FrontSearch(source, mapper, len(self.starts), ordering, self.rest.control)

    def _own_source(self) -> "FrontSource":
        """Source of the spatial mappings of a search that has ended. No spatial mappings are left to search. Its
        functions return the spatial mapping with a given index, and the temporal problem of this spatial mapping.
        """
        from tilewright.pipeline.stages.layer_front import FrontSource

        return FrontSource((), self.made.__getitem__, self._prepared)

    def _near_optimum(self, found: "ExactResult", search: "FrontSearch") -> "ExactResult":
        """Result in which a mapping near the optimum replaces the best mapping. The new mapping has a lower latency if
        the objective is energy, and a lower energy if the objective is latency. If there is no such mapping, the result
        is `found`.
        """
        from tilewright.pipeline.stages.near_optimum import near_optimum

        near = near_optimum(search, found, self._own_source(), search.mapper.near_optimum)
        return found if near is None else replace(near.result, candidate=self._index_of(near.candidate))

    def _index_of(self, candidate: SpatialCandidate) -> int:
        """Index of a spatial mapping in the list of the spatial mappings that the search has made. A spatial mapping
        that is not in the list is added to it.
        """
        for index, made in enumerate(self.made):
            if made.unrolling == candidate.unrolling:
                return index
        self.made.append(candidate)
        return len(self.made) - 1


def _the_item(item: Any) -> Iterator[Any]:
    yield item


@dataclass(frozen=True)
class SpatialMappingGenerator(SpatialParameters, Stage):
    """Passes to the next stage the spatial mappings that are to be tried. If the mapping file sets the loops on
    all sides of the array, there is only one spatial mapping. Otherwise, the best loops for the remaining sides are
    generated.

    Example: {set: SpatialMappingGenerator, parameters: {nb_spatial_mappings_generated: 10}}
    """

    takes = LayerProblem
    gives = SpatialCandidate
    takes_unmapped = True
    stands_for = "SpatialMappingGeneratorStage"

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """Yield the results of one candidate after another. Raises MappingError if no spatial mapping is valid."""
        mapper, mixed = mapper_of(rest), self.enable_mix_spatial_mapping
        given, hints = dict(item.constraints.spatial_mapping), dict(item.constraints.spatial_mapping_hint)
        sides = [name for name, _ in item.core.operational_array.dimensions if name not in given]
        hinted = any(loop in item.layer.size_of for name in sides for loop in hints.get(name, ()))
        ruled = bool(control_keys(item.core))
        covered = SpatialMappings("open", None, mixed, hinted, not self.profile.keep_given_unrolling, ruled)
        count = self.spatial_count(mapper is not None)
        if mapper is not None and not count and sides and not item.constraints.level_boundaries:
            yield from self._whole_space(item, rest, mapper, covered)
            return
        unrollings = spatial_candidates(item.layer, item.core, item.constraints, self.profile, count, mixed)
        candidates = [SpatialCandidate.of(item, unrolling, index) for index, unrolling in enumerate(unrollings)]
        tried = replace(covered, first=len(candidates)) if sides else SpatialMappings(ruled=ruled)
        yield from results_of(candidates, rest, tried, self.profile)

    def _whole_space(
        self, item: LayerProblem, rest: Rest, mapper: Exact, covered: SpatialMappings
    ) -> Iterator[Evaluations]:
        """Results of one search over all spatial mappings. The search begins with the spatial mappings that loma and
        salsa try.
        """
        described = item.layer, item.core, item.constraints, self.profile
        tried, mixed = self.spatial_count(bounds=False) or DEFAULT_SPATIAL_MAPPINGS, self.enable_mix_spatial_mapping
        space = SpatialSpace(*described, mixed)
        refusal: MappingError | None = None
        try:
            starts = [SpatialCandidate.of(item, one) for one in spatial_candidates(*described, tried, mixed)]
        except MappingError as error:  # the rule generates none, but other mappings can exist
            starts, refusal = [], error
        ranked = _Ranked.of(space, item) if mapper.limits.effort is not None else None
        search = _Together(rest, mapper, item, self.profile, starts, covered, space, ranked)
        found = list(search.results())
        if refusal is not None and not search.was_cut_short and all(one.costs is None for one in found):
            raise refusal
        yield from found


_Loop = tuple[str, int]


@dataclass(frozen=True)
class CustomSpatialMappingGenerator(ModelChoice, Stage):
    """Passes to the next stage the spatial mapping that the mapping file or the core gives. If neither gives a spatial
    mapping, the rule of Stream generates spatial mappings: each side of the array gets one loop, unrolled by the
    largest divisor that array and bandwidth allow.

    A spatial mapping from the mapping file or the core is used unchanged; sides of the array without a loop in this
    spatial mapping are not used. The rule of Stream gives all combinations of loops in which no loop occurs twice. This
    stage does not check the capacity of the innermost memories; a mapping that does not fit becomes a row of the tally.
    This stage belongs in a pipeline for a single core, or in the `pipeline` of IntraCoreMapping.

    Example: {replace: SpatialMappingGenerator, stage: CustomSpatialMappingGenerator}
    """

    takes = LayerProblem
    gives = SpatialCandidate
    takes_unmapped = True
    stands_for = "nothing; CustomSpatialMappingGeneratorStage in Stream"

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """Yield the results of one candidate after another. Raises MappingError if no side of the array can be used."""
        found = [_given(item, self.profile)] if item.constraints.spatial_mapping else list(self._generated(item))
        if not found:
            raise MappingError(
                f"layer '{item.layer.name}' has too few loops: each used side of the array needs a loop that no other"
                " side has"
            )
        candidates = [SpatialCandidate.of(item, unrolling, index) for index, unrolling in enumerate(found)]
        kind: SpatialKind = "given" if item.constraints.spatial_mapping else "largest divisors"
        covered = SpatialMappings(kind, ruled=bool(control_keys(item.core)))
        yield from results_of(candidates, rest, covered, self.profile)

    def _generated(self, item: LayerProblem) -> Iterator[Unrolling]:
        """Spatial mappings by the rule of Stream: each combination of different loops, one loop for each side of the
        array. Sides come in the order of the array, and loops in the order of the layer.
        """
        limits = maximum_unrolling(item.layer, item.core, item.constraints, self.profile)
        sides = [name for name, _ in item.core.operational_array.dimensions]
        for loops in product(*(_options(item, name, limits) for name in sides)):
            used = [loop[0] for loop in loops if loop is not None]
            if len(set(used)) == len(used):
                yield tuple((name, () if loop is None else (loop,)) for name, loop in zip(sides, loops, strict=True))


def _options(item: LayerProblem, side: str, limits: MaximumUnrolling) -> list[_Loop | None]:
    """Loops that can be unrolled on a side of the array, each with its factor; [None] if no loop is possible."""
    options: list[_Loop | None] = []
    for dimension, size in item.layer.loop_sizes:
        factor = next((f for f in range(min(limits[side][dimension], size), 1, -1) if size % f == 0), 1)
        if factor > 1:
            options.append((dimension, factor))
    return options or [None]


def _given(item: LayerProblem, profile: ModelProfile) -> Unrolling:
    """Spatial mapping from the mapping file or from a dataflow of the core, limited to the sizes of array and layer.
    Raises MappingError for unknown sides of the array.
    """
    sides = item.core.operational_array.dimensions
    draft = given_draft(item.layer, item.core, item.constraints, size_limits(item.layer, item.core), profile)
    return tuple((name, tuple(draft.get(name, {}).items())) for name, _ in sides)
