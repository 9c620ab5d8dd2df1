"""Options of the search for a fusion plan: objective, effort, and the parts of the plan that a run fixes."""

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
    """Parts of a plan that a run fixes. A part with the value null is searched. The entries of the mapping file fix
    further parts.
    """

    layer_stacks: Annotated[Stacks | None, Read(read_stacks)] = None
    """Ids of the layers of each stack, such as [[0, 1], [2]]. A layer in no stack is a stack of its own. null: the
    stacks are searched.
    """
    stack_cutoffs: NodeIds | None = None
    """Ids of the layers at which stacks end. null: the ends are searched."""
    scheduler_candidate_selection: CandidateSelection | None = None
    """Rule that chooses the next node of a core. `latency`: the node that is ready first. `memory`: the deepest node in
    the network. null: the rule is searched.
    """
    operands_to_prefetch: Annotated[tuple[str, ...], Told(allowed="a list of layer operands, as [W]")] | None = None
    """Layer operands whose constants are prefetched, such as W; [] for none. null: the operands are searched."""
    prefetch_results: bool | None = None
    """True if results of computation nodes are prefetched, in addition to constants. null: both values are tried."""
    layers_by_off_chip: Annotated[tuple[Count, ...], Told(allowed="a list of ids of layers, as [3, 5]")] | None = None
    """Ids of layers whose results go to other memories through the off-chip memory; [] for none. null: the layers are
    searched.
    """


@dataclass(frozen=True, eq=False, repr=False)
class PlanCount(Parameters):
    """Number of plans after which a search ends."""

    nb_plans: PositiveCount = 4000
    """Number of plans after which the search for a plan ends. A plan for a part of the network counts as a plan. The
    initial plans (layer by layer; all layers cut in the same way) are always evaluated.
    """


@dataclass(frozen=True, eq=False, repr=False)
class FusionOptions(FusionFixed, PlanCount, CnSearchOptions):
    """Options of the search for plans, and of the mapping of computation nodes on cores."""

    fusion_time_budget_s: PositiveNumber | None = 120.0
    """Time limit of the whole call in seconds, from reading the first file to writing the last file. The limit does not
    apply before one plan has a schedule; if this takes longer than the limit, the call reports this. null: no limit;
    then the result depends only on the seed.
    """
    share_divisor: PositiveCount = 4
    """Smallest width with which a transfer starts, as a divisor of the full width of the transfer: 4 means a quarter of
    the full width. 1: a transfer waits until its full width is free.
    """
    stack_order: StackOrder = "priority"
    """Effect of stacks on the order of nodes. `priority`: with the rule `memory`, a core prefers nodes of the earliest
    stack. `barrier`: in addition, no node of a stack starts before all earlier stacks have ended.
    """
    cn_runtime: Runtime = "total1"
    """Parts of the runtime of a CN: total0 includes stalls; total1 also includes on-loading; total2 also includes
    off-loading.
    """
    jobs: Count = 0
    """Number of processes; 0: one per processor. If `nb_plans` ends the search, the result does not depend on the
    number of processes.
    """

    def without_effect(self) -> dict[str, str]:
        """Reason for each option without effect, by name: options of other search engines, and `stack_cutoffs` if it
        names no layer. `seed` always has an effect, because the search for plans uses it.
        """
        found = super().without_effect()
        found.pop("seed", None)
        if self.stack_cutoffs == ():
            found["stack_cutoffs"] = "has no effect, because it names no layer; stacks are searched"
        return found

    @property
    def job_count(self) -> int:
        """Number of processes; if `jobs` is 0, the number of processors."""
        if self.jobs:
            return self.jobs
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
