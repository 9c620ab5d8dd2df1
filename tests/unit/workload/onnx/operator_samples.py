"""A small model for every version of every operator that onnx defines.

The nodes are from onnx's own tests, or written here if it has none. Older versions are made from newer ones: an input
that once was an attribute becomes an attribute again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.unit.workload.onnx.node_cases import node_cases

_SETTINGS = (TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL)
_NAMED_SETTINGS = frozenset({"scales", "ratio", "min", "max", "max_output_boxes_per_class"})
ML, TRAINING = "ai.onnx.ml", "ai.onnx.preview.training"
Key = tuple[str, str]


@dataclass(frozen=True)
class Sample:
    """A model of one node."""

    key: Key
    version: int
    model: onnx.ModelProto


def all_versions() -> dict[Key, list[onnx.defs.OpSchema]]:
    """(domain, operator) -> its definitions, oldest first."""
    found: dict[Key, list[onnx.defs.OpSchema]] = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        found.setdefault((schema.domain, schema.name), []).append(schema)
    return found


def samples(most_per_operator: int) -> Iterator[Sample]:
    """Models of the newest version of each operator, then of older versions that can be made from them."""
    newest: dict[Key, list[onnx.ModelProto]] = {}
    for model in (*_models_of_onnx(), *_own_models()):
        node = model.graph.node[0]
        kept = newest.setdefault((node.domain, node.op_type), [])
        if len(kept) < most_per_operator:
            kept.append(model)
    for key, schemas in all_versions().items():
        for schema in schemas:
            for model in newest.get(key, []):
                made = _as_of(model, schema, schemas[-1])
                if made is not None:
                    yield Sample(key, schema.since_version, made)


def _models_of_onnx() -> Iterator[onnx.ModelProto]:
    for case in node_cases():
        if case.model is None or len(case.model.graph.node) != 1:
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        kept = []
        for number, (given, values) in enumerate(zip(list(model.graph.input), case.data_sets[0][0], strict=False)):
            kind = given.type.tensor_type.elem_type
            is_setting = number > 0 and (kind in _SETTINGS or given.name in _NAMED_SETTINGS)
            if is_setting and isinstance(values, np.ndarray):
                model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), given.name))
            else:
                kept.append(given)
        del model.graph.input[:]
        model.graph.input.extend(kept)
        yield model


def _as_of(model: onnx.ModelProto, schema: onnx.defs.OpSchema, newest: onnx.defs.OpSchema) -> onnx.ModelProto | None:
    """The model in another version of its operator; None if that version cannot express it."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    if schema.since_version == newest.since_version:
        return made
    node = made.graph.node[0]
    constants = {tensor.name: tensor for tensor in made.graph.initializer}
    formal = [parameter.name for parameter in newest.inputs]
    for place in range(len(node.input) - 1, 0, -1):
        name = node.input[place]
        key = formal[place].lower() if place < len(formal) else ""
        if name in constants and key in schema.attributes:
            values = numpy_helper.to_array(constants[name])
            kind = int(schema.attributes[key].type.value)
            is_list = kind in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS)
            value = values.reshape(-1).tolist() if is_list else values.reshape(-1)[0].item()
            node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
            del node.input[place]
    while node.input and not node.input[-1]:
        del node.input[-1]
    if len(node.input) > schema.max_input or any(item.name not in schema.attributes for item in node.attribute):
        return None
    for opset in made.opset_import:
        if opset.domain == schema.domain:
            opset.version = schema.since_version
    read = set(node.input)
    tensors = [tensor for tensor in made.graph.initializer if tensor.name in read]
    del made.graph.initializer[:]
    made.graph.initializer.extend(tensors)
    del made.graph.output[:]
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    return made


def _own_models() -> Iterator[onnx.ModelProto]:
    """(operator, inputs with shapes, attributes) for operators without a test in onnx."""
    matrix = {"x": [2, 4]}
    image = {"x": [1, 2, 6, 6]}
    yield _model("GlobalLpPool", image)
    yield _model("MaxRoiPool", {**image, "r": [3, 5]}, pooled_shape=[2, 2])
    yield _model("Multinomial", matrix, sample_size=3)
    yield _model("RandomNormal", {}, shape=[2, 3])
    yield _model("RandomUniform", {}, shape=[2, 3])
    yield _model("RandomNormalLike", matrix)
    yield _model("RandomUniformLike", matrix)
    yield _model("Optional", matrix)
    yield _model("SequenceConstruct", matrix)
    yield _model("SequenceEmpty", {})
    yield _model("Constant", {}, value_ints=[1, 2])
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 4]))
    for operator in ("SequenceErase", "SequenceAt", "ConcatFromSequence", "SequenceLength"):
        names = ["s", "i"] if operator == "SequenceAt" else ["s"]
        model = _model(operator, {}, names, **({"axis": 0} if operator == "ConcatFromSequence" else {}))
        model.graph.input.append(onnx.ValueInfoProto(name="s", type=sequence))
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(0, np.int64), "i"))
        yield model
    for operator, attributes in _CLASSICAL.items():
        yield _model(operator, matrix, domain=ML, **attributes)
    for operator, attributes in _OF_MAPS.items():
        kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        value = onnx.TypeProto(map_type=onnx.TypeProto.Map(key_type=TensorProto.INT64, value_type=kind))
        model = _model(operator, {}, ["m"], domain=ML, **attributes)
        model.graph.input.append(onnx.ValueInfoProto(name="m", type=value))
        yield model
    yield _model("Gradient", {"x": [2], "y": [2]}, domain=TRAINING, xs=["x"], y="y")


_CLASSICAL: dict[str, dict[str, object]] = {
    "CategoryMapper": {"cats_int64s": [1], "cats_strings": ["a"]},
    "FeatureVectorizer": {"inputdimensions": [4]},
    "Imputer": {"imputed_value_floats": [0.0]},
    "LinearClassifier": {"coefficients": [0.1] * 8, "classlabels_ints": [0, 1]},
    "LinearRegressor": {"coefficients": [0.1] * 4},
    "Normalizer": {"norm": "L2"},
    "OneHotEncoder": {"cats_int64s": [1, 2]},
    "SVMClassifier": {"coefficients": [0.1] * 4, "classlabels_ints": [0, 1]},
    "SVMRegressor": {"coefficients": [0.1] * 4},
    "Scaler": {"offset": [0.0], "scale": [1.0]},
    "TreeEnsembleClassifier": {"classlabels_int64s": [0, 1]},
    "TreeEnsembleRegressor": {"n_targets": 1},
    "ZipMap": {"classlabels_int64s": [0, 1, 2, 3]},
}
_OF_MAPS: dict[str, dict[str, object]] = {"CastMap": {}, "DictVectorizer": {"int64_vocabulary": [1, 2]}}


def _model(
    operator: str,
    inputs: dict[str, list[int]],
    names: list[str] | None = None,
    *,
    domain: str = "",
    **attributes: object,
) -> onnx.ModelProto:
    node = helper.make_node(operator, names or list(inputs), ["y"], domain=domain, **attributes)
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    graph = helper.make_graph([node], "one", given, [onnx.ValueInfoProto(name="y")])
    newest = {"": onnx.defs.onnx_opset_version(), ML: 5, TRAINING: 1}
    sets = [helper.make_opsetid(name, version) for name, version in newest.items()]
    return helper.make_model(graph, opset_imports=sets, ir_version=13)
