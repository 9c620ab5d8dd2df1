"""`tilewright export`: mappings and results of a run in other file formats."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.files import FilePath, write_atomically
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import OneOf
from tilewright.base.steps import FIXED_MAPPING
from tilewright.cli.options import echo_json, echo_paths, network_keywords
from tilewright.cli.runs import existing_run, is_multi_run, read_records, read_summary
from tilewright.cli.terminal import echo_json_text, echo_text
from tilewright.cli.verb import ARGUMENT, Help, verb
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord
    from tilewright.hardware.core import Core
    from tilewright.workload.graph import Workload
    from tilewright.workload.layer import Layer

MAPPING, LOOP_NEST, LOOP_ORDERING = "mapping", "loop-nest", "loop-ordering"
COMPLETE_JSON, SIMPLE_JSON, PICKLE = "complete-json", "simple-json", "pickle"
TEXTS, DATA = (MAPPING, LOOP_NEST, LOOP_ORDERING), (COMPLETE_JSON, SIMPLE_JSON, PICKLE)


def _show(found: Any, run: Path, form: str, output: Path | None, verbose: bool, as_json: bool) -> None:
    if form in TEXTS:
        if as_json:
            echo_json(_mapping_entries(read_records(run)) if form == MAPPING else found)
        elif not output or verbose:
            echo_text(found)
    elif output:
        echo_paths(found, as_json)
    else:
        from tilewright.peers.zigzag.exports.results import json_text

        echo_json(found) if as_json else echo_json_text(json_text(found))


@verb(
    """Write the mappings or the results of a run in another format. RUN is a folder that `tilewright map` wrote.

    \b
    mapping        mapping file that reproduces the costs of the run; with
                   --hardware, unused array dimensions stay unused
    loop-nest      loop nests, for reading
    loop-ordering  loop_ordering.txt of zigzag-dse
    simple-json    energy and latency as zigzag-dse writes them, one file per layer
    complete-json  all outputs and inputs as zigzag-dse writes them, one file per
                   layer; needs --hardware and --workload
    pickle         the same objects as a pickled list of dicts in one file

    Example: tilewright export results/single/resnet18-tpu_like --hardware config/hardware/zigzag/tpu_like.yaml -o
    found.yaml
    """,
    show=_show,
)
@network_keywords
def export(
    run: Annotated[FilePath, ARGUMENT],
    form: Annotated[str, OneOf((*TEXTS, *DATA)), Help("Format to write; see above.", flag="--format")] = MAPPING,
    hardware: Annotated[FilePath | None, Help("Hardware file or artifact of the run.")] = None,
    workload: Annotated[FilePath | None, Help("Workload file or artifact of the run.")] = None,
    network_options: NetworkOptions | None = None,
    output: Annotated[
        FilePath | None, Help("File to write, or folder for the JSON formats; default: standard output.")
    ] = None,
) -> Any:
    """Mappings or results of a run of `tilewright map` in another format.

    `form` is one of TEXTS or DATA. The result is a text for TEXTS, and a JSON object for DATA. For DATA with an
    `output`, it is the list of the written files. Raises ArtifactError for a folder without records, and InputError if
    the format needs an input that is not given.
    """
    run, output = existing_run(Path(run)), None if output is None else Path(output)
    if is_multi_run(run):
        message = "is a run on several cores; only runs on one core can be exported"
        allowed = f"use `tilewright report` for tables, and {FIXED_MAPPING} as the mapping file of the run"
        raise InputError([Problem(message, str(run), allowed=allowed)])
    records = read_records(run)
    if form in TEXTS:
        text = _text(form, run, records, hardware)
        if output:
            write_atomically(output, text)
        return text
    summary = read_summary(run)
    if form == SIMPLE_JSON:
        return _simple(records, summary, output)
    core, network = _descriptions(form, hardware, workload, summary["model"], network_options or NetworkOptions())
    return _complete(form, records, summary, core, network, output)


def _text(form: str, run: Path, records: "tuple[LayerRecord, ...]", hardware: FilePath | None) -> str:
    from tilewright.api import export_loop_nests, export_mapping
    from tilewright.peers.zigzag.exports.loop_orderings import network_loop_orderings

    if form == MAPPING:
        return export_mapping(records, hardware)
    return export_loop_nests(records) if form == LOOP_NEST else network_loop_orderings(records, read_summary(run))


def _mapping_entries(records: "tuple[LayerRecord, ...]") -> list[JsonObject]:
    from tilewright.results.recorded_mappings import mapping_entries

    return mapping_entries(records)


def _simple(records: "tuple[LayerRecord, ...]", summary: JsonObject, output: Path | None) -> Any:
    from tilewright.peers.zigzag.exports.files import write_all_simple
    from tilewright.peers.zigzag.exports.results import simple_result
    from tilewright.results.records import OVERALL, layers_in_order

    if output:
        return write_all_simple(output, records, summary)
    values = {layer.name: simple_result(layer.record) for layer in layers_in_order(records, summary)}
    return {OVERALL: simple_result(summary), "layers": values}


def _descriptions(
    form: str, hardware: FilePath | None, workload: FilePath | None, model: str, network_options: NetworkOptions
) -> tuple["Core", "Workload"]:
    """Pair (core, workload) of the run. Raises InputError if hardware or workload is not given."""
    from tilewright.pipeline.sources import parse_accelerator, parse_workload, single_core

    missing = [
        Problem(f"is needed, because the format {form} also contains the {name}", path=name)
        for name, given in (("hardware", hardware), ("workload", workload))
        if given is None
    ]
    if hardware is None or workload is None:
        raise InputError(missing)
    return single_core(parse_accelerator(hardware)), parse_workload(workload, model, options=network_options)


def _complete(
    form: str,
    records: "tuple[LayerRecord, ...]",
    summary: JsonObject,
    core: "Core",
    network: "Workload",
    output: Path | None,
) -> Any:
    from tilewright.peers.zigzag.exports.files import check_descriptions, write_all_complete, write_pickle
    from tilewright.peers.zigzag.exports.results import complete_layers

    layers: dict[str, Layer] = {node.layer.name: node.layer for node in network.layers_in_order if node.layer}
    ids = {node.layer.name: node.node_id for node in network.layers_in_order if node.layer}
    check_descriptions(records, core, layers)
    if form == COMPLETE_JSON and output:
        return write_all_complete(output, records, summary, core, layers, ids)
    values = list(complete_layers(records, summary, core, layers).values())
    if form != PICKLE:
        return values
    if output is None:
        raise InputError([Problem("is needed, because a pickle is binary and is not printed", path="output")])
    write_pickle(output, values)
    return [output]
