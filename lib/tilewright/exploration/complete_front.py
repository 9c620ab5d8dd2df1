"""The complete Pareto fronts of a space from bounds: designs are valued until none on a front is a mere bound.

A design whose bound a valued design dominates is dominated itself, whatever it costs. Of the others those that no bound
and no value dominates must be valued by any method that goes by these bounds; so these are, again and again, until
the fronts consist of values (docs/fronts.md).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas

from tilewright.exploration.bounds import GROUP, GROUPS_OF_FAMILY, IS_VALUE, energy_column, latency_column
from tilewright.exploration.results import OK
from tilewright.exploration.space import Space
from tilewright.report.dominance import first_dominators, on_front

Valued = Iterator[list[tuple[int, list[float], list[float]]]]
NOT_COMPARED, ON_FRONT = -2, -1
"""In place of the index of the design that dominates: it has no results or does not meet a constraint, or none does."""


@dataclass(eq=False)
class Points:
    """What is known of the designs of a space; values take the place of bounds as they become known."""

    space: Space
    index: np.ndarray
    """int64 [row], ascending."""
    group: np.ndarray
    area_mm2: np.ndarray
    is_value: np.ndarray
    is_ok: np.ndarray
    """bool [row, network] it has results."""
    energy_pj: np.ndarray
    """float64 [row, network]"""
    latency_cycles: np.ndarray
    is_unmet: np.ndarray
    """bool [row, network] its values do not meet a constraint."""

    @classmethod
    def of(cls, space: Space, table: pandas.DataFrame) -> "Points":
        """From a table of bounds."""
        numbers = range(len(space.networks))
        is_ok = np.stack([(table[f"status_{number}"] == OK).to_numpy() for number in numbers], axis=1)
        found = cls(
            space,
            table["index"].to_numpy(np.int64),
            table[GROUP].to_numpy(np.int64),
            table["area_mm2"].to_numpy(np.float64),
            table[IS_VALUE].to_numpy(np.bool_).copy(),
            is_ok,
            np.stack([table[energy_column(number)].to_numpy(np.float64) for number in numbers], axis=1),
            np.stack([table[latency_column(number)].to_numpy(np.float64) for number in numbers], axis=1),
            np.zeros_like(is_ok),
        )
        found.check_constraints(np.flatnonzero(found.is_value))
        return found

    @cached_property
    def objectives(self) -> tuple[str, ...]:
        """What designs are compared by: areas only where they are given."""
        has_no_area = np.isnan(self.area_mm2[self.is_ok.any(axis=1)]).all()
        return tuple(key for key in self.space.objectives if key != "area_mm2" or not has_no_area)

    @cached_property
    def row_of(self) -> Mapping[int, int]:
        """Index of a design -> its row."""
        return {index: row for row, index in enumerate(self.index.tolist())}

    def set_values(self, valued: Sequence[tuple[int, list[float], list[float]]]) -> None:
        """Put values in place of bounds. A value below its bound is an error in this program."""
        rows = np.array([self.row_of[index] for index, _, _ in valued], np.int64)
        energy = np.array([energies for _, energies, _ in valued])
        latency = np.array([latencies for _, _, latencies in valued])
        known = self.is_ok[rows]
        below = (energy < self.energy_pj[rows]) | (latency < self.latency_cycles[rows]) | np.isnan(energy)
        assert not (below & known).any(), "a design costs less than the bound that there was for it"
        self.energy_pj[rows], self.latency_cycles[rows] = energy, latency
        self.is_value[rows] = True
        self.check_constraints(rows)

    def check_constraints(self, rows: np.ndarray) -> None:
        """Look which values of rows do not meet a constraint on results."""
        if not self.space.constraints_after:
            return
        for row in rows.tolist():
            values = self.space.design(int(self.index[row])).values
            for number in np.flatnonzero(self.is_ok[row]).tolist():
                self.is_unmet[row, number] = bool(self.space.unmet(values, self.results(row, number)))

    def results(self, row: int, network: int) -> dict[str, float]:
        """The results of a valued design on a network, as constraints name them; without an area that is not given."""
        energy, latency = float(self.energy_pj[row, network]), float(self.latency_cycles[row, network])
        area = float(self.area_mm2[row])
        found = {"energy_pj": energy, "latency_cycles": latency, "edp_pj_cycles": energy * latency}
        return found if area != area else {**found, "area_mm2": area}

    def front_points(self, front: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows that are compared in a front, a column for each objective): of a network, or, after these, of all.

        A bound is compared as if it met the constraints.
        """
        count = self.is_ok.shape[1]
        networks = [front] if front < count else list(range(count))
        rows = np.flatnonzero((self.is_ok & ~self.is_unmet)[:, networks].all(axis=1))
        energy, latency, product = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
        for network in networks:  # one after the other, as totals are added up elsewhere
            energy += self.energy_pj[rows, network]
            latency += self.latency_cycles[rows, network]
            product += self.energy_pj[rows, network] * self.latency_cycles[rows, network]
        columns = {
            "energy_pj": energy,
            "latency_cycles": latency,
            "edp_pj_cycles": product,
            "area_mm2": self.area_mm2[rows],
        }
        return rows, np.stack([columns[key] for key in self.objectives], axis=1)


def front_count(space: Space) -> int:
    """Fronts of a space: one for each network, and one for all together where there are several."""
    return len(space.networks) + (len(space.networks) > 1)


def complete(points: Points, value: Callable[[Sequence[Sequence[int]]], Valued]) -> int:
    """Value designs until every front consists of values; returns how many rounds that took.

    `value` is given designs of one family after the other, by index, and gives back the costs of each.
    """
    rounds = 0
    while True:
        waiting = np.unique(
            np.concatenate([_unknown_on_front(points, front) for front in range(front_count(points.space))])
        )
        if not len(waiting):
            return rounds
        rounds += 1
        for valued in value(_by_family(points, np.unique(points.group[waiting]))):
            points.set_values(valued)


def _by_family(points: Points, groups: np.ndarray) -> list[list[int]]:
    """The designs of groups, those of a family together."""
    rows = np.flatnonzero(np.isin(points.group, groups))
    family = points.group[rows] // GROUPS_OF_FAMILY
    return [points.index[rows[family == number]].tolist() for number in np.unique(family).tolist()]


def _unknown_on_front(points: Points, front: int) -> np.ndarray:
    """Rows on a front of bounds and values together of which only a bound is known."""
    rows, values = points.front_points(front)
    found: np.ndarray = rows[on_front(values) & ~points.is_value[rows]]
    return found


def dominated_by(points: Points, front: int) -> np.ndarray:
    """For each row the first design on a complete front that dominates it, by index, ON_FRONT or NOT_COMPARED."""
    rows, values = points.front_points(front)
    members = on_front(values)
    assert points.is_value[rows[members]].all(), "a front that consists of values"
    first = first_dominators(values, members)
    found = np.full(len(points.index), NOT_COMPARED, np.int64)
    found[rows] = np.where(first >= 0, points.index[rows[first]], ON_FRONT)
    return found
