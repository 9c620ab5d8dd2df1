"""All spatial mappings of a layer: one after the other, or together where the temporal mapper proves optima."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tilewright.errors import MappingError
from tilewright.stages.base import Rest, Same
from tilewright.stages.items import CandidateTally, Evaluations, SpatialCandidate, TemporalProblem
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
