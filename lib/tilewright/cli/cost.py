"""`tilewright cost`: what the computation nodes of a run cost on one core."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.artifacts.canonical import make_folder
from tilewright.artifacts.codec import encode
from tilewright.artifacts.envelope import read_artifact
from tilewright.artifacts.provenance import provenance
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.multi_slices import read_slice, slice_option
from tilewright.cli.options import (
    FILE,
    common_options,
    echo_json,
    echo_notices,
    network_options,
    store_options,
)
from tilewright.cli.parameter_options import Given, parameter_options
from tilewright.cli.run_inputs import system_descriptions
from tilewright.errors import Problems
from tilewright.search.options import CnSearchOptions
from tilewright.steps import CN_COLUMNS, CN_GRAPH
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.fusion.graph import CnGraph
    from tilewright.scheduling.core_costs import CoreCostRow
    from tilewright.stages.multi.problem import SystemProblem


@click.command()
@system_descriptions
@click.option("--core", required=True, metavar="NAME", help="Core file of it, by its name without folder and suffix.")
@click.option("--cns", required=True, type=FILE, metavar="FOLDER", help="Folder with the CN graph of the network.")
@click.option("-o", "--output", type=FILE, help="Artifact to write (cost/NAME.jsonl).")
@parameter_options(CnSearchOptions, "options")
@slice_option
@network_options
@store_options
@common_options
def command(
    hardware: Path,
    core: str,
    cns: Path,
    workload: Path,
    mapping: Path,
    output: Path | None,
    options: Given[CnSearchOptions],
    pipeline: str,
    network_options: NetworkOptions,
    threads: int,
    store: Path,
    no_store: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Cost every class of computation nodes on one core of an accelerator.

    Example: tilewright cost --hardware config/hardware/multi/quad_core.yaml --core k16_c16 --cns out
    --workload config/workload/resnet18.onnx --mapping config/mapping/multi/quad_core.yaml -o out/cost/k16_c16.jsonl
    """
    from tilewright.scheduling.core_costs import write_core_costs
    from tilewright.search.store import Store
    from tilewright.stages.base import Control
    from tilewright.stages.multi.costs import IntraCoreMapping, core_costs, cost_model
    from tilewright.stages.multi.cut_lanes import cut_lanes_notices_of_cns
    from tilewright.stages.multi.items import CnProblem

    told = Problems()
    chosen = told.attempt(options)
    stages = told.attempt(read_slice, "cost", IntraCoreMapping, pipeline, chosen)
    read = told.attempt(_read, hardware, workload, mapping, cns, core, network_options)
    told.finish()
    assert chosen is not None
    assert stages is not None
    assert read is not None
    described, graph = read
    cut = cut_lanes_notices_of_cns(described, graph, core)
    echo_notices([*described.notices, *cut])
    if output:
        make_folder(output.parent)  # a place that cannot be written is told before the search, not after it
    finished: list[object] = []
    kept = None if no_store else Store(store)
    control = Control(threads, kept, show_progress=not as_json, on_record=finished.append)
    try:
        rows = core_costs(stages, CnProblem(described, graph), core, control)
    except KeyboardInterrupt as error:
        raise InterruptedRunError(_kept(len(finished), None if no_store else store)) from error
    if output:
        from tilewright.stages.multi.inputs import cost_inputs

        stated = stages.stated(encode(chosen), model=cost_model(stages))
        digests = cost_inputs(described, core, graph, read_artifact(cns / CN_GRAPH).digest)
        write_core_costs(output, rows, provenance("cost", digests, stated))
    _show(core, graph, rows, output, verbose, as_json)


def _read(
    hardware: Path, workload: Path, mapping: Path, cns: Path, core: str, options: NetworkOptions
) -> "tuple[SystemProblem, CnGraph]":
    """The descriptions and the CN graph. Raises InputError with everything that is wrong with them or the core."""
    from tilewright.fusion.graph import read_cn_graph
    from tilewright.stages.multi.core_mapping import unknown_core_file
    from tilewright.stages.multi.inputs import graph_problems, read_descriptions
    from tilewright.stages.preflight.cores import dataflow_problems
    from tilewright.stages.preflight.needs import offchip_problems

    told = Problems()
    described = told.attempt(read_descriptions, hardware, workload, mapping, options)
    graph = told.attempt(read_cn_graph, cns / CN_GRAPH, cns / CN_COLUMNS)
    if described is not None:
        told.found += [*offchip_problems(described), *dataflow_problems(described)]
        if core not in described.accelerator.distinct_cores:
            told.found.append(unknown_core_file(described.accelerator, core))
        if graph is not None:
            told.found += graph_problems(graph, described.workload, str(cns / CN_GRAPH))
    told.finish()
    assert described is not None
    assert graph is not None
    return described, graph


def _show(
    core: str,
    graph: "CnGraph",
    rows: "Sequence[CoreCostRow]",
    output: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    if as_json:
        echo_json({"core": core, "rows": [encode(row) for row in rows]})
        return
    able = sum(row.can_run for row in rows)
    streaming = sum(bool(row.streams) for row in rows)
    click.echo(
        f"{graph.network} on {core}: {able} of {len(rows)} classes of computation nodes can run"
        + (f", {streaming} of them stream operands from the off-chip memory" if streaming else "")
    )
    if verbose or not output:
        from tilewright.report.multi.cost_table import cost_table, cost_table_text

        click.echo(cost_table_text(cost_table({core: rows}, [layer.name for layer in graph.layers])))


def _kept(count: int, store: Path | None) -> str:
    if store is None:
        return "nothing was written"
    return f"{count} finished mappings are kept in {store}; the same command goes on from there"
