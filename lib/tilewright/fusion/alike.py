"""Results kept for one graph, so that layers which are cut and read alike are worked out once.

Networks repeat their layers. What is worked out for one depends on its loops, accesses, tile counts and shapes, never
on its name or number; such results are made of arrays that nobody writes to, and are shared.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from tilewright.fusion.grid import LayerGrid
from tilewright.fusion.outer_loops import LayerTiling
from tilewright.workload.access import IndexMap, TensorAccess

Result = TypeVar("Result")
_NO_NODE = -1


class Alike:
    """Results by what they follow from. Arguments are hashable by value or, as all records with arrays, by identity."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}

    def once(self, make: Callable[..., Result], *arguments: Any) -> Result:
        """`make(*arguments)`, of which no result may be None; made once."""
        key = (make, *arguments)
        found: Result | None = self._found.get(key)
        if found is None:
            found = self._found[key] = make(*arguments)
        return found

    def once_for(self, key: Hashable, make: Callable[..., Result], *arguments: Any) -> Result:
        """`make(*arguments)`, made once for a key that says all that the result depends on."""
        key = (make, key)
        found: Result | None = self._found.get(key)
        if found is None:
            found = self._found[key] = make(*arguments)
        return found

    def grid(self, loop_sizes: tuple[tuple[str, int], ...], tiling: LayerTiling) -> LayerGrid:
        """The grid of a layer, the same object for all layers that are cut alike."""
        return self.once_for((loop_sizes, tiling.loops, tiling.group_loops), _grid, loop_sizes, tiling)


def _grid(loop_sizes: tuple[tuple[str, int], ...], tiling: LayerTiling) -> LayerGrid:
    return LayerGrid(loop_sizes, LayerTiling(_NO_NODE, tiling.loops, tiling.group_loops))


def nameless(index_map: IndexMap) -> Hashable:
    """All of a map but the names of tensors and operand."""
    return index_map.loops, index_map.is_exact, axes_of(index_map.output), axes_of(index_map.input)


def axes_of(access: TensorAccess) -> Hashable:
    """The axes of an access as plain tuples, which are quick to compare."""
    return tuple((axis.terms, axis.offset) for axis in access.axes)
