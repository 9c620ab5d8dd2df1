"""Constraint program of the relaxation for CP-SAT of OR-Tools (Perron, Didier and Gay, "The CP-SAT-LP solver", 2023).

The program has only integers, but it is never stricter than the relaxation. In the relaxation, cycles and bits are
integers already. Energies are counted in quanta (small units of energy), and each energy term is rounded down.
"""

import math
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ortools.sat.python import cp_model

from tilewright.base.objectives import Powers
from tilewright.multicore.allocation.exact.moves import Condition, ConditionalSum, OnCore
from tilewright.multicore.allocation.exact.relaxation import LinkLoad, Relaxation

TOLERANCE = 1e-9
"""Smallest relative difference at which the lower of two energies counts as better."""
_ROUNDING = 1e-11
"""Margin for rounding errors of sums of floating-point numbers, relative to the sum."""
_QUANTA = 2**43
"""Number of energy quanta into which the energy limit is divided. The limit is the energy at which a schedule with the
smallest possible latency is exactly as good as the best known schedule. Rounding a term down to whole quanta loses less
than 10⁻¹² of the limit.
"""
_MOST_PRODUCT = 2**61
"""Largest product of link width and cycles that the program can express. Links with a larger product get no constraint.
"""
_SLICES = 48
"""Number of intervals into which the latency range is divided. The intervals are used only if the objective depends on
both energy and latency.
"""
FOUND, NOTHING, UNDECIDED = "found", "nothing", "undecided"
Quantity = Literal["latency", "energy"]
LATENCY: Quantity = "latency"
ENERGY: Quantity = "energy"


class Wanted(NamedTuple):
    """Requirement that a schedule is better than the best known schedule: the objective must be below `value`. The
    bounds of latency and energy follow from this requirement.
    """

    powers: Powers
    value: float
    least_latency_cycles: int
    """Lower bound of the latency of every allocation"""
    least_energy_pj: float
    """Lower bound of the energy of every allocation"""
    most_latency_cycles: int
    """Upper bound of the latency of every schedule that meets the requirement"""


class SolverAnswer(NamedTuple):
    """Answer of the solver to a constraint program."""

    status: str
    """Outcome of the solver: FOUND (an allocation exists), NOTHING (proof that no allocation exists) or UNDECIDED."""
    part_cores: tuple[int, ...] = ()
    effort: float = 0.0
    """Effort of the solver, in its deterministic time units."""


_HORIZON = 2**40
"""Upper limit of the makespan in cycles, used if the requirement gives no limit."""


def wanted(powers: Powers, value: float, latency_bound: int, energy_bound: float) -> Wanted:
    """Requirement that the objective is below `value`. `latency_bound` and `energy_bound` are lower bounds over all
    allocations. The field `most_latency_cycles` of the result is an upper limit: a schedule with a larger latency does
    not meet the requirement, whatever its energy is.
    """
    most = _HORIZON
    if powers.latency:
        rest = value / energy_bound**powers.energy if energy_bound > 0 or not powers.energy else math.inf
        if rest < float(_HORIZON) ** powers.latency:
            most = math.floor(rest ** (1 / powers.latency) * (1 + _ROUNDING)) + 1
        if not powers.energy:
            most = round(rest ** (1 / powers.latency)) - 1
    return Wanted(powers, value, latency_bound, energy_bound, most)


@dataclass(frozen=True)
class _Literals:
    """Boolean variables of a constraint program, and sums over these variables."""

    model: Any
    of_core: dict[OnCore, Any]
    """(part, core) -> Boolean variable that is 1 if the part runs on the core. If no other core is allowed for the
    part, the constant 1 replaces the variable
    """
    of_condition: dict[Condition, Any]

    def holds(self, condition: Condition) -> Any:
        """Expression with the value 0 or 1. If the condition holds, the constraints force the value to 1. Otherwise,
        the value 0 is allowed, too.
        """
        if condition not in self.of_condition:
            self.of_condition[condition] = self._made(condition)
        return self.of_condition[condition]

    def _made(self, condition: Condition) -> Any:
        owner = 1 if condition.owner is None else self.of_core[condition.owner]
        if condition.any_of is None:
            return owner
        cores_of: dict[int, list[Any]] = {}
        for literal in sorted(condition.any_of):
            cores_of.setdefault(literal.part, []).append(self.of_core[literal])
        if condition.owner is None and len(cores_of) == 1:
            return sum(next(iter(cores_of.values())))
        made = self.model.new_bool_var("")
        for literals in cores_of.values():
            self.model.add(made >= owner + sum(literals) - 1)
        return made

    def total(self, terms: ConditionalSum, scale: float = 1.0) -> Any:
        """Linear expression: sum of the amounts whose conditions hold. Each amount is multiplied by `scale` and rounded
        down.
        """
        return sum(math.floor(amount * scale) * self.holds(condition) for condition, amount in terms.terms.items())


class RelaxationProgram:
    """Constraint program of a search step: the constraints of a relaxation, the requirement that a schedule is better
    than the best known schedule, and the excluded allocations.
    """

    def __init__(self, relaxation: Relaxation, aim: Wanted) -> None:
        self.model = cp_model.CpModel()
        self.space = relaxation.space
        on_core = {
            OnCore(part, core): self.model.new_bool_var("") if len(choices) > 1 else 1
            for part, choices in enumerate(relaxation.space.choices)
            for core in choices
        }
        for part, choices in enumerate(relaxation.space.choices):
            if len(choices) > 1:
                self.model.add_exactly_one(on_core[OnCore(part, core)] for core in choices)
        self.literals = _Literals(self.model, on_core, {})
        latency = None
        if aim.powers.latency:
            latency = self.model.new_int_var(0, max(aim.most_latency_cycles, 0), "latency")
            self._latency = latency
            self.model.add(latency >= aim.least_latency_cycles)
            self._times(relaxation, latency, max(aim.most_latency_cycles, 0))
        if aim.powers.energy:
            self._energy(relaxation, latency, aim)

    def name_cores_in_turn(self, classes: Sequence[Sequence[int]]) -> None:
        """Break the symmetry of interchangeable cores. A class has cores that can be interchanged. A core of a class
        may run a part only if the previous core of the class runs an earlier part.
        """
        for one in classes:
            for first, second in pairwise(one):
                earlier: list[Any] = []
                for part, choices in enumerate(self.space.choices):
                    if second in choices:
                        self.model.add(self.literals.of_core[OnCore(part, second)] <= sum(earlier))
                        earlier.append(self.literals.of_core[OnCore(part, first)])

    def exclude(self, part_cores: dict[int, int]) -> None:
        """Exclude all allocations in which each part in `part_cores` runs on the given core (part -> core). All other
        parts can run on any core.
        """
        self.model.add(sum(self.literals.of_core[OnCore(*pair)] for pair in part_cores.items()) <= len(part_cores) - 1)

    def solve(self, effort: float, seed: int, seconds: float | None = None, stop: "Stop | None" = None) -> SolverAnswer:
        """Answer of the solver. If the solver finds an allocation that satisfies all constraints, the answer has this
        allocation. `effort` limits the deterministic time, and `seconds` the wall-clock time.
        """
        solver, status, took = self._solved(effort, seed, seconds, stop)
        if status == cp_model.INFEASIBLE:
            return SolverAnswer(NOTHING, effort=took)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return SolverAnswer(UNDECIDED, effort=took)
        chosen = self.literals.of_core
        cores = [
            next(core for core in choices if len(choices) == 1 or solver.value(chosen[OnCore(part, core)]))
            for part, choices in enumerate(self.space.choices)
        ]
        return SolverAnswer(FOUND, tuple(cores), took)

    def least(
        self, what: Quantity, effort: float, seed: int, seconds: float | None = None, stop: "Stop | None" = None
    ) -> float:
        """Lower bound of latency or energy over all allocations that satisfy the constraints. `what` names the
        quantity; the unit is cycles or pJ. The bound is infinite if the solver proves that there is no such allocation.
        After the call, the quantity stays the objective of the constraint program.
        """
        self.model.minimize(self._latency if what == LATENCY else self._quanta)
        solver, status, _ = self._solved(effort, seed, seconds, stop)
        if status == cp_model.INFEASIBLE:
            return math.inf
        bound = max(float(solver.best_objective_bound), 0.0)
        if what == LATENCY:
            return float(math.ceil(bound * (1 - _ROUNDING)))
        return bound / self._scale * (1 - _ROUNDING)

    def _solved(
        self, effort: float, seed: int, seconds: float | None, stop: "Stop | None"
    ) -> tuple[cp_model.CpSolver, Any, float]:
        """Triple (solver, its status, its deterministic time)."""
        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = 1
        parameters.random_seed = seed % 2**31
        parameters.max_deterministic_time = effort
        parameters.catch_sigint_signal = False
        # There are many small programs; presolving takes more time than it saves.
        parameters.symmetry_level = 0
        parameters.cp_model_probing_level = 0
        if seconds is not None:
            parameters.max_time_in_seconds = seconds
        with (stop or Stop()).watching(solver):
            status = solver.solve(self.model)
        return solver, status, float(solver.response_proto.deterministic_time)

    def _times(self, relaxation: Relaxation, latency: Any, horizon: int) -> None:
        """Add variables for the start times of CNs, and all constraints that give lower bounds of the latency."""
        model, part_of = self.model, relaxation.space.part_of_cn.tolist()
        self._horizon = horizon
        start = [model.new_int_var(0, horizon, "") for _ in part_of]
        end = []
        intervals: dict[int, list[Any]] = {}
        for cn, part in enumerate(part_of):
            literals = [(core, self.literals.of_core[OnCore(part, core)]) for core in relaxation.space.choices[part]]
            runtime = relaxation.runtime_cycles[cn]
            end.append(start[cn] + sum(runtime[core] * literal for core, literal in literals))
            model.add(start[cn] >= sum(relaxation.release_cycles[cn][core] * literal for core, literal in literals))
            model.add(
                latency >= end[cn] + sum(relaxation.tail_cycles[cn][core] * literal for core, literal in literals)
            )
            for core, literal in literals:
                interval = model.new_optional_fixed_size_interval_var(start[cn], runtime[core], literal, "")
                intervals.setdefault(core, []).append(interval)
        for on_core in intervals.values():
            model.add_no_overlap(on_core)
        for edge in relaxation.precedences:
            model.add(start[edge.second] >= end[edge.first] + min(edge.delays.values()))
            for (first, second), cycles in edge.delays.items():
                if cycles > min(edge.delays.values()):
                    both = [OnCore(part_of[edge.first], first), OnCore(part_of[edge.second], second)]
                    if both[0].part == both[1].part and first != second:
                        continue
                    enforced = [self.literals.of_core[one] for one in dict.fromkeys(both)]
                    then = model.add(start[edge.second] >= end[edge.first] + cycles)
                    given = [literal for literal in enforced if not isinstance(literal, int)]
                    if given:
                        then.only_enforce_if(given)
        self._loads(relaxation.links, latency)
        for work in relaxation.core_work:
            model.add(latency >= self.literals.total(work))
        for split in relaxation.splits:
            self._loads(split.before, start[split.cn])
            self._loads(split.after, latency - end[split.cn])
            for work in split.work_before:
                model.add(start[split.cn] >= self.literals.total(work))
            for work in split.work_after:
                model.add(latency - end[split.cn] >= self.literals.total(work))

    def _loads(self, loads: Sequence[LinkLoad], cycles: Any) -> None:
        for load in loads:
            total = sum(load.bits.terms.values())
            if total <= load.bits_per_cycle or load.bits_per_cycle * self._horizon > _MOST_PRODUCT:
                continue  # the constraint is trivial, or too large for the solver
            self.model.add(load.bits_per_cycle * cycles >= self.literals.total(load.bits))

    def _energy(self, relaxation: Relaxation, latency: Any, aim: Wanted) -> None:
        """Add the energy of a schedule, and constraints that limit this energy. The limit depends on the latency."""
        powers = aim.powers
        limit = _energy_limit(aim, max(aim.least_latency_cycles, 1))
        scale = _QUANTA / limit
        energy = self.literals.total(relaxation.energy_pj, scale * (1 - _ROUNDING))
        self._quanta, self._scale = energy, scale
        self.model.add(energy <= _energy_quanta(limit, scale))
        if not powers.latency or aim.most_latency_cycles <= aim.least_latency_cycles:
            return
        low, high = max(aim.least_latency_cycles, 1), aim.most_latency_cycles
        steps = [math.ceil(low * (high / low) ** (part / _SLICES)) for part in range(1, _SLICES)]
        for first in sorted(set(steps) - {low}):
            if first <= high:
                later = self.model.new_bool_var("")
                self.model.add(latency <= first - 1).only_enforce_if(~later)
                most = _energy_quanta(_energy_limit(aim, first), scale)
                self.model.add(energy <= most).only_enforce_if(later)


def _energy_limit(aim: Wanted, latency_cycles: int) -> float:
    """Energy in pJ at which a schedule with this latency is exactly as good as the best known schedule."""
    rest = aim.value / float(latency_cycles) ** aim.powers.latency
    return float(rest ** (1 / aim.powers.energy))


def _energy_quanta(limit_pj: float, scale: float) -> int:
    """Largest energy that a constraint allows, as a number of quanta: `limit_pj`, minus the tolerance, rounded up. The
    constraint therefore allows every energy that is below `limit_pj` by more than the tolerance. `scale` is the number
    of quanta in one pJ.
    """
    return math.ceil(limit_pj * scale * (1 - TOLERANCE) * (1 + _ROUNDING))


ASK_AGAIN_S = 0.05
"""Interval in seconds at which `Stop.end` repeats the request to end, until the solver ends. A request has no effect on
a solver that has not yet begun.
"""


class Stop:
    """Signal with which one thread ends a solver that runs in another thread."""

    def __init__(self) -> None:
        self._solver: Any = None
        self._lock = threading.Lock()

    def end(self, running: "Future[Any]") -> None:
        """End all solvers of the task `running`, which another thread executes. Returns when the task has ended."""
        while not running.done():
            with self._lock:
                if self._solver is not None:
                    self._solver.stop_search()
            wait([running], timeout=ASK_AGAIN_S)

    def watching(self, solver: Any) -> "Stop":
        """Context in which `solver` runs, and in which the method `end` can end the solver."""
        self._next = solver
        return self

    def __enter__(self) -> "Stop":
        with self._lock:
            self._solver = self._next
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._solver = None
