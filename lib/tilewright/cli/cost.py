"""`tilewright cost`: costs of all computation nodes of a network on one core."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.envelope import provenance
from tilewright.base.artifacts.files import FilePath, make_folder
from tilewright.base.errors import Problems, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import cost_table
from tilewright.base.unused import refuse_unused, with_unused
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import PipelineSource, echo_json, network_keywords
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, store_of
from tilewright.cli.run_inputs import given_descriptions, read_slice, slice_option, unused_options
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import MAPPING_FILE, NETWORK_FILE, SYSTEM_FILE, Help, Tell, verb
from tilewright.search.options import CnSearchOptions, CoreSearchOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem
    from tilewright.search.store import Store


def _costed_or_interrupted(
    cns: Path,
    search: Given[CnSearchOptions],
    hardware: Path,
    workload: Path,
    mapping: Path,
    core: str,
    output: Path | None,
    strict: bool,
    pipeline: str,
    network_options: NetworkOptions,
    jobs: int,
    store: Path | None,
    tell: Tell,
    show_progress: bool,
) -> "CostedCnProblem":
    """Costs of the CNs. If the user interrupts the search, raises InterruptedRunError. If a `store` is given, the
    message says how many mappings it keeps.
    """
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions

    finished: list[object] = []
    control = Control(jobs, store_of(store), show_progress=show_progress, on_record=finished.append, on_notices=tell)
    given = Descriptions(hardware, workload, mapping, network_options)
    try:
        return _costed(given, cns, core, search, strict, output, pipeline, control)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(_kept(len(finished), store)) from error


def _show(
    found: "CostedCnProblem",
    core: str,
    output: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    graph, rows = found.graph, found.costs[core]
    if as_json:
        echo_json({"core": core, "rows": [encode(row) for row in rows]})
        return
    able = sum(row.can_run for row in rows)
    streaming = sum(bool(row.streams) for row in rows)
    stream = "streams" if streaming == 1 else "stream"
    echo(
        f"{graph.network} on {core}: {able} of {len(rows)} classes of computation nodes can run"
        + (f", {streaming} of them {stream} operands from the off-chip memory" if streaming else "")
    )
    if verbose or not output:
        from tilewright.results.multi import cn_tables as tables

        echo_text(
            tables.cost_table_text(tables.cost_table({core: rows}, [layer.name for layer in graph.layers])), nl=True
        )


@verb(
    """Compute the costs of all computation nodes of a network on one core of an accelerator. Nodes that have equal
    costs form a class, and the costs are computed once for each class.

    Example: tilewright cost --hardware config/hardware/multi/quad_core.yaml --core k16_c16 --cns out --workload
    config/workload/resnet18.onnx --mapping config/mapping/multi/quad_core.yaml -o out/cost/k16_c16.jsonl
    """,
    run=_costed_or_interrupted,
    show=_show,
    order="hardware workload mapping core cns output search",
    shared={"pipeline": slice_option},
)
@network_keywords
@parameter_keywords(search=CnSearchOptions)
def cost(
    cns: Annotated[
        "FilePath | CnProblem",
        Help("Folder with the CN graph of the network.", metavar="FOLDER"),
    ],
    options: CoreSearchOptions | None = None,
    *,
    search: Named[CnSearchOptions],
    hardware: Annotated["AcceleratorSource | None", SYSTEM_FILE] = None,
    workload: Annotated["WorkloadSource | None", NETWORK_FILE] = None,
    mapping: Annotated["MappingSource | None", MAPPING_FILE] = None,
    core: Annotated[
        str, Help("Core file of the accelerator: its name without folder and suffix.", metavar="NAME", is_required=True)
    ] = "",
    output: Annotated[FilePath | None, Help("File for the cost table (cost/NAME.jsonl).")] = None,
    strict: bool = False,
    pipeline: PipelineSource = None,
    network_options: NetworkOptions | None = None,
    jobs: int = 1,
    store: "FilePath | Store | None" = None,
) -> "CostedCnProblem":
    """Costs of the CNs on one core file, or on all core files.

    Options given by name override those of `options`. `cns` is the result of the function `cns`, or the folder that
    this function wrote. If it is a folder, `hardware`, `workload` and `mapping` are needed too. `core` is the name of a
    core file without folder and suffix, or '' for all cores of the accelerator; `allocate` needs the costs on all
    cores. `output` is the file for the cost table of the core, or the folder for the tables of all cores. Without a
    `store`, results are not kept for later searches. With `strict`, input without effect is an error. Raises
    InputError for wrong options and stages, and for an unknown core.
    """
    from tilewright.pipeline.stages.base import Control

    given = given_descriptions(cns, hardware, workload, mapping, network_options)
    place, control = None if output is None else Path(output), Control(jobs, store_of(store))
    return _costed(given, cns, core, search.over(options), strict, place, pipeline, control)


def _costed(
    given: "Descriptions | None",
    cns: "FilePath | CnProblem",
    core: str,
    options: Given[CnSearchOptions],
    strict: bool,
    output: Path | None,
    pipeline: PipelineSource,
    control: "Control",
) -> "CostedCnProblem":
    """Costs of the CNs. If `output` is given, they are also written to it. Raises InputError with all errors."""
    from tilewright.pipeline.stages.multi.costs import IntraCoreMapping, costed, lanes_notices_of_cns

    told = Problems()
    chosen = told.attempt(options)
    stages = told.attempt(read_slice, "cost", IntraCoreMapping, pipeline, chosen)
    problem = told.attempt(_read, given, cns, core)
    told.finish()
    assert chosen is not None
    assert stages is not None
    assert problem is not None
    described, cores = problem.descriptions, problem.wanted_core_files
    cut = [notice for name in cores for notice in lanes_notices_of_cns(described, problem.graph, name, stages)]
    unused = unused_options(stages, options)
    notices = [*described.notices, *cut, *unused]
    refuse_unused(notices, strict)
    control.on_notices(notices)
    files = {} if output is None else {name: output if core else cost_table(output, name) for name in cores}
    for file in files.values():
        make_folder(file.parent)  # a folder that cannot be written is an error before the search, not after
    found = costed(stages, problem, control)
    if output:
        _write(files, cns, problem, found, stages.stated(encode(chosen), model=found.cost_model), unused)
    return found


def _write(
    files: dict[str, Path],
    cns: "FilePath | CnProblem",
    problem: "CnProblem",
    found: "CostedCnProblem",
    stated: JsonObject,
    unused: Sequence[str],
) -> None:
    from tilewright.multicore.scheduling.core_costs import write_core_costs
    from tilewright.pipeline.stages.multi.inputs import cost_inputs, graph_digest

    digest = graph_digest(cns, problem.graph)
    for name, file in files.items():
        digests = cost_inputs(problem.descriptions, name, problem.graph, digest)
        write_core_costs(file, found.costs[name], with_unused(provenance("cost", digests, stated), unused))


def _read(given: "Descriptions | None", cns: "FilePath | CnProblem", core: str) -> "CnProblem":
    """Network cut into CNs, for the core file `core`; '' means all core files. Raises InputError with all errors of the
    input files, the CN graph and the name of the core file.
    """
    from tilewright.pipeline.stages.multi.core_mapping import unknown_core_file
    from tilewright.pipeline.stages.multi.inputs import cns_problems, read_cns
    from tilewright.pipeline.stages.multi.items import CnProblem
    from tilewright.pipeline.stages.preflight.cores import dataflow_problems
    from tilewright.pipeline.stages.preflight.needs import offchip_problems

    told = Problems()
    described, graph = read_cns(told, given, cns)
    if described is not None:
        told.found += [*offchip_problems(described), *dataflow_problems(described)]
        if core and core not in described.accelerator.distinct_cores:
            told.found.append(unknown_core_file(described.accelerator, core))
        if graph is not None:
            told.found += cns_problems(cns, described, graph)
    told.finish()
    assert described is not None
    assert graph is not None
    known = cns.core_files if isinstance(cns, CnProblem) else ()
    return CnProblem(described, graph, (core,) if core else known)


def _kept(count: int, store: Path | None) -> str:
    if store is None:
        return "nothing was written"
    return f"results are kept in {store} ({count_of(count, 'mapping')}); run the same command again to continue"
