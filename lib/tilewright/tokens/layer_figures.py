"""Figures (energy, latency, counts) of the layers of a language model on one core.

Each distinct layer is searched once, and the figures of a step are sums over its layers.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.operator_groups import work_counts
from tilewright.base.proof import gap_to
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Accelerator, Core, Memory, single_core
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.static_power import clock_period_ns
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.runnable import UncostedWork
from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.run import map_problem
from tilewright.results.bottlenecks import ARRAY, CAUSE_OF_TERM, IDLE_UNITS, MOVING_DATA
from tilewright.results.port_limits import PortName, port_names, wider_cycles, wider_ports
from tilewright.results.recorded_mappings import RecordedMapping, recorded_mappings
from tilewright.search.options import SearchOptions
from tilewright.tokens.bound import saved_share, step_limit
from tilewright.tokens.doubled import SIZE, larger, largest_gains, saved_column
from tilewright.tokens.steps import FURTHER, LATENCY, MACS, OPERATIONS, StepRun, Sums
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer, part_name

KINDS = (ARRAY, IDLE_UNITS, MOVING_DATA)
"""Kinds of cycles into which the latency of a layer is divided."""
WIDER = FURTHER + len(KINDS)
"""Index of the latency with the first port twice as wide.

An array of figures has four groups, in this order: the figures that all steps have, the cycles by KINDS, the latency in
cycles with each port twice as wide, and the latency in cycles with each on-chip memory twice as large. Counts are exact
up to 2^53.
"""
Kind = tuple[Layer, MappingConstraints, str, str, str]
"""Key of the figures of a layer: the layer without its name, the constraints on its mapping, its unit, its operator
type, and the type of its original operator.
"""


@dataclass
class LayerFigures:
    """Figures (energy, latency, counts) of the layers of steps on one core. A layer is searched when its figures are
    first needed.
    """

    accelerator: Accelerator
    mapping: Mapping
    options: SearchOptions
    control: Control
    with_limits: bool = True
    """True to compute the latency with each port twice as wide and each memory twice as large."""
    uncosted: dict[str, UncostedWork] = field(default_factory=dict)
    """Work that the core cannot run, by operator type."""
    _figures: dict[Kind, Sums | None] = field(default_factory=dict)
    """Figures by layer. None if the core cannot run the layer."""
    _kinds: dict[tuple[str, Layer, str], Kind] = field(default_factory=dict)
    _mappings: dict[Kind, RecordedMapping] = field(default_factory=dict)
    """Mappings of the layers that the core runs, by layer; empty if `with_limits` is false."""
    _gaps: dict[Kind, float] = field(default_factory=dict)
    """Share by which the objective could fall with the best mapping, by layer; only if the search bounds it."""
    _with_ports: dict[tuple[Kind, tuple[PortName, ...]], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises InputError if `exploit_data_locality` is on, because here no data stay on chip between layers."""
        if self.options.exploit_data_locality:
            message = "is not supported here, because every layer begins and ends in the top memory"
            raise InputError([Problem(message, path="exploit_data_locality")])

    @property
    def core(self) -> Core:
        """Core of the accelerator. Raises InputError if the accelerator has several cores."""
        return single_core(self.accelerator)

    @property
    def name(self) -> str:
        """Name of the core."""
        return self.core.name

    @property
    def memory(self) -> Memory:
        """Largest of the outermost memories."""
        return max((memory for memory, _ in top_memories(self.core)), key=lambda one: one.size_bits)

    @property
    def clock_period_ns(self) -> float | None:
        """Clock period of the core in ns; None if the hardware file gives no clock."""
        return clock_period_ns(self.core)

    @property
    def ports(self) -> list[PortName]:
        """Ports of the core for which the figures have the latency with this port twice as wide."""
        return port_names(self.core) if self.with_limits else []

    def port_of(self, name: str) -> PortName:
        """Port whose printed name is `name`."""
        return next(port for port in self.ports if str(port) == name)

    @property
    def larger(self) -> list[str]:
        """Names of the memories for which the figures have the latency with this memory twice as large. These are all
        memories except the outermost ones.
        """
        outermost = {memory.name for memory, _ in top_memories(self.core)}
        return [one.name for one in self.core.memories if one.name not in outermost] if self.with_limits else []

    def cycles_by_kind(self, figures: Sums) -> dict[str, float]:
        """Cycles by kind. The kinds are: all units of the array work, some units are idle, or data are moved."""
        return dict(zip(KINDS, figures[FURTHER:WIDER].tolist(), strict=True))

    def cycles_with(self, workload: Workload, ports: tuple[PortName, ...]) -> float:
        """Cycles of all layers of a workload if `ports` are twice as wide and the mappings stay the same."""
        self.search([workload])
        total = 0.0
        for node in workload.nodes:
            if node.layer is not None and (mapping := self._mappings.get(self._kind(node))) is not None:
                key = (self._kind(node), ports)
                if key not in self._with_ports:
                    self._with_ports[key] = wider_cycles(mapping, self.core, ports)
                total += node.repeats * self._with_ports[key]
        return total

    def wider_cycles(self, figures: Sums) -> Sums:
        """Latencies in cycles, one for each port in `ports`, if only this port is twice as wide."""
        return figures[WIDER : WIDER + len(self.ports)]

    def larger_cycles(self, figures: Sums) -> Sums:
        """Latencies in cycles, one for each memory in `larger`, if only this memory is twice as large."""
        return figures[WIDER + len(self.ports) :]

    @property
    def zero(self) -> Sums:
        """Figures that are all 0."""
        return np.zeros(WIDER + len(self.ports) + len(self.larger))

    @property
    def searched(self) -> int:
        """Number of distinct layers that were searched."""
        return len(self._figures)

    def search(self, workloads: Iterable[Workload]) -> None:
        """Search all layers of the workloads that have no figures yet, in one search. Raises MappingError with the
        names of all layers for which no mapping fits.
        """
        missing: dict[Kind, WorkloadNode] = {}
        for workload in workloads:
            for node in workload.nodes:
                if node.layer is not None and (kind := self._kind(node)) not in self._figures:
                    missing.setdefault(kind, node)
        if not missing:
            return
        union = _union(list(missing.values()))
        problem = NetworkProblem(union, self.accelerator, self.mapping)
        for row in problem.uncosted or ():
            self.uncosted.setdefault(row.operator_type, row)
        problem.check_layers()
        records = self._mapped(problem, self.options)
        gaps = {name: gap for record in records if (gap := _gap(record)) is not None for name in record.names}
        recorded = recorded_mappings(records, self.core, union) if self.with_limits else ()
        mappings = {name: one for one in recorded for name in one.record.names}
        by_name = dict(zip((record.names for record in records), self._of_records(records, recorded), strict=True))
        found = {name: figures for names, figures in by_name.items() for name in names}
        larger = [self._larger_latencies(union, name) for name in self.larger]
        for kind, node in zip(missing, union.nodes, strict=True):
            figures = found.get(node.name)
            if figures is not None:
                # A larger memory may stay unused: a mapping that takes longer with it is replaced by the original one.
                cycles = [min(one[node.name], float(figures[LATENCY])) for one in larger]
                figures = np.concatenate((_with_work(figures, node), cycles))
            self._figures[kind] = figures
            if node.name in gaps:
                self._gaps[kind] = gaps[node.name]
            if node.name in mappings:
                self._mappings[kind] = mappings[node.name]

    def _mapped(self, problem: NetworkProblem, options: SearchOptions) -> Sequence[LayerRecord]:
        """Records of the best mappings of all layers."""
        pipeline = Pipeline.build(None, options, onnx=False)
        return map_problem(problem, pipeline, self.control).records

    def _larger_latencies(self, union: Workload, name: str) -> dict[str, float]:
        """Latency in cycles of each layer, by name, after a search on a core with memory `name` twice as large."""
        memories = tuple(larger(one) if one.name == name else one for one in self.core.memories)
        accelerator = replace(self.accelerator, cores=(replace(self.core, memories=memories),))
        options = replace(self.options, bounds=False)  # the bounds of changed hardware are not used
        records = self._mapped(NetworkProblem(union, accelerator, self.mapping), options)
        return {layer: float(record.latency_cycles) for record in records for layer in record.names}

    def of(self, workload: Workload) -> Sums:
        """Figures of a workload: the sums over its layers, which run one after another. A layer that the network
        repeats counts once per repetition.
        """
        self.search([workload])
        total = self.zero
        for node in workload.nodes:
            if node.layer is not None and (figures := self._figures[self._kind(node)]) is not None:
                total += node.repeats * figures
        return total

    def check(self, batches: Sequence[int]) -> None:
        """Accept all batches, because one core can run any batch."""

    def runs(self, sums: Sums, requests: int) -> list[StepRun]:
        """Single run of a step, because one core has only one way to run it."""
        return [StepRun("", sums, float(sums[LATENCY]))]

    def limit(self, step: StepRun, workload: Workload, requests: int) -> JsonObject:
        """Table columns on the limits of a step: the gains of each port and memory that is twice as wide or large."""
        return limit_of(self, step, workload)

    def notes(self, weight_bits: int) -> tuple[str, ...]:
        """Notes on operators without costs, and on the gap between the mappings and the best mappings."""
        left_out = [f"{row.operator_type} {row.reason}" for row in self.uncosted.values()]
        return (
            *((f"not costed: {', '.join(left_out)}",) if left_out else ()),
            gap_note(self._gaps, self._figures, self.options),
        )

    def _kind(self, node: WorkloadNode) -> Kind:
        assert node.layer is not None
        key = (node.operator_type, node.layer, node.unit)
        if key not in self._kinds:
            given = self.mapping.constraints_for(node.layer)
            self._kinds[key] = (replace(node.layer, name=""), given, node.unit, node.operator_type, node.origin_type)
        return self._kinds[key]

    def _of_records(self, records: Sequence[LayerRecord], recorded: Sequence[RecordedMapping]) -> list[Sums]:
        """Figures of records, with counts of MACs and operations that are 0. `recorded` has the mapping of each record.
        It is () if limits are not needed.
        """
        wider: list[list[float]] = [[] for _ in records]
        if recorded:
            limits = [wider_ports(one, self.core) for one in recorded]
            wider = [[limit.with_wider(name) for name in self.ports] for limit in limits]
        return [
            np.array([record.energy_pj, record.latency_cycles, 0, 0, *kinds_of(record), *more], np.float64)
            for record, more in zip(records, wider, strict=True)
        ]


def limit_of(figures: LayerFigures, step: StepRun, workload: Workload) -> JsonObject:
    """Table columns on the limits of a step. `workload` has the layers of the step."""
    latency = step.latency_cycles

    def saved(names: Iterable[object], cycles: Sums) -> dict[str, float]:
        return {str(name): max(0.0, saved_share(latency, float(one))) for name, one in zip(names, cycles, strict=True)}

    widths = saved(figures.ports, figures.wider_cycles(step.figures))
    sizes = saved(figures.larger, figures.larger_cycles(step.figures))
    limit = step_limit(
        latency,
        widths,
        lambda ports: saved_share(latency, figures.cycles_with(workload, tuple(map(figures.port_of, ports)))),
        figures.cycles_by_kind(step.figures),
    )
    row = limit.row({str(port): port.memory for port in figures.ports}) | largest_gains(widths, sizes)
    return row | {saved_column(SIZE, name): gain for name, gain in sizes.items()}


def kinds_of(record: LayerRecord) -> list[float]:
    """Cycles of a record, one number for each kind in KINDS."""
    found = dict.fromkeys(KINDS, 0.0)
    for term, cycles in record.latency_breakdown_cycles.items():
        found[CAUSE_OF_TERM.get(term, MOVING_DATA)] += cycles
    return list(found.values())


def gap_note(gap_of: dict[Kind, float], figures: dict[Kind, Sums | None], options: SearchOptions) -> str:
    """Note on the gaps of the layers: the share by which the objective of a layer could fall with the best mapping.

    `gap_of` has the gap of each layer. If the gap of a layer is missing, the note says that the distance from the best
    mappings is not known.
    """
    engine, objective = options.temporal_mapping_search_engine, options.objective
    gaps = list(gap_of.values())
    if not gaps or len(gaps) < sum(one is not None for one in figures.values()):
        return (
            f"mappings: those that {engine} finds; how far they are from the best ones is not known, because"
            " this was not computed"
        )
    middle, largest = (f"{math.ceil(gap * 1000 - 1e-9) / 10:.1f}%" for gap in (median(gaps), max(gaps)))
    what = {"latency": "the time", "energy": "the energy"}.get(objective)
    whole = f"; over these, {what} of a step, a sum over layers, could fall by at most the largest share"
    return (
        f"mappings: with the best ones, the {objective} of a layer could be smaller by {middle} (median) and"
        f" {largest} (largest of {len(gaps)} layers) at most, over the spatial mappings that"
        f" {engine} tries{whole if what else ''}; others can be better"
    )


def _gap(record: LayerRecord) -> float | None:
    """Gap of a record: the share by which its objective could fall. None if the record has no lower bound."""
    bound = record.search.get("lower_bound")
    value = OBJECTIVES[record.objective].value(record.energy_pj, record.latency_cycles)
    return None if bound is None else gap_to(bound, value)


def _with_work(figures: Sums, node: WorkloadNode) -> Sums:
    assert node.layer is not None
    counts = work_counts(node.unit, node.layer.mac_count)
    result = figures.copy()
    result[MACS], result[OPERATIONS] = counts["mac_count"], counts["operation_count"]
    return result


def _union(nodes: Sequence[WorkloadNode]) -> Workload:
    """Network of the layers alone, without links between them.

    Layers with the same name are named as parts of one layer. A mapping entry for this name then applies to all of
    them.
    """
    taken: set[str] = set()
    found = []
    for place, node in enumerate(nodes):
        assert node.layer is not None
        name = node.name if node.name not in taken else part_name(node.name, place, len(nodes))
        taken.add(name)
        layer = replace(node.layer, name=name)
        found.append(replace(node, node_id=place, name=name, layer=layer, sources=(), index_maps=(), repeats=1))
    return Workload("layers", tuple(found))
