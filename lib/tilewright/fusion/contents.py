"""What CNs read of tensors that no layer makes: weights and inputs of the network, each content once."""

from typing import TypedDict

import numpy as np

from tilewright.fusion.graph import SmallIntegers, SourceTensor
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.needs import Needs
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

    def add(self, needs: Needs, grid: LayerGrid, first_cn: int) -> None:
        """Record what the CNs of a layer need of one tensor."""
        boxes = self._boxes.setdefault(needs.tensor, [])
        content_of_cn = grid.combination_of(needs.dimensions)[0]
        row = np.searchsorted(needs.content, content_of_cn)
        found = row < len(needs.content)
        found[found] = needs.content[row[found]] == content_of_cn[found]
        cn = np.flatnonzero(found).astype(np.int64) + first_cn
        self._reads.append((needs.tensor, len(boxes), self._operands.index(needs.operand), cn, row[found]))
        boxes.append(needs.boxes)

    def columns(self) -> ReadColumns:
        """The columns, reads in the order of CNs, contents by tensor and box."""
        sources: list[SourceTensor] = []
        content_of: dict[tuple[str, int], Integers] = {}
        bounds: list[Integers] = []
        bits: list[Integers] = []
        source: list[Integers] = []
        axes: list[Integers] = []
        first_content = 0
        for tensor, boxes in self._boxes.items():
            known = self._workload.tensor_of[tensor]
            distinct, number = _distinct(np.concatenate(boxes))
            ends = np.cumsum([len(part) for part in boxes])
            for place, part in enumerate(np.split(number, ends[:-1])):
                content_of[tensor, place] = part + first_content
            source.append(np.full(len(distinct), len(sources), np.int64))
            bits.append(np.prod(distinct[:, :, 1] - distinct[:, :, 0], axis=1) * known.bits)
            axes.append(np.full(len(distinct), distinct.shape[1], np.int64))
            bounds.append(distinct.reshape(-1, 2))
            sources.append(SourceTensor(tensor, known.shape, known.bits, known.is_constant))
            first_content += len(distinct)
        parts = [
            (cn, np.full(len(cn), operand, np.int64), content_of[tensor, place][row])
            for tensor, place, operand, cn, row in self._reads
        ]
        none = np.zeros(0, np.int64)
        cn, operand, content = (
            (np.concatenate(columns) for columns in zip(*parts, strict=True)) if parts else (none,) * 3
        )
        order = np.argsort(cn, kind="stable")
        start = np.zeros(first_content + 1, np.int64)
        np.cumsum(np.concatenate([none, *axes]), out=start[1:])
        return ReadColumns(
            sources=tuple(sources),
            read_cn=cn[order],
            read_operand=operand[order].astype(np.int16),
            read_content=content[order],
            content_source=np.concatenate([none, *source]),
            content_bits=np.concatenate([none, *bits]),
            content_start=start,
            content_bounds=np.concatenate([none.reshape(0, 2), *bounds]),
        )


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
