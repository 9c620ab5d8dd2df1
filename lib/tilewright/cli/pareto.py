"""`tilewright pareto`: Pareto front of many runs in energy, latency and area."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath, make_folder, writing
from tilewright.base.errors import InputError
from tilewright.cli.options import echo_json, echo_notices, keep_font_cache_here
from tilewright.cli.run_costs import point_of_run
from tilewright.cli.run_ledgers import ordered
from tilewright.cli.runs import read_unfinished, run_directories
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, verb
from tilewright.results.sheet import PaperWidth

if TYPE_CHECKING:
    import pandas

    from tilewright.results.pareto import ComparableRuns


def _compared(
    runs: Sequence[FilePath],
    unfinished: FilePath | None,
    csv: FilePath | None,
    figures: FilePath | None,
) -> "tuple[pandas.DataFrame, Sequence[ComparableRuns]]":
    """Pair (table, groups of runs that are compared)."""
    from tilewright.results.paper_tables import write_table
    from tilewright.results.pareto import paper_columns, paper_notes, pareto_table

    rows = read_unfinished(None if unfinished is None else Path(unfinished))
    if not runs and not rows:
        raise InputError("give folders of runs")
    folders = run_directories(tuple(map(Path, runs))) if runs else []
    groups = ordered([point_of_run(folder) for folder in folders], folders, rows)
    table = pareto_table(groups)
    if csv:
        with writing(Path(csv)):
            write_table(table, Path(csv), paper_columns(groups), notes=paper_notes(groups))
    if figures:
        keep_font_cache_here()
        from tilewright.results.pareto_figure import write_pareto_figures

        make_folder(Path(figures))
        with writing(Path(figures)):
            write_pareto_figures(groups, Path(figures))
    return table, groups


def _show(
    found: "tuple[pandas.DataFrame, Sequence[ComparableRuns]]",
    csv: Path | None,
    figures: Path | None,
    verbose: bool,
    as_json: bool,
) -> None:
    from tilewright.results.pareto import pareto_text

    table, groups = found
    echo_notices([f"{group.workload}: {group.warning}" for group in groups if group.warning])
    if as_json:
        echo_json(
            [{key: None if value != value else value for key, value in row.items()} for row in table.to_dict("records")]
        )
    elif verbose or not (csv or figures):
        echo_text(pareto_text(groups), nl=True)


@verb(
    """Show the Pareto front of RUNS in energy, latency and area, for each network.

    RUNS are folders that `tilewright map` or `tilewright schedule` wrote, or folders of such folders. Two runs are
    compared if they have the same network and the same options; the objective can differ. Runs on several cores are not
    compared with runs on one core. If areas are not known, only energy and latency are compared.

    Example: tilewright pareto results/single --figures results/pareto
    """,
    run=_compared,
    show=_show,
)
def pareto(
    runs: Annotated[Sequence[FilePath], ARGUMENT],
    unfinished: Annotated[
        FilePath | None,
        Help("File with unfinished runs, written by `tilewright results --output`; these runs are listed too."),
    ] = None,
    csv: Annotated[FilePath | None, Help("CSV file to write.")] = None,
    figures: Annotated[FilePath | None, Help("Folder for figures, one for each network.")] = None,
    paper: Annotated[PaperWidth | None, Paper(("figures", "csv"))] = None,
) -> "pandas.DataFrame":
    """Table of the runs in the folders, one row per run. The column `pareto` says whether the run is on the Pareto
    front (in energy, latency and area) of the comparable runs of its network.

    `csv` is a file to write, and `figures` is a folder to write. `unfinished` is a file that lists runs without a
    result; the table names these runs. `paper` is the width of figures for a paper, `column` or `page`; None draws
    figures for a report. Raises ArtifactError if no run is found, and InputError for damaged runs.
    """
    return _compared(runs, unfinished, csv, figures)[0]
