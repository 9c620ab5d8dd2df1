"""What must be done in phases of a schedule, and the lower bound on latency that follows (docs/bounds.md, "Phases").

Which ways and phases are best is a linear program; its dual, by OR-Tools, gives weights. Any weights give a bound, so
that nothing rests on how well the program was solved.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.scheduling.bounds.limits import SLACK
from tilewright.scheduling.problem import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class Item:
    """Things that must be done in some phases, each in one of some ways."""

    count: float
    loads: Floats
    """[way, resource] cycles that each takes of it"""
    first: int
    last: int
    """Phases in which it may be done."""
    holds: Booleans
    """[way] whether it takes room at the beginnings of phases"""
    memories: int = -1
    """Index of the set of memories that it takes room in."""
    since: int | None = None
    """First phase at whose beginning it takes room; None: the one after that in which it is done."""
    until: int = 0
    """Last such phase."""


@dataclass(frozen=True, eq=False)
class PhaseProblem:
    """What must be done, and what limits it."""

    items: tuple[Item, ...]
    least_cycles: Integers
    """[phase] that it takes in any case"""
    idle_cycles: Floats
    """[phase, resource] in which the resource does nothing of the items"""
    room_bits: Floats
    """[set of memories] that fit together"""
    inside: Booleans
    """[set, set] whether all memories of the first are among those of the second"""

    @property
    def phases(self) -> int:
        """Number of phases."""
        return len(self.least_cycles)


@dataclass(frozen=True, eq=False)
class PhaseWeights:
    """Prices from which a bound follows, whatever they are."""

    resource: Floats
    """[phase, resource] of a cycle"""
    least: Floats
    """[phase] of the cycles that it takes in any case"""
    room: Floats
    """[set of memories, phase] of a bit at its beginning"""

    def normal(self) -> "PhaseWeights":
        """Weights that give a bound: none below zero, and no more than one in all for a phase."""
        resource, least = np.maximum(self.resource, 0.0), np.maximum(self.least, 0.0)
        scale = np.maximum(1.0, resource.sum(axis=1) + least)
        return PhaseWeights(resource / scale[:, None], least / scale, np.maximum(self.room, 0.0) / scale.max())


def bound_cycles(program: PhaseProblem, weights: PhaseWeights) -> int:
    """The bound that weights give: what is done at its cheapest, without what memories could hold."""
    weights = weights.normal()
    total = float(weights.least @ program.least_cycles + np.sum(weights.resource * program.idle_cycles))
    total -= float(program.room_bits @ weights.room.sum(axis=1))
    covering = program.inside.astype(np.float64) @ weights.room
    """[set, phase] price of a bit in one of its memories"""
    held = np.concatenate((np.zeros((len(covering), 1)), np.cumsum(covering, axis=1)), axis=1)
    for item in program.items:
        price = item.loads @ weights.resource[item.first : item.last + 1].T
        if item.memories >= 0:
            until = held[item.memories, item.until + 1]
            since = np.arange(item.first, item.last + 1) + 1 if item.since is None else np.array([item.since])
            price = price + item.holds[:, None] * np.maximum(until - held[item.memories, since], 0.0)[None, :]
        total += item.count * float(price.min())
    return max(0, math.ceil(total - abs(total) * SLACK - SLACK))


def best_weights(program: PhaseProblem) -> PhaseWeights:
    """The weights of the best bound, as far as the solver finds them; zeros where it finds none."""
    from ortools.linear_solver import pywraplp  # it takes a while to import

    solver = pywraplp.Solver.CreateSolver("GLOP")
    without_limit = solver.infinity()
    cycles = [solver.NumVar(0.0, without_limit, "") for _ in range(program.phases)]
    resources = [
        [solver.Constraint(float(idle), without_limit) for idle in of_phase] for of_phase in program.idle_cycles
    ]
    least = [solver.Constraint(float(bound), without_limit) for bound in program.least_cycles]
    rooms = [[solver.Constraint(-without_limit, float(bits)) for _ in cycles] for bits in program.room_bits]
    solver.Objective().SetMinimization()
    for phase, length in enumerate(cycles):
        solver.Objective().SetCoefficient(length, 1.0)
        for constraint in (*resources[phase], least[phase]):
            constraint.SetCoefficient(length, 1.0)
    covering = [[rooms[other] for other in np.flatnonzero(row)] for row in program.inside]
    for item in program.items:
        _add(solver, item, resources, covering)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:  # as where no allocation has a schedule
        rooms_shape = len(rooms), program.phases
        return PhaseWeights(np.zeros_like(program.idle_cycles), np.zeros(program.phases), np.zeros(rooms_shape))
    return PhaseWeights(
        np.array([[one.dual_value() for one in of_phase] for of_phase in resources]),
        np.array([one.dual_value() for one in least]),
        np.array([[-one.dual_value() for one in of_set] for of_set in rooms]).reshape(len(rooms), program.phases),
    )


def _add(solver: Any, item: Item, resources: list[list[Any]], covering: list[list[list[Any]]]) -> None:
    """Let an item be done by any of its ways in any of its phases, in parts."""
    all_of_it = solver.Constraint(item.count, item.count)
    for loads, holds in zip(item.loads, item.holds.tolist(), strict=True):
        used = [(int(place), float(loads[place])) for place in np.flatnonzero(loads)]
        for phase in range(item.first, item.last + 1):
            part = solver.NumVar(0.0, solver.infinity(), "")
            all_of_it.SetCoefficient(part, 1.0)
            for place, load in used:
                resources[phase][place].SetCoefficient(part, -load)
            if holds:
                since = phase + 1 if item.since is None else item.since
                for of_set in covering[item.memories]:
                    for constraint in of_set[since : item.until + 1]:
                        constraint.SetCoefficient(part, 1.0)
