"""With which probability an order of runs survives the ranges of their costs.

Energies and areas are linear in the costs of memories, so that all samples are one matrix product: what a run has of
each law, times factors of the laws. Memories of one law have one factor, in all runs: if DRAM is dearer than its
figure says, it is for everyone. Factors are independent and uniform in their logarithm between the ends of the range.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

SAMPLES = 100_000
SEED = 0
_AT_ONCE = 10_000
"""Samples of all runs that are compared at once."""


class CostPart(NamedTuple):
    """What a memory of a run contributes, whose costs have a range."""

    memory: str
    law: str
    energy_pj: float
    area_mm2: float
    low: float
    """Least factor of both."""
    high: float


class UncertainRun(NamedTuple):
    """A run in what runs are compared by."""

    energy_pj: float
    latency_cycles: float
    area_mm2: float | None
    parts: tuple[CostPart, ...]


def cost_parts(summary: Mapping[str, Any]) -> tuple[CostPart, ...]:
    """The parts of a run with a range; () where there are none."""
    return tuple(CostPart(**part) for part in summary.get("cost_ranges", {}).get("parts", ()))


def energy_range_pj(energy_pj: float, parts: Sequence[CostPart]) -> tuple[float, float]:
    """The least and the most energy of a run."""
    least = energy_pj + sum(part.energy_pj * (part.low - 1) for part in parts)
    return least, energy_pj + sum(part.energy_pj * (part.high - 1) for part in parts)


def less_energy_probability(a: UncertainRun, b: UncertainRun) -> float:
    """The share of samples in which the first run needs less energy; half of those in which both need the same."""
    energies, _ = _sampled([a, b])
    return float((energies[0] < energies[1]).mean() + (energies[0] == energies[1]).mean() / 2)


def front_probabilities(runs: Sequence[UncertainRun], by_area: bool) -> list[float]:
    """For each run the share of samples in which no other one dominates it in energy, latency and, if asked, area."""
    energies, areas = _sampled(runs)
    latencies = [run.latency_cycles for run in runs]
    kept = np.zeros(len(runs), np.int64)
    for first in range(0, SAMPLES, _AT_ONCE):
        here = slice(first, first + _AT_ONCE)
        columns = [energies[:, here], *([areas[:, here]] if by_area else [])]
        for row, latency in enumerate(latencies):
            survives = np.ones(_AT_ONCE, np.bool_)
            for other, its_latency in enumerate(latencies):
                if other == row or its_latency > latency:
                    continue
                is_no_worse = np.logical_and.reduce([column[other] <= column[row] for column in columns])
                is_better = np.logical_or.reduce([column[other] < column[row] for column in columns])
                survives &= ~(is_no_worse & (is_better | (its_latency < latency)))
            kept[row] += int(survives.sum())
    return [count / SAMPLES for count in kept.tolist()]


def _sampled(runs: Sequence[UncertainRun]) -> tuple[np.ndarray, np.ndarray]:
    """[run, sample] energies in pJ and areas in mm2, those that are not known as not a number.

    Added up law by law, so that equal runs stay equal to the last bit.
    """
    laws = sorted({(part.law, part.low, part.high) for run in runs for part in run.parts})
    draws = np.random.default_rng(SEED).random((len(laws), SAMPLES))
    energies = np.repeat(np.array([[run.energy_pj] for run in runs], np.float64), SAMPLES, axis=1)
    areas = np.repeat(np.array([[run.area_mm2] for run in runs], np.float64), SAMPLES, axis=1)
    for (law, low, high), draw in zip(laws, draws, strict=True):
        more = low * (high / low) ** draw - 1
        for row, run in enumerate(runs):
            own = [part for part in run.parts if part.law == law]
            energies[row] += sum(part.energy_pj for part in own) * more
            areas[row] += sum(part.area_mm2 for part in own) * more
    return energies, areas
