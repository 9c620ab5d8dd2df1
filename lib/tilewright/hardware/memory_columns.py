"""Properties of memories as arrays with one entry per memory, for compiled code."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.hardware.core import Memory

MEMORY_COLUMNS: dict[str, tuple[Any, Callable[[Memory], float]]] = {
    "memory_bits": (np.int64, lambda memory: memory.size_bits),
    "read_energy_pj": (np.float64, lambda memory: memory.read_energy_pj),
    "write_energy_pj": (np.float64, lambda memory: memory.write_energy_pj),
    "force_double_buffering": (np.int8, lambda memory: memory.force_double_buffering),
}
"""Columns by name: (type of the entries, function that computes the entry of a memory)."""


def memory_columns(memories: Sequence[Memory]) -> dict[str, np.ndarray]:
    """Name of a column -> array with one entry per memory."""
    return {name: np.array([value(m) for m in memories], kind) for name, (kind, value) in MEMORY_COLUMNS.items()}
