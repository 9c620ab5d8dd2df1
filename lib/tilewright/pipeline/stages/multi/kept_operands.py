"""Operands that a computation node (CN) keeps on the core, the sets of operands that can stream instead, and the sizes
of the buffers for these streams. docs/multi-core-model/node-costs.md explains the rules.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.base.profile import CORRECTED
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy, top_memories
from tilewright.multicore.nodes.graph import CnGraph, once_a_graph
from tilewright.multicore.nodes.pieces import data_pieces
from tilewright.multicore.scheduling.cost_classes import CostClass, CostClasses
from tilewright.workload.graph import Workload
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_bits, operand_elements

_HOLDERS_OF_OTHERS = ("I2", "I1", "O")
"""Memory operands in the order of preference for data that are not operands of the layer, such as a bias. A CN keeps
such data in the memory of the first operand in this list for which the core has a memory.
"""


@dataclass(frozen=True)
class Needs:
    """Numbers of bits that one CN keeps on the core while the CN runs: for each operand, and for other data."""

    bits: Mapping[str, int]
    """Number of bits of each memory operand that the CN keeps."""
    most_bits: Mapping[str, int]
    """Largest number of bits that each memory operand needs in any mapping. For outputs, this number counts the width
    of partial sums, if partial sums are wider than outputs. All other numbers equal those in `bits`.
    """
    other_bits: int = 0
    """Number of bits of data that are not operands of the layer, such as a bias. These data never stream."""


def stream_choices(core: Core, needs: Needs, also_what_fits: bool = False) -> tuple[tuple[str, ...], ...]:
    """Sets of memory operands that can stream, the smallest sets first. The result is `((),)` if all data fit the
    memories, so that no operand has to stream. It is () if the data that never stream do not fit.

    If a top memory is too small for all operands that use it, the smallest operands stay in the memory, and the others
    stream. Sets in which further operands stream are also tried: the buffers of streams also need capacity, and the
    sizes of these buffers are known only after the search.

    If outputs fit into a memory but their wider partial sums do not, only some loop orders are possible without
    streams. Both the empty set and sets with streams are then tried. With `also_what_fits`, sets with streams are
    always tried.
    """
    choices: list[list[tuple[str, ...]]] = []
    for memory, held in top_memories(core):
        operands = sorted((operand for operand in held if operand in needs.bits), key=lambda o: (needs.bits[o], o))
        room = memory.size_bits - (needs.other_bits if _holds_others(core, held) else 0)
        if room < 0:
            return ()
        if sum(needs.most_bits[operand] for operand in operands) <= room and not also_what_fits:
            continue
        sizes = itertools.accumulate(needs.bits[operand] for operand in operands)
        kept = sum(size <= room for size in sizes)
        choices.append([tuple(operands[count:]) for count in range(kept, -1, -1)])
    found = [tuple(sorted(itertools.chain(*combination))) for combination in itertools.product(*choices)]
    return tuple(sorted(found, key=lambda streams: (len(streams), found.index(streams))))


SMALLEST_SHARE = 32
"""Divisor for the smallest buffer of a stream: size of the streamed data / this number."""


def stream_buffers(core: Core, needs: Needs, streams: tuple[str, ...]) -> Iterator[Core]:
    """Copies of a core in which some top memories are smaller. The first result is the unchanged core.

    The copies have all combinations of smaller sizes for the memories through which the operands `streams` stream. A
    smaller size is a power of two, or the size of the memory halved one or more times.

    With a larger buffer, less data move, but the buffer takes longer to fill before the first result. If the whole
    memory were always the buffer, a larger memory could make a CN slower. Several sizes are therefore tried. If a
    memory is doubled, all sizes that were tried before are still tried. If the size of the memory is a power of two,
    this is true for every larger size, not only for the doubled size.
    """
    yield core
    choices: dict[str, list[int]] = {}
    for memory, held in top_memories(core):
        through = [operand for operand in held if operand in needs.bits and operand in streams]
        if through:
            stays = [operand for operand in held if operand in needs.bits and operand not in streams]
            kept = sum(needs.bits[operand] for operand in stays)
            kept += needs.other_bits if _holds_others(core, held) else 0
            data = sum(needs.most_bits[operand] for operand in through)
            whole = data + sum(needs.most_bits[operand] for operand in stays)
            sizes = _buffer_sizes(kept + data // SMALLEST_SHARE, memory.size_bits, whole)
            choices[memory.name] = [memory.size_bits, *sizes]
    for combination in itertools.islice(itertools.product(*choices.values()), 1, None):
        size_of = dict(zip(choices, combination, strict=True))
        resized = (replace(one, size_bits=size_of.get(one.name, one.size_bits)) for one in core.memories)
        yield replace(core, memories=tuple(resized))


def _buffer_sizes(least: int, size: int, whole: int) -> list[int]:
    """Sizes of buffers in bits, in descending order: powers of two, and `size` halved once or several times. All sizes
    are at least `least`, and smaller than both `size` and `whole`.
    """
    found = {1 << exponent for exponent in range(1, size.bit_length())}
    found |= {size >> halvings for halvings in range(1, size.bit_length())}
    return sorted((one for one in found if least <= one < min(size, whole)), reverse=True)


def _holds_others(core: Core, held: tuple[str, ...]) -> bool:
    hierarchy = memory_hierarchy(core)
    holder = next((operand for operand in _HOLDERS_OF_OTHERS if hierarchy.memories_of(operand)), None)
    return holder in held


OTHER = ""
"""Key in the tables of `class_needs`. It stands for data that a CN reads but that are not an operand of its layer, such
as a bias.
"""


@once_a_graph
def class_needs(graph: CnGraph, workload: Workload, classes: CostClasses) -> tuple[dict[str, int], ...]:
    """Tables of bits by operand, one table for each class of CNs. The bits of an operand are the most that any CN of
    the class needs. The operands are those of the layer, and OTHER for data that are not an operand of the layer.

    The bits of an operand are the bits of all its data pieces that the scheduler keeps on the core for the CN. The
    scheduler never divides a piece. The bits are at least those of the operand's tile in the loop nest. If the CN reads
    partial sums, its output counts twice: the partial sums that it reads, and the outputs that it writes.
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
