"""What CNs read of tensors that no layer makes: weights and inputs of the network, each content once."""

from typing import TypedDict

import numpy as np

from tilewright.fusion.graph import SmallIntegers, SourceTensor
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Demand
from tilewright.workload.access import Boxes
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
        self._boxes: dict[str, list[Boxes]] = {}
        self._reads: list[tuple[str, int, int, Integers, Integers]] = []
        """(tensor, place in its list of boxes, operand, [read] CN, [read] row of the boxes)"""

    def add(self, operand: str, tensor: str, demand: Demand, reading: tuple[Integers, Integers], first_cn: int) -> None:
        """Record what the CNs of a layer need of one tensor; `reading` is that of `reading_cns`."""
        boxes = self._boxes.setdefault(tensor, [])
        cn, row = reading
        self._reads.append((tensor, len(boxes), self._operands.index(operand), cn + first_cn, row))
        boxes.append(demand.boxes)

    def columns(self) -> ReadColumns:
        """The columns, reads in the order of CNs, contents by tensor and box."""
        sources: list[SourceTensor] = []
        content_of: dict[tuple[str, int], Integers] = {}
        bounds: list[Integers] = []
        counts: list[int] = []
        """Contents of each tensor."""
        first_content = 0
        for tensor, boxes in self._boxes.items():
            known = self._workload.tensor_of[tensor]
            if len(boxes) == 1 and len(boxes[0]) == 1:
                (distinct,) = boxes
                content_of[tensor, 0] = np.full(1, first_content)
            else:
                distinct, number = _distinct(np.concatenate(boxes))
                ends = np.cumsum([len(part) for part in boxes])
                for place, part in enumerate(np.split(number, ends[:-1])):
                    content_of[tensor, place] = part + first_content
            counts.append(len(distinct))
            bounds.append(distinct.reshape(-1, 2))
            sources.append(SourceTensor(tensor, known.shape, known.bits, known.is_constant))
            first_content += len(distinct)
        none = np.zeros(0, np.int64)
        cn = np.concatenate([none, *(cn for _, _, _, cn, _ in self._reads)])
        operands = np.array([operand for _, _, operand, _, _ in self._reads], np.int16)
        operand = np.repeat(operands, [len(cn) for _, _, _, cn, _ in self._reads])
        content = np.concatenate([none, *(content_of[tensor, place][row] for tensor, place, _, _, row in self._reads)])
        order = np.argsort(cn, kind="stable")
        start = np.zeros(first_content + 1, np.int64)
        np.cumsum(np.repeat(np.array([len(source.shape) for source in sources], np.int64), counts), out=start[1:])
        all_bounds = np.concatenate([none.reshape(0, 2), *bounds])
        element_bits = np.repeat(np.array([source.bits for source in sources], np.int64), counts)
        return ReadColumns(
            sources=tuple(sources),
            read_cn=cn[order],
            read_operand=operand[order],
            read_content=content[order],
            content_source=np.repeat(np.arange(len(sources)), counts),
            content_bits=element_bits * _element_counts(all_bounds, start),
            content_start=start,
            content_bounds=all_bounds,
        )


def reading_cns(demand: Demand, grid: LayerGrid) -> tuple[Integers, Integers]:
    """([read] CN in the layer, [read] entry of the demand)."""
    content_of_cn, content_count, _ = grid.contents(demand.dimensions)
    if len(demand.content) == content_count:
        return np.arange(grid.cn_count, dtype=np.int64), content_of_cn
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


def _distinct(boxes: Boxes) -> tuple[Boxes, Integers]:
    """(distinct boxes in lexicographic order, [box] its number among them)."""
    columns = boxes.reshape(len(boxes), -1)
    if not columns.shape[1] or not len(boxes):
        return boxes[:1], np.zeros(len(boxes), np.int64)
    order = np.lexsort(columns.T[::-1])
    ordered = columns[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    number = np.empty(len(boxes), np.int64)
    number[order] = np.cumsum(is_new) - 1
    return boxes[order[is_new]], number
