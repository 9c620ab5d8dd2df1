"""Computes the numbers of a network of sums and products from its index maps alone.

This second implementation of a layer loops over all loop values and multiplies the operands that are read there. It
adds the products where the output is written. It knows nothing of parts.
"""

import random

import numpy as np
import numpy.typing as npt
from onnx.helper import make_node
from tilewright.workload.access import IndexMap, TensorAccess
from tilewright.workload.graph import Workload, WorkloadNode

from tests.unit.multicore.nodes.networks import read

Numbers = npt.NDArray[np.int64]


def random_products(draw: random.Random) -> Workload:
    """One convolution or matrix product, with or without a bias, strides, dilations, groups and a reader."""
    if draw.random() < 0.5:
        return _convolution(draw)
    rows, inner, columns = draw.randint(1, 5), draw.randint(2, 9), draw.randint(1, 6)
    constants: dict[str, tuple[int, ...] | list[int]] = {"w": (inner, columns)}
    inputs, kind = ["x", "w"], draw.choice(("Gemm", "MatMul"))
    if kind == "Gemm" and draw.random() < 0.5:
        constants["bias"] = (columns,)
        inputs.append("bias")
    return read([make_node(kind, inputs, ["y"], name="y"), *_reader(draw)], {"x": (rows, inner)}, constants)


def _convolution(draw: random.Random) -> Workload:
    groups, size = draw.choice((1, 1, 2)), draw.choice((1, 2, 3))
    channels, outputs, side = groups * draw.randint(2, 5), groups * draw.randint(1, 4), draw.randint(5, 7)
    constants: dict[str, tuple[int, ...] | list[int]] = {"w": (outputs, channels // groups, size, size)}
    inputs = ["x", "w"]
    if draw.random() < 0.5:
        constants["bias"] = (outputs,)
        inputs.append("bias")
    pads = [draw.randint(0, size - 1) for _ in range(4)]
    how = {"strides": [draw.randint(1, 2)] * 2, "dilations": [draw.randint(1, 2)] * 2}
    node = make_node("Conv", inputs, ["y"], name="y", group=groups, pads=pads, **how)
    return read([node, *_reader(draw)], {"x": (1, channels, side, side)}, constants)


def _reader(draw: random.Random) -> list[object]:
    return [make_node("Relu", ["y"], ["z"], name="z")] if draw.random() < 0.5 else []


def computed(workload: Workload, draw: np.random.Generator) -> dict[str, Numbers]:
    """Values of all tensors, for random inputs and constants."""
    made = {name for node in workload.nodes for name in node.outputs}
    values: dict[str, Numbers] = {}
    for tensor in sorted(workload.tensors, key=lambda one: one.name):
        if tensor.name not in made:
            values[tensor.name] = draw.integers(-9, 10, tensor.shape)
    shapes = {tensor.name: tensor.shape for tensor in workload.tensors}
    for node in workload.nodes:
        for name in node.outputs:
            values[name] = _output(node, name, shapes, values)
    return values


def _output(node: WorkloadNode, name: str, shapes: dict[str, tuple[int, ...]], values: dict[str, Numbers]) -> Numbers:
    maps = [index_map for index_map in node.index_maps if index_map.output.tensor == name]
    found = np.zeros(shapes[name], np.int64)
    products = [index_map for index_map in maps if index_map.operand]
    is_sum = node.operator_type == "Add"
    if node.layer is not None and not is_sum and len(products) == 2:
        one, other = (_read(index_map, index_map.input, values) for index_map in products)
        place, inside = _places(products[0], products[0].output, found.shape)
        np.add.at(found, tuple(axis[inside] for axis in place), (one * other)[inside])
    else:
        for index_map in products or maps:
            place, inside = _places(index_map, index_map.output, found.shape)
            np.add.at(found, tuple(axis[inside] for axis in place), _read(index_map, index_map.input, values)[inside])
    for index_map in maps if products else ():
        if not index_map.operand:  # once for each output, whatever the loops of the map
            once = np.zeros(found.shape, np.int64)
            place, inside = _places(index_map, index_map.output, found.shape)
            once[tuple(axis[inside] for axis in place)] = _read(index_map, index_map.input, values)[inside]
            found += once
    return found


def _places(
    index_map: IndexMap, access: TensorAccess, shape: tuple[int, ...]
) -> tuple[list[Numbers], npt.NDArray[np.bool_]]:
    """Index along each axis for all loop values, and whether the index is inside the tensor."""
    sizes = [size for _, size in index_map.loops]
    grid = dict(zip((name for name, _ in index_map.loops), np.indices(sizes).reshape(len(sizes), -1), strict=True))
    count = int(np.prod(sizes))
    place, inside = [], np.ones(count, dtype=bool)
    for axis, size in zip(access.axes, shape, strict=True):
        index = np.full(count, axis.offset)
        for name, factor in axis.terms:
            index = index + factor * grid[name]
        inside &= (index >= 0) & (index < size)
        place.append(index)
    return place, inside


def _read(index_map: IndexMap, access: TensorAccess, values: dict[str, Numbers]) -> Numbers:
    """The numbers read for all loop values; 0 where the index is padding."""
    tensor = values[access.tensor]
    place, inside = _places(index_map, access, tensor.shape)
    found = np.zeros(len(inside), np.int64)
    found[inside] = tensor[tuple(axis[inside] for axis in place)]
    return found
