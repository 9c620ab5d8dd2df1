"""What a layer costs on several cores: each way to cut it is cut, costed and scheduled by the functions of a run of the
multi-core flow, and the best schedule counts.

A layer begins and ends in the off-chip memory, and the next one waits for its end: steps are sums of such schedules,
each of which runs, so that they are upper bounds of what layers that overlap would take.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.allocation.space import AllocationSpace, Genome
from tilewright.allocation.warm_start import on_one_core, warm_starts
from tilewright.errors import InputError, MappingError, Problem
from tilewright.fusion.generation import build_cn_graph
from tilewright.fusion.tiling import LAYER_BY_LAYER
from tilewright.fusion.tiling_options import TilingOptions, network_tiling
from tilewright.hardware.paths import path_table
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.runnable import core_choice
from tilewright.objectives import ranking
from tilewright.scheduling.core_costs import cost_classes
from tilewright.scheduling.options import ScheduleSettings
from tilewright.scheduling.problem import SchedulingProblem
from tilewright.scheduling.result import Schedule
from tilewright.scheduling.simulate import Scheduler
from tilewright.scheduling.system_assembly import UNLIMITED_BITS_PER_CYCLE
from tilewright.search.options import CnSearchOptions
from tilewright.stages.base import Control
from tilewright.stages.multi.core_mapping import KnownRows, map_core
from tilewright.stages.multi.cost_rows import class_needs
from tilewright.stages.multi.items import CostedCnProblem
from tilewright.stages.multi.problem import SystemProblem
from tilewright.stages.multi.run import MultiCoreProblem, multi_core_problem
from tilewright.token_costs.cuts import CutLayer, cut_layers
from tilewright.token_costs.strategies import PIPELINE
from tilewright.workload.graph import Workload, WorkloadNode

Numbers = npt.NDArray[np.float64]
ROOM_FOR_ANYTHING_BITS = 2**60
"""Of the off-chip memory, as schedules see it: what fits a table says, and what does not is costed all the same."""


@dataclass(frozen=True)
class LayerCost:
    """A layer on several cores."""

    energy_pj: float
    latency_cycles: int
    shared_latency_cycles: int
    """Where links have only the share of their width that one of all cores has; 0 where nobody asked."""
    computing_cycles: Numbers
    """[core file] in which the array of the busiest core of it computes, without stalls."""
    link_cycles: Numbers
    """[link] that what it carries takes at its full width."""
    core: int
    """The only one that runs it, by place; -1 where several do."""
    by_inputs: bool = False
    """Whether a product was cut along its inputs."""


@dataclass(frozen=True)
class _Ready:
    """A layer that is cut in one way, to be scheduled."""

    problem: MultiCoreProblem
    scheduler: Scheduler
    shared: Scheduler | None
    """With the links as one of all cores has them."""


@dataclass
class LayerSchedules:
    """Schedules of layers on an accelerator; each distinct one is made once."""

    accelerator: MultiCoreAccelerator
    options: CnSearchOptions
    control: Control
    _known: KnownRows = field(default_factory=dict)
    _found: dict[tuple[Workload, MappingConstraints, str, int], LayerCost] = field(default_factory=dict)
    _ready: dict[tuple[CutLayer, bool], "_Ready"] = field(default_factory=dict)
    """Of the last layer, which other ways to share may cut alike."""

    def __post_init__(self) -> None:
        """Raises InputError for an accelerator without an off-chip memory."""
        if self.accelerator.offchip_core_id is None:
            message, allowed = "has no off-chip core to keep weights and results", "offchip_core: FILE"
            raise InputError([Problem(message, self.accelerator.name, allowed=allowed)])

    @property
    def searched(self) -> int:
        """Distinct classes of computation nodes that were looked for on core files."""
        return len(self._known)

    @cached_property
    def core_files(self) -> tuple[str, ...]:
        """The core files on the chip."""
        return tuple(self.accelerator.distinct_cores)

    @cached_property
    def roomy(self) -> MultiCoreAccelerator:
        """The accelerator with an off-chip memory into which any layer fits."""
        accelerator = self.accelerator
        place = accelerator.core_ids.index(accelerator.offchip_core_id or 0)
        core = accelerator.cores[place]
        memories = tuple(replace(memory, size_bits=ROOM_FOR_ANYTHING_BITS) for memory in core.memories)
        cores = list(accelerator.cores)
        cores[place] = replace(core, memories=memories)
        return replace(accelerator, cores=tuple(cores))

    def cores_for(self, node: WorkloadNode, entry: MappingConstraints) -> tuple[int, ...]:
        """Places of the cores that may run the layer of a node. Raises InputError where none may."""
        choice = core_choice(node, entry, self.accelerator)
        if not choice.core_ids:
            why = "; ".join(f"core {core_id} {reason}" for core_id, reason in choice.reasons)
            raise InputError([Problem(f"no core can run it ({why})", path=node.name)])
        return tuple(sorted(self.accelerator.core_ids.index(core_id) for core_id in choice.core_ids))

    def cost(
        self, network: Workload, entry: MappingConstraints, strategy: str, core: int, units: Sequence[int]
    ) -> LayerCost:
        """The best schedule of the network of one layer.

        Pipeline parallel it runs on `core`, or where that cannot run it on the one that does so fastest; `units` are
        the cores, by place, that share links then. Raises MappingError where it has no schedule.
        """
        key = (network, replace(entry, name=""), strategy, core)
        if key not in self._found:
            self._found[key] = self._best(network, entry, strategy, core, units)
        return self._found[key]

    def _best(
        self, network: Workload, entry: MappingConstraints, strategy: str, core: int, units: Sequence[int]
    ) -> LayerCost:
        cores = len(self.cores_for(network.nodes[0], entry))
        if self._ready and next(iter(self._ready))[0].of != network:
            self._ready.clear()
        best: LayerCost | None = None
        reason = ""
        for cut in cut_layers(network, entry, strategy, cores):
            try:
                for found in self._schedules(cut, strategy, core, units):
                    if best is None or self._rank(found) < self._rank(best):
                        best = found
            except (InputError, MappingError) as error:
                reason = reason or str(error)
        if best is None:
            raise MappingError(f"{network.nodes[0].operator_type}: {reason}")
        return best

    def _rank(self, cost: LayerCost) -> tuple[float, ...]:
        return ranking(self.options.objective, cost.energy_pj, float(cost.latency_cycles))

    def problem(self, cut: CutLayer) -> MultiCoreProblem:
        """What is allocated and scheduled. Raises InputError where a part of a layer has no core."""
        workload, mapping, accelerator = cut.network, cut.mapping, self.roomy
        tiling = network_tiling(workload, mapping, accelerator, TilingOptions(mode=LAYER_BY_LAYER))
        graph = build_cn_graph(workload, tiling)
        needs = class_needs(graph, workload, cost_classes(graph, workload, mapping))
        given = (graph, workload, mapping, accelerator)
        costs = {
            name: map_core(
                *given,
                name,
                self.options,
                threads=self.control.threads,
                store=self.control.store,
                needs=needs,
                known=self._known,
            )
            for name in accelerator.distinct_cores
        }
        described = SystemProblem(workload, accelerator, mapping)
        return multi_core_problem(CostedCnProblem(described, graph, costs, self.options.model), settings_of(workload))

    def _schedules(self, cut: CutLayer, strategy: str, core: int, units: Sequence[int]) -> Iterator[LayerCost]:
        """A schedule for each allocation that is tried."""
        key = cut, strategy == PIPELINE
        if key not in self._ready:
            self._ready[key] = self._prepared(cut, units if strategy == PIPELINE else None)
        ready = self._ready[key]
        space = ready.problem.space
        for genome in _starts(space, cut, strategy, core):
            allocation = space.allocation(genome)
            made = ready.scheduler(allocation)
            slower = ready.shared(allocation).latency_cycles if ready.shared is not None else 0
            yield self._figures(ready.problem, made, slower, cut.products > 0)

    def _prepared(self, cut: CutLayer, units: Sequence[int] | None) -> "_Ready":
        """A layer that is ready to be scheduled; with `units` also where these share links."""
        problem = self.problem(cut)
        scheduling, options = problem.assembled.problem, replace(problem.options, record=False)
        narrower = None if units is None else self._shared(scheduling, units)
        shared = None if narrower is None else Scheduler(narrower, options)
        return _Ready(problem, Scheduler(scheduling, options), shared)

    def _figures(self, problem: MultiCoreProblem, made: Schedule, slower: int, by_inputs: bool) -> LayerCost:
        scheduling = problem.assembled.problem
        cores = np.unique(made.allocation)
        widths = scheduling.system.link_bits_per_cycle
        bits = made.link_bits.sum(axis=0)
        return LayerCost(
            energy_pj=made.energy_pj,
            latency_cycles=made.latency_cycles,
            shared_latency_cycles=slower,
            computing_cycles=self._computing(problem, made),
            link_cycles=np.where(widths < UNLIMITED_BITS_PER_CYCLE, bits / widths, 0.0),
            core=int(cores[0]) if len(cores) == 1 else -1,
            by_inputs=by_inputs,
        )

    def _computing(self, problem: MultiCoreProblem, made: Schedule) -> Numbers:
        """[core file] cycles in which the array of its busiest core computes."""
        rows = problem.assembled.problem.graph.cost_row
        found = np.zeros(len(self.core_files))
        for place, core in enumerate(self.accelerator.places):
            if core.role != OFFCHIP:
                table = problem.inputs.costs[core.file_name]
                cycles = np.array([row.ideal_cycles + (row.spatial_stall_cycles or 0) for row in table], np.float64)
                file = self.core_files.index(core.file_name)
                found[file] = max(found[file], cycles[rows[made.allocation == place]].sum())
        return found

    def _shared(self, scheduling: SchedulingProblem, units: Sequence[int]) -> SchedulingProblem | None:
        """The problem where each link has the share of its width that each of the cores that use it gets; None where
        that is less than a bit a cycle."""
        system = scheduling.system
        widths = system.link_bits_per_cycle // np.maximum(self.link_users(units), 1)
        if not widths.all():
            return None
        return replace(scheduling, system=replace(system, link_bits_per_cycle=widths))

    def link_users(self, units: Sequence[int]) -> npt.NDArray[np.int64]:
        """[link] how many of these cores, by place, have it on their ways from and to the off-chip memory."""
        table, ids = path_table(self.accelerator), self.accelerator.core_ids
        off_chip = self.accelerator.offchip_core_id
        assert off_chip is not None
        users = np.zeros(len(self.accelerator.links), np.int64)
        for unit in units:
            pairs = ((off_chip, ids[unit]), (ids[unit], off_chip))
            links = {link for pair in pairs if table.has_path(*pair) for link in table.path(*pair).links}
            users[sorted(links)] += 1
        return users


def settings_of(network: Workload) -> ScheduleSettings:
    """All that layers read is fetched ahead, where there is room."""
    operands = {operand for node in network.nodes if node.layer for operand in node.layer.input_operands}
    return ScheduleSettings(operands_to_prefetch=tuple(sorted(operands)))


def _starts(space: AllocationSpace, cut: CutLayer, strategy: str, core: int) -> Iterator[Genome]:
    """The allocations that are tried: on one core; else in turn, and where cores are unlike by their speed, too.

    Of products that are cut along their inputs each one stays on its core.
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
    """Whether every part takes as long, and as much energy, on each of its cores."""
    for part, choices in enumerate(space.choices):
        one = space.runtime_cycles[part, choices[0]], space.on_core_energy_pj[part, choices[0]]
        if any((space.runtime_cycles[part, core], space.on_core_energy_pj[part, core]) != one for core in choices):
            return False
    return True
