"""Options of the search of a whole plan: goal, effort, and what a run fixes."""

import os
from dataclasses import dataclass
from typing import Annotated

from tilewright.base.parameters import Count, Parameters, PositiveCount, PositiveNumber, Read, Told
from tilewright.multicore.nodes.stacks import Stacks
from tilewright.multicore.nodes.tiling_options import NodeIds, read_stacks
from tilewright.multicore.scheduling.options import CandidateSelection, Runtime, StackOrder
from tilewright.search.options import CnSearchOptions


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FusionFixed(Parameters):
    """What a run fixes of a plan; null is searched. What the mapping file says is fixed too."""

    layer_stacks: Annotated[Stacks | None, Read(read_stacks)] = None
    """Ids of the layers of each stack, as [[0, 1], [2]]; those in none are alone. null: searched."""
    stack_cutoffs: NodeIds | None = None
    """Ids of the layers at which stacks end. null: searched."""
    scheduler_candidate_selection: CandidateSelection | None = None
    """What a core runs next: `latency` what is ready first, `memory` what is deepest in the network. null: searched."""
    operands_to_prefetch: Annotated[tuple[str, ...], Told(allowed="a list of layer operands, as [W]")] | None = None
    """Layer operands whose constants are fetched ahead, such as W; [] for none. null: searched."""
    prefetch_results: bool | None = None
    """Whether what computation nodes make is fetched ahead, too. null: searched."""
    layers_by_off_chip: Annotated[tuple[Count, ...], Told(allowed="a list of ids of layers, as [3, 5]")] | None = None
    """Ids of layers whose results go to other memories by way of the off-chip memory; [] for none. null: searched."""


@dataclass(frozen=True, eq=False, repr=False)
class PlanCount(Parameters):
    """Number of plans at which a search ends."""

    nb_plans: PositiveCount = 4000
    """Plans after which the search for a plan ends, those of parts of the network included. The plans it begins with
    (layer by layer, all layers cut alike) come in any case."""


@dataclass(frozen=True, eq=False, repr=False)
class FusionOptions(FusionFixed, PlanCount, CnSearchOptions):
    """How a search of plans goes, and how computation nodes are mapped on cores for it."""

    fusion_time_budget_s: PositiveNumber | None = 120.0
    """Seconds for the whole call, from reading files to the last one written: a search keeps back what the end takes.
    Until one plan has a schedule, time ends nothing, and the call says so. null: no limit, so that the result depends
    on the seed only."""
    share_divisor: PositiveCount = 4
    """A transfer starts once it can have this part of its full width; 1 waits for the full width."""
    stack_order: StackOrder = "priority"
    """What stacks mean. priority: with selection `memory` a core takes what is of the earliest one; barrier: besides,
    nothing of a stack starts before all of the stacks before it has ended."""
    cn_runtime: Runtime = "total1"
    """Runtime of a CN: total0 with stalls, total1 with on-loading as well, total2 with off-loading as well."""
    jobs: Count = 0
    """Processes; 0: one for each processor. Where the search ends by count, results do not depend on it."""

    def without_effect(self) -> dict[str, str]:
        """Options of other search engines, and ends of stacks where there are none; the search of plans has a use for
        every seed."""
        found = super().without_effect()
        found.pop("seed", None)
        if self.stack_cutoffs == ():
            found["stack_cutoffs"] = "has no effect: it names no layer, and stacks are searched"
        return found

    @property
    def job_count(self) -> int:
        """Processes, with 0 resolved."""
        if self.jobs:
            return self.jobs
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
