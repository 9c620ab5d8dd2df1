"""Advice on a run, as tables: changes that lower the objective, sorted by gain, and resources that can be reduced at no
cost.
"""

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
"""Objective that does not depend on the energies in the hardware file."""
LEAST_GAIN = 0.001
"""Least saving, as a share of the objective, for which a change is listed as helpful."""


@dataclass(frozen=True)
class Advice:
    """Advice on one change: the costs of the network after the change, with the mappings of the run and with newly
    searched mappings.
    """

    change: FileChange
    same: Outcome | None
    """Costs with the mappings of the run; None for a change of the mapping file."""
    search: Outcome | None
    """Costs with the mappings that a new search on the changed hardware finds; None if there was no new search."""
    held: Outcome | None = None
    """Costs on the unchanged hardware, with the mappings that the new search found for the changed hardware. These
    costs show which part of the gain comes from the search alone. None if these mappings save nothing on the unchanged
    hardware, or if these costs were not computed.
    """

    @property
    def outcome(self) -> Outcome:
        """Costs after a new search if there was one. Otherwise, the costs with the mappings of the run."""
        found = self.same if self.search is None else self.search
        return Outcome() if found is None else found


@dataclass(frozen=True)
class Together:
    """Set of changes that, with the mappings of the run, saves more than each of its changes alone."""

    changes: tuple[FileChange, ...]
    outcome: Outcome
    alone: tuple[Outcome, ...] = ()
    """Costs with each change alone; () if no change helps alone."""

    @property
    def change(self) -> FileChange:
        """One change that makes all of `changes`."""
        return FileChange.together(self.changes)


@dataclass(frozen=True)
class Pairs:
    """Result of trying two changes at a time, with the mappings of the run. Only changes that add resources are tried:
    larger memories and array sides, and wider ports and links.
    """

    tried: int
    """Number of pairs of changes that were tried."""
    changes: int
    """Number of changes that were combined in pairs. Every pair of these changes was tried."""
    left_out: int
    """Number of changes that were not combined. Alone, each of them saves less than every change that was combined."""
    best: Together | None
    """Pair that saves most; None if there is none.

    A pair is considered only if it saves at least LEAST_GAIN more than the sum of the savings of its two changes.
    """


@dataclass(frozen=True, repr=False)
class Advices:
    """Advice on all changes that were tried, the best first."""

    objective: str
    now: Outcome
    """Costs of the unchanged run."""
    found: tuple[Advice, ...]
    """Advice on each change, numbered from 1, in three groups.

    First come the changes that help, the best first. Then come changes that reduce a resource at no cost. Then come all
    other changes.
    """
    searched: bool
    """True if new searches were made on changed hardware."""
    notes: tuple[str, ...] = ()
    same_words: str = "same\nmappings"
    """Heading, in two lines, of the column for costs without a new search. The heading names the part of the run that
    stays, such as the mappings.
    """
    known: Outcome | None = None
    """Costs on the unchanged hardware, with the best mapping of each layer that any search found. None if these are the
    costs of the run.
    """
    holds_searches: bool = True
    """True if the mappings from searches on changed hardware were also evaluated on the unchanged hardware. If not, a
    reduction of a resource counts as free only if it costs nothing with the mappings of the run.
    """
    together: Together | None = None
    """Smallest set of changes that helps, if no single change helps. None if no set helps."""
    pairs: Pairs | None = None
    """Result of trying pairs of changes. None if no pairs were tried."""
    is_named: bool = False
    """True if the user named the changes. Then no other changes were tried."""

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
        """Advices, sorted as in the report (see `found`). `advices` are in the order of the changes in the input
        files.
        """
        more = sorted((one for one in advices if one.change.more), key=partial(advice_rank, objective))
        less = [one for one in advices if not one.change.more]
        made = cls(objective, now, (*more, *less), searched, tuple(notes), same_words, known)
        told = [one for _, one in (*made.helpful, *made.spare)]
        chosen = set(map(id, told))
        return replace(made, found=(*told, *(one for one in made.found if id(one) not in chosen)))

    @property
    def table(self) -> "pandas.DataFrame":
        """Table with one row per change, as in `advice.csv`."""
        return advice_table(self)

    def __repr__(self) -> str:
        counts = f"{len(self.found)} changes, {len(self.helpful)} help {self.objective}"
        return f"<{counts}, {len(self.spare)} reduce a resource at no cost>"

    def _repr_html_(self) -> str:
        return shown_html(repr(self)[1:-1], self.table)

    def gain(self, outcome: Outcome | None) -> float | None:
        """Saving of an outcome over the run, as a share of the objective.

        None if the outcome or the run has no cost.
        """
        value, now = (None if one is None else one.value(self.objective) for one in (outcome, self.now))
        return None if value is None or now is None else (now - value) / now if now else 0.0

    def hardware_gain(self, one: Advice) -> float | None:
        """Saving that a change itself brings, as a share of the objective. A saving that better mappings also bring on
        the unchanged hardware does not count. None if there are no costs with the change.

        The saving is the larger of two numbers. The first is the saving with the mappings of the run. The second is the
        saving of a new search, compared with the best mappings that are known for the unchanged hardware.
        """
        gains = [self.gain(one.same), self._gain_over(one.search, self.known or self.now)]
        return max((gain for gain in gains if gain is not None), default=None)

    def _gain_over(self, outcome: Outcome | None, base: Outcome) -> float | None:
        """Saving of `outcome` over `base`, as a share of the objective of the run."""
        value, before, now = (None if one is None else one.value(self.objective) for one in (outcome, base, self.now))
        return None if value is None or before is None or now is None else (before - value) / now if now else 0.0

    @property
    def search_gain(self) -> float:
        """Saving on the unchanged hardware, as a share of the objective, if each layer gets the best mapping of all
        searches. The saving is 0 if the mappings of the run are already the best known ones.
        """
        return self.gain(self.known) or 0.0

    @property
    def helpful(self) -> tuple[tuple[int, Advice], ...]:
        """Pairs (number, advice) of the changes that reduce no resource and save at least LEAST_GAIN (`hardware_gain`).

        Each entry of the mapping file has at most two of these changes: the best change that removes an unrolling, and
        the best change that sets another unrolling. An entry is for a layer or an operator type, for example.
        """
        found: dict[object, tuple[int, Advice]] = {}
        for number, one in self._numbered:
            change = one.change
            key = (change.path, change.after == LEFT_OUT) if change.is_of_mapping else number
            if change.more and (self.hardware_gain(one) or 0) >= LEAST_GAIN:
                found.setdefault(key, (number, one))
        return tuple(found.values())

    @property
    def spare(self) -> tuple[tuple[int, Advice], ...]:
        """Pairs (number, advice) of changes that reduce a resource at no cost: neither energy nor latency rises
        (`free_outcome`).

        Costs with the mappings of the run are compared with the costs of the run. Costs after a new search are compared
        with the best known costs on the unchanged hardware.
        """
        return tuple(
            (n, one) for n, one in self._numbered if not one.change.more and self.free_outcome(one) is not None
        )

    def free_outcome(self, one: Advice) -> Outcome | None:
        """Costs after a change, if neither energy nor latency rises. None if one of them rises.

        The costs with the mappings of the run are tried first, and are compared with the costs of the run. The costs
        after a new search are tried next, and are compared with the best known costs on the unchanged hardware. They
        are tried only if `holds_searches` is true.
        """
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
    """Smallest set of two or more changes that together save at least LEAST_GAIN. None if no tried set saves that much.

    Changes that reduce a resource are not combined. If the objective is the latency, changes of energies are not
    combined either. `made` has the objective and the costs of the run. `on_changed` returns the costs after a set of
    changes. For each size of set, at most `most_sets` sets are tried.
    """
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
    """Table with one row per change. The column `number` has the number of the change. Energies are in pJ, and gains
    are shares of the objective.
    """
    import pandas

    rows = [_row(number, one, advices) for number, one in enumerate(advices.found, 1)]
    return pandas.DataFrame(rows)


def paper_advice(advices: Advices) -> "pandas.DataFrame":
    """Table of the reported changes for a paper. The columns of gains name the objective."""
    table = advice_table(advices)
    if not advices.is_named:
        reported = {number for number, _ in (*advices.helpful, *advices.spare)}
        table = table[table["number"].isin(reported)]
    gains = {f"{name}_gain": f"{advices.objective}_{name}_gain" for name in ("same_mapping", "new_search")}
    return table[["number", "key", "before", "after", *gains]].rename(columns=gains)


def advices_object(advices: Advices) -> JsonObject:
    """Advices as JSON values."""
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
        "together": _together_object(advices, advices.together),
        "pairs": _pairs_object(advices),
        "for_nothing": [number for number, _ in advices.spare],
        "changes": [_row(number, one, advices) for number, one in enumerate(advices.found, 1)],
    }


def _together_object(advices: Advices, found: Together | None) -> JsonObject | None:
    if found is None:
        return None
    return {
        "keys": [one.key for one in found.changes],
        ENERGY_PJ: found.outcome.energy_pj,
        LATENCY_CYCLES: found.outcome.latency_cycles,
        "gain": advices.gain(found.outcome),
        "alone_gains": [advices.gain(one) for one in found.alone],
    }


def _pairs_object(advices: Advices) -> JsonObject | None:
    pairs = advices.pairs
    if pairs is None:
        return None
    best = _together_object(advices, pairs.best)
    return {"tried": pairs.tried, "changes": pairs.changes, "left_out": pairs.left_out, "best": best}


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
    """Sort key of advice.

    The first criterion is the lower of two costs: with the mappings of the run, and after a new search. The second
    criterion is the cost after a new search. Advice with equal keys keeps the order of the changes in the input files.
    """
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
