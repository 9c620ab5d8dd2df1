"""Keys of a configuration: classes of parameters, with the flows that have them and the verbs that take them.

A field of one of these classes is a key of a run, an option of the verbs, and a row of the documentation: nothing else
names it. The Snakefile imports this at every parse: nothing heavy here.
"""

from dataclasses import dataclass
from typing import Literal

from tilewright.allocation.options import AllocationParameters
from tilewright.configuration.fusion_options import PlanCount
from tilewright.fusion.split_options import SplitOptions
from tilewright.fusion.tiling_options import TilingOptions
from tilewright.objectives import Goal
from tilewright.parameters import Parameter, Parameters, parameters_of
from tilewright.report.schedule_options import ScheduleFigureOptions
from tilewright.scheduling.options import ScheduleSettings
from tilewright.search.options import CnSearchOptions, CoreSearchOptions, SearchOptions
from tilewright.steps import MULTI, SINGLE

FLOWS = (SINGLE, MULTI)
SPLIT, TILING, COST, SEARCH, SCHEDULE, REPORT, MAP = "split", "cns", "cost", "allocate", "schedule", "report", "map"
FUSE = "fuse"
"""Verbs that take keys of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class Strictness(Parameters):
    """What is asked of every run."""

    strict: bool = False
    """Fail if there is work in the network that is not costed, because the core does not run it or the model has no
    layer for it."""


@dataclass(frozen=True, eq=False, repr=False)
class FigureChoice(Parameters):
    """What the workflow draws of every run."""

    figures: bool = False
    """Also draw the figures of the run as files, SVG and PNG, and its loop nests as PDF. Without, the page of results
    (`index.html`) has figures of each run, and `tilewright report` and `tilewright explain` draw the files. A run that
    says how its schedule is drawn (`plot_full_schedule`, `plot_data_transfer`) has them."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Parameters):
    """What the workflow does around a run on several cores."""

    split_layers: bool = False
    """Split layers in the network itself when their weights exceed the memory of a core."""
    baselines: bool = True
    """Also run the network layer by layer on all cores and on the best one, as a run of its own called
    `{run}.layer_by_layer` (`mode: lbl`; with a `cn_define_mode` one computation node a layer), and compare."""


@dataclass(frozen=True, eq=False, repr=False)
class PlanChoice(Parameters):
    """Who says how a network is fused."""

    fusion: Literal["given", "search"] = "given"
    """`given`: stacks and tiles are those of the mapping file and of this run. `search`: `tilewright fuse` looks for
    stacks, tiles, parts, cores and the rules of the schedule; what the mapping file and the run say stays as it is. The
    mapping file is then `multi/open`, which says nothing, unless another one is named. `search` is the default of
    runs that name no mapping file, have none of the name of their hardware, and say nothing of tiles and stacks."""


@dataclass(frozen=True)
class Group:
    """A class of parameters that are keys of the runs of a flow."""

    kind: type[Parameters]
    flow: str
    verbs: tuple[str, ...] = ()
    """Verbs that take them as options; () for what only the workflow looks at."""

    @property
    def names(self) -> tuple[str, ...]:
        """The keys."""
        return tuple(parameter.name for parameter in parameters_of(self.kind))


GROUPS = (
    Group(SearchOptions, SINGLE, (MAP,)),
    Group(Strictness, SINGLE, (MAP,)),
    Group(FigureChoice, SINGLE),
    Group(CnSearchOptions, MULTI, (COST,)),
    Group(SplitOptions, MULTI, (SPLIT,)),
    Group(TilingOptions, MULTI, (TILING,)),
    Group(Strictness, MULTI, (TILING,)),
    Group(AllocationParameters, MULTI, (SEARCH,)),
    Group(ScheduleSettings, MULTI, (SEARCH, SCHEDULE)),
    Group(Goal, MULTI, (SCHEDULE,)),
    Group(FigureChoice, MULTI),
    Group(Comparison, MULTI),
    Group(PlanChoice, MULTI),
    Group(PlanCount, MULTI, (FUSE,)),
    Group(ScheduleFigureOptions, MULTI, (REPORT,)),
)
SEARCH_OF: dict[str, type[CoreSearchOptions]] = {SINGLE: SearchOptions, MULTI: CnSearchOptions}
"""Flow -> the options of the search on a core."""


def _keys_of(flow: str) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for group in GROUPS:
        for parameter in parameters_of(group.kind) if group.flow == flow else ():
            found.setdefault(parameter.name, parameter)
    return found


KEYS_OF: dict[str, dict[str, Parameter]] = {flow: _keys_of(flow) for flow in FLOWS}
"""Flow -> key of a run -> its parameter, where several classes have one that of the first."""
KEYS: dict[str, Parameter] = KEYS_OF[MULTI] | KEYS_OF[SINGLE]
"""Key of a run of any flow -> its parameter."""
SETTINGS = tuple(key for key in KEYS_OF[MULTI] if key not in KEYS_OF[SINGLE])
"""Keys that only runs of the multi-core flow have; null gives them their default."""


def flows_of(key: str) -> tuple[str, ...]:
    """The flows whose runs have a key."""
    return tuple(flow for flow in FLOWS if key in KEYS_OF[flow])


def groups_of(flow: str, verb: str = "") -> tuple[Group, ...]:
    """The classes of a flow, or those that a verb takes."""
    return tuple(group for group in GROUPS if group.flow == flow and (not verb or verb in group.verbs))
