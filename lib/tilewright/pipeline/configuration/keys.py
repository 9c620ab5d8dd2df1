"""Keys of a configuration: classes of parameters, with their flows and the verbs that take them as options.

A field of one of these classes is a key of a run, an option of verbs, and a row of the documentation. Each field is
declared only once. This module also defines the runs of a configuration, and the options that a run gives to each verb.

The Snakefile imports this module each time Snakemake parses it, so this module imports nothing larger than YAML.
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
from tilewright.pipeline.configuration.fusion_options import FusionOptions, PlanSearch
from tilewright.pipeline.configuration.island_parts import parts_before, state_parts
from tilewright.results.schedule_options import ScheduleFigureOptions
from tilewright.results.sheet import PaperWidth
from tilewright.search.options import CnSearchOptions, CoreSearchOptions, MapOptions

FLOWS = (SINGLE, MULTI)
SPLIT, TILING, COST, SEARCH, SCHEDULE, REPORT, MAP = "split", "cns", "cost", "allocate", "schedule", "report", "map"
FUSE = "fuse"
"""Name of the verb that searches a fusion plan. The options of this verb include keys of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class Strictness(Parameters):
    """Checks that a run of any flow can request."""

    strict: bool = False
    """Report an error if a part of the network has no costs, because no core can run the part or because there is no
    cost model for it. Also report an error if an option or a key of an input file has no effect.
    """


@dataclass(frozen=True, eq=False, repr=False)
class FigureChoice(Parameters):
    """Figures that `make run` draws for a run."""

    figures: bool = False
    """Write figures of the run as SVG and PNG files, and the loop nests as PDF. By default, only the page of results
    (`index.html`) has figures. `tilewright report` and `tilewright explain` can write the files later. The
    default is true for a run that sets an option for the drawing of the schedule (`plot_full_schedule`,
    `plot_data_transfer`).
    """
    paper: PaperWidth | None = None
    """Write additional figures and tables of the run for a paper, 3.4 inches wide (`column`) or 7 inches wide (`page`),
    into the folder `report/paper` of the run. If all runs have the same width, the table of runs and the Pareto fronts
    are also written for a paper. At the top of the configuration, the key also applies to the design spaces.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Parameters):
    """Additional work of `make run` for a run on several cores."""

    split_layers: bool = False
    """Split a layer into several layers of the network if its weights exceed the memory of a core."""
    baselines: bool = True
    """Compute two baselines for comparison: the network on the best single core, and the network layer by layer on all
    cores. The layer-by-layer baseline is a run of its own with the name `{run}.layer_by_layer` and the key `mode: lbl`.
    If the run has a `cn_define_mode`, each layer of this baseline is one computation node.
    """


@dataclass(frozen=True, eq=False, repr=False)
class PlanChoice(Parameters):
    """Source of the plan for the fusion of a network."""

    fusion: Literal["given", "search"] = "given"
    """`given`: stacks and tiles are those of the mapping file and of this run. `search`: `tilewright fuse` searches for
    the best stacks, tiles, splits of layers between cores, allocation to cores, and scheduling rules. The mapping file
    and the run can fix some of these. With `search`, the default mapping file is `multi/open`, which fixes nothing. The
    default is `search` if three conditions hold: the run names no mapping file, no mapping file has the name of the
    hardware of the run, and the run sets neither tiles nor stacks. Otherwise, the default is `given`.
    """


@dataclass(frozen=True)
class Group:
    """Parameter class `kind`, whose parameters are keys of the runs of the flow `flow`."""

    kind: type[Parameters]
    flow: str
    verbs: tuple[str, ...] = ()
    """Verbs (commands) that take the parameters of the class as options. The tuple is empty if only `make run` uses the
    parameters.
    """

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
    Group(PlanSearch, MULTI, (FUSE,)),
    Group(ScheduleFigureOptions, MULTI, (REPORT,)),
)
SEARCH_OF: dict[str, type[CoreSearchOptions]] = {SINGLE: MapOptions, MULTI: CnSearchOptions}
"""Class of the options of the search on one core, by flow."""


def _keys_of(flow: str) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for group in GROUPS:
        for parameter in parameters_of(group.kind) if group.flow == flow else ():
            found.setdefault(parameter.name, parameter)
    return found


KEYS_OF: dict[str, dict[str, Parameter]] = {flow: _keys_of(flow) for flow in FLOWS}
"""Parameter of each key of a run, by flow and key. If several classes have the same key, the parameter of the first
class is used.
"""
KEYS: dict[str, Parameter] = KEYS_OF[MULTI] | KEYS_OF[SINGLE]
"""Parameters of the keys of a run, by key. If both flows have a key, the parameter of the single-core flow is used.
"""
SETTINGS = tuple(key for key in KEYS_OF[MULTI] if key not in KEYS_OF[SINGLE])
"""Keys that only runs on several cores have. The value null stands for the default of the key."""


def flows_of(key: str) -> tuple[str, ...]:
    """Flows whose runs have the key."""
    return tuple(flow for flow in FLOWS if key in KEYS_OF[flow])


def groups_of(flow: str, verb: str = "") -> tuple[Group, ...]:
    """Groups of a flow. With a `verb`, only the groups whose parameters this verb takes as options."""
    return tuple(group for group in GROUPS if group.flow == flow and (not verb or verb in group.verbs))


COMPANION = "layer_by_layer"
"""Suffix of the name of a baseline. A baseline is the layer-by-layer run with which a run is compared."""
_ISLAND_KEYS = ("islands", "island_rounds")
_LAYER_BY_LAYER = {"mode": "lbl"}
"""Settings of a baseline in which each layer is a stack of its own. If the mapping file gives `inter_core_tiling`, a
layer is still split between cores.
"""
_WHOLE_LAYERS = _LAYER_BY_LAYER | {"cn_define_mode": 1}
"""Settings of a baseline with one computation node per layer. These settings are for runs whose `hint_loops` replace
the tiling of the mapping file.
"""


@dataclass(frozen=True)
class Stages:
    """Pipeline of a run. The default values of all fields together stand for the default pipeline."""

    pipeline: str = ""
    """Value of the key `pipeline` as JSON; '' for the default pipeline."""
    code: str = ""
    """Digest of the files with stages of the user; '' if there are no such files."""
    files: tuple[str, ...] = ()
    """Files with stages of the user, and the files that these files import."""
    exports: bool = False
    """True if a stage of the pipeline writes files into the folder of exports."""


@dataclass(frozen=True)
class Run:
    """Run of a configuration: an entry of `runs`, or one combination of a sweep. `hardware`, `workload` and `mapping`
    are names of files.
    """

    name: str
    flow: str
    hardware: str
    workload: str
    mapping: str
    options: CoreSearchOptions
    """Options of the search on one core. For a run on several cores, objective and seed also apply to the search for an
    allocation.
    """
    stages: Stages
    strict: bool = False
    """True if the run fails when the cost of a part of the network is not computed, or when an input has no effect."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Values of the keys in SETTINGS, by key; {} for a run on one core."""
    figures: bool = False
    """True if figures of the run are written as files."""
    paper: PaperWidth | None = None
    """Width of the figures and tables of the run for a paper; None if none are written."""
    base: str = ""
    """Name of the run that is compared with this run, if this run is a baseline; '' otherwise."""

    @property
    def splits(self) -> bool:
        """True if large layers are split into several layers before the network is cut into computation nodes."""
        return self.settings.get("split_layers", False) is True

    @property
    def plan_of(self) -> str:
        """Name of the run whose fusion plan sets the schedule rules of this run; '' if no plan is searched. A baseline
        uses the plan of the run with which it is compared. Every other run uses its own plan.
        """
        return self.base or self.name if self.settings.get("fusion") == "search" else ""

    @property
    def fuses(self) -> bool:
        """True if `tilewright fuse` searches the stacks and tiles of this run; False for a baseline."""
        return self.plan_of == self.name

    @property
    def island_counts(self) -> tuple[int, int]:
        """Counts for the search for a plan, as a pair (islands, rounds of each island)."""
        effort = PlanSearch(**{key: self.settings[key] for key in _ISLAND_KEYS if key in self.settings})
        return effort.islands, effort.island_rounds

    @property
    def island_parts(self) -> list[str]:
        """Names of the search parts that write a state, if the search has several islands; otherwise []. A state is a
        result that later search parts read.
        """
        return list(state_parts(*self.island_counts)) if self.island_counts[0] > 1 else []

    def island_parts_before(self, part: str) -> list[str]:
        """Names of the earlier search parts whose states the part `part` reads; [] if the search has a single
        island.
        """
        return parts_before(part, *self.island_counts) if self.island_parts else []

    @property
    def companion(self) -> "Run | None":
        """Baseline of this run: the same network layer by layer on the same cores. None in four cases: no baseline is
        wanted, the run is on one core, the run is a baseline itself, or the run already runs layer by layer.
        """
        cutting = {parameter.name for kind in (TilingOptions, PlanSearch) for parameter in parameters_of(kind)}
        others = {key: value for key, value in self.settings.items() if key not in cutting}
        layer_by_layer = others | (_WHOLE_LAYERS if "cn_define_mode" in self.settings else _LAYER_BY_LAYER)
        is_this = layer_by_layer == self.settings and not self.stages.pipeline
        if self.flow == SINGLE or self.base or is_this or not self.settings.get("baselines", True):
            return None
        return replace(self, name=f"{self.name}.{COMPANION}", settings=layer_by_layer, base=self.name)

    def arguments(self, verb: str) -> list[str]:
        """Options that this run gives to a verb, as command-line arguments."""
        # Options without effect are left out here; they are reported one time, for the configuration.
        is_searched = verb == FUSE or (verb in (MAP, COST) and not self.stages.pipeline)
        asked = self.options.part(FusionOptions) if verb == FUSE else self.options
        left_out = asked.without_effect() if is_searched else {}
        options = {name: value for name, value in self.options.as_dict().items() if name not in left_out}
        given = {**options, **self.settings, "strict": self.strict}
        if verb == FUSE:  # no time limit: results must be reproducible
            return arguments_of(FusionOptions, {**given, "fusion_time_budget_s": None})
        # If a plan is searched, the plan says how the network is cut and scheduled, so these options are left out.
        planned = ((TilingOptions,) if self.fuses else ()) + ((ScheduleSettings,) if self.plan_of else ())
        kinds = [group.kind for group in groups_of(self.flow, verb) if group.kind not in planned]
        words = [word for kind in kinds for word in arguments_of(kind, self._with_effect(kind, given))]
        if verb == SEARCH and not self.base:
            words.append("--no-single-core")  # runs are compared with layer-by-layer schedules
        return [*words, *self.pipeline_arguments(verb)]

    def _with_effect(self, kind: type[Parameters], given: Mapping[str, Any]) -> dict[str, Any]:
        """Values in `given` that have an effect. Settings that have no effect because of other settings are left out.
        `kind` is the class that declares the settings.
        """
        names = {parameter.name for parameter in parameters_of(kind)} & self.settings.keys()
        left_out = (
            () if self.stages.pipeline else kind(**{name: self.settings[name] for name in names}).without_effect()
        )
        return {name: value for name, value in given.items() if name not in left_out or name not in names}

    def pipeline_arguments(self, verb: str) -> list[str]:
        """Option --pipeline of a verb that runs stages of the pipeline; [] for the default pipeline.

        The network of a baseline is always cut layer by layer. Therefore the verb `cns` of a baseline does not get the
        pipeline.
        """
        runs_it = verb in (MAP, COST, SEARCH, SCHEDULE) or (verb == TILING and not self.base)
        return ["--pipeline", self.stages.pipeline] if runs_it and self.stages.pipeline else []


@dataclass(frozen=True)
class RunPlan:
    """Runs of a configuration, with the paths of their input files."""

    every_run: tuple[Run, ...]
    """All runs, in the order of the configuration. A run on several cores is followed by its baseline."""
    files: Mapping[str, Mapping[str, str]]
    """Path of each input file, by kind of file and name."""
    network_options: Mapping[str, tuple[str, ...]]
    """Options for an ONNX file (such as sizes of dynamic dimensions), as arguments of `tilewright parse workload`, by
    workload name.
    """
    results: Path
    """Folder of the results, relative to the project folder."""
    logs: Path
    """Folder of the logs of the jobs."""
    spaces: Mapping[str, str] = field(default_factory=dict)
    """Path of the file of each design space to explore, by name of the design space."""
    fronts: Mapping[str, str] = field(default_factory=dict)
    """Path of the file of each design space whose complete Pareto front is searched, by name of the design space."""
    unused: tuple[str, ...] = ()
    """Notices, one for each input without effect."""
    runs_per_job: int = 1
    """Number of single-core runs that one job executes one after another."""
    decide: str = ""
    """Measure in DECISIONS by which one design of each explored space is chosen; '' if no design is chosen."""
    paper: PaperWidth | None = None
    """Width of the figures and tables of design spaces for a paper; None if none are written."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs on one core."""
        return tuple(run for run in self.every_run if run.flow == SINGLE)

    @property
    def multi_runs(self) -> tuple[Run, ...]:
        """Runs on several cores."""
        return tuple(run for run in self.every_run if run.flow == MULTI)

    def without(self, names: Collection[str]) -> "RunPlan":
        """Copy of this plan without the runs called `names` and without their baselines."""
        return replace(self, every_run=tuple(run for run in self.every_run if not {run.name, run.base} & set(names)))
