"""Zeros of operands: energy that gating saves, and size of compressed data, from the share of zeros of each operand.

The hardware file says which zeros stop an operation and which data are compressed, and the workload says how many zeros
each operand has. Each element is zero or not, independently of all other elements. The format and both mechanisms are
those of Eyeriss (Chen et al., IEEE JSSC 52(1), 2017, sections IV-D and V-E); docs/model/zeros.md has the formulas.
"""

import math
from collections.abc import Mapping

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.base.operator_groups import MAC_TYPES, bare_type
from tilewright.base.profile import ModelProfile
from tilewright.hardware.core import DIRECTIONS, FL, TH, Core, RunLength
from tilewright.hardware.zero_checks import RUN_LENGTH
from tilewright.mapping.spatial import SpatialLoops
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_relevancy

_DOWNSAMPLING = "Conv_downsample"
"""Operator type of some convolutions in workload files. ONNX has no operator of this type."""
NOISE = 1e-12
"""Relative tolerance. A quotient counts as an integer if it is this close to an integer."""


def pairs_an_element(run_bits: int, zeros: float) -> float:
    """Expected number of pairs of a run-length code for one element, if the share `zeros` of the elements is zero.

    A pair is a run of zeros and the element after the run. The element is not zero, except after a run of the maximum
    length, 2^run_bits - 1 zeros, where it can be a zero, too. The expected number is 1 without zeros, and 1 /
    2^run_bits if all elements are zero.
    """
    longest: int = 2**run_bits
    return 1.0 / longest if zeros >= 1.0 else (1.0 - zeros) / (1.0 - zeros**longest)


def compressed_share(code: RunLength, bits: int, zeros: float) -> float:
    """Expected size of compressed data as a share of the size of the plain data. The result is above 1 if there are few
    zeros.

    Raises MappingError if an element of `bits` bits does not fit into a pair.
    """
    if code.pairs * (code.run_bits + bits) > code.word_bits:
        raise MappingError(
            f"{RUN_LENGTH}: {code.pairs} pairs of {code.run_bits} + {bits} bits do not fit into a word of"
            f" {code.word_bits} bits"
        )
    return code.word_bits / code.pairs / bits * pairs_an_element(code.run_bits, zeros)


def compressed_sizes(layer: Layer, core: Core, link: Mapping[str, str]) -> dict[tuple[str, int], float]:
    """Size of compressed data as a share of the plain data, by (operand of the layer, index of the memory). Operands
    without a given share of zeros are not compressed.

    Raises MappingError if an element does not fit into a pair of the run-length code.
    """
    found = {}
    for k, memory in enumerate(core.memories):
        code = memory.run_length
        for operand in layer.operands if code is not None else ():
            key = FINAL_OUTPUT if operand == OUTPUT else operand
            bits = layer.bits_of[key]
            if code is not None and link[operand] in code.operands and key in layer.zeros_of and bits > 0:
                found[operand, k] = compressed_share(code, bits, layer.zeros_of[key])
    return found


def check_widths(layer: Layer, core: Core, link: Mapping[str, str]) -> None:
    """Raise MappingError if a port would move less than one bit of plain data per cycle, because compression makes the
    data larger."""
    for (operand, k), share in compressed_sizes(layer, core, link).items():
        memory = core.memories[k]
        for (owner, _), place in memory.port_of.items():
            port = memory.ports[place]
            if owner == link[operand] and port.bandwidth_max_bits * (1 + NOISE) < share:
                raise MappingError(
                    f"{RUN_LENGTH}: port {port.name} of {memory.name} has {port.bandwidth_max_bits} bits per cycle, but"
                    f" the run-length code turns each bit of {operand} into {share:.3g} bits"
                )


def least_sizes(layer: Layer, core: Core, link: Mapping[str, str]) -> dict[tuple[str, int], float]:
    """Lower bounds for sizes of moved data, by (operand of the layer, index of the memory). The sizes are shares of the
    plain data. The bounds are the sizes of `compressed_sizes`, but at most 1 for the output, because its partial sums
    are not compressed.
    """
    sizes = compressed_sizes(layer, core, link)
    return {place: min(1.0, size) if place[0] == OUTPUT else size for place, size in sizes.items()}


def link_sizes(
    layer: Layer, core: Core, link: Mapping[str, str], chains: Mapping[str, tuple[int, ...]], shape: tuple[int, ...]
) -> np.ndarray | None:
    """Size of the data that each link moves, as a share of the plain data: array of shape `shape`, with the axes
    operand, memory and direction. None if no data are compressed.

    A port of `w` bits moves `w / share` bits of plain data per cycle. Inputs, and final outputs that move upwards (FL,
    TH), are compressed. Partial sums are not compressed. On links with compressed final outputs, partial sums count
    with more bits (`sum_bits`), so that bits divided by width gives the right number of cycles. Partial sums that are
    read back (TL, FH) have the plain width.
    """
    memories = compressed_sizes(layer, core, link)
    if not memories:
        return None
    found = np.ones(shape)
    for o, operand in enumerate(layer.operands):
        for m, k in enumerate(chains[operand]):
            ways = (FL, TH) if operand == OUTPUT else range(len(DIRECTIONS))
            for x in ways:
                found[o, m, x] = memories.get((operand, k), 1.0)
    return found


def gates(
    layer: Layer,
    core: Core,
    link: Mapping[str, str],
    levels: Mapping[str, tuple[SpatialLoops, ...]],
    profile: ModelProfile,
) -> np.ndarray:
    """Share of the cycles in which the read of an operand from its innermost memory is left out, for each operand. A
    read is left out if zeros of the other input stop all lanes that the memory serves. The share is 0 for an operand
    whose reads are never left out.

    `levels` has the spatial loops of each operand. The first entry of an operand has the loops between the array and
    the innermost memory. Lanes that use different elements of the other input stop independently. Lanes of a sliding
    window count as lanes with different elements, even where they share elements.
    """
    found = np.zeros(len(layer.operands))
    for o, operand in enumerate(layer.operands):
        share = 1.0
        for other, zeros in gating_zeros(layer, core, link, operand).items():
            same = operand_relevancy(layer, other, profile).irrelevant
            lanes = math.prod(math.ceil(factor * (1 - NOISE)) for d, factor in levels[operand][0] if d not in same)
            share *= 1.0 - zeros**lanes
        found[o] = 1.0 - share
    return found


def plain_widths(widths: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Bits of plain data that ports move per cycle, if the data have only a share of their plain size. `widths` has the
    widths of the ports in bits. The results are rounded down to whole bits, but are at least 1.
    """
    return np.where(widths > 0, np.maximum(1, np.floor(widths / shares * (1 + NOISE))), 0).astype(np.int64)


def plain_width(width: int, share: float) -> int:
    """Bits of plain data that one port of `width` bits moves per cycle (`plain_widths`)."""
    return int(plain_widths(np.array(width), np.array(share)))


def gating_zeros(layer: Layer, core: Core, link: Mapping[str, str], read: str) -> dict[str, float]:
    """Shares of zeros of those inputs whose zeros make reads of another input, `read`, from its innermost memory
    unnecessary: share by input. {} if the hardware file does not say that such reads are left out.
    """
    gating = core.operational_array.zero_gating
    if gating is None or read == OUTPUT or link[read] not in gating.reads_of:
        return {}
    shares = _stopping(layer, core, link)
    return {operand: zeros for operand, zeros in shares.items() if operand != read}


def least_read_share(layer: Layer, core: Core, link: Mapping[str, str], read: str) -> float:
    """Lower bound on the reads of operand `read` from its innermost memory, as a share of the reads in a layer without
    zeros. Zeros of the other input make some reads unnecessary. The bound is exact if each read serves one operation.
    """
    return math.prod((1.0 - zeros for zeros in gating_zeros(layer, core, link, read).values()), start=1.0)


def active_share(layer: Layer, core: Core, link: Mapping[str, str]) -> float:
    """Share of a layer's operations that take energy. The core stops an operation if certain inputs have a zero, and a
    stopped operation takes no energy.
    """
    return math.prod((1.0 - zeros for zeros in _stopping(layer, core, link).values()), start=1.0)


def least_active_share(layer: Layer, core: Core) -> float:
    """Lower bound of `active_share`, whatever the memory operands of the layer are. The bound is 1 if no zeros stop
    operations.
    """
    if core.operational_array.zero_gating is None or not _multiplies(layer):
        return 1.0
    return math.prod((1.0 - layer.zeros_of.get(one, 0.0) for one in layer.input_operands), start=1.0)


def _stopping(layer: Layer, core: Core, link: Mapping[str, str]) -> dict[str, float]:
    """Shares of zeros that stop an operation, by input. Inputs without a given share are left out. Only
    multiply-accumulates are stopped: the result of any other operation can depend on its other input."""
    gating = core.operational_array.zero_gating
    inputs = layer.input_operands if gating is not None and _multiplies(layer) else ()
    return {
        operand: layer.zeros_of[operand]
        for operand in inputs
        if gating is not None and link.get(operand) in gating.operands and operand in layer.zeros_of
    }


def _multiplies(layer: Layer) -> bool:
    """True if the operations of a layer are multiply-accumulates of two inputs."""
    types = (*MAC_TYPES, _DOWNSAMPLING)
    return len(layer.input_operands) == 2 and bare_type(layer.operator_type) in types
