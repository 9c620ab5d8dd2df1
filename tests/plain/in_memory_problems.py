"""Random problems on the in-memory array of a hardware file, with layers that leave few loops to its memories."""

import random
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

from tests.plain.problems import Problem, random_layer
from tests.plain.space import merged_loops
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import IN_MEMORY_SWITCHES, REFERENCE, Switches, switches_of

KINDS = ("convolution", "convolution", "pointwise", "grouped", "depthwise", "gemm", "batched")
"""Kinds of layers that have weights to store."""
LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))
MOST_BESIDE = 4
"""Largest number of outputs with the same weights side by side."""
CHANNELS = (3, 16, 50, 64, 96, 128, 130, 192, 256, 300)


@dataclass(frozen=True)
class InMemoryProblems:
    """Random problems on the core of a file."""

    path: Path

    @cached_property
    def core(self) -> Core:
        """The only core of the file."""
        return read_accelerator(self.path).cores[0]

    def __call__(self, seed: int, loops: tuple[int, int], switches: tuple[str, ...], kind: str) -> Problem:
        """A problem whose number of remaining prime factors is in the given range; a kind without weights is
        replaced.
        """
        rng = random.Random(seed)
        while True:
            own = kind if kind in KINDS else rng.choice(KINDS)
            layer = self._layer(rng, own)
            model = self._model(rng, switches)
            problem = Problem(own, layer, self.core, LINKS, self._lanes(rng, layer, switches_of(model)), model)
            try:
                sizes = problem.plain().temporal_sizes
            except DoesNotFitError:
                continue
            if loops[0] <= len(merged_loops(sizes, None)) <= loops[1]:
                return problem

    def _layer(self, rng: random.Random, kind: str) -> Layer:
        """A layer with about as many channels as the array has lanes, and bits that its cells hold."""
        array = dict(self.core.operational_array.parameters)
        drawn = random_layer(rng, kind)
        sizes = tuple(
            (name, rng.choice(CHANNELS) if name in ("K", "C") and rng.random() < 0.8 else size)
            for name, size in drawn.loop_sizes
        )
        final = rng.choice((8, 16))
        bits = (("W", int(array["weight_bits"])), ("I", rng.choice((4, 8, 8))), ("O", 16), ("O_final", final))
        return replace(drawn, loop_sizes=sizes, precision_bits=bits, constant_operands=("W",))

    def _lanes(self, rng: random.Random, layer: Layer, switches: Switches) -> Unrolling:
        """Random unrolling: columns take dimensions of the output, and rows take dimensions that are summed.

        In the complete model, columns may also take output dimensions that the weights do not have.
        """
        sizes = layer.size_of
        operands = dict(layer.operand_dimensions)
        weights, outputs = operands["W"], operands["O"]
        beside = [d for d in outputs if d not in weights]
        has_further = "complete_in_memory_model" in switches and rng.random() < 0.3
        further = rng.sample(beside, min(2, len(beside))) if has_further else []
        sides = [*further, *(d for d in weights if d in outputs)], [d for d in weights if d not in outputs]
        result = []
        for (name, room), dimensions in zip(sorted(self.core.operational_array.dimensions), sides, strict=False):
            factors, left = [], room
            for dimension in dimensions:
                most = min(left, sizes[dimension], MOST_BESIDE if dimension in further else room)
                lanes = most if rng.random() < 0.7 else rng.randint(1, most)
                if lanes > 1:
                    factors.append((dimension, lanes))
                    left //= lanes
            result.append((name, tuple(factors)))
        return tuple(result)

    def _model(self, rng: random.Random, switches: tuple[str, ...]) -> str:
        """One of the two named models in turn, or any combination of switches."""
        drawn = rng.random()
        if drawn < 0.8:
            return REFERENCE if drawn < 0.4 else "corrected"
        every = (*switches, *IN_MEMORY_SWITCHES)
        return REFERENCE + "".join(f"+{switch}" for switch in every if rng.random() < 0.5)
