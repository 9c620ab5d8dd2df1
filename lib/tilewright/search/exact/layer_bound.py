"""Fast lower bounds of a layer, which limit the distance of another engine's mapping from the optimum.

The bounds come from a round of the exact search that keeps only a few labels, or partial loop orders
(docs/proofs/exact-rounds.md, 7). The bounds hold for every loop order of the given spatial mappings if loops are
allocated to memories greedily.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact import rounds
from tilewright.search.exact.candidate import Candidate, Ordering
from tilewright.search.exact.choice import Choice
from tilewright.search.exact.rounds import Incumbent, Watch
from tilewright.search.options import ExactParameters, SearchLimits

WIDTHS = rounds.WIDTHS[:1]
"""Widths of the rounds: the number of labels (partial loop orders) that a round keeps per generation."""
EFFORT = 100_000
"""Limit of the effort for each bound of a layer, in the units of `SearchLimits.effort`."""


class GoalBounds(NamedTuple):
    """Lower bounds of the objective, the energy and the latency of a layer, over all loop orders of its spatial
    mappings.
    """

    value: float
    """Lower bound of the objective in its unit: pJ for energy, cycles for latency, pJ cycles for EDP."""
    energy_pj: float = 0.0
    """Lower bound of the energy in pJ; 0 if the objective does not contain both energy and latency, because the bound
    is then not computed."""
    latency_cycles: float = 0.0
    """Lower bound of the latency in cycles; 0 if the objective does not contain both energy and latency, because the
    bound is then not computed."""


def layer_bounds(
    choices: Sequence[Choice],
    ordering: Ordering,
    objective: str,
    known: Incumbent,
    stop: threading.Event | None = None,
) -> GoalBounds:
    """Lower bounds of a layer for all loop orders of the spatial mappings in `choices`.

    `known` is the best mapping found by another engine; no bound is above its value. Some spatial mappings are too
    large for the search, or are not reached within the effort. The bounds of such spatial mappings follow only from the
    numbers of temporal iterations and from the data of the layer. Raises SearchStoppedError if `stop` is set.
    """
    rounds.compile_kernels()
    problems = [(choice, prepared) for choice in choices if (prepared := choice.make()) is not None]
    goals = (objective, "energy", "latency") if all(OBJECTIVES[objective]) else (objective,)
    return GoalBounds(*(_least(problems, ordering, goal, known, stop, goal == objective) for goal in goals))


def _least(
    problems: Sequence[tuple[Choice, PreparedProblem]],
    ordering: Ordering,
    objective: str,
    known: Incumbent,
    stop: threading.Event | None,
    with_merged: bool,
) -> float:
    """Lower bound of the objective over the spatial mappings in `problems`. The result is at most the value of `known`,
    a mapping that another engine found. The spatial mapping with the smallest bound is searched first.

    There are two ways to search a spatial mapping. With free level boundaries, the search can place the boundaries
    between memory levels anywhere in the loop order of each operand. With greedy allocation, the loop order determines
    the boundaries. The first way is used if its space is certain to contain all greedily allocated mappings
    (`Candidate.relaxed`) and no temporal ordering is given. Otherwise, the second way is used, but only if
    `with_merged` is true. The second way searches the multisets of loops of the spatial mapping one after another.
    """
    watch = Watch.start(objective, SearchLimits(0.0, EFFORT, None), stop, None)
    options = ExactParameters(objective=objective)
    candidates = []
    for choice, prepared in problems:
        with suppress(MappingError):  # no loop order satisfies the ordering
            candidate = Candidate(prepared, choice.index, ordering, options, watch, choice.floors)
            candidates.append(candidate)
            if OBJECTIVES[objective].energy:
                candidate.sharpen_floor()
    least = known.value(objective)
    for candidate in sorted(candidates, key=lambda one: one.floor):
        least = min(least, _bound_of(candidate, known, least, with_merged))
    return least


def _bound_of(candidate: Candidate, known: Incumbent, enough: float, with_merged: bool) -> float:
    """Lower bound of the objective for one spatial mapping. The bound is at most the value of `known`. The temporal
    loops of the spatial mapping form one or more multisets, which are searched one after another. If the search of a
    multiset finds a mapping that is better than `known`, the bound is also at most the value of this mapping. The
    search ends as soon as the bound is at least `enough`.
    """
    watch, best = candidate.watch, known
    is_relaxed = candidate.relaxed is not None and not candidate.entries
    with suppress(MappingError):  # too large for tables
        if is_relaxed and candidate.floor < enough and watch.in_time():
            candidate.relax(best, WIDTHS)
        for part in candidate.parts if with_merged and not is_relaxed else ():
            if candidate.floor >= enough or not watch.in_time():
                break
            if part.lower_bound < enough:
                best = part.run(best, WIDTHS)
    return min(candidate.lower_bound, best.value(watch.objective))
