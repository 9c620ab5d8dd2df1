"""Search for plans: first uniform plans, then compositions of segments, then random steps from the best plans.

The costs and the schedule of every plan are computed as in a run, so that latency and energy are not estimates. Plans
are evaluated in batches. The size of a batch does not depend on the number of processes. If a limit of plans or
schedules ends the search, the result therefore does not depend on the number of processes either.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.base.errors import MappingError
from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.configuration.island_parts import sender_to
from tilewright.plans.budget import SearchBudget
from tilewright.plans.evaluate import PlanOutcome, Task
from tilewright.plans.islands import IslandRound, IslandState, merge, seed_of_round, state_of
from tilewright.plans.moves import MANY_TRIES, PlanMoves
from tilewright.plans.opening import Neighbours, Opening
from tilewright.plans.segments import blocks
from tilewright.plans.space import PlanSpace
from tilewright.plans.steps import StepByStep
from tilewright.plans.trials import FusionResult, Progress, Trials
from tilewright.plans.work import PlanWork


@dataclass
class FusionSearch:
    """Search for the best plan of a network: its input, its budget, and the plans evaluated so far."""

    work: PlanWork
    space: PlanSpace
    options: FusionOptions
    budget: SearchBudget
    progress: Progress = lambda done, planned, best, elapsed: None
    elapsed: Callable[[], float] = lambda: 0.0
    """Function that returns the seconds since the call began."""
    given: Task | None = None
    """Start plan from an earlier search, which is evaluated first."""
    neighbours: Neighbours | None = None
    """Plans found by searches on similar systems. In the first steps of the search (the opening), they replace some or
    all other plans.
    """
    finish: Callable[[FusionResult], object] = lambda found: None
    """Function that does the work at the end of a call: it computes the bounds and checks the best schedule.

    If the search has time limits, the function is also called earlier, to measure how long this work takes. These calls
    come after the first plan with a schedule, and after a later best plan with many more nodes.
    """
    trials: Trials = field(init=False)

    def __post_init__(self) -> None:
        self.trials = Trials(self.space, self.options.objective, self.budget, self.progress, self.elapsed, self.finish)
        self._ends = blocks(self.space)

    def run(self) -> FusionResult:
        """Search for the best plan. Raises InputError or MappingError if no plan has a schedule. Ctrl-C before the
        first schedule raises KeyboardInterrupt.
        """
        try:
            with self.trials.working(self.work):
                self._search()
        except KeyboardInterrupt:
            if self.trials.best is None:
                raise
            self.trials.stopped_by = INTERRUPTED
        return self.trials.result(self._best())

    def _search(self) -> None:
        self._open()
        if self.options.islands > 1 and self.trials.best is not None:
            self._make_islands(state_of(self.trials))
        else:
            self._step_by_step()
        self._improve_cores()

    def _open(self) -> None:
        Opening(self.trials, self.work, self.space, self._ends).run(self.given, self.neighbours)

    def _improve_cores(self) -> None:
        """Search the cores of the best plan once more, also with the allocation search of an ordinary run
        (`Task.by_engine`).
        """
        if self.trials.best is not None and not self.trials.is_over():
            best = self.trials.best
            self.trials.look_at([Task(best.plan, best.cores, MANY_TRIES, by_engine=True)], "cores")

    def opening(self) -> IslandState:
        """State after the opening, from which every island begins. Raises MappingError if no plan has a schedule."""
        with self.trials.working(self.work):
            self._open()
        self._best()
        return state_of(self.trials)

    def island_round(self, made: IslandRound) -> IslandState:
        """State of an island after one round."""
        self.budget.plans, self.budget.schedules = made.opening.plans, made.opening.schedules
        with self.trials.working(self.work):
            return self._round(made, self._trials_of(made, self.budget.plans))

    def from_islands(self, opening: IslandState, islands: Sequence[IslandState]) -> FusionResult:
        """Result of a search with islands, made from finished states: the state of the opening, and the last state of
        each island. The cores of the best plan are searched once more.
        """
        merge(self.trials, opening, islands)
        with self.trials.working(self.work):
            self._improve_cores()
        return self.trials.result(self._best())

    def _best(self) -> PlanOutcome:
        if self.trials.best is None:
            reasons = "; ".join(list(self.trials.reasons)[:3])
            raise MappingError(f"none of {len(self.trials.tried)} plans has a schedule: {reasons}")
        return self.trials.best

    def _make_islands(self, opening: IslandState) -> None:
        """Make all rounds of all islands in this process, and put their plans into the trials. Ctrl-C ends the rounds;
        the plans that were evaluated before are kept.
        """
        count = self.options.islands
        states: list[IslandState | None] = [None] * count
        try:
            for number in range(self.options.island_rounds):
                before = tuple(states)
                for island in range(count):
                    sender = before[sender_to(island, count)]
                    made = IslandRound(opening, before[island], sender, island, number)
                    trials = self._trials_of(made, opening.plans + sum(one.plans for one in states if one))
                    try:
                        states[island] = self._round(made, trials)
                    except KeyboardInterrupt:
                        states[island] = state_of(trials, before=before[island])
                        raise
        finally:
            merge(self.trials, opening, [state for state in states if state is not None])

    def _trials_of(self, made: IslandRound, before: int) -> Trials:
        """New `Trials` for one round of an island, without plans. The rounds of all islands share the budget that the
        opening (the first part of the search) has left. The new `Trials` get the part of this round. `before` is the
        number of plans that the search evaluated before this round.
        """
        count = self.options.islands
        part = made.number * count + made.island
        return self.trials.another(self.budget.part(part, count * self.options.island_rounds), before)

    def _round(self, made: IslandRound, trials: Trials) -> IslandState:
        """State of an island after one round. The plans of the round are evaluated in `trials`, with the processes of
        this search.
        """
        draw = made.draw(self.options.seed)
        moves = PlanMoves(self.space, self._ends, draw, trials.objective)
        made.begin(trials, moves)
        seed = seed_of_round(self.options.seed, made.island, made.number)
        StepByStep(trials, moves, draw, seed).run()
        return state_of(trials, moves, made.own)

    def _step_by_step(self) -> None:
        draw = random.Random(self.options.seed)
        moves = PlanMoves(self.space, self._ends, draw, self.trials.objective)
        StepByStep(self.trials, moves, draw, self.options.seed).run()
