"""Attacks on certificates over all spatial mappings of a layer: one exact search, compared with brute force."""

import random

from tilewright.base.errors import TilewrightError
from tilewright.base.profile import profile_by_name
from tilewright.cost.workspace import new_workspace
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.temporal import loop_multiset
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.exact.search import ExactParameters, search_candidates
from tilewright.search.exact.tables import energy_floor, new_search, sizes_tiles_in_any_order
from tilewright.search.options import SearchOptions

from tests.plain.attack import ALLOCATIONS, CLOSE, Difference, Outcome, compare_verdict, reason
from tests.plain.model import PlainModel
from tests.plain.problems import KINDS, Problem, random_problem
from tests.plain.space import OBJECTIVES, Best, free_best, free_count, greedy_best, greedy_count
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import SWITCHES

LARGEST_SPACES = (200, 800, 2500)
"""Limits of the number of mappings that brute force tries for a problem; each problem draws one of the limits."""
Candidates = list[tuple[PreparedProblem, PlainModel]]


def attack_candidates(seed: int, switches: tuple[str, ...] = SWITCHES, model: str | None = None) -> Outcome:
    """Search all spatial mappings of a seed's problem together, and compare with the best of each."""
    outcome = Outcome()
    problem, model, candidates, allocations = _open_problem(seed, switches, model)
    outcome.counts["problems"] += 1
    outcome.counts["spatial mappings"] += len(candidates)
    spaces: dict[str, list[Best]] = {}
    for allocation in allocations:
        best_of = greedy_best if allocation == "greedy" else free_best
        spaces[allocation] = [best_of(plain) for _, plain in candidates]
        outcome.counts["mappings costed by brute force"] += sum(best.mappings for best in spaces[allocation])
        for objective in OBJECTIVES:
            where = (seed, model, problem.kind, allocation, objective)
            _attack_search(outcome, where, candidates, spaces[allocation])
    for prepared, _ in candidates:
        _compare_floor(outcome, (seed, model, problem.kind), prepared)
    if len(spaces) == len(ALLOCATIONS):
        _compare_spaces(outcome, (seed, model, problem.kind), candidates, spaces)
    return outcome


def _open_problem(
    seed: int, switches: tuple[str, ...], model: str | None
) -> tuple[Problem, str, Candidates, tuple[str, ...]]:
    """A problem with open sides of the array and at least two possible spatial mappings."""
    rng = random.Random(seed)
    largest, kind, mixed = rng.choice(LARGEST_SPACES), rng.choice(KINDS), rng.random() < 0.3
    while True:
        problem = random_problem(rng.getrandbits(48), (1, 6), switches, kind)
        name = model or problem.model
        given = tuple(side for side in problem.unrolling if rng.random() < 0.25)
        candidates = _candidates(problem, name, given, mixed)
        if len(candidates) < 2:
            continue
        plains = [plain for _, plain in candidates]
        counts = {"greedy": sum(map(greedy_count, plains)), "free": sum(map(free_count, plains))}
        possible = tuple(allocation for allocation in ALLOCATIONS if counts[allocation] <= largest)
        if possible:
            return problem, name, candidates, possible


def _candidates(problem: Problem, model: str, given: Unrolling, mixed: bool) -> Candidates:
    constraints = MappingConstraints("default", given, memory_operand_links=problem.links)
    try:
        unrollings = spatial_candidates(problem.layer, problem.core, constraints, profile_by_name(model), 0, mixed)
    except TilewrightError:
        return []
    found = []
    for unrolling in unrollings:
        try:
            plain = PlainModel(problem.layer, problem.core, problem.links, unrolling, False, model)
            options = SearchOptions(model=model)
            found.append((prepare(problem.layer, problem.core, problem.links, unrolling, options), plain))
        except (DoesNotFitError, TilewrightError):
            continue
    return found


def _attack_search(
    outcome: Outcome, where: tuple[int, str, str, str, str], candidates: Candidates, spaces: list[Best]
) -> None:
    *_, allocation, objective = where
    try:
        problems = [prepared for prepared, _ in candidates]
        result = search_candidates(problems, (), ExactParameters(objective, allocation, 60.0))
    except TilewrightError as error:
        outcome.counts[f"refused: {reason(error)}"] += 1
        return
    best = min(spaces, key=lambda found: found.value(objective))
    if result is None:
        compare_verdict(outcome, where, result, candidates[0][1], best)
        return
    outcome.counts["spatial mappings settled by bound"] += result.settled_by_bound
    place = f"spatial mapping {result.candidate} of {len(candidates)}: "
    compare_verdict(outcome, where, result, candidates[result.candidate][1], best, place)


def _compare_floor(outcome: Outcome, where: tuple[int, str, str], prepared: PreparedProblem) -> None:
    """Check that the least energy without tables is no more than the tables' bound for the empty order."""
    loops = loop_multiset(prepared.spatial.temporal_sizes, None, ())
    problem, workspace = prepared.arrays, new_workspace()
    try:
        floor = energy_floor(prepared, loops, workspace)
        x = new_search(prepared, loops, workspace, "energy", True) if floor > 0 else None
    except TilewrightError:
        return
    if x is None:
        outcome.counts["no floor claimed"] += 1
        return
    root = float(problem.fixed_energy_pj) + float(x.array_energy[0, 0])
    for o in range(int(problem.operand_count)):
        root += float(x.array_energy_to_go[o, 0]) if o > 0 else 0.0
        root += float(x.energy_to_go[x.first_boundary[o], 0]) if problem.level_count[o] > 1 else 0.0
    outcome.counts["floors"] += 1
    outcome.counts["floors that are tight"] += floor >= root * (1 - CLOSE)
    if not floor <= root * (1 + CLOSE):
        outcome.differences.append(Difference(*where, "", "energy", "the floor is above a bound", floor, root))


def attack_floor(seed: int) -> Outcome:
    """Compare the floor of a larger problem with the problem's tables."""
    outcome = Outcome()
    problem = random_problem(seed, (3, 9))
    model = problem.model if seed % 2 else "corrected"
    try:
        options = SearchOptions(model=model)
        prepared = prepare(problem.layer, problem.core, problem.links, problem.unrolling, options)
    except TilewrightError:
        return outcome
    outcome.counts["problems"] += 1
    _compare_floor(outcome, (seed, model, problem.kind), prepared)
    return outcome


def _compare_spaces(
    outcome: Outcome, where: tuple[int, str, str], candidates: Candidates, spaces: dict[str, list[Best]]
) -> None:
    """Check the basis of bounds of the greedy space: the best free mapping is no worse than the best greedy one."""
    for (prepared, _), greedy, free in zip(candidates, spaces["greedy"], spaces["free"], strict=True):
        if not sizes_tiles_in_any_order(prepared.arrays):
            outcome.counts["spaces with tiles that are rounded"] += 1
            continue
        for objective in OBJECTIVES:
            outcome.counts["spaces compared"] += 1
            if not free.value(objective) <= greedy.value(objective) * (1 + CLOSE):
                text = "a greedy mapping is better than all free ones"
                values = free.value(objective), greedy.value(objective)
                outcome.differences.append(Difference(*where, "", objective, text, *values))
