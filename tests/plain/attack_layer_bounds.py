"""Attacks on the lower bounds of loma and salsa: no random mapping of a random layer is below a bound."""

import random
from collections.abc import Callable
from functools import partial

import numpy as np
from tilewright.base.errors import MappingError, TilewrightError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import profile_by_name
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.spatial_space import passes_of
from tilewright.mapping.temporal import loop_multiset
from tilewright.search.batch import CostedBatch, OrderBatch, best_row, cost_orders
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.floors import tensor_floors
from tilewright.search.exact.layer_bound import GoalBounds, layer_bounds
from tilewright.search.exact.rounds import Incumbent
from tilewright.search.options import SearchOptions
from tilewright.workload.relevancy import outputs_have_windows

from tests.plain.problems import Problem, random_problem
from tests.plain.tally import Tally

MAPPINGS = 100
"""Number of random mappings of each layer."""
MOST_SPATIAL = 3
LOOPS = (2, 10)
CLOSE = 1e-9
Draw = Callable[[int, tuple[int, int]], Problem]
"""Function that makes a random problem from a seed and a number of loops."""


def attack_layer_bounds(seed: int, draw: Draw = random_problem) -> Tally:
    """Compare the bounds of a seed's layer, for each objective, with random temporal mappings.

    The temporal mappings are drawn for each spatial mapping of the layer.
    """
    tally, rng = Tally(), random.Random(seed)
    problem = draw(rng.getrandbits(48), LOOPS)
    model = rng.choice((problem.model, "corrected", "zigzag-3.9.1"))
    even = rng.choice(("uneven", "uneven", "even"))
    prepared = list(_prepared(problem, model, even, rng))
    costed = [_random_mappings(one, rng) for one in prepared]
    fitting = [costs for costs in costed if costs is not None and costs.fits.any()]
    if not fitting:
        tally.counts["layers without a mapping that fits"] += 1
        return tally
    tally.counts["layers"] += 1
    tally.counts[f"model: {model if '+' not in model else 'other switches'}"] += 1
    tally.counts["layers with output windows"] += outputs_have_windows(problem.layer)
    for objective in OBJECTIVES:
        bounds = layer_bounds(_choices(prepared, model), (), objective, _known(fitting[0], objective))
        _compare(tally, seed, objective, bounds, fitting)
    tally.counts["mappings"] += sum(int(costs.fits.sum()) for costs in fitting)
    return tally


def _prepared(problem: Problem, model: str, even: str, rng: random.Random) -> list[PreparedProblem]:
    """The prepared problems of the given spatial mapping, or of some generated ones."""
    options = SearchOptions(model=model, temporal_mapping_type=even)
    unrollings: list[Unrolling] = [problem.unrolling]
    if rng.random() < 0.4:
        constraints = MappingConstraints("default", (), memory_operand_links=problem.links)
        try:
            made = spatial_candidates(
                problem.layer, problem.core, constraints, profile_by_name(model), MOST_SPATIAL, False
            )
            unrollings = list(made) or unrollings
        except MappingError:
            pass
    found = []
    for unrolling in unrollings:
        try:
            found.append(prepare(problem.layer, problem.core, problem.links, unrolling, options))
        except TilewrightError:
            continue
    return found


def _choices(prepared: list[PreparedProblem], model: str) -> list[Choice]:
    """The spatial mappings in the form in which the pipeline gives them to the bound, with floors of traffic."""
    profile = profile_by_name(model)
    choices = []
    for index, one in enumerate(prepared):
        passes = float(passes_of(one.layer, one.spatial.unrolling))
        floors = tensor_floors(one.layer, one.core, one.links, profile)
        choices.append(Choice(index, passes, 0.0, one.layer, one.core, floors, partial(lambda made: made, one)))
    return choices


def _random_mappings(prepared: PreparedProblem, rng: random.Random) -> CostedBatch | None:
    """Orders of the prime factors or of merged ones, as loma and salsa visit them; None if there is no order."""
    limit = rng.choice((None, None, 3, 4, 5, 6, 7))
    multiset = loop_multiset(prepared.spatial.temporal_sizes, limit, ())
    loops = [index for index, (_, count) in enumerate(multiset.loops) for _ in range(count)]
    orders = np.array([rng.sample(loops, len(loops)) for _ in range(MAPPINGS)], np.int64).reshape(MAPPINGS, -1)
    try:
        return cost_orders(OrderBatch(prepared, tuple(loop for loop, _ in multiset.loops), orders))
    except TilewrightError:
        return None


def _known(costs: CostedBatch, objective: str) -> Incumbent:
    """The best of some random mappings, with which the search of the bound begins."""
    row = best_row(costs, objective)
    assert row is not None
    return Incumbent(energy_pj=float(costs.energy_pj[row]), latency_cycles=float(costs.latency_cycles[row]))


def _compare(tally: Tally, seed: int, objective: str, bounds: GoalBounds, fitting: list[CostedBatch]) -> None:
    """Check that no mapping is below the bound of the objective, or below those of energy and latency."""
    claims = [(objective, bounds.value)]
    if all(OBJECTIVES[objective]):
        claims += [("energy", bounds.energy_pj), ("latency", bounds.latency_cycles)]
    for goal, bound in claims:
        tally.counts[f"bounds of {goal}"] += 1
        tally.counts[f"bounds of {goal} above 0"] += bound > 0
        least = min(
            float(OBJECTIVES[goal].value(costs.energy_pj[costs.fits], costs.latency_cycles[costs.fits]).min())
            for costs in fitting
        )
        tally.counts[f"bounds of {goal} that a mapping meets"] += bound >= least * (1 - CLOSE)
        if bound > least * (1 + CLOSE):
            tally.wrong.append(f"seed {seed}, {objective}: {goal} {least} is below its bound {bound}")
