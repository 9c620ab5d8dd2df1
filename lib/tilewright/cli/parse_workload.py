"""`tilewright parse workload`."""

from pathlib import Path
from typing import Any

import click

from tilewright.artifacts.codec import encode
from tilewright.artifacts.digests import input_digest
from tilewright.artifacts.envelope import write_document
from tilewright.artifacts.files import YAML_SUFFIXES
from tilewright.artifacts.provenance import provenance
from tilewright.cli.options import (
    FILE,
    common_options,
    dims_option,
    echo_json,
    echo_notices,
    model_option,
    parse_dims,
)
from tilewright.workload.graph import Workload


@click.command()
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, help="Artifact to write (workload.json).")
@click.option("--coverage", "coverage_output", type=FILE, help="Coverage artifact to write: what is not costed.")
@click.option("--name", default="", help="Name of the workload; default: the file's stem.")
@dims_option
@model_option
@common_options
def workload(
    file: Path,
    output: Path | None,
    coverage_output: Path | None,
    name: str,
    dims: tuple[str, ...],
    model: str,
    verbose: bool,
    as_json: bool,
) -> None:
    """Read a workload FILE, ONNX or YAML; print its layers and what of it is costed.

    Example: tilewright parse workload config/workload/resnet18.onnx -o workload.json
    """
    parsed, coverage, coverage_text = _read(file, model, name, parse_dims(dims))
    made_by = provenance("parse_workload", {"workload": input_digest(file)}, {"model": model, "dims": list(dims)})
    if output:
        write_document(output, "tilewright/workload", encode(parsed), made_by)
    if coverage_output:
        write_document(coverage_output, "tilewright/coverage", coverage, made_by)
    if as_json:
        echo_json({"workload": encode(parsed), "coverage": coverage})
    elif verbose or not output:
        click.echo(layer_table_text(parsed))
        click.echo("\n" + coverage_text)


def _read(file: Path, model: str, name: str, dims: dict[str, int]) -> tuple[Workload, dict[str, Any], str]:
    from tilewright.profile import profile_by_name
    from tilewright.stages.base import run_stages
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.workload_parsers import ONNXModelParser, WorkloadParser
    from tilewright.workload.onnx.coverage import MODELLED, build_coverage, coverage_table_text

    profile_by_name(model)
    parser = WorkloadParser() if file.suffix in YAML_SUFFIXES else ONNXModelParser(model, name)
    read: Descriptions = next(run_stages((parser,), Descriptions(workload=file, dims=tuple(dims.items()))))
    parsed = read.checked().network
    assert parsed is not None
    echo_notices(list(read.notices))
    coverage = read.coverage
    if coverage is None:
        layers = [node.layer for node in parsed.nodes if node.layer]
        entries = [(layer.operator_type, MODELLED, layer.mac_count) for layer in layers]
        coverage = build_coverage(entries, read.notices)
    return parsed, coverage.to_dict(), coverage_table_text(coverage)


def layer_table_text(workload: Workload) -> str:
    """The layers in execution order with their loop sizes and multiply-accumulates."""
    layers = [node.layer for node in workload.layers_in_order if node.layer]
    width = max((len(layer.name) for layer in layers), default=5)
    lines = [f"{workload.name}: {len(layers)} layers, {sum(layer.mac_count for layer in layers):,} MACs"]
    for layer in layers:
        sizes = " ".join(f"{dimension}={size}" for dimension, size in layer.loop_sizes if size != 1)
        lines.append(f"{layer.name:<{width}}  {layer.operator_type:<8} {layer.mac_count:>15,}  {sizes}")
    return "\n".join(lines)
