"""Standard attention operator, decomposed into scores, scaling, mask, softmax and the weighted sum.

The parts accept heads in any tensor layout. The modules of other attention operators use these parts too.
"""

from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, affine, fixed
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, access, lowers
from tilewright.workload.onnx.operators.elementwise import elementwise
from tilewright.workload.onnx.operators.matrix import Axis, as_index, broadcast, split_axis
from tilewright.workload.onnx.operators.softmax import softmax_parts

_SCORES = ("B", "H", "D", "K")
"""Loops over the scores: batch, query head, query, key."""


@dataclass(frozen=True)
class HeadTensor:
    """Tensor with the channels of several heads: [batch, heads, positions, width], or [batch, positions, heads * width]
    if it is flat."""

    tensor: str
    batch: int
    heads: int
    positions: int
    width: int
    is_flat: bool = False
    start: int = 0
    """First channel of the heads. The index is above 0 if other channels come before the heads in a flat tensor."""

    def at(self, head: Axis, position: Axis, channel: Axis) -> TensorAccess:
        """Element of the tensor at the given indices, for the batch entry of loop B."""
        if not self.is_flat:
            return access(self.tensor, "B", head, position, channel)
        index, inner = as_index(head), as_index(channel)
        terms = tuple((name, coefficient * self.width) for name, coefficient in index.terms)
        flat = AxisIndex((*terms, *inner.terms), self.start + index.offset * self.width + inner.offset)
        return access(self.tensor, "B", position, flat)


@dataclass(frozen=True)
class ScoreParts:
    """Operations on the scores between the two matrix products."""

    hides_keys: bool = False
    """True if some key is hidden from some query: by causality, by a window, by the lengths of sequences, or by a mask
    with fewer columns than keys."""
    masks: tuple[str, ...] = ()
    """Names of the tensors that are broadcast to [batch, heads, queries, keys] and added to the scores."""
    has_softcap: bool = False
    others: tuple[tuple[str, tuple[Axis, ...]], ...] = ()
    """Further tensors that decide which keys are hidden, such as lengths. Each is a pair (name, indices over the loops
    B, H, D, K). Reading them costs nothing."""
    exposed: str = ""
    """Name of the output that holds the scores; '' if there is no such output."""
    exposed_stage: int = 0
    """Stage of the scores in the output `exposed`: 0 after scaling, 1 after the soft cap, 2 after the mask, 3 after
    softmax.
    """


def attention(
    op: Lowering, query: HeadTensor, key: HeadTensor, value: HeadTensor, output: HeadTensor, parts: ScoreParts
) -> None:
    """Add output = softmax(scale * query * key + mask) * value. Consecutive query heads share a key head.

    The multiply-accumulates are batch x query heads x queries x keys x (key width + value width). Raises InputError if
    the heads do not fit together.
    """
    if not query.batch == key.batch == value.batch:
        raise op.node.error(
            "wrong batches of queries, keys and values", f"{query.batch}, {key.batch}, {value.batch}", "equal"
        )
    shared = query.heads // max(key.heads, 1)
    if key.heads < 1 or query.heads != shared * key.heads or value.heads != key.heads:
        raise op.node.error(
            "wrong numbers of heads",
            f"{query.heads}, {key.heads}, {value.heads}",
            "the same number of key heads and value heads, which must divide the number of query heads",
        )
    if query.width != key.width or value.positions != key.positions or value.width != output.width:
        raise op.node.error(
            "wrong sizes of queries, keys and values",
            f"widths {query.width}, {key.width}, {value.width}; positions {key.positions}, {value.positions}",
        )
    shape = (query.batch, query.heads, query.positions, key.positions)
    for mask in parts.masks:
        broadcast(op, mask, _SCORES, dict(zip(_SCORES, shape, strict=True)))
    scores = _product(op, query, key, shape, shared)
    probabilities = _probabilities(op, scores, parts)
    head = split_axis("G", shared, "H")
    op.nest(
        (
            ("C", key.positions),
            ("D", query.positions),
            ("K", value.width),
            *_head_loops(query.batch, key.heads, shared),
        ),
        output.at(head, "D", "K"),
        {"I": access(probabilities, "B", head, "D", "C"), "W": value.at("G", "C", "K")},
        unit=MAC_ARRAY,
        part="values",
        operator_type="MatMul",
        is_exact=not parts.hides_keys,
    )
    if parts.hides_keys:
        op.approximated("attention hides keys from some queries, but work and dependences are counted for all keys")


def _product(op: Lowering, query: HeadTensor, key: HeadTensor, shape: tuple[int, ...], shared: int) -> str:
    scores = op.temporary("scores", shape, query.tensor)
    head = split_axis("G", shared, "H")
    op.nest(
        (
            ("C", query.width),
            ("D", query.positions),
            ("K", key.positions),
            *_head_loops(query.batch, key.heads, shared),
        ),
        access(scores, "B", head, "D", "K"),
        {"I": query.at(head, "D", "C"), "W": key.at("G", "K", "C")},
        unit=MAC_ARRAY,
        part="scores",
        operator_type="MatMul",
    )
    return scores


def _head_loops(batch: int, groups: int, shared: int) -> tuple[tuple[str, int], ...]:
    return ("B", batch), ("G", groups), ("H", shared)


def _probabilities(op: Lowering, scores: str, parts: ScoreParts) -> str:
    shape = op.shape(scores)
    stages = [_unary(op, scores, "scaled", "Mul")]
    stages.append(_unary(op, stages[-1], "capped", "Tanh") if parts.has_softcap else stages[-1])
    stages.append(_masked(op, stages[-1], parts))
    probabilities = op.temporary("probabilities", shape, scores)
    softmax_parts(op, stages[-1], probabilities, len(shape) - 1, "softmax_")
    stages.append(probabilities)
    if parts.exposed:
        names = _SCORES
        shown = IndexMap(
            tuple(zip(names, shape, strict=True)),
            access(parts.exposed, *names),
            access(stages[parts.exposed_stage], *names),
        )
        op.move(shown, part="exposed", operator_type="Identity")
    return probabilities


def _unary(op: Lowering, source: str, part: str, operator_type: str) -> str:
    result = op.temporary(part, op.shape(source), source)
    elementwise(op, result, [source], part=part, operator_type=operator_type)
    return result


def _masked(op: Lowering, scores: str, parts: ScoreParts) -> str:
    """Mask the scores, and return the name of the resulting tensor. Each tensor in `parts.masks` is added to the
    scores.

    In two cases, a further layer with one operation per score hides keys: if `parts.others` has tensors, or if
    `parts.hides_keys` is true and there are no mask tensors.
    """
    names, shape = _SCORES, op.shape(scores)
    loops = tuple(zip(names, shape, strict=True))
    result = scores
    for number, mask in enumerate(parts.masks):
        target = op.temporary(f"masked{number}", shape, scores)
        elementwise(
            op, target, [result, mask], part=f"mask{number}", operator_type="Add", is_exact=not parts.hides_keys
        )
        result = target
    if parts.others or (parts.hides_keys and not parts.masks):
        target = op.temporary("visible", shape, scores)
        op.nest(
            loops,
            access(target, *names),
            {"I": access(result, *names)},
            others=[access(tensor, *axes) for tensor, axes in parts.others],
            part="hide",
            operator_type="Where",
            is_exact=not parts.hides_keys,
        )
        result = target
    return result


def joined(op: Lowering, past: str, new: HeadTensor, output: str, part: str) -> HeadTensor:
    """Heads with the positions of the tensor `past`, followed by the positions of `new`. If `past` is '', the result is
    `new`. If `output` is not '', the joined heads are also written to the tensor `output`.
    """
    before = op.shape(past)[2] if past else 0
    if not past and not output:
        return new
    shape = (new.batch, new.heads, before + new.positions, new.width)
    if past and op.shape(past) != (new.batch, new.heads, before, new.width):
        raise op.node.error(
            "wrong shape of a cache", str(list(op.shape(past))), f"[{new.batch}, {new.heads}, .., {new.width}]"
        )
    target = output or op.temporary(part, shape, new.tensor)
    if op.shape(target) != shape:
        raise op.node.error(f"wrong shape of output '{target}'", str(list(op.shape(target))), str(list(shape)))
    loops = (("B", new.batch), ("H", new.heads), ("D", new.positions), ("K", new.width))
    maps = [IndexMap(loops, access(target, "B", "H", affine(("D", 1), offset=before), "K"), new.at("H", "D", "K"))]
    if before:
        old = ("B", "H", "D", "K")
        maps.append(IndexMap((*loops[:2], ("D", before), loops[3]), access(target, *old), access(past, *old)))
    op.move(*maps, part=part, operator_type="Concat")
    return HeadTensor(target, new.batch, new.heads, before + new.positions, new.width) if past else new


def heads_of(op: Lowering, tensor: str, heads: int) -> HeadTensor:
    """Heads of a tensor [batch, heads, positions, width] or [batch, positions, width of all `heads`].

    Raises InputError if the tensor has another rank, or if its width is not a multiple of `heads`.
    """
    shape = op.shape(tensor)
    if len(shape) == 4:
        return HeadTensor(tensor, shape[0], shape[1], shape[2], shape[3])
    if len(shape) != 3 or heads < 1 or shape[2] % heads:
        raise op.node.error(
            f"wrong number of heads of tensor '{tensor}'",
            f"{heads} of {list(shape)}",
            "rank 4, or a last axis whose size is a multiple of the number of heads",
        )
    return HeadTensor(tensor, shape[0], heads, shape[1], shape[2] // heads, is_flat=True)


def added_bias(op: Lowering, data: HeadTensor, bias: str, start: int, part: str) -> HeadTensor:
    """Heads after a bias is added. The bias has one value per channel of each head; these values start at element
    `start` of the tensor `bias`.
    """
    shape = op.shape(data.tensor)
    result = HeadTensor(
        op.temporary(part, shape, data.tensor), data.batch, data.heads, data.positions, data.width, data.is_flat
    )
    channel = affine(("H", data.width), ("K", 1), offset=start)
    op.nest(
        (("B", data.batch), ("H", data.heads), ("D", data.positions), ("K", data.width)),
        result.at("H", "D", "K"),
        {"I": data.at("H", "D", "K"), "W": access(bias, channel)},
        part=part,
        operator_type="Add",
    )
    return result


def batch_access(op: Lowering, tensor: str, batch: int) -> tuple[Axis, ...]:
    """Index along each axis of a tensor with one value per batch entry, or with a single value for all entries. Raises
    InputError if the shape is not [batch], [1], [batch, 1] or [1, 1]."""
    shape = op.shape(tensor)
    if len(shape) > 2 or shape[:1] not in ((batch,), (1,)) or any(size != 1 for size in shape[1:]):
        raise op.node.error(f"wrong shape of tensor '{tensor}'", str(list(shape)), f"[{batch}]")
    return tuple(fixed() if size == 1 else "B" for size in shape)


def output_heads(op: Lowering, query: HeadTensor, value: HeadTensor) -> HeadTensor:
    """Description of the output tensor as a tensor of heads. The tensor is flat if it has three axes. Raises InputError
    if the output shape does not fit the inputs.
    """
    shape = op.output_shape()
    flat = (query.batch, query.positions, query.heads * value.width)
    full = (query.batch, query.heads, query.positions, value.width)
    if shape not in (flat, full):
        raise op.node.error("wrong shape of the output", str(list(shape)), f"{list(flat)} or {list(full)}")
    return HeadTensor(op.output(), query.batch, query.heads, query.positions, value.width, is_flat=len(shape) == 3)


def optional_input(op: Lowering, index: int) -> str:
    """Name of input `index`; '' if it is missing."""
    return op.input(index) if op.has_input(index) else ""


def optional_output(op: Lowering, index: int) -> str:
    """Name of output `index`; '' if it is missing."""
    return op.output(index) if op.has_output(index) else ""


def has_softcap(op: Lowering) -> bool:
    """True if the attribute `softcap` limits the scores."""
    return any(attribute.name == "softcap" and attribute.f > 0 for attribute in op.node.proto.attribute)


_STAGES = 4
_MASK, _PAST_KEY, _PAST_VALUE, _LENGTHS = 3, 4, 5, 6
"""Indices of four inputs of the standard operator: mask, earlier keys, earlier values, and lengths of sequences."""


@lowers("Attention")
def lower_attention(op: Lowering) -> None:
    """Attention over heads with grouped queries, mask, causality, cache and soft cap (since operator set 23).

    The cache comes before the new keys and values. The cache with the new entries is also written to the outputs.
    Raises InputError if shapes do not fit together.
    """
    query = heads_of(op, op.input(0), op.node.integer("q_num_heads", 0))
    key, value = (heads_of(op, op.input(index), op.node.integer("kv_num_heads", 0)) for index in (1, 2))
    past = optional_input(op, _PAST_KEY)
    offset = op.shape(past)[2] if past else 0
    key = joined(op, past, key, optional_output(op, 1), "present_key")
    value = joined(op, optional_input(op, _PAST_VALUE), value, optional_output(op, 2), "present_value")
    mask, lengths = optional_input(op, _MASK), optional_input(op, _LENGTHS)
    short = op.shape(mask)[-1] if mask and op.shape(mask)[-1] < key.positions else -1
    others: list[tuple[str, tuple[Axis, ...]]] = [(lengths, batch_access(op, lengths, query.batch))] if lengths else []
    if short > 0:
        sizes = dict(zip(("B", "H", "D", "K"), (query.batch, query.heads, query.positions, short), strict=True))
        others.append((mask, broadcast(op, mask, tuple(sizes), sizes).axes))
    stage = op.node.integer("qk_matmul_output_mode", 0)
    if not 0 <= stage < _STAGES:
        raise op.node.error("wrong attribute 'qk_matmul_output_mode'", str(stage), "0 to 3")
    parts = ScoreParts(
        hides_keys=short > 0 or bool(lengths) or _hides_keys(op, query, key, offset),
        masks=(mask,) if mask and short < 0 else (),
        has_softcap=has_softcap(op),
        others=tuple(others),
        exposed=optional_output(op, 3),
        exposed_stage=stage,
    )
    attention(op, query, key, value, output_heads(op, query, value), parts)


def _hides_keys(op: Lowering, query: HeadTensor, key: HeadTensor, offset: int) -> bool:
    """True if a key is hidden from a query by causality or by a window. `offset` is the position of the first query."""
    left, right = (op.node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if op.node.integer("is_causal", 0):
        right = 0
    after = right >= 0 and offset + right + 1 < key.positions
    return after or (left >= 0 and offset + query.positions - 1 - left > 0)
