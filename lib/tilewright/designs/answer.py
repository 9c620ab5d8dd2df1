"""Answer to the exploration of a space: fronts, best designs, effects of the axes, and reasons why designs are not
compared.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pandas

from tilewright.base.errors import count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ
from tilewright.designs.axis_ends import NO_FAILURES, Failures, axis_failures, axis_sentences
from tilewright.designs.columns import UNMET_END, energy_column
from tilewright.designs.effects import best_first
from tilewright.designs.exploration import Exploration
from tilewright.designs.extrapolated_memories import extrapolated_sentences
from tilewright.designs.front import Front, fronts
from tilewright.designs.front_odds import least_probability
from tilewright.designs.nearest_designs import nearest_sentences
from tilewright.designs.plan_gaps import gap_sentences
from tilewright.designs.results import DROPPED, EDP_SUMMED, INFEASIBLE, INVALID, OK, SUMMED, uniform, value_text
from tilewright.designs.slow_memories import slow_sentences
from tilewright.hardware.attributes import power_terms

EXCLUDED, UNMET = "excluded", "constraint on results not met"
MOST_EXACT_CAUSES = 12
"""Largest number of different causes that are listed separately for one status. If there are more, causes that differ
only in numbers are counted as one cause.
"""
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d")


@dataclass(frozen=True)
class Counts:
    """Numbers of designs by outcome, for one network."""

    network: str
    designs: int
    """Number of designs with a row for the network. The other numbers count subsets of these designs."""
    ok: int
    """Number of designs that have results and meet all constraints."""
    unmet: int
    """Number of designs that have results but do not meet a constraint."""
    infeasible: int
    invalid: int
    dropped: int
    """Number of designs that are not searched, because the results of another design dominate their lower bounds."""


@dataclass(frozen=True)
class Cause:
    """Reason why some designs are not compared, and the number of these designs."""

    status: str
    text: str
    designs: int
    networks: tuple[str, ...]
    """Networks for which the reason holds; () for designs that were not evaluated."""

    @property
    def sentence(self) -> str:
        """Sentence with the number of designs and the reason, without the networks."""
        count, is_one = count_of(self.designs, "design"), self.designs == 1
        if self.status == UNMET:
            return f"{count} with results {'does' if is_one else 'do'} not meet the constraint `{self.text}`"
        if self.status == EXCLUDED:
            return f"{count} excluded, because {'it does' if is_one else 'they do'} not meet `{self.text}`"
        return f"{count} {'is' if is_one else 'are'} {self.status}: {self.text}"


@dataclass(frozen=True, eq=False)
class Answer:
    """Answer to the exploration of a space, made by `answer_of`."""

    exploration: Exploration
    fronts: tuple[Front, ...]
    counts: tuple[Counts, ...]
    """Numbers of designs by outcome, with one `Counts` per network."""
    causes: tuple[Cause, ...]
    """Causes, grouped by status. In each group, the causes with the most designs come first."""
    design_count: int
    """Number of all designs of the space. It includes designs without rows: excluded designs, designs that are not
    evaluated yet, and designs that a certificate shows to be on no front.
    """
    base_notes: tuple[str, ...] = ()
    """Sentence on the design with the values of the hardware file (`base_design`)."""
    free_notes: tuple[str, ...] = ()
    """Sentences on axes that change no cost (`free_axes`)."""
    proposal_notes: tuple[str, ...] = ()
    """Notices on values that `axis_notes` proposes (`proposed_values`)."""
    mapping_notes: tuple[str, ...] = ()
    """Sentences on gaps of some designs: between their mappings and the best mappings (`mapping_gaps`), or between
    their plans and the best plans (`plan_gaps`).
    """
    error_notes: tuple[str, ...] = ()
    """Sentences on error bars of latencies (`designs.error_bars`); () if none are asked for."""

    @property
    def overall(self) -> Front:
        """Front of all networks together, or of the only network."""
        return self.fronts[-1]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of the comparison.

        If designs of the space are not evaluated yet, there is also a note on them.
        """
        missing = self.exploration.missing
        part = f"Not evaluated yet: {count_of(missing, 'design')}. This answer covers only the evaluated designs."
        missing_power = _missing_static_power(self.overall.compared, self.exploration.table)
        if missing_power and not self.overall.is_whole:
            missing_power = f"Of the designs on a front: {missing_power}"
        further = filter(None, (self._failed, self.exploration.clocks.note, missing_power))
        summed = [SUMMED] if len(self.fronts) > 1 else []
        return (*([part] if missing else []), *self.exploration.assumptions, *summed, *further)

    @property
    def _failed(self) -> str:
        """Sentence on the evaluated designs without results; '' if all have results."""
        outcomes = self.exploration.outcomes
        found = {status: {*outcomes.loc[outcomes["status"] == status, "index"]} for status in (INVALID, INFEASIBLE)}
        failed = set().union(*found.values())
        if not failed:
            return ""
        parts = ", ".join(f"{len(designs):,} {status}" for status, designs in found.items() if designs)
        of = count_of(outcomes["index"].nunique(), "evaluated design")
        verbs = ("has", "is") if len(failed) == 1 else ("have", "are")
        return f"{len(failed):,} of {of} {verbs[0]} no results on some network and {verbs[1]} not compared ({parts})."

    @property
    def table_note(self) -> str:
        """Note at tables with values for all networks together; '' if there is only one network."""
        return EDP_SUMMED if len(self.fronts) > 1 else ""

    @cached_property
    def failures(self) -> Failures:
        """Values of axes with which no design has results; {} if the table has the rows of only some designs."""
        exploration = self.exploration
        return axis_failures(exploration.table, exploration.axis_names) if exploration.others is None else NO_FAILURES

    @property
    def axis_notes(self) -> tuple[str, ...]:
        """Sentences on axes of two kinds: axes that end too early for the best design, and axes that hardly change any
        design. For an axis that ends too early, the sentence has values to try next, or the values that fail.
        """
        return axis_sentences(self.overall, self.exploration.axis_values, self.failures)

    @property
    def access_notes(self) -> tuple[str, ...]:
        """Sentence on the compared designs with a memory whose access takes longer than a clock cycle; () if there are
        none.
        """
        return tuple(slow_sentences(self.overall))

    @property
    def extrapolation_notes(self) -> tuple[str, ...]:
        """Sentence on the compared designs with extrapolated costs; () if there are none."""
        return tuple(extrapolated_sentences(self.overall))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on access times and on extrapolated costs. Without them, the costs of designs would mislead."""
        return (*self.access_notes, *self.extrapolation_notes)

    @cached_property
    def nearest_notes(self) -> tuple[str, ...]:
        """Sentences on the designs that are nearest to constraints that no design meets (`nearest_designs`)."""
        return tuple(nearest_sentences(self.exploration))

    @property
    def notes(self) -> tuple[str, ...]:
        """All sentences on constraints that no design meets, the base, access times, extrapolated costs, axes,
        mappings, plans and error bars, in the order of the printed summary.
        """
        found = (*self.nearest_notes, *self.base_notes, *self.warnings, *self.axis_notes, *self.proposal_notes)
        return (*found, *self.free_notes, *self.mapping_notes, *self.error_notes)

    @property
    def excluded(self) -> int:
        """Number of designs that constraints on axes and laws exclude without evaluation."""
        return sum(self.exploration.excluded.values())


def _missing_static_power(compared: pandas.DataFrame, table: pandas.DataFrame) -> str:
    """Text on missing static power, if only some of the compared designs have static power. It gives the share of the
    static power in the energy of these designs. In a table, a power that is not given looks like a power of 0.

    '' if all compared designs have static power, or none has.
    """
    columns = [name for name in map(energy_column, power_terms()) if name in table]
    if not columns or compared.empty:
        return ""
    rows = table[table["index"].isin(compared.index)]
    static_pj = rows[columns].sum(axis=1)
    has_power = static_pj > 0
    without = rows.loc[~has_power, "index"].nunique()
    if not has_power.any() or not without:
        return ""
    share = (static_pj / rows[ENERGY_PJ])[has_power]
    return (
        f"The energy of {without:,} of {rows['index'].nunique():,} designs has no static power, because their hardware"
        f" gives none, or gives 0. In the other designs, static power is {share.min():.1%} to {share.max():.1%} of the"
        " energy. The energies of all designs are comparable only if a static power that is not given is really 0."
    )


def answer_of(exploration: Exploration) -> Answer:
    """Answer to an exploration, computed from its table of results."""
    even = replace(exploration, table=uniform(exploration.table, exploration.value_names))
    table = even.table
    outcomes = even.outcomes
    evaluated = int(table["index"].nunique())
    found = fronts(even)
    return Answer(
        even,
        found,
        tuple(_counts(name, outcomes[outcomes["network"] == name]) for name in even.networks),
        tuple(_causes(even)),
        evaluated + sum(even.excluded.values()) + even.missing + even.settled,
        mapping_notes=tuple(sentence for front in found for sentence in gap_sentences(front.network, front.members)),
    )


def best_probability(front: Front, measure: str) -> float:
    """Probability that the best design in a measure stays the best when costs vary in their ranges."""
    return least_probability(front.compared, measure, best_first(front, measure).index[0])


def values_text(row: JsonObject, names: tuple[str, ...]) -> str:
    """Values of a design on one line, each with its name."""
    return ", ".join(f"{name} {value_text(row[name])}" for name in names)


def _counts(network: str, rows: pandas.DataFrame) -> Counts:
    is_ok = rows["status"] == OK
    is_met = rows["unmet"] == ""
    return Counts(
        network,
        len(rows),
        int((is_ok & is_met).sum()),
        int((is_ok & ~is_met).sum()),
        int((rows["status"] == INFEASIBLE).sum()),
        int((rows["status"] == INVALID).sum()),
        int((rows["status"] == DROPPED).sum()),
    )


def _causes(exploration: Exploration) -> Iterator[Cause]:
    table = exploration.outcomes
    for text, designs in exploration.excluded.items():
        yield Cause(EXCLUDED, text, designs, ())
    for status in (INVALID, INFEASIBLE, DROPPED):
        yield from _counted(status, table[table["status"] == status], "reason")
    unmet = table[(table["status"] == OK) & (table["unmet"] != "")].astype({"unmet": str})
    yield from _counted(UNMET, unmet.assign(unmet=unmet["unmet"].str.split(UNMET_END)).explode("unmet"), "unmet")


def _counted(status: str, rows: pandas.DataFrame, column: str) -> list[Cause]:
    """Causes of one status: the different texts in a column of the rows, each with its number of designs. The most
    frequent causes come first. Equally frequent causes are in the order of the rows.
    """
    texts = rows[column]
    if texts.nunique() > MOST_EXACT_CAUSES:
        texts = texts.map({text: _NUMBER.sub("N", text) for text in texts.unique()})
    found = []
    for text, group in rows.groupby(texts, sort=False):
        networks = tuple(group["network"].unique().tolist())
        found.append(Cause(status, str(text), int(group["index"].nunique()), networks))
    return sorted(found, key=lambda cause: -cause.designs)
