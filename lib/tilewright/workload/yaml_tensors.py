"""Tensors and index maps of a network that a file gives as a list of layers.

Tensors and index maps are needed for cutting and fusing layers.

A list of layers names the producer of an operand, but does not match the axes of the producer's output with the axes of
the consumer's input. The axes are therefore matched by position, not by name: O[b][k][oy][ox] of a producer is
I[b][c][iy][ix] of its consumer. If the shapes differ, the first of these rules that fits applies:

1. Two kinds of differences are allowed: an axis of size 1 is repeated, and a window reaches into padding that the file
does not give. All elements that such a window can reach are needed.
2. If the two shapes have the same number of elements, the data are reshaped in row-major order.
3. All elements along axes with different sizes are needed. If the numbers of axes differ, the whole tensor is needed.

An assumed match gives a superset of the true dependences (`IndexMap.is_exact` False), and a notice names both layers.

Groups and channels, [g][k] or [g][c], are one axis. The groups are the outer loop of this axis.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tilewright.base.errors import count_of
from tilewright.workload.access import AxisIndex, IndexMap, Shape, TensorAccess, access_of_loops, fixed, loop
from tilewright.workload.graph import Tensor, Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, DimensionRelation, Layer

_GROUP, _CHANNELS = "G", ("K", "C")


@dataclass(frozen=True)
class Window:
    """Step and length of a sliding window along an axis."""

    step: int
    """Distance, in indices, from one position of the window to the next. Up to step - 1 indices at the end of the axis
    can be left unread.
    """
    length: int
    """Number of indices from the first to the last index of the window at one position."""


@dataclass(frozen=True)
class OperandAxis:
    """One axis of an operand, as the layer of the operand describes it."""

    index: AxisIndex
    size: int
    """Size of the axis in elements, without padding."""
    reach: int
    """Number of indices of the axis that the loops access, without padding that the file gives. The number is at least
    1."""
    window: Window | None = None


@dataclass(frozen=True)
class AxisMatch:
    """Match of an axis of an operand with an axis of its tensor."""

    index: AxisIndex
    extra_loop: tuple[tuple[str, int], ...] = ()
    """Loop that the index needs besides the loops of the layer, as ((name, size),). With this loop, the index covers
    all elements that can be needed. () if the loops of the layer are enough."""
    assumption: str = ""
    """Assumption of the match, as a phrase for a notice; '' if nothing is assumed."""
    is_whole: bool = False
    """True if the axes do not match. All indices of the tensor's axis are then assumed to be needed."""


def operand_axes(layer: Layer, operand: str) -> tuple[OperandAxis, ...]:
    """Axes of an operand, in the order of the equation."""
    dimensions = dict(layer.operand_dimensions)[operand]
    channel = next((name for name in dimensions if name in _CHANNELS), None)
    if _GROUP not in dimensions or channel is None:
        return tuple(_axis(layer, name) for name in dimensions)
    channels = layer.size_of[channel]
    size = layer.size_of[_GROUP] * channels
    merged = OperandAxis(AxisIndex(((_GROUP, channels), (channel, 1))), size, size)
    place = min(dimensions.index(_GROUP), dimensions.index(channel))
    return tuple(
        merged if number == place else _axis(layer, name)
        for number, name in enumerate(dimensions)
        if number == place or name not in (_GROUP, channel)
    )


def _axis(layer: Layer, dimension: str) -> OperandAxis:
    relation = next((known for known in layer.relations if known.data_dimension == dimension), None)
    if relation is None:
        size = layer.size_of[dimension]
        return OperandAxis(loop(dimension), size, size)
    before, after = dict(layer.padding).get(dimension, (0, 0))
    positions = 1 + sum(coefficient * (layer.size_of[name] - 1) for name, coefficient in relation.terms)
    reach = max(1, positions - before - after)
    size = dict(layer.data_dimension_sizes).get(dimension, reach)
    return OperandAxis(AxisIndex(relation.terms, -before), size, reach, _window(layer, relation))


def _window(layer: Layer, relation: DimensionRelation) -> Window:
    """Window of a relation. The loop of the output moves the window; the other loop runs inside the window."""
    made = dict(layer.operand_dimensions)[OUTPUT]
    first, second = relation.terms
    (_, step), (inner, coefficient) = (first, second) if first[0] in made or second[0] not in made else (second, first)
    return Window(step, 1 + coefficient * (layer.size_of[inner] - 1))


def sizes_of(axes: Sequence[OperandAxis]) -> Shape:
    """Shape of an operand, as the layer of the operand describes it."""
    return tuple(axis.size for axis in axes)


def goes_together(axes: Sequence[OperandAxis], shape: Shape) -> bool:
    """True if every axis of an operand matches the axis of the tensor at the same position. Padding is allowed, and an
    axis of size 1 can be repeated."""
    if len(axes) != len(shape):
        return False
    return not any(match_axis(axis, size, "").is_whole for axis, size in zip(axes, shape, strict=True))


def is_reshape(axes: Sequence[OperandAxis], shape: Shape) -> bool:
    """True if an operand and a tensor have the same number of elements, but shapes that do not match."""
    return not goes_together(axes, shape) and math.prod(sizes_of(axes)) == math.prod(shape)


def match_axis(axis: OperandAxis, size: int, loop_name: str) -> AxisMatch:
    """Match of an axis of an operand with an axis of the tensor that the operand reads. The axis of the tensor has
    `size` indices. `loop_name` is the name of the loop that the match adds, if a loop is needed.

    A window can reach beyond the axis of the tensor, because the file does not give the padding. The window is then
    assumed to reach into padding at each end of the axis, by at most the length of the window minus 1.
    """
    lacking = axis.reach - size
    if axis.window is None:
        if not lacking:
            return AxisMatch(axis.index)
        if size == 1:
            return AxisMatch(fixed())
    elif -axis.window.step < lacking <= 0:
        return AxisMatch(axis.index)
    elif 0 < lacking <= 2 * (axis.window.length - 1):
        most = min(lacking + axis.window.step - 1, axis.window.length - 1)
        index = AxisIndex((*axis.index.terms, (loop_name, -1)), axis.index.offset)
        padding, earlier = count_of(lacking, "position"), count_of(most, "position")
        text = f"the file lacks {padding} of padding, so a window can begin up to {earlier} earlier"
        return AxisMatch(index, ((loop_name, most + 1),), text)
    return AxisMatch(loop(loop_name), ((loop_name, size),), "a result can need the whole axis", True)


RESHAPE = "Reshape"
_ACTIVATION = "I"
_PRECISION_SOURCE = "override"
_Loops = tuple[tuple[str, int], ...]


@dataclass
class _Reading:
    """Tensors, network inputs and notices that `with_tensors` has collected so far."""

    notices: list[str]
    next_id: int
    tensors: dict[str, Tensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    made_by: dict[int, Tensor] = field(default_factory=dict)
    """Output tensor of each layer, by node id."""
    name_of: dict[int, str] = field(default_factory=dict)
    """Name of each layer, by node id."""

    def add(self, name: str, shape: tuple[int, ...], bits: int, is_constant: bool = False) -> Tensor:
        """Add a tensor, and return it. Its name consists of the names of a layer and of an operand, and is unique
        because names of layers are unique.
        """
        self.tensors[name] = Tensor(name, shape, bits, "", _PRECISION_SOURCE, is_constant)
        return self.tensors[name]


def with_tensors(workload: Workload, notices: list[str] | None = None) -> Workload:
    """Workload of a list of layers, completed with tensors, index maps of the layers, network inputs and network
    outputs.

    Outputs of the network are the tensors that no layer reads. Inputs of the network are the operands I that no layer
    produces. An operand of 0 bits without a producer (weights of pooling) has no tensor. A reshape between layers
    becomes a pass-through node before the layer that reads its output. The `sources` of the layers do not change.
    Assumptions are appended to `notices`. A workload that already has tensors is returned unchanged.
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
    """Nodes of a layer: reshape nodes for inputs, then the layer with its index maps. An input gets a reshape node if
    its tensor has the same number of elements, but another shape than the layer reads."""
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
    """Pass-through node that reshapes `source`, an output of the node `source_id`, into `tensor`."""
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
    """Triple (access of the layer to a tensor, loops that the access needs in addition to the loops of the layer,
    assumptions in words).
    """
    names = [f"{tensor.name}[{axis}]" for axis in range(len(tensor.shape))]
    if len(axes) != len(tensor.shape):
        whole = access_of_loops(tensor.name, names)
        return (
            whole,
            tuple(zip(names, tensor.shape, strict=True)),
            ["shapes differ, so a result can need the whole tensor"],
        )
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
