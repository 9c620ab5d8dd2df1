"""Audit of a run on several cores: CN graph, cost tables, allocation and schedule are recomputed.

Each result is recomputed from the stored files that were its inputs.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.columns import read_columns
from tilewright.base.artifacts.envelope import Artifact, read_artifact
from tilewright.base.artifacts.seals import FILES_BESIDE
from tilewright.base.errors import InputError, MappingError
from tilewright.base.json_values import JsonObject
from tilewright.base.objectives import Goal
from tilewright.base.parameters import parameters_of
from tilewright.base.steps import (
    ALLOCATION,
    CN_COLUMNS,
    CN_GRAPH,
    COSTS,
    FIXED_MAPPING,
    SCHEDULE,
    SUMMARY,
    cost_table,
)
from tilewright.base.unused import UNUSED
from tilewright.cli.auditing.inputs import (
    KINDS,
    GivenDescriptions,
    first_of,
    is_of_this_code,
    named_by_manifest,
    not_found,
    note_of_code,
)
from tilewright.cli.auditing.items import (
    ALLOCATED,
    CN_CLASS,
    GRAPH,
    NOTHING,
    SCHEDULED,
    AuditDifference,
    AuditItem,
    Findings,
    LeftOut,
    Made,
    NotAudited,
    as_stored,
    compared,
    differences,
)
from tilewright.cli.described_run import (
    HARDWARE,
    MAPPING,
    WORKLOAD,
    DescribedRun,
    hardware_digest,
    mapping_digest,
    system_network_digest,
)
from tilewright.cli.parameter_options import Named
from tilewright.cli.run_inputs import input_digests, read_slice
from tilewright.multicore.allocation.evaluate import INTERRUPTED, TIME_BUDGET
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.scheduling.options import ScheduleSettings

if TYPE_CHECKING:
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.costs import IntraCoreMapping
    from tilewright.pipeline.stages.multi.items import CostedCnProblem
    from tilewright.pipeline.stages.multi.slices import Slice

_ABOUT_FILES = ("notices", UNUSED, "baselines")
"""Fields of a summary that are not compared: notices about files, and results of other runs."""
_BY_TIME = (TIME_BUDGET, INTERRUPTED)
_DESCRIPTION = "description"
"""Name of the column that contains a JSON text, in a schedule file."""


class SeveralCoresRun(Findings):
    """Folder of a run on several cores, written either by `tilewright fuse` or by `tilewright cns`, `cost`, `allocate`
    and `schedule`. Raises InputError if no result in the folder can be recomputed.
    """

    def __init__(self, folder: Path, given: GivenDescriptions) -> None:
        from tilewright.pipeline.stages.multi.items import read_system_problem

        super().__init__()
        self.folder, self._given = folder, given
        self._made_by = self._provenance()
        self._described = read_system_problem(self._descriptions)
        self._look_at_graph()
        for core in self._core_names:
            self._look_at_table(core)
        for name, kind, step in ((ALLOCATION, ALLOCATED, "allocate"), (SCHEDULE, SCHEDULED, "schedule")):
            if (folder / name).is_file():
                self._look_at_answer(folder / name, kind, step)
        for name in ("_graph_artifact", "_graph", "_inputs"):
            self.__dict__.pop(name, None)  # freed: many runs may be audited; they are read again

    # stored results ---------------------------------------------------------------------------------------------------

    def _provenance(self) -> Mapping[str, Any]:
        """Provenance of the schedule of the run, or of its allocation if there is no schedule.

        If the run has neither file, the user must name hardware, workload and mapping. The result is then a provenance
        with empty `inputs` and `options`. Raises InputError if the user does not name all three.
        """
        from tilewright.multicore.scheduling.result import read_schedule

        if (self.folder / SCHEDULE).is_file():
            found: Mapping[str, Any] = read_schedule(self.folder / SCHEDULE).provenance
            return found
        if (self.folder / ALLOCATION).is_file():
            return read_artifact(self.folder / ALLOCATION).provenance
        if all(self._given.files.get(kind) for kind in KINDS):
            return {"inputs": {}, "options": {}}
        from tilewright.cli.folder_kinds import said_of_folder

        raise InputError(f"the run is not finished, so its hardware is not known; it {said_of_folder(self.folder)}")

    @cached_property
    def _descriptions(self) -> "Descriptions":
        """Input files of the run. Raises InputError if a file is not found."""
        from tilewright.pipeline.stages.descriptions import Descriptions

        run = DescribedRun.of(self.folder, self._made_by, self._names)
        named, options = named_by_manifest(self.folder, "schedule"), self._given.network_options
        given = self._given.files
        own = self.folder / FIXED_MAPPING
        is_own = own.is_file() and mapping_digest(own) == run.digests.get(MAPPING)
        searches: dict[str, tuple[Callable[[Path], str], Callable[[], Path | None]]] = {
            HARDWARE: (hardware_digest, run.hardware),
            WORKLOAD: (partial(system_network_digest, options=options), partial(run.system_network, options)),
            MAPPING: (mapping_digest, run.mapping if not is_own else lambda: own),
        }
        found = {
            kind: first_of(given.get(kind), digest_of, run.digests.get(kind), partial(named.get, kind), search)
            for kind, (digest_of, search) in searches.items()
        }
        if error := not_found(run, found):
            raise error
        return Descriptions(found[HARDWARE], found[WORKLOAD], found[MAPPING], options)

    @cached_property
    def _names(self) -> JsonObject:
        """Names of the workload and the hardware. Input files often have these names."""
        file = self.folder / SUMMARY
        summary = read_artifact(file).payload if file.is_file() else {}
        return {"workload": summary.get("workload", ""), "hardware": summary.get("hardware", "")}

    @cached_property
    def _graph_artifact(self) -> Artifact:
        return read_artifact(self.folder / CN_GRAPH, "tilewright/cn-graph")

    @cached_property
    def _graph(self) -> "CnGraph":
        from tilewright.multicore.nodes.graph import read_cn_graph

        return read_cn_graph(self.folder / CN_GRAPH, self.folder / CN_COLUMNS)

    @property
    def _core_names(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / COSTS).glob("*.jsonl"))

    def _refuse(self, file: Path, reason: object) -> None:
        self.not_audited.append(NotAudited(str(file), "; ".join(str(reason).splitlines())))

    def _take(self, file: Path, step: str, made_by: Mapping[str, Any], items: Iterable[AuditItem]) -> None:
        self.items += items
        self.notes += note_of_code(file, made_by, step)

    def _look_at_graph(self) -> None:
        """Check that the CN graph was made from the input files of the run. If so, add it to the results that can be
        recomputed. If the stages that made the graph are not known or have changed, list the graph as not audited.

        Raises InputError if the graph was made from other input files. All later files of the run are then wrong too.
        """
        from tilewright.pipeline.stages.multi.inputs import graph_origin_problems, graph_problems

        file, made_by = self.folder / CN_GRAPH, self._graph_artifact.provenance
        wrong = graph_problems(self._graph, self._described.workload, str(file))
        wrong += [] if wrong else graph_origin_problems(made_by, self._described, self._graph, str(file))
        if wrong:
            raise InputError(wrong)
        try:
            self._slice("cns")
        except InputError as error:
            return self._refuse(file, error)
        return self._take(file, "cns", made_by, [AuditItem(self.folder, GRAPH, "")])

    def _look_at_table(self, core: str) -> None:
        """Check that the cost table of a core file was made from the inputs of the run. Add its classes of CNs to the
        results that can be recomputed. A class is left out if its search was ended by a time budget, or may have been
        ended by one. If the check fails, list the table as not audited.
        """
        from tilewright.pipeline.stages.multi.inputs import cost_inputs, origin_problems
        from tilewright.pipeline.stages.temporal import Exact

        file = cost_table(self.folder / COSTS, core)
        table = read_artifact(file, "tilewright/core-costs")
        try:
            if core not in self._described.accelerator.distinct_cores:
                raise InputError("the accelerator has no such core file")
            expected = cost_inputs(self._described, core, self._graph, self._graph_artifact.digest)
            if wrong := origin_problems(table.provenance, expected, "it", "cost"):
                raise InputError(wrong)
            is_by_time = any(
                isinstance(stage, Exact) and stage.limits.time_budget_s is not None
                for stage in self._costing(core).inner()
            )
        except InputError as error:
            return self._refuse(file, error)
        count = max(len(table.payload), self._class_count)
        items = [AuditItem(self.folder, CN_CLASS, f"{place} on {core}", core) for place in range(count)]
        is_said = is_of_this_code(table.provenance, "cost") or not is_by_time  # other code perhaps did not record it
        ended = {place for place, row in enumerate(table.payload) if row.get("ended_by_time") or not is_said}
        reason = "a time budget ended its search" if is_said else "a time budget may have ended its search"
        self.left_out += [LeftOut(items[place], reason, is_said) for place in sorted(ended)]
        return self._take(
            file, "cost", table.provenance, [item for place, item in enumerate(items) if place not in ended]
        )

    @cached_property
    def _class_count(self) -> int:
        from tilewright.multicore.scheduling.cost_classes import cost_classes

        return len(cost_classes(self._graph, self._described.workload, self._described.mapping).classes)

    def _look_at_answer(self, file: Path, kind: str, step: str) -> None:
        """Check that the allocation or the schedule was made from the inputs of the run, which include all cost tables.
        If the check fails, list the file as not audited. Otherwise, add the allocation or the schedule to the results
        that can be recomputed. An allocation is left out instead if a time budget or the user ended its search.
        """
        made_by = self._made_by if kind == SCHEDULED else read_artifact(file).provenance
        try:
            self._check_origin(made_by, step)
            self._slice(step)
        except InputError as error:
            return self._refuse(file, error)
        item = AuditItem(self.folder, kind, "")
        if kind == ALLOCATED and read_artifact(file).payload["search"]["stopped_by"] in _BY_TIME:
            self.left_out.append(LeftOut(item, "its search was ended by a time budget or by hand"))
            return None
        return self._take(file, step, made_by, [item])

    def _check_origin(self, made_by: Mapping[str, Any], step: str) -> None:
        """Raise InputError if a file of the run was made from inputs that have changed. `made_by` is the provenance of
        the file. The inputs are the input files, the CN graph, the cost tables and, for a schedule, the allocation.
        """
        from tilewright.pipeline.stages.multi.inputs import origin_problems

        expected = input_digests(self._inputs, self.folder, self.folder / COSTS)
        if wrong := origin_problems(made_by, expected, "it", step):
            raise InputError(wrong)
        allocation, of_it = self.folder / ALLOCATION, made_by["inputs"].get("allocation")
        if of_it and of_it != (read_artifact(allocation).digest if allocation.is_file() else ""):
            raise InputError(
                f"it was made from another allocation than {allocation}, or that allocation has changed since"
            )

    # inputs and stages of the run -------------------------------------------------------------------------------------

    @cached_property
    def _inputs(self) -> "CostedCnProblem":
        from tilewright.pipeline.stages.multi.inputs import read_inputs

        return read_inputs(self._descriptions, self.folder, self.folder / COSTS)

    def _stated(self, step: str, core: str = "") -> dict[str, Any]:
        """Value `options` in the provenance of the file that the step `step` made. The value has the options of the
        step or, with a pipeline of the user, the stages of the step under the key `pipeline`. For the step `cost`, the
        file is the cost table of the core file `core`.
        """
        if step == "schedule":
            return dict(self._made_by["options"])
        files = {"cns": CN_GRAPH, "allocate": ALLOCATION}
        file = cost_table(self.folder / COSTS, core) if step == "cost" else self.folder / files[step]
        return dict(read_artifact(file).provenance["options"])

    def _slice(self, step: str, core: str = "") -> "Slice":
        """Stages that made the result of the step `step`. For the step `cost`, the result is the cost table of the core
        file `core`. Raises InputError if the stages are not known, or have changed since the run.
        """
        from tilewright.base.parameters import made_of
        from tilewright.cli.allocate import stages_of_search
        from tilewright.pipeline.stages.multi.costs import IntraCoreMapping
        from tilewright.pipeline.stages.multi.inputs import stated_tiling
        from tilewright.pipeline.stages.multi.tiling import GenerateCNWorkloadHybrid
        from tilewright.search.options import CnSearchOptions

        stated = self._stated(step, core)
        if "pipeline" in stated:
            found = read_slice(step, IntraCoreMapping, self._whole_pipeline())
            if as_stored(list(found.identity or ())) != stated["pipeline"]:
                raise InputError("its pipeline has changed since the run: code or parameters of a stage differ")
            return found
        if step == "cost":
            return read_slice(step, IntraCoreMapping, None, made_of(CnSearchOptions, stated))
        if step == "cns":
            tiling = stated_tiling(stated)
            if tiling is None:
                raise InputError("it does not record the tiling options of the network")
            return read_slice(step, GenerateCNWorkloadHybrid, None, settings=tiling.as_dict())
        return stages_of_search(None, _search_of(stated), ScheduleSettings.of(stated), Path())

    def _whole_pipeline(self) -> list[dict[str, Any]]:
        """Pipeline of the user, assembled from the stages that are in the provenance of the files of the run. Raises
        InputError if the run has no cost tables.
        """
        if not self._core_names:
            raise InputError(
                "the run has no cost tables; they are needed, because they store a part of the pipeline of the run"
            )
        last = "allocate" if (self.folder / ALLOCATION).is_file() else "schedule"
        parts = [self._stated("cns"), self._stated("cost", self._core_names[0]), self._stated(last)]
        told = [one for part in parts for one in part.get("pipeline", ())]  # each file has the stages of its step
        return [{"stage": one["stage"], "parameters": one["parameters"]} for one in told]

    def _costing(self, core: str) -> "IntraCoreMapping":
        """Stage that computed the costs of CNs. Raises InputError if the user wrote this stage."""
        from tilewright.pipeline.stages.multi.costs import IntraCoreMapping

        (stage,) = self._slice("cost", core).stages
        if type(stage) is not IntraCoreMapping:
            raise InputError(f"{stage.name()} makes only complete tables, so single rows cannot be made again")
        return stage

    # recomputation ----------------------------------------------------------------------------------------------------

    def again(self, items: Sequence[AuditItem]) -> Iterator[Made]:
        """Comparisons of items with the stored results. Each item is recomputed from the stored files that were its
        inputs.
        """
        for core in dict.fromkeys(item.place for item in items if item.kind == CN_CLASS):
            yield from self._rows_again(core, [item for item in items if item.place == core])
        makers = {GRAPH: self._graph_again, ALLOCATED: self._allocation_again, SCHEDULED: self._schedule_again}
        for item in items:
            if item.kind in makers:
                try:
                    yield makers[item.kind](item)
                except (InputError, MappingError) as error:  # the stored result cannot be correct
                    yield Made(item, (AuditDifference(item.kind, "there", str(error)),))

    def _rows_again(self, core: str, items: Sequence[AuditItem]) -> Iterator[Made]:
        from tilewright.pipeline.stages.base import Control
        from tilewright.pipeline.stages.multi.items import CnProblem

        problem = CnProblem(self._described, self._graph, (core,))
        places = [int(item.name.partition(" ")[0]) for item in items]
        stored = read_artifact(cost_table(self.folder / COSTS, core)).payload
        only = [place for place in places if place < self._class_count]
        made = {
            row.cost_class: as_stored(encode(row))
            for row in self._costing(core).rows(problem, core, Control(), only=only)
        }
        for item, place in zip(items, places, strict=True):
            row = stored[place] if place < len(stored) else NOTHING
            if made.get(place, {}).get("ended_by_time"):
                yield Made(item, ended="a time budget ended its search in this audit")
                continue
            yield Made(item, compared(row, made.get(place, NOTHING), "row"))

    def _graph_again(self, item: AuditItem) -> Made:
        from tilewright.multicore.nodes.graph import write_cn_graph
        from tilewright.pipeline.stages.base import Control
        from tilewright.pipeline.stages.multi.items import CnProblem

        cut = self._slice("cns").result(self._described, CnProblem, Control())
        with TemporaryDirectory() as folder:
            again = Path(folder)
            write_cn_graph(cut.graph, again / CN_GRAPH, again / CN_COLUMNS, {})
            found = differences(self._graph_artifact.payload, read_artifact(again / CN_GRAPH).payload)
            columns = _column_differences(self.folder / CN_COLUMNS, again / CN_COLUMNS)
            return Made(item, (*found, *columns))

    def _allocation_again(self, item: AuditItem) -> Made:
        from tilewright.cli.allocate import texts_of
        from tilewright.pipeline.stages.base import Control
        from tilewright.pipeline.stages.multi.result import MultiCoreResult

        stored = read_artifact(self.folder / ALLOCATION)
        with TemporaryDirectory() as exports:
            control = Control(exports=Path(exports))
            found = self._slice("allocate").result(self._inputs, MultiCoreResult, control)
        found = replace(found, single_core=stored.provenance["options"].get("single_core", True))
        if found.allocation.stopped_by == TIME_BUDGET:
            return Made(item, ended="a time budget ended its search in this audit")
        told = list(differences(stored.payload, as_stored(found.document)))
        for name, text in texts_of(found).items():
            if name in stored.provenance.get(FILES_BESIDE, {}):
                lines = (self.folder / name).read_text("utf-8").splitlines() if (self.folder / name).is_file() else []
                told += differences(lines, text.splitlines(), name)
        return Made(item, tuple(told))

    def _schedule_again(self, item: AuditItem) -> Made:
        from tilewright.cli.schedule import scheduled
        from tilewright.multicore.scheduling.result import write_schedule

        stated = self._made_by["options"]
        pipeline = self._whole_pipeline() if "pipeline" in stated else None
        settings = Named(ScheduleSettings, ScheduleSettings.of(stated).as_dict())
        goal = Named(Goal, {"objective": stated["objective"]})
        allocation = self.folder / ALLOCATION if "allocation" in self._made_by["inputs"] else None
        made = scheduled(
            *(self._descriptions, self.folder, self.folder / COSTS, allocation, None, None, None),
            *(goal, settings, pipeline, lambda notices: None),
        )
        with TemporaryDirectory() as folder:
            write_schedule(Path(folder) / SCHEDULE, made.result.artifact)
            told = list(_column_differences(self.folder / SCHEDULE, Path(folder) / SCHEDULE))
        if (self.folder / SUMMARY).is_file():
            stored = read_artifact(self.folder / SUMMARY).payload
            told += differences(_without(stored, *_ABOUT_FILES), _without(as_stored(made.summary), *_ABOUT_FILES))
        return Made(item, tuple(told))


def _search_of(stated: Mapping[str, Any]) -> AllocationOptions:
    """Options of the search for an allocation, as recorded in the provenance of the allocation."""
    names = {parameter.name for parameter in parameters_of(AllocationOptions)}
    return AllocationOptions(**{name: value for name, value in stated.items() if name in names}, jobs=1)


def _without(data: Mapping[str, Any], *names: str) -> JsonObject:
    return {name: value for name, value in data.items() if name not in names}


def _column_differences(stored: Path, again: Path) -> Iterator[AuditDifference]:
    """Differences between two files of arrays: the first differing value of each column. Provenance is not compared."""
    columns, others = read_columns(stored), read_columns(again)
    for name in dict.fromkeys([*columns, *others]):
        one, other = columns.get(name), others.get(name)
        if name == _DESCRIPTION and one is not None and other is not None:
            texts = [_without(json.loads(column.tobytes()), "provenance") for column in (one, other)]
            yield from differences(texts[0], texts[1])
        elif one is None or other is None or one.shape != other.shape:
            yield AuditDifference(
                name, *("nothing" if each is None else f"{len(each)} values" for each in (one, other))
            )
        elif one.tobytes() != other.tobytes():
            flat = one.reshape(-1), other.reshape(-1)
            place = next(at for at in range(one.size) if flat[0][at].tobytes() != flat[1][at].tobytes())
            yield AuditDifference(f"{name}[{place}]", *(column[place].item() for column in flat))
