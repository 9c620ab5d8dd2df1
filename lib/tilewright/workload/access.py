"""Access relations: dependences between the elements of two tensors, as affine functions of loops.

Operators that compute (Conv) and operators that only move data (Slice) have relations of the same form. A relation has
loops with sizes. Along each axis of the output and of the input, the relation has an index `offset + sum(coefficient *
loop)`. Each combination of loop values gives one output element and one input element. The output element depends on
the input element if both lie inside their tensors. An input index outside the input tensor is padding. An output index
outside the output tensor is a cropped result.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Shape = tuple[int, ...]


class AxisIndex(NamedTuple):
    """Index along one axis of a tensor: `offset + sum(coefficient * loop)`. The class is a tuple because its objects
    are often hashed.
    """

    terms: tuple[tuple[str, int], ...] = ()
    """Pairs (loop, coefficient); no loop occurs twice."""
    offset: int = 0


@dataclass(frozen=True)
class TensorAccess:
    """Access to a tensor: each combination of loop values reads or writes one element."""

    tensor: str
    axes: tuple[AxisIndex, ...]
    """Index along each axis of the tensor; () for a scalar."""


@dataclass(frozen=True)
class IndexMap:
    """Affine map from loop values to pairs (output element, input element). The map holds some or all dependences of
    one output tensor on one input tensor.

    The dependences of a node are the union of the node's maps.
    """

    loops: tuple[tuple[str, int], ...]
    """Pairs (loop, size). A loop that only the input uses is a reduction: an output element depends on the input
    elements for all values of this loop."""
    output: TensorAccess
    input: TensorAccess
    operand: str = ""
    """Operand (I or W) that the layer reads from the input tensor. The name is '' if the node only moves data, and for
    a bias, because a bias is no operand of a layer."""
    is_exact: bool = True
    """False if the map is a superset of the true dependences, because the true dependences are not affine."""

    @cached_property
    def size_of(self) -> Mapping[str, int]:
        """Size of each loop, by name of the loop."""
        return dict(self.loops)


def loop(name: str, coefficient: int = 1, offset: int = 0) -> AxisIndex:
    """Index `offset + coefficient * loop`; `name` is the name of the loop."""
    return AxisIndex(((name, coefficient),), offset)


def affine(*terms: tuple[str, int], offset: int = 0) -> AxisIndex:
    """Index `offset + sum(coefficient * loop)` over the pairs (loop, coefficient)."""
    return AxisIndex(terms, offset)


def fixed(index: int = 0) -> AxisIndex:
    """Index that is the same for all loop values."""
    return AxisIndex((), index)


def access_of_loops(tensor: str, loops: Iterable[str]) -> TensorAccess:
    """Access to a tensor with one loop per axis: the index along an axis is the value of its loop."""
    return TensorAccess(tensor, tuple(loop(name) for name in loops))


def identity_map(output: str, source: str, shape: Shape, *, is_exact: bool = True) -> IndexMap:
    """Map in which every output element depends on the input element with the same indices."""
    axes = tuple(loop(f"D{axis}") for axis in range(len(shape)))
    loops = tuple((f"D{axis}", size) for axis, size in enumerate(shape))
    return IndexMap(loops, TensorAccess(output, axes), TensorAccess(source, axes), is_exact=is_exact)


def reads_gaps(index_map: IndexMap, size_of: Mapping[str, int]) -> bool:
    """True if a map may leave gaps between the input elements that it reads, as with a stride larger than the window.

    `size_of` has the loop sizes of a tile. If `size_of` lacks a loop, the size in the map is used.
    """
    sizes = {**index_map.size_of, **{name: size for name, size in size_of.items() if name in index_map.size_of}}
    return not index_map.is_exact or any(_has_gaps(axis, sizes) for axis in index_map.input.axes)


def _has_gaps(axis: AxisIndex, size_of: Mapping[str, int]) -> bool:
    """True if the indices along an axis can skip values between the smallest and the largest index.

    The indices have gaps if some coefficient exceeds the largest sum of the terms with smaller coefficients by more
    than 1. Signs of coefficients and loops of size 1 are ignored.
    """
    reach = 0
    for coefficient, size in sorted((abs(coefficient), size_of[name]) for name, coefficient in axis.terms):
        if size > 1 and coefficient > reach + 1:
            return True
        reach += coefficient * (size - 1)
    return False


def index_range(axis: AxisIndex, size_of: Mapping[str, int]) -> tuple[int, int]:
    """Smallest and largest index along an axis, over all loop values."""
    low = high = axis.offset
    for name, coefficient in axis.terms:
        reach = coefficient * (size_of[name] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high
