"""Evaluation of a network on designs with several cores.

The results equal those of a run of the whole pipeline.

The stages are executed in the same order as in a run. Designs share work. The network is read once, and is cut into
computation nodes once for each distinct tiling. The cost table of a core is computed once for each distinct set of its
inputs (`_Table`).
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tilewright.base.errors import InputError, MappingError
from tilewright.cost.rates import time_and_power
from tilewright.designs.access_columns import access_columns, access_texts
from tilewright.designs.columns import USES
from tilewright.designs.design_cost import GRAPHS, TABLES, DesignCost, Sharing, reason_of
from tilewright.designs.design_evaluator import DesignEvaluator
from tilewright.designs.extrapolated_memories import extrapolated_texts
from tilewright.designs.results import OK
from tilewright.designs.space import SystemOptions
from tilewright.hardware.access_times import system_access_times
from tilewright.hardware.extrapolated_costs import system_extrapolated
from tilewright.hardware.static_power import system_clock_period_ns
from tilewright.hardware.system import MultiCoreAccelerator, system_area
from tilewright.mapping.source import MappingSource
from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.tiling import Tiling
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.energy_ledger import term_parts
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.pipeline.stages.base import Control, Rest
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.allocation import InterCoreMapping
from tilewright.pipeline.stages.multi.core_mapping import class_reasons
from tilewright.pipeline.stages.multi.costs import IntraCoreMapping
from tilewright.pipeline.stages.multi.items import MODEL, CnProblem, CostedCnProblem, SystemProblem, system_problem
from tilewright.pipeline.stages.multi.pipeline import multi_pipeline
from tilewright.pipeline.stages.multi.result import MultiCoreResult
from tilewright.pipeline.stages.multi.run import multi_core_problem
from tilewright.pipeline.stages.multi.tiling import GenerateCNWorkloadHybrid
from tilewright.pipeline.stages.preflight.needs import prefetch_problems
from tilewright.pipeline.stages.preflight.network import checked_cn_graph
from tilewright.results.multi.cost_ranges import schedule_cost_parts
from tilewright.search.options import CnSearchOptions
from tilewright.workload.graph import Workload

REMEMBERED_GRAPHS, REMEMBERED_TABLES = 32, 512
"""Largest numbers of objects that are stored for later designs: REMEMBERED_GRAPHS graphs of computation nodes, and
REMEMBERED_TABLES cost tables.
"""
NETWORK_MODEL = MODEL
"""Name of the model profile with which networks for designs with several cores are read."""
BUSY, STALLS, WAITING = "computing", "stalls", "waiting"
"""Parts of the latency, as seen by the core that is busy longest.

BUSY is the time that the core would need if all its units always computed. STALLS is the rest of the time in which the
core runs CNs. WAITING is the time in which the core runs no CN.
"""


class SystemEvaluator(DesignEvaluator):
    """Evaluator of one network on designs with several cores.

    `sharing` counts the work that designs share. The results do not depend on it.
    """

    def __init__(
        self, network: Workload, mapping: MappingSource | None, options: SystemOptions, sharing: Sharing | None = None
    ) -> None:
        super().__init__(network, mapping)
        self.options = options
        self.sharing = sharing or Sharing()
        search = options.part(CnSearchOptions)
        settings = {name: value for name, value in options.as_dict().items() if name not in search.as_dict()}
        cut, cost, allocate = multi_pipeline(None, search, settings, sliced=False).search().stages
        assert isinstance(cut, GenerateCNWorkloadHybrid)
        assert isinstance(cost, IntraCoreMapping)
        assert isinstance(allocate, InterCoreMapping)
        self._cut, self._cost, self._allocate = cut, cost, allocate
        self._control = Control(store=self.sharing.store)
        self._graph = lru_cache(REMEMBERED_GRAPHS)(self._built)
        self._tables = lru_cache(REMEMBERED_TABLES)(self._mapped)

    def evaluated(self, accelerator: MultiCoreAccelerator) -> DesignCost:
        """Costs of the network on a design.

        Raises InputError if the design is not valid for the network. Raises MappingError if no mapping fits.
        """
        result = self.result(accelerator)
        return schedule_cost(result.artifact, result.problem.inputs.costs, accelerator)

    def result(self, accelerator: MultiCoreAccelerator) -> MultiCoreResult:
        """Result of a run of the whole pipeline on a design.

        Raises InputError if the design is not valid for the network. Raises MappingError if no mapping fits.
        """
        problem, graph = self._cut_for(accelerator)
        result: MultiCoreResult
        try:
            (result,) = self._allocate.run(self._costed(problem, graph), Rest((), self._control))
        except InputError as error:  # the design is one for the network, which has been cut for it
            raise MappingError(reason_of(error)) from error
        if result.allocation.stopped_by == INTERRUPTED:
            raise KeyboardInterrupt  # the best that was found until then is no cost of the design
        return result

    def held(self, accelerator: MultiCoreAccelerator, other: MultiCoreResult) -> Schedule | None:
        """Schedule on this design, with the allocation of `other`, which is the result for another design.

        None if this allocation has no schedule, or if the two designs cut the network differently.
        """
        try:
            problem, graph = self._cut_for(accelerator)
            if graph is not other.problem.inputs.graph:
                return None
            made = multi_core_problem(self._costed(problem, graph), other.problem.settings)
            scheduler = Scheduler(made.assembled.problem, replace(made.options, record=False))
            return scheduler(other.artifact.schedule.allocation)
        except (InputError, MappingError):
            return None

    def _cut_for(self, accelerator: MultiCoreAccelerator) -> tuple[SystemProblem, CnGraph]:
        """Pair (scheduling problem of the network on a design, graph of its computation nodes).

        Raises InputError if the design is not valid for the network.
        """
        problem = self._problem(accelerator)
        self.sharing.asked[GRAPHS] += 1
        graph, _ = checked_cn_graph(problem, self._cut, build=lambda _, tiling: self._graph(tiling))
        return problem, graph

    def _costed(self, problem: SystemProblem, graph: CnGraph) -> CostedCnProblem:
        """Scheduling problem, completed with the cost tables of all cores."""
        names = problem.accelerator.distinct_cores
        return CostedCnProblem(problem, graph, {name: self._rows(problem, graph, name) for name in names})

    def _problem(self, accelerator: MultiCoreAccelerator) -> SystemProblem:
        """Scheduling problem of the network on a design. Raises InputError if the design is not valid for the
        network.
        """
        given = Descriptions(mapping=self.mapping, accelerator=accelerator, network=self.network)
        problem = system_problem(given)
        wrong = prefetch_problems(problem.workload, self._allocate.operands_to_prefetch)
        if wrong:
            raise InputError(wrong)
        return problem

    def _built(self, tiling: Tiling) -> CnGraph:
        self.sharing.made[GRAPHS] += 1
        return build_cn_graph(self.network, tiling)

    def _rows(self, problem: SystemProblem, graph: CnGraph, name: str) -> tuple[CoreCostRow, ...]:
        """Cost table of the core in the file `name`: the costs of the CNs of `graph` on this core."""
        self.sharing.asked[TABLES] += 1
        return self._tables(_Table(problem, graph, name))

    def _mapped(self, table: "_Table") -> tuple[CoreCostRow, ...]:
        self.sharing.made[TABLES] += 1
        problem = CnProblem(table.problem, table.graph, (table.name,))
        (found,) = self._cost.run(problem, Rest((), self._control))
        rows: tuple[CoreCostRow, ...] = found.costs[table.name]
        return rows


class _Table:
    """Inputs that determine the cost table of a core: the computation nodes, the core, the off-chip memory, and the
    nodes that the core can run.

    Designs with equal inputs share the table.
    """

    def __init__(self, problem: SystemProblem, graph: CnGraph, name: str) -> None:
        self.problem, self.graph, self.name = problem, graph, name
        accelerator = problem.accelerator
        off_chip = accelerator.offchip_core_id
        self._key: Hashable = (
            graph,
            accelerator.distinct_cores[name],
            None if off_chip is None else accelerator.core_of[off_chip],
            class_reasons(graph, problem.workload, problem.mapping, accelerator, name),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Table) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def schedule_cost(
    made: ScheduleArtifact, costs: Mapping[str, tuple[CoreCostRow, ...]], accelerator: MultiCoreAccelerator
) -> DesignCost:
    """Costs of a schedule on a design. `costs` has the cost table of each core file."""
    schedule = made.schedule
    area, clock_ns = system_area(accelerator).mm2, system_clock_period_ns(accelerator)
    times = system_access_times(accelerator)
    return DesignCost(
        OK,
        "",
        schedule.energy_pj,
        schedule.latency_cycles,
        np.nan if area is None else area,
        {f"{term}_{part}" if part else term: pj for term, part, pj in term_parts(schedule.energy_terms_pj)},
        {},
        _latency_parts(made, costs),
        further=_use_columns(made)
        | time_and_power(clock_ns, schedule.latency_cycles, schedule.energy_pj)
        | access_columns(times),
        cost_parts=schedule_cost_parts(made, costs, accelerator),
        texts=access_texts(times) | extrapolated_texts(system_extrapolated(accelerator)),
    )


def _latency_parts(made: ScheduleArtifact, costs: Mapping[str, tuple[CoreCostRow, ...]]) -> dict[str, float]:
    """Parts of the latency, from the activity of the core that is busy longest.

    Among equally busy cores, the first is taken.
    """
    schedule = made.schedule
    cycles = schedule.end_cycles - schedule.start_cycles
    busy = np.bincount(schedule.allocation, cycles, made.system.core_count)
    core = int(busy.argmax())
    ideal = np.array([row.ideal_cycles for row in costs[made.names.core_files[core]]], np.int64)
    own = schedule.allocation == core
    computing = min(int(ideal[made.graph.cost_row[own]].sum()), int(busy[core]))
    return {BUSY: computing, STALLS: int(busy[core]) - computing, WAITING: schedule.latency_cycles - int(busy[core])}


def _use_columns(made: ScheduleArtifact) -> dict[str, float]:
    """Values of the columns USES, which describe how full memories and links are."""
    system = made.system
    on_chip = np.unique(np.delete(system.core_memory, system.off_chip_core, axis=0))
    on_chip = on_chip[(on_chip >= 0) & (on_chip != system.off_chip_memory)]
    peak, capacity = made.schedule.peak_bits[on_chip], system.memory_capacity_bits[on_chip]
    offered = system.link_bits_per_cycle.astype(np.float64) * max(made.schedule.latency_cycles, 1)  # no overflow
    carried = made.schedule.link_bits.sum(axis=0) / offered
    shares = (float((peak / capacity).max(initial=0.0)), float(carried.max(initial=0.0)))
    return dict(zip(USES, (float(peak.sum()), *shares), strict=True))
