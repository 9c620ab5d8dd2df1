"""Amount of work of single operators that have no layers of their own.

The multiply-accumulates of an operator are counted in one of two ways:
* The module `macs` computes them from shapes. If no operator family models the operator, the rest of its work is
  unknown, except for operators that only move sequences.
* The operator is read as a model of its own, with a model profile that models every operator. This way is used for four
  kinds of operators: If, Loop and Scan; operators that a function of the model defines; operators that a function of
  ONNX defines and no operator family models; and operators that have multiply-accumulates but no formula in `macs`.

Unknown work never counts as free.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import onnx

from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_TYPES, SEQUENCE_TYPES
from tilewright.base.profile import CORRECTED
from tilewright.workload.network_options import BRANCHES, NetworkOptions
from tilewright.workload.onnx.lowering import is_registered
from tilewright.workload.onnx.macs import counted_macs, is_counted
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, Shape, Shapes
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.operators.not_modelled import is_not_modelled
from tilewright.workload.onnx.reader import read_every_operator
from tilewright.workload.onnx.resolution.evaluation import constant_tensor, tensor_values
from tilewright.workload.onnx.resolution.functions import graph_constants, standard_domain, tensors_read
from tilewright.workload.onnx.resolution.inference import find_schema, has_definition

_BRANCHING, _CONTROL_FLOW = "If", ("If", "Loop", "Scan")


@dataclass(frozen=True)
class Work:
    """Amount of work of one operator: its multiply-accumulates, and whether all of its work is known."""

    mac_count: int | None
    """Number of multiply-accumulates; None if it is not known."""
    is_known: bool
    """True if all work of the operator is known."""

    @property
    def is_free(self) -> bool:
        """True if the operator certainly has no multiply-accumulates."""
        return self.is_known and self.mac_count == 0


NOTHING, UNKNOWN = Work(0, is_known=True), Work(None, is_known=False)


def works_alone(node: OnnxNode, functions: Mapping[tuple[str, str, str], onnx.FunctionProto]) -> bool:
    """True if the work of an operator is counted by reading a separate model with only this operator. The shapes of all
    inputs of the operator must then be known."""
    proto = node.proto
    key = (standard_domain(proto.domain), proto.op_type, proto.overload)
    if key in functions or (proto.op_type in _CONTROL_FLOW and proto.domain in STANDARD_DOMAINS):
        return True
    if is_registered(proto):
        return proto.op_type in MAC_TYPES and not is_counted(node)
    schema = find_schema(proto.op_type, standard_domain(proto.domain), 2**31 - 1)
    return schema is not None and has_definition(schema)


@dataclass
class WorkCounter:
    """Counter of the work of operators of `model`. `shapes` are the shapes of the tensors of the model."""

    model: onnx.ModelProto
    shapes: Shapes
    branches: Mapping[str, str] = field(default_factory=dict)
    """Branch that the user has chosen for each operator `If`, by operator name. The name `*` stands for all of these
    operators."""

    def work_of(self, node: OnnxNode) -> Work:
        """Work of one operator of the graph."""
        register_operators()
        if works_alone(node, self._functions):
            return self._read_alone(node)
        macs = counted_macs(node, self.shapes)
        is_move = node.operator_type in SEQUENCE_TYPES
        is_unmodelled = is_not_modelled(node.proto) or not is_registered(node.proto)
        return Work(macs, is_known=macs is not None and (is_move or not is_unmodelled))

    @cached_property
    def _functions(self) -> dict[tuple[str, str, str], onnx.FunctionProto]:
        return {(standard_domain(f.domain), f.name, f.overload): f for f in self.model.functions}

    @cached_property
    def _element_types(self) -> dict[str, int]:
        graph = self.model.graph
        values = (*graph.value_info, *graph.output, *graph.input)
        types = {value.name: value.type.tensor_type.elem_type for value in values if value.type.HasField("tensor_type")}
        return types | {name: tensor.data_type for name, tensor in self._constants.items()}

    @cached_property
    def _constants(self) -> dict[str, onnx.TensorProto]:
        constants = dict(graph_constants(self.model.graph))
        for proto in self.model.graph.node:
            if proto.op_type == "Constant" and proto.domain in STANDARD_DOMAINS and proto.output:
                tensor = constant_tensor(proto)
                if tensor is not None:
                    constants[proto.output[0]] = tensor
        return constants

    def _read_alone(self, node: OnnxNode) -> Work:
        chosen = self.branches.get(node.name, self.branches.get("*", ""))
        if node.proto.op_type != _BRANCHING or node.proto.domain not in STANDARD_DOMAINS:
            return self._read_with(node, chosen)
        works = [self._read_with(node, branch) for branch in ([chosen] if chosen else BRANCHES)]
        if any(work.mac_count is None for work in works):
            return UNKNOWN
        # If the user has not chosen a branch, the branch with more work counts.
        return Work(max(work.mac_count or 0 for work in works), is_known=all(work.is_known for work in works))

    def _read_with(self, node: OnnxNode, branch: str) -> Work:
        model = self._model_of(node)
        if model is None:
            return UNKNOWN
        branches = (("*", branch),) if branch and any(True for _ in _ifs(node.proto)) else ()
        try:
            coverage = read_every_operator(model, CORRECTED, NetworkOptions(branches=branches))[1]
        except InputError:
            return UNKNOWN
        if any(row.mac_count is None for row in coverage.operators):
            return UNKNOWN
        return Work(coverage.total_mac_count, is_known=coverage.is_complete)

    def _model_of(self, node: OnnxNode) -> onnx.ModelProto | None:
        """Model with only this operator; None if the shape of an input is not known."""
        graph = onnx.GraphProto(name=node.name)
        graph.node.append(node.proto)
        for name in dict.fromkeys(name for name in tensors_read(node.proto) if name):
            tensor = self._constants.get(name)
            if tensor is not None:
                kept = graph.initializer.add()
                if tensor_values(tensor) is None:  # for a weight, the sizes are enough
                    kept.CopyFrom(onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims))
                    kept.data_location = onnx.TensorProto.EXTERNAL
                else:
                    kept.CopyFrom(tensor)
                kept.name = name
            elif name in self.shapes:
                graph.input.append(self._value(name, self.shapes[name]))
            else:
                return None
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.proto.output if name)
        return onnx.ModelProto(
            graph=graph,
            ir_version=self.model.ir_version,
            opset_import=self.model.opset_import,
            functions=self.model.functions,
        )

    def _value(self, name: str, shape: Shape) -> onnx.ValueInfoProto:
        element_type = self._element_types.get(name) or onnx.TensorProto.FLOAT
        return onnx.helper.make_tensor_value_info(name, element_type, shape)


def _ifs(proto: onnx.NodeProto) -> "list[onnx.NodeProto]":
    """Operators `If` inside an operator: the operator itself if it is an If, and every If in its subgraphs at any
    depth."""
    found = [proto] if proto.op_type == _BRANCHING else []
    for attribute in proto.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                found += _ifs(inner)
    return found
