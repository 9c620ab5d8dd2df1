"""Layer splitting (LayerSplittingStage): a layer whose weights exceed a memory is replaced by several layers.

The result is an ONNX network that computes the same function. The parts of a layer are operators of the same type. Each
part has the weights of some output channels, and a Concat joins the outputs. Weights in the model file are sliced.
Weights that are in another file, or that were left out, are not read. The weight tensors of the parts then have a
shape, but no data. If possible, weight tensors of the parts refer to a position in the other file.

Mode 4 of `cn_define_mode` splits weights within a layer instead.
"""

import json
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from pathlib import Path

import onnx

from tilewright.base.errors import InputError, Problem
from tilewright.hardware.core import Memory
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping
from tilewright.multicore.nodes.split_operators import (
    NOT_INCLUDED,
    ChannelPart,
    OperatorForm,
    TensorSlicer,
    channel_parts,
    has_data,
    leave_out_data,
    operator_form,
    split_operator,
)
from tilewright.multicore.nodes.tiling_options import SplitOptions
from tilewright.multicore.nodes.weights import (
    network_input_operands,
    smallest_weight_memory,
    weight_bits,
    weight_operand,
)
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import part_name
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx.loading import LARGEST_DATA_BYTES, load_model
from tilewright.workload.onnx.resolution.network import resolve_graph

METADATA_KEY = "tilewright.split_layers"
"""Key of the model's metadata. Its value is JSON that maps each split layer to the number of its parts."""
_MOST_NAMED = 6
_LARGEST_KEPT_BYTES = 2**14


@dataclass(frozen=True)
class LayerSplit:
    """Layer that is split, and the memory that is too small for its weights."""

    layer: str
    operator_type: str
    weight_bits: int
    core_id: int
    """Id of the core with the smallest memory for weights among the cores that are allowed to run the layer."""
    memory: str
    memory_bits: int
    capacity_bits: int
    """Bits of `memory` that are available for the weights of a part."""
    parts: tuple[ChannelPart, ...]
    channels: int

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the layers that replace the split layer."""
        return tuple(part_name(self.layer, place, len(self.parts)) for place in range(len(self.parts)))

    @property
    def largest_part_bits(self) -> int:
        """Bits of the weights of the largest part."""
        return self.weight_bits // self.channels * max(part.end - part.start for part in self.parts)


@dataclass(frozen=True, eq=False)
class SplitNetwork:
    """Network after splitting, with a description of each split layer."""

    model: onnx.ModelProto
    splits: tuple[LayerSplit, ...]
    """Layers that are split, in the order of the network."""
    notices: tuple[str, ...]
    """Messages of two kinds: on layers that are not split although their weights are too large for a memory, and on
    data that are left out of the model.
    """


@dataclass(frozen=True)
class _Excess:
    """Layer whose weights exceed the capacity of a memory for weights."""

    node: WorkloadNode
    weight_bits: int
    core_id: int
    memory: Memory
    capacity_bits: int

    @property
    def text(self) -> str:
        return (
            f"{self.node.name}: {self.weight_bits:,} bits of weights exceed the capacity of {self.capacity_bits:,} bits"
        )


def open_model(path: Path, keep_weights: bool = False) -> onnx.ModelProto:
    """Model to be split, read from a file. Raises InputError if the file cannot be read.

    Files with weights are large. Without `keep_weights`, a constant over 16 KiB in a file over 1 MiB keeps only its
    shape and type. Data in other files are never opened.
    """
    model, _, _ = load_model(path)
    if path.stat().st_size <= LARGEST_DATA_BYTES:
        return model
    if keep_weights:
        return onnx.load(str(path), load_external_data=False)
    for tensor in model.graph.initializer:
        is_elsewhere = tensor.data_location == onnx.TensorProto.EXTERNAL
        if not is_elsewhere and (not has_data(tensor) or tensor.ByteSize() > _LARGEST_KEPT_BYTES):
            leave_out_data(tensor)
    return model


def split_layers(
    model: onnx.ModelProto,
    workload: Workload,
    accelerator: MultiCoreAccelerator,
    mapping: Mapping,
    options: SplitOptions,
    network_options: NetworkOptions | None = None,
) -> SplitNetwork:
    """Copy of `model` in which layers with too large weights are split, with a description of each split. `workload` is
    the same network as `model`.

    A layer is split into the smallest number of parts whose weights all fit the memory. Weights fit if they take at
    most the share of the memory that `options` allows. The memory is the smallest top memory for weights among the
    cores that the layer may use.

    Two kinds of layers are not split, but listed in `notices`. Layers with fixed cores are not split, because their
    list of cores has one core for each group. Operators of a form that cannot be split are not split either. Raises
    InputError with every layer for which even the weights of a single output channel do not fit.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    excesses = list(_excesses(workload, accelerator, mapping, options))
    operators = {node.output[0]: node for node in result.graph.node if node.output}
    shapes, opset = _shapes_and_opset(model, network_options or NetworkOptions()) if excesses else ({}, 0)
    notices, problems = [], []
    found: dict[str, tuple[OperatorForm, LayerSplit]] = {}
    for excess in excesses:
        node = excess.node
        assert node.layer is not None
        if mapping.constraints_for(node.layer).core_allocation_is_fixed:
            notices.append(f"{excess.text}; the layer is not split, because its cores are fixed")
            continue
        operator = operators.get(node.outputs[0])
        form = operator_form(operator, _weight_tensor(node, workload), shapes) if operator is not None else None
        if form is None:
            notices.append(
                f"{excess.text}; the layer is not split, because tilewright cannot split this form of"
                f" {node.origin_type}"
            )
        elif excess.weight_bits // form.channels > excess.capacity_bits:
            of_channel = excess.weight_bits // form.channels
            message = (
                f"the weights of one output channel ({of_channel:,} bits) exceed the capacity of"
                f" {excess.capacity_bits:,} bits"
            )
            problems.append(Problem(message, path=node.name, allowed=f"a larger {excess.memory.name}"))
        else:
            found[node.outputs[0]] = (form, _layer_split(excess, form))
    if problems:
        raise InputError(problems)
    slicer = TensorSlicer(result, opset)
    _replace_operators(result, slicer, found)
    splits = tuple(split for _, split in found.values())
    notices += _finish(result, slicer, splits)
    return SplitNetwork(result, splits, tuple(notices))


def _excesses(
    workload: Workload, accelerator: MultiCoreAccelerator, mapping: Mapping, options: SplitOptions
) -> Iterator[_Excess]:
    for node in workload.nodes:
        if node.layer is None:
            continue
        bits = weight_bits(node.layer, network_input_operands(node, workload))
        smallest = smallest_weight_memory(node, mapping.constraints_for(node.layer), accelerator)
        if smallest is not None:
            core_id, memory = smallest
            capacity_bits = int(options.share * memory.size_bits)
            if bits > capacity_bits:
                yield _Excess(node, bits, core_id, memory, capacity_bits)


def _shapes_and_opset(model: onnx.ModelProto, options: NetworkOptions) -> tuple[dict[str, tuple[int, ...]], int]:
    graph = resolve_graph(model, dict(options.dims), dict(options.input_shapes), dict(options.branches))
    return {name: facts.shape for name, facts in graph.tensors.items()}, graph.opsets.get("", 1)


def _weight_tensor(node: WorkloadNode, workload: Workload) -> str:
    """Name of the tensor that contains the weights of a layer."""
    assert node.layer is not None
    operand = weight_operand(node.layer, network_input_operands(node, workload))
    return next(index_map.input.tensor for index_map in node.index_maps if index_map.operand == operand)


def _layer_split(excess: _Excess, form: OperatorForm) -> LayerSplit:
    most_channels = excess.capacity_bits // (excess.weight_bits // form.channels)
    return LayerSplit(
        layer=excess.node.name,
        operator_type=excess.node.origin_type,
        weight_bits=excess.weight_bits,
        core_id=excess.core_id,
        memory=excess.memory.name,
        memory_bits=excess.memory.size_bits,
        capacity_bits=excess.capacity_bits,
        channels=form.channels,
        parts=channel_parts(form, most_channels),
    )


def _replace_operators(
    model: onnx.ModelProto, slicer: TensorSlicer, found: Table[str, tuple[OperatorForm, LayerSplit]]
) -> None:
    """Replace each operator in `found` by its parts. `found` is keyed by the name of the operator's output."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.output and node.output[0] in found:
            form, split = found[node.output[0]]
            replacing = split_operator(node, split.layer, form, split.parts, slicer)
            _describe_outputs(model.graph, node.output[0], replacing[-1].input, form, split)
            nodes += replacing
        else:
            nodes.append(node)
    # The operators must be copied before the list that owns them is emptied.
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def _describe_outputs(
    graph: onnx.GraphProto, output: str, parts: Sequence[str], form: OperatorForm, split: LayerSplit
) -> None:
    """Add the type and shape of each part's output, if the model has type and shape of the whole output."""
    described = next((value for value in (*graph.value_info, *graph.output) if value.name == output), None)
    if described is None or len(described.type.tensor_type.shape.dim) <= form.output_axis:
        return
    for name, part in zip(parts, split.parts, strict=True):
        value = onnx.ValueInfoProto()
        value.CopyFrom(described)
        value.name = name
        value.type.tensor_type.shape.dim[form.output_axis].dim_value = part.end - part.start
        graph.value_info.append(value)


def _finish(model: onnx.ModelProto, slicer: TensorSlicer, splits: Sequence[LayerSplit]) -> list[str]:
    """Remove sliced constants that no operator reads any longer. In each constant that has neither data nor a data
    file, enter NOT_INCLUDED as the data file. Add the splits to the metadata of the model.

    Returns a list with one message on the constants without data; [] if there are none.
    """
    slicer.remove_unread()
    absent = [tensor for tensor in model.graph.initializer if not has_data(tensor) and not tensor.external_data]
    for tensor in absent:
        leave_out_data(tensor)
    if splits:
        table = {split.layer: len(split.parts) for split in splits}
        model.metadata_props.add(key=METADATA_KEY, value=json.dumps(table))
    emptied = sorted({*(tensor.name for tensor in absent), *slicer.emptied})
    if not emptied:
        return []
    names = ", ".join(emptied[:_MOST_NAMED]) + (
        f" and {len(emptied) - _MOST_NAMED} more" if emptied[_MOST_NAMED:] else ""
    )
    return [f"these constants have only a shape, because their data are left out ({NOT_INCLUDED}): {names}"]
