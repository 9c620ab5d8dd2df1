"""Waiting for calls, commands and requests: the kernel against a plain model, and laws of the waiting terms."""

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.cost.latency_terms import added_latency_terms
from tilewright.cost.record import LayerRecord
from tilewright.cost.waiting import WAITING_TERMS, waiting_keys
from tilewright.hardware.attributes import WAITING
from tilewright.hardware.core import CacheLevel, Core
from tilewright.search.batch import best_row, cost_orders
from tilewright.search.evaluate import PreparedProblem, allocated_boundaries, evaluate_prepared, prepare
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.floors import NO_FLOORS
from tilewright.search.exact.layer_bound import layer_bounds
from tilewright.search.exact.rounds import Incumbent
from tilewright.search.loma import loma_batches
from tilewright.search.options import SearchOptions

from tests.members import members
from tests.plain.problems import Problem, random_problem
from tests.plain.space import primes
from tests.plain.waiting import TERMS, PlainWaiting

OPTIONS = SearchOptions(model="corrected")
KEYS_OF_MORE = ("start_cycles", "queued_commands", "word_cycles", "store_latency_cycles", "line_bits")
KINDS = ("convolution", "pointwise", "gemm", "batched", "grouped")


def figures(**values: float) -> tuple[tuple[str, float], ...]:
    """Return attributes in the form of records of hardware."""
    return tuple(sorted((name, value) for name, value in values.items() if value))


def keyed(problem: Problem, rng: random.Random) -> Core:
    """Return the core of a problem with random keys; calls, commands and requests each have a chance of two thirds."""
    core = problem.core
    calls, commands, requests = (rng.random() < 0.67 for _ in range(3))
    more = random.Random(rng.getrandbits(40))  # the keys that change nothing unless they are given
    if not (calls or commands or requests):
        calls = True
    array, top = core.operational_array, core.memories[-1]
    if calls:
        core = replace(
            core,
            figures=figures(
                call_cycles=rng.choice((0, 7, 300)),
                calls_in_flight=rng.choice((1, 2, 3)),
                start_cycles=more.choice((0, 0, 90.5)),
            ),
        )
    if commands:
        in_flight = rng.choice((0, 1, 4))
        array = replace(
            array,
            figures=figures(
                command_iterations=rng.choice((1, 3, 16)),
                least_command_cycles=rng.choice((0, 4, 6.5)),
                command_latency_cycles=rng.choice((2.5, 66)) if in_flight else 0,
                commands_in_flight=in_flight,
                queued_commands=more.choice((0, 1, 4)) if calls else 0,
            ),
            command_dimensions=tuple(rng.sample(list(problem.layer.size_of), rng.choice((0, 1, 2)))),
        )
    if requests:
        latency, page = rng.choice((30, 300.5)), rng.choice((0, 0, 4096, 512 * 8))
        sizes = sorted(rng.sample((64, 300, 1000, 5000, 40000), rng.choice((0, 1, 2))))
        top = replace(
            top,
            figures=figures(
                request_latency_cycles=latency,
                requests_in_flight=rng.choice((1, 2, 16)),
                burst_bits=rng.choice((8, 64, 512)),
                page_bits=page,
                page_cycles=page and 17,
                word_cycles=more.choice((0, 0, 0.5, 1)),
                store_latency_cycles=more.choice((0, 20.5)) if sizes else 0,
                store_burst_bits=more.choice((0, 16)) if sizes else 0,
                line_bits=more.choice((0, 64, 128)) if sizes else 0,
            ),
            caches=tuple(CacheLevel(size, latency * (place + 1) / 4) for place, size in enumerate(sizes)),
            row_dimensions=tuple(rng.sample(list(problem.layer.size_of), rng.choice((0, 1, 2)))),
        )
    return replace(core, operational_array=array, memories=(*core.memories[:-1], top), waits=True)


def whole(problem: Problem) -> bool:
    """Return whether lanes divide all dimensions, so that all tiles have one size."""
    lanes: Counter[str] = Counter()
    for _, factors in problem.unrolling:
        for name, factor in factors:
            lanes[name] = (lanes[name] or 1) * factor
    return all(problem.layer.size_of[name] % factor == 0 for name, factor in lanes.items())


def prepared_of(problem: Problem, core: Core) -> PreparedProblem:
    """Return a problem prepared on a core."""
    return prepare(problem.layer, core, problem.links, problem.unrolling, OPTIONS)


def random_order(prepared: PreparedProblem, rng: random.Random) -> tuple[tuple[str, int], ...]:
    """Return the prime factors in random order."""
    found = [(name, prime) for name, size in prepared.spatial.temporal_sizes for prime in primes(int(size))]
    rng.shuffle(found)
    return tuple(found)


def plain(problem: Problem, core: Core, record: LayerRecord, prepared: PreparedProblem) -> PlainWaiting:
    """Return the plain model of the mapping of a record."""
    boundaries = allocated_boundaries(prepared, record.loop_order)
    assert boundaries is not None
    operands = problem.layer.operands
    resident = {}
    for operand, levels in record.temporal_mapping.items():
        resident[operand] = sum(len(level) for level in levels[:-1])
    below = {o: (bounds[-2] if len(bounds) > 1 else -1) for o, bounds in zip(operands, boundaries, strict=True)}
    return PlainWaiting(
        problem.layer,
        core,
        dict(problem.links),
        problem.unrolling,
        record.loop_order,
        below,
        resident,
        record.cycles_per_operation,
        round(record.latency_breakdown_cycles["onloading"] + record.latency_breakdown_cycles["offloading"]),
    )


def evaluated(seed: int) -> tuple[Problem, Core, PreparedProblem, LayerRecord] | None:
    """Return a random mapping of a random problem on a core with random keys, or None if it does not fit."""
    rng = random.Random(seed)
    problem = random_problem(rng.getrandbits(40), (1, 8), kind=rng.choice(KINDS))
    if not whole(problem):
        return None
    core = keyed(problem, rng)
    try:
        prepared = prepared_of(problem, core)
        return problem, core, prepared, evaluate_prepared(prepared, random_order(prepared, rng))
    except MappingError:
        return None


def test_the_kernel_equals_the_plain_model() -> None:
    """Waiting terms of random problems equal the plain model, rounded up to a whole cycle."""
    seen: Counter[str] = Counter()
    for seed in range(members(1500, 600)):
        found = evaluated(seed)
        if found is None:
            seen["refused"] += 1
            continue
        problem, core, prepared, record = found
        terms = {name: record.latency_breakdown_cycles[name] for name in TERMS}
        others = record.latency_cycles - sum(terms.values())
        model = plain(problem, core, record, prepared)
        if not model.lines_are_whole():
            seen["parts of lines"] += 1
            continue
        expected = model.added(others)
        for name, value in expected.items():
            near = abs(value - round(value)) < 1e-6
            assert abs(terms[name] - math.ceil(value - (1e-6 if near else 0))) <= near, (seed, terms, expected)
        seen[next((name for name in TERMS if terms[name]), "none")] += 1
        seen["with caches"] += any(memory.caches for memory in core.memories) and terms["request_waiting"] > 0
        for key in KEYS_OF_MORE:
            seen[key] += model.number(key) > 0 and any(terms.values())
    assert all(seen[name] >= 15 for name in (*TERMS, "none", "with caches", *KEYS_OF_MORE)), seen


def test_waiting_only_adds() -> None:
    """Keys for waiting leave the other latency terms, the accesses and the energy as they are.
    A core without keys has no waiting terms.
    """
    compared = 0
    for seed in range(members(600, 240)):
        found = evaluated(seed)
        if found is None:
            continue
        problem, core, _, record = found
        bare = evaluate_prepared(prepared_of(problem, problem.core), record.loop_order)
        assert not set(bare.latency_breakdown_cycles) & set(WAITING_TERMS)
        kept = {name: value for name, value in record.latency_breakdown_cycles.items() if name not in WAITING_TERMS}
        assert kept == bare.latency_breakdown_cycles
        assert record.latency_cycles == bare.latency_cycles + sum(record.latency_breakdown_cycles[n] for n in TERMS)
        assert (record.word_accesses, record.energy_pj) == (bare.word_accesses, bare.energy_pj)
        assert added_latency_terms(core) == WAITING_TERMS
        assert added_latency_terms(problem.core) == ()
        compared += 1
    assert compared > 30


def test_no_command_runs_while_the_first_inputs_are_loaded() -> None:
    """Latency without calls and requests is at least the loading at both ends plus all commands in sequence."""
    later = 0
    for seed in range(members(900, 400)):
        found = evaluated(seed)
        if found is None:
            continue
        problem, core, prepared, record = found
        array = core.operational_array
        if core.figures or not dict(array.figures).get("command_iterations"):
            continue
        busy, waiting, _ = plain(problem, core, record, prepared).commands()
        outer = record.loop_order[plain(problem, core, record, prepared).calls() :]
        commands = math.prod(size for _, size in outer) * max(busy, waiting)
        terms = record.latency_breakdown_cycles
        loading = terms["onloading"] + terms["offloading"]
        assert record.latency_cycles >= commands + loading, seed
        later += loading > 0 and terms["command_waiting"] > 0
    assert later >= 10


def test_more_in_flight_never_waits_longer() -> None:
    """Twice as many calls, commands or requests in flight never raise the latency of a mapping."""
    shorter = 0
    for seed in range(members(600, 240)):
        found = evaluated(seed)
        if found is None:
            continue
        problem, core, _, record = found
        for name in ("calls_in_flight", "commands_in_flight", "requests_in_flight"):
            faster = doubled(core, name)
            latency = evaluate_prepared(prepared_of(problem, faster), record.loop_order).latency_cycles
            assert latency <= record.latency_cycles, (seed, name)
            shorter += latency < record.latency_cycles
    assert shorter > 30


def doubled(core: Core, name: str) -> Core:
    """Return the core with twice the value of a key."""

    def twice(given: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
        return tuple((key, 2 * value if key == name else value) for key, value in given)

    array = replace(core.operational_array, figures=twice(core.operational_array.figures))
    memories = tuple(replace(memory, figures=twice(memory.figures)) for memory in core.memories)
    return replace(core, figures=twice(core.figures), operational_array=array, memories=memories)


@pytest.mark.parametrize("objective", ["latency", "energy", "EDP"])
def test_lower_bounds_hold_with_waiting(objective: str) -> None:
    """Lower bounds of the exact search ignore waiting and are not above the cost of any order."""
    checked, above = 0, 0
    for seed in range(members(160, 60)):
        rng = random.Random(seed)
        problem = random_problem(rng.getrandbits(40), (2, 6), kind=rng.choice(KINDS))
        core = keyed(problem, rng)
        try:
            prepared = prepared_of(problem, core)
        except MappingError:
            continue
        costs = [cost_orders(batch) for batch in loma_batches(prepared, (), None)]
        fitting = [one for one in costs if one.fits.any()]
        if not fitting:
            continue
        rows = [(one, best_row(one, objective)) for one in fitting]
        best = min(
            (Incumbent(energy_pj=float(one.energy_pj[row]), latency_cycles=float(one.latency_cycles[row]))).value(
                objective
            )
            for one, row in rows
        )
        one, row = rows[-1]
        known = Incumbent(energy_pj=float(one.energy_pj[row]), latency_cycles=float(one.latency_cycles[row]))
        choice = Choice(0, 0.0, 0.0, problem.layer, core, NO_FLOORS, lambda prepared=prepared: prepared)  # type: ignore[misc]
        bound = layer_bounds([choice], (), objective, known).value
        assert bound <= best * (1 + 1e-9), seed
        checked += 1
        above += best > bound * 1.01
    assert checked >= 10
    assert objective not in OBJECTIVES or above >= (0 if objective == "energy" else 1)


def test_keys_are_named_in_order() -> None:
    """The keys of a core come in the order of their declaration."""
    problem = random_problem(3, (1, 8), kind="gemm")
    core = keyed(problem, random.Random(5))
    keys = waiting_keys(core)
    assert keys
    assert [one.key for one in WAITING if one.key in keys] == list(keys)
