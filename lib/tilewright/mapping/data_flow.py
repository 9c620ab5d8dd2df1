"""The data of a network over time: what layers hand to one another, and for how long it is there.

Steps count the layers in order of execution; data of step s occupy memory while layer s runs, and the step after the
last layer stands for the time after the network. Operators that only pass data on cost nothing in this model and take
no time: one with a single input is applied where its output is read; one that joins several (Add, Concat) makes new
data as soon as its inputs are there, in their place if nothing else reads them. A join whose output size is not known
is applied where it is read, too, and its inputs are kept until then.
"""

from dataclasses import dataclass, field

from tilewright.mapping.constraints import Mapping
from tilewright.profile import ModelProfile
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer, weight_operand
from tilewright.workload.relevancy import operand_elements, operand_relevancy


@dataclass
class Tensor:
    """Data that may be kept in one memory."""

    bits: int
    first_step: int
    last_step: int
    element_bits: int
    traffic_bits: int = 0
    """What is written and read of it: what keeping it saves above its memory."""
    is_network_end: bool = False
    """Input or output of the network."""

    @property
    def occupied_bit_steps(self) -> int:
        """Size times life."""
        return self.bits * (self.last_step - self.first_step + 1)


@dataclass(frozen=True)
class OperandSize:
    """How large an operand of a layer is for the mapping of the layer; partial sums may be wider than outputs."""

    operand: str
    memory_operand: str
    element_bits: int
    """Most bits of an element."""
    most_bits: int
    """Most that is counted for the whole of it."""
    least_bits: int
    """Least that is counted for the whole of it."""


@dataclass(frozen=True)
class OperandUse:
    """An operand of a layer whose data are kept between layers: an input that is no weight, or the output."""

    size: OperandSize
    tensors: tuple[int, ...]
    """What it is made of."""


@dataclass(frozen=True)
class LayerUse:
    """A layer as a user of data, at its step."""

    layer: Layer
    operands: tuple[OperandUse, ...]
    sizes: tuple[OperandSize, ...]
    """Of all operands."""
    weight: str | None
    """The memory operand of constant weights; None if there are none."""
    weight_bits: int


@dataclass
class DataFlow:
    """All data of a network."""

    tensors: list[Tensor] = field(default_factory=list)
    layers: list[LayerUse] = field(default_factory=list)
    """By step."""
    joined: list[tuple[int, ...]] = field(default_factory=list)
    """Data that must be in the same memory: what is joined without cost, and what it makes."""

    @property
    def step_count(self) -> int:
        """Steps, the one after the last layer included."""
        return len(self.layers) + 1


def data_flow(workload: Workload, mapping: Mapping, profile: ModelProfile) -> DataFlow:
    """Tensors, their users and lives."""
    reader = _FlowReader(workload, mapping, profile)
    for node in workload.nodes:
        reader.tensors_of[node.node_id] = reader.read(node)
        if node.is_network_output:
            reader.keep_to_the_end(reader.tensors_of[node.node_id])
    reader.flow.layers = [reader.uses[step] for step in range(len(reader.uses))]
    reader.keep_to_the_end([t for t in range(len(reader.flow.tensors)) if t not in reader.is_read])
    return reader.flow


class _FlowReader:
    """Goes through the nodes in file order, producers first."""

    def __init__(self, workload: Workload, mapping: Mapping, profile: ModelProfile) -> None:
        self.mapping = mapping
        self.profile = profile
        self.flow = DataFlow()
        self.step_of = {node.node_id: step for step, node in enumerate(workload.layers_in_order)}
        self.uses: dict[int, LayerUse] = {}
        self.tensors_of: dict[int, tuple[int, ...]] = {}
        self.is_read: set[int] = set()
        self.made_at: dict[int, int] = {}
        """Tensor -> step at whose end it is complete."""

    def read(self, node: WorkloadNode) -> tuple[int, ...]:
        """What the output of a node consists of."""
        if node.layer is not None:
            return self._read_layer(node, node.layer)
        sources = self._sources(node)
        if len(sources) < 2 or node.output_elements is None:
            return sources
        return (self._join(sources, node.output_elements),)

    def keep_to_the_end(self, tensors: tuple[int, ...] | list[int]) -> None:
        """Outputs of the network stay until after its last layer."""
        for tensor in tensors:
            self.flow.tensors[tensor].last_step = len(self.step_of)
            self.flow.tensors[tensor].is_network_end = True

    def _sources(self, node: WorkloadNode, operand: str | None = None) -> tuple[int, ...]:
        """The tensors that reach a node, or one operand of it."""
        ids = [source for name, source in node.sources if operand in (None, name)]
        return tuple(dict.fromkeys(tensor for source in ids for tensor in self.tensors_of[source]))

    def _join(self, sources: tuple[int, ...], elements: int) -> int:
        """New data, there from the step after that in which the last of its sources is made."""
        ready = max(self.made_at[source] for source in sources)
        element_bits = max(self.flow.tensors[source].element_bits for source in sources)
        joined = self._add(Tensor(elements * element_bits, ready + 1, ready + 1, element_bits), ready)
        self._use(sources, ready)
        self.flow.joined.append((*sources, joined))
        return joined

    def _add(self, tensor: Tensor, made_at: int) -> int:
        self.flow.tensors.append(tensor)
        self.made_at[len(self.flow.tensors) - 1] = made_at
        return len(self.flow.tensors) - 1

    def _use(self, tensors: tuple[int, ...], step: int) -> None:
        for index in tensors:
            tensor = self.flow.tensors[index]
            tensor.last_step = max(tensor.last_step, step)
            self.is_read.add(index)

    def _read_layer(self, node: WorkloadNode, layer: Layer) -> tuple[int, ...]:
        step = self.step_of[node.node_id]
        link = dict(self.mapping.constraints_for(layer).memory_operand_links)
        sizes = {operand: self._size(layer, operand, link[operand]) for operand in layer.operands}
        weight = weight_operand(layer)
        constant_weight = None if weight not in layer.constant_operands else weight
        kept = [operand for operand in layer.input_operands if operand != constant_weight]
        inputs = [self._input(node, layer, sizes[operand], step) for operand in kept]
        self._use(self._sources(node), step)  # also what is read beside the operands, such as a computed bias
        output = self._output(layer, sizes[OUTPUT], step)
        self.uses[step] = LayerUse(
            layer,
            (*inputs, output),
            tuple(sizes.values()),
            None if constant_weight is None else link[constant_weight],
            0 if constant_weight is None else sizes[constant_weight].most_bits,
        )
        return output.tensors

    def _size(self, layer: Layer, operand: str, memory_operand: str) -> OperandSize:
        """An output that is accumulated is counted as partial sums at first, as final outputs later."""
        elements = operand_elements(layer, operand, self.profile)
        most = least = layer.bits_of[operand]
        if operand == OUTPUT:
            accumulates = bool(operand_relevancy(layer, OUTPUT, self.profile).irrelevant)
            final = layer.bits_of[FINAL_OUTPUT]
            most, least = (max(most, final), min(most, final)) if accumulates else (final, final)
        return OperandSize(operand, memory_operand, most, elements * most, elements * least)

    def _input(self, node: WorkloadNode, layer: Layer, size: OperandSize, step: int) -> OperandUse:
        """An input; what no node makes is an input of the network, there from the start."""
        tensors = self._sources(node, size.operand)
        if not tensors:
            source = Tensor(size.most_bits, 0, step, size.element_bits, is_network_end=True)
            tensors = (self._add(source, 0),)
        for tensor in tensors:
            self.flow.tensors[tensor].traffic_bits += size.most_bits
        if len(tensors) > 1:
            self.flow.joined.append(tensors)
        self._use(tensors, step)
        return OperandUse(size, tensors)

    def _output(self, layer: Layer, size: OperandSize, step: int) -> OperandUse:
        final = layer.bits_of[FINAL_OUTPUT]
        bits = operand_elements(layer, OUTPUT, self.profile) * final
        tensor = self._add(Tensor(bits, step, step, final, bits), step)
        return OperandUse(size, (tensor,))
