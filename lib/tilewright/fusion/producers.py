"""How the CNs of a layer make its tensors."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import Problem
from tilewright.fusion.alike import Alike
from tilewright.fusion.axis_join import AxisOwners
from tilewright.fusion.axis_rows import AxisRows, owners_along, whole_owners
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.workload.access import IndexMap


@dataclass(frozen=True, eq=False)
class Producer:
    """How the CNs of a layer make one tensor."""

    grid: LayerGrid
    owners: tuple[AxisOwners, ...]
    """For each axis: what the tile that makes an index adds to the number of a CN."""
    last_step: int = 0
    """What the last steps of all reductions add: only they have final values."""
    is_exact: bool = True
    """False where tiles make elements together."""
    unsplittable: tuple[str, ...] = ()
    """Dimensions whose tiles add to the same elements: they cannot be of different groups."""

    def cns(self, owner: Integers) -> Integers:
        """CNs from sums of owners."""
        return self.grid.cn_of(owner + self.last_step)


def producer_of(rows: Sequence[AxisRows], grid: LayerGrid, alike: Alike) -> Producer:
    """How a layer makes one of its outputs; `rows` are those of its axes."""
    owners: list[AxisOwners] = []
    shared: list[str] = []
    written: list[str] = []
    for row in rows:
        if row.only is not None:
            owners.append(whole_owners(*row.only, row.size))
            continue
        made, together = alike.once(owners_along, row)
        owners.append(made)
        written += row.dimensions
        if together:
            shared += row.dimensions
    reduced = [dimension for dimension in grid.cut_tiles if dimension not in written]
    last_step = sum([int(grid.cut_tiles[dimension].number.max()) for dimension in reduced])
    return Producer(grid, tuple(owners), last_step, not shared, (*reduced, *shared))


def split_reductions(name: str, index_map: IndexMap, producer: Producer) -> list[Problem]:
    """What of a layer with a name cannot be cut as the grid wants it.

    A reduction is added up by one core: its steps, and tiles that add to the same elements, must be of one group.
    """
    if not producer.unsplittable:
        return []
    grid = producer.grid
    problems = []
    for place in grid.tiling.group_loops:
        dimension = grid.loops[place].dimension
        if dimension in producer.unsplittable:
            message = "a reduction cannot be split over cores: its partial sums would have to be added up across them"
            kept = _kept(index_map) - set(producer.unsplittable)
            allowed = ", ".join(name for name, _ in index_map.loops if name in kept)
            problems.append(Problem(message, path=name, value=dimension, allowed=allowed))
    return problems


def _kept(index_map: IndexMap) -> set[str]:
    return {name for axis in index_map.output.axes for name, _ in axis.terms}
