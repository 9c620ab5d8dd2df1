"""Shapes of operators for which onnx has no inference: quantisers and contrib operators, and old or derived operators.

The lowering of an operator can state its shapes itself (`shapes` of `lowers`). The tables in this module have the
shapes of the other operators.

Sources: the operator documents of qonnx 1.0 and Brevitas, ContribOperators.md of ONNX Runtime, Changelog.md of ONNX.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx

from tilewright.base.errors import InputError, Problem
from tilewright.workload.onnx.node import STANDARD_DOMAINS, Shape
from tilewright.workload.onnx.resolution.evaluation import Values

Output = tuple[int, tuple[int | None, ...]] | None
"""Pair (element type, sizes) of one output; None if the shape of the output is not known. A size is None if it is
decided at run time.
"""

QUANTISER_DOMAINS = frozenset({"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"})
CONTRIB_DOMAIN = "com.microsoft"
MISJUDGED = frozenset({"STFT"})
"""Standard operators for which onnx infers wrong shapes. For STFT, onnx gives all bins even if only half of them are
computed."""
DELEGATED = {"FusedConv": ("Conv", 3), "FusedGemm": ("Gemm", 3)}
"""Contrib operators with the shapes of a standard operator: contrib operator -> (standard operator, number of inputs
that both operators have)."""
DELEGATED_CHANNELS_LAST = {
    "NhwcConv": ("Conv", 3),
    "NhwcFusedConv": ("Conv", 3),
    "NhwcMaxPool": ("MaxPool", 1),
    "QLinearConv": ("QLinearConv", 9),
}
"""Operators with the channels last: operator -> (standard operator for the same computation, number of inputs that both
operators have).

The channels are the last axis of the first input and of the output. QLinearConv has this form only if an attribute is
set. The filters have the layout of the ONNX standard."""


def has_channels_last(node: onnx.NodeProto) -> bool:
    """True if the channels of the data are the last axis. Only operators of onnxruntime have this layout."""
    if node.op_type.startswith("Nhwc"):
        return True
    default = 1 if node.op_type in ("GroupNorm", "SkipGroupNorm") else 0
    return next((a.i for a in node.attribute if a.name == "channels_last"), default) != 0


@dataclass(frozen=True)
class CustomCall:
    """Operator with the shapes, element types and values of its inputs. Only small constants have values. The entry of
    a missing input is None.
    """

    name: str
    node: onnx.NodeProto
    shapes: Sequence[Shape | None]
    element_types: Sequence[int | None]
    values: Sequence[Values | None]

    def shape(self, index: int) -> Shape:
        """Shape of input `index`. Raises InputError if the input is missing."""
        if index >= len(self.shapes) or self.shapes[index] is None:
            raise InputError([Problem(f"{self.node.op_type} needs input {index}, which is missing", path=self.name)])
        return self.shapes[index]  # type: ignore[return-value]

    def element_type(self, index: int) -> int:
        """Element type of input `index`; float if the input is missing."""
        given = self.element_types[index] if index < len(self.element_types) else None
        return onnx.TensorProto.FLOAT if given is None else given

    def value(self, index: int) -> int | None:
        """Value of input `index` as an integer; None if the input has no known values or does not have exactly one
        element.
        """
        values = self.values[index] if index < len(self.values) else None
        return int(values.reshape(-1)[0]) if values is not None and values.size == 1 else None

    def integer(self, key: str, default: int) -> int:
        """Value of an integer attribute."""
        return next((a.i for a in self.node.attribute if a.name == key), default)


ShapeRule = Callable[[CustomCall], list[Output]]
"""Function that computes the outputs of an operator, in order."""


class OperatorFacts(NamedTuple):
    """Facts about an operator that onnx does not know. The lowering of the operator states these facts."""

    shapes: ShapeRule | None
    """Rule for the shapes of the outputs. None if onnx infers the shapes, or if the file must store them."""
    attributes: frozenset[str] | None
    """Names of the attributes; None if they are not known. Unknown attributes are then not reported."""


STATED: dict[tuple[str, str], OperatorFacts] = {}
"""Facts about operators by (domain, operator type). `lowers` adds them when the module of an operator is imported."""


def is_custom(node: onnx.NodeProto) -> bool:
    """True if this module has the shapes of the operator."""
    is_delegated = node.op_type in DELEGATED or node.op_type in DELEGATED_CHANNELS_LAST
    return _function_of(node) is not None or (node.domain == CONTRIB_DOMAIN and is_delegated)


def _function_of(node: onnx.NodeProto) -> ShapeRule | None:
    domain = "" if node.domain in STANDARD_DOMAINS else node.domain
    stated = STATED.get((domain, node.op_type))
    if stated is not None and stated.shapes is not None:
        return stated.shapes
    if node.domain in QUANTISER_DOMAINS:
        return _QUANTISERS.get(node.op_type)
    if node.domain == CONTRIB_DOMAIN:
        return _CONTRIB.get(node.op_type)
    return _STANDARD.get(node.op_type) if not domain else None


def custom_outputs(call: CustomCall) -> list[Output] | None:
    """Element type and sizes of each output of an operator, in the order of the outputs; None for an operator without a
    shape rule. Raises InputError if the operator does not fit its inputs.
    """
    function = _function_of(call.node)
    if function is None:
        return None
    try:
        return function(call)
    except (IndexError, ValueError):
        shapes = ", ".join(str(list(shape)) for shape in call.shapes if shape is not None)
        raise InputError(
            [Problem(f"{call.node.op_type} does not fit its inputs", path=call.name, value=shapes)]
        ) from None


def like_first_input(call: CustomCall) -> list[Output]:
    """One output with the shape and the element type of the first input."""
    return [(call.element_type(0), call.shape(0))]


def _same_twice(call: CustomCall) -> list[Output]:
    return like_first_input(call) * 2


def _broadcast(call: CustomCall, *indices: int) -> Shape:
    return tuple(np.broadcast_shapes(*(call.shape(index) for index in indices)))


def _comparison(call: CustomCall) -> list[Output]:
    return [(onnx.TensorProto.BOOL, _broadcast(call, 0, 1))]


def _quantised_binary(call: CustomCall) -> list[Output]:
    return [(call.element_type(0), _broadcast(call, 0, 3))]


def _skip_norm(call: CustomCall) -> list[Output]:
    statistics: Output = (onnx.TensorProto.FLOAT, (*call.shape(0)[:-1], 1))
    return [*like_first_input(call), statistics, statistics, *like_first_input(call)]


def _skip_group_norm(call: CustomCall) -> list[Output]:
    return [*like_first_input(call), *like_first_input(call)]


def _layer_norm(call: CustomCall) -> list[Output]:
    """Outputs: the result, then two statistics of equal shape (Mean and InvStdDev). A normalisation without a mean has
    only one statistic, InvStdDev."""
    shape, axis = call.shape(0), call.integer("axis", -1)
    if not -len(shape) <= axis < len(shape):
        raise ValueError
    first = axis % len(shape)
    statistics: Output = (onnx.TensorProto.FLOAT, (*shape[:first], *(1 for _ in shape[first:])))
    call.shape(1)
    return [*like_first_input(call), statistics, statistics]


def _embed_norm(call: CustomCall) -> list[Output]:
    batch, length = call.shape(0)
    hidden = call.shape(2)[1]
    embedded: Output = (call.element_type(2), (batch, length, hidden))
    return [embedded, (onnx.TensorProto.INT32, (batch,)), embedded]


def matrix_product_shape(first: Shape, second: Shape) -> Shape:
    """Shape of a matrix product by the rules of MatMul. Raises ValueError if the operands do not fit together."""
    left = first if len(first) > 1 else (1, *first)
    right = second if len(second) > 1 else (*second, 1)
    if not first or not second or left[-1] != right[-2]:
        raise ValueError
    rows = left[-2:-1] if len(first) > 1 else ()
    columns = right[-1:] if len(second) > 1 else ()
    return (*np.broadcast_shapes(left[:-2], right[:-2]), *rows, *columns)


def _fused_matmul(call: CustomCall) -> list[Output]:
    operands = []
    for index, key in ((0, "A"), (1, "B")):
        shape = call.shape(index)
        if call.integer(f"transBatch{key}", 0):
            return [None]
        transposed = call.integer(f"trans{key}", 0) and len(shape) > 1
        operands.append((*shape[:-2], shape[-1], shape[-2]) if transposed else shape)
    return [(call.element_type(0), matrix_product_shape(*operands))]


def _float_matmul(call: CustomCall) -> list[Output]:
    return [(onnx.TensorProto.FLOAT, matrix_product_shape(call.shape(0), call.shape(1)))]


def _packed_matmul(call: CustomCall) -> list[Output]:
    columns, depth = call.integer("N", 0), call.integer("K", 0)
    if call.shape(0)[-1] != depth or columns < 1:
        raise ValueError
    return [(call.element_type(0), (*call.shape(0)[:-1], columns))]


def _attention(call: CustomCall) -> list[Output]:
    """Outputs: result [batch, length, v], and cache [2, batch, heads, cached length, v / heads].

    Inputs are data [batch, length, hidden], weights [hidden, q + k + v] and an earlier cache. q, k and v are the widths
    of query, key and value.
    """
    batch, length, _ = call.shape(0)
    sizes = next((list(a.ints) for a in call.node.attribute if a.name == "qkv_hidden_sizes"), [])
    hidden = sizes[2] if sizes else call.shape(1)[1] // 3
    output: Output = (call.element_type(0), (batch, length, hidden))
    heads = call.integer("num_heads", 0)
    if heads < 1 or hidden % heads:
        return [output]
    past = call.shape(4)[3] if len(call.shapes) > 4 and call.shapes[4] is not None else 0
    total = past if call.integer("past_present_share_buffer", 0) else past + length
    return [output, (call.element_type(0), (2, batch, heads, total, hidden // heads))]


def _multi_head_attention(call: CustomCall) -> list[Output]:
    """Outputs of MultiHeadAttention: the result, then the caches of keys and of values if the number of heads is known.

    The query has the shape [batch, tokens, channels]. Keys and values have this form or the form [batch, heads, tokens,
    channels of a head].
    """
    query = call.shape(0)
    if len(query) != 3 or len(call.shapes) < 3 or call.shapes[1] is None or call.shapes[2] is None:
        return [None]
    value, heads = call.shape(2), call.integer("num_heads", 0)
    output: Output = (call.element_type(0), (*query[:2], value[2] if len(value) == 3 else value[1] * value[3]))
    if heads < 1:
        return [output]
    present: list[Output] = []
    for index, past in ((1, 6), (2, 7)):
        data = call.shape(index)
        length, width = (data[1], data[2] // heads) if len(data) == 3 else (data[2], data[3])
        before = call.shape(past)[2] if len(call.shapes) > past and call.shapes[past] is not None else 0
        present.append((call.element_type(0), (query[0], heads, before + length, width)))
    return [output, *present]


def _group_query_attention(call: CustomCall) -> list[Output]:
    """Three outputs: the result, the key cache and the value cache.

    Query, key and value are three inputs, or the first input contains all of them. The length of a cache is the length
    of the past cache or of the whole sequence, whichever is larger. There are two cases if the length of the whole
    sequence is not known: without past tokens, a cache has the length of the new sequence; with past tokens, the length
    of a cache is not known.
    """
    heads, shared = call.integer("num_heads", 0), call.integer("kv_num_heads", 0)
    batch, length, width = call.shape(0)
    is_packed = len(call.shapes) < 3 or call.shapes[1] is None
    if heads < 1 or shared < 1:
        raise ValueError
    size = width // (heads + 2 * shared if is_packed else heads)
    output: Output = (call.element_type(0), (batch, length, heads * size))
    past = call.shape(3) if len(call.shapes) > 3 and call.shapes[3] is not None else None
    before, total = past[2] if past else 0, call.value(6)
    present: int | None = max(before, total) if total is not None else length if not before else None
    kind = call.element_type(3) if past else call.element_type(0)
    cache: Output = (kind, (batch, shared, present, past[3] if past else size))
    return [output, cache, cache]


def _block_gather(call: CustomCall) -> list[Output]:
    """Outputs of GatherBlockQuantized: entries of a quantised table, in the element type of the scales. Elements
    narrower than a byte are packed along the last axis of the table.
    """
    data, indices = call.shape(0), call.shape(1)
    axis = call.integer("gather_axis", 0)
    if not -len(data) <= axis < len(data):
        raise ValueError
    bits = call.integer("bits", 4)
    if call.element_type(0) == onnx.TensorProto.UINT8 and bits in (2, 4):
        data = (*data[:-1], data[-1] * (8 // bits))
    axis %= len(data)
    return [(call.element_type(2), (*data[:axis], *indices, *data[axis + 1 :]))]


def _global_average(call: CustomCall) -> list[Output]:
    shape = call.shape(0)
    if call.integer("channels_last", 0):
        return [(call.element_type(0), (shape[0], *(1 for _ in shape[2:]), shape[-1]))]
    return [(call.element_type(0), (*shape[:2], *(1 for _ in shape[2:])))]


def _quantised_concat(call: CustomCall) -> list[Output]:
    """Outputs of a concatenation. The inputs are the scale and zero point of the result, then three inputs for each
    part: a tensor, its scale and its zero point."""
    parts = [call.shape(index) for index in range(2, len(call.shapes), 3)]
    axis = call.integer("axis", 1)
    joined = list(parts[0])
    joined[axis] = sum(part[axis] for part in parts)
    for part in parts:
        if len(part) != len(joined):
            raise ValueError
    return [(call.element_type(2), tuple(joined))]


def _gemm_like(call: CustomCall) -> list[Output]:
    """Outputs of QGemm. The inputs are A with its scale and zero point, B with its scale and zero point, the bias, and
    the scale of the result."""
    first, second = call.shape(0), call.shape(3)
    rows = first[1] if call.integer("transA", 0) else first[0]
    columns = second[0] if call.integer("transB", 0) else second[1]
    scaled = len(call.shapes) > 7 and call.shapes[7] is not None
    return [(call.element_type(0) if scaled else onnx.TensorProto.FLOAT, (rows, columns))]


def _legacy_reshape(call: CustomCall) -> list[Output]:
    shape = next((list(a.ints) for a in call.node.attribute if a.name == "shape"), None)
    if shape is None:
        return [None]
    source = call.shape(0)
    sizes = [source[axis] if size == 0 else size for axis, size in enumerate(shape)]
    known = int(np.prod([size for size in sizes if size != -1], dtype=object))
    total = int(np.prod(source, dtype=object))
    return [(call.element_type(0), tuple(total // max(known, 1) if size == -1 else size for size in sizes))]


def _legacy_concat(call: CustomCall) -> list[Output]:
    axis = call.integer("axis", 1)
    joined = list(call.shape(0))
    joined[axis] = sum(call.shape(index)[axis] for index in range(len(call.shapes)))
    return [(call.element_type(0), tuple(joined))]


def _legacy_gemm(call: CustomCall) -> list[Output]:
    first, second = call.shape(0), call.shape(1)
    rows = first[1] if call.integer("transA", 0) else first[0]
    columns = second[0] if call.integer("transB", 0) else second[1]
    return [(call.element_type(0), (rows, columns))]


def _legacy_cast(call: CustomCall) -> list[Output]:
    name = next((a.s.decode("ascii", "replace").upper() for a in call.node.attribute if a.name == "to"), "")
    numbers = dict(onnx.TensorProto.DataType.items())
    return [(numbers[name], call.shape(0)) if name in numbers else None]


def _legacy_pad(call: CustomCall) -> list[Output]:
    pads = next((list(a.ints) for a in call.node.attribute if a.name == "paddings"), [])
    shape = call.shape(0)
    if len(pads) != 2 * len(shape):
        raise ValueError
    before, after = pads[: len(shape)], pads[len(shape) :]
    return [
        (call.element_type(0), tuple(size + low + high for size, low, high in zip(shape, before, after, strict=True)))
    ]


def _legacy_normalisation(call: CustomCall) -> list[Output]:
    return [*like_first_input(call), *[(call.element_type(1), call.shape(1))] * 4]


def _short_time_fourier(call: CustomCall) -> list[Output]:
    """Outputs of STFT: [batch, frames, bins, 2]. The number of bins is `frame length // 2 + 1`. If `onesided` is 0 (its
    default is 1), the number of bins is the frame length.
    """
    batch, length = call.shape(0)[:2]
    step, stated = call.value(1), call.value(3)
    window = call.shapes[2] if len(call.shapes) > 2 else None
    frame = stated if stated is not None else (window[0] if window else None)
    if step is None or frame is None:
        return [None]
    if step < 1 or not 1 <= frame <= length:
        raise ValueError
    bins = frame // 2 + 1 if call.integer("onesided", 1) else frame
    return [(call.element_type(0), (batch, (length - frame) // step + 1, bins, 2))]


def _quantised_lstm(call: CustomCall) -> list[Output]:
    """Outputs Y, Y_h and Y_c, as in LSTM. In the recurrence weights [directions, hidden, 4 * hidden], the gates are
    along the last axis."""
    steps, batch, _ = call.shape(0)
    directions, hidden, _ = call.shape(2)
    state: Output = (call.element_type(0), (directions, batch, hidden))
    return [(call.element_type(0), (steps, directions, batch, hidden)), state, state]


def _table(function: ShapeRule, names: str) -> dict[str, ShapeRule]:
    return dict.fromkeys(names.split(), function)


_QUANTISERS: Mapping[str, ShapeRule] = _table(like_first_input, "Quant IntQuant BipolarQuant Trunc FloatQuant")
_CONTRIB: Mapping[str, ShapeRule] = {
    **_table(
        like_first_input,
        """
        Gelu FastGelu BiasGelu QuickGelu FusedGelu BiasSoftmax BiasAdd GroupNorm MoE QMoE RotaryEmbedding Trilu
        QLinearSigmoid QLinearLeakyRelu QLinearSoftmax Inverse
        """,
    ),
    **_table(_same_twice, "BiasDropout"),
    **_table(_layer_norm, "SimplifiedLayerNormalization LayerNormalization"),
    **_table(_skip_norm, "SkipLayerNormalization SkipSimplifiedLayerNormalization"),
    **_table(_block_gather, "GatherBlockQuantized"),
    **_table(_skip_group_norm, "SkipGroupNorm"),
    **_table(_embed_norm, "EmbedLayerNormalization"),
    **_table(_fused_matmul, "FusedMatMul TransposeMatMul"),
    **_table(_float_matmul, "MatMulIntegerToFloat DynamicQuantizeMatMul"),
    **_table(_packed_matmul, "MatMulNBits MatMulBnb4"),
    **_table(_attention, "Attention"),
    **_table(_multi_head_attention, "MultiHeadAttention"),
    **_table(_group_query_attention, "GroupQueryAttention"),
    **_table(_quantised_binary, "QLinearAdd QLinearMul"),
    **_table(_global_average, "QLinearGlobalAveragePool"),
    **_table(_quantised_concat, "QLinearConcat"),
    **_table(_gemm_like, "QGemm"),
    **_table(_quantised_lstm, "DynamicQuantizeLSTM"),
}
_STANDARD: Mapping[str, ShapeRule] = {
    **_table(
        like_first_input,
        """
        Abs Ceil Clip Dropout Elu Exp Floor GroupNormalization HardSigmoid InstanceNormalization LeakyRelu Log
        MeanVarianceNormalization Neg PRelu Reciprocal Relu Selu Sigmoid Silu Sqrt Tanh Add Sub Mul Div Max Min Mean Sum
        """,
    ),
    **_table(_comparison, "GreaterOrEqual LessOrEqual"),
    # onnxruntime writes both operators in the standard domain. The standard lacks the first; the second was used before
    # the standard had it.
    **_table(_layer_norm, "SimplifiedLayerNormalization LayerNormalization"),
    **_table(_legacy_normalisation, "BatchNormalization"),
    **_table(_legacy_reshape, "Reshape"),
    **_table(_legacy_concat, "Concat"),
    **_table(_legacy_gemm, "Gemm"),
    **_table(_legacy_cast, "Cast"),
    **_table(_legacy_pad, "Pad"),
    **_table(_short_time_fourier, "STFT"),
}
