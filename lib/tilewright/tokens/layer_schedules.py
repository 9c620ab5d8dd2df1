"""Costs of a layer on several cores: the costs of the best schedule over all tried cuts of the layer.

Costs and schedules are computed as in a run of a network on several cores. Inputs and outputs of a layer are in the
off-chip memory, and the next layer begins after the layer has ended. The costs of a step are therefore sums over its
layers. Each schedule is feasible. If layers overlapped, a schedule of the step could be shorter. The sum of the
latencies is therefore an upper bound of the shortest latency.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.base.objectives import ranking
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator
from tilewright.hardware.system_paths import path_table
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.runnable import core_choice
from tilewright.multicore.allocation.search import on_one_core, warm_starts
from tilewright.multicore.allocation.space import AllocationSpace, Genome
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.stacks import LAYER_BY_LAYER
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling
from tilewright.multicore.scheduling.assembly import cost_table
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.cost_classes import cost_classes
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.problem import CoreSystem, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.multicore.scheduling.system_assembly import core_system
from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.multi.core_mapping import KnownRows, map_core
from tilewright.pipeline.stages.multi.items import CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.multi.kept_operands import class_needs
from tilewright.pipeline.stages.multi.run import MultiCoreProblem, multi_core_problem
from tilewright.search.options import CnSearchOptions
from tilewright.tokens.doubled import Doubled
from tilewright.tokens.layer_networks import CutLayer, cut_layers
from tilewright.tokens.strategies import PIPELINE
from tilewright.workload.graph import Workload, WorkloadNode

ROOM_FOR_ANYTHING_BITS = 2**60
"""Size in bits that schedules assume for the off-chip memory. With this size, models that do not fit into the real
memory also have costs. The table says whether a model fits."""


LayerKey = tuple[Workload, MappingConstraints, str, int]


@dataclass(frozen=True)
class SystemLayerCost:
    """Costs of a layer on several cores."""

    energy_pj: float
    latency_cycles: int
    shared_latency_cycles: int
    """Latency in cycles if the width of each link is divided by the number of cores that use the link. The latency is 0
    if the layer is not in a pipeline, or if a link would have less than one bit per cycle."""
    doubled_latency_cycles: tuple[int, ...]
    """Latency in cycles on each changed accelerator in `doubled`. The cut of the layer and the cores that run it stay
    the same."""
    core: int
    """Index, in the list of cores, of the core that runs the layer; -1 if several cores run the layer."""
    by_inputs: bool = False
    """True if the layer is a matrix product that was cut along its inputs."""


@dataclass(frozen=True)
class _Ready:
    """Layer with one of its cuts: its scheduling problem, and the scheduler for this problem."""

    problem: MultiCoreProblem
    scheduler: Scheduler


@dataclass(frozen=True)
class _Found:
    """Schedule of a layer with one of its cuts."""

    cut: CutLayer
    strategy: str
    schedule: Schedule


@dataclass
class LayerSchedules:
    """Schedules of layers on an accelerator. Each distinct layer is scheduled only once."""

    accelerator: MultiCoreAccelerator
    options: CnSearchOptions
    control: Control
    doubled: tuple[Doubled, ...] = ()
    """Changed accelerators. The latency of every layer is computed on each of them."""
    _known: KnownRows = field(default_factory=dict)
    _known_of: dict[int, KnownRows] = field(default_factory=dict)
    """Rows of the cost table for each changed accelerator, by its index in `doubled`. Rows that were not needed yet are
    missing."""
    _found: dict[LayerKey, SystemLayerCost] = field(default_factory=dict)
    _chosen: dict[LayerKey, "_Found"] = field(default_factory=dict)
    """Best schedule of each layer. If a changed accelerator is added to `doubled` later, the latency on it is computed
    from this schedule."""
    _latencies: dict[tuple[LayerKey, int], int] = field(default_factory=dict)
    """Latency in cycles, by (layer, index of the change in `doubled`)."""
    _ready: dict[tuple[CutLayer, int, frozenset[str]], "_Ready"] = field(default_factory=dict)
    """Prepared problems of the current layer, by (cut, index of a changed accelerator in `doubled`, core files). The
    index is -1 for the unchanged accelerator."""

    def __post_init__(self) -> None:
        """Raise InputError for an accelerator without an off-chip memory."""
        if self.accelerator.offchip_core_id is None:
            message, allowed = "has no off-chip core to keep weights and results", "offchip_core: FILE"
            raise InputError([Problem(message, self.accelerator.name, allowed=allowed)])

    @property
    def searched(self) -> int:
        """Number of pairs (class of computation nodes, core file) for which a mapping was searched."""
        return len(self._known)

    def cores_for(self, node: WorkloadNode, entry: MappingConstraints) -> tuple[int, ...]:
        """Indexes of the cores that can run the layer of a node. Raises InputError if no core can run the layer."""
        choice = core_choice(node, entry, self.accelerator)
        if not choice.core_ids:
            why = "; ".join(f"core {core_id} {reason}" for core_id, reason in choice.reasons)
            raise InputError([Problem(f"no core can run it ({why})", path=node.name)])
        return tuple(sorted(self.accelerator.core_ids.index(core_id) for core_id in choice.core_ids))

    def cost(
        self, network: Workload, entry: MappingConstraints, strategy: str, core: int, units: Sequence[int]
    ) -> SystemLayerCost:
        """Costs of the best schedule of the network of one layer.

        With the strategy PIPELINE, the layer runs on `core`. If this core cannot run the layer, the fastest core that
        can run it is used. `units` are the indexes of the cores that share links in the pipeline. Raises MappingError
        if the layer has no schedule.
        """
        key = (network, replace(entry, name=""), strategy, core)
        if key not in self._found:
            if key not in self._chosen:
                self._chosen[key] = self._best(network, entry, strategy, core)
            else:
                self._keep_ready_for(network)
            self._found[key] = self._cost_of(key, units)
        return self._found[key]

    def look_at(self, part: Doubled) -> None:
        """Add a changed accelerator to `doubled`. Layers that are already scheduled also get a latency on it."""
        self.doubled = (*self.doubled, part)
        self._found.clear()

    def _keep_ready_for(self, network: Workload) -> None:
        if self._ready and next(iter(self._ready))[0].of != network:
            self._ready.clear()

    def _best(self, network: Workload, entry: MappingConstraints, strategy: str, core: int) -> "_Found":
        cores = len(self.cores_for(network.nodes[0], entry))
        self._keep_ready_for(network)
        best: _Found | None = None
        reason = ""
        for cut in cut_layers(network, entry, strategy, cores):
            try:
                for found in self._schedules(cut, strategy, core):
                    if best is None or self._rank(found) < self._rank(best):
                        best = found
            except (InputError, MappingError) as error:
                reason = reason or str(error)
        if best is None:
            raise MappingError(f"{network.nodes[0].operator_type}: {reason}")
        return best

    def _rank(self, found: "_Found") -> tuple[float, ...]:
        made = found.schedule
        return ranking(self.options.objective, made.energy_pj, float(made.latency_cycles))

    def problem(self, cut: CutLayer) -> MultiCoreProblem:
        """Problem of allocation and scheduling for a cut layer. Raises InputError if the layer has a part that no core
        can run."""
        workload, mapping, accelerator = cut.network, cut.mapping, with_room(self.accelerator)
        tiling = network_tiling(workload, mapping, accelerator, TilingOptions(mode=LAYER_BY_LAYER))
        graph = build_cn_graph(workload, tiling)
        described = SystemProblem(workload, accelerator, mapping)
        costs = {name: self._rows(described, graph, name, self._known) for name in accelerator.distinct_cores}
        return multi_core_problem(CostedCnProblem(described, graph, costs, self.options.model), settings_of(workload))

    def _rows(
        self, described: SystemProblem, graph: CnGraph, core_file: str, known: KnownRows
    ) -> tuple[CoreCostRow, ...]:
        """Rows of the cost table for one core file, one row for each class of CNs in a graph. `known` has the rows that
        were computed before. New rows are added to `known`.
        """
        given = graph, described.workload, described.mapping
        needs = class_needs(graph, described.workload, cost_classes(*given))
        run = {"threads": self.control.threads, "store": self.control.store, "needs": needs, "known": known}
        return map_core(*given, described.accelerator, core_file, self.options, **run)  # type: ignore[arg-type]

    def _schedules(self, cut: CutLayer, strategy: str, core: int) -> "Iterator[_Found]":
        """Schedules of a cut layer, one for each allocation that is tried."""
        ready = self._prepared(cut)
        for genome in _starts(ready.problem.space, cut, strategy, core):
            made = ready.scheduler(ready.problem.space.allocation(genome))
            yield _Found(cut, strategy, made)

    def _prepared(self, cut: CutLayer) -> "_Ready":
        """Scheduling problem of a cut layer, with its scheduler. Both are made once and kept."""
        key = cut, -1, frozenset[str]()
        if key not in self._ready:
            problem = self.problem(cut)
            options = replace(problem.options, record=False)
            self._ready[key] = _Ready(problem, Scheduler(problem.assembled.problem, options))
        return self._ready[key]

    def _with_doubled(self, cut: CutLayer, place: int, files: frozenset[str]) -> Scheduler:
        """Scheduler of a cut layer on the changed accelerator `doubled[place]`. `files` are the core files of the cores
        that run the layer. Costs are computed again only for the files that are also in `doubled[place].core_files`,
        because the change cannot alter the costs for the other files.
        """
        key = cut, place, files
        if key not in self._ready:
            part, ready = self.doubled[place], self._prepared(cut)
            inputs, known = ready.problem.inputs, self._known_of.setdefault(place, {})
            described = replace(inputs.descriptions, accelerator=with_room(part.accelerator))
            changed = {
                name: self._rows(described, inputs.graph, name, known) for name in sorted(part.core_files & files)
            }
            rows = changed_problem(ready.problem, described.accelerator, {**inputs.costs, **changed})
            self._ready[key] = _Ready(ready.problem, Scheduler(rows, ready.scheduler.options))
        return self._ready[key].scheduler

    def _doubled_latency(self, key: LayerKey, place: int) -> int:
        """Latency in cycles of a layer on the changed accelerator `doubled[place]`; never above the latency on the
        unchanged accelerator."""
        if (key, place) not in self._latencies:
            self._latencies[key, place] = self._played(self._chosen[key], place)
        return self._latencies[key, place]

    def _played(self, found: "_Found", place: int) -> int:
        part, made = self.doubled[place], found.schedule
        files = frozenset(self.accelerator.places[core].file_name for core in np.unique(made.allocation).tolist())
        if part.core_files and not part.core_files & files:
            return made.latency_cycles
        # A larger or wider part may stay unused: a longer schedule with it is replaced by the original one.
        slower = self._with_doubled(found.cut, place, files)(made.allocation).latency_cycles
        return min(made.latency_cycles, slower)

    def _cost_of(self, key: LayerKey, units: Sequence[int]) -> SystemLayerCost:
        """Costs of the best schedule of a layer. On changed accelerators, the latencies are for the same cut of the
        layer on the same cores. `units` are the indexes of the cores that share links in a pipeline.
        """
        found = self._chosen[key]
        made, slower = found.schedule, 0
        if found.strategy == PIPELINE:
            ready = self._prepared(found.cut)
            narrower = self._shared(ready.problem.assembled.problem, units)
            if narrower is not None:
                slower = Scheduler(narrower, ready.scheduler.options)(made.allocation).latency_cycles
        cores = np.unique(made.allocation)
        return SystemLayerCost(
            energy_pj=made.energy_pj,
            latency_cycles=made.latency_cycles,
            shared_latency_cycles=slower,
            doubled_latency_cycles=tuple(self._doubled_latency(key, place) for place in range(len(self.doubled))),
            core=int(cores[0]) if len(cores) == 1 else -1,
            by_inputs=found.cut.products > 0,
        )

    def _shared(self, scheduling: SchedulingProblem, units: Sequence[int]) -> SchedulingProblem | None:
        """Scheduling problem in which the width of each link is divided by the number of cores that use the link.

        None if some link would then have less than one bit per cycle.
        """
        system = scheduling.system
        widths = system.link_bits_per_cycle // np.maximum(self.link_users(units), 1)
        if not widths.all():
            return None
        return replace(scheduling, system=replace(system, link_bits_per_cycle=widths))

    def link_users(self, units: Sequence[int]) -> npt.NDArray[np.int64]:
        """Array with one number per link: the number of cores whose data to or from the off-chip core use the link.

        Only the cores with the indexes `units` are counted.
        """
        table, ids = path_table(self.accelerator), self.accelerator.core_ids
        off_chip = self.accelerator.offchip_core_id
        assert off_chip is not None
        users = np.zeros(len(self.accelerator.links), np.int64)
        for unit in units:
            pairs = ((off_chip, ids[unit]), (ids[unit], off_chip))
            links = {link for pair in pairs if table.has_path(*pair) for link in table.path(*pair).links}
            users[sorted(links)] += 1
        return users


def changed_problem(
    problem: MultiCoreProblem, accelerator: MultiCoreAccelerator, costs: Mapping[str, Sequence[CoreCostRow]]
) -> SchedulingProblem:
    """Scheduling problem of a layer on a changed accelerator. `costs` has the cost table rows on this accelerator, by
    core file."""
    given, classes = problem.inputs.descriptions, problem.assembled.classes
    runtime = problem.settings.cn_runtime
    table = cost_table(problem.inputs.graph, given.workload, accelerator, classes, costs, runtime)
    return SchedulingProblem(problem.assembled.problem.graph, table, system_of(accelerator))


@lru_cache(maxsize=64)
def system_of(accelerator: MultiCoreAccelerator) -> CoreSystem:
    """Cores, memories and links of an accelerator in the form that a scheduler reads."""
    return core_system(accelerator).system


@lru_cache(maxsize=64)
def with_room(accelerator: MultiCoreAccelerator) -> MultiCoreAccelerator:
    """Accelerator whose off-chip memory has room for any layer."""
    cores = [
        replace(core, memories=tuple(replace(memory, size_bits=ROOM_FOR_ANYTHING_BITS) for memory in core.memories))
        if place.role == OFFCHIP
        else core
        for core, place in zip(accelerator.cores, accelerator.places, strict=True)
    ]
    return replace(accelerator, cores=tuple(cores))


def settings_of(network: Workload) -> ScheduleSettings:
    """Settings of the scheduler for a network: all data that no layer of the network makes are prefetched if the
    memories of the cores have room."""
    operands = {operand for node in network.nodes if node.layer for operand in node.layer.input_operands}
    return ScheduleSettings(operands_to_prefetch=tuple(sorted(operands)))


def _starts(space: AllocationSpace, cut: CutLayer, strategy: str, core: int) -> Iterator[Genome]:
    """Allocations that are tried, as genomes (`Genome`).

    In a pipeline, all parts of a layer are on one core. Otherwise, the parts are assigned to the cores in turn. If the
    layer is cut along its inputs into several products, the products are assigned in turn, each as a whole. If the
    cores differ in latency or energy, the warm starts of the search for allocations are tried, too.
    """
    if strategy == PIPELINE:
        yield space.genome(on_one_core(space, core))
        return
    turns = []
    for (layer, group), choices in zip(space.parts, space.choices, strict=True):
        turns.append(choices[(layer if layer < cut.products else group) % len(choices)])
    first = space.genome(turns)
    yield first
    if not _are_alike(space):
        yield from (genome for genome in warm_starts(space) if genome != first)


def _are_alike(space: AllocationSpace) -> bool:
    """True if each part has the same latency and energy on all cores that can run it."""
    for part, choices in enumerate(space.choices):
        one = space.runtime_cycles[part, choices[0]], space.on_core_energy_pj[part, choices[0]]
        if any((space.runtime_cycles[part, core], space.on_core_energy_pj[part, core]) != one for core in choices):
            return False
    return True
