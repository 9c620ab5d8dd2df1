"""`tilewright pareto`: which of many runs are worth their cost in energy, latency and area."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.artifacts.canonical import make_folder, writing
from tilewright.artifacts.envelope import read_artifact
from tilewright.cli.options import FILE, common_options, echo_json, echo_notices
from tilewright.cli.report import keep_font_cache_here
from tilewright.cli.runs import read_any_summary, read_unfinished, run_directories
from tilewright.errors import InputError
from tilewright.steps import MULTI, SUMMARY

if TYPE_CHECKING:
    from tilewright.report.pareto import Candidate


@click.command()
@click.argument("runs", type=FILE, nargs=-1)
@click.option("--unfinished", type=FILE, help="Runs to name instead, as `tilewright results` writes them.")
@click.option("--csv", "csv_output", type=FILE, help="CSV file to write.")
@click.option("--figures", type=FILE, help="Folder to write a figure for each network into.")
@common_options
def command(
    runs: tuple[Path, ...],
    unfinished: Path | None,
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

    rows = read_unfinished(unfinished)
    if not runs and not rows:
        raise InputError("give folders of runs")
    groups = compare([_candidate(directory) for directory in (run_directories(runs) if runs else [])], rows)
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


def _candidate(directory: Path) -> "Candidate":
    from tilewright.report.pareto import candidate, multi_candidate

    flow, summary = read_any_summary(directory)
    made_by = read_artifact(directory / SUMMARY).provenance
    return (multi_candidate if flow == MULTI else candidate)(directory.name, summary, made_by)
