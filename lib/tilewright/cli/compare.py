"""`tilewright compare`: differences between two runs, or between two designs of a space."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.digests import document_text
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically, writing
from tilewright.base.artifacts.seals import sealed_document
from tilewright.base.errors import Problems, TilewrightError
from tilewright.cli.batched_runs import batched_networks
from tilewright.cli.compared_sides import Side, compared_sides
from tilewright.cli.number_lists import BATCHES, batches_of
from tilewright.cli.options import echo_json, echo_paths, keep_font_cache_here
from tilewright.cli.run_networks import network_difference
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import Argument, Help, Paper, Tell, silent, verb
from tilewright.results.sheet import PaperWidth
from tilewright.search.options import MACHINES_TEXT

if TYPE_CHECKING:
    import pandas

    from tilewright.designs.core_trials import ExplainedRun
    from tilewright.results.order_turn import UncertainNumber
    from tilewright.results.two_runs import RunComparison

Sides = tuple[Side, Side]
STEM = "comparison"
"""Name of the written files without their suffix."""


def _compared(
    a: FilePath,
    b: FilePath,
    network: str,
    search_again: bool = False,
    batches: Sequence[int] | str = (),
    sizes: bool = False,
    error_bars: str = "",
    jobs: int = 1,
    tell: Tell = silent,
) -> "RunComparison":
    counts = () if batches == () else batches_of(batches)
    from tilewright.results.error_bars.faster import classes_of, faster_object
    from tilewright.results.two_runs import compare_two, needs_networks, with_own_names

    classes = classes_of(error_bars) if error_bars else None
    given = str(a), str(b)
    with compared_sides(given, network, tell) as sides:
        ledgers = with_own_names(sides[0].ledger, sides[1].ledger, given)
        difference = network_difference(_places(sides)) if needs_networks(*ledgers) else None
        compared = compare_two(*ledgers, difference)
        compared = replace(compared, notices=(*(one for side in sides for one in side.notices), *compared.notices))
        if classes is not None:
            compared = replace(compared, error_bars=faster_object(compared.a, compared.b, classes))
        compared = replace(compared, bandwidths=_bandwidths(sides))
        compared = _with_batches(compared, sides, counts, jobs) if counts else compared
        compared = _with_sizes(compared, sides, search_again, jobs) if sizes else compared
        return _searched_again(compared, sides, jobs) if search_again else compared


def _places(sides: Sides) -> tuple[str, str]:
    """Paths of the runs of both sides."""
    return sides[0].place, sides[1].place


def _bandwidths(sides: Sides) -> "tuple[UncertainNumber, ...] | None":
    """Bandwidths of the off-chip memories, as numbers that the comparison varies; None if the mappings of a run cannot
    be evaluated again.
    """
    try:
        first, second = (side.with_inputs("search_again") for side in sides)
        from tilewright.designs.bandwidth_numbers import bandwidth_numbers

        return bandwidth_numbers((first, second))
    except TilewrightError:
        return None


def _searched_again(compared: "RunComparison", sides: Sides, jobs: int) -> "RunComparison":
    """Comparison of two runs, extended by new searches of their mappings. For a hardware number, such as a bandwidth,
    the searches find the factor that reverses the order of the runs in energy, latency or EDP. For each tried factor,
    the mappings of both runs are searched again. Raises InputError if a run is not a search on one core, or if its
    inputs are not found.
    """
    from tilewright.designs.order_search import searched_turns

    runs = _with_inputs(sides, "search_again")
    return replace(compared, searched=searched_turns(compared.turns, runs, jobs))


def _with_batches(compared: "RunComparison", sides: Sides, batches: Sequence[int], jobs: int) -> "RunComparison":
    """Comparison of two runs, extended by the order of the runs for each batch in `batches`. Mappings of both runs are
    searched for each batch. Raises InputError if a run is not a search on one core, if its inputs are not found, or if
    the batch of its network cannot be changed.
    """
    from tilewright.designs.batch_search import batch_turns

    runs = _with_inputs(sides, BATCHES)
    files = sides[0].network, sides[1].network
    networks = batched_networks(_places(sides), files, (runs[0].core, runs[1].core), batches)
    return replace(compared, batched=batch_turns(compared.turns, runs, networks, batches, jobs))


def _with_sizes(compared: "RunComparison", sides: Sides, is_searched: bool, jobs: int) -> "RunComparison":
    """Comparison of two runs, extended by the order of the runs at other sizes of on-chip memories. The mappings stay
    the same. If `is_searched` is true, the order after new searches of mappings is also added. Raises InputError as
    `_searched_again` does.
    """
    from tilewright.designs.size_search import size_orders, sized_memories
    from tilewright.results.size_turn import SizesOfRuns

    runs = _with_inputs(sides, "sizes")
    memories = sized_memories(runs)
    held = size_orders(compared.turns, runs, memories, is_searched=False)
    searched = size_orders(compared.turns, runs, memories, is_searched=True, jobs=jobs) if is_searched else None
    return replace(compared, sized=SizesOfRuns(memories, held, searched))


def _with_inputs(sides: Sides, option: str) -> "tuple[ExplainedRun, ExplainedRun]":
    """Pair (first run, second run), both with their inputs, for new searches on one core. `option` is the option that
    needs the searches. Raises InputError if a run is not a search on one core, or if its inputs are not
    found.
    """
    problems = Problems()
    found = [problems.attempt(side.with_inputs, option) for side in sides]
    problems.finish()
    first, second = (one for one in found if one is not None)
    return first, second


def _show(compared: "RunComparison", output: Path | None, as_json: bool) -> None:
    from tilewright.results.two_runs import comparison_object
    from tilewright.results.two_runs_text import comparison_text

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
    names a design of the space whose results are in FOLDER; its full run is made for the comparison, unless `tilewright
    explore --show` has written the run. The differences add up to the difference of the totals. If
    options of the runs differ, the report names them. Runs with different bits of operands can be compared, but not
    runs of different networks.

    The report ends with the smallest change of one number (energy, clock, off-chip bandwidth) that would reverse the
    order of the runs. For each of these changes, --search-again also searches new mappings of both runs, with the
    options of the runs. Most changes need three to ten searches of each run. --batches searches both runs again with
    other batch sizes. --sizes tries other sizes of on-chip memories; with --search-again, it also searches new
    mappings.

    Example: tilewright compare results/single/resnet18-tpu_like results/single/resnet18-eyeriss_like -o differences
    """,
    run=_compared,
    show=_show,
)
def compare(
    a: Annotated[FilePath, Argument(type=str)],
    b: Annotated[FilePath, Argument(type=str)],
    output: Annotated[FilePath | None, Help(f"Folder for {STEM}.csv, .json, .svg and .png.")] = None,
    network: Annotated[
        str,
        Help(
            "Network to compare, for designs of a space with several networks (default: the network of the other run)."
        ),
    ] = "",
    search_again: Annotated[
        bool,
        Help("For each change that would reverse the order, also search new mappings. Each run must be on one core."),
    ] = False,
    batches: Annotated[
        Sequence[int],
        Help(
            "Batches, such as 2,4,8, for which mappings of both runs are searched again. Each run must be on one core.",
            type=str,
        ),
    ] = (),
    sizes: Annotated[
        bool, Help("Also find the smallest change of the size of an on-chip memory that would reverse the order.")
    ] = False,
    error_bars: Annotated[
        str,
        Help(
            "Also give the probability that A is faster than B, from the measured prediction errors for a class of"
            f" machines. CLASS is the class of both runs; CLASS_A,CLASS_B gives one for each run. {MACHINES_TEXT}",
            metavar="CLASS",
        ),
    ] = "",
    jobs: int = 1,
    paper: Annotated[PaperWidth | None, Paper(("output",))] = None,
) -> "pandas.DataFrame":
    """Table of the differences of run `b` from run `a`, with a row for each layer, term and memory. The row with the
    largest difference comes first.

    Each run is a folder, a file layers.jsonl, or `FOLDER:DESIGN`, a design of a space. The full run of a design is made
    for the comparison, unless `explore` with `show` has written it. If a space has several networks, `network` selects
    one; by default, it is the network of the other run. For each change that would reverse the order, `search_again`
    searches new mappings of both runs, with `jobs` threads. `batches` searches new mappings with other batch sizes.
    `sizes` tries other sizes of on-chip memories. The column `assumes` has the results of `search_again`, `batches` and
    `sizes`, and the assumptions of the comparison. With `error_bars` (a class of machines, or two with a comma between
    them), this column also has the probability that run `a` is faster. `output` is a folder for the table as CSV and
    JSON, and a figure. `paper` is the width of figures for a paper, `column` or `page`; None draws figures for a
    report. Energies are in pJ. Raises InputError for runs that cannot be compared or searched again, ArtifactError for
    a run that is missing or damaged, and MappingError if a new search finds no mapping.
    """
    from tilewright.results.two_runs import comparison_table

    compared = _compared(a, b, network, search_again, batches, sizes, error_bars, jobs)
    if output is not None:
        _write(compared, Path(output))
    return comparison_table(compared)


def _write(compared: "RunComparison", folder: Path) -> list[Path]:
    """Write the table as CSV and JSON, and the figure; returns the paths."""
    from tilewright.results.paper_tables import write_table
    from tilewright.results.two_runs import COLUMNS, comparison_object, comparison_table, large_differences

    keep_font_cache_here()
    from tilewright.results.two_runs_figure import write_comparison_figure

    make_folder(folder)
    table, data = folder / f"{STEM}.csv", folder / f"{STEM}.json"
    write_atomically(data, sealed_document(document_text(comparison_object(compared))))
    with writing(folder):
        rows = comparison_table(compared)
        shown, notes = large_differences(rows)
        tables = write_table(rows, table, COLUMNS, shown, notes, below=notes)
        return [*tables, data, *write_comparison_figure(compared, folder / STEM)]
