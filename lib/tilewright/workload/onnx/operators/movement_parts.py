"""Parts that operators which move data share: ends of a map, loops per axis, supersets, checks."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.workload.access import IndexMap
from tilewright.workload.onnx.index_maps import Ends, Stride
from tilewright.workload.onnx.lowering import Lowering, whole_map
from tilewright.workload.onnx.node import Shape


def ends_of(op: Lowering, source: int = 0, output: int = 0) -> Ends:
    """Names and shapes of an output and an input. Raises InputError where one is missing."""
    read, written = op.input(source), op.output(output)
    return Ends(written, op.shape(written), read, op.shape(read))


def permuted_strides(shape: Shape, order: Sequence[int] | None = None) -> list[Stride]:
    """One loop per input axis of these sizes; output axis i is input axis order[i]."""
    axes = range(len(shape)) if order is None else order
    return [Stride(shape[source], {axis: 1}, {source: 1}) for axis, source in enumerate(axes)]


def whole_map_of(op: Lowering, source: int, output: int = 0, *, is_exact: bool = False) -> IndexMap:
    """Every element of an output depends on every element of an input."""
    ends = ends_of(op, source, output)
    return whole_map(ends.output, ends.output_shape, ends.source, ends.source_shape, is_exact=is_exact)


def move_all(op: Lowering, maps: Sequence[IndexMap]) -> None:
    """Add a move of these maps without those that are empty."""
    op.move(*(index_map for index_map in maps if all(size > 0 for _, size in index_map.loops)))


def move_superset(op: Lowering, reason: str) -> None:
    """Every output element depends on every element of every input that is computed at run time or is data."""
    op.approximated(f"{reason}: dependencies are a superset")
    sources = [number for number in range(len(op.node.inputs)) if op.has_input(number)]
    needed = [number for number in sources if number == 0 or not op.is_constant(op.input(number))]
    outputs = [number for number in range(len(op.node.outputs)) if op.has_output(number)]
    move_all(op, [whole_map_of(op, number, output) for output in outputs for number in needed])


def normal_axis(op: Lowering, axis: int, rank: int) -> int:
    """The axis counted from the front. Raises InputError if there is no such axis."""
    if not -rank <= axis < rank:
        raise op.node.error("axis", str(axis), f"{-rank} to {rank - 1}")
    return axis % rank


def shape_error(op: Lowering, shape: Shape) -> Exception:
    """The error for an output shape that does not follow from the operator."""
    return op.node.error(
        f"the output has the shape {list(op.output_shape())}, and {list(shape)} follows from the inputs"
    )


def constant_integers(op: Lowering, index: int) -> npt.NDArray[np.int64] | None:
    """The values of an integer input in one dimension, or None if they are not known."""
    values = op.values(index)
    return None if values is None else np.asarray(values).astype(np.int64).reshape(-1)
