"""`tilewright cns`: a network cut into computation nodes, with the data flow between them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.base.artifacts.envelope import provenance
from tilewright.base.artifacts.files import FilePath, make_folder
from tilewright.base.errors import Problems, Unused
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import CN_COLUMNS, CN_GRAPH
from tilewright.base.unused import refuse_unused, to_tell, unused_in, with_unused
from tilewright.cli.options import (
    FILE,
    UNCOSTED,
    PipelineSource,
    common_options,
    echo_json,
    echo_notices,
    is_given,
    network_keywords,
    strict_option,
)
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, parameter_options
from tilewright.cli.planned import plan_option
from tilewright.cli.run_inputs import read_slice, slice_options, system_descriptions, unused_options
from tilewright.cli.terminal import echo, echo_text
from tilewright.multicore.nodes.tiling_options import CUTTING, TilingOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.multicore.nodes.graph import CnGraph
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.items import CnProblem, SystemProblem

_MOST_NOTICES = 20
"""Largest number of notices that are printed without -v; the artifact has all notices of the tiling."""


@click.command()
@system_descriptions
@click.option("-o", "--output", type=FILE, metavar="FOLDER", help="Folder for cn_graph.json and cn_graph.npz.")
@parameter_options(TilingOptions, "tiling")
@plan_option
@slice_options
@strict_option(UNCOSTED)
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path,
    output: Path | None,
    tiling: Given[TilingOptions],
    pipeline: str,
    network_options: NetworkOptions,
    strict: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Cut a network into computation nodes (CNs), and report everything that is wrong with hardware, network and
    mapping.

    Example: tilewright cns --hardware config/hardware/multi/quad_core.yaml --workload config/workload/resnet18.onnx
    --mapping config/mapping/multi/quad_core.yaml --cn-define-mode 1 --hint-loops '[["OY", "all"]]' -o out
    """
    from tilewright.pipeline.stages.descriptions import Descriptions

    def tell(notices: Sequence[str]) -> None:
        _echo_some(notices, verbose)

    given = Descriptions(hardware, workload, mapping, network_options)
    problem, cut = _cut(given, tiling, pipeline, strict, output, tell)
    _show(problem, cut, output, verbose, as_json)


@network_keywords
@parameter_keywords(tiling=TilingOptions)
def cns(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    *,
    tiling: Named[TilingOptions],
    output: FilePath | None = None,
    pipeline: PipelineSource = None,
    network_options: NetworkOptions | None = None,
    strict: bool = False,
) -> "CnProblem":
    """Network cut into computation nodes (CNs); `output` is the folder that the command writes.

    Arguments are those of the command by name, and may be objects in memory. Raises InputError with everything that is
    wrong with the descriptions and the cutting options, and with `strict` for work without costs and for input without
    effect.
    """
    from tilewright.pipeline.stages.descriptions import Descriptions

    given = Descriptions(hardware, workload, mapping, network_options or NetworkOptions())
    return _cut(given, tiling, pipeline, strict, None if output is None else Path(output), lambda notices: None)[1]


def _cut(
    given: "Descriptions",
    tiling: Given[TilingOptions],
    pipeline: PipelineSource,
    strict: bool,
    output: Path | None,
    tell: Callable[[Sequence[str]], None],
) -> "tuple[SystemProblem, CnProblem]":
    """(descriptions that were read, network in CNs), also written if there is an `output`. Raises InputError with
    everything that is wrong.
    """
    from tilewright.pipeline.stages.base import Control
    from tilewright.pipeline.stages.multi.items import CnProblem
    from tilewright.pipeline.stages.multi.slices import Slice
    from tilewright.pipeline.stages.multi.tiling import GenerateCNWorkloadHybrid
    from tilewright.pipeline.stages.preflight.network import check_cn_graph, read_checked

    told = Problems()
    options, stages = told.attempt(tiling), None
    if options is not None:
        stages = told.attempt(read_slice, "cns", GenerateCNWorkloadHybrid, pipeline, settings=options.as_dict())
    # Of options that are wrong, the others still say how the network is cut; of stages of the user's, nothing does.
    cutting = None if is_given(pipeline) else options or tiling.sound(CUTTING)
    problem = told.attempt(read_checked, given, cutting)
    if problem is not None and strict:
        told.attempt(problem.check_complete)
    cut = None
    if problem is not None and stages is not None:
        cut = told.attempt(Slice.result, stages, problem, CnProblem, Control(on_notices=tell))
    elif problem is not None:  # all other problems are told with those of the stages
        told.attempt(check_cn_graph, problem, cutting, tell)
    notices: list[str] = [] if options is None or stages is None else [*unused_options(stages, tiling)]
    notices += [] if problem is None else problem.notices
    notices += [] if cut is None else [*cut.notices, *cut.graph.notices]
    told.attempt(refuse_unused, notices, strict)
    told.finish()
    assert problem is not None
    assert options is not None
    assert stages is not None
    assert cut is not None
    tell(to_tell(notices, strict))
    if output:
        _write(output, problem, stages.stated(options.stated()), cut.graph, notices)
    return problem, replace(cut, notices=tuple(notices))


def _write(
    folder: Path, problem: "SystemProblem", stated: JsonObject, graph: "CnGraph", notices: Sequence[str]
) -> None:
    """Write the graph. Unused input is recorded in the provenance, so that it does not change the digest of the
    graph.
    """
    from tilewright.multicore.nodes.graph import write_cn_graph
    from tilewright.pipeline.stages.multi.items import input_digests

    make_folder(folder)
    made_by = provenance("cns", input_digests(problem), stated)
    write_cn_graph(graph, folder / CN_GRAPH, folder / CN_COLUMNS, with_unused(made_by, notices))


def _show(problem: "SystemProblem", cut: "CnProblem", output: Path | None, verbose: bool, as_json: bool) -> None:
    from tilewright.results.multi.cn_tables import cn_summary, cn_table_text
    from tilewright.results.run_text import coverage_lines

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


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _echo_some(notices: Sequence[str], verbose: bool) -> None:
    told = [notice for notice in dict.fromkeys(notices) if not isinstance(notice, Unused)]
    shown = told if verbose or len(told) <= _MOST_NOTICES else told[:_MOST_NOTICES]
    more = [f"{len(told) - len(shown)} more; -v tells all"] if len(shown) < len(told) else []
    echo_notices([*shown, *more, *unused_in(notices)])
