"""Stages that choose spatial mappings: what each side of the array does at the same time.

`CustomSpatialMappingGenerator` is the generator that Stream uses for its computation nodes.

All spatial mappings of a layer: one after the other, or together where the temporal mapper proves optima.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from tilewright.errors import MappingError
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.spatial_generation import (
    MaximumUnrolling,
    clean_user_mapping,
    maximum_unrolling,
    spatial_candidates,
)
from tilewright.profile import ModelChoice
from tilewright.search.evaluate import prepare
from tilewright.search.options import BoundaryParameters, SpatialParameters
from tilewright.stages.base import Rest, Same, Stage
from tilewright.stages.items import CandidateTally, Evaluations, LayerProblem, SpatialCandidate, TemporalProblem
from tilewright.stages.temporal import Exact, ExactAnswer

GIVEN = "the spatial mapping of the mapping file"


def scope_of(is_open: bool, count: int, found: int, mixed: bool) -> str:
    """Which spatial mappings a proof covers, in words; `count`: the most that were asked for, 0 for all."""
    if not is_open:
        return GIVEN
    which = f"the first {found}" if count and found == count else "all"
    loops = "loop dimensions" if mixed else "one loop dimension"
    return (
        f"{which} spatial mappings of {loops} by divisors on each side of the array that the mapping file leaves open"
    )


def mapper_of(rest: Rest) -> Exact | None:
    """The stage that searches all spatial mappings of a layer together, if there is one; not a user's variant of it."""
    return next((stage for stage in rest.stages if type(stage) is Exact), None)


def results_of(candidates: Sequence[SpatialCandidate], rest: Rest, scope: str) -> Iterator[Evaluations]:
    """The results of all spatial mappings of a layer; `scope` says which these are.

    Where the mapper proves optima they are one search (docs/exact.md, 7). Then only those have a row of their own in
    the tally of which a mapping was the best for a while, or of which it is known that they have none.
    """
    mapper = mapper_of(rest)
    if mapper is None or any(candidate.constraints.level_boundaries for candidate in candidates):
        for candidate in candidates:
            yield from rest(candidate)
        return
    yield from _searched_together(candidates, rest, mapper, scope)


def _searched_together(
    candidates: Sequence[SpatialCandidate], rest: Rest, mapper: Exact, scope: str
) -> Iterator[Evaluations]:
    """The best mapping with its certificate, and the tally of others; where nothing fits, the reason of each."""
    place = rest.stages.index(mapper)
    makers = tuple(stage for stage in rest.stages[:place] if stage.gives is not Same)
    prepared: list[tuple[SpatialCandidate, TemporalProblem]] = []
    for candidate in candidates:
        for found in replace(rest, stages=makers, end=_the_item)(candidate):
            if isinstance(found, TemporalProblem):
                prepared.append((candidate, found))
            else:
                yield found
    problems = [problem for _, problem in prepared]
    try:
        result = mapper.search(problems, rest.control) if problems else None
    except MappingError as error:
        for problem in problems:
            row = CandidateTally(problem.candidate, problem.spatial.unrolling, reason=str(error))
            yield Evaluations(None, (row,))
        return
    if result is None:
        for candidate, _ in prepared:
            yield from rest(candidate)
        return
    for index, energy_pj, latency_cycles in result.improved:
        if index != result.candidate:
            key = problems[index].candidate, problems[index].spatial.unrolling
            row = CandidateTally(*key, feasible=1, energy_pj=energy_pj, latency_cycles=latency_cycles)
            yield Evaluations(None, (row,))
    counts = ("allowed", len(candidates)), ("searched", result.searched), ("settled_by_bound", result.settled_by_bound)
    notes = (*result.notes(mapper.allocation), ("spatial_mappings", dict(counts)), ("covers", scope))
    answer = ExactAnswer(result, problems[result.candidate].spatial.unrolling, mapper.allocation, notes)
    answered = (*rest.stages[:place], answer, *rest.stages[place + 1 :])
    yield from replace(rest, stages=answered)(prepared[result.candidate][0])


def _the_item(item: Any) -> Iterator[Any]:
    yield item


@dataclass(frozen=True)
class SpatialMappingGenerator(SpatialParameters, Stage):
    """Hands on the spatial mappings to try: the one that the mapping file gives, and where that leaves sides of the
    array open, the best generated ones.

    Example: {set: SpatialMappingGenerator, parameters: {nb_spatial_mappings_generated: 10}}
    """

    takes = LayerProblem
    gives = SpatialCandidate
    stands_for = "SpatialMappingGeneratorStage"

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """The results of one candidate after the other. Raises MappingError if no spatial mapping is valid."""
        count, mixed = self.spatial_count(mapper_of(rest) is not None), self.enable_mix_spatial_mapping
        unrollings = spatial_candidates(item.layer, item.core, item.constraints, self.profile, count, mixed)
        candidates = [SpatialCandidate.of(item, unrolling, index) for index, unrolling in enumerate(unrollings)]
        given = dict(item.constraints.spatial_mapping)
        is_open = any(name not in given for name, _ in item.core.operational_array.dimensions)
        yield from results_of(candidates, rest, scope_of(is_open, count, len(candidates), mixed))


@dataclass(frozen=True)
class SpatialMappingConversion(BoundaryParameters, Stage):
    """Turns a spatial mapping into what each memory of each operand serves, and prepares the cost model for it.

    Without a generator before it, it takes the spatial mapping of the mapping file; sides of the array that this leaves
    open are not used. A spatial mapping that is impossible, or for which no loop order is, is a row of the tally with
    the reason and ends nothing.

    Example: {set: SpatialMappingConversion, parameters: {temporal_mapping_type: even}}
    """

    access_same_data_considered_as_no_access: bool = True
    """An input that the array uses again in the next cycle is not read again."""

    takes = LayerProblem
    gives = TemporalProblem
    stands_for = "SpatialMappingConversionStage"

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """The results for one spatial mapping, or why there are none."""
        candidate = item if isinstance(item, SpatialCandidate) else SpatialCandidate.of(item, self._given(item))
        try:
            yield from rest(self._prepared(candidate))
        except MappingError as error:
            yield Evaluations(None, (CandidateTally(candidate.index, candidate.unrolling, reason=str(error)),))

    def _prepared(self, item: SpatialCandidate) -> TemporalProblem:
        given = item.constraints
        even = given.temporal_mapping_type or self.temporal_mapping_type
        same_data = given.access_same_data_considered_as_no_access
        prepared = prepare(
            item.layer,
            item.core,
            given.memory_operand_links,
            item.unrolling,
            self.part(BoundaryParameters, temporal_mapping_type=even),
            same_data_is_no_access=self.access_same_data_considered_as_no_access if same_data is None else same_data,
        )
        return TemporalProblem.of(prepared, given.temporal_ordering, item.index, given.level_boundaries)

    def _given(self, item: LayerProblem) -> Unrolling:
        """The spatial mapping of the mapping file, cut to what array and layer have room for."""
        given = item.constraints.spatial_mapping
        sides = dict(given)
        closed = (*given, *((name, ()) for name, _ in item.core.operational_array.dimensions if name not in sides))
        constraints = replace(item.constraints, spatial_mapping=closed)
        return spatial_candidates(item.layer, item.core, constraints, self.profile)[0]


_Loop = tuple[str, int]
STREAM_SCOPE = "all spatial mappings of one loop dimension a side of the array, each by the largest divisor that fits"


@dataclass(frozen=True)
class CustomSpatialMappingGenerator(ModelChoice, Stage):
    """Hands on the spatial mapping that the mapping file or the core gives, or else what the rule of Stream makes: on
    each side of the array one loop, by the largest of its divisors for which array and bandwidth have room.

    A mapping that is given is taken as it is: sides of the array that it does not name are not used. Without one, every
    combination of loops over the sides is handed on in which no loop occurs twice. The capacity of the innermost
    memories limits neither: what does not fit there is a row of the tally. Its place is in a pipeline of a single core
    or in the `pipeline` of IntraCoreMapping.

    Example: {replace: SpatialMappingGenerator, stage: CustomSpatialMappingGenerator}
    """

    takes = LayerProblem
    gives = SpatialCandidate
    stands_for = "nothing; CustomSpatialMappingGeneratorStage in Stream"

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """The results of one candidate after the other. Raises MappingError if no side of the array can be used."""
        found = [_given(item)] if item.constraints.spatial_mapping else list(self._generated(item))
        if not found:
            raise MappingError(f"layer '{item.layer.name}' has no loops for all sides of the array that it could use")
        candidates = [SpatialCandidate.of(item, unrolling, index) for index, unrolling in enumerate(found)]
        scope = GIVEN if item.constraints.spatial_mapping else STREAM_SCOPE
        yield from results_of(candidates, rest, scope)

    def _generated(self, item: LayerProblem) -> Iterator[Unrolling]:
        """Every choice of a loop for each side of the array, sides in their order, loops in that of the layer."""
        limits = maximum_unrolling(item.layer, item.core, item.constraints, self.profile)
        sides = [name for name, _ in item.core.operational_array.dimensions]
        for loops in product(*(_options(item, name, limits) for name in sides)):
            used = [loop[0] for loop in loops if loop is not None]
            if len(set(used)) == len(used):
                yield tuple((name, () if loop is None else (loop,)) for name, loop in zip(sides, loops, strict=True))


def _options(item: LayerProblem, side: str, limits: MaximumUnrolling) -> list[_Loop | None]:
    """The loops that a side of the array may take, each with its factor; None alone where there is none."""
    options: list[_Loop | None] = []
    for dimension, size in item.layer.loop_sizes:
        factor = next((f for f in range(min(limits[side][dimension], size), 1, -1) if size % f == 0), 1)
        if factor > 1:
            options.append((dimension, factor))
    return options or [None]


def _given(item: LayerProblem) -> Unrolling:
    """The given spatial mapping, cut to the sizes of array and layer. Raises MappingError for unknown sides."""
    sides = item.core.operational_array.dimensions
    limits = {name: {loop: min(size, room) for loop, size in item.layer.loop_sizes} for name, room in sides}
    draft = clean_user_mapping(item.constraints.spatial_mapping, item.layer, item.core, limits)
    return tuple((name, tuple(draft.get(name, {}).items())) for name, _ in sides)
