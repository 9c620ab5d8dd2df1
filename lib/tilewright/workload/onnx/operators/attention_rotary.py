"""Rotary position embeddings: pairs of channels are turned by an angle that depends on the position."""

from dataclasses import replace

from tilewright.workload.access import IndexMap, affine, fixed, loop
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
    if op.output_shape() != op.input_shape():
        raise op.node.error("shape of the output", str(list(op.output_shape())), str(list(op.input_shape())))
    known = _known_places(op, positions)
    angles = [
        angles_of_places(op, data, cache, positions, part, known=known)
        for part, cache in (("cosine", cosines), ("sine", sines))
    ]
    is_interleaved = op.node.integer("interleaved", 0) != 0
    turn(op, data, replace(data, tensor=op.output(), start=0), (angles[0], angles[1]), turned, is_interleaved)


def turn(
    op: Lowering,
    data: Heads,
    output: Heads,
    angles: tuple[str, str],
    turned: int,
    is_interleaved: bool,
    prefix: str = "",
) -> None:
    """Turn the first `turned` channels of every head; `angles`: cosines and sines [batch, positions, turned / 2].

    Raises InputError if the numbers of channels do not fit.
    """
    half = turned // 2
    if turned % 2 or turned > data.width or any(op.shape(name)[-1] != half for name in angles):
        raise op.node.error("channels to turn", f"{turned} of {data.width}", f"twice {op.shape(angles[0])[-1]}")
    step, jump = (2, 1) if is_interleaved else (1, half)
    channel = affine(("J", jump), ("K", step))
    sizes = (data.batch, data.heads, data.positions, 2, half)
    loops = tuple(zip(_NAMES, sizes, strict=True))
    products = []
    for part, own in zip(("cosine", "sine"), angles, strict=True):
        product = op.temporary(prefix + part, sizes, data.tensor)
        inputs = {"I": data.at("H", "D", channel), "W": access(own, "B", "D", "K")}
        op.nest(loops, access(product, *_NAMES), inputs, part=prefix + part, operator_type="Mul")
        products.append(product)
    target = output
    if turned < data.width:
        shape = (data.batch, data.heads, data.positions, turned)
        target = Heads(op.temporary(f"{prefix}turned", shape, data.tensor), *shape)
    other = ("B", "H", "D", affine(("J", -1), offset=1), "K")
    inputs = {"I": access(products[0], *_NAMES), "W": access(products[1], *other)}
    op.nest(loops, target.at("H", "D", channel), inputs, part=f"{prefix}sum", operator_type="Add")
    if turned < data.width:
        _join(op, data, target, output, prefix)


def _join(op: Lowering, data: Heads, turned: Heads, output: Heads, prefix: str) -> None:
    outer = (("B", data.batch), ("H", data.heads), ("D", data.positions))
    rest = affine(("K", 1), offset=turned.width)
    op.move(
        IndexMap((*outer, ("K", turned.width)), output.at("H", "D", "K"), turned.at("H", "D", "K")),
        IndexMap((*outer, ("K", data.width - turned.width)), output.at("H", "D", rest), data.at("H", "D", rest)),
        part=f"{prefix}join",
        operator_type="Concat",
    )


def _heads(op: Lowering, half: int) -> Heads:
    shape = op.input_shape()
    heads = op.node.integer("num_heads", 0)
    if len(shape) == 3 and heads == 0 and half:
        heads = shape[2] // (2 * half)
    return heads_of(op, op.input(), heads)


def _known_places(op: Lowering, positions: int) -> list[list[int]] | None:
    """The positions [batch, sequence] if they are constant."""
    numbers = op.values(positions)
    return numbers.tolist() if numbers is not None and numbers.ndim == 2 else None


def angles_of_places(
    op: Lowering, data: Heads, cache: int, positions: int, part: str, *, known: list[list[int]] | None = None
) -> str:
    """Input `cache` for every place, [batch, positions, half]: as given, or looked up by the input of positions.

    That input may have one value for all places, or one for each batch. Raises InputError for a cache of another shape.
    """
    given, shape = op.input(cache), op.input_shape(cache)
    wanted = (data.batch, data.positions, shape[-1])
    if not op.has_input(positions):
        if shape != wanted:
            raise op.node.error(f"shape of input {cache}", str(list(shape)), str(list(wanted)))
        return given
    if len(shape) != 2:
        raise op.node.error(f"shape of input {cache}", str(list(shape)), "[positions, half of the channels]")
    name = f"{part}_of_place"
    result = op.temporary(name, wanted, given)
    if known is not None and len(known) == data.batch and data.batch * data.positions <= _MOST_ROWS:
        maps = [
            IndexMap(
                (("K", shape[-1]),), access(result, fixed(row), fixed(column), "K"), access(given, fixed(place), "K")
            )
            for row, own in enumerate(known)
            for column, place in enumerate(own)
        ]
        op.move(*maps, part=name, operator_type="Gather")
        return result
    loops = (("B", data.batch), ("D", data.positions), ("K", shape[-1]))
    written = access(result, "B", "D", "K")
    places = op.input_shape(positions)
    axes = [fixed() if size == 1 else loop(own) for size, own in zip(places, ("B", "D"), strict=False)]
    if len(axes) != len(places) or any(size not in (1, full) for size, full in zip(places, wanted, strict=False)):
        raise op.node.error(f"shape of input {positions}", str(list(places)), "[batch, sequence] or one value")
    op.move(
        IndexMap((*loops, ("S", shape[0])), written, access(given, "S", "K"), is_exact=False),
        IndexMap(loops, written, access(op.input(positions), *axes)),
        part=name,
        operator_type="Gather",
    )
    if not op.is_constant(given):
        op.approximated("rotary embedding: the angles of every position count as read")
    return result
