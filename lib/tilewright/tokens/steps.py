"""Steps of a language model: figures of all their layers, and the ways in which one core or several run them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tilewright.base.json_values import JsonObject
from tilewright.hardware.core import Memory
from tilewright.workload.graph import Workload

Sums = npt.NDArray[np.float64]
"""Figures summed over layers, on the last axis; the StepFigures that made them define the axes before it."""
ENERGY, LATENCY, MACS, OPERATIONS, FURTHER = range(5)
"""Indices of the first figures: pJ, cycles, counts. From FURTHER on there are those that one core or several need."""


@dataclass(frozen=True)
class StepRun:
    """A step as it is run in one way."""

    strategy: str
    """How several cores share it; '' on one core."""
    figures: Sums
    """Figures of all its layers: one axis."""
    interval_cycles: float
    """Cycles between the ends of two consecutive steps in steady state."""
    stages: tuple[int, ...] = ()
    """Number of blocks in each stage of a pipeline; () for other ways."""

    @property
    def latency_cycles(self) -> float:
        """Latency of the step, in cycles."""
        return float(self.figures[LATENCY])


class StepFigures(Protocol):
    """Figures of steps on one core or on several: workloads in, sums over their layers out."""

    @property
    def name(self) -> str:
        """Name of the core, or of the accelerator."""

    @property
    def memory(self) -> Memory:
        """Memory that has to hold weights, caches and activations."""

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
        """Raise InputError for a batch that cannot be run as it is wanted."""

    def search(self, workloads: Iterable[Workload]) -> None:
        """Search all layers of these workloads that are not known yet."""

    def of(self, workload: Workload) -> Sums:
        """Figures of all layers of a workload, which run one after another."""

    def runs(self, sums: Sums, requests: int) -> list[StepRun]:
        """Ways to run a step with these figures for so many requests, in their order of preference at equal time."""

    def limit(self, step: StepRun, workload: Workload, requests: int) -> JsonObject:
        """Table columns of what limits a step, and of the shares of the time that more width and more size would save.

        `workload` has the layers of the step.
        """

    def notes(self, weight_bits: int) -> tuple[str, ...]:
        """Notes on the figures of a model with so many bits of weights."""
