"""`tilewright page`: one HTML page with the results of many runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright.base.artifacts.envelope import Artifact, read_artifact
from tilewright.base.artifacts.files import FilePath, write_atomically, writing
from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.base.report_files import BOTTLENECKS
from tilewright.base.steps import LAYERS, MULTI, RESULTS_PAGE, SUMMARY
from tilewright.cli.options import echo_paths
from tilewright.cli.run_costs import costs_of_run
from tilewright.cli.run_ledgers import ordered
from tilewright.cli.runs import (
    made_of,
    read_any_summary,
    read_bottlenecks,
    read_unfinished,
    records_of,
    run_directories,
)
from tilewright.cli.verb import ARGUMENT, Help, verb

if TYPE_CHECKING:
    from tilewright.results.page.document import PageRun

SUFFIXES = (".html", ".htm")
"""Suffixes that the file of the page can have. With another suffix, browsers would show the HTML text of the page."""


@verb(
    """Write one page for a browser with the results of RUNS: a table, details of each run, Pareto fronts, and
    comparisons of two runs.

    RUNS are folders that `tilewright map` or `tilewright schedule` wrote, or folders of such folders. The page is one
    file and works offline.

    Example: tilewright page results/single results/multi -o page.html
    """,
    show=lambda file, as_json: echo_paths([file], as_json),
    order="runs unfinished",
)
def page(
    runs: Annotated[Sequence[FilePath], ARGUMENT],
    output: Annotated[FilePath, Help(f"HTML file to write; default: {RESULTS_PAGE}.")] = RESULTS_PAGE,
    unfinished: Annotated[
        FilePath | None,
        Help("File with unfinished runs, written by `tilewright results --output`; these runs are listed too."),
    ] = None,
) -> Path:
    """Write one HTML page with the runs in the folders. Returns the path of the file.

    `unfinished` is a file that lists runs without a result; the page names these runs. Raises ArtifactError for a
    folder without a run and for a damaged run. Raises InputError if no folder is given, or if `output` does not have a
    suffix of HTML files.
    """
    from tilewright.results.page.document import results_page

    file = Path(output)
    if file.suffix not in SUFFIXES:
        allowed = f"a file whose name ends in {SUFFIXES[0]}, such as {file / RESULTS_PAGE}"
        raise InputError(
            [Problem("is not the name of an HTML file", path="output", value=str(output), allowed=allowed)]
        )
    rows = read_unfinished(None if unfinished is None else Path(unfinished))
    if not runs and not rows:
        raise InputError("give folders of runs")
    folders = run_directories(tuple(map(Path, runs))) if runs else []
    folders = list({folder.resolve(): folder for folder in folders}.values())
    made = [_page_run(folder, name) for folder, name in zip(folders, _names(folders), strict=True)]
    with writing(file):
        write_atomically(file, results_page(made, rows, ordered([run.point for run in made], folders, rows)))
    return file


def _names(folders: Sequence[Path]) -> list[str]:
    """Distinct names for the folders. If two folders have the same name, names of their parent folders are put in
    front.
    """
    depth = 1
    while True:
        names = ["/".join(folder.resolve().parts[-depth:]) for folder in folders]
        if len(set(names)) == len(folders):
            return names
        depth += 1


def _page_run(folder: Path, name: str) -> "PageRun":
    flow, summary = read_any_summary(folder)
    return _of_several_cores(folder, name, summary) if flow == MULTI else _of_one_core(folder, name, summary)


def _of_one_core(folder: Path, name: str, summary: Mapping[str, Any]) -> "PageRun":
    from tilewright.base.steps import SINGLE
    from tilewright.results.bottlenecks import bottlenecks_of
    from tilewright.results.page.document import PageRun
    from tilewright.results.page.one_core import one_core_detail
    from tilewright.results.records import layers_in_order
    from tilewright.results.run_ledger import ledger_of_layers

    artifact = read_artifact(folder / LAYERS, "tilewright/layers")
    records = records_of(artifact, folder / LAYERS)
    placed = layers_in_order(records, summary)
    costs = costs_of_run(folder, artifact.provenance, summary)
    found = bottlenecks_of(ledger_of_layers(name, records, summary, artifact.provenance, costs), placed)
    verdicts = _verdicts(folder, artifact)
    detail = one_core_detail(found, placed, summary, verdicts)
    return PageRun(name, SINGLE, summary, found.run, detail, verdicts["network_limit"])


def _verdicts(folder: Path, artifact: Artifact) -> Mapping[str, Any]:
    """Limiting ports of the run, as in the JSON file of `tilewright explain`. If the report of the run has this file
    for the same records, the content of the file is returned. Otherwise, the ports are computed. If inputs of the run
    are not found, `limits_not_known` has the reason.
    """
    from tilewright.base.steps import REPORT
    from tilewright.cli.explain import explain
    from tilewright.results.bottlenecks import bottlenecks_object

    written = read_bottlenecks(folder / REPORT / f"{BOTTLENECKS}.json")
    if written is not None and written.get("made_of") == made_of(artifact) and not written.get("layer"):
        return written
    try:
        return bottlenecks_object(explain(folder))
    except TilewrightError as error:
        # Input files of the run were not found. The run itself can be read, because it was read above.
        first = str(error).splitlines()[0]
        return {"network_limit": None, "limits": {}, "limits_not_known": first, "ports": [], "roofline": None}


def _of_several_cores(folder: Path, name: str, summary: Mapping[str, Any]) -> "PageRun":
    from tilewright.base.steps import CN_COLUMNS, CN_GRAPH, SCHEDULE
    from tilewright.cli.explain import explain
    from tilewright.multicore.nodes.graph import read_cn_graph
    from tilewright.multicore.scheduling.result import read_schedule
    from tilewright.results.multi.bars import ScheduleView, tile_ranges
    from tilewright.results.page.document import PageRun
    from tilewright.results.page.several_cores import limited_by, several_cores_detail
    from tilewright.results.pareto import multi_candidate

    has_graph = (folder / CN_GRAPH).is_file() and (folder / CN_COLUMNS).is_file()
    tiles = tile_ranges(read_cn_graph(folder / CN_GRAPH, folder / CN_COLUMNS)) if has_graph else None
    view = ScheduleView(read_schedule(folder / SCHEDULE), tiles)
    found = explain(folder)
    point = multi_candidate(name, summary, read_artifact(folder / SUMMARY).provenance)
    detail = several_cores_detail(found, view, summary, f"Schedule of {name}")
    return PageRun(name, MULTI, summary, point, detail, limited_by=limited_by(found.cores))
