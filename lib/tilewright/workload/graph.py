"""A workload: layers and the nodes that only pass data on, in the order in which a core runs them."""

from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from tilewright.workload.layer import Layer


@dataclass(frozen=True)
class WorkloadNode:
    """A node of the network graph: a layer that is costed, or (layer None) an operator that is passed through."""

    node_id: int
    name: str
    operator_type: str
    layer: Layer | None
    sources: tuple[tuple[str, int], ...] = ()
    """(operand, id of the producing node), one per edge, in edge order. Constant operands have no edge."""


@dataclass(frozen=True)
class Workload:
    """A network: nodes in file order, each edge from an earlier node."""

    name: str
    nodes: tuple[WorkloadNode, ...]

    @cached_property
    def graph(self) -> nx.DiGraph:
        """Producer -> consumer graph over node ids; insertion orders are those of the file (spec 1.8)."""
        graph = nx.DiGraph()
        graph.add_nodes_from(node.node_id for node in self.nodes)
        for node in self.nodes:
            graph.add_edges_from((source, node.node_id) for _, source in node.sources)
        return graph

    @cached_property
    def layers_in_order(self) -> tuple[WorkloadNode, ...]:
        """The nodes with a layer, in topological order: the order of execution and of summation (spec 1.8)."""
        by_id = {node.node_id: node for node in self.nodes}
        ordered = (by_id[node_id] for node_id in nx.topological_sort(self.graph))
        return tuple(node for node in ordered if node.layer is not None)
