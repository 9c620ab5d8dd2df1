"""Options of a depth-first schedule: how the layers of its tiles are costed, and by which reading of the model."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.base.objectives import Goal
from tilewright.base.parameters import ParameterCheck
from tilewright.base.profile import CORRECTED, profile_by_name
from tilewright.search.options import BoundaryParameters, LomaParameters, SpatialParameters

ReadingName = Literal["tilewright", "defines"]


@dataclass(frozen=True)
class Reading:
    """Rules of a reading; docs/tiles.md#depth-first-schedules explains each difference with its size."""

    name: ReadingName
    counts_offloading: bool
    """Whether writing the last outputs of a tile out of the array and its memories takes extra time."""
    time_passes_on_used_ports: bool
    """Whether a hop through a receiving port that the copy has used before delays the hops after it."""
    kept_columns_have_all_rows: bool
    """Whether, in the search for room, columns have the full height of the tile that keeps them even if rows are
    recomputed.
    """
    last_tile_decides: bool
    """Whether the last of the tiles that share kept data decides where the data lie; else the tile that needs most
    room does.
    """
    own_tile_costs: bool
    """Whether tiles are costed with the accesses and loading of ZigZag of 2022, instead of the model profile."""


DEFAULT = Reading("tilewright", True, True, True, False, False)
DEFINES = Reading("defines", False, False, False, True, True)
READINGS: dict[str, Reading] = {reading.name: reading for reading in (DEFAULT, DEFINES)}


@dataclass(frozen=True, eq=False, repr=False)
class LayerOptions(LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """Options of the search for mappings of layers of tiles."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name


@dataclass(frozen=True, eq=False, repr=False)
class TileOptions(LayerOptions):
    """Options of the search for mappings of layers of tiles, and of the rules that define the tiles."""

    reading: ReadingName = "tilewright"
    """Rules of depth-first schedules: tilewright; or defines, the rules of DeFiNES with its own costs of tiles, for
    which `model` and `objective` have no effect.
    """

    def without_effect(self) -> dict[str, str]:
        """Options that have no effect with the costs of a reading."""
        found = super().without_effect()
        if READINGS[self.reading].own_tile_costs:
            found |= dict.fromkeys(("model", "objective"), f"has no effect with reading {self.reading}")
        return found
