"""Matrix products: Gemm, MatMul of any rank, their integer and fused variants."""

from dataclasses import dataclass

from tilewright.workload.access import TensorAccess, affine, fixed
from tilewright.workload.layer import Layer
from tilewright.workload.onnx.gemm import gemm_layer, matrix_product
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, access, lowers
from tilewright.workload.onnx.node import Shape
from tilewright.workload.onnx.operators.matrix_operands import (
    Axis,
    broadcast,
    constant_operands,
    scale_accesses,
    with_tensor_precision,
)
from tilewright.workload.onnx.roles import OperandRoles

_MOST_BATCH_AXES_OF_LAYER = 2
_BATCH_NAMES = ("B", "H")
_MOST_LOOPS = 16
_CODE_BITS = 8
"""Width of the elements in which MatMulNBits packs its weights."""


@dataclass(frozen=True)
class _Product:
    """A matrix product as tensors: axes of both operands and the output in terms of loops."""

    left: TensorAccess
    right: TensorAccess
    output: TensorAccess
    loops: tuple[tuple[str, int], ...]
    """C, D, K, then batches. D or K is absent where an operand is a vector."""


@lowers("Gemm")
def lower_gemm(op: Lowering) -> None:
    """O[d][k] += I[d][c] * W[c][k] with both transpositions; alpha, beta and the bias cost nothing."""
    product = matrix_product(op.node, _shapes(op, (0, 1)))
    left = ("C", "D") if op.node.integer("transA", 0) else ("D", "C")
    right = ("K", "C") if op.node.integer("transB", 0) else ("C", "K")
    loops = (("C", product.depth), ("D", product.rows), ("K", product.columns))
    accesses = _Product(access(op.input(0), *left), access(op.input(1), *right), access(op.output(), "D", "K"), loops)
    others = []
    if op.has_input(2):
        _check_broadcast(op, 2, (product.rows, product.columns))
        others.append(broadcast(op, op.input(2), ("D", "K")))
    _add(op, accesses, others, with_reference_layer=True)


@lowers("MatMul")
def lower_matmul(op: Lowering) -> None:
    """O[batches][d][k] += I[batches][d][c] * W[batches][c][k] with broadcasting; vectors have no rows or columns."""
    matrix_product(op.node, _shapes(op, (0, 1)))
    _add(op, _product(op, op.input(0), op.input(1)), [], with_reference_layer=True)


@lowers("MatMulInteger", "QLinearMatMul")
def lower_integer_matmul(op: Lowering) -> None:
    """A matrix product of integers; scales and zero points that are no single constants are read beside it."""
    is_linear = op.node.proto.op_type == "QLinearMatMul"
    first, second = (0, 3) if is_linear else (0, 1)
    product = _product(op, op.input(first), op.input(second))
    sizes = dict(product.loops)
    rows, columns, whole = ((1, 2), (4, 5), (6, 7)) if is_linear else ((2,), (3,), ())
    others = []
    for inputs, name in ((rows, "D"), (columns, "K"), (whole, "K")):
        others += _scales(op, inputs, name, sizes.get(name, 1), product)
    _add(op, product, others)


@lowers("FusedMatMul", domain="com.microsoft")
def lower_fused_matmul(op: Lowering) -> None:
    """A matrix product with transposed operands; alpha costs nothing."""
    if op.node.integer("transBatchA", 0) or op.node.integer("transBatchB", 0):
        op.unsupported("FusedMatMul with transposed batches is not modelled")
        return
    transposed = op.node.integer("transA", 0) != 0, op.node.integer("transB", 0) != 0
    _add(op, _product(op, op.input(0), op.input(1), transposed), [])


@lowers("MatMulNBits", domain="com.microsoft")
def lower_matmul_of_packed_weights(op: Lowering) -> None:
    """O[..][k] += I[..][c] * W[k][c], weights packed [columns, blocks, bytes]; scales cost nothing.

    Raises InputError for attributes and shapes that do not fit.
    """
    bits, block = op.node.integer("bits", 4), op.node.integer("block_size", 0)
    depth, columns = op.node.integer("K", 0), op.node.integer("N", 0)
    data, packed = op.input_shape(0), op.input_shape(1)
    if bits < 1 or _CODE_BITS % bits or block < 1 or depth < 1 or (block * bits) % _CODE_BITS:
        raise op.node.error("attributes bits, block_size and K", f"{bits}, {block}, {depth}")
    codes, blocks = _CODE_BITS // bits, -(-depth // block)
    if packed != (columns, blocks, block // codes) or data[-1] != depth:
        raise op.node.error(
            "shapes of the operands", f"{list(data)}, {list(packed)}", str([columns, blocks, block // codes])
        )
    if depth % block:
        op.unsupported("MatMulNBits with an incomplete last block is not modelled")
        return
    rows = tuple((f"D{axis}", size) for axis, size in enumerate(data[:-1]))
    names = [name for name, _ in rows]
    inner = affine(("CB", block), ("CE", codes), ("CN", 1))
    loops = (("CN", codes), ("CE", block // codes), ("CB", blocks), ("K", columns), *rows)
    others = []
    for index in range(2, len(op.node.inputs)):
        if op.has_input(index):
            others.append(_block_values(op, index, blocks, columns))
    op.nest(
        loops,
        access(op.output(), *names, "K"),
        {"I": access(op.input(0), *names, inner), "W": access(op.input(1), "K", "CB", "CE")},
        others=[other for other in others if other is not None],
        unit=MAC_ARRAY,
    )
    if any(other is None for other in others):
        op.approximated("scales or zero points of MatMulNBits in a form that is left out")


def _block_values(op: Lowering, index: int, blocks: int, columns: int) -> TensorAccess | None:
    shape = op.input_shape(index)
    if shape == (columns * blocks,):
        return access(op.input(index), affine(("K", blocks), ("CB", 1)))
    return access(op.input(index), "K", "CB") if shape == (columns, blocks) else None


def _shapes(op: Lowering, inputs: tuple[int, ...]) -> dict[str, Shape]:
    names = {op.input(index): op.input_shape(index) for index in inputs}
    return {**names, op.output(): op.output_shape()}


def _product(op: Lowering, first: str, second: str, transposed: tuple[bool, bool] = (False, False)) -> _Product:
    """Loops and accesses of a product of two tensors. Raises InputError for shapes that do not fit."""
    shapes, out = (op.shape(first), op.shape(second)), op.output_shape()
    if not shapes[0] or not shapes[1]:
        raise op.node.error("an operand of a matrix product is a scalar")
    left, right = (
        (*shape[:-2], shape[-1], shape[-2]) if swap and len(shape) > 1 else shape
        for shape, swap in zip(shapes, transposed, strict=True)
    )
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    tail = (*(("D", size) for size in rows), *(("K", size) for size in columns))
    batch = out[: len(out) - len(tail)]
    depth = right[-2] if len(right) > 1 else right[0]
    if left[-1] != depth or out != (*batch, *rows, *columns):
        raise op.node.error("shapes of the operands and the output", f"{list(left)}, {list(right)}, {list(out)}")
    names = _BATCH_NAMES[: len(batch)] + tuple(f"B{axis}" for axis in range(2, len(batch)))
    both: list[TensorAccess] = []
    for tensor, shape, own, swap in zip(
        (first, second), (left, right), (("D", "C"), ("C", "K")), transposed, strict=True
    ):
        kept: tuple[str, ...] = own if len(shape) > 1 else ("C",)
        batches = _batch_axes(op, shape[:-2], batch, names)
        both.append(access(tensor, *batches, *(kept[::-1] if swap else kept)))
    loops = (("C", depth), *tail, *zip(names, batch, strict=True))
    return _Product(both[0], both[1], access(op.output(), *names, *(name for name, _ in tail)), loops)


def _batch_axes(op: Lowering, own: Shape, batch: Shape, names: tuple[str, ...]) -> list[Axis]:
    if len(own) > len(batch):
        raise op.node.error("batch dimensions of an operand", str(list(own)), f"at most {len(batch)}")
    axes: list[Axis] = []
    start = len(batch) - len(own)
    for size, full, name in zip(own, batch[start:], names[start:], strict=True):
        if size not in (1, full):
            raise op.node.error("batch dimensions of an operand", str(list(own)), str(list(batch)))
        axes.append(fixed() if size == 1 else name)
    return axes


def _add(op: Lowering, product: _Product, others: list[TensorAccess], *, with_reference_layer: bool = False) -> None:
    """The nest of a product. A constant first operand is W; its layer up to two batches is that of zigzag-dse."""
    if len(product.loops) > _MOST_LOOPS:
        op.unsupported(f"a matrix product with more than {_MOST_LOOPS} dimensions is not modelled")
        return
    exchanged = op.is_constant(product.left.tensor) and not op.is_constant(product.right.tensor)
    inputs = {"W": product.left, "I": product.right} if exchanged else {"I": product.left, "W": product.right}
    layer, loops, own = None, product.loops, dict(product.loops)
    if with_reference_layer and len(own.keys() - {"C", "D", "K"}) <= _MOST_BATCH_AXES_OF_LAYER:
        layer = _reference_layer(op, inputs, exchanged=exchanged)
        loops = tuple((name, own.get(name, 1)) for name, _ in layer.loop_sizes)
    op.nest(loops, product.output, inputs, others=others, unit=MAC_ARRAY, layer=layer)


def _reference_layer(op: Lowering, inputs: dict[str, TensorAccess], *, exchanged: bool) -> Layer:
    tensors = {"O": op.output(), **{operand: given.tensor for operand, given in inputs.items()}}
    activation, weight = (1, 0) if exchanged else (0, 1)
    roles = OperandRoles(activation, weight, constant_operands(op, tensors), ())
    layer = gemm_layer(op.node, matrix_product(op.node, _shapes(op, (0, 1))), roles, op.profile)
    return with_tensor_precision(op, layer, tensors)


def _check_broadcast(op: Lowering, index: int, full: Shape) -> None:
    shape = op.input_shape(index)
    aligned = full[len(full) - len(shape) :] if len(shape) <= len(full) else ()
    if len(shape) > len(full) or any(size not in (1, whole) for size, whole in zip(shape, aligned, strict=True)):
        raise op.node.error("shape of the bias", str(list(shape)), f"one that is broadcast to {list(full)}")


def _scales(op: Lowering, inputs: tuple[int, ...], name: str, size: int, product: _Product) -> list[TensorAccess]:
    """Scales and zero points of the rows or columns: one, one for each, or with batches as [batches, rows, 1]."""
    found = []
    batches = [axis for axis in product.output.axes if axis.terms[0][0] not in ("D", "K")]
    for index in inputs:
        shape = op.input_shape(index) if op.has_input(index) else ()
        if len(shape) <= 1 or name not in dict(product.loops):
            found += scale_accesses(op, (index,), name, size)
        elif any(extent > 1 for extent in shape) or not op.is_constant(op.input(index)):
            own: tuple[Axis, ...] = ("D", fixed()) if name == "D" else (fixed(), "K")
            found.append(broadcast(op, op.input(index), (*batches, *own)))
    return found
