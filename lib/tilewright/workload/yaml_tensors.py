"""Tensors and index maps of a network that is given as a list of layers, so that its layers can be cut and fused.

A list of layers says which layer makes an operand, but not how the axes of the two go together. They are matched by
position: O[b][k][oy][ox] of a producer is I[b][c][iy][ix] of its consumer, whatever the names. Where the shapes differ:

1. axes of size 1 are repeated, a window reaches into padding that is not given (what it may need is needed);
2. else as many elements in another shape are a reshape in row-major order;
3. else all of the axes that differ is needed, or all of the tensor where the numbers of axes differ.

What is assumed is a superset of the true dependencies (`IndexMap.is_exact` False), told in a notice that names both
layers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tilewright.workload.access import IndexMap, TensorAccess, loop
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.operand_axes import OperandAxis, is_reshape, match_axis, operand_axes, sizes_of
from tilewright.workload.tensor import Tensor

RESHAPE = "Reshape"
_ACTIVATION = "I"
_PRECISION_SOURCE = "override"
_Loops = tuple[tuple[str, int], ...]


@dataclass
class _Reading:
    """The network while it gets its tensors."""

    notices: list[str]
    next_id: int
    tensors: dict[str, Tensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    made_by: dict[int, Tensor] = field(default_factory=dict)
    """Node id -> what the layer makes."""
    name_of: dict[int, str] = field(default_factory=dict)
    """Node id -> name of the layer."""

    def add(self, name: str, shape: tuple[int, ...], bits: int, is_constant: bool = False) -> Tensor:
        """A tensor; names of layers are unique, and so are those made of them and an operand."""
        self.tensors[name] = Tensor(name, shape, bits, "", _PRECISION_SOURCE, is_constant)
        return self.tensors[name]


def with_tensors(workload: Workload, notices: list[str] | None = None) -> Workload:
    """The workload of a list of layers with its tensors, the index maps of its layers, its inputs and its outputs.

    Outputs are the tensors that no layer reads; inputs the operands called I that no layer makes. Operands of 0 bits
    that no layer makes (weights of pooling) are no tensors. A reshape between layers becomes a node that passes data
    on, before the layer that reads it; the layers keep their `sources`. What is assumed is appended to `notices`. A
    workload that has tensors is returned as it is.
    """
    if workload.tensors:
        return workload
    reading = _Reading(
        [] if notices is None else notices, max((node.node_id for node in workload.nodes), default=0) + 1
    )
    nodes: list[WorkloadNode] = []
    for node in workload.nodes:
        nodes += _with_maps(node, node.layer, reading) if node.layer is not None else [node]
    read = {name for node in nodes for name in node.inputs}
    return replace(
        workload,
        nodes=tuple(nodes),
        tensors=tuple(reading.tensors.values()),
        inputs=tuple(reading.inputs),
        outputs=tuple(tensor.name for tensor in reading.made_by.values() if tensor.name not in read),
    )


def _with_maps(node: WorkloadNode, layer: Layer, reading: _Reading) -> Iterator[WorkloadNode]:
    """A layer with its maps, after the reshapes of what it reads."""
    sources = dict(node.sources)
    output_axes = operand_axes(layer, OUTPUT)
    made = Tensor(f"{layer.name}.{OUTPUT}", sizes_of(output_axes), layer.bits_of[FINAL_OUTPUT])
    output = TensorAccess(made.name, tuple(axis.index for axis in output_axes))
    maps: list[IndexMap] = []
    for operand in layer.input_operands:
        axes = operand_axes(layer, operand)
        if operand not in sources:
            if not layer.bits_of[operand]:
                continue
            tensor = _from_outside(layer, operand, axes, reading)
            told = f"{layer.name}.{operand}"
        else:
            tensor = reading.made_by[sources[operand]]
            told = (
                f"{layer.name}.{operand} {_text(axes)} is made by {reading.name_of[sources[operand]]} {_shape(tensor)}"
            )
            if is_reshape(axes, tensor.shape):
                tensor = reading.add(f"{layer.name}.{operand}", sizes_of(axes), tensor.bits)
                yield _reshape(tensor, reading.made_by[sources[operand]], sources[operand], reading)
        access, loops, assumptions = _access(axes, tensor)
        if assumptions:
            reading.notices.append(f"{told}: {', '.join(assumptions)}")
        maps.append(IndexMap((*layer.loop_sizes, *loops), output, access, operand, not assumptions))
    reading.made_by[node.node_id] = reading.add(made.name, made.shape, made.bits)
    reading.name_of[node.node_id] = layer.name
    inputs = tuple(dict.fromkeys(index_map.input.tensor for index_map in maps))
    yield replace(node, inputs=inputs, outputs=(made.name,), index_maps=tuple(maps))


def _from_outside(layer: Layer, operand: str, axes: tuple[OperandAxis, ...], reading: _Reading) -> Tensor:
    is_input = operand == _ACTIVATION
    tensor = reading.add(f"{layer.name}.{operand}", sizes_of(axes), layer.bits_of[operand], not is_input)
    if is_input:
        reading.inputs.append(tensor.name)
    return tensor


def _reshape(tensor: Tensor, source: Tensor, source_id: int, reading: _Reading) -> WorkloadNode:
    """The node that hands on a tensor in another shape."""
    from tilewright.workload.onnx.index_maps import Ends, reshape_maps  # here, because few networks need it

    maps = reshape_maps(Ends(tensor.name, tensor.shape, source.name, source.shape))
    reading.next_id += 1
    return WorkloadNode(
        node_id=reading.next_id - 1,
        name=f"{tensor.name}.{RESHAPE}",
        operator_type=RESHAPE,
        layer=None,
        sources=(("", source_id),),
        output_elements=tensor.element_count,
        status="pass-through",
        inputs=(source.name,),
        outputs=(tensor.name,),
        index_maps=tuple(maps),
    )


def _access(axes: tuple[OperandAxis, ...], tensor: Tensor) -> tuple[TensorAccess, _Loops, list[str]]:
    """(what the layer reads of a tensor, loops besides its own, what is assumed)."""
    names = [f"{tensor.name}[{axis}]" for axis in range(len(tensor.shape))]
    if len(axes) != len(tensor.shape):
        whole = TensorAccess(tensor.name, tuple(loop(name) for name in names))
        return whole, tuple(zip(names, tensor.shape, strict=True)), ["shapes differ, all of it may be needed"]
    found = [match_axis(*entry) for entry in zip(axes, tensor.shape, names, strict=True)]
    assumed: dict[str, list[str]] = {}
    for number, match in enumerate(found):
        if match.assumption:
            assumed.setdefault(match.assumption, []).append(str(number))
    assumptions = [f"axis {' and '.join(numbers)}: {text}" for text, numbers in assumed.items()]
    loops = tuple(extra for match in found for extra in match.extra_loop)
    return TensorAccess(tensor.name, tuple(match.index for match in found)), loops, assumptions


def _text(axes: tuple[OperandAxis, ...]) -> str:
    return "(" + " x ".join(str(axis.reach) for axis in axes) + ")"


def _shape(tensor: Tensor) -> str:
    return "(" + " x ".join(map(str, tensor.shape)) + ")"
