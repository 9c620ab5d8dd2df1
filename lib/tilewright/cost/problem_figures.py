"""Figures of a problem: the fields that depend on sizes, energies and widths of a core.

Designs of one frame (same memories, operands and ports) share all other fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.hardware.core import Port

ROOMY_MARGIN = 128
"""Factor for doubled slices, and for orders with more iterations than the layer."""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class CoreFigures:
    """Sizes, energies and widths of the memories and ports of a core."""

    memories: dict[str, np.ndarray]
    """Values of `memory_columns`, one array over memories, keyed by column name."""
    most_bits: np.ndarray
    """Width in bits of each port that serves something (`port_services`)."""
    least_bits: np.ndarray
    """Bits of the smallest part of a word that each of these ports moves."""

    @classmethod
    def of(cls, memories: dict[str, np.ndarray], ports: Sequence[Port]) -> "CoreFigures":
        """Figures of memories, given as columns, and of those of their ports that serve something."""
        most = np.array([port.bandwidth_max_bits for port in ports], np.int64)
        least = np.array([port.bandwidth_min_bits for port in ports], np.int64)
        return cls(memories, most, least)


@dataclass(frozen=True, eq=False)
class FigurePlaces:
    """Places of the figures in the problems of a layer, for all cores of one frame."""

    roomy_bits: np.ndarray
    """Size in bits of each memory from which on every allocation fits; NEVER if there is no such size."""
    links: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Operand, level and direction of each link that a port serves."""
    link_port: np.ndarray
    """The port of each of these links."""

    @classmethod
    def of(cls, topmost_bits: Sequence[int | None], port_of: np.ndarray) -> "FigurePlaces":
        """Places of the figures; `topmost_bits`: bits kept in each memory, None if an operand has a memory above it."""
        roomy = [NEVER if bits is None else min(bits * ROOMY_MARGIN, NEVER) for bits in topmost_bits]
        o, m, x = np.nonzero(port_of >= 0)
        return cls(np.array(roomy, np.int64), (o, m, x), port_of[o, m, x])

    def write(self, problems: np.record | np.ndarray, figures: CoreFigures) -> None:
        """Write the figures of a core into one problem or into each problem of an array."""
        count = len(self.roomy_bits)
        for name, column in figures.memories.items():
            problems[name][..., :count] = column
        problems["holds_everything"][..., :count] = self.roomy_bits <= figures.memories["memory_bits"]
        problems["bandwidth_max_bits"][..., *self.links] = figures.most_bits[self.link_port]
        problems["bandwidth_min_bits"][..., *self.links] = figures.least_bits[self.link_port]
