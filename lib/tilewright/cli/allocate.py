"""`tilewright allocate`: allocation of layers to cores by a genetic algorithm, or a proven optimal allocation."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.digests import digest_of_bytes
from tilewright.base.artifacts.envelope import provenance, write_document
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.artifacts.seals import FILES_BESIDE
from tilewright.base.errors import InputError, Problem, Problems, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.proof import ALLOWED_ALLOCATIONS
from tilewright.base.steps import ALLOCATION, EXPORTS, FIXED_MAPPING, GENERATIONS, PARETO
from tilewright.base.units import count_text, energy_text
from tilewright.base.unused import refuse_unused, with_unused
from tilewright.cli.csv_text import csv_text
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import PipelineSource, echo_json, network_keywords
from tilewright.cli.parameter_options import Given, Named, parameter_keywords
from tilewright.cli.run_inputs import (
    CNS_FOLDER,
    COSTS_FOLDER,
    descriptions_of_run,
    input_digests,
    planned_slice,
    prefetched,
    read_slice,
    unused_options,
)
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import MAPPING_FILE, NETWORK_FILE, SYSTEM_FILE, Help, Tell, verb
from tilewright.multicore.allocation.options import AllocationOptions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.multicore.allocation.result import AllocationResult
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem
    from tilewright.pipeline.stages.multi.result import MultiCoreResult
    from tilewright.pipeline.stages.multi.slices import Slice


def _found(
    costs: Path,
    search: Given[AllocationOptions],
    settings: Given[ScheduleSettings],
    hardware: Path,
    workload: Path,
    mapping: Path,
    cns: Path,
    output: Path | None,
    single_core: bool,
    strict: bool,
    pipeline: str,
    network_options: NetworkOptions,
    tell: Tell,
    show_progress: bool,
) -> "MultiCoreResult":
    """Result of the verb for its command-line options."""
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions

    given = Descriptions(hardware, workload, mapping, network_options)
    exports = output / EXPORTS if output else None
    control = Control(show_progress=show_progress, on_notices=tell)
    return _allocated(given, cns, costs, search, settings, single_core, strict, output, exports, pipeline, control)


def _show(found: "MultiCoreResult", output: Path | None, verbose: bool, as_json: bool) -> None:
    from tilewright.multicore.allocation.evaluate import INTERRUPTED

    result = found.allocation
    _echo(found.document, output, verbose, as_json)
    if result.stopped_by == INTERRUPTED:
        kept = f"; the best is in {output / ALLOCATION}" if output else ""
        raise InterruptedRunError(f"evaluated: {count_of(result.evaluations, 'allocation')}{kept}")


def _echo(document: dict[str, Any], output: Path | None, verbose: bool, as_json: bool) -> None:
    if as_json:
        echo_json(document)
        return
    search = document["search"]
    echo(
        f"{document['workload']} on {document['hardware']}: {document[LATENCY_CYCLES]:,} cycles,"
        f" {energy_text(document[ENERGY_PJ])}"
        f" ({search['evaluations']:,} of {count_text(int(search['allocations']))} allocations"
        f" evaluated, {_end_text(search['stopped_by'])}, {len(document['front'])} on the Pareto front)"
    )
    if "proof" in search:
        echo_text(_proof_text(search["proof"]), nl=True)
    if search["infeasible"]:
        count = count_of(search["infeasible"], "allocation")
        echo(f"{count} without a schedule; reason of the first: {search['infeasible_reasons'][0]['reason']}")
    for row in document["single_core"]:
        rest = f"; {row['parts_elsewhere']} of {row['parts']} parts need another core" if row["parts_elsewhere"] else ""
        echo(
            f"baseline on the single core {row['core']} ({row['core_name']}{rest}):"
            f" {row[LATENCY_CYCLES]:,} cycles, {energy_text(row[ENERGY_PJ])}"
        )
    if verbose or not output:
        for row in document["allocation"]:
            only = "  (only choice)" if row["is_only_choice"] else ""
            echo(f"{row['name']} [{row['group']}]: core {row['core']} {row['core_name']}{only}")


@verb(
    """Choose a core for each part of each layer.

    Example: tilewright allocate --hardware config/hardware/multi/quad_core.yaml
    --workload config/workload/resnet18.onnx --mapping config/mapping/multi/quad_core.yaml --cns out --costs out/cost
    -o out
    """,
    run=_found,
    show=_show,
    order="hardware workload mapping cns costs output",
    shared={"pipeline": planned_slice},
)
@network_keywords
@parameter_keywords(search=AllocationOptions, settings=ScheduleSettings)
def allocate(
    costs: Annotated["FilePath | CostedCnProblem", COSTS_FOLDER],
    *,
    search: Named[AllocationOptions],
    settings: Named[ScheduleSettings],
    hardware: Annotated["AcceleratorSource | None", SYSTEM_FILE] = None,
    workload: Annotated["WorkloadSource | None", NETWORK_FILE] = None,
    mapping: Annotated["MappingSource | None", MAPPING_FILE] = None,
    cns: Annotated["FilePath | CnProblem | None", CNS_FOLDER] = None,
    output: Annotated[FilePath | None, Help(f"Folder for {ALLOCATION}, {PARETO}, {FIXED_MAPPING}, ...")] = None,
    single_core: Annotated[bool, Help("Also schedule the whole network on each single core, for comparison.")] = True,
    strict: bool = False,
    pipeline: PipelineSource = None,
    network_options: NetworkOptions | None = None,
    exports: FilePath | None = None,
) -> "MultiCoreResult":
    """Best allocation of cores that the search finds, with its schedule. Options are given by name.

    `costs` is the result of the function `cost` for all cores, or the folder of the cost tables. If it is a folder,
    `cns`, `hardware`, `workload` and `mapping` are needed too. The files of the command are written to the folder
    `output`. `exports` is the folder for files of stages; the default is a subfolder of `output`. With `strict`, input
    without effect is an error. Raises InputError for wrong settings, and MappingError if no allocation has a schedule.
    """
    from tilewright.pipeline.stages.base import Control

    given = descriptions_of_run(cns, costs, hardware, workload, mapping, network_options)
    folder = None if output is None else Path(output)
    place = Path(exports) if exports is not None else (folder or Path()) / EXPORTS
    return _allocated(given, cns, costs, search, settings, single_core, strict, folder, place, pipeline, Control())


def _allocated(
    given: "Descriptions | None",
    cns: "FilePath | CnProblem | None",
    costs: "FilePath | CostedCnProblem",
    search: Given[AllocationOptions],
    settings: Given[ScheduleSettings],
    single_core: bool,
    strict: bool,
    output: Path | None,
    exports: Path | None,
    pipeline: PipelineSource,
    control: "Control",
) -> "MultiCoreResult":
    """Result of the search. If the folder `output` is given, the result is also written to it. Raises InputError for
    wrong input, and if stages write files but no folder for these files is known.
    """
    from tilewright.pipeline.stages.multi.inputs import read_inputs
    from tilewright.pipeline.stages.multi.result import MultiCoreResult

    told = Problems()
    asked, chosen = told.attempt(search), told.attempt(settings)
    stages = told.attempt(stages_of_search, pipeline, asked, chosen, exports) if asked and chosen else None
    inputs = told.attempt(read_inputs, given, cns, costs, prefetched(chosen, pipeline))
    told.finish()
    assert asked is not None
    assert stages is not None
    assert inputs is not None
    assert chosen is not None
    unused = [*unused_options(stages, search, settings), *chosen.unused_properties(inputs.descriptions.accelerator)]
    notices = [*inputs.descriptions.notices, *unused]
    refuse_unused(notices, strict)
    control.on_notices(notices)
    if output:
        make_folder(output)  # a folder that cannot be written is an error before the search, not after it
    placed = replace(control, threads=asked.job_count, exports=exports or Path(EXPORTS))
    found = replace(stages.result(inputs, MultiCoreResult, placed), single_core=single_core)
    if output:
        settings_stated = found.problem.settings.stated()
        options = {key: value for key, value in vars(asked).items() if key != "jobs"} | settings_stated
        stated = {**stages.stated(options), "single_core": single_core}
        made_by = provenance("allocate", input_digests(inputs, cns, costs), stated)
        _write(output, found, with_unused(made_by, unused))
    return found


def _write(folder: Path, found: "MultiCoreResult", made_by: JsonObject) -> None:
    from tilewright.multicore.allocation.result import SCHEMA

    texts = texts_of(found)
    for name, text in texts.items():
        write_atomically(folder / name, text)
    beside = {name: digest_of_bytes(text.encode()) for name, text in texts.items()}
    write_document(folder / ALLOCATION, SCHEMA, found.document, {**made_by, FILES_BESIDE: beside})


def texts_of(found: "MultiCoreResult") -> dict[str, str]:
    """Contents of the files that are written next to the allocation, by file name."""
    return {
        GENERATIONS: _csv_of_generations(found.allocation),
        PARETO: _csv_of_front(found.document),
        FIXED_MAPPING: found.mapping_text(),
    }


def stages_of_search(
    pipeline: PipelineSource, search: AllocationOptions, settings: ScheduleSettings, exports: Path | None
) -> "Slice":
    """Stages that search the allocation. Raises InputError if a stage writes files, but `exports` is None."""
    from tilewright.pipeline.stages.multi.allocation import InterCoreMapping
    from tilewright.search.options import CnSearchOptions

    of_run = {**search.as_dict(), **settings.as_dict()}
    stages = read_slice("allocate", InterCoreMapping, pipeline, search.part(CnSearchOptions), of_run)
    if stages.exports and exports is None:
        raise InputError([Problem("is needed, because a stage of the pipeline writes files", path="output")])
    return stages


def _csv_of_generations(result: "AllocationResult") -> str:
    from tilewright.multicore.allocation.result import generation_table

    return csv_text(generation_table(result))


def _csv_of_front(document: dict[str, Any]) -> str:
    """CSV text with one row for each point of the Pareto front of allocations. The column `cores` has one core id for
    each part of a layer. The parts have the same order as in the list `allocation` of the document.
    """
    return csv_text([{**row, "cores": " ".join(map(str, row["cores"]))} for row in document["front"]])


def _end_text(reason: str) -> str:
    """Phrase that says how a search for an allocation ended. `reason` is the value of its field `stopped_by`."""
    words = {
        "generations": "ended after the last generation",
        "everything": "ended because all were evaluated",
        "interrupted": "interrupted by Ctrl-C",
        "time_budget": "ended by the time budget",
        "proven": "ended by a proof of the optimum",
        "effort": "ended by the limit of the effort",
        "proposals": "ended after all proposals",
    }
    return words.get(reason, f"ended by: {reason.replace('_', ' ')}")


def _proof_text(proof: JsonObject) -> str:
    """Line on the proof: the allocation is proven to be the best, or a gap remains."""
    if proof["is_proven"]:
        return f"proven to be the best of {ALLOWED_ALLOCATIONS}: {proof['rule']}"
    return (
        f"not proven to be the best: the best of {ALLOWED_ALLOCATIONS} can be at most {proof['gap']:.1%} better than"
        " this one"
    )
