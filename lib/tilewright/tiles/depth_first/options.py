"""Options of a depth-first schedule: the search for mappings of layers of tiles, and the reading of the model."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.base.objectives import Goal
from tilewright.base.parameters import ParameterCheck
from tilewright.base.profile import CORRECTED, profile_by_name
from tilewright.search.options import BoundaryParameters, LomaParameters, SpatialParameters

ReadingName = Literal["tilewright", "defines"]


@dataclass(frozen=True)
class Reading:
    """Rules of a reading of the depth-first model.

    docs/tiles.md#depth-first-schedules explains each difference between the readings, and how large it is.
    """

    name: ReadingName
    counts_offloading: bool
    """Whether writing the last outputs of a tile out of the array and its memories takes extra time."""
    time_passes_on_used_ports: bool
    """Whether a hop through a receiving port that the copy has used before delays the hops after it."""
    kept_columns_have_all_rows: bool
    """Whether the search for room counts columns with the full height of the tile that keeps them.

    If so, they have this height even if rows are recomputed.
    """
    last_tile_decides: bool
    """Whether the last of the tiles that share kept data decides in which memory the data lie.

    Otherwise, the tile that needs most room decides.
    """
    own_tile_costs: bool
    """Whether costs of tiles use the accesses and the loading of ZigZag of 2022, instead of the model profile."""


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
    """Rules of depth-first schedules. tilewright: the rules of tilewright. defines: the rules of DeFiNES with its costs
    of tiles; `model` and `objective` then have no effect.
    """

    def without_effect(self) -> dict[str, str]:
        """Options without effect, with the reasons; a reading with its own costs of tiles ignores some options."""
        found = super().without_effect()
        if READINGS[self.reading].own_tile_costs:
            found |= dict.fromkeys(("model", "objective"), f"has no effect with reading {self.reading}")
        return found
