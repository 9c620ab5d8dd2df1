"""Keeping data in lower memories between layers instead of sending them through the top memory.

Two steps: `find_memory_reach` decides for a whole network how far each operand of each layer goes up;
`remove_unused_memories` gives the smaller core on which a layer is then mapped.

All that is live at one time fits: the sound counterpart of the rules of the reference (repair of B32). Data that meet
without cost must be in one memory, so they are decided together, as a *group*. A group stays in the lowest memory that
all its writers and readers use, that exists once, and in which there is room in each step of its life. Room means: the
memory holds what is kept in it, the whole of each operand of the running layer that starts or ends there, and a
smallest tile of each operand that passes through. Groups that save most traffic for the room that they take come first;
weights, which are never free again, last.
"""

from collections.abc import Callable, Iterable, Iterator

from tilewright.errors import MappingError
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.data_flow import DataFlow, OperandSize, data_flow
from tilewright.mapping.memory_reach import MemoryReach, remove_unused_memories
from tilewright.profile import REFERENCE, ModelProfile
from tilewright.registry import Registry
from tilewright.workload.graph import Workload
from tilewright.workload.layer import OUTPUT, activation_operand, weight_operand

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
        """The result for one layer."""
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
        """Only the layer whose weights are placed needs anything else than before."""
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


__all__ = ["MemoryReach", "find_memory_reach", "remove_unused_memories"]

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
        raise MappingError("\n".join(missing))
