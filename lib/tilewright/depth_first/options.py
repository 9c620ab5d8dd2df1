"""What a depth-first schedule is asked for: how the layers of its tiles are costed, and by whose rules."""

from dataclasses import dataclass
from typing import Annotated

from tilewright.depth_first.reading import ReadingName
from tilewright.objectives import Goal
from tilewright.parameters import Check
from tilewright.profile import CORRECTED, profile_by_name
from tilewright.search.options import BoundaryParameters, LomaParameters, SpatialParameters


@dataclass(frozen=True, eq=False, repr=False)
class LayerOptions(LomaParameters, BoundaryParameters, SpatialParameters, Goal):
    """How the mapping of a layer of a tile is searched."""

    model: Annotated[str, Check(profile_by_name)] = CORRECTED.name


@dataclass(frozen=True, eq=False, repr=False)
class TileOptions(LayerOptions):
    """How the mapping of each layer of each tile is searched, and whose rules say what tiles there are."""

    reading: ReadingName = "tilewright"
    """Whose depth-first rules: tilewright, or defines, those of DeFiNES with its own costs of tiles, for which `model`
    and `objective` play no part."""
