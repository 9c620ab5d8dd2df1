"""Bits per element of an operator's operands, from the attributes that a person adds to an ONNX node."""

from tilewright.workload.onnx.node import OnnxNode

_DEFAULT_BITS = 8


def precision_bits(node: OnnxNode, *, weight_is_activation: bool = False) -> tuple[tuple[str, int], ...]:
    """Bits of W, I, O_final and O (partial sums) by the attributes weight_size, act_size and output_size.

    Defaults are 8, 8 and twice act_size, as in zigzag-dse 3.9.1; ONNX element types are not looked at. A W that is an
    activation has the activation's bits. Raises InputError for values that are not positive integers.
    """
    activation = _bits(node, "act_size", _DEFAULT_BITS)
    weight = _bits(node, "weight_size", _DEFAULT_BITS)
    partial_sum = _bits(node, "output_size", 2 * activation)
    return (
        ("W", activation if weight_is_activation else weight),
        ("I", activation),
        ("O_final", activation),
        ("O", partial_sum),
    )


def _bits(node: OnnxNode, attribute: str, default: int) -> int:
    bits = node.integer(attribute, default)
    if bits < 1:
        raise node.error(f"attribute '{attribute}' (bits)", str(bits), "integer >= 1")
    return bits
