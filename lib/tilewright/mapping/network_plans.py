"""Network plans: contents of mapping files of other tools, which cut, place and fuse the layers of one network.

The entries of such a file depend on the network: they name loops by position, and give the sizes of tiles that several
layers share. A mapping holds the content of the file as a `NetworkPlan`. As soon as the network and the cores are
known, `plan_forms.applied_plan` replaces the plan by ordinary entries and by stacks.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class PlanSplit:
    """Cut of a layer into parts for different cores."""

    dimension: int
    """Position of the loop, in the loop order of the tool for which the file was written."""
    parts: int


@dataclass(frozen=True)
class PlanLayer:
    """Cores and parts of the layers that a name selects."""

    name: str
    """Name of a layer, or type of operators."""
    cores: tuple[int, ...]
    splits: tuple[PlanSplit, ...] = ()
    """Cuts into parts, as written in the file. From core to core, the index of the last cut changes fastest."""


@dataclass(frozen=True)
class PlanTile:
    """Tile of a group of fused layers, given by its size along one loop of one layer."""

    layer: str
    dimension: int
    """Position of the loop, in the loop order of the tool for which the file was written."""
    size: int
    """Number of indices of the loop that one tile has. A core computes all these indices before the next tile
    begins."""


@dataclass(frozen=True)
class PlanGroup:
    """Group of fused layers."""

    name: str
    layers: tuple[str, ...]
    tiles: tuple[PlanTile, ...] = ()
    """Tiles, innermost loop first."""


@dataclass(frozen=True)
class NetworkPlan:
    """Content of a mapping file that cuts, places and fuses the layers of one network."""

    form: str
    """Name of the form of the file, in `plan_forms.FORMS`."""
    layers: tuple[PlanLayer, ...]
    groups: tuple[PlanGroup, ...] = ()
