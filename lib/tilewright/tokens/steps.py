"""Interface for the costs of steps of a language model, on one core or on several cores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tilewright.base.json_values import JsonObject
from tilewright.hardware.core import Memory
from tilewright.workload.graph import Workload

Sums = npt.NDArray[np.float64]
"""Figures (energy, latency, counts), summed over layers.

The last axis of the array has one entry per figure. The class that implements StepFigures defines the other axes.
"""
ENERGY, LATENCY, MACS, OPERATIONS, FURTHER = range(5)
"""Indexes of figures on the last axis: energy in pJ, latency in cycles, number of MACs, number of operations.

The class that implements StepFigures defines the figures from index FURTHER on.
"""


@dataclass(frozen=True)
class StepRun:
    """Costs of a step if the cores share the step by one strategy."""

    strategy: str
    """Strategy by which several cores share the step; '' on one core."""
    figures: Sums
    """Figures of the whole step, as an array [figure]. ENERGY, LATENCY, MACS and OPERATIONS are indexes in this array.
    """
    interval_cycles: float
    """Cycles between the ends of two consecutive steps, if each step begins as early as possible. In a pipeline, steps
    overlap, so this number can be below the latency of a step.
    """
    stages: tuple[int, ...] = ()
    """Number of blocks in each stage of a pipeline; () for other strategies."""

    @property
    def latency_cycles(self) -> float:
        """Latency of the step, in cycles."""
        return float(self.figures[LATENCY])


class StepFigures(Protocol):
    """Interface that computes the figures (energy, latency, counts) of a step: the sums over the layers of a workload.

    One class implements this interface for one core, and one class for several cores.
    """

    @property
    def name(self) -> str:
        """Name of the core, or of the accelerator."""

    @property
    def memory(self) -> Memory:
        """Memory in which the weights, caches and activations must fit."""

    @property
    def clock_period_ns(self) -> float | None:
        """Clock period in ns; None if no file gives it."""

    @property
    def searched(self) -> int:
        """Number of distinct searches for mappings. On one core, there is one search for each distinct layer. On
        several cores, there is one for each pair (class of computation nodes, core file).
        """

    @property
    def zero(self) -> Sums:
        """Array of zeros in the shape of the figures that `of` returns."""

    def check(self, batches: Sequence[int]) -> None:
        """Raise InputError for a batch that the requested strategy cannot run."""

    def search(self, workloads: Iterable[Workload]) -> None:
        """Search mappings, and on several cores schedules, for the layers of the workloads. Layers that have been
        searched before are left out.
        """

    def of(self, workload: Workload) -> Sums:
        """Figures of a workload: the sums over its layers, which run one after another."""

    def runs(self, sums: Sums, requests: int) -> list[StepRun]:
        """Runs of a step, one for each strategy by which the cores can share the step.

        `sums` are the figures of the step, and `requests` is its number of requests. The first of two runs with equal
        time is preferred.
        """

    def limit(self, step: StepRun, workload: Workload, requests: int) -> JsonObject:
        """Table columns on what limits a step: its bound, and the parts with the largest gains. The columns also have
        the share of the time that each part saves with twice its width or size. `workload` has the layers of the step.
        """

    def notes(self, weight_bits: int) -> tuple[str, ...]:
        """Notes on the figures. `weight_bits` is the number of bits of the model's weights."""
