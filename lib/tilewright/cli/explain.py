"""`tilewright explain`: parts of the energy and the cycles of a run, and the port that limits each layer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest, document_text
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically, writing
from tilewright.base.artifacts.seals import sealed_document
from tilewright.base.errors import InputError, Problem
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.report_files import BOTTLENECKS, FIGURES, TABLES
from tilewright.base.steps import CN_GRAPH, CORE_CYCLES, LAYERS, PORT_LIMITS, SUMMARY
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD, DescribedRun, mapping_digest, network_digest
from tilewright.cli.flags import text_in_flags
from tilewright.cli.options import (
    Part,
    echo_json,
    echo_paths,
    keep_font_cache_here,
    network_keywords,
)
from tilewright.cli.runs import existing_run, is_multi_run, made_of, records_of
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, verb
from tilewright.results.sheet import PaperWidth, figure_suffixes, sheet_inches, table_suffixes
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.hardware.core import Core
    from tilewright.mapping.constraints import Mapping as MappingOfLayers
    from tilewright.results.array_use import ArrayUses
    from tilewright.results.bottlenecks import Bottlenecks
    from tilewright.results.records import PlacedLayer
    from tilewright.workload.graph import Workload


_Given = Mapping[str, Path | None]
"""Path that the user gave for each of HARDWARE, WORKLOAD and MAPPING; None if no path was given."""


def _show(
    found: "Bottlenecks",
    run: FilePath,
    hardware: Path | None,
    workload: Path | None,
    mapping: Path | None,
    network_options: NetworkOptions | None,
    output: Path | None,
    only: Part,
    as_json: bool,
) -> None:
    if as_json:
        from tilewright.results.bottlenecks import bottlenecks_object

        echo_json(bottlenecks_object(found))
        return
    if not (output and only):
        from tilewright.cli.advise_command import advise_command
        from tilewright.results.bottlenecks_text import bottlenecks_text
        from tilewright.results.next_changes import next_text

        given = {HARDWARE: hardware, WORKLOAD: workload, MAPPING: mapping}
        is_plain = network_options in (None, NetworkOptions()) and found.cores is None
        told = next_text(found, advise_command(Path(run), given) if is_plain else "")
        echo_text(text_in_flags(bottlenecks_text(found)) + (f"\n{told}" if told else ""))
    if output:
        echo_paths(written_files(output, only, has_cores=found.cores is not None), as_json)


@verb(
    """Show the parts of the energy and the cycles of the run in the folder RUN, and the memory port that limits each
    layer.

    The report splits the cycles by cause, and the energy by memory, operand and direction; the parts add up to the
    totals. If units of the array are idle, it shows which side of the array is not full, and whether the mapping file
    is the cause. The limiting port of a layer is the port that would save most cycles if it were twice as wide, with
    the same mapping.

    The command looks for the input files of the run in RUN, beside RUN, in `config` and in the working folder. If they
    are elsewhere, give their paths. For a run on several cores, the report shows when each core computes and waits, and
    the core, link or memory that would save most cycles if it were doubled.

    Example: tilewright explain results/single/resnet18-tpu_like --layer conv1
    """,
    show=_show,
    order="run layer hardware workload mapping output only",
)
@network_keywords
def explain(
    run: Annotated[FilePath, ARGUMENT],
    layer: Annotated[str, Help("Name of one layer to report, with all ports that it uses.", metavar="NAME")] = "",
    hardware: Annotated[FilePath | None, Help("Hardware file of the run; only needed if it is not found.")] = None,
    workload: Annotated[FilePath | None, Help("Workload of the run; only needed if it is not found.")] = None,
    network_options: NetworkOptions | None = None,
    output: Annotated[
        FilePath | None, Help(f"Folder for {BOTTLENECKS}.csv, .json, .svg, .png and {PORT_LIMITS} or {CORE_CYCLES}.")
    ] = None,
    only: Part = "",
    mapping: Annotated[FilePath | None, Help("Mapping of the run; only needed if it is not found.")] = None,
    paper: Annotated[PaperWidth | None, Paper(("output",))] = None,
) -> "Bottlenecks":
    """Parts of the energy and the cycles of a run, or of one of its layers, and the memory port that limits each layer.

    `run` is the folder of the run. `hardware`, `workload` and `mapping` are the input files of the run; by default, the
    function looks for them beside the run, and in `config` in the working folder. If hardware or workload is not found,
    the limiting ports are not reported. `output` is a folder for tables, a JSON file and a figure. `only` limits the
    output to `tables` (with the JSON file) or `figures`. `paper` is the width of figures for a paper, `column` or
    `page`; None draws figures for a report. Energies are in pJ. Raises ArtifactError for a folder without a run, and
    InputError for a missing folder, for input files of another run, and for an unknown layer.
    """
    folder = Path(run)
    named = {HARDWARE: hardware, WORKLOAD: workload, MAPPING: mapping}
    given = {kind: None if path is None else Path(path) for kind, path in named.items()}
    if is_multi_run(existing_run(folder)):
        _refuse_descriptions(*given.values())
        found = _of_several_cores(folder)
    else:
        found = _of_one_core(folder, given, network_options or NetworkOptions())
    found = found.of_layer(layer) if layer else found
    if output is not None:
        write_bottlenecks(found, Path(output), only)
    return found


def written_files(folder: Path, only: Part = "", has_cores: bool = False) -> list[Path]:
    """Paths of the files that `write_bottlenecks` writes. `has_cores` is True for a run on several cores."""
    further = CORE_CYCLES if has_cores else PORT_LIMITS
    tables = [f"{BOTTLENECKS}.csv", f"{BOTTLENECKS}.json"], [further]
    if sheet_inches() is not None:
        ends = [f"-{quantity}{end}" for quantity in (ENERGY_PJ, LATENCY_CYCLES) for end in table_suffixes()]
        tables[0].extend(BOTTLENECKS + end for end in ends)
        tables[1].extend(Path(further).stem + end for end in table_suffixes())
    figures = [BOTTLENECKS + suffix for suffix in figure_suffixes()]
    named = {TABLES: [*tables[0], *tables[1]], FIGURES: figures}
    return [folder / name for name in named.get(only, [*tables[0], *figures, *tables[1]])]


def write_bottlenecks(found: "Bottlenecks", folder: Path, only: Part = "") -> list[Path]:
    """Write tables, a JSON file and a figure of bottlenecks into a folder. Returns the paths.

    If `only` is `tables`, only the tables and the JSON file are written. If `only` is `figures`, only the figure is
    written.
    """
    make_folder(folder)
    if only != FIGURES:
        from tilewright.results.bottlenecks import (
            bottlenecks_object,
            limiting_table,
            port_table,
            share_table,
            totals_table,
        )
        from tilewright.results.paper_tables import write_table

        write_table(share_table(found), folder / f"{BOTTLENECKS}.csv", for_paper=totals_table(found))
        if found.cores is None:
            ports = port_table(found)
            limiting, notes = limiting_table(found) if found.limits else (ports, [])
            write_table(ports, folder / PORT_LIMITS, for_paper=limiting, notes=notes)
        else:
            write_table(found.cores.table, folder / CORE_CYCLES)
        write_atomically(folder / f"{BOTTLENECKS}.json", sealed_document(document_text(bottlenecks_object(found))))
    if only != TABLES:
        keep_font_cache_here()
        from tilewright.results.bottlenecks_figure import write_bottlenecks_figure

        with writing(folder):
            write_bottlenecks_figure(found, folder / BOTTLENECKS)
    return written_files(folder, only, has_cores=found.cores is not None)


def _of_one_core(folder: Path, given: _Given, network_options: NetworkOptions) -> "Bottlenecks":
    from tilewright.results.bottlenecks import bottlenecks_of
    from tilewright.results.records import layers_in_order
    from tilewright.results.run_ledger import ledger_of_layers

    artifact = read_artifact(folder / LAYERS, "tilewright/layers")
    summary = read_artifact(folder / SUMMARY, "tilewright/single-summary").payload
    records = records_of(artifact, folder / LAYERS)
    ledger = ledger_of_layers(folder.name, records, summary, artifact.provenance)
    placed = layers_in_order(records, summary)
    run = DescribedRun.of(folder, artifact.provenance, summary)
    try:
        described = run.descriptions(given, network_options)
        read, mapping = _read(run, described, network_options), described[MAPPING]
        if mapping is not None:
            run.check(MAPPING, mapping_digest(mapping), str(mapping))
        if isinstance(read, str):
            return bottlenecks_of(ledger, placed, unknown=read)
    except InputError as error:
        if "pipeline" not in artifact.provenance.get("options", {}):
            raise
        return bottlenecks_of(ledger, placed, unknown=str(error.problems[0]))
    try:
        found = bottlenecks_of(ledger, placed, *read)
        array = _array(placed, *read, mapping, artifact.provenance.get("options", {}))
        return replace(found, array=array, made_of=made_of(artifact))
    except InputError as error:  # the run is complete, but it was made by stages of the user
        return bottlenecks_of(ledger, placed, unknown=str(error.problems[0]))


def _read(run: DescribedRun, found: _Given, network_options: NetworkOptions) -> "tuple[Core, Workload] | str":
    """Pair (core, network) of a run. If hardware or workload is not found, the result is a text that names the missing
    input. Raises InputError if a file belongs to another run.
    """
    from tilewright.pipeline.sources import parse_accelerator, parse_workload, single_core

    hardware, workload = found[HARDWARE], found[WORKLOAD]
    accelerator = None if hardware is None else parse_accelerator(hardware)
    if accelerator is not None:
        run.check(HARDWARE, content_digest(encode(accelerator)), str(hardware))
    if accelerator is None or workload is None:
        lacking = run.not_found({kind: found[kind] for kind in (HARDWARE, WORKLOAD)})
        return "; ".join(one.message for one in lacking)
    core = single_core(accelerator)
    network = parse_workload(workload, run.model, options=network_options)
    run.check(WORKLOAD, network_digest(network, core), str(workload))
    return core, network


def _array(
    placed: "Sequence[PlacedLayer]", core: "Core", network: "Workload", mapping: Path | None, options: dict[str, Any]
) -> "ArrayUses":
    """Use of the array by the layers of a run. Without a mapping file, or with a pipeline of the user, the causes of
    idle units are not known.
    """
    from tilewright.base.parameters import made_of
    from tilewright.pipeline.sources import parse_mapping
    from tilewright.results.array_use import array_uses
    from tilewright.search.options import SearchOptions

    if mapping is None or "pipeline" in options:
        return array_uses(placed, core, network, None, SearchOptions())
    read = parse_mapping(mapping)
    uses = array_uses(placed, core, network, read, made_of(SearchOptions, options))
    return replace(uses, places=_places(mapping, read))


def _places(path: Path, mapping: "MappingOfLayers") -> dict[tuple[str, str], str]:
    """Text `file:line` of each spatial mapping of a mapping file. The keys are pairs (name of the entry, array
    dimension). {} for an artifact, which has no lines.
    """
    from tilewright.base.artifacts.envelope import is_artifact
    from tilewright.base.yamlfile import load_yaml

    if is_artifact(path):
        return {}
    document = load_yaml(path)
    places: dict[tuple[str, str], str] = {}
    for index, entry in enumerate(mapping.entries):
        for side, _ in entry.spatial_mapping:
            places.setdefault((entry.name, side), f"{path}:{document.line_of((index, 'spatial_mapping', side))}")
    return places


def _refuse_descriptions(*given: Path | None) -> None:
    message = "is not used: bottlenecks of a run on several cores follow from the schedule; leave out this file"
    problems = [Problem(message, str(path)) for path in given if path is not None]
    if problems:
        raise InputError(problems)


def _of_several_cores(folder: Path) -> "Bottlenecks":
    from tilewright.cli.run_ledgers import ledger_of_run, scheduled_run
    from tilewright.results.bottlenecks import bottlenecks_of
    from tilewright.results.multi.bars import ScheduleView
    from tilewright.results.multi.cores_report import cores_report
    from tilewright.results.multi.start_causes import latency_chain

    run = scheduled_run(folder)
    view = ScheduleView(run.artifact)
    cores = cores_report(view, run.core_costs, run.summary, _node_ids(folder))
    unknown = "" if cores else "the schedule model of this run does not record why cores wait"
    found = bottlenecks_of(ledger_of_run(folder.name, run), unknown=unknown)
    return replace(found, chain=latency_chain(view), cores=cores)


def _node_ids(folder: Path) -> list[int] | None:
    """Ids of the layers of a run on several cores; None if the CN graph is not in the folder."""
    graph = folder / CN_GRAPH
    return [layer["node_id"] for layer in read_artifact(graph).payload["layers"]] if graph.is_file() else None
