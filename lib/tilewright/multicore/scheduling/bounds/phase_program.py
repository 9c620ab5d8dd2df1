"""Linear program of the phases of a schedule.

The dual of the program gives a lower bound of the latency.

The program divides all work among phases and ways so that the latency is smallest (docs/proofs/bounds-phases.md,
"Phases"). A way is a core on which a CN can run, or the links over which data can move. OR-Tools solves the program.
The dual values of the solution are the weights of the constraints, from which the bound is computed. Any weights give a
valid bound, so an inaccurate solution cannot make the bound wrong.
"""

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.multicore.scheduling.bounds.limits import SLACK
from tilewright.multicore.scheduling.bounds.weights import ArrayContent
from tilewright.multicore.scheduling.problem import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class Item:
    """Units of work of equal size that must be done in a range of phases. A unit is the run of a CN, or a bit that
    moves. There can be several ways to do a unit.
    """

    count: float
    """Number of units of work"""
    loads: Floats
    """Cycles for which a unit occupies a resource (one entry for each way, leg and resource). A way has one or two
    moves, its legs. The second leg takes place in the same phase as the first, or later.
    """
    first: int
    """First phase in which a unit can be done."""
    last: int
    """Last phase in which a unit can be done."""
    holds: Booleans
    """True if a unit of work that is done in this way occupies memory when later phases begin (one entry for each way)
    """
    memories: int = -1
    """Index in `PhaseProblem.room_bits` of the set of memories that the units occupy; -1 if the units occupy no
    memory.
    """
    since: int | None = None
    """First phase at whose beginning the units occupy memory. None stands for the phase directly after the phase in
    which the units are done.
    """
    until: int = 0
    """Last phase at whose beginning the units still occupy memory."""

    @cached_property
    def legs(self) -> tuple[tuple[int, int], ...]:
        """Legs of the item, as pairs (index of the way, index of the leg). The first leg of every way is included. A
        second leg is included only if it occupies some resource.
        """
        used = self.loads.any(axis=2)
        first = np.zeros(used.shape, np.bool_)
        first[:, 0] = True
        return tuple((int(way), int(leg)) for way, leg in np.argwhere(used | first))

    def is_last(self, way: int, leg: int) -> bool:
        """True if the leg is the last move of the way. A way has one or two legs."""
        return (way, leg + 1) not in self.legs


@dataclass(frozen=True, eq=False)
class PhaseProblem:
    """Work that must be done in the phases, and the capacity of each phase."""

    items: tuple[Item, ...]
    least_cycles: Integers
    """Smallest length of the phase in cycles (one entry for each phase)"""
    idle_cycles: Floats
    """Cycles of a phase in which the resource cannot work on any item (one entry for each phase and resource)"""
    room_bits: Floats
    """Total capacity in bits of a set of memories (one entry for each set)"""
    inside: Booleans
    """True if the first set of memories is a subset of the second set (one entry for each pair of sets)"""
    orders: Integers
    """Pairs of items (before, after). At any time, the started share of `after` is at most the finished share of
    `before`
    """
    stays: Integers
    """Stays of data in memory, as triples (item of the bits, item of the readers, set of memories). The units of the
    first item are the bits that stay; the units of the second item are the runs of the CNs that read these bits. If a
    share of the bits has arrived, it occupies the memories until the same share of the runs has begun.
    """

    @property
    def phases(self) -> int:
        """Number of phases."""
        return len(self.least_cycles)

    @cached_property
    def choices(self) -> int:
        """Number of variables of the program that stand for shares of items. There is one variable for each leg of an
        item in each phase of the item.
        """
        return sum(len(item.legs) * (item.last - item.first + 1) for item in self.items)

    def order_phases(self, order: int) -> range:
        """Phases after which the linear program compares the finished shares of the items `before` and `after`. They
        are the pair (before, after) at position `order` of `orders`.
        """
        before, after = self.orders[order].tolist()
        return range(self.items[after].first, self.items[before].last)

    def stay_phases(self, stay: int) -> range:
        """Phases at whose beginning the program counts the bits of a stay."""
        bits, reader, _ = self.stays[stay].tolist()
        return range(self.items[bits].first + 1, self.items[reader].last + 1)


@dataclass(frozen=True, eq=False)
class PhaseWeights:
    """Weights of the constraints of the phases. The method `normal` makes weights that give a valid bound."""

    resource: Floats
    """Weight of one cycle of the resource (one entry for each phase and resource)"""
    least: Floats
    """Weight, per cycle, of the constraint that the phase has at least its smallest length (one entry for each phase)
    """
    room: Floats
    """Weight of one bit in the memories at the beginning of the phase (one entry for each set of memories and phase)"""
    order: Floats
    """Weight of the constraint that compares the two items of a pair in `orders` at the end of the phase (one entry for
    each pair and phase). The weight is for whole items, not for units of work
    """
    stay: Floats
    """Weight of one bit that the stay keeps in memory at the beginning of the phase (one entry for each stay and phase)
    """

    def normal(self, program: PhaseProblem) -> "PhaseWeights":
        """Valid weights made from these weights. No weight is negative. The weights `resource` and `least` of a phase
        sum to at most 1. The weight of one bit of a stay is at most the price of a bit in the memories of the stay
        (`covering_prices`).
        """
        resource, least = np.maximum(self.resource, 0.0), np.maximum(self.least, 0.0)
        scale = np.maximum(1.0, resource.sum(axis=1) + least)
        room, order = (np.maximum(one, 0.0) / scale.max() for one in (self.room, self.order))
        covering = covering_prices(program, room)
        stay = np.clip(self.stay / scale.max(), 0.0, covering[program.stays[:, 2]])
        return PhaseWeights(resource / scale[:, None], least / scale, room, order, stay)


def covering_prices(program: PhaseProblem, room: Floats) -> Floats:
    """Price of one bit that a set of memories stores at the beginning of a phase: array of shape (sets, phases). The
    price of a set is the sum of the weights `room` over the set itself and all sets that contain it.
    """
    covering: Floats = program.inside.astype(np.float64) @ room
    return covering


def bound_cycles(program: PhaseProblem, weights: PhaseWeights) -> int:
    """Lower bound in cycles that follows from weights. A price is an amount multiplied by its weight. The bound is a
    sum of three terms: the prices of the smallest lengths and of the idle cycles of all phases; the lowest possible
    price of each item; and the negative price of the memory capacity.
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
        """Price of a unit (one entry for each way, leg and phase)"""
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
    """Amounts that two kinds of constraints add to the price of a unit of work: constraints on the order of two items,
    and constraints on data that stay in memory. The result is a pair of arrays of shape (items, phases). The first
    array is for units that begin in the phase, the second for units that end in the phase. An amount can be negative.
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


MANY_VARIABLES = 15_000
"""Number of variables above which HiGHS replaces GLOP as the solver of a program. For a program of 43,762 variables and
28,598 rows, GLOP takes 7.5 CPU s and HiGHS 1.9 CPU s. GLOP is faster for small programs.
"""
MOST_REMEMBERED = 64
"""Largest number of programs whose bounds are cached."""
_remembered: dict[Hashable, int] = {}


def best_bound_cycles(program: PhaseProblem) -> int:
    """Largest lower bound in cycles that the solver finds for a program. The bounds of the last MOST_REMEMBERED
    programs are cached, because the program stays the same if only energies of the hardware change.
    """
    content = _content_of(program)
    if content not in _remembered:
        cycles = bound_cycles(program, best_weights(program))
        while len(_remembered) >= MOST_REMEMBERED:
            _remembered.pop(next(iter(_remembered)), None)
        _remembered[content] = cycles
    return _remembered[content]


def _content_of(value: Any) -> Hashable:
    """Hashable key of a program, or of a part of a program. Equal contents have equal keys."""
    if isinstance(value, np.ndarray):
        return ArrayContent.of(value)
    if isinstance(value, tuple):
        return tuple(_content_of(part) for part in value)
    if is_dataclass(value):
        return tuple(_content_of(getattr(value, column.name)) for column in fields(value))
    return value  # type: ignore[no-any-return]


def best_weights(program: PhaseProblem) -> PhaseWeights:
    """Weights of the best bound that the solver finds; zeros if it finds no bound."""
    return _Primal(program).weights()


@dataclass(eq=False)
class _Row:
    """Constraint of the linear program: a weighted sum of variables that must be from `lower` to `upper`."""

    number: int
    lower: float
    upper: float
    factors: dict[int, float] = field(default_factory=dict)
    """Variable, as a number -> factor of the variable in the sum."""


class _Primal:
    """Linear program whose variables are the shares of each item (units of work) that are done in each way and phase.
    The dual values of the program are the weights.
    """

    def __init__(self, program: PhaseProblem) -> None:
        self.program = program
        self.variables = 0
        """Number of variables. The first variables are the lengths of the phases."""
        self.rows: list[_Row] = []
        cycles = [self._part() for _ in range(program.phases)]
        self.resources = [[self._at_least(float(idle)) for idle in of_phase] for of_phase in program.idle_cycles]
        self.least = [self._at_least(float(bound)) for bound in program.least_cycles]
        self.rooms = [[self._at_most(float(bits)) for _ in cycles] for bits in program.room_bits]
        self.covering = [[self.rooms[other] for other in np.flatnonzero(row)] for row in program.inside]
        for phase, length in enumerate(cycles):
            for constraint in (*self.resources[phase], self.least[phase]):
                constraint.factors[length] = 1.0
        ordered = set(program.orders.ravel().tolist()) | set(program.stays[:, :2].ravel().tolist())
        self.begun: dict[int, list[int]] = {}
        self.done: dict[int, list[int]] = {}
        for number, item in enumerate(program.items):
            self._add(number, item, number in ordered)
        self.orders = [dict(self._order(order)) for order in range(len(program.orders))]
        self.stays = [dict(self._stay(stay)) for stay in range(len(program.stays))]

    def _row(self, lower: float, upper: float) -> _Row:
        self.rows.append(_Row(len(self.rows), lower, upper))
        return self.rows[-1]

    def _at_least(self, value: float) -> _Row:
        return self._row(value, math.inf)

    def _at_most(self, value: float) -> _Row:
        return self._row(-math.inf, value)

    def _equal(self, value: float) -> _Row:
        return self._row(value, value)

    def _part(self) -> int:
        self.variables += 1
        return self.variables - 1

    def _add(self, number: int, item: Item, is_ordered: bool) -> None:
        """Add an item to the linear program: variables for its share in each leg and phase, and its loads. `number` is
        the position of the item in the program. With `is_ordered`, two more variables are added for the end of each
        phase: the share that has begun, and the share that is done.
        """
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
                    all_of_it.factors[part] = 1.0
                else:
                    legs_are_equal.factors[part] = 1.0
                for place, load in used:
                    self.resources[phase][place].factors[part] = -load
                if leg == 0 and item.holds[way]:
                    since = phase + 1 if item.since is None else item.since
                    for of_set in self.covering[item.memories]:
                        for constraint in of_set[since : item.until + 1]:
                            constraint.factors[part] = item.count
            if legs_are_equal is not None:
                for part in parts[way, 0]:
                    legs_are_equal.factors[part] = -1.0
        if is_ordered:
            self.begun[number] = self._sums([of_phase for (_, leg), of_phase in parts.items() if leg == 0])
            ends = [of_phase for leg, of_phase in parts.items() if item.is_last(*leg)]
            is_one = all(leg == 0 for _, leg in parts)
            self.done[number] = self.begun[number] if is_one else self._sums(ends)

    def _sums(self, ways: list[list[int]]) -> list[int]:
        """Variables for the share of an item that is done by the end of a phase. Each phase of the item has one
        variable, except the last phase, after which the share is always 1. `ways` has a list for each way to do the
        item. The list has a variable for each phase: the share that is done in this phase and in this way.
        """
        sums: list[int] = []
        for parts in list(zip(*ways, strict=True))[:-1]:
            total, defined = self._part(), self._equal(0.0)
            defined.factors[total] = 1.0
            for part in parts:
                defined.factors[part] = -1.0
            if sums:
                defined.factors[sums[-1]] = -1.0
            sums.append(total)
        return sums

    def _put(self, constraint: _Row, sums: list[int], first: int, phase: int, factor: float) -> float:
        """Add the term `factor` * share to a constraint, and return the constant part of this term. The share is the
        part of an item that is done at the end of `phase`.

        `sums` has a variable for the share at the end of each phase, from phase `first` on (`_sums`). If `phase` has
        such a variable, the constraint gets `factor` * variable, and the result is 0. Before `first`, the share is 0,
        so the result is 0. From the last phase of the item on, the share is 1, so the result is `factor`.
        """
        if phase < first:
            return 0.0
        if phase - first >= len(sums):
            return factor
        constraint.factors[sums[phase - first]] = factor
        return 0.0

    def _order(self, order: int) -> Iterator[tuple[int, _Row]]:
        before, after = self.program.orders[order].tolist()
        for phase in self.program.order_phases(order):
            constraint = self._at_most(0.0)
            known = self._put(constraint, self.begun[after], self.program.items[after].first, phase, 1.0)
            known += self._put(constraint, self.done[before], self.program.items[before].first, phase, -1.0)
            constraint.upper = -known
            yield phase, constraint

    def _stay(self, stay: int) -> Iterator[tuple[int, _Row]]:
        bits, reader, of_set = self.program.stays[stay].tolist()
        count = self.program.items[bits].count
        for phase in self.program.stay_phases(stay):
            constraint, taken = self._at_most(0.0), self._part()
            known = self._put(constraint, self.done[bits], self.program.items[bits].first, phase - 1, 1.0)
            known += self._put(constraint, self.begun[reader], self.program.items[reader].first, phase - 1, -1.0)
            constraint.upper = -known
            constraint.factors[taken] = -1.0
            for room in self.covering[of_set]:
                room[phase].factors[taken] = count
            yield phase, constraint

    def weights(self) -> PhaseWeights:
        """Weights of the bound, read from the dual values of the solved program."""
        program, phases = self.program, self.program.phases
        rooms, orders, stays = len(self.rooms), len(self.orders), len(self.stays)
        order, stay = np.zeros((orders, phases)), np.zeros((stays, phases))
        prices = self._prices()
        if prices is None:  # for example, if no allocation has a schedule
            return PhaseWeights(
                np.zeros_like(program.idle_cycles), np.zeros(phases), np.zeros((rooms, phases)), order, stay
            )
        for found, constraints in ((order, self.orders), (stay, self.stays)):
            for row, of_phase in zip(found, constraints, strict=True):
                for phase, constraint in of_phase.items():
                    row[phase] = -prices[constraint.number]
        counts = np.array([program.items[bits].count for bits in program.stays[:, 0].tolist()]).reshape(-1, 1)
        return PhaseWeights(
            np.array([[prices[one.number] for one in of_phase] for of_phase in self.resources]),
            np.array([prices[one.number] for one in self.least]),
            np.array([[-prices[one.number] for one in of_set] for of_set in self.rooms]).reshape(rooms, phases),
            order,
            stay / counts,
        )

    def _prices(self) -> list[float] | None:
        """Dual value of each row, by the number of the row; None if the solver finds no optimum."""
        return self._prices_by_highs() if self.variables > MANY_VARIABLES else self._prices_by_glop()

    def _prices_by_glop(self) -> list[float] | None:
        """Dual values that GLOP finds. The solver gets the whole program as one message, because a call of the solver
        for each factor takes longer than the solution.
        """
        from ortools.linear_solver import linear_solver_pb2, pywraplp  # it takes a while to import

        message = linear_solver_pb2.MPModelProto(maximize=False)
        for number in range(self.variables):
            is_length = number < self.program.phases
            message.variable.add(lower_bound=0.0, upper_bound=math.inf, objective_coefficient=float(is_length))
        for row in self.rows:
            message.constraint.add(
                lower_bound=row.lower,
                upper_bound=row.upper,
                var_index=row.factors.keys(),
                coefficient=row.factors.values(),
            )
        solver = pywraplp.Solver.CreateSolver("GLOP")
        problem = solver.LoadModelFromProto(message)
        assert not problem, problem
        if solver.Solve() != pywraplp.Solver.OPTIMAL:
            return None
        return [constraint.dual_value() for constraint in solver.constraints()]

    def _prices_by_highs(self) -> list[float] | None:
        """Dual values that HiGHS finds by the simplex method. Equal programs have equal values, because this method
        runs in one thread.
        """
        from ortools.math_opt import model_pb2  # it takes a while to import
        from ortools.math_opt.python import mathopt

        message, phases = model_pb2.ModelProto(), self.program.phases
        variables, rows, matrix = message.variables, message.linear_constraints, message.linear_constraint_matrix
        variables.ids.extend(range(self.variables))
        variables.lower_bounds.extend([0.0] * self.variables)
        variables.upper_bounds.extend([math.inf] * self.variables)
        variables.integers.extend([False] * self.variables)
        message.objective.linear_coefficients.ids.extend(range(phases))
        message.objective.linear_coefficients.values.extend([1.0] * phases)
        rows.ids.extend(range(len(self.rows)))
        rows.lower_bounds.extend(row.lower for row in self.rows)
        rows.upper_bounds.extend(row.upper for row in self.rows)
        for row in self.rows:
            ordered = sorted(row.factors.items())
            matrix.row_ids.extend([row.number] * len(ordered))
            matrix.column_ids.extend(variable for variable, _ in ordered)
            matrix.coefficients.extend(factor for _, factor in ordered)
        model = mathopt.Model.from_model_proto(message)
        found = mathopt.solve(model, mathopt.SolverType.HIGHS)
        if found.termination.reason is not mathopt.TerminationReason.OPTIMAL:
            return None
        prices = found.dual_values()
        return [prices[constraint] for constraint in model.linear_constraints()]
