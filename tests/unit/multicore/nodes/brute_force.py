"""Computation nodes and their dependencies by enumerating elements: slow and plain, without the package's grids."""

import itertools
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
from tilewright.multicore.nodes.tiling import LayerTiling, Tiling
from tilewright.workload.access import IndexMap
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer

from tests.unit.workload.dependency_tables import dependency_pairs

Ranges = dict[str, tuple[int, int]]
Elements = frozenset[int] | set[int]


def ranges_of_cns(layer: Layer, tiling: LayerTiling) -> list[Ranges]:
    """Loop ranges of each CN, by counting the outer loops like an odometer; the first loop counts fastest."""
    found = []
    for reversed_values in itertools.product(*(range(loop.count) for loop in reversed(tiling.loops))):
        ranges = {dimension: (0, size) for dimension, size in layer.loop_sizes}
        for loop, value in zip(reversed(tiling.loops), reversed_values, strict=True):
            low, high = ranges[loop.dimension]
            start = low + value * loop.tile_size
            ranges[loop.dimension] = (start, min(high, start + loop.tile_size))
        if all(low < high for low, high in ranges.values()):
            found.append(ranges)
    return found


@dataclass
class BruteForce:
    """Dependencies of all CNs, as sets of elements."""

    ranges: list[list[Ranges]] = field(default_factory=list)
    """[layer][CN of the layer] loop ranges"""
    edges: dict[tuple[int, int, str], int] = field(default_factory=dict)
    """(producer CN, consumer CN, operand) -> elements that flow"""
    reads: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    """(CN, tensor from outside) -> elements"""
    made: dict[int, int] = field(default_factory=dict)
    """CN -> elements whose final value the CN makes"""
    leaving: dict[int, int] = field(default_factory=dict)
    """CN -> elements the CN makes that leave the network"""


def brute_force(workload: Workload, tiling: Tiling) -> BruteForce:
    """All CNs and dependencies, by enumeration."""
    result = BruteForce()
    nodes = [node for node in workload.nodes if node.layer is not None]
    first = 0
    owner: dict[tuple[str, int], int] = {}
    """(tensor, element) -> the last CN that adds to it."""
    needed: dict[tuple[int, str], list[tuple[str, set[int]]]] = defaultdict(list)
    for node, cut in zip(nodes, tiling.layers, strict=True):
        assert node.layer is not None
        ranges = ranges_of_cns(node.layer, cut)
        result.ranges.append(ranges)
        for index_map in node.index_maps:
            shapes = [workload.tensor_of[name].shape for name in (index_map.output.tensor, index_map.input.tensor)]
            for number, box in enumerate(ranges):
                inside = _within(index_map, box)
                written, _ = dependency_pairs(_only_output(inside), shapes[0], shapes[0])
                for element in written.tolist():
                    owner[index_map.output.tensor, element] = first + number
                _, read = dependency_pairs(inside, *shapes)
                needed[first + number, index_map.operand].append((index_map.input.tensor, set(read.tolist())))
        first += len(ranges)
    for (_, _), cn in owner.items():
        result.made[cn] = result.made.get(cn, 0) + 1
    producers = {name: node for node in workload.nodes for name in node.outputs}
    for (cn, operand), parts in needed.items():
        for tensor, elements in _behind(parts, workload, producers).items():
            if (producer := producers.get(tensor)) is None or producer.layer is None or _is_constant(workload, tensor):
                result.reads.setdefault((cn, tensor), set()).update(elements)
                continue
            for element in elements:
                if (tensor, element) in owner:
                    key = (owner[tensor, element], cn, operand)
                    result.edges[key] = result.edges.get(key, 0) + 1
    wanted = [(name, set(range(workload.tensor_of[name].element_count))) for name in workload.outputs]
    for tensor, elements in _behind(wanted, workload, producers).items():
        for element in elements:
            if (tensor, element) in owner:
                result.leaving[owner[tensor, element]] = result.leaving.get(owner[tensor, element], 0) + 1
    return result


def _behind(
    parts: list[tuple[str, set[int]]], workload: Workload, producers: dict[str, WorkloadNode]
) -> dict[str, set[int]]:
    """Elements of layer outputs and outside inputs, from which operators that only move data make the given parts."""
    found: dict[str, set[int]] = defaultdict(set)
    waiting = list(parts)
    while waiting:
        tensor, elements = waiting.pop()
        node = producers.get(tensor)
        if node is None or node.layer is not None or _is_constant(workload, tensor):
            found[tensor] |= elements
            continue
        for index_map in node.index_maps:
            if index_map.output.tensor == tensor:
                source = index_map.input.tensor
                outputs, inputs = dependency_pairs(
                    index_map, workload.tensor_of[tensor].shape, workload.tensor_of[source].shape
                )
                kept = np.isin(outputs, list(elements))
                if kept.any():
                    waiting.append((source, set(inputs[kept].tolist())))
    return found


def _is_constant(workload: Workload, tensor: str) -> bool:
    return workload.tensor_of[tensor].is_constant


def _within(index_map: IndexMap, ranges: Ranges) -> IndexMap:
    """The index map for a part of the loop values, as new loops that begin at 0."""

    def shifted(access):  # type: ignore[no-untyped-def]
        axes = tuple(
            axis._replace(offset=axis.offset + sum(c * ranges.get(name, (0, 0))[0] for name, c in axis.terms))
            for axis in access.axes
        )
        return replace(access, axes=axes)

    sizes = {name: ranges[name][1] - ranges[name][0] if name in ranges else size for name, size in index_map.loops}
    return replace(
        index_map, loops=tuple(sizes.items()), output=shifted(index_map.output), input=shifted(index_map.input)
    )


def _only_output(index_map: IndexMap) -> IndexMap:
    """The map with its input replaced by its output, so that the elements it writes can be read off as inputs."""
    return replace(index_map, input=index_map.output)
