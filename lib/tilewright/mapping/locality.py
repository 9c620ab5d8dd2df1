"""Keeps data in lower memories between layers instead of sending them through the top memory.

Two steps: `find_memory_reach` decides for a whole network how far each operand of each layer goes up;
`remove_unused_memories` gives the smaller core on which a layer is then mapped.

All that is live at one time fits: the sound counterpart of the rules of the reference (repair of B32). Data that meet
without cost must be in one memory, so they are decided together, as a *group*. A group stays in the lowest memory that
all its writers and readers use, that exists once, and in which there is room in each step of its life. Room means: the
memory holds what is kept in it, the whole of each operand of the running layer that starts or ends there, and a
smallest tile of each operand that passes through. Groups that save most traffic for the room that they take come first;
weights, which are never free again, last.

The data of a network over time: what layers hand to one another, and for how long it is there.

Steps count the layers in order of execution; data of step s occupy memory while layer s runs, and the step after the
last layer stands for the time after the network. Operators that only pass data on cost nothing in this model and take
no time: one with a single input is applied where its output is read; one that joins several (Add, Concat) makes new
data as soon as its inputs are there, in their place if nothing else reads them. A join whose output size is not known
is applied where it is read, too, and its inputs are kept until then.

The life of data stands here, since where they may be kept follows from it, and nothing else asks for it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tilewright.base.errors import MappingError
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.base.registry import Registry
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.memory_reach import MemoryReach, remove_unused_memories
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer, activation_operand, weight_operand
from tilewright.workload.relevancy import operand_elements, operand_relevancy


@dataclass
class KeptData:
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
    """Sizes of all operands."""
    weight: str | None
    """The memory operand of constant weights; None if there are none."""
    weight_bits: int


@dataclass
class DataFlow:
    """All data of a network."""

    tensors: list[KeptData] = field(default_factory=list)
    layers: list[LayerUse] = field(default_factory=list)
    """Layers by step."""
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
        joined = self._add(KeptData(elements * element_bits, ready + 1, ready + 1, element_bits), ready)
        self._use(sources, ready)
        self.flow.joined.append((*sources, joined))
        return joined

    def _add(self, tensor: KeptData, made_at: int) -> int:
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
            source = KeptData(size.most_bits, 0, step, size.element_bits, is_network_end=True)
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
        tensor = self._add(KeptData(bits, step, step, final, bits), step)
        return OperandUse(size, (tensor,))


Group = tuple[int, ...]
"""Tensors that are kept in the same memory."""


def live_reach(
    workload: Workload,
    core: Core,
    mapping: Mapping,
    profile: ModelProfile,
    *,
    data_always_from_top_memory: bool,
    even_mapping: bool,
) -> tuple[MemoryReach, ...]:
    """The reach of each layer and what others occupy meanwhile, in order of execution.

    With `even_mapping` operands that share a memory stop at the same loop there, so one that passes through a memory in
    which another ends must fit whole.
    """
    flow = data_flow(workload, mapping, profile)
    ends_stay_at_top = data_always_from_top_memory and profile.effective_top_memory_option
    placement = _Placement(core, flow, even_mapping)
    for group in _groups_by_worth(flow):
        if not (ends_stay_at_top and any(flow.tensors[t].is_network_end for t in group)):
            placement.place_group(group)
    for step in range(len(flow.layers)):
        placement.place_weights(step)
    return tuple(placement.reach(step) for step in range(len(flow.layers)))


def _groups_by_worth(flow: DataFlow) -> list[Group]:
    """Most traffic saved for each bit kept during a step first; then by first use."""
    groups = _groups(flow)

    def rank(group: Group) -> tuple[float, int, Group]:
        tensors = [flow.tensors[t] for t in group]
        traffic = sum(tensor.traffic_bits for tensor in tensors)
        occupied = sum(tensor.occupied_bit_steps for tensor in tensors)
        return occupied / traffic if traffic else float("inf"), min(t.first_step for t in tensors), group

    return sorted(groups, key=rank)


def _groups(flow: DataFlow) -> list[Group]:
    """The tensors, merged wherever they are joined."""
    group_of = {tensor: {tensor} for tensor in range(len(flow.tensors))}
    for joined in flow.joined:
        merged = set().union(*(group_of[tensor] for tensor in joined))
        for tensor in merged:
            group_of[tensor] = merged
    return [tuple(sorted(group)) for tensor, group in group_of.items() if tensor == min(group)]


class _Placement:
    """What is kept where, so far. What fits once stays: later decisions only add what fits beside it."""

    def __init__(self, core: Core, flow: DataFlow, even_mapping: bool) -> None:
        self.memories = core.memories
        self.array_elements = core.operational_array.unit_count
        self.instances = [instance_count(core, memory) for memory in range(len(core.memories))]
        self.holders: dict[str, list[int]] = {}
        """Memory operand -> its memories, innermost first."""
        for index, memory in enumerate(core.memories):
            for operand in memory.operands:
                self.holders.setdefault(operand, []).append(index)
        self.flow = flow
        self.even_mapping = even_mapping
        self.memory_of: dict[int, int] = {}
        """Tensor -> the memory below the top in which it is kept."""
        self.weights_at: dict[int, int] = {}
        """Step -> the memory below the top in which the weights of its layer stay."""
        self.live_bits = [[0] * flow.step_count for _ in self.memories]
        """Memory -> step -> bits of the tensors kept there."""
        self.weight_bits = [0] * len(self.memories)
        self.needs: dict[int, list[int]] = {}
        """Memory -> step -> bits needed besides the weights that stay there; once all groups are placed."""
        self.memory_operands: dict[int, set[str]] = {tensor: set() for tensor in range(len(flow.tensors))}
        """Tensor -> the memory operands as which layers write and read it."""
        for use in (use for layer in flow.layers for use in layer.operands):
            for tensor in use.tensors:
                self.memory_operands[tensor].add(use.size.memory_operand)

    def place_group(self, group: Group) -> None:
        """Keep a group in the lowest memory that it may use and where there is room for it."""
        tensors = [self.flow.tensors[t] for t in group]
        steps = range(min(t.first_step for t in tensors), max(t.last_step for t in tensors) + 1)
        for memory in self._candidates(set().union(*(self.memory_operands[t] for t in group))):
            self._keep(group, memory, 1)
            if self._has_room(memory, steps):
                return
            self._keep(group, memory, -1)

    def place_weights(self, step: int) -> None:
        """Keep the weights of a layer, all the time, in the outermost memory below their top if there is room.

        Only there, since that saves the traffic above, and the memories below are for tiles. Operands of other layers
        that fit there whole must still do so: they would be fetched again and again otherwise.
        """
        layer = self.flow.layers[step]
        candidates = list(self._candidates(set() if layer.weight is None else {layer.weight}))
        if candidates:
            memory = candidates[-1]
            self.weights_at[step] = memory
            self.weight_bits[memory] += layer.weight_bits
            self._update_needs(memory, step)
            if max(self.needs[memory]) + self.weight_bits[memory] > self.memories[memory].size_bits:
                del self.weights_at[step]
                self.weight_bits[memory] -= layer.weight_bits
                self._update_needs(memory, step)

    def reach(self, step: int) -> MemoryReach:
        """Memories up to which the data of one layer go, and the bits that are reserved in memories."""
        layer = self.flow.layers[step].layer
        outermost = {size.operand: memory for size, memory in self._operands(step)}
        weight = weight_operand(layer)
        reserved = ((k, self._reserved_bits(k, step)) for k in range(len(self.memories)))
        return MemoryReach(
            layer.name,
            outermost[activation_operand(layer)],
            outermost[OUTPUT],
            None if weight is None else outermost[weight],
            tuple((memory, bits) for memory, bits in reserved if bits > 0),
        )

    def _keep(self, group: Group, memory: int, sign: int) -> None:
        """Put a group into a memory, or (sign -1) take it out again."""
        for index in group:
            tensor = self.flow.tensors[index]
            for step in range(tensor.first_step, tensor.last_step + 1):
                self.live_bits[memory][step] += sign * tensor.bits
            if sign > 0:
                self.memory_of[index] = memory
            else:
                del self.memory_of[index]

    def _candidates(self, memory_operands: set[str]) -> Iterator[int]:
        """Memories below the top of some operands that hold all of them and exist once, lowest first."""
        if not memory_operands:
            return
        for index in range(min(self.holders[operand][-1] for operand in memory_operands)):
            if memory_operands <= set(self.memories[index].operands) and self.instances[index] == 1:
                yield index

    def _has_room(self, memory: int, steps: Iterable[int]) -> bool:
        size = self.memories[memory].size_bits
        return all(self._reserved_bits(memory, step) + self._layer_bits(memory, step) <= size for step in steps)

    def _update_needs(self, memory: int, changed_step: int) -> None:
        """Update of the needs: only the layer whose weights are placed has others than before."""
        steps = [changed_step] if memory in self.needs else range(self.flow.step_count)
        needs = self.needs.setdefault(memory, [0] * self.flow.step_count)
        for step in steps:
            needs[step] = (
                self._reserved_bits(memory, step)
                - self.weight_bits[memory]
                + self._layer_bits(memory, step, for_whole_operands=True)
            )

    def _reserved_bits(self, memory: int, step: int) -> int:
        """What is kept in a memory during a step beyond what the mapping of the running layer counts itself."""
        bits = self.live_bits[memory][step] + self.weight_bits[memory]
        if step == len(self.flow.layers):
            return bits
        layer = self.flow.layers[step]
        if self.weights_at.get(step) == memory:
            bits -= layer.weight_bits
        own: set[int] = set()
        for use in layer.operands:
            tensors = {t for t in use.tensors if self.memory_of.get(t) == memory} - own
            own |= tensors
            bits -= min(sum(self.flow.tensors[t].bits for t in tensors), use.size.least_bits)
        return bits

    def _layer_bits(self, memory: int, step: int, *, for_whole_operands: bool = False) -> int:
        """What the running layer needs in a memory: operands that end there whole, of others a smallest tile.

        With `for_whole_operands` the others whole, too, if the memory is large enough for them.
        """
        if step == len(self.flow.layers):
            return 0
        bits = 0
        for size, outermost in self._operands(step):
            if size.memory_operand in self.memories[memory].operands:
                is_whole = for_whole_operands and size.most_bits <= self.memories[memory].size_bits
                if outermost == memory or (outermost > memory and is_whole):
                    bits += size.most_bits
                elif outermost > memory:
                    bits += self._passing_bits(memory, size)
        return bits

    def _operands(self, step: int) -> Iterator[tuple[OperandSize, int]]:
        """The operands of a layer, and the outermost memory that each of them uses."""
        layer = self.flow.layers[step]
        kept_at = {use.size.operand: self.memory_of.get(use.tensors[0]) for use in layer.operands}
        for size in layer.sizes:
            memory = kept_at[size.operand] if size.operand in kept_at else self.weights_at.get(step)
            yield size, self.holders[size.memory_operand][-1] if memory is None else memory

    def _passing_bits(self, memory: int, size: OperandSize) -> int:
        """Room in which some tile of an operand always fits that only passes through a memory.

        At the least it takes what lies below: all that the memories below can hold, or one element for each array
        element. No more than the whole operand; twice that if tiles that will be replaced count twice.
        """
        if self.even_mapping:
            return size.most_bits
        holders = self.holders[size.memory_operand]
        place = holders.index(memory)
        if place > 0:
            room = self.memories[holders[place - 1]].size_bits * self.instances[holders[place - 1]]
        else:
            room = self.array_elements * size.element_bits
        tile = min(room, size.most_bits)
        return 2 * tile if self.memories[memory].force_double_buffering else tile


ReachRule = Callable[[Workload, Core, Mapping, ModelProfile, bool], tuple[MemoryReach, ...]]
"""The reach of each layer; the last argument is `data_always_from_top_memory`."""
OTHER_RULES: Registry[ReachRule] = Registry(__name__)
"""Model profile -> its rules, where they are not those of `live_reach`."""


def find_memory_reach(
    workload: Workload,
    core: Core,
    mapping: Mapping,
    profile: ModelProfile,
    data_always_from_top_memory: bool = False,
    *,
    even_mapping: bool = False,
) -> tuple[MemoryReach, ...]:
    """The reach of each layer, in order of execution (`Workload.layers_in_order`).

    With `data_always_from_top_memory` inputs of the network come from the top memory and its outputs go there; the
    reference has this option but it changes nothing there (`effective_top_memory_option`). `even_mapping`: layers will
    be mapped with operands that share level boundaries.

    Raises MappingError when an operand of a layer has no memory.
    """
    _check_memories(workload, core, mapping)
    if not profile.live_tensor_capacity:
        return OTHER_RULES[REFERENCE.name](workload, core, mapping, profile, data_always_from_top_memory)
    return live_reach(
        workload,
        core,
        mapping,
        profile,
        data_always_from_top_memory=data_always_from_top_memory,
        even_mapping=even_mapping,
    )


def _check_memories(workload: Workload, core: Core, mapping: Mapping) -> None:
    held = {operand for memory in core.memories for operand in memory.operands}
    missing = [
        f"core '{core.name}' has no memory for operand {operand} ({memory_operand}) of layer '{node.name}'"
        for node in workload.layers_in_order
        if node.layer is not None
        for operand, memory_operand in mapping.constraints_for(node.layer).memory_operand_links
        if operand in node.layer.operands and memory_operand not in held
    ]
    if missing:
        raise MappingError(*missing)


__all__ = ["MemoryReach", "find_memory_reach", "remove_unused_memories"]
