"""The exact search over allocations: comparison with brute force, its proofs, and how it ends."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tilewright.multicore.allocation.exact.model import Stop
from tilewright.multicore.allocation.exact.search import search_exactly
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.allocation.result import RELAXATION, AllocationResult, SearchProgress, summary
from tilewright.multicore.allocation.search import schedule_judge
from tilewright.multicore.allocation.space import AllocationSpace, allocation_space
from tilewright.multicore.scheduling.problem import SchedulingProblem

from tests.unit.multicore.allocation.cases import brute_force, instance
from tests.unit.multicore.allocation.exact_attack import attack, bounds_of
from tests.unit.multicore.scheduling.tiny_systems import Node, bus_system, make_problem


def searched(problem: SchedulingProblem, space: AllocationSpace, **options: object) -> AllocationResult:
    """The exact search after a short genetic search."""
    few = {"nb_ga_individuals": 4, "nb_ga_generations": 2, "exhaustive_nodes": 0, "jobs": 1}
    given = AllocationOptions(**{**few, **options})  # type: ignore[arg-type]
    return search_exactly(problem, space, schedule_judge(problem), bounds_of(problem, space), given, block=16)


@pytest.mark.parametrize("seed", [4, 17, 31, 43])
def test_random_problems(seed: int) -> None:
    """The attack finds no error in some problems of `benchmarks/attack_schedules.py`."""
    tally = attack(seed, nodes=24, enumerated=1500, seconds=10.0)
    assert tally.wrong == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "multicast", "forwarding"), [(5, True, False), (18, False, True), (23, True, True), (44, False, True)]
)
def test_random_problems_on_networks(seed: int, multicast: bool, forwarding: bool) -> None:
    """The attack finds no error where data are multicast or forwarded from core to core."""
    tally = attack(seed, nodes=20, enumerated=800, seconds=10.0, multicast=multicast, forwarding=forwarding)
    assert tally.wrong == []


@pytest.mark.parametrize("objective", ["latency", "energy", "EDP"])
def test_the_best_is_proven_to_be_the_best(objective: str) -> None:
    """Six layers of two tiles on three unlike cores: brute force finds nothing better, and the search evaluates fewer
    allocations than there are.
    """
    problem = instance(9, layers=6)
    space = allocation_space(problem)
    found = searched(problem, space, objective=objective)
    value = {"latency": "latency_cycles", "energy": "energy_pj", "EDP": "edp"}[objective]
    best = min(getattr(point, value) for point in brute_force(problem, space))
    assert getattr(found.chosen, value) == pytest.approx(best, rel=1e-9)
    proof = found.proof
    assert proof is not None
    assert (proof.is_proven, found.stopped_by, proof.gap) == (True, "proven", 0.0)
    assert proof.lower_bound == proof.value == getattr(found.chosen, value)
    assert found.evaluations < space.size


def test_the_relaxation_alone_proves_what_sums_do_not() -> None:
    """Four CNs of 5 cycles on three equal cores: two CNs share a core, so the bound is 10 cycles, not 20 / 3."""
    problem = make_problem(bus_system(3), [], [Node(5, group=number) for number in range(4)])
    assert bounds_of(problem, allocation_space(problem)).latency_cycles == 7
    found = searched(problem, allocation_space(problem))
    assert found.proof is not None
    assert (found.proof.rule, found.proof.excluded) == (RELAXATION, 0)
    assert found.chosen.latency_cycles == found.proof.of_any_schedule == 10


def test_without_effort_nothing_is_proven() -> None:
    """The result without proof evaluations is the best allocation found, with a lower bound on all allocations."""
    problem = instance(9)
    found = searched(problem, allocation_space(problem), proof_evaluations=1)
    assert found.proof is not None
    assert (found.proof.is_proven, found.proof.rule, found.stopped_by) == (False, "", "effort")
    bound = bounds_of(problem, allocation_space(problem)).latency_cycles
    assert bound < found.proof.lower_bound == found.proof.of_any_schedule < found.proof.value
    assert summary(found)["proof"]["gap"] == found.proof.gap > 0


def test_equal_inputs_give_equal_results() -> None:
    """Equal inputs give equal results with one thread and with three."""
    problem = instance(4)
    space = allocation_space(problem)
    first, second = (searched(problem, space, jobs=threads, objective="EDP") for threads in (1, 3))
    assert replace(first, space=space).proof == second.proof
    assert (first.chosen, first.front, first.evaluations) == (second.chosen, second.front, second.evaluations)


def test_a_time_budget_and_an_interrupt_keep_the_best() -> None:
    """A time budget and an interrupt end the search after the genetic algorithm and keep its best result."""
    problem = instance(9, layers=8)
    space, judge = allocation_space(problem), schedule_judge(problem)
    bounds, ticks = bounds_of(problem, space), itertools.count()
    options = AllocationOptions(nb_ga_individuals=4, nb_ga_generations=2, exhaustive_nodes=0, jobs=1)
    timed = AllocationOptions(**{**vars(options), "ga_time_budget_s": 60.0})
    late = search_exactly(problem, space, judge, bounds, timed, clock=lambda: float(next(ticks)))
    assert late.stopped_by == "time_budget"

    def stop(report: SearchProgress) -> None:
        if report.evaluations == 20:
            raise KeyboardInterrupt

    stopped = search_exactly(problem, space, judge, bounds, options, stop)
    assert (stopped.stopped_by, stopped.evaluations) == ("interrupted", 20)
    assert stopped.proof is not None
    assert not stopped.proof.is_proven


class SlowToBegin:
    """Solver that ignores a request to end before it has begun, like the solver of OR-Tools."""

    def __init__(self) -> None:
        self.has_begun, self.ended = threading.Event(), threading.Event()

    def stop_search(self) -> None:
        """End the solver if it has begun."""
        if self.has_begun.is_set():
            self.ended.set()

    def solve(self) -> bool:
        """Returns True if a request ended the solver."""
        time.sleep(0.1)
        self.has_begun.set()
        return self.ended.wait(20)


def test_a_solver_that_begins_after_the_request_to_end_is_ended() -> None:
    """The solver is ended even if it begins after the request to end."""
    stop, solver = Stop(), SlowToBegin()

    def run() -> bool:
        time.sleep(0.1)
        with stop.watching(solver):
            return solver.solve()

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(run)
        stop.end(running)
        assert running.result()


def test_nothing_to_choose() -> None:
    """A system with one core has one allocation, which is evaluated and proven."""
    problem = make_problem(bus_system(1), [], [Node(3), Node(4)])
    found = searched(problem, allocation_space(problem))
    assert found.proof is not None
    assert (found.evaluations, found.proof.is_proven, found.stopped_by) == (1, True, "everything")
    assert np.array_equal(found.allocation, [0, 0])
