"""Gains of single changes of a run on one core: exact at the same mappings, and after a new search
(docs/bottlenecks.md#explain-a-run).

A change is a design: the hardware file with another number. Its new search is that of a design of a space
(`evaluate.py`), its mappings those of the run, as `tilewright evaluate` costs them. With another mapping file the
search is the same, on the hardware of the run.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import InputError, KeyPath, MappingError
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import ranking
from tilewright.base.processes import in_processes
from tilewright.cost.record import LayerRecord, times
from tilewright.designs.changes import ENERGY, LEFT_OUT, FileChange, MappingChange
from tilewright.designs.design_cost import reason_of
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.held_mappings import HeldMappings, Outcome, best_known, held_mappings
from tilewright.designs.results import OK
from tilewright.hardware.core import Core, single_core
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.text_edits import with_values
from tilewright.mapping.constraints import Mapping
from tilewright.results.recorded_mappings import RecordedMapping, recorded_mappings
from tilewright.results.records import PlacedLayer
from tilewright.results.shown import shown_html
from tilewright.results.verdict import MOST_SETS, smallest_set
from tilewright.search.options import SearchOptions
from tilewright.search.progress import Advance
from tilewright.workload.graph import Workload

if TYPE_CHECKING:
    import pandas


LATENCY = "latency"
"""The objective that energies do not change."""
LEAST_GAIN = 0.001
"""Share of the objective that a change saves at least that is said to help."""
DESIGNS_AT_ONCE = 4
"""Designs that a process searches one after another."""
OUTERMOST = "is the outermost memory: where it is not on the chip, less of it saves nothing there"
"""Noted of a memory that could be smaller."""


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


@dataclass(frozen=True, eq=False)
class ExplainedRun:
    """A run on one core, with all that it was made of."""

    name: str
    placed: Sequence[PlacedLayer]
    hardware: dict[str, Any]
    """The content of its hardware file."""
    network: Workload
    mapping: Mapping
    options: SearchOptions
    others: Sequence[MappingChange] = ()
    """Changes of its mapping file that are tried."""

    @property
    def now(self) -> Outcome:
        """What it costs."""
        return Outcome.of([layer.record for layer in self.placed])


def advices_of(
    run: ExplainedRun, changes: Sequence[FileChange], *, search: bool, jobs: int = 1, advance: Advance = lambda _: None
) -> Advices:
    """What each change of the hardware does to a run, and each of the changes of its mapping file that it has.

    `advance` is told designs as they are searched, the run as it is is the first. Raises InputError where the hardware
    or the network is not that of the run.
    """
    core = single_core(parse_accelerator(run.hardware))
    records = {layer.record_index: layer.of_one for layer in run.placed}
    recorded = dict(zip(records, recorded_mappings(list(records.values()), core, run.network), strict=True))
    mappings = [(recorded[layer.record_index], layer.repeats) for layer in run.placed]
    same = [_on_changed(run.hardware, change.settings, mappings) for change in changes]
    searched = _searched(run, changes, jobs, advance) if search else []
    others = _searched_mappings(run, jobs, advance)
    now, notes = run.now, []
    if searched and searched[0][:2] != now[:2]:
        notes.append(
            "a new search of the unchanged hardware does not find the costs of the run: gains are over the run"
        )
    of_array = any(change.key.startswith("operational_array.") for change in changes)
    if core.operational_array.is_in_memory and of_array:
        notes.append("latencies are in cycles: another array has another clock period, too")
    found = [
        Advice(change, one, searched[place + 1] if searched else None)
        for place, (change, one) in enumerate(zip(changes, same, strict=True))
    ]
    held = _held(run, core, found, searched, jobs)
    found = [replace(one, held=held[place].outcome) if place in held else one for place, one in enumerate(found)]
    found += [Advice(one.change, None, outcome) for one, outcome in zip(run.others, others, strict=True)]
    known = best_known(run.placed, list(held.values()), run.options.objective)
    made = Advices.of(run.options.objective, now, found, search, notes, known=None if known[:2] == now[:2] else known)

    def on_changed(chosen: Sequence[FileChange]) -> Outcome:
        return _on_changed(run.hardware, [pair for one in chosen for pair in one.settings], mappings)

    made = replace(made, together=None if made.helpful else together(made, changes, on_changed))
    return replace(made, notes=(*made.notes, *_outermost(made, core)))


def _held(
    run: ExplainedRun, core: Core, found: Sequence[Advice], searched: Sequence[Outcome], jobs: int
) -> dict[int, HeldMappings]:
    """Place of a change -> the mappings of its search held on the hardware as it is, where they may be better by
    themselves than those of the run; under -1 those of a search of the unchanged hardware."""
    if not searched:
        return {}
    objective, now = run.options.objective, run.now
    least = now.value(objective)
    outcomes = {-1: searched[0], **{place: one.outcome for place, one in enumerate(found)}}
    chosen = [
        place
        for place, outcome in outcomes.items()
        if (value := outcome.value(objective)) is not None
        and least is not None
        and (value < least or (value == least and outcome[:2] != now[:2]))
    ]
    tasks = [run.hardware if place < 0 else with_values(run.hardware, found[place].change.settings) for place in chosen]
    with in_processes(partial(_holder, run, core), len(tasks), jobs) as work:
        return dict(zip(chosen, work(tasks), strict=True))


def _holder(run: ExplainedRun, core: Core) -> Callable[[JsonObject], HeldMappings]:
    """What holds mappings of searches in one process."""
    return lambda hardware: held_mappings(run.network, run.mapping, run.options, hardware, core)


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


def _outermost(advices: Advices, core: Core) -> list[str]:
    """Note that who takes away from an outermost memory saves nothing on a chip that does not have it."""
    taken = {one.change.path[1] for _, one in advices.spare if one.change.path[0] == "memories"}
    names = [memory.name for memory, _ in top_memories(core) if memory.name in taken]
    return [f"{name} {OUTERMOST}" for name in names]


def advice_table(advices: Advices) -> "pandas.DataFrame":
    """A row for each change, with its number; energies in pJ, gains as shares of the objective."""
    import pandas

    rows = [_row(number, one, advices) for number, one in enumerate(advices.found, 1)]
    return pandas.DataFrame(rows)


def advices_object(advices: Advices) -> JsonObject:
    """The advices as plain data."""
    return {
        "objective": advices.objective,
        "energy_pj": advices.now.energy_pj,
        "latency_cycles": advices.now.latency_cycles,
        "searched": advices.searched,
        "notes": list(advices.notes),
        "best_known": None
        if advices.known is None
        else dict(zip(("energy_pj", "latency_cycles"), advices.known, strict=False)),
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
        "energy_pj": advices.together.outcome.energy_pj,
        "latency_cycles": advices.together.outcome.latency_cycles,
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


def _on_changed(
    hardware: JsonObject, settings: Sequence[tuple[KeyPath, Any]], mappings: Sequence[tuple[RecordedMapping, int]]
) -> Outcome:
    """What the mappings cost on the changed core, each so many times, added up as the summary of a run does it."""
    try:
        core = single_core(parse_accelerator(with_values(hardware, settings)))
        costs = _once_each(core, [one for one, _ in mappings])
        return Outcome.of([times(costs[id(one)], count) for one, count in mappings])
    except InputError as error:
        return Outcome(reason=reason_of(error))
    except MappingError as error:
        return Outcome(reason=" ".join(str(error).split()))


def _once_each(core: Core, mappings: Sequence[RecordedMapping]) -> dict[int, LayerRecord]:
    distinct = {id(one): one for one in mappings}
    return {key: one.on(core) for key, one in distinct.items()}


def _searched(run: ExplainedRun, changes: Sequence[FileChange], jobs: int, advance: Advance) -> list[Outcome]:
    """What a new search finds on the unchanged core, then on each changed one."""
    designs = [run.hardware, *(with_values(run.hardware, change.settings) for change in changes)]
    blocks = [designs[first : first + DESIGNS_AT_ONCE] for first in range(0, len(designs), DESIGNS_AT_ONCE)]
    outcomes: list[Outcome] = []
    with in_processes(partial(_searcher, run.network, run.mapping, run.options), len(blocks), jobs) as work:
        for block, found in zip(blocks, work(blocks), strict=True):
            outcomes += found
            advance(len(block))
    return outcomes


def _searched_mappings(run: ExplainedRun, jobs: int, advance: Advance) -> list[Outcome]:
    """What a search finds with each other mapping file on the hardware of the run."""
    outcomes: list[Outcome] = []
    with in_processes(partial(_mapping_searcher, run), len(run.others), jobs) as work:
        for found in work([one.mapping for one in run.others]):
            outcomes.append(found)
            advance(1)
    return outcomes


def _mapping_searcher(run: ExplainedRun) -> Callable[[Mapping], Outcome]:
    """What searches with mapping files in one process."""

    def search(mapping: Mapping) -> Outcome:
        return _cost(NetworkEvaluator(run.network, mapping, run.options), run.hardware)

    return search


def _searcher(
    network: Workload, mapping: Mapping, options: SearchOptions
) -> Callable[[Sequence[JsonObject]], list[Outcome]]:
    """What searches designs in one process."""
    evaluator = NetworkEvaluator(network, mapping, options)

    def search(designs: Sequence[JsonObject]) -> list[Outcome]:
        return [_cost(evaluator, hardware) for hardware in designs]

    return search


def _cost(evaluator: NetworkEvaluator, hardware: JsonObject) -> Outcome:
    try:
        found = evaluator.cost(parse_accelerator(hardware))
    except InputError as error:
        return Outcome(reason=reason_of(error))
    return Outcome(found.energy_pj, found.latency_cycles) if found.status == OK else Outcome(reason=found.reason)
