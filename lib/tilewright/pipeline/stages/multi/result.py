"""Result of a multi-core pipeline: the schedule of a network on several cores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import Problems
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2
from tilewright.base.objectives import energy_delay_product
from tilewright.base.unused import with_unused
from tilewright.multicore.allocation.evaluate import INTERRUPTED
from tilewright.multicore.allocation.result import AllocationResult, allocation_document, summary
from tilewright.multicore.scheduling.assembled import SystemNames
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.pipeline.stages.multi import run as multi_run
from tilewright.pipeline.stages.multi.run import MultiCoreProblem, fixed_mapping_text
from tilewright.results.multi.result_tables import SeveralCoresTables

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class MultiCoreResult(SeveralCoresTables):
    """Network scheduled on the cores of an accelerator, with the tables `layers`, `cores`, `energy`, `schedule` and
    `transfers`.
    """

    problem: MultiCoreProblem
    """Problem that was solved: the network, its costs, and the cores that are allowed for each part of a layer."""
    allocation: AllocationResult
    """Chosen allocation, Pareto front, and history of the search."""
    made: ScheduleArtifact | None = None
    """Schedule of the chosen allocation; None if it was not made yet."""
    single_core: bool = True
    """True if `document` also has a schedule for each compute core, for comparison. In this schedule, the core runs
    every part of a layer that it can run; other cores run the other parts.
    """

    @cached_property
    def artifact(self) -> ScheduleArtifact:
        """Schedule of the chosen allocation, with logs of transfers, streams and memory changes. The schedule is made
        and checked when this property is first used.
        """
        return self.made or multi_run.schedule(self.problem, self.allocation.chosen.genome)

    @cached_property
    def document(self) -> JsonObject:
        """Result and history of the search, as in `allocation.json` of a run, made at the first use."""
        compares = self.single_core and self.allocation.stopped_by != INTERRUPTED
        singles = multi_run.single_cores(self.problem) if compares else ()
        return allocation_document(self.allocation, self.names, self.problem.settings.stated(), singles)

    @property
    def names(self) -> SystemNames:
        """Names of layers, operands, cores and links, by the numbers that the schedule uses."""
        return self.problem.assembled.names

    @property
    def latency_cycles(self) -> int:
        """Latency of the schedule, in cycles."""
        return self.artifact.schedule.latency_cycles

    @property
    def energy_pj(self) -> float:
        """Energy of the schedule, in pJ."""
        return self.artifact.schedule.energy_pj

    @property
    def core_costs(self) -> Mapping[str, Sequence[CoreCostRow]]:
        """Rows of the cost table, one for each class of CNs, by name of the core file."""
        return self.problem.inputs.costs

    @property
    def bounds(self) -> LowerBounds | None:
        """Lower bounds over all allocations; None for a schedule model without proven bounds."""
        return self.problem.bounds

    @property
    def edp(self) -> float:
        """Energy-delay product, in pJ · cycles."""
        return energy_delay_product(self.energy_pj, self.latency_cycles)

    @cached_property
    def summary(self) -> JsonObject:
        """Totals and their parts, bounds, and use of cores, memories and links, as in `summary.json` of a run."""
        search = summary(self.allocation)
        del search["excluded_cores"]
        allocation = {**search, "front_size": len(self.allocation.front)}
        return self.summary_of(self.allocation.objective, allocation)

    def summary_of(
        self,
        objective: str,
        allocation: Mapping[str, Any] | None,
        notices: Sequence[str] = (),
        unused: Sequence[str] = (),
        **first: Any,
    ) -> JsonObject:
        """Summary of the run. The summary names `objective`. `allocation` has the data on the search for an allocation;
        None if there was no search. `notices` are added to the notices on the input files. `unused` has notices on
        inputs without effect. `first` has further fields of the summary.
        """
        from tilewright.mapping.file_checks import document_behind
        from tilewright.mapping.runnable import work_of
        from tilewright.mapping.unused_entries import note_unused
        from tilewright.results.multi.cost_ranges import range_fields
        from tilewright.results.multi.summary import area_fields, multi_summary, rate_fields
        from tilewright.workload.layer import operand_bits_of

        inputs = self.problem.inputs
        given = inputs.descriptions
        macs, _ = work_of(given.workload.nodes)
        area = area_fields(given.accelerator)
        others = {
            "model": inputs.cost_model,
            **first,
            "settings": self.problem.settings.stated(),
            "operand_bits": operand_bits_of(shape.bits_of for shape in inputs.graph.shapes),
            "allocation": allocation,
            **given.coverage,
            **area,
            **rate_fields(given.accelerator, self.latency_cycles, self.energy_pj, macs),
            **range_fields(self.artifact, inputs.costs, given.accelerator, area[AREA_MM2]),
            "notices": [*given.notices, *notices, *inputs.graph.notices],
        }
        of_mapping = Problems(document_behind(given.mapping, given.mapping_file))
        note_unused(of_mapping, given.mapping, given.workload)
        unused = [*given.notices, *notices, *inputs.graph.notices, *of_mapping.notices, *inputs.unused, *unused]
        # Without line numbers: a new comment in a file would change them, but no result.
        summary = multi_summary(self.artifact, self.bounds, inputs.costs, objective, others)
        return with_unused(summary, unused, with_lines=False)

    def core_table(self) -> "pandas.DataFrame":
        """Table with a row for each part of each layer. A row has the core, the number of computation nodes (CNs), the
        start of the first CN, and the end of the last CN.
        """
        import pandas

        schedule, space, names = self.artifact.schedule, self.problem.space, self.names
        rows = []
        for number, (layer, group) in enumerate(space.parts):
            cns = space.part_of_cn == number
            core = int(schedule.allocation[cns][0])
            rows.append(
                {
                    "layer": names.layer_names[layer],
                    "group": group,
                    "core_id": names.core_ids[core],
                    "core": names.core_files[core],
                    "cn_count": int(cns.sum()),
                    "start_cycles": int(schedule.start_cycles[cns].min()),
                    "end_cycles": int(schedule.end_cycles[cns].max()),
                }
            )
        return pandas.DataFrame(rows)

    def mapping_text(self) -> str:
        """Text of a mapping file that fixes the cores of the chosen allocation. A run with this file has the same
        schedule.
        """
        return fixed_mapping_text(self.problem, self.allocation.chosen.genome)
