"""Pareto fronts of a space, one per network and one for all networks, and the designs that a figure shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas

from tilewright.base.dominance import first_dominators, on_front
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, EDP_PJ_S, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.designs.columns import DOMINATED_BY, LARGEST_ENERGY, LARGEST_LATENCY, ON_FRONT, POWER, UNMET_END, USES
from tilewright.designs.exploration import Exploration
from tilewright.designs.front_odds import summed_columns, with_odds
from tilewright.designs.plan_gaps import gaps_of_sums, summed_plan_columns
from tilewright.designs.results import ALL_NETWORKS, OK, Measure, energy_parts, latency_parts

_JOULES_A_PJ = 1e-12


@dataclass(frozen=True, eq=False)
class Front:
    """Pareto front of a network, or of all networks, among the designs that have results."""

    network: str
    """Name of the network. ALL_NETWORKS stands for sums over all networks, in which the area is counted once."""
    objectives: tuple[str, ...]
    """Columns of `measures` by which designs are compared."""
    measures: Mapping[str, Measure]
    """Measures of the designs, in the order energy, latency, EDP, area. If clocks differ, latency and EDP are in time
    units.
    """
    without_area: int
    """Number of compared designs without a known area; 0 if the area is not an objective of the space. If it is above
    0, the area is left out of the comparison.
    """
    compared_count: int
    """Number of compared designs. It exceeds the length of `compared` if only the designs on a front have rows."""
    rows: pandas.DataFrame
    """Rows of the designs, in ascending order of the design index. They have the columns of the table of results, and
    some more columns.

    `pareto` is True if the design is on the front. `dominated_by` is the name of the first design on the front that
    dominates this design. It is '' if there is none, or if this design violates a constraint. `largest_energy_term` and
    `largest_latency_part` are the names of the largest parts of energy and latency. If costs have ranges, the rows also
    have the columns ODDS.
    """

    @cached_property
    def compared(self) -> pandas.DataFrame:
        """Rows of the designs that meet all constraints."""
        return self.rows[self.rows["unmet"] == ""]

    @cached_property
    def members(self) -> pandas.DataFrame:
        """Rows of the designs on the front, sorted by the objectives in their order, then by index."""
        return self.rows[self.rows[ON_FRONT]].sort_values([*self.objectives, "index"], kind="stable")

    @property
    def is_whole(self) -> bool:
        """True if every compared design has a row."""
        return self.compared_count == len(self.compared)

    @property
    def note(self) -> str:
        """Text saying that designs are not compared by area, because some areas are not known. '' if designs are
        compared by area, or if the area is not an objective of the space.
        """
        designs = f"{self.without_area:,} design{'s' * (self.without_area > 1)}"
        by = " and ".join(self.measures[key].words for key in self.objectives) or "nothing"
        return f"area not given, or without a unit, for {designs}: compared by {by} only" if self.without_area else ""


def fronts(exploration: Exploration) -> tuple[Front, ...]:
    """Fronts of a space: one per network, in the order of the networks. If there are several networks, the front of all
    networks follows.

    The table of the exploration must be uniform, as made by `results.uniform`.
    """
    table = exploration.table[exploration.table["status"] == OK]
    found = [front_of(exploration, name, table[table["network"] == name]) for name in exploration.networks]
    if len(exploration.networks) > 1:
        found.append(front_of(exploration, ALL_NETWORKS, totals(exploration, table)))
    return tuple(found)


def front_of(exploration: Exploration, network: str, rows: pandas.DataFrame) -> Front:
    """Front of the designs in rows of results, with one row per design."""
    is_compared = (rows["unmet"] == "").to_numpy()
    compared = rows[is_compared]
    unknown = int(compared[AREA_MM2].isna().sum()) if AREA_MM2 in exploration.objectives else 0
    objectives = tuple(key for key in exploration.compared_by if key != AREA_MM2 or not unknown)
    values = compared[list(objectives)].to_numpy(dtype=np.float64)
    front = on_front(values)
    first = first_dominators(values, front)
    is_on_front = np.zeros(len(rows), dtype=np.bool_)
    is_on_front[is_compared] = front
    dominated_by = np.full(len(rows), "", dtype=object)
    names = compared["design"].to_numpy(dtype=object)
    dominated_by[is_compared] = np.where(first >= 0, names[first], "") if len(names) else ""
    return Front(
        network,
        objectives,
        exploration.measures,
        unknown,
        exploration.compared_count(network) if exploration.others is not None else int(is_compared.sum()),
        with_odds(rows, objectives, is_whole=not exploration.settled).assign(
            **{
                ON_FRONT: is_on_front,
                DOMINATED_BY: dominated_by,
                LARGEST_ENERGY: _largest(rows, energy_parts(rows.columns)),
                LARGEST_LATENCY: _largest(rows, latency_parts(rows.columns)),
            }
        ),
    )


def totals(exploration: Exploration, table: pandas.DataFrame) -> pandas.DataFrame:
    """Rows of the designs that have results for every network, with totals over the networks.

    Energies, latencies, EDPs and the lower bounds of plans are sums. Gaps are computed from these sums. The power is
    the sum of energies over the sum of latencies. Columns on the use of memories and links have the largest value over
    the networks. `unmet` lists each constraint that is violated on at least one network.
    """
    count = len(exploration.networks)
    is_complete = table.groupby("index")["network"].transform("size") == count
    complete = table[is_complete]
    rows = complete.iloc[::count].reset_index(drop=True)
    summed = [ENERGY_PJ, LATENCY_CYCLES, EDP_PJ_CYCLES]
    summed += [key for key in (LATENCY_S, EDP_PJ_S) if key in complete]
    summed += [*summed_columns(complete.columns), *summed_plan_columns(complete.columns)]
    summed += [*_columns(complete, "energy_", "_pj"), *_columns(complete, "latency_", "_cycles")]
    sums = {key: _sums(complete[key].to_numpy(dtype=np.float64), count) for key in dict.fromkeys(summed)}
    unmet = complete["unmet"].to_numpy(dtype=object).reshape(-1, count)
    uses = {
        key: complete[key].to_numpy(dtype=np.float64).reshape(-1, count).max(axis=1) for key in USES if key in table
    }
    joined = unmet[:, 0].copy()
    for number in np.flatnonzero((unmet != "").any(axis=1)).tolist():
        texts = (text for own in unmet[number].tolist() if own for text in own.split(UNMET_END))
        joined[number] = UNMET_END.join(dict.fromkeys(texts))
    power = {POWER: sums[ENERGY_PJ] * _JOULES_A_PJ / sums[LATENCY_S]} if {POWER, LATENCY_S} <= {*complete} else {}
    return rows.assign(network=ALL_NETWORKS, unmet=joined, **sums, **uses, **power, **gaps_of_sums(sums))


def _sums(values: np.ndarray, count: int) -> np.ndarray:
    """Sums of groups of `count` consecutive values.

    The values are added one after the other, as in the summary of a network.
    """
    rows = values.reshape(-1, count)
    total = rows[:, 0].copy()
    for column in range(1, count):
        total += rows[:, column]
    return total


def _columns(table: pandas.DataFrame, start: str, end: str) -> list[str]:
    return [key for key in table.columns if key.startswith(start) and key.endswith(end)]


def _largest(rows: pandas.DataFrame, parts: dict[str, str]) -> np.ndarray:
    """Words for the largest part of the costs in each row, as an array of shape (rows,); '' if the row has no part
    above 0. `parts` has the words by column.
    """
    if not parts or rows.empty:
        return np.full(len(rows), "", dtype=object)
    values = np.nan_to_num(rows[list(parts)].to_numpy(dtype=np.float64), nan=0.0)
    words = np.array([*parts.values()], dtype=object)[values.argmax(axis=1)]
    return np.where(values.max(axis=1) > 0, words, "")


STEPS = "the best designs, and others at equal steps along it"
"""Words for the rows that a sample takes from a front (`spread`)."""


def spread(members: pandas.DataFrame, most: int, named: Sequence[str] = ()) -> pandas.DataFrame:
    """Sample of at most `most` rows, spread evenly over the front. It includes both ends of the front, and those
    designs of `named` that are on the front. Each design of `named` takes the place of the nearest other row.
    """
    last = len(members) - 1
    places: list[int] = np.linspace(0, last, min(most, len(members))).round().astype(int).tolist()
    fixed = {0, last, *np.flatnonzero(members["design"].isin(named)).tolist()}
    for wanted in sorted(fixed - {*places}):
        free = [place for place in places if place not in fixed]
        if free:
            places[places.index(min(free, key=lambda place: abs(place - wanted)))] = wanted
    return members.iloc[sorted(places)]


SAMPLE_SEED = 0


def order_of_sample(table: pandas.DataFrame) -> pandas.Series:
    """Rank of each design in the random order from which samples are taken, by index of the design."""
    indices = np.unique(table["index"].to_numpy())
    return pandas.Series(np.random.default_rng(SAMPLE_SEED).permutation(len(indices)), index=indices)


def drawn_rows(front: Front, most: int, order: pandas.Series) -> pandas.DataFrame:
    """Rows to draw, at most `most`, sorted by the index of the design.

    If `front` has more than `most` rows, the result has the designs on the front and a sample of the other designs. If
    more than `most` designs are on the front, the result has only an evenly spread sample of the designs on the front.
    `order` has the rank of each design in a random order. The designs with the least ranks form the sample of the other
    designs.
    """
    rows = front.rows
    if len(rows) <= most:
        return rows
    members = spread(front.members, most)
    others = rows[~rows[ON_FRONT]]
    places = order.loc[others["index"]].to_numpy()
    taken = others.iloc[np.argsort(places, kind="stable")[: most - len(members)]]
    return pandas.concat([members, taken]).sort_values("index", kind="stable")
