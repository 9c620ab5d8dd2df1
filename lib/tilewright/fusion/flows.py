"""Data that flows from the CNs of layers to those of others: pairs, and how many elements each passes on.

Networks have many small links: what flows along several is worked out in one go, over arrays of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tilewright.fusion.axis_join import (
    NOBODY,
    AxisNeeds,
    AxisOwners,
    added_up,
    join_axes,
    product_of_joins,
    spread,
)
from tilewright.fusion.axis_rows import AxisRows
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Demand
from tilewright.fusion.overlaps import disjoint_demands
from tilewright.fusion.producers import Producer


class Link(NamedTuple):
    """One operand of a layer that needs one tensor, along any number of ways."""

    demands: tuple[Demand, ...]
    producer: Producer
    grid: LayerGrid
    """Of the layer that needs it."""

    def dimensions(self) -> tuple[str, ...]:
        """Dimensions of the layer whose tiles tell apart what is needed."""
        if len(self.demands) == 1:
            return self.demands[0].dimensions
        used = {dimension for demand in self.demands for dimension in demand.dimensions}
        return tuple(dimension for dimension in self.grid.tiled_dimensions if dimension in used)

    def is_exact(self) -> bool:
        """Whether what flows is known element by element."""
        if len(self.demands) == 1:
            return self.demands[0].is_exact and self.producer.is_exact
        demands_are_exact = all(demand.is_exact and not demand.is_gapped for demand in self.demands)
        return demands_are_exact and self.producer.is_exact


@dataclass(frozen=True, eq=False)
class Flows:
    """What flows along links, each pair of CNs once: by link, consumer CN and producer CN, all ascending."""

    start: Integers
    """[link + 1] into the columns"""
    target: Integers
    """[entry] consumer CN of its layer"""
    source: Integers
    """[entry] producer CN of its layer"""
    elements: Integers
    """[entry]"""


def flows(links: Sequence[Link]) -> Flows:
    """What flows along links; what is needed along several ways of one flows once."""
    columns = _PartColumns()
    spans = []
    first_content = 0
    for number, link in enumerate(links):
        dimensions = link.dimensions()
        parts = link.demands if len(link.demands) == 1 else disjoint_demands(link.demands, dimensions, link.grid)
        for part in parts:
            columns.add(number, part, link.producer, first_content)
        content_of_cn, content_count, is_own = link.grid.contents(dimensions)
        spans.append((first_content, content_count, content_of_cn, is_own))
        first_content += content_count
    content, source, elements = added_up(*columns.joined(links))
    start = np.zeros(first_content + 1, np.int64)
    np.bincount(content, minlength=first_content).cumsum(out=start[1:])
    firsts = np.array([first for first, _, _, _ in spans] + [first_content])
    if all(is_own for _, _, _, is_own in spans):
        link_start = start[firsts]
        if len(links) > 1:
            content -= firsts[:-1].repeat(link_start[1:] - link_start[:-1])
        return Flows(link_start, content, source, elements)
    place, entry = spread(start, np.concatenate([of_cn + first for first, _, of_cn, _ in spans]))
    first_place = np.cumsum([0, *(len(of_cn) for _, _, of_cn, _ in spans)])
    link_start = place.searchsorted(first_place)
    place -= first_place[:-1].repeat(link_start[1:] - link_start[:-1])
    return Flows(link_start, place, source[entry], elements[entry])


@dataclass
class _PartColumns:
    """Parts of what links need, and the axes to join for them."""

    needs: list[AxisNeeds] = field(default_factory=list)
    """Those that differ."""
    place_of: dict[tuple[int, int], int] = field(default_factory=dict)
    """Identity of (rows, owners) -> place in `needs`"""
    links: list[int] = field(default_factory=list)
    """[part]"""
    contents: list[Integers] = field(default_factory=list)
    """[part] [entry] content in its link"""
    axes: list[list[tuple[int, Integers]]] = field(default_factory=list)
    """[part] (place in `needs`, [entry] row) of the axes that somebody cuts"""
    constants: list[tuple[int, int, int]] = field(default_factory=list)
    """[part] (first content of its link, owner and elements along the other axes)"""

    def add(self, link: int, demand: Demand, producer: Producer, first_content: int) -> None:
        """Add a part, unless nothing of it is made."""
        owner, elements = producer.last_step, 1
        axes: list[tuple[int, Integers]] = []
        if demand.axes is None:
            axes += [self._boxes(demand.boxes[:, axis], owners) for axis, owners in enumerate(producer.owners)]
        else:
            for owners, (rows, row_of_entry) in zip(producer.owners, demand.axes, strict=True):
                span, only = rows.only, owners.only
                if span is not None and only is not None:  # neither side cuts the axis: the same for all
                    owner += only
                    elements *= span[1] - span[0] if only != NOBODY else 0
                else:
                    axes.append((self._place(rows, owners), row_of_entry))
        if elements:
            self.links.append(link)
            self.contents.append(demand.content)
            self.axes.append(axes)
            self.constants.append((first_content, owner, elements))

    def _place(self, rows: AxisRows, owners: AxisOwners) -> int:
        """Place in `needs` of an axis."""
        place = self.place_of.get((id(rows), id(owners)))
        if place is None:
            place = self.place_of[id(rows), id(owners)] = len(self.needs)
            self.needs.append(AxisNeeds(rows.first, rows.end, rows.gapped, owners))
        return place

    def _boxes(self, spans: Integers, owners: AxisOwners) -> tuple[int, Integers]:
        """The distinct ranges of boxes along an axis, given as [entry, 2]."""
        size = owners.size + 1
        keys, row_of_entry = np.unique(spans[:, 0] * size + spans[:, 1], return_inverse=True)
        self.needs.append(AxisNeeds(keys // size, keys % size, None, owners))
        return len(self.needs) - 1, row_of_entry.reshape(-1)

    def joined(self, links: Sequence[Link]) -> tuple[Integers, Integers, Integers]:
        """([entry] content among those of all links, CN of the producer's layer, elements)."""
        if not self.links:
            none = np.zeros(0, np.int64)
            return none, none, none
        lengths = [len(content) for content in self.contents]
        first_content, owner, elements = np.array(self.constants).T
        join, first_rows = join_axes(self.needs)
        # One at a time: with a million CNs each is large.
        rows = (self._rows(turn, first_rows, lengths) for turn in range(max(map(len, self.axes))))
        constants = _spread_over(owner, lengths), _spread_over(elements, lengths)
        need, source, elements = product_of_joins(join, rows, sum(lengths), *constants)
        content = (_end_to_end(self.contents) + _spread_over(first_content, lengths))[need]
        if any(link.producer.grid.full_numbers is not None for link in links):
            link_of_need = np.repeat(np.array(self.links), lengths)[need]
            source = _cns(link_of_need, source, links)
        return content, source, elements

    def _rows(self, turn: int, first_rows: list[int], lengths: list[int]) -> Integers:
        """[entry] row in the join of one axis of each part; row 0 for parts that have no more."""
        rows, shifts = [], []
        for axes, length in zip(self.axes, lengths, strict=True):
            if turn < len(axes):
                place, row = axes[turn]
                rows.append(row)
                shifts.append(first_rows[place])
            else:
                rows.append(np.zeros(length, np.int64))
                shifts.append(0)
        row_of_entry: Integers = _end_to_end(rows) + _spread_over(np.array(shifts), lengths)
        return row_of_entry


def _end_to_end(parts: list[Integers]) -> Integers:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _spread_over(values: Integers, lengths: list[int]) -> Integers:
    """[entry] value of its part; of one part alone the value once, since a layer of many CNs is one."""
    return values if len(lengths) == 1 else values.repeat(lengths)


def _cns(link: Integers, number: Integers, links: Sequence[Link]) -> Integers:
    """[entry] CN of the producer of a link, from the number in its full grid; links ascend."""
    bounds = link.searchsorted(np.arange(len(links) + 1))
    parts = [links[place].producer.grid.cn_of(number[bounds[place] : bounds[place + 1]]) for place in range(len(links))]
    return np.concatenate(parts)
