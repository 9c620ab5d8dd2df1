"""Attacks on the sentence of a proof over open spatial mappings.

The claims of a record are compared with brute force over every spatial mapping that a file could give instead. Each
spatial mapping has all its loop orders and level boundaries.
"""

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator

from tilewright.base.errors import TilewrightError
from tilewright.base.profile import profile_by_name
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.options import SearchOptions

from tests.plain.attack import ALLOCATIONS, CLOSE, Difference, Outcome, reason
from tests.plain.model import PlainModel
from tests.plain.problems import KINDS, Problem, random_problem
from tests.plain.space import OBJECTIVES, Best, free_best, free_count, greedy_best, greedy_count
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import SWITCHES

LARGEST_SPACES = (400, 1500, 5000)
"""Limits of the number of mappings that brute force tries for a problem; each problem draws one of the limits."""


LARGE_EFFORT = 10**9


def attack_open(
    seed: int,
    switches: tuple[str, ...] = SWITCHES,
    model: str | None = None,
    engine: str = "exact",
    effort: int = LARGE_EFFORT,
) -> Outcome:
    """Search a layer with open sides of the array in every way, and compare with the best of all mappings.

    The engine best gets an effort that is large enough for a proof, or `effort`.
    """
    outcome = Outcome()
    rng = random.Random(seed)
    while True:
        problem, name, given, mixed, plains, allocations = open_problem(rng, switches, model)
        spaces = {one: {u: best_of(one, plain) for u, plain in plains.items()} for one in allocations}
        if all(min(found.value("latency") for found in space.values()) < math.inf for space in spaces.values()):
            break  # where nothing fits, nothing is said
    outcome.counts["problems"] += 1
    outcome.counts["spatial mappings"] += len(plains)
    for allocation, best in spaces.items():
        outcome.counts["mappings costed by brute force"] += sum(one.mappings for one in best.values())
        for objective in OBJECTIVES:
            _compare(outcome, seed, (problem, name, given, mixed, allocation, objective), best, engine, effort)
    return outcome


def best_of(allocation: str, plain: PlainModel) -> Best:
    """The best of all mappings of one spatial mapping."""
    return (greedy_best if allocation == "greedy" else free_best)(plain)


def _compare(
    outcome: Outcome,
    seed: int,
    asked: tuple[Problem, str, Unrolling, bool, str, str],
    best: dict[Unrolling, Best],
    engine: str,
    effort: int,
) -> None:
    problem, model, given, mixed, allocation, objective = asked
    where = (seed, model, problem.kind, allocation, objective)
    least = min(one.value(objective) for one in best.values())
    options = SearchOptions(
        model=model,
        objective=objective,  # type: ignore[arg-type]
        allocation=allocation,  # type: ignore[arg-type]
        temporal_mapping_search_engine=engine,  # type: ignore[arg-type]
        enable_mix_spatial_mapping=mixed,
        **({"largest_gap": 0.0, "effort": effort, "ends": False} if engine == "best" else {}),  # type: ignore[arg-type]
    )
    constraints = MappingConstraints("default", given, memory_operand_links=problem.links)
    try:
        record = map_layer(problem.layer, problem.core, constraints, options)
    except TilewrightError as error:
        outcome.counts[f"refused: {reason(error).splitlines()[0][:40]}"] += 1
        if least < math.inf and "found no mapping" not in str(error) and "sliding window" not in str(error):
            outcome.differences.append(Difference(*where, f"nothing found: {error}", None, least))
        return
    value, bound = record.search["value"], record.search["lower_bound"]
    unrolling = tuple((name, tuple(factors.items())) for name, factors in record.spatial_mapping.items())
    if unrolling not in best:  # by a factor that divides the largest one with room, which may be ragged
        outcome.counts["found by a factor that does not divide"] += 1
        plain = PlainModel(problem.layer, problem.core, problem.links, unrolling, False, model)
        least = min(least, best_of(allocation, plain).value(objective))
    outcome.counts["proven" if record.search["proven"] else "not proven"] += 1
    wrong = []
    if not value >= least * (1 - CLOSE):
        wrong.append("better than the optimum")
    if record.search["proven"] and not value <= least * (1 + CLOSE):
        wrong.append("proven, and a better one exists")
    if not bound <= least * (1 + CLOSE):
        wrong.append("a better one than the bound exists")
    outcome.counts["equal" if not wrong else "DIFFERENT"] += 1
    place = min(best, key=lambda one: best[one].value(objective))
    outcome.differences += [Difference(*where, what, value, least, f"{unrolling}; best: {place}") for what in wrong]


def open_problem(
    rng: random.Random, switches: tuple[str, ...], model: str | None
) -> tuple[Problem, str, Unrolling, bool, dict[Unrolling, PlainModel], tuple[str, ...]]:
    """A problem with open sides of the array and at least two spatial mappings, small enough for brute force."""
    largest, kind, mixed = rng.choice(LARGEST_SPACES), rng.choice(KINDS), rng.random() < 0.2
    while True:
        problem = random_problem(rng.getrandbits(48), (1, 6), switches, kind)
        name = model or rng.choice((problem.model, "corrected"))
        given = tuple(side for side in problem.unrolling if rng.random() < 0.25)
        if len(given) == len(problem.core.operational_array.dimensions):
            continue
        plains = _plains(problem, name, given, mixed)
        counts = {
            "greedy": sum(map(greedy_count, plains.values())),
            "free": sum(map(free_count, plains.values())),
        }
        possible = tuple(allocation for allocation in ALLOCATIONS if counts[allocation] <= largest)
        if len(plains) > 1 and possible:
            return problem, name, given, mixed, plains, possible


def _plains(problem: Problem, model: str, given: Unrolling, mixed: bool) -> dict[Unrolling, PlainModel]:
    """Unrolling -> plain model, for every spatial mapping that the sentence covers, as a mapping file would give it."""
    found: dict[Unrolling, PlainModel] = {}
    for sides in _closed(problem, given, mixed):
        entry = MappingConstraints("default", sides, memory_operand_links=problem.links)
        try:
            (unrolling,) = spatial_candidates(problem.layer, problem.core, entry, profile_by_name(model))
            if unrolling not in found:
                found[unrolling] = PlainModel(problem.layer, problem.core, problem.links, unrolling, False, model)
        except (DoesNotFitError, TilewrightError):
            continue
    return found


def _closed(problem: Problem, given: Unrolling, mixed: bool) -> Iterator[Unrolling]:
    """Yield unrollings with the given sides; each other side has at most one loop, or any loops if `mixed` is True.

    A factor is a divisor of the size of its loop.
    """
    sizes, array = problem.layer.size_of, dict(problem.core.operational_array.dimensions)
    names = [name for name in array if name not in dict(given)]
    choices = []
    for name in names:
        rows = [
            tuple((d, f) for d, f in zip(sizes, factors, strict=True) if f > 1)
            for factors in itertools.product(*([f for f in range(1, n + 1) if n % f == 0] for n in sizes.values()))
            if math.prod(factors) <= array[name]
        ]
        choices.append([row for row in rows if mixed or len(row) < 2])
    for chosen in itertools.product(*choices):
        by_side = {**dict(given), **dict(zip(names, chosen, strict=True))}
        lanes = Counter(dict.fromkeys(sizes, 1))
        for dimension, factor in itertools.chain(*by_side.values()):
            lanes[dimension] *= factor
        if all(lanes[dimension] <= size for dimension, size in sizes.items()):  # else a side of them would be dropped
            yield tuple((name, by_side[name]) for name in array)
