"""What computation nodes (CNs) read that no layer makes: weights and inputs of the network, each content once."""

from collections.abc import Iterator, Sequence
from typing import TypedDict

import numpy as np

from tilewright.fusion.graph import SmallIntegers, SourceTensor
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Demand
from tilewright.workload.dependencies import Boxes
from tilewright.workload.graph import Workload


class ReadColumns(TypedDict):
    """The columns of a CN graph on what is read from outside."""

    sources: tuple[SourceTensor, ...]
    read_cn: Integers
    read_operand: SmallIntegers
    read_content: Integers
    content_source: Integers
    content_bits: Integers
    content_start: Integers
    content_bounds: Integers


class ReadTable:
    """Collects reads; a content is a box of a tensor, whoever reads it."""

    def __init__(self, workload: Workload, operands: tuple[str, ...]) -> None:
        self._workload = workload
        self._operands = operands
        self._demands: dict[str, list[Demand]] = {}
        self._reads: list[tuple[str, int, int, Integers, Integers]] = []
        """(tensor, operand, first CN of the layer, [read] CN in it, [read] entry of the tensor's next demand)"""

    def add(self, operand: str, tensor: str, demand: Demand, reading: tuple[Integers, Integers], first_cn: int) -> None:
        """Record what the CNs of a layer need of one tensor; `reading` is that of `reading_cns`."""
        self._demands.setdefault(tensor, []).append(demand)
        self._reads.append((tensor, self._operands.index(operand), first_cn, *reading))

    def columns(self) -> ReadColumns:
        """The columns, reads in the order of CNs, contents by tensor and box."""
        none = np.zeros(0, np.int64)
        sources: list[SourceTensor] = []
        first_content: dict[str, int] = {}
        contents_of: dict[str, Iterator[Integers]] = {}
        """Tensor -> for each of its demands [entry] content among those of the tensor"""
        bounds: list[Integers] = [none.reshape(0, 2)]
        counts: list[int] = []
        """Contents of each tensor."""
        content_count = 0
        for tensor, demands in self._demands.items():
            known = self._workload.tensor_of[tensor]
            first_content[tensor] = content_count
            distinct, of_demands = _distinct_contents(demands)
            contents_of[tensor] = iter(of_demands)
            counts.append(len(distinct))
            bounds.append(distinct.reshape(-1, 2))
            content_count += counts[-1]
            sources.append(SourceTensor(tensor, known.shape, known.bits, known.is_constant))
        numbers: list[tuple[int, int, int]] = []
        cns: list[Integers] = [none]
        contents: list[Integers] = [none]
        for tensor, operand, first_cn, cn, entry in self._reads:
            numbers.append((first_cn, operand, first_content[tensor]))
            cns.append(cn)
            contents.append(next(contents_of[tensor])[entry])
        lengths = [len(cn) for cn in cns[1:]]
        first_cns, operands, first_contents = np.array(numbers, np.int64).reshape(-1, 3).T.repeat(lengths, axis=1)
        read_cn = np.concatenate(cns) + first_cns
        order = np.argsort(read_cn, kind="stable")
        start = np.zeros(content_count + 1, np.int64)
        ranks_and_bits = np.array([(len(source.shape), source.bits) for source in sources], np.int64).reshape(-1, 2)
        ranks, element_bits = ranks_and_bits.T.repeat(counts, axis=1)
        ranks.cumsum(out=start[1:])
        all_bounds = np.concatenate(bounds)
        return ReadColumns(
            sources=tuple(sources),
            read_cn=read_cn[order],
            read_operand=operands.astype(np.int16)[order],
            read_content=(np.concatenate(contents) + first_contents)[order],
            content_source=np.arange(len(sources)).repeat(counts),
            content_bits=element_bits * _element_counts(all_bounds, start),
            content_start=start,
            content_bounds=all_bounds,
        )


def reading_cns(demand: Demand, grid: LayerGrid) -> tuple[Integers, Integers]:
    """([read] CN in the layer, [read] entry of the demand)."""
    content_of_cn, _ = grid.combination_of(demand.dimensions)
    row = np.searchsorted(demand.content, content_of_cn)
    found = row < len(demand.content)
    found[found] = demand.content[row[found]] == content_of_cn[found]
    return np.flatnonzero(found).astype(np.int64), row[found]


def _element_counts(bounds: Integers, start: Integers) -> Integers:
    """[content] elements of its box; 1 for a scalar, which has no axes."""
    counts = np.ones(len(start) - 1, np.int64)
    has_axes = start[1:] > start[:-1]
    if has_axes.any():
        counts[has_axes] = np.multiply.reduceat(bounds[:, 1] - bounds[:, 0], start[:-1][has_axes])
    return counts


def _distinct_contents(demands: Sequence[Demand]) -> tuple[Boxes, list[Integers]]:
    """(distinct boxes in lexicographic order, for each demand [entry] number of its box among them)."""
    boxes = [demand.boxes for demand in demands]
    distinct, number = _distinct(np.concatenate(boxes))
    return distinct, np.split(number, np.cumsum([len(part) for part in boxes[:-1]]))


def _distinct(boxes: Boxes) -> tuple[Boxes, Integers]:
    """(distinct boxes in lexicographic order, [box] its number among them)."""
    columns = boxes.reshape(len(boxes), -1)
    if not columns.shape[1] or len(boxes) < 2:
        return boxes[:1], np.zeros(len(boxes), np.int64)
    steps = columns[1:] - columns[:-1]
    if (steps >= 0).all() and steps.any(axis=1).all():  # as the tiles of a layer are: in order, and none twice
        return boxes, np.arange(len(boxes), dtype=np.int64)
    order = np.lexsort(columns.T[::-1])
    ordered = columns[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    number = np.empty(len(boxes), np.int64)
    number[order] = np.cumsum(is_new) - 1
    return boxes[order[is_new]], number
