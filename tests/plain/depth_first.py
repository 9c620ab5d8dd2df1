"""The best depth-first schedule of a small chain, by trying every cut, and every mode and tile of each stack."""

from collections.abc import Iterator
from itertools import product

from tilewright.base.errors import MappingError
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.stack_cost import StackModel

Choice = tuple[int, int, str, int, int]
"""(first layer, last layer, mode, width, height)."""


def costs_of_stacks(model: StackModel) -> dict[Choice, tuple[float, float]]:
    """(energy, latency) of everything that can be a part of a schedule; stacks that fit in no memory are left out."""
    layers = model.chain.layers
    found = {}
    for first in range(len(layers)):
        for last in range(first, len(layers)):
            sizes = [range(1, layers[last].window(axis).output_size + 1) for axis in (0, 1)]
            for mode, x, y in product(MODES, *sizes):
                try:
                    ledger = model.cost(first, last, (x, y), mode)
                except MappingError:
                    continue
                found[first, last, mode, x, y] = (ledger.energy_pj, ledger.latency_cycles())
    return found


def cuts(count: int) -> Iterator[list[tuple[int, int]]]:
    """Every way to cut `count` layers into stacks."""
    for ends in product((False, True), repeat=count - 1):
        stops = [place for place, is_end in enumerate(ends) if is_end] + [count - 1]
        yield list(zip([0, *[stop + 1 for stop in stops[:-1]]], stops, strict=True))


def least_value(costs: dict[Choice, tuple[float, float]], count: int, energy_power: int, latency_power: int) -> float:
    """The least product of powers over all schedules, one by one."""
    best = float("inf")
    for stacks in cuts(count):
        options = [{cost for key, cost in costs.items() if key[:2] == stack} for stack in stacks]
        front = [[a for a in own if not any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in own)] for own in options]
        for parts in product(*front):
            energy, cycles = (sum(part[which] for part in parts) for which in (0, 1))
            best = min(best, energy**energy_power * cycles**latency_power)
    return best
