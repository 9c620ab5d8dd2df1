"""Elementwise operators: activations, arithmetic with broadcasting, comparisons, choices.

Each operator is one nest on the vector unit. The nest computes every output element from the input elements with the
same indices.

The nest counts one operation per loop iteration. An exponential counts as one operation, like an addition.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, affine, fixed, identity_map, loop
from tilewright.workload.nests import dimension_names
from tilewright.workload.onnx.lowering import Lowering, access, lowers, whole_map
from tilewright.workload.onnx.node import Shape

Loops = tuple[tuple[str, int], ...]
"""Pairs (loop dimension, size)."""
_MOST_OPERANDS = 2


def element_loops(shape: Shape) -> Loops:
    """Loops over all elements of a tensor. A scalar has one loop of size 1, because a layer needs at least one loop."""
    return tuple(zip(dimension_names(len(shape)), shape, strict=True)) or (("K", 1),)


def element_access(tensor: str, shape: Shape, loops: Loops) -> TensorAccess:
    """Access to a tensor whose axes are matched with the last loops. The tensor is broadcast along axes of size 1 and
    along missing axes.
    """
    names = loops[len(loops) - len(shape) :] if shape else ()
    return access(tensor, *(_broadcast(axis, size, own) for axis, (size, own) in zip(shape, names, strict=True)))


def _broadcast(axis_size: int, name: str, loop_size: int) -> AxisIndex:
    return loop(name) if axis_size == loop_size else fixed(0)


def broadcast_shape(shapes: Iterable[Shape]) -> Shape:
    """Shape that results if tensors of these shapes are broadcast against each other. Raises ValueError if they cannot
    be broadcast."""
    return tuple(int(size) for size in np.broadcast_shapes(*shapes))


def is_one_constant(op: Lowering, tensor: str) -> bool:
    """True if the tensor is a constant of one element. Such a constant is part of the instruction, and no operand."""
    return op.is_constant(tensor) and math.prod(op.shape(tensor)) == 1


def elementwise(
    op: Lowering,
    output: str,
    sources: Sequence[str],
    *,
    others: Sequence[str] = (),
    part: str = "",
    operator_type: str = "",
    is_exact: bool = True,
) -> None:
    """Add the nest `output = f(sources)`, element by element.

    The operands I and W are the first two sources with more than one element. All other sources, and the tensors
    `others`, are read at no cost. Constants of one element need no memory. Raises ValueError if a shape does not
    broadcast to the output.
    """
    shape = op.shape(output)
    if broadcast_shape([shape, *(op.shape(name) for name in (*sources, *others))]) != shape:
        raise ValueError(f"{list(sources)} do not broadcast to {output}")
    loops = element_loops(shape)
    large = [name for name in sources if math.prod(op.shape(name)) > 1]
    operands = (large or [name for name in sources if not op.is_constant(name)] or list(sources))[:_MOST_OPERANDS]
    rest = [name for name in (*sources, *others) if name not in operands and not is_one_constant(op, name)]
    inputs = [element_access(name, op.shape(name), loops) for name in operands]
    op.nest(
        loops,
        element_access(output, shape, loops),
        dict(zip(("I", "W"), inputs, strict=False)),
        others=[element_access(name, op.shape(name), loops) for name in dict.fromkeys(rest)],
        part=part,
        operator_type=operator_type,
        is_exact=is_exact,
    )


def combine(op: Lowering, output: str, sources: Sequence[str], operator_type: str, part: str = "") -> None:
    """Combine any number of tensors from left to right, two at a time, as Sum, Max, Min and Mean do.

    The division of a Mean belongs to the last step. A single tensor is only passed on. `part` is the name of the last
    step. The names of all other steps begin with `part`.
    """
    first, *following = sources
    if not following:
        op.move(identity_map(output, first, op.shape(output)), part=part)
        return
    for number, source in enumerate(following, start=1):
        if number == len(following):
            target, step = output, part
        else:
            shape = broadcast_shape([op.shape(first), op.shape(source)])
            step = f"{part or operator_type.lower()}{number}"
            target = op.temporary(step, shape, output)
        elementwise(op, target, [first, source], part=step, operator_type=operator_type)
        first = target


_UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitCast", "BitwiseNot", "Cast"),
    *("CastLike", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid"),
    *("HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round"),
    *("Selu", "Shrink", "Sigmoid", "Sign", "Silu", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish"),
    *("Tan", "Tanh", "ThresholdedRelu"),
)
_BINARY = (
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater"),
    *("GreaterOrEqual", "Less", "LessOrEqual", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Xor"),
)
_MANY = ("Max", "Mean", "Min", "Sum")


@lowers(*_UNARY)
@lowers("Gelu", "QuickGelu", domain="com.microsoft")
def lower_unary(op: Lowering) -> None:
    """Unary operator with one operation per element. Further inputs (such as the type of CastLike) do not affect the
    cost."""
    elementwise(op, op.output(), [op.input()])


@lowers(*_BINARY)
@lowers("BiasGelu", "BiasAdd", domain="com.microsoft")
def lower_binary(op: Lowering) -> None:
    """Binary operator: one operation per output element. A tensor with fewer axes than the other tensor is broadcast
    along the leading axes.

    Before opset 7, the attribute `axis` gives the first axis of the second tensor, and PRelu has one slope per channel.
    """
    first, second = op.input(0), op.input(1)
    if op.opset < 7 and 0 < len(op.shape(second)) < len(op.output_shape()) and op.shape(second) != (1,):
        is_slope = op.node.proto.op_type == "PRelu"
        if is_slope or op.node.has("axis"):
            _lower_aligned(op, first, second, 1 if is_slope else op.node.integer("axis", 0))
            return
    elementwise(op, op.output(), [first, second])


def _lower_aligned(op: Lowering, first: str, second: str, axis: int) -> None:
    shape, own = op.output_shape(), op.shape(second)
    loops = element_loops(shape)
    start = axis % len(shape)
    aligned = element_access(second, own, loops[start : start + len(own)])
    data = element_access(first, op.shape(first), loops)
    op.nest(loops, element_access(op.output(), shape, loops), {"I": data, "W": aligned})


@lowers(*_MANY)
def lower_many(op: Lowering) -> None:
    """Operator over any number of tensors, which are combined two at a time. A single tensor is passed on. The division
    of Mean is not counted."""
    combine(op, op.output(), [op.input(index) for index in range(len(op.node.inputs))], op.node.proto.op_type)


@lowers("Clip")
def lower_clip(op: Lowering) -> None:
    """Clip with one operation per element. Bounds that are computed at run time are dependences without costs."""
    bounds = [op.input(index) for index in (1, 2) if op.has_input(index)]
    elementwise(op, op.output(), [op.input()], others=bounds)


@lowers("FastGelu", domain="com.microsoft")
def lower_fast_gelu(op: Lowering) -> None:
    """FastGelu with one operation per element. An optional bias is added along the last axis."""
    elementwise(op, op.output(), [op.input(index) for index in (0, 1) if op.has_input(index)])


@lowers("Where")
def lower_where(op: Lowering) -> None:
    """Operator Where with one operation per element. A layer reads at most two tensors, so Where needs two operations
    per element if the condition and both choices have more than one element each.

    Each output depends on both choices, even if the condition is constant.
    """
    condition, chosen, other = op.input(0), op.input(1), op.input(2)
    sources, is_exact = [condition, chosen, other], not op.is_constant(condition)
    if sum(math.prod(op.shape(name)) > 1 for name in sources) < len(sources):
        elementwise(op, op.output(), sources, is_exact=is_exact)
        return
    shape = broadcast_shape([op.shape(condition), op.shape(chosen)])
    kept = op.temporary("kept", shape, chosen)
    elementwise(op, kept, [chosen, condition], part="kept", is_exact=is_exact)
    elementwise(op, op.output(), [kept, other], is_exact=is_exact)


@lowers("Identity")
def lower_identity(op: Lowering) -> None:
    """Identity: the input is passed on. Identity of a sequence or an optional value is not modelled, because a value of
    these kinds has no shape."""
    if op.input() not in op.graph.tensors:
        op.unsupported("Identity of a value that is not a tensor is not modelled")
        return
    op.move(identity_map(op.output(), op.input(), op.output_shape()))


@lowers("Dropout")
def lower_dropout(op: Lowering) -> None:
    """Dropout. At inference, the input is passed on, and the mask depends on no element. In training mode, Dropout
    needs one operation per element."""
    training = op.values(2)
    is_training = op.has_input(2) and (training is None or bool(training.any()))
    if not is_training:
        op.move(identity_map(op.output(), op.input(), op.output_shape()))
        return
    settings = [op.input(index) for index in (1, 2) if op.has_input(index)]
    elementwise(op, op.output(), [op.input()], others=settings)
    if op.has_output(1):
        shape = op.output_shape(1)
        maps = [whole_map(op.output(1), shape, name, op.shape(name)) for name in settings]
        op.move(identity_map(op.output(1), op.input(), shape, is_exact=False), *maps, part="mask")
    op.approximated("Dropout in training mode counts as one operation for every element")


@lowers("Trilu")
@lowers("Trilu", domain="com.microsoft")
def lower_trilu(op: Lowering) -> None:
    """Trilu, which copies one triangle and sets the other elements to zero. If the diagonal is not known, every element
    is assumed to be copied."""
    shape = op.output_shape()
    diagonal = op.values(1)
    if op.has_input(1) and diagonal is None:
        kept = identity_map(op.output(), op.input(), shape, is_exact=False)
        op.move(kept, whole_map(op.output(), shape, op.input(1), op.input_shape(1)))
        return
    offset = int(diagonal.reshape(-1)[0]) if diagonal is not None else 0
    is_upper = bool(op.node.integer("upper", 1))
    rows, columns = shape[-2:]
    # The loop DIAGONAL counts the distance of the column from the diagonal. Positions outside the tensor are dropped.
    distance, sign = (columns - offset, 1) if is_upper else (rows + offset, -1)
    *outer, row = (name for name, _ in element_loops(shape[:-1]))
    sizes = [*element_loops(shape[:-1]), ("DIAGONAL", max(distance, 1))]
    axes: list[AxisIndex | str] = [*outer, row, affine((row, 1), ("DIAGONAL", sign), offset=offset)]
    op.move(IndexMap(tuple(sizes), access(op.output(), *axes), access(op.input(), *axes)))


@lowers("CumSum", "CumProd")
def lower_cumulative(op: Lowering) -> None:
    """Running sum or product along an axis, with one operation per element. It is followed by a move without costs,
    which has the dependences. Each result depends on the elements up to its own position. With `reverse`, each result
    depends on the elements from its own position on. With the attribute `exclusive`, a result does not depend on the
    element at its own position. If the axis is known only at run time, each result is assumed to depend on all
    elements.
    """
    shape = op.output_shape()
    given = op.values(1)
    loops = element_loops(shape)
    running = op.temporary("running", shape, op.output())
    elementwise(op, running, [op.input()], part="running")
    if given is None:
        op.approximated(
            f"the axis of {op.node.operator_type} is computed at run time: each result can depend on all elements"
        )
        axis_map = whole_map(op.output(), shape, op.input(1), op.input_shape(1))
        op.move(whole_map(op.output(), shape, running, shape), axis_map)
        return
    axis = int(given.reshape(-1)[0]) % len(shape)
    name, size = loops[axis]
    back = -1 if not op.node.integer("reverse", 0) else 1
    first = back if op.node.integer("exclusive", 0) else 0
    axes = [affine((own, 1), ("STEP", back), offset=first) if own == name else own for own, _ in loops]
    output = access(op.output(), *(own for own, _ in loops))
    op.move(IndexMap((*loops, ("STEP", size)), output, access(running, *axes)))


@lowers("RandomNormalLike", "RandomUniformLike")
def lower_random(op: Lowering) -> None:
    """Lower an operator that makes random numbers, with one operation per element. The nest depends on each element of
    the input, although the numbers depend only on the shape. These dependences are therefore marked as not exact.
    """
    elementwise(op, op.output(), [op.input()], is_exact=False)
