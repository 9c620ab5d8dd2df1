"""Where the cores of an accelerator stand in its figure, and which of its links are drawn together.

Links between neighbours are drawn as arrows. All others are bars below the cores: a bus or a shared port is one bar,
and so are the equal links of one core with several others.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.hardware.interconnect import Link
from tilewright.hardware.system import COMPUTE, OFFCHIP, MultiCoreAccelerator

MOST_COLUMNS = 8
Cell = tuple[int, int]
"""(column, row), from the upper left corner."""


@dataclass(frozen=True)
class Arrow:
    """The links between two neighbouring cores."""

    core_ids: tuple[int, int]
    """The arrow points to the second, and to the first too if it is for both ways."""
    both_ways: bool
    text: str


@dataclass(frozen=True)
class Bar:
    """Links that are drawn as a bar with a branch to each of its cores."""

    core_ids: tuple[int, ...]
    is_shared: bool
    """One medium; otherwise a link for each branch."""
    text: str


@dataclass(frozen=True)
class SystemLayout:
    """The cells of the on-chip cores, the arrows between them and the bars below them."""

    cells: tuple[tuple[int, Cell], ...]
    arrows: tuple[Arrow, ...]
    bars: tuple[Bar, ...]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return max((column for _, (column, _) in self.cells), default=0) + 1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return max((row for _, (_, row) in self.cells), default=0) + 1


def system_layout(accelerator: MultiCoreAccelerator) -> SystemLayout:
    """The layout of an accelerator: coordinates of the file where it has them, else a square; special cores beside."""
    cells = _cells(accelerator)
    shared = [link for link in accelerator.links if len(link.core_ids) > 2]
    bars = [Bar(link.core_ids, True, f"{link.name}: {link_text(link)}") for link in shared]
    of_pair: dict[tuple[int, int], list[Link]] = {}
    for link in accelerator.links:
        if len(link.core_ids) == 2:
            first, second = link.core_ids
            of_pair.setdefault((first, second), []).append(link)
    arrows = []
    far: dict[tuple[int, int], tuple[str, bool]] = {}
    for pair, links in of_pair.items():
        text, directions = _pair_text(links), {edge for link in links for edge in link.edges}
        if _are_neighbours(cells.get(pair[0]), cells.get(pair[1])):
            ends = pair if pair in directions else (pair[1], pair[0])
            arrows.append(Arrow(ends, len(directions) == 2, text))
        else:
            far[pair] = (text, any(link.is_half_duplex for link in links))
    bars += _fans(far)
    offchip = accelerator.offchip_core_id
    bars.sort(key=lambda bar: offchip in bar.core_ids)
    return SystemLayout(tuple(cells.items()), tuple(arrows), tuple(bars))


def link_text(link: Link) -> str:
    """Bandwidth and energy of a link."""
    width = (
        "infinite bandwidth" if link.bandwidth_bits_per_cycle is None else f"{link.bandwidth_bits_per_cycle} b/cycle"
    )
    return width + (f", {link.energy_pj_per_bit:.3g} pJ/b" if link.energy_pj_per_bit else "")


def _pair_text(links: Sequence[Link]) -> str:
    texts = list(dict.fromkeys(link_text(link) for link in links))
    if any(link.is_half_duplex for link in links):
        texts[-1] += ", both ways in turn"
    return "; ".join(texts)


def _cells(accelerator: MultiCoreAccelerator) -> dict[int, Cell]:
    known = {place.core_id: place.coordinates for place in accelerator.places if place.coordinates is not None}
    cells: dict[int, Cell] = {
        core_id: cell for core_id, cell in known.items() if core_id in accelerator.onchip_core_ids
    }
    rest = [place for place in accelerator.places if place.role != OFFCHIP and place.core_id not in cells]
    compute = [place.core_id for place in rest if place.role == COMPUTE]
    first_row = max((row for _, row in cells.values()), default=-1) + 1
    cells |= {core_id: (column, first_row + row) for core_id, (column, row) in _grid(compute, accelerator).items()}
    right = max((column for column, _ in cells.values()), default=-1) + 1
    rows = max((row for _, row in cells.values()), default=0) + 1
    for number, place in enumerate(place for place in rest if place.role != COMPUTE):
        cells[place.core_id] = (right + number // rows, number % rows)
    return dict(sorted(cells.items()))


def _grid(core_ids: Sequence[int], accelerator: MultiCoreAccelerator) -> dict[int, Cell]:
    """Cores row by row, in as many columns as make most links arrows between neighbours, then nearest to a square."""
    pairs = {link.core_ids for link in accelerator.links if len(link.core_ids) == 2}
    square = math.ceil(math.sqrt(len(core_ids)))

    def grid(columns: int) -> dict[int, Cell]:
        return {core_id: (number % columns, number // columns) for number, core_id in enumerate(core_ids)}

    def rank(columns: int) -> tuple[int, int, int]:
        cells = grid(columns)
        arrows = sum(_are_neighbours(cells.get(one), cells.get(other)) for one, other in pairs)
        return -arrows, abs(columns - square), -columns

    return grid(min(range(1, min(len(core_ids), MOST_COLUMNS) + 1), key=rank, default=1))


def _are_neighbours(one: Cell | None, other: Cell | None) -> bool:
    return one is not None and other is not None and abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1


def _fans(far: dict[tuple[int, int], tuple[str, bool]]) -> list[Bar]:
    """Bars for links between cores that are no neighbours: equal links of one core together, busiest core first."""
    bars: list[Bar] = []
    left = dict(far)
    while left:
        counts = Counter((core_id, text) for pair, (text, _) in left.items() for core_id in pair)
        hub, text = min(counts, key=lambda key: (-counts[key], -key[0], key[1]))
        pairs = [pair for pair, (found, _) in left.items() if found == text and hub in pair]
        others = sorted(core_id for pair in pairs for core_id in pair if core_id != hub)
        each = "each " if len(others) > 1 else ""
        bars.append(Bar((hub, *others), False, f"{hub} with {', '.join(map(str, others))}: {each}{text}"))
        for pair in pairs:
            del left[pair]
    return bars
