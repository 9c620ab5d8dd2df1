"""Keys of a configuration: classes of parameters, with the flows that have them and the verbs that take them.

A field of one of these classes is a key of a run, an option of the verbs, and a row of the documentation: nothing else
names it. The Snakefile imports this at every parse: nothing heavy here.

The runs of a configuration, and what each says to the verbs of its flow.

The Snakefile imports this at every parse: nothing heavier than YAML here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tilewright.base.objectives import Goal
from tilewright.base.parameters import Parameter, Parameters, parameters_of
from tilewright.base.steps import MULTI, SINGLE
from tilewright.multicore.allocation.options import AllocationParameters
from tilewright.multicore.nodes.tiling_options import SplitOptions, TilingOptions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.configuration.arguments import arguments_of
from tilewright.pipeline.configuration.fusion_options import FusionOptions, PlanCount
from tilewright.results.schedule_options import ScheduleFigureOptions
from tilewright.search.options import CnSearchOptions, CoreSearchOptions, SearchOptions

FLOWS = (SINGLE, MULTI)
SPLIT, TILING, COST, SEARCH, SCHEDULE, REPORT, MAP = "split", "cns", "cost", "allocate", "schedule", "report", "map"
FUSE = "fuse"
"""Verbs that take keys of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class Strictness(Parameters):
    """What is asked of every run."""

    strict: bool = False
    """Fail if there is work in the network that is not costed, because the core does not run it or the model has no
    layer for it, or if anything that was written has no effect."""


@dataclass(frozen=True, eq=False, repr=False)
class FigureChoice(Parameters):
    """What the workflow draws of every run."""

    figures: bool = False
    """Draw the figures of the run as files, too, SVG and PNG, and its loop nests as PDF. Without, the page of results
    (`index.html`) has figures of each run, and `tilewright report` and `tilewright explain` draw the files. A run that
    says how its schedule is drawn (`plot_full_schedule`, `plot_data_transfer`) has them."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Parameters):
    """What the workflow does around a run on several cores."""

    split_layers: bool = False
    """Split layers in the network itself when their weights exceed the memory of a core."""
    baselines: bool = True
    """Run the network layer by layer, too, on all cores and on the best one, as a run of its own called
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


COMPANION = "layer_by_layer"
"""What a run is compared with is a run of its own, named after it."""
_LAYER_BY_LAYER = {"mode": "lbl"}
"""Each layer is alone, in parts for several cores at once where the mapping file says so (`inter_core_tiling`)."""
_WHOLE_LAYERS = _LAYER_BY_LAYER | {"cn_define_mode": 1}
"""One computation node a layer: for runs whose `hint_loops` stand in place of what the mapping file says."""


@dataclass(frozen=True)
class Stages:
    """The pipeline of a run, where it is not the default one."""

    pipeline: str = ""
    """The value of `pipeline` as JSON; '' for the default."""
    code: str = ""
    """Digest of the files of the stages that the user wrote; '' if there are none."""
    files: tuple[str, ...] = ()
    """Files of the stages, with those that they import."""
    exports: bool = False
    """True if a stage writes files into the folder of exports."""


@dataclass(frozen=True)
class Run:
    """One entry of `runs`, or one combination of a sweep; hardware, workload and mapping are names of files."""

    name: str
    flow: str
    hardware: str
    workload: str
    mapping: str
    options: CoreSearchOptions
    """Options of the search on a core; on several cores, objective and seed are also of the search for an allocation.
    """
    stages: Stages
    strict: bool = False
    """Fail if there is work that is not costed."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The keys of SETTINGS that are given; none in the single-core flow."""
    figures: bool = False
    """Draw figures of it as files."""
    base: str = ""
    """The run that this one was made to be compared with; '' for a run of the configuration."""

    @property
    def splits(self) -> bool:
        """Whether layers are split in the network before it is cut into computation nodes."""
        return self.settings.get("split_layers", False) is True

    @property
    def plan_of(self) -> str:
        """The run whose plan says how this one is scheduled: itself, or what it is compared with; '' where none is
        searched."""
        return self.base or self.name if self.settings.get("fusion") == "search" else ""

    @property
    def fuses(self) -> bool:
        """Whether stacks and tiles are searched before the network is cut; not of what a run is compared with."""
        return self.plan_of == self.name

    @property
    def companion(self) -> "Run | None":
        """Run of the same network layer by layer, on the same cores; None if that is not wanted, or is what this run
        is."""
        cutting = {parameter.name for kind in (TilingOptions, PlanCount) for parameter in parameters_of(kind)}
        others = {key: value for key, value in self.settings.items() if key not in cutting}
        layer_by_layer = others | (_WHOLE_LAYERS if "cn_define_mode" in self.settings else _LAYER_BY_LAYER)
        is_this = layer_by_layer == self.settings and not self.stages.pipeline
        if self.flow == SINGLE or self.base or is_this or not self.settings.get("baselines", True):
            return None
        return replace(self, name=f"{self.name}.{COMPANION}", settings=layer_by_layer, base=self.name)

    def arguments(self, verb: str) -> list[str]:
        """The options of a verb for this run, as its command line takes them."""
        # What has no effect is told of the configuration, and not of each step.
        is_searched = verb == FUSE or (verb in (MAP, COST) and not self.stages.pipeline)
        asked = self.options.part(FusionOptions) if verb == FUSE else self.options
        left_out = asked.without_effect() if is_searched else {}
        options = {name: value for name, value in self.options.as_dict().items() if name not in left_out}
        given = {**options, **self.settings, "strict": self.strict}
        if verb == FUSE:  # by count, so that the same files give the same bytes
            return arguments_of(FusionOptions, {**given, "fusion_time_budget_s": None})
        # How the network is cut and scheduled stands in the plan, where one was searched.
        planned = ((TilingOptions,) if self.fuses else ()) + ((ScheduleSettings,) if self.plan_of else ())
        kinds = [group.kind for group in groups_of(self.flow, verb) if group.kind not in planned]
        words = [word for kind in kinds for word in arguments_of(kind, self._with_effect(kind, given))]
        if verb == SEARCH and not self.base:
            words.append("--no-single-core")  # what a run is compared with are schedules layer by layer
        return [*words, *self.pipeline_arguments(verb)]

    def _with_effect(self, kind: type[Parameters], given: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of a run that others of the same class do not overrule."""
        names = {parameter.name for parameter in parameters_of(kind)} & self.settings.keys()
        left_out = (
            () if self.stages.pipeline else kind(**{name: self.settings[name] for name in names}).without_effect()
        )
        return {name: value for name, value in given.items() if name not in left_out or name not in names}

    def pipeline_arguments(self, verb: str) -> list[str]:
        """The pipeline of the run as an option of a verb that runs a part of it; nothing for the default one.

        What a run is compared with is cut layer by layer, whatever stages cut the run.
        """
        runs_it = verb in (MAP, COST, SEARCH, SCHEDULE) or (verb == TILING and not self.base)
        return ["--pipeline", self.stages.pipeline] if runs_it and self.stages.pipeline else []


@dataclass(frozen=True)
class RunPlan:
    """All runs, in the order of the configuration, and the file behind each name."""

    every_run: tuple[Run, ...]
    """Runs of both flows; one on several cores is followed by the run that it is compared with."""
    files: Mapping[str, Mapping[str, str]]
    """Kind -> name -> path."""
    network_options: Mapping[str, tuple[str, ...]]
    """Workload name -> what its ONNX file leaves open, as arguments of `tilewright parse workload`."""
    results: Path
    """Folder of the results, relative to the project."""
    logs: Path
    """Folder of the logs of the jobs."""
    spaces: Mapping[str, str] = field(default_factory=dict)
    """Name of a design space to explore -> its file."""
    fronts: Mapping[str, str] = field(default_factory=dict)
    """Name of a design space of which the complete fronts are sought -> its file."""
    unused: tuple[str, ...] = ()
    """What is given and has no effect, as notices."""
    runs_per_job: int = 1
    """Runs on one core that are made by one process, one after the other."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs of the single-core flow."""
        return tuple(run for run in self.every_run if run.flow == SINGLE)

    @property
    def multi_runs(self) -> tuple[Run, ...]:
        """Runs of the multi-core flow."""
        return tuple(run for run in self.every_run if run.flow == MULTI)

    def without(self, names: Collection[str]) -> "RunPlan":
        """The plan without some of its runs, and without what these are compared with."""
        return replace(self, every_run=tuple(run for run in self.every_run if not {run.name, run.base} & set(names)))
