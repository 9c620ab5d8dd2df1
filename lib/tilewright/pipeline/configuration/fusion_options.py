"""Options of the search for a fusion plan: objective, effort, and the parts of the plan that a run fixes."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from tilewright.base.errors import Problem
from tilewright.base.parameters import (
    Count,
    Parameters,
    PositiveCount,
    PositiveNumber,
    Read,
    Told,
    parameters_of,
)
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
    """Ids of the layers of each stack, such as [[0, 1], [2]]. A layer that is in none of these stacks forms a stack of
    its own. null: the stacks are searched.
    """
    stack_cutoffs: NodeIds | None = None
    """Ids of the last layers of stacks: a stack ends after each of these layers. A stack whose weights do not fit on
    chip ends earlier. null: the ends are searched.
    """
    scheduler_candidate_selection: CandidateSelection | None = None
    """Rule that chooses the next node of a core. `latency`: the node that is ready first. `memory`: the deepest node in
    the network. `progress`: the node whose layer has advanced least. null: the rule is searched.
    """
    operands_to_prefetch: Annotated[tuple[str, ...], Told(allowed="a list of layer operands, such as [W]")] | None = (
        None
    )
    """Layer operands whose constants are prefetched, such as W; [] for none. null: the operands are searched."""
    prefetch_results: bool | None = None
    """True if results of computation nodes are prefetched, in addition to constants. null: both values are tried."""
    layers_by_off_chip: Annotated[tuple[Count, ...], Told(allowed="a list of layer ids, such as [3, 5]")] | None = None
    """Ids of layers whose results go to other memories through the off-chip memory; [] for none. null: the layers are
    searched.
    """


@dataclass(frozen=True, eq=False, repr=False)
class PlanEffort(Parameters):
    """Effort of a search for a plan, given as counts that do not depend on the speed of the machine."""

    nb_plans: PositiveCount = 4000
    """Number of plans after which the search for a plan ends. A plan for a part of the network counts as a plan. The
    initial plans (layer by layer; all layers cut in the same way) are always evaluated.
    """
    nb_schedules: PositiveCount | None = None
    """Number of schedules after which the search for a plan ends. The search completes its last plan, and can exceed
    this number by the schedules of this plan. null: no limit. With a number, the result is the same on any machine,
    except if a limit of seconds is also given.
    """
    islands: PositiveCount = 1
    """Number of islands: searches with different seeds that continue from the same initial plans. `nb_plans` and
    `nb_schedules` limit the initial plans and all islands together: the initial plans use a part of these limits, and
    the rest is divided equally among the islands. `make run` runs each island in separate jobs.
    """
    island_rounds: PositiveCount = 4
    """Number of rounds of each island. Between two rounds, each island sends its best plan to the next island."""

    def without_effect(self) -> dict[str, str]:
        """Reason for each option without effect, by name of the option: `island_rounds` has no effect with only one
        island.
        """
        found = super().without_effect()
        if self.islands == 1:
            found["island_rounds"] = "has no effect with one island"
        return found


@dataclass(frozen=True, eq=False, repr=False)
class SearchedReductions(Parameters):
    """Reductions that a search for plans cuts between cores."""

    cut_reductions: bool = False
    """True if reductions are also cut between cores, for layers with few outputs and a long reduction. Up to three
    further networks, with cut reductions, are then searched too. The limits of the search are divided among all these
    searches.
    """


@dataclass(frozen=True, eq=False, repr=False)
class PlanSearch(PlanEffort, SearchedReductions):
    """Effort and extent of a search for plans."""

    def conflicts(self, wrong: set[str]) -> Iterable[Problem]:
        """Report a problem if `cut_reductions` is true and there is more than one island. A search with islands
        searches only one network, but `cut_reductions` needs several.
        """
        yield from super().conflicts(wrong)
        if self.cut_reductions and self.islands > 1:
            yield Problem(
                "cannot be combined with more than one island (option islands)", path="cut_reductions", value="true"
            )


@dataclass(frozen=True, eq=False, repr=False)
class PlanSchedule(Parameters):
    """Settings of the schedules that a search makes for plans. These settings are not part of a plan."""

    share_divisor: PositiveCount = 4
    """Divisor of the full width of a transfer. A transfer starts when the free width is at least (full width /
    divisor). With 4, a quarter of the full width must be free; with 1, the full width must be free.
    """
    stack_order: StackOrder = "priority"
    """Effect of stacks on the order of nodes. `priority`: with the rule `memory`, a core prefers nodes of the earliest
    stack. `barrier`: like `priority`, but no node of a stack starts before all earlier stacks have ended.
    """
    cn_runtime: Runtime = "total1"
    """Parts of which the runtime of a CN consists. total0: computing and stalls; total1: total0 and on-loading; total2:
    total1 and off-loading.
    """


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FusionOptions(PlanSchedule, FusionFixed, PlanSearch, CnSearchOptions):
    """Options of the search for plans, and of the mapping of computation nodes on cores."""

    fusion_time_budget_s: PositiveNumber | None = 120.0
    """Time limit of the whole call in seconds, from reading the first file to writing the last file. The call ends only
    after one plan has a schedule; if this takes longer than the limit, the call says so. null: no limit. If there is no
    CPU limit either, the result depends only on the seed. The default limit does not apply if `nb_schedules` or
    `fusion_cpu_budget_s` is given.
    """
    fusion_cpu_budget_s: PositiveNumber | None = None
    """Limit of the CPU seconds of the whole call, in this process and its worker processes. Other work on the machine
    hardly changes the result. The call does not end before one plan has a schedule. null: no limit.
    """
    jobs: Count = 0
    """Number of processes; 0: one per processor. If `nb_plans` or `nb_schedules` ends the search, the result does not
    depend on the number of processes.
    """

    def __init__(self, **given: Any) -> None:
        defaults = {parameter.name: parameter.default for parameter in parameters_of(FusionOptions)}
        if given.keys() - defaults:
            raise TypeError(f"no such option: {', '.join(sorted(given.keys() - defaults))}")
        for name, value in {**defaults, **self.implied(given), **given}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values that replace defaults because of the values in `given`: if `given` limits the number of schedules or
        the CPU seconds, there is no default limit on elapsed time.
        """
        is_limited = any(given.get(name) is not None for name in ("nb_schedules", "fusion_cpu_budget_s"))
        return {**super().implied(given), **({"fusion_time_budget_s": None} if is_limited else {})}

    def without_effect(self) -> dict[str, str]:
        """Reason for each option without effect, by name of the option. The base classes give most of these reasons.
        `stack_cutoffs` has no effect if it names no layer. `seed` is never listed, because the search for plans always
        uses it.
        """
        found = super().without_effect()
        found.pop("seed", None)
        if self.stack_cutoffs == ():
            found["stack_cutoffs"] = "has no effect, because it names no layer; the search chooses the stacks"
        return found

    @property
    def job_count(self) -> int:
        """Number of processes; if `jobs` is 0, the number of processors."""
        if self.jobs:
            return self.jobs
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
