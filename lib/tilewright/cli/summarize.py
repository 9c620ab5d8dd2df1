"""`tilewright summarize`: one table of many runs."""

from pathlib import Path

import click

from tilewright.artifacts.canonical import writing
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.runs import SUMMARY_FILE, read_summary, run_directories
from tilewright.errors import ArtifactError, InputError

RESULTS = Path("results/single")


@click.command()
@click.argument("runs", type=FILE, nargs=-1)
@click.option("--config", "config", type=FILE, help="Instead of RUNS: the finished runs of this configuration.")
@click.option("--csv", "csv_output", type=FILE, help="CSV file to write.")
@click.option("--parquet", "parquet_output", type=FILE, help="Parquet file to write.")
@common_options
def command(
    runs: tuple[Path, ...],
    config: Path | None,
    csv_output: Path | None,
    parquet_output: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """One row per run; RUNS are folders that `tilewright map` wrote, or folders of such folders.

    Example: tilewright summarize results/single --csv summary.csv
    """
    if not config and not runs:
        raise InputError("give folders of runs, or --config")
    directories = _configured(config) if config else run_directories(runs)
    summaries = {directory.name: read_summary(directory) for directory in directories}
    if csv_output or parquet_output:
        from tilewright.report.tables import summary_table, write_csv, write_parquet

        table = summary_table(summaries)
        for write, output in ((write_csv, csv_output), (write_parquet, parquet_output)):
            if output:
                with writing(output):
                    write(table, output)
    if as_json:
        echo_json(summaries)
    elif verbose or not (csv_output or parquet_output):
        from tilewright.report.tables import summary_text

        click.echo(summary_text(summaries))


def _configured(config: Path) -> list[Path]:
    from tilewright.cli.config import read_config

    places = [RESULTS / run.name for run in read_config(config).runs]
    finished = [place for place in places if (place / SUMMARY_FILE).is_file()]
    if not finished:
        raise ArtifactError(f"none of the {len(places)} runs of {config} is finished")
    return finished
