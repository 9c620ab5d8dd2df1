"""Exact search over allocations: allocations that the relaxation does not exclude are scheduled, until no allocation is
left.

The method is a logic-based Benders decomposition (J. N. Hooker, G. Ottosson, "Logic-based Benders decomposition",
Mathematical Programming 96, 2003). The constraint program proposes an allocation that could be better than the best
known allocation. The scheduler evaluates a block of allocations, which contains the proposed one. The allocations of
the block differ only in the cores of the parts with the shortest runtimes. The block is then excluded.

Two cores are interchangeable if an exchange of the two cores, with their memories and links, changes neither the system
nor the costs nor the allowed cores (docs/proofs/exact-allocation.md).
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import OBJECTIVES
from tilewright.multicore.allocation.evaluate import EVERYTHING, INTERRUPTED, TIME_BUDGET, Evaluator, Judge
from tilewright.multicore.allocation.exact.model import (
    ENERGY,
    FOUND,
    LATENCY,
    NOTHING,
    TOLERANCE,
    UNDECIDED,
    RelaxationProgram,
    SolverAnswer,
    Stop,
    wanted,
)
from tilewright.multicore.allocation.exact.relaxation import Relaxation, relaxation_of
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.allocation.result import (
    BOUND,
    EFFORT,
    EXCLUSIONS,
    EXHAUSTION,
    RELAXATION,
    AllocationProof,
    AllocationResult,
    Evaluation,
    allowed_cores,
    choose,
)
from tilewright.multicore.allocation.search import GeneticSearch, Progress
from tilewright.multicore.allocation.space import AllocationSpace, Genome
from tilewright.multicore.scheduling.bounds.certificate import bound_certificate
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds
from tilewright.multicore.scheduling.problem import SchedulingProblem

MOST_IMAGES = 24
"""Limit on the number of renamings of interchangeable cores. If there are more renamings, some interchangeable cores
are treated as different.
"""
Renaming = dict[int, int]
"""Old number of a core -> new number. A core without an entry keeps its number."""


def interchangeable_cores(problem: SchedulingProblem, space: AllocationSpace) -> tuple[tuple[int, ...], ...]:
    """Classes of interchangeable cores. A class has at least two cores, in ascending order."""
    cores = sorted({core for choices in space.choices for core in choices})
    classes: list[list[int]] = []
    for core in cores:
        # Interchangeability is transitive: a and b, b and c, so a and c.
        known = next((one for one in classes if _can_exchange(problem, space, one[0], core)), None)
        if known is None:
            classes.append([core])
        else:
            known.append(core)
    return tuple(tuple(one) for one in classes if len(one) > 1)


def limited(classes: Sequence[Sequence[int]], most: int = MOST_IMAGES) -> tuple[tuple[int, ...], ...]:
    """Copy of `classes` with fewer cores, so that all classes together have at most `most` renamings."""
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
    """Renamings of cores within their classes. The first renaming leaves every core unchanged."""
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
    """True if the system stays the same when two cores are exchanged, together with their memories and links."""
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
    of_link = (system.link_bits_per_cycle, system.link_energy_pj_per_bit, system.link_is_broadcast, system.multicast)
    return _renames(memories, of_memory) and _renames(links, of_link)


def _renames(pairs: Iterable[tuple[int, int]], columns: Sequence[np.ndarray]) -> bool:
    """True if `pairs` (number, new number) are a one-to-one renaming that changes no column. A column stays the same if
    the values at each number and at its new number are equal.
    """
    there: dict[int, int] = {}
    back: dict[int, int] = {}
    for number, renamed in pairs:
        if there.setdefault(number, renamed) != renamed or back.setdefault(renamed, number) != number:
            return False
    return all(
        (number < 0) == (renamed < 0) and (number < 0 or all(column[number] == column[renamed] for column in columns))
        for number, renamed in there.items()
    )


Found = TypeVar("Found")
SHARE_OF_BOUNDS, SHARE_WHERE_PROVEN = 0.1, 0.001
"""Largest effort of the solver for one lower bound of latency or energy over all schedules, as a share of
`proof_effort`. If the best allocation is proven optimal, SHARE_WHERE_PROVEN applies, because the bounds then matter
less. Otherwise, SHARE_OF_BOUNDS applies.
"""
PROVEN = "proven"
"""Reason why a search ends: a proof that no other allocation is better."""
BLOCK = 256
"""Largest number of allocations in a block. The allocations of a block are scheduled and then excluded together."""


def search_exactly(
    problem: SchedulingProblem,
    space: AllocationSpace,
    judge: Judge,
    bounds: LowerBounds,
    options: AllocationOptions | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
    block: int = BLOCK,
) -> AllocationResult:
    """Search for the allocation with the best value of the objective. The result has a proof of optimality or lower
    bounds. `judge` gives the latency and energy of an allocation.

    `bounds` are lower bounds of the problem over the space. The search excludes allocations in blocks, and `block` is
    the largest number of allocations in a block. The result does not depend on the number of threads. If the time
    budget or Ctrl-C ends the search early, the result depends on the speed of the machine. Raises MappingError if no
    evaluated allocation has a schedule, and KeyboardInterrupt for Ctrl-C before the first schedule.
    """
    options = options or AllocationOptions()
    with Evaluator(space, judge, options.job_count, options.ga_time_budget_s, clock) as evaluator:
        first = GeneticSearch(space, options, evaluator, progress)
        exact = _ExactSearch(problem, space, bounds, options, evaluator, block)
        try:
            first.run()
            if evaluator.points and not evaluator.stopped_by:
                first.planned = evaluator.count + options.proof_evaluations
                exact.run()
                exact.tighten()
        except KeyboardInterrupt:
            evaluator.stopped_by = INTERRUPTED
        evaluator.require_points()
        found = first.result()
        proof = exact.proof()
        ended = evaluator.stopped_by or (found.stopped_by if found.stopped_by == EVERYTHING else "")
        return replace(found, proof=proof, stopped_by=ended or (PROVEN if proof.is_proven else EFFORT))


class _ExactSearch:
    """State of the search: best allocation, excluded allocations and bounds."""

    def __init__(
        self,
        problem: SchedulingProblem,
        space: AllocationSpace,
        bounds: LowerBounds,
        options: AllocationOptions,
        evaluator: Evaluator,
        block: int,
    ) -> None:
        self.problem = problem
        self.block = block
        self.space = space
        self.bounds = bounds
        self.options = options
        self.evaluator = evaluator
        self.powers = OBJECTIVES[options.objective]
        self.excluded: list[tuple[dict[int, int], float | None]] = []
        """Excluded blocks of allocations, as pairs (fixed cores, best objective value in the block). `fixed cores` is a
        dict: part -> core. The block has all allocations that run these parts on these cores. Parts with only one
        allowed core are not in the dict. The value is None if no allocation of the block has a schedule.
        """
        self.rule = ""
        self.tightened = 0.0
        """Lower bound of the objective for all schedules that are better than the best known schedule. The bound
        follows from the relaxation, and is 0 until `tighten` computes it.
        """
        self.effort = 0.0
        """Deterministic time that the solver has used. It can differ in the last digit between two runs of the same
        search, and is therefore used only to decide when the search ends.
        """

    def run(self) -> None:
        """Propose and exclude allocations until no allocation is left, or a limit is reached."""
        evaluator = self.evaluator
        if evaluator.count == self.space.size:
            self.rule = EXHAUSTION
            return
        most = evaluator.count + self.options.proof_evaluations
        best: Evaluation | None = None
        program: RelaxationProgram | None = None
        newest: Iterable[Genome] = evaluator.points
        with ThreadPoolExecutor(1) as thread:
            while not evaluator.stopped_by:
                points = [evaluator.points[genome] for genome in newest if genome in evaluator.points]
                found = choose([*points, *([] if best is None else [best])], self.options.objective)
                if best is None or program is None or self._value(found) < self._value(best):
                    best = found
                    if self._bound() >= self._value(best) * (1 - self._tolerance()):
                        self.rule = BOUND
                        return
                    program = self._program(best)
                answer = self._solved(thread, program)
                self.effort += answer.effort
                if answer.status == NOTHING:
                    self.rule = EXCLUSIONS if self.excluded else RELAXATION
                if answer.status != FOUND or evaluator.count >= most or self.effort >= self.options.proof_effort:
                    return
                newest = self._exclude(program, self.space.genome(answer.part_cores))

    def tighten(self) -> None:
        """Compute `tightened`, a lower bound of the objective from the relaxation. The bound covers all allocations and
        all schedules that are better than the best known schedule. Nothing is computed in three cases: all allocations
        were evaluated, no schedule can be better than the best one (this is proven), or the search was stopped.
        """
        if self.rule in (EXHAUSTION, BOUND, RELAXATION) or self.evaluator.stopped_by:
            return
        best = choose(self.evaluator.points.values(), self.options.objective)
        program = self._program(best, all_of_it=True)
        effort = self.options.proof_effort * (SHARE_WHERE_PROVEN if self.rule else SHARE_OF_BOUNDS)
        least = {LATENCY: float(self.bounds.if_copied.latency_cycles), ENERGY: self.bounds.energy_pj}
        with ThreadPoolExecutor(1) as thread:
            for what, power in ((LATENCY, self.powers.latency), (ENERGY, self.powers.energy)):
                if power and not self._is_late():
                    found = self._in_thread(thread, partial(program.least, what, effort))
                    least[what] = max(least[what], found)
        self.tightened = float(self.powers.value(least[ENERGY], least[LATENCY]))

    def proof(self) -> AllocationProof:
        """Proof that the best allocation is optimal, or the known lower bounds of the objective if there is no
        proof."""
        best = choose(self.evaluator.points.values(), self.options.objective)
        if self.evaluator.count == self.space.size:
            self.rule = EXHAUSTION
        value = self._value(best)
        any_schedule = min(max(self._bound(), self.tightened), value)
        allowed = allowed_cores(self.space, self.problem.system.core_count)
        return AllocationProof(
            rule=self.rule,
            value=value,
            lower_bound=value if self.rule else any_schedule,
            of_any_schedule=value if self.rule in (BOUND, RELAXATION) else any_schedule,
            excluded=len(self.excluded),
            certificate={
                "cores": [list(cores) for cores in self.space.choices],
                "bounds": bound_certificate(self.problem, allowed, self.bounds),
                "interchangeable": [list(cores) for cores in self._classes],
                "blocks": [self._stated(block, least) for block, least in self.excluded],
            },
        )

    def _stated(self, block: dict[int, int], least: float | None) -> JsonObject:
        return {"cores": [block.get(part) for part in range(len(self.space.parts))], "best": least}

    def _value(self, point: Evaluation) -> float:
        return float(self.powers.value(point.energy_pj, point.latency_cycles))

    def _bound(self) -> float:
        return float(self.powers.value(self.bounds.energy_pj, self.bounds.if_copied.latency_cycles))

    def _tolerance(self) -> float:
        return TOLERANCE if self.powers.energy else 0.0

    def _program(self, best: Evaluation, all_of_it: bool = False) -> RelaxationProgram:
        """Constraint program of all allocations that can be better than `best`. If `all_of_it` is false, allocations in
        excluded blocks are forbidden."""
        aim = wanted(self.powers, self._value(best), self.bounds.if_copied.latency_cycles, self.bounds.energy_pj)
        program = RelaxationProgram(self._relaxation, aim)
        program.name_cores_in_turn(self._classes)
        for block, _ in () if all_of_it else self.excluded:
            program.exclude(block)
        return program

    def _seconds_left(self) -> float | None:
        budget = self.options.ga_time_budget_s
        return None if budget is None else max(budget - self.evaluator.elapsed_s, 0.01)

    def _is_late(self) -> bool:
        left = self._seconds_left()
        return left is not None and left <= 0.01

    def _in_thread(self, thread: ThreadPoolExecutor, solve: Callable[[int, float | None, Stop], Found]) -> Found:
        """Answer of the solver. The solver runs in `thread`, so that the calling thread can handle Ctrl-C."""
        stop = Stop()
        running = thread.submit(solve, self.options.seed, self._seconds_left(), stop)
        try:
            return running.result()
        except KeyboardInterrupt:
            stop.end(running)
            raise

    def _solved(self, thread: ThreadPoolExecutor, program: RelaxationProgram) -> SolverAnswer:
        left = self.options.proof_effort - self.effort
        answer = self._in_thread(thread, partial(program.solve, left))
        if self.options.ga_time_budget_s is not None and answer.status == UNDECIDED and answer.effort < left:
            self.evaluator.stopped_by = TIME_BUDGET
        return answer

    def _exclude(self, program: RelaxationProgram, genome: Genome) -> list[Genome]:
        """Schedule and exclude the block of the allocation `genome`: all allocations that agree with `genome` in every
        gene except the light genes (`_light_genes`). Returns the scheduled genomes.

        Renaming interchangeable cores gives copies of the block. These copies are scheduled and excluded, too. Their
        costs can differ, because the scheduler breaks ties by core number.
        """
        scheduled: list[Genome] = []
        blocks = []
        for renaming in renamings(self._classes):
            renamed = tuple(renaming.get(core, core) for core in genome)
            block = {self.space.flexible[g]: core for g, core in enumerate(renamed) if g not in self._light_genes}
            if block not in blocks:
                blocks.append(block)
                scheduled += self._exclude_block(program, block)
            if self.evaluator.stopped_by:
                break
        return scheduled

    def _exclude_block(self, program: RelaxationProgram, block: dict[int, int]) -> list[Genome]:
        parts = zip(self.space.flexible, self.space.gene_choices, strict=True)
        genomes = list(itertools.product(*([block[part]] if part in block else choices for part, choices in parts)))
        self.evaluator.evaluate(genomes)
        if not self.evaluator.stopped_by:
            values = [self._value(self.evaluator.points[one]) for one in genomes if one in self.evaluator.points]
            self.excluded.append((block, min(values, default=None)))
            program.exclude(block)
        return genomes

    @cached_property
    def _relaxation(self) -> Relaxation:
        return relaxation_of(self.problem, self.space)

    @cached_property
    def _classes(self) -> tuple[tuple[int, ...], ...]:
        return limited(interchangeable_cores(self.problem, self.space))

    @cached_property
    def _light_genes(self) -> frozenset[int]:
        """Light genes: genes of the parts with the shortest runtimes. Within a block, these genes take all their
        values, and all other genes are fixed."""
        runtime = self.space.runtime_cycles
        spread = [max(runtime[part, core] for core in self.space.choices[part]) for part in self.space.flexible]
        free: list[int] = []
        size = 1
        for gene in sorted(range(len(spread)), key=lambda gene: (spread[gene], gene)):
            size *= len(self.space.gene_choices[gene])
            if size > self.block:
                break
            free.append(gene)
        return frozenset(free)
