"""Reader of config/config.yaml, which lists runs with their files and options; all errors are reported at once.

The Snakefile imports this module each time Snakemake parses it, so this module imports nothing larger than YAML.

One class reads all runs, so that each file is read only once, even if several runs name it.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem, Unused, nearest_name
from tilewright.base.file_kinds import CONFIG, refuse_other_kind
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import DECISIONS
from tilewright.base.parameters import Parameters, parameters_of
from tilewright.base.steps import MULTI, NAME_PATTERN, SINGLE
from tilewright.base.unknown_keys import TOP, unknown_key
from tilewright.base.yamlfile import YamlDocument, load_yaml
from tilewright.cli.config_files import (
    DESCRIPTIONS,
    SPACE,
    Globs,
    ambiguity,
    expand_choices,
    expand_run,
    find_file,
    is_glob,
    is_in_folder,
    is_system,
    known_files,
    mapping_for,
    matching,
    name_of,
    nearest_known,
    some_of,
)
from tilewright.cli.config_folders import KEY, RESULTS, logs_folder, results_folder
from tilewright.cli.config_networks import NETWORK_KEYS, network_arguments
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.configuration.fusion_options import FusionOptions, PlanSearch
from tilewright.pipeline.configuration.keys import (
    FLOWS,
    KEYS,
    KEYS_OF,
    SEARCH_OF,
    SETTINGS,
    Run,
    RunPlan,
    Stages,
    flows_of,
    groups_of,
)
from tilewright.results.schedule_options import ScheduleFigureOptions
from tilewright.search.options import ZIGZAG, CoreSearchOptions

OPEN_MAPPING = "multi/open"
"""Name of the mapping file for a run that searches for a plan but names no mapping file."""
FUSION_KEY, SEARCHED = "fusion", "search"


def says_nothing(entry: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """True if a run on several cores does not say how its network is cut and mapped. Three conditions must hold:

    * The run names no mapping file.
    * There is no mapping file with the same name as the hardware.
    * No key sets `fusion`, tiles, stacks, stages, or a schedule setting that the search for plans does not have.

    `values` are the values of the keys of the run, including keys at the top of the configuration.
    """
    if entry.get("mapping") is not None or not isinstance(entry.get("hardware"), str):
        return False
    kinds = (FusionOptions, TilingOptions, ScheduleSettings)
    searched, cutting, schedules = ({parameter.name for parameter in parameters_of(kind)} for kind in kinds)
    if "pipeline" in entry or values.keys() & ({FUSION_KEY} | cutting | (schedules - searched)):
        return False
    names = (OPEN_MAPPING, mapping_for(entry["hardware"]))
    return [is_in_folder("mapping", name) for name in names] == [True, False]


DRAWN = frozenset(parameter.name for parameter in parameters_of(ScheduleFigureOptions))
"""Keys that determine how a schedule is drawn."""

SPACES, FRONTS = "spaces", "fronts"
"""Keys that list design spaces: spaces to explore (SPACES), and spaces whose complete Pareto fronts are searched
(FRONTS)."""
RUN_KEYS = ("flow", *DESCRIPTIONS, *KEYS, "pipeline")
DECIDE = "decide"
"""Key for the measure by which `tilewright decide` chooses a design of each explored space."""
RUNS_PER_JOB = "runs_per_job"
"""Key for the number of single-core runs that one job of the pipeline makes."""
MANY_JOBS = 50
"""Limit on the number of jobs that make single-core runs, if `runs_per_job` is not given. If there are more runs than
this limit, each job makes several runs.
"""
_RUN = "a run (`runs.NAME`) or a sweep (`sweeps.NAME`)"
TOP_KEYS = ("runs", "sweeps", SPACES, FRONTS, DECIDE, KEY, RUNS_PER_JOB, *NETWORK_KEYS, *KEYS, "pipeline")
_VALUES_THAT_ARE_LISTS = ("pipeline", *(key for key, parameter in KEYS.items() if parameter.takes_list))


def read_config(path: Path | str) -> RunPlan:
    """Runs of a configuration file. Raises InputError with all problems of the file."""
    document = load_yaml(path)
    return plan_of(document.data, [document])


def plan_of(config: Any, documents: Sequence[YamlDocument] = ()) -> RunPlan:
    """Runs of a configuration that is already loaded. `documents` give the line of each key for messages. Raises
    InputError with all problems."""
    reader = _Reader(list(documents))
    plan = reader.read(config)
    if reader.problems:
        raise InputError(reader.problems)
    return plan


@dataclass
class _Reader:
    documents: list[YamlDocument]
    problems: list[Problem] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)
    """Notices of input without effect."""
    effects: dict[str, bool] = field(default_factory=dict)
    """Truth value for each key at the top of the file: True if the key has an effect in at least one run, or if the
    entry of at least one run also sets this key. Runs with a pipeline are not examined, so some keys can be missing.
    """
    files: dict[str, dict[str, str]] = field(default_factory=lambda: {kind: {} for kind in DESCRIPTIONS})
    systems: dict[str, bool | None] = field(default_factory=dict)
    """Answer for each hardware file: True if it describes several cores, False if it describes one core, and None if it
    is empty or unreadable. The answers are stored, because many runs share a file.
    """

    def read(self, config: Any) -> RunPlan:
        if not self._is_configuration(config):
            return RunPlan((), {}, {}, RESULTS, logs_folder(RESULTS))
        self._refuse_repeated_keys()
        self._check_keys(config, (), TOP_KEYS)
        defaults = {key: value for key, value in config.items() if key in RUN_KEYS}
        self._check_defaults(config)
        runs: dict[str, Run] = {}
        for path, name, entry in self._entries(config):
            run = self._run(path, name, entry, defaults)
            for found in (run, run and run.companion):
                if found and found.name in runs:
                    self._note("two runs have this name", path, value=repr(found.name))
                elif found:
                    runs[found.name] = found
        for name in (name for name, has_effect in self.effects.items() if not has_effect):
            self._tell((name,), "has no effect in any run")
        spaces, fronts = self._spaces(config, SPACES), self._spaces(config, FRONTS)
        if not (runs or spaces or fronts) and not self.problems:
            self._note(
                "the configuration has no runs: give at least one entry under runs, sweeps, spaces or fronts", ()
            )
        arguments = network_arguments(config, tuple(self.files["workload"]), self._note)
        files = [document.file for document in self.documents]
        results = results_folder(files, config.get(KEY), self._note)
        made = (tuple(runs.values()), self.files, arguments, results, logs_folder(results), spaces, fronts)
        per_job = self._runs_per_job(config, sum(run.flow == SINGLE for run in runs.values()))
        decide = self._decide(config)
        return RunPlan(*made, tuple(self.unused), per_job, decide, config.get("paper"))

    def _decide(self, config: JsonObject) -> str:
        """Measure by which a design of each explored space is chosen; '' if no design is chosen."""
        given = config.get(DECIDE)
        if given is None:
            return ""
        if given not in DECISIONS:
            allowed, nearest = ", ".join(DECISIONS), nearest_name(str(given), DECISIONS)
            self._note(
                "is not a measure by which a design can be chosen", (DECIDE,), repr(given)[:40], allowed, nearest
            )
            return ""
        if not config.get(SPACES):
            self._tell((DECIDE,), f"has no effect without {SPACES}", config.get("strict") is True)
        return str(given)

    def _runs_per_job(self, config: dict[str, Any], count: int) -> int:
        """Number of single-core runs that one job makes. `count` is the number of single-core runs in the
        configuration.
        """
        given = config.get(RUNS_PER_JOB)
        if given is None:
            return -(-count // MANY_JOBS)
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            self._note("must be a whole number of at least 1", (RUNS_PER_JOB,), value=repr(given)[:40])
            return 1
        return given

    def _entries(self, config: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str, JsonObject]]:
        for section in ("runs", "sweeps"):
            table = config.get(section)
            if table is None or not self._is_table(table, (section,)):
                continue
            for name, entry in table.items():
                path = (section, str(name))
                if not self._is_table(entry, path):
                    continue
                self._check_keys(entry, path, RUN_KEYS)
                known = {key: value for key, value in entry.items() if key in RUN_KEYS}
                globs = self._globs(path, known)
                if globs is None:
                    continue
                if section == "runs":
                    found = expand_run(str(name), known, globs)
                else:
                    found = expand_sweep(expand_choices(known, globs))
                yield from ((path, run_name, combination) for run_name, combination in found)

    def _spaces(self, config: dict[str, Any], key: str) -> dict[str, str]:
        """Files of the design spaces under a key, by name."""
        given = config.get(key)
        if given is None:
            return {}
        if not isinstance(given, list) or not all(isinstance(value, str) and value for value in given):
            self._note("must be a list of names or paths", (key,), value=repr(given)[:40])
            return {}
        found: dict[str, str] = {}
        for value in given:
            file = find_file(SPACE, value)
            name = name_of(SPACE, file.name)
            if not file.is_file():
                place, known = known_files(SPACE, value)
                near = nearest_known(SPACE, value, known)
                self._note(f"no such {SPACE} file in {place}", (key,), value=repr(value), nearest=near)
            elif message := ambiguity(SPACE, value):
                self._note(message, (key,), value=repr(value))
            elif not re.fullmatch(NAME_PATTERN, name):
                self._note("not a name for a file", (key,), value=repr(name), allowed="letters, digits, _ . + -")
            elif found.setdefault(name, str(file)) != str(file):
                self._note(f"two files of the same name, {found[name]} and {file}: rename one", (key,))
            else:
                self._check_space(file, key)
        return found

    def _check_space(self, file: Path, key: str) -> None:
        # Imported here, because only configurations with spaces need it.
        from tilewright.designs.parts import check_space
        from tilewright.designs.space_reader import read_space

        try:
            space = read_space(file)
            if key == FRONTS:
                check_space(space)
        except InputError as error:
            self.problems += [problem for problem in error.problems if problem not in self.problems]

    def _globs(self, path: tuple[str, ...], entry: Mapping[str, Any]) -> Globs | None:
        """Files that match the globs of a run or sweep. If a glob matches no file, report this as a problem, and return
        None."""
        found: Globs = {}
        for kind in DESCRIPTIONS:
            value = entry.get(kind)
            for pattern in filter(is_glob, value if isinstance(value, list) else [value]):
                found[kind, pattern] = matching(kind, pattern)
                if not found[kind, pattern]:
                    place, known = known_files(kind, pattern)
                    near = nearest_name(pattern, [*known, *{str(Path(name).parent / "*") for name in known}])
                    allowed = "" if near else some_of(known)
                    self._note(f"no {kind} file in {place} matches", (*path, kind), repr(pattern), allowed, near)
        return found if all(found.values()) else None

    def _run(self, path: tuple[str, ...], name: str, entry: dict[str, Any], defaults: dict[str, Any]) -> Run | None:
        before = len(self.problems)
        if not re.fullmatch(NAME_PATTERN, name):
            self._note("not a name", path, value=repr(name), allowed="letters, digits, _ . + -")
        flow = entry.get("flow", SINGLE)
        if flow not in FLOWS:
            self._note("unknown flow", (*path, "flow"), value=repr(flow), allowed=", ".join(FLOWS))
        for key in entry:
            if flow in FLOWS and key in KEYS and flow not in flows_of(key):
                self._note(f"this key is only for runs with flow: {flows_of(key)[0]}", (*path, key))
        if flow == MULTI and says_nothing(entry, _values(MULTI, entry, defaults)):
            entry = {**entry, FUSION_KEY: SEARCHED}
        names = {kind: self._file(kind, path, entry) for kind in DESCRIPTIONS}
        self._check_hardware(flow, (*path, "hardware"), names["hardware"])
        flow = flow if flow in FLOWS else SINGLE
        values = _values(flow, entry, defaults)
        # A pipeline at the top of the file has stages for one core, so runs on several cores do not use it.
        is_own = "pipeline" in entry
        pipeline = entry["pipeline"] if is_own else None if flow == MULTI else defaults.get("pipeline")
        if pipeline is not None and flow == SINGLE:
            values = {"preset": ZIGZAG, **values}
        made = {group.kind: self._made(group.kind, values, path, entry) for group in groups_of(flow)}
        if values.get("split_W_double_buffered") is True and not values.get("split_layers"):
            self._note("has no effect without split_layers: true", (*path, "split_W_double_buffered"))
        self._check_search_of_plans(values, path, entry)
        for key in DRAWN & entry.keys() if not _has_figures(values) else ():
            self._note("has no effect with figures: false", (*path, key))
        options = made[SEARCH_OF[flow]]
        if not isinstance(options, CoreSearchOptions):
            return None
        settings = {key: value for key, value in values.items() if key in SETTINGS}
        place = (*path, "pipeline") if is_own else ("pipeline",)
        stages, problems = read_stages(pipeline, place, options, settings if flow == MULTI else None, self.documents)
        self.problems += [problem for problem in problems if problem not in self.problems]
        strict = values.get("strict", False)
        if not stages.pipeline:
            self._tell_unused(made, values, flow, path, entry, defaults)
        if len(self.problems) > before:
            return None
        described = (name, flow, names["hardware"], names["workload"], names["mapping"])
        return Run(*described, options, stages, strict, settings, _has_figures(values), values.get("paper"))

    def _tell_unused(
        self,
        made: Mapping[type[Parameters], Parameters | None],
        values: Mapping[str, Any],
        flow: str,
        path: tuple[str, ...],
        entry: Mapping[str, Any],
        defaults: Mapping[str, Any],
    ) -> None:
        """Report options of a run that have no effect because of its other options. Update the attribute `effects`: for
        each key at the top of the configuration, it says whether the key has an effect.
        """
        found = [group.without_effect() for group in made.values() if group is not None]
        without = {name: why for one in found for name, why in one.items()}
        if flow == MULTI:
            without.pop("seed", None)  # also used by the search for an allocation
        if values.get("split_layers") is True:
            without.pop("split_W_percentage", None)
        for name, why in without.items():
            if name in entry:
                self._tell((*path, name), why, values.get("strict", False))
        for name in defaults:
            self.effects[name] = self.effects.get(name, False) or name not in without or name in entry

    def _tell(self, path: tuple[str, ...], why: str, strict: bool = False) -> None:
        if strict:
            self._note(f"{why}, which the option strict forbids", path)
            return
        file, line = self._place(path)
        notice = Unused(Problem(why, file, line, ".".join(path)))
        if notice not in self.unused:
            self.unused.append(notice)

    def _check_search_of_plans(
        self, values: Mapping[str, Any], path: tuple[str, ...], entry: Mapping[str, Any]
    ) -> None:
        """Check the keys of a run against its key `fusion`.

        With `fusion: search`, report a pipeline, and report keys of tiling and scheduling that the search for plans
        cannot keep fixed. Without `fusion: search`, report the options of the search for plans, because they have no
        effect.
        """
        if values.get(FUSION_KEY) != SEARCHED:
            for name in (parameter.name for parameter in parameters_of(PlanSearch)):
                if entry.get(name) is not None:
                    self._note("has no effect without fusion: search", (*path, name))
            return
        searched = {parameter.name for parameter in parameters_of(FusionOptions)}
        for parameter in (*parameters_of(TilingOptions), *parameters_of(ScheduleSettings)):
            is_said = values.get(parameter.name, parameter.default) not in (None, parameter.default)
            if parameter.name not in searched and is_said:
                self._note("cannot be set for a run with fusion: search", (*path, parameter.name))
        if values.get("pipeline") is not None:
            self._note("cannot be set for a run with fusion: search; use fusion: given", (*path, "pipeline"))

    def _made(
        self, kind: type[Parameters], values: Mapping[str, Any], path: tuple[str, ...], entry: Mapping[str, Any]
    ) -> Parameters | None:
        """Parameters of one class for a run; None if values have problems, which are reported.

        A wrong value at the top of the configuration is reported only once, with the line of its key.
        """
        names = [parameter.name for parameter in parameters_of(kind)]
        try:
            return kind(**{name: values[name] for name in names if name in values})
        except InputError as error:
            for problem in error.problems:
                place = path if problem.path.partition("[")[0] in entry else ()
                self._note(problem.message, (*place, problem.path), problem.value, problem.allowed, problem.nearest)
            return None

    def _check_hardware(self, flow: str | None, path: tuple[str, ...], name: str) -> None:
        """Check the kind of the hardware file. A run on several cores needs an accelerator; a run on one core needs a
        core."""
        file = self.files["hardware"].get(name)
        if file and file not in self.systems:
            self.systems[file] = is_system(file)
        several = self.systems.get(file or "")
        if flow == SINGLE and several:
            self._note("is an accelerator of several cores: use flow: multi", path, value=repr(name))
        if flow == MULTI and several is False:
            self._note(
                "is the file of one core; flow: multi needs an accelerator of several cores", path, value=repr(name)
            )

    def _file(self, kind: str, path: tuple[str, ...], entry: dict[str, Any]) -> str:
        """Name of an input file of a run. The file is added to `files`. A name without a suffix is looked up in
        config/<kind>/ and its subfolders."""
        value = entry.get(kind)
        if value is None and kind == "mapping" and entry.get(FUSION_KEY) == SEARCHED:
            value = OPEN_MAPPING
        elif value is None and kind == "mapping" and isinstance(entry.get("hardware"), str):
            value = mapping_for(entry["hardware"])
        if not isinstance(value, str) or not value:
            self._note("required key is missing" if value is None else "must be a name or a path", (*path, kind))
            return ""
        file = find_file(kind, value)
        name = name_of(kind, file.name)
        if not file.is_file():
            place, known = known_files(kind, value)
            near = nearest_known(kind, value, known)
            self._note(f"no such {kind} file in {place}", (*path, kind), value=repr(value), nearest=near)
        elif message := ambiguity(kind, value):
            self._note(message, (*path, kind), value=repr(value))
        elif not re.fullmatch(NAME_PATTERN, name):
            self._note("not a name for a file", (*path, kind), value=repr(name), allowed="letters, digits, _ . + -")
        elif self.files[kind].setdefault(name, str(file)) != str(file):
            other = self.files[kind][name]
            self._note(f"two files of the same name, {other} and {file}: rename one", (*path, kind))
        return name

    def _check_defaults(self, config: Mapping[str, Any]) -> None:
        """Check each option at the top of the file on its own, including options that no run uses."""
        for key, value in config.items():
            if key not in KEYS or (value is None and key in SETTINGS):
                continue
            try:
                KEYS[key].converted(value)
            except InputError as error:
                for problem in error.problems:
                    self._note(problem.message, (problem.path,), problem.value, problem.allowed, problem.nearest)

    def _refuse_repeated_keys(self) -> None:
        """Report each key that is given twice in a table. Without this check, the second of two runs with the same name
        would silently replace the first."""
        for document in self.documents:
            for path in document.repeated:
                message, place = "the key is given twice: rename or remove one", ".".join(map(str, path))
                self.problems.append(Problem(message, document.file, document.line_of(path), place))

    def _is_configuration(self, config: Any) -> bool:
        """True if the data have the form of a configuration. If they have the form of another kind of file, report this
        as the only problem, and return False."""
        document = next(iter(self.documents), YamlDocument("config", config))
        try:
            refuse_other_kind(replace(document, data=config), CONFIG)
        except InputError as error:
            self.problems += error.problems
        return not self.problems

    def _is_table(self, value: Any, path: tuple[str, ...]) -> bool:
        if not isinstance(value, Mapping):
            is_of_run = len(path) == 2 and path[-1] in RUN_KEYS
            belongs = f"; the key '{path[-1]}' belongs to {_RUN}" if is_of_run else ""
            self._note(f"must be a table of keys{belongs}", path, value=repr(value)[:40])
        return isinstance(value, Mapping)

    def _check_keys(self, table: Mapping[str, Any], path: tuple[str, ...], known: tuple[str, ...]) -> bool:
        unknown = [str(key) for key in table if key not in known]
        tables = {TOP: TOP_KEYS, _RUN: RUN_KEYS}
        for key in unknown:
            found = unknown_key(key, known, {place: keys for place, keys in tables.items() if keys != known})
            self._note(found.message, (*path, key), allowed=found.allowed, nearest=found.nearest)
        return not unknown

    def _note(self, message: str, path: tuple[str, ...], value: str = "", allowed: str = "", nearest: str = "") -> None:
        file, line = self._place(path)
        problem = Problem(message, file, line, ".".join(path), value, allowed, nearest)
        if problem not in self.problems:
            self.problems.append(problem)

    def _place(self, path: tuple[str, ...]) -> tuple[str, int]:
        """Pair (file, line) of a key."""
        file, line = "config", 0
        for document in self.documents:
            if not line:
                # A place within a value, such as loops[0], has the line of the key loops.
                keys = tuple(key.partition("[")[0] for key in path)
                file, line = document.file, document.line_of(keys)
        return file, line


def _has_figures(values: Mapping[str, Any]) -> bool:
    """True if figures of a run are written as files. The key `figures` decides; without it, figures are written if a
    drawing option is given."""
    return bool(values.get("figures", any(key in values for key in DRAWN)))


def _values(flow: str, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the keys of a run, including keys at the top of the configuration.

    If the run names a preset, the values of the preset overrule values at the top. In a run on several cores, the value
    null resets a key to its default. The key `model` at the top applies only to runs on one core: it can select the
    reference model, which reads only convolutions and matrix products.
    """
    left_out = ("model",) if flow == MULTI else ()
    implied = SEARCH_OF.get(flow, CoreSearchOptions).implied(entry)
    values = {**{key: value for key, value in defaults.items() if key not in left_out}, **implied, **entry}
    own = {key: value for key, value in values.items() if key in KEYS_OF[flow]}
    return {key: value for key, value in own.items() if value is not None or key not in SETTINGS}


def expand_sweep(entry: dict[str, Any]) -> Iterator[tuple[str, JsonObject]]:
    """Pairs (name, run) of a sweep, one for each combination of values from its lists.

    The name consists of workload and hardware, then the key and value of each other list: for example,
    resnet18-tpu_like-objective-energy.
    """
    keys = list(entry)
    # A single value of loops, stacks or pipeline is already a list, so these keys are not swept.
    lists = {key for key, value in entry.items() if isinstance(value, list) and key not in _VALUES_THAT_ARE_LISTS}
    choices = [value if key in lists else [value] for key, value in entry.items()]
    swept = [key for key in keys if key in lists and key not in ("workload", "hardware")]
    for values in itertools.product(*choices):
        combination = dict(zip(keys, values, strict=True))
        parts = [name_of(key, str(combination.get(key))) for key in ("workload", "hardware")]
        parts += [
            f"{key}-{name_of(key, str(combination[key])) if key == 'mapping' else combination[key]}" for key in swept
        ]
        yield "-".join(parts), combination


def read_stages(
    pipeline: Any,
    path: tuple[str, ...],
    options: CoreSearchOptions,
    settings: Mapping[str, Any] | None,
    documents: Sequence[YamlDocument],
) -> tuple[Stages, list[Problem]]:
    """Pair (stages of the value `pipeline`, problems of this value). `path` has the keys that lead to the value in the
    file. `settings` are the settings of a run on several cores; None for a run on one core."""
    if pipeline is None:
        return Stages(), []
    # Imported only if a pipeline is given: stages import the types of the cost model, which need numpy.
    from tilewright.base.artifacts.digests import canonical_text, content_digest
    from tilewright.pipeline.stages.base import is_own
    from tilewright.pipeline.stages.multi.pipeline import check_multi_pipeline
    from tilewright.pipeline.stages.pipeline import check_pipeline
    from tilewright.pipeline.stages.places import is_of_setting, placed
    from tilewright.pipeline.stages.user_stages import code_digests, code_files

    if settings is None:
        built, problems = check_pipeline(pipeline, options)
    else:
        built, problems = check_multi_pipeline(pipeline, options, settings)
        # A problem of a setting is reported at the key of the setting, so it is left out here.
        problems = [problem for problem in problems if not is_of_setting(problem, settings)]
    problems = [placed(problem, path, documents) for problem in problems]
    if built is None:
        return Stages(), problems
    if settings is None and not all(is_own(type(stage)) for stage in built.parsers().stages):
        message = (
            "a configuration cannot use parser stages of your own, because its runs share parsed files; use this"
            " pipeline with `tilewright map`"
        )
        document = next((found for found in documents if found.line_of(path)), None)
        place = (document.file, document.line_of(path)) if document else ("config", 0)
        problems.append(Problem(message, *place, ".".join(path)))
    files, code = code_files(built.stages), code_digests(built.stages)
    return Stages(canonical_text(pipeline), content_digest(code) if code else "", files, built.exports), problems
