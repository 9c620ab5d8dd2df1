"""`tilewright results`: where the results of a configuration lie, and which of its runs are not up to date."""

from pathlib import Path

import click

from tilewright.artifacts.canonical import canonical_text, write_atomically, writing
from tilewright.cli.options import FILE, common_options, echo_json


@click.command()
@click.argument("config", type=FILE)
@click.option("--claim", "is_claimed", is_flag=True, help="Make the folder, and note in it whose it is.")
@click.option("--plan", type=FILE, help="What `snakemake --summary` says of CONFIG: also tell what is unfinished.")
@click.option("-o", "--output", type=FILE, help="JSON file to write the unfinished runs into.")
@common_options
def command(
    config: Path, is_claimed: bool, plan: Path | None, output: Path | None, verbose: bool, as_json: bool
) -> None:
    """The folder of results of the configuration file CONFIG, then the folder of its logs.

    Example: tilewright results config/config.yaml
    """
    from tilewright.cli.config import read_config
    from tilewright.cli.results_place import claim
    from tilewright.cli.unfinished import unfinished_runs

    read = read_config(config)
    if is_claimed:
        with writing(read.results):
            claim(read.results, [str(config)])
    found = [] if plan is None else unfinished_runs(read, plan.read_text("utf-8"))
    if output:
        write_atomically(output, canonical_text(found) + "\n")
    if as_json:
        unfinished = {} if plan is None else {"unfinished": found}
        echo_json({"results": str(read.results), "logs": str(read.logs), **unfinished})
    elif not output:
        click.echo(f"{read.results}\n{read.logs}")
        for row in found:
            click.echo(f"{row['run']}: {row['state']}")
