"""Figures of each distinct layer of many steps of a language model; steps are sums over them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import InputError, Problem
from tilewright.base.operator_groups import work_counts
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Accelerator, Core, single_core
from tilewright.hardware.hierarchy import top_memories
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
from tilewright.tokens.doubled import larger
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer, part_name

Figures = npt.NDArray[np.float64]
"""Energy in pJ, latency in cycles, multiply-accumulates, other operations, cycles of the latency by KINDS, then the
latency in cycles with each port twice as wide, and with each memory on the chip twice as large. Of several layers the
sums; counts stay whole numbers up to 2^53."""
ENERGY, LATENCY, MACS, OPERATIONS, FIRST_KIND = range(5)
KINDS = (ARRAY, IDLE_UNITS, MOVING_DATA)
"""What takes the cycles of a layer."""
WIDER = FIRST_KIND + len(KINDS)
Kind = tuple[Layer, MappingConstraints, str, str, str]
"""What the cost of a layer depends on: the layer without its name, what is fixed of its mapping, its unit and types."""


@dataclass
class LayerFigures:
    """Figures of the layers of steps on one core; layers are searched when they are first needed."""

    accelerator: Accelerator
    mapping: Mapping
    options: SearchOptions
    control: Control
    with_limits: bool = True
    """Whether to find out what twice the width of each port, and twice the size of each memory, would change."""
    uncosted: dict[str, UncostedWork] = field(default_factory=dict)
    """Operator type -> what of it the core does not run."""
    _figures: dict[Kind, Figures | None] = field(default_factory=dict)
    """None for a layer that the core does not run."""
    _kinds: dict[tuple[str, Layer, str], Kind] = field(default_factory=dict)
    _mappings: dict[Kind, RecordedMapping] = field(default_factory=dict)
    """Mappings of the layers that the core runs, where limits are asked for."""
    _with_ports: dict[tuple[Kind, tuple[PortName, ...]], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises InputError for options that need data between layers."""
        if self.options.exploit_data_locality:
            message = "data is not followed from layer to layer here: each begins and ends in the top memory"
            raise InputError([Problem(message, path="exploit_data_locality")])

    @property
    def core(self) -> Core:
        """The core. Raises InputError if the accelerator has several."""
        return single_core(self.accelerator)

    @property
    def ports(self) -> list[PortName]:
        """The ports of which the figures tell what twice the width would change."""
        return port_names(self.core) if self.with_limits else []

    def port_of(self, name: str) -> PortName:
        """The port with a name in words."""
        return next(port for port in self.ports if str(port) == name)

    @property
    def larger(self) -> list[str]:
        """The memories of which the figures tell what twice the size would change: those below the outermost ones."""
        outermost = {memory.name for memory, _ in top_memories(self.core)}
        return [one.name for one in self.core.memories if one.name not in outermost] if self.with_limits else []

    def cycles_by_kind(self, figures: Figures) -> dict[str, float]:
        """Cycles of figures in which the array works, its units have no work, and data move."""
        return dict(zip(KINDS, figures[FIRST_KIND:WIDER].tolist(), strict=True))

    def cycles_with(self, workload: Workload, ports: tuple[PortName, ...]) -> float:
        """Cycles of all layers of a workload with some ports twice as wide, with the same mappings."""
        self.search([workload])
        total = 0.0
        for node in workload.nodes:
            if node.layer is not None and (mapping := self._mappings.get(self._kind(node))) is not None:
                key = (self._kind(node), ports)
                if key not in self._with_ports:
                    self._with_ports[key] = wider_cycles(mapping, self.core, ports)
                total += node.repeats * self._with_ports[key]
        return total

    def wider_cycles(self, figures: Figures) -> Figures:
        """Cycles of figures with each of `ports` twice as wide."""
        return figures[WIDER : WIDER + len(self.ports)]

    def larger_cycles(self, figures: Figures) -> Figures:
        """Cycles of figures with each of `larger` twice as large."""
        return figures[WIDER + len(self.ports) :]

    @property
    def zero(self) -> Figures:
        """Figures of nothing."""
        return np.zeros(WIDER + len(self.ports) + len(self.larger))

    @property
    def searched(self) -> int:
        """Distinct layers that were searched."""
        return len(self._figures)

    def search(self, workloads: Iterable[Workload]) -> None:
        """Search all layers of these that are not known yet, together.

        Raises MappingError naming every layer that nothing fits.
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
        records = self._mapped(problem)
        recorded = recorded_mappings(records, self.core, union) if self.with_limits else ()
        mappings = {name: one for one in recorded for name in one.record.names}
        by_name = dict(zip((record.names for record in records), self._of_records(records, recorded), strict=True))
        found = {name: figures for names, figures in by_name.items() for name in names}
        larger = [self._larger_latencies(union, name) for name in self.larger]
        for kind, node in zip(missing, union.nodes, strict=True):
            figures = found.get(node.name)
            if figures is not None:
                # More room need not be used: a mapping that is longer with it counts as the one without.
                cycles = [min(one[node.name], float(figures[LATENCY])) for one in larger]
                figures = np.concatenate((_with_work(figures, node), cycles))
            self._figures[kind] = figures
            if node.name in mappings:
                self._mappings[kind] = mappings[node.name]

    def _mapped(self, problem: NetworkProblem) -> Sequence[LayerRecord]:
        """The records of the best mappings of all layers."""
        pipeline = Pipeline.build(None, self.options, onnx=False)
        return map_problem(problem, pipeline, self.control).records

    def _larger_latencies(self, union: Workload, name: str) -> dict[str, float]:
        """Layer -> cycles with a memory twice as large, mapped again."""
        memories = tuple(larger(one) if one.name == name else one for one in self.core.memories)
        accelerator = replace(self.accelerator, cores=(replace(self.core, memories=memories),))
        records = self._mapped(NetworkProblem(union, accelerator, self.mapping))
        return {layer: float(record.latency_cycles) for record in records for layer in record.names}

    def of(self, workload: Workload) -> Figures:
        """The figures of all layers of a workload, which run one after another; those that repeat count as often."""
        self.search([workload])
        total = self.zero
        for node in workload.nodes:
            if node.layer is not None and (figures := self._figures[self._kind(node)]) is not None:
                total += node.repeats * figures
        return total

    def _kind(self, node: WorkloadNode) -> Kind:
        assert node.layer is not None
        key = (node.operator_type, node.layer, node.unit)
        if key not in self._kinds:
            given = self.mapping.constraints_for(node.layer)
            self._kinds[key] = (replace(node.layer, name=""), given, node.unit, node.operator_type, node.origin_type)
        return self._kinds[key]

    def _of_records(self, records: Sequence[LayerRecord], recorded: Sequence[RecordedMapping]) -> list[Figures]:
        """The figures of records, without the work of their layers; `recorded` are the mappings, () without limits."""
        wider: list[list[float]] = [[] for _ in records]
        if recorded:
            limits = [wider_ports(one, self.core) for one in recorded]
            wider = [[limit.with_wider(name) for name in self.ports] for limit in limits]
        return [
            np.array([record.energy_pj, record.latency_cycles, 0, 0, *kinds_of(record), *more], np.float64)
            for record, more in zip(records, wider, strict=True)
        ]


def kinds_of(record: LayerRecord) -> list[float]:
    """Cycles of a record by KINDS."""
    found = dict.fromkeys(KINDS, 0.0)
    for term, cycles in record.latency_breakdown_cycles.items():
        found[CAUSE_OF_TERM.get(term, MOVING_DATA)] += cycles
    return list(found.values())


def _with_work(figures: Figures, node: WorkloadNode) -> Figures:
    assert node.layer is not None
    counts = work_counts(node.unit, node.layer.mac_count)
    result = figures.copy()
    result[MACS], result[OPERATIONS] = counts["mac_count"], counts["operation_count"]
    return result


def _union(nodes: Sequence[WorkloadNode]) -> Workload:
    """The layers as one network, without what is between them; those of one name are parts of it, so that what a
    mapping file says of the name holds for all."""
    taken: set[str] = set()
    found = []
    for place, node in enumerate(nodes):
        assert node.layer is not None
        name = node.name if node.name not in taken else part_name(node.name, place, len(nodes))
        taken.add(name)
        layer = replace(node.layer, name=name)
        found.append(replace(node, node_id=place, name=name, layer=layer, sources=(), index_maps=(), repeats=1))
    return Workload("layers", tuple(found))
