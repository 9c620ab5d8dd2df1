"""Linear program of the phases of a schedule, and the lower bound on latency that follows from its dual.

The program chooses the best ways and phases for all work (docs/proofs.md#bounds, "Phases"). OR-Tools solves the
program. The dual values of the solution are the weights of the bound. Any weights give a valid bound, so the bound does
not depend on the accuracy of the solver.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.multicore.scheduling.bounds.limits import SLACK
from tilewright.multicore.scheduling.problem import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class Item:
    """Equal units of work that must be done in a range of phases. A unit is the run of a CN, or a bit that moves. It
    can be done in one of several ways.
    """

    count: float
    """Number of units of work"""
    loads: Floats
    """[way, leg, resource] Cycles for which a unit occupies the resource. The second leg of a way is in the same phase
    as the first leg or later
    """
    first: int
    """First phase in which a unit can be done."""
    last: int
    """Last phase in which a unit can be done."""
    holds: Booleans
    """[way] Whether the units occupy memory at the beginnings of phases"""
    memories: int = -1
    """Number of the set of memories that the units occupy."""
    since: int | None = None
    """First phase at whose beginning the units occupy memory. None: the phase after the one in which they are done."""
    until: int = 0
    """Last phase at whose beginning the units occupy memory."""

    @cached_property
    def legs(self) -> tuple[tuple[int, int], ...]:
        """Pairs (way, leg): the first leg of each way, and each second leg that loads some resource."""
        used = self.loads.any(axis=2)
        first = np.zeros(used.shape, np.bool_)
        first[:, 0] = True
        return tuple((int(way), int(leg)) for way, leg in np.argwhere(used | first))

    def is_last(self, way: int, leg: int) -> bool:
        """True if the leg is the last leg of the way."""
        return (way, leg + 1) not in self.legs


@dataclass(frozen=True, eq=False)
class PhaseProblem:
    """Work that must be done in the phases, and the capacity of each phase."""

    items: tuple[Item, ...]
    least_cycles: Integers
    """[phase] Smallest length of the phase in cycles"""
    idle_cycles: Floats
    """[phase, resource] Cycles of the phase in which the resource cannot work on any item"""
    room_bits: Floats
    """[set of memories] Total capacity in bits"""
    inside: Booleans
    """[set, other set] Whether the set is a subset of the other set"""
    orders: Integers
    """[order] Pair of items (before, after). At any time, the started share of `after` is at most the finished share of
    `before`
    """
    stays: Integers
    """[stay] Triple (item of bits, item of reader runs, set of memories). A share of the bits that has arrived occupies
    the memories until the same share of the runs has begun
    """

    @property
    def phases(self) -> int:
        """Number of phases."""
        return len(self.least_cycles)

    @property
    def choices(self) -> int:
        """Number of choices of the program: legs times phases, summed over all items."""
        return sum(len(item.legs) * (item.last - item.first + 1) for item in self.items)

    def order_phases(self, order: int) -> range:
        """Phases at whose end the program compares the two items of an order."""
        before, after = self.orders[order].tolist()
        return range(self.items[after].first, self.items[before].last)

    def stay_phases(self, stay: int) -> range:
        """Phases at whose beginning the program counts the bits of a stay."""
        bits, reader, _ = self.stays[stay].tolist()
        return range(self.items[bits].first + 1, self.items[reader].last + 1)


@dataclass(frozen=True, eq=False)
class PhaseWeights:
    """Weights of the constraints of the phases. After `normal`, any weights give a valid bound."""

    resource: Floats
    """[phase, resource] Weight of one cycle of the resource"""
    least: Floats
    """[phase] Weight of one cycle of the smallest length of the phase"""
    room: Floats
    """[set of memories, phase] Weight of one bit in the memories at the beginning of the phase"""
    order: Floats
    """[order, phase] Weight of the constraint of the order at the end of the phase; its unit is the whole item"""
    stay: Floats
    """[stay, phase] Weight of one bit that the stay keeps in memory at the beginning of the phase"""

    def normal(self, program: PhaseProblem) -> "PhaseWeights":
        """Weights that are changed so that they give a valid bound.

        No weight is negative, and the weights of each phase sum to at most 1. The weight of a bit of a stay is at most
        the price of its memories.
        """
        resource, least = np.maximum(self.resource, 0.0), np.maximum(self.least, 0.0)
        scale = np.maximum(1.0, resource.sum(axis=1) + least)
        room, order = (np.maximum(one, 0.0) / scale.max() for one in (self.room, self.order))
        covering = covering_prices(program, room)
        stay = np.clip(self.stay / scale.max(), 0.0, covering[program.stays[:, 2]])
        return PhaseWeights(resource / scale[:, None], least / scale, room, order, stay)


def covering_prices(program: PhaseProblem, room: Floats) -> Floats:
    """[set, phase] Price of a bit in the memories of the set. It is the sum of the weights of all sets that contain
    this set.
    """
    covering: Floats = program.inside.astype(np.float64) @ room
    return covering


def bound_cycles(program: PhaseProblem, weights: PhaseWeights) -> int:
    """Lower bound in cycles that follows from weights. It is the price of the fixed cycles of phases, plus the cheapest
    prices of all items, minus the price of the memory capacity.
    """
    weights = weights.normal(program)
    total = float(weights.least @ program.least_cycles + np.sum(weights.resource * program.idle_cycles))
    total -= float(program.room_bits @ weights.room.sum(axis=1))
    covering = covering_prices(program, weights.room)
    held = np.concatenate((np.zeros((len(covering), 1)), np.cumsum(covering, axis=1)), axis=1)
    begun, done = _prices_of_order(program, weights)
    for number, item in enumerate(program.items):
        phases = slice(item.first, item.last + 1)
        price = item.loads @ weights.resource[phases].T
        """[way, leg, phase] Price of a unit"""
        price[:, 0] += begun[number, phases]
        for way, leg in item.legs:
            if item.is_last(way, leg):
                price[way, leg] += done[number, phases]
        if item.memories >= 0:
            until = held[item.memories, item.until + 1]
            since = np.arange(item.first, item.last + 1) + 1 if item.since is None else np.array([item.since])
            price[:, 0] += item.holds[:, None] * np.maximum(until - held[item.memories, since], 0.0)[None, :]
        total += item.count * float(price.min(axis=2).sum(axis=1).min())
    return max(0, math.ceil(total - abs(total) * SLACK - SLACK))


def _prices_of_order(program: PhaseProblem, weights: PhaseWeights) -> tuple[Floats, Floats]:
    """Pair of arrays [item, phase]: price of a unit that begins in the phase, and price of a unit that ends in the
    phase. These prices come from orders and stays.
    """
    begun, done = (np.zeros((len(program.items), program.phases)) for _ in range(2))
    counts = np.array([item.count for item in program.items])
    later = np.cumsum(weights.order[:, ::-1], axis=1)[:, ::-1]
    before, after = program.orders.T
    np.add.at(begun, after, later / counts[after, None])
    np.subtract.at(done, before, later / counts[before, None])
    staying = np.zeros_like(weights.stay)
    staying[:, :-1] = np.cumsum(weights.stay[:, ::-1], axis=1)[:, -2::-1]
    bits, reader, _ = program.stays.T
    np.add.at(done, bits, staying)
    np.subtract.at(done, reader, staying * (counts[bits] / counts[reader])[:, None])
    return begun, done


def best_weights(program: PhaseProblem) -> PhaseWeights:
    """Weights of the best bound that the solver finds; zeros if it finds no bound."""
    return _Primal(program).weights()


class _Primal:
    """Linear program for the share of each item that is done in each way and phase. Its dual values are the weights."""

    def __init__(self, program: PhaseProblem) -> None:
        from ortools.linear_solver import pywraplp  # it takes a while to import

        self.program = program
        self.optimal = pywraplp.Solver.OPTIMAL
        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        self.no_limit = self.solver.infinity()
        self.solver.Objective().SetMinimization()
        cycles = [self.solver.NumVar(0.0, self.no_limit, "") for _ in range(program.phases)]
        self.resources = [[self._at_least(float(idle)) for idle in of_phase] for of_phase in program.idle_cycles]
        self.least = [self._at_least(float(bound)) for bound in program.least_cycles]
        self.rooms = [[self._at_most(float(bits)) for _ in cycles] for bits in program.room_bits]
        self.covering = [[self.rooms[other] for other in np.flatnonzero(row)] for row in program.inside]
        for phase, length in enumerate(cycles):
            self.solver.Objective().SetCoefficient(length, 1.0)
            for constraint in (*self.resources[phase], self.least[phase]):
                constraint.SetCoefficient(length, 1.0)
        ordered = set(program.orders.ravel().tolist()) | set(program.stays[:, :2].ravel().tolist())
        self.begun: dict[int, list[Any]] = {}
        self.done: dict[int, list[Any]] = {}
        for number, item in enumerate(program.items):
            self._add(number, item, number in ordered)
        self.orders = [dict(self._order(order)) for order in range(len(program.orders))]
        self.stays = [dict(self._stay(stay)) for stay in range(len(program.stays))]

    def _at_least(self, value: float) -> Any:
        return self.solver.Constraint(value, self.no_limit)

    def _at_most(self, value: float) -> Any:
        return self.solver.Constraint(-self.no_limit, value)

    def _equal(self, value: float) -> Any:
        return self.solver.Constraint(value, value)

    def _part(self) -> Any:
        return self.solver.NumVar(0.0, self.no_limit, "")

    def _add(self, number: int, item: Item, is_ordered: bool) -> None:
        """Add an item with variables for its share in each leg and phase, and with its loads."""
        parts = {leg: [self._part() for _ in range(item.first, item.last + 1)] for leg in item.legs}
        all_of_it = self._equal(1.0)
        for (way, leg), of_phase in parts.items():
            used = [
                (int(place), item.count * float(item.loads[way, leg, place]))
                for place in np.flatnonzero(item.loads[way, leg])
            ]
            legs_are_equal = self._equal(0.0) if leg else None
            for phase, part in enumerate(of_phase, item.first):
                if legs_are_equal is None:
                    all_of_it.SetCoefficient(part, 1.0)
                else:
                    legs_are_equal.SetCoefficient(part, 1.0)
                for place, load in used:
                    self.resources[phase][place].SetCoefficient(part, -load)
                if leg == 0 and item.holds[way]:
                    since = phase + 1 if item.since is None else item.since
                    for of_set in self.covering[item.memories]:
                        for constraint in of_set[since : item.until + 1]:
                            constraint.SetCoefficient(part, item.count)
            if legs_are_equal is not None:
                for part in parts[way, 0]:
                    legs_are_equal.SetCoefficient(part, -1.0)
        if is_ordered:
            self.begun[number] = self._sums([of_phase for (_, leg), of_phase in parts.items() if leg == 0])
            ends = [of_phase for leg, of_phase in parts.items() if item.is_last(*leg)]
            is_one = all(leg == 0 for _, leg in parts)
            self.done[number] = self.begun[number] if is_one else self._sums(ends)

    def _sums(self, ways: list[list[Any]]) -> list[Any]:
        """[phase of the item, without its last] Variable for the share that is done by the end of the phase."""
        sums: list[Any] = []
        for parts in list(zip(*ways, strict=True))[:-1]:
            total, defined = self._part(), self._equal(0.0)
            defined.SetCoefficient(total, 1.0)
            for part in parts:
                defined.SetCoefficient(part, -1.0)
            if sums:
                defined.SetCoefficient(sums[-1], -1.0)
            sums.append(total)
        return sums

    def _put(self, constraint: Any, sums: list[Any], first: int, phase: int, factor: float) -> float:
        """Add `factor` times the sum at the end of `phase` to a constraint, and return 0.

        Before the first phase of the item and after its last one, the sum is 0 or 1. The constraint then stays
        unchanged, and `factor` times the sum is returned.
        """
        if phase < first:
            return 0.0
        if phase - first >= len(sums):
            return factor
        constraint.SetCoefficient(sums[phase - first], factor)
        return 0.0

    def _order(self, order: int) -> Iterator[tuple[int, Any]]:
        before, after = self.program.orders[order].tolist()
        for phase in self.program.order_phases(order):
            constraint = self._at_most(0.0)
            known = self._put(constraint, self.begun[after], self.program.items[after].first, phase, 1.0)
            known += self._put(constraint, self.done[before], self.program.items[before].first, phase, -1.0)
            constraint.SetUb(-known)
            yield phase, constraint

    def _stay(self, stay: int) -> Iterator[tuple[int, Any]]:
        bits, reader, of_set = self.program.stays[stay].tolist()
        count = self.program.items[bits].count
        for phase in self.program.stay_phases(stay):
            constraint, taken = self._at_most(0.0), self._part()
            known = self._put(constraint, self.done[bits], self.program.items[bits].first, phase - 1, 1.0)
            known += self._put(constraint, self.begun[reader], self.program.items[reader].first, phase - 1, -1.0)
            constraint.SetUb(-known)
            constraint.SetCoefficient(taken, -1.0)
            for room in self.covering[of_set]:
                room[phase].SetCoefficient(taken, count)
            yield phase, constraint

    def weights(self) -> PhaseWeights:
        """Weights of the bound, read from the dual values of the solved program."""
        program, phases = self.program, self.program.phases
        rooms, orders, stays = len(self.rooms), len(self.orders), len(self.stays)
        order, stay = np.zeros((orders, phases)), np.zeros((stays, phases))
        if self.solver.Solve() != self.optimal:  # for example, if no allocation has a schedule
            return PhaseWeights(
                np.zeros_like(program.idle_cycles), np.zeros(phases), np.zeros((rooms, phases)), order, stay
            )
        for found, constraints in ((order, self.orders), (stay, self.stays)):
            for row, of_phase in zip(found, constraints, strict=True):
                for phase, constraint in of_phase.items():
                    row[phase] = -constraint.dual_value()
        counts = np.array([program.items[bits].count for bits in program.stays[:, 0].tolist()]).reshape(-1, 1)
        return PhaseWeights(
            np.array([[one.dual_value() for one in of_phase] for of_phase in self.resources]),
            np.array([one.dual_value() for one in self.least]),
            np.array([[-one.dual_value() for one in of_set] for of_set in self.rooms]).reshape(rooms, phases),
            order,
            stay / counts,
        )
