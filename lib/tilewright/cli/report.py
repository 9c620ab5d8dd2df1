"""`tilewright report`: figures, tables and loop nests of one run, on one or several cores."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically, writing
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import LAYER_TABLE, LOOP_NEST_PAGES, LOOP_NESTS, REPORT
from tilewright.cli.options import FIGURES, TABLES, Part, echo_paths, keep_font_cache_here
from tilewright.cli.parameter_options import Named, parameter_keywords
from tilewright.cli.runs import existing_run, is_multi_run, read_records, read_summary
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, verb
from tilewright.results.schedule_options import ScheduleFigureOptions

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord


def _show(paths: Sequence[Path], run: Path, verbose: bool, as_json: bool) -> None:
    if verbose and not as_json and not is_multi_run(run):
        from tilewright.results.tables import layers_text

        echo_text(layers_text(read_records(run), read_summary(run)), nl=True)
    echo_paths(paths, as_json)


@verb(
    """Write figures (energy, latency, loop nests), layers.csv and loop_nests.txt of a run.

    RUN is a folder that `tilewright map` wrote, or a folder that `tilewright schedule` and the steps before it wrote.
    In the latter case the schedule is drawn, also for a browser (schedule.html) and for Perfetto (trace.json).

    Example: tilewright report results/single/resnet18-tpu_like -o report
    """,
    show=_show,
)
@parameter_keywords(figure=ScheduleFigureOptions)
def report(
    run: Annotated[FilePath, ARGUMENT],
    output: Annotated[FilePath | None, Help("Folder to write; default: RUN/report.")] = None,
    loop_nests: Annotated[
        Sequence[str],
        Help("Also the loop nest of this layer as SVG and PNG.", flag="--loop-nest", metavar="LAYER"),
    ] = (),
    only: Part = "",
    *,
    figure: Named[ScheduleFigureOptions],
) -> list[Path]:
    """Write the figures and tables of the run in a folder, by default into its folder `report`; returns the files.

    `loop_nests` are the layers whose loop nests are drawn. `only` is the part to write, `tables` or `figures`, '' for
    both. Settings are those of `ScheduleFigureOptions`, for several cores. Raises ArtifactError for a folder without a
    finished run, InputError for an unknown layer or setting.
    """
    options = figure()
    keep_font_cache_here()
    run = existing_run(Path(run))
    directory = run / REPORT if output is None else Path(output)
    if is_multi_run(run):
        from tilewright.cli.report_multi import write_multi_report

        if loop_nests:
            message = "loop nests are not drawn of runs on several cores"
            raise InputError([Problem(message, path="--loop-nest", value=", ".join(loop_nests))])
        return write_multi_report(run, directory, options, only)
    if loop_nests and only == TABLES:
        message = "loop nests of layers are figures: give --loop-nest or --only tables"
        raise InputError([Problem(message, path="--loop-nest")])
    records, summary = read_records(run), read_summary(run)
    make_folder(directory)
    with writing(directory):
        figures = [] if only == TABLES else _write_figures(records, summary, directory, tuple(loop_nests))
        return figures + ([] if only == FIGURES else _write_tables(records, summary, directory))


def _write_figures(
    records: "Sequence[LayerRecord]", summary: JsonObject, directory: Path, layers: tuple[str, ...]
) -> list[Path]:
    from tilewright.results.figures import write_figures
    from tilewright.results.nest_figure import write_layer_nests, write_nest_pages

    paths = [*write_figures(records, summary, directory)]
    paths += write_layer_nests(records, summary, layers, directory / "loop_nests")
    write_nest_pages(records, summary, directory / LOOP_NEST_PAGES)
    return [*paths, directory / LOOP_NEST_PAGES]


def _write_tables(records: "Sequence[LayerRecord]", summary: JsonObject, directory: Path) -> list[Path]:
    from tilewright.results.loop_nest import network_loop_nests
    from tilewright.results.tables import layer_table
    from tilewright.results.text_tables import write_csv

    write_csv(layer_table(records, summary), directory / LAYER_TABLE)
    write_atomically(directory / LOOP_NESTS, network_loop_nests(records, summary))
    return [directory / LAYER_TABLE, directory / LOOP_NESTS]
