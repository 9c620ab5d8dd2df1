"""Functions that run a case of a chip with several models: `stream-2023`, the default model, and the models between
these two.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from tilewright.mapping.spatial_generation import clean_user_mapping
from tilewright.multicore.allocation.requests import layer_requests
from tilewright.multicore.allocation.search import schedule_judge, search_allocation
from tilewright.multicore.allocation.space import allocation_space
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.scheduling.assembled import AssembledProblem
from tilewright.multicore.scheduling.assembly import scheduling_problem
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.options import CAUSAL, ScheduleOptions, SchedulerParameters, ScheduleSettings
from tilewright.multicore.scheduling.problem import Integers
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.multicore.scheduling.system_assembly import MEMORY_OPERANDS
from tilewright.peers.stream import STREAM_2023
from tilewright.peers.stream.scheduler import REPAIRS
from tilewright.peers.stream.whole_tiles import whole_tile_graph, whole_tile_problem
from tilewright.pipeline.stages.base import Rest, Stage
from tilewright.pipeline.stages.items import Evaluations, LayerProblem, SpatialCandidate
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.pipeline.stages.preflight.network import checked_cn_graph
from tilewright.pipeline.stages.run import below_workload, default_pipeline
from tilewright.pipeline.stages.spatial import SpatialMappingGenerator
from tilewright.search.options import SearchOptions

from tilewright_evidence.chips.case import SiliconCase


@dataclass(frozen=True)
class UnlimitedDataflow(SpatialMappingGenerator):
    """Stage that passes on the spatial mapping of the mapping file.

    Only the sizes of array and layer limit this mapping. Capacity and bandwidth of the innermost memories do not limit
    it. If the mapping file leaves out a side of the array, this side is not used. If the mapping file has no spatial
    mapping, the stage acts like `SpatialMappingGenerator`.
    """

    stands_for = ""

    def run(self, item: LayerProblem, rest: Rest) -> Iterator[Evaluations]:
        """Yield the results for the spatial mapping of the mapping file."""
        given, sides = item.constraints.spatial_mapping, item.core.operational_array.dimensions
        if not given:
            yield from super().run(item, rest)
            return
        limits = {name: {loop: min(size, room) for loop, size in item.layer.loop_sizes} for name, room in sides}
        draft = clean_user_mapping(given, item.layer, item.core, limits)
        yield from rest(SpatialCandidate.of(item, tuple((name, tuple(loops.items())) for name, loops in draft.items())))


def stages_2023(options: SearchOptions) -> tuple[Stage, ...]:
    """Stages that map a computation node in the 2023 model: the default stages, but with `UnlimitedDataflow` as the
    source of the spatial mapping.
    """
    return tuple(
        UnlimitedDataflow(**{field.name: getattr(stage, field.name) for field in fields(stage)})
        if isinstance(stage, SpatialMappingGenerator)
        else stage
        for stage in below_workload(default_pipeline(options).stages)
    )


@dataclass(frozen=True)
class Switches:
    """Switches by which the models of a case differ. The default values give the default model."""

    cost_model: str = "corrected"
    """Profile of the cost model."""
    unlimited_dataflow: bool = False
    """True if the spatial mapping ignores the limits of the innermost memories (`UnlimitedDataflow`)."""
    equal_tiles: bool = False
    """True if all computation nodes (CNs) of a layer have equal costs and run one after another
    (`whole_tile_graph`)."""
    whole_tensors: bool = False
    """True if each CN moves its complete output, and off-chip reads include halos and padding (`whole_tile_problem`).
    """
    runtime: str = ScheduleSettings.cn_runtime
    """Phases that count as runtime of a CN. total0: computing and stalls; total1: total0 and on-loading;
    total2: total1 and off-loading.
    """
    schedule_model: str = CAUSAL
    """Name of the schedule model."""
    share_divisor: int = SchedulerParameters.share_divisor
    """Divisor of the width of a link. A transfer can start if at least 1 / share_divisor of the width is free. With 1,
    transfers share no links.
    """
    repairs: tuple[str, ...] = ()
    """Rules of the schedule model stream-2023 that are used in their repaired form (`peers.stream.scheduler.REPAIRS`).
    """


STREAM_2023_SWITCHES = Switches(
    "zigzag-3.9.1+per_level_loading_floor", True, True, True, "total2", STREAM_2023, share_divisor=1
)
"""Switches for `stream-2023`: the model that the reference tool had when it was compared with chips in 2023."""
STEPS: tuple[tuple[str, dict[str, object]], ...] = (
    ("a tensor is ready when it has arrived", {"repairs": REPAIRS[:1]}),
    ("transfers go into gaps on links", {"repairs": REPAIRS[:2]}),
    ("transfers start as early as they can", {"repairs": REPAIRS}),
    ("the scheduler decides in the order of time", {"schedule_model": CAUSAL, "repairs": ()}),
    ("halos are shared, padding is not data", {"whole_tensors": False}),
    ("results leave while a core continues to compute (total1)", {"runtime": "total1"}),
    ("memories limit the dataflow", {"unlimited_dataflow": False}),
    ("repaired cost model", {"cost_model": "corrected"}),
    ("a smaller tile at a border has the cost of its own size, not of a full tile", {"equal_tiles": False}),
    ("transfers share links", {"share_divisor": 4}),
)
"""Steps from `stream-2023` to the default model, in order, as pairs (description of the change, changed switches)."""


def steps() -> tuple[tuple[str, Switches], ...]:
    """Pairs (text, switches), one for each model from `stream-2023` to the default model. The text describes the change
    from the previous model. The first text is the name `stream-2023`.
    """
    found = [(STREAM_2023, STREAM_2023_SWITCHES)]
    for text, change in STEPS:
        found.append((text, replace(found[-1][1], **change)))  # type: ignore[arg-type]
    return tuple(found)


@dataclass(frozen=True)
class LatencyTerms:
    """Parts of the latency of a schedule in cycles, as seen by the core that ends last. The sum of the parts is the
    latency.
    """

    core: str
    """Id of the core, with the name of its core file."""
    before_cycles: int
    """Cycles before the core runs its first computation node (CN)."""
    computing_cycles: int
    """Cycles in which the core runs CNs."""
    waiting_cycles: int
    """Cycles between CNs of the core, in which the core waits."""
    after_cycles: int
    """Cycles after the last CN of the core. In these cycles, results leave the chip."""


@dataclass(frozen=True, eq=False)
class CaseRun:
    """Run of a case with one set of switches."""

    switches: Switches
    assembled: AssembledProblem
    graph: CnGraph
    schedule: Schedule
    rows: dict[str, tuple[CoreCostRow, ...]]
    """Rows of the cost table, by name of the core file. There is one row for each cost class of the
    computation nodes, in the order of the classes.
    """
    core_file_of: tuple[str, ...]
    """Name of the core file of each core, as an array [core]."""

    @property
    def latency_cycles(self) -> int:
        """Latency of the schedule, in cycles."""
        return self.schedule.latency_cycles

    @cached_property
    def lower_bound_cycles(self) -> int:
        """Lower bound of the latency in cycles, for schedules with two properties: they have the allocation of this
        run, and data that fit a core are copied into the core before use. All causal schedules copy data in this way.
        """
        allowed = np.zeros((self.graph.cn_count, self.assembled.problem.system.core_count), np.bool_)
        allowed[np.arange(self.graph.cn_count), self.schedule.allocation] = True
        return int(lower_bounds(self.assembled.problem, allowed).if_copied.latency_cycles)

    @property
    def compute_cycles(self) -> int:
        """Busy cycles of the busiest core: the sum of the runtimes of its CNs."""
        return int(self.busy_cycles.max(initial=0))

    @property
    def busy_cycles(self) -> Integers:
        """Cycles in which each core runs CNs, as an array [core]."""
        lengths = self.schedule.end_cycles - self.schedule.start_cycles
        count = self.assembled.problem.system.core_count
        return np.bincount(self.schedule.allocation, lengths, minlength=count).astype(np.int64)

    @property
    def link_cycles(self) -> Integers:
        """Cycles that the traffic of each link takes at the full width of the link, as an array [link]."""
        bits: Integers = self.schedule.link_bits.sum(axis=0)
        return -(-bits // self.assembled.problem.system.link_bits_per_cycle)

    @property
    def terms(self) -> LatencyTerms:
        """Parts of the latency."""
        schedule = self.schedule
        core = int(schedule.allocation[schedule.end_cycles.argmax()])
        own = schedule.allocation == core
        first, last = int(schedule.start_cycles[own].min()), int(schedule.end_cycles[own].max())
        computing = int(self.busy_cycles[core])
        name = self.assembled.names.core_names[core]
        return LatencyTerms(name, first, computing, last - first - computing, schedule.latency_cycles - last)

    def row_of(self, cn: int) -> CoreCostRow:
        """Row of the cost table for a CN, on the core that runs it."""
        core, cost_class = int(self.schedule.allocation[cn]), int(self.assembled.classes.of_cn[cn])
        return self.rows[self.core_file_of[core]][cost_class]

    def layer_cycles(self, layer: int) -> tuple[int, int, int, int]:
        """Cycles of one CN of a layer, as (temporal cycles, total0, total1, total2). `layer` is the position of the
        layer in the graph.

        The CN is from the cost class that has the most CNs of the layer. Temporal cycles are cycles without stalls.
        `CoreCostRow` describes the other three numbers.
        """
        place = self.graph.layers[layer]
        cns = np.arange(place.first_cn, place.first_cn + place.cn_count)
        _, first, count = np.unique(self.assembled.classes.of_cn[cns], return_index=True, return_counts=True)
        row = self.row_of(int(cns[first[count.argmax()]]))
        return temporal_cycles(row), row.total0_cycles, row.total1_cycles, row.total2_cycles


def temporal_cycles(row: CoreCostRow) -> int:
    """Cycles that the temporal loops of a mapping take without stalls."""
    cycles = 1
    for _, size in row.mapping["loop_order"]:
        cycles *= int(size)
    return cycles


class CaseRunner:
    """Runner of a case with different sets of switches. Data that several sets share are made only once."""

    def __init__(self, case: SiliconCase, threads: int = 1) -> None:
        self.case, self.threads = case, threads
        self.graph, notices = checked_cn_graph(case.system, case.tiling)
        self.notices = (*notices, *self.graph.notices)
        self.whole_graph = whole_tile_graph(case.system.workload, self.graph)
        self._costs: dict[tuple[str, bool, bool], dict[str, tuple[CoreCostRow, ...]]] = {}

    def run(self, switches: Switches) -> CaseRun:
        """Run of the case with a set of switches. Raises InputError or MappingError if there is no schedule."""
        system = self.case.system
        workload, accelerator, mapping = system.workload, system.accelerator, system.mapping
        graph = self.whole_graph if switches.equal_tiles else self.graph
        costs = self.costs(switches)
        assembled = scheduling_problem(workload, graph, accelerator, mapping, costs, switches.runtime)
        if switches.whole_tensors:
            assembled = whole_tile_problem(assembled, workload, graph)
        options = self._schedule_options(switches)
        requests = layer_requests(graph, workload, mapping, accelerator)
        space = allocation_space(assembled.problem, requests, assembled.names, assembled.reasons)
        judge = schedule_judge(assembled.problem, options)
        allocation = search_allocation(space, judge, replace(self.case.allocation, jobs=self.threads)).allocation
        schedule = simulate(assembled.problem, allocation, options)
        if switches.schedule_model == CAUSAL:
            faults = check_schedule(assembled.problem, schedule)
            if faults:
                raise AssertionError(f"the schedule breaks its rules: {'; '.join(faults[:5])}")
        files = tuple(place.file_name for place in accelerator.places)
        return CaseRun(switches, assembled, graph, schedule, costs, files)

    def costs(self, switches: Switches) -> dict[str, tuple[CoreCostRow, ...]]:
        """Rows of the cost table for a set of switches, by name of the core file. There is one row for each cost class
        of the CNs, in the order of the classes.
        """
        key = switches.cost_model, switches.unlimited_dataflow, switches.equal_tiles
        if key not in self._costs:
            self._costs[key] = self._map_cores(switches)
        return self._costs[key]

    def _map_cores(self, switches: Switches) -> dict[str, tuple[CoreCostRow, ...]]:
        system, run = self.case.system, self.case.run
        options = SearchOptions(
            objective=run.intra_core_objective, model=switches.cost_model, lpf_limit=run.loma_lpf_limit
        )
        graph = self.whole_graph if switches.equal_tiles else self.graph
        given = (graph, system.workload, system.mapping, system.accelerator)
        stages = stages_2023(options) if switches.unlimited_dataflow else None
        return {
            name: map_core(*given, name, options, threads=self.threads, stages=stages)
            for name in system.accelerator.distinct_cores
        }

    def _schedule_options(self, switches: Switches) -> ScheduleOptions:
        run, system = self.case.run, self.case.system
        settings = ScheduleSettings(
            scheduler_candidate_selection=run.scheduler_candidate_selection,
            operands_to_prefetch=tuple(run.operands_to_prefetch),
            schedule_model=switches.schedule_model,
            share_divisor=switches.share_divisor,
        )
        options = settings.options(system.workload, system.mapping, MEMORY_OPERANDS)
        return replace(options, model_repairs=switches.repairs)
