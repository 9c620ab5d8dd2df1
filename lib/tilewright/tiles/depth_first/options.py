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
    """What a reading counts and how; docs/tiles.md#depth-first-schedules names each difference with its size."""

    name: ReadingName
    counts_offloading: bool
    """Whether the last outputs of a tile leave the array, and its memories, in time of their own."""
    time_passes_on_used_ports: bool
    """Whether a hop of a copy whose receiving port the copy has used before takes time for the hops after it."""
    kept_columns_have_all_rows: bool
    """Whether columns are as high as the tile that keeps them where rows are computed again, when room is sought."""
    last_tile_decides: bool
    """Whether, of tiles that share kept data, the last one alone says where they lie, not who needs most room."""
    own_tile_costs: bool
    """Whether tiles are costed with the accesses and loading of ZigZag in 2022, instead of the model profile."""


DEFAULT = Reading("tilewright", True, True, True, False, False)
DEFINES = Reading("defines", False, False, False, True, True)
READINGS: dict[str, Reading] = {reading.name: reading for reading in (DEFAULT, DEFINES)}


@dataclass(frozen=True, eq=False, repr=False)
class LayerOptions(LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """How the mapping of a layer of a tile is searched."""

    model: Annotated[str, ParameterCheck(profile_by_name)] = CORRECTED.name


@dataclass(frozen=True, eq=False, repr=False)
class TileOptions(LayerOptions):
    """How the mapping of each layer of each tile is searched, and whose rules say what tiles there are."""

    reading: ReadingName = "tilewright"
    """Whose depth-first rules: tilewright, or defines, those of DeFiNES with its own costs of tiles, for which `model`
    and `objective` play no part."""

    def without_effect(self) -> dict[str, str]:
        """What the costs of a reading do not go by."""
        found = super().without_effect()
        if READINGS[self.reading].own_tile_costs:
            found |= dict.fromkeys(("model", "objective"), f"has no effect with reading {self.reading}")
        return found
