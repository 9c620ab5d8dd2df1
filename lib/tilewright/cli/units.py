"""Units of a configuration: the jobs of the pipeline, with their inputs and output files.

A unit is one job of the pipeline. It names the output files of the job, its input files, and the units whose output the
job reads. Only the units determine which jobs run again (`base/artifacts/manifest.py`); the Snakefile has the rules for
these units. The Snakefile imports this module each time Snakemake parses it, so this module imports nothing larger than
YAML.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.digests import JsonValue, content_digest, digests_of_file, input_digest
from tilewright.base.artifacts.manifest import Job, Unit, files_digest, read_manifest
from tilewright.base.profile import CORRECTED
from tilewright.base.steps import (
    CHECKS,
    DECISION,
    DECISION_TABLE,
    EXPORTS,
    FRONT,
    ISLANDS,
    MULTI,
    PAPER,
    REPORT,
    SINGLE,
    SPACE,
    STEPS,
)
from tilewright.cli.config_files import SystemFiles, read_system
from tilewright.cli.config_spaces import ExploredSpace
from tilewright.pipeline.configuration.island_parts import ANSWER
from tilewright.pipeline.configuration.keys import Run
from tilewright.results.sheet import WIDTHS_INCHES

if TYPE_CHECKING:
    from tilewright.pipeline.configuration.keys import RunPlan

MULTI_MODEL = CORRECTED.name
"""Name of the model profile with which networks for several cores are read."""
BATCH = "batch"
DESCRIPTIONS_PER_RUN = 4
"""Number of input files in a job that reads files, divided by the number of runs in a job that makes runs
(`runs_per_job`).

The ratio is above 1, because reading a file takes less time than a run.
"""
DESCRIBED = ("hardware/", "workload/", "mapping/")
"""Prefixes of unit names. A unit whose name begins with one of these prefixes reads an input file or draws hardware."""
LEFT_OUT = ".unfinished.json"
"""Name of the file that lists the runs without a result. The file is in the folder of logs. `workflow/run.sh` writes
this file. Tables that cover many runs also list the runs in it."""
REPORT_PAGE = "report.html"
"""Name of the report in the folder of results. Snakemake itself makes the report. The report is a unit, although no
rule makes it.
"""
_DRAWN = ("*-column.*", "*-page.*")


def _latex(stem: str) -> tuple[str, ...]:
    """Names of the LaTeX files of a table, one for each width of a paper."""
    return tuple(f"{stem}-{width}.tex" for width in WIDTHS_INCHES)


_FOR_PAPER = {
    "summary": ("summary.md", *_latex("summary")),
    "pareto": ("pareto.md", *_latex("pareto"), *(f"pareto/{name}" for name in _DRAWN)),
    "answer": ("space.md", "front.md", "front-*.md", *_DRAWN),
    "front": ("front.md", "front-*.md", *_DRAWN),
    "decide": (DECISION_TABLE, f"{Path(DECISION_TABLE).stem}.md", *_latex(Path(DECISION_TABLE).stem)),
}
"""Patterns of the files for a paper, by the unit that writes them. `summary` and `pareto` cover all runs of a
configuration; `answer`, `decide` and `front` cover one design space.
"""
WORKFLOW = Path(__file__).resolve().parents[3] / "workflow"
CAPTIONS = WORKFLOW / "report"
Said = Mapping[str, Callable[[], JsonValue]]
"""Inputs of a unit that are not outputs of other units, by kind. Each value is computed when it is first used."""


@dataclass(frozen=True)
class Units:
    """All units of the runs of a configuration."""

    plan: "RunPlan"
    code: Mapping[str, str]
    """Digests of the code of the steps, by name of the step."""
    unfinished: Sequence[Mapping[str, str]] = ()
    """Runs without a result. Tables of many runs list them."""
    _digests: dict[str, tuple[str, str]] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Unit]:
        """All units by name."""
        groups = (
            self._hardware,
            self._workloads,
            self._mappings,
            self._single,
            self._multi,
            self._spaces,
            self._across,
        )
        found = {unit.name: unit for group in groups for unit in group()}
        return found | {unit.name: unit for unit in self._batches(found)}

    @cached_property
    def batched(self) -> frozenset[str]:
        """Names of the runs on one core that share a job with other runs; empty if each job makes only one run. A run
        that writes figures, files for a paper, or exports has a separate job.
        """
        if self.plan.runs_per_job <= 1:
            return frozenset()
        return frozenset(run.name for run in self.plan.runs if not (run.figures or run.paper or run.stages.exports))

    def _batches(self, units: Mapping[str, Unit]) -> Iterator[Unit]:
        """Combined units. One job makes all units of a combined unit one after another, in one process. Units that read
        input files come first, then the runs.
        """
        if not self.batched:
            return
        runs = [name for name in units if name.startswith(f"{SINGLE}/") and name.split("/")[1] in self.batched]
        others = {need for name, unit in units.items() if name.startswith(f"{MULTI}/") for need in unit.needs}
        described = [
            name
            for name, unit in units.items()
            if name.startswith(DESCRIBED) and unit.job and others.isdisjoint((name, *unit.needs))
        ]
        size = self.plan.runs_per_job
        # A drawing needs other units of its folder. Both are made in one job, because jobs for input files run in
        # parallel.
        by_folder: dict[str, list[str]] = {}
        for name in described:
            by_folder.setdefault(name.rpartition("/")[0], []).append(name)
        yield from self._batch("descriptions", _chunks(by_folder.values(), DESCRIPTIONS_PER_RUN * size))
        by_run = [list(group) for _, group in groupby(runs, key=lambda name: name.split("/")[1])]
        chunks = [list(chain(*by_run[at : at + size])) for at in range(0, len(by_run), size)]
        yield from self._batch("runs", chunks)

    def _batch(self, kind: str, chunks: Iterable[Sequence[str]]) -> Iterator[Unit]:
        for number, names in enumerate(chunks):
            stem = f"{BATCH}/{kind}/{number:05}"
            job = Job((), str(self.plan.logs / BATCH / kind / f"{number:05}.log"))
            yield Unit(stem, (f"{stem}.done",), {"code": partial(str, "")}, tuple(names), job=job)

    @cached_property
    def in_batches(self) -> frozenset[str]:
        """Names of units that are made in one job together with other units."""
        batches = (unit for name, unit in self.by_name.items() if name.startswith(f"{BATCH}/"))
        return frozenset(need for unit in batches for need in unit.needs)

    def batch_files(self, kind: str) -> list[str]:
        """Marker files (`.done`) of the jobs that make several units, relative to the folder of results. `kind` is
        `descriptions` for jobs that read input files, or `runs` for jobs that make runs.
        """
        return [
            file for name, unit in self.by_name.items() if name.startswith(f"{BATCH}/{kind}/") for file in unit.files
        ]

    def report(self) -> Unit:
        """Unit of the report that Snakemake makes. The report shows the files of all other units."""
        said: Said = {
            "shown": self._shown_files,
            "texts": partial(files_digest, CAPTIONS),
            "unfinished": partial(list, self.unfinished),
        }
        return Unit("report", (REPORT_PAGE,), said)

    def _shown_files(self) -> dict[str, str]:
        found = {name: read_manifest(self.plan.results, name) for name in self.by_name}
        return {name: manifest.digest for name, manifest in found.items() if manifest}

    @cached_property
    def producers(self) -> dict[str, str]:
        """Name of the unit that makes a file or folder, by path relative to the folder of results."""
        return {file: unit.name for unit in self.by_name.values() for file in unit.files}

    @cached_property
    def systems(self) -> dict[str, SystemFiles]:
        """Content of the accelerator file and the core files of the runs on several cores, by name of the hardware."""
        names = sorted({run.hardware for run in self.plan.multi_runs})
        return {name: read_system(self.plan.files["hardware"][name]) for name in names}

    @cached_property
    def spaces(self) -> dict[str, ExploredSpace]:
        """Spaces to explore, by name."""
        return {name: ExploredSpace(file) for name, file in self.plan.spaces.items()}

    @cached_property
    def fronts(self) -> dict[str, ExploredSpace]:
        """Spaces whose complete Pareto fronts are searched, by name."""
        return {name: ExploredSpace(file) for name, file in self.plan.fronts.items()}

    def _unit(
        self,
        step: str,
        folder: str,
        name: str,
        said: Said | None = None,
        needs: Sequence[str] = (),
        files: Sequence[str] = (),
        besides: Sequence[str] = (),
        job: Job | None = None,
        reads: Iterable[str] = (),
    ) -> Unit:
        """Unit of a step in a folder. Names of files are relative to this folder.

        `files` are the files that the job makes; by default, these are the files of the step. `besides` are patterns of
        files that the job makes only in some cases. `needs` names the units whose files the job reads. `reads` are the
        paths of user files that the job reads. `said` has further inputs.
        """
        made, more = (tuple(f"{folder}/{file}" for file in found) for found in (files or STEPS[step].writes, besides))
        code: Said = {"code": partial(self._code, step), "rules": lambda: self._rules}
        if job:
            code = {**code, "words": partial(self._words_digest, job)}
        read = {file: partial(self._digests_of, file) for file in reads}
        return Unit(f"{folder}/{name}", made, {**code, **(said or {})}, tuple(needs), more, job, step, read)

    def _code(self, step: str) -> str:
        return self.code[step]

    @cached_property
    def _rules(self) -> str:
        """Digest of the rules of the Snakefile, without comments. The rules contain the verb and the arguments for each
        unit."""
        texts = [file.read_text("utf-8") for file in sorted((WORKFLOW / "rules").glob("*.smk"))]
        lines = (line.strip() for text in texts for line in text.splitlines())
        return content_digest([line for line in lines if line and not line.startswith("#")])

    def _words_digest(self, job: Job) -> str:
        """Digest of the arguments of a job. The folders of user files and the path of the results folder do not change
        the digest.
        """
        results = str(self.plan.results)
        return content_digest([self._names.get(word, word.removeprefix(results)) for word in job.words])

    @cached_property
    def _names(self) -> dict[str, str]:
        """File names without folders, by path, of the files that users wrote."""
        return {file: Path(file).name for files in self.plan.files.values() for file in files.values()}

    def _file(self, kind: str, name: str) -> list[str]:
        """List of two texts: the name of a file that the user wrote, and the digest of its content.

        The name is included because tilewright uses it as the name of the hardware, workload or mapping if the content
        gives no name.
        """
        path = self.plan.files[kind][name]
        return [Path(path).name, self._digests_of(path)[1]]

    def _digests_of(self, path: str) -> tuple[str, str]:
        """Pair (digest of the bytes of a file, digest of its parsed content). The first digest is '' if the file names
        another file, because the bytes of the first file then do not determine the content. Both digests are of the
        file as it was when the pipeline was planned.
        """
        if path not in self._digests:
            self._digests[path] = digests_of_file(path)
        return self._digests[path]

    def _written(self, run: Run, *kinds: str) -> list[str]:
        """Paths of files that users wrote for a run: input files of the given kinds, and files with stages of the
        run."""
        files = [self.plan.files[kind][getattr(run, kind)] for kind in kinds]
        return [*chain(*(self._with_named(file) for file in files)), *run.stages.files]

    def _with_named(self, file: str) -> list[str]:
        """Path of an input file, followed by the paths of the core files that it names."""
        cores = (system.path_of.values() for system in self.systems.values() if str(system.file) == file)
        return [file, *map(str, chain(*cores))]

    def _hardware(self) -> Iterator[Unit]:
        for name in sorted({run.hardware for run in (*self.plan.runs, *self.plan.multi_runs)}):
            system = self.systems.get(name)
            said: Said = {"hardware": partial(_everything, system) if system else partial(self._file, "hardware", name)}
            file = self.plan.files["hardware"][name]
            words = ("parse", "hardware", file, "-o", self._path(f"hardware/{name}/accelerator.json"))
            yield self._unit(
                *("parse_hardware", f"hardware/{name}", "accelerator", said),
                files=("accelerator.json",),
                job=self._job(f"hardware/{name}.log", *words),
                reads=self._with_named(file),
            )
        for name, system in self.systems.items():
            read = self._with_named(str(system.file))
            for core in system.core_names:
                said = {"core": partial(system.of_core, core)}
                files = (f"core/{core}.json",)
                yield self._unit("parse_hardware", f"hardware/{name}", f"core/{core}", said, files=files, reads=read)
        yield from self._drawings()

    def _drawings(self) -> Iterator[Unit]:
        drawn = [(run.hardware, "hierarchy") for run in self.plan.runs]
        drawn += [(run.hardware, "system") for run in self.plan.multi_runs]
        for name, figure in sorted(set(drawn)):
            needs, files = (f"hardware/{name}/accelerator",), _drawn([f"{figure}.svg"])
            words = (
                "draw",
                self._path(f"hardware/{name}/accelerator.json"),
                "-o",
                self._path(f"hardware/{name}/{figure}.svg"),
            )
            job = self._job(f"hardware/{name}.draw.log", *words)
            besides = (f"{figure}-*.svg", f"{figure}-*.png")
            yield self._unit("draw", f"hardware/{name}", figure, needs=needs, files=files, besides=besides, job=job)

    def _workloads(self) -> Iterator[Unit]:
        pairs = {(run.workload, run.options.model) for run in self.plan.runs}
        pairs |= {(run.workload, MULTI_MODEL) for run in self.plan.multi_runs}
        for name, model in sorted(pairs):
            said: Said = {"workload": partial(self._file, "workload", name), **self._network_options(name)}
            folder, file = f"workload/{name}/{model}", self.plan.files["workload"][name]
            words = ["parse", "workload", file, "--model", model, *self.plan.network_options.get(name, ())]
            words += ["-o", self._path(f"{folder}/workload.json"), "--coverage", self._path(f"{folder}/coverage.json")]
            job = self._job(f"workload/{name}/{model}.log", *words)
            yield self._unit("parse_workload", folder, "workload", said, job=job, reads=[file])

    def _network_options(self, workload: str) -> Said:
        return {"options": partial(list, self.plan.network_options.get(workload, ()))}

    def _mappings(self) -> Iterator[Unit]:
        for name in sorted({run.mapping for run in (*self.plan.runs, *self.plan.multi_runs)}):
            said = {"mapping": partial(self._file, "mapping", name)}
            words = (
                "parse",
                "mapping",
                self.plan.files["mapping"][name],
                "-o",
                self._path(f"mapping/{name}/mapping.json"),
            )
            job = self._job(f"mapping/{name}.log", *words)
            read = [self.plan.files["mapping"][name]]
            yield self._unit("parse_mapping", f"mapping/{name}", "mapping", said, job=job, reads=read)

    def _single(self) -> Iterator[Unit]:
        for run in self.plan.runs:
            folder, hardware = f"{SINGLE}/{run.name}", f"hardware/{run.hardware}/accelerator"
            described = (hardware, f"workload/{run.workload}/{run.options.model}/workload")
            made = (*STEPS["map"].writes, *((EXPORTS,) if run.stages.exports else ()))
            needs, mapped = (*described, f"mapping/{run.mapping}/mapping"), f"{folder}/map"
            jobs, said = self._jobs(run), self._said_by_run(run, "map")
            read = self._written(run, "hardware", "workload", "mapping")
            yield self._unit("map", folder, "map", said, needs, made, job=jobs["map"], reads=read)
            yield self._unit("check", folder, "check", needs=(mapped, hardware), job=jobs["check"])
            yield self._unit("report", folder, "report", needs=(mapped,), job=jobs["report"])
            yield self._unit("explain", folder, "explain", needs=(mapped, *described), job=jobs["explain"])
            if run.figures:
                files = _drawn(STEPS["figures"].writes)
                yield self._unit("figures", folder, "figures", needs=(mapped, *described), files=files)
            if run.paper:
                wide: Said = {"paper": partial(str, run.paper)}
                yield self._unit("paper", folder, "paper", wide, needs=(mapped, *described))

    def _jobs(self, run: Run) -> dict[str, Job]:
        """Jobs of a run on one core, by unit. A job is a verb with its arguments, as in the rules of the Snakefile."""
        folder, report = self._path(f"{SINGLE}/{run.name}"), self._path(f"{SINGLE}/{run.name}/{REPORT}")
        hardware = ("--hardware", self._path(f"hardware/{run.hardware}/accelerator.json"))
        workload = ("--workload", self._path(f"workload/{run.workload}/{run.options.model}/workload.json"))
        mapping = ("--mapping", self._path(f"mapping/{run.mapping}/mapping.json"))
        # The files of the user are given too, so that notices and errors have line numbers; ONNX files have no lines.
        files = (self.plan.files[kind][getattr(run, kind)] for kind in (*("hardware", "workload", "mapping"),))
        written = [word for file in files if not file.endswith(".onnx") for word in ("--written", file)]
        words = {
            "map": ("map", *hardware, *workload, *mapping, *written, "-o", folder, *run.arguments("map")),
            "check": ("check", folder, *hardware, "-o", f"{folder}/{CHECKS}"),
            "report": ("report", folder, "--only", "tables", "-o", report),
            "explain": ("explain", folder, *hardware, *workload, "--only", "tables", "-o", report),
        }
        jobs = {name: self._job(f"{SINGLE}/{run.name}/{name}.log", *verb) for name, verb in words.items()}
        # If figures of a run were switched off, its old figures are removed, because they show an earlier result.
        undrawn = () if run.figures else _drawn([f"{SINGLE}/{run.name}/{name}" for name in STEPS["figures"].writes])
        undrawn += () if run.paper else (f"{SINGLE}/{run.name}/{PAPER}",)
        return {**jobs, "report": jobs["report"]._replace(removes=undrawn)}

    def _path(self, file: str) -> str:
        return str(self.plan.results / file)

    def _job(self, log: str, *words: str) -> Job:
        return Job(words, str(self.plan.logs / log))

    def _said_by_run(self, run: Run, verb: str) -> Said:
        """Inputs that are the same for all units of this run with this verb: the options of the verb, and the digests
        of `_stage_code`.
        """
        return {"options": partial(run.arguments, verb), "stages": partial(self._stage_code, run)}

    def _stage_code(self, run: Run) -> list[str]:
        """Digests of the code that the pipeline of a run uses.

        The first digest covers the user's stages; it is '' if there are none. The second covers the code that writes
        exports; it is '' if the run has no exports. A run on several cores with a pipeline of the user has a third
        digest, which covers all code that pipelines for several cores can run.
        """
        stages = run.stages
        code = [stages.code, self.code["export"] if stages.exports else ""]
        return [*code, self.code["multi_pipeline"]] if run.flow == MULTI and stages.pipeline else code

    def _multi(self) -> Iterator[Unit]:
        for run in self.plan.multi_runs:
            yield from self._split(run)
            yield from self._costed_graph(run)
            yield from self._scheduled(run)
            yield from self._shown(run)

    def _split(self, run: Run) -> Iterator[Unit]:
        if not run.splits or run.base:
            return
        folder, network = f"{MULTI}/{run.name}", self._network_options(run.workload)
        said: Said = {
            **{"workload": partial(self._file, "workload", run.workload), **network},
            **{"hardware": partial(_graph, self.systems[run.hardware]), "arguments": partial(run.arguments, "split")},
        }
        read = self._written(run, "hardware", "workload")
        yield self._unit("split", folder, "split", said, self._mapping_of(run), reads=read)
        said = {"name": partial(str, run.workload), **network}
        files = STEPS["parse_split"].writes
        yield self._unit("parse_workload", folder, "workload", said, (f"{folder}/split",), files)

    def _costed_graph(self, run: Run) -> Iterator[Unit]:
        folder, system, workload = f"{MULTI}/{run.name}", self.systems[run.hardware], self.workload_of(run)
        if run.fuses:
            needs = [f"hardware/{run.hardware}/accelerator", workload, f"mapping/{run.mapping}/mapping"]
            said: Said = {"options": partial(run.arguments, "fuse")}
            yield from self._islands(run, said, needs)
            states = [f"{folder}/plan/{ISLANDS}/{part}" for part in run.island_parts_before(ANSWER)]
            yield self._unit("fuse", f"{folder}/plan", "fuse", said, [*needs, *states])
        plan = self._plan_of(run) if run.fuses else ()
        said = {**self._said_by_run(run, "cns"), "hardware": partial(_graph, system)}
        if not plan:
            said = {**said, "mapping": partial(self._file, "mapping", run.mapping)}
        read = self._written(run, "hardware", *(() if plan else ("mapping",)))
        yield self._unit("cns", folder, "cns", said, (workload, *plan), reads=read)
        for core in system.core_names:
            said = {**self._said_by_run(run, "cost"), "hardware": partial(system.of_cost_table, core)}
            needs = [f"hardware/{run.hardware}/core/{core}", workload, *self._mapping_of(run), f"{folder}/cns"]
            files, read = (f"cost/{core}.jsonl",), self._written(run, "hardware")
            yield self._unit("cost", folder, f"cost/{core}", said, needs, files, reads=read)

    def _islands(self, run: Run, said: Said, described: Sequence[str]) -> Iterator[Unit]:
        """Units that write the states of a search for a plan with several islands. One unit makes the opening, which is
        the part before the first round; each further unit makes one round of one island. There are no units if the
        search has a single island.
        """
        folder = f"{MULTI}/{run.name}/plan"
        for part in run.island_parts:
            needs = [*described, *(f"{folder}/{ISLANDS}/{one}" for one in run.island_parts_before(part))]
            yield self._unit("fuse_island", folder, f"{ISLANDS}/{part}", said, needs, files=(f"{ISLANDS}/{part}.json",))

    def _scheduled(self, run: Run) -> Iterator[Unit]:
        folder = f"{MULTI}/{run.name}"
        needs = list(dict.fromkeys([*self._described(run), *self._plan_of(run), *self._graph_and_tables(run)]))
        files = (*STEPS["allocate"].writes, *((EXPORTS,) if run.stages.exports else ()))
        said, read = self._said_by_run(run, "allocate"), run.stages.files
        yield self._unit("allocate", folder, "allocate", said, needs, files, reads=read)
        base = run.companion
        baseline = [f"{MULTI}/{base.name}/{name}" for name in ("allocate", "schedule")] if base else []
        needs = [*needs, f"{folder}/allocate", *baseline]
        yield self._unit("schedule", folder, "schedule", self._said_by_run(run, "schedule"), needs, reads=read)

    def _shown(self, run: Run) -> Iterator[Unit]:
        folder = f"{MULTI}/{run.name}"
        graph, tables, schedule = f"{folder}/cns", self._graph_and_tables(run), f"{folder}/schedule"
        yield self._unit("check_multi", folder, "check", needs=[*self._described(run), *tables, schedule])
        if run.base:
            return
        yield self._unit("report_multi", folder, "report", needs=(graph, schedule))
        if run.figures:
            files = _drawn(STEPS["figures_multi"].writes)
            said: Said = {"options": partial(run.arguments, "report")}
            needs = [*tables, f"{folder}/allocate", schedule]
            yield self._unit("figures_multi", folder, "figures", said, needs, files)
        if run.paper:
            said = {"options": partial(run.arguments, "report"), "paper": partial(str, run.paper)}
            yield self._unit("paper_multi", folder, "paper", said, [*tables, f"{folder}/allocate", schedule])

    def _described(self, run: Run) -> list[str]:
        """Names of the units that make hardware, workload and mapping of a run on several cores."""
        return [f"hardware/{run.hardware}/accelerator", self.workload_of(run), *self._mapping_of(run)]

    def _graph_and_tables(self, run: Run) -> list[str]:
        folder = f"{MULTI}/{run.name}"
        return [f"{folder}/cns", *(f"{folder}/cost/{core}" for core in self.systems[run.hardware].core_names)]

    def workload_of(self, run: Run) -> str:
        """Name of the unit that makes the workload of a run on several cores, with split layers if the run splits them.

        The layer-by-layer run with which a run is compared has the same workload.
        """
        if run.splits:
            return f"{MULTI}/{run.base or run.name}/workload"
        return f"workload/{run.workload}/{MULTI_MODEL}/workload"

    def _mapping_of(self, run: Run) -> tuple[str, ...]:
        """Name of the unit that makes the mapping of a run, as a tuple with one item. The unit parses the mapping file,
        or searches for a plan."""
        return self._plan_of(run) if run.fuses else (f"mapping/{run.mapping}/mapping",)

    def _plan_of(self, run: Run) -> tuple[str, ...]:
        return (f"{MULTI}/{run.plan_of}/plan/fuse",) if run.plan_of else ()

    def _spaces(self) -> Iterator[Unit]:
        for name, space in self.spaces.items():
            yield from self._parts("explore", f"{SPACE}/{name}", "shards", space, space.shards, space.digest)
            shards = [f"shards/{file}" for file in space.shards]
            yield self._answer("answer", f"{SPACE}/{name}", space, shards)
            if self.plan.decide:
                objective: Said = {"objective": partial(str, self.plan.decide)}
                yield self._answer("decide", f"{SPACE}/{name}", space, [*shards, "answer"], objective)
        for name, space in self.fronts.items():
            yield from self._parts("family_costs", f"{FRONT}/{name}", "costs", space, space.parts, space.part_digest)
            yield self._answer("front", f"{FRONT}/{name}", space, [f"costs/{file}" for file in space.parts])

    def _parts(
        self,
        step: str,
        folder: str,
        place: str,
        space: ExploredSpace,
        files: Iterable[str],
        digest: Callable[[str], str],
    ) -> Iterator[Unit]:
        read = (space.file, *space.files)
        for file in files:
            part = file.removesuffix(".parquet")
            said = {"made_of": partial(digest, part)}
            yield self._unit(step, folder, f"{place}/{part}", said, files=(f"{place}/{file}",), reads=read)

    def _answer(
        self, step: str, folder: str, space: ExploredSpace, parts: Sequence[str], more: Said | None = None
    ) -> Unit:
        """Unit that runs the step `step` (`answer`, `decide` or `front`) for a space. `parts` names the files and units
        in `folder` that the step reads, and `more` has further inputs of the unit. The step `answer` also deletes the
        files of an earlier `decide`, because a new table of designs can change the decision.
        """
        needs = [f"{folder}/{part.removesuffix('.parquet')}" for part in parts]
        said: Said = {"space": partial(input_digest, space.file), "paper": lambda: self.plan.paper, **(more or {})}
        read = (space.file, *space.files)
        besides = _FOR_PAPER[step] if step == "decide" else ("*.svg", "*.png", *_FOR_PAPER[step])
        decided = [f"{folder}/{name}" for name in (*DECISION, *_FOR_PAPER["decide"])] if step == "answer" else []
        job = Job((), "", tuple(decided))
        return self._unit(step, folder, step, said, needs, besides=besides, job=job, reads=read)

    def _across(self) -> Iterator[Unit]:
        runs, reported = self.plan.runs, [run for run in self.plan.multi_runs if not run.base]
        if not (runs or reported or self.unfinished):
            return
        names = [run.name for run in (*runs, *reported)]
        said: Said = {"runs": partial(list, names), "unfinished": partial(list, self.unfinished)}
        results = [f"{SINGLE}/{run.name}/map" for run in runs]
        results += [f"{MULTI}/{run.name}/schedule" for run in reported]
        explained = [f"{SINGLE}/{run.name}/explain" for run in runs]
        workloads = sorted({run.workload for run in (*runs, *reported)})
        figures = _drawn([f"pareto/{workload}.svg" for workload in workloads])
        folders = [self._path(name.rpartition("/")[0]) for name in results]
        left_out = ("--unfinished", str(self.plan.logs / LEFT_OUT)) if self.unfinished else ()
        widths = {run.paper for run in (*runs, *reported)}
        paper = tuple(("--paper", width) for width in widths if width and len(widths) == 1)
        written = {
            "summary": ("--csv", self._path("summary.csv"), "--parquet", self._path("summary.parquet"), *chain(*paper)),
            "page": ("-o", self._path("index.html")),
            "pareto": ("--csv", self._path("pareto.csv"), "--figures", self._path("pareto"), *chain(*paper)),
        }
        for name, step, needs, files in (
            ("summary", "summarize", results, STEPS["summarize"].writes),
            ("page", "page", [*results, *explained], STEPS["page"].writes),
            ("pareto", "pareto", results, ("pareto.csv", *figures)),
        ):
            besides = _FOR_PAPER.get(name, ())
            code: Said = {"code": partial(self._code, step), "rules": lambda: self._rules}
            wide: Said = {"paper": partial(str, paper[0][1])} if paper and besides else {}
            job = self._job(f"{name}.log", step, *folders, *left_out, *written[name])
            yield Unit(name, tuple(files), {**code, **said, **wide}, tuple(needs), besides, job, step)


def _everything(system: SystemFiles) -> list[str]:
    return [system.file.name, *system.everything]


def _graph(system: SystemFiles) -> str:
    return system.of_graph


def _chunks(groups: Iterable[Sequence[str]], most: int) -> Iterator[list[str]]:
    """Names in lists of at most `most` names. Each list has all members of some consecutive groups, so no group is
    split. A list is longer if a single group has more than `most` members.
    """
    chunk: list[str] = []
    for group in groups:
        if chunk and len(chunk) + len(group) > most:
            yield chunk
            chunk = []
        chunk = [*chunk, *group]
    if chunk:
        yield chunk


def _drawn(files: Sequence[str]) -> tuple[str, ...]:
    """Paths of the given files. For each SVG file, the path of the PNG file of the same figure is added."""
    found: list[str] = []
    for file in files:
        found += [file, file.removesuffix("svg") + "png"] if file.endswith(".svg") else [file]
    return tuple(found)
