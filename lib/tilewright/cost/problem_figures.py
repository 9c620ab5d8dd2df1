"""Figures of a problem: what follows from sizes, energies and widths of a core; all else designs of one frame share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.hardware.core import Port

ROOMY_MARGIN = 128
"""Covers doubled slices and orders that iterate more often than the layer needs."""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class CoreFigures:
    """The figures of a core."""

    memories: dict[str, np.ndarray]
    """Values of `memory_columns`, an array over memories by name of the column."""
    most_bits: np.ndarray
    """Width of each port that serves something (`port_services`)."""
    least_bits: np.ndarray
    """Smallest part of a word that it moves."""

    @classmethod
    def of(cls, memories: dict[str, np.ndarray], ports: Sequence[Port]) -> "CoreFigures":
        """The figures of memories, in columns, and of the ports of them that serve something."""
        most = np.array([port.bandwidth_max_bits for port in ports], np.int64)
        least = np.array([port.bandwidth_min_bits for port in ports], np.int64)
        return cls(memories, most, least)


@dataclass(frozen=True, eq=False)
class FigurePlaces:
    """Where figures stand in the problems of a layer on cores of one frame."""

    roomy_bits: np.ndarray
    """Size of each memory from which on the allocator has nothing to decide or to check in it; NEVER."""
    links: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Operand, level and direction of each link that a port serves."""
    link_port: np.ndarray
    """The port of each of these links."""

    @classmethod
    def of(cls, topmost_bits: Sequence[int | None], port_of: np.ndarray) -> "FigurePlaces":
        """`topmost_bits`: bits that are kept in each memory, None where an operand has another one above it."""
        roomy = [NEVER if bits is None else min(bits * ROOMY_MARGIN, NEVER) for bits in topmost_bits]
        o, m, x = np.nonzero(port_of >= 0)
        return cls(np.array(roomy, np.int64), (o, m, x), port_of[o, m, x])

    def write(self, problems: np.record | np.ndarray, figures: CoreFigures) -> None:
        """Write the figures of a core into one problem, or into each of an array of them."""
        count = len(self.roomy_bits)
        for name, column in figures.memories.items():
            problems[name][..., :count] = column
        problems["holds_everything"][..., :count] = self.roomy_bits <= figures.memories["memory_bits"]
        problems["bandwidth_max_bits"][..., *self.links] = figures.most_bits[self.link_port]
        problems["bandwidth_min_bits"][..., *self.links] = figures.least_bits[self.link_port]
