"""`tilewright evaluate`: the cost of given mappings."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.cli.options import FILE, common_options, network_options
from tilewright.cli.parameter_options import Given, parameter_option
from tilewright.cli.points import Point, read_points
from tilewright.errors import InputError, MappingError, Problem, nearest_name
from tilewright.mapping.constraints import WILDCARD, Mapping
from tilewright.profile import REFERENCE, ModelChoice
from tilewright.search.options import BoundaryParameters, SearchOptions
from tilewright.units import energy_text
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord

OPEN_ORDER = "temporal_ordering leaves loops open; give every loop with its size, or use `tilewright map`"


@click.command()
@click.option("--hardware", required=True, type=FILE, help="Hardware file or artifact.")
@click.option("--workload", required=True, type=FILE, help="ONNX or YAML file, or artifact.")
@click.option("--mapping", type=FILE, help="Mapping file whose entries fix the whole mapping, as export writes.")
@click.option("--points", type=FILE, help="JSON lines: {layer, spatial_mapping, loop_order, ...}; see docs/guide.md.")
@click.option("--layer", "layer_name", default="", help="Only this layer; default: all.")
@parameter_option(BoundaryParameters, "temporal_mapping_type", default=None)
@network_options
@parameter_option(ModelChoice, "model", default=REFERENCE.name)
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path | None,
    points: Path | None,
    layer_name: str,
    temporal_mapping_type: str | None,
    network_options: NetworkOptions,
    model: str,
    verbose: bool,
    as_json: bool,
) -> None:
    """Cost of given mappings: loop orders are innermost first. With --json, one record a line.

    Example: tilewright evaluate --hardware config/hardware/tpu_like.yaml --workload config/workload/resnet18.onnx
    --mapping found.yaml --layer conv1
    """
    from tilewright.cost.record import record_row
    from tilewright.search.evaluate import evaluate_given
    from tilewright.sources import existing_file, parse_accelerator, parse_workload, single_core
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.run import read_problem

    asked = {"model": model} | ({"temporal_mapping_type": temporal_mapping_type} if temporal_mapping_type else {})
    options = Given(SearchOptions, asked)()
    if (mapping is None) == (points is None):
        raise InputError("give either --mapping or --points")
    if mapping is not None:
        problem = read_problem(Descriptions(hardware, workload, mapping, network_options), options)
        accelerator, network = problem.accelerator, problem.workload
        found = _points_of_mapping(network, problem.mapping, layer_name, temporal_mapping_type)
    else:
        accelerator, network = parse_accelerator(hardware), parse_workload(workload, model, options=network_options)
        layers = [node.layer for node in network.nodes if node.layer]
        found = read_points(existing_file(points or "", "points"), layers)
    core = single_core(accelerator)
    chosen = _chosen(found, layer_name, network)
    unit_of = {node.layer.name: node.unit for node in network.nodes if node.layer}
    refused = 0
    for layer, given in chosen:
        try:
            record = evaluate_given(layer, core, given, options)
        except MappingError as error:
            refused += 1
            reason = f"{error}: {OPEN_ORDER}" if mapping is not None and not given.temporal_ordering else str(error)
            click.echo(_refusal(layer, reason, as_json), err=not as_json)
            continue
        record = replace(record, layer=record.layer.on_unit(unit_of.get(layer.name, "")))
        click.echo(json.dumps(record_row(record)) if as_json else _text(record, verbose))
    if refused:
        raise MappingError(f"{refused} of {len(chosen)} mappings do not fit")


def _chosen(points: list[Point], layer_name: str, network: Workload) -> list[Point]:
    chosen = [point for point in points if layer_name in ("", point[0].name)]
    if not chosen:
        names = [node.layer.name for node in network.nodes if node.layer]
        raise InputError(
            [Problem("no such layer", path="layer", value=repr(layer_name), nearest=nearest_name(layer_name, names))]
        )
    return chosen


def _points_of_mapping(
    network: Workload, mapping: Mapping, layer_name: str, temporal_mapping_type: str | None
) -> list[Point]:
    """The layers with their entries. Raises InputError for entries that are no whole mapping, or another one than is
    asked for."""
    points = [
        (node.layer, mapping.constraints_for(node.layer))
        for node in network.layers_in_order
        if node.layer and layer_name in ("", node.layer.name)
    ]
    layers_of: dict[str, list[str]] = {}
    for layer, entry in points:
        layers_of.setdefault(entry.name, []).append(layer.name)
    entries = {entry.name: entry for _, entry in points}
    problems = [
        Problem(OPEN_ORDER + _for_layers(layers_of[name]), path=name)
        for name, entry in entries.items()
        if any(loop.dimension == WILDCARD or loop.size is None for loop in entry.temporal_ordering)
    ]
    problems += [
        Problem(f"the entry says otherwise than --temporal-mapping-type {temporal_mapping_type}", path=name, value=own)
        for name, entry in entries.items()
        if temporal_mapping_type and (own := entry.temporal_mapping_type or "") not in ("", temporal_mapping_type)
    ]
    if problems:
        raise InputError(problems)
    return points


def _for_layers(names: list[str]) -> str:
    """For which layers an entry counts."""
    return f" (for {len(names)} layers, such as {names[0]})" if len(names) > 1 else ""


def _refusal(layer: Layer, reason: str, as_json: bool) -> str:
    return json.dumps({"layer": {"name": layer.name}, "error": reason}) if as_json else f"{layer.name}: {reason}"


def _text(record: "LayerRecord", verbose: bool) -> str:
    from tilewright.cost.ledger import term_phrase
    from tilewright.report.loop_nest import loop_nest_text
    from tilewright.report.records import other_energies_pj

    parts = ", ".join(f"{name} {cycles:g}" for name, cycles in record.latency_breakdown_cycles.items())
    lines = [
        f"{record.layer.name}: {energy_text(record.energy_pj, 10)}, {record.latency_cycles:.10g} cycles"
        f" (model {record.model})",
        f"  cycles: {parts}",
        *(
            f"  energy of {term_phrase(term)} {energy_text(energy)}"
            for term, energy in other_energies_pj(record).items()
        ),
    ]
    for operand, levels in record.energy_breakdown_pj.items():
        for level, directions in enumerate(levels):
            total = sum(directions.values())
            split = ", ".join(f"{direction} {energy_text(value)}" for direction, value in directions.items())
            lines.append(f"  {operand} at {record.memory_levels[operand][level]}: {energy_text(total)} ({split})")
    return "\n".join(lines) + ("\n" + loop_nest_text(record) if verbose else "")
