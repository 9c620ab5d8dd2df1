"""Data locality between layers (data that stay on chip) by the rules of zigzag-dse 3.9.1.

These rules have four known faults, which this module keeps (fault B32, docs/model.md):

* Outputs are counted with the precision of partial sums.
* Only the first producer of a layer is considered.
* Other data that need capacity at the same time are not counted.
* If one layer leaves enough capacity for all weights, the weights of all layers stay on chip.

`mapping.locality` does not have these faults.
"""

from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

from tilewright.base.profile import ModelProfile
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.memory_reach import LayerRoles, MemoryReach, layer_roles, top_memory
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer, activation_operand, weight_operand
from tilewright.workload.relevancy import operand_bits


@dataclass(frozen=True)
class _LayerFacts:
    """Facts about a layer that the rules of data locality use."""

    layer: Layer
    roles: LayerRoles
    bits_of: dict[str, int]
    """Number of bits of the activation and of the output, by memory operand."""
    weight_bits: int
    """Number of bits of the weights; 0 for a layer without constant operands."""

    @property
    def is_adder(self) -> bool:
        """True for a layer without constant operands: both of its inputs are activations."""
        return not self.layer.constant_operands


def reference_reach(
    workload: Workload, core: Core, mapping: Mapping, profile: ModelProfile, data_always_from_top_memory: bool
) -> tuple[MemoryReach, ...]:
    """Memory reach of each layer, in order of execution: the outermost memory level that each operand uses.

    This function uses the top memory in three cases in which zigzag-dse stops with an error: an inner layer has no
    producer, an inner layer has no reader, or data fit in no memory.
    """
    if not workload.layers_in_order:
        return ()
    search = _Search(_with_layers_left_out(workload), core, mapping, profile)
    search.run()
    if data_always_from_top_memory and profile.effective_top_memory_option:
        search.raise_first_and_last()
    return tuple(search.reach(node.node_id) for node in workload.layers_in_order)


def _with_layers_left_out(workload: Workload) -> Workload:
    """Workload that also has the layers that an in-memory array cannot run. These layers take part in the search for
    memory levels, because zigzag-dse skips the layers only after this search.
    """
    if not any(node.layer_left_out for node in workload.nodes):
        return workload
    nodes = tuple(replace(node, layer=node.layer or node.layer_left_out) for node in workload.nodes)
    return replace(workload, nodes=nodes)


class _Search:
    """Search for the memory levels of activations, outputs and weights.

    `activation` and `output` map the node id of a layer to a memory index: the innermost memory found so far for these
    data of the layer. `weight_level` is the index of the innermost memory found so far for the weights of all layers.
    """

    def __init__(self, workload: Workload, core: Core, mapping: Mapping, profile: ModelProfile) -> None:
        self.core = core
        self.graph: LayerGraph = layer_graph(workload)
        self.facts = {node.node_id: _layer_facts(node.layer, mapping, profile) for node in workload.nodes if node.layer}
        first = self.facts[self.graph.in_file_order[0]].roles
        self.top_activation = top_memory(core, first.activation)
        self.top_output = top_memory(core, first.output)
        self.weight_level = top_memory(core, first.weight) if first.weight is not None else -1
        self.weight_bits = sum(facts.weight_bits for facts in self.facts.values())
        self.activation: dict[int, int] = {}
        self.output: dict[int, int] = {}

    def run(self) -> None:
        """Decide, layer by layer, the memories in which data stay on chip."""
        order = self.graph.in_topological_order
        for node_id in order:
            if node_id != order[0]:
                self._follow_first_producer(node_id)
            if self._starts_or_ends_branch(node_id):
                self._lower(self.output, node_id, self.top_output)
                if node_id == order[0]:
                    self._lower(self.activation, node_id, self.top_activation)
            else:
                for memory in reversed(range(len(self.core.memories))):
                    self._try_memory(node_id, memory, is_first=node_id == order[0])

    def raise_first_and_last(self) -> None:
        """Set the level of the first layer's activation, and the level of the last layer's output, to the top
        memory.
        """
        order = self.graph.in_topological_order
        self.activation[order[0]] = self.top_activation
        self.output[order[-1]] = self.top_output

    def reach(self, node_id: int) -> MemoryReach:
        """Outermost memory level that each operand of one layer uses."""
        facts = self.facts[node_id]
        activation = self.activation.get(node_id, self.top_activation)
        weight = activation if facts.is_adder else self.weight_level
        return MemoryReach(
            facts.layer.name,
            activation,
            self.output.get(node_id, self.top_output),
            None if facts.roles.weight is None else weight,
        )

    def _lower(self, levels: dict[int, int], node_id: int, memory: int) -> None:
        levels[node_id] = min(levels.get(node_id, memory), memory)

    def _follow_first_producer(self, node_id: int) -> None:
        producers = self.graph.predecessors[node_id]
        level = self.output.get(producers[0], self.top_output) if producers else self.top_activation
        self._lower(self.activation, node_id, level)

    def _starts_or_ends_branch(self, node_id: int) -> bool:
        consumers = self.graph.successors[node_id]
        return len(consumers) > 1 or (len(consumers) == 1 and len(self.graph.predecessors[consumers[0]]) > 1)

    def _try_memory(self, node_id: int, index: int, *, is_first: bool) -> None:
        """Make memory `index` the level of data of a layer if these data fit in the memory.

        The memory must have room for the activation and the output of the layer and for the weights of all layers
        together. Only operands that the memory serves are counted. There is one exception: the layer has no constant
        operands, and the memory serves the output of the layer and the activation of the next layer. In this case,
        exactly the activations and the output of the layer are counted.

        The memory becomes the level of three kinds of data:

        * the layer's output, if the memory serves this output and the activation of the next layer;
        * the layer's activation, if the layer is the first and the memory becomes the level of its output;
        * all weights, if the memory serves weights and all dimensions of the array.

        A level is never replaced by a higher one.
        """
        facts, memory = self.facts[node_id], self.core.memories[index]
        roles, held = facts.roles, memory.operands
        keeps_data = roles.output in held and self._activation_read_next(node_id) in held
        keeps_weights = roles.weight in held
        if not (keeps_data or keeps_weights):
            return
        if facts.is_adder and keeps_data:
            held = (roles.output, roles.activation)
        needed = sum(facts.bits_of.get(operand, 0) for operand in held if operand != roles.weight)
        needed += self.weight_bits if roles.weight in held else 0
        if needed > memory.size_bits * instance_count(self.core, index):
            return
        if keeps_data:
            self._lower(self.output, node_id, index)
            if is_first:
                self._lower(self.activation, node_id, index)
        serves_all = len(memory.served_dimensions) == len(self.core.operational_array.dimensions)
        if index < self.weight_level and serves_all and keeps_weights:
            self.weight_level = index

    def _activation_read_next(self, node_id: int) -> str:
        """Memory operand with which the first consumer of a layer reads the layer's output.

        The last layer, and a layer without consumers, gets the memory operand of its own activation.
        """
        consumers = self.graph.successors[node_id]
        is_last = node_id == self.graph.in_topological_order[-1]
        reader = node_id if is_last or not consumers else consumers[0]
        return self.facts[reader].roles.activation


def _layer_facts(layer: Layer, mapping: Mapping, profile: ModelProfile) -> _LayerFacts:
    roles = layer_roles(layer, mapping.constraints_for(layer).memory_operand_links)
    weight = weight_operand(layer)
    is_adder = not layer.constant_operands
    read = layer.input_operands if is_adder else (activation_operand(layer),)
    bits_of = {
        roles.activation: sum(operand_bits(layer, operand, profile) for operand in read),
        roles.output: operand_bits(layer, OUTPUT, profile),
    }
    weight_bits = 0 if is_adder or weight is None else operand_bits(layer, weight, profile)
    return _LayerFacts(layer, roles, bits_of, weight_bits)


@dataclass(frozen=True)
class LayerGraph:
    """Layers of a network with their direct connections, by node id.

    Nodes without a layer are removed, as zigzag-dse removes its dummy nodes. All orders of layers and connections are
    those of zigzag-dse, because the rules depend on these orders.
    """

    in_file_order: tuple[int, ...]
    in_topological_order: tuple[int, ...]
    """Ids of the layers, one generation after the other. A generation consists of the layers whose producers are all in
    earlier generations. If nodes were removed, this order can differ from `Workload.layers_in_order`, the order in
    which layers run.
    """
    predecessors: dict[int, tuple[int, ...]]
    successors: dict[int, tuple[int, ...]]


def layer_graph(workload: Workload) -> LayerGraph:
    """Graph with only the layers of a network.

    All other nodes are removed in file order. The producers of a removed node are connected to the consumers of this
    node; the new connections come after the existing connections.
    """
    before: dict[int, dict[int, None]] = {node.node_id: {} for node in workload.nodes}
    after: dict[int, dict[int, None]] = {node.node_id: {} for node in workload.nodes}
    for node in workload.nodes:
        for _, source in node.sources:
            before[node.node_id][source] = after[source][node.node_id] = None
    for node in workload.nodes:
        if node.layer is None:
            _cut_out(node, before, after)
    order = tuple(before)
    sorter: TopologicalSorter[int] = TopologicalSorter({node: [] for node in order})
    for node_id, consumers in after.items():
        for consumer in consumers:
            sorter.add(consumer, node_id)
    return LayerGraph(
        order,
        tuple(sorter.static_order()),
        {node: tuple(sources) for node, sources in before.items()},
        {node: tuple(consumers) for node, consumers in after.items()},
    )


def _cut_out(node: WorkloadNode, before: dict[int, dict[int, None]], after: dict[int, dict[int, None]]) -> None:
    """Remove a node, and connect the producers of the node to its consumers.

    The node is removed at once, whereas zigzag-dse removes nodes only after it has made all new connections. The order
    of the remaining connections is the same in both cases.
    """
    producers, consumers = before.pop(node.node_id), after.pop(node.node_id)
    for consumer in consumers:
        for producer in producers:
            before[consumer][producer] = after[producer][consumer] = None
    for consumer in consumers:
        del before[consumer][node.node_id]
    for producer in producers:
        del after[producer][node.node_id]
