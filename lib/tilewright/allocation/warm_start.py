"""Allocations that are often good, for the first population."""

from collections.abc import Callable, Iterator

from tilewright.allocation.space import AllocationSpace, Genome


def warm_starts(space: AllocationSpace) -> tuple[Genome, ...]:
    """Distinct starts, the most promising first.

    Each part on its fastest core; each on the core of least energy; each where the work so far would end first; parts
    in turn over the cores that are equally fast; layers in turn over them; everything on one core where it may run
    there, else on the fastest, for each core.
    """
    cores = sorted({core for choice in space.choices for core in choice})
    starts = [
        [_fastest(space, part) for part in range(len(space.parts))],
        [_least_energy(space, part) for part in range(len(space.parts))],
        _balanced(space),
        _in_turn(space, lambda part: part),
        _in_turn(space, lambda part: space.parts[part][0]),
        *(on_one_core(space, core) for core in cores),
    ]
    return tuple(dict.fromkeys(space.genome(start) for start in starts))


def _fastest(space: AllocationSpace, part: int) -> int:
    return min(space.choices[part], key=lambda core: (space.runtime_cycles[part, core], core))


def _least_energy(space: AllocationSpace, part: int) -> int:
    return min(space.choices[part], key=lambda core: (space.on_core_energy_pj[part, core], core))


def on_one_core(space: AllocationSpace, core: int) -> list[int]:
    """[part] the core where the part may run there, else the fastest one for it."""
    return [core if core in choices else _fastest(space, part) for part, choices in enumerate(space.choices)]


def _balanced(space: AllocationSpace) -> list[int]:
    """Parts by layer, each on the core where the work given to it so far and the part end first."""
    load = dict.fromkeys(range(space.runtime_cycles.shape[1]), 0)
    cores = []
    for part, choices in enumerate(space.choices):
        core = min(choices, key=lambda core: (load[core] + int(space.runtime_cycles[part, core]), core))
        load[core] += int(space.runtime_cycles[part, core])
        cores.append(core)
    return cores


def _in_turn(space: AllocationSpace, unit: Callable[[int], int]) -> list[int]:
    """Parts over the cores on which they are fastest; parts of the same unit take the same turn."""
    return list(_turns(space, unit))


def _turns(space: AllocationSpace, unit: Callable[[int], int]) -> Iterator[int]:
    turn_of: dict[tuple[tuple[int, ...], int], int] = {}
    taken: dict[tuple[int, ...], int] = {}
    for part, choices in enumerate(space.choices):
        least = min(space.runtime_cycles[part, core] for core in choices)
        equal = tuple(core for core in choices if space.runtime_cycles[part, core] == least)
        key = (equal, unit(part))
        if key not in turn_of:
            turn_of[key] = taken.get(equal, 0)
            taken[equal] = turn_of[key] + 1
        yield equal[turn_of[key] % len(equal)]
