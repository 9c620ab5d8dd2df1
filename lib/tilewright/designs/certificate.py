"""Certificate of complete Pareto fronts: the costs of every design and, for each design off a front, a design on the
front that dominates it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from tilewright.base.artifacts.digests import DIGEST_BYTES
from tilewright.base.dominance import first_dominators, on_front
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, EDP_PJ_S, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.base.objectives import energy_delay_product
from tilewright.cost.rates import time_and_power
from tilewright.designs.clocks import Clocks, clocks_of, latency_s
from tilewright.designs.family_costs import PERIOD, FamilyCosts, energy_column, latency_column
from tilewright.designs.results import ALL_NETWORKS, OK
from tilewright.designs.space import Space
from tilewright.designs.stamped_tables import read_stamped, write_stamped

NOT_COMPARED, ON_FRONT = -2, -1
"""Codes in place of the index of a dominating design.

NOT_COMPARED: the design has no results or does not meet a constraint. ON_FRONT: no design dominates the design.
"""


@dataclass(frozen=True, eq=False)
class DesignPoints:
    """Costs of the designs of a space, as arrays."""

    space: Space
    index: np.ndarray
    """Index of the design in each row, in ascending order, as an int64 array of shape (rows,)."""
    area_mm2: np.ndarray
    clock_period_ns: np.ndarray
    """Clock period of the design in each row, as a float64 array of shape (rows,); NaN if the clock is not known."""
    is_ok: np.ndarray
    """True if the design in a row has results for a network: bool array of shape (rows, networks)."""
    energy_pj: np.ndarray
    """Energy of the design in each row on each network, as a float64 array of shape (rows, networks)."""
    latency_cycles: np.ndarray

    @classmethod
    def of(cls, space: Space, table: pandas.DataFrame) -> "DesignPoints":
        """Costs of the designs of a space. `table` is the table of a certificate or of `FamilyCosts`."""
        numbers = range(len(space.networks))
        return cls(
            space,
            table["index"].to_numpy(np.int64),
            table[AREA_MM2].to_numpy(np.float64),
            table[PERIOD].to_numpy(np.float64),
            np.stack([(table[f"status_{number}"] == OK).to_numpy() for number in numbers], axis=1),
            np.stack([table[energy_column(number)].to_numpy(np.float64) for number in numbers], axis=1),
            np.stack([table[latency_column(number)].to_numpy(np.float64) for number in numbers], axis=1),
        )

    @cached_property
    def objectives(self) -> tuple[str, ...]:
        """Objectives by which designs are compared. The area is left out if no design with results has a known area."""
        has_no_area = np.isnan(self.area_mm2[self.is_ok.any(axis=1)]).all()
        return tuple(key for key in self.space.objectives if key != AREA_MM2 or not has_no_area)

    @cached_property
    def row_of(self) -> Mapping[int, int]:
        """Table from the index of a design to its row in the arrays."""
        return {index: row for row, index in enumerate(self.index.tolist())}

    @cached_property
    def unmet(self) -> np.ndarray:
        """Texts of the constraints that the results violate (`Space.unmet`), as an object array of shape (rows,
        networks). '' if the results meet all constraints, or if there are no results.
        """
        found = np.full(self.is_ok.shape, "", dtype=object)
        if self.space.constraints_after:
            for row in np.flatnonzero(self.is_ok.any(axis=1)).tolist():
                values = self.space.values(int(self.index[row]))
                for number in np.flatnonzero(self.is_ok[row]).tolist():
                    found[row, number] = self.space.unmet(values, self.results(row, number))
        return found

    @cached_property
    def clocks(self) -> Clocks:
        """Comparison of the clocks of all designs that are compared for at least one network: alike, different or
        partly unknown.
        """
        return clocks_of(self.clock_period_ns[(self.is_ok & ~self.is_unmet).any(axis=1)])

    @cached_property
    def latency(self) -> np.ndarray:
        """Latency for comparisons, as a float64 array [row, network]: in seconds if `clocks` is DIFFER, else in
        cycles.
        """
        if self.clocks is not Clocks.DIFFER:
            return self.latency_cycles
        found: np.ndarray = latency_s(self.latency_cycles, self.clock_period_ns[:, None])
        return found

    @property
    def is_unmet(self) -> np.ndarray:
        """Boolean array of shape (rows, networks): True if the results violate a constraint."""
        found: np.ndarray = self.unmet != ""
        return found

    def results(self, row: int, network: int) -> dict[str, float]:
        """Results of a design on a network, by their names in constraints. The area is left out if it is not known;
        time, EDP in time and power are left out if the clock is not known.
        """
        energy, latency = float(self.energy_pj[row, network]), float(self.latency_cycles[row, network])
        area = float(self.area_mm2[row])
        found = {ENERGY_PJ: energy, LATENCY_CYCLES: latency, EDP_PJ_CYCLES: energy_delay_product(energy, latency)}
        period = float(self.clock_period_ns[row])
        if period == period:
            found |= time_and_power(period, latency, energy)
            found[EDP_PJ_S] = energy_delay_product(energy, found[LATENCY_S])
        return found if area != area else {**found, AREA_MM2: area}

    def front_points(self, front: int) -> tuple[np.ndarray, np.ndarray]:
        """Pair (indexes of the rows that a front compares, values of their objectives as an array of shape (compared
        rows, objectives)).

        Latencies are in the unit of `latency`. `front` is the index of a network. If it equals the number of networks,
        it stands for the front of all networks together.
        """
        count = self.is_ok.shape[1]
        networks = [front] if front < count else list(range(count))
        rows = np.flatnonzero((self.is_ok & ~self.is_unmet)[:, networks].all(axis=1))
        energy, latency, product = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
        for network in networks:  # one after the other, as totals are added up elsewhere
            energy += self.energy_pj[rows, network]
            latency += self.latency[rows, network]
            product += energy_delay_product(self.energy_pj[rows, network], self.latency[rows, network])
        columns = {
            ENERGY_PJ: energy,
            LATENCY_CYCLES: latency,
            EDP_PJ_CYCLES: product,
            AREA_MM2: self.area_mm2[rows],
        }
        return rows, np.stack([columns[key] for key in self.objectives], axis=1)


def front_count(space: Space) -> int:
    """Number of fronts of a space: one per network and, if there are several networks, one for all of them."""
    return len(space.networks) + (len(space.networks) > 1)


def dominated_by(points: DesignPoints, front: int) -> np.ndarray:
    """Array [row] with the index of the first design on the front that dominates the design of the row. An element is
    ON_FRONT if no design dominates the design, and NOT_COMPARED if the design is not compared.
    """
    rows, values = points.front_points(front)
    first = first_dominators(values, on_front(values))
    found = np.full(len(points.index), NOT_COMPARED, np.int64)
    found[rows] = np.where(first >= 0, points.index[rows[first]], ON_FRONT)
    return found


SCHEMA = "tilewright/front-certificate"


@dataclass(frozen=True, eq=False)
class Certificate:
    """Certificate of the fronts of a space: the costs of the designs and, for each design off a front, a design that
    dominates it.
    """

    table: pandas.DataFrame
    """Table with a row for each design that no constraint excludes before evaluation, sorted by index.

    The columns are `index`, `area_mm2` and `clock_period_ns`; for each network with the number n, `status_<n>`,
    `energy_<n>_pj` and `latency_<n>_cycles`; and for each front with the number n, `dominated_by_<n>`. The value of
    `dominated_by_<n>` is the index of a design on the front that dominates the design of the row. The value is -1 if
    the design of the row is on the front, and -2 if the design of the row is not compared.
    """
    excluded: Mapping[str, int]
    """Number of designs that each constraint excludes before evaluation, by constraint."""
    said: Mapping[str, Any]
    """Inputs of the certificate: `space` (digest of the space, its other input files, options and code), `objectives`
    (names), `networks` (names), `designs` (number of designs of the space), and `provenance`.
    """


def front_names(space: Space) -> tuple[str, ...]:
    """Names of the fronts of a space: the names of the networks, then ALL_NETWORKS if there are several networks."""
    names = tuple(network.name for network in space.networks)
    return names if len(names) == 1 else (*names, ALL_NETWORKS)


def dominator_column(front: int) -> str:
    """Name of the column with the dominating designs of a front. `front` is the index of the front."""
    return f"dominated_by_{front}"


def columns_of(space: Space) -> list[str]:
    """Column names of a certificate's table."""
    networks, fronts = range(len(space.networks)), range(front_count(space))
    own = [c for n in networks for c in (f"status_{n}", energy_column(n), latency_column(n))]
    return ["index", AREA_MM2, PERIOD, *own, *(dominator_column(front) for front in fronts)]


def certificate_of(points: DesignPoints, costs: FamilyCosts, said: Mapping[str, Any]) -> Certificate:
    """Certificate of the fronts of all designs in a table of costs."""
    fronts = {dominator_column(front): dominated_by(points, front) for front in range(front_count(points.space))}
    return Certificate(costs.table.assign(**fronts)[columns_of(points.space)], costs.excluded, said)


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write the certificate to a file. Equal certificates give equal bytes."""
    said = {"schema": SCHEMA, "digest": content_digest(certificate), "excluded": dict(certificate.excluded)}
    write_stamped(path, certificate.table, {**said, "made_of": dict(certificate.said)})


def read_certificate(path: Path) -> tuple[Certificate, str]:
    """Pair (certificate, digest that the file states for its content).

    Raises InputError if the file is not a certificate.
    """
    table, said = read_stamped(path, SCHEMA)
    return Certificate(table, said["excluded"], said["made_of"]), str(said["digest"])


def content_digest(certificate: Certificate) -> str:
    """Digest of the content of a certificate: its columns, the counts of excluded designs, and the inputs."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name, column in certificate.table.items():
        values = column.to_numpy()
        data = (
            "\0".join(map(str, values)).encode() if values.dtype == object else np.ascontiguousarray(values).tobytes()
        )
        digest.update(f"{name}\0{len(values)}\0".encode() + data)
    digest.update(repr((sorted(certificate.excluded.items()), sorted(map(str, certificate.said.items())))).encode())
    return digest.hexdigest()
