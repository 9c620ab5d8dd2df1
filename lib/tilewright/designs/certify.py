"""Check of a certificate of complete fronts against the space, and against designs that are costed one by one.

The check reads and counts the designs again, and checks dominance again. It costs all designs on a front and a sample
of the other designs individually, as `tilewright map` does (docs/proofs/fronts.md).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas

from tilewright.base.errors import Problem
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, EDP_PJ_S, ENERGY_PJ, LATENCY_CYCLES, LATENCY_S
from tilewright.designs.certificate import (
    Certificate,
    columns_of,
    content_digest,
    dominator_column,
    front_names,
    read_certificate,
)
from tilewright.designs.columns import POWER
from tilewright.designs.explore import SpaceSource, working
from tilewright.designs.families import Families
from tilewright.designs.family_costs import PERIOD, FamilyCosts, energy_column, latency_column, make_costs
from tilewright.designs.parts import PartDigests
from tilewright.designs.pricing import FamilyMembers, FigureReader, members_of
from tilewright.designs.results import INFEASIBLE, INVALID, OK
from tilewright.designs.shard import make_rows
from tilewright.designs.space import Space
from tilewright.search.progress import Advance

MOST_TOLD = 5
"""Largest number of designs that a message names for one kind of fault."""
BLOCK = 8
"""Number of families or designs that a process checks between two reports of progress."""
COSTED_FAMILIES = 40
"""Number of families that a process costs between two reports of progress."""
_ON_FRONT, _NOT_COMPARED = -1, -2


@dataclass(frozen=True)
class CertificateVerdict:
    """Result of the check: the numbers of checked designs and families, and the faults that were found."""

    designs: int
    """Number of designs in the certificate."""
    fronts: int
    members: int
    """Number of designs on a front. Each of them was costed individually."""
    costed: int
    """Number of designs off the fronts that were costed individually."""
    families: int
    """Number of families that were costed again."""
    problems: tuple[Problem, ...]


def certify(
    source: SpaceSource,
    space: Space,
    path: Path,
    sample: int,
    seed: int,
    everything: bool,
    jobs: int,
    advance: Advance,
) -> CertificateVerdict:
    """Check the certificate in the file `path` against the space.

    Each call of `advance` adds to the number of families and designs that are done. `sample` is the number of designs
    off the fronts that are costed individually. If `everything` is true, all families are costed again. Raises
    InputError if the file is not a certificate.
    """
    certificate, digest = read_certificate(path)
    faults = _Faults(space, str(path))
    _check_content(faults, certificate, digest, space)
    if not faults.found and _check_columns(faults, certificate.table, space):
        rows = _Rows(space, certificate.table)
        _check_designs(faults, rows, certificate, source, jobs, advance)
        _check_dominance(faults, rows)
        members, further = _chosen(rows, sample, seed)
        _check_costs(faults, rows, [*members, *further], source, jobs, advance)
        families = len(Families(space)) if everything else 0
        if everything:
            _check_families(faults, rows, source, jobs, advance)
        counts = (len(certificate.table), len(front_names(space)), len(members), len(further), families)
        return CertificateVerdict(*counts, tuple(faults.problems()))
    return CertificateVerdict(len(certificate.table), 0, 0, 0, 0, tuple(faults.problems()))


@dataclass(frozen=True, eq=False)
class FamilyContent:
    """Data of a family that are compared with the certificate.

    Processes exchange these data instead of cores and hardware files.
    """

    indexes: np.ndarray
    """Index of each design that is a valid accelerator and meets the constraints that are checked before evaluation, as
    an int64 array.
    """
    area_mm2: np.ndarray
    """Area of each design, as a float64 array in the order of `indexes`; NaN if the area of a part of the design is not
    known.
    """
    clock_period_ns: np.ndarray
    """Clock period of each design, as a float64 array in the order of `indexes`; NaN if the clock is not known."""
    invalid: tuple[int, ...]
    """Indexes of designs that are not valid accelerators."""
    excluded: Mapping[str, int]
    """Number of designs that each constraint excludes before evaluation, by constraint."""


class _Faults:
    """Faults of the certificate: the indexes of the designs with each kind of fault."""

    def __init__(self, space: Space, file: str) -> None:
        self.space, self.file = space, file
        self.found: dict[str, list[int]] = {}

    def add(self, message: str, indexes: Sequence[int] = ()) -> None:
        """Add a fault with a message, for the designs `indexes`. If there are no indexes, the fault concerns the whole
        certificate.
        """
        self.found.setdefault(message, []).extend(indexes)

    def problems(self) -> Iterator[Problem]:
        """Problems for the report, one for each kind of fault."""
        for message, indexes in self.found.items():
            known = [index for index in indexes if 0 <= index < len(self.space)]
            told = ", ".join(self.space.design_name(index) for index in known[:MOST_TOLD])
            more = f" and {len(indexes) - MOST_TOLD:,} more" if len(indexes) > MOST_TOLD else ""
            yield Problem(message, self.file, value=told + more)


class _Rows:
    """Rows of a certificate, as arrays."""

    def __init__(self, space: Space, table: pandas.DataFrame) -> None:
        self.space, numbers = space, range(len(space.networks))
        self.index = table["index"].to_numpy(np.int64)
        self.area_mm2 = table[AREA_MM2].to_numpy(np.float64)
        self.clock_period_ns = table[PERIOD].to_numpy(np.float64)
        self.status = np.stack([table[f"status_{n}"].to_numpy(object) for n in numbers], axis=1)
        self.energy_pj = np.stack([table[energy_column(n)].to_numpy(np.float64) for n in numbers], axis=1)
        self.latency_cycles = np.stack([table[latency_column(n)].to_numpy(np.float64) for n in numbers], axis=1)
        fronts = range(len(front_names(space)))
        self.dominated_by = np.stack([table[dominator_column(n)].to_numpy(np.int64) for n in fronts], axis=1)

    def objectives(self, front: int) -> np.ndarray:
        """Values by which a front compares designs, as an array of shape (rows, objectives).

        If the clocks of all compared designs are known and differ, latencies are in seconds and EDPs in pJ s.
        Otherwise, latencies are in cycles and EDPs in pJ cycles. The area is included only if it is an objective of the
        space, and is known for at least one design with results.
        """
        count = len(self.space.networks)
        networks = [front] if front < count else range(count)
        energy, latency, product = (np.zeros(len(self.index)) for _ in range(3))
        for network in networks:
            energy = energy + self.energy_pj[:, network]
            cycles = self.latency_cycles[:, network]
            its_latency = cycles * self.clock_period_ns * 1e-9 if self._is_in_time else cycles
            latency = latency + its_latency
            product = product + self.energy_pj[:, network] * its_latency
        known = {ENERGY_PJ: energy, LATENCY_CYCLES: latency, EDP_PJ_CYCLES: product, AREA_MM2: self.area_mm2}
        without = np.isnan(self.area_mm2[(self.status == OK).any(axis=1)]).all()
        keys = [key for key in self.space.objectives if key != AREA_MM2 or not without]
        return np.stack([known[key] for key in keys], axis=1)

    @cached_property
    def _is_in_time(self) -> bool:
        """True if latencies are compared in seconds: all compared designs have a clock, and the clocks differ by more
        than rounding.
        """
        periods = self.clock_period_ns[(self.dominated_by != _NOT_COMPARED).any(axis=1)]
        is_known = len(periods) > 0 and not np.isnan(periods).any()
        return bool(is_known and periods.max() > periods.min() * (1 + 1e-9))

    def has_results(self, front: int) -> np.ndarray:
        """Boolean array of shape (rows,): True if the design has results for all networks of the front."""
        own = self.status if front >= len(self.space.networks) else self.status[:, [front]]
        result: np.ndarray = (own == OK).all(axis=1)
        return result


def _check_content(faults: _Faults, certificate: Certificate, digest: str, space: Space) -> None:
    said = certificate.said
    if content_digest(certificate) != digest:
        faults.add("the content does not match the digest in the file: it is damaged or was edited")
    if said.get("space") != PartDigests(space).said:
        faults.add("the certificate was made from another space, network, mapping or option, or by other code")
    expected = {"objectives": list(space.objectives), "networks": [network.name for network in space.networks]}
    for key, value in {**expected, "designs": len(space)}.items():
        if said.get(key) != value:
            faults.add(f"`{key}` is {said.get(key)} in the certificate, but {value} in the space")


def _check_columns(faults: _Faults, table: pandas.DataFrame, space: Space) -> bool:
    """Check that all columns exist, and that their values have the right type and range. Violations are added to
    `faults`. Returns True if there are none.
    """
    if list(table.columns) != columns_of(space):
        faults.add(f"the table has other columns than the space needs: {', '.join(map(str, table.columns))}")
        return False
    index = table["index"].to_numpy()
    if (
        index.dtype != np.int64
        or (np.diff(index) <= 0).any()
        or (len(index) and not 0 <= index[0] <= index[-1] < len(space))
    ):
        faults.add(
            "the indexes of designs are not in ascending order, or the space has no design with one of these indexes"
        )
        return False
    for number in range(len(space.networks)):
        status = table[f"status_{number}"]
        if not status.isin([OK, INFEASIBLE, INVALID]).all():
            faults.add(f"status_{number} has values other than {OK}, {INFEASIBLE}, {INVALID}")
            return False
        for column in (energy_column(number), latency_column(number)):
            values = table[column].to_numpy(np.float64)
            is_ok = (status == OK).to_numpy()
            if not (np.isfinite(values[is_ok]) & (values[is_ok] >= 0)).all():
                faults.add(
                    f"{column} is not a finite number of at least 0", index[is_ok][~np.isfinite(values[is_ok])].tolist()
                )
            if not np.isnan(values[~is_ok]).all():
                faults.add(
                    f"{column} has a value although the design has no results",
                    index[~is_ok][~np.isnan(values[~is_ok])].tolist(),
                )
    return not faults.found


def _check_designs(
    faults: _Faults, rows: _Rows, certificate: Certificate, source: SpaceSource, jobs: int, advance: Advance
) -> None:
    """Read all designs of the space again, and report faults of the certificate. The faults are: missing and
    superfluous rows, wrong areas and clocks, results for designs that are not valid accelerators, and wrong counts of
    excluded designs.
    """
    space = rows.space
    blocks = _blocks(range(len(Families(space))))
    excluded: dict[str, int] = {}
    seen, areas, periods = [], [], []
    invalid: list[int] = []
    with working(source, space, make_reader, len(blocks), jobs) as work:
        for found in work(blocks):
            for family in found:
                advance(1)
                seen.append(family.indexes)
                areas.append(family.area_mm2)
                periods.append(family.clock_period_ns)
                invalid += family.invalid
                for constraint, count in family.excluded.items():
                    excluded[constraint] = excluded.get(constraint, 0) + count
    index = np.concatenate([*seen, np.array(invalid, np.int64)])
    area, period = (np.concatenate([*values, np.full(len(invalid), np.nan)]) for values in (areas, periods))
    order = np.argsort(index, kind="stable")
    index = index[order]
    if dict(certificate.excluded) != excluded:
        claim = dict(certificate.excluded)
        faults.add(f"numbers of designs that constraints exclude: {claim} in the certificate, {excluded} in this check")
    if len(index) != len(rows.index) or (index != rows.index).any():
        faults.add(
            "designs of the space have no row in the certificate",
            sorted(set(index.tolist()) - set(rows.index.tolist())),
        )
        faults.add(
            "rows of the certificate belong to no design of the space",
            sorted(set(rows.index.tolist()) - set(index.tolist())),
        )
        return
    for what, claims, values in (("area", rows.area_mm2, area), ("clock", rows.clock_period_ns, period)):
        if wrong := index[~_are_equal(claims, values[order])].tolist():
            faults.add(f"the {what} is wrong", wrong)
    is_invalid = np.isin(index, invalid)
    for network in range(len(space.networks)):
        wrong = index[is_invalid & (rows.status[:, network] != INVALID)].tolist()
        if wrong:
            faults.add("there are results although the design is not a valid accelerator", wrong)


def _are_equal(claims: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Boolean array, one element for each pair of elements of `claims` and `values`: True if the two numbers are equal,
    or if both are unknown (NaN).
    """
    result: np.ndarray = (claims == values) | (np.isnan(claims) & np.isnan(values))
    return result


def _check_dominance(faults: _Faults, rows: _Rows) -> None:
    """Report designs for which the certificate makes a wrong claim about a front.

    There are four rules. No design on a front is dominated by another design on it. For a compared design off the
    front, its row names a design on the front, which dominates it. A design with results that meets all constraints is
    compared. A design without results is not compared.
    """
    for front, name in enumerate(front_names(rows.space)):
        claims, points, has_results = rows.dominated_by[:, front], rows.objectives(front), rows.has_results(front)
        is_unmet = _unmet(rows, front, np.flatnonzero(has_results & (claims < 0)))
        for message, wrong in (
            ("a design is compared although it has no results", (claims != _NOT_COMPARED) & ~has_results),
            ("a design is not compared although it has results", (claims == _NOT_COMPARED) & has_results & ~is_unmet),
            ("a design is on the front although it does not meet a constraint", (claims == _ON_FRONT) & is_unmet),
            (
                "the certificate names a dominating design that is not in the space",
                (claims < _NOT_COMPARED) | (claims >= len(rows.space)),
            ),
        ):
            if wrong.any():
                faults.add(f"{name}: {message}", rows.index[wrong].tolist())
        members = np.flatnonzero(claims == _ON_FRONT)
        for row in members.tolist():
            others = points[members]
            if ((others <= points[row]).all(axis=1) & (others < points[row]).any(axis=1)).any():
                faults.add(
                    f"{name}: a design is on the front although another design on the front dominates it",
                    [int(rows.index[row])],
                )
        claimed = np.flatnonzero((claims >= 0) & has_results)
        place = np.minimum(np.searchsorted(rows.index, claims[claimed]), len(rows.index) - 1)
        is_there = (rows.index[place] == claims[claimed]) & (claims[place] == _ON_FRONT)
        covers = (points[place] <= points[claimed]).all(axis=1) & (points[place] < points[claimed]).any(axis=1)
        if not is_there.all():
            faults.add(f"{name}: the dominating design is not on the front", rows.index[claimed[~is_there]].tolist())
        if not covers.all():
            faults.add(
                f"{name}: the design that the certificate names does not dominate these designs",
                rows.index[claimed[~covers]].tolist(),
            )


def _unmet(rows: _Rows, front: int, places: np.ndarray) -> np.ndarray:
    """Boolean array of shape (rows,): True if the results of the row violate a constraint on a network of the front.
    Only the rows at the positions `places` are checked; all other elements are False.
    """
    found = np.zeros(len(rows.index), np.bool_)
    space = rows.space
    if not space.constraints_after:
        return found
    networks = [front] if front < len(space.networks) else range(len(space.networks))
    for place in places.tolist():
        values = space.values(int(rows.index[place]))
        for network in networks:
            energy, latency = float(rows.energy_pj[place, network]), float(rows.latency_cycles[place, network])
            results = {ENERGY_PJ: energy, LATENCY_CYCLES: latency, EDP_PJ_CYCLES: energy * latency}
            if (period := float(rows.clock_period_ns[place])) == period:
                seconds = latency * period * 1e-9
                results |= {LATENCY_S: seconds, EDP_PJ_S: energy * seconds}
                results[POWER] = energy * 1e-12 / seconds if seconds else 0.0
            if rows.area_mm2[place] == rows.area_mm2[place]:
                results[AREA_MM2] = float(rows.area_mm2[place])
            found[place] |= bool(space.unmet(values, results))
    return found


def _chosen(rows: _Rows, sample: int, seed: int) -> tuple[list[int], list[int]]:
    """Indexes of the designs to cost individually, as a pair (all designs on a front, random sample of the other
    designs).
    """
    is_member = (rows.dominated_by == _ON_FRONT).any(axis=1)
    others = rows.index[~is_member]
    count = min(sample, len(others))
    chosen = np.random.default_rng(seed).choice(others, count, replace=False) if count else others[:0]
    return rows.index[is_member].tolist(), sorted(chosen.tolist())


def _check_costs(
    faults: _Faults, rows: _Rows, indexes: Sequence[int], source: SpaceSource, jobs: int, advance: Advance
) -> None:
    """Report each design in `indexes` whose status or costs in the certificate differ from those of a new evaluation of
    this design alone.
    """
    networks = [network.name for network in rows.space.networks]
    row_of = {index: row for row, index in enumerate(rows.index.tolist())}
    blocks = _blocks(indexes)
    with working(source, rows.space, make_rows, len(blocks), jobs) as work:
        for found in work(blocks):
            for one in [row for rows, _ in found for row in rows]:
                place, network = row_of.get(one["index"], -1), networks.index(one["network"])
                advance(network == 0)
                if place < 0:
                    continue
                claimed = rows.energy_pj[place, network], rows.latency_cycles[place, network]
                costs = one[ENERGY_PJ], one[LATENCY_CYCLES]
                if one["status"] != rows.status[place, network]:
                    faults.add(f"{one['network']}: the status is wrong", [one["index"]])
                elif one["status"] == OK and claimed != costs:
                    faults.add(f"{one['network']}: the costs are wrong", [one["index"]])


def _check_families(faults: _Faults, rows: _Rows, source: SpaceSource, jobs: int, advance: Advance) -> None:
    """Cost all families again. Report each design whose status or costs differ from those in the certificate."""
    count = len(Families(rows.space))
    blocks = [range(first, min(first + COSTED_FAMILIES, count)) for first in range(0, count, COSTED_FAMILIES)]
    with working(source, rows.space, make_costs, len(blocks), jobs) as work:
        for block, found in zip(blocks, work(blocks), strict=True):
            advance(len(block))
            _compare(faults, rows, found)


def _compare(faults: _Faults, rows: _Rows, found: FamilyCosts) -> None:
    """Report each design whose status or costs in the certificate differ from those in `found`, the newly computed
    costs.
    """
    table = found.table[found.table["index"].isin(rows.index)]
    index = table["index"].to_numpy(np.int64)
    places = np.searchsorted(rows.index, index)
    for number, network in enumerate(rows.space.networks):
        status = table[f"status_{number}"].to_numpy(object)
        is_other = status != rows.status[places, number]
        costs = table[energy_column(number)].to_numpy(np.float64), table[latency_column(number)].to_numpy(np.float64)
        differs = (rows.energy_pj[places, number] != costs[0]) | (rows.latency_cycles[places, number] != costs[1])
        if is_other.any():
            faults.add(f"{network.name}: the status is wrong", index[is_other].tolist())
        if (differs & (status == OK) & ~is_other).any():
            faults.add(f"{network.name}: the costs are wrong", index[differs & (status == OK) & ~is_other].tolist())


def _blocks(numbers: Sequence[int]) -> list[list[int]]:
    return [list(numbers[first : first + BLOCK]) for first in range(0, len(numbers), BLOCK)]


def make_reader(space: Space) -> Callable[[Sequence[int]], list[FamilyContent]]:
    """Reader of families: a function that returns the content of the families with the given indexes. Each process
    calls `make_reader` once.
    """
    families, reader = Families(space), FigureReader(space.base)
    return lambda numbers: [_content(members_of(space, families[number], reader)) for number in numbers]


def _content(members: FamilyMembers) -> FamilyContent:
    return FamilyContent(
        members.indexes, members.area_mm2, members.clock_period_ns, tuple(members.invalid), members.excluded
    )
