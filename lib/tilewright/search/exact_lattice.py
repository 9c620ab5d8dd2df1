"""The lattice of loop multisets of the exact search, and views on problem and record that its tables share."""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.cost.problem import Problem

OUTPUT = 0


@dataclass(frozen=True)
class Lattice:
    """The multisets of loops of one problem, as an array with an axis for each symbol."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    def least_above(self, values: np.ndarray) -> np.ndarray:
        """For each point the least value over all points that contain it."""
        cube = values.reshape(self.shape)
        for axis in range(len(self.shape)):
            cube = np.flip(np.minimum.accumulate(np.flip(cube, axis), axis), axis)
        return cube.reshape(-1)

    def successors(self, values: np.ndarray, symbol: int, beyond: float) -> np.ndarray:
        """For each point the value after one more loop of a symbol; `beyond` where there is none left."""
        cube = values.reshape(self.shape)
        moved = np.full_like(cube, beyond)
        source = tuple(slice(1, None) if axis == symbol else slice(None) for axis in range(cube.ndim))
        target = tuple(slice(None, -1) if axis == symbol else slice(None) for axis in range(cube.ndim))
        moved[target] = cube[source]
        return moved.reshape(-1)


def boundaries_of(search: np.record) -> list[tuple[int, int, int]]:
    """(boundary, operand, level)."""
    return [(b, int(search.boundary_operand[b]), int(search.boundary_level[b])) for b in range(search.boundary_count)]


def held_by(problem: Problem, k: int) -> list[tuple[int, int]]:
    """(operand, level) of what a memory holds."""
    pairs = zip(problem.memory_operands[k].tolist(), problem.memory_levels[k].tolist(), strict=True)
    return [(o, m) for o, m in pairs if o >= 0]


def precisions_of(problem: Problem, o: int, m: int) -> tuple[int, int]:
    """The least and the most bits per element of an operand in one of its levels."""
    most = int(problem.precision_bits[o])
    if o == OUTPUT and not problem.partial_above[o, m + 1]:
        return min(most, int(problem.final_precision_bits)), max(most, int(problem.final_precision_bits))
    return most, most


def tile_bits(problem: Problem, search: np.record, o: int, m: int, precision: int, n: int) -> np.ndarray:
    """Bits of a tile at every point as the allocator counts them, doubled where that is forced."""
    bits: np.ndarray = search.elements[search.first_level[o] + m, :n] * precision
    if problem.force_double_buffering[problem.level_memory[o, m]]:
        smaller = bits < bits[-1]
        smaller[-1] = False
        bits = np.where(smaller, bits * 2, bits)
    return bits
