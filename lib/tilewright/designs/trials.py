"""Trials of changes to a run on one or several cores (docs/bottlenecks/explain.md#explain-a-run).

A change makes a design: the hardware of the run with one number changed. The design is tried in two ways. First, it is
evaluated with the choices of the run: its mappings, or its tiles and allocation. Second, a new search is made, as for a
design of a space. The result of the search is also evaluated on the unchanged hardware. This separates the gain of the
search from the gain of the change.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Protocol

from tilewright.base.errors import InputError, KeyPath, MappingError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.processes import in_processes
from tilewright.designs.advice import LEAST_GAIN, Advice, Advices, Pairs, Together, together
from tilewright.designs.changes import BANDWIDTH, LINK, SIDE, SIZE, FileChange
from tilewright.designs.held_mappings import Held, Outcome
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.text_edits import with_values
from tilewright.search.progress import Advance

OTHER_SEARCH = (
    "a new search on the unchanged hardware gives other costs than the run; savings are relative to the costs of the"
    " run"
)
Found = tuple[Outcome, Held | None]
"""Pair (costs after a new search, evaluation of the found mappings or allocation on the unchanged hardware).

The second element is None in three cases: the search finds nothing; the found mappings cannot improve the run on the
unchanged hardware; the found allocation cannot be evaluated on the unchanged hardware.
"""
Settings = Sequence[tuple[KeyPath, Any]]


class TrialEngine(Protocol):
    """Run whose hardware is changed in trials. Its methods compute the costs of the run on an accelerator. Each process
    has a copy of the object.
    """

    @property
    def name(self) -> str:
        """Name of the run."""

    @property
    def hardware(self) -> JsonObject:
        """Content of the run's hardware file, with all cores."""

    @property
    def objective(self) -> str:
        """Objective of the run's search."""

    @property
    def now(self) -> Outcome:
        """Costs of the run on its unchanged hardware."""

    @property
    def same_words(self) -> str:
        """Heading, in two lines, of the column for costs without a new search. The heading names the part of the run
        that stays, such as `same mappings`.
        """

    @property
    def most_sets(self) -> int:
        """Largest number of sets of changes that are tried, for each size of set. A set has two, three or more changes,
        which are tried together. If there are more sets of one size, only some of them are tried.

        Sets are tried if no single change helps. The limit also holds for the pairs of `with_pairs`.
        """

    @property
    def holds_searches(self) -> bool:
        """True if a new search can show that a change reduces a resource at no cost. If false, only the costs without a
        new search can show this.
        """

    @property
    def not_searched(self) -> str:
        """Reason why the run allows no new search; '' if it allows one."""

    def same(self, accelerator: Any) -> Outcome:
        """Costs on an accelerator with the mappings or the allocation of the run. Raises InputError or MappingError if
        these costs cannot be computed.
        """

    def searcher(self) -> Callable[[Any], Found]:
        """Function that makes a new search for an accelerator. It is called for one accelerator after the other."""

    def further(self, jobs: int, advance: Advance) -> list[Advice]:
        """Advice on changes of files other than the hardware file."""

    def best_known(self, held: Sequence[Held]) -> Outcome:
        """Costs on the unchanged hardware with the best known mappings or allocation, from the run or from a search.
        `held` has, for each search, the costs of its mappings or allocation on the unchanged hardware.
        """

    def notes(self, advices: Advices) -> list[str]:
        """Notes on advice for this run."""


@dataclass(frozen=True)
class Trial:
    """Costs of a run after a change of its hardware."""

    same: Outcome
    search: Outcome | None = None
    held: Held | None = None

    def of(self, change: FileChange) -> Advice:
        """Advice on the change `change`, made from the costs of this trial."""
        return Advice(change, self.same, self.search, None if self.held is None else self.held.outcome)


def advices_of(
    run: TrialEngine, changes: Sequence[FileChange], *, search: bool, jobs: int = 1, advance: Advance = lambda _: None
) -> Advices:
    """Advice on a run: the effects of each change of the hardware, and of changes of other files.

    Each call of `advance` adds to the number of trials that are done. The first trial is that of the unchanged run.
    Raises InputError if the input files do not belong to the run.
    """
    searches = search and not run.not_searched
    _check(run)
    trials = []
    with in_processes(partial(_trials, run, searches), len(changes) + 1, jobs) as work:
        for trial in work([(), *(change.system_settings for change in changes)]):
            trials.append(trial)
            advance(1)
    advices = [trial.of(change) for change, trial in zip(changes, trials[1:], strict=True)]
    advices += run.further(jobs, advance)
    known = run.best_known([trial.held for trial in trials if trial.held is not None])
    notes = [run.not_searched] if search and run.not_searched else []
    anew = trials[0].search
    notes += [OTHER_SEARCH] if anew is not None and anew[:2] != run.now[:2] else []
    better = None if known[:2] == run.now[:2] else known
    made = Advices.of(run.objective, run.now, advices, searches, notes, run.same_words, better)
    made = replace(made, holds_searches=run.holds_searches)
    chosen = None if made.helpful else together(made, changes, partial(_same_with, run), run.most_sets)
    return replace(made, together=chosen, notes=(*made.notes, *run.notes(made)))


def _check(run: TrialEngine) -> None:
    """Raise InputError if an evaluation of the run on its unchanged hardware gives other costs than `run.now`."""
    again = run.same(parse_accelerator(run.hardware))
    if again[:2] != run.now[:2]:
        message = f"evaluating the run again gives other costs: {again.latency_cycles} cycles, {again.energy_pj} pJ"
        raise InputError([Problem(message, run.name, allowed=f"{run.now.latency_cycles}, {run.now.energy_pj}")])


def _trials(run: TrialEngine, searches: bool) -> Callable[[Settings], Trial]:
    """Function that evaluates a run after changes of its hardware. If `searches` is true, the function also makes a new
    search. Each process makes this function once.
    """
    return partial(_tried, run, run.searcher() if searches else None)


def _tried(run: TrialEngine, search: Callable[[Any], Found] | None, settings: Settings) -> Trial:
    """Trial of the run after the changes `settings` of its hardware. If `search` is None, no new search is made."""
    try:
        accelerator = parse_accelerator(with_values(run.hardware, settings))
    except InputError as error:
        refused = Outcome.refused(error)
        return Trial(refused, refused if search else None)
    try:
        same = run.same(accelerator)
    except (InputError, MappingError) as error:
        same = Outcome.refused(error)
    return Trial(same, *search(accelerator)) if search else Trial(same)


def tried(run: TrialEngine, change: FileChange, search: bool) -> Trial:
    """Trial of one change. A new search is made if the caller asks for it and the run allows it."""
    return _trials(run, search and not run.not_searched)(change.system_settings)


def named_advices(run: TrialEngine, changes: Sequence[FileChange], *, search: bool) -> Advices:
    """Advice on the changes that the user names, which are made together as one set.

    Raises InputError if the input files do not belong to the run.
    """
    _check(run)
    change = FileChange.together(changes)
    searches = search and not run.not_searched
    notes = [run.not_searched] if search and run.not_searched else []
    made = Advices.of(run.objective, run.now, [tried(run, change, search).of(change)], searches, notes, run.same_words)
    made = replace(made, is_named=True)
    return replace(made, notes=(*made.notes, *run.notes(made)))


def with_pairs(run: TrialEngine, made: Advices, jobs: int = 1) -> Advices:
    """Advice to which the best pair of changes is added: the pair that saves most. A pair counts only if it saves at
    least LEAST_GAIN more than the sum of the savings of its two changes alone.

    Only changes that add resources are paired: a larger memory or array side, or a wider port or link. If there are
    more than `run.most_sets` pairs, only the changes that save most alone are paired.
    """
    ranked = [
        one for one in made.found if one.change.more and one.change.kind in _LIMITS and made.gain(one.same) is not None
    ]
    count = len(ranked)
    while math.comb(count, 2) > run.most_sets:
        count -= 1
    chosen = sorted(ranked, key=lambda one: -(made.gain(one.same) or 0.0))[:count]
    pairs = list(combinations(chosen, 2))
    settings = [(*one.change.system_settings, *other.change.system_settings) for one, other in pairs]
    with in_processes(partial(_trials, run, False), len(pairs), jobs) as work:
        outcomes = [trial.same for trial in work(settings)]
    best = _best_pair(made, pairs, outcomes)
    return replace(made, pairs=Pairs(len(pairs), count, len(ranked) - count, best))


_LIMITS = (BANDWIDTH, SIZE, SIDE, LINK)
"""Kinds of changes that `with_pairs` tries in pairs."""


def _best_pair(made: Advices, pairs: Sequence[tuple[Advice, Advice]], outcomes: Sequence[Outcome]) -> Together | None:
    """Pair of changes that saves most; None if no pair counts. A pair counts if it saves at least LEAST_GAIN more than
    the sum of the savings of its two changes alone.

    Of equal pairs, the first is taken.
    """
    found, most = None, 0.0
    for (one, other), outcome in zip(pairs, outcomes, strict=True):
        alone = [made.gain(advice.same) or 0.0 for advice in (one, other)]
        gain = made.gain(outcome)
        if gain is not None and gain > most and gain >= sum(max(part, 0.0) for part in alone) + LEAST_GAIN:
            same = [advice.same for advice in (one, other) if advice.same is not None]
            found, most = Together((one.change, other.change), outcome, tuple(same)), gain
    return found


def _same_with(run: TrialEngine, changes: Sequence[FileChange]) -> Outcome:
    """Costs after several changes of the hardware, with the choices of the run."""
    return _tried(run, None, [pair for change in changes for pair in change.system_settings]).same
