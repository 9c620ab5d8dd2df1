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
"""Figures (energy, latency, counts) summed over layers, on the last axis of the array. The class that implements
StepFigures defines the other axes.
"""
ENERGY, LATENCY, MACS, OPERATIONS, FURTHER = range(5)
"""Indices of figures: energy in pJ, latency in cycles, counts. From index FURTHER on, the class that implements
StepFigures defines the figures.
"""


@dataclass(frozen=True)
class StepRun:
    """Costs of a step for one way to run it."""

    strategy: str
    """Strategy by which several cores share the step; '' on one core."""
    figures: Sums
    """Figures of the step: an array with one axis."""
    interval_cycles: float
    """Cycles between the ends of two consecutive steps, if there are always further steps to run."""
    stages: tuple[int, ...] = ()
    """Number of blocks in each stage of a pipeline; () for other strategies."""

    @property
    def latency_cycles(self) -> float:
        """Latency of the step, in cycles."""
        return float(self.figures[LATENCY])


class StepFigures(Protocol):
    """Interface that computes the figures of a step, on one core or on several cores, as sums over the layers of a
    workload.
    """

    @property
    def name(self) -> str:
        """Name of the core, or of the accelerator."""

    @property
    def memory(self) -> Memory:
        """Memory that must hold weights, caches and activations."""

    @property
    def clock_period_ns(self) -> float | None:
        """Clock period in ns; None if no file gives it."""

    @property
    def searched(self) -> int:
        """Number of distinct layers, or classes of computation nodes, that were searched."""

    @property
    def zero(self) -> Sums:
        """Figures that are all 0."""

    def check(self, batches: Sequence[int]) -> None:
        """Raise InputError for a batch that the wanted strategy cannot run."""

    def search(self, workloads: Iterable[Workload]) -> None:
        """Search all layers of these workloads that have not been searched before."""

    def of(self, workload: Workload) -> Sums:
        """Sums of the figures of all layers of a workload, which run one after another."""

    def runs(self, sums: Sums, requests: int) -> list[StepRun]:
        """Ways to run a step with these figures and this number of requests. If two ways take equal time, the first one
        is preferred.
        """

    def limit(self, step: StepRun, workload: Workload, requests: int) -> JsonObject:
        """Table columns on the limits of a step, and on the shares of the time that twice the width or size of parts
        would save.

        `workload` has the layers of the step.
        """

    def notes(self, weight_bits: int) -> tuple[str, ...]:
        """Notes on the figures of a model whose weights have `weight_bits` bits."""
