"""`tilewright map`: the best mapping of every layer of a network on one core."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.artifacts.canonical import make_folder
from tilewright.artifacts.codec import encode
from tilewright.artifacts.digests import content_digest
from tilewright.artifacts.envelope import write_document, write_rows
from tilewright.artifacts.provenance import provenance
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import (
    DEFAULT_STORE,
    FILE,
    common_options,
    dims_option,
    echo_json,
    parse_dims,
    parse_lpf_limit,
    search_options,
)
from tilewright.cli.runs import LAYERS_FILE, SUMMARY_FILE

if TYPE_CHECKING:
    from tilewright.search.network import MappedWorkload


@click.command()
@click.option("--hardware", required=True, type=FILE, help="Hardware file or artifact.")
@click.option("--workload", required=True, type=FILE, help="ONNX or YAML file, or artifact.")
@click.option("--mapping", required=True, type=FILE, help="Mapping file or artifact.")
@click.option("-o", "--output", type=FILE, help=f"Folder for {LAYERS_FILE} and {SUMMARY_FILE}.")
@search_options
@dims_option
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Never changes a result.")
@click.option("--store", type=FILE, default=DEFAULT_STORE, show_default=True, help="Folder of earlier results.")
@click.option("--no-store", is_flag=True, help="Neither read nor write earlier results; the output is the same.")
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path,
    output: Path | None,
    objective: str,
    model: str,
    lpf_limit: str,
    temporal_mapping_type: str,
    nb_spatial_mappings_generated: int,
    enable_mix_spatial_mapping: bool,
    dims: tuple[str, ...],
    threads: int,
    store: Path,
    no_store: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Find the best mapping of every layer of a network on one core.

    Example: tilewright map --hardware config/hardware/tpu_like.yaml --workload config/workload/resnet18.onnx
    --mapping config/mapping/tpu_like.yaml -o out
    """
    from tilewright.search import network as engine
    from tilewright.search.options import SearchOptions
    from tilewright.search.store import Store
    from tilewright.sources import parse_inputs, single_core

    options = SearchOptions(
        objective=objective,
        model=model,
        lpf_limit=parse_lpf_limit(lpf_limit),
        temporal_mapping_type=temporal_mapping_type,
        nb_spatial_mappings_generated=nb_spatial_mappings_generated,
        enable_mix_spatial_mapping=enable_mix_spatial_mapping,
    )
    accelerator, network, constraints = parse_inputs(hardware, workload, mapping, model, parse_dims(dims))
    if output:
        make_folder(output)  # a place that cannot be written is told before the search, not after it
    finished: list[dict[str, Any]] = []
    try:
        mapped = engine.map_workload(
            network,
            single_core(accelerator),
            constraints,
            options,
            threads=threads,
            store=None if no_store else Store(store),
            on_record=finished.append,
            show_progress=not as_json,
        )
    except KeyboardInterrupt as error:
        raise InterruptedRunError(_kept(len(finished), None if no_store else store)) from error
    if output:
        inputs = {
            "hardware": content_digest(encode(accelerator)),
            "workload": content_digest(encode(network)),
            "mapping": content_digest(encode(constraints)),
        }
        made_by = provenance("map", inputs, encode(options))
        write_run(output, mapped, made_by)
    _show(mapped, output, verbose, as_json)


def write_run(directory: Path, mapped: "MappedWorkload", made_by: dict[str, Any]) -> None:
    """Write the records and the summary of a run into a folder."""
    write_rows(directory / LAYERS_FILE, "tilewright/layers", mapped.records, made_by)
    write_document(directory / SUMMARY_FILE, "tilewright/single-summary", mapped.summary, made_by)


def _show(mapped: "MappedWorkload", output: Path | None, verbose: bool, as_json: bool) -> None:
    if as_json:
        echo_json({"summary": mapped.summary, "records": mapped.records})
        return
    summary = mapped.summary
    click.echo(
        f"{summary['workload']} on {summary['core']}: {summary['energy_pj']:.6g} pJ,"
        f" {summary['latency_cycles']:.6g} cycles ({summary['layers']} layers, {summary['distinct_layers']} distinct,"
        f" {summary['evaluations']:,} mappings evaluated)"
    )
    if summary["not_costed"]:
        listed = ", ".join(f"{count} {operator}" for operator, count in summary["not_costed"].items())
        click.echo(f"not costed, only passed through: {listed}")
    if verbose or not output:
        from tilewright.report.tables import layers_text

        click.echo(layers_text(mapped.records, mapped.summary))


def _kept(count: int, store: Path | None) -> str:
    if store is None:
        return "nothing was written"
    return f"{count} finished layers are kept in {store}; the same command goes on from there"
