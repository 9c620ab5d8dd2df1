"""Answer to the exploration of a space: fronts, best designs, effects of the axes, and reasons of failed designs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ
from tilewright.designs.axis_ends import axis_sentences
from tilewright.designs.exploration import Exploration
from tilewright.designs.front import Front, fronts
from tilewright.designs.front_odds import least_probability
from tilewright.designs.results import INFEASIBLE, INVALID, OK, uniform, value_text

LEAKAGE = "energy_leakage_pj"
EXCLUDED, UNMET = "excluded", "constraint on results not met"
MOST_EXACT_CAUSES = 12
"""Largest number of different causes of a status. If there are more, causes that differ only in numbers count as one.
"""
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d")


@dataclass(frozen=True)
class Counts:
    """Numbers of designs by outcome, for one network."""

    network: str
    designs: int
    """Number of evaluated designs."""
    ok: int
    """Number of designs that have results and meet all constraints."""
    unmet: int
    """Number of designs that have results but do not meet a constraint."""
    infeasible: int
    invalid: int


@dataclass(frozen=True)
class Cause:
    """Reason why designs are not compared, and the number of these designs."""

    status: str
    text: str
    designs: int
    networks: tuple[str, ...]
    """Networks for which the reason holds; () for designs that were not evaluated."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Answer to the exploration of a space, made by `answer_of`."""

    exploration: Exploration
    fronts: tuple[Front, ...]
    counts: tuple[Counts, ...]
    """Numbers of designs by outcome, with one `Counts` per network."""
    causes: tuple[Cause, ...]
    """Causes, grouped by status. In each group, the most frequent cause comes first."""
    design_count: int
    """Number of all designs of the space. It includes designs without rows: excluded designs, designs that are not
    evaluated yet, and designs that a certificate shows to be on no front.
    """
    mapping_notes: tuple[str, ...] = ()
    """Sentences on the gap between the mappings of some designs and the best mappings (`mapping_gaps`)."""

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
        part = f"{missing:,} designs are not evaluated yet: this answer covers only the evaluated designs."
        leakage = _missing_leakage(self.overall.compared, self.exploration.table)
        if leakage and not self.overall.is_whole:
            leakage = f"Of the designs on a front: {leakage}"
        further = filter(None, (self.exploration.clocks.note, leakage))
        return (*([part] if missing else []), *self.exploration.assumptions, *further)

    @property
    def axis_notes(self) -> tuple[str, ...]:
        """Sentences on axes that end at the best design, with values to add, and on axes that hardly matter."""
        return axis_sentences(self.overall, self.exploration.axis_values)

    @property
    def excluded(self) -> int:
        """Number of designs that constraints on axes and laws exclude without evaluation."""
        return sum(self.exploration.excluded.values())


def _missing_leakage(compared: pandas.DataFrame, table: pandas.DataFrame) -> str:
    """Note that the static power is known for only some designs, with its share of their energy.

    '' if the static power is known for all designs, or for none.
    """
    if LEAKAGE not in table or compared.empty:
        return ""
    rows = table[table["index"].isin(compared.index)]
    leaks = rows[LEAKAGE] > 0
    without = rows.loc[~leaks, "index"].nunique()
    if not leaks.any() or not without:
        return ""
    share = (rows[LEAKAGE] / rows[ENERGY_PJ])[leaks]
    return (
        f"The static power of {without:,} of {rows['index'].nunique():,} designs is not known, and their energy does"
        f" not include it; in the other designs it is {share.min():.1%} to {share.max():.1%} of the energy. Therefore"
        " the energies of designs with and without static power are not comparable."
    )


def answer_of(exploration: Exploration) -> Answer:
    """Answer from the table of results."""
    even = replace(exploration, table=uniform(exploration.table, exploration.value_names))
    table = even.table
    outcomes = even.outcomes
    evaluated = int(table["index"].nunique())
    return Answer(
        even,
        fronts(even),
        tuple(_counts(name, outcomes[outcomes["network"] == name]) for name in even.networks),
        tuple(_causes(even)),
        evaluated + sum(even.excluded.values()) + even.missing + even.settled,
    )


def best_probability(front: Front, measure: str) -> float:
    """Probability that the best design in a measure stays the best when costs vary in their ranges."""
    return least_probability(front.compared, measure, front.compared[measure].idxmin())


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
    )


def _causes(exploration: Exploration) -> Iterator[Cause]:
    table = exploration.outcomes
    for text, designs in exploration.excluded.items():
        yield Cause(EXCLUDED, text, designs, ())
    for status in (INVALID, INFEASIBLE):
        yield from _counted(status, table[table["status"] == status], "reason")
    yield from _counted(UNMET, table[(table["status"] == OK) & (table["unmet"] != "")], "unmet")


def _counted(status: str, rows: pandas.DataFrame, column: str) -> list[Cause]:
    """Causes in a column of the rows, the most frequent first. Equally frequent causes are in the order of the rows."""
    texts = rows[column]
    if texts.nunique() > MOST_EXACT_CAUSES:
        texts = texts.map({text: _NUMBER.sub("N", text) for text in texts.unique()})
    found = []
    for text, group in rows.groupby(texts, sort=False):
        networks = tuple(group["network"].unique().tolist())
        found.append(Cause(status, str(text), int(group["index"].nunique()), networks))
    return sorted(found, key=lambda cause: -cause.designs)
