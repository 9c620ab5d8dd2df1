"""Checks of an operator before onnx's inference sees it: attributes, sizes that overflow, operands that must agree.

The inference computes with 64-bit integers and does not look for overflow, so sizes that lead there are refused.

A network in which operands (channels, gates, biases, indices) do not agree runs nowhere, and its shapes would still
look right. Source: Operators.md of ONNX.

A check is a few lines; all stand together, since they share how operands and sizes are named to the user.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.workload.onnx.node import OnnxNode, Shape
from tilewright.workload.onnx.resolution.evaluation import Values

LARGEST_SIZE = 2**31 - 1
"""Of one dimension; onnx computes some sizes in 32 bits."""
LARGEST_TENSOR = 2**40
"""Elements of one tensor."""
LARGEST_RANK = 32
"""Dimensions of one tensor; numpy compares no more of them."""
_LARGEST_VALUE = 2**36
"""Of an input that says sizes, which need not be the size of the result itself."""
_LARGEST_ATTRIBUTE = 2**24
"""Of kernels, strides and the like: times the largest size it stays below 2^63."""
_LARGEST_BLOCK = 2**12

_POSITIVE_TEXT = """
    strides dilations kernel_shape group blocksize hidden_size num_outputs q_num_heads kv_num_heads num_heads num_groups
"""
_POSITIVE = frozenset(_POSITIVE_TEXT.split())
_BOUNDED = _POSITIVE | {"pads", "paddings", "output_shape", "output_padding", "output_height", "output_width", "size"}
_BECAME_INPUTS = frozenset({"axes", "split", "pads", "shape", "starts", "ends", "k", "repeats", "broadcast", "axis"})
"""Attributes of older or newer versions of an operator that its result depends on, so that they cannot be left out."""
_SHAPE_INPUTS_TEXT = (
    "CenterCropPad Col2Im ConstantOfShape Expand OneHot Pad Range Reshape Resize Split Tile TopK Upsample"
)
_SHAPE_INPUTS = frozenset(_SHAPE_INPUTS_TEXT.split())
_OTHER_AXES = frozenset(
    {"ConcatFromSequence", "DequantizeLinear", "Flatten", "OneHot", "QuantizeLinear", "SplitToSequence"}
)
"""Operators whose `axis` is not one of their first input."""
_DAMAGED = "does not fit the definition of the operator"


def check_attributes(name: str, node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> None:
    """Types and ranges of the attributes. Raises InputError with every one that is wrong."""
    problems = []
    for attribute in node.attribute:
        expected = schema.attributes.get(attribute.name)
        if expected is None:
            if attribute.name in _BECAME_INPUTS and attribute.name in _attributes_of(node.op_type, schema.domain):
                message = f"attribute '{attribute.name}' is not one of {node.op_type} in version {schema.since_version}"
                problems.append(Problem(message, path=name, allowed=", ".join(sorted(schema.attributes)) or "none"))
            continue
        wanted = str(expected.type).rpartition(".")[2]
        if onnx.AttributeProto.AttributeType.Value(wanted) != attribute.type:
            got = onnx.AttributeProto.AttributeType.Name(attribute.type)
            message = f"attribute '{attribute.name}' of {node.op_type} {_DAMAGED}"
            problems.append(Problem(message, path=name, value=got, allowed=wanted))
            continue
        problems += _range_problems(name, node, attribute)
        if attribute.type == onnx.AttributeProto.STRING and not _is_text(attribute.s):
            message = f"attribute '{attribute.name}' of {node.op_type} is no text"
            problems.append(Problem(message, path=name, value=repr(attribute.s[:20])))
    given = {attribute.name for attribute in node.attribute}
    for key, expected in schema.attributes.items():
        if expected.required and key not in given:
            nearest = nearest_name(key, sorted(given - set(schema.attributes)))
            problems.append(Problem(f"{node.op_type} needs attribute '{key}'", path=name, nearest=nearest))
    problems += _input_problems(name, node, schema)
    if problems:
        raise InputError(problems)


def _range_problems(name: str, node: onnx.NodeProto, attribute: onnx.AttributeProto) -> list[Problem]:
    if attribute.name not in _BOUNDED:
        return []
    values = list(attribute.ints) if attribute.type == onnx.AttributeProto.INTS else [attribute.i]
    least = 1 if attribute.name in _POSITIVE else -_LARGEST_ATTRIBUTE
    most = _LARGEST_BLOCK if attribute.name == "blocksize" else _LARGEST_ATTRIBUTE
    if all(least <= value <= most for value in values):
        return []
    message = f"attribute '{attribute.name}' of {node.op_type}"
    shown = str(values if attribute.type == onnx.AttributeProto.INTS else attribute.i)
    return [Problem(message, path=name, value=shown, allowed=f"integers from {least} to {most}")]


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _input_problems(name: str, node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> list[Problem]:
    problems = []
    given = len(node.input)
    if given > schema.max_input:
        problems.append(Problem(f"{node.op_type} has {given} inputs and takes {schema.max_input}", path=name))
    if len(node.output) > schema.max_output:
        message = f"{node.op_type} has {len(node.output)} outputs and gives {schema.max_output}"
        problems.append(Problem(message, path=name))
    if not any(node.output):
        problems.append(Problem(f"{node.op_type} has no output", path=name))
    problems += _split_problems(name, node)
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for index, parameter in enumerate(schema.inputs):
        if parameter.option == single and (index >= given or not node.input[index]):
            message = f"{node.op_type} needs input {index} ({parameter.name}), and it is missing"
            problems.append(Problem(message, path=name))
    if given < schema.min_input and not problems:
        problems.append(Problem(f"{node.op_type} needs at least {schema.min_input} inputs", path=name))
    return problems


def _split_problems(name: str, node: onnx.NodeProto) -> list[Problem]:
    count = len(node.output)
    stated = [attribute.i for attribute in node.attribute if attribute.name == "num_outputs"]
    parts = stated[0] if stated and node.op_type == "Split" else count
    if parts == count:
        return []
    message = f"attribute 'num_outputs' of Split says {parts}, and it has {count} outputs"
    return [Problem(message, path=name)]


@functools.lru_cache(maxsize=1024)
def _attributes_of(operator: str, domain: str) -> frozenset[str]:
    """Attributes of the operator in all its versions."""
    schemas = (s for s in onnx.defs.get_all_schemas_with_history() if s.name == operator and s.domain == domain)
    return frozenset(key for schema in schemas for key in schema.attributes)


def known_attributes(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> onnx.NodeProto:
    """`node` without the attributes that its operator does not define: tools add their own to standard operators."""
    if all(attribute.name in schema.attributes for attribute in node.attribute):
        return node
    copy = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name)
    copy.input.extend(node.input)
    copy.output.extend(node.output)
    copy.attribute.extend(attribute for attribute in node.attribute if attribute.name in schema.attributes)
    return copy


def check_axes(name: str, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> None:
    """`axis` and `batch_dims`, which not every inference looks at before it uses them. Raises InputError."""
    value = types.get(node.input[0]) if node.input else None
    if value is None or not value.HasField("tensor_type"):
        return
    rank = max(len(value.tensor_type.shape.dim), 1)
    for attribute in node.attribute:
        if attribute.name == "axis" and attribute.type == onnx.AttributeProto.INT and node.op_type not in _OTHER_AXES:
            least = -rank
        elif attribute.name == "batch_dims":
            least = 0
        else:
            continue
        if not least <= attribute.i < rank:
            message, allowed = f"attribute '{attribute.name}' of {node.op_type}", f"integers from {least} to {rank - 1}"
            raise InputError([Problem(message, path=name, value=str(attribute.i), allowed=allowed)])


def check_values(
    name: str, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], values: Mapping[str, Values]
) -> None:
    """Sizes that an operator takes as inputs. Raises InputError for those that overflow."""
    if node.op_type not in _SHAPE_INPUTS:
        return
    for index, key in enumerate(node.input):
        if key not in values or (index == 0 and node.op_type not in ("ConstantOfShape", "Range")):
            continue
        value = values[key]
        if value.dtype.kind in "iuf" and value.size and not _is_bounded(value):
            message = f"input {index} of {node.op_type} is out of range"
            raise InputError([Problem(message, path=name, value=_shown(value), allowed=f"up to {_LARGEST_VALUE}")])
    if node.op_type == "Tile" and len(node.input) == 2 and node.input[1] in values:
        _check_products(name, node, types, values[node.input[1]])
    if node.op_type == "Range" and len(node.input) == 3 and node.input[2] in values and not values[node.input[2]].all():
        raise InputError([Problem("Range with steps of zero", path=name)])
    if node.op_type in ("Resize", "Upsample"):
        for key in _scale_inputs(node):
            if key in values and values[key].dtype.kind == "f":
                if not (values[key] > 0).all():
                    raise InputError([Problem("scales must be positive", path=name, value=_shown(values[key]))])
                _check_products(name, node, types, values[key])


def _scale_inputs(node: onnx.NodeProto) -> Sequence[str]:
    """The second input, or since operator set 11, in which that is the region of interest, the third one."""
    return list(node.input[2:3] if len(node.input) > 2 else node.input[1:2])


def _is_bounded(value: Values) -> bool:
    return bool(np.all(np.isfinite(value)) and np.all(value <= _LARGEST_VALUE) and np.all(value >= -_LARGEST_VALUE))


def _shown(value: Values) -> str:
    text = str(value.ravel()[:8].tolist())
    return text if value.size <= 8 else f"{text[:-1]}, ...]"


def _check_products(name: str, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], factors: Values) -> None:
    shape = types[node.input[0]].tensor_type.shape.dim
    for size, factor in zip(shape, factors.ravel().tolist(), strict=False):
        if abs(size.dim_value * factor) > LARGEST_SIZE:
            message = f"the result of {node.op_type} is too large"
            raise InputError([Problem(message, path=name, value=_shown(factors), allowed=f"up to {LARGEST_SIZE}")])


def size_problem(tensor: str, shape: Shape) -> Problem | None:
    """What is wrong with the sizes of a tensor: negative ones, and claims that nothing could hold."""
    if len(shape) > LARGEST_RANK:
        rank, limit = str(len(shape)), f"at most {LARGEST_RANK}"
        return Problem(f"tensor '{tensor}' has too many dimensions", value=rank, allowed=limit)
    if any(size < 0 for size in shape):
        return Problem(f"tensor '{tensor}' has a negative size", value=str(list(shape)))
    if max(shape, default=0) > LARGEST_SIZE:
        limit = f"at most {LARGEST_SIZE} along one dimension"
        return Problem(f"a dimension of tensor '{tensor}' is too large", value=str(list(shape)), allowed=limit)
    count = math.prod(size or 1 for size in shape)
    if count > LARGEST_TENSOR:
        value, limit = f"{list(shape)}, {count} elements", f"at most {LARGEST_TENSOR} elements"
        return Problem(f"tensor '{tensor}' is too large", value=value, allowed=limit)
    return None


_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def check_consistency(
    name: str,
    node: onnx.NodeProto,
    inputs: Sequence[Shape | None],
    values: Sequence[Values | None],
    output: Shape | None,
) -> None:
    """Raises InputError if operands of a standard operator contradict each other.

    `inputs` and `values` are by place, None where absent or unknown; `output` is the shape of the first output.
    """
    check = _CHECKS.get(node.op_type)
    if check is None:
        return
    try:
        message = check(OnnxNode(0, name, node), inputs, values, output)
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        message = "the ranks of its inputs"
    if message:
        shown = ", ".join(str(list(shape)) for shape in inputs if shape is not None)
        raise InputError([Problem(f"{node.op_type} does not fit its inputs: {message}", path=name, value=shown)])


def _convolution(weight: int, bias: int) -> "_Check":
    def check(
        node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
    ) -> str:
        data, filters = _given(inputs, 0), _given(inputs, weight)
        group = node.integer("group", 1)
        if data[1] % group or filters[0] % group:
            return f"the number of groups, {group}, has to divide both numbers of channels"
        if data[1] != filters[1] * group:
            return f"the channels of input and weights ({group} groups)"
        if node.integers("kernel_shape", filters[2:]) != filters[2:]:
            return "attribute 'kernel_shape' and the shape of the weights"
        if _optional(inputs, bias) not in (None, (filters[0],)):
            return "the bias, one number for each output channel"
        return ""

    return check


def _transposed_convolution(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, filters = _given(inputs, 0), _given(inputs, 1)
    group = node.integer("group", 1)
    if data[1] != filters[0] or filters[0] % group:
        return f"the channels of input and weights ({group} groups)"
    if node.integers("kernel_shape", filters[2:]) != filters[2:]:
        return "attribute 'kernel_shape' and the shape of the weights"
    if _optional(inputs, 2) not in (None, (filters[1] * group,)):
        return "the bias, one number for each output channel"
    return ""


def _recurrent(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, weights, recurrence = (_given(inputs, index) for index in range(3))
    gates = _GATES[node.proto.op_type]
    hidden = node.integer("hidden_size", recurrence[2])
    directions = 2 if node.text("direction", "forward") == "bidirectional" else 1
    if weights != (directions, gates * hidden, data[2]):
        return f"the weights, {[directions, gates * hidden, data[2]]} for {hidden} hidden units"
    if recurrence != (directions, gates * hidden, hidden):
        return f"the recurrence weights, {[directions, gates * hidden, hidden]} for {hidden} hidden units"
    if _optional(inputs, 3) not in (None, (directions, 2 * gates * hidden)):
        return f"the bias, {[directions, 2 * gates * hidden]} for {hidden} hidden units"
    return ""


def _gemm(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], output: Shape | None
) -> str:
    bias = _optional(inputs, 2)
    if bias is None or output is None or node.has("broadcast"):
        return ""
    return "" if _broadcasts_to(bias, output) else "the bias and the result"


def _slope(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, slope = _given(inputs, 0), _given(inputs, 1)
    # Before operator set 7 the slope was one number for each channel.
    fits = _broadcasts_to(slope, data) or slope == data[1:2]
    return "" if fits else "the slope and the data"


def _layer_norm(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    data = _given(inputs, 0)
    normalised = data[node.integer("axis", -1) :]
    wrong = [shape for shape in inputs[1:3] if shape is not None and not _broadcasts_to(shape, normalised)]
    return f"scale and bias, {list(normalised)}" if wrong else ""


def _channel_norm(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    channels = _given(inputs, 0)[1]
    groups = node.integer("num_groups", 1)
    allowed = {(channels,), (groups,)} if node.has("num_groups") else {(channels,)}
    if channels % groups:
        return f"{channels} channels in {groups} groups"
    wrong = [shape for shape in inputs[1:3] if shape is not None and shape not in allowed]
    return "scale and bias, one number for each channel" if wrong else ""


def _gather(
    node: OnnxNode, inputs: Sequence[Shape | None], values: Sequence[Values | None], _output: Shape | None
) -> str:
    data, indices = _given(inputs, 0), values[1]
    axis = node.integer("axis", 0)
    if indices is None or not indices.size:
        return ""
    size = data[axis]
    return "" if -size <= indices.min() and indices.max() < size else f"indices of an axis of size {size}"


def _einsum(
    node: OnnxNode, inputs: Sequence[Shape | None], _values: Sequence[Values | None], _output: Shape | None
) -> str:
    terms = node.text("equation", "").replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for index, term in enumerate(terms):
        shape, letters = _given(inputs, index), term
        if "..." in term:
            before, after = term.split("...")
            hidden = len(shape) - len(before) - len(after)
            shape, letters = shape[: len(before)] + shape[len(before) + hidden :], before + after
        for letter, size in zip(letters, shape, strict=True):
            if size != sizes.setdefault(letter, size):
                if 1 not in (size, sizes[letter]):
                    return f"the sizes {sizes[letter]} and {size} of index {letter}"
                sizes[letter] = max(size, sizes[letter])
    return ""


def _given(inputs: Sequence[Shape | None], index: int) -> Shape:
    shape = inputs[index]
    if shape is None:
        raise ValueError
    return shape


def _optional(inputs: Sequence[Shape | None], index: int) -> Shape | None:
    return inputs[index] if index < len(inputs) else None


def _broadcasts_to(shape: Shape, target: Shape) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == tuple(target)
    except ValueError:
        return False


_Check = Callable[[OnnxNode, Sequence[Shape | None], Sequence[Values | None], Shape | None], str]
_CHECKS: Mapping[str, _Check] = {
    "Conv": _convolution(1, 2),
    "ConvInteger": _convolution(1, 4),
    "ConvTranspose": _transposed_convolution,
    "Einsum": _einsum,
    "GRU": _recurrent,
    "Gather": _gather,
    "Gemm": _gemm,
    "GroupNormalization": _channel_norm,
    "InstanceNormalization": _channel_norm,
    "LSTM": _recurrent,
    "LayerNormalization": _layer_norm,
    "PRelu": _slope,
    "QLinearConv": _convolution(3, 8),
    "RMSNormalization": _layer_norm,
    "SimplifiedLayerNormalization": _layer_norm,
    "RNN": _recurrent,
}
