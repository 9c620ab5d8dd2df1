"""Options of a depth-first schedule: options of the search for mappings, and the reading of the depth-first model.

Here, a reading is a variant of the rules by which the model computes the cost of a schedule.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.base.objectives import Goal
from tilewright.base.parameters import ParameterCheck
from tilewright.base.profile import CORRECTED, profile_by_name
from tilewright.search.options import BoundaryParameters, LomaParameters, SpatialParameters

ReadingName = Literal["tilewright", "defines"]


@dataclass(frozen=True)
class Reading:
    """Reading of the depth-first model: a variant of its rules.

    docs/tiles/depth-first.md explains the differences between the readings, and how much their results
    differ.
    """

    name: ReadingName
    counts_offloading: bool
    """True if off-loading takes extra time: moving the last outputs of a tile out of the array and the inner memories.
    """
    time_passes_on_used_ports: bool
    """True if each hop of a copy starts after the end of the hop before it. If false, there is one exception: if a hop
    writes through a port that the copy has already used, the next hop starts together with this hop.
    """
    kept_columns_have_all_rows: bool
    """True if kept columns need room for the full height of their tile, although other tiles compute some of these rows
    again. If false, they need room only for the smaller height that the tile has if rows are kept, too.
    """
    last_tile_decides: bool
    """True if the last of the tiles that share kept data chooses the memory of the data. If false, each of these tiles
    proposes a memory, and the outermost of the proposed memories is taken.
    """
    own_tile_costs: bool
    """True if the accesses and the loading of tiles follow the rules of the ZigZag version of 2022. False if they
    follow the rules of the model profile.
    """


DEFAULT = Reading("tilewright", True, True, True, False, False)
DEFINES = Reading("defines", False, False, False, True, True)
READINGS: dict[str, Reading] = {reading.name: reading for reading in (DEFAULT, DEFINES)}


@dataclass(frozen=True, eq=False, repr=False)
class LayerOptions(LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """Options of the search for mappings of the layers of tiles."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name


@dataclass(frozen=True, eq=False, repr=False)
class TileOptions(LayerOptions):
    """Options of depth-first schedules: the rules of the schedules, and the options for the search of a mapping for
    each layer of a tile.
    """

    reading: ReadingName = "tilewright"
    """Rules of depth-first schedules. tilewright: the rules of tilewright. defines: the rules of DeFiNES, with the
    costs that DeFiNES computes for tiles; `model` and `objective` then have no effect.
    """

    def without_effect(self) -> dict[str, str]:
        """Reasons why options have no effect, by name of the option.

        If the chosen reading of the model (`reading`) has its own costs of tiles, the options `model` and `objective`
        have no effect.
        """
        found = super().without_effect()
        if READINGS[self.reading].own_tile_costs:
            found |= dict.fromkeys(("model", "objective"), f"has no effect with `reading: {self.reading}`")
        return found
