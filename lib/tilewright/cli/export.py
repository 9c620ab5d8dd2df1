"""`tilewright export`: the mappings of a run as a mapping file or as loop nests."""

from pathlib import Path

import click

from tilewright.artifacts.canonical import write_atomically
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.runs import read_records


@click.command()
@click.argument("run", type=FILE)
@click.option(
    "--as",
    "form",
    type=click.Choice(["mapping", "loop-nest"]),
    default="mapping",
    show_default=True,
    help="What to write.",
)
@click.option("--hardware", type=FILE, help="Hardware of the run; keeps unused array dimensions unused.")
@click.option("-o", "--output", type=FILE, help="File to write; default: standard output.")
@common_options
def command(run: Path, form: str, hardware: Path | None, output: Path | None, verbose: bool, as_json: bool) -> None:
    """Export the mappings in the folder RUN that `tilewright map` wrote.

    The mapping file names every layer with its spatial mapping and complete loop order; `tilewright evaluate` and
    `tilewright map` read it back to the same numbers.

    Example: tilewright export results/single/resnet18-tpu_like --hardware config/hardware/tpu_like.yaml -o found.yaml
    """
    from tilewright.api import export_loop_nests, export_mapping

    records = read_records(run)
    text = export_mapping(records, hardware) if form == "mapping" else export_loop_nests(records)
    if output:
        write_atomically(output, text)
    if as_json:
        from tilewright.report.export import mapping_entries

        echo_json(mapping_entries(records))
    elif not output or verbose:
        click.echo(text, nl=False)
