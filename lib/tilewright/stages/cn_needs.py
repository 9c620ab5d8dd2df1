"""How much of each operand the CNs of a class keep while they run."""

import numpy as np

from tilewright.fusion.graph import CnGraph
from tilewright.fusion.pieces import data_pieces
from tilewright.profile import CORRECTED
from tilewright.scheduling.cost_classes import CostClass, CostClasses
from tilewright.workload.graph import Workload
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_bits, operand_elements

OTHER = ""
"""What CNs read by no operand of their layer, as a bias."""


def class_needs(graph: CnGraph, workload: Workload, classes: CostClasses) -> tuple[dict[str, int], ...]:
    """[class] layer operand, or OTHER -> bits of the largest CN.

    An operand is as large as the pieces that a scheduler keeps for it, which move as wholes, and at least as large as
    the tile of the loop nest. Partial sums that are taken and those that are made count both.
    """
    pieces = data_pieces(workload, graph)
    count = max(len(graph.operands), 1)
    place = pieces.need_cn * count + pieces.need_operand
    read = np.bincount(place, pieces.bits[pieces.need_piece], minlength=graph.cn_count * count)
    made = np.flatnonzero(pieces.producer >= 0)
    written = np.bincount(pieces.producer[made], pieces.bits[made], minlength=graph.cn_count)
    largest_read = np.zeros((len(classes.classes), count))
    np.maximum.at(largest_read, classes.of_cn, read.reshape(-1, count)[: graph.cn_count])
    largest_written = np.zeros(len(classes.classes))
    np.maximum.at(largest_written, classes.of_cn, written[: graph.cn_count])
    found = []
    for number, cost_class in enumerate(classes.classes):
        layer = graph.shapes[cost_class.shape]
        needs = {operand: operand_bits(layer, operand, CORRECTED) for operand in layer.input_operands}
        needs[OTHER] = 0
        for operand, bits in zip(graph.operands, largest_read[number].tolist(), strict=False):
            needs[operand if operand in needs else OTHER] = max(needs.get(operand, 0), int(bits))
        needs[OUTPUT] = max(int(largest_written[number]), _output_bits(layer, cost_class))
        found.append(needs)
    return tuple(found)


def _output_bits(layer: Layer, cost_class: CostClass) -> int:
    elements = operand_elements(layer, OUTPUT, CORRECTED)
    taken = elements * layer.bits_of[OUTPUT] if cost_class.takes_partial_sums else 0
    made = elements * layer.bits_of[OUTPUT if cost_class.leaves_partial_sums else FINAL_OUTPUT]
    return taken + made
