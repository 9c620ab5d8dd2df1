"""Builds the graph of computation nodes of a network from its tiling."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from tilewright.errors import InputError, Problem
from tilewright.fusion.contents import ReadTable
from tilewright.fusion.graph import ORDERING, CnGraph, CnLayer, CnLink
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.fusion.links import Producer, content_flow, flow, producer_of
from tilewright.fusion.needs import (
    Needs,
    NetworkTensors,
    needs_of_layer,
    needs_of_output,
    network_tensors,
    unknown_dependencies,
)
from tilewright.fusion.outer_loops import LayerTiling, Tiling
from tilewright.fusion.shapes import shape_classes
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer


@dataclass
class _Building:
    """A graph while it grows, layer by layer."""

    network: NetworkTensors
    layers: tuple[CnLayer, ...]
    operands: tuple[str, ...]
    producers: dict[str, tuple[int, Producer]] = field(default_factory=dict)
    """Tensor -> number of the layer that makes it, how its CNs do."""
    links: list[CnLink] = field(default_factory=list)
    edges: list[tuple[Integers, ...]] = field(default_factory=list)
    """(source, target, operand, bits) of the edges into the CNs of each layer."""

    def bits(self, tensor: str) -> int:
        return self.network.workload.tensor_of[tensor].bits


def build_cn_graph(workload: Workload, tiling: Tiling) -> CnGraph:
    """The CN graph of a network that is read with its tensors (an ONNX file, profile `corrected`).

    Raises InputError where the network has no tensors, where a layer is in no stack or in several, or where a
    reduction is split over cores.
    """
    nodes = [node for node in workload.nodes if node.layer is not None]
    _check(workload, nodes, tiling)
    building = _start(workload, nodes, tiling)
    reads = ReadTable(workload, building.operands)
    shape_of_cn: list[Integers] = []
    shapes: dict[Layer, int] = {}
    for number, (node, cn_layer) in enumerate(zip(nodes, building.layers, strict=True)):
        assert node.layer is not None
        classes, examples = shape_classes(node.layer, cn_layer.grid)
        shape_of_cn.append(np.array([shapes.setdefault(example, len(shapes)) for example in examples])[classes])
        _connect(building, number, node, reads)
    output_bits, network_output_bits = _outputs(building)
    columns = [np.concatenate(parts) for parts in zip(*building.edges, strict=True)] if nodes else [_none()] * 4
    number_of = {node.node_id: number for number, node in enumerate(nodes)}
    return CnGraph(
        network=workload.name,
        layers=building.layers,
        stacks=tuple(tuple(number_of[node_id] for node_id in stack) for stack in tiling.stacks),
        operands=building.operands,
        shapes=tuple(shapes),
        links=tuple(building.links),
        notices=(*tiling.notices, *unknown_dependencies(building.network)),
        group=_joined([layer.grid.groups for layer in building.layers]),
        shape=_joined(shape_of_cn),
        output_bits=output_bits,
        network_output_bits=network_output_bits,
        edge_source=columns[0],
        edge_target=columns[1],
        edge_operand=columns[2].astype(np.int16),
        edge_bits=columns[3],
        **reads.columns(),
    )


def _check(workload: Workload, nodes: list[WorkloadNode], tiling: Tiling) -> None:
    lacking = [node for node in nodes if not node.index_maps]
    if lacking or (nodes and not workload.tensors):
        message = (
            "the layers say nothing of the tensors between them: give an ONNX file, read with the profile corrected"
        )
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
    layers = []
    first = 0
    for node in nodes:
        assert node.layer is not None
        cut = tiling.of_node[node.node_id]
        grid = LayerGrid(node.layer.loop_sizes, cut)
        place = (node.layer.loop_sizes, cut, first, grid.cn_count, stack_of[node.node_id], node.outputs)
        layers.append(CnLayer(node.node_id, node.name, node.operator_type, *place))
        first += grid.cn_count
    operands = dict.fromkeys(index_map.operand for node in nodes for index_map in node.index_maps)
    building = _Building(network_tensors(workload), tuple(layers), tuple(operands))
    problems: list[Problem] = []
    for number, (node, layer) in enumerate(zip(nodes, layers, strict=True)):
        for tensor in dict.fromkeys(index_map.output.tensor for index_map in node.index_maps):
            producer, found = producer_of(node, tensor, workload.tensor_of[tensor].shape, layer.grid)
            building.producers[tensor] = number, producer
            problems += found
    if problems:
        raise InputError(problems)
    return building


def _connect(building: _Building, number: int, node: WorkloadNode, reads: ReadTable) -> None:
    """Edges into the CNs of a layer, and what they read from outside."""
    layer = building.layers[number]
    grid = layer.grid
    by_source: dict[tuple[str, str], list[Needs]] = defaultdict(list)
    for needs in needs_of_layer(node, grid, building.network):
        by_source[needs.operand, needs.tensor].append(needs)
    edges = [_ordering_edges(grid, layer.first_cn)]
    for (operand, tensor), all_needs in by_source.items():
        if tensor not in building.producers:
            for needs in all_needs:
                reads.add(needs, grid, layer.first_cn)
            continue
        source_layer, producer = building.producers[tensor]
        target, source, elements, is_exact = flow(all_needs, producer, grid)
        bits = elements * building.bits(tensor)
        column = np.full(len(target), building.operands.index(operand), np.int64)
        edges.append((source + building.layers[source_layer].first_cn, target, column, bits))
        link = CnLink(source_layer, number, operand, tensor, len(target), int(bits.sum()), is_exact)
        building.links.append(link)
    source, target, column, bits = (np.concatenate(parts) for parts in zip(*edges, strict=True))
    order = np.argsort(target, kind="stable")
    building.edges.append((source[order], target[order] + layer.first_cn, column[order], bits[order]))


def _ordering_edges(grid: LayerGrid, first_cn: int) -> tuple[Integers, ...]:
    """(source, target in the layer, operand, bits) of the edges from each CN to the next one of its group."""
    order = np.argsort(grid.groups, kind="stable").astype(np.int64)
    same = grid.groups[order[1:]] == grid.groups[order[:-1]]
    source, target = order[:-1][same], order[1:][same]
    return source + first_cn, target, np.full(len(source), ORDERING, np.int64), np.zeros(len(source), np.int64)


def _outputs(building: _Building) -> tuple[Integers, Integers]:
    """([cn] bits of final output, [cn] bits of it that leave the network)."""
    count = sum(layer.cn_count for layer in building.layers)
    made, leaving = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for tensor, (number, producer) in building.producers.items():
        for needs in needs_of_output(tensor, building.network):
            _, cn, elements = content_flow(needs, producer)
            made[cn + building.layers[number].first_cn] += elements * building.bits(tensor)
    by_tensor: dict[str, list[Needs]] = defaultdict(list)
    for output in building.network.workload.outputs:
        for needs in needs_of_output(output, building.network):
            by_tensor[needs.tensor].append(needs)
    for tensor, all_needs in by_tensor.items():
        if tensor in building.producers:
            number, producer = building.producers[tensor]
            whole = LayerGrid((), LayerTiling(-1))
            _, cn, elements, _ = flow(all_needs, producer, whole)
            leaving[cn + building.layers[number].first_cn] += elements * building.bits(tensor)
    return made, leaving


def _joined(parts: list[Integers]) -> Integers:
    return np.concatenate(parts) if parts else _none()


def _none() -> Integers:
    return np.zeros(0, np.int64)
