"""The question and the answer of a search for the best depth-first schedule: space, costed stacks, certificate."""

from dataclasses import dataclass

import numpy as np

from tilewright.base.artifacts.codec import encode
from tilewright.base.json_values import JsonObject
from tilewright.base.proof import BoundedValue
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.schedule import DepthFirstSchedule

Layers = tuple[int, int]
"""(first layer, last layer) of a stack."""


@dataclass(frozen=True)
class DepthFirstSpace:
    """What is searched: every cut of the chain into stacks, and for each stack each of these."""

    modes: tuple[str, ...] = tuple(MODES)
    tile_x: tuple[int, ...] = ()
    """Widths of tiles, () for all."""
    tile_y: tuple[int, ...] = ()

    def sizes(self, axis: int, most: int) -> np.ndarray:
        """The sizes of tiles of a stack along an axis, ascending; a larger one is the whole layer."""
        given = self.tile_y if axis else self.tile_x
        return np.unique(np.minimum(np.array(given or range(1, most + 1), np.int64), most))


@dataclass(frozen=True)
class Costed:
    """A stack in tiles, with what it costs."""

    layers: Layers
    mode: str
    tile: tuple[int, int]
    energy_pj: float
    latency_cycles: float


@dataclass(frozen=True)
class Unmappable:
    """A stack in tiles of which a layer fits into no memories."""

    layers: Layers
    mode: str
    tile: tuple[int, int]


@dataclass(frozen=True)
class Optimum(BoundedValue):
    """The best schedule, and how that is known."""

    schedule: DepthFirstSchedule
    space: DepthFirstSpace
    objective: str
    value: float
    """Value of the objective."""
    lower_bound: float
    """No schedule of the space is below it, but for rounding."""
    schedules_in_space: int
    stacks_bounded: tuple[Layers, ...]
    """Stacks of which each size of tiles has a bound of its own; the others are excluded as a whole."""
    costed: tuple[Costed, ...]
    """Stacks in the order in which they were costed."""
    unmappable: tuple[Unmappable, ...] = ()
    """What was to be costed too."""
    is_interrupted: bool = False
    """Whether Ctrl-C ended the search; it is the best schedule so far then."""

    def as_object(self) -> JsonObject:
        """The certificate as JSON values."""
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
