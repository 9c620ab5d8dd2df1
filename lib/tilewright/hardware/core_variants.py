"""Variants of a core that differ only in the energies of operations and words, in areas, and in word widths.

A mapping moves the same data on every variant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.hardware.core import Core, OperationalArray


@dataclass(frozen=True, eq=False)
class CoreVariants:
    """Word widths, energies per word and arrays of the variants of one core. There is at least one variant."""

    memories: tuple[str, ...]
    """Names of the memories, in the order of the core."""
    ports: tuple[tuple[str, str], ...]
    """Pairs (memory name, port name). Column i of `widths` belongs to pair i."""
    widths: np.ndarray
    """Word widths in bits: int64 array [row, port]. The array has one row for each distinct combination of widths among
    the variants."""
    width_of: np.ndarray
    """Row of `widths` that each variant has: int64 array [variant] of row indices."""
    word_pj: np.ndarray
    """Energies in pJ of reading and of writing a word: float64 array [variant, memory, 2]."""
    arrays: tuple[OperationalArray, ...]
    """Distinct arrays of the variants."""
    array_of: np.ndarray
    """Array that each variant has: int64 array [variant] of indices in `arrays`."""

    @cached_property
    def _column(self) -> dict[tuple[str, str], int]:
        return {port: column for column, port in enumerate(self.ports)}

    def column(self, memory: str, port: str) -> int:
        """Index of the column of `widths` that belongs to the port `port` of the memory `memory`."""
        return self._column[memory, port]

    def with_array(self, core: Core, array: OperationalArray) -> Core:
        """Copy of `core` with the array `array`."""
        return core if array == core.operational_array else replace(core, operational_array=array)

    def with_widths(self, core: Core, bits: Sequence[int]) -> Core:
        """Copy of `core` with the word widths `bits`. `bits` has one width per column of `widths`. `core` can lack some
        memories and ports of the variants.
        """
        memories = tuple(
            replace(
                memory,
                ports=tuple(
                    replace(port, bandwidth_max_bits=bits[self._column[memory.name, port.name]])
                    for port in memory.ports
                ),
            )
            for memory in core.memories
        )
        return replace(core, memories=memories)

    @cached_property
    def begins_words(self) -> np.ndarray:
        """Bool array [variant]: True for the first variant, and for each variant whose word widths or word energies
        differ from those of the previous variant.
        """
        same = (np.diff(self.word_pj, axis=0) == 0).all(axis=(1, 2)) & (np.diff(self.width_of) == 0)
        return np.concatenate([[True], ~same])

    @property
    def reference(self) -> int:
        """Index of the row of `widths` in which every port has its widest word; -1 if there is no such row."""
        return next((row for row, bits in enumerate(self.widths.tolist()) if tuple(bits) == self.widest), -1)

    @property
    def widest(self) -> tuple[int, ...]:
        """Width of the widest word of each port among all variants, in bits."""
        return tuple(self.widths.max(axis=0).tolist())

    def of_widths(self, rows: Sequence[int]) -> tuple["CoreVariants", np.ndarray]:
        """Pair (variants, indices). The variants are those whose row of `widths` is in `rows`. The indices are the
        places of these variants among all variants of this object."""
        chosen = np.flatnonzero(np.isin(self.width_of, rows))
        number = {row: place for place, row in enumerate(rows)}
        width_of = np.array([number[row] for row in self.width_of[chosen].tolist()], np.int64)
        part = replace(
            self,
            widths=self.widths[list(rows)],
            width_of=width_of,
            word_pj=self.word_pj[chosen],
            array_of=self.array_of[chosen],
        )
        return part, chosen


def variants_of(cores: Sequence[Core]) -> CoreVariants | None:
    """Variants of one core: one variant for each of the given cores, in their order. The cores have the same structure
    and sizes. None if two memories of a core, or two ports of a memory, have the same name.
    """
    first = cores[0]
    ports = tuple((memory.name, port.name) for memory in first.memories for port in memory.ports)
    names = tuple(memory.name for memory in first.memories)
    if len(set(ports)) < len(ports) or len(set(names)) < len(names):
        return None
    widths: dict[tuple[int, ...], int] = {}
    arrays: dict[OperationalArray, int] = {}
    width_of, array_of = [], []
    for core in cores:
        own = tuple(port.bandwidth_max_bits for memory in core.memories for port in memory.ports)
        width_of.append(widths.setdefault(own, len(widths)))
        array_of.append(arrays.setdefault(core.operational_array, len(arrays)))
    word_pj = [[(memory.read_energy_pj, memory.write_energy_pj) for memory in core.memories] for core in cores]
    return CoreVariants(
        names,
        ports,
        np.array(list(widths), np.int64).reshape(len(widths), len(ports)),
        np.array(width_of, np.int64),
        np.array(word_pj, np.float64),
        tuple(arrays),
        np.array(array_of, np.int64),
    )
