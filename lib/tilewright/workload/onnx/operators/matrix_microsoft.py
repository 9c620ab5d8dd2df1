"""Matrix products of the domain com.microsoft: fused with other operators, quantised, with packed weights."""

from dataclasses import replace

from tilewright.workload.access import IndexMap, TensorAccess, affine
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, NestOperand, access, lowers, nest_layer
from tilewright.workload.onnx.operators.elementwise import elementwise
from tilewright.workload.onnx.operators.matrix import (
    add_product,
    batch_names,
    broadcast,
    product_accesses,
    product_scales,
)
from tilewright.workload.onnx.precision import partial_sum_bits

_MICROSOFT = "com.microsoft"
_CODE_BITS = 8
"""Width of the elements in which MatMulNBits packs its weights."""


@lowers("FusedMatMul", "TransposeMatMul", domain=_MICROSOFT)
def lower_fused_matmul(op: Lowering) -> None:
    """A matrix product with transposed operands; alpha costs nothing."""
    if op.node.integer("transBatchA", 0) or op.node.integer("transBatchB", 0):
        op.unsupported("FusedMatMul with transposed batches is not modelled")
        return
    add_product(op, product_accesses(op, op.input(0), op.input(1), _transposed(op)), [])


@lowers("FusedGemm", domain=_MICROSOFT)
def lower_fused_gemm(op: Lowering) -> None:
    """A matrix product with a bias, which costs nothing, then one operation for each element: the activation."""
    product = product_accesses(op, op.input(0), op.input(1), _transposed(op))
    others = [broadcast(op, op.input(2), ("D", "K"), dict(product.loops))] if op.has_input(2) else []
    result = op.temporary("product", op.output_shape(), op.output())
    product = replace(product, output=replace(product.output, tensor=result))
    if add_product(op, product, others, part="product"):
        elementwise(op, op.output(), [result], part="activation", operator_type=op.node.text("activation", "Relu"))


@lowers("MatMulIntegerToFloat", "DynamicQuantizeMatMul", domain=_MICROSOFT)
def lower_matmul_to_float(op: Lowering) -> None:
    """A product of integers with the result in floats; scales, zero points and the bias cost nothing.

    DynamicQuantizeMatMul quantises its first operand itself; that costs nothing here, and it is told.
    """
    product = product_accesses(op, op.input(0), op.input(1))
    is_dynamic = op.node.proto.op_type == "DynamicQuantizeMatMul"
    rows, columns, bias = ((), (2, 3), 4) if is_dynamic else ((2, 4), (3, 5), 6)
    others = product_scales(op, product, rows, columns)
    if op.has_input(bias):
        others.append(broadcast(op, op.input(bias), product.output.axes, dict(product.loops)))
    add_product(op, product, others)
    if is_dynamic:
        op.approximated("DynamicQuantizeMatMul without the cost and the dependencies of its quantisation")


@lowers("QGemm", domain=_MICROSOFT)
def lower_quantised_gemm(op: Lowering) -> None:
    """A quantised matrix product; scales, zero points and the bias cost nothing."""
    product = product_accesses(op, op.input(0), op.input(3), _transposed(op))
    others = product_scales(op, product, (1, 2), (4, 5), (7, 8))
    if op.has_input(6):
        others.append(broadcast(op, op.input(6), ("D", "K"), dict(product.loops)))
    add_product(op, product, others)


@lowers("MatMulNBits", domain=_MICROSOFT)
def lower_matmul_of_packed_weights(op: Lowering) -> None:
    """O[..][k] += I[..][c] * W[k][c], weights packed [columns, blocks, bytes]; scales cost nothing.

    The depth c is three loops: blocks CB, bytes C, and elements of a byte CN; where the last block is incomplete it is
    one loop over elements of the packed width. Raises InputError for attributes and shapes that do not fit.
    """
    bits, block = op.node.integer("bits", 4), op.node.integer("block_size", 0)
    depth, columns = op.node.integer("K", 0), op.node.integer("N", 0)
    data, packed = op.input_shape(0), op.input_shape(1)
    if bits < 1 or _CODE_BITS % bits or block < 1 or depth < 1 or (block * bits) % _CODE_BITS:
        raise op.node.error("attributes bits, block_size and K", f"{bits}, {block}, {depth}")
    codes, blocks = _CODE_BITS // bits, -(-depth // block)
    expected = (columns, blocks, block // codes)
    fits = bool(data) and data[-1] == depth and op.output_shape() == (*data[:-1], columns)
    if packed != expected or not fits:
        raise op.node.error(
            "shapes of the operands", f"{list(data)}, {list(packed)}", f"[.., {depth}], {list(expected)}"
        )
    names = (*batch_names(len(data) - 2), "D")[-(len(data) - 1) :] if len(data) > 1 else ()
    outer = tuple(zip(names, data[:-1], strict=True))
    beside = [
        _block_values(op, index, blocks, columns) for index in range(2, len(op.node.inputs)) if op.has_input(index)
    ]
    if depth % block:
        _add_incomplete_blocks(op, outer, bits)
    else:
        op.nest(
            (("CN", codes), ("C", block // codes), ("CB", blocks), ("K", columns), *outer),
            access(op.output(), *names, "K"),
            {
                "I": access(op.input(0), *names, affine(("CB", block), ("C", codes), ("CN", 1))),
                "W": access(op.input(1), "K", "CB", "C"),
            },
            others=[other for other in beside if other is not None],
            unit=MAC_ARRAY,
        )
    if any(other is None for other in beside):
        op.approximated("MatMulNBits without the dependencies on zero points, indices or biases")


def _add_incomplete_blocks(op: Lowering, outer: tuple[tuple[str, int], ...], bits: int) -> None:
    """One loop over the depth; of the last block only the elements that there are count."""
    depth, columns = op.input_shape(0)[-1], op.output_shape()[-1]
    names = [name for name, _ in outer]
    loops = (("C", depth), ("K", columns), *outer)
    output, data = access(op.output(), *names, "K"), access(op.input(0), *names, "C")
    tensors = {"O": op.tensor(op.output()), "I": op.tensor(op.input(0))}
    weights = NestOperand(access(op.input(1), "K", "C"), (columns, depth), bits, op.is_constant(op.input(1)))
    operands = {
        "O": NestOperand(output, tensors["O"].shape, tensors["O"].bits),
        "I": NestOperand(data, tensors["I"].shape, tensors["I"].bits, op.is_constant(op.input(0))),
        "W": weights,
    }
    sums = partial_sum_bits(op.node, max(tensors["I"].bits, bits), tensors["O"].bits, True, op.policy)
    layer = nest_layer(op.node.name, op.node.proto.op_type, loops, operands, sums)
    _, blocks, block_bytes = op.input_shape(1)
    rows = (("K", columns), *outer)
    packed = IndexMap(
        (*rows, ("CB", blocks), ("CI", block_bytes)), output, access(op.input(1), "K", "CB", "CI"), "W", is_exact=False
    )
    op.nest(loops, output, {"I": data}, unit=MAC_ARRAY, layer=layer, further=[packed])


def _block_values(op: Lowering, index: int, blocks: int, columns: int) -> TensorAccess | None:
    """The access of one value for each block; None for another shape."""
    shape = op.input_shape(index)
    if shape == (columns * blocks,):
        return access(op.input(index), affine(("K", blocks), ("CB", 1)))
    return access(op.input(index), "K", "CB") if shape == (columns, blocks) else None


def _transposed(op: Lowering) -> tuple[bool, bool]:
    return op.node.integer("transA", 0) != 0, op.node.integer("transB", 0) != 0
