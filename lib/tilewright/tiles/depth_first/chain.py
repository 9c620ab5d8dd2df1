"""Networks that can run depth-first: chains of layers with a height and a width.

Each layer reads the output of the layer before it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.base.errors import InputError, Label, Problem, count_of, some_of
from tilewright.base.profile import ModelProfile
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.control_rules import refuse_control
from tilewright.mapping.zero_keys import refuse_zeros
from tilewright.tiles.depth_first.axes import AxisWindow
from tilewright.workload.graph import Workload, WorkloadNode, refuse_folded
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer, activation_operand, weight_operand
from tilewright.workload.relevancy import operand_bits

AXES = ("OX", "OY")
"""Loop dimensions that are cut into tiles."""
ELEMENTWISE = (
    "BatchNormalization",
    "Clip",
    "Dropout",
    "Elu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LeakyRelu",
    "PRelu",
    "Relu",
    "Sigmoid",
    "Tanh",
)
"""Operators that can lie between two layers of a chain, because they do not move elements."""


@dataclass(frozen=True)
class ChainLayer:
    """Layer of a chain."""

    layer: Layer
    constraints: MappingConstraints
    x: AxisWindow
    y: AxisWindow
    input_operand: str
    weight_operand: str | None
    input_bits: int
    """Number of bits of all input elements at one position."""
    output_bits: int
    """Number of bits of all final output elements at one position."""
    weight_bits: int
    data_dimensions: tuple[str, ...]
    """Data dimensions of the windows along x and y; '' if the layer has no window along the axis."""

    def window(self, axis: int) -> AxisWindow:
        """Window of the layer along x (axis 0) or y (axis 1)."""
        return self.y if axis else self.x

    def tile(self, made: tuple[int, int], read: tuple[int, int]) -> Layer:
        """Layer reduced to one tile.

        The tile makes `made` positions and reads `read` positions of its input. `made` and `read` are pairs with a
        count along x and a count along y.
        """
        sizes = dict(zip(AXES, made, strict=True))
        loops = tuple([(d, sizes.get(d, size)) for d, size in self.layer.loop_sizes])
        clipped = []
        for axis, name in enumerate(self.data_dimensions):
            window = self.window(axis)
            if name and read[axis] != (made[axis] - 1) * window.stride + window.extent:
                clipped.append((name, read[axis]))
        return replace(self.layer, name="", loop_sizes=loops, padding=(), data_dimension_sizes=tuple(clipped))


@dataclass(frozen=True)
class Chain:
    """Network of consecutive layers, with the core that it runs on."""

    name: str
    core: Core
    layers: tuple[ChainLayer, ...]
    activation: str
    """Memory operand that holds the layers' inputs."""
    output: str
    """Memory operand that holds the layers' outputs."""
    weight: str
    """Memory operand that holds the layers' weights."""

    def windows(self, first: int, last: int, axis: int) -> tuple[AxisWindow, ...]:
        """Windows of layers `first` to `last`, inclusive, along an axis."""
        return tuple([layer.window(axis) for layer in self.layers[first : last + 1]])


def read_chain(workload: Workload, core: Core, mapping: Mapping, profile: ModelProfile) -> Chain:
    """Chain of the layers of a workload.

    Raises InputError with the names of all layers that cannot be part of a chain.
    """
    refuse_folded(workload, "a chain needs each layer separately")
    refuse_zeros([core], "a chain of layers in tiles")
    refuse_control([core], "a chain of layers in tiles")
    faults: dict[str, list[str]] = {}
    layers: list[ChainLayer] = []
    nodes = {node.node_id: node for node in workload.nodes}
    before: WorkloadNode | None = None
    for node in workload.layers_in_order:
        assert node.layer is not None
        wrong = list(_faults(node, node.layer, before, nodes))
        if not wrong:
            layers.append(_chain_layer(node.layer, mapping.constraints_for(node.layer), profile))
            if before is not None and len(layers) > 1 and layers[-2].layer is before.layer:
                wrong = list(_misfits(layers[-2], layers[-1]))
        for text in wrong:
            faults.setdefault(text, []).append(node.layer.name)
        before = node
    problems = [
        Problem(f"cannot be run depth-first: {text}", path=Label(workload.name), value=some_of(names))
        for text, names in faults.items()
    ]
    if not workload.layers_in_order:
        problems.append(Problem("no layer to run", path=Label(workload.name)))
    if not problems:
        problems += list(_link_faults(workload, core, layers))
    if problems:
        raise InputError(problems)
    link = dict(layers[0].constraints.memory_operand_links)
    weights = [entry for entry in layers if entry.weight_operand is not None]
    weight = dict(weights[0].constraints.memory_operand_links)[str(weights[0].weight_operand)] if weights else ""
    return Chain(workload.name, core, tuple(layers), link[layers[0].input_operand], link[OUTPUT], weight)


def _faults(
    node: WorkloadNode, layer: Layer, before: WorkloadNode | None, nodes: dict[int, WorkloadNode]
) -> Iterator[str]:
    operand = activation_operand(layer)
    computed = [o for o in layer.input_operands if o != operand and o not in layer.constant_operands]
    sources = [source for _, source in node.sources]
    if computed or len(sources) > 1:
        yield "a layer reads several computed inputs, and only chains are supported"
        return
    producer = None
    for source in sources:
        producer, passed = _producer(nodes, source)
        if passed:
            yield f"the input of a layer comes through {passed}, which moves elements or has no cost"
            return
    if (before is None) != (producer is None) or (before is not None and producer != before.node_id):
        yield "the input of a layer is not the output of the layer before it, and only chains are supported"
        return
    missing = [axis for axis in AXES if axis not in dict(layer.operand_dimensions)[OUTPUT]]
    if missing:
        yield f"outputs have no dimension {' and '.join(missing)} along which tiles could be cut"
        return
    if any(name in AXES for relation in layer.relations for name in (relation.data_dimension,)):
        yield "outputs slide over inputs (a transposed convolution)"
        return
    for axis in AXES:
        if _window_text(layer, operand, axis) is None:
            yield f"inputs are not read through one window along {axis}"


def _producer(nodes: dict[int, WorkloadNode], source: int) -> tuple[int | None, str]:
    """Pair (id, ''): id of the layer that makes the data of node `source`. The search for this layer goes back over
    operators that do not move elements.

    If no layer makes the data, the result is (None, ''). The search also stops at an operator that has no layer, if
    this operator may move elements or has several inputs from nodes. The result is then (None, description of this
    operator).
    """
    node = nodes[source]
    while node.layer is None:
        if node.operator_type not in ELEMENTWISE or len(node.sources) > 1:
            return None, f"an operator {node.operator_type}"
        if not node.sources:
            return None, ""
        node = nodes[node.sources[0][1]]
    return node.node_id, ""


def _window_text(layer: Layer, operand: str, axis: str) -> tuple[str, str | None, int, int] | None:
    """Window that an operand has along an axis, as a tuple (data dimension, kernel loop, stride, dilation).

    If the axis is itself a dimension of the operand, the result is ('', None, 1, 1). If the operand has no window along
    the axis, or has several, the result is None.
    """
    dimensions = dict(layer.operand_dimensions)[operand]
    if axis in dimensions:
        return "", None, 1, 1
    found = [r for r in layer.relations if r.data_dimension in dimensions and axis in dict(r.terms)]
    if len(found) != 1:
        return None
    (one, c1), (other, c2) = found[0].terms
    return (found[0].data_dimension, other, c1, c2) if one == axis else (found[0].data_dimension, one, c2, c1)


def _chain_layer(layer: Layer, constraints: MappingConstraints, profile: ModelProfile) -> ChainLayer:
    operand, weight = activation_operand(layer), weight_operand(layer)
    x, y = (_window(layer, operand, axis) for axis in AXES)
    names = tuple([str((_window_text(layer, operand, axis) or ("",))[0]) for axis in AXES])
    others = [d for d in dict(layer.operand_dimensions)[operand] if d not in (*names, *AXES)]
    outer = [d for d in dict(layer.operand_dimensions)[OUTPUT] if d not in AXES]
    elements = math.prod(layer.size_of.get(d, 1) for d in others)
    results = math.prod(layer.size_of.get(d, 1) for d in outer)
    return ChainLayer(
        layer,
        constraints,
        x,
        y,
        operand,
        weight,
        elements * layer.bits_of[operand],
        results * layer.bits_of[FINAL_OUTPUT],
        0 if weight is None else operand_bits(layer, weight, profile),
        names,
    )


def _window(layer: Layer, operand: str, axis: str) -> AxisWindow:
    found = _window_text(layer, operand, axis)
    assert found is not None
    name, kernel, stride, dilation = found
    size = layer.size_of[axis]
    if not name:
        return AxisWindow(1, 1, 0, size, size)
    extent = (layer.size_of.get(str(kernel), 1) - 1) * dilation + 1
    padding = dict(layer.padding).get(name, (0, 0))
    present = (size - 1) * stride + extent - sum(padding)
    return AxisWindow(stride, extent, padding[0], dict(layer.data_dimension_sizes).get(name, present), size)


def _misfits(producer: ChainLayer, reader: ChainLayer) -> Iterator[str]:
    for axis, name in enumerate(AXES):
        there, wanted = producer.window(axis).output_size, reader.window(axis).input_size
        if there < wanted:
            yield f"a layer reads {count_of(wanted, 'position')} along {name} of a layer that makes only {there}"
    made = producer.output_bits // producer.layer.bits_of[FINAL_OUTPUT]
    read = reader.input_bits // reader.layer.bits_of[reader.input_operand]
    if made != read:
        yield f"a layer reads {count_of(read, 'channel')} of a layer that makes {count_of(made, 'channel')}"


def _link_faults(workload: Workload, core: Core, layers: list[ChainLayer]) -> Iterator[Problem]:
    """Problems with the memories of the layers of a chain.

    Layers must not give `memory_reach`, and they need the same memory operands. Their inputs and outputs need the same
    outermost memory, through which one stack passes tensors to the next.
    """
    roles = {"inputs": set[str](), "outputs": set[str](), "weights": set[str]()}
    for entry in layers:
        link = dict(entry.constraints.memory_operand_links)
        roles["inputs"].add(link[entry.input_operand])
        roles["outputs"].add(link[OUTPUT])
        if entry.weight_operand is not None:
            roles["weights"].add(link[entry.weight_operand])
        if entry.constraints.memory_reach is not None:
            text = "memory_reach cannot be given here: a depth-first schedule chooses it itself"
            yield Problem(text, path=entry.layer.name)
    for role, operands in roles.items():
        if len(operands) > 1:
            text = f"{role} of layers have different memory operands, but all layers of a chain need the same one"
            yield Problem(text, path=Label(workload.name), value=", ".join(sorted(operands)))
    if all(len(operands) == 1 for operands in (roles["inputs"], roles["outputs"])):
        hierarchy = memory_hierarchy(core)
        (activation,), (output,) = roles["inputs"], roles["outputs"]
        inputs, outputs = hierarchy.memories_of(activation), hierarchy.memories_of(output)
        if not inputs or not outputs or inputs[-1] != outputs[-1]:
            text = "inputs and outputs of layers need the same outermost memory, where stacks hand over data"
            yield Problem(text, path=core.name)
