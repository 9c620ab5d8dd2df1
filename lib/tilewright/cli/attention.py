"""`tilewright attention`: scores, softmax and weighted values of attention on one core, fused if that is better."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright import __version__
from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import document_text
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.artifacts.seals import sealed_document
from tilewright.base.errors import InputError, Label, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits, OneOf
from tilewright.base.steps import ATTENTION, ATTENTION_TABLE
from tilewright.base.unused import refuse_unused, unused_in, with_unused
from tilewright.cli.csv_text import csv_text, plain
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.number_lists import contexts_of
from tilewright.cli.options import echo_json, echo_paths
from tilewright.cli.parameter_options import Given, Named, parameter_keywords
from tilewright.cli.terminal import echo_text
from tilewright.cli.tokens import described_model
from tilewright.cli.verb import HARDWARE_FILE, MAPPING_FILE, Help, Tell, silent, verb
from tilewright.tiles.attention.points import AttentionPoints, read_sizes
from tilewright.tiles.attention.space import ORDERS, Sizes
from tilewright.tiles.depth_first.options import LayerOptions

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.tiles.attention.costs import AttentionCosts
    from tilewright.tiles.attention.optimum import AttentionOptimum

TIME_BUDGET_S = 600.0


def _searched(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    contexts: Sequence[int] | str,
    memory_sizes: str,
    tile_queries: Sequence[int],
    tile_keys: Sequence[int],
    tile_heads: Sequence[int],
    tile_units: Sequence[int],
    order: Sequence[str],
    time_budget_s: float,
    search: Given[LayerOptions],
    output: FilePath | None,
    strict: bool,
    tell: Tell = silent,
    show_progress: bool = False,
) -> "tuple[_Found, list[Path]]":
    """Pair (best way to run each attention, paths of the written files)."""
    sizes = Sizes(tuple(tile_units), tuple(tile_heads), tuple(tile_queries), tuple(tile_keys), tuple(order))
    _check_sizes(sizes)
    numbers = contexts_of(contexts) if isinstance(contexts, str) or contexts else []
    asked = _Asked(sizes, AttentionPoints(tuple(numbers), *read_sizes(memory_sizes)), time_budget_s, strict)
    chosen, notices = search(), list[str]()
    found = _found((workload, hardware, mapping), asked, search, notices, show_progress)
    tell(notices)
    return found, [] if output is None else _write(found, chosen, Path(output))


def _show(made: "tuple[_Found, list[Path]]", as_json: bool) -> None:
    found, paths = made
    if as_json:
        echo_json(_object(found))
        return
    from tilewright.tiles.attention.result import table_text, why_text

    echo_text(table_text(found.optima, found.points), nl=True)
    if found.points == AttentionPoints():
        echo_text("\n".join(why_text(one) for one in found.optima), nl=True)
    if paths:
        echo_paths(paths, as_json)


@verb(
    """Find the best way to run each attention of a language model on one core: fused in tiles, or layer by layer.    In
    a fused attention, the scores of a tile of queries and keys are used before the next tile begins, so that the
    scores never leave the chip. The search covers all tile sizes, both loop orders and all memories. The command proves
    that its result is the best, unless the time limit ends the search.

    Example: tilewright attention --hardware config/hardware/zigzag/tpu_like_vector.yaml --mapping
    config/mapping/zigzag/tpu_like_vector.yaml --workload config/workload/qwen2.5_0.5b_decode.yaml --objective energy
    """,
    run=_searched,
    show=_show,
    order="hardware workload mapping contexts memory_sizes tile_queries tile_keys tile_heads tile_units order"
    " time_budget_s output",
)
@parameter_keywords(search=LayerOptions)
def attention(
    workload: Annotated["WorkloadSource", Help("Workload file of a language model.")],
    hardware: Annotated["AcceleratorSource", HARDWARE_FILE],
    mapping: Annotated["MappingSource", MAPPING_FILE],
    *,
    contexts: Annotated[
        Sequence[int],
        Help("Context lengths in tokens: a list (1k,4k) or first:last:how-many; k means 1,024.", type=str),
    ] = (),
    memory_sizes: Annotated[
        str,
        Help("Sizes to try for one memory: sram_2MB='64 KiB,256 KiB,2 MiB'. Its ports and energies stay the same."),
    ] = "",
    tile_queries: Annotated[
        Sequence[int],
        Limits(least=1),
        Help("Number of queries in a tile. Repeat the option to try several; by default, many are tried."),
    ] = (),
    tile_keys: Annotated[
        Sequence[int],
        Limits(least=1),
        Help("Number of keys in a tile. Repeat the option to try several; by default, many are tried."),
    ] = (),
    tile_heads: Annotated[
        Sequence[int],
        Limits(least=1),
        Help("Number of query heads in a tile for each key head. Repeat the option to try several."),
    ] = (),
    tile_units: Annotated[
        Sequence[int],
        Limits(least=1),
        Help("Number of key heads in a tile, counted over all requests. Repeat the option to try several."),
    ] = (),
    order: Annotated[
        Sequence[str], OneOf(ORDERS), Help("Outer loop over the tiles; by default, both are tried.")
    ] = ORDERS,
    time_budget_s: Annotated[
        float,
        Limits(least=0),
        Help(
            "Time limit in seconds for one attention. At the limit, the best result so far is used, with its gap to the"
            " lower bound over all tile sizes, loop orders and memories."
        ),
    ] = TIME_BUDGET_S,
    search: Named[LayerOptions],
    output: Annotated[FilePath | None, Help(f"Folder for {ATTENTION} and {ATTENTION_TABLE}.")] = None,
    strict: bool = False,
) -> "tuple[AttentionOptimum, ...]":
    """Best way to run each attention of a language model on one core, fused or not, with a proof or a bound.

    The arguments are the options of the command. With `strict`, input without effect is an error. Raises InputError for
    wrong input files, for a workload without a language model or without attention, and for a core that cannot run all
    layers of an attention. Raises MappingError if a layer has no mapping that fits.
    """
    given = (workload, hardware, mapping, contexts, memory_sizes, tile_queries, tile_keys, tile_heads, tile_units)
    return _searched(*given, order, time_budget_s, search, output, strict)[0].optima


@dataclass(frozen=True)
class _Asked:
    sizes: Sizes
    points: AttentionPoints
    seconds: float
    is_strict: bool


@dataclass(frozen=True)
class _Found:
    workload: str
    core: str
    points: AttentionPoints
    optima: "tuple[AttentionOptimum, ...]"
    notices: tuple[str, ...]


def _check_sizes(sizes: Sizes) -> None:
    """Raise InputError if the size of a tile is below 1, or if a loop order is unknown."""
    problems = [
        Problem("the size of a tile must be a whole number of at least 1", path=f"tile_{axis}", value=repr(size))
        for axis in ("units", "heads", "queries", "keys")
        for size in getattr(sizes, axis)
        if not isinstance(size, int) or size < 1
    ]
    problems += [
        Problem("no such order", path="order", value=repr(name), allowed=", ".join(ORDERS))
        for name in sizes.orders
        if name not in ORDERS
    ]
    if problems:
        raise InputError(problems)


def attention_problems(
    given: tuple[Any, Any, Any], points: AttentionPoints, options: LayerOptions, notices: list[str]
) -> "tuple[str, list[AttentionCosts]]":
    """Pair (name of the workload, cost models). There is a cost model for each attention at each context length and
    memory size. Raises InputError with all errors of the input files, and for a workload without attention.
    """
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.run import read_problem
    from tilewright.search.options import SearchOptions
    from tilewright.tiles.attention.costs import AttentionCosts
    from tilewright.tiles.attention.shape import language_model_attentions

    workload, hardware, mapping = given
    described = described_model(workload, notices)
    problem = read_problem(Descriptions(hardware, workload, mapping), SearchOptions(model=options.model))
    notices += unused_in(problem.notices)
    found = []
    for core, step in product(points.cores(problem.core), points.steps(described.step)):
        for one in language_model_attentions(described.model, step):
            found.append(AttentionCosts(one, core, problem.mapping, options))
    if not found:
        raise InputError([Problem("no layer of the language model is an attention", path=Label(described.name))])
    return described.name, found


def _found(
    given: tuple[Any, Any, Any],
    asked: _Asked,
    options: Given[LayerOptions],
    notices: list[str],
    show_progress: bool,
) -> _Found:
    from tilewright.search.progress import search_progress
    from tilewright.tiles.attention.optimum import find_optimum

    name, problems = attention_problems(given, asked.points, options(), notices)
    notices += options.unused()
    refuse_unused(notices, asked.is_strict)
    for costs in problems:
        costs.check()
    try:
        with search_progress(None, "attention", show_progress, unit="layers", least=20) as advance:
            known: dict[Any, AttentionOptimum] = {}
            for costs in problems:
                if costs.alike not in known:
                    known[costs.alike] = find_optimum(costs, asked.sizes, asked.seconds, advance)
            optima = tuple([replace(known[costs.alike], costs=costs) for costs in problems])
    except KeyboardInterrupt as error:
        raise InterruptedRunError("nothing was written") from error
    return _Found(name, problems[0].core.name, asked.points, optima, tuple(notices))


def _object(found: _Found) -> JsonObject:
    """Result as a JSON object."""
    from tilewright.tiles.attention.result import optimum_object

    told = {
        "tilewright": __version__,
        "core": found.core,
        "workload": found.workload,
        "points": encode(found.points),
        "attentions": [optimum_object(one) for one in found.optima],
    }
    return with_unused(told, found.notices)


def _write(found: _Found, options: LayerOptions, folder: Path) -> list[Path]:
    from tilewright.tiles.attention.result import row

    make_folder(folder)
    table, data = folder / ATTENTION_TABLE, folder / ATTENTION
    write_atomically(data, sealed_document(document_text(_object(found) | {"options": encode(options)})))
    rows = [row(one, found.points) for one in found.optima]
    write_atomically(table, csv_text([{name: plain(value) for name, value in one.items()} for one in rows]))
    return [data, table]
