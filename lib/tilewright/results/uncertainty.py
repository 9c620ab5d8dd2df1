"""Probability that a given order of runs is right if costs vary within their ranges.

Energies and areas are linear in the costs of memories. All samples are therefore computed as one matrix product: the
contribution of each cost law to a run, times the random factor of the law.

A law has the same factor for all memories and all runs. For example, if DRAM costs more than its nominal value in a
sample, it costs more in every run. The factors of different laws are independent, and log-uniform within their ranges.

A linear quantity has its extremes at the ends of the ranges. For many pairs of runs, these extremes prove that one run
always dominates the other, or that it never dominates the other. Samples are used only for the remaining pairs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.base.dominance import Values, on_front
from tilewright.search.cost_ranges import CostPart

_SAME = 1e-12
"""Relative difference up to which two energies count as equal. Sums of the same terms in different orders can differ by
this much.
"""
SAMPLES = 100_000
SEED = 0
_MOST_AT_ONCE = 20_000_000
"""Largest number of values that one step compares."""
_FEW = 0.3
"""Threshold for the share of undecided samples. Below this threshold, the undecided samples are copied, so that further
steps process only these samples.
"""


class UncertainRun(NamedTuple):
    """Run with the quantities by which runs are compared."""

    energy_pj: float
    latency: float
    """Latency in cycles or seconds, in the same unit for all runs. The latency has no range of values."""
    area_mm2: float | None
    parts: tuple[CostPart, ...]


class Ranges(NamedTuple):
    """Ranges of the factors by which the costs of each cost law (type of memory) are multiplied."""

    low: Values
    """Smallest factor by which the costs of each law can be multiplied: array of shape (laws,)."""
    high: Values
    """Largest factor by which the costs of each law can be multiplied: array of shape (laws,)."""


class Quantity(NamedTuple):
    """Quantity by which runs are compared. It is linear in the factors of the laws, and smaller values are better."""

    values: Values
    """Value of the quantity if all factors are 1: array of shape (runs,)."""
    shares: Values
    """Contribution of each cost law to the value if all factors are 1: array of shape (runs, laws)."""

    def of(self, rows: Any) -> "Quantity":
        """Same quantity, with only the runs that have the indices `rows`."""
        return Quantity(self.values[rows], self.shares[rows])

    def ends(self, ranges: Ranges) -> tuple[Values, Values]:
        """Pair of arrays with one entry for each run: smallest and largest value of the quantity within the ranges."""
        return tuple(  # type: ignore[return-value]
            self.values + best(self.shares * (ranges.low - 1), self.shares * (ranges.high - 1)).sum(axis=-1)
            for best in (np.minimum, np.maximum)
        )

    def less(self, row: int) -> "Quantity":
        """Differences of the quantity: value of every run minus the value of the run `row`."""
        return Quantity(self.values - self.values[row], self.shares - self.shares[row])

    def sampled(self, more: Values) -> Values:
        """Values of the quantity for samples of the factors: array of shape (runs, samples).

        `more` has the factors minus 1, as an array of shape (laws, samples). The sum is computed law by law, so that
        equal runs have exactly equal values.
        """
        if not self.shares.any():
            return np.broadcast_to(self.values[:, None], (len(self.values), more.shape[1]))
        found = np.repeat(self.values[:, None], more.shape[1], axis=1)
        for law, row in enumerate(more):
            found += self.shares[:, law, None] * row
        return found


def cost_parts(summary: Mapping[str, Any]) -> tuple[CostPart, ...]:
    """Cost parts of a run that have a range; () if no part has a range."""
    return tuple(CostPart(**part) for part in summary.get("cost_ranges", {}).get("parts", ()))


def energy_range_pj(energy_pj: float, parts: Sequence[CostPart]) -> tuple[float, float]:
    """Pair (smallest energy, largest energy) of a run in pJ, if the costs of `parts` vary within their ranges."""
    least = energy_pj + sum(part.energy_pj * (part.low - 1) for part in parts)
    return least, energy_pj + sum(part.energy_pj * (part.high - 1) for part in parts)


def less_energy_counts(a: UncertainRun, b: UncertainRun) -> tuple[int, int]:
    """Pair (number of samples in which the first run needs less energy, number of samples in which both runs need the
    same energy).
    """
    (energies, *_), ranges = _quantities([a, b])
    first, second = energies.sampled(sampled_factors(ranges) - 1)
    same = np.abs(first - second) <= _SAME * np.maximum(first, second)
    return int((~same & (first < second)).sum()), int(same.sum())


def samples_text(part: float) -> str:
    """Text of a share of samples. Only shares of exactly 0 and 1 are written as 0.0% and 100.0%."""
    text = f"{part:.1%}"
    if text == "100.0%" and part < 1:
        return "more than 99.9%"
    return "less than 0.1%" if text == "0.0%" and part else text


def front_probabilities(runs: Sequence[UncertainRun], by_area: bool) -> list[float]:
    """Share of the samples in which a run is not dominated by any other run: one number for each run. The objectives
    are energy, latency and, with `by_area`, area.
    """
    quantities, ranges = _quantities(runs)
    found: list[float] = front_shares(quantities if by_area else quantities[:2], ranges).tolist()
    return found


def front_shares(quantities: Sequence[Quantity], ranges: Ranges) -> Values:
    """Share of the samples in which a run is not dominated by any other run: array of shape (runs,).

    A run dominates another run if it is not worse in any quantity and better in at least one.
    """
    count = len(quantities[0].values)
    kept = np.zeros(count)
    rows = np.flatnonzero(~_always_dominated(quantities, ranges))
    own = [quantity.of(rows) for quantity in quantities]
    rivals = [_rivals(own, ranges, row) for row in range(len(rows))]
    factors = sampled_factors(ranges)
    at_once = max(1, _MOST_AT_ONCE // max(1, len(rows) * len(own)))
    survivors = np.zeros(len(rows), np.int64)
    for first in range(0, SAMPLES, at_once):
        more = factors[:, first : first + at_once] - 1
        columns = [quantity.sampled(more) for quantity in own]
        for row, others in enumerate(rivals):
            survivors[row] += _surviving(columns, row, others)
    kept[rows] = survivors / SAMPLES
    return kept


def least_share(quantity: Quantity, ranges: Ranges, row: int) -> float:
    """Share of samples in which no other run has a smaller quantity than the run `row`."""
    least, _ = quantity.less(row).ends(ranges)
    own = quantity.of(np.append(row, np.flatnonzero(least < 0)))
    factors = sampled_factors(ranges)
    at_once = max(1, _MOST_AT_ONCE // len(own.values))
    count = 0
    for first in range(0, SAMPLES, at_once):
        values = own.sampled(factors[:, first : first + at_once] - 1)
        count += int((values[0] <= values.min(axis=0)).sum())
    return count / SAMPLES


def sampled_factors(ranges: Ranges) -> Values:
    """Random factors of the laws: array of shape (laws, samples)."""
    draws = np.random.default_rng(SEED).random((len(ranges.low), SAMPLES))
    found: Values = ranges.low[:, None] * (ranges.high / ranges.low)[:, None] ** draws
    return found


def _always_dominated(quantities: Sequence[Quantity], ranges: Ranges) -> npt.NDArray[np.bool_]:
    """Array of shape (runs,): True for an always dominated run. The nominal front is the Pareto front if all factors
    are 1. A run is always dominated if one run of the nominal front dominates it for all values of the factors.

    No run has to be compared with an always dominated run A. If A dominates a run B in a sample, a run of the nominal
    front also dominates B in this sample.
    """
    members = np.flatnonzero(on_front(np.stack([quantity.values for quantity in quantities], axis=1)))
    found = np.zeros(len(quantities[0].values), np.bool_)
    for member in members.tolist():
        least = np.stack([quantity.less(member).ends(ranges)[0] for quantity in quantities])
        found |= (least >= 0).all(axis=0) & (least > 0).any(axis=0)
    return found


class _Rival(NamedTuple):
    """Run that can dominate another run, the judged run, for some values of the factors."""

    row: int
    open_columns: tuple[int, ...]
    """Indices of the quantities in which the rival is worse than the judged run for some factors. In all other
    quantities, the rival is never worse.
    """
    is_better: bool
    """True if there is a quantity in which the rival is better than the judged run for all factors."""


def _rivals(quantities: Sequence[Quantity], ranges: Ranges, row: int) -> list[_Rival]:
    """Runs that may dominate the run `row` for some factors of the laws.

    First come the runs that are not worse than the run `row` in any quantity if all factors are 1, then the other runs.
    In each of these two groups, a run comes earlier if it can be worse than the run `row` in fewer quantities.
    """
    ends = [quantity.less(row).ends(ranges) for quantity in quantities]
    least, most = (np.stack([one[place] for one in ends], axis=1) for place in (0, 1))
    places = np.flatnonzero((least <= 0).all(axis=1) & (least < 0).any(axis=1))
    middle = np.stack([quantity.values[places] - quantity.values[row] for quantity in quantities], axis=1)
    order = np.lexsort((np.arange(len(places)), (most[places] > 0).sum(axis=1), (middle > 0).any(axis=1)))
    return [
        _Rival(place, tuple(np.flatnonzero(most[place] > 0).tolist()), bool((most[place] < 0).any()))
        for place in places[order].tolist()
    ]


def _surviving(columns: Sequence[Values], row: int, rivals: Sequence[_Rival]) -> int:
    """Number of samples in which no run of `rivals` dominates the run `row`. `columns` has one array of shape (runs,
    samples) for each quantity by which runs are compared.
    """
    own = [column[row] for column in columns]
    alive: npt.NDArray[np.intp] | slice = slice(None)
    survives = np.ones(len(own[0]), np.bool_)
    for rival in rivals:
        dominates = np.ones(len(survives), np.bool_)
        for place in rival.open_columns:
            dominates &= columns[place][rival.row][alive] <= own[place]
        if not rival.is_better:
            others = [column[rival.row][alive] for column in columns]
            dominates &= np.logical_or.reduce([other < one for other, one in zip(others, own, strict=True)])
        survives &= ~dominates
        count = int(survives.sum())
        if not count:
            return 0
        if count < len(survives) * _FEW:
            kept = np.flatnonzero(survives)
            alive = kept if isinstance(alive, slice) else alive[kept]
            own, survives = [one[kept] for one in own], np.ones(count, np.bool_)
    return int(survives.sum())


def _quantities(runs: Sequence[UncertainRun]) -> tuple[tuple[Quantity, Quantity, Quantity], Ranges]:
    """Pair (quantities, ranges). The quantities are energy, latency and area of the runs; unknown areas are NaN. The
    ranges are those of the factors of the laws.
    """
    laws = sorted({(part.law, part.low, part.high) for run in runs for part in run.parts})
    energies, areas = np.zeros((len(runs), len(laws))), np.zeros((len(runs), len(laws)))
    for row, run in enumerate(runs):
        for part in run.parts:
            place = laws.index((part.law, part.low, part.high))
            energies[row, place] += part.energy_pj
            areas[row, place] += part.area_mm2
    ends = np.array([law[1:] for law in laws], np.float64).reshape(-1, 2)
    return (
        Quantity(np.array([run.energy_pj for run in runs], np.float64), energies),
        Quantity(np.array([run.latency for run in runs], np.float64), np.zeros_like(energies)),
        Quantity(np.array([run.area_mm2 for run in runs], np.float64), areas),
    ), Ranges(ends[:, 0], ends[:, 1])
