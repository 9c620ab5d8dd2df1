"""`tilewright compare`: differences between two runs, or between two designs of a space."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.digests import document_text
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically, writing
from tilewright.base.artifacts.seals import sealed_document
from tilewright.base.errors import InputError, Problem
from tilewright.base.steps import LAYERS, MULTI, SCHEDULE, SUMMARY
from tilewright.cli.options import echo_json, echo_paths, keep_font_cache_here
from tilewright.cli.run_costs import costs_of_run
from tilewright.cli.run_ledgers import ledger_of_several_cores
from tilewright.cli.runs import existing_run, read_any_summary, records_of
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import Argument, Help, Paper, verb
from tilewright.results.sheet import PaperWidth

if TYPE_CHECKING:
    import pandas

    from tilewright.results.run_ledger import RunLedger
    from tilewright.results.two_runs import RunComparison

STEM = "comparison"
"""Name of the written files without their suffix."""


def _compared(a: FilePath, b: FilePath, network: str) -> "RunComparison":
    from tilewright.results.two_runs import compare_two, with_own_names

    first, second = str(a), str(b)
    return compare_two(*with_own_names(_ledger(first, network), _ledger(second, network), (first, second)))


def _show(compared: "RunComparison", output: Path | None, as_json: bool) -> None:
    from tilewright.results.two_runs import comparison_object, comparison_text

    paths = _write(compared, output) if output else []
    if as_json:
        echo_json(comparison_object(compared))
        return
    echo_text(comparison_text(compared))
    if paths:
        echo_paths(paths, as_json)


@verb(
    """Compare the run B with the run A: energy and latency by term, memory and layer, the largest differences first.

    A and B are each the folder of a run on one or several cores, a file layers.jsonl, or FOLDER:DESIGN. The last form
    names a design of the space whose results are in FOLDER. The differences add up to the difference of the totals. If
    options of the runs differ, the report names them. Runs of different networks cannot be compared.

    Example: tilewright compare results/single/resnet18-tpu_like results/single/resnet18-eyeriss_like -o differences
    """,
    run=_compared,
    show=_show,
)
def compare(
    a: Annotated[FilePath, Argument(type=str)],
    b: Annotated[FilePath, Argument(type=str)],
    output: Annotated[FilePath | None, Help(f"Folder for {STEM}.csv, .json, .svg and .png.")] = None,
    network: Annotated[str, Help("Network to compare, for designs of a space with several networks.")] = "",
    paper: Annotated[PaperWidth | None, Paper(("output",))] = None,
) -> "pandas.DataFrame":
    """Table of the differences of run `b` from run `a`. It has a row for each layer, term and memory, the row with the
    largest difference first.

    Each run is a folder, a file layers.jsonl, or `FOLDER:DESIGN`, a design of a space. If a design has several
    networks, `network` selects one. `output` is a folder for the table as CSV and JSON, and a figure. `paper` is the
    width of figures for a paper, `column` or `page`; None draws figures for a report. Energies are in pJ. Raises
    InputError for runs that cannot be compared, ArtifactError for a run that is missing or damaged.
    """
    from tilewright.results.two_runs import comparison_table

    compared = _compared(a, b, network)
    if output is not None:
        _write(compared, Path(output))
    return comparison_table(compared)


def _ledger(given: str, network: str) -> "RunLedger":
    """Ledger of the run or the design that the text names. Raises InputError and ArtifactError."""
    path = Path(given)
    folder, _, design = given.rpartition(":")
    if folder and not path.exists():
        from tilewright.designs.design_ledger import ledger_of_design

        return ledger_of_design(Path(folder), design, network)
    if network:
        raise InputError([Problem("applies only to designs of a space", path="--network", value=network)])
    if path.name == LAYERS and not (path.parent / SUMMARY).is_file():
        return _of_one_core(path.parent, None)
    folder_of_run = path.parent if path.name in (LAYERS, SUMMARY, SCHEDULE) else existing_run(path)
    flow, summary = read_any_summary(folder_of_run)
    return ledger_of_several_cores(folder_of_run) if flow == MULTI else _of_one_core(folder_of_run, summary)


def _of_one_core(folder: Path, summary: "dict[str, object] | None") -> "RunLedger":
    from tilewright.results.run_ledger import ledger_of_layers

    artifact = read_artifact(folder / LAYERS, "tilewright/layers")
    records = records_of(artifact, folder / LAYERS)
    costs = costs_of_run(folder, artifact.provenance, summary)
    return ledger_of_layers(folder.name, records, summary, artifact.provenance, costs)


def _write(compared: "RunComparison", folder: Path) -> list[Path]:
    """Write the table as CSV and JSON, and the figure; returns the paths."""
    from tilewright.results.paper_tables import write_table
    from tilewright.results.two_runs import COLUMNS, comparison_object, comparison_table

    keep_font_cache_here()
    from tilewright.results.two_runs_figure import write_comparison_figure

    make_folder(folder)
    table, data = folder / f"{STEM}.csv", folder / f"{STEM}.json"
    write_atomically(data, sealed_document(document_text(comparison_object(compared))))
    with writing(folder):
        tables = write_table(comparison_table(compared), table, COLUMNS)
        return [*tables, data, *write_comparison_figure(compared, folder / STEM)]
