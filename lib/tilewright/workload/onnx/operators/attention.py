"""Attention operators: the standard one and those of com.microsoft, decomposed as `attention_parts` says."""

from tilewright.workload.access import fixed
from tilewright.workload.onnx.lowering import Lowering, lowers
from tilewright.workload.onnx.operators.attention_parts import (
    Heads,
    ScoreParts,
    added_bias,
    attention,
    heads_of,
    joined,
)
from tilewright.workload.onnx.operators.matrix_operands import Axis

_STAGES = 4
_MASK, _PAST_KEY, _PAST_VALUE, _LENGTHS = 3, 4, 5, 6
"""Inputs of the standard operator beside query, key and value."""


@lowers("Attention")
def lower_attention(op: Lowering) -> None:
    """Attention over heads with grouped queries, mask, causality, cache and soft cap (operator sets 23 on).

    The cache goes before the new keys and values, and to the outputs. Raises InputError for shapes that do not fit.
    """
    query = heads_of(op, op.input(0), op.node.integer("q_num_heads", 0))
    key, value = (heads_of(op, op.input(index), op.node.integer("kv_num_heads", 0)) for index in (1, 2))
    past = _optional(op, _PAST_KEY)
    offset = op.shape(past)[2] if past else 0
    key = joined(op, past, key, _optional_output(op, 1), "present_key")
    value = joined(op, _optional(op, _PAST_VALUE), value, _optional_output(op, 2), "present_value")
    mask, lengths = _optional(op, _MASK), _optional(op, _LENGTHS)
    short = op.shape(mask)[-1] if mask and 1 < op.shape(mask)[-1] < key.positions else -1
    others: list[tuple[str, tuple[Axis, ...]]] = [(lengths, ("B",))] if lengths else []
    if short > 0:
        axes = ("B", "H", "D", "K")[4 - len(op.shape(mask)) :]
        sizes = op.shape(mask)
        others.append((mask, tuple(fixed() if size == 1 else axis for size, axis in zip(sizes, axes, strict=True))))
    stage = op.node.integer("qk_matmul_output_mode", 0)
    if not 0 <= stage < _STAGES:
        raise op.node.error("attribute 'qk_matmul_output_mode'", str(stage), "0 to 3")
    parts = ScoreParts(
        hides_keys=short > 0 or bool(lengths) or _hides_keys(op, query, key, offset),
        masks=(mask,) if mask and short < 0 else (),
        has_softcap=op.node.has("softcap") and _real(op, "softcap") > 0,
        others=tuple(others),
        exposed=_optional_output(op, 3),
        exposed_stage=stage,
    )
    attention(op, query, key, value, _output_heads(op, query, value), parts)


@lowers("MultiHeadAttention", domain="com.microsoft")
def lower_multi_head_attention(op: Lowering) -> None:
    """Attention with as many key heads as query heads; a bias is added to queries, keys and values first."""
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
            raise op.node.error("shape of the bias", str(list(op.shape(bias))), f"[{total}]")
        query, key, value = (
            added_bias(op, data, bias, start, f"bias_{name}")
            for data, start, name in zip((query, key, value), widths, ("query", "key", "value"), strict=True)
        )
    padding, past = _optional(op, 4), _optional(op, 6)
    offset = op.shape(past)[2] if past else 0
    key = joined(op, past, key, _optional_output(op, 1), "present_key")
    value = joined(op, _optional(op, 7), value, _optional_output(op, 2), "present_value")
    parts = ScoreParts(
        hides_keys=op.node.integer("unidirectional", 0) != 0 and offset + 1 < key.positions,
        masks=(op.input(5),) if op.has_input(5) else (),
        others=((padding, ("B", "K")),) if padding and op.shape(padding) == (key.batch, key.positions) else (),
    )
    if padding and not parts.others:
        op.unsupported("MultiHeadAttention with this form of padding mask is not modelled")
        return
    attention(op, query, key, value, _output_heads(op, query, value), parts)


@lowers("GroupQueryAttention", domain="com.microsoft")
def lower_group_query_attention(op: Lowering) -> None:
    """Causal attention in which query heads share key heads, without rotation inside and with a cache that grows.

    Lengths at run time hide keys: every query counts as seeing all of them.
    """
    heads, shared = op.node.integer("num_heads", 0), op.node.integer("kv_num_heads", 0)
    if not op.has_input(1) or not op.has_input(2) or op.node.integer("do_rotary", 0):
        op.unsupported("GroupQueryAttention with packed inputs or rotation inside is not modelled")
        return
    query = heads_of(op, op.input(0), heads)
    key, value = (heads_of(op, op.input(index), shared) for index in (1, 2))
    past = _optional(op, 3)
    present = _optional_output(op, 1)
    before = op.shape(past)[2] if past else 0
    if present and op.shape(present)[2] != before + key.positions:
        op.unsupported("GroupQueryAttention with a cache of fixed length is not modelled")
        return
    key = joined(op, past, key, present, "present_key")
    value = joined(op, _optional(op, 4), value, _optional_output(op, 2), "present_value")
    others = tuple((name, ("B",)) for index in (5,) if (name := _optional(op, index)))
    parts = ScoreParts(
        hides_keys=bool(others) or before + 1 < key.positions,
        others=tuple((name, axes if op.shape(name) else ()) for name, axes in others),
        has_softcap=op.node.has("softcap") and _real(op, "softcap") > 0,
    )
    attention(op, query, key, value, _output_heads(op, query, value), parts)


def _hides_keys(op: Lowering, query: Heads, key: Heads, offset: int) -> bool:
    """Whether order or a window hides some key from some query; `offset` is the position of the first query."""
    left, right = (op.node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if op.node.integer("is_causal", 0):
        right = 0
    after = right >= 0 and offset + right + 1 < key.positions
    return after or (left >= 0 and offset + query.positions - 1 - left > 0)


def _output_heads(op: Lowering, query: Heads, value: Heads) -> Heads:
    """The output in the layout of its rank. Raises InputError if its shape does not follow from the inputs."""
    shape = op.output_shape()
    flat = (query.batch, query.positions, query.heads * value.width)
    full = (query.batch, query.heads, query.positions, value.width)
    if shape not in (flat, full):
        raise op.node.error("shape of the output", str(list(shape)), f"{list(flat)} or {list(full)}")
    return Heads(op.output(), query.batch, query.heads, query.positions, value.width, is_flat=len(shape) == 3)


def _optional(op: Lowering, index: int) -> str:
    return op.input(index) if op.has_input(index) else ""


def _optional_output(op: Lowering, index: int) -> str:
    return op.output(index) if op.has_output(index) else ""


def _real(op: Lowering, name: str) -> float:
    return next((attribute.f for attribute in op.node.proto.attribute if attribute.name == name), 0.0)
