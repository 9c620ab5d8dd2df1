"""Reader of an ONNX model, with two results: a workload, and a coverage that says which operators have costs.

Every operator that computes becomes one or several layers. Operators that only move data become index maps. Operators
whose results are known before run time become constants, and have no node.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.base.registry import Registry
from tilewright.workload.graph import PASS_THROUGH, UNSUPPORTED, Tensor, Workload, WorkloadNode
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx.coverage import Coverage, OperatorCoverage, build_coverage
from tilewright.workload.onnx.given_bits import BitsOfNetwork
from tilewright.workload.onnx.given_zeros import with_zeros
from tilewright.workload.onnx.loading import load_model
from tilewright.workload.onnx.lowering import (
    LoweredNode,
    Lowering,
    file_tensor,
    is_registered,
    lower,
    moved_bits,
    operation_count,
)
from tilewright.workload.onnx.macs import counted_macs
from tilewright.workload.onnx.node import OnnxNode, overridden_bits
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.resolution.inference_guard import start_inference
from tilewright.workload.onnx.resolution.network import ResolvedGraph, resolve_graph
from tilewright.workload.onnx.tensor_facts import TensorFacts
from tilewright.workload.onnx.unused_parts import unused_of_model

Reading = Callable[[onnx.ModelProto, ModelProfile, NetworkOptions], tuple[Workload, Coverage]]
"""Function that reads a model: it returns the workload (without a name) and the coverage. Raises InputError with all
problems."""
OTHER_READINGS: Registry[Reading] = Registry(__name__)
"""Readers for model profiles without the switch `model_every_operator`, by name of the profile."""


@dataclass(frozen=True)
class ParsedNetwork:
    """Network that was read from an ONNX model, and its coverage."""

    workload: Workload
    coverage: Coverage


def read_onnx(
    source: str | Path | onnx.ModelProto,
    profile: ModelProfile,
    name: str = "",
    notices: list[str] | None = None,
    dims: Mapping[str, int] | None = None,
    options: NetworkOptions | None = None,
) -> ParsedNetwork:
    """Workload of an ONNX model, with its coverage.

    With the profile's switch `model_every_operator`, all operators that compute become layers, and operators that only
    move data pass dependences on (see `read_every_operator`). Without the switch, the reader in OTHER_READINGS that
    reproduces zigzag-dse 3.9.1 is used.

    `source` is a path or a model in memory. Weights are never loaded and can be missing. The default of `name` is the
    file name without its suffix; for a model in memory, it is the name of the graph. `dims` are sizes of dynamic
    dimensions, which replace the sizes in `options`. The notices of the coverage are appended to `notices`.

    Raises InputError with all problems: an unreadable file, an inconsistent graph, unknown sizes.
    """
    options = options or NetworkOptions()
    if dims:
        options = options._replace(dims=tuple(dims.items()))
    options.check()
    register_operators()  # for every reading: it states shapes and attributes of operators, too
    model, file, default_name = load_model(source)
    try:
        if profile.model_every_operator:
            workload, coverage = read_every_operator(model, profile, options)
        else:
            workload, coverage = OTHER_READINGS[REFERENCE.name](model, profile, options)
        workload = with_zeros(workload, options.zeros)
        coverage = replace(coverage, notices=(*coverage.notices, *unused_of_model(model)))
    except InputError as error:
        raise InputError(replace(problem, file=problem.file or file) for problem in error.problems) from None
    if notices is not None:
        notices.extend(coverage.notices)
    return ParsedNetwork(replace(workload, name=name or default_name), coverage)


def read_every_operator(
    model: onnx.ModelProto, profile: ModelProfile, options: NetworkOptions
) -> tuple[Workload, Coverage]:
    """Workload (without a name) and coverage of a model. Raises InputError with all problems."""
    start_inference()
    register_operators()
    given = (dict(options.dims), dict(options.input_shapes), dict(options.branches))
    graph = resolve_graph(model, *given, is_taken=is_registered)
    given_bits = BitsOfNetwork(options.bits)
    nodes = given_bits.nodes(graph.nodes)
    graph = replace(graph, nodes=nodes, tensors=given_bits.tensors(nodes, graph.tensors))
    reading = _Reading(graph, profile, options.precision)
    problems = list(given_bits.faults(nodes, graph.tensors))
    for node in graph.nodes:
        try:
            reading.read(node)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    workload = reading.workload()
    if unused := list(given_bits.unused(workload)):
        raise InputError(unused)
    notices = (*graph.notices, *(f"{text}: {', '.join(names)}" for text, names in reading.remarks.items()))
    return workload, build_coverage(reading.entries, notices)


@dataclass
class _Reading:
    """State while one ONNX model is read.

    The state has the nodes that have been made so far, the node that produces each tensor, and one entry of the
    coverage per operator. The state also has each remark, with the names of the operators that caused the remark.
    """

    graph: ResolvedGraph
    profile: ModelProfile
    policy: str
    nodes: list[WorkloadNode] = field(default_factory=list)
    producer_of: dict[str, int] = field(default_factory=dict)
    temporaries: dict[str, Tensor] = field(default_factory=dict)
    entries: list[OperatorCoverage] = field(default_factory=list)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    overrides: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def read(self, node: OnnxNode) -> None:
        """Add the nodes of one operator to the workload, and its entry to the coverage. Raises InputError if the
        operator is invalid.
        """
        if node.node_id in self.graph.constant_nodes:
            self.entries.append(OperatorCoverage(node.operator_type, PASS_THROUGH, 1, 0, 0, 0))
            return
        op = Lowering(node, self.graph, self.profile, self.policy)
        lower(op)
        self.temporaries.update(op.temporaries)
        for lowered in op.lowered:
            self._add(op, lowered)
        self._note_overrides(node)
        for remark in dict.fromkeys(op.remarks):
            self.remarks.setdefault(remark, []).append(node.name)
        self.entries.append(self._entry(op))

    def _entry(self, op: Lowering) -> OperatorCoverage:
        node, bits = op.node, moved_bits(op)
        if op.status == UNSUPPORTED:
            return OperatorCoverage(node.operator_type, op.status, 1, self._uncosted_macs(op), None, bits)
        macs, operations = (operation_count(op.lowered, unit) for unit in (MAC_ARRAY, VECTOR_UNIT))
        return OperatorCoverage(node.operator_type, op.status, 1, macs, operations, bits)

    def _uncosted_macs(self, op: Lowering) -> int | None:
        """Number of multiply-accumulates of an operator that is not modelled. None if the operator is modelled, or if
        the number is unknown."""
        if op.status != UNSUPPORTED:
            return None
        return counted_macs(op.node, {name: facts.shape for name, facts in self.graph.tensors.items()})

    def _add(self, op: Lowering, lowered: LoweredNode) -> None:
        node, node_id = op.node, len(self.nodes)
        name = self._unique(lowered.name)
        layer = (
            lowered.layer if lowered.layer is None or lowered.layer.name == name else replace(lowered.layer, name=name)
        )
        elements = None if layer else sum(self._tensor(output).element_count for output in lowered.outputs)
        self.nodes.append(
            WorkloadNode(
                node_id=node_id,
                name=name,
                operator_type=lowered.operator_type,
                layer=layer,
                sources=tuple(self._sources(lowered)),
                output_elements=elements,
                is_network_output=any(output in self.graph.outputs for output in lowered.outputs),
                unit=lowered.unit,
                origin=self.graph.origins.get(node.node_id, node.name),
                origin_type=node.operator_type,
                status=_node_status(op, layer is None),
                uncosted_mac_count=self._uncosted_macs(op),
                inputs=lowered.inputs,
                outputs=lowered.outputs,
                index_maps=lowered.index_maps,
            )
        )
        self.producer_of.update((output, node_id) for output in lowered.outputs)

    def _unique(self, name: str) -> str:
        """Unique name for a node: the wanted name, with a suffix if another node already has it."""
        base, number = name, 2
        while name in self.names:
            name, number = f"{base}__{number}", number + 1
        self.names.add(name)
        return name

    def _sources(self, lowered: LoweredNode) -> Iterator[tuple[str, int]]:
        """Pairs (operand, id of the producing node) for the tensors that a node reads. Operand W comes before operand
        I, as in zigzag-dse 3.9.1. The producers of other tensors, such as a bias, follow. Each producer is listed one
        time, under a further name such as I3.
        """
        produced = [
            (index_map.operand, self.producer_of[index_map.input.tensor])
            for index_map in lowered.index_maps
            if index_map.input.tensor in self.producer_of
        ]
        named = {operand: source for operand, source in produced if operand}
        yield from sorted(named.items(), key=lambda pair: pair[0] != "W")
        others = dict.fromkeys(source for operand, source in produced if not operand)
        numbers = iter(range(3, len(others) + 3)) if lowered.layer else iter(range(1, len(others) + 1))
        for source in others:
            if source not in named.values():
                yield _OTHER_NAMES.get(number := next(numbers), f"I{number}"), source

    def _tensor(self, name: str) -> Tensor:
        if name in self.temporaries:
            return self.temporaries[name]
        facts = self.graph.tensors[name]
        return _with_override(facts, self.overrides.get(name), self.policy)

    def _note_overrides(self, node: OnnxNode) -> None:
        for name in dict.fromkeys((*node.inputs, *node.outputs)):
            if name in self.graph.tensors:
                bits = overridden_bits(node, is_weight=self.graph.tensors[name].is_constant)
                if bits is not None:
                    self.overrides[name] = bits

    def workload(self) -> Workload:
        """Workload of the nodes that were read."""
        used = dict.fromkeys(name for node in self.nodes for name in (*node.inputs, *node.outputs)) | dict.fromkeys(
            name for name in (*self.graph.inputs, *self.graph.outputs) if name in self.graph.tensors
        )
        return Workload(
            "", tuple(self.nodes), tuple(self._tensor(name) for name in used), self.graph.inputs, self.graph.outputs
        )


_OTHER_NAMES = {1: "I", 2: "W"}
"""Operand names of the first and second input edge of an operator without a layer. Later edges have the names I3, I4,
..."""


def _node_status(op: Lowering, is_move: bool) -> str:
    """Status of a node. A node that only moves data is pass-through, or unsupported if its operator is not modelled.
    Any other node has the status of its operator.
    """
    return PASS_THROUGH if is_move and op.status != UNSUPPORTED else op.status


def _with_override(facts: TensorFacts, bits: int | None, policy: str) -> Tensor:
    tensor = file_tensor(facts, policy)
    return tensor if bits is None else replace(tensor, bits=bits, precision_source="override")
