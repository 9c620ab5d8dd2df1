"""Rotary position embeddings: pairs of channels are turned by an angle that depends on the position."""

from tilewright.workload.access import AxisIndex, IndexMap, affine, fixed
from tilewright.workload.onnx.lowering import Lowering, access, lowers
from tilewright.workload.onnx.operators.attention_parts import Heads, heads_of

_MOST_ROWS = 256
_NAMES = ("B", "H", "D", "J", "K")


@lowers("RotaryEmbedding")
def lower_rotary_embedding(op: Lowering) -> None:
    """Inputs: data, cosines, sines, positions (optional). Three operations for each turned element."""
    _rotate(op, 1, 2, 3)


@lowers("RotaryEmbedding", domain="com.microsoft")
def lower_microsoft_rotary_embedding(op: Lowering) -> None:
    """Inputs: data, positions, cosines, sines. Three operations for each turned element."""
    _rotate(op, 2, 3, 1)


def _rotate(op: Lowering, cosines: int, sines: int, positions: int) -> None:
    """out[j][k] = x[j][k] * cos[k] -+ x[1 - j][k] * sin[k] for the members j = 0, 1 of every pair k.

    Channels beyond the turned ones are passed on. Raises InputError for shapes that do not fit.
    """
    data = _heads(op, op.input_shape(cosines)[-1])
    turned = op.node.integer("rotary_embedding_dim", 0) or data.width
    half = turned // 2
    if (
        turned % 2
        or turned > data.width
        or op.input_shape(cosines)[-1] != half
        or op.output_shape() != op.input_shape()
    ):
        raise op.node.error("channels to turn", f"{turned} of {data.width}", f"twice {op.input_shape(cosines)[-1]}")
    step, jump = (2, 1) if op.node.integer("interleaved", 0) else (1, half)
    channel = affine(("J", jump), ("K", step))
    sizes = (data.batch, data.heads, data.positions, 2, half)
    loops = tuple(zip(_NAMES, sizes, strict=True))
    products = []
    for part, cache in (("cosine", cosines), ("sine", sines)):
        angles = _angles(op, data, cache, positions, half, part)
        product = op.temporary(part, sizes, op.input())
        inputs = {"I": data.at("H", "D", channel), "W": access(angles, "B", "D", "K")}
        op.nest(loops, access(product, *_NAMES), inputs, part=part, operator_type="Mul")
        products.append(product)
    whole = turned == data.width
    target = Heads(op.output(), data.batch, data.heads, data.positions, data.width, data.is_flat)
    if not whole:
        shape = (data.batch, data.heads, data.positions, turned)
        target = Heads(op.temporary("turned", shape, op.input()), *shape)
    other = ("B", "H", "D", affine(("J", -1), offset=1), "K")
    inputs = {"I": access(products[0], *_NAMES), "W": access(products[1], *other)}
    op.nest(loops, target.at("H", "D", channel), inputs, part="sum", operator_type="Add")
    if not whole:
        _join(op, data, target)


def _join(op: Lowering, data: Heads, turned: Heads) -> None:
    output = Heads(op.output(), data.batch, data.heads, data.positions, data.width, data.is_flat)
    outer = (("B", data.batch), ("H", data.heads), ("D", data.positions))
    rest: AxisIndex = affine(("K", 1), offset=turned.width)
    op.move(
        IndexMap((*outer, ("K", turned.width)), output.at("H", "D", "K"), turned.at("H", "D", "K")),
        IndexMap((*outer, ("K", data.width - turned.width)), output.at("H", "D", rest), data.at("H", "D", rest)),
        part="join",
        operator_type="Concat",
    )


def _heads(op: Lowering, half: int) -> Heads:
    shape = op.input_shape()
    heads = op.node.integer("num_heads", 0)
    if len(shape) == 3 and heads == 0 and half:
        heads = shape[2] // (2 * half)
    return heads_of(op, op.input(), heads)


def _angles(op: Lowering, data: Heads, cache: int, positions: int, half: int, part: str) -> str:
    """The cosines or sines of every place, [batch, positions, half]: as given, or looked up by position."""
    given, shape = op.input(cache), op.input_shape(cache)
    wanted = (data.batch, data.positions, half)
    if not op.has_input(positions):
        if shape != wanted:
            raise op.node.error(f"shape of input {cache}", str(list(shape)), str(list(wanted)))
        return given
    if len(shape) != 2:
        raise op.node.error(f"shape of input {cache}", str(list(shape)), f"[positions, {half}]")
    result = op.temporary(f"{part}_of_place", wanted, given)
    loops = (("B", data.batch), ("D", data.positions), ("K", half))
    written = access(result, "B", "D", "K")
    numbers = op.values(positions)
    count = data.batch * data.positions
    if numbers is not None and numbers.shape == wanted[:2] and count <= _MOST_ROWS:
        maps = [
            IndexMap((("K", half),), access(result, fixed(row), fixed(column), "K"), access(given, fixed(place), "K"))
            for row, own in enumerate(numbers.tolist())
            for column, place in enumerate(own)
        ]
        op.move(*maps, part=f"{part}_of_place", operator_type="Gather")
        return result
    rank = len(op.input_shape(positions))
    axes = ("B", "D") if rank == 2 else tuple(fixed() for _ in range(rank))
    op.move(
        IndexMap((*loops, ("S", shape[0])), written, access(given, "S", "K"), is_exact=False),
        IndexMap(loops, written, access(op.input(positions), *axes)),
        part=f"{part}_of_place",
        operator_type="Gather",
    )
    if not op.is_constant(given):
        op.approximated("rotary embedding: the angles of every position count as read")
    return result
