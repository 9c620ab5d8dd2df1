"""Matrix products: Gemm, MatMul of any rank, the integer variants of both, and the matrix products of the domain
com.microsoft.

The products of com.microsoft are fused with other operators, are quantised, or have packed weights. The lowering of
convolutions also uses this module: for accesses to scales and biases, and for the precision of a layer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, affine, fixed, index_range, loop
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.nests import NestOperand, nest_layer
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, access, lowers
from tilewright.workload.onnx.matrix_products import gemm_layer, matrix_product
from tilewright.workload.onnx.node import OperandRoles, Shape, overridden_bits, partial_sum_bits
from tilewright.workload.onnx.operators.elementwise import elementwise

Axis = AxisIndex | str
"""Index along an axis, or the name of the loop that is the index."""


def broadcast(op: Lowering, tensor: str, axes: Sequence[Axis], sizes: Mapping[str, int]) -> TensorAccess:
    """Access to a tensor that is broadcast to a result with the indices `axes`. Its axes are matched with the last axes
    of the result, and axes of size 1 are repeated.

    `sizes` are the sizes of the loops. Raises InputError for a tensor that does not broadcast to the result.
    """
    shape, indices = op.shape(tensor), [as_index(axis) for axis in axes]
    lengths = [index_range(index, sizes)[1] + 1 for index in indices]
    start = len(axes) - len(shape)
    fits = start >= 0 and all(size in (1, full) for size, full in zip(shape, lengths[start:], strict=True))
    if not fits:
        raise op.node.error(
            f"wrong shape of tensor '{tensor}'", str(list(shape)), f"a shape that broadcasts to {lengths}"
        )
    aligned = zip(shape, indices[start:], strict=True)
    return TensorAccess(tensor, tuple(fixed() if size == 1 else index for size, index in aligned))


def as_index(axis: Axis) -> AxisIndex:
    """Index along an axis, from an index or from the name of a loop."""
    return loop(axis) if isinstance(axis, str) else axis


def split_axis(outer: str, size: int, inner: str) -> AxisIndex:
    """Index `outer * size + inner`, for example of a channel in a group or of a feature in a head."""
    return affine((outer, size), (inner, 1))


def scale_accesses(op: Lowering, inputs: Iterable[int], channel: Axis, channels: int) -> list[TensorAccess]:
    """Accesses to scales and zero points. `inputs` are the indices of the inputs that hold the scales and zero points.
    Each input has a single value, or one value for each of `channels` channels; the index `channel` then selects the
    value.

    Missing inputs are left out. Constants of one element are left out, too, because they need no memory. Raises
    InputError for another shape.
    """
    accesses = []
    for index in inputs:
        if not op.has_input(index):
            continue
        tensor, shape = op.input(index), op.input_shape(index)
        elements = [size for size in shape if size != 1]
        if elements not in ([], [channels]):
            raise op.node.error(f"wrong shape of input {index}", str(list(shape)), f"one element, or {channels}")
        if elements or not op.is_constant(tensor):
            axes = tuple(fixed() if size == 1 else as_index(channel) for size in shape)
            accesses.append(TensorAccess(tensor, axes))
    return accesses


def constant_operands(op: Lowering, tensors: Mapping[str, str]) -> tuple[str, ...]:
    """Operands that are known before run time, with W before I. `tensors` gives the tensor of each operand."""
    return tuple(operand for operand in ("W", "I") if op.is_constant(tensors[operand]))


def with_tensor_precision(op: Lowering, layer: Layer, tensors: Mapping[str, str]) -> Layer:
    """Layer with new bits for each operand. The bits of an operand come from an attribute of the node, or from the
    tensor of the operand if the attribute is missing. The bits of partial sums come from `partial_sum_bits`.

    `tensors` gives the tensor of each of the operands O, I and W.
    """
    bits = {}
    for operand, name in tensors.items():
        tensor = op.tensor(name)
        stated = overridden_bits(op.node, is_weight=tensor.is_constant and operand != OUTPUT)
        bits[operand] = tensor.bits if stated is None else stated
    sums = partial_sum_bits(op.node, max(bits["W"], bits["I"]), bits[OUTPUT], True, op.policy)
    precision = (("W", bits["W"]), ("I", bits["I"]), (FINAL_OUTPUT, bits[OUTPUT]), (OUTPUT, sums))
    return replace(layer, precision_bits=precision)


def declare_superset(op: Lowering, *tensors: str) -> None:
    """Declare the dependences of the last nest on each of the given tensors as a superset of the true dependences.
    Constant tensors are skipped."""
    node = op.lowered[-1]
    changed = tuple(
        replace(index_map, is_exact=index_map.is_exact and index_map.input.tensor not in tensors)
        if not op.is_constant(index_map.input.tensor)
        else index_map
        for index_map in node.index_maps
    )
    op.lowered[-1] = replace(node, index_maps=changed)


def declare_padding(op: Lowering, data: str, weights: str) -> None:
    """Declare the dependences of the last nest on the tensor `weights` to be a superset if this nest reads padding.
    Padding is outside the tensor `data`, and products with padding have no effect on the result."""
    shape = op.shape(data)
    for index_map in op.lowered[-1].index_maps:
        if index_map.input.tensor == data:
            ranges = (index_range(axis, index_map.size_of) for axis in index_map.input.axes)
            if any(low < 0 or high >= size for (low, high), size in zip(ranges, shape, strict=True)):
                declare_superset(op, weights)
                return


_MOST_BATCH_AXES_OF_LAYER = 2
_BATCH_NAMES = ("B", "H")
_MOST_LOOPS = 16


@dataclass(frozen=True)
class ProductAccesses:
    """Accesses of a matrix product: for each operand and for the output, the index along every axis as a function of
    the loops.
    """

    left: TensorAccess
    right: TensorAccess
    output: TensorAccess
    loops: tuple[tuple[str, int], ...]
    """Pairs (loop, size): C, D and K, then the batch loops. D is missing if the first operand is a vector, and K is
    missing if the second operand is a vector.
    """


@lowers("Gemm")
def lower_gemm(op: Lowering) -> None:
    """Matrix product O[d][k] += I[d][c] * W[c][k]. Each input can be transposed. Alpha, beta and the bias cost
    nothing.
    """
    product = matrix_product(op.node, _shapes(op, (0, 1)))
    left = ("C", "D") if op.node.integer("transA", 0) else ("D", "C")
    right = ("K", "C") if op.node.integer("transB", 0) else ("C", "K")
    loops = (("C", product.depth), ("D", product.rows), ("K", product.columns))
    accesses = ProductAccesses(
        access(op.input(0), *left), access(op.input(1), *right), access(op.output(), "D", "K"), loops
    )
    others = []
    if op.has_input(2):
        others.append(broadcast(op, op.input(2), ("D", "K"), dict(loops)))
    add_product(op, accesses, others, with_reference_layer=True)


@lowers("MatMul")
def lower_matmul(op: Lowering) -> None:
    """Matrix product O[batches][d][k] += I[batches][d][c] * W[batches][c][k] with broadcasting. The loop D is missing
    if the first operand is a vector, and the loop K is missing if the second operand is a vector.
    """
    matrix_product(op.node, _shapes(op, (0, 1)))
    add_product(op, product_accesses(op, op.input(0), op.input(1)), [], with_reference_layer=True)


@lowers("MatMulInteger", "QLinearMatMul")
def lower_integer_matmul(op: Lowering) -> None:
    """Matrix product of integers. Scales and zero points are also read, unless they are constants of one element."""
    is_linear = op.node.proto.op_type == "QLinearMatMul"
    first, second = (0, 3) if is_linear else (0, 1)
    product = product_accesses(op, op.input(first), op.input(second))
    rows, columns, whole = ((1, 2), (4, 5), (6, 7)) if is_linear else ((2,), (3,), ())
    add_product(op, product, product_scales(op, product, rows, columns, whole))


def _shapes(op: Lowering, inputs: tuple[int, ...]) -> dict[str, Shape]:
    names = {op.input(index): op.input_shape(index) for index in inputs}
    return {**names, op.output(): op.output_shape()}


def product_accesses(
    op: Lowering, first: str, second: str, transposed: tuple[bool, bool] = (False, False)
) -> ProductAccesses:
    """Loops and accesses of a product of two tensors. Raises InputError if shapes do not fit together."""
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
        raise op.node.error("wrong shapes of the operands and the output", f"{list(left)}, {list(right)}, {list(out)}")
    names = batch_names(len(batch))
    both: list[TensorAccess] = []
    for tensor, shape, own, swap in zip(
        (first, second), (left, right), (("D", "C"), ("C", "K")), transposed, strict=True
    ):
        kept: tuple[str, ...] = own if len(shape) > 1 else ("C",)
        batches = _batch_axes(op, shape[:-2], batch, names)
        both.append(access(tensor, *batches, *(kept[::-1] if swap else kept)))
    loops = (("C", depth), *tail, *zip(names, batch, strict=True))
    return ProductAccesses(both[0], both[1], access(op.output(), *names, *(name for name, _ in tail)), loops)


def batch_names(count: int) -> tuple[str, ...]:
    """Names of the loops of the batch dimensions of a product: B, H, B2, B3, ..."""
    return (*_BATCH_NAMES[:count], *(f"B{axis}" for axis in range(len(_BATCH_NAMES), count)))


def _batch_axes(op: Lowering, own: Shape, batch: Shape, names: tuple[str, ...]) -> list[Axis]:
    if len(own) > len(batch):
        raise op.node.error("wrong batch dimensions of an operand", str(list(own)), f"at most {len(batch)}")
    axes: list[Axis] = []
    start = len(batch) - len(own)
    for size, full, name in zip(own, batch[start:], names[start:], strict=True):
        if size not in (1, full):
            raise op.node.error("wrong batch dimensions of an operand", str(list(own)), str(list(batch)))
        axes.append(fixed() if size == 1 else name)
    return axes


def add_product(
    op: Lowering,
    product: ProductAccesses,
    others: list[TensorAccess],
    *,
    part: str = "",
    with_reference_layer: bool = False,
) -> bool:
    """Add the nest of a product. Returns False if the product is unsupported. The first operand is I and the second
    operand is W; if only the first operand is constant, the names are exchanged.

    With `with_reference_layer`, a product with up to two batch dimensions gets the same layer as in zigzag-dse.
    """
    if len(product.loops) > _MOST_LOOPS:
        op.unsupported(f"a matrix product with more than {_MOST_LOOPS} dimensions is not modelled")
        return False
    exchanged = op.is_constant(product.left.tensor) and not op.is_constant(product.right.tensor)
    inputs = {"W": product.left, "I": product.right} if exchanged else {"I": product.left, "W": product.right}
    layer, loops, own = None, product.loops, dict(product.loops)
    if with_reference_layer and len(own.keys() - {"C", "D", "K"}) <= _MOST_BATCH_AXES_OF_LAYER:
        layer = _reference_layer(op, inputs, exchanged=exchanged)
        loops = tuple((name, own.get(name, 1)) for name, _ in layer.loop_sizes)
    op.nest(loops, product.output, inputs, others=others, unit=MAC_ARRAY, part=part, layer=layer)
    return True


def _reference_layer(op: Lowering, inputs: dict[str, TensorAccess], *, exchanged: bool) -> Layer:
    tensors = {"O": op.output(), **{operand: given.tensor for operand, given in inputs.items()}}
    activation, weight = (1, 0) if exchanged else (0, 1)
    roles = OperandRoles(activation, weight, constant_operands(op, tensors), ())
    layer = gemm_layer(op.node, matrix_product(op.node, _shapes(op, (0, 1))), roles, op.profile)
    return with_tensor_precision(op, layer, tensors)


def product_scales(
    op: Lowering, product: ProductAccesses, rows: Iterable[int], columns: Iterable[int], whole: Iterable[int] = ()
) -> list[TensorAccess]:
    """Accesses to the scales and zero points of a matrix product.

    `rows`, `columns` and `whole` are indices of inputs: scales and zero points of the first operand, of the second
    operand, and of the result. An input in `rows` has one value per row of the first operand. An input in `columns` or
    `whole` has one value per column of the second operand. Each input can also have a single value, or batch axes in
    front. Missing inputs are left out, and also constants of one element, which need no memory. Raises InputError if
    shapes do not fit together.
    """
    found = []
    sizes = dict(product.loops)
    batches = [axis for axis in product.output.axes if axis.terms[0][0] not in ("D", "K")]
    for inputs, name in ((rows, "D"), (columns, "K"), (whole, "K")):
        own: tuple[Axis, ...] = ("D", fixed()) if name == "D" else (fixed(), "K")
        for index in inputs:
            shape = op.input_shape(index) if op.has_input(index) else ()
            if len(shape) <= 1 or name not in sizes:
                found += scale_accesses(op, (index,), name, sizes.get(name, 1))
            elif any(extent > 1 for extent in shape) or not op.is_constant(op.input(index)):
                found.append(broadcast(op, op.input(index), (*batches, *own), sizes))
    return found


_MICROSOFT = "com.microsoft"
_CODE_BITS = 8
"""Bits of one element of the tensor in which MatMulNBits stores packed weights."""


@lowers("FusedMatMul", "TransposeMatMul", domain=_MICROSOFT)
def lower_fused_matmul(op: Lowering) -> None:
    """Matrix product with operands that can be transposed. Alpha costs nothing."""
    if op.node.integer("transBatchA", 0) or op.node.integer("transBatchB", 0):
        op.unsupported("FusedMatMul with transposed batches is not modelled")
        return
    add_product(op, product_accesses(op, op.input(0), op.input(1), _transposed(op)), [])


@lowers("FusedGemm", domain=_MICROSOFT)
def lower_fused_gemm(op: Lowering) -> None:
    """Matrix product with a bias, followed by the activation. The bias costs nothing. The activation needs one
    operation per element.
    """
    product = product_accesses(op, op.input(0), op.input(1), _transposed(op))
    others = [broadcast(op, op.input(2), ("D", "K"), dict(product.loops))] if op.has_input(2) else []
    result = op.temporary("product", op.output_shape(), op.output())
    product = replace(product, output=replace(product.output, tensor=result))
    if add_product(op, product, others, part="product"):
        elementwise(op, op.output(), [result], part="activation", operator_type=op.node.text("activation", "Relu"))


@lowers("MatMulIntegerToFloat", "DynamicQuantizeMatMul", domain=_MICROSOFT)
def lower_matmul_to_float(op: Lowering) -> None:
    """Matrix product of integers with a floating-point result. Scales, zero points and the bias cost nothing.

    DynamicQuantizeMatMul also quantises its first operand. The quantisation costs nothing here, and a remark says so.
    """
    product = product_accesses(op, op.input(0), op.input(1))
    is_dynamic = op.node.proto.op_type == "DynamicQuantizeMatMul"
    rows, columns, bias = ((), (2, 3), 4) if is_dynamic else ((2, 4), (3, 5), 6)
    others = product_scales(op, product, rows, columns)
    if op.has_input(bias):
        others.append(broadcast(op, op.input(bias), product.output.axes, dict(product.loops)))
    add_product(op, product, others)
    if is_dynamic:
        op.approximated("the quantisation in DynamicQuantizeMatMul has no cost and no dependencies")


@lowers("QGemm", domain=_MICROSOFT)
def lower_quantised_gemm(op: Lowering) -> None:
    """Quantised matrix product. Scales, zero points and the bias cost nothing."""
    product = product_accesses(op, op.input(0), op.input(3), _transposed(op))
    others = product_scales(op, product, (1, 2), (4, 5), (7, 8))
    if op.has_input(6):
        others.append(broadcast(op, op.input(6), ("D", "K"), dict(product.loops)))
    add_product(op, product, others)


@lowers("MatMulNBits", domain=_MICROSOFT)
def lower_matmul_of_packed_weights(op: Lowering) -> None:
    """Matrix product O[..][k] += I[..][c] * W[k][c] with weights packed as [columns, blocks, bytes]. Scales cost
    nothing.

    A weight has as many bits as its packed form. In an incomplete last block, only weights that exist are counted.
    Raises InputError if attributes or shapes do not fit together.
    """
    bits, block = op.node.integer("bits", 4), op.node.integer("block_size", 0)
    depth, columns = op.node.integer("K", 0), op.node.integer("N", 0)
    data, packed = op.input_shape(0), op.input_shape(1)
    if bits < 1 or _CODE_BITS % bits or block < 1 or depth < 1 or (block * bits) % _CODE_BITS:
        raise op.node.error("wrong attributes bits, block_size and K", f"{bits}, {block}, {depth}")
    codes, blocks = _CODE_BITS // bits, -(-depth // block)
    expected = (columns, blocks, block // codes)
    fits = bool(data) and data[-1] == depth and op.output_shape() == (*data[:-1], columns)
    if packed != expected or not fits:
        raise op.node.error(
            "wrong shapes of the operands", f"{list(data)}, {list(packed)}", f"[.., {depth}], {list(expected)}"
        )
    names = (*batch_names(len(data) - 2), "D")[-(len(data) - 1) :] if len(data) > 1 else ()
    outer = tuple(zip(names, data[:-1], strict=True))
    beside = [
        _block_values(op, index, blocks, columns) for index in range(2, len(op.node.inputs)) if op.has_input(index)
    ]
    _add_packed_product(op, outer, bits, beside, is_exact=depth % block == 0)
    if any(other is None for other in beside):
        op.approximated("the dependencies of MatMulNBits on zero points, indices and biases are left out")


def _add_packed_product(
    op: Lowering, outer: tuple[tuple[str, int], ...], bits: int, beside: list[TensorAccess | None], *, is_exact: bool
) -> None:
    """Add a matrix product with packed weights. In the layer, the weights are not packed, and one loop goes over the
    whole depth (the summed axis). In the index maps of the packed weights and of the tensors in `beside`, a loop over
    the blocks replaces the loop over the depth.

    `outer` has the loops over the rows, and `bits` is the width of one weight. `beside` has accesses to tensors with
    one value per block, and None for tensors that are left out. `is_exact` is true if all blocks are complete.
    """
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
    packed = access(op.input(1), "K", "CB", "CI")
    further = [IndexMap((*rows, ("CB", blocks), ("CI", block_bytes)), output, packed, "W", is_exact=is_exact)]
    further += [IndexMap((*rows, ("CB", blocks)), output, other) for other in beside if other is not None]
    op.nest(loops, output, {"I": data}, unit=MAC_ARRAY, layer=layer, further=further)


def _block_values(op: Lowering, index: int, blocks: int, columns: int) -> TensorAccess | None:
    """Access to an input with one value per block of packed weights, in the shape [columns, blocks] or [columns *
    blocks]; None if the input has another shape.
    """
    shape = op.input_shape(index)
    if shape == (columns * blocks,):
        return access(op.input(index), affine(("K", blocks), ("CB", 1)))
    return access(op.input(index), "K", "CB") if shape == (columns, blocks) else None


def _transposed(op: Lowering) -> tuple[bool, bool]:
    return op.node.integer("transA", 0) != 0, op.node.integer("transB", 0) != 0
