"""Figures of steps on several cores, for each way to share the work: sums over layers that are scheduled once.

An array [way, section of the model, figure]. A way is tensor parallel, data parallel, or all on one core, for each core
that can hold a stage of a pipeline. Sections are what is before the blocks, each kind of block (all blocks of it), and
what is behind them: of these a pipeline is put together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.errors import MappingError, Problems
from tilewright.hardware.core import Memory
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.operator_groups import MAC_ARRAY, work_counts
from tilewright.token_costs.doubled import Doubled, doubled_parts
from tilewright.token_costs.layer_networks import layer_network
from tilewright.token_costs.layer_schedules import LayerCost, LayerSchedules
from tilewright.token_costs.strategies import DATA, PIPELINE, TENSOR
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.architecture import Architecture

Numbers = npt.NDArray[np.float64]
ENERGY, LATENCY, MACS, OPERATIONS, OTHERS = range(5)
"""The first figures: pJ, cycles, counts. From OTHERS on, for each core: cycles of layers that run on it alone, where
links are shared; for each part of which there is twice as much: cycles."""
BEFORE, FIRST_KIND = 0, 1
"""Sections; that behind the blocks is the last one."""


class Way(NamedTuple):
    """A way to share the work."""

    strategy: str
    core: int = -1
    """By place: of a stage of a pipeline; -1 where all cores run each layer."""


@dataclass
class SystemFigures:
    """Figures of the layers of steps on several cores; layers are scheduled when they are first needed."""

    schedules: LayerSchedules
    mapping: Mapping
    model: Architecture
    strategies: tuple[str, ...]
    with_limits: bool = True
    """Whether to find out what twice as much of each memory and of links would change."""
    by_inputs: set[str] = field(default_factory=set)
    """Names of products that are cut along their inputs, tensor parallel."""
    _rows: dict[tuple[Workload, MappingConstraints], tuple[Numbers, bool]] = field(default_factory=dict)
    _stages: tuple[int, ...] = ()
    _units: tuple[int, ...] = ()

    @property
    def searched(self) -> int:
        """Distinct classes of computation nodes that were looked for on core files."""
        return self.schedules.searched

    @property
    def stages(self) -> tuple[int, ...]:
        """The cores, by place, that can have a stage of a pipeline: those that run products. Known once layers are."""
        assert self._stages
        return self._stages

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """What the first axis of figures has."""
        found = [Way(one) for one in (TENSOR, DATA) if one in self.strategies]
        return (*found, *(Way(PIPELINE, core) for core in self.stages if PIPELINE in self.strategies))

    @property
    def doubled(self) -> tuple[Doubled, ...]:
        """The parts of which the last figures have twice as much."""
        return self.schedules.doubled

    def loads(self, figures: Numbers) -> Numbers:
        """Of figures along the last axis those for each core of layers that run on it alone."""
        return figures[..., OTHERS : OTHERS + len(self.schedules.accelerator.places)]

    def doubled_cycles(self, figures: Numbers) -> Numbers:
        """Of figures along the last axis those for each of `doubled`."""
        return figures[..., OTHERS + len(self.schedules.accelerator.places) :]

    @property
    def zero(self) -> Numbers:
        """Figures of nothing."""
        columns = OTHERS + len(self.schedules.accelerator.places) + len(self.doubled)
        return np.zeros((len(self.ways), FIRST_KIND + len(self.model.kinds) + 1, columns))

    def search(self, workloads: Iterable[Workload]) -> None:
        """Schedule all layers of these that are not known yet.

        Raises InputError for layers that no core can run, MappingError for one that has no schedule.
        """
        workloads = list(workloads)
        if not self._stages:
            self._find_cores(workloads)
        for workload in workloads:
            self.of(workload)

    def _find_cores(self, workloads: Sequence[Workload]) -> None:
        """Find the cores of stages, and those that run something in a pipeline."""
        told = Problems()
        stages: dict[int, None] = {}
        others: set[int] = set()
        nodes = {node.name: node for workload in workloads for node in workload.nodes if node.layer is not None}
        for node in nodes.values():
            cores = told.attempt(self.schedules.cores_for, node, self._entry(node)) or ()
            if node.unit == MAC_ARRAY:
                stages.update(dict.fromkeys(cores))
            others.update(cores)
        told.finish()
        self._stages = tuple(sorted(stages))
        # A core that has no stage shares links with them where it runs something for all.
        self._units = (*self._stages, *sorted(others - set(self._stages)))
        if self.with_limits:
            places = self.schedules.accelerator.places
            files = dict.fromkeys(places[unit].file_name for unit in self._units)
            self.schedules.doubled = tuple(doubled_parts(self.schedules.accelerator, files))

    def of(self, workload: Workload) -> Numbers:
        """The figures of all layers of a workload, which run one after another; those that repeat count as often."""
        if not self._stages:
            self._find_cores([workload])
        total = self.zero
        for node in workload.nodes:
            if node.layer is not None:
                total[:, self.section_of(node.name)] += node.repeats * self._rows_of(workload, node)
        return total

    def _rows_of(self, workload: Workload, node: WorkloadNode) -> Numbers:
        """[way, figure] of one node, once."""
        network, entry = layer_network(workload, node), self._entry(node)
        key = network, replace(entry, name="")
        if key not in self._rows:
            costs = [self._cost(network, entry, way, node.name) for way in self.ways]
            cores = len(self.schedules.accelerator.places)
            is_by_inputs = any(cost.by_inputs for cost in costs)
            self._rows[key] = np.array([_row(cost, node, cores) for cost in costs]), is_by_inputs
        rows, is_by_inputs = self._rows[key]
        if is_by_inputs:
            self.by_inputs.add(node.name)
        return rows

    def _cost(self, network: Workload, entry: MappingConstraints, way: Way, name: str) -> LayerCost:
        try:
            return self.schedules.cost(network, entry, way.strategy, way.core, self._units)
        except MappingError as error:
            raise MappingError(f"{name}, {way.strategy} parallel: {error}") from error

    def _entry(self, node: WorkloadNode) -> MappingConstraints:
        assert node.layer is not None
        return self.mapping.constraints_for(node.layer)

    def section_of(self, name: str) -> int:
        """The section that a node of this name is in."""
        for place, block in enumerate(self.model.kinds):
            if name.startswith(f"layers.{block.name}/" if block.name else "layers/"):
                return FIRST_KIND + place
        return BEFORE if name.startswith("embed") else FIRST_KIND + len(self.model.kinds)


def _row(cost: LayerCost, node: WorkloadNode, cores: int) -> Numbers:
    """The figures of a layer."""
    assert node.layer is not None
    counts = work_counts(node.unit, node.layer.mac_count)
    shared = np.zeros(cores)
    if cost.core >= 0:
        shared[cost.core] = cost.shared_latency_cycles
    first = [cost.energy_pj, cost.latency_cycles, counts["mac_count"], counts["operation_count"]]
    return np.concatenate((first, shared, cost.doubled_latency_cycles))


def off_chip_memory(accelerator: MultiCoreAccelerator) -> Memory:
    """The largest memory of the off-chip core."""
    assert accelerator.offchip_core_id is not None
    return max(accelerator.core_of[accelerator.offchip_core_id].memories, key=lambda one: one.size_bits)
