"""Elementwise operators of quantised networks: the quantisers of ONNX, onnxruntime and qonnx, and the arithmetic
operators whose names begin with QLinear.

Each operator needs one operation per element. A scale or zero point with a single element is part of the instruction
and is not read as an operand. Scales per channel or per block are an operand.
"""

from collections.abc import Sequence

from tilewright.workload.access import IndexMap, TensorAccess, affine, loop
from tilewright.workload.onnx.lowering import Lowering, access, lowers
from tilewright.workload.onnx.operators.elementwise import (
    Loops,
    element_access,
    element_loops,
    elementwise,
)
from tilewright.workload.onnx.operators.reduction import normalised_axes

QONNX_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")


@lowers("QuantizeLinear", "DequantizeLinear")
@lowers("QuantizeLinear", "DequantizeLinear", domain="com.microsoft")
def lower_linear_quantiser(op: Lowering) -> None:
    """Quantiser with one operation per element. There is one scale for the whole tensor, one scale for every index
    along `axis`, or one scale for every block of `block_size` elements along `axis`."""
    shape = op.input_shape()
    given = [op.input(index) for index in (1, 2) if op.has_input(index)]
    if all(op.shape(name) in ((), (1,)) for name in given):
        elementwise(op, op.output(), [op.input()], others=given)
        return
    axis = normalised_axes(op, [op.node.integer("axis", 1)], len(shape))[0]
    loops = element_loops(shape)
    name, size = loops[axis]
    block = op.node.integer("block_size", 0)
    if block <= 0:
        data = [loop(own) for own, _ in loops]
        accesses = [access(tensor, name) if op.shape(tensor) else access(tensor) for tensor in given]
    else:
        count = -(-size // block)
        loops = (*loops[:axis], (name, count), (f"{name}IN", block), *loops[axis + 1 :])
        data = [affine((own, block), (f"{own}IN", 1)) if own == name else loop(own) for own, _ in element_loops(shape)]
        accesses = [access(tensor, *(own for own, _ in element_loops(shape))) for tensor in given]
        if size % block:
            op.approximated("the last block of a quantiser is incomplete but counts as complete")
    inputs = {"I": TensorAccess(op.input(), tuple(data)), "W": accesses[0]}
    op.nest(loops, TensorAccess(op.output(), tuple(data)), inputs, others=accesses[1:])


def lower_qonnx(op: Lowering) -> None:
    """Quantiser of qonnx with one operation per element. Scale, zero point and bit widths are broadcast against the
    data.
    """
    settings = [op.input(index) for index in range(1, len(op.node.inputs)) if op.has_input(index)]
    elementwise(op, op.output(), [op.input(), *settings[:1]], others=settings[1:])


for _domain in QONNX_DOMAINS:
    lowers("Quant", "IntQuant", "BipolarQuant", "Trunc", "FloatQuant", domain=_domain)(lower_qonnx)


def _settings(op: Lowering, indices: Sequence[int]) -> list[str]:
    return [op.input(index) for index in indices if op.has_input(index)]


@lowers("QLinearAdd", "QLinearMul", domain="com.microsoft")
def lower_quantised_binary(op: Lowering) -> None:
    """Sum or product. The inputs are A with its scale and zero point, B with its scale and zero point, and the scale
    and zero point of the result."""
    elementwise(op, op.output(), [op.input(0), op.input(3)], others=_settings(op, (1, 2, 4, 5, 6, 7)))


@lowers("QLinearSigmoid", "QLinearLeakyRelu", domain="com.microsoft")
def lower_quantised_unary(op: Lowering) -> None:
    """Function of one tensor. The inputs are X with its scale and zero point, and the scale and zero point of the
    result."""
    elementwise(op, op.output(), [op.input()], others=_settings(op, (1, 2, 3, 4)))


@lowers("QLinearConcat", domain="com.microsoft")
def lower_quantised_concat(op: Lowering) -> None:
    """Concatenation with one operation per element, and a move of each element to its position along `axis`.

    The inputs are the scale and the zero point of the result. Then come three inputs for each part: a tensor, its scale
    and its zero point.
    """
    axis = normalised_axes(op, [op.node.integer("axis", 1)], len(op.output_shape()))[0]
    maps, offset = [], 0
    for number, index in enumerate(range(2, len(op.node.inputs), 3)):
        own = op.input_shape(index)
        scaled = op.temporary(f"scaled{number}", own, op.output())
        elementwise(op, scaled, [op.input(index)], others=_settings(op, (index + 1, index + 2)), part=f"scaled{number}")
        loops: Loops = element_loops(own)
        places = [loop(name, 1, offset if place == axis else 0) for place, (name, _) in enumerate(loops)]
        maps.append(IndexMap(loops, TensorAccess(op.output(), tuple(places)), element_access(scaled, own, loops)))
        offset += own[axis]
    op.move(*maps)
