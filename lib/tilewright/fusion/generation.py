"""Builds the graph of computation nodes (CNs) of a network from its tiling."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.errors import InputError, Problem
from tilewright.fusion.cut_memory import CutMemory, Needs
from tilewright.fusion.flows import DataLink, Link, data_edges
from tilewright.fusion.graph import ORDERING, CnGraph, CnLayer
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.layer_cuts import LayerCut, layer_cuts
from tilewright.fusion.needs import (
    NetworkTensors,
    Producer,
    needs_of_outputs,
    split_reductions,
    unknown_dependencies,
    whole_tensor,
)
from tilewright.fusion.outside_reads import ReadTable, reading_cns
from tilewright.fusion.shape_classes import shape_classes
from tilewright.fusion.tiling import LayerTiling, Tiling
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer


@dataclass
class _Building:
    """A graph while it grows, layer by layer."""

    network: NetworkTensors
    layers: tuple[CnLayer, ...]
    cuts: tuple[LayerCut, ...]
    """[layer]"""
    operands: tuple[str, ...]
    producers: dict[str, tuple[int, Producer]]
    """Tensor -> number of the layer that makes it, how its CNs do."""
    links: list[DataLink] = field(default_factory=list)
    """Into each layer, layer by layer."""

    def bits(self, tensor: str) -> int:
        return self.network.workload.tensor_of[tensor].bits


def build_cn_graph(workload: Workload, tiling: Tiling, known: CutMemory | None = None) -> CnGraph:
    """The CN graph of a network that is read with its tensors (profile `corrected`).

    What is `known` of other ways to cut the same network saves time.

    Raises InputError where the network has no tensors, where a layer is in no stack or in several, or where a
    reduction is split over cores.
    """
    nodes = [node for node in workload.nodes if node.layer is not None]
    _check(workload, nodes, tiling)
    known = known or CutMemory(workload)
    building = _start(nodes, tiling, known)
    reads = ReadTable(workload, building.operands)
    for number, node in enumerate(nodes):
        _connect(building, number, known.needs(node, building.cuts[number]), reads)
    shape, shapes = _shapes(building)
    group = _joined([cut.grid.groups for cut in building.cuts])
    first, second = _ordering_edges(building, group)
    along = data_edges(building.links, _outputs(building), building.layers, building.operands)
    target = np.concatenate([second, along.target])
    order = np.argsort(target, kind="stable")
    number_of = {node.node_id: number for number, node in enumerate(nodes)}
    none = np.zeros(len(first), np.int64)
    return CnGraph(
        network=workload.name,
        layers=building.layers,
        stacks=tuple([tuple([number_of[node_id] for node_id in stack]) for stack in tiling.stacks]),
        operands=building.operands,
        shapes=shapes,
        links=along.links,
        notices=(*tiling.notices, *unknown_dependencies(building.network)),
        group=group,
        shape=shape,
        output_bits=along.outside_bits[0],
        network_output_bits=along.outside_bits[1],
        edge_source=np.concatenate([first, along.source])[order],
        edge_target=target[order],
        edge_operand=np.concatenate([np.full(len(none), ORDERING, np.int16), along.operand])[order],
        edge_bits=np.concatenate([none, along.bits])[order],
        **reads.columns(),
    )


def _shapes(building: _Building) -> tuple[Integers, tuple[Layer, ...]]:
    """([cn] place in the shapes, the layer of each shape), in the order in which the layers meet them."""
    places: dict[Layer, int] = {}
    shape_of_cn: dict[LayerCut, Integers] = {}
    for cut in building.cuts:
        if cut not in shape_of_cn:
            assert cut.node.layer is not None
            classes, examples = shape_classes(cut.node.layer, cut.grid)
            numbers = [places.setdefault(example, len(places)) for example in examples]
            shape_of_cn[cut] = np.array(numbers)[classes]
    return _joined([shape_of_cn[cut] for cut in building.cuts]), tuple(places)


def _check(workload: Workload, nodes: list[WorkloadNode], tiling: Tiling) -> None:
    lacking = [node for node in nodes if not node.index_maps]
    if lacking or (nodes and not workload.tensors):
        message = "the layers say nothing of the tensors between them: read the network with the profile corrected"
        raise InputError([Problem(message, path=node.name) for node in lacking[:1]] or message)
    stacks_of = Counter([node_id for stack in tiling.stacks for node_id in stack])
    problems = [
        Problem("must be cut, and in one stack", path=node.name, value=f"in {stacks_of[node.node_id]} stacks")
        for node in nodes
        if node.node_id not in tiling.of_node or stacks_of[node.node_id] != 1
    ]
    if problems:
        raise InputError(problems)


def _start(nodes: list[WorkloadNode], tiling: Tiling, known: CutMemory) -> _Building:
    stack_of = {node_id: stack for stack, members in enumerate(tiling.stacks) for node_id in members}
    tilings = [tiling.of_node[node.node_id] for node in nodes]
    cuts = layer_cuts(nodes, tilings, known.network, known.cuts)
    layers: list[CnLayer] = []
    operands: dict[str, None] = {}
    producers: dict[str, tuple[int, Producer]] = {}
    problems: list[Problem] = []
    first = 0
    for number, (node, layer_tiling, cut) in enumerate(zip(nodes, tilings, cuts, strict=True)):
        assert node.layer is not None
        count = cut.grid.cn_count
        place = (node.layer.loop_sizes, layer_tiling, first, count, stack_of[node.node_id], node.outputs)
        layers.append(CnLayer(node.node_id, node.name, node.operator_type, *place))
        first += count
        for index_map in node.index_maps:
            operands[index_map.operand] = None
        for place_of_map, producer in cut.producers:
            index_map = node.index_maps[place_of_map]
            producers.setdefault(index_map.output.tensor, (number, producer))
            if layer_tiling.group_loops:
                problems += split_reductions(node.name, index_map, producer)
    if problems:
        raise InputError(problems)
    return _Building(known.network, tuple(layers), tuple(cuts), tuple(operands), producers)


def _connect(building: _Building, number: int, needs: Needs, reads: ReadTable) -> None:
    """Edges into the CNs of a layer, and what they read from outside."""
    layer, cut = building.layers[number], building.cuts[number]
    for (operand, tensor), demands in needs.items():
        made_by = building.producers.get(tensor)
        if made_by is None:
            for demand in demands:
                reads.add(operand, tensor, demand, reading_cns(demand, cut.grid), layer.first_cn)
            continue
        link = Link(tuple(demands), made_by[1], cut.grid)
        building.links.append(DataLink(link, made_by[0], number, operand, tensor, building.bits(tensor)))


def _ordering_edges(building: _Building, group: Integers) -> tuple[Integers, Integers]:
    """(source, target) of the edges from each CN to the next one of its group in its layer."""
    group_counts = np.array([cut.grid.tiling.group_count for cut in building.cuts])
    first_group = (group_counts.cumsum() - group_counts).repeat([layer.cn_count for layer in building.layers])
    # In the smallest type that holds them: numbers of 16 bits are sorted in linear time.
    group_of_network = (group + first_group).astype(np.min_scalar_type(int(group_counts.sum())))
    order = np.argsort(group_of_network, kind="stable")
    same = group_of_network[order[1:]] == group_of_network[order[:-1]]
    return order[:-1][same], order[1:][same]


def _outputs(building: _Building) -> list[DataLink]:
    """What each CN makes as final output (column 0), and what of it leaves the network (column 1)."""
    outside = LayerGrid((), LayerTiling(-1))
    links = []
    for tensor, (number, producer) in building.producers.items():
        link = Link((whole_tensor(tensor, building.network),), producer, outside)
        links.append(DataLink(link, number, 0, "", tensor, building.bits(tensor)))
    for tensor, demands in needs_of_outputs(building.network).items():
        if tensor in building.producers:
            number, producer = building.producers[tensor]
            link = Link(tuple(demands), producer, outside)
            links.append(DataLink(link, number, 1, "", tensor, building.bits(tensor)))
    return links


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts) if parts else _none()


def _none() -> Integers:
    return np.zeros(0, np.int64)
