"""`tilewright pareto`: which of many runs are worth their cost in energy, latency and area."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.artifacts.canonical import make_folder, writing
from tilewright.artifacts.codec import encode
from tilewright.artifacts.digests import content_digest
from tilewright.artifacts.envelope import read_artifact
from tilewright.cli.options import FILE, common_options, echo_json, echo_notices
from tilewright.cli.report import keep_font_cache_here
from tilewright.cli.runs import MULTI, SUMMARY_FILE, read_any_summary, run_directories

if TYPE_CHECKING:
    from tilewright.report.pareto import Candidate


@click.command()
@click.argument("runs", type=FILE, nargs=-1, required=True)
@click.option(
    "--hardware",
    type=FILE,
    multiple=True,
    help="Hardware file or artifact of some of the runs: tells whether it gives all areas; repeatable.",
)
@click.option("--csv", "csv_output", type=FILE, help="CSV file to write.")
@click.option("--figures", type=FILE, help="Folder to write a figure for each network into.")
@common_options
def command(
    runs: tuple[Path, ...],
    hardware: tuple[Path, ...],
    csv_output: Path | None,
    figures: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """The Pareto front of RUNS in energy, latency and area, for each network.

    RUNS are folders that `tilewright map` or `tilewright schedule` wrote, or folders of such folders. Compared are runs
    of the same network with the same options (but for the objective), and those of several cores with each other;
    without areas, energy and latency alone are compared.

    Example: tilewright pareto results/single --figures results/pareto
    """
    from tilewright.report.pareto import compare, pareto_table, pareto_text
    from tilewright.report.tables import write_csv

    areas = _areas(hardware)
    groups = compare([_candidate(directory, areas) for directory in run_directories(runs)])
    table = pareto_table(groups)
    if csv_output:
        with writing(csv_output):
            write_csv(table, csv_output)
    if figures:
        keep_font_cache_here()
        from tilewright.report.pareto_figure import write_pareto_figures

        make_folder(figures)
        with writing(figures):
            write_pareto_figures(groups, figures)
    echo_notices([f"{group.workload}: {group.warning}" for group in groups if group.warning])
    if as_json:
        echo_json(
            [{key: None if value != value else value for key, value in row.items()} for row in table.to_dict("records")]
        )
    elif verbose or not (csv_output or figures):
        click.echo(pareto_text(groups))


def _candidate(directory: Path, areas: dict[str, tuple[float, str]]) -> "Candidate":
    from tilewright.report.pareto import candidate, multi_candidate

    flow, summary = read_any_summary(directory)
    made_by = read_artifact(directory / SUMMARY_FILE).provenance
    area, note = areas.get(str(made_by.get("inputs", {}).get("hardware")), (None, ""))
    if flow == MULTI:
        return multi_candidate(directory.name, summary, made_by, area, note)
    return candidate(directory.name, summary, made_by, note)


def _areas(hardware: tuple[Path, ...]) -> dict[str, tuple[float, str]]:
    """Digest of an accelerator -> its area, and what of that is not given."""
    from tilewright.hardware.hierarchy import core_area_mm2
    from tilewright.hardware.source import parse_accelerator
    from tilewright.hardware.system import MultiCoreAccelerator
    from tilewright.report.areas import area_note
    from tilewright.report.system_areas import system_area

    areas = {}
    for path in hardware:
        accelerator = parse_accelerator(path)
        if isinstance(accelerator, MultiCoreAccelerator):
            found = system_area(accelerator)
        else:
            notes = "; ".join(filter(None, map(area_note, accelerator.cores)))
            found = sum(map(core_area_mm2, accelerator.cores)), notes
        areas[content_digest(encode(accelerator))] = found
    return areas
