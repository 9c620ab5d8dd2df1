"""`tilewright summarize`: one table of many runs."""

from pathlib import Path
from typing import Any

import click

from tilewright.artifacts.canonical import writing
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.runs import read_any_summary, read_unfinished, run_directories
from tilewright.errors import ArtifactError, InputError
from tilewright.steps import SUMMARY


@click.command()
@click.argument("runs", type=FILE, nargs=-1)
@click.option("--config", "config", type=FILE, help="Instead of RUNS: the finished runs of this configuration.")
@click.option("--unfinished", type=FILE, help="Runs to name instead, as `tilewright results` writes them.")
@click.option("--csv", "csv_output", type=FILE, help="CSV file to write.")
@click.option("--parquet", "parquet_output", type=FILE, help="Parquet file to write.")
@common_options
def command(
    runs: tuple[Path, ...],
    config: Path | None,
    unfinished: Path | None,
    csv_output: Path | None,
    parquet_output: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    """One row per run; RUNS are folders that `tilewright map` or `tilewright schedule` wrote, or folders of them.

    Example: tilewright summarize results/single results/multi --csv summary.csv
    """
    rows = read_unfinished(unfinished)
    if not config and not runs and not rows:
        raise InputError("give folders of runs, or --config")
    left_out = [row["run"] for row in rows]
    directories = _configured(config, left_out) if config else run_directories(runs) if runs else []
    summaries: dict[str, dict[str, dict[str, Any]]] = {"single": {}, "multi": {}}
    for directory in directories:
        flow, summary = read_any_summary(directory)
        summaries[flow][directory.name] = summary
    if csv_output or parquet_output:
        from tilewright.report.run_tables import runs_table
        from tilewright.report.tables import write_csv, write_parquet

        table = runs_table(**summaries, unfinished=rows)
        for write, output in ((write_csv, csv_output), (write_parquet, parquet_output)):
            if output:
                with writing(output):
                    write(table, output)
    if as_json:
        echo_json(summaries["single"] | summaries["multi"])
    elif verbose or not (csv_output or parquet_output):
        from tilewright.report.legends import runs_legend
        from tilewright.report.run_tables import ROW_OF, multi_text
        from tilewright.report.states import unfinished_lines
        from tilewright.report.tables import summary_text

        texts = [
            show(summaries[flow]) for flow, show in (("single", summary_text), ("multi", multi_text)) if summaries[flow]
        ]
        rows_of = {flow: [make(run, one) for run, one in summaries[flow].items()] for flow, make in ROW_OF.items()}
        texts += [runs_legend(rows_of["single"], rows_of["multi"])] if texts else []
        texts += ["\n".join(unfinished_lines(rows))] if rows else []
        click.echo("\n".join(texts))


def _configured(config: Path, left_out: list[str]) -> list[Path]:
    from tilewright.cli.config import read_config

    plan = read_config(config)
    places = [plan.results / "single" / run.name for run in plan.runs]
    places += [plan.results / "multi" / run.name for run in plan.multi_runs if not run.base]
    finished = [place for place in places if place.name not in left_out and (place / SUMMARY).is_file()]
    if not finished and not left_out:
        raise ArtifactError(f"none of the {len(places)} runs of {config} is finished")
    return finished
