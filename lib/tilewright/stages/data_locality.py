"""Stages that keep data between layers in the lowest memory that has room for it."""

from dataclasses import dataclass, replace

from tilewright.errors import InputError, Problem
from tilewright.profile import profile_by_name
from tilewright.stages.base import Change
from tilewright.stages.descriptions import NetworkProblem
from tilewright.stages.items import LayerProblem


@dataclass(frozen=True)
class SearchUnusedMemory(Change):
    """Finds for each layer of a network up to which memory its data have to go, so that what the next layer uses stays
    on the chip where there is room.

    Stands before Workload; RemoveUnusedMemory, after it, makes use of what is found. Where the mapping file says it for
    every layer (`memory_reach`) that counts.

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
        """The network with the reach of its data. Raises InputError where the mapping file says it for some layers."""
        from tilewright.mapping.data_locality import find_memory_reach

        if _is_given(item):
            return item
        types = {self.temporal_mapping_type, *(entry.temporal_mapping_type for entry in item.mapping.entries)}
        reach = find_memory_reach(
            item.workload,
            item.core,
            item.mapping,
            profile_by_name(self.model),
            self.workload_data_always_from_top_mem,
            even_mapping="even" in types,
        )
        return replace(item, memory_reach=reach)


def _is_given(item: NetworkProblem) -> bool:
    """Whether the mapping file says how far the data go. Raises InputError if it does for some layers alone."""
    layers = [node.layer for node in item.workload.layers_in_order if node.layer]
    entries = [item.mapping.constraints_for(layer) for layer in layers]
    without = [layer.name for layer, entry in zip(layers, entries, strict=True) if entry.memory_reach is None]
    if 0 < len(without) < len(layers):
        message = "exploit_data_locality decides for all layers or, where all have a memory_reach, for none"
        told = f"{len(without)} of {len(layers)} layers have none, such as {without[0]}"
        raise InputError([Problem(f"{message}: {told}", path=item.workload.name)])
    return bool(layers) and not without


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
