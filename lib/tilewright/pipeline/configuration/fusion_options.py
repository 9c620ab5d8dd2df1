"""Options of the search for a whole plan: goal, effort, and the parts that a run fixes."""

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
    """Parts of a plan that a run fixes; null is searched. The content of the mapping file is fixed too."""

    layer_stacks: Annotated[Stacks | None, Read(read_stacks)] = None
    """Ids of the layers of each stack, as [[0, 1], [2]]; a layer in no stack is a stack of its own. null: searched."""
    stack_cutoffs: NodeIds | None = None
    """Ids of the layers at which stacks end. null: searched."""
    scheduler_candidate_selection: CandidateSelection | None = None
    """Node that a core runs next: `latency` the first one that is ready, `memory` the deepest one in the network. null:
    searched.
    """
    operands_to_prefetch: Annotated[tuple[str, ...], Told(allowed="a list of layer operands, as [W]")] | None = None
    """Layer operands whose constants are prefetched, such as W; [] for none. null: searched."""
    prefetch_results: bool | None = None
    """Whether results of computation nodes are prefetched too. null: searched."""
    layers_by_off_chip: Annotated[tuple[Count, ...], Told(allowed="a list of ids of layers, as [3, 5]")] | None = None
    """Ids of layers whose results go to other memories through the off-chip memory; [] for none. null: searched."""


@dataclass(frozen=True, eq=False, repr=False)
class PlanCount(Parameters):
    """Number of plans after which a search ends."""

    nb_plans: PositiveCount = 4000
    """Plans after which the search for a plan ends, including those for parts of the network. The initial plans (layer
    by layer, all layers cut alike) are always evaluated.
    """


@dataclass(frozen=True, eq=False, repr=False)
class FusionOptions(FusionFixed, PlanCount, CnSearchOptions):
    """Options of the search for plans, and of the mapping of computation nodes on cores."""

    fusion_time_budget_s: PositiveNumber | None = 120.0
    """Seconds for the whole call, from reading files to writing the last one; the search reserves time for its end. The
    limit does not apply until one plan has a schedule, which the call reports. null: no limit, so that the result
    depends only on the seed.
    """
    share_divisor: PositiveCount = 4
    """A transfer starts once this fraction (one over the value) of its full width is free; 1 waits for the full
    width.
    """
    stack_order: StackOrder = "priority"
    """Meaning of stacks. priority: with selection `memory`, a core prefers nodes of the earliest stack. barrier: in
    addition, no node of a stack starts before all earlier stacks have ended.
    """
    cn_runtime: Runtime = "total1"
    """Runtime of a CN: total0 includes stalls, total1 also on-loading, total2 also off-loading."""
    jobs: Count = 0
    """Number of processes; 0: one per processor. If the search ends by count, results do not depend on it."""

    def without_effect(self) -> dict[str, str]:
        """Options without effect, with the reason: those of other search engines, and ends of stacks if there are none.
        The search for plans uses every seed.
        """
        found = super().without_effect()
        found.pop("seed", None)
        if self.stack_cutoffs == ():
            found["stack_cutoffs"] = "has no effect: it names no layer, and stacks are searched"
        return found

    @property
    def job_count(self) -> int:
        """Number of processes, with 0 resolved."""
        if self.jobs:
            return self.jobs
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
