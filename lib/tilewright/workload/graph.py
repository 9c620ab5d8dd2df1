"""A workload: layers and the nodes that only pass data on, in the order in which a core runs them, with the tensors
that they hand to one another, without values.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from tilewright.base.artifacts.codec import LEFT_OUT
from tilewright.base.errors import InputError, Problem
from tilewright.base.operator_groups import bare_type
from tilewright.workload.access import IndexMap
from tilewright.workload.layer import Layer

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Tensor:
    """A tensor of a network."""

    name: str
    shape: tuple[int, ...]
    bits: int
    """Bits per element."""
    element_type: str = ""
    """The ONNX element type, such as FLOAT or INT8."""
    precision_source: str = ""
    """Where `bits` comes from: override, quantisation, element type or assumed."""
    is_constant: bool = False
    """Known before run time: a weight, or computed from constants only."""

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
    """A node of the network graph: a layer that is costed, or (layer None) an operator that is passed through."""

    node_id: int
    name: str
    operator_type: str
    layer: Layer | None
    sources: tuple[tuple[str, int], ...] = ()
    """(operand, id of the producing node), one per edge, in edge order. Constant operands have no edge."""
    output_elements: int | None = None
    """Elements of all outputs of an operator that is passed through; None if not known, and for layers."""
    is_network_output: bool = False
    """Whether the network hands an output of this node to the outside, besides what other nodes read of it."""
    unit: str = ""
    """What an ONNX operator's layer needs: MAC_ARRAY or VECTOR_UNIT; '' where any core will do, and for the rest."""
    origin: str = ""
    """Name of the operator in the network file that this node comes from; '' if it is not from one."""
    origin_type: str = ""
    """Type of that operator: Softmax for its parts ReduceMax, Sub, Exp, ...; '' if there is none."""
    status: str = ""
    """`modelled`, `approximated`, `pass-through` or `unsupported` as in coverage.json; '' if it is not from a file."""
    inputs: tuple[str, ...] = ()
    """Tensors that the node reads, constants included."""
    outputs: tuple[str, ...] = ()
    """Tensors that the node makes."""
    index_maps: tuple[IndexMap, ...] = ()
    """Dependencies of the outputs on the inputs. Those of a layer have the layer's loops."""
    layer_left_out: Layer | None = None
    """What an in-memory array does not run: not costed, though where data stay the reference counts it as a layer."""
    repeats: int = field(default=1, metadata=LEFT_OUT)
    """How many nodes of the network, equal but for their data, this one stands for: a block of a language model that
    repeats is there once. They run one after another, and all totals count each of them."""

    uncosted_mac_count: int | None = field(default=None, metadata=LEFT_OUT)
    """Multiply-accumulates of an operator with status `unsupported`; None if they are not known, and for the rest."""

    def __post_init__(self) -> None:
        """Tell the layer which operator it is a part of: entries of a mapping file may name that."""
        if self.layer is None:
            return
        types = dict.fromkeys((self.origin_type, bare_type(self.origin_type)))
        is_whole = not self.origin or (self.origin == self.layer.name and self.layer.operator_type in types)
        part_of = () if is_whole else (self.origin, *types)
        if part_of != self.layer.part_of:
            object.__setattr__(self, "layer", replace(self.layer, part_of=part_of))


@dataclass(frozen=True)
class Workload:
    """A network: nodes in file order, each edge from an earlier node."""

    name: str
    nodes: tuple[WorkloadNode, ...]
    tensors: tuple[Tensor, ...] = ()
    """Every tensor that a node reads or makes; () where the profile reads the layers alone."""
    inputs: tuple[str, ...] = ()
    """Tensors that come from outside at run time."""
    outputs: tuple[str, ...] = ()
    """Tensors that go to the outside."""

    @cached_property
    def tensor_of(self) -> dict[str, Tensor]:
        """Name -> tensor."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def is_folded(self) -> bool:
        """Whether some node stands for several."""
        return any(node.repeats > 1 for node in self.nodes)

    @cached_property
    def graph(self) -> "nx.DiGraph":
        """Producer -> consumer graph over node ids; insertion orders are those of the file."""
        import networkx as nx  # here, because commands that need no graph algorithm start faster without

        graph = nx.DiGraph()
        graph.add_nodes_from(node.node_id for node in self.nodes)
        for node in self.nodes:
            graph.add_edges_from((source, node.node_id) for _, source in node.sources)
        return graph

    @cached_property
    def layers_in_order(self) -> tuple[WorkloadNode, ...]:
        """The nodes with a layer, in topological order: the order of execution and of summation.

        By generations, and within one in the order in which the last incoming edge is met, as in zigzag-dse 3.9.1.
        """
        by_id = {node.node_id: node for node in self.nodes}
        sorter = TopologicalSorter({node.node_id: [] for node in self.nodes})
        for node in self.nodes:
            sorter.add(node.node_id, *dict.fromkeys(source for _, source in node.sources))
        ordered = (by_id[node_id] for node_id in sorter.static_order())
        return tuple(node for node in ordered if node.layer is not None)


def refuse_folded(workload: Workload, why: str) -> None:
    """Raises InputError for a workload in which nodes stand for several, where each is needed by itself."""
    if workload.is_folded:
        folded = next(node for node in workload.nodes if node.repeats > 1)
        told = f"{why}, and here layers stand for several: `written_out: true` in the workload file writes each out"
        raise InputError([Problem(told, path=workload.name, value=f"{folded.repeats} x {folded.name}")])
