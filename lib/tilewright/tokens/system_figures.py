"""Costs of the steps of a language model on several cores: tensor, data and pipeline parallel.

The costs of a step are an array [way, section, figure]. A way says which cores run a layer. Either all cores share each
layer (one way for tensor parallel, and one for data parallel), or one core runs all layers (one way for each core that
can run a stage of a pipeline). The sections of the model are the layers before the blocks, all blocks of each kind, and
the layers after the blocks. A figure is one number, such as the energy. The figures of a pipeline are put together from
sections that run on one core.

The last axis has three groups of figures:

* the figures that all steps have: energy, latency, counts
* one number for each core: the cycles of the layers that run only on this core, if the width of each link is divided by
  the number of cores that use the link
* one latency in cycles for each changed accelerator in `doubled`

A pipeline assigns consecutive blocks to stages, so that the slowest stage takes the least possible time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import InputError, MappingError, Problem, Problems
from tilewright.base.json_values import JsonObject
from tilewright.base.operator_groups import MAC_ARRAY, work_counts
from tilewright.hardware.core import Memory
from tilewright.hardware.static_power import system_clock_period_ns
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.tokens.bound import saved_share, step_limit
from tilewright.tokens.doubled import SIZE, WIDTH, Doubled, combined, doubled_parts, largest_gains
from tilewright.tokens.layer_networks import layer_network
from tilewright.tokens.layer_schedules import LayerSchedules, SystemLayerCost
from tilewright.tokens.steps import FURTHER, LATENCY, StepRun, Sums
from tilewright.tokens.strategies import BEST, DATA, PIPELINE, STRATEGIES, TENSOR
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.architecture import Architecture

MOST_SETS_OF_PARTS = 12
"""Largest number of sets of parts that are tried for each set size. (The size is the number of parts in a set.) Sets
are tried only if no single part saves enough time. Each set needs new schedules."""
BEFORE, FIRST_KIND = 0, 1
"""Indexes of two sections of a model: the layers before the blocks, and the blocks of the first kind. (The last section
has the layers after the blocks.)"""


class Way(NamedTuple):
    """Way to share the work of a step between cores."""

    strategy: str
    core: int = -1
    """Index of the core that runs all layers, with the strategy PIPELINE. The index is -1 if all cores share each
    layer.
    """


@dataclass
class SystemFigures:
    """Figures (energy, latency, counts) of steps on several cores, summed over the layers of a step. A layer is
    scheduled when its figures are first needed.
    """

    schedules: LayerSchedules
    mapping: Mapping
    model: Architecture
    strategies: tuple[str, ...]
    with_limits: bool = True
    """True if latencies with doubled memories and links are also computed."""
    by_inputs: set[str] = field(default_factory=set)
    """Names of the matrix products that the strategy TENSOR cuts along their inputs."""
    _rows: dict[tuple[Workload, MappingConstraints], tuple[Sums, bool]] = field(default_factory=dict)
    _sets: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Index in `doubled` of each set of doubled parts, by the names of the parts."""
    _singles: int = 0
    _stages: tuple[int, ...] = ()
    _units: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Name of the accelerator."""
        return self.schedules.accelerator.name

    @property
    def memory(self) -> Memory:
        """Largest memory of the off-chip core."""
        accelerator = self.schedules.accelerator
        assert accelerator.offchip_core_id is not None
        return max(accelerator.core_of[accelerator.offchip_core_id].memories, key=lambda one: one.size_bits)

    @property
    def clock_period_ns(self) -> float | None:
        """Clock period in ns, which is the same for all cores; None if no hardware file gives it."""
        return system_clock_period_ns(self.schedules.accelerator)

    @property
    def searched(self) -> int:
        """Number of pairs (class of computation nodes, core file) for which a mapping was searched."""
        return self.schedules.searched

    @property
    def stages(self) -> tuple[int, ...]:
        """Indexes of the cores that can run matrix products. Only these cores can run a stage of a pipeline. The
        indexes are known after a search.
        """
        assert self._stages
        return self._stages

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Ways to share a step between the cores, in the order of the first axis of an array [way, section, figure]."""
        found = [Way(one) for one in (TENSOR, DATA) if one in self.strategies]
        return (*found, *(Way(PIPELINE, core) for core in self.stages if PIPELINE in self.strategies))

    @property
    def doubled(self) -> tuple[Doubled, ...]:
        """Changed accelerators: first those with one doubled part, then those with a set of doubled parts.

        The last axis of an array of figures ends with the latencies on these accelerators, in this order.
        """
        return self.schedules.doubled

    @property
    def single_parts(self) -> tuple[Doubled, ...]:
        """Changed accelerators with a single doubled part. They come first in `doubled`."""
        return self.doubled[: self._singles]

    def look_at(self, parts: Sequence[Doubled]) -> int:
        """Index in `doubled` of the accelerator with all `parts` doubled. If `doubled` does not have this accelerator
        yet, it is added.

        Figures that are computed afterwards contain the latency on this accelerator.
        """
        key = tuple(part.name for part in parts)
        if key not in self._sets:
            self._sets[key] = len(self.doubled)
            self.schedules.look_at(combined(self.schedules.accelerator, parts))
            self._rows.clear()
        return self._sets[key]

    def loads(self, figures: Sums) -> Sums:
        """Load of each core in a pipeline: cycles of the layers that only this core runs. The last axis of `figures`
        has the figures of a step; the last axis of the result has one entry per core."""
        return figures[..., FURTHER : FURTHER + len(self.schedules.accelerator.places)]

    def doubled_cycles(self, figures: Sums) -> Sums:
        """Latency in cycles on each changed accelerator in `doubled`. The last axis of the result has one latency per
        accelerator; the last axis of `figures` has the figures of a step.
        """
        return figures[..., FURTHER + len(self.schedules.accelerator.places) :]

    @property
    def zero(self) -> Sums:
        """Array [way, section, figure] of figures that are all 0. A way says how the cores share the step (`ways`), and
        a section is a part of the model (`section_of`)."""
        columns = FURTHER + len(self.schedules.accelerator.places) + len(self.doubled)
        return np.zeros((len(self.ways), FIRST_KIND + len(self.model.kinds) + 1, columns))

    def search(self, workloads: Iterable[Workload]) -> None:
        """Schedule the layers of the workloads. Layers that already have a schedule are left out. Raises InputError for
        a layer that no core can run, and MappingError for a layer without a schedule."""
        workloads = list(workloads)
        if not self._stages:
            self._find_cores(workloads)
        for workload in workloads:
            self.of(workload)

    def _find_cores(self, workloads: Sequence[Workload]) -> None:
        """Find and store two sets of cores: the cores that can run layers for a MAC array and can therefore be a stage
        of a pipeline, and all cores that can run at least one layer. Raises InputError for layers that no core can run.

        If `with_limits` is true, set the changed accelerators in `doubled`, too.
        """
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
        # A core without a stage still shares links with the stages if it runs layers for all of them.
        self._units = (*self._stages, *sorted(others - set(self._stages)))
        if self.with_limits:
            places = self.schedules.accelerator.places
            files = dict.fromkeys(places[unit].file_name for unit in self._units)
            self.schedules.doubled = tuple(doubled_parts(self.schedules.accelerator, files))
            self._singles = len(self.schedules.doubled)

    def of(self, workload: Workload) -> Sums:
        """Figures of a workload, as an array [way, section, figure]: the sums over its layers, which run one after
        another.

        A layer that the network repeats counts once per repetition.
        """
        if not self._stages:
            self._find_cores([workload])
        total = self.zero
        for node in workload.nodes:
            if node.layer is not None:
                total[:, self.section_of(node.name)] += node.repeats * self._rows_of(workload, node)
        return total

    def check(self, batches: Sequence[int]) -> None:
        """Raise InputError if DATA is the only allowed strategy and a batch has one request, which cores cannot
        share."""
        if self.strategies == (DATA,) and min(batches) == 1:
            message = "data parallel cores cannot share a batch of one request"
            raise InputError([Problem(message, path="batches", value="1", allowed="batches of 2 or more")])

    def runs(self, sums: Sums, requests: int) -> list[StepRun]:
        """Runs of a step, one for each strategy that a step with `requests` requests allows. `sums` has the figures of
        the step, as an array [way, section, figure]."""
        return shared_ways(self, sums, requests)

    def limit(self, step: StepRun, workload: Workload, requests: int) -> JsonObject:
        """Table columns on the limits of a step. The columns tell what limits the latency, and which parts of the
        accelerator save most if their width or size is doubled. For each part, the columns also give the share of the
        latency that the part saves. `workload` has the layers of the step, and `requests` is its number of requests.
        """
        return limit_of(self, step, workload, requests)

    def notes(self, weight_bits: int) -> tuple[str, ...]:
        """Notes on weights that do not fit, on products that are cut along their inputs, and on the quality of mappings
        and schedules."""
        notes = []
        if weight_bits > self.memory.size_bits:
            notes.append(f"the weights do not fit into {self.memory.name}; the costs are computed as if they did")
        if self.by_inputs:
            names = dict.fromkeys(sorted(name.rpartition("/")[2] for name in self.by_inputs))
            notes.append(
                f"tensor parallel cuts these layers along their inputs and sums partial results: {', '.join(names)}"
            )
        notes.append(
            "mappings and schedules: found by the search; how far they are from the best ones is not computed for"
            " several cores"
        )
        return tuple(notes)

    def _rows_of(self, workload: Workload, node: WorkloadNode) -> Sums:
        """Figures (energy, latency, ...) of one node, as an array [way, figure]. A way says how the cores share the
        step (`ways`). If the node represents several equal nodes, the figures are for a single node.
        """
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

    def _cost(self, network: Workload, entry: MappingConstraints, way: Way, name: str) -> SystemLayerCost:
        try:
            return self.schedules.cost(network, entry, way.strategy, way.core, self._units)
        except MappingError as error:
            raise MappingError(*f"{name}, {way.strategy} parallel: {error}".splitlines()) from error

    def _entry(self, node: WorkloadNode) -> MappingConstraints:
        assert node.layer is not None
        return self.mapping.constraints_for(node.layer)

    def section_of(self, name: str) -> int:
        """Index of the section that contains the node `name`. The sections are the layers before the blocks, all blocks
        of each kind, and the layers after the blocks."""
        for place, block in enumerate(self.model.kinds):
            if name.startswith(f"layers.{block.name}/" if block.name else "layers/"):
                return FIRST_KIND + place
        return BEFORE if name.startswith("embed") else FIRST_KIND + len(self.model.kinds)


def _row(cost: SystemLayerCost, node: WorkloadNode, cores: int) -> Sums:
    """Figures of a layer as an array with one axis. First come the figures that all steps have (energy, latency, and
    counts of operations). Then comes the load of each of the `cores` cores. Last comes the latency on each changed
    accelerator in `SystemFigures.doubled`.
    """
    assert node.layer is not None
    counts = work_counts(node.unit, node.layer.mac_count)
    shared = np.zeros(cores)
    if cost.core >= 0:
        shared[cost.core] = cost.shared_latency_cycles
    first = [cost.energy_pj, cost.latency_cycles, counts["mac_count"], counts["operation_count"]]
    return np.concatenate((first, shared, cost.doubled_latency_cycles))


def stage_ends(cycles: Sums, first: Sums, last: Sums) -> tuple[int, ...]:
    """Division of consecutive blocks into pipeline stages, such that the slowest stage takes as few cycles as possible.
    The result has one index for each stage: the index after the last block of the stage.

    `cycles` has the cycles of each block on the core of each stage, as [stage, block]. `first` and `last` have the
    cycles of the layers before and after the blocks, as [stage]. The first stage also runs the layers before the
    blocks, and the last stage also runs the layers after the blocks. A stage can be without blocks. If several
    divisions are equally good, the division with the earliest ends is taken.
    """
    stages, blocks = cycles.shape
    until = np.concatenate((np.zeros((stages, 1)), np.cumsum(cycles, axis=1)), axis=1)
    best = until[0] + first[0] + (last[0] if stages == 1 else 0.0)
    chosen: list[npt.NDArray[np.int64]] = []
    for stage in range(1, stages):
        more = last[stage] if stage == stages - 1 else 0.0
        own = until[stage][None, :] - until[stage][:, None] + more  # [begin, end]
        slowest = np.where(np.triu(np.ones(own.shape, np.bool_)), np.maximum(best[:, None], own), np.inf)
        chosen.append(slowest.argmin(axis=0))
        best = slowest.min(axis=0)
    ends = [blocks]
    for begins in reversed(chosen):
        ends.append(int(begins[ends[-1]]))
    return tuple(reversed(ends))


def blocks_of_stage(ends: Sequence[int], stage: int) -> range:
    """Indexes of the blocks in the stage with the index `stage`. `ends` has, for each stage, the index after its last
    block.
    """
    return range(ends[stage - 1] if stage else 0, ends[stage])


def strategies_of(parallel: str) -> tuple[str, ...]:
    """Strategies that are tried for a value of the option `parallel`."""
    return STRATEGIES if parallel == BEST else (parallel,)


def shared_ways(figures: SystemFigures, found: Sums, requests: int) -> list[StepRun]:
    """Runs of a step, one for each strategy that this number of requests allows: DATA needs at least two requests.

    `found` has the figures of the step as an array [way, section, figure]. A way says how the cores share the step
    (`SystemFigures.ways`), and a section is a part of the model (`SystemFigures.section_of`).
    """
    made = []
    for place, way in enumerate(figures.ways):
        if way.strategy != PIPELINE and not (way.strategy == DATA and requests < 2):
            total = found[place].sum(axis=0)
            made.append(StepRun(way.strategy, total, float(total[LATENCY])))
    stages = [place for place, way in enumerate(figures.ways) if way.strategy == PIPELINE]
    return [*made, _pipeline(figures, found[stages])] if stages else made


def _pipeline(figures: SystemFigures, found: Sums) -> StepRun:
    """Run of a step in a pipeline. Each stage of the pipeline runs consecutive blocks on one core, and the blocks are
    divided among the stages so that the slowest stage takes the least time.

    `found` has the figures of the step as an array [core, section, figure], with one core per stage.
    """
    kinds = list(figures.model.kinds.items())
    place_of = {block: FIRST_KIND + place for place, (block, _) in enumerate(kinds)}
    count_of = {FIRST_KIND + place: count for place, (_, count) in enumerate(kinds)}
    sections = [place_of[block] for block in figures.model.blocks]
    counts = np.array([count_of[section] for section in sections], np.float64)
    own = np.array([figures.loads(found[stage])[:, core] for stage, core in enumerate(figures.stages)])
    ends = stage_ends(own[:, sections] / counts, own[:, BEFORE], own[:, -1])
    total = np.zeros(found.shape[-1])
    for stage in range(len(figures.stages)):
        blocks = list(blocks_of_stage(ends, stage))
        for block in blocks:
            total += found[stage, sections[block]] / counts[block]
    total += found[0, BEFORE] + found[-1, -1]
    loads = figures.loads(total)
    interval = float(loads.max()) or float(total[LATENCY])
    sizes = tuple(len(blocks_of_stage(ends, stage)) for stage in range(len(figures.stages)))
    return StepRun(PIPELINE, total, min(interval, float(total[LATENCY])), sizes)


def limit_of(figures: SystemFigures, step: StepRun, workload: Workload, requests: int) -> JsonObject:
    """Table columns on the limits of a step. The columns tell what limits the latency, and which parts of the
    accelerator save most if their width or size is doubled. For each part, the columns also give the share of the
    latency that the part saves. `workload` has the layers of the step, and `requests` is its number of requests.
    """
    parts, cycles = figures.single_parts, figures.doubled_cycles(step.figures)
    latency = step.latency_cycles
    gains = {part: max(0.0, saved_share(latency, float(one))) for part, one in zip(parts, cycles, strict=False)}
    by_name = {part.name: part for part in parts if part.kind == WIDTH}

    def saved_by(names: tuple[str, ...]) -> float:
        place = figures.look_at([by_name[name] for name in names])
        ways = shared_ways(figures, figures.of(workload), requests)
        own = next(way for way in ways if way.strategy == step.strategy)
        return saved_share(latency, float(figures.doubled_cycles(own.figures)[place]))

    widths = {name: gains[part] for name, part in by_name.items()}
    sizes = {part.name: gain for part, gain in gains.items() if part.kind == SIZE}
    limit = step_limit(latency, widths, saved_by, {}, MOST_SETS_OF_PARTS)
    row = (limit.row() if parts else {}) | largest_gains(widths, sizes)
    return row | {part.column: gain for part, gain in gains.items()}
