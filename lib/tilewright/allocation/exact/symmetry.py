"""Cores that are interchangeable: an exchange of two of them, with their memories and links, leaves the system, the
costs and the choices as they are (docs/allocation.md)."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tilewright.allocation.space import AllocationSpace
from tilewright.scheduling.problem import SchedulingProblem

MOST_IMAGES = 24
"""Ways to rename cores, above which only some of the cores are taken for interchangeable."""
Renaming = dict[int, int]
"""Core -> core; those that are left out stay."""


def interchangeable_cores(problem: SchedulingProblem, space: AllocationSpace) -> tuple[tuple[int, ...], ...]:
    """Sets of two cores or more any of which can be exchanged, in rising order."""
    cores = sorted({core for choices in space.choices for core in choices})
    classes: list[list[int]] = []
    for core in cores:
        # If a and b can be exchanged, and b and c, then a and c can.
        known = next((one for one in classes if _can_exchange(problem, space, one[0], core)), None)
        if known is None:
            classes.append([core])
        else:
            known.append(core)
    return tuple(tuple(one) for one in classes if len(one) > 1)


def limited(classes: Sequence[Sequence[int]], most: int = MOST_IMAGES) -> tuple[tuple[int, ...], ...]:
    """As many of the cores as have at most so many renamings."""
    found, count = [], 1
    for one in classes:
        size = 1
        while size < len(one) and count * (size + 1) <= most:
            size += 1
            count *= size
        if size > 1:
            found.append(tuple(one[:size]))
    return tuple(found)


def renamings(classes: Sequence[Sequence[int]]) -> Iterator[Renaming]:
    """Every renaming of the cores of each class among themselves, the one that changes nothing first."""
    for orders in itertools.product(*(itertools.permutations(one) for one in classes)):
        pairs = zip(classes, orders, strict=True)
        yield {core: other for one, order in pairs for core, other in zip(one, order, strict=True)}


def _can_exchange(problem: SchedulingProblem, space: AllocationSpace, one: int, other: int) -> bool:
    if any((one in choices) != (other in choices) for choices in space.choices):
        return False
    costs = problem.costs
    tables = (costs.runtime_cycles, costs.on_core_energy_pj, costs.stream_bits, costs.stream_bits_per_cycle)
    return all(np.array_equal(table[:, one], table[:, other]) for table in tables) and _is_symmetric(
        problem, one, other
    )


def _is_symmetric(problem: SchedulingProblem, one: int, other: int) -> bool:
    """Whether memories and links can be renamed such that all is as before with the two cores exchanged."""
    system = problem.system
    core_of = {core: core for core in range(system.core_count)} | {one: other, other: one}
    memories: list[tuple[int, int]] = []
    for core, renamed in core_of.items():
        memories += zip(system.core_memory[core].tolist(), system.core_memory[renamed].tolist(), strict=True)
    links: list[tuple[int, int]] = []
    for first, second in itertools.product(core_of, repeat=2):
        pair, image = (first, second), (core_of[first], core_of[second])
        exists = [bool(system.path_exists[a * system.core_count + b]) for a, b in (pair, image)]
        paths = [system.path(*ends).tolist() for ends in (pair, image)]
        if exists[0] != exists[1] or len(paths[0]) != len(paths[1]):
            return False
        links += zip(*paths, strict=True)
    of_memory = (
        *(system.memory_capacity_bits, system.memory_read_bits, system.memory_write_bits),
        *(system.memory_read_energy_pj, system.memory_write_energy_pj),
    )
    of_link = (system.link_bits_per_cycle, system.link_energy_pj_per_bit, system.link_is_broadcast)
    return _renames(memories, of_memory) and _renames(links, of_link)


def _renames(pairs: Iterable[tuple[int, int]], columns: Sequence[np.ndarray]) -> bool:
    """Whether pairs (number, its new number) are a renaming, of things of which all columns agree."""
    there: dict[int, int] = {}
    back: dict[int, int] = {}
    for number, renamed in pairs:
        if there.setdefault(number, renamed) != renamed or back.setdefault(renamed, number) != number:
            return False
    return all(
        (number < 0) == (renamed < 0) and (number < 0 or all(column[number] == column[renamed] for column in columns))
        for number, renamed in there.items()
    )
