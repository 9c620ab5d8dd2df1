"""`tilewright allocate`: which core runs what, found by a genetic algorithm."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.allocation.options import AllocationOptions
from tilewright.artifacts.canonical import make_folder, write_atomically
from tilewright.artifacts.envelope import write_document
from tilewright.artifacts.provenance import provenance
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.multi_slices import read_slice, slice_option
from tilewright.cli.options import FILE, common_options, echo_json, echo_notices, network_options
from tilewright.cli.parameter_options import Given, parameter_options
from tilewright.cli.run_inputs import input_digests, run_inputs
from tilewright.errors import InputError, Problem, Problems
from tilewright.scheduling.settings import ScheduleSettings
from tilewright.steps import ALLOCATION, EXPORTS, FIXED_MAPPING, GENERATIONS, PARETO
from tilewright.units import energy_text
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.allocation.result import AllocationResult
    from tilewright.stages.multi.slices import Slice


@click.command()
@run_inputs
@click.option("-o", "--output", type=FILE, help=f"Folder for {ALLOCATION}, {PARETO}, {FIXED_MAPPING}, ...")
@parameter_options(AllocationOptions, "search")
@parameter_options(ScheduleSettings, "settings")
@click.option(
    "--single-core/--no-single-core",
    default=True,
    show_default=True,
    help="Compare with everything on one core, for each.",
)
@slice_option
@network_options
@common_options
def command(
    hardware: Path,
    cns: Path,
    workload: Path,
    mapping: Path,
    costs: Path,
    output: Path | None,
    search: Given[AllocationOptions],
    settings: Given[ScheduleSettings],
    single_core: bool,
    pipeline: str,
    network_options: NetworkOptions,
    verbose: bool,
    as_json: bool,
) -> None:
    """Find which core runs which part of which layer.

    Example: tilewright allocate --hardware config/hardware/multi/quad_core.yaml
    --workload config/workload/resnet18.onnx --mapping config/mapping/multi/quad_core.yaml --cns out --costs out/cost
    -o out
    """
    from tilewright.allocation.evaluate import INTERRUPTED
    from tilewright.allocation.result import SCHEMA, allocation_document
    from tilewright.stages.base import Control
    from tilewright.stages.multi import run
    from tilewright.stages.multi.inputs import read_inputs
    from tilewright.stages.multi.result import MultiCoreResult

    told = Problems()
    asked, chosen = told.attempt(search), told.attempt(settings)
    stages = told.attempt(_stages, pipeline, asked, chosen, output) if asked and chosen else None
    prefetched = chosen.operands_to_prefetch if chosen and not pipeline else ()
    inputs = told.attempt(read_inputs, hardware, workload, mapping, cns, costs, network_options, prefetched)
    told.finish()
    assert asked is not None
    assert stages is not None
    assert inputs is not None
    echo_notices(list(inputs.descriptions.notices))
    if output:
        make_folder(output)  # a place that cannot be written is told before the search, not after it
    exports = (output or Path()) / EXPORTS
    control = Control(asked.thread_count, exports=exports, show_progress=not as_json)
    found = stages.result(inputs, MultiCoreResult, control)
    problem, result, settings_stated = found.problem, found.allocation, found.problem.settings.stated()
    is_cut_short = result.stopped_by == INTERRUPTED
    singles = run.single_cores(problem) if single_core and not is_cut_short else ()
    document = allocation_document(result, problem.assembled.names, settings_stated, singles)
    if output:
        options = {key: value for key, value in vars(asked).items() if key != "threads"} | settings_stated
        stated = {**stages.stated(options), "single_core": single_core}
        made_by = provenance("allocate", input_digests(inputs, cns, costs), stated)
        write_atomically(output / GENERATIONS, _csv_of_generations(result))
        write_atomically(output / PARETO, _csv_of_front(document))
        write_atomically(output / FIXED_MAPPING, run.fixed_mapping_text(problem, result.chosen.genome))
        write_document(output / ALLOCATION, SCHEMA, document, made_by)
    _show(document, result, output, verbose, as_json)
    if is_cut_short:
        kept = f"; the best is in {output / ALLOCATION}" if output else ""
        raise InterruptedRunError(f"{result.evaluations:,} allocations were evaluated{kept}")


def _stages(pipeline: str, search: AllocationOptions, settings: ScheduleSettings, output: Path | None) -> "Slice":
    """The stages that search. Raises InputError where one of them writes files and there is no folder for them."""
    from tilewright.search.options import CnSearchOptions
    from tilewright.stages.multi.allocation import InterCoreMapping

    of_run = {**search.as_dict(), **settings.as_dict()}
    stages = read_slice("allocate", InterCoreMapping, pipeline, search.part(CnSearchOptions), of_run)
    if stages.exports and not output:
        raise InputError([Problem("a stage of the pipeline writes files: the option is needed", path="-o")])
    return stages


def _csv_of_generations(result: "AllocationResult") -> str:
    from tilewright.allocation.result import generation_table

    return _csv(generation_table(result))


def _csv_of_front(document: dict[str, Any]) -> str:
    """One row for each point; the core ids of the parts, in order, are one text."""
    return _csv([{**row, "cores": " ".join(map(str, row["cores"]))} for row in document["front"]])


def _csv(rows: list[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()


def _show(
    document: dict[str, Any], result: "AllocationResult", output: Path | None, verbose: bool, as_json: bool
) -> None:
    if as_json:
        echo_json(document)
        return
    search = document["search"]
    click.echo(
        f"{document['workload']} on {document['hardware']}: {document['latency_cycles']:,} cycles,"
        f" {energy_text(document['energy_pj'])}"
        f" ({search['evaluations']:,} of {int(search['allocations']):.4g} allocations"
        f" evaluated, stopped by {search['stopped_by']}, {len(document['front'])} on the Pareto front)"
    )
    if search["infeasible"]:
        click.echo(f"{search['infeasible']:,} without a schedule: {search['infeasible_reasons'][0]['reason']}")
    for row in document["single_core"]:
        rest = f", {row['parts_elsewhere']} of {row['parts']} parts elsewhere" if row["parts_elsewhere"] else ""
        click.echo(
            f"all on core {row['core']} ({row['core_name']}{rest}):"
            f" {row['latency_cycles']:,} cycles, {energy_text(row['energy_pj'])}"
        )
    if verbose or not output:
        for row in document["allocation"]:
            only = "  (only choice)" if row["is_only_choice"] else ""
            click.echo(f"{row['name']} [{row['group']}]: core {row['core']} {row['core_name']}{only}")
