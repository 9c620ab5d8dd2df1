"""Plan of a network: stacks, splits of layers between cores, tiles of layers, and schedule options.

A plan has all choices that a mapping file and the options of a run can fix, but not the cores.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.mapping.constraints import Mapping, TilingEntry
from tilewright.multicore.nodes.partial_sums import reductions_of
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer

Loops = tuple[TilingEntry, ...]
"""Outer loops of a layer, innermost first."""


@dataclass(frozen=True)
class LayerTiles:
    """Loops that cut one layer into parts, which can run on different cores, and each part into tiles."""

    between: Loops = ()
    """Loops over parts, which can run on different cores."""
    within: Loops = ()
    """Loops that cut each part into tiles, which run one after another. These loops have an effect only for a layer
    that is fused with other layers, and for steps along a reduction.
    """


@dataclass(frozen=True)
class Plan:
    """Plan for a network; each plan is one point of the search space."""

    tiles: tuple[LayerTiles, ...]
    """Tiles of each layer, in the order of the network."""
    stacks: tuple[tuple[int, ...], ...]
    """Node ids of the layers of each stack; layers of one stack are fused."""
    selection: str
    """Rule that chooses the node that a core runs next (option `scheduler_candidate_selection`)."""
    prefetch: tuple[str, ...]
    """Layer operands whose constants are fetched ahead (option `operands_to_prefetch`)."""
    prefetch_results: bool = False
    """True if every core fetches the results that it needs as soon as they exist (option `prefetch_results`)."""
    by_off_chip: tuple[int, ...] = ()
    """`layers_by_off_chip` of the schedule: layers whose results go through the off-chip memory."""

    @property
    def cut(self) -> tuple[object, ...]:
        """Key of the choices that decide the computation nodes: tiles and stacks, but not the schedule options."""
        return self.tiles, self.stacks

    @property
    def without_detours(self) -> "Plan":
        """Copy of the plan without detours through the off-chip memory. Plans that differ only in detours have equal
        copies, which serve as cache keys.
        """
        return replace(self, by_off_chip=())

    def tiling_options(self) -> TilingOptions:
        """Options of `tilewright cns` for this plan."""
        return TilingOptions(layer_stacks=self.stacks)

    def settings(self, given: ScheduleSettings) -> ScheduleSettings:
        """Settings of `tilewright schedule` for this plan. `given` has the settings that are not part of a plan."""
        chosen = {
            "scheduler_candidate_selection": self.selection,
            "operands_to_prefetch": self.prefetch,
            "prefetch_results": self.prefetch_results,
            "layers_by_off_chip": self.by_off_chip,
        }
        return ScheduleSettings(**{**given.as_dict(), **chosen})

    def with_tiles(self, changed: dict[int, LayerTiles]) -> "Plan":
        """Copy of the plan with new tiles for some layers. `changed` has these tiles, by position of the layer."""
        return replace(self, tiles=tuple(changed.get(place, tiles) for place, tiles in enumerate(self.tiles)))


def layers_of(workload: Workload) -> tuple[WorkloadNode, ...]:
    """Nodes of the network that are layers, in the order of the network. Only these nodes are cut and scheduled."""
    return tuple(node for node in workload.nodes if node.layer is not None)


def has_steps(layer: Layer, tiles: LayerTiles) -> bool:
    """True if the tiles of a layer are steps along a reduction."""
    return not {loop.dimension for loop in tiles.within}.isdisjoint(reductions_of(layer))


def planned_mapping(mapping: Mapping, nodes: Sequence[WorkloadNode], plan: Plan) -> Mapping:
    """Copy of a mapping with one entry for each layer. The entry of a layer has the cuts of the plan and the same cores
    as before. Entries of the mapping that do not have the name of a layer are kept.
    """
    entries = []
    for node, tiles in zip(nodes, plan.tiles, strict=True):
        assert node.layer is not None
        entry = mapping.constraints_for(node.layer)
        alone = entry.tiles_if_alone or (tiles.within != entry.intra_core_tiling and has_steps(node.layer, tiles))
        cut = replace(entry, inter_core_tiling=tiles.between, intra_core_tiling=tiles.within, tiles_if_alone=alone)
        entries.append(replace(cut, name=node.layer.name))
    named = {entry.name for entry in entries}
    return Mapping((*entries, *(entry for entry in mapping.entries if entry.name not in named)))
