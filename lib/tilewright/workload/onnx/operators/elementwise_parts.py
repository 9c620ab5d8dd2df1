"""Nests that compute every output element from the input elements at its own place, with broadcasting.

Every operator on the vector unit counts one operation per loop iteration: an element of an exponential counts as much
as one of an addition.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tilewright.workload.access import AxisIndex, TensorAccess, fixed, identity_map, loop
from tilewright.workload.onnx.lowering import Lowering, access, dimension_names
from tilewright.workload.onnx.node import Shape

Loops = tuple[tuple[str, int], ...]
"""(loop dimension, size)."""
_MOST_OPERANDS = 2


def element_loops(shape: Shape) -> Loops:
    """The loops over all elements of a tensor; one of size 1 for a scalar, because a layer needs a loop."""
    return tuple(zip(dimension_names(len(shape)), shape, strict=True)) or (("K", 1),)


def element_access(tensor: str, shape: Shape, loops: Loops) -> TensorAccess:
    """The element of a tensor at the place of the last loops, broadcast along axes of size 1 and missing axes."""
    names = loops[len(loops) - len(shape) :] if shape else ()
    return access(tensor, *(_broadcast(axis, size, own) for axis, (size, own) in zip(shape, names, strict=True)))


def _broadcast(axis_size: int, name: str, loop_size: int) -> AxisIndex:
    return loop(name) if axis_size == loop_size else fixed(0)


def broadcast_shape(shapes: Iterable[Shape]) -> Shape:
    """The common shape of tensors that are broadcast against each other. Raises ValueError if there is none."""
    return tuple(int(size) for size in np.broadcast_shapes(*shapes))


def is_one_constant(op: Lowering, tensor: str) -> bool:
    """Whether the tensor is a constant of one element: part of the instruction, not an operand."""
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

    The first two sources of more than one element are the operands I and W. One-element constants need no memory;
    everything else is read at no cost, as are `others`. Raises ValueError if a shape does not broadcast to the output.
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

    The division of a Mean is left to the last step. One tensor is only passed on. `part` names the last step, and
    starts the names of the others.
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
