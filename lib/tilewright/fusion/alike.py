"""Results kept for one graph, so that layers which are cut and read alike are worked out once.

Networks repeat their layers. What is worked out for one depends on its loops, accesses, tile counts and shapes, never
on its name or number; such results are made of arrays that nobody writes to, and are shared.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from tilewright.fusion.grid import Cuts, DimensionTiles, Integers, LayerGrid, cut_dimension
from tilewright.fusion.outer_loops import LayerTiling

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
        """The grid of a layer without its uncut dimensions, the same object for all layers that are cut alike."""
        looped = {loop.dimension for loop in tiling.loops}
        cut = tuple([(dimension, size) for dimension, size in loop_sizes if dimension in looped])
        return self.once_for((cut, tiling.loops, tiling.group_loops), self._grid, cut, tiling)

    def _grid(self, loop_sizes: tuple[tuple[str, int], ...], tiling: LayerTiling) -> LayerGrid:
        return LayerGrid(loop_sizes, LayerTiling(_NO_NODE, tiling.loops, tiling.group_loops), self._cut)

    def _cut(self, size: int, cuts: Cuts) -> tuple[DimensionTiles, Integers | None]:
        return self.once(cut_dimension, size, cuts)
