"""Stages for data locality: data between two layers stay in the innermost memory that is large enough for the data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.base.errors import InputError, Label, Problem, TilewrightError
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
    """Finds the outermost memory that each operand of each layer needs. If an on-chip memory is large enough for the
    data between two layers, these data stay on the chip.

    This stage must come before Workload. After Workload, the stage RemoveUnusedMemory removes, for each operand of a
    layer, all memories above the memory that was found for this operand. If the mapping file gives `memory_reach` for
    every layer, these values are used without a search.

    Example: [SearchUnusedMemory, Workload, RemoveUnusedMemory, MinimalLatency, SpatialMappingGenerator,
    SpatialMappingConversion, Loma, CostModel]
    """

    takes = NetworkProblem
    gives = NetworkProblem
    stands_for = "SearchUnusedMemoryStage, later SearchInterLayerDataLocalityStage"

    def change(self, item: NetworkProblem) -> NetworkProblem:
        """Network problem with `memory_reach`: the outermost memories that the data of each layer reach. If the mapping
        file gives `memory_reach` for all layers, the problem is returned unchanged. Raises InputError if the file gives
        it for only some layers.
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
    """True if the mapping file gives `memory_reach` for all layers. Raises InputError if only some layers have it."""
    layers = [node.layer for node in item.workload.layers_in_order if node.layer]
    entries = [item.mapping.constraints_for(layer) for layer in layers]
    without = [layer.name for layer, entry in zip(layers, entries, strict=True) if entry.memory_reach is None]
    if 0 < len(without) < len(layers):
        message = "with exploit_data_locality, either all layers or no layers must have a memory_reach"
        told = f"{len(without)} of {len(layers)} layers have no memory_reach, such as {without[0]}"
        raise InputError([Problem(f"{message}: {told}", path=Label(item.workload.name))])
    return bool(layers) and not without


@dataclass(frozen=True)
class RemoveUnusedMemory(Change):
    """Removes from the core all memories that the data of a layer do not reach. The layer is then mapped on the smaller
    core.

    This stage must come after Workload. SearchUnusedMemory must come before Workload.

    Example: [Sum, SearchUnusedMemory, Workload, RemoveUnusedMemory, MinimalEnergy, SpatialMappingGenerator,
    SpatialMappingConversion, Loma, CostModel]
    """

    takes = LayerProblem
    gives = LayerProblem
    takes_unmapped = True
    needs = ("SearchUnusedMemory",)
    stands_for = "RemoveUnusedMemoryStage, later ExploitInterLayerDataLocalityStage"

    def change(self, item: LayerProblem) -> LayerProblem:
        """Layer with a core that has only the memories that the data of the layer reach."""
        from tilewright.mapping.locality import remove_unused_memories

        if item.memory_reach is None:
            return item
        links = item.constraints.memory_operand_links
        return replace(item, core=remove_unused_memories(item.core, item.layer, links, item.memory_reach))


def locality_summary(item: NetworkProblem, records: Sequence[LayerRecord], model: str) -> JsonObject:
    """Part of the summary about data that stay on the chip between layers; {} if it is not known which data stay there.

    `layers_below_top` is the number of layers with an operand that never uses the outermost memory of the core. For a
    run without `exploit_data_locality`, it is the number that the run would have with this option.
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
    """List with one truth value for each layer, in execution order. A value is True if, with `exploit_data_locality`,
    an operand of the layer would stay in a memory below the top memory. None if the values are not known.
    """
    from tilewright.mapping.locality import find_memory_reach

    if item.workload.is_folded:
        return None  # one layer stands for several, so its neighbours are not known
    even = any(record.temporal_mapping_type != UNEVEN for record in records)
    try:
        reaches = find_memory_reach(item.workload, item.core, item.mapping, profile_by_name(model), even_mapping=even)
    except TilewrightError:
        return None  # such a run is possible with stages of the user
    layers = [node.layer for node in item.workload.layers_in_order if node.layer]
    return [_is_below(item, layer, reach) for layer, reach in zip(layers, reaches, strict=True)]


def _is_below(item: NetworkProblem, layer: Layer, reach: MemoryReach) -> bool:
    roles = layer_roles(layer, item.mapping.constraints_for(layer).memory_operand_links)
    ends = [(roles.activation, reach.activation), (roles.output, reach.output)]
    if roles.weight is not None and reach.weight is not None:
        ends.append((roles.weight, reach.weight))
    return any(memory < top_memory(item.core, operand) for operand, memory in ends)
