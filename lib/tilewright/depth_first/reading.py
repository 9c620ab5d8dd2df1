"""Two readings of the depth-first model: the default one, and that of DeFiNES with what it does in another way."""

from dataclasses import dataclass
from typing import Literal

ReadingName = Literal["tilewright", "defines"]


@dataclass(frozen=True)
class Reading:
    """What a reading counts and how; docs/depth-first.md names each difference with its size."""

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
