"""Access relations: which elements of one tensor the elements of another depend on, as affine functions of loops.

A computation (Conv) and an operator that only moves data (Slice) are told in the same way: loops with sizes, and for
the output and for an input the index along every axis as `offset + sum(coefficient * loop)`. The output element of
every combination of loop values depends on the input element of the same combination, where both lie inside their
tensors; an index outside is padding that is read, or a result that is cropped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Shape = tuple[int, ...]


class AxisIndex(NamedTuple):
    """The index along one axis of a tensor: `offset + sum(coefficient * loop)`; a tuple: it is often hashed."""

    terms: tuple[tuple[str, int], ...] = ()
    """(loop, coefficient); a loop occurs once."""
    offset: int = 0


@dataclass(frozen=True)
class TensorAccess:
    """The element of a tensor that one combination of loop values reads or writes."""

    tensor: str
    axes: tuple[AxisIndex, ...]
    """One for each axis of the tensor; () for a scalar."""


@dataclass(frozen=True)
class IndexMap:
    """A part of the dependencies of one output tensor on one input tensor; a node's maps add up (set union)."""

    loops: tuple[tuple[str, int], ...]
    """(loop, size). Loops that only the input uses are reductions: an output element depends on all their values."""
    output: TensorAccess
    input: TensorAccess
    operand: str = ""
    """The operand of the node's layer that the input is; '' where it is none: data movement, a bias."""
    is_exact: bool = True
    """False: a superset of the true dependencies, because none that is affine exists."""

    @cached_property
    def size_of(self) -> Mapping[str, int]:
        """Loop -> size."""
        return dict(self.loops)


def loop(name: str, coefficient: int = 1, offset: int = 0) -> AxisIndex:
    """The index `offset + coefficient * name`."""
    return AxisIndex(((name, coefficient),), offset)


def affine(*terms: tuple[str, int], offset: int = 0) -> AxisIndex:
    """The index `offset + sum(coefficient * loop)` over (loop, coefficient)."""
    return AxisIndex(terms, offset)


def fixed(index: int = 0) -> AxisIndex:
    """One index for all loops."""
    return AxisIndex((), index)


def access_of_loops(tensor: str, loops: Iterable[str]) -> TensorAccess:
    """The access of a tensor with one loop for each axis."""
    return TensorAccess(tensor, tuple(loop(name) for name in loops))


def identity_map(output: str, source: str, shape: Shape, *, is_exact: bool = True) -> IndexMap:
    """Every output element depends on the input element at its own place."""
    axes = tuple(loop(f"D{axis}") for axis in range(len(shape)))
    loops = tuple((f"D{axis}", size) for axis, size in enumerate(shape))
    return IndexMap(loops, TensorAccess(output, axes), TensorAccess(source, axes), is_exact=is_exact)


def index_range(axis: AxisIndex, size_of: Mapping[str, int]) -> tuple[int, int]:
    """Smallest and largest index over all loop values."""
    low = high = axis.offset
    for name, coefficient in axis.terms:
        reach = coefficient * (size_of[name] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high
