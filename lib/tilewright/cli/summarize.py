"""`tilewright summarize`: one table with the results of many runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.files import FilePath, writing
from tilewright.base.errors import ArtifactError, InputError, count_of
from tilewright.base.harmless import ended_lines, terminal_lines
from tilewright.base.steps import MULTI, SINGLE, SUMMARY
from tilewright.cli.options import echo_json, echo_notices
from tilewright.cli.run_costs import point_of_run
from tilewright.cli.run_ledgers import ordered
from tilewright.cli.runs import read_any_summary, read_unfinished, run_directories
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, verb
from tilewright.results.sheet import PaperWidth, sheet_inches

if TYPE_CHECKING:
    import pandas

    from tilewright.results.run_point import RunPoint

Summaries = dict[str, dict[str, dict[str, Any]]]
"""Summaries of runs, by flow and by name of the run."""
Rows = list[dict[str, Any]]


def _read(
    runs: Sequence[FilePath], config: FilePath | None, unfinished: FilePath | None
) -> tuple[Summaries, Rows, list[Path]]:
    """Triple (summaries of runs by flow and name, rows of runs without a result, folders of the runs)."""
    rows = read_unfinished(None if unfinished is None else Path(unfinished))
    if not config and not runs and not rows:
        raise InputError("give folders of runs, or the option config")
    left_out = [row["run"] for row in rows]
    given = tuple(map(Path, runs))
    directories = _configured(Path(config), left_out) if config else run_directories(given) if given else []
    summaries: Summaries = {SINGLE: {}, MULTI: {}}
    for directory in directories:
        flow, summary = read_any_summary(directory)
        summaries[flow][directory.name] = summary
    return summaries, rows, directories


def _table(
    summaries: Summaries, rows: Rows, directories: Sequence[Path], csv: FilePath | None, parquet: FilePath | None
) -> "pandas.DataFrame":
    """Table of the runs in the folders `directories`. It is also written to the given files."""
    from tilewright.results.paper_tables import write_table
    from tilewright.results.run_tables import IN_PAPER, runs_table
    from tilewright.results.run_text import DONE
    from tilewright.results.text_tables import write_parquet

    table = runs_table(**summaries, unfinished=rows)
    if csv:
        with writing(Path(csv)):
            are_done = not len(table) or table["state"].eq(DONE).all()
            columns = [name for name in IN_PAPER if name != "state" or not are_done]
            write_table(table, Path(csv), columns, notes=_paper_notes(directories) if sheet_inches() else ())
    if parquet:
        with writing(Path(parquet)):
            write_parquet(table, Path(parquet))
    return table


def _show(
    read: tuple[Summaries, Rows, list[Path]], csv: Path | None, parquet: Path | None, verbose: bool, as_json: bool
) -> None:
    summaries, rows, directories = read
    if csv or parquet:
        _table(summaries, rows, directories, csv, parquet)
    if as_json:
        echo_json(summaries["single"] | summaries["multi"])
    shows_text = not as_json and (verbose or not (csv or parquet))
    if shows_text and (text := _text(summaries, rows, directories)):
        echo_text(text, nl=True)  # '' for a configuration that has only design spaces
    elif not shows_text:
        from tilewright.results.unlike_runs import CLOCKS, WARNED

        echo_notices(_unlike_lines([point_of_run(directory) for directory in directories], (*WARNED, CLOCKS)))


@verb(
    """Make a table with one row per run. RUNS are folders that `tilewright map` or `tilewright schedule` wrote, or
    folders of such folders.

    Example: tilewright summarize results/single results/multi --csv summary.csv
    """,
    run=_read,
    show=_show,
)
def summarize(
    runs: Annotated[Sequence[FilePath], ARGUMENT] = (),
    config: Annotated[
        FilePath | None, Help("Configuration file whose finished runs are listed, in place of RUNS.")
    ] = None,
    unfinished: Annotated[
        FilePath | None,
        Help("File with unfinished runs, written by `tilewright results --output`; these runs are listed too."),
    ] = None,
    csv: Annotated[FilePath | None, Help("CSV file to write.")] = None,
    parquet: Annotated[FilePath | None, Help("Parquet file to write.")] = None,
    paper: Annotated[PaperWidth | None, Paper(("csv",))] = None,
) -> "pandas.DataFrame":
    """Table with a row for each run in the folders, or for each finished run of a configuration.

    `csv` and `parquet` are files to write. With `paper` (`column` or `page`), the table is also written as LaTeX and
    Markdown beside the CSV file. `unfinished` is a file with runs that have no result; the table lists their names.
    Raises ArtifactError if no run is found, and InputError for damaged runs.
    """
    return _table(*_read(runs, config, unfinished), csv, parquet)


def _unlike_lines(points: "Sequence[RunPoint]", kinds: Sequence[str] = ()) -> list[str]:
    """Sentences on the reasons why a ranking of runs can mislead, such as different clocks.

    Only reasons of the given kinds are included (default: all kinds). Warnings come first.
    """
    from tilewright.results.unlike_runs import causes_by_network

    found = causes_by_network(points)
    return [f"{name}: {cause.line}" for name, causes in found for cause in causes if not kinds or cause.kind in kinds]


def _order_lines(points: "Sequence[RunPoint]", directories: Sequence[Path]) -> list[str]:
    """Sentences on the two best runs of each network in energy, latency and EDP: the changes that would reverse the
    order of the two runs. The last sentences say which changes were considered.
    """
    found = ordered(points, directories)
    lines = [f"{group.name}: {line}" for group in found for line in group.order_lines[:-1]]
    covers = [group.order_lines[-1] for group in found if group.order_lines]
    return [*lines, *dict.fromkeys(covers)]


def _paper_notes(directories: Sequence[Path]) -> list[str]:
    """Sentences below the table in a paper. They name the reasons why a ranking can mislead, and the changes that would
    reverse the order of the best runs.
    """
    points = [point_of_run(directory) for directory in directories]
    return [*_unlike_lines(points), *_order_lines(points, directories)]


def _text(summaries: Summaries, rows: Rows, directories: Sequence[Path]) -> str:
    from tilewright.results.run_columns import run_row
    from tilewright.results.run_tables import multi_text
    from tilewright.results.run_text import unfinished_lines
    from tilewright.results.tables import runs_legend, summary_text
    from tilewright.results.unlike_runs import WARNED

    points = [point_of_run(directory) for directory in directories]
    unlike = _unlike_lines(points)
    warnings = _unlike_lines(points, WARNED)
    texts = [ended_lines(warnings)] if warnings else []
    texts += [show(summaries[flow]) for flow, show in ((SINGLE, summary_text), (MULTI, multi_text)) if summaries[flow]]
    rows_of = {flow: [run_row(run, one) for run, one in summaries[flow].items()] for flow in (SINGLE, MULTI)}
    texts += [runs_legend(rows_of[SINGLE], rows_of[MULTI])] if texts else []
    below = [line for line in unlike if line not in warnings]
    texts += [ended_lines(below)] if below else []
    texts += [ended_lines(turns)] if (turns := _order_lines(points, directories)) else []
    texts += [terminal_lines(unfinished_lines(rows))] if rows else []
    return "\n".join(texts)


def _configured(config: Path, left_out: list[str]) -> list[Path]:
    from tilewright.cli.config import read_config

    plan = read_config(config)
    places = [plan.results / SINGLE / run.name for run in plan.runs]
    places += [plan.results / MULTI / run.name for run in plan.multi_runs if not run.base]
    finished = [place for place in places if place.name not in left_out and (place / SUMMARY).is_file()]
    if places and not finished and not left_out:
        raise ArtifactError(f"{config} has {count_of(len(places), 'run')}, but no finished run")
    return finished
