"""Edges of the CN graph along the links between layers, and what layers make and hand to the outside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilewright.fusion.axis_join import places
from tilewright.fusion.flows import Flows, Link, flows
from tilewright.fusion.graph import CnLayer, CnLink, SmallIntegers
from tilewright.fusion.grid import Integers

_MOST_CNS = 2**14
"""Links into fewer CNs than this are worked out together: more would save no time and take memory."""


class DataLink(NamedTuple):
    """A link between two layers, or from a layer to the outside."""

    link: Link
    producer: int
    """Number of the layer in the graph."""
    consumer: int
    """Number of the layer; of a link to the outside the column of bits that it adds to."""
    operand: str
    tensor: str
    bits: int
    """Of an element."""


@dataclass(frozen=True, eq=False)
class DataEdges:
    """Edges along links: by link, target and source, all ascending."""

    source: Integers
    """[edge] CN"""
    target: Integers
    """[edge] CN"""
    operand: SmallIntegers
    """[edge] place in the operands of the graph"""
    bits: Integers
    """[edge]"""
    links: tuple[CnLink, ...]
    """The links between layers."""
    outside_bits: Integers
    """[column, cn] bits that each CN adds to the columns along links to the outside"""


def data_edges(
    between: Sequence[DataLink], outside: Sequence[DataLink], layers: Sequence[CnLayer], operands: Sequence[str]
) -> DataEdges:
    """The edges along links between layers, and the bits along links to the two columns of the outside."""
    first_cn = [layer.first_cn for layer in layers]
    place_of = {operand: place for place, operand in enumerate(operands)}
    outside_bits = np.zeros((2, sum(layer.cn_count for layer in layers)), np.int64)
    columns, operand = [np.zeros((3, 0), np.int64)], [np.zeros(0, np.int16)]
    told: list[CnLink] = []
    for some, internal in _batches(between, outside):
        flow = _flows_of(some)
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


def _flows_of(links: Sequence[DataLink]) -> Flows:
    """What flows along links; those between layers that are cut and read alike are worked out once."""
    number_of: dict[Link, int] = {}
    numbers = [number_of.setdefault(link.link, len(number_of)) for link in links]
    flow = flows(tuple(number_of))
    if len(number_of) == len(links):
        return flow
    first, lengths = flow.start[:-1][numbers], (flow.start[1:] - flow.start[:-1])[numbers]
    start = np.append(0, lengths.cumsum())
    entry = places(first, lengths)
    return Flows(start, flow.target[entry], flow.source[entry], flow.elements[entry])


def _batches(between: Sequence[DataLink], outside: Sequence[DataLink]) -> Iterator[tuple[list[DataLink], int]]:
    """All links in their order, some at a time, and how many of these are between layers."""
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
