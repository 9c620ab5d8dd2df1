"""Types and shapes of the outputs of one operator, from onnx's own inference in a guarded process, or from the rules in
the module `custom`.
"""

import contextlib
import functools
from collections.abc import Mapping, Sequence

import onnx
from onnx import numpy_helper

from tilewright.base.errors import InputError, Problem, some_of
from tilewright.workload.onnx.resolution.attribute_checks import check_attributes
from tilewright.workload.onnx.resolution.checks import check_axes, known_attributes
from tilewright.workload.onnx.resolution.custom import (
    CONTRIB_DOMAIN,
    DELEGATED,
    DELEGATED_CHANNELS_LAST,
    MISJUDGED,
    CustomCall,
    custom_outputs,
    has_channels_last,
    is_custom,
)
from tilewright.workload.onnx.resolution.evaluation import LARGEST_VALUES, Values
from tilewright.workload.onnx.resolution.functions import PendingNode, standard_domain
from tilewright.workload.onnx.resolution.inference_guard import (
    InferenceError,
    InferenceTimeoutError,
    defining_function,
    inferred_outputs,
)
from tilewright.workload.onnx.resolution.size_checks import check_values
from tilewright.workload.onnx.resolution.tensors import KnownTensors, tensor_type

Types = Mapping[str, onnx.TypeProto]

LATEST_OPSET = 2**31 - 1
_MOST_PLACES = 20
"""Largest number of operators that one notice names."""
_FIRST_FULL_OPSET = 7
"""First operator set for which onnx infers the shapes of nearly all operators."""


class EndlessInferenceError(InputError):
    """Error for an inference that does not end in time. The reader of the network then stops, because further
    inferences could take as long."""


@functools.lru_cache(maxsize=4096)
def find_schema(operator: str, domain: str, version: int) -> onnx.defs.OpSchema | None:
    """Definition of an operator in `version` of the operator set of `domain`. If onnx does not know `version` yet, the
    result is the newest definition. If the operator is deprecated in `version`, the result is the last definition
    before it was deprecated. None if onnx does not know the operator in this version.
    """
    try:
        schema = onnx.defs.get_schema(operator, min(max(version, 1), LATEST_OPSET), domain)
    except onnx.defs.SchemaError:
        return None
    if schema.deprecated and schema.since_version > 1:
        with contextlib.suppress(onnx.defs.SchemaError):
            return onnx.defs.get_schema(operator, schema.since_version - 1, domain)
    return schema


def has_definition(schema: onnx.defs.OpSchema) -> bool:
    """True if onnx defines the operator by a function, at least for some uses of the operator."""
    return bool(schema.has_function or schema.has_context_dependent_function)  # type: ignore[attr-defined]


def standard_types(
    name: str,
    node: onnx.NodeProto,
    schema: onnx.defs.OpSchema,
    opsets: Mapping[str, int],
    types: Types,
    values: Mapping[str, Values],
) -> dict[str, onnx.TypeProto]:
    """Output types by name, with the shapes that onnx infers. Sizes that depend on run-time data are left open.

    `types` are the types of the inputs. `values` are the values of those inputs that are small constants. `name` is the
    name of the operator in error messages. Raises InputError if the node contradicts the definition of its operator.
    """
    check_attributes(name, node, schema)
    check_axes(name, node, types)
    check_values(name, node, types, values)
    known = _with_hidden_size(known_attributes(node, schema), types)
    data = {key: numpy_helper.from_array(value) for key, value in values.items() if value.size <= LARGEST_VALUES}
    imports = {domain: max(version, 1) for domain, version in opsets.items()}
    try:
        return inferred_outputs(schema, known, types, data, imports)
    except InferenceTimeoutError as error:
        raise EndlessInferenceError([Problem(_reason(node, error), path=name)]) from None
    except InferenceError as error:
        raise InputError([Problem(_reason(node, error), path=name)]) from None


def _with_hidden_size(node: onnx.NodeProto, types: Types) -> onnx.NodeProto:
    """Copy of the node of a recurrent cell with the attribute `hidden_size`, taken from the shape of the recurrence
    weights. Nodes that have the attribute, and nodes of other operators, are returned unchanged.
    """
    if node.op_type not in ("LSTM", "GRU", "RNN") or any(a.name == "hidden_size" for a in node.attribute):
        return node
    sizes = known_shape(types.get(node.input[2])) if len(node.input) > 2 else None
    if not sizes or not sizes[-1]:
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.attribute.append(onnx.helper.make_attribute("hidden_size", sizes[-1]))
    return copy


def substituted_types(node: onnx.NodeProto, schema: onnx.defs.OpSchema, types: Types) -> dict[str, onnx.TypeProto]:
    """Replacement types, by input, for inputs with an element type that the operator does not allow. For example, some
    tools write files in which a Conv has int8 inputs.

    A replacement is a floating-point type, or an 8-bit integer type if the operator is for quantised data. Inputs that
    must have the same type are replaced together.
    """
    allowed = _allowed_types(schema)
    bound = [(name, variable) for name, variable in _bound_inputs(node, schema) if name in types]
    replacement = {
        variable: _replacement(allowed[variable])
        for name, variable in bound
        if variable in allowed
        and types[name].HasField("tensor_type")
        and _type_name(types[name]) not in allowed[variable]
    }
    return {
        name: _with_element_type(types[name], element_type)
        for name, variable in bound
        if types[name].HasField("tensor_type") and (element_type := replacement.get(variable)) is not None
    }


def _replacement(allowed: frozenset[str]) -> int | None:
    if "tensor(float)" in allowed:
        return int(onnx.TensorProto.FLOAT)
    is_quantised = "tensor(uint8)" in allowed and "tensor(int64)" not in allowed
    return int(onnx.TensorProto.UINT8) if is_quantised else None


def restored_types(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema, types: Types, inferred: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Types in `inferred`, after the replacements by `substituted_types` are undone: the result has the element types
    of the file. If an output and an input must have the same element type, the output gets the type of this input in
    the file.
    """
    actual = {
        variable: types[name].tensor_type.elem_type
        for name, variable in reversed(_bound_inputs(node, schema))
        if name in types and types[name].HasField("tensor_type")
    }
    outputs = zip(node.output, _parameters(schema.outputs, len(node.output)), strict=False)
    variable_of = {name: parameter.type_str for name, parameter in outputs}
    return {
        name: _with_element_type(value, actual[variable_of[name]]) if variable_of.get(name) in actual else value
        for name, value in inferred.items()
    }


@functools.lru_cache(maxsize=4096)
def _allowed_types(schema: onnx.defs.OpSchema) -> dict[str, frozenset[str]]:
    return {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}


def _bound_inputs(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> list[tuple[str, str]]:
    """Pairs (input, type variable of the input), one for each input that is given."""
    parameters = _parameters(schema.inputs, len(node.input))
    return [(name, parameter.type_str) for name, parameter in zip(node.input, parameters, strict=False) if name]


def _parameters(
    formal: Sequence[onnx.defs.OpSchema.FormalParameter], count: int
) -> list[onnx.defs.OpSchema.FormalParameter]:
    """Formal parameter of each of `count` actual parameters. The last formal parameter can stand for several actual
    parameters."""
    return [formal[min(index, len(formal) - 1)] for index in range(count)] if formal else []


_NAMES = {number: f"tensor({name.lower()})" for name, number in onnx.TensorProto.DataType.items()}


def _type_name(value: onnx.TypeProto) -> str:
    return _NAMES.get(value.tensor_type.elem_type, "")


def _with_element_type(value: onnx.TypeProto, element_type: int) -> onnx.TypeProto:
    copy = onnx.TypeProto()
    copy.CopyFrom(value)
    copy.tensor_type.elem_type = element_type
    return copy


def _reason(node: onnx.NodeProto, error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    for prefix in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.removeprefix(prefix).strip()
    if text.startswith("(op_type:") and "): " in text:
        text = text.split("): ", 1)[1]
    for prefix in ("[ShapeInferenceError]", "[TypeInferenceError]"):
        text = text.removeprefix(prefix).strip()
    return f"{node.op_type} does not fit its inputs: {text}"


Sizes = tuple[int | None, ...]
"""Sizes of a tensor; None for a size that is not known."""


def known_shape(value: onnx.TypeProto | None) -> Sizes | None:
    """Sizes of a tensor type, by axis; an open size is None. The result is None if the type is no tensor type, or if
    the rank is unknown."""
    if value is None or not value.HasField("tensor_type") or not value.tensor_type.HasField("shape"):
        return None
    return tuple(size.dim_value if size.HasField("dim_value") else None for size in value.tensor_type.shape.dim)


class Inference:
    """Inference of output types for operators of any domain. It records remarks about the assumptions that it makes."""

    def __init__(self, model_opsets: Mapping[str, int]) -> None:
        self.model_opsets = model_opsets
        self.remarks: dict[str, dict[str, None]] = {}

    def note(self, text: str, place: str) -> None:
        """Add the remark `text` about `place`, the name of an operator or a tensor. Remarks with the same text become
        one notice.
        """
        self.remarks.setdefault(text, {})[place] = None

    def notices(self) -> list[str]:
        """Notices, one for each distinct text of a remark. A notice has this text, and the names of the operators and
        tensors to which the remark applies.
        """
        return [f"{text}: {some_of(list(places), _MOST_PLACES)}" for text, places in self.remarks.items()]

    def is_defined(self, item: PendingNode) -> bool:
        """True if onnx defines the operator. Type inference then needs the types of the operator's inputs."""
        return self._schema(item.proto, item.opsets) is not None

    def definition(self, item: PendingNode, known: KnownTensors) -> onnx.FunctionProto | None:
        """Function by which onnx defines the operator of this node; None if there is no such function.

        Raises InputError if the node contradicts the definition of its operator.
        """
        schema = self._schema(item.proto, item.opsets)
        if schema is None or not has_definition(schema):
            return None
        self.output_types(item, known)  # refuses a wrong node with a message about the operator itself
        types = {name: known.types[name] for name in item.proto.input if name in known.types}
        node = known_attributes(item.proto, schema)
        opset = max(item.opsets.get(schema.domain, 1), schema.since_version)
        try:
            function = defining_function(schema, node, types, opset)
        except InferenceTimeoutError as error:
            raise EndlessInferenceError([Problem(_reason(item.proto, error), path=item.name)]) from None
        except InferenceError as error:
            raise InputError([Problem(_reason(item.proto, error), path=item.name)]) from None
        if function is not None:
            defaults = (attribute.default_value for attribute in schema.attributes.values())
            function.attribute_proto.extend(default for default in defaults if default.name)
        return function

    def needs_inputs(self, item: PendingNode) -> bool:
        """True if the types of the results follow from the types of the inputs."""
        return self.is_defined(item) or is_custom(item.proto)

    def output_types(self, item: PendingNode, known: KnownTensors) -> dict[str, onnx.TypeProto]:
        """Output types by name; {} for an unknown operator. Raises InputError if the node does not fit its operator."""
        node = item.proto
        schema = self._schema(node, item.opsets)
        if schema is None:
            return self._custom_types(item, known)
        if item.opsets is not self.model_opsets and not item.definition_of:
            self._check_version(item, schema)
        if node.op_type in MISJUDGED or not schema.has_type_and_shape_inference_function:
            check_attributes(item.name, node, schema)
            types = self._custom_types(item, known)
            if types:
                return types
            schema = self._with_inference(item, schema)
        return self._standard_types(item, node, schema, known)

    def _standard_types(
        self,
        item: PendingNode,
        node: onnx.NodeProto,
        schema: onnx.defs.OpSchema,
        known: KnownTensors,
        changed: Types | None = None,
    ) -> dict[str, onnx.TypeProto]:
        """Output types of a standard operator. For some inputs, `changed` replaces the types in the file."""
        types = {name: known.types[name] for name in node.input if name in known.types} | dict(changed or {})
        values = {
            name: facts.values
            for name in node.input
            if (facts := known.facts.get(name)) is not None and facts.values is not None
        }
        opsets = {schema.domain: max(item.opsets.get(schema.domain, 1), schema.since_version)}
        foreign = substituted_types(node, schema, types)
        if foreign:
            self.note(
                f"{node.op_type} does not allow some element types of its inputs; shapes are inferred with types that"
                " it allows",
                item.name,
            )
        inferred = standard_types(item.name, node, schema, opsets, {**types, **foreign}, values)
        if node.op_type == "Dropout" and len(node.output) > 1 and known_shape(inferred.get(node.output[1])) is None:
            inferred[node.output[1]] = tensor_type(onnx.TensorProto.BOOL, known.facts[node.input[0]].shape)
        return restored_types(node, schema, types, inferred) if foreign else inferred

    def _schema(self, node: onnx.NodeProto, opsets: Mapping[str, int]) -> onnx.defs.OpSchema | None:
        domain = standard_domain(node.domain)
        return find_schema(node.op_type, domain, opsets.get(domain, LATEST_OPSET))

    def _check_version(self, item: PendingNode, schema: onnx.defs.OpSchema) -> None:
        """Check an operator of a function. The function and the model can import different versions of its operator
        set. Raises InputError if the definitions of the operator in both versions differ."""
        in_model = self._schema(item.proto, self.model_opsets)
        if in_model is not None and in_model.since_version != schema.since_version:
            message = (
                f"{item.proto.op_type} has version {schema.since_version} in a function, but the model "
                f"imports version {in_model.since_version}, and the standard forbids this difference"
            )
            raise InputError([Problem(message, path=item.name)])

    def _with_inference(self, item: PendingNode, schema: onnx.defs.OpSchema) -> onnx.defs.OpSchema:
        """Definition of an operator. If onnx infers its shapes only from a later version on, the result is the
        definition in that version."""
        for version in range(schema.since_version + 1, _FIRST_FULL_OPSET + 1):
            newer = find_schema(schema.name, schema.domain, version)
            if newer is not None and newer.has_type_and_shape_inference_function:
                versions = f"{schema.since_version} were inferred by the rules of version {newer.since_version}"
                self.note(f"the shapes of {schema.name} of version {versions}", item.name)
                return newer
        return schema

    def _custom_types(self, item: PendingNode, known: KnownTensors) -> dict[str, onnx.TypeProto]:
        node = item.proto
        if node.domain == CONTRIB_DOMAIN and node.op_type in DELEGATED:
            return self._delegated_types(item, known, *DELEGATED[node.op_type])
        if node.domain == CONTRIB_DOMAIN and node.op_type in DELEGATED_CHANNELS_LAST:
            return self._delegated_types(item, known, *DELEGATED_CHANNELS_LAST[node.op_type])
        given = [known.facts.get(name) for name in node.input]
        if any(name and facts is None for name, facts in zip(node.input, given, strict=True)):
            return {}
        call = CustomCall(
            item.name,
            node,
            [facts.shape if facts else None for facts in given],
            [facts.element_type if facts else None for facts in given],
            [facts.values if facts else None for facts in given],
        )
        outputs = custom_outputs(call)
        pairs = zip(node.output, outputs or (), strict=False)
        return {name: tensor_type(*output) for name, output in pairs if name and output is not None}

    def _delegated_types(
        self, item: PendingNode, known: KnownTensors, operator: str, input_count: int
    ) -> dict[str, onnx.TypeProto]:
        """Output types of a contrib operator, inferred from the standard operator `operator`. Both operators have
        outputs of the same shapes. Only the first `input_count` inputs are used.

        If the contrib operator has the channels as the last axis, the shapes are converted, because the standard
        operator has the channels as the second axis. The result is {} if onnx does not know `operator`, or if the shape
        of an input is not known.
        """
        version = self.model_opsets.get("", LATEST_OPSET)
        schema = find_schema(operator, "", version)
        if schema is None or any(name and name not in known.facts for name in item.proto.input):
            return {}
        copy = onnx.NodeProto(op_type=operator, name=item.proto.name)
        copy.input.extend(item.proto.input[:input_count])
        copy.output.extend(item.proto.output)
        copy.attribute.extend(item.proto.attribute)
        data = known.facts[copy.input[0]] if copy.input else None
        if data is None or len(data.shape) < 2 or not has_channels_last(item.proto):
            return self._standard_types(item, copy, schema, known)
        first = tensor_type(data.element_type, (data.shape[0], data.shape[-1], *data.shape[1:-1]))
        found = self._standard_types(item, copy, schema, known, {copy.input[0]: first})
        return {name: _with_channels_last(value) for name, value in found.items()}


def _with_channels_last(value: onnx.TypeProto) -> onnx.TypeProto:
    sizes = known_shape(value)
    if sizes is None or len(sizes) < 2:
        return value
    return tensor_type(value.tensor_type.elem_type, (sizes[0], *sizes[2:], sizes[1]))
