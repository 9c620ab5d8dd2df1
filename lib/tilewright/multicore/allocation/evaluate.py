"""Parallel evaluation of allocations.

Each allocation is evaluated only once. The time budget or Ctrl-C can end the evaluation early.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType

from tilewright.base.errors import MappingError, count_of
from tilewright.multicore.allocation.result import Evaluation
from tilewright.multicore.allocation.space import AllocationSpace, Genome
from tilewright.multicore.scheduling.problem import Integers

Judge = Callable[[Integers], tuple[int, float]]
"""Function that evaluates an allocation, which is an array with the core of each CN. It returns the pair (latency in
cycles, energy in pJ), and raises MappingError if the allocation has no schedule. Several threads call the function at
the same time.
"""
GENERATIONS, EVERYTHING, TIME_BUDGET, INTERRUPTED = "generations", "everything", "time_budget", "interrupted"
"""Reasons why a search ends.

GENERATIONS: the genetic algorithm made all generations. EVERYTHING: every allocation was evaluated. TIME_BUDGET: the
time budget was used up. INTERRUPTED: Ctrl-C was pressed.
"""


class Evaluator:
    """Evaluator of allocations, with a cache of all results. The results in `points` are in the order in which they
    were requested.
    """

    def __init__(
        self,
        space: AllocationSpace,
        judge: Judge,
        threads: int,
        time_budget_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.space = space
        self.points: dict[Genome, Evaluation] = {}
        self.infeasible: dict[Genome, str] = {}
        self.stopped_by = ""
        """Reason why no further allocation is evaluated: TIME_BUDGET or INTERRUPTED; '' if evaluation can continue."""
        self.on_result: Callable[[], None] = lambda: None
        """Function that is called after every evaluation, in the thread that requested the evaluation."""
        self._judge = judge
        self._clock = clock
        self._start_s = clock()
        self._time_budget_s = time_budget_s
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def __enter__(self) -> "Evaluator":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the creation of the evaluator."""
        return self._clock() - self._start_s

    @property
    def count(self) -> int:
        """Number of evaluated allocations. Allocations without a schedule are counted, too."""
        return len(self.points) + len(self.infeasible)

    def is_known(self, genome: Genome) -> bool:
        """True if the allocation was evaluated."""
        return genome in self.points or genome in self.infeasible

    def evaluate(self, genomes: Sequence[Genome]) -> None:
        """Evaluate the allocations in `genomes`. Allocations that were evaluated before are skipped.

        If `stopped_by` is set afterwards, some results can be missing. The time budget ends the evaluation only if at
        least one allocation has a schedule. After the first Ctrl-C, no new schedule begins, and the function returns
        when the running schedules have ended. A second Ctrl-C raises KeyboardInterrupt.
        """
        wanted = [genome for genome in dict.fromkeys(genomes) if not self.is_known(genome)]
        if self._pool is None or len(wanted) == 1:
            self._evaluate_here(wanted)
        else:
            self._evaluate_in_threads(self._pool, wanted)

    def require_points(self) -> None:
        """Raise an error if no evaluated allocation has a schedule. After Ctrl-C, the error is KeyboardInterrupt;
        otherwise, it is MappingError.
        """
        if self.points:
            return
        if self.stopped_by == INTERRUPTED:
            raise KeyboardInterrupt
        reasons = list(dict.fromkeys(self.infeasible.values()))[:3]
        raise MappingError(
            f"no evaluated allocation has a schedule ({count_of(self.count, 'allocation')} evaluated):"
            f" {'; '.join(reasons)}"
        )

    def _evaluate_here(self, genomes: Sequence[Genome]) -> None:
        for genome in genomes:
            if self.stopped_by or self._is_late():
                return
            try:
                self._keep(genome, self._outcome(genome))
            except KeyboardInterrupt:
                self._halt(INTERRUPTED)
                return

    def _evaluate_in_threads(self, pool: ThreadPoolExecutor, genomes: Sequence[Genome]) -> None:
        if self.stopped_by or self._is_late():
            return
        futures = [pool.submit(self._outcome_unless_stopped, genome) for genome in genomes]
        try:
            for genome, future in zip(genomes, futures, strict=True):
                outcome = self._wait(future)
                if outcome is not None:
                    self._keep(genome, outcome)
        except BaseException:
            self._stop.set()
            raise

    def _wait(self, future: "Future[Evaluation | str | None]") -> Evaluation | str | None:
        """Outcome of a task; None if the evaluation was stopped before the task had started."""
        while True:
            try:
                return future.result(self._left_s())
            except FutureTimeoutError:
                self._halt(TIME_BUDGET)
            except KeyboardInterrupt:
                if self.stopped_by == INTERRUPTED:
                    raise
                self._halt(INTERRUPTED)

    def _left_s(self) -> float | None:
        """Number of seconds to wait for the next outcome; None: no limit."""
        if self._time_budget_s is None or self.stopped_by or not self.points:
            return None
        return max(self._time_budget_s - self.elapsed_s, 0.0)

    def _is_late(self) -> bool:
        late = self._left_s() == 0.0
        if late:
            self._halt(TIME_BUDGET)
        return late

    def _halt(self, reason: str) -> None:
        self.stopped_by = reason
        self._stop.set()

    def _outcome_unless_stopped(self, genome: Genome) -> Evaluation | str | None:
        return None if self._stop.is_set() else self._outcome(genome)

    def _outcome(self, genome: Genome) -> Evaluation | str:
        """Latency and energy of an allocation, or a text with the reason why it has no schedule."""
        try:
            latency_cycles, energy_pj = self._judge(self.space.allocation(genome))
        except MappingError as error:
            return str(error)
        return Evaluation(genome, latency_cycles, energy_pj)

    def _keep(self, genome: Genome, outcome: Evaluation | str) -> None:
        if isinstance(outcome, Evaluation):
            self.points[genome] = outcome
        else:
            self.infeasible[genome] = outcome
        self.on_result()
