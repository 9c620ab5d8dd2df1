"""Answer of a space of designs: fronts, the best designs, the effect of each axis, why designs fail."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas

from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.designs.exploration import Exploration
from tilewright.designs.front import Front, fronts
from tilewright.designs.front_odds import least_probability
from tilewright.designs.results import INFEASIBLE, INVALID, OK, uniform, value_text

SECONDS = "latency_s"
LEAKAGE = "energy_leakage_pj"
EXCLUDED, UNMET = "excluded", "constraint on results not met"
MOST_EXACT_CAUSES = 12
"""Most causes of one status; from there on, causes that differ only in their numbers are counted as one."""
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d")


@dataclass(frozen=True)
class Counts:
    """How many designs there are for a network."""

    network: str
    designs: int
    """Designs that were evaluated."""
    ok: int
    """Designs that have results and meet all constraints."""
    unmet: int
    """Designs that have results and do not meet a constraint."""
    infeasible: int
    invalid: int


@dataclass(frozen=True)
class Cause:
    """Why designs are not compared."""

    status: str
    text: str
    designs: int
    networks: tuple[str, ...]
    """Networks for which it is so; () for designs that were never evaluated."""


@dataclass(frozen=True, eq=False)
class Answer:
    """All of it; made by `answer_of`."""

    exploration: Exploration
    fronts: tuple[Front, ...]
    counts: tuple[Counts, ...]
    """Counts of each network."""
    causes: tuple[Cause, ...]
    """Causes by status, the most frequent first."""
    design_count: int
    """Number of designs with those that are excluded before the evaluation, not evaluated yet, or settled by a
    certificate."""

    @property
    def overall(self) -> Front:
        """The front of all networks, or of the only one."""
        return self.fronts[-1]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a comparison takes for granted, and whether it is one of the whole space."""
        missing = self.exploration.missing
        part = f"{missing:,} designs are not evaluated yet: this is the answer of the others."
        compared, table = self.overall.compared, self.exploration.table
        of_front = "" if self.overall.is_whole else "Of the designs on a front: "
        further = (
            of_front + told if (told := say(compared, table)) else "" for say in (_differing_clocks, _missing_leakage)
        )
        return (*([part] if missing else []), *self.exploration.assumptions, *filter(None, further))

    @property
    def excluded(self) -> int:
        """Designs that constraints exclude before the evaluation."""
        return sum(self.exploration.excluded.values())


def _differing_clocks(compared: pandas.DataFrame, table: pandas.DataFrame) -> str:
    """What of a comparison by cycles is to be known where cycles of designs are of different lengths; '' elsewhere."""
    if SECONDS not in table or compared.empty:
        return ""
    rows = table[table["index"].isin(compared.index)]
    if (rows[SECONDS] / rows[LATENCY_CYCLES]).map("{:.9e}".format).nunique() < 2:
        return ""
    if rows[SECONDS].isna().any():
        return "Some designs have no clock: latencies are compared in cycles, not in seconds."
    seconds = rows.groupby("index", sort=True)[SECONDS].sum()
    fastest = compared.loc[seconds.idxmin(), "design"]
    return (
        "Clocks of designs differ: latencies are compared in cycles, not in seconds; the fastest is"
        f" {fastest}, {seconds.min():.4g} s."
    )


def _missing_leakage(compared: pandas.DataFrame, table: pandas.DataFrame) -> str:
    """Where static power of some designs alone is known, how much of their energy it is; '' elsewhere."""
    if LEAKAGE not in table or compared.empty:
        return ""
    rows = table[table["index"].isin(compared.index)]
    leaks = rows[LEAKAGE] > 0
    without = rows.loc[~leaks, "index"].nunique()
    if not leaks.any() or not without:
        return ""
    share = (rows[LEAKAGE] / rows[ENERGY_PJ])[leaks]
    return (
        f"The static power of {without:,} of {rows['index'].nunique():,} designs is not known, and their energy leaves"
        f" it out; in the other designs it is {share.min():.1%} to {share.max():.1%} of the energy. So the energies of"
        " designs with and without it are not comparable."
    )


def answer_of(exploration: Exploration) -> Answer:
    """The answer from the table of results."""
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
    """Probability that the best design in a measure stays the best, where costs have ranges."""
    return least_probability(front.compared, measure, front.compared[measure].idxmin())


def values_text(row: JsonObject, names: tuple[str, ...]) -> str:
    """The values of a design in one line."""
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
    """The causes in a column, the most frequent first, of equal ones the first in the table."""
    texts = rows[column]
    if texts.nunique() > MOST_EXACT_CAUSES:
        texts = texts.map({text: _NUMBER.sub("N", text) for text in texts.unique()})
    found = []
    for text, group in rows.groupby(texts, sort=False):
        networks = tuple(group["network"].unique().tolist())
        found.append(Cause(status, str(text), int(group["index"].nunique()), networks))
    return sorted(found, key=lambda cause: -cause.designs)
