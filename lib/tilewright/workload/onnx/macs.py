"""Multiply-accumulates of operators without costs.

With these numbers, reports can say how much work has no costs.
"""

import math
from collections.abc import Callable, Mapping

from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_TYPES, UNMODELLED_WITHOUT_MACS
from tilewright.workload.onnx.lowering import is_registered
from tilewright.workload.onnx.matrix_products import matrix_product
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, Shapes
from tilewright.workload.onnx.operators.not_modelled import is_not_modelled
from tilewright.workload.onnx.products import conv_geometry


def counted_macs(node: OnnxNode, shapes: Shapes) -> int | None:
    """Number of multiply-accumulates of one operator, computed from shapes; None if it is not known.

    The number is 0 for operators of the types UNMODELLED_WITHOUT_MACS, and for modelled operators of types outside
    MAC_TYPES. For any other operator, a formula gives the number. The result is None if there is no formula for the
    operator, or if the shapes do not determine the number.
    """
    if node.operator_type in UNMODELLED_WITHOUT_MACS:
        return 0
    if is_registered(node.proto) and not is_not_modelled(node.proto) and node.proto.op_type not in MAC_TYPES:
        return 0
    counter = _COUNTERS.get(node.proto.op_type) if node.proto.domain in STANDARD_DOMAINS else None
    if counter is None:
        return None
    try:
        return counter(node, shapes)
    except (InputError, IndexError, ValueError, ZeroDivisionError, KeyError):
        return None


def is_counted(node: OnnxNode) -> bool:
    """True if there is a formula for the multiply-accumulates of the operator."""
    return node.proto.op_type in _COUNTERS and node.proto.domain in STANDARD_DOMAINS


def _conv(node: OnnxNode, shapes: Shapes) -> int:
    return conv_geometry(node, shapes).mac_count


def _matmul(node: OnnxNode, shapes: Shapes) -> int:
    return matrix_product(node, shapes).mac_count


def _plain_conv(node: OnnxNode, shapes: Shapes) -> int:
    """Multiply-accumulates of ConvInteger and DeformConv: number of output elements times number of elements of one
    filter.
    """
    return math.prod(node.output_shape(shapes)) * math.prod(node.input_shape(1, shapes)[1:])


def _plain_matmul(node: OnnxNode, shapes: Shapes) -> int:
    return math.prod(node.output_shape(shapes)) * node.input_shape(0, shapes)[-1]


def _transposed_conv(node: OnnxNode, shapes: Shapes) -> int:
    """Multiply-accumulates of a transposed convolution: input elements x output channels of a group x kernel
    elements.
    """
    return math.prod(node.input_shape(0, shapes)) * math.prod(node.input_shape(1, shapes)[1:])


def _recurrent(node: OnnxNode, shapes: Shapes) -> int:
    """Multiply-accumulates of a recurrent operator: steps x batch x (elements of W + elements of R). The shapes are
    W[directions, gates * hidden, inputs] and R[directions, gates * hidden, hidden].
    """
    steps_times_batch = math.prod(node.input_shape(0, shapes)[:2])
    return steps_times_batch * (math.prod(node.input_shape(1, shapes)) + math.prod(node.input_shape(2, shapes)))


_COUNTERS: Mapping[str, Callable[[OnnxNode, Shapes], int | None]] = {
    "Conv": _conv,
    "ConvInteger": _plain_conv,
    "ConvTranspose": _transposed_conv,
    "DeformConv": _plain_conv,
    "GRU": _recurrent,
    "Gemm": _matmul,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "MatMulInteger": _plain_matmul,
    "QLinearConv": _conv,
    "QLinearMatMul": _plain_matmul,
    "RNN": _recurrent,
}
