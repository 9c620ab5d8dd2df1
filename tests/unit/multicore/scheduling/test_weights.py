"""The search for the weights of a lower bound: it ends early only if no weights give another cycle."""

import numpy as np
import pytest
from tilewright.multicore.scheduling.bounds.weights import Weighted, best_by_weights
from tilewright.multicore.scheduling.problem import Floats

from tests.members import members

ROUNDS = 200


def search(seed: int, cycles_only: bool, known: int = 0) -> tuple[Weighted, int]:
    """(bound of a random problem, number of steps); in the problem, each item chooses the cheapest of some loads."""
    draw = np.random.default_rng(seed)
    items, choices, resources = draw.integers(1, 6), draw.integers(1, 5), int(draw.integers(1, 5))
    scale = 10.0 ** draw.integers(0, 7)
    loads = draw.random((items, choices, resources)) ** 3 * scale * (draw.random((items, choices, resources)) < 0.7)
    steps = []

    def bound(weight: Floats) -> tuple[float, Floats]:
        prices = loads @ weight
        chosen = loads[np.arange(items), prices.argmin(axis=1)]
        return float(prices.min(axis=1).sum()), chosen.sum(axis=0)

    def load(chosen: Floats) -> Floats:
        steps.append(chosen)
        return chosen

    return best_by_weights(resources, ROUNDS, bound, load, cycles_only, known), len(steps)


@pytest.mark.parametrize("part", range(2))
def test_the_cycles_are_those_of_all_steps(part: int) -> None:
    """An early end takes fewer steps and never loses a cycle, whatever the sizes of the loads."""
    early = 0
    for seed in range(part * 20, (part + 1) * 20):
        found, steps = search(seed, cycles_only=True)
        whole, all_steps = search(seed, cycles_only=False)
        assert found.cycles == whole.cycles, seed
        early += steps < all_steps
    assert early >= 4


def test_cycles_above_those_that_are_known_stay() -> None:
    """A search with a known bound takes no more steps; it finds the same bound, unless the known bound is larger."""
    fewer = 0
    for seed in range(members(40, 8)):
        whole, steps = search(seed, cycles_only=True)
        for known in (whole.cycles // 2, whole.cycles - 1, whole.cycles, whole.cycles + 1, 2 * whole.cycles):
            found, taken = search(seed, cycles_only=True, known=known)
            assert max(found.cycles, known) == max(whole.cycles, known), (seed, known)
            assert taken <= steps
            fewer += taken < steps
    assert fewer > 8


def test_one_resource_needs_one_step() -> None:
    """The first load of a single resource is the bound."""
    found = best_by_weights(1, ROUNDS, lambda weight: (7.5 * weight[0], None), lambda _: np.array([7.5]), True)
    assert found.cycles == 8
    assert found.weights.tolist() == [1.0]


def test_two_machines_share_the_work() -> None:
    """Two items of 3 and 5 cycles on either of two machines: each machine gets half of 8 cycles, the best bound."""
    times = np.array([3.0, 5.0])
    calls = []

    def bound(weight: Floats) -> tuple[float, int]:
        calls.append(weight)
        return float(times.sum() * weight.min()), int(weight.argmin())

    def load(machine: int) -> Floats:
        return np.where(np.arange(2) == machine, times.sum(), 0.0)

    assert best_by_weights(2, ROUNDS, bound, load, True).cycles == 4
    assert len(calls) < 2 * ROUNDS
