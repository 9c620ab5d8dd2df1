"""Keys of a configuration: classes of parameters, with the flows that have them and the verbs that take them.

A field of one of these classes is a key of a run, an option of the verbs, and a row of the documentation; it is
declared nowhere else. The module also has the runs of a configuration, and the options that each run gives to the
verbs.

The Snakefile imports this module whenever it is parsed, so it imports nothing larger than YAML.
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
from tilewright.search.options import CnSearchOptions, CoreSearchOptions, MapOptions

FLOWS = (SINGLE, MULTI)
SPLIT, TILING, COST, SEARCH, SCHEDULE, REPORT, MAP = "split", "cns", "cost", "allocate", "schedule", "report", "map"
FUSE = "fuse"
"""Verbs that take keys of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class Strictness(Parameters):
    """Requirements on every run."""

    strict: bool = False
    """Fail if the network has work without costs, because the core does not run it or the model has no layer for it, or
    if any input has no effect.
    """


@dataclass(frozen=True, eq=False, repr=False)
class FigureChoice(Parameters):
    """Figures that the workflow draws of every run."""

    figures: bool = False
    """Draw the figures of the run as files too, SVG and PNG, and its loop nests as PDF. By default only the page of
    results (`index.html`) has figures of each run, and `tilewright report` and `tilewright explain` draw the files. A
    run with an option for the drawing of its schedule (`plot_full_schedule`, `plot_data_transfer`) always has them.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Parameters):
    """Work that the workflow does in addition to a run on several cores."""

    split_layers: bool = False
    """Split layers in the network itself if their weights exceed the memory of a core."""
    baselines: bool = True
    """Run the network layer by layer too, on all cores and on the best one, as a separate run with the name
    `{run}.layer_by_layer` (`mode: lbl`; with a `cn_define_mode` one computation node per layer), and compare.
    """


@dataclass(frozen=True, eq=False, repr=False)
class PlanChoice(Parameters):
    """Source of the plan for the fusion of a network."""

    fusion: Literal["given", "search"] = "given"
    """`given`: stacks and tiles are those of the mapping file and of this run. `search`: `tilewright fuse` searches
    stacks, tiles, parts, cores and scheduling rules; whatever the mapping file and the run fix stays fixed. The mapping
    file is then `multi/open`, which fixes nothing, unless another one is named. `search` is the default of runs that
    name no mapping file, have none with the name of their hardware, and set no tiles and stacks.
    """


@dataclass(frozen=True)
class Group:
    """Class of parameters that are keys of the runs of a flow."""

    kind: type[Parameters]
    flow: str
    verbs: tuple[str, ...] = ()
    """Verbs that take the parameters as options; () for parameters that only the workflow uses."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys."""
        return tuple(parameter.name for parameter in parameters_of(self.kind))


GROUPS = (
    Group(MapOptions, SINGLE, (MAP,)),
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
SEARCH_OF: dict[str, type[CoreSearchOptions]] = {SINGLE: MapOptions, MULTI: CnSearchOptions}
"""Options of the search on a core, by flow."""


def _keys_of(flow: str) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for group in GROUPS:
        for parameter in parameters_of(group.kind) if group.flow == flow else ():
            found.setdefault(parameter.name, parameter)
    return found


KEYS_OF: dict[str, dict[str, Parameter]] = {flow: _keys_of(flow) for flow in FLOWS}
"""Parameter of each key of a run, by flow; if several classes have a key, that of the first."""
KEYS: dict[str, Parameter] = KEYS_OF[MULTI] | KEYS_OF[SINGLE]
"""Parameter of each key of a run of any flow."""
SETTINGS = tuple(key for key in KEYS_OF[MULTI] if key not in KEYS_OF[SINGLE])
"""Keys that only runs of the multi-core flow have; null gives them their default."""


def flows_of(key: str) -> tuple[str, ...]:
    """Flows whose runs have a key."""
    return tuple(flow for flow in FLOWS if key in KEYS_OF[flow])


def groups_of(flow: str, verb: str = "") -> tuple[Group, ...]:
    """Classes of a flow, or only those that a verb takes."""
    return tuple(group for group in GROUPS if group.flow == flow and (not verb or verb in group.verbs))


COMPANION = "layer_by_layer"
"""Suffix of the name of the layer-by-layer run with which a run is compared."""
_LAYER_BY_LAYER = {"mode": "lbl"}
"""Settings with each layer in a stack of its own, in parts for several cores if the mapping file says so
(`inter_core_tiling`).
"""
_WHOLE_LAYERS = _LAYER_BY_LAYER | {"cn_define_mode": 1}
"""Settings with one computation node per layer: for runs whose `hint_loops` replace the tiling of the mapping file."""


@dataclass(frozen=True)
class Stages:
    """Pipeline of a run that is not the default one."""

    pipeline: str = ""
    """Value of `pipeline` as JSON; '' for the default."""
    code: str = ""
    """Digest of the files of the user's stages; '' if there are none."""
    files: tuple[str, ...] = ()
    """Files of the stages, including the files that they import."""
    exports: bool = False
    """Whether a stage writes files into the folder of exports."""


@dataclass(frozen=True)
class Run:
    """Entry of `runs`, or one combination of a sweep; hardware, workload and mapping are names of files."""

    name: str
    flow: str
    hardware: str
    workload: str
    mapping: str
    options: CoreSearchOptions
    """Options of the search on a core; on several cores, objective and seed also apply to the search for an
    allocation.
    """
    stages: Stages
    strict: bool = False
    """Whether the run fails if there is work without costs."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Keys of SETTINGS that are given; {} in the single-core flow."""
    figures: bool = False
    """Whether its figures are drawn as files."""
    base: str = ""
    """Name of the run with which this baseline is compared; '' for a run of the configuration."""

    @property
    def splits(self) -> bool:
        """Whether layers are split in the network before it is cut into computation nodes."""
        return self.settings.get("split_layers", False) is True

    @property
    def plan_of(self) -> str:
        """Name of the run whose plan this run is scheduled by: itself, or the run of which it is a baseline; '' if no
        plan is searched.
        """
        return self.base or self.name if self.settings.get("fusion") == "search" else ""

    @property
    def fuses(self) -> bool:
        """Whether stacks and tiles are searched before the network is cut; False for a baseline."""
        return self.plan_of == self.name

    @property
    def companion(self) -> "Run | None":
        """Baseline of this run: the same network layer by layer, on the same cores; None if it is not wanted, or if
        this run is one.
        """
        cutting = {parameter.name for kind in (TilingOptions, PlanCount) for parameter in parameters_of(kind)}
        others = {key: value for key, value in self.settings.items() if key not in cutting}
        layer_by_layer = others | (_WHOLE_LAYERS if "cn_define_mode" in self.settings else _LAYER_BY_LAYER)
        is_this = layer_by_layer == self.settings and not self.stages.pipeline
        if self.flow == SINGLE or self.base or is_this or not self.settings.get("baselines", True):
            return None
        return replace(self, name=f"{self.name}.{COMPANION}", settings=layer_by_layer, base=self.name)

    def arguments(self, verb: str) -> list[str]:
        """Options of a verb for this run, as command line arguments."""
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
        """Pipeline of the run as an option of a verb that runs a part of it; [] for the default one.

        A baseline is cut layer by layer, whatever stages cut the run.
        """
        runs_it = verb in (MAP, COST, SEARCH, SCHEDULE) or (verb == TILING and not self.base)
        return ["--pipeline", self.stages.pipeline] if runs_it and self.stages.pipeline else []


@dataclass(frozen=True)
class RunPlan:
    """All runs, in the order of the configuration, and the file of each name."""

    every_run: tuple[Run, ...]
    """Runs of both flows; a run on several cores is followed by its baseline."""
    files: Mapping[str, Mapping[str, str]]
    """Paths by kind and name."""
    network_options: Mapping[str, tuple[str, ...]]
    """Options for what the ONNX file of a workload leaves open, as arguments of `tilewright parse workload`, by
    workload name.
    """
    results: Path
    """Folder of the results, relative to the project."""
    logs: Path
    """Folder of the logs of the jobs."""
    spaces: Mapping[str, str] = field(default_factory=dict)
    """Files of the design spaces to explore, by name."""
    fronts: Mapping[str, str] = field(default_factory=dict)
    """Files of the design spaces whose complete fronts are sought, by name."""
    unused: tuple[str, ...] = ()
    """Notices of input without effect."""
    runs_per_job: int = 1
    """Number of runs on one core that one process makes, one after another."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs of the single-core flow."""
        return tuple(run for run in self.every_run if run.flow == SINGLE)

    @property
    def multi_runs(self) -> tuple[Run, ...]:
        """Runs of the multi-core flow."""
        return tuple(run for run in self.every_run if run.flow == MULTI)

    def without(self, names: Collection[str]) -> "RunPlan":
        """Plan without some of its runs, and without their baselines."""
        return replace(self, every_run=tuple(run for run in self.every_run if not {run.name, run.base} & set(names)))
