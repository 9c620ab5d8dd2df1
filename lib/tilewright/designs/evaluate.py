"""Evaluation of a network on designs with one core.

The costs equal those of `tilewright map`, but no records are made.

Work that does not depend on the design is done once: reading the network, finding equal layers, and making the stages
of the search. For each design, these stages search the distinct layers. Each best mapping is then evaluated once more.
This evaluation gives the parts of energy and latency, and checks the invariants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from tilewright.base.errors import MappingError, NothingFitsError
from tilewright.base.json_values import JsonObject
from tilewright.base.profile import ModelProfile
from tilewright.cost.energy_terms import energy_term_names
from tilewright.cost.latency_terms import latency_term_names
from tilewright.cost.rates import time_and_power
from tilewright.designs.access_columns import access_columns, access_texts
from tilewright.designs.design_cost import DesignCost
from tilewright.designs.design_evaluator import DesignEvaluator
from tilewright.designs.extrapolated_memories import extrapolated_texts
from tilewright.designs.layer_costs import CoreColumns, LayerCost, LayerCosts
from tilewright.designs.results import OK
from tilewright.hardware.access_times import core_access_times
from tilewright.hardware.core import Accelerator, Core, single_core
from tilewright.hardware.extrapolated_costs import core_extrapolated
from tilewright.hardware.static_power import clock_period_ns
from tilewright.hardware.system import core_area
from tilewright.mapping import constraints
from tilewright.mapping.memory_reach import MemoryReach, core_for
from tilewright.mapping.source import MappingSource
from tilewright.pipeline.stages.base import Change, Control, Rest, Stage
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.items import LayerProblem, merged_notes
from tilewright.pipeline.stages.layers import evaluations_of, why_not
from tilewright.pipeline.stages.mapping_parser import MappingParser
from tilewright.pipeline.stages.network_choice import (
    chooses_for_network,
    found_for_network,
    layers_for_network,
    stages_of,
)
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.temporal import Best
from tilewright.pipeline.stages.workload import told_by_cause
from tilewright.search.batch import CostedBatch
from tilewright.search.cost_ranges import range_parts
from tilewright.search.evaluate import workspace_of
from tilewright.search.network_choice import Found, NetworkWeight
from tilewright.search.options import SearchOptions
from tilewright.search.summary import total_in_order
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

_REMEMBERED_LAYERS = 1024
"""Largest number of pairs (layer, core) whose costs are stored. Designs share these costs if they differ only in
properties that have no effect on the layer.
"""
_REMEMBERED_CORES = 64
"""Limit of the number of cores for which an evaluator stores the memories in which data stay between layers. Cores that
differ only in energies, areas and port widths count once.
"""


@dataclass(frozen=True)
class LayerPlace:
    """Layer that a core runs, with the memories that the data of the layer use."""

    layer: str
    reach: MemoryReach | None
    """Highest memory that each kind of data of the layer reaches. None if the data go through all memories."""
    repeats: int = 1
    """Number of equal layers of the network for which this layer stands, including itself."""


class NetworkEvaluator(DesignEvaluator):
    """Evaluator of one network on designs with one core."""

    def __init__(
        self, network: Workload, mapping: MappingSource | None, options: SearchOptions, *, bounds: bool = False
    ) -> None:
        super().__init__(network, mapping)
        stages = Pipeline.build(None, replace(options, bounds=bounds)).search().stages
        place = next(i for i, stage in enumerate(stages) if stage.gives is LayerProblem)
        self._profile = options.profile
        self._before = tuple(stage for stage in stages[:place] if isinstance(stage, Change))
        self._after, self.search = _split(stages[place + 1 :])
        self._placed = lru_cache(_REMEMBERED_CORES)(self._places)
        self._searched = lru_cache(_REMEMBERED_LAYERS)(self._search_layer)
        self._costs = LayerCosts(self.search)
        self._mapper = chooses_for_network(self.search)

    def evaluated(self, accelerator: Accelerator) -> DesignCost:
        """Costs of the network on a design.

        Raises InputError if the design is not valid for the network. Raises MappingError if no mapping fits for a
        layer.
        """
        core = single_core(accelerator)
        places = self._placed(replace(accelerator, cores=(_without_costs(core),)))
        return _sum(core, self._layers(core, places), self._profile)

    def _places(self, accelerator: Accelerator) -> tuple[LayerPlace, ...]:
        """Layers that the core runs, in execution order. The result does not depend on energies, areas and port widths.

        Raises InputError if the design is not valid. Raises MappingError if the core lacks a memory that a layer needs.
        """
        described = Descriptions(None, self.network, self.mapping, accelerator=accelerator, network=self.network)
        problem = MappingParser().change(described)
        problem.check_layers()
        for stage in self._before:
            problem = stage.change(problem)
        return tuple(
            LayerPlace(node.layer.name, problem.memory_reach[place] if problem.memory_reach else None, node.repeats)
            for place, node in enumerate(problem.workload.layers_in_order)
            if node.layer is not None
        )

    def layer_problems(self, accelerator: Accelerator) -> list[tuple[LayerProblem, int]]:
        """Pairs (layer problem, number of equal layers that it stands for), in execution order.

        A problem has only the part of the core that the layer uses. Its layer has the name of the first of the equal
        layers in the network. Raises InputError if the design is not a valid accelerator for the network. Raises
        MappingError if the core lacks a memory that a layer needs.
        """
        core = single_core(accelerator)
        found = []
        for place in self._placed(replace(accelerator, cores=(_without_costs(core),))):
            _, layer, given = self._kinds[place.layer]
            own = replace(self._own(LayerProblem(layer, core, given), place.reach), memory_reach=None)
            found.append((own, place.repeats))
        return found

    @cached_property
    def _kinds(self) -> dict[str, tuple[int, Layer, constraints.MappingConstraints]]:
        """Groups of equal layers, by name of a layer: triples (index of the group, first layer of the group, decisions
        that the mapping file fixes for the group).

        Layers of one group differ only in their names.
        """
        kinds: dict[tuple[Layer, constraints.MappingConstraints], int] = {}
        firsts: list[tuple[Layer, constraints.MappingConstraints]] = []
        result = {}
        for node in self.network.layers_in_order:
            assert node.layer is not None
            given = self.mapping.constraints_for(node.layer)
            key = replace(node.layer, name=""), given
            if key not in kinds:
                kinds[key] = len(firsts)
                firsts.append((node.layer, given))
            result[node.layer.name] = (kinds[key], *firsts[kinds[key]])
        return result

    def _layers(self, core: Core, places: Sequence[LayerPlace]) -> list[LayerCost]:
        """Costs of the layers in execution order. Each cost is multiplied by the number of equal layers.

        Raises MappingError with the names of all layers for which no mapping fits.
        """
        failures: dict[tuple[int, Core | None], tuple[list[str], MappingError]] = {}
        found: list[LayerCost] = []
        searched: list[tuple[int, Core]] = []
        cores: dict[tuple[object, ...], Core] = {}
        columns = CoreColumns.of(core)
        for place in places:
            kind, layer, given = self._kinds[place.layer]
            whole = LayerProblem(layer, core, given)
            cost = None
            if self._costs.is_known and given.memory_reach is None:
                cost = self._costs.cost(kind, columns, whole, place.reach, partial(self._own, whole, place.reach))
            if cost is not None:
                found.append(cost.times(place.repeats))
                continue
            key = (kind, *_data_of(place.reach))
            try:
                if key not in cores:
                    cores[key] = self._own(whole, place.reach).core
                found.append(self._searched(kind, cores[key]).cost.times(place.repeats))
                searched.append((kind, cores[key]))
            except MappingError as error:
                failures.setdefault((kind, cores.get(key)), ([], error))[0].append(place.layer)
        if failures:
            raise MappingError(*told_by_cause(list(failures.values()), core.name).splitlines())
        if self._mapper is not None and len(searched) == len(places):
            repeats = [place.repeats for place in places]
            chosen = self._chosen_for_network(searched, repeats, self._mapper)
            return [chosen[key].times(count) for key, count in zip(searched, repeats, strict=True)]
        return found

    def _chosen_for_network(
        self, searched: Sequence[tuple[int, Core]], repeats: Sequence[int], mapper: Best
    ) -> dict[tuple[int, Core], LayerCost]:
        """Costs by (index of a group of equal layers, core). The mappings are chosen for the least EDP of the whole
        network.

        `searched` has the group and the core of each layer, and `repeats` says how often the layer runs.
        """
        counts: dict[tuple[int, Core], int] = {}
        for key, count in zip(searched, repeats, strict=True):
            counts[key] = counts.get(key, 0) + count
        keys, first = list(counts), [self._searched(*key) for key in counts]

        def again(places: Sequence[int], weight: NetworkWeight) -> list[Found[LayerCost] | None]:
            stages = stages_of(self.search, mapper, weight)
            found = [self._search_layer(*keys[place], stages) for place in places]
            return [
                found_for_network(cost, cost.energy_pj, cost.latency_cycles, notes, weight) for cost, notes in found
            ]

        costs = [Found(cost.energy_pj, cost.latency_cycles, cost) for cost, _ in first]
        layers = layers_for_network(costs, [one.notes for one in first], list(counts.values()), mapper, again)
        if layers is None:
            return {key: one.cost for key, one in zip(keys, first, strict=True)}
        return {key: layer.chosen.result for key, layer in zip(keys, layers, strict=True)}

    def _own(self, whole: LayerProblem, reach: MemoryReach | None) -> LayerProblem:
        """Mapping problem of the layer on a core with only the parts that the layer uses."""
        core = core_for(whole.layer, whole.core, whole.constraints)
        problem = replace(whole, core=core, memory_reach=reach)
        for stage in self._after:
            problem = stage.change(problem)
        return problem

    def _search_layer(self, kind: int, core: Core, stages: tuple[Stage, ...] | None = None) -> "_Searched":
        """Best mapping that the search finds for the layers of group number `kind`. Layers of one group differ only in
        their names. If `stages` is given, these stages replace the search stages of the evaluator. Raises MappingError
        if no mapping fits.
        """
        layer, given = next((layer, given) for number, layer, given in self._kinds.values() if number == kind)
        found = evaluations_of(Rest(stages or self.search, Control()), LayerProblem(layer, core, given))
        best = next((one.costs for one in found if one.costs is not None and one.costs.fits.any()), None)
        if best is None:
            raise NothingFitsError(layer.name, core.name, why_not(found, layer, given))
        return _Searched(_layer_cost(best), merged_notes([row for one in found for row in one.tally], None))


class _Searched(NamedTuple):
    """Best mapping of a layer."""

    cost: LayerCost
    notes: JsonObject
    """Notes of the search, with its lower bounds."""


def _without_costs(core: Core) -> Core:
    """Copy of a core without energies, areas and port widths."""
    array = replace(core.operational_array, unit_energy_pj=0.0, unit_area_mm2=0.0)
    none: dict[str, Any] = {"read_energy_pj": 0.0, "write_energy_pj": 0.0, "area_mm2": 0.0, "cost_source": None}
    memories = [replace(memory, ports=memory.frame.ports, **none) for memory in core.memories]
    return replace(core, operational_array=array, memories=tuple(memories))


def _data_of(reach: MemoryReach | None) -> tuple[object, ...]:
    """Content of a memory reach without the name of the layer: highest memory of each kind of data, and reserved bits.
    () if there is no reach.
    """
    return () if reach is None else (reach.activation, reach.output, reach.weight, reach.reserved_bits)


def _split(stages: tuple[Stage, ...]) -> tuple[tuple[Change, ...], tuple[Stage, ...]]:
    """Pair (stages that change the mapping problem of a layer, stages that search mappings for the changed problem)."""
    changes: list[Change] = []
    for stage in stages:
        if not isinstance(stage, Change):
            break
        changes.append(stage)
    return tuple(changes), stages[len(changes) :]


def _layer_cost(costs: CostedBatch) -> LayerCost:
    """Cost of the first mapping that fits the memories, among the mappings of a batch. Energy and latency are split
    into parts.
    """
    row = int(np.flatnonzero(costs.fits)[0])
    batch = costs.batch
    workspace = workspace_of(batch.problem, batch.loop_order(row), batch.level_boundaries(row))
    names = [memory.name for memory in batch.problem.core.memories]
    totals = float(costs.energy_pj[row]), float(costs.latency_cycles[row])
    return LayerCost.of(names, batch.problem.arrays, workspace, totals)


def _sum(core: Core, layers: Sequence[LayerCost], profile: ModelProfile) -> DesignCost:
    """Sum of the costs of layers that run one after another, added in the same order as in the summary of a run."""
    names = energy_term_names(core)
    terms = [total_in_order(layer.energy_terms_pj[i] for layer in layers) for i in range(len(names))]
    parts = latency_term_names(core)
    cycles = [total_in_order(layer.latency_terms_cycles[i] for layer in layers) for i in range(len(parts))]
    memories = dict.fromkeys((memory.name for memory in core.memories), 0.0)
    for layer in layers:
        for name, energy in layer.memory_energy_pj:
            memories[name] += energy
    area, times = core_area(core, profile).mm2, core_access_times(core)
    energy = total_in_order(layer.energy_pj for layer in layers)
    latency = total_in_order(layer.latency_cycles for layer in layers)
    return DesignCost(
        OK,
        "",
        energy,
        latency,
        np.nan if area is None else area,
        dict(zip(names, terms, strict=True)),
        memories,
        dict(zip(parts, cycles, strict=True)),
        time_and_power(clock_period_ns(core), latency, energy) | access_columns(times),
        range_parts(core, memories, profile),
        access_texts(times) | extrapolated_texts(core_extrapolated(core)),
    )
