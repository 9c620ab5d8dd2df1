"""Islands of a search for plans: searches with different seeds that exchange their best plans.

The opening of a search is the same for every seed, so it is made once. Each island then continues from the opening, in
rounds. The islands form a ring. After each round, the best plan of an island is passed to the next island of the ring.
The receiving island keeps the plan if it ranks among the island's best plans. If the plan and the island's best plan
have equal ranks, the island's plan stays the best. (The rank is the objective, then the rule for ties.)

A round of an island depends only on two states after the previous round: the state of this island, and the state of the
previous island of the ring. Therefore the rounds can be made in any order and on any machine, with the same result.
"""

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.plans.budget import COUNT
from tilewright.plans.evaluate import PlanOutcome
from tilewright.plans.moves import PlanMoves
from tilewright.plans.trials import FusionResult, Trials, Tried


@dataclass(frozen=True)
class IslandState:
    """State of a search after the opening (its first steps), or of an island after a round."""

    elite: tuple[PlanOutcome, ...]
    """Best plans so far, the best plan first."""
    layer_by_layer: PlanOutcome | None
    """Best plan in which each stack has one layer; None if the run fixes the stacks."""
    start: PlanOutcome | None
    """Result of the start plan. The value is None if the search has no start plan. In the state of an island, it is
    always None.
    """
    gains: dict[str, float]
    """Relative improvements of the objective so far, as a weighted sum for each kind of random step. Later steps have
    more weight.
    """
    costs: dict[str, float]
    """Effort so far, as a weighted sum for each kind of random step. Later steps have more weight. The unit is the
    effort for one new plan with FEW_TRIES schedules.
    """
    rounds: tuple[tuple[Tried, ...], ...]
    """Plans that the opening or the island evaluated, one tuple for each round. The opening counts as one round."""
    segments: int
    """Number of segments that the opening scheduled as separate networks."""
    schedules: int
    """Number of schedules that the opening or the island made in all its rounds."""

    @property
    def plans(self) -> int:
        """Number of evaluated plans, including plans for parts of the network."""
        return self.segments + sum(map(len, self.rounds))


def state_of(trials: Trials, moves: PlanMoves | None = None, before: IslandState | None = None) -> IslandState:
    """State after the opening, or after a round of an island. `before` is the state before the round. It is None for
    the opening and for the first round.
    """
    return IslandState(
        tuple(trials.elite.values()),
        trials.lbl,
        trials.start,
        {} if moves is None else dict(moves.gain),
        {} if moves is None else dict(moves.cost),
        (*(() if before is None else before.rounds), tuple(trials.tried)),
        trials.segments,
        (0 if before is None else before.schedules) + trials.evaluations,
    )


def result_so_far(state: IslandState) -> FusionResult:
    """Result as if the search ended with this state. The state is the state after the opening, or the state of one
    island.
    """
    tried = tuple(one for made in state.rounds for one in made)
    return FusionResult(
        state.elite[0], state.layer_by_layer, tried, state.segments, state.schedules, COUNT, state.start
    )


def seed_of_round(seed: int, island: int, number: int) -> int:
    """Seed of round `number` of an island, made from the seed of the search."""
    return zlib.crc32(f"{seed} {island} {number}".encode())


@dataclass(frozen=True)
class IslandRound:
    """Input of one round of an island: the states from which the round starts, the number of the island, and the number
    of the round.
    """

    opening: IslandState
    own: IslandState | None
    """State of the island after the previous round; None for the first round."""
    sender: IslandState | None
    """State of the island that passes its best plan to this island; None for the first round."""
    island: int
    number: int

    def begin(self, trials: Trials, moves: PlanMoves) -> None:
        """Fill new `trials` and `moves` with the results from before this round.

        In the first round, `trials` gets the best plans of the opening. In later rounds, it gets the best plans of this
        island and the best plan of the sending island. `moves` gets the gains and the costs of each kind of random
        step.
        """
        base = self.own or self.opening
        trials.lbl = base.layer_by_layer
        for outcome in base.elite:
            trials.offer(outcome)
        if self.sender is not None:
            trials.offer(self.sender.elite[0])
        moves.gain.update(base.gains)
        moves.cost.update(base.costs)

    def draw(self, seed: int) -> random.Random:
        """Generator of random numbers for the round."""
        return random.Random(seed_of_round(seed, self.island, self.number))


def merge(trials: Trials, opening: IslandState, islands: Sequence[IslandState]) -> None:
    """Put the plans of the opening and of all islands into `trials`. The opening is the first part of the search, which
    uses no random numbers. The plans of the opening come first. The plans of the islands follow, sorted by round, then
    by island.

    If several plans are equally good, the plan of the opening is the best. If the opening has no such plan, the plan of
    the island with the smallest number is the best.
    """
    most = max((len(state.rounds) for state in islands), default=0)
    rows = [*opening.rounds[0]]
    for number in range(most):
        for state in islands:
            rows += state.rounds[number] if number < len(state.rounds) else ()
    trials.tried = _renumbered(rows, trials.objective)
    trials.start, trials.segments = opening.start, opening.segments
    trials.evaluations = opening.schedules + sum(state.schedules for state in islands)
    trials.budget.plans = trials.segments + len(rows)
    trials.budget.schedules = trials.evaluations
    for state in (opening, *islands):
        found = state.layer_by_layer
        if found is not None and trials.is_better(found, trials.lbl):
            trials.lbl = found
    for state in (opening, *islands):
        for outcome in state.elite:
            trials.offer(outcome)


def _renumbered(rows: Sequence[Tried], objective: str) -> list[Tried]:
    """Copies of the evaluated plans `rows` of several islands, with new values of two fields. `number` is the position
    in `rows`. `is_best` is True if a plan is better by the objective than all plans before it in `rows`.
    """
    best: tuple[float, ...] | None = None
    found = []
    for number, one in enumerate(rows):
        rank = None if one.figures is None else one.figures.rank(objective)
        is_best = rank is not None and (best is None or rank < best)
        best = rank if is_best else best
        found.append(replace(one, number=number, is_best=is_best))
    return found
