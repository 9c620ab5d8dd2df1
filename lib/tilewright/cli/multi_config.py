"""What a configuration says about runs of the multi-core flow: their settings, checked, and as arguments of verbs.

The Snakefile imports this at every parse: nothing heavier than YAML here.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.allocation.options import AllocationOptions
from tilewright.cli.pipeline_config import Stages
from tilewright.errors import InputError, Problem
from tilewright.scheduling.settings import RUNTIMES, ScheduleSettings
from tilewright.search.options import SearchOptions

MODEL = "corrected"
"""How every workload is read, and the cost model of runs that say no other: it has operators for all kinds of cores."""
SPLIT, TILING, COST, SEARCH, SCHEDULE, REPORT = "split", "cns", "cost", "allocate", "schedule", "report"
"""Verbs that take settings; those of `schedule` are taken by `allocate` too."""
COMPANION = "layer_by_layer"
"""What a run is compared with is a run of its own, named after it."""

Note = Callable[..., None]
"""note(message, path, value=, allowed=, nearest=) keeps a problem."""


@dataclass(frozen=True)
class Setting:
    """A key of a run of the multi-core flow."""

    kinds: tuple[type, ...]
    allowed: str
    """What may stand there, in words."""
    verbs: tuple[str, ...] = ()
    """Verbs that take it; () for what only the workflow looks at."""

    def holds(self, value: Any) -> bool:
        """Whether a value is of a right kind; true and false are no numbers."""
        return isinstance(value, self.kinds) and (not isinstance(value, bool) or bool in self.kinds)


_COUNT, _SWITCH, _TEXT = (int,), (bool,), (str,)
SETTINGS: dict[str, Setting] = {
    "split_layers": Setting(_SWITCH, "true or false"),
    "split_W_percentage": Setting((int, float), "a number above 0, at most 1", (SPLIT, TILING)),
    "split_W_double_buffered": Setting(_SWITCH, "true or false", (SPLIT,)),
    "cn_define_mode": Setting(_COUNT, "1, 2, 3 or 4", (TILING,)),
    "hint_loops": Setting((list, dict), "a list of loops, as [[OY, all]]", (TILING,)),
    "layer_cutoffs": Setting((list,), "a list of whole numbers", (TILING,)),
    "mode": Setting(_TEXT, "lbl or fused", (TILING,)),
    "layer_stacks": Setting((list,), "a list of lists of layer ids", (TILING,)),
    "stack_cutoffs": Setting((list,), "a list of whole numbers", (TILING,)),
    "nb_ga_individuals": Setting(_COUNT, "a whole number", (SEARCH,)),
    "nb_ga_generations": Setting(_COUNT, "a whole number", (SEARCH,)),
    "ga_time_budget_s": Setting((int, float), "a number", (SEARCH,)),
    "exhaustive_nodes": Setting(_COUNT, "a whole number", (SEARCH,)),
    "scheduler_candidate_selection": Setting(_TEXT, "latency or memory", (SCHEDULE,)),
    "operands_to_prefetch": Setting((list,), "a list of layer operands, as [W]", (SCHEDULE,)),
    "schedule_model": Setting(_TEXT, "a name", (SCHEDULE,)),
    "share_divisor": Setting(_COUNT, "a whole number", (SCHEDULE,)),
    "cn_runtime": Setting(_TEXT, ", ".join(RUNTIMES), (SCHEDULE,)),
    "baselines": Setting(_SWITCH, "true or false"),
    "plot_full_schedule": Setting(_SWITCH, "true or false", (REPORT,)),
    "plot_data_transfer": Setting(_SWITCH, "true or false", (REPORT,)),
}
"""Keys that only runs of the multi-core flow have."""
SINGLE_ONLY = ("exploit_data_locality", "workload_data_always_from_top_mem")
"""Keys that only runs of the single-core flow have."""
LIST_SETTINGS = tuple(key for key, setting in SETTINGS.items() if list in setting.kinds)
"""Settings whose value is a list: a sweep does not take it for choices."""
_LAYER_BY_LAYER = {"mode": "lbl"}
"""Each layer is alone, in parts for several cores at once where the mapping file says so (`inter_core_tiling`)."""
_WHOLE_LAYERS = _LAYER_BY_LAYER | {"cn_define_mode": 1}
"""One computation node a layer: for runs whose `hint_loops` stand in place of what the mapping file says."""


@dataclass(frozen=True)
class MultiRun:
    """One run of the multi-core flow; hardware, workload and mapping are names of files."""

    name: str
    hardware: str
    workload: str
    mapping: str
    options: SearchOptions
    """Of the mapping of computation nodes on each core; objective and seed also of the search for an allocation."""
    stages: Stages
    strict: bool
    """Fail if there is work that is not costed."""
    settings: Mapping[str, Any]
    """The keys of SETTINGS that are given."""
    base: str = ""
    """The run that this one was made to be compared with; '' for a run of the configuration."""

    @property
    def splits(self) -> bool:
        """Whether layers are split in the network before it is cut into computation nodes."""
        return self.settings.get("split_layers", False) is True

    @property
    def companion(self) -> "MultiRun | None":
        """The same network layer by layer, on the same cores; None if that is not wanted, or is what this run is."""
        others = {key: value for key, value in self.settings.items() if TILING not in SETTINGS[key].verbs}
        layer_by_layer = others | (_WHOLE_LAYERS if "cn_define_mode" in self.settings else _LAYER_BY_LAYER)
        is_this = layer_by_layer == self.settings and not self.stages.pipeline
        if self.base or is_this or not self.settings.get("baselines", True):
            return None
        return replace(self, name=f"{self.name}.{COMPANION}", settings=layer_by_layer, base=self.name)

    def arguments(self, verb: str) -> list[str]:
        """The settings of a verb, as its command line takes them."""
        words: list[str] = []
        for key, value in self.settings.items():
            verbs = SETTINGS[key].verbs
            if verb in verbs or (verb == SEARCH and SCHEDULE in verbs):
                words += _words(key, value, plain_switch=verb == SPLIT)
        if verb == SEARCH:
            words += ["--seed", str(self.options.seed)]
            # What a run is compared with are schedules of the network layer by layer.
            words += [] if self.base else ["--no-single-core"]
        if verb in (SEARCH, SCHEDULE):
            words += ["--objective", self.options.objective]
        if verb == TILING and self.strict:
            words.append("--strict")
        return [*words, *self.pipeline_arguments(verb)]

    def pipeline_arguments(self, verb: str) -> list[str]:
        """The pipeline of the run as an option of a verb that runs a part of it; nothing for the default one.

        What a run is compared with is cut layer by layer, whatever stages cut the run.
        """
        runs_it = verb in (COST, SEARCH, SCHEDULE) or (verb == TILING and not self.base)
        return ["--pipeline", self.stages.pipeline] if runs_it and self.stages.pipeline else []


def read_settings(entry: Mapping[str, Any], defaults: Mapping[str, Any], path: tuple[str, ...], note: Note) -> Any:
    """The settings of a run of the multi-core flow; `note` is told every problem. A null gives a key its default."""
    values = {key: entry.get(key, defaults.get(key)) for key in SETTINGS}
    settings = {key: value for key, value in values.items() if value is not None}

    def place(key: str) -> tuple[str, ...]:
        return (*path, key) if key in entry else (key,)

    wrong = [key for key, value in settings.items() if not SETTINGS[key].holds(value)]
    for key in wrong:
        note("wrong kind of value", place(key), value=repr(settings[key])[:60], allowed=SETTINGS[key].allowed)
    right = {key: value for key, value in settings.items() if key not in wrong}
    for problem in _problems(right):
        key = problem.path.partition("[")[0]
        note(problem.message, (*place(key)[:-1], problem.path), problem.value, problem.allowed, problem.nearest)
    return settings


def _problems(settings: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with values of a right kind, at their keys."""
    found: list[Problem] = []
    # The classes themselves know what they allow; each gets the keys that are its own.
    for verb, make in ((TILING, _tiling_options), (SEARCH, _allocation_options), (SCHEDULE, _schedule_settings)):
        try:
            make({key: value for key, value in settings.items() if verb in SETTINGS[key].verbs})
        except InputError as error:
            found += error.problems
    if settings.get("split_W_double_buffered") and not settings.get("split_layers"):
        found.append(Problem("has no effect without split_layers: true", path="split_W_double_buffered"))
    return found


def _tiling_options(values: Mapping[str, Any]) -> None:
    from tilewright.fusion.tiling_options import TilingOptions

    TilingOptions(**{key.lower(): value for key, value in values.items()})


def _allocation_options(values: Mapping[str, Any]) -> None:
    own = {"ga_time_budget_s": "time_budget_s"}
    try:
        AllocationOptions(**{own.get(key, key): value for key, value in values.items()})
    except InputError as error:
        keys = {name: key for key, name in own.items()}
        problems = [replace(problem, path=keys.get(problem.path, problem.path)) for problem in error.problems]
        raise InputError(problems) from None


def _schedule_settings(values: Mapping[str, Any]) -> None:
    ScheduleSettings(**values)


def _words(key: str, value: Any, plain_switch: bool) -> list[str]:
    """A setting as words of a command line. Switches of reports are `--x` and `--no-x`, others `--x` or nothing."""
    flag = key.replace("_", "-").lower()
    if isinstance(value, bool):
        return ([f"--{flag}"] if value else []) if plain_switch else [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, list | dict):
        return [f"--{flag}", json.dumps(value, separators=(",", ":"))]
    return [f"--{flag}", str(value)]
