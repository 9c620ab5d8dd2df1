"""Data locality: data stay in lower memories between layers, so that they do not pass through the top memory.

There are two steps. For a whole network, `find_memory_reach` decides the topmost memory of each operand of each layer.
For one layer, `remove_unused_memories` then returns the smaller core on which the layer is mapped.

All data that are live at the same time fit in their memories. The reference tool does not ensure this (fault B32,
docs/model.md). The inputs and the output of an operator that joins tensors without cost, such as Concat, must be in one
memory, so they are placed together, as a *group*. A group stays in the lowest memory with four properties:
* all writers and readers of the group use the memory;
* the memory has one instance;
* its control can run all loops of these layers (`tile_dimensions` of the hardware file);
* it has room in each step of the group's life.

A memory has room in a step if it has enough bits for the data that are kept there, for each whole operand of the
running layer that starts or ends there, and for the smallest tile of each operand that passes through. Groups are
placed in descending order of the traffic that they save per occupied bit and step. Weights are placed last, because
they are never freed.

Steps count the layers in order of execution. Data that are live in step s occupy memory while layer s runs. The step
after the last layer stands for the time after the network. Operators that only move data have no cost and take no time.
An operator with a single input is applied when its output is read. An operator that joins several inputs (Add, Concat)
makes new data as soon as the inputs exist. The new data replace inputs that nothing else reads. If the output size of a
join is unknown, the join is applied when its output is read, and its inputs are kept until then.

Only this placement uses the lifetimes of data, so they are computed here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.base.errors import MappingError
from tilewright.base.profile import REFERENCE, ModelProfile
from tilewright.base.registry import Registry
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.control_rules import can_hold_whole
from tilewright.mapping.memory_reach import MemoryReach, remove_unused_memories
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer, activation_operand, weight_operand
from tilewright.workload.relevancy import operand_elements, operand_relevancy


@dataclass
class KeptData:
    """Tensor that can be kept in one memory between layers."""

    bits: int
    first_step: int
    last_step: int
    element_bits: int
    traffic_bits: int = 0
    """Total number of bits that layers write to the tensor and read from it. If the tensor is kept in a memory, this
    traffic does not reach the memories above.
    """
    is_network_end: bool = False
    """True for an input or output of the network."""

    @property
    def occupied_bit_steps(self) -> int:
        """Bits of the tensor times the number of steps in which it is live."""
        return self.bits * (self.last_step - self.first_step + 1)


@dataclass(frozen=True)
class OperandSize:
    """Lower and upper bound of the size of an operand in bits, and the memory operand that the mapping assigns to the
    operand. The two bounds differ if partial sums are wider than final outputs.
    """

    operand: str
    memory_operand: str
    element_bits: int
    """Largest number of bits of an element."""
    most_bits: int
    """Upper bound of the bits of the whole operand."""
    least_bits: int
    """Lower bound of the bits of the whole operand."""


@dataclass(frozen=True)
class OperandUse:
    """Operand of a layer whose data can be kept between layers: an input that is not a constant weight, or the
    output."""

    size: OperandSize
    tensors: tuple[int, ...]
    """Tensors that make up the operand."""


@dataclass(frozen=True)
class LayerUse:
    """Layer that runs in a step, with the sizes of its operands and with the tensors that make up the operands."""

    layer: Layer
    operands: tuple[OperandUse, ...]
    sizes: tuple[OperandSize, ...]
    """Sizes of all operands of the layer, weights included."""
    weight: str | None
    """Memory operand of constant weights; None if the layer has none."""
    weight_bits: int


@dataclass
class DataFlow:
    """Tensors of a network, with the layers that write and read them and the steps in which they are live."""

    tensors: list[KeptData] = field(default_factory=list)
    layers: list[LayerUse] = field(default_factory=list)
    """Layers that write and read the tensors, one layer per step."""
    joined: list[tuple[int, ...]] = field(default_factory=list)
    """Groups of tensors that must be in the same memory. A group has the inputs and the output of a join without cost,
    or the several tensors that make up one operand of a layer.
    """

    @property
    def step_count(self) -> int:
        """Number of steps, including the step after the last layer."""
        return len(self.layers) + 1


def data_flow(workload: Workload, mapping: Mapping, profile: ModelProfile) -> DataFlow:
    """Data flow of a network: its tensors, the layers that write and read them, and the steps in which they are
    live.
    """
    reader = _FlowReader(workload, mapping, profile)
    for node in workload.nodes:
        reader.tensors_of[node.node_id] = reader.read(node)
        if node.is_network_output:
            reader.keep_to_the_end(reader.tensors_of[node.node_id])
    reader.flow.layers = [reader.uses[step] for step in range(len(reader.uses))]
    reader.keep_to_the_end([t for t in range(len(reader.flow.tensors)) if t not in reader.is_read])
    return reader.flow


class _FlowReader:
    """Reader of the nodes of a network in file order, in which producers come before consumers."""

    def __init__(self, workload: Workload, mapping: Mapping, profile: ModelProfile) -> None:
        self.mapping = mapping
        self.profile = profile
        self.flow = DataFlow()
        self.step_of = {node.node_id: step for step, node in enumerate(workload.layers_in_order)}
        self.uses: dict[int, LayerUse] = {}
        self.tensors_of: dict[int, tuple[int, ...]] = {}
        self.is_read: set[int] = set()
        self.made_at: dict[int, int] = {}
        """Tensor -> step after which the tensor is complete; 0 for an input of the network."""

    def read(self, node: WorkloadNode) -> tuple[int, ...]:
        """Read a node. Returns the tensors that make up the output of this node."""
        if node.layer is not None:
            return self._read_layer(node, node.layer)
        sources = self._sources(node)
        if len(sources) < 2 or node.output_elements is None:
            return sources
        return (self._join(sources, node.output_elements),)

    def keep_to_the_end(self, tensors: tuple[int, ...] | list[int]) -> None:
        """Mark tensors as outputs of the network. Such tensors are live until the step after the last layer."""
        for tensor in tensors:
            self.flow.tensors[tensor].last_step = len(self.step_of)
            self.flow.tensors[tensor].is_network_end = True

    def _sources(self, node: WorkloadNode, operand: str | None = None) -> tuple[int, ...]:
        """Tensors that reach a node. If `operand` is given, only the tensors that reach this operand of the node."""
        ids = [source for name, source in node.sources if operand in (None, name)]
        return tuple(dict.fromkeys(tensor for source in ids for tensor in self.tensors_of[source]))

    def _join(self, sources: tuple[int, ...], elements: int) -> int:
        """Add the tensor that a join makes, and return its index. The tensor is live from the step that follows the
        completion of its last input.
        """
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
        self._use(self._sources(node), step)  # includes reads other than operands, such as a computed bias
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
        """Size of an operand in bits. Accumulated outputs are partial sums or final outputs, with different numbers of
        bits. The upper bound takes the wider of the two, and the lower bound the narrower."""
        elements = operand_elements(layer, operand, self.profile)
        most = least = layer.bits_of[operand]
        if operand == OUTPUT:
            accumulates = bool(operand_relevancy(layer, OUTPUT, self.profile).irrelevant)
            final = layer.bits_of[FINAL_OUTPUT]
            most, least = (max(most, final), min(most, final)) if accumulates else (final, final)
        return OperandSize(operand, memory_operand, most, elements * most, elements * least)

    def _input(self, node: WorkloadNode, layer: Layer, size: OperandSize, step: int) -> OperandUse:
        """Use of an input operand by a layer. If no node makes the operand, it is an input of the network: a new tensor
        is then added, which is live from the start.
        """
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
    """Reach of each layer in order of execution. The reach is the topmost memory of each operand, and the bits that
    data of other layers occupy in each memory while the layer runs.

    If `even_mapping` is true, all operands in a memory have the same loops in this memory and below it. An operand that
    passes through the topmost memory of another operand must therefore fit in this memory as a whole.
    """
    flow = data_flow(workload, mapping, profile)
    ends_stay_at_top = data_always_from_top_memory and profile.effective_top_memory_option
    placement = _Placement(core, flow, profile, even_mapping)
    for group in _groups_by_worth(flow):
        if not (ends_stay_at_top and any(flow.tensors[t].is_network_end for t in group)):
            placement.place_group(group)
    for step in range(len(flow.layers)):
        placement.place_weights(step)
    return tuple(placement.reach(step) for step in range(len(flow.layers)))


def _groups_by_worth(flow: DataFlow) -> list[Group]:
    """Groups of tensors, in descending order of the saved traffic per occupied bit and step. Among equals, the group
    with the earlier first use comes first."""
    groups = _groups(flow)

    def rank(group: Group) -> tuple[float, int, Group]:
        tensors = [flow.tensors[t] for t in group]
        traffic = sum(tensor.traffic_bits for tensor in tensors)
        occupied = sum(tensor.occupied_bit_steps for tensor in tensors)
        return occupied / traffic if traffic else float("inf"), min(t.first_step for t in tensors), group

    return sorted(groups, key=rank)


def _groups(flow: DataFlow) -> list[Group]:
    """Groups of tensors. The tensors of an element of `joined` form one group. Any other tensor is a separate group."""
    group_of = {tensor: {tensor} for tensor in range(len(flow.tensors))}
    for joined in flow.joined:
        merged = set().union(*(group_of[tensor] for tensor in joined))
        for tensor in merged:
            group_of[tensor] = merged
    return [tuple(sorted(group)) for tensor, group in group_of.items() if tensor == min(group)]


class _Placement:
    """Search for the memory of each group of tensors. A later decision never invalidates an earlier decision."""

    def __init__(self, core: Core, flow: DataFlow, profile: ModelProfile, even_mapping: bool) -> None:
        self.memories, self.profile = core.memories, profile
        self.has_tile_rules = any(memory.tile_dimensions is not None for memory in core.memories)
        self.array_elements = core.operational_array.unit_count
        self.instances = [instance_count(core, memory) for memory in range(len(core.memories))]
        self.holders: dict[str, list[int]] = {}
        """Memory operand -> memories that hold it, innermost first."""
        for index, memory in enumerate(core.memories):
            for operand in memory.operands:
                self.holders.setdefault(operand, []).append(index)
        self.flow = flow
        self.even_mapping = even_mapping
        self.memory_of: dict[int, int] = {}
        """Tensor -> memory in which it is kept. Tensors that stay in the top memory are not listed."""
        self.weights_at: dict[int, int] = {}
        """Memory in which the weights of a layer stay, by step of the layer. Weights that come from the top memory are
        not listed."""
        self.live_bits = [[0] * flow.step_count for _ in self.memories]
        """Bits of the tensors that each memory keeps in each step: live_bits[memory][step]."""
        self.weight_bits = [0] * len(self.memories)
        self.needs: dict[int, list[int]] = {}
        """Bits that each memory needs in each step: needs[memory][step]. Weights that stay in the memory are left out.
        The numbers are valid only after all groups are placed."""
        self.memory_operands: dict[int, set[str]] = {tensor: set() for tensor in range(len(flow.tensors))}
        """Tensor -> memory operands that the mapping assigns to it, over all layers that write or read the tensor."""
        for use in (use for layer in flow.layers for use in layer.operands):
            for tensor in use.tensors:
                self.memory_operands[tensor].add(use.size.memory_operand)

    def place_group(self, group: Group) -> None:
        """Keep a group of tensors in the lowest memory that has room, has one instance, and holds all memory operands
        of the group. Without such a memory below the top memory, the group stays in the top memory."""
        tensors = [self.flow.tensors[t] for t in group]
        steps = range(min(t.first_step for t in tensors), max(t.last_step for t in tensors) + 1)
        uses = [
            (layer.layer, use.size.operand)
            for layer in self.flow.layers
            for use in layer.operands
            if self.has_tile_rules and not set(use.tensors).isdisjoint(group)
        ]
        for memory in self._candidates(set().union(*(self.memory_operands[t] for t in group)), uses):
            self._keep(group, memory, 1)
            if self._has_room(memory, steps):
                return
            self._keep(group, memory, -1)

    def place_weights(self, step: int) -> None:
        """Keep the constant weights of the layer of a step permanently in one lower memory, if there is room. This
        memory is the outermost memory that is below the weights' top memory, holds weights, and has one instance.

        Memories further inside are not used: weights there save no further traffic of the top memory, and take the room
        of tiles. The room is checked for each step: beside the weights, the memory must hold its kept data and the
        operands of the running layer. An operand that fits in the empty memory as a whole counts as a whole, because
        the weights must not force the layer to fetch the operand repeatedly. A larger operand that passes through
        counts as its smallest tile.
        """
        layer = self.flow.layers[step]
        uses = [(layer.layer, size.operand) for size in layer.sizes if size.memory_operand == layer.weight]
        candidates = list(self._candidates(set() if layer.weight is None else {layer.weight}, uses))
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
        """Reach of the layer that runs in `step`: the topmost memory of each operand, and the bits that are reserved in
        each memory for other data.
        """
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
        """Add the bits of a group to a memory if `sign` is 1. Remove them if `sign` is -1."""
        for index in group:
            tensor = self.flow.tensors[index]
            for step in range(tensor.first_step, tensor.last_step + 1):
                self.live_bits[memory][step] += sign * tensor.bits
            if sign > 0:
                self.memory_of[index] = memory
            else:
                del self.memory_of[index]

    def _candidates(self, memory_operands: set[str], uses: Sequence[tuple[Layer, str]]) -> Iterator[int]:
        """Indices of the memories in which data can be kept, lowest first. Such a memory holds all of
        `memory_operands`, is below the top memory of each of them, has one instance, and can run all loops of `uses`
        (pairs of a layer and an operand). If `memory_operands` is empty, nothing is yielded.
        """
        if not memory_operands:
            return
        for index in range(min(self.holders[operand][-1] for operand in memory_operands)):
            holds = memory_operands <= set(self.memories[index].operands) and self.instances[index] == 1
            if holds and all(
                can_hold_whole(self.memories[index], layer, operand, self.profile) for layer, operand in uses
            ):
                yield index

    def _has_room(self, memory: int, steps: Iterable[int]) -> bool:
        size = self.memories[memory].size_bits
        return all(self._reserved_bits(memory, step) + self._layer_bits(memory, step) <= size for step in steps)

    def _update_needs(self, memory: int, changed_step: int) -> None:
        """Update `needs` of a memory after the weights of a layer are placed in it or removed from it. This layer runs
        in the step `changed_step`, and only the number for this step is computed again. The first call for a memory
        computes the numbers for all steps.
        """
        steps = [changed_step] if memory in self.needs else range(self.flow.step_count)
        needs = self.needs.setdefault(memory, [0] * self.flow.step_count)
        for step in steps:
            needs[step] = (
                self._reserved_bits(memory, step)
                - self.weight_bits[memory]
                + self._layer_bits(memory, step, for_whole_operands=True)
            )

    def _reserved_bits(self, memory: int, step: int) -> int:
        """Bits of kept data in a memory during a step. Data of the running layer are left out, because its mapping
        accounts for them."""
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
        """Bits that the running layer needs in a memory. If the memory is the topmost memory of an operand, the whole
        operand counts. If the operand passes through to a memory above, only its smallest tile counts.

        If `for_whole_operands` is true, an operand that passes through also counts as a whole if it fits in the memory.
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
        """Pairs (operand, outermost memory that the operand uses) for the layer of a step."""
        layer = self.flow.layers[step]
        kept_at = {use.size.operand: self.memory_of.get(use.tensors[0]) for use in layer.operands}
        for size in layer.sizes:
            memory = kept_at[size.operand] if size.operand in kept_at else self.weights_at.get(step)
            yield size, self.holders[size.memory_operand][-1] if memory is None else memory

    def _passing_bits(self, memory: int, size: OperandSize) -> int:
        """Bits that the smallest tile of an operand needs in a memory through which the operand only passes.

        The tile fills all instances of the operand's next lower memory. Without a lower memory, the tile has one
        element for each unit of the array. The tile is never larger than the whole operand. In a memory that must be
        double-buffered, the tile counts twice, because the old and the new tile need room at the same time. If
        `even_mapping` is set, the result is the size of the whole operand.
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
"""Function that decides the topmost memories (the reach) of all layers. The last argument of the function is
`data_always_from_top_memory`."""
OTHER_RULES: Registry[ReachRule] = Registry(__name__)
"""Rules other than `live_reach`, by name of the model profile to which they belong. `find_memory_reach` uses the rule
of the reference profile if the switch `live_tensor_capacity` of the given profile is off, and `live_reach` if it is on.
"""


def find_memory_reach(
    workload: Workload,
    core: Core,
    mapping: Mapping,
    profile: ModelProfile,
    data_always_from_top_memory: bool = False,
    *,
    even_mapping: bool = False,
) -> tuple[MemoryReach, ...]:
    """Reach of each layer, in order of execution (`Workload.layers_in_order`): the topmost memory that each operand
    uses, and the bits that data of other layers occupy in each memory.

    If `data_always_from_top_memory` is true, inputs of the network come from the top memory, and outputs of the network
    go to the top memory. The option has no effect if the switch `effective_top_memory_option` of the model profile is
    off, as in the reference tool. `even_mapping` is true if the layers are mapped with the same level boundary for all
    operands in a memory (see `live_reach`).

    Raises MappingError if an operand of a layer has no memory.
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
        f"core '{core.name}' has no memory for operand {operand} (memory operand {memory_operand}) of layer"
        f" '{node.name}'"
        for node in workload.layers_in_order
        if node.layer is not None
        for operand, memory_operand in mapping.constraints_for(node.layer).memory_operand_links
        if operand in node.layer.operands and memory_operand not in held
    ]
    if missing:
        raise MappingError(*missing)


__all__ = ["MemoryReach", "find_memory_reach", "remove_unused_memories"]
