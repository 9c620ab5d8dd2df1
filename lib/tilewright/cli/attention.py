"""`tilewright attention`: scores, softmax and weighted values on one core, fused if that is better."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright import __version__
from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import document_text
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.artifacts.seals import sealed_document
from tilewright.base.errors import InputError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import ATTENTION, ATTENTION_TABLE
from tilewright.base.unused import refuse_unused, unused_in, with_unused
from tilewright.cli.csv_text import csv_text, plain
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import FILE, common_options, echo_json, echo_notices, echo_paths, strict_option
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, parameter_options
from tilewright.cli.terminal import echo_text
from tilewright.cli.tokens import context_list, described_model
from tilewright.tiles.attention.points import AttentionPoints, read_sizes
from tilewright.tiles.attention.space import ORDERS, Sizes
from tilewright.tiles.depth_first.options import LayerOptions

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.tiles.attention.costs import AttentionCosts
    from tilewright.tiles.attention.optimum import AttentionOptimum

TIME_BUDGET_S = 600.0
_SIZE = click.IntRange(min=1)


@click.command()
@click.option("--hardware", required=True, type=FILE, help="Hardware file or artifact.")
@click.option("--workload", required=True, type=FILE, help="Workload file of a language model.")
@click.option("--mapping", required=True, type=FILE, help="Mapping file or artifact.")
@click.option("--contexts", default="", help="Tokens that the last query sees: 1k,4k or first:last:how-many; k: 1,024.")
@click.option(
    "--memory-sizes", default="", help="A memory of other sizes, at the same costs: sram_2MB='64 KiB,256 KiB,2 MiB'."
)
@click.option("--tile-queries", type=_SIZE, multiple=True, help="Queries of a tile; repeatable; several without it.")
@click.option("--tile-keys", type=_SIZE, multiple=True, help="Keys of a tile; repeatable; several without it.")
@click.option("--tile-heads", type=_SIZE, multiple=True, help="Query heads of a key head in a tile; repeatable.")
@click.option("--tile-units", type=_SIZE, multiple=True, help="Key heads, of all requests, in a tile; repeatable.")
@click.option("--order", type=click.Choice(ORDERS), multiple=True, help="Which loop is outside; repeatable; both.")
@click.option(
    "--time-budget-s",
    type=click.FloatRange(min=0),
    default=TIME_BUDGET_S,
    show_default=True,
    help="Seconds to search layers of an attention; then the best found is the result, with what is left to win.",
)
@click.option("-o", "--output", type=FILE, help=f"Folder for {ATTENTION} and {ATTENTION_TABLE}.")
@parameter_options(LayerOptions, "options")
@strict_option()
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path,
    contexts: str,
    memory_sizes: str,
    tile_queries: tuple[int, ...],
    tile_keys: tuple[int, ...],
    tile_heads: tuple[int, ...],
    tile_units: tuple[int, ...],
    order: tuple[str, ...],
    time_budget_s: float,
    output: Path | None,
    options: Given[LayerOptions],
    strict: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Find the best way to run each attention of a language model on one core: fused in tiles, or layer by layer.

    In a fused attention, the scores of a tile of queries and keys are consumed before the next tile begins, so that
    scores never leave the chip. All tile sizes, both orders and all memories are searched, with a proof.

    Example: tilewright attention --hardware config/hardware/tpu_like_vector.yaml --mapping
    config/mapping/tpu_like_vector.yaml --workload config/workload/qwen2.5_0.5b_decode.yaml --objective energy
    """
    sizes = Sizes(tile_units, tile_heads, tile_queries, tile_keys, order or ORDERS)
    notices: list[str] = []
    points = AttentionPoints(tuple(context_list(contexts)) if contexts else (), *read_sizes(memory_sizes))
    asked = _Asked(sizes, points, time_budget_s, strict)
    chosen = options()
    found = _found((workload, hardware, mapping), asked, options, notices, not as_json)
    echo_notices(notices)
    paths = _write(found, chosen, output) if output else []
    if as_json:
        echo_json(_object(found))
        return
    from tilewright.tiles.attention.result import table_text, why_text

    echo_text(table_text(found.optima, points), nl=True)
    if points == AttentionPoints():
        echo_text("\n".join(why_text(one) for one in found.optima), nl=True)
    if paths:
        echo_paths(paths, as_json)


@parameter_keywords(search=LayerOptions)
def attention(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    *,
    contexts: Sequence[int] = (),
    memory_sizes: str = "",
    tile_queries: Sequence[int] = (),
    tile_keys: Sequence[int] = (),
    tile_heads: Sequence[int] = (),
    tile_units: Sequence[int] = (),
    order: Sequence[str] = ORDERS,
    time_budget_s: float = TIME_BUDGET_S,
    search: Named[LayerOptions],
    output: FilePath | None = None,
    strict: bool = False,
) -> "tuple[AttentionOptimum, ...]":
    """Best way to run each attention of a language model on one core, fused or not, with its proof or bound.

    Arguments are those of the command. Raises InputError for wrong descriptions, for a workload that is no language
    model or has no attention, for a core that does not run all of its layers, and with `strict` for input without
    effect; MappingError if a layer has no mapping that fits.
    """
    sizes = Sizes(tuple(tile_units), tuple(tile_heads), tuple(tile_queries), tuple(tile_keys), tuple(order))
    _check_sizes(sizes)
    chosen = search()
    found = _found(
        (workload, hardware, mapping),
        _Asked(sizes, AttentionPoints(tuple(contexts), *read_sizes(memory_sizes)), time_budget_s, strict),
        search,
        [],
    )
    if output is not None:
        _write(found, chosen, Path(output))
    return found.optima


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
    """Raise InputError for sizes below 1 and unknown orders."""
    problems = [
        Problem("sizes of tiles are whole numbers from 1 on", path=f"tile_{axis}", value=repr(size))
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
    """(name of a workload, cost models of each of its attentions at each point).

    Raises InputError for everything that is wrong with the descriptions, and for a workload without attention.
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
        raise InputError([Problem("no layer of the language model is an attention", path=described.name)])
    return described.name, found


def _found(
    given: tuple[Any, Any, Any],
    asked: _Asked,
    options: Given[LayerOptions],
    notices: list[str],
    show_progress: bool = False,
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
    """Result as JSON values."""
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
