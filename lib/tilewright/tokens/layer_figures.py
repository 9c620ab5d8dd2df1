"""Figures (energy, latency, counts) of the layers of a language model on one core.

Each distinct layer is searched once, and the figures of a step are sums over its layers.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.operator_groups import work_counts
from tilewright.base.proof import gap_to
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Accelerator, Core, Memory, single_core
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.static_power import clock_period_ns
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.control_rules import refuse_control
from tilewright.mapping.runnable import UncostedWork
from tilewright.mapping.zero_keys import refuse_zeros
from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.run import map_problem
from tilewright.results.bottlenecks import ARRAY, CAUSE_OF_TERM, IDLE_UNITS, MOVING_DATA, WAITING
from tilewright.results.port_limits import PortName, port_names, wider_cycles, wider_ports
from tilewright.results.recorded_mappings import RecordedMapping, recorded_mappings
from tilewright.search.options import SearchOptions
from tilewright.tokens.bound import saved_share, step_limit
from tilewright.tokens.doubled import SIZE, larger, largest_gains, saved_column
from tilewright.tokens.steps import FURTHER, LATENCY, MACS, OPERATIONS, StepRun, Sums
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer, part_name

KINDS = (ARRAY, IDLE_UNITS, MOVING_DATA, WAITING)
"""Kinds of cycles into which the latency of a layer is divided."""
WIDER = FURTHER + len(KINDS)
"""Index, in an array of figures, of the first latency with a wider port.

An array of figures has these groups of entries, in this order:

* the figures that all steps have: energy, latency, number of MACs, number of operations
* the cycles by KINDS
* for each port, the latency in cycles if only this port is twice as wide
* for each memory below the outermost ones, the latency in cycles if only this memory is twice as large

Counts are exact up to 2^53.
"""
Kind = tuple[Layer, MappingConstraints, str, str, str]
"""Key under which the figures of a layer are stored. The key has five parts: the layer without its name; the
constraints on the mapping; the unit that the layer needs (MAC array or vector unit); the operator type of the layer;
and the type of the network operator to which the layer belongs, such as Softmax.
"""


@dataclass
class LayerFigures:
    """Figures (energy, latency, counts) of the layers of steps on one core. A layer is searched when its figures are
    first needed."""

    accelerator: Accelerator
    mapping: Mapping
    options: SearchOptions
    control: Control
    with_limits: bool = True
    """True if latencies on changed cores are also computed. A changed core has one port that is twice as wide, or one
    memory that is twice as large.
    """
    uncosted: dict[str, UncostedWork] = field(default_factory=dict)
    """Work that the core cannot run, by operator type."""
    _figures: dict[Kind, Sums | None] = field(default_factory=dict)
    """Figures by layer. None if the core cannot run the layer."""
    _kinds: dict[tuple[str, Layer, str], Kind] = field(default_factory=dict)
    _mappings: dict[Kind, RecordedMapping] = field(default_factory=dict)
    """Mappings of the layers that the core runs, by layer; empty if `with_limits` is false."""
    _gaps: dict[Kind, float] = field(default_factory=dict)
    """Gap of each layer: the largest share by which its objective could fall with other temporal mappings. Layers for
    which the search computes no lower bound are missing."""
    _with_ports: dict[tuple[Kind, tuple[PortName, ...]], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InputError if `exploit_data_locality` is on, because here no data stay on chip between layers."""
        refuse_zeros(self.accelerator.cores, "a language model")
        refuse_control(self.accelerator.cores, "a language model")
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
        """Ports of the core for which the figures include a latency with twice the port width; [] if `with_limits` is
        false."""
        return port_names(self.core) if self.with_limits else []

    def port_of(self, name: str) -> PortName:
        """Port whose name in tables is `name`."""
        return next(port for port in self.ports if str(port) == name)

    @property
    def larger(self) -> list[str]:
        """Names of the memories for which the figures include a latency with twice the memory size: all memories except
        the outermost ones; [] if `with_limits` is false."""
        outermost = {memory.name for memory, _ in top_memories(self.core)}
        return [one.name for one in self.core.memories if one.name not in outermost] if self.with_limits else []

    def cycles_by_kind(self, figures: Sums) -> dict[str, float]:
        """Cycles by kind (KINDS), which add up to the latency: the cycles that the work takes if all units of the array
        work, and the cycles that are lost by idle units, by moving data, and by calls and commands.
        """
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
        """Array of zeros, one for each figure of a step."""
        return np.zeros(WIDER + len(self.ports) + len(self.larger))

    @property
    def searched(self) -> int:
        """Number of distinct layers that were searched."""
        return len(self._figures)

    def search(self, workloads: Iterable[Workload]) -> None:
        """Compute the figures of the layers of the workloads. The mappings of all layers that have no figures yet are
        searched together.

        Raises MappingError with the names of all layers for which no mapping fits.
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
        return map_problem(problem, pipeline, replace(self.control, is_network=False)).records

    def _larger_latencies(self, union: Workload, name: str) -> dict[str, float]:
        """Latency in cycles of each layer, by name, after a search on a core with memory `name` twice as large."""
        memories = tuple(larger(one) if one.name == name else one for one in self.core.memories)
        accelerator = replace(self.accelerator, cores=(replace(self.core, memories=memories),))
        options = replace(self.options, bounds=False)  # the bounds of changed hardware are not used
        records = self._mapped(NetworkProblem(union, accelerator, self.mapping), options)
        return {layer: float(record.latency_cycles) for record in records for layer in record.names}

    def of(self, workload: Workload) -> Sums:
        """Figures of a workload: the sums over its layers, which run one after another. A layer that the network
        repeats counts once per repetition."""
        self.search([workload])
        total = self.zero
        for node in workload.nodes:
            if node.layer is not None and (figures := self._figures[self._kind(node)]) is not None:
                total += node.repeats * figures
        return total

    def check(self, batches: Sequence[int]) -> None:
        """Accept all batches, because a single core can run any batch."""

    def runs(self, sums: Sums, requests: int) -> list[StepRun]:
        """Ways to run a step. The list has one item, because a single core can run a step in only one way."""
        return [StepRun("", sums, float(sums[LATENCY]))]

    def limit(self, step: StepRun, workload: Workload, requests: int) -> JsonObject:
        """Table columns on what limits a step. The columns have the bound of the step, the port whose double width
        saves the most time, and the memory whose double size saves the most time. For each memory below the outermost
        memories, the columns also have the share of the time that its double size saves.
        """
        return limit_of(self, step, workload)

    def notes(self, weight_bits: int) -> tuple[str, ...]:
        """Notes on operators without costs, and on the gaps of the layers (`gap_note`)."""
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
        """Figures of mapped layers, from the records of their mappings. The counts of MACs and operations are 0, and
        latencies with larger memories are left out.

        `recorded` has the mapping of each record. If latencies with wider ports are not needed, `recorded` is ().
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
    """Table columns on what limits a step. The columns have the bound of the step, the port whose double width saves
    the most time, and the memory whose double size saves the most time. For each memory below the outermost memories,
    the columns also have the share of the time that its double size saves. `workload` has the layers of the step.
    """
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
    """Cycles of a mapped layer, one number for each kind in KINDS."""
    found = dict.fromkeys(KINDS, 0.0)
    for term, cycles in record.latency_breakdown_cycles.items():
        found[CAUSE_OF_TERM.get(term, MOVING_DATA)] += cycles
    return list(found.values())


def gap_note(gap_of: dict[Kind, float], figures: dict[Kind, Sums | None], options: SearchOptions) -> str:
    """Note on the gaps of the layers. The gap of a layer limits how much better its mapping could be: with other
    temporal mappings, the objective could fall by at most this share. Only the spatial mappings that the search tries
    are considered.

    `gap_of` has the known gaps. `figures` has a value for each layer, which is None if the core cannot run the layer.
    If the gap of a layer that the core runs is missing, the note says that the distance from the best mappings was not
    computed.
    """
    engine, objective = options.temporal_mapping_search_engine, options.objective
    gaps = list(gap_of.values())
    if not gaps or len(gaps) < sum(one is not None for one in figures.values()):
        return f"mappings: found by {engine}; it was not computed how much better the best mappings are"
    middle, largest = (f"{math.ceil(gap * 1000 - 1e-9) / 10:.1f}%" for gap in (median(gaps), max(gaps)))
    what = {"latency": "the time", "energy": "the energy"}.get(objective)
    whole = f"; {what} of a step is a sum over layers, so it could fall by at most {largest}, too"
    return (
        f"mappings: with other temporal mappings for the spatial mappings that {engine} tries, the {objective} of each"
        f" layer could fall by at most {largest}; the median of these limits over {count_of(len(gaps), 'layer')} is"
        f" {middle}{whole if what else ''}; other spatial mappings can be better still"
    )


def _gap(record: LayerRecord) -> float | None:
    """Gap of the layer of a record: the largest share by which its objective could fall with other temporal mappings.
    None if the record has no lower bound."""
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
    """Network of all given layers, without links between them.

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
