"""`tilewright map`: search for the best mapping of every layer of a network on one core."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import provenance
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.artifacts.folder_lock import holding
from tilewright.base.errors import InputError, Problem, Problems, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import energy_notices
from tilewright.base.steps import EXPORTS, FRONT_FILE, FRONT_TABLE, LAYERS, SUMMARY
from tilewright.base.units import energy_text
from tilewright.base.unused import refuse_unused, to_tell, with_unused
from tilewright.cli.csv_text import csv_text
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import (
    UNCOSTED,
    PipelineSource,
    echo_json,
    is_given,
    network_keywords,
    read_pipeline,
)
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, store_of
from tilewright.cli.remembered import keep_descriptions
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import HARDWARE_FILE, MAPPING_FILE, NETWORK_FILE, Help, Tell, verb
from tilewright.search.options import ZIGZAG, MapOptions, SearchOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
    from tilewright.pipeline.stages.items import MappedWorkload
    from tilewright.pipeline.stages.pipeline import Pipeline
    from tilewright.search.store import Store

FOLDED = (
    "the option exploit_data_locality is off, because a layer of this network stands for several equal blocks."
    " With `written_out: true` in the workload file, each block has separate layers, and data can stay on chip between"
    " layers"
)
"""Notice for a network in which one layer stands for several equal blocks: `exploit_data_locality` is off by default.
"""


def _searched(
    workload: Path,
    hardware: Path,
    mapping: Path,
    search: Given[MapOptions],
    written: Sequence[Path],
    output: Path | None,
    pipeline: str,
    network_options: NetworkOptions,
    strict: bool,
    jobs: int,
    store: Path | None,
    tell: Tell,
    show_progress: bool,
) -> "MappedWorkload":
    """Result of the search. If the user interrupts the search, the error message says how many results are kept."""
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions

    finished: list[Any] = []
    exports = output / EXPORTS if output else None
    control = Control(jobs, store_of(store), show_progress=show_progress, on_record=finished.append, on_notices=tell)
    given = Descriptions(hardware, workload, mapping, network_options)
    try:
        return _mapped(given, search, written, output, exports, pipeline, strict, control)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(_kept(len(finished), store)) from error


def _show(mapped: "MappedWorkload", output: Path | None, verbose: bool, as_json: bool) -> None:
    if as_json:
        from tilewright.cost.record import record_row

        echo_json({"summary": mapped.summary, "records": list(map(record_row, mapped.records))})
        return
    from tilewright.results.error_bars.bars_text import bar_lines, no_bar_lines
    from tilewright.results.front_text import front_lines
    from tilewright.results.proof_text import proof_lines
    from tilewright.results.run_text import (
        alternative_lines,
        bits_lines,
        coverage_lines,
        distinct_text,
        locality_lines,
        plug_in_lines,
        power_lines,
        range_lines,
    )

    summary = mapped.summary
    echo(
        f"{summary['workload']} on {summary['hardware']}: {energy_text(summary[ENERGY_PJ])},"
        f" {summary[LATENCY_CYCLES]:,.0f} cycles ({count_of(summary['layers'], 'layer')},"
        f" {distinct_text(summary)},"
        f" {_tried(mapped)})"
    )
    told = (
        alternative_lines,
        proof_lines,
        front_lines,
        power_lines,
        bar_lines,
        no_bar_lines,
        bits_lines,
        coverage_lines,
        locality_lines,
        range_lines,
        plug_in_lines,
    )
    for line in (line for lines in told for line in lines(summary)):
        echo(line)
    if verbose or not output:
        from tilewright.results.tables import layers_text

        echo_text(layers_text(mapped.records, mapped.summary), nl=True)


def _tried(mapped: "MappedWorkload") -> str:
    """Text on the amount of work of the search.

    For branch and bound, the text has the number of partial loop orders, because this search evaluates only the best
    mapping of a layer completely.
    """
    partial_orders = sum(record.search.get("nodes", 0) for record in mapped.records)
    if partial_orders:
        return f"{partial_orders:,} partial loop orders searched"
    return f"{count_of(mapped.summary['evaluations'], 'mapping')} evaluated"


@verb(
    """Find the best mapping of every layer of a network on one core.

    Example: tilewright map --hardware config/hardware/zigzag/tpu_like.yaml --workload config/workload/resnet18.onnx
    --mapping config/mapping/zigzag/tpu_like.yaml -o out
    """,
    run=_searched,
    show=_show,
    order="hardware workload mapping written output",
    strict=UNCOSTED,
)
@network_keywords
@parameter_keywords(search=MapOptions)
def map_workload(
    workload: Annotated["WorkloadSource", NETWORK_FILE],
    hardware: Annotated["AcceleratorSource", HARDWARE_FILE],
    mapping: Annotated["MappingSource", MAPPING_FILE],
    options: SearchOptions | None = None,
    *,
    search: Named[MapOptions],
    written: Annotated[
        Sequence[FilePath],
        Help(
            "File from which an artifact was made, for line numbers in messages. The option can be given several times."
        ),
    ] = (),
    output: Annotated[FilePath | None, Help(f"Folder for {LAYERS}, {SUMMARY}, {EXPORTS}.")] = None,
    pipeline: "PipelineSource | Pipeline" = None,
    network_options: NetworkOptions | None = None,
    strict: bool = False,
    jobs: int = 1,
    store: "FilePath | Store | None" = None,
    exports: FilePath | None = None,
) -> "MappedWorkload":
    """Best mapping of every layer of a network on the core of `hardware`: records and a summary.

    Options are given by name; they override those of the object `options`. The other arguments are options of the
    command. The parts of `network_options` can also be given by name (`dims={"sequence": 128}`). `output` is the folder
    that the command writes. `pipeline` is a list of stages or a list of edits of the default pipeline, as in a
    configuration, or a file with this list. Stages can also be classes or objects. `exports` is the folder for files of
    stages; the default is a subfolder of `output`. Without a `store`, results are not kept for later searches. With
    `strict`, work without costs and input without effect are errors. Raises InputError for wrong input files and
    pipelines, and MappingError if a layer has no mapping that fits.
    """
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions

    folder = None if output is None else Path(output)
    place = Path(exports) if exports is not None else (folder or Path()) / EXPORTS
    given = Descriptions(hardware, workload, mapping, network_options or NetworkOptions())
    control = Control(jobs, store_of(store))
    files = [Path(file) for file in written]
    return _mapped(given, search.over(options), files, folder, place, pipeline, strict, control)


def _mapped(
    given: "Descriptions",
    options: Given[MapOptions],
    written: Sequence[Path],
    output: Path | None,
    exports: Path | None,
    pipeline: "PipelineSource | Pipeline",
    strict: bool,
    control: "Control",
) -> "MappedWorkload":
    """Result of the search. If the folder `output` is given, the result is also written to it. Raises InputError for
    wrong input, and if stages write files but no folder for these files is known.
    """
    from tilewright.pipeline.stages import run as engine
    from tilewright.pipeline.stages.notices import lanes_notices, written_files

    chosen = (replace(options, values={"preset": ZIGZAG, **options.values}) if is_given(pipeline) else options)()
    stages = pipeline_of(pipeline, chosen, given.workload)
    if stages.exports and exports is None:
        raise InputError([Problem("is needed, because a stage of the pipeline writes files", path="output")])
    files, repeated = written_files(written)
    given = replace(given, written=files)
    problem: NetworkProblem = next(stages.parsers().run(given))
    if chosen.exploit_data_locality and "exploit_data_locality" not in options.values and problem.workload.is_folded:
        chosen = replace(chosen, exploit_data_locality=False)
        stages = pipeline_of(pipeline, chosen, given.workload)
        repeated.append(FOLDED)
    notices = [*repeated, *problem.notices, *lanes_notices(problem, stages, given.mapping_file)]
    notices += [*options.repeated, *stages.unused(options.values, chosen)] if is_given(pipeline) else options.unused()
    control.on_notices(to_tell(notices, strict))
    if strict:
        refused = Problems()
        refused.attempt(problem.check_complete)
        refused.attempt(refuse_unused, notices)
        refused.finish()
    problem.check_layers()
    _check_choice(chosen, problem, is_given(pipeline))
    _check_error_bars(chosen, problem)
    if output:
        make_folder(output)  # a folder that cannot be written is an error before the search, not after
    with holding(output) if output else nullcontext():
        mapped = engine.map_problem(problem, stages, replace(control, exports=exports or Path(EXPORTS)))
        if chosen.choice:
            from tilewright.pipeline.stages.front_choice import choose

            mapped = choose(problem, mapped, chosen, stages, control)
        if without_energy := energy_notices(chosen.objective, [mapped.summary[ENERGY_PJ]]):
            refuse_unused(without_energy, strict)
            control.on_notices(without_energy)
            notices += without_energy
        # Line numbers of files behind artifacts are not kept: a new comment in a file would change them, but no result.
        mapped = replace(mapped, summary=with_unused(mapped.summary, notices, with_lines=not written))
        mapped = _with_error_bars(mapped, problem, chosen)
        if output:
            write_run(output, mapped, _made_by(problem, chosen, stages, is_given(pipeline)))
            sources = {HARDWARE: given.hardware, WORKLOAD: given.workload, MAPPING: given.mapping}
            described = problem.accelerator, problem.whole or problem.workload, problem.mapping
            keep_descriptions(output, "map", *described, sources, given.network_options)
    return mapped


def _check_choice(chosen: MapOptions, problem: "NetworkProblem", has_pipeline: bool) -> None:
    """Raise InputError in two cases: the options choose a point of the Pareto front although a pipeline is given, or
    they set a deadline in ms for a core without a clock frequency.
    """
    if not chosen.choice:
        return
    from tilewright.pipeline.stages.front_choice import check_clock

    if has_pipeline:
        path = next(iter(chosen.choice))
        raise InputError([Problem("has no effect with `pipeline`: remove one of the two options", path=path)])
    check_clock(chosen, problem.core)


def _check_error_bars(chosen: MapOptions, problem: "NetworkProblem") -> None:
    """Raise InputError if the options ask for error bars of an in-memory array, whose errors are not measured."""
    if chosen.error_bars and problem.core.operational_array.is_in_memory:
        message = f"no errors of in-memory arrays are measured, and core '{problem.core.name}' has such an array"
        raise InputError([Problem(message, path="error_bars", value=chosen.error_bars)])


def _with_error_bars(mapped: "MappedWorkload", problem: "NetworkProblem", chosen: MapOptions) -> "MappedWorkload":
    """Result with error bars in its summary, if the options ask for them."""
    if not chosen.error_bars:
        return mapped
    from tilewright.results.error_bars.bars import bars_of_records
    from tilewright.results.error_bars.bars_text import ERROR_BARS

    hardware = content_digest(encode(problem.accelerator))
    bars = bars_of_records(mapped.records, mapped.summary, hardware, chosen.error_bars)
    return replace(mapped, summary={**mapped.summary, ERROR_BARS: bars})


def pipeline_of(given: "PipelineSource | Pipeline", options: SearchOptions, workload: Any) -> "Pipeline":
    """Pipeline of the user or, without one, the default pipeline. The kind of the workload decides the default parser.
    A `Pipeline` object is returned unchanged.
    """
    from tilewright.pipeline.stages.pipeline import Pipeline
    from tilewright.workload.source import LAYERS as LAYER_LIST
    from tilewright.workload.source import kind_of_source

    if isinstance(given, Pipeline):
        return given
    is_onnx, text = kind_of_source(workload) != LAYER_LIST, read_pipeline(given)
    if text is None:
        return Pipeline.build(None, options, onnx=is_onnx)
    return Pipeline.build(text.value, options, onnx=is_onnx, documents=text.documents, prefix=text.prefix)


def _made_by(problem: "NetworkProblem", options: MapOptions, stages: "Pipeline", given: bool) -> JsonObject:
    """Provenance of the results. If the user gave a pipeline, each of its stages is recorded."""
    told = encode(options.part(SearchOptions))  # without the preset, because all values are recorded
    if options.choice:
        told["choice"] = options.choice
    if given:
        told["pipeline"] = stated_pipeline(stages)
    return provenance("map", input_digests(problem), told)


def input_digests(problem: "NetworkProblem") -> dict[str, str]:
    """Digests of hardware, workload and mapping of a run, for provenance."""
    from tilewright.mapping.runnable import without_layers_left_out
    from tilewright.workload.network_identity import identity_of_network

    return {
        "hardware": content_digest(encode(problem.accelerator)),
        "workload": identity_of_network(without_layers_left_out(problem.workload)),
        "mapping": content_digest(encode(problem.mapping)),
    }


def stated_pipeline(stages: "Pipeline") -> list[JsonObject]:
    """Stages that search mappings, with their parameters and the digests of user code, for provenance."""
    from tilewright.pipeline.stages.user_stages import identity_of

    return [identity_of(stage) for stage in stages.search().stages]


def write_run(directory: Path, mapped: "MappedWorkload", made_by: JsonObject) -> None:
    """Write the records and the summary of a run into a folder."""
    from tilewright.base.artifacts.envelope import write_document, write_rows
    from tilewright.cost.record import record_row

    write_rows(directory / LAYERS, "tilewright/layers", map(record_row, mapped.records), made_by)
    write_document(directory / SUMMARY, "tilewright/single-summary", mapped.summary, made_by)
    from tilewright.results.front_text import front_document, front_rows

    rows = front_rows(mapped.summary)
    if not rows:
        for name in (FRONT_TABLE, FRONT_FILE):  # of an earlier run with a front
            (directory / name).unlink(missing_ok=True)
        return
    write_atomically(directory / FRONT_TABLE, csv_text(rows))
    write_document(directory / FRONT_FILE, "tilewright/front", front_document(mapped.summary, mapped.records), made_by)


def _kept(count: int, store: Path | None) -> str:
    if store is None:
        return "nothing was written"
    return f"results are kept in {store} ({count_of(count, 'finished layer')}); run the same command again to continue"
