"""`tilewright cns`: cut of a network into computation nodes, as a graph with the data flow between the nodes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.envelope import provenance
from tilewright.base.artifacts.files import FilePath, make_folder
from tilewright.base.errors import Problems, Unused
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import CN_COLUMNS, CN_GRAPH
from tilewright.base.unused import refuse_unused, to_tell, unused_in, with_unused
from tilewright.cli.options import (
    UNCOSTED,
    PipelineSource,
    echo_json,
    is_given,
    network_keywords,
)
from tilewright.cli.parameter_options import Given, Named, parameter_keywords
from tilewright.cli.run_inputs import planned_slice, read_slice, unused_options
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import MAPPING_FILE, NETWORK_FILE, SYSTEM_FILE, Help, Tell, silent, verb
from tilewright.multicore.nodes.tiling_options import CUTTING, TilingOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.multi.items import CnProblem, SystemProblem

_MOST_NOTICES = 20
"""Limit on the notices on the tiling that are printed without -v. The artifact has all notices."""


def _cut(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    tiling: Given[TilingOptions],
    output: FilePath | None,
    pipeline: PipelineSource,
    network_options: NetworkOptions | None,
    strict: bool,
    verbose: bool = False,
    tell: Tell = silent,
) -> "tuple[SystemProblem, CnProblem]":
    """Pair (input files that were read, network cut into CNs). If `output` is given, the CN graph is also written to
    this folder. Raises InputError with all errors of the input.
    """
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.items import CnProblem
    from tilewright.pipeline.stages.multi.slices import Slice
    from tilewright.pipeline.stages.multi.tiling import GenerateCNWorkloadHybrid
    from tilewright.pipeline.stages.preflight.network import check_cn_graph, read_checked

    def tell_some(notices: Sequence[str]) -> None:
        tell(_some(notices, verbose))

    told = Problems()
    given = Descriptions(hardware, workload, mapping, network_options or NetworkOptions())
    options, stages = told.attempt(tiling), None
    if options is not None:
        stages = told.attempt(read_slice, "cns", GenerateCNWorkloadHybrid, pipeline, settings=options.as_dict())
    # If some options are wrong, the network is cut with the correct options. With a pipeline of the user, only the
    # stages of the pipeline decide how the network is cut.
    cutting = None if is_given(pipeline) else options or tiling.sound(CUTTING)
    problem = told.attempt(read_checked, given, cutting)
    if problem is not None and strict:
        told.attempt(problem.check_complete)
    cut = None
    if problem is not None and stages is not None:
        cut = told.attempt(Slice.result, stages, problem, CnProblem, Control(on_notices=tell_some))
    elif problem is not None:  # so that problems of the graph are reported together with those of the stages
        told.attempt(check_cn_graph, problem, cutting, tell_some)
    notices: list[str] = [] if options is None or stages is None else [*unused_options(stages, tiling)]
    notices += [] if problem is None else problem.notices
    notices += [] if cut is None else [*cut.notices, *cut.graph.notices]
    told.attempt(refuse_unused, notices, strict)
    told.finish()
    assert problem is not None
    assert options is not None
    assert stages is not None
    assert cut is not None
    tell_some(to_tell(notices, strict))
    if output:
        _write(Path(output), problem, stages.stated(options.stated()), cut.graph, notices)
    return problem, replace(cut, notices=tuple(notices))


def _show(made: "tuple[SystemProblem, CnProblem]", output: Path | None, verbose: bool, as_json: bool) -> None:
    from tilewright.results.multi.cn_tables import cn_summary, cn_table_text
    from tilewright.results.run_text import coverage_lines

    problem, cut = made
    graph = cut.graph
    if as_json:
        echo_json(with_unused(cn_summary(graph), cut.notices))
        return
    echo(
        f"{graph.network} on {problem.accelerator.name}: {_count(graph.cn_count, 'computation node')} of"
        f" {_count(len(graph.layers), 'layer')} in {_count(len(graph.stacks), 'stack')},"
        f" {_count(len(graph.shapes), 'class', 'classes')} of equal cost,"
        f" {_count(len(graph.edge_source), 'edge')}, {graph.data_edge_count:,} of them with data"
    )
    for line in coverage_lines(problem.coverage):
        echo(line)
    if verbose or not output:
        echo_text(cn_table_text(graph), nl=True)


@verb(
    """Cut a network into computation nodes (CNs). All errors of hardware, network and mapping are reported at once.

    Example: tilewright cns --hardware config/hardware/multi/quad_core.yaml --workload config/workload/resnet18.onnx
    --mapping config/mapping/multi/quad_core.yaml --cn-define-mode 1 --hint-loops '[["OY", "all"]]' -o out
    """,
    run=_cut,
    show=_show,
    order="hardware workload mapping output",
    strict=UNCOSTED,
    shared={"pipeline": planned_slice},
)
@network_keywords
@parameter_keywords(tiling=TilingOptions)
def cns(
    workload: Annotated["WorkloadSource", NETWORK_FILE],
    hardware: Annotated["AcceleratorSource", SYSTEM_FILE],
    mapping: Annotated["MappingSource", MAPPING_FILE],
    *,
    tiling: Named[TilingOptions],
    output: Annotated[FilePath | None, Help("Folder for cn_graph.json and cn_graph.npz.", metavar="FOLDER")] = None,
    pipeline: PipelineSource = None,
    network_options: NetworkOptions | None = None,
    strict: bool = False,
) -> "CnProblem":
    """Network cut into computation nodes (CNs). `output` is the folder that the command writes.

    The arguments have the names of the options of the command. Input files can also be objects in memory. With
    `strict`, input without effect is an error, and so is an operator whose costs are not computed. Raises InputError
    with all errors of the input files and of the options.
    """
    return _cut(workload, hardware, mapping, tiling, output, pipeline, network_options, strict)[1]


def _write(
    folder: Path, problem: "SystemProblem", stated: JsonObject, graph: "CnGraph", notices: Sequence[str]
) -> None:
    """Write the CN graph. Notices of unused input are recorded in the provenance, so that they do not change the digest
    of the graph.
    """
    from tilewright.multicore.nodes.graph import write_cn_graph
    from tilewright.pipeline.stages.multi.items import input_digests

    make_folder(folder)
    made_by = provenance("cns", input_digests(problem), stated)
    write_cn_graph(graph, folder / CN_GRAPH, folder / CN_COLUMNS, with_unused(made_by, notices))


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _some(notices: Sequence[str], verbose: bool) -> list[str]:
    told = [notice for notice in dict.fromkeys(notices) if not isinstance(notice, Unused)]
    shown = told if verbose or len(told) <= _MOST_NOTICES else told[:_MOST_NOTICES]
    more = [f"{len(told) - len(shown)} more; -v prints all"] if len(shown) < len(told) else []
    return [*shown, *more, *unused_in(notices)]
