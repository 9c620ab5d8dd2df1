"""Run of a network through the stages of a script.

The results of the layers are (CME, further information) pairs, in execution order.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tilewright.base.errors import InputError, MappingError, count_of
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.cost.record import LayerRecord
from tilewright.main_stage.evaluation import Context, CostModelEvaluation, CumulativeCME
from tilewright.main_stage.layer import LayerNode
from tilewright.main_stage.own import (
    Attached,
    OwnStage,
    as_said,
    attach,
    mapping_key,
    session,
)
from tilewright.main_stage.plan import MAPPERS, NO_CONSTRAINTS
from tilewright.main_stage.protocol import Pair
from tilewright.main_stage.several_cores import StreamCostModelEvaluation, draw
from tilewright.main_stage.views import (
    LAYER,
    Keywords,
    layer_node,
    spatial_of,
)
from tilewright.pipeline.stages.base import Control, Rest, Stage
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.items import Evaluations, LayerProblem, MappedWorkload
from tilewright.pipeline.stages.multi.result import MultiCoreResult
from tilewright.pipeline.stages.reductions import Reduction
from tilewright.pipeline.stages.watchers import Save
from tilewright.pipeline.stages.workload import Workload
from tilewright.workload.graph import WorkloadNode

logger = logging.getLogger(__name__)


def layer_of(item: Any, keywords: Mapping[str, Any]) -> LayerNode:
    """View of the layer of an item, for the user's stages."""
    given = keywords.get(LAYER)
    if isinstance(given, LayerNode):
        return given
    problem = item if isinstance(item, LayerProblem) else LayerProblem(item.layer, item.core, NO_CONSTRAINTS)
    return layer_node(problem, session().node)


def pairs_of(found: Any, stages: tuple[Stage, ...], layer: LayerNode, attached: Attached) -> Iterator[Pair]:
    """Pairs (CME, further information) of `found`, the result for one layer. If a user's stage yielded the result, the
    function returns the pairs of this stage. Otherwise, there is one pair for each mapping of the result that fits the
    memories.

    If `found` is a list of results, there is only one pair: (list of the pairs of these results, None).
    """
    if isinstance(found, list):
        yield [pair for one in found for pair in pairs_of(one, stages, layer, attached)], None
        return
    run = session()
    if (known := attached.get(id(found))) is not None:
        yield from known[1]
        return
    assert isinstance(found, Evaluations)
    if found.costs is None:
        return
    context = Context(layer, stages)
    for row in np.flatnonzero(found.costs.fits).tolist():
        said = run.said.get(mapping_key(found.costs.batch, row)) if run.said else None
        cme = CostModelEvaluation.of(found.costs, row, context) if said is None else said[0]
        cme._told = extra_of(cme, stages, said)
        yield cme, cme._told


def extra_of(cme: CostModelEvaluation, stages: Sequence[Stage], said: Pair | None = None) -> Any:
    """Further information that zigzag-dse would yield with a CME; None if `stages` is empty. The CME has passed
    `stages`, which are listed from the outermost stage.

    Each stage determines the information that it yields:

    * A generator of spatial mappings or a mapper yields the pair (mapping that it made, information of the stages
      below).
    * A stage of the class Reduction yields the pairs (CME, further information) of the mappings that it compared. If
      these pairs are not kept, it yields [].
    * For a user's stage, `said` is the pair that the stage yielded for this mapping, and the information is its second
      element. If `said` is None, the stage yields the information of the stages below.
    * Any other stage yields the information of the stages below.
    """
    if not stages:
        return None
    stage, below = stages[0], stages[1:]
    if isinstance(stage, Reduction):
        return session().beside.get(mapping_key(cme._costs.batch, cme._row), [])
    if isinstance(stage, OwnStage):
        return extra_of(cme, stage.after) if said is None else said[1]
    name = type(stage).__name__
    if name in ("SpatialMappingGenerator", "CustomSpatialMappingGenerator"):
        return cme.user_spatial_mapping, extra_of(cme, below, said)
    if name in MAPPERS:
        return cme.temporal_mapping, extra_of(cme, below, said)
    return extra_of(cme, below, said)


@dataclass(frozen=True, eq=False)
class _Tap(Stage):
    """Stage directly below Workload. It passes all results on, and keeps each of them in `seen` together with its layer
    problem.
    """

    seen: list[tuple[LayerProblem, Any]] = field(default_factory=list)

    takes: ClassVar[type] = LayerProblem

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Any]:
        """Yield all results of the stages below."""
        run = session()
        if run.node is not None:
            run.layer = layer_node(item, run.node)
        for found in rest(item):
            self.seen.append((item, found))
            yield found


@dataclass(frozen=True, eq=False)
class OthersBelow(Stage):
    """Stage directly below a stage of the class Reduction.

    It passes all results on, and keeps them in `seen`. The Reduction chooses from the mappings in these results.
    """

    seen: list[Evaluations] = field(default_factory=list)

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yield all results of the stages below."""
        self.seen.clear()
        for found in rest(item):
            self.seen.append(found)
            yield found


@dataclass(frozen=True, eq=False)
class OthersAbove(Stage):
    """Stage directly above a stage of the class Reduction. For each mapping that the Reduction keeps, this stage stores
    the pairs (CME, further information) of all mappings that the Reduction compared (`Session.beside`).
    """

    below: OthersBelow = field(default_factory=OthersBelow)

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yield all results of the stages below. For each mapping in a result, store the (CME, further information)
        pairs of all mappings that the Reduction compared.
        """
        run = session()
        for found in rest(item):
            layer = layer_of(item, {})
            others = [pair for one in self.below.seen for pair in pairs_of(one, rest.stages[2:], layer, {})]
            if isinstance(found, Evaluations) and found.costs is not None:
                for row in np.flatnonzero(found.costs.fits).tolist():
                    run.beside[mapping_key(found.costs.batch, row)] = others
            yield found


def keeping_others(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Stages of a pipeline, with two additional stages around each stage of the class Reduction (a stage that keeps the
    best mapping): an OthersAbove directly above it, and an OthersBelow directly below it. The two additional stages
    keep the mappings from which the Reduction chooses (keyword `reduce_minimal_keep_others`).
    """
    found: list[Stage] = []
    for stage in stages:
        if isinstance(stage, Reduction):
            below = OthersBelow()
            found += [OthersAbove(below), stage, below]
        else:
            found.append(stage)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Layers(Stage):
    """Stage in the position of Workload. It keeps, for the record of each layer, the (CME, further information) pairs
    of this layer.
    """

    network: "Network | None" = None
    workload: Workload = field(default_factory=Workload)

    takes: ClassVar[type] = NetworkProblem

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[LayerRecord]:
        """Yield the records of all layers."""
        assert self.network is not None
        yield from self.network.layers(item, (self.workload, *rest.stages))


@dataclass
class Network:
    """Run of a network through the stages of a script, beginning with the parsers."""

    stages: tuple[Stage, ...]
    control: Control
    keywords: Keywords
    attached: Attached
    order: dict[str, int] = field(default_factory=dict)
    """Index of each layer in execution order, by name of the layer."""

    def results(self, item: Any) -> Iterator[Any]:
        """Results that the outermost stage yields."""
        stages = (_Layers(self, stage) if isinstance(stage, Workload) else stage for stage in self.stages)
        yield from Rest(tuple(stages), self.control)(item)

    def layers(self, problem: NetworkProblem, stages: tuple[Stage, ...]) -> Iterator[LayerRecord]:
        """Records of all layers. For each record, the (CME, further information) pairs of the layer are kept in
        `attached`.
        """
        nodes = problem.workload.layers_in_order
        self.order = {node.layer.name: place for place, node in enumerate(nodes) if node.layer is not None}
        if any(isinstance(stage, OwnStage) for stage in stages):
            for place, node in enumerate(nodes):
                yield from self._one_layer(problem, node, place, stages)
            return
        yield from self._mapped(problem, nodes, stages)

    def _one_layer(
        self, problem: NetworkProblem, node: WorkloadNode, place: int, stages: tuple[Stage, ...]
    ) -> Iterator[LayerRecord]:
        """Records of the layer `node`, which is at index `place` of the execution order. User's stages get the name and
        the number of this layer.

        The user's stages may yield nothing for the layer. If a stage of the class Reduction is above the user's stages,
        this raises InputError, because the Reduction has nothing to choose from. Otherwise, the layer is left out of
        the result, with a warning.
        """
        run = session()
        run.node, run.said = node, {}
        run.silent.clear()
        alone = replace(node, sources=())
        reach = problem.memory_reach[place : place + 1]
        part = replace(problem, workload=replace(problem.workload, nodes=(alone,)), memory_reach=reach)
        try:
            yield from self._mapped(part, (node,), stages)
        except MappingError as error:
            if not run.silent:
                raise
            above = [stage for stage in stages[1:] if not isinstance(stage, OwnStage)]
            own = next(at for at, stage in enumerate(stages) if isinstance(stage, OwnStage))
            needs = next((stage for stage in stages[1:own] if isinstance(stage, Reduction)), None)
            if needs is not None and above:
                told = f"yielded nothing for layer {node.layer.name if node.layer else ''}"
                problem_ = replace(
                    run.silent[0], message=f"{told}, so the {needs.name()}Stage above has no result to choose from"
                )
                raise InputError([problem_]) from error
            logger.warning(
                "%s for layer %s: the layer is not in the result", run.silent[0], node.layer and node.layer.name
            )
        finally:
            run.node = run.layer = None

    def _mapped(
        self, problem: NetworkProblem, nodes: Sequence[WorkloadNode], stages: tuple[Stage, ...]
    ) -> Iterator[LayerRecord]:
        tap = _Tap()
        workload, below = stages[0], stages[1:]
        records = list(Rest((workload, tap, *below), self.control)(problem))
        found_for: dict[str, list[Any]] = {}
        problem_for: dict[str, LayerProblem] = {}
        for item, found in tap.seen:
            for name in item.names:
                found_for.setdefault(name, []).append(found)
                problem_for[name] = item
        for record in records:
            pairs: list[Pair] = []
            for node in nodes:
                if node.layer is not None and node.layer.name in record.names:
                    layer = layer_node(problem_for[node.layer.name], node)
                    for pair in self._pairs(found_for[node.layer.name], below, layer):
                        if isinstance(pair[0], CostModelEvaluation) and not record.alternatives:
                            pair[0]._context.known = record
                        pairs.append((pair[0], (layer, pair[1])))
            yield attach(self.attached, self._counted(record, pairs), pairs)
            if record.alternatives and any(isinstance(stage, Save) for stage in self.stages):
                yield from self._alternatives(record, pairs)

    def _counted(self, record: LayerRecord, pairs: Sequence[Pair]) -> LayerRecord:
        """Record of a layer with the values that the user's stages have set for its mapping."""
        cme = next((cme for cme in single(pairs) if not record.alternatives or counts(cme, record)), None)
        return record if cme is None else as_said(record, cme)

    def _pairs(self, found: Sequence[Any], stages: tuple[Stage, ...], layer: LayerNode) -> Iterator[Pair]:
        for one in found:
            yield from pairs_of(one, stages, layer, self.attached)

    def _alternatives(self, record: LayerRecord, pairs: Sequence[Pair]) -> Iterator[LayerRecord]:
        """Records of the mappings in `pairs` that belong to the layer of `record`, but were not chosen. Stages that
        save all results need these records. In `attached`, each of these records has an empty list of pairs.
        """
        for cme in single(pairs):
            if cme.layer.name == record.names[0] and not counts(cme, record):
                yield attach(self.attached, replace(cme.record, layer_names=record.layer_names), [])


def counts(cme: CostModelEvaluation, record: LayerRecord) -> bool:
    """True if a CME belongs to the mapping in `record`, the record of the layer. Other mappings of the layer do not
    count in the sum over the network.
    """
    return (
        cme._costs.batch.loop_order(cme._row) == record.loop_order
        and {side: dict(factors) for side, factors in spatial_of(cme._costs.batch.problem).items()}  # type: ignore[arg-type]
        == record.spatial_mapping
    )


def network_pairs(network: Network, item: Any) -> Iterator[Pair]:
    """Pairs (CME, further information): first one for each layer of a network, in execution order, then one for the
    whole network.
    """
    waiting: list[Pair] = []
    for found in network.results(item):
        if isinstance(found, LayerRecord):
            waiting += network.attached[id(found)][1]
            continue
        yield from _in_order(waiting, network)
        waiting = []
        yield from _network_pair(found, network)
    yield from _in_order(waiting, network)


def _in_order(pairs: list[Pair], network: Network) -> list[Pair]:
    """Pairs in the execution order of their layers. If the script has no stage Workload, the order is unchanged."""
    if not network.order:
        return pairs
    return sorted(pairs, key=lambda pair: network.order.get(getattr(pair[1][0], "name", ""), 0))


def _network_pair(found: Any, network: Network) -> Iterator[Pair]:
    if (known := network.attached.get(id(found))) is not None:
        yield from known[1]
    elif isinstance(found, list):
        pairs: list[Pair] = []
        layers = [one for one in found if isinstance(one, LayerRecord)]
        pairs += _in_order([pair for record in layers for pair in network.attached[id(record)][1]], network)
        for one in found:
            if not isinstance(one, LayerRecord):
                pairs += _network_pair(one, network)
        yield pairs, None  # type: ignore[misc]
    elif isinstance(found, MappedWorkload):
        yield _total(found, network)
    elif isinstance(found, MultiCoreResult):
        scme = StreamCostModelEvaluation(found)
        draw(scme, network.keywords)
        yield scme, None
    else:
        raise TypeError(f"a pipeline yields {type(found).__name__}")


def single(pairs: Iterable[Pair]) -> Iterator[CostModelEvaluation]:
    """CMEs of single mappings in a list of pairs. Lists inside the list are searched, too."""
    for cme, _ in pairs:
        if isinstance(cme, list):
            yield from single(cme)
        elif isinstance(cme, CostModelEvaluation):
            yield cme


def _total(found: MappedWorkload, network: Network) -> Pair:
    """Pair (CME of a network, list of the pairs (CME, further information) of its layers).

    The CME of the network is the sum of one CME for each layer: the CME of the mapping in the record of the layer. A
    warning reports how many other mappings are left out of the sum.
    """
    layers = [pairs for known, pairs in network.attached.values() if isinstance(known, LayerRecord)]
    pairs = _in_order([pair for some in layers for pair in some], network)
    counted: dict[str, CostModelEvaluation] = {}
    others = 0
    record_of = {name: record for record in found.records for name in record.names}
    for cme in single(pairs):
        name = cme.layer.name
        if name not in record_of:
            continue
        is_counted = not record_of[name].alternatives or counts(cme, record_of[name])
        others += name in counted or not is_counted
        if is_counted:
            counted.setdefault(name, cme)
    if others:
        logger.warning(
            "SumStage: %s of layers were left out of the sum, because each layer counts only once. To choose the"
            " mapping of each layer, put a stage such as MinimalLatencyStage between WorkloadStage and the stages that"
            " generate mappings",
            count_of(others, "mapping"),
        )
    total = CumulativeCME(list(counted.values()))
    total.energy_total, total.latency_total2 = found.summary[ENERGY_PJ], found.summary[LATENCY_CYCLES]
    return total, pairs
