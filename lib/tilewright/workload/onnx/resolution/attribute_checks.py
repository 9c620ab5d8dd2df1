"""Checks of the types and ranges of an operator's attributes, before onnx's inference reads them."""

import functools

import onnx

from tilewright.base.errors import InputError, Problem, nearest_name

_LARGEST_ATTRIBUTE = 2**24
"""Largest value of kernels, strides and similar attributes. The product of such a value and the largest size is then
below 2^63."""


_LARGEST_BLOCK = 2**12


_POSITIVE_TEXT = """
    strides dilations kernel_shape group blocksize hidden_size num_outputs q_num_heads kv_num_heads num_heads num_groups
"""


_POSITIVE = frozenset(_POSITIVE_TEXT.split())


_BOUNDED = _POSITIVE | {"pads", "paddings", "output_shape", "output_padding", "output_height", "output_width", "size"}


_BECAME_INPUTS = frozenset({"axes", "split", "pads", "shape", "starts", "ends", "k", "repeats", "broadcast", "axis"})
"""Attributes that change the result of an operator, and that became inputs in later versions. A node can have such an
attribute although its version of the operator no longer has it. Such a node is reported as a problem, because the
attribute would have no effect."""


_DAMAGED = "has another type than in the definition of the operator"


def check_attributes(name: str, node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> None:
    """Check an operator: types and ranges of its attributes, missing attributes, the number of inputs and the number of
    outputs. Raises one InputError that names every problem.

    `name` is the name of the operator in messages.
    """
    problems = []
    for attribute in node.attribute:
        expected = schema.attributes.get(attribute.name)
        if expected is None:
            if attribute.name in _BECAME_INPUTS and attribute.name in _attributes_of(node.op_type, schema.domain):
                message = f"{node.op_type} has no attribute '{attribute.name}' in version {schema.since_version}"
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
            message = f"attribute '{attribute.name}' of {node.op_type} is not text"
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
    message = f"attribute '{attribute.name}' of {node.op_type} is out of range"
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
        problems.append(Problem(f"{node.op_type} has {given} inputs but takes at most {schema.max_input}", path=name))
    if len(node.output) > schema.max_output:
        message = f"{node.op_type} has {len(node.output)} outputs, but at most {schema.max_output} are possible"
        problems.append(Problem(message, path=name))
    if not any(node.output):
        problems.append(Problem(f"{node.op_type} has no output", path=name))
    problems += _split_problems(name, node)
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    for index, parameter in enumerate(schema.inputs):
        if parameter.option == single and (index >= given or not node.input[index]):
            message = f"{node.op_type} needs input {index} ({parameter.name}), which is missing"
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
    message = f"attribute 'num_outputs' of Split is {parts}, but Split has {count} outputs"
    return [Problem(message, path=name)]


@functools.lru_cache(maxsize=1024)
def _attributes_of(operator: str, domain: str) -> frozenset[str]:
    """Names of the attributes that the operator has in any of its versions."""
    schemas = (s for s in onnx.defs.get_all_schemas_with_history() if s.name == operator and s.domain == domain)
    return frozenset(key for schema in schemas for key in schema.attributes)
