"""Attention operators of the domain com.microsoft, decomposed like the operator Attention, and rotary embeddings.

Rotary embeddings rotate pairs of channels by an angle that depends on the position.
"""

from dataclasses import replace

from tilewright.workload.access import IndexMap, affine, fixed, loop
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, access, lowers
from tilewright.workload.onnx.operators.attention import (
    HeadTensor,
    ScoreParts,
    added_bias,
    attention,
    batch_access,
    has_softcap,
    heads_of,
    joined,
    optional_input,
    optional_output,
    output_heads,
)
from tilewright.workload.onnx.operators.matrix import Axis, broadcast

_MOST_ROWS = 256
_NAMES = ("B", "H", "D", "J", "K")


@lowers("RotaryEmbedding")
def lower_rotary_embedding(op: Lowering) -> None:
    """Rotation by position. The inputs are data, cosines, sines and (optional) positions. Each rotated element needs
    three operations."""
    _rotate(op, 1, 2, 3)


@lowers("RotaryEmbedding", domain="com.microsoft")
def lower_microsoft_rotary_embedding(op: Lowering) -> None:
    """Rotation by position. The inputs are data, positions, cosines and sines. Each rotated element needs three
    operations."""
    _rotate(op, 2, 3, 1)


def _rotate(op: Lowering, cosines: int, sines: int, positions: int) -> None:
    """Add the rotation of every pair k of channels x[0][k] and x[1][k]. The results are x[0][k] * cos[k] - x[1][k] *
    sin[k] and x[1][k] * cos[k] + x[0][k] * sin[k].

    `cosines`, `sines` and `positions` are indices of inputs. Channels that are not rotated are passed on. Raises
    InputError if shapes do not fit together.
    """
    data = _heads(op, op.input_shape(cosines)[-1])
    turned = op.node.integer("rotary_embedding_dim", 0) or data.width
    if op.output_shape() != op.input_shape():
        raise op.node.error("wrong shape of the output", str(list(op.output_shape())), str(list(op.input_shape())))
    known = _known_places(op, positions)
    angles = [
        angles_of_places(op, data, cache, positions, part, known=known)
        for part, cache in (("cosine", cosines), ("sine", sines))
    ]
    is_interleaved = op.node.integer("interleaved", 0) != 0
    turn(op, data, replace(data, tensor=op.output(), start=0), (angles[0], angles[1]), turned, is_interleaved)


def turn(
    op: Lowering,
    data: HeadTensor,
    output: HeadTensor,
    angles: tuple[str, str],
    turned: int,
    is_interleaved: bool,
    prefix: str = "",
) -> None:
    """Rotate the first `turned` channels of every head. `angles` are the names of the tensors of cosines and sines,
    [batch, positions, turned / 2].

    Raises InputError if the numbers of channels do not fit together.
    """
    half = turned // 2
    if turned % 2 or turned > data.width or any(op.shape(name)[-1] != half for name in angles):
        raise op.node.error(
            "wrong number of channels to rotate", f"{turned} of {data.width}", f"twice {op.shape(angles[0])[-1]}"
        )
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
        target = HeadTensor(op.temporary(f"{prefix}turned", shape, data.tensor), *shape)
    other = ("B", "H", "D", affine(("J", -1), offset=1), "K")
    inputs = {"I": access(products[0], *_NAMES), "W": access(products[1], *other)}
    op.nest(loops, target.at("H", "D", channel), inputs, part=f"{prefix}sum", operator_type="Add")
    if turned < data.width:
        _join(op, data, target, output, prefix)


def _join(op: Lowering, data: HeadTensor, turned: HeadTensor, output: HeadTensor, prefix: str) -> None:
    outer = (("B", data.batch), ("H", data.heads), ("D", data.positions))
    rest = affine(("K", 1), offset=turned.width)
    op.move(
        IndexMap((*outer, ("K", turned.width)), output.at("H", "D", "K"), turned.at("H", "D", "K")),
        IndexMap((*outer, ("K", data.width - turned.width)), output.at("H", "D", rest), data.at("H", "D", rest)),
        part=f"{prefix}join",
        operator_type="Concat",
    )


def _heads(op: Lowering, half: int) -> HeadTensor:
    shape = op.input_shape()
    heads = op.node.integer("num_heads", 0)
    if len(shape) == 3 and heads == 0 and half:
        heads = shape[2] // (2 * half)
    return heads_of(op, op.input(), heads)


def _known_places(op: Lowering, positions: int) -> list[list[int]] | None:
    """Values of the input with the index `positions`, as rows [batch][sequence]; None if they are not constant or do
    not have two axes.
    """
    numbers = op.values(positions)
    return numbers.tolist() if numbers is not None and numbers.ndim == 2 else None


def angles_of_places(
    op: Lowering, data: HeadTensor, cache: int, positions: int, part: str, *, known: list[list[int]] | None = None
) -> str:
    """Name of the tensor [batch, positions, half] with the values of input `cache` for every position. `half` is half
    the number of rotated channels.

    `cache` and `positions` are indices of inputs. Input `cache` has the shape [positions, half], and input `positions`
    selects its rows: by one value per token, one value per batch entry, or one value for all tokens. If input
    `positions` is missing, input `cache` already has the shape of the result. If the positions are constant, `known`
    has their values, as one list per batch entry. Raises InputError for any other shape.
    """
    given, shape = op.input(cache), op.input_shape(cache)
    wanted = (data.batch, data.positions, shape[-1])
    if not op.has_input(positions):
        if shape != wanted:
            raise op.node.error(f"wrong shape of input {cache}", str(list(shape)), str(list(wanted)))
        return given
    if len(shape) != 2:
        raise op.node.error(f"wrong shape of input {cache}", str(list(shape)), "[positions, half of the channels]")
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
        raise op.node.error(f"wrong shape of input {positions}", str(list(places)), "[batch, sequence] or one value")
    op.move(
        IndexMap((*loops, ("S", shape[0])), written, access(given, "S", "K"), is_exact=False),
        IndexMap(loops, written, access(op.input(positions), *axes)),
        part=name,
        operator_type="Gather",
    )
    if not op.is_constant(given):
        op.approximated("rotary embedding: each position is assumed to read the angles of all positions")
    return result


_MICROSOFT = "com.microsoft"
_Others = tuple[tuple[str, tuple[Axis, ...]], ...]


@lowers("Attention", domain=_MICROSOFT)
def lower_microsoft_attention(op: Lowering) -> None:
    """Attention over queries, keys and values that one matrix product computes from one input.

    Raises InputError if shapes do not fit together.
    """
    heads = op.node.integer("num_heads", 0)
    data, weights = op.input_shape(0), op.input_shape(1)
    if op.has_input(4) or op.has_output(1) or op.node.integer("do_rotary", 0):
        op.unsupported("com.microsoft::Attention with a cache or with rotary embeddings is not modelled")
        return
    if len(data) != 3 or len(weights) != 2 or weights[0] != data[2] or heads < 1:
        raise op.node.error("wrong shapes of input and weights", f"{list(data)}, {list(weights)}", "[B, S, C], [C, K]")
    widths = op.node.integers("qkv_hidden_sizes", (weights[1] // 3,) * 3)
    if len(widths) != 3 or sum(widths) != weights[1] or any(width % heads for width in widths):
        raise op.node.error(
            "wrong numbers of channels of queries, keys and values",
            str(list(widths)),
            f"multiples of {heads} with the sum {weights[1]}",
        )
    packed = _projection(op, weights[1])
    starts = (0, widths[0], widths[0] + widths[1])
    query, key, value = (
        HeadTensor(packed, data[0], heads, data[1], width // heads, True, start)
        for width, start in zip(widths, starts, strict=True)
    )
    is_causal = op.node.integer("unidirectional", 0) != 0 and data[1] > 1
    _attend(op, query, key, value, mask=3, bias=5, hides_keys=is_causal)


def _projection(op: Lowering, channels: int) -> str:
    batch, positions, depth = op.input_shape(0)
    packed = op.temporary("projection", (batch, positions, channels), op.input())
    op.nest(
        (("C", depth), ("D", positions), ("K", channels), ("B", batch)),
        access(packed, "B", "D", "K"),
        {"I": access(op.input(), "B", "D", "C"), "W": access(op.input(1), "C", "K")},
        others=[broadcast(op, op.input(2), ("K",), {"K": channels})] if op.has_input(2) else (),
        unit=MAC_ARRAY,
        part="projection",
        operator_type="MatMul",
    )
    return packed


@lowers("MultiHeadAttention", domain=_MICROSOFT)
def lower_multi_head_attention(op: Lowering) -> None:
    """Attention in which each query head has a key head of its own. A bias is first added to queries, keys and values.

    Raises InputError if shapes do not fit together.
    """
    heads = op.node.integer("num_heads", 0)
    if not op.has_input(1) or not op.has_input(2):
        op.unsupported("MultiHeadAttention with packed inputs is not modelled")
        return
    query, key, value = (heads_of(op, op.input(index), heads) for index in range(3))
    if op.has_input(3):
        bias = op.input(3)
        widths = (0, query.heads * query.width, query.heads * query.width + key.heads * key.width)
        total = widths[2] + value.heads * value.width
        if op.shape(bias) != (total,):
            raise op.node.error("wrong shape of the bias", str(list(op.shape(bias))), f"[{total}]")
        query, key, value = (
            added_bias(op, data, bias, start, f"bias_{name}")
            for data, start, name in zip((query, key, value), widths, ("query", "key", "value"), strict=True)
        )
    past = optional_input(op, 6)
    offset = op.shape(past)[2] if past else 0
    key = joined(op, past, key, optional_output(op, 1), "present_key")
    value = joined(op, optional_input(op, 7), value, optional_output(op, 2), "present_value")
    is_causal = op.node.integer("unidirectional", 0) != 0 and offset + 1 < key.positions
    _attend(op, query, key, value, mask=4, bias=5, hides_keys=is_causal)


def _attend(
    op: Lowering, query: HeadTensor, key: HeadTensor, value: HeadTensor, *, mask: int, bias: int, hides_keys: bool
) -> None:
    """Add attention with a padding mask at input `mask`, and with a term at input `bias` that is
    added to the scores.
    """
    padding = optional_input(op, mask)
    others: _Others = ()
    if padding:
        forms: dict[tuple[int, ...], tuple[Axis, ...]] = {
            (key.batch,): ("B",),
            (key.batch, key.positions): ("B", "K"),
            (key.batch, query.positions, key.positions): ("B", "D", "K"),
        }
        if op.shape(padding) not in forms:
            op.unsupported(f"{op.node.operator_type} with a padding mask of this form is not modelled")
            return
        others = ((padding, forms[op.shape(padding)]),)
        hides_keys |= op.shape(padding) == (key.batch,)
    masks = (op.input(bias),) if op.has_input(bias) else ()
    parts = ScoreParts(hides_keys=hides_keys, masks=masks, others=others)
    attention(op, query, key, value, output_heads(op, query, value), parts)


@lowers("GroupQueryAttention", domain=_MICROSOFT)
def lower_group_query_attention(op: Lowering) -> None:
    """Causal attention in which several query heads share a key head. Queries and keys can be rotated, and the keys and
    values of earlier tokens can come from a cache.

    The lengths of the sequences are known only at run time, so every query is assumed to see all keys of the cache.
    Raises InputError if shapes do not fit together.
    """
    query, key, value = _query_key_value(op)
    if op.node.integer("do_rotary", 0):
        query, key = _turned(op, query, "query_"), _turned(op, key, "key_")
    length = optional_input(op, 5)
    key = _cached(op, optional_input(op, 3), key, optional_output(op, 1), length, "present_key")
    value = _cached(op, optional_input(op, 4), value, optional_output(op, 2), length, "present_value")
    others: _Others = ((length, batch_access(op, length, query.batch)),) if length else ()
    parts = ScoreParts(
        hides_keys=True,
        masks=(op.input(10),) if op.has_input(10) else (),
        has_softcap=has_softcap(op),
        others=others,
    )
    attention(op, query, key, value, output_heads(op, query, value), parts)


def _query_key_value(op: Lowering) -> tuple[HeadTensor, HeadTensor, HeadTensor]:
    """Heads of query, key and value. The heads come from three tensors, or from the first tensor if the other two
    tensors are missing.
    """
    heads, shared = op.node.integer("num_heads", 0), op.node.integer("kv_num_heads", 0)
    if op.has_input(1):
        query = heads_of(op, op.input(0), heads)
        return query, heads_of(op, op.input(1), shared), heads_of(op, op.input(2), shared)
    packed = heads_of(op, op.input(0), heads + 2 * shared)
    width = packed.width
    return (
        replace(packed, heads=heads),
        replace(packed, heads=shared, start=heads * width),
        replace(packed, heads=shared, start=(heads + shared) * width),
    )


def _turned(op: Lowering, data: HeadTensor, prefix: str) -> HeadTensor:
    positions = 9 if op.has_input(9) else 5
    angles = [
        angles_of_places(op, data, cache, positions, prefix + part) for part, cache in (("cosine", 7), ("sine", 8))
    ]
    shape = (data.batch, data.heads, data.positions, data.width)
    result = HeadTensor(op.temporary(f"{prefix}rotated", shape, data.tensor), *shape)
    turned = 2 * op.input_shape(7)[-1]
    is_interleaved = op.node.integer("rotary_interleaved", 0) != 0
    turn(op, data, result, (angles[0], angles[1]), turned, is_interleaved, prefix)
    return result


def _cached(op: Lowering, past: str, new: HeadTensor, present: str, length: str, part: str) -> HeadTensor:
    """Heads of the cache after the step: the entries of the tensor `past`, followed by the entries of `new`. `present`
    is the output tensor for this cache; '' if the operator has no such output.

    In a cache of fixed length, the position of the new entries is known only at run time. Each element of this cache is
    therefore assumed to depend on all new entries.
    """
    before = op.shape(past)[2] if past else 0
    if not present or op.shape(present)[2] == before + new.positions:
        return joined(op, past, new, present, part)
    shape = op.shape(present)
    if len(shape) != 4 or shape[:2] + shape[3:] != (new.batch, new.heads, new.width):
        raise op.node.error(
            f"wrong shape of output '{present}'", str(list(shape)), f"[{new.batch}, {new.heads}, .., {new.width}]"
        )
    outer = (("B", new.batch), ("H", new.heads), ("D", shape[2]), ("K", new.width))
    written = access(present, "B", "H", "D", "K")
    maps = [IndexMap((*outer, ("S", new.positions)), written, new.at("H", "S", "K"), is_exact=False)]
    if before:
        maps.append(IndexMap(outer, written, access(past, "B", "H", "D", "K"), is_exact=False))
    if length:
        maps.append(IndexMap(outer, written, access(length, *batch_access(op, length, new.batch)), is_exact=False))
    op.move(*maps, part=part, operator_type="Concat")
    op.approximated("a cache of fixed length: each element is assumed to depend on all new entries")
    return HeadTensor(present, new.batch, new.heads, shape[2], new.width)
