"""Translation of a script into tilewright: shell commands, a pipeline with options, and a run in a configuration
file.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.base import steps
from tilewright.base.errors import InputError, Problem
from tilewright.base.harmless import terminal_lines
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.parameters import parameters_of
from tilewright.main_stage import keywords as words
from tilewright.main_stage.checks import check_keywords
from tilewright.main_stage.keywords import plain
from tilewright.main_stage.own import file_of, line_of, name_of, shown_path
from tilewright.main_stage.plan import (
    PARSERS,
    is_of_several_cores,
    made_stage,
    our_name,
    planned,
    several_name,
    with_conversion,
)
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.sources import parse_accelerator
from tilewright.pipeline.stages.base import Stage
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.pipeline import MAPPER_OF, search_entries
from tilewright.search.options import ZIGZAG, SearchOptions

WATCHERS = ("SimpleSave", "CompleteSave", "PickleSave", "Dump", "PlotTemporalMappings")
"""Names of the stages that only write files."""
PARTS = ("GenerateCNWorkloadHybrid", "IntraCoreMapping", "InterCoreMapping")
"""Names of the multi-core stages that take options of a run as parameters."""


@dataclass
class Translation:
    """Translation of a script: commands, a configuration and a pipeline of tilewright."""

    several_cores: bool
    descriptions: dict[str, str]
    """Paths of the description files, by "hardware", "workload" and "mapping"."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the run, by their names in a configuration."""
    pipeline: list[Any] | None = None
    """Value of the configuration key `pipeline`; None for the default pipeline."""
    output: str = "results/translated"
    remarks: list[str] = field(default_factory=list)
    """Remarks on the parts of the script that a configuration cannot express."""

    @property
    def name(self) -> str:
        """Name of the run, from the names of the network and the hardware."""
        stems = "-".join(Path(self.descriptions[part]).stem for part in ("workload", "hardware"))
        return re.sub(r"[^A-Za-z0-9._-]", "_", stems)

    def commands(self) -> list[str]:
        """Shell commands with the same effect as the script."""
        given = " ".join(f"--{part} {shlex.quote(file)}" for part, file in self.descriptions.items())
        pipeline = "" if self.pipeline is None else f" --pipeline {shlex.quote(json.dumps(self.pipeline))}"
        if not self.several_cores:
            options = " ".join(option_text(name, value) for name, value in self.options.items())
            return [f"tilewright map {given} {options}".rstrip() + f"{pipeline} -o {shlex.quote(self.output)}"]
        return self._verbs(given)

    def _verbs(self, given: str) -> list[str]:
        """Command lines of the steps of a multi-core run, in order of execution."""
        lines, out = [], shlex.quote(self.output)
        if self.options.get("split_layers"):
            lines.append(
                f"tilewright split {given} {self._options_of('LayerSplitting')}".rstrip() + f" -o {out}/split.onnx"
            )
            given = given.replace(shlex.quote(self.descriptions["workload"]), f"{out}/split.onnx")
        lines.append(f"tilewright cns {given} {self._options_of('GenerateCNWorkloadHybrid')}".rstrip() + f" -o {out}")
        own = self._options_of("IntraCoreMapping")
        for core in self._cores():
            lines.append(
                f"tilewright cost {given} --core {core} --cns {out} {own}".rstrip() + f" -o {out}/cost/{core}.jsonl"
            )
        made = f"{given} --cns {out} --costs {out}/cost {self._options_of('InterCoreMapping')}".rstrip()
        lines.append(f"tilewright allocate {made} -o {out}")
        settings = [parameter.name for parameter in parameters_of(ScheduleSettings)]
        chosen = {name: value for name, value in self.options.items() if name in settings}
        options = " ".join(option_text(name, value) for name, value in chosen.items())
        made = f"{given} --cns {out} --costs {out}/cost {options}".rstrip()
        return [*lines, f"tilewright schedule {made} --core-allocation {out}/allocation.json -o {out}"]

    def _options_of(self, name: str) -> str:
        """Command-line text of the options that belong to the command for one stage."""
        kind = CATALOGUES[steps.MULTI].stage_class(name)
        names = {parameter.name for parameter in parameters_of(kind)} - {"plot_hof", "split_onnx_model_path"}
        chosen = {key: value for key, value in self.options.items() if key in names}
        return " ".join(option_text(key, value) for key, value in chosen.items())

    def _cores(self) -> list[str]:
        """Names of the core files; a placeholder if the hardware cannot be read."""
        try:
            return list(getattr(parse_accelerator(self.descriptions["hardware"]), "distinct_cores", ()))
        except InputError:
            return ["<each core file>"]

    def configuration(self) -> str:
        """Text of a configuration file for `make run` with this run."""
        run: dict[str, Any] = {"flow": "multi"} if self.several_cores else {}
        run |= self.descriptions | self.options
        if self.pipeline is not None:
            run["pipeline"] = self.pipeline
        lines = ["runs:", f"  {self.name}:"]
        lines += [f"    {key}: {json.dumps(value)}" for key, value in run.items()]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """Text for the terminal: commands, configuration and remarks."""
        lines = ["# command", *self.commands(), "", "# configuration for `make run CONFIG=translated.yaml`"]
        lines += [*self.configuration().splitlines(), "", "# pipeline"]
        lines += ["# the default one" if self.pipeline is None else f"# {json.dumps(self.pipeline)}"]
        if self.remarks:
            lines += ["", "# what is different here", *(f"# {remark}" for remark in self.remarks)]
        return terminal_lines(lines) + "\n"


def option_text(name: str, value: Any) -> str:
    """Option as text of a shell command."""
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return flag if value else f"--no-{name.replace('_', '-')}"
    if isinstance(value, list | dict):
        return f"{flag} {shlex.quote(json.dumps(value))}"
    return f"{flag} {'none' if value is None else shlex.quote(str(value))}"


def pipeline_of(stages: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """Value of the configuration key `pipeline`. A run with this value has the same results as a script with these
    stages and keywords.

    The value has one entry for each stage, but none for parsers (see `entry_of`). Raises InputError for mistakes in the
    script. Raises InputError also for a user's stage, because such a stage has no counterpart in a pipeline.
    """
    check_keywords(stages, dict(keywords))
    planned(stages, keywords)
    if own := [stage for stage in stages if not our_name(stage)]:
        raise InputError([no_counterpart(stage) for stage in own])
    several = is_of_several_cores(stages)
    entries: list[Any] = []
    for _, _, written in with_conversion(stages):
        name = several_name(written) if several else written
        if name not in PARSERS:
            entries.append(entry_of(name, keywords, several))
    return entries


def entry_of(name: str, keywords: Mapping[str, Any], several: bool) -> Any:
    """Entry for the stage `name` in the configuration key `pipeline`: the name of the stage in tilewright, with the
    parameters that `parameters_given` returns. Without parameters, the entry is only the name. `several` is true for
    the multi-core flow.
    """
    given = parameters_given(name, keywords, several)
    return {"stage": name, "parameters": given} if given else name


def parameters_given(name: str, keywords: Mapping[str, Any], several: bool) -> dict[str, Any]:
    """Parameters of a stage that the keywords set: name -> value. Only values that differ from the default are listed.
    The result is {} if the stage only writes files, or if a value is wrong.
    """
    if name in WATCHERS:
        return {}
    made, _ = made_stage(name, keywords, several)
    default, _ = made_stage(name, {}, several)
    if not isinstance(made, Stage) or not isinstance(default, Stage):
        return {}
    names = [parameter.name for parameter in parameters_of(type(made))]
    values = {one: getattr(made, one) for one in names if getattr(made, one) != getattr(default, one)}
    return {key: plain_json(value) for key, value in values.items()}


def plain_json(value: Any) -> Any:
    """Value in a form that JSON can express."""
    return json.loads(
        json.dumps(plain(value), default=lambda one: list(one) if isinstance(one, set | tuple) else str(one))
    )


def no_counterpart(stage: Any) -> Problem:
    """Problem for a user's stage, which has no counterpart in a pipeline of tilewright."""
    message = (
        "this stage is written for a script, so a pipeline of tilewright cannot use it; docs/stages.md shows how to"
        " write a stage for a pipeline"
    )
    return Problem(message, shown_path(file_of(stage)), line_of(stage), name_of(stage))


def translated(stages: Sequence[Any], keywords: Mapping[str, Any]) -> Translation:
    """Translation of a script into tilewright. Raises InputError if the script has mistakes."""
    check_keywords(stages, dict(keywords))
    planned(stages, keywords)
    several = is_of_several_cores(stages)
    descriptions = {
        part: described(words.given(keywords, word), part)
        for part, word in (("hardware", words.ACCELERATOR), ("workload", words.WORKLOAD), ("mapping", words.MAPPING))
    }
    found = Translation(several, descriptions, remarks=remarks_on(stages, keywords))
    if folder := words.given(keywords, words.FOLDER) or words.given(keywords, words.PATTERN):
        path = Path(str(folder))
        found.output = str(path if words.given(keywords, words.FOLDER) else path.parent)
    built_in = [stage for stage in stages if our_name(stage)]
    if several:
        for name in PARTS:
            found.options |= parameters_given(name, keywords, several)
        if any(stage.ours == "LayerSplitting" for stage in built_in):
            found.options |= {"split_layers": True}
            given = parameters_given("LayerSplitting", keywords, several)
            found.options |= {key: value for key, value in given.items() if key != "split_onnx_model_path"}
        found.options.pop("plot_hof", None)
        return found
    if (options := as_options(built_in, keywords)) is not None:
        found.options, found.pipeline = options
    else:
        found.pipeline = pipeline_of(built_in, keywords)
    return found


def described(value: Any, part: str) -> str:
    """Path of a description file (hardware, workload or mapping), as text for a command.

    If `value` is an object and not a path, the text is a placeholder, such as `<hardware of the script>`.
    """
    return str(value) if isinstance(value, str | Path) else f"<{part} of the script>"


def as_options(stages: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any] | None] | None:
    """Pair (options, edits) with the same effect as the stages; None if there is no such pair.

    The options select a default pipeline, which maps layers by the same stages. The edits add the script's stages that
    only write files to this pipeline. If the script has no stages that only write files, the edits are None.
    """
    names = [name for _, _, name in with_conversion(stages) if name not in PARSERS]
    mapping = [name for name in names if name not in WATCHERS and name != "Sum"]
    for objective in OBJECTIVES:
        for engine, mapper in MAPPER_OF.items():
            for locality in (False, True):
                options = {"objective": objective, "temporal_mapping_search_engine": engine}
                options |= {"exploit_data_locality": True} if locality else {}
                default = [str(entry.stage) for entry in search_entries(SearchOptions(**options))]  # type: ignore[arg-type]
                if mapping == [name for name in default if name != "Sum"] and mapper in mapping:
                    return options_of(options, mapping, keywords), edits_of(names)
    return None


def options_of(options: dict[str, Any], names: Sequence[str], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a run: name -> value. There are three kinds of options:

    * the preset of zigzag-dse;
    * each item of `options` whose value is not its default;
    * each parameter of a stage in `names`, if the keywords give it a value other than its default.

    The objective is taken only from `options`.
    """
    defaults = SearchOptions().as_dict()
    found = {"preset": ZIGZAG} | {name: value for name, value in options.items() if value != defaults[name]}
    for name in names:
        given = parameters_given(name, keywords, several=False)
        found |= {key: value for key, value in given.items() if key in defaults and key != "objective"}
    return found


def edits_of(names: Sequence[str]) -> list[Any] | None:
    """Edits of the default pipeline, one for each stage of `names` that only writes files. An edit inserts the stage
    before Sum, before Workload, or after Workload. None if `names` has no such stage.
    """
    edits: list[Any] = []
    for place, name in enumerate(names):
        if name in WATCHERS:
            after = next((other for other in names[place + 1 :] if other not in WATCHERS), "Workload")
            target = (
                "Sum"
                if after in ("Sum", "SearchUnusedMemory") or (after == "Workload" and "Sum" not in names)
                else after
            )
            edits.append(
                {"insert": name, "before": target}
                if target in ("Sum", "Workload")
                else {"insert": name, "after": "Workload"}
            )
    return edits or None


def remarks_on(stages: Sequence[Any], keywords: Mapping[str, Any]) -> list[str]:
    """Remarks on the parts of a script that a configuration expresses in another form or not at all. Examples are
    user's stages, and keywords that set no parameter of tilewright.
    """
    found = [str(no_counterpart(stage)) for stage in stages if not our_name(stage)]
    for keyword in words.KEYWORDS:
        if keyword.parameter or keyword.required or keyword.name in (words.FOLDER, words.PATTERN):
            continue
        if any(spelling in keywords for spelling in keyword.spellings):
            found.append(f"{words.spelling_of(keywords, keyword.name)} has a counterpart in tilewright: {keyword.says}")
    if "plot_hof" in keywords:
        found.append(
            "plot_hof has a counterpart in tilewright: the run writes the Pareto front to allocation.json, and the"
            " report of the run draws the front"
        )
    if any(our_name(stage) and stage.ours in WATCHERS for stage in stages):
        found.append("files that stages save are in the folder exports/ of the run")
    return found
