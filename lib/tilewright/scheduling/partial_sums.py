"""Partial sums that CNs hand on: where a reduction is cut into steps, each step adds to what the one before made.

The CN graph orders the steps of a group and lets data flow from the last one only. In between, the sums so far must be
kept: each step but the last makes a piece of partial sums that the next step of the same output tile needs. A step
that adds in place keeps both pieces for its run, which is more than it needs, never less.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.fusion.graph import CnGraph, CnLayer
from tilewright.fusion.grid import Integers
from tilewright.profile import CORRECTED
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT
from tilewright.workload.relevancy import operand_bits


@dataclass(frozen=True, eq=False)
class PartialSums:
    """Pieces of partial sums; [piece] in all columns."""

    bits: Integers
    producer: Integers
    """CN that makes it"""
    reader: Integers
    """CN that adds to it"""
    layer: Integers
    """number of the layer in the CN graph"""


def partial_sums(workload: Workload, graph: CnGraph) -> PartialSums:
    """The partial sums of all layers whose reductions are cut, by layer, then by output tile."""
    none = np.zeros(0, np.int64)
    columns: list[tuple[Integers, ...]] = [(none,) * 4]
    nodes = [node for node in workload.nodes if node.layer is not None]
    for number, (node, layer) in enumerate(zip(nodes, graph.layers, strict=True)):
        if not _reduced_dimensions(node, layer):
            continue
        producer, reader = _steps(node, layer)
        shapes, of_piece = np.unique(graph.shape[producer], return_inverse=True)
        bits = np.array([operand_bits(graph.shapes[shape], OUTPUT, CORRECTED) for shape in shapes], np.int64)
        columns.append((bits[of_piece.reshape(-1)], producer, reader, np.full(len(producer), number, np.int64)))
    return PartialSums(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _reduced_dimensions(node: WorkloadNode, layer: CnLayer) -> tuple[str, ...]:
    """Dimensions that are cut and that no output of the layer is indexed by."""
    written = {
        name for index_map in node.index_maps for axis in index_map.output.axes for name, factor in axis.terms if factor
    }
    return tuple(dimension for dimension in layer.grid.tiled_dimensions if dimension not in written)


def _steps(node: WorkloadNode, layer: CnLayer) -> tuple[Integers, Integers]:
    """(CN, the next CN that adds to the same output tile)."""
    reduced = _reduced_dimensions(node, layer)
    tile, _ = layer.grid.combination_of([name for name in layer.grid.tiled_dimensions if name not in reduced])
    order = np.argsort(tile, kind="stable").astype(np.int64)
    same = tile[order[1:]] == tile[order[:-1]]
    return order[:-1][same] + layer.first_cn, order[1:][same] + layer.first_cn
