"""Attacks on Pareto fronts: fronts of small layers and networks equal brute force, and cover random mappings."""

import itertools
import random
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from tilewright.base.errors import MappingError, TilewrightError
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.temporal import loop_multiset
from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.layer_front import FrontSearch, FrontSource
from tilewright.pipeline.stages.run import map_layer
from tilewright.pipeline.stages.temporal import Best
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.floors import NO_FLOORS
from tilewright.search.exact.staircase import Staircase
from tilewright.search.front import BoundedFront, columns, front_of, network_front, on_staircase
from tilewright.search.options import SearchOptions
from tilewright.workload.relevancy import outputs_have_windows

from tests.plain.attack_open import best_of, open_problem
from tests.plain.problems import random_problem
from tests.plain.switches import SWITCHES
from tests.plain.tally import Tally
from tests.unit.search.exact.exact_brute_force import LARGEST_FREE_SPACE, free_mapping_count, space_of
from tests.unit.search.exact.exact_cases import MODELS, random_case

MAPPINGS = 200
"""Number of random mappings of a layer that is too large for brute force."""
LAYERS_OF_NETWORK = 3
CLOSE = 1e-8
LOOPS = (5, 11)
EFFORTS = (300, 5_000, 100_000, 1_000_000)


def attack_fronts(seed: int) -> Tally:
    """Attacks a network of small layers and an open layer by brute force, and a larger layer by random mappings."""
    tally, rng = Tally(), random.Random(seed)
    known = []
    while len(known) < LAYERS_OF_NETWORK:
        found = _small_layer(rng.getrandbits(40), rng, tally, seed)
        if found is not None:
            known.append((*found, rng.choice((1, 1, 2, 5))))
    _compare_network(known, tally, seed)
    _attack_large(rng, tally, seed)
    _attack_open(rng, tally, seed)
    return tally


def searched(prepared: PreparedProblem, allocation: str, effort: int | None) -> BoundedFront | None:
    """Front of the layer with one spatial mapping; None if no mapping fits."""
    mapper = Best(objective="EDP", allocation=allocation, front=True, effort=effort)

    def source(objective: str, pj_a_cycle: float, known: Staircase | None = None) -> Any:
        choice = Choice(0, 1, 0.0, prepared.layer, prepared.core, NO_FLOORS, partial(_itself, prepared))
        return FrontSource([choice.priced(pj_a_cycle)], lambda _: SimpleNamespace(unrolling=()), lambda _: prepared)

    found = mapper.search(iter(source("EDP", 0.0).choices), 1, (), Control())
    return None if found is None else FrontSearch(source, mapper, 1, (), Control()).run(found, source("EDP", 0.0))


def _itself(prepared: PreparedProblem) -> PreparedProblem:
    return prepared


def _small_layer(number: int, rng: random.Random, tally: Tally, seed: int) -> tuple[BoundedFront, np.ndarray] | None:
    """Front of a small layer, and the staircase of all its mappings; None if no mapping fits."""
    model, allocation = rng.choice(MODELS), rng.choice(("greedy", "free"))
    try:
        prepared = random_case(random.Random(number)).prepared(model)
        if allocation == "free" and free_mapping_count(prepared) > LARGEST_FREE_SPACE:
            return None
        front = searched(prepared, allocation, None)
    except MappingError:
        return None
    if front is None:
        return None
    spaces = space_of(prepared, allocation)
    energy = np.concatenate([space.energy_pj[space.fits] for space in spaces])
    latency = np.concatenate([space.latency_cycles[space.fits] for space in spaces])
    kept = on_staircase(energy, latency)
    own_energy, own_latency = columns(front.points)
    same = len(own_energy) == len(kept) and np.allclose(own_energy, energy[kept], rtol=CLOSE, atol=0)
    if not (same and np.allclose(own_latency, latency[kept], rtol=CLOSE, atol=0) and front.is_complete):
        tally.wrong.append(f"seed {seed}, layer {number}, {model}, {allocation}: front unlike brute force")
    tally.counts[f"layers by brute force, {model}, {allocation}"] += 1
    tally.counts["points of layers by brute force"] += len(kept)
    return front, np.column_stack([energy[kept], latency[kept]])


def _compare_network(known: list[tuple[BoundedFront, np.ndarray, int]], tally: Tally, seed: int) -> None:
    """Check a network's front against the sums of one point a layer, over all choices of points.

    Each sum is covered by a point of the front, up to the front's largest miss. Each point of the front is such a sum.
    """
    front = network_front([(one, count) for one, _, count in known])
    chosen = itertools.product(*(points * count for _, points, count in known))
    sums = np.array([np.sum(points, axis=0) for points in chosen])
    tally.counts["networks by brute force"] += 1
    tally.counts["networks with a complete front"] += front.is_complete
    _compare(front, sums[:, 0], sums[:, 1], tally, f"seed {seed}, network")
    for energy, latency in zip(*columns(front.points), strict=True):
        if not (np.isclose(sums, (energy, latency), rtol=CLOSE, atol=0).all(axis=1)).any():
            tally.wrong.append(f"seed {seed}: point {energy}, {latency} is no sum")


def _attack_large(rng: random.Random, tally: Tally, seed: int) -> None:
    """Check a larger layer with random orders of prime factors and of merged loops."""
    problem = random_problem(rng.getrandbits(48), LOOPS)
    effort = rng.choice(EFFORTS)
    try:
        options = SearchOptions(model=rng.choice(MODELS))
        prepared = prepare(problem.layer, problem.core, problem.links, problem.unrolling, options)
        front = None if outputs_have_windows(problem.layer) else searched(prepared, "greedy", effort)
    except TilewrightError:
        return
    if front is None:
        return
    tally.counts["layers attacked"] += 1
    tally.counts["layers attacked with a miss of at most 1 %"] += front.largest_miss <= 0.01 + CLOSE
    tally.counts["layers attacked without a bound"] += front.stated_miss is None
    for limit in (None, 4, 6):
        multiset = loop_multiset(prepared.spatial.temporal_sizes, limit, ())
        loops = [index for index, (_, count) in enumerate(multiset.loops) for _ in range(count)]
        orders = np.array([rng.sample(loops, len(loops)) for _ in range(MAPPINGS)], np.int64).reshape(MAPPINGS, -1)
        costs = cost_orders(OrderBatch(prepared, tuple(loop for loop, _ in multiset.loops), orders))
        fits = costs.fits
        tally.counts["random mappings"] += int(fits.sum())
        _compare(front, costs.energy_pj[fits], costs.latency_cycles[fits], tally, f"seed {seed}, effort {effort}")


def _attack_open(rng: random.Random, tally: Tally, seed: int) -> None:
    """Check the front of a layer whose spatial mapping is not given, by brute force over all mappings."""
    problem, model, given, mixed, plains, allocations = open_problem(random.Random(rng.getrandbits(48)), SWITCHES, None)
    allocation, effort = rng.choice(allocations), rng.choice(EFFORTS)
    options = SearchOptions(
        model=model,
        objective="EDP",
        temporal_mapping_search_engine="best",
        allocation=allocation,  # type: ignore[arg-type]
        enable_mix_spatial_mapping=mixed,
        front=True,
        effort=effort,
    )
    costs = set().union(*(best_of(allocation, plain).costs for plain in plains.values()))
    constraints = MappingConstraints("default", given, memory_operand_links=problem.links)
    try:
        record = map_layer(problem.layer, problem.core, constraints, options)
    except TilewrightError:
        return
    if not costs or "front" not in record.search:
        return
    front = front_of(record.search["front"])
    energy, latency = np.array(sorted(costs)).T
    profile = model if model in MODELS else "single switches"
    tally.counts[f"layers with open sides by brute force, {profile}"] += 1
    tally.counts["layers with open sides and a complete front"] += front.is_complete
    tally.counts["mappings of layers with open sides"] += len(costs)
    _compare(front, energy, latency, tally, f"seed {seed}, open, {model}, {allocation}, effort {effort}")


def _compare(front: BoundedFront, energy: np.ndarray, latency: np.ndarray, tally: Tally, where: str) -> None:
    """Check that no mapping is below a bound, and that points match each mapping within the stated miss."""
    if not len(energy):
        return
    own_energy, own_latency = columns(front.points)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.maximum(own_energy / energy[:, None], own_latency / latency[:, None]).min(axis=1).max()
    if worst > (1 + front.largest_miss) * (1 + CLOSE):
        tally.wrong.append(f"{where}: a mapping escapes by {worst - 1}, and {front.largest_miss} is stated")
    for line in front.lines:
        least = (energy + line.pj_a_cycle * latency).min()
        if least < line.level_pj * (1 - CLOSE):
            tally.wrong.append(f"{where}: {least} is below the line {line}")
    if latency.min() < front.least_latency_cycles * (1 - CLOSE):
        tally.wrong.append(f"{where}: latency {latency.min()} is below {front.least_latency_cycles}")
