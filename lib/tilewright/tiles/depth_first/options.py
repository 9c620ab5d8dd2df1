"""Options of a depth-first schedule: options of the search for mappings, and the reading of the model.

A reading is a variant of the rules.
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

    docs/tiles.md#depth-first-schedules explains how the readings differ, and states how much their results differ.
    """

    name: ReadingName
    counts_offloading: bool
    """True if moving the last outputs of a tile out of the array and the inner memories takes extra time."""
    time_passes_on_used_ports: bool
    """True if each hop of a copy delays the next hops. If not, a hop that writes through a port which the copy has used
    before delays nothing.
    """
    kept_columns_have_all_rows: bool
    """True if a memory for kept columns must have room for the full height of the tile that keeps them, even if rows
    are recomputed.
    """
    last_tile_decides: bool
    """True if the last of several tiles that share kept data chooses their memory.

    Otherwise, the tile that needs most room chooses it.
    """
    own_tile_costs: bool
    """True if tiles are costed with the accesses and the loading of ZigZag of 2022, instead of the model profile."""


DEFAULT = Reading("tilewright", True, True, True, False, False)
DEFINES = Reading("defines", False, False, False, True, True)
READINGS: dict[str, Reading] = {reading.name: reading for reading in (DEFAULT, DEFINES)}


@dataclass(frozen=True, eq=False, repr=False)
class LayerOptions(LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """Options of the search for mappings of the layers of tiles."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name


@dataclass(frozen=True, eq=False, repr=False)
class TileOptions(LayerOptions):
    """Options of the search for mappings of the layers of tiles, and of the rules of depth-first schedules."""

    reading: ReadingName = "tilewright"
    """Rules of depth-first schedules. tilewright: the rules of tilewright. defines: the rules of DeFiNES, with the
    costs that DeFiNES computes for tiles; `model` and `objective` then have no effect."""

    def without_effect(self) -> dict[str, str]:
        """Reasons why options have no effect, by name of the option.

        If the reading has its own costs of tiles, some options have none.
        """
        found = super().without_effect()
        if READINGS[self.reading].own_tile_costs:
            found |= dict.fromkeys(("model", "objective"), f"has no effect with reading {self.reading}")
        return found
