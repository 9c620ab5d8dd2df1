"""Stages that keep data between layers in the lowest memory that has room for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.base.json_values import JsonObject
from tilewright.base.profile import profile_by_name
from tilewright.cost.record import UNEVEN, LayerRecord
from tilewright.hardware.core import Core
from tilewright.mapping.memory_reach import MemoryReach, layer_roles, top_memory
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.items import LayerProblem
from tilewright.search.options import LocalityParameters
from tilewright.workload.graph import refuse_folded
from tilewright.workload.layer import Layer


@dataclass(frozen=True)
class SearchUnusedMemory(LocalityParameters, Change):
    """Finds, for each layer of a network, the outermost memory that its data need, so that data for the next layer stay
    on the chip if there is room.

    Must come before Workload; RemoveUnusedMemory, after Workload, applies the result. If the mapping file gives
    `memory_reach` for every layer, that is used instead.

    Example: [SearchUnusedMemory, Workload, RemoveUnusedMemory, MinimalLatency, SpatialMappingGenerator,
    SpatialMappingConversion, Loma, CostModel]
    """

    takes = NetworkProblem
    gives = NetworkProblem
    stands_for = "SearchUnusedMemoryStage, later SearchInterLayerDataLocalityStage"

    def change(self, item: NetworkProblem) -> NetworkProblem:
        """Network with the reach of its data. Raises InputError if the mapping file gives the reach only for some
        layers.
        """
        from tilewright.mapping.locality import find_memory_reach

        if _is_given(item):
            return item
        refuse_folded(item.workload, "exploit_data_locality follows data from layer to layer")
        types = {self.temporal_mapping_type, *(entry.temporal_mapping_type for entry in item.mapping.entries)}
        reach = find_memory_reach(
            item.workload,
            item.core,
            item.mapping,
            self.profile,
            self.workload_data_always_from_top_mem,
            even_mapping="even" in types,
        )
        return replace(item, memory_reach=reach)


def _is_given(item: NetworkProblem) -> bool:
    """Whether the mapping file gives the reach of the data. Raises InputError if it does so only for some layers."""
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

    Must come after Workload, and needs SearchUnusedMemory before it.

    Example: [Sum, SearchUnusedMemory, Workload, RemoveUnusedMemory, MinimalEnergy, SpatialMappingGenerator,
    SpatialMappingConversion, Loma, CostModel]
    """

    takes = LayerProblem
    gives = LayerProblem
    takes_unmapped = True
    needs = ("SearchUnusedMemory",)
    stands_for = "RemoveUnusedMemoryStage, later ExploitInterLayerDataLocalityStage"

    def change(self, item: LayerProblem) -> LayerProblem:
        """Layer on its own, smaller core."""
        from tilewright.mapping.locality import remove_unused_memories

        if item.memory_reach is None:
            return item
        links = item.constraints.memory_operand_links
        return replace(item, core=remove_unused_memories(item.core, item.layer, links, item.memory_reach))


def locality_summary(item: NetworkProblem, records: Sequence[LayerRecord], model: str) -> JsonObject:
    """Place of the data between layers in a run, as plain data for the summary; {} if the model is not known.

    `layers_below_top` counts the layers with an operand that ends below the last memory of the core: in the run itself
    if it exploits data locality, else in a hypothetical run that does.
    """
    layers = [node.layer for node in item.workload.layers_in_order if node.layer]
    exploited = any(record.memory_reach is not None for record in records)
    if exploited:
        below = sum(len(record.layer_names) for record in records if _ends_below(item.core, record))
    else:
        found = _reaches_if_exploited(item, records, model)
        if found is None:
            return {}
        below = sum(found)
    return {"data_locality": {"exploited": exploited, "layers": len(layers), "layers_below_top": below}}


def _ends_below(core: Core, record: LayerRecord) -> bool:
    link = record.memory_operand_links
    topmost = record.memory_reach.topmost if record.memory_reach is not None else {}
    return any(core.memories[top_memory(core, link[operand])].name != name for operand, name in topmost.items())


def _reaches_if_exploited(item: NetworkProblem, records: Sequence[LayerRecord], model: str) -> list[bool] | None:
    """Whether the data of each layer would stay below the top memory; None if not known."""
    from tilewright.mapping.locality import find_memory_reach

    if item.workload.is_folded:
        return None  # data cannot be followed between layers of which one stands for several
    even = any(record.temporal_mapping_type != UNEVEN for record in records)
    try:
        reaches = find_memory_reach(item.workload, item.core, item.mapping, profile_by_name(model), even_mapping=even)
    except TilewrightError:
        return None  # stages of the user's may cost what the project's own cannot
    layers = [node.layer for node in item.workload.layers_in_order if node.layer]
    return [_is_below(item, layer, reach) for layer, reach in zip(layers, reaches, strict=True)]


def _is_below(item: NetworkProblem, layer: Layer, reach: MemoryReach) -> bool:
    roles = layer_roles(layer, item.mapping.constraints_for(layer).memory_operand_links)
    ends = [(roles.activation, reach.activation), (roles.output, reach.output)]
    if roles.weight is not None and reach.weight is not None:
        ends.append((roles.weight, reach.weight))
    return any(memory < top_memory(item.core, operand) for operand, memory in ends)
