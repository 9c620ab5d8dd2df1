"""Interpolation between the memories of CACTI by kriging.

The logarithm of a figure is a function of the logarithms of size, width and process node. The method is universal
kriging (Matheron, 1963; Cressie, Statistics for Spatial Data, 1993, section 3.4). The logarithm of a figure is the sum
of two parts. The first part is a polynomial of third order in size and width, with further terms in node, type of cells
and ports. The second part is computed from the deviations of neighbouring memories from the polynomial. Memories of
similar size, width and number of words have the largest weights, because CACTI chooses the same banks for them. The
same memory at other nodes and with other cells also has a weight. To measure the error of the law, memories are left
out of the table and predicted: one memory at a time, or all memories of one size or width.

`python -m tilewright.hardware.silicon.sram_law` predicts the memories that the CACTI table lacks, and writes them to
`cacti_filled.csv`. No other module of tilewright uses this module.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.base.artifacts.files import write_atomically
from tilewright.hardware.silicon.library import (
    CACTI,
    DATA,
    FEWEST_WORDS,
    FILLED,
    HP,
    PLAIN,
    ZIGZAG_CALL,
    SramFigures,
    SramGroup,
    SramPlace,
    sram_table,
)

REACHES = {"size": 8.0, "width": 4.0, "node": 2.5, "cells": 1.0, "words": 1 / 0.15, "ports": 1.0}
"""Distances at which the correlation between the deviations of two memories falls to 1/e. A deviation is the difference
between the logarithm of a CACTI figure and the polynomial that is fitted to these logarithms. Distances in size, width,
node and number of words are counted in doublings. Distances in type of cells and in ports are 0 (equal) or 1
(different).

The values minimise the prediction errors of the law. To measure these errors, memories are left out of the table and
predicted: one memory at a time, or all memories of one size or width.
"""
NUGGET = 0.02
"""Variance of the unpredicted part of a deviation, divided by the variance of the predicted part. The predicted part
follows from neighbouring memories. The unpredicted part exists because CACTI makes discontinuous choices."""
DIGITS = 6
"""Number of significant digits that CACTI prints. Predicted figures are rounded to this number of digits, because
further digits would differ between machines.
"""
WIDTHS = {PLAIN: (16, 32, 64, 128, 256, 512), ZIGZAG_CALL: (8, 16, 32, 64, 128, 256, 512, 1024)}
_SIZES = {PLAIN: (9, 22), ZIGZAG_CALL: (7, 23)}
"""Setup -> base-2 logarithms of the smallest and the largest size in bytes. All sizes are powers of two."""
_CORNER = 4
"""Limit on the ratio FEWEST_WORDS / (number of words of a memory in the grid). Memories with fewer words than CACTI
needs (FEWEST_WORDS) are at the corners of the grid. These memories get predicted figures, because a memory between four
points of the grid is interpolated from all four points.
"""


@dataclass(frozen=True, eq=False)
class SramLaw:
    """Law of the costs of SRAM, fitted to the memories `places` with the figures `figures`."""

    places: tuple[tuple[SramGroup, SramPlace], ...]
    figures: tuple[SramFigures, ...]

    @cached_property
    def _points(self) -> np.ndarray:
        return _points(self.places)

    @cached_property
    def _logarithms(self) -> np.ndarray:
        found: np.ndarray = np.log(np.array(self.figures))
        return found

    @cached_property
    def _inverse(self) -> np.ndarray:
        covariance = _covariance(self._points, self._points) + NUGGET * np.eye(len(self._points))
        found: np.ndarray = np.linalg.inv(covariance)
        return found

    @cached_property
    def _coefficients(self) -> np.ndarray:
        trend = _trend(self._points)
        found: np.ndarray = np.linalg.solve(trend.T @ self._inverse @ trend, trend.T @ self._inverse @ self._logarithms)
        return found

    def predict(self, places: Sequence[tuple[SramGroup, SramPlace]]) -> list[SramFigures]:
        """Predicted figures of memories, rounded to DIGITS."""
        points = _points(places)
        off = self._inverse @ (self._logarithms - _trend(self._points) @ self._coefficients)
        found = _trend(points) @ self._coefficients + _covariance(points, self._points) @ off
        return [SramFigures(*(float(f"{value:.{DIGITS}g}") for value in row)) for row in np.exp(found)]

    def left_out(self, groups: Sequence[Sequence[int]]) -> np.ndarray:
        """Relative prediction errors (absolute values) of the memories in `groups`, as an array of shape (memories,
        figures). The memories are in the order of the groups. A group is a sequence of indices into `places`.

        Each group is predicted from all memories outside the group. All groups use one matrix (Dubrule, Mathematical
        Geology 15, 1983), so that no group needs a new fit.
        """
        trend, inverse = _trend(self._points), self._inverse
        weighted = inverse @ trend
        projected = inverse - weighted @ np.linalg.solve(trend.T @ weighted, weighted.T)
        residuals = projected @ self._logarithms
        off = [np.linalg.solve(projected[np.ix_(group, group)], residuals[group]) for group in groups]
        missed: np.ndarray = np.abs(np.expm1(-np.concatenate(off)))
        return missed


def _points(places: Sequence[tuple[SramGroup, SramPlace]]) -> np.ndarray:
    """Coordinates of memories, as an array of shape (memories, 5).

    The coordinates are log2 of the size in bytes, log2 of the line width in bits, log2 of the node in nm, 1 for
    high-performance cells (else 0), and 1 for the setup ZIGZAG_CALL (else 0). The line width is the word width, times 8
    for the setup ZIGZAG_CALL.
    """
    found = []
    for group, place in places:
        is_call = group.setup == ZIGZAG_CALL
        line = np.log2(place.width_bits) + 3 * is_call
        found.append([np.log2(place.size_bytes), line, np.log2(group.node_nm), group.cell_type == HP, is_call])
    return np.array(found, np.float64)


def _trend(points: np.ndarray) -> np.ndarray:
    """Values of the terms of the polynomial, as an array of shape (memories, terms). `points` has shape (memories,
    coordinates), as `_points` returns it.
    """
    size, width, node = (points[:, 0] - 15.5) / 4, (points[:, 1] - 7) / 2, (points[:, 2] - 5.2) / 0.8
    cells, ports = points[:, 3], points[:, 4]
    one = np.ones(len(points))
    linear = [one, size, width, node, cells, ports]
    squares = [size**2, size * width, width**2, node**2, node * cells]
    crossed = [size * cells, width * cells, size * node, width * node, ports * size, ports * width]
    cubes = [size**3, size**2 * width, size * width**2, width**3]
    return np.stack([*linear, *squares, *crossed, *cubes], axis=1)


def _covariance(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Covariance between the deviations of two groups of memories. The array has one row for each memory of `some`, and
    one column for each memory of `others`."""
    columns = (some[:, 0], some[:, 1], some[:, 2], some[:, 3], some[:, 0] - some[:, 1], some[:, 4])
    other = (others[:, 0], others[:, 1], others[:, 2], others[:, 3], others[:, 0] - others[:, 1], others[:, 4])
    far = sum(
        np.abs(one[:, None] - two[None, :]) / reach
        for one, two, reach in zip(columns, other, REACHES.values(), strict=True)
    )
    found: np.ndarray = np.exp(-far)
    return found


def fitted() -> SramLaw:
    """Law that is fitted to all memories of the CACTI table."""
    pairs = [(group, place) for group, found in sram_table(CACTI).items() for place in found]
    return SramLaw(tuple(pairs), tuple(sram_table(CACTI)[group][place] for group, place in pairs))


def errors(law: SramLaw, setup: str, whole: str = "") -> np.ndarray:
    """Relative prediction errors (absolute values) of the memories of a setup, as an array of shape (memories,
    figures). The figures are those of `SramFigures`. Each memory is predicted from all other memories of `law`.

    If `whole` is `size_bytes` or `width_bits`, all memories of the setup with the same size or width are predicted
    together, from the other memories of `law`. The law does not predict beyond the table. The array therefore has no
    errors for the smallest and the largest size or width.
    """
    own = [place for place, (group, _) in enumerate(law.places) if group.setup == setup]
    if not whole:
        return law.left_out([[place] for place in own])
    values = sorted({getattr(law.places[place][1], whole) for place in own})[1:-1]
    return law.left_out([[p for p in own if getattr(law.places[p][1], whole) == value] for value in values])


def missing() -> Iterator[tuple[SramGroup, SramPlace]]:
    """Pairs (group, size and width) of the memories that are in the grid of sizes and widths, but not in the CACTI
    table. Memories with less than a quarter of the words that CACTI needs are left out.
    """
    for group, found in sorted(sram_table(CACTI).items()):
        first, last = _SIZES[group.setup]
        for width in WIDTHS[group.setup]:
            for power in range(first, last + 1):
                place = SramPlace(2**power, width)
                if place not in found and place.size_bytes * 8 * _CORNER >= FEWEST_WORDS * width:
                    yield group, place


def filled_text() -> str:
    """Table of the missing memories with their predicted figures, as text."""
    places = list(missing())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*SramGroup._fields, *SramPlace._fields, *SramFigures._fields])
    for (group, place), figures in zip(places, fitted().predict(places), strict=True):
        writer.writerow([*group, *place, *(f"{value:.{DIGITS}g}" for value in figures)])
    return text.getvalue()


if __name__ == "__main__":
    write_atomically(DATA / FILLED, filled_text())
