"""Embeddings of the domain com.microsoft: rows of tables at run-time indices, normalised or dequantised."""

from dataclasses import replace

from tilewright.workload.access import AxisIndex, IndexMap, affine, loop
from tilewright.workload.onnx.lowering import Lowering, access, lowers
from tilewright.workload.onnx.operators.elementwise import combine, elementwise
from tilewright.workload.onnx.operators.movement import normal_axis
from tilewright.workload.onnx.operators.normalization import normalise_last_axis
from tilewright.workload.onnx.operators.reduction import reduce_axes

_MICROSOFT = "com.microsoft"
_CODE_BITS = 8


@lowers("EmbedLayerNormalization", domain=_MICROSOFT)
def lower_embed_layer_normalization(op: Lowering) -> None:
    """LayerNormalization of the sum of rows from the tables of words, positions and segments.

    The output `mask_index` is the sum of the mask for each batch entry. This sum needs one operation per element of the
    mask. Raises InputError if shapes do not fit together.
    """
    batch, length = op.input_shape(0)
    hidden = op.input_shape(2)[1]
    if op.output_shape() != (batch, length, hidden):
        raise op.node.error("wrong shape of the output", str(list(op.output_shape())), str([batch, length, hidden]))
    rows = [_rows(op, "word", 2, 0), _rows(op, "position", 3, 8 if op.has_input(8) else None)]
    if op.has_input(1) and op.has_input(4):
        rows.append(_rows(op, "segment", 4, 1))
    total = op.output(2) if op.has_output(2) else op.temporary("sum", op.output_shape(), op.output())
    combine(op, total, rows, "Add", part="sum")
    normalise_last_axis(op, total, 5, 6)
    if op.has_output(1):
        _mask_index(op)
    op.approximated("the rows that are read from a table are known only at run time: each result can depend on any row")


def _rows(op: Lowering, part: str, table: int, indices: int | None) -> str:
    """Name of the tensor [batch, tokens, hidden] with a row of a table for every token. Input `table` has the table,
    and input `indices` has the row number of each token. If `indices` is None, the row number is the position of the
    token in the sequence. Raises InputError if shapes do not fit together.
    """
    batch, length, hidden = op.output_shape()
    count, width = op.input_shape(table)
    if width != hidden or (indices is None and count < length):
        raise op.node.error(f"wrong shape of input {table}", str([count, width]), f"[{length} or more, {hidden}]")
    result = op.temporary(f"{part}_rows", (batch, length, hidden), op.output())
    loops = (("B", batch), ("D", length), ("K", hidden))
    written = access(result, "B", "D", "K")
    if indices is None:
        op.move(
            IndexMap(loops, written, access(op.input(table), "D", "K")), part=f"{part}_rows", operator_type="Gather"
        )
        return result
    shape = op.input_shape(indices)
    if shape not in ((batch, length), (1, length)):
        raise op.node.error(f"wrong shape of input {indices}", str(list(shape)), str([batch, length]))
    maps = [IndexMap((*loops, ("V", count)), written, access(op.input(table), "V", "K"), is_exact=False)]
    if not op.is_constant(op.input(indices)):
        own = AxisIndex(()) if shape[0] == 1 and batch > 1 else loop("B")
        maps.append(IndexMap(loops, written, access(op.input(indices), own, "D")))
    op.move(*maps, part=f"{part}_rows", operator_type="Gather")
    return result


def _mask_index(op: Lowering) -> None:
    if op.has_input(7):
        reduce_axes(op, op.input(7), op.output(1), [1], part="mask_index", operator_type="ReduceSum")
        return
    nothing = op.temporary("no_mask", op.output_shape(1), op.output(1))
    op.move(
        IndexMap((("B", op.output_shape(1)[0]),), access(op.output(1), "B"), access(nothing, "B")), part="mask_index"
    )


@lowers("GatherBlockQuantized", domain=_MICROSOFT)
def lower_block_gather(op: Lowering) -> None:
    """Slices of a table at run-time indices, followed by their dequantisation with one operation per element.

    Elements narrower than a byte are packed along the last axis of the table. Raises InputError if shapes do not fit
    together.
    """
    table, indices, output = op.input_shape(0), op.input_shape(1), op.output_shape()
    axis = normal_axis(op, op.node.integer("gather_axis", 0), len(table))
    codes = output[-1] // table[-1] if axis < len(table) - 1 else 1
    tail = (*table[axis + 1 : -1], table[-1] * codes) if axis < len(table) - 1 else ()
    if output != (*table[:axis], *indices, *tail):
        raise op.node.error("wrong shape of the output", str(list(output)), str([*table[:axis], *indices, *tail]))
    gathered = op.temporary("gathered", output, op.input(0))
    if codes > 1:
        op.temporaries[gathered] = replace(op.temporaries[gathered], bits=_CODE_BITS // codes)
    names = [f"D{place}" for place in range(len(output))]
    loops = tuple(zip(names, output, strict=True))
    written: list[AxisIndex | str] = list(names)
    read: list[AxisIndex | str] = [*names[:axis], "V", *names[axis + len(indices) :]]
    if codes > 1:
        last = names[-1]
        loops = (*loops[:-1], (last, table[-1]), ("CN", codes))
        written[-1] = affine((last, codes), ("CN", 1))
    maps = [
        IndexMap((*loops, ("V", table[axis])), access(gathered, *written), access(op.input(0), *read), is_exact=False)
    ]
    if not op.is_constant(op.input(1)):
        places = access(op.input(1), *names[axis : axis + len(indices)])
        maps.append(IndexMap(loops, access(gathered, *written), places))
    op.move(*maps, part="gathered", operator_type="Gather")
    elementwise(op, op.output(), [gathered], part="dequantised", operator_type="DequantizeLinear")
    op.approximated(f"the indices are computed at run time: each result can depend on the whole axis {axis}")
