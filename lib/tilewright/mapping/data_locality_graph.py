"""The layers of a network with their direct connections: nodes that only pass data on are cut out (zigzag-dse 3.9.1:
copy without dummy nodes)."""

from dataclasses import dataclass
from graphlib import TopologicalSorter

from tilewright.workload.graph import Workload, WorkloadNode


@dataclass(frozen=True)
class LayerGraph:
    """Layers and direct connections, by node id. The orders are those of the reference, which its rules depend on."""

    in_file_order: tuple[int, ...]
    in_topological_order: tuple[int, ...]
    """By generations. Where nodes were cut out it may differ from `Workload.layers_in_order`, in which layers run."""
    predecessors: dict[int, tuple[int, ...]]
    successors: dict[int, tuple[int, ...]]


def layer_graph(workload: Workload) -> LayerGraph:
    """The graph of the layers alone.

    Each node that is cut out connects what comes before it with what comes after it, in file order; new connections
    stand behind those that were there.
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
    """Remove a node at once: later nodes then connect layers only, with the same order of connections as if all
    were removed at the end."""
    producers, consumers = before.pop(node.node_id), after.pop(node.node_id)
    for consumer in consumers:
        for producer in producers:
            before[consumer][producer] = after[producer][consumer] = None
    for consumer in consumers:
        del before[consumer][node.node_id]
    for producer in producers:
        del after[producer][node.node_id]
