"""Builds the graph of computation nodes of a network from its tiling."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.errors import InputError, Problem
from tilewright.fusion.alike import Alike
from tilewright.fusion.contents import ReadTable, reading_cns
from tilewright.fusion.graph import ORDERING, CnGraph, CnLayer, CnLink
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.links import Producer, content_flow, flow, producer_of, split_reductions
from tilewright.fusion.needs import (
    Demand,
    NetworkTensors,
    needs_of_layer,
    needs_of_output,
    network_tensors,
    unknown_dependencies,
)
from tilewright.fusion.outer_loops import LayerTiling, Tiling
from tilewright.fusion.shapes import nameless_layer, shape_classes
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer


@dataclass
class _Building:
    """A graph while it grows, layer by layer."""

    network: NetworkTensors
    layers: tuple[CnLayer, ...]
    grids: tuple[LayerGrid, ...]
    """[layer] shared by those that are cut alike"""
    operands: tuple[str, ...]
    producers: dict[str, tuple[int, Producer]] = field(default_factory=dict)
    """Tensor -> number of the layer that makes it, how its CNs do."""
    links: list[CnLink] = field(default_factory=list)
    edges: list[tuple[Integers, Integers, Integers]] = field(default_factory=list)
    """(source, target, bits) of the ordering edges of a layer, then of each link into it, layer by layer."""
    operand_of_edges: list[int] = field(default_factory=list)
    """Place of the operand in `operands`, or ORDERING, of each of `edges`."""

    def bits(self, tensor: str) -> int:
        return self.network.workload.tensor_of[tensor].bits


def build_cn_graph(workload: Workload, tiling: Tiling) -> CnGraph:
    """The CN graph of a network that is read with its tensors (profile `corrected`).

    Raises InputError where the network has no tensors, where a layer is in no stack or in several, or where a
    reduction is split over cores.
    """
    nodes = [node for node in workload.nodes if node.layer is not None]
    _check(workload, nodes, tiling)
    building = _start(workload, nodes, tiling)
    reads = ReadTable(workload, building.operands)
    shape_of_cn: list[Integers] = []
    shapes: dict[Layer, int] = {}
    for number, node in enumerate(nodes):
        assert node.layer is not None
        grid, alike = building.grids[number], building.network.alike
        shape_of_cn.append(alike.once_for((nameless_layer(node.layer), grid), _shapes, node.layer, grid, alike, shapes))
        _connect(building, number, node, reads)
    output_bits, network_output_bits = _outputs(building)
    source, target, bits = (
        (_joined(column) for column in zip(*building.edges, strict=True)) if nodes else (_none(),) * 3
    )
    lengths = [len(edges) for edges, _, _ in building.edges]
    operand = np.repeat(np.array(building.operand_of_edges, np.int16), lengths)
    order = np.argsort(target, kind="stable")
    number_of = {node.node_id: number for number, node in enumerate(nodes)}
    return CnGraph(
        network=workload.name,
        layers=building.layers,
        stacks=tuple(tuple(number_of[node_id] for node_id in stack) for stack in tiling.stacks),
        operands=building.operands,
        shapes=tuple(shapes),
        links=tuple(building.links),
        notices=(*tiling.notices, *unknown_dependencies(building.network)),
        group=_joined([grid.groups for grid in building.grids]),
        shape=_joined(shape_of_cn),
        output_bits=output_bits,
        network_output_bits=network_output_bits,
        edge_source=source[order],
        edge_target=target[order],
        edge_operand=operand[order],
        edge_bits=bits[order],
        **reads.columns(),
    )


def _shapes(layer: Layer, grid: LayerGrid, alike: Alike, shapes: dict[Layer, int]) -> Integers:
    """[cn] place in `shapes`, where the shapes of the layer are added."""
    classes, examples = shape_classes(layer, grid, alike)
    places = [shapes.setdefault(example, len(shapes)) for example in examples]
    return np.array(places)[classes]


def _check(workload: Workload, nodes: list[WorkloadNode], tiling: Tiling) -> None:
    lacking = [node for node in nodes if not node.index_maps]
    if lacking or (nodes and not workload.tensors):
        message = "the layers say nothing of the tensors between them: read the network with the profile corrected"
        raise InputError([Problem(message, path=node.name) for node in lacking[:1]] or message)
    stacked = [node_id for stack in tiling.stacks for node_id in stack]
    problems = [
        Problem("must be cut, and in one stack", path=node.name, value=f"in {stacked.count(node.node_id)} stacks")
        for node in nodes
        if node.node_id not in tiling.of_node or stacked.count(node.node_id) != 1
    ]
    if problems:
        raise InputError(problems)


def _start(workload: Workload, nodes: list[WorkloadNode], tiling: Tiling) -> _Building:
    stack_of = {node_id: stack for stack, members in enumerate(tiling.stacks) for node_id in members}
    network = network_tensors(workload)
    layers, grids = [], []
    first = 0
    for node in nodes:
        assert node.layer is not None
        cut = tiling.of_node[node.node_id]
        grids.append(network.alike.grid(node.layer.loop_sizes, cut))
        count = grids[-1].cn_count
        place = (node.layer.loop_sizes, cut, first, count, stack_of[node.node_id], node.outputs)
        layers.append(CnLayer(node.node_id, node.name, node.operator_type, *place))
        first += count
    operands = dict.fromkeys(index_map.operand for node in nodes for index_map in node.index_maps)
    building = _Building(network, tuple(layers), tuple(grids), tuple(operands))
    problems: list[Problem] = []
    for number, node in enumerate(nodes):
        for tensor in dict.fromkeys(index_map.output.tensor for index_map in node.index_maps):
            producer = producer_of(node, tensor, network.shape(tensor), building.grids[number], network.alike)
            building.producers[tensor] = number, producer
            problems += split_reductions(node, tensor, producer)
    if problems:
        raise InputError(problems)
    return building


def _connect(building: _Building, number: int, node: WorkloadNode, reads: ReadTable) -> None:
    """Edges into the CNs of a layer, and what they read from outside."""
    layer, grid, alike = building.layers[number], building.grids[number], building.network.alike
    by_source: dict[tuple[str, str], list[Demand]] = defaultdict(list)
    for needs in needs_of_layer(node, grid, building.network):
        by_source[needs.operand, needs.tensor].append(needs.demand)
    source, target = alike.once(_ordering_edges, grid)
    building.edges.append((source + layer.first_cn, target + layer.first_cn, alike.zeros(len(source))))
    building.operand_of_edges.append(ORDERING)
    for (operand, tensor), demands in by_source.items():
        if tensor not in building.producers:
            for demand in demands:
                reads.add(operand, tensor, demand, alike.once(reading_cns, demand, grid), layer.first_cn)
            continue
        source_layer, producer = building.producers[tensor]
        target, source, elements, is_exact = alike.once(flow, tuple(demands), producer, grid, alike)
        bits = elements * building.bits(tensor)
        first_source = building.layers[source_layer].first_cn
        building.edges.append((source + first_source, target + layer.first_cn, bits))
        building.operand_of_edges.append(building.operands.index(operand))
        link = CnLink(source_layer, number, operand, tensor, len(target), int(bits.sum()), is_exact)
        building.links.append(link)


def _ordering_edges(grid: LayerGrid) -> tuple[Integers, Integers]:
    """(source, target) of the edges from each CN to the next one of its group, both in the layer."""
    if grid.tiling.group_count == 1:
        numbers = np.arange(grid.cn_count, dtype=np.int64)
        return numbers[:-1], numbers[1:]
    order = np.argsort(grid.groups, kind="stable").astype(np.int64)
    same = grid.groups[order[1:]] == grid.groups[order[:-1]]
    return order[:-1][same], order[1:][same]


def _outputs(building: _Building) -> tuple[Integers, Integers]:
    """([cn] bits of final output, [cn] bits of it that leave the network)."""
    alike = building.network.alike
    count = sum(layer.cn_count for layer in building.layers)
    made, leaving = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for tensor, (number, producer) in building.producers.items():
        for needs in needs_of_output(tensor, building.network):
            _, cn, elements = alike.once(content_flow, needs.demand, producer, alike)
            made[cn + building.layers[number].first_cn] += elements * building.bits(tensor)
    by_tensor: dict[str, list[Demand]] = defaultdict(list)
    for output in building.network.workload.outputs:
        for needs in needs_of_output(output, building.network):
            by_tensor[needs.tensor].append(needs.demand)
    for tensor, demands in by_tensor.items():
        if tensor in building.producers:
            number, producer = building.producers[tensor]
            whole = LayerGrid((), LayerTiling(-1))
            _, cn, elements, _ = flow(tuple(demands), producer, whole, alike)
            leaving[cn + building.layers[number].first_cn] += elements * building.bits(tensor)
    return made, leaving


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts) if parts else _none()


def _none() -> Integers:
    return np.zeros(0, np.int64)
