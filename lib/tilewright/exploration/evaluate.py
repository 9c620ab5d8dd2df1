"""What designs cost for a network: the numbers of `tilewright map` of each, without its records.

Everything that does not depend on the design is done once: the network is read, its equal layers are found, the stages
of the search are made. What is left of a design is the search of its distinct layers, by those same stages, and one
evaluation of each best mapping for the parts of its energy and latency, on which the invariants are checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tilewright.cost.breakdown import latency_terms
from tilewright.cost.energy_terms import energy_term_names
from tilewright.cost.ledger import LATENCY_TERMS
from tilewright.errors import InputError, MappingError, NothingFitsError
from tilewright.exploration.design_cost import NO_MAPPING, DesignCost, reason_of, reason_of_misfit
from tilewright.exploration.results import INFEASIBLE, INVALID, OK
from tilewright.hardware.core import Accelerator, Core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import core_area
from tilewright.mapping import constraints
from tilewright.mapping.memory_reach import MemoryReach, core_for
from tilewright.mapping.source import MappingSource, parse_mapping
from tilewright.search.batch import CostedBatch
from tilewright.search.evaluate import workspace_of
from tilewright.search.options import SearchOptions
from tilewright.search.summary import total_in_order
from tilewright.stages.base import Change, Control, Rest, Stage
from tilewright.stages.descriptions import Descriptions, NetworkProblem
from tilewright.stages.items import LayerProblem
from tilewright.stages.layers import evaluations_of, why_not
from tilewright.stages.mapping_parser import MappingParser
from tilewright.stages.pipeline import Pipeline
from tilewright.stages.workload import told_by_cause
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

REMEMBERED_LAYERS = 1024
"""Layers on cores of which the costs are kept for designs that differ in what does not concern the layer."""


@dataclass(frozen=True, eq=False)
class LayerCost:
    """What the best mapping of a layer costs."""

    energy_pj: float
    latency_cycles: float
    energy_terms_pj: tuple[float, ...]
    memory_energy_pj: tuple[tuple[str, float], ...]
    latency_terms_cycles: tuple[float, ...]


def accelerator_of(hardware: dict[str, Any]) -> Accelerator:
    """The accelerator of a design. Raises InputError where it is none that can be explored."""
    accelerator = parse_accelerator(hardware)
    if len(accelerator.cores) != 1:
        raise InputError("an accelerator of several cores: spaces are of one core")
    return accelerator


class NetworkEvaluator:
    """The costs of a network on one design after the other.

    `mapping` is what is fixed of its mappings. Results do not depend on the designs before.
    """

    def __init__(self, network: Workload, mapping: MappingSource | None, options: SearchOptions) -> None:
        self.network = network
        self.mapping = parse_mapping(NO_MAPPING if mapping is None else mapping)
        stages = Pipeline.build(None, options).search().stages
        place = next(i for i, stage in enumerate(stages) if stage.gives is LayerProblem)
        self._before = tuple(stage for stage in stages[:place] if isinstance(stage, Change))
        self._after, self._search = _split(stages[place + 1 :])
        self._cost = lru_cache(REMEMBERED_LAYERS)(self._searched)

    def cost(self, hardware: dict[str, Any], accelerator: Accelerator) -> DesignCost:
        """The costs on one design, which has been read from `hardware`."""
        try:
            problem = MappingParser().change(
                Descriptions(hardware, self.network, self.mapping, accelerator=accelerator, network=self.network)
            )
            problem.check_layers()
            for stage in self._before:
                problem = stage.change(problem)
        except InputError as error:
            return DesignCost(INVALID, reason_of(error))
        try:
            layers = list(self._layers(problem))
        except MappingError as error:
            return DesignCost(INFEASIBLE, reason_of_misfit(error))
        return _sum(problem.core, layers)

    @cached_property
    def _kinds(self) -> dict[str, tuple[int, Layer, constraints.MappingConstraints]]:
        """Name of a layer -> number of its kind, the first of that kind, what is fixed of its mapping.

        Layers of one kind differ in their names alone.
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

    def _layers(self, problem: NetworkProblem) -> Iterator[LayerCost]:
        """What each layer costs, in execution order. Raises MappingError naming all layers that nothing fits."""
        failures: dict[tuple[int, Core | None], tuple[list[str], MappingError]] = {}
        found: list[LayerCost] = []
        cores: dict[tuple[object, ...], Core] = {}
        for place, node in enumerate(problem.workload.layers_in_order):
            assert node.layer is not None
            number, layer, given = self._kinds[node.layer.name]
            reach = problem.memory_reach[place] if problem.memory_reach else None
            key = (number, *_data_of(reach))
            try:
                if key not in cores:
                    cores[key] = self._core(layer, problem.core, given, reach)
                found.append(self._cost(number, cores[key]))
            except MappingError as error:
                failures.setdefault((number, cores.get(key)), ([], error))[0].append(node.layer.name)
        if failures:
            raise MappingError(told_by_cause(list(failures.values()), problem.core.name))
        return iter(found)

    def _core(self, layer: Layer, core: Core, given: constraints.MappingConstraints, reach: MemoryReach | None) -> Core:
        """The core as a layer sees it."""
        problem = LayerProblem(layer, core_for(layer, core, given), given, reach)
        for stage in self._after:
            problem = stage.change(problem)
        return problem.core

    def _searched(self, kind: int, core: Core) -> LayerCost:
        """What the best mapping of a kind of layer on its core costs. Raises MappingError if nothing fits."""
        layer, given = next((layer, given) for number, layer, given in self._kinds.values() if number == kind)
        found = evaluations_of(Rest(self._search, Control()), LayerProblem(layer, core, given))
        best = next((one.costs for one in found if one.costs is not None and one.costs.fits.any()), None)
        if best is None:
            raise NothingFitsError(layer.name, core.name, why_not(found))
        return _layer_cost(best)


def _data_of(reach: MemoryReach | None) -> tuple[object, ...]:
    """What a reach says, without the name of the layer."""
    return () if reach is None else (reach.activation, reach.output, reach.weight, reach.reserved_bits)


def _split(stages: tuple[Stage, ...]) -> tuple[tuple[Change, ...], tuple[Stage, ...]]:
    """The stages that change the problem of a layer, and those that search it."""
    changes: list[Change] = []
    for stage in stages:
        if not isinstance(stage, Change):
            break
        changes.append(stage)
    return tuple(changes), stages[len(changes) :]


def _layer_cost(costs: CostedBatch) -> LayerCost:
    """The parts of the cost of the one mapping that fits in a batch of the best."""
    row = int(np.flatnonzero(costs.fits)[0])
    batch = costs.batch
    prepared = batch.problem
    arrays = prepared.arrays
    workspace = workspace_of(prepared, batch.loop_order(row), batch.level_boundaries(row))
    by_memory: dict[str, float] = {}
    energy = workspace.energy.sum(axis=2).tolist()
    for row_of, levels, count in zip(energy, arrays.level_memory.tolist(), arrays.level_count.tolist(), strict=True):
        for pj, k in zip(row_of[:count], levels[:count], strict=True):
            name = prepared.core.memories[k].name
            by_memory[name] = by_memory.get(name, 0.0) + pj
    return LayerCost(
        float(costs.energy_pj[row]),
        float(costs.latency_cycles[row]),
        tuple(workspace.terms[: arrays.term_count].tolist()),
        tuple(by_memory.items()),
        latency_terms(arrays, workspace),
    )


def _sum(core: Core, layers: Sequence[LayerCost]) -> DesignCost:
    """The costs of layers that run one after another, added up as the summary of a run does it."""
    names = energy_term_names(core)
    terms = [total_in_order(layer.energy_terms_pj[i] for layer in layers) for i in range(len(names))]
    cycles = [total_in_order(layer.latency_terms_cycles[i] for layer in layers) for i in range(len(LATENCY_TERMS))]
    memories = dict.fromkeys((memory.name for memory in core.memories), 0.0)
    for layer in layers:
        for name, energy in layer.memory_energy_pj:
            memories[name] += energy
    area = core_area(core).mm2
    return DesignCost(
        OK,
        "",
        total_in_order(layer.energy_pj for layer in layers),
        total_in_order(layer.latency_cycles for layer in layers),
        np.nan if area is None else area,
        dict(zip(names, terms, strict=True)),
        memories,
        dict(zip(LATENCY_TERMS, cycles, strict=True)),
    )
