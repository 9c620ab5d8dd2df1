"""Items of a pipeline (networks, layers, mappings, hardware) as keywords for the user's stages."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.hardware.core import Accelerator as Described
from tilewright.main_stage import keywords as words
from tilewright.main_stage.accelerator import Accelerator, core_of
from tilewright.main_stage.layer import LayerNode, SpatialMapping, SpatialMappingInternal, TemporalMapping, unrolling_of
from tilewright.main_stage.names import Shown
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.items import LayerProblem, SpatialCandidate, TemporalProblem
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.spatial_conversion import SpatialMappingConversion
from tilewright.search.batch import OrderBatch
from tilewright.workload.graph import WorkloadNode

Keywords = dict[str, Any]
LAYER, SPATIAL, SPATIAL_INT, TEMPORAL = "layer", "spatial_mapping", "spatial_mapping_int", "temporal_mapping"


class DNNWorkload(Shown):
    """Network that parsers have read. Iterating over it gives its layers, as in `node_list`."""

    def __init__(self, item: Any) -> None:
        self._item = item
        self._made()

    @property
    def name(self) -> str:
        """Name of the network."""
        network = self._network
        return network.name if network is not None else ""

    @property
    def _network(self) -> Any:
        item = self._item
        if isinstance(item, CnProblem | CostedCnProblem):
            item = item.descriptions
        return item.network if isinstance(item, Descriptions) else item.workload

    @property
    def node_list(self) -> list[LayerNode]:
        """Layers in execution order. The list is empty until the parsers have read hardware, workload and mapping. On
        several cores, the list is always empty.
        """
        nodes = self._network.layers_in_order
        if not isinstance(self._item, NetworkProblem):
            return []
        item = self._item
        return [
            LayerNode(
                LayerProblem(node.layer, item.core, item.mapping.constraints_for(node.layer)), node.layer, node.node_id
            )
            for node in nodes
        ]

    def topological_sort(self) -> Iterator[LayerNode]:
        """Layers in execution order, as in `node_list`."""
        return iter(self.node_list)

    __iter__ = topological_sort

    def __len__(self) -> int:
        return len(self._network.layers_in_order)

    def __str__(self) -> str:
        return f"DNNWorkload({self.name})"

    __repr__ = __str__


class System(Shown):
    """Accelerator with several cores that a parser has read."""

    def __init__(self, accelerator: Any) -> None:
        self._accelerator = accelerator
        self.name = accelerator.name
        self._made()

    @property
    def cores(self) -> list[Accelerator]:
        """Cores, in the order of their ids."""
        accelerator = self._accelerator
        return [Accelerator(accelerator.core_of[place.core_id]) for place in accelerator.places]

    def __str__(self) -> str:
        return f"Accelerator({self.name})"

    __repr__ = __str__


def keywords_of(item: Any, node: WorkloadNode | None = None) -> Keywords:
    """Keywords that describe an item of the pipeline to a user's stage. The item is a `Descriptions` object, or the
    problem of a network, of a layer, or of a temporal mapping. `node` is the layer that is being mapped.

    Raises TypeError for any other item.
    """
    if isinstance(item, Descriptions):
        found: Keywords = {}
        if item.network is not None:
            found[words.WORKLOAD] = DNNWorkload(item)
        if item.accelerator is not None:
            found[words.ACCELERATOR] = shown_accelerator(item.accelerator)
        return found
    if isinstance(item, NetworkProblem):
        return {words.WORKLOAD: DNNWorkload(item), words.ACCELERATOR: Accelerator(item.core)}
    if isinstance(item, SystemProblem | CnProblem | CostedCnProblem):
        given = item if isinstance(item, SystemProblem) else item.descriptions
        return {words.WORKLOAD: DNNWorkload(item), words.ACCELERATOR: System(given.accelerator)}
    if isinstance(item, LayerProblem):
        return {LAYER: layer_node(item, node), words.ACCELERATOR: Accelerator(item.core)}
    if isinstance(item, TemporalProblem):
        shown = SpatialMappingInternal(item)
        return {SPATIAL: shown, SPATIAL_INT: shown, words.ACCELERATOR: Accelerator(item.core)}
    raise TypeError(f"there are no keywords that describe {type(item).__name__}")


def layer_node(problem: LayerProblem, node: WorkloadNode | None) -> LayerNode:
    """View of a layer for the user's stages. `node` gives its name and its number in the network. If `node` is None,
    the name comes from the layer in `problem`, and the number is 0.
    """
    layer = node.layer if node is not None and node.layer is not None else problem.layer
    return LayerNode(problem, layer, node.node_id if node is not None else 0)


def shown_accelerator(accelerator: Any) -> Any:
    """View of the accelerator that a parser has read, for the user's stages."""
    is_one = isinstance(accelerator, Described) and len(accelerator.cores) == 1
    return Accelerator(accelerator.cores[0]) if is_one else System(accelerator)


def descriptions_of(keywords: Mapping[str, Any]) -> Descriptions:
    """Hardware, workload and mapping in the keywords, as paths of files or as objects that were read from files."""
    hardware, workload = words.given(keywords, words.ACCELERATOR), words.given(keywords, words.WORKLOAD)
    read = Descriptions(mapping=words.given(keywords, words.MAPPING))
    if isinstance(workload, DNNWorkload):
        read = replace(workload._item, mapping=words.given(keywords, words.MAPPING, workload._item.mapping))
    else:
        read = replace(read, workload=workload)
    if isinstance(hardware, Accelerator):
        core = hardware.as_core()
        return replace(read, hardware=None, accelerator=Described(core.name, (core,)))
    if isinstance(hardware, System):
        return replace(read, hardware=None, accelerator=hardware._accelerator)
    return replace(read, hardware=hardware)


def network_problem_of(keywords: Mapping[str, Any]) -> Any:
    """Problem of mapping the network in the keywords. With several cores, the keyword `workload` has a view of an item
    of the multi-core flow, and the result is this item.

    Raises InputError if the keywords do not contain a network and an accelerator that parsers have read. Raises
    InputError also if a stage changes the accelerator too late. With several cores, a change is too late in any stage
    below AcceleratorParserStage. On one core, a change is too late in any stage below SearchUnusedMemoryStage.
    """
    workload, hardware = words.given(keywords, words.WORKLOAD), words.given(keywords, words.ACCELERATOR)
    if not isinstance(workload, DNNWorkload):
        raise missing(words.WORKLOAD, "a network that a parser has read")
    item = workload._item
    if isinstance(item, SystemProblem | CnProblem | CostedCnProblem):
        given = item if isinstance(item, SystemProblem) else item.descriptions
        if not isinstance(hardware, System) or hardware._accelerator is not given.accelerator:
            message = "with several cores, only a stage before AcceleratorParserStage can change the accelerator"
            raise InputError([Problem(message, path=words.ACCELERATOR)])
        return item
    core = core_of(hardware)
    if core is None or not isinstance(item, NetworkProblem):
        raise missing(words.ACCELERATOR, "an accelerator that AcceleratorParserStage has read")
    if core == item.core:
        return item
    if item.memory_reach:
        message = (
            "a stage after SearchUnusedMemoryStage changed the accelerator; change it in a stage before"
            " SearchUnusedMemoryStage"
        )
        raise InputError([Problem(message, path=words.ACCELERATOR)])
    return replace(item, accelerator=Described(core.name, (core,)))


def layer_problem_of(keywords: Mapping[str, Any]) -> LayerProblem:
    """Problem of mapping the layer in the keywords. Raises InputError if the keywords contain no layer or no
    accelerator.
    """
    layer, core = keywords.get(LAYER), core_of(words.given(keywords, words.ACCELERATOR))
    if not isinstance(layer, LayerNode):
        raise missing(LAYER, "a layer from WorkloadStage")
    if core is None:
        raise missing(words.ACCELERATOR, "an accelerator that AcceleratorParserStage has read")
    return layer.problem_on(core)


def temporal_problem_of(keywords: Mapping[str, Any], parameters: Mapping[str, Any]) -> TemporalProblem:
    """Problem of ordering the temporal loops of a layer, for the spatial mapping in the keywords.

    `parameters` has the parameters of the stage SpatialMappingConversion. Raises InputError if the keywords contain no
    layer or no spatial mapping. Raises MappingError if the spatial mapping is impossible.
    """
    spatial, core = keywords.get(SPATIAL), core_of(words.given(keywords, words.ACCELERATOR))
    if core is None:
        raise missing(words.ACCELERATOR, "an accelerator that AcceleratorParserStage has read")
    if isinstance(spatial, SpatialMappingInternal):
        found = spatial._problem
        if found.core == core:
            return found
        unrolling = found.spatial.unrolling
    elif isinstance(spatial, Mapping):
        unrolling = unrolling_of(spatial)
    else:
        raise missing(SPATIAL, "a spatial mapping from an earlier stage, or a SpatialMapping")
    problem = layer_problem_of(keywords)
    candidate = SpatialCandidate.of(problem, unrolling)
    return converted(candidate, parameters)


def converted(candidate: SpatialCandidate, parameters: Mapping[str, Any]) -> TemporalProblem:
    """Search problem for the temporal loop orders of one spatial mapping, `candidate`. `parameters` has the parameters
    of the stage SpatialMappingConversion.

    Raises MappingError if the spatial mapping is impossible.
    """
    conversion = SpatialMappingConversion(**parameters)
    return conversion.prepared(candidate)


def order_batch_of(keywords: Mapping[str, Any], parameters: Mapping[str, Any]) -> tuple[OrderBatch, int | None]:
    """Pair (batch, row) of the temporal mapping in the keywords. The row is None if this mapping is the only one in the
    batch.

    Raises InputError if the keywords contain no temporal mapping.
    """
    temporal = keywords.get(TEMPORAL)
    if not isinstance(temporal, TemporalMapping):
        raise missing(TEMPORAL, "a temporal mapping from an earlier stage, or a TemporalMapping")
    problem = temporal_problem_of(keywords, parameters)
    source = temporal.source()
    if source is not None and source[0].problem is problem:
        return source
    if source is None:
        return temporal.as_batch(problem), None
    batch, row = source
    given = batch.level_boundaries(row)
    return OrderBatch.of_orders(problem, [batch.loop_order(row)], None if given is None else [given]), None


class NotHandedOnError(InputError):
    """Error for a user's stage that does not pass on a keyword. The stage below needs this keyword."""


def missing(name: str, allowed: str) -> NotHandedOnError:
    """Error for the keyword `name`. The stage below needs it, but a user's stage did not pass it on with a suitable
    value.

    `allowed` describes suitable values.
    """
    return NotHandedOnError([Problem("was not passed on to the next stage", path=name, allowed=allowed)])


def spatial_of(problem: TemporalProblem) -> SpatialMapping:
    """Spatial mapping of a problem: array dimension -> loop dimension -> unrolling factor."""
    return SpatialMappingInternal(problem).unrolling
