"""Stages that keep data between layers in the lowest memory that has room for it."""

from dataclasses import dataclass, replace

from tilewright.profile import profile_by_name
from tilewright.stages.base import Change
from tilewright.stages.descriptions import NetworkProblem
from tilewright.stages.items import LayerProblem


@dataclass(frozen=True)
class SearchUnusedMemory(Change):
    """Finds for each layer of a network up to which memory its data have to go, so that what the next layer uses stays
    on the chip where there is room.

    Stands before Workload; RemoveUnusedMemory, after it, makes use of what is found.

    Example:
    [SearchUnusedMemory, Workload, RemoveUnusedMemory, MinimalLatency, SpatialMappingGenerator,
    SpatialMappingConversion, Loma, CostModel]
    """

    model: str = "zigzag-3.9.1"
    """Model profile."""
    temporal_mapping_type: str = "uneven"
    """uneven or even, as in SpatialMappingConversion."""
    workload_data_always_from_top_mem: bool = False
    """The input of the first and the output of the last layer use the top memory in any case."""

    takes = NetworkProblem
    gives = NetworkProblem
    stands_for = "SearchUnusedMemoryStage, later SearchInterLayerDataLocalityStage"

    def change(self, item: NetworkProblem) -> NetworkProblem:
        """The network with the reach of its data."""
        from tilewright.mapping.data_locality import find_memory_reach

        reach = find_memory_reach(
            item.workload,
            item.core,
            item.mapping,
            profile_by_name(self.model),
            self.workload_data_always_from_top_mem,
            even_mapping=self.temporal_mapping_type == "even",
        )
        return replace(item, memory_reach=reach)


@dataclass(frozen=True)
class RemoveUnusedMemory(Change):
    """Maps a layer on the core without the memories that its data do not reach.

    Stands after Workload and needs SearchUnusedMemory before it.

    Example:
    [Sum, SearchUnusedMemory, Workload, RemoveUnusedMemory, MinimalEnergy, SpatialMappingGenerator,
    SpatialMappingConversion, Loma, CostModel]
    """

    takes = LayerProblem
    gives = LayerProblem
    needs = ("SearchUnusedMemory",)
    stands_for = "RemoveUnusedMemoryStage, later ExploitInterLayerDataLocalityStage"

    def change(self, item: LayerProblem) -> LayerProblem:
        """The layer on its own, smaller core."""
        from tilewright.mapping.data_locality import remove_unused_memories

        if item.memory_reach is None:
            return item
        links = item.constraints.memory_operand_links
        return replace(item, core=remove_unused_memories(item.core, item.layer, links, item.memory_reach))
