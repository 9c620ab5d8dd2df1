"""Search space, result and certificate of a search for the best depth-first schedule."""

from dataclasses import dataclass

import numpy as np

from tilewright.base.artifacts.codec import encode
from tilewright.base.json_values import JsonObject
from tilewright.base.proof import BoundedValue
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.schedule import DepthFirstSchedule

Layers = tuple[int, int]
"""Stack, as a pair (first layer, last layer)."""


@dataclass(frozen=True)
class DepthFirstSpace:
    """Space of the search: every cut of the chain into stacks and, for each stack, every mode and tile size."""

    modes: tuple[str, ...] = tuple(MODES)
    tile_x: tuple[int, ...] = ()
    """Widths of tiles that are tried; () for all widths."""
    tile_y: tuple[int, ...] = ()

    def sizes(self, axis: int, most: int) -> np.ndarray:
        """Tile sizes of a stack along an axis (0 for x, 1 for y), ascending and without duplicates. `most` is the size
        of the last layer's output along this axis. A larger tile size is replaced by `most`.
        """
        given = self.tile_y if axis else self.tile_x
        return np.unique(np.minimum(np.array(given or range(1, most + 1), np.int64), most))


@dataclass(frozen=True)
class Costed:
    """Stack with one tile size and mode, and its cost."""

    layers: Layers
    mode: str
    tile: tuple[int, int]
    energy_pj: float
    latency_cycles: float


@dataclass(frozen=True)
class Unmappable:
    """Combination of a stack, a tile size and a mode that cannot run, because no mapping fits for one layer of the
    stack.
    """

    layers: Layers
    mode: str
    tile: tuple[int, int]


@dataclass(frozen=True)
class Optimum(BoundedValue):
    """Best schedule that the search found, with a lower bound of the objective over all schedules of the space."""

    schedule: DepthFirstSchedule
    space: DepthFirstSpace
    objective: str
    value: float
    """Value of the objective for the best schedule."""
    lower_bound: float
    """Lower bound of the objective over all schedules of the space, up to rounding."""
    schedules_in_space: int
    stacks_bounded: tuple[Layers, ...]
    """Stacks for which the search computed one bound for each tile size. For any other stack, the search computed a
    single bound, over all modes and tile sizes."""
    costed: tuple[Costed, ...]
    """Stacks whose cost was computed, in the order of the search."""
    unmappable: tuple[Unmappable, ...] = ()
    """Stacks that the search tried, but for which no mapping fits."""
    is_interrupted: bool = False
    """True if Ctrl-C ended the search. The schedule is then the best one found so far."""

    def as_object(self) -> JsonObject:
        """Certificate of the optimum as JSON values."""
        names = [entry.layer.name for entry in self.schedule.chain.layers]
        return {
            "objective": self.objective,
            **self.stated(),
            "schedules_in_space": self.schedules_in_space,
            "space": encode(self.space),
            "stacks_bounded": [[names[first], names[last]] for first, last in self.stacks_bounded],
            "stacks_costed": [
                [names[one.layers[0]], names[one.layers[1]], one.mode, *one.tile, one.energy_pj, one.latency_cycles]
                for one in self.costed
            ],
            "stacks_unmappable": [
                [names[one.layers[0]], names[one.layers[1]], one.mode, *one.tile] for one in self.unmappable
            ],
        }
