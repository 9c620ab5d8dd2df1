"""Dependencies between elements, by trying all combinations of loops; boxes of dependencies are compared with them."""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from tilewright.workload.access import IndexMap, Shape

Elements = npt.NDArray[np.int64]
"""Flat row-major positions of elements."""


def dependency_pairs(index_map: IndexMap, output_shape: Shape, input_shape: Shape) -> tuple[Elements, Elements]:
    """All (output element, input element) pairs of a map, as flat row-major positions. Pairs may repeat.

    Needs memory for every combination of loop values.
    """
    sizes = [size for _, size in index_map.loops]
    places = {name: place for place, (name, _) in enumerate(index_map.loops)}
    values = np.indices(sizes, dtype=np.int64).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), np.int64)
    flat = []
    inside = np.ones(values.shape[1], dtype=bool)
    for access, shape in ((index_map.output, output_shape), (index_map.input, input_shape)):
        position = np.zeros(values.shape[1], dtype=np.int64)
        for axis, size in zip(access.axes, shape, strict=True):
            index = np.full(values.shape[1], axis.offset, dtype=np.int64)
            for name, coefficient in axis.terms:
                index += coefficient * values[places[name]]
            inside &= (index >= 0) & (index < size)
            position = position * size + index
        flat.append(position)
    return flat[0][inside], flat[1][inside]


def influences(index_maps: Iterable[IndexMap], output_shape: Shape, input_shape: Shape) -> npt.NDArray[np.bool_]:
    """The union of maps as a table [output element, input element] of flat row-major positions, for small tensors."""
    table = np.zeros((math.prod(output_shape), math.prod(input_shape)), dtype=bool)
    for index_map in index_maps:
        outputs, inputs = dependency_pairs(index_map, output_shape, input_shape)
        table[outputs, inputs] = True
    return table
