"""Options of a depth-first schedule: options of the search for mappings, and the reading (variant) of the model."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tilewright.base.objectives import Goal
from tilewright.base.parameters import ParameterCheck
from tilewright.base.profile import CORRECTED, profile_by_name
from tilewright.search.options import BoundaryParameters, LomaParameters, SpatialParameters

ReadingName = Literal["tilewright", "defines"]


@dataclass(frozen=True)
class Reading:
    """Reading of the depth-first model: the rules in which variants of the model differ.

    docs/tiles.md#depth-first-schedules explains the differences between the readings and states how large they are.
    """

    name: ReadingName
    counts_offloading: bool
    """Whether moving the last outputs of a tile out of the array and the inner memories takes extra time."""
    time_passes_on_used_ports: bool
    """Whether a hop delays the next hops of a copy even if the copy has used the receiving port of the hop before."""
    kept_columns_have_all_rows: bool
    """Whether the search for room counts columns with the full height of the tile that keeps them.

    If so, they have this height even if rows are recomputed.
    """
    last_tile_decides: bool
    """Whether the memory of kept data is chosen by the last of the tiles that share these data.

    Otherwise, the tile that needs most room determines the memory.
    """
    own_tile_costs: bool
    """Whether the costs of tiles are computed with the accesses and the loading of ZigZag of 2022, instead of the model
    profile."""


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
    """Rules of depth-first schedules. tilewright: the rules of tilewright. defines: the rules of DeFiNES, with the
    costs that DeFiNES computes for tiles; `model` and `objective` then have no effect."""

    def without_effect(self) -> dict[str, str]:
        """Reasons why options have no effect, by option. A reading that computes costs of tiles differently ignores
        some options."""
        found = super().without_effect()
        if READINGS[self.reading].own_tile_costs:
            found |= dict.fromkeys(("model", "objective"), f"has no effect with reading {self.reading}")
        return found
