"""`tilewright pareto`: which of many runs are worth their cost in energy, latency and area."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tilewright.artifacts.canonical import make_folder, writing
from tilewright.artifacts.codec import encode
from tilewright.artifacts.digests import content_digest
from tilewright.artifacts.envelope import is_artifact, read_artifact
from tilewright.artifacts.objects import read_object
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.report import keep_font_cache_here
from tilewright.cli.runs import SUMMARY_FILE, run_directories
from tilewright.hardware.core import Accelerator

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

    RUNS are folders that `tilewright map` wrote, or folders of such folders. Compared are runs of the same network
    with the same options (but for the objective); without areas, energy and latency alone are compared.

    Example: tilewright pareto results/single --figures results/pareto
    """
    from tilewright.report.pareto import compare, pareto_table, pareto_text
    from tilewright.report.tables import write_csv

    notes = _area_notes(hardware)
    groups = compare([_candidate(directory, notes) for directory in run_directories(runs)])
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
    if as_json:
        echo_json(
            [{key: None if value != value else value for key, value in row.items()} for row in table.to_dict("records")]
        )
    elif verbose or not (csv_output or figures):
        click.echo(pareto_text(groups))


def _candidate(directory: Path, notes: dict[str, str]) -> "Candidate":
    from tilewright.report.pareto import candidate

    artifact = read_artifact(directory / SUMMARY_FILE, "tilewright/single-summary")
    note = notes.get(str(artifact.provenance.get("inputs", {}).get("hardware")), "")
    return candidate(directory.name, artifact.payload, artifact.provenance, note)


def _area_notes(hardware: tuple[Path, ...]) -> dict[str, str]:
    """Digest of an accelerator -> what of its area is not given."""
    from tilewright.hardware.yaml_reader import read_accelerator
    from tilewright.report.areas import area_note

    notes = {}
    for path in hardware:
        accelerator = (
            read_object(Accelerator, path, "tilewright/accelerator") if is_artifact(path) else read_accelerator(path)
        )
        notes[content_digest(encode(accelerator))] = "; ".join(filter(None, map(area_note, accelerator.cores)))
    return notes
