"""Advice on a run: its changes by what they gain, what can be taken away for nothing, and both as tables."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import ranking
from tilewright.designs.changes import ENERGY, LEFT_OUT, FileChange
from tilewright.designs.held_mappings import Outcome
from tilewright.results.shown import shown_html
from tilewright.results.verdict import MOST_SETS, smallest_set

if TYPE_CHECKING:
    import pandas


LATENCY = "latency"
"""The objective that energies do not change."""
LEAST_GAIN = 0.001
"""Share of the objective that a change saves at least that is said to help."""


@dataclass(frozen=True)
class Advice:
    """A change, and what the network costs with it."""

    change: FileChange
    same: Outcome | None
    """Gain with the mappings of the run; None of a change of the mapping file."""
    search: Outcome | None
    """Gain with the mappings that a new search finds; None where none was made."""
    held: Outcome | None = None
    """Gain with the mappings of that search on the hardware as it is: what the search brings without the change; None
    where it brings nothing, or was not looked at."""

    @property
    def outcome(self) -> Outcome:
        """What a new search finds, where it was made; else what the same mappings cost."""
        found = self.same if self.search is None else self.search
        return Outcome() if found is None else found


@dataclass(frozen=True)
class Together:
    """Changes that help together where none helps alone, with the same mappings."""

    changes: tuple[FileChange, ...]
    outcome: Outcome


@dataclass(frozen=True, repr=False)
class Advices:
    """All changes that were looked at, the best first."""

    objective: str
    now: Outcome
    """What the run costs."""
    found: tuple[Advice, ...]
    """Numbered from 1: those that help, the best first; those that can be taken away for nothing; all others."""
    searched: bool
    """Whether new searches were made."""
    notes: tuple[str, ...] = ()
    same_words: str = "same\nmappings"
    """What stays as it is where no new search is made, in two lines."""
    known: Outcome | None = None
    """What the run costs on the hardware as it is with the best mapping of each layer that any search found; None where
    that is what it costs."""
    holds_searches: bool = True
    """Whether what searches found for changed hardware was held on the hardware as it is, too; without that nothing can
    be taken away by a search."""
    together: Together | None = None
    """Where no single change helps: the fewest that do so together; None where none do."""

    @classmethod
    def of(
        cls,
        objective: str,
        now: Outcome,
        advices: Sequence[Advice],
        searched: bool,
        notes: Sequence[str] = (),
        same_words: str = "same\nmappings",
        known: Outcome | None = None,
    ) -> "Advices":
        """Advices in the order of the files, in the order in which they are told."""
        more = sorted((one for one in advices if one.change.more), key=partial(advice_rank, objective))
        less = [one for one in advices if not one.change.more]
        made = cls(objective, now, (*more, *less), searched, tuple(notes), same_words, known)
        told = [one for _, one in (*made.helpful, *made.spare)]
        chosen = set(map(id, told))
        return replace(made, found=(*told, *(one for one in made.found if id(one) not in chosen)))

    @property
    def table(self) -> "pandas.DataFrame":
        """A row for each change, as in `advice.csv`."""
        return advice_table(self)

    def __repr__(self) -> str:
        counts = f"{len(self.found)} changes, {len(self.helpful)} help {self.objective}"
        return f"<{counts}, {len(self.spare)} cost it nothing>"

    def _repr_html_(self) -> str:
        return shown_html(repr(self)[1:-1], self.table)

    def gain(self, outcome: Outcome | None) -> float | None:
        """The share of the objective that is saved; None where there is no cost."""
        value, now = (None if one is None else one.value(self.objective) for one in (outcome, self.now))
        return None if value is None or now is None else (now - value) / now if now else 0.0

    def hardware_gain(self, one: Advice) -> float | None:
        """The share of the objective that a change saves by itself: with the mappings of the run held, or over the best
        mappings that are known without it, whichever is more. None where it has no cost.

        What a search finds that the hardware as it is could have had, too, is no gain of the change.
        """
        gains = [self.gain(one.same), self._gain_over(one.search, self.known or self.now)]
        return max((gain for gain in gains if gain is not None), default=None)

    def _gain_over(self, outcome: Outcome | None, base: Outcome) -> float | None:
        """The share of the objective of the run by which an outcome is below another one."""
        value, before, now = (None if one is None else one.value(self.objective) for one in (outcome, base, self.now))
        return None if value is None or before is None or now is None else (before - value) / now if now else 0.0

    @property
    def search_gain(self) -> float:
        """The share of the objective that the mappings found by all searches save on the hardware as it is."""
        return self.gain(self.known) or 0.0

    @property
    def helpful(self) -> tuple[tuple[int, Advice], ...]:
        """Numbers and changes that give more and save LEAST_GAIN by themselves; of the changes of an entry of the
        mapping file the best that leaves lanes out, and the best that fixes others."""
        found: dict[object, tuple[int, Advice]] = {}
        for number, one in self._numbered:
            change = one.change
            key = (change.path, change.after == LEFT_OUT) if change.is_of_mapping else number
            if change.more and (self.hardware_gain(one) or 0) >= LEAST_GAIN:
                found.setdefault(key, (number, one))
        return tuple(found.values())

    @property
    def spare(self) -> tuple[tuple[int, Advice], ...]:
        """Numbers and changes that take something away for nothing: neither energy nor latency becomes more than the
        run's with its mappings held, or than the best that is known of the hardware as it is after a new search."""
        return tuple(
            (n, one) for n, one in self._numbered if not one.change.more and self.free_outcome(one) is not None
        )

    def free_outcome(self, one: Advice) -> Outcome | None:
        """What a change costs by which it takes something away for nothing: with the same mappings, or else after a new
        search; None where it does not."""
        if one.same is not None and one.same.is_no_more_than(self.now):
            return one.same
        found = one.search if self.holds_searches else None
        return found if found is not None and found.is_no_more_than(self.known or self.now) else None

    @property
    def _numbered(self) -> list[tuple[int, Advice]]:
        return list(enumerate(self.found, 1))


def together(
    made: Advices,
    changes: Sequence[FileChange],
    on_changed: Callable[[Sequence[FileChange]], Outcome],
    most_sets: int = MOST_SETS,
) -> Together | None:
    """The fewest changes that give more and save LEAST_GAIN together; `on_changed` says what they do."""
    now = made.now.value(made.objective)
    can_help = [one for one in changes if one.more and not (one.kind == ENERGY and made.objective == LATENCY)]
    if not now:
        return None

    def saved(chosen: tuple[FileChange, ...]) -> float:
        value = on_changed(chosen).value(made.objective)
        return -math.inf if value is None else now - value

    found = smallest_set(can_help, saved, LEAST_GAIN * now, most_sets)
    return None if found is None else Together(found[0], on_changed(found[0]))


def advice_table(advices: Advices) -> "pandas.DataFrame":
    """A row for each change, with its number; energies in pJ, gains as shares of the objective."""
    import pandas

    rows = [_row(number, one, advices) for number, one in enumerate(advices.found, 1)]
    return pandas.DataFrame(rows)


def advices_object(advices: Advices) -> JsonObject:
    """The advices as plain data."""
    return {
        "objective": advices.objective,
        ENERGY_PJ: advices.now.energy_pj,
        LATENCY_CYCLES: advices.now.latency_cycles,
        "searched": advices.searched,
        "notes": list(advices.notes),
        "best_known": None
        if advices.known is None
        else dict(zip((ENERGY_PJ, LATENCY_CYCLES), advices.known, strict=False)),
        "search_alone_gain": advices.search_gain,
        "helpful": [number for number, _ in advices.helpful],
        "together": _together_object(advices),
        "for_nothing": [number for number, _ in advices.spare],
        "changes": [_row(number, one, advices) for number, one in enumerate(advices.found, 1)],
    }


def _together_object(advices: Advices) -> JsonObject | None:
    if advices.together is None:
        return None
    return {
        "keys": [one.key for one in advices.together.changes],
        ENERGY_PJ: advices.together.outcome.energy_pj,
        LATENCY_CYCLES: advices.together.outcome.latency_cycles,
        "gain": advices.gain(advices.together.outcome),
    }


def _row(number: int, one: Advice, advices: Advices) -> JsonObject:
    change = one.change
    row: dict[str, Any] = {"number": number, "kind": change.kind, "gives": "more" if change.more else "less"}
    row |= {"key": change.key, "file": change.file, "line": change.line}
    row |= {"before": str(change.before), "after": str(change.after)}
    row |= {"also": ", ".join(f"{'.'.join(map(str, path))}: {value}" for path, value in change.also)}
    row |= {"hardware_gain": advices.hardware_gain(one)}
    for name, outcome in (("same_mapping", one.same), ("new_search", one.search), ("held", one.held)):
        energy, latency, reason = outcome or Outcome()
        row |= {f"{name}_energy_pj": energy, f"{name}_latency_cycles": latency}
        row |= {f"{name}_gain": advices.gain(outcome), f"{name}_reason": reason}
    return row


def advice_rank(objective: str, advice: Advice) -> tuple[Any, ...]:
    """What advices are ordered by: what who follows them gets, the better of the same mappings and a new search, then
    the new search; then the order of the file."""
    made = [one for one in (advice.same, advice.search) if one is not None]
    costs = [one for one in made if one.energy_pj is not None and one.latency_cycles is not None]
    best = min(
        costs, key=lambda one: ranking(objective, one.energy_pj or 0.0, one.latency_cycles or 0.0), default=Outcome()
    )
    outcomes = [best, advice.outcome]
    key: list[Any] = []
    for energy, latency, _ in outcomes:
        if energy is None or latency is None:
            key.append((True,))
        else:
            key.append((False, *ranking(objective, energy, latency)))
    return tuple(key)
