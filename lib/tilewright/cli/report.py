"""`tilewright report`: figures, tables and loop nests of one run on one or several cores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.files import FilePath, writing
from tilewright.base.errors import InputError, Problem
from tilewright.base.report_files import ONE_CORE_FILES, TABLES, of_part
from tilewright.base.steps import REPORT
from tilewright.cli.options import Part, echo_paths, keep_font_cache_here
from tilewright.cli.parameter_options import Named, parameter_keywords
from tilewright.cli.runs import existing_run, is_multi_run, read_records, read_summary
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Paper, verb
from tilewright.results.schedule_options import ScheduleFigureOptions
from tilewright.results.sheet import PaperWidth


def _show(paths: Sequence[Path], run: Path, verbose: bool, as_json: bool) -> None:
    if verbose and not as_json and not is_multi_run(run):
        from tilewright.results.tables import layers_text

        echo_text(layers_text(read_records(run), read_summary(run)), nl=True)
    echo_paths(paths, as_json)


@verb(
    """Write figures (energy, latency, loop nests), layers.csv and loop_nests.txt of a run.

    RUN is a folder that `tilewright map` wrote, or a folder that `tilewright schedule` and the verbs before it wrote.
    For such a schedule, the command writes figures, a page for a browser (schedule.html), and a trace for Perfetto
    (trace.json).

    Example: tilewright report results/single/resnet18-tpu_like -o report
    """,
    show=_show,
)
@parameter_keywords(figure=ScheduleFigureOptions)
def report(
    run: Annotated[FilePath, ARGUMENT],
    output: Annotated[FilePath | None, Help("Folder for the files; default: RUN/report.")] = None,
    loop_nests: Annotated[
        Sequence[str],
        Help("Layer whose loop nest is also drawn, as SVG and PNG.", flag="--loop-nest", metavar="LAYER"),
    ] = (),
    only: Part = "",
    paper: Annotated[PaperWidth | None, Paper()] = None,
    *,
    figure: Named[ScheduleFigureOptions],
) -> list[Path]:
    """Write the figures and tables of the run in a folder; returns the paths of the files.

    `output` is the folder for the files; the default is the subfolder `report` of the run. `loop_nests` has the names
    of the layers whose loop nests are drawn. `only` is the part to write: `tables`, `figures`, or '' for both. `paper`
    is the width of figures for a paper, `column` or `page`; None draws figures for a report. The other keywords are
    settings of `ScheduleFigureOptions`, which apply to runs on several cores. Raises ArtifactError for a folder without
    a finished run, and InputError for an unknown layer or setting.
    """
    options = figure()
    return _written(Path(run), output, tuple(loop_nests), only, options)


def _written(
    run: Path, output: FilePath | None, loop_nests: Sequence[str], only: Part, options: ScheduleFigureOptions
) -> list[Path]:
    """Write the files of `report`; returns their paths."""
    keep_font_cache_here()
    run = existing_run(Path(run))
    directory = run / REPORT if output is None else Path(output)
    if is_multi_run(run):
        from tilewright.cli.report_multi import write_multi_report

        if loop_nests:
            message = "loop nests are not drawn for runs on several cores"
            raise InputError([Problem(message, path="loop_nests", value=", ".join(loop_nests))])
        return write_multi_report(run, directory, options, only)
    if loop_nests and only == TABLES:
        message = "loop nests are figures, so they cannot be combined with `only: tables`"
        raise InputError([Problem(message, path="loop_nests")])
    from tilewright.results.report_writing import write_report
    from tilewright.results.reported_mapping import ReportedMapping

    mapped = ReportedMapping(read_records(run), read_summary(run))
    paths = write_report(of_part(ONE_CORE_FILES, only), mapped, directory)
    if loop_nests:
        from tilewright.results.nest_figure import write_layer_nests

        with writing(directory):
            paths += write_layer_nests(mapped.records, mapped.summary, tuple(loop_nests), directory / "loop_nests")
    return paths
