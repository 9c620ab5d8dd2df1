"""`tilewright schedule`: what runs when on which core, which data moves when, and what that costs."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from tilewright.artifacts.canonical import make_folder
from tilewright.artifacts.envelope import read_artifact, write_document
from tilewright.artifacts.provenance import provenance
from tilewright.cli.multi_slices import read_slice, slice_option
from tilewright.cli.options import FILE, common_options, echo_json, echo_notices, network_options
from tilewright.cli.parameter_options import Given, parameter_options
from tilewright.cli.run_inputs import input_digests, run_inputs
from tilewright.errors import Problem, Problems
from tilewright.objectives import Goal
from tilewright.scheduling.settings import ScheduleSettings
from tilewright.search.options import CnSearchOptions
from tilewright.steps import ALLOCATION, SCHEDULE, SUMMARY, cost_table
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tilewright.allocation.space import Genome
    from tilewright.stages.multi.run import MultiCoreProblem

Document = dict[str, Any]


@click.command()
@run_inputs
@click.option(
    "--allocation", type=FILE, help=f"{ALLOCATION}; not needed where the mapping leaves one core for everything."
)
@click.option("--baseline", type=FILE, metavar="FOLDER", help="Run of the network layer by layer, to compare with.")
@click.option("-o", "--output", type=FILE, help=f"Folder for {SCHEDULE}, {SUMMARY}.")
@parameter_options(Goal, "goal")
@parameter_options(ScheduleSettings, "settings")
@slice_option
@network_options
@common_options
def command(
    hardware: Path,
    cns: Path,
    workload: Path,
    mapping: Path,
    costs: Path,
    allocation: Path | None,
    baseline: Path | None,
    output: Path | None,
    goal: Given[Goal],
    settings: Given[ScheduleSettings],
    pipeline: str,
    network_options: NetworkOptions,
    verbose: bool,
    as_json: bool,
) -> None:
    """Schedule an allocation, verify the schedule, and say how far it is from the best possible one.

    Example: tilewright schedule --hardware config/hardware/multi/quad_core.yaml
    --workload config/workload/resnet18.onnx --mapping config/mapping/multi/quad_core.yaml --cns out --costs out/cost
    --allocation out/allocation.json -o out
    """
    from tilewright.report.multi.summary import SCHEMA, baseline_rows
    from tilewright.report.multi.summary_text import summary_text
    from tilewright.scheduling.result import write_schedule
    from tilewright.stages.base import Control
    from tilewright.stages.multi.allocation import (
        InterCoreMapping,
        in_place_of_search,
        objective_of,
        settings_of,
    )
    from tilewright.stages.multi.inputs import read_inputs
    from tilewright.stages.multi.result import MultiCoreResult

    told = Problems()
    chosen, aim = told.attempt(settings), told.attempt(goal)
    stages = None
    if chosen is not None and aim is not None:
        values = chosen.as_dict()
        stages = told.attempt(read_slice, "schedule", InterCoreMapping, pipeline, aim.part(CnSearchOptions), values)
    prefetched = chosen.operands_to_prefetch if chosen and not pipeline else ()
    inputs = told.attempt(read_inputs, hardware, workload, mapping, cns, costs, network_options, prefetched)
    documents = {
        "allocation": told.attempt(_document, allocation, "tilewright/allocation"),
        "lbl_allocation": told.attempt(_document, baseline and baseline / ALLOCATION, "tilewright/allocation"),
        "lbl_summary": told.attempt(_document, baseline and baseline / SUMMARY, SCHEMA),
    }
    told.finish()
    assert chosen is not None
    assert aim is not None
    assert stages is not None
    assert inputs is not None
    chosen, objective = settings_of(stages, chosen), objective_of(stages, aim.objective)
    digests = input_digests(inputs, cns, costs)
    cost_model = _cost_model(costs, inputs.costs)
    told.found += _of_others(allocation, baseline, documents, digests, chosen, cost_model)
    told.finish()
    other_settings = _other_settings(documents["allocation"], chosen)
    echo_notices([*inputs.descriptions.notices, *other_settings])
    if output:
        make_folder(output)
    digests |= {"allocation": read_artifact(allocation).digest} if allocation else {}
    made_by = provenance("schedule", digests, stages.stated({}, **chosen.stated(), objective=objective))
    fixed = in_place_of_search(stages, partial(_genome, document=documents["allocation"], file=str(allocation)), chosen)
    with TemporaryDirectory() as exports:  # files that stages write are those of the search, and were written there
        result = fixed.result(inputs, MultiCoreResult, Control(exports=Path(exports)))
    summary = result.summary_of(objective, _search(documents["allocation"]), other_settings, cost_model=cost_model)
    singles = (documents["lbl_allocation"] or {}).get("single_core", [])
    summary["baselines"] = baseline_rows(summary, documents["lbl_summary"], singles)
    if output:
        write_schedule(output / SCHEDULE, replace(result.artifact, provenance=made_by))
        write_document(output / SUMMARY, SCHEMA, summary, made_by)
    if as_json:
        echo_json(summary)
    else:
        click.echo(summary_text(summary, verbose or not output), nl=False)


def _document(path: Path | None, schema: str) -> Document | None:
    """A document, None if it is not asked for. Raises InputError."""
    if path is None:
        return None
    document: Document = read_artifact(path, schema).payload
    return document


def _of_others(
    allocation: Path | None,
    baseline: Path | None,
    documents: dict[str, Document | None],
    digests: dict[str, str],
    settings: ScheduleSettings,
    cost_model: str,
) -> list[Problem]:
    """Whether allocation and baseline are of what is scheduled. Cores that were chosen for something else can be
    scheduled by the mapping file that was written with them."""
    from tilewright.stages.multi.inputs import origin_problems

    problems = []
    if allocation is not None:
        counts = tuple(key for key in digests if key != "mapping")
        made_by = read_artifact(allocation).provenance
        problems += origin_problems(made_by, digests, str(allocation), "allocate", counts)
    for name in (ALLOCATION, SUMMARY) if baseline is not None else ():
        file = (baseline or Path()) / name
        problems += origin_problems(
            read_artifact(file).provenance, digests, str(file), "schedule", ("hardware", "workload")
        )
    compared = documents["lbl_summary"]
    place = str((baseline or Path()) / SUMMARY)
    if compared is not None and compared["settings"] != settings.stated():
        problems.append(Problem("was scheduled by other settings, so that it compares with nothing", place))
    if compared is not None and (found := compared.get("cost_model", "")) != cost_model:
        message = "has cost tables of another cost model, so that it compares with nothing"
        problems.append(Problem(message, place, value=found, allowed=cost_model))
    return problems


def _other_settings(document: Document | None, settings: ScheduleSettings) -> list[str]:
    """A notice if the allocation was chosen for schedules that are made in another way."""
    chosen_for = document["settings"] if document is not None else settings.stated()
    names = [name for name, value in settings.stated().items() if chosen_for.get(name) != value]
    return [f"the allocation was chosen for schedules with other {', '.join(names)}"] if names else []


def _genome(problem: "MultiCoreProblem", document: Document | None, file: str) -> "Genome":
    from tilewright.allocation.result import allocation_genome
    from tilewright.stages.multi.run import only_genome

    if document is None:
        return only_genome(problem.space)
    return allocation_genome(document, problem.space, problem.assembled.names, file)


def _cost_model(costs: Path, core_files: "Iterable[str]") -> str:
    """The cost model of the tables; several where they differ."""
    made_by = [read_artifact(cost_table(costs, name)).provenance for name in core_files]
    return ", ".join(dict.fromkeys(str(provenance["options"].get("model", "")) for provenance in made_by))


def _search(document: Document | None) -> Document | None:
    """What the summary says of the search for the allocation."""
    return None if document is None else {**document["search"], "front_size": len(document["front"])}
