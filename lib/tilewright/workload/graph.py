"""Workload graph: layers and pass-through nodes in execution order, and the tensors between them (without values)."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from tilewright.base.artifacts.codec import LEFT_OUT
from tilewright.base.errors import InputError, Label, Problem
from tilewright.base.operator_groups import bare_type
from tilewright.workload.access import IndexMap
from tilewright.workload.layer import Layer

if TYPE_CHECKING:
    import networkx as nx


MODELLED, PASS_THROUGH = "modelled", "pass-through"
"""Status of a node. MODELLED: the work of the node has costs. PASS_THROUGH: the node does no work, or only moves data.
"""
APPROXIMATED = "approximated"
"""Status of a node whose work or dependences are estimates (see coverage.json)."""
UNSUPPORTED = "unsupported"
"""Status of a node with work for which the reader of the network file has no model (see coverage.json)."""


@dataclass(frozen=True)
class Tensor:
    """Tensor of a network: name, shape and precision."""

    name: str
    shape: tuple[int, ...]
    bits: int
    """Bits per element."""
    element_type: str = ""
    """Element type in ONNX, such as FLOAT or INT8."""
    precision_source: str = ""
    """Source of the number `bits`: `given` (by the user of an ONNX file), `override` (by an attribute or a workload
    file), `quantisation`, `element type` or `assumed`.
    """
    is_constant: bool = False
    """True if the value is known before run time. True for weights and for tensors that are computed from constants
    only.
    """

    @property
    def element_count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bits(self) -> int:
        """Bits of the whole tensor."""
        return self.element_count * self.bits


@dataclass(frozen=True)
class WorkloadNode:
    """Node of the network graph: a layer with costs, or a pass-through operator, whose layer is None."""

    node_id: int
    name: str
    operator_type: str
    layer: Layer | None
    sources: tuple[tuple[str, int], ...] = ()
    """Edges that end in this node, as pairs (operand, id of the producing node), in the order of the graph. Constant
    operands have no edge."""
    output_elements: int | None = None
    """Number of elements of all outputs of a pass-through operator. None for a layer, and if the number is unknown."""
    is_network_output: bool = False
    """True if an output of this node is also an output of the network."""
    unit: str = ""
    """Unit that the layer needs: MAC_ARRAY or VECTOR_UNIT. '' if any core can run the layer, and for nodes without a
    layer.
    """
    origin: str = ""
    """Name of the operator that this node computes, wholly or in part. '' if there is no operator, as for a layer of a
    YAML file."""
    origin_type: str = ""
    """Type of the operator `origin`. For example, ReduceMax, Sub, Exp and further parts of a Softmax have the type
    Softmax. '' if there is no operator."""
    status: str = ""
    """Status `modelled`, `approximated`, `pass-through` or `unsupported`, as in coverage.json; '' for a layer of a YAML
    file.
    """
    inputs: tuple[str, ...] = ()
    """Names of the tensors that the node reads, constants included."""
    outputs: tuple[str, ...] = ()
    """Names of the tensors that the node produces."""
    index_maps: tuple[IndexMap, ...] = ()
    """Dependences of the outputs on the inputs. The maps of a layer have the loops of the layer."""
    layer_left_out: Layer | None = None
    """Layer that is removed from the node, because a core with an in-memory array cannot run it. The node then has no
    cost, but the reference tool (zigzag-dse) includes the layer in its analysis of data locality. None for other nodes.
    """
    repeats: int = field(default=1, metadata=LEFT_OUT)
    """Number of equal nodes that this node represents, such as equal blocks of a language model. The equal nodes run
    one after another, and every total counts all of them."""

    whole_id: int | None = field(default=None, metadata=LEFT_OUT)
    """Id of the original node in the network file. The id is given if this node computes only a part of the original
    node, or adds partial sums of the original node. None if this node is itself in the file.
    """
    uncosted_mac_count: int | None = field(default=None, metadata=LEFT_OUT)
    """Number of multiply-accumulates of an operator with status `unsupported`. None if the number is not known, and
    for other nodes.
    """

    @property
    def network_id(self) -> int:
        """Id in the network file: the id of the whole node for a part of a node, and the node's own id for any other
        node.
        """
        return self.node_id if self.whole_id is None else self.whole_id

    def __post_init__(self) -> None:
        """Write the name and the types of the node's operator into the layer, if the layer is a part of this operator.
        An entry of a mapping file can then select the layer by the name or type of the operator."""
        if self.layer is None:
            return
        types = dict.fromkeys((self.origin_type, bare_type(self.origin_type)))
        is_whole = not self.origin or (self.origin == self.layer.name and self.layer.operator_type in types)
        part_of = () if is_whole else (self.origin, *types)
        if part_of != self.layer.part_of:
            object.__setattr__(self, "layer", replace(self.layer, part_of=part_of))


@dataclass(frozen=True)
class Workload:
    """Network of nodes. The nodes are in file order, and each edge comes from an earlier node."""

    name: str
    nodes: tuple[WorkloadNode, ...]
    tensors: tuple[Tensor, ...] = ()
    """Tensors that the nodes read or produce; () if the model profile reads only the layers."""
    inputs: tuple[str, ...] = ()
    """Names of the tensors that the network receives at run time."""
    outputs: tuple[str, ...] = ()
    """Names of the tensors that the network returns."""

    @cached_property
    def tensor_of(self) -> dict[str, Tensor]:
        """Tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def is_folded(self) -> bool:
        """True if at least one node represents several equal nodes."""
        return any(node.repeats > 1 for node in self.nodes)

    @cached_property
    def graph(self) -> "nx.DiGraph":
        """Directed graph of node ids, with an edge from each producer to each of its consumers. Nodes and edges are
        inserted in file order.
        """
        import networkx as nx  # here, because other commands start faster without it

        graph = nx.DiGraph()
        graph.add_nodes_from(node.node_id for node in self.nodes)
        for node in self.nodes:
            graph.add_edges_from((source, node.node_id) for _, source in node.sources)
        return graph

    @cached_property
    def layers_in_order(self) -> tuple[WorkloadNode, ...]:
        """Nodes with a layer, in topological order. Layers are executed and summed in this order.

        Nodes are sorted by topological generation. Nodes of the same generation are in the order in which the traversal
        reaches the last incoming edge of each node, as in zigzag-dse 3.9.1.
        """
        by_id = {node.node_id: node for node in self.nodes}
        sorter = TopologicalSorter({node.node_id: [] for node in self.nodes})
        for node in self.nodes:
            sorter.add(node.node_id, *dict.fromkeys(source for _, source in node.sources))
        ordered = (by_id[node_id] for node_id in sorter.static_order())
        return tuple(node for node in ordered if node.layer is not None)


def refuse_folded(workload: Workload, why: str) -> None:
    """Raise InputError if a node represents several equal nodes. The message begins with `why`, a sentence without its
    period, such as "X needs separate nodes"."""
    if workload.is_folded:
        folded = next(node for node in workload.nodes if node.repeats > 1)
        told = f"{why}, but one layer here represents several layers: set `written_out: true` in the workload file"
        raise InputError([Problem(told, path=Label(workload.name), value=f"{folded.repeats} x {folded.name}")])
