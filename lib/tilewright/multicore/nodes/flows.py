"""Edges of the CN graph along the links between layers, and the bits that CNs send to the outputs of the network.

Networks have many small links. To save time, the flows of several links are computed together. A layer can need a
tensor along several paths, through different nodes that move data. An element that is needed along more than one path
counts once.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tilewright.multicore.nodes.axis_rows import (
    NOBODY,
    AxisNeeds,
    AxisOwners,
    added_up,
    join_axes,
    product_of_joins,
    spread,
)
from tilewright.multicore.nodes.graph import CnLayer, CnLink, SmallIntegers
from tilewright.multicore.nodes.grid import Integers, LayerGrid
from tilewright.multicore.nodes.needs import Demand, Producer
from tilewright.workload.dependencies import Boxes


def _refined(demand: Demand, dimensions: tuple[str, ...], grid: LayerGrid) -> Demand:
    """Copy of a demand with one content for each combination of tiles along `dimensions`. The argument `dimensions`
    must include all dimensions of the demand. The elements of each content are given as a box (`moved_boxes`).
    """
    content = np.zeros(1, np.int64)
    for dimension in dimensions:
        tiles = grid.tiles[dimension].count
        steps = np.arange(tiles) if dimension in demand.dimensions else np.zeros(tiles, np.int64)
        scale = tiles if dimension in demand.dimensions else 1
        content = (content[:, None] * scale + steps).ravel()
    place = np.searchsorted(demand.content, content)
    found = place < len(demand.content)
    found[found] = demand.content[place[found]] == content[found]
    refined = np.flatnonzero(found).astype(np.int64)
    return Demand(dimensions, refined, demand.is_exact, None, demand.boxes[place[found]])


def disjoint_demands(demands: Sequence[Demand], dimensions: tuple[str, ...], grid: LayerGrid) -> list[Demand]:
    """Demands for the same elements as `demands`, without repetition: boxes with the same content do not overlap in the
    result.
    """
    demands = [_refined(demand, dimensions, grid) for demand in demands]
    parts: list[Demand] = []
    for number, demand in enumerate(demands):
        pieces = [(demand.content, demand.boxes)]
        for earlier in demands[:number]:
            pieces = [rest for piece in pieces for rest in _without(*piece, earlier)]
        parts += [replace(demand, content=content, moved_boxes=boxes) for content, boxes in pieces]
    return parts


def _without(content: Integers, boxes: Boxes, other: Demand) -> list[tuple[Integers, Boxes]]:
    """Parts of `boxes` outside the boxes of the demand `other`, as pairs of arrays (content, boxes). The parts of one
    box do not overlap.

    A content is the set of elements that one combination of tiles needs. `content` has, for each box, the number of the
    content to which the box belongs. A box is compared only with the box of `other` that belongs to the same content.
    """
    place = np.minimum(np.searchsorted(other.content, content), max(len(other.content) - 1, 0))
    if not len(other.content):
        return [(content, boxes)]
    cut = other.boxes[place]
    overlap = np.maximum(boxes[:, :, 0], cut[:, :, 0]) < np.minimum(boxes[:, :, 1], cut[:, :, 1])
    meets = (other.content[place] == content) & overlap.all(axis=1)
    if not meets.any():
        return [(content, boxes)]
    pieces = [(content[~meets], boxes[~meets])]
    content, rest, cut = content[meets], boxes[meets].copy(), cut[meets]
    for axis in range(boxes.shape[1]):
        for side in (0, 1):
            piece = rest.copy()
            inner = np.clip(cut[:, axis, side], rest[:, axis, 0], rest[:, axis, 1])
            piece[:, axis, 1 - side] = inner
            rest[:, axis, side] = inner
            filled = piece[:, axis, 0] < piece[:, axis, 1]
            pieces.append((content[filled], piece[filled]))
    return [(contents, part) for contents, part in pieces if len(contents)]


class NeedLink(NamedTuple):
    """Link from an operand of a layer to a tensor that the operand needs, along one or several paths of the network."""

    demands: tuple[Demand, ...]
    producer: Producer
    grid: LayerGrid
    """Grid of the consuming layer."""

    def dimensions(self) -> tuple[str, ...]:
        """Dimensions of the consuming layer along which tiles have different needs."""
        if len(self.demands) == 1:
            return self.demands[0].dimensions
        used = {dimension for demand in self.demands for dimension in demand.dimensions}
        return tuple(dimension for dimension in self.grid.tiled_dimensions if dimension in used)

    def is_exact(self) -> bool:
        """True if each flow is exactly the number of needed elements. Otherwise, a flow is the number of elements of
        bounding boxes. A bounding box can also contain elements that are not needed.
        """
        if len(self.demands) == 1:
            return self.demands[0].is_exact and self.producer.is_exact
        demands_are_exact = all(demand.is_exact and not demand.is_gapped for demand in self.demands)
        return demands_are_exact and self.producer.is_exact


@dataclass(frozen=True, eq=False)
class Flows:
    """Flows along links, one entry for each link and each pair of CNs between which elements flow. Entries are sorted
    by link, consumer CN and producer CN.
    """

    start: Integers
    """Position in the other columns at which the entries of the link begin (one entry for each link, and one more at
    the end)
    """
    target: Integers
    """Consuming CN, as its number within its layer (one value for each entry)"""
    source: Integers
    """Producing CN, as its number within its layer (one value for each entry)"""
    elements: Integers
    """Number of elements that flow (one value for each entry)"""


def flows(links: Sequence[NeedLink]) -> Flows:
    """Flows along links. If several paths of one link need an element, the element flows once."""
    columns = _PartColumns()
    contents_of_cns = []
    first_content = 0
    for number, link in enumerate(links):
        dimensions = link.dimensions()
        parts = link.demands if len(link.demands) == 1 else disjoint_demands(link.demands, dimensions, link.grid)
        for part in parts:
            columns.add(number, part, link.producer, first_content)
        content_of_cn, counts = link.grid.combination_of(dimensions)
        contents_of_cns.append(content_of_cn + first_content)
        first_content += math.prod(counts)
    content, source, elements = added_up(*columns.joined(links))
    start = np.zeros(first_content + 1, np.int64)
    np.bincount(content, minlength=first_content).cumsum(out=start[1:])
    place, entry = spread(start, np.concatenate(contents_of_cns))
    first_place = np.cumsum([0, *(len(of_cns) for of_cns in contents_of_cns)])
    link_start = place.searchsorted(first_place)
    place -= first_place[:-1].repeat(link_start[1:] - link_start[:-1])
    return Flows(link_start, place, source[entry], elements[entry])


@dataclass
class _PartColumns:
    """Needs of several links, stored as columns with one entry for each part. A part is one demand of one link."""

    needs: list[AxisNeeds] = field(default_factory=list)
    links: list[int] = field(default_factory=list)
    """Number of the link to which the part belongs (one entry for each part)"""
    contents: list[Integers] = field(default_factory=list)
    """Array for each part, with the number of the content of each entry of the demand. A content is the set of elements
    that one combination of tiles needs. The contents of a link are numbered from 0
    """
    axes: list[list[tuple[int, Integers]]] = field(default_factory=list)
    """Axes of each part, as one list for each part. If the demand is given as boxes, the list has all axes; if not, it
    has the axes that the producer or the consumer cuts. An axis is a pair: (position in `needs`, array with the row of
    each entry of the demand).
    """
    constants: list[tuple[int, int, int]] = field(default_factory=list)
    """Triple (first content, owner, elements) for each part:

    * first content: number of the first content of the link. The contents of all links are numbered one after another.
    * owner: `Producer.last_step` plus the owners of the axes that are not in `axes`.
    * elements: number of elements that the part needs along the axes that are not in `axes`.

    If the demand is given as boxes, owner is `Producer.last_step`, and elements is 1.
    """

    def add(self, link: int, demand: Demand, producer: Producer, first_content: int) -> None:
        """Add a demand as a part. A demand for elements that the producer does not make is left out."""
        owner, elements = producer.last_step, 1
        axes: list[tuple[int, Integers]] = []
        if demand.axes is None:
            axes += [self._boxes(demand.boxes[:, axis], owners) for axis, owners in enumerate(producer.owners)]
        else:
            for owners, (rows, row_of_entry) in zip(producer.owners, demand.axes, strict=True):
                span, only = rows.only, owners.only
                if span is not None and only is not None:  # neither layer cuts the axis
                    owner += only
                    elements *= span[1] - span[0] if only != NOBODY else 0
                else:
                    axes.append((len(self.needs), row_of_entry))
                    self.needs.append(AxisNeeds(rows.first, rows.end, rows.gapped, owners))
        if elements:
            self.links.append(link)
            self.contents.append(demand.content)
            self.axes.append(axes)
            self.constants.append((first_content, owner, elements))

    def _boxes(self, spans: Integers, owners: AxisOwners) -> tuple[int, Integers]:
        """Add one axis of a demand to `needs`, for a demand that is given as boxes. The new element of `needs` has one
        row for each distinct range in `spans`.

        `spans` has the range of each entry of the demand along the axis, as an array of shape (entries, 2): first
        index, and index after the last one. `owners` says which tile of the producer makes each index of the axis.
        Returns a pair: the position of the new element in `needs`, and an array with the row of each entry.
        """
        size = owners.size + 1
        keys, row_of_entry = np.unique(spans[:, 0] * size + spans[:, 1], return_inverse=True)
        self.needs.append(AxisNeeds(keys // size, keys % size, None, owners))
        return len(self.needs) - 1, row_of_entry.reshape(-1)

    def joined(self, links: Sequence[NeedLink]) -> tuple[Integers, Integers, Integers]:
        """Triple of arrays with one value for each pair of a need and a producing CN: content of the need, numbered
        over all links; CN as a number within the producing layer; number of elements that flow.
        """
        if not self.links:
            none = np.zeros(0, np.int64)
            return none, none, none
        lengths = [len(content) for content in self.contents]
        first_content, owner, elements = np.array(self.constants).T
        join, first_rows = join_axes(self.needs)
        # A generator makes the rows of one turn at a time, because they are large for a million CNs.
        rows = (self._rows(turn, first_rows, lengths) for turn in range(max(map(len, self.axes))))
        constants = owner.repeat(lengths), elements.repeat(lengths)
        need, source, elements = product_of_joins(join, rows, sum(lengths), *constants)
        content = (np.concatenate(self.contents) + first_content.repeat(lengths))[need]
        if any(link.producer.grid.full_numbers is not None for link in links):
            link_of_need = np.repeat(np.array(self.links), lengths)[need]
            source = _cns(link_of_need, source, links)
        return content, source, elements

    def _rows(self, turn: int, first_rows: list[int], lengths: list[int]) -> Integers:
        """Array with the row of each entry along one axis. The entries of the first part come first, then those of the
        second part, and so on.

        The axis is number `turn` in the part's list in `axes`. If this list is too short, the entries of the part get
        row 0, which is neutral. Rows are numbered in the join of all axes (`join_axes`). `first_rows` has, for each
        element of `needs`, the number of its first row in the join. `lengths` has the number of entries of each part.
        """
        rows, shifts = [], []
        for axes, length in zip(self.axes, lengths, strict=True):
            if turn < len(axes):
                place, row = axes[turn]
                rows.append(row)
                shifts.append(first_rows[place])
            else:
                rows.append(np.zeros(length, np.int64))
                shifts.append(0)
        row_of_entry: Integers = np.concatenate(rows) + np.array(shifts).repeat(lengths)
        return row_of_entry


def _cns(link: Integers, number: Integers, links: Sequence[NeedLink]) -> Integers:
    """CN that makes the elements of each flow, numbered among the CNs of its layer. `number` has the same CNs, but
    numbered in the full grid of the layer. The full grid can have cells without a CN. `link` has, for each flow, the
    position of its link in `links`; the positions are in ascending order.
    """
    bounds = link.searchsorted(np.arange(len(links) + 1))
    parts = [links[place].producer.grid.cn_of(number[bounds[place] : bounds[place + 1]]) for place in range(len(links))]
    return np.concatenate(parts)


_MOST_CNS = 2**14
"""Largest number of CNs in one batch of links. For each link, only the CNs of the larger of its two layers count. A
batch with a single link can exceed the limit. Larger batches would take more memory and save no time.
"""


class DataLink(NamedTuple):
    """Link along which data flow from one layer to another, or from a layer to data outside the graph."""

    link: NeedLink
    producer: int
    """Number of the producing layer in the graph."""
    consumer: int
    """Number of the consuming layer in the graph. For a link to data outside the graph, the number is the row of
    `outside_bits` to which the link adds its bits.
    """
    operand: str
    tensor: str
    bits: int
    """Bits of one element."""


@dataclass(frozen=True, eq=False)
class DataEdges:
    """Edges along links, sorted by link, target CN and source CN."""

    source: Integers
    """Producing CN (one entry for each edge)"""
    target: Integers
    """Consuming CN (one entry for each edge)"""
    operand: SmallIntegers
    """Position of the operand in the list of operands of the graph (one entry for each edge)"""
    bits: Integers
    """Bits that flow (one entry for each edge)"""
    links: tuple[CnLink, ...]
    """Links between layers."""
    outside_bits: Integers
    """Bits that each CN sends along links to the outside: array of shape (2, CNs). The two rows are separate sums. For
    each link, `DataLink.consumer` is the row that gets the bits of the link.
    """


def data_edges(
    between: Sequence[DataLink], outside: Sequence[DataLink], layers: Sequence[CnLayer], operands: Sequence[str]
) -> DataEdges:
    """Edges along links between layers, and the bits along links to the outside (`outside_bits`)."""
    first_cn = [layer.first_cn for layer in layers]
    place_of = {operand: place for place, operand in enumerate(operands)}
    outside_bits = np.zeros((2, sum(layer.cn_count for layer in layers)), np.int64)
    columns, operand = [np.zeros((3, 0), np.int64)], [np.zeros(0, np.int16)]
    told: list[CnLink] = []
    for some, internal in _batches(between, outside):
        flow = flows([link.link for link in some])
        entries = flow.start[1:] - flow.start[:-1]
        constants = np.array(
            [(first_cn[link.producer], first_cn[link.consumer], link.bits) for link in some[:internal]]
            + [(first_cn[link.producer], link.consumer, link.bits) for link in some[internal:]]
        )
        edges = constants.T.repeat(entries, axis=1)
        edges[0] += flow.source
        edges[2] *= flow.elements
        last = flow.start[internal]
        np.add.at(outside_bits, (edges[1, last:], edges[0, last:]), edges[2, last:])
        edges[1] += flow.target
        columns.append(edges[:, :last])
        operands_of = np.array([place_of[link.operand] for link in some[:internal]], np.int16)
        operand.append(operands_of.repeat(entries[:internal]))
        bits = np.append(0, edges[2].cumsum())[flow.start]
        sums = zip(some[:internal], entries.tolist(), (bits[1:] - bits[:-1]).tolist(), strict=False)
        told += [
            CnLink(link.producer, link.consumer, link.operand, link.tensor, count, total, link.link.is_exact())
            for link, count, total in sums
        ]
    source, target, bits = columns[1] if len(columns) == 2 else np.concatenate(columns, axis=1)
    return DataEdges(source, target, np.concatenate(operand), bits, tuple(told), outside_bits)


def _batches(between: Sequence[DataLink], outside: Sequence[DataLink]) -> Iterator[tuple[list[DataLink], int]]:
    """Pairs (batch of consecutive links, count). The first `count` links of the batch are between layers. All other
    links of the batch lead to the outside.
    """
    some: list[DataLink] = []
    internal = cns = 0
    for number, link in enumerate((*between, *outside)):
        count = max(link.link.grid.cn_count, link.link.producer.grid.cn_count)
        if some and cns + count > _MOST_CNS:
            yield some, internal
            some, internal, cns = [], 0, 0
        some.append(link)
        internal += number < len(between)
        cns += count
    if some:
        yield some, internal
