"""Figures of a mapping problem: the fields that depend on the sizes and energies of memories and on the widths of
ports.

All other fields are the *frame* of the problem. Designs that differ only in these figures have the same frame.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.hardware.core import Port
from tilewright.mapping.zeros import plain_widths

ROOMY_MARGIN = 128
"""Factor that defines a roomy memory: such a memory is at least this many times as large as all its operands together,
and so has room for every allocation. The factor is large for two reasons: a tile counts twice if the memory is
double-buffered, and a loop order can have more iterations than the layer.
"""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class CoreFigures:
    """Sizes, energies and widths of the memories and ports of a core."""

    memories: dict[str, np.ndarray]
    """Name of a column of `memory_columns` -> array with one value for each memory."""
    most_bits: np.ndarray
    """Width in bits of each port that serves at least one operand, in the order of `port_services`."""
    least_bits: np.ndarray
    """Smallest part of a word, in bits, that each port can move. The ports are in the order of `most_bits`."""

    @classmethod
    def of(cls, memories: dict[str, np.ndarray], ports: Sequence[Port]) -> "CoreFigures":
        """Figures of a core. `memories` has the values of `memory_columns`, and `ports` are the ports that serve at
        least one operand.
        """
        most = np.array([port.bandwidth_max_bits for port in ports], np.int64)
        least = np.array([port.bandwidth_min_bits for port in ports], np.int64)
        return cls(memories, most, least)


@dataclass(frozen=True, eq=False)
class FigurePlaces:
    """Places in the record of a mapping problem at which the figures of a core (`CoreFigures`) are written. All cores
    that differ only in their figures have the same places.
    """

    roomy_bits: np.ndarray
    """Least size in bits of a roomy memory, as an array of shape (memories,). NEVER if no size is known to be enough.
    """
    links: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Triple of arrays (operands, memory levels, directions), with one element for each link that a port serves."""
    link_port: np.ndarray
    """Index of the port that serves each link of `links`."""
    link_sizes: np.ndarray | None = None
    """Size of the compressed data of each link of `links`, as a share of the plain data. None if no data are
    compressed."""

    @classmethod
    def of(
        cls, topmost_bits: Sequence[int | None], port_of: np.ndarray, sizes: np.ndarray | None = None
    ) -> "FigurePlaces":
        """Places of the figures of a core in a problem.

        `topmost_bits` has one element for each memory: the total size of its operands in bits, or None if one of the
        operands also has a memory further out. `port_of` is the field `port_of` of a problem. `sizes` has the size of
        the compressed data of each link, as a share of the plain data, with the axes of `port_of`; it is None if no
        data are compressed.
        """
        roomy = [NEVER if bits is None else min(bits * ROOMY_MARGIN, NEVER) for bits in topmost_bits]
        o, m, x = np.nonzero(port_of >= 0)
        return cls(np.array(roomy, np.int64), (o, m, x), port_of[o, m, x], None if sizes is None else sizes[o, m, x])

    def write(self, problems: np.record | np.ndarray, figures: CoreFigures) -> None:
        """Write the figures of a core into one problem, or into each problem of an array of problems."""
        count = len(self.roomy_bits)
        for name, column in figures.memories.items():
            problems[name][..., :count] = column
        problems["holds_everything"][..., :count] = self.roomy_bits <= figures.memories["memory_bits"]
        most, least = figures.most_bits[self.link_port], figures.least_bits[self.link_port]
        if self.link_sizes is not None:
            most, least = plain_widths(most, self.link_sizes), plain_widths(least, self.link_sizes)
        problems["bandwidth_max_bits"][..., *self.links] = most
        problems["bandwidth_min_bits"][..., *self.links] = least
