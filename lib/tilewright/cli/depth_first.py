"""`tilewright depth-first`: schedules for a chain of layers on one core.

Each tile runs through all layers of a stack before the next tile.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tilewright import __version__
from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import document_text
from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.artifacts.seals import sealed_document
from tilewright.base.errors import InputError, Problem, Problems, Unused
from tilewright.base.harmless import terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.parameters import Limits
from tilewright.base.steps import DEPTH_FIRST, DEPTH_FIRST_TABLE
from tilewright.base.unused import refuse_unused, to_tell, unused_option, with_unused
from tilewright.cli.csv_text import csv_text, plain
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import UNCOSTED, echo_json, echo_paths, network_keywords
from tilewright.cli.parameter_options import Given, Named, parameter_keywords
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import HARDWARE_FILE, NETWORK_FILE, Help, Tell, silent, verb
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.options import TileOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.descriptions import NetworkProblem
    from tilewright.tiles.depth_first.certificate import Optimum
    from tilewright.tiles.depth_first.schedule import DepthFirstSchedule

TIME_BUDGET_S = 600.0


def _scheduled(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource | None",
    tile_x: int | Sequence[int],
    tile_y: int | Sequence[int],
    overlap_mode: str | Sequence[str],
    cut: str | Sequence[str],
    optimum: bool,
    time_budget_s: float,
    search: Given[TileOptions],
    output: FilePath | None,
    network_options: NetworkOptions | None,
    strict: bool,
    tell: Tell = silent,
    show_progress: bool = False,
) -> "tuple[_Found, list[Path]]":
    """Pair (schedules, paths of the written files)."""
    points = (_several(tile_x), _several(tile_y), _several(overlap_mode))
    asked = _Asked(points, _several(cut), time_budget_s, optimum, strict)
    given, options = (hardware, workload, mapping), network_options or NetworkOptions()
    found = _found(given, asked, search, options, tell, show_progress)
    return found, [] if output is None else _write(found, search(), Path(output))


def _show(made: "tuple[_Found, list[Path]]", search: Given[TileOptions], as_json: bool) -> None:
    found, paths = made
    if as_json:
        echo_json(_object(found))
        return
    echo_text(table_text(found.schedules), nl=True)
    if found.optimum is not None:
        echo_text(optimum_text(found.optimum, search().lpf_limit), nl=True)
    if paths:
        echo_paths(paths, as_json)
    if found.optimum is not None and found.optimum.is_interrupted:
        raise InterruptedRunError("the result is the best schedule so far; its gap is in the text above")


@verb(
    """Compute the costs of a chain of layers on one core in depth-first order, for all combinations of the given tile
    widths, tile heights and modes.

    One tile goes through all layers of a stack before the next tile begins. The mode says how to handle data that
    neighbouring tiles share: the data is recomputed (fully-recompute), kept for the next tile in the row but recomputed
    for the next row (h-cached-v-recompute), or kept for both (fully-cached).

    Example: tilewright depth-first --hardware config/hardware/zigzag/tpu_like.yaml --workload
    config/workload/fsrcnn.yaml --tile-x 8 --tile-y 8 --tile-y 64
    """,
    run=_scheduled,
    show=_show,
    order="hardware workload mapping tile_x tile_y overlap_mode cut optimum time_budget_s output",
    strict=UNCOSTED,
)
@network_keywords
@parameter_keywords(search=TileOptions)
def depth_first(
    workload: Annotated["WorkloadSource", NETWORK_FILE],
    hardware: Annotated["AcceleratorSource", HARDWARE_FILE],
    mapping: Annotated[
        "MappingSource | None",
        Help("Mapping file or artifact; default: all spatial mappings are searched."),
    ] = None,
    *,
    tile_x: Annotated[
        int | Sequence[int], Help("Width of a tile of the output; repeat to evaluate several widths.")
    ] = (),
    tile_y: Annotated[
        int | Sequence[int], Help("Height of a tile of the output; repeat to evaluate several heights.")
    ] = (),
    overlap_mode: Annotated[
        str | Sequence[str],
        Help(f"Mode for shared data: {', '.join(MODES)}; repeat to try several; by default, all are tried."),
    ] = (),
    cut: Annotated[str | Sequence[str], Help("Layer after which a stack ends; repeat to end several stacks.")] = (),
    optimum: Annotated[
        bool,
        Help(
            "Find the best schedule, with a proof. The search tries all cuts of the chain into stacks. It also tries"
            " all tile sizes and modes, unless other options set them."
        ),
    ] = False,
    time_budget_s: Annotated[
        float,
        Limits(least=0),
        Help(
            "Time limit of --optimum in seconds. At the limit, the best schedule so far is used, with its gap to the"
            " lower bound over all cuts, tile sizes and modes that are tried."
        ),
    ] = TIME_BUDGET_S,
    search: Named[TileOptions],
    output: Annotated[FilePath | None, Help(f"Folder for {DEPTH_FIRST} and {DEPTH_FIRST_TABLE}.")] = None,
    network_options: NetworkOptions | None = None,
    strict: bool = False,
) -> "tuple[DepthFirstSchedule, ...]":
    """Depth-first costs of a chain of layers on one core, for each combination of tile sizes and modes.

    With `optimum`, the result is only the best schedule. The search covers all cuts of the chain into stacks. It covers
    the given tile sizes and modes, or all of them if none are given. The certificate is written to the folder `output`.
    The arguments are the options of the command. Raises InputError with all errors of the input, and for networks that
    are not chains. With `strict`, raises InputError also for operators whose costs are not computed and for input
    without effect. Raises MappingError if a layer of a tile has no mapping that fits.
    """
    tiles = (tile_x, tile_y, overlap_mode, cut, optimum, time_budget_s)
    return _scheduled(workload, hardware, mapping, *tiles, search, output, network_options, strict)[0].schedules


def _several(given: Any) -> tuple[Any, ...]:
    """Given values as a tuple; a single value becomes a tuple with one element."""
    return (given,) if isinstance(given, int | float | str) else tuple(given)


@dataclass(frozen=True)
class _Asked:
    """Request of a user: points to evaluate, or an optimum to search."""

    points: tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]
    """Points to evaluate, as (tile widths, tile heights, modes). All combinations are evaluated."""
    cuts: tuple[str, ...]
    time_budget_s: float
    is_optimum: bool
    is_strict: bool

    @property
    def seconds(self) -> float | None:
        """Time limit of the search for the optimum, in seconds; None if only points are evaluated."""
        return self.time_budget_s if self.is_optimum else None

    def unused(self) -> list[Unused]:
        """Notices of input without effect."""
        if self.is_optimum or self.time_budget_s == TIME_BUDGET_S:
            return []
        return [unused_option("time_budget_s", "has no effect without `optimum`", self.time_budget_s)]

    def check(self) -> None:
        """Raise InputError for options that exclude each other."""
        problems = []
        if self.seconds is None:
            missing = [name for name, given in zip(("tile_x", "tile_y"), self.points, strict=False) if not given]
            problems += [Problem("is required if `optimum` is not given", path=name) for name in missing]
        elif self.cuts:
            problems.append(Problem("cannot be combined with `optimum`, which searches all cuts", path="cut"))
        if problems:
            raise InputError(problems)


@dataclass(frozen=True)
class _Found:
    """Schedules that were found and, if an optimum was searched, its certificate."""

    schedules: "tuple[DepthFirstSchedule, ...]"
    optimum: "Optimum | None" = None
    notices: tuple[str, ...] = ()


def _found(
    given: tuple[Any, Any, Any],
    asked: _Asked,
    options: Given[TileOptions],
    network: NetworkOptions,
    tell: Tell,
    show_progress: bool,
) -> _Found:
    from tilewright.search.progress import search_progress

    told = Problems()
    told.attempt(asked.check)
    chosen = told.attempt(options)
    if chosen is None:
        told.finish()
    assert chosen is not None
    problem = told.attempt(_problem, given, chosen, network)
    if problem is None:
        told.finish()
    assert problem is not None
    notices = (*problem.notices, *options.unused(), *asked.unused())
    if asked.is_strict:
        told.attempt(problem.check_complete)
        told.attempt(refuse_unused, notices)
    tell(to_tell(notices, asked.is_strict))
    described = (problem.workload, problem.core, problem.mapping)
    count = None if asked.seconds is not None else math.prod(map(len, asked.points[:2])) * len(asked.points[2] or MODES)
    try:
        with search_progress(count, "depth-first", show_progress, unit="schedules", least=20) as advance:
            return replace(_costed(described, asked, chosen, advance, told), notices=notices)
    except KeyboardInterrupt as error:
        raise InterruptedRunError("nothing was written") from error


def _costed(
    described: tuple[Any, Any, Any],
    asked: _Asked,
    options: TileOptions,
    advance: Callable[[int], None],
    told: Problems,
) -> _Found:
    """Schedules that were found. If an optimum was searched, the result also has the certificate. Raises InputError
    with all errors, including the problems already in `told`.
    """
    from tilewright.tiles.depth_first.bounds import check_boundable
    from tilewright.tiles.depth_first.certificate import DepthFirstSpace
    from tilewright.tiles.depth_first.optimum import find_optimum
    from tilewright.tiles.depth_first.schedule import Point, schedules_of, stack_model, stacks_of

    widths, heights = asked.points[:2]
    modes_or_all = asked.points[2] or tuple(MODES)
    points = [Point(mode, x, y) for mode in modes_or_all for y in heights or (1,) for x in widths or (1,)]
    model = told.attempt(stack_model, described, options)
    if model is not None:
        told.attempt(stacks_of, model.chain, asked.cuts if asked.seconds is None else (), points)
        if asked.seconds is not None:
            told.attempt(check_boundable, model.chain, options.profile)
    told.finish()
    if asked.seconds is None:
        return _Found(schedules_of(described, points, asked.cuts, options, advance))
    assert model is not None
    found = find_optimum(model, DepthFirstSpace(modes_or_all, widths, heights), options, asked.seconds, advance)
    return _Found((found.schedule,), found)


def described_problem(
    given: tuple[Any, Any, Any], options: TileOptions, network: NetworkOptions
) -> tuple[Any, Any, Any]:
    """Triple (workload, core, mapping), read from the triple `given` (hardware, workload, mapping) of files or objects.
    If no mapping is given, the result has a mapping file that leaves all spatial mappings open.
    """
    hardware, workload, mapping = given
    problem = _problem((hardware, workload, mapping), options, network)
    return problem.workload, problem.core, problem.mapping


def _problem(given: tuple[Any, Any, Any], options: TileOptions, network: NetworkOptions) -> "NetworkProblem":
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.run import read_problem
    from tilewright.search.options import SearchOptions

    hardware, workload, mapping = given
    everything = [{"name": "default"}] if mapping is None else mapping
    descriptions = Descriptions(hardware, workload, everything, network)
    problem = read_problem(descriptions, SearchOptions(model=options.model))
    problem.check_layers()
    return problem


def _object(found: _Found) -> JsonObject:
    """Result as a JSON object."""
    chain = found.schedules[0].chain
    told: dict[str, Any] = {"tilewright": __version__, "core": chain.core.name, "workload": chain.name}
    if found.optimum is not None:
        told["certificate"] = found.optimum.as_object()
    told["schedules"] = [schedule.as_object() for schedule in found.schedules]
    return with_unused(told, found.notices)


def _write(found: _Found, options: TileOptions, folder: Path) -> list[Path]:
    make_folder(folder)
    table, data = folder / DEPTH_FIRST_TABLE, folder / DEPTH_FIRST
    write_atomically(data, sealed_document(document_text(_object(found) | {"options": encode(options)})))
    rows = [schedule.row() for schedule in found.schedules]
    names = list(dict.fromkeys(name for row in rows for name in row))
    write_atomically(table, csv_text([{name: plain(row.get(name, 0.0)) for name in names} for row in rows]))
    return [data, table]


def table_text(found: "Sequence[DepthFirstSchedule]") -> str:
    """Text table with a row for each schedule."""
    from tilewright.base.units import energy_text

    head = f"{'mode':<22} {'tile':>11} {'tiles':>9} {'energy':>12} {'latency':>15} {'computed again':>15}"
    lines = [head, "─" * len(head)]
    for schedule in found:
        first, ledger = schedule.stacks[0], schedule.ledger
        again = schedule.repeated_macs / (ledger.mac_count - schedule.repeated_macs)
        lines.append(
            f"{first.mode:<22} {f'{first.tile_x} x {first.tile_y}':>11} {ledger.tile_count:>9,}"
            f" {energy_text(schedule.energy_pj):>12} {schedule.latency_cycles:>15,.0f} {again:>15.1%}"
        )
    return terminal_lines(lines)


def optimum_text(found: "Optimum", lpf_limit: int | None) -> str:
    """Text on the best depth-first schedule: one line for each stack, and one line on the proof or the remaining gap.
    `lpf_limit` is an option of the search engine loma, which maps the layers of a tile. It limits the number of loops
    that loma permutes for a layer; None means no limit.
    """
    from tilewright.base.proof import TilePlans, optimum_line
    from tilewright.base.units import count_text

    chain = found.schedule.chain
    lines = []
    for stack in found.schedule.stacks:
        names = [chain.layers[place].layer.name for place in (stack.first, stack.last)]
        which = names[0] if stack.first == stack.last else f"{names[0]} to {names[1]}"
        lines.append(f"{which}: {stack.mode}, tiles of {stack.tile_x} x {stack.tile_y}")
    space = f"{count_text(found.schedules_in_space, 3)} schedules, {len(found.costed):,} stacks costed"
    covers = TilePlans("depth-first", lpf_limit).text
    lines.append(optimum_line(found.objective, found.is_proven, found.gap, "schedules", covers, space))
    return terminal_lines(lines)
