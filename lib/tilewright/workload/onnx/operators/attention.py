"""The standard attention operator, decomposed as `attention_parts` says."""

from tilewright.workload.onnx.lowering import Lowering, lowers
from tilewright.workload.onnx.operators.attention_parts import (
    Heads,
    ScoreParts,
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
        raise op.node.error("attribute 'qk_matmul_output_mode'", str(stage), "0 to 3")
    parts = ScoreParts(
        hides_keys=short > 0 or bool(lengths) or _hides_keys(op, query, key, offset),
        masks=(mask,) if mask and short < 0 else (),
        has_softcap=has_softcap(op),
        others=tuple(others),
        exposed=optional_output(op, 3),
        exposed_stage=stage,
    )
    attention(op, query, key, value, output_heads(op, query, value), parts)


def _hides_keys(op: Lowering, query: Heads, key: Heads, offset: int) -> bool:
    """Whether order or a window hides some key from some query; `offset` is the position of the first query."""
    left, right = (op.node.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    if op.node.integer("is_causal", 0):
        right = 0
    after = right >= 0 and offset + right + 1 < key.positions
    return after or (left >= 0 and offset + query.positions - 1 - left > 0)
