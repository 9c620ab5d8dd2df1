"""`tilewright depth-first`: a chain of layers on one core in tiles that go through all layers one after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright import __version__
from tilewright.artifacts.canonical import document_text
from tilewright.artifacts.codec import encode
from tilewright.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.cli.keywords import Named, parameter_keywords
from tilewright.cli.main import InterruptedRunError
from tilewright.cli.options import (
    FILE,
    common_options,
    echo_json,
    echo_notices,
    echo_paths,
    network_keywords,
    network_options,
)
from tilewright.cli.parameter_options import Given, parameter_options
from tilewright.depth_first.options import TileOptions
from tilewright.errors import InputError, Problem
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.depth_first.schedule import DepthFirstSchedule
    from tilewright.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.stages.descriptions import NetworkProblem

STEM = "depth_first"
"""Of the files that are written."""
ALL_MODES = ("fully-recompute", "h-cached-v-recompute", "fully-cached")


@click.command()
@click.option("--hardware", required=True, type=FILE, help="Hardware file or artifact.")
@click.option("--workload", required=True, type=FILE, help="ONNX or YAML file, or artifact.")
@click.option("--mapping", type=FILE, help="Mapping file or artifact; without it all spatial mappings are searched.")
@click.option("--tile-x", type=int, multiple=True, required=True, help="Width of tiles of the output; repeatable.")
@click.option("--tile-y", type=int, multiple=True, required=True, help="Height of tiles of the output; repeatable.")
@click.option("--mode", multiple=True, help=f"One of {', '.join(ALL_MODES)}; repeatable; all three without it.")
@click.option("--cut", multiple=True, help="Layer after which a stack ends; repeatable.")
@click.option("-o", "--output", type=FILE, help=f"Folder for {STEM}.json and {STEM}.csv.")
@parameter_options(TileOptions, "options")
@network_options
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path | None,
    tile_x: tuple[int, ...],
    tile_y: tuple[int, ...],
    mode: tuple[str, ...],
    cut: tuple[str, ...],
    output: Path | None,
    options: Given[TileOptions],
    network_options: NetworkOptions,
    verbose: bool,
    as_json: bool,
) -> None:
    """Cost a chain of layers on one core depth-first: for every combination of the widths, heights and modes given.

    One tile goes through all layers of a stack before the next one begins. What neighbouring tiles need too is computed
    again (fully-recompute), kept to the right and computed again below (h-cached-v-recompute), or kept (fully-cached).

    Example: tilewright depth-first --hardware config/hardware/tpu_like.yaml --workload
    config/workload/three_convolutions.yaml --tile-x 8 --tile-y 8 --tile-y 64
    """
    found = _found(
        (hardware, workload, mapping), (tile_x, tile_y, mode), cut, options, network_options, not as_json, True
    )
    paths = _write(found, options(), output) if output else []
    if as_json:
        echo_json([schedule.as_object() for schedule in found])
        return
    click.echo(table_text(found))
    if paths:
        echo_paths(paths, as_json)


@network_keywords
@parameter_keywords(search=TileOptions)
def depth_first(
    workload: "WorkloadSource",
    hardware: "AcceleratorSource",
    mapping: "MappingSource | None" = None,
    *,
    tile_x: int | Sequence[int],
    tile_y: int | Sequence[int],
    mode: str | Sequence[str] = (),
    cut: str | Sequence[str] = (),
    search: Named[TileOptions],
    output: FilePath | None = None,
    network_options: NetworkOptions | None = None,
) -> "tuple[DepthFirstSchedule, ...]":
    """What a chain of layers costs on one core, depth-first, for every combination of tile sizes and modes.

    Arguments are those of the command. Raises InputError with everything that is wrong, also for networks that are no
    chains; MappingError where a layer of a tile fits in no way.
    """
    points = (_several(tile_x), _several(tile_y), _several(mode))
    network = network_options or NetworkOptions()
    found = _found((hardware, workload, mapping), points, _several(cut), search, network)
    if output is not None:
        _write(found, search(), Path(output))
    return found


def _several(given: Any) -> tuple[Any, ...]:
    """One value or several as several."""
    return (given,) if isinstance(given, int | float | str) else tuple(given)


def _found(
    given: tuple[Any, Any, Any],
    points: tuple[Any, ...],
    cuts: Sequence[str],
    options: Given[TileOptions],
    network: NetworkOptions,
    show_progress: bool = False,
    tells: bool = False,
) -> "tuple[DepthFirstSchedule, ...]":
    from tilewright.depth_first.schedule import Point, schedules_of
    from tilewright.search.progress import search_progress

    chosen = options()
    problem = _problem(given, chosen, network)
    if tells:
        echo_notices(problem.notices)
    asked = [Point(mode, x, y) for mode in points[2] or ALL_MODES for y in points[1] for x in points[0]]
    if not asked:
        raise InputError([Problem("nothing to cost: no tile sizes", path="tile_x, tile_y")])
    try:
        with search_progress(len(asked), "depth-first", show_progress, unit="schedules", least=20) as advance:
            return schedules_of((problem.workload, problem.core, problem.mapping), asked, cuts, chosen, advance)
    except KeyboardInterrupt as error:
        raise InterruptedRunError("nothing was written") from error


def _problem(given: tuple[Any, Any, Any], options: TileOptions, network: NetworkOptions) -> "NetworkProblem":
    from tilewright.search.options import SearchOptions
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.run import read_problem

    hardware, workload, mapping = given
    everything = [{"name": "default"}] if mapping is None else mapping
    descriptions = Descriptions(hardware, workload, everything, network)
    problem = read_problem(descriptions, SearchOptions(model=options.model))
    problem.check_layers()
    return problem


def _write(found: "Sequence[DepthFirstSchedule]", options: TileOptions, folder: Path) -> list[Path]:
    make_folder(folder)
    table, data = folder / f"{STEM}.csv", folder / f"{STEM}.json"
    chain = found[0].chain
    told = {
        "tilewright": __version__,
        "core": chain.core.name,
        "workload": chain.name,
        "options": encode(options),
        "schedules": [schedule.as_object() for schedule in found],
    }
    write_atomically(data, document_text(told))
    rows = [schedule.row() for schedule in found]
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(names), *[",".join(_cell(row.get(name, 0.0)) for name in names) for row in rows]]
    write_atomically(table, "\n".join(lines) + "\n")
    return [data, table]


def _cell(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def table_text(found: "Sequence[DepthFirstSchedule]") -> str:
    """The schedules as a table for people."""
    from tilewright.units import energy_text

    head = f"{'mode':<22} {'tile':>11} {'tiles':>9} {'energy':>12} {'latency':>15} {'computed again':>15}"
    lines = [head, "─" * len(head)]
    for schedule in found:
        first, ledger = schedule.stacks[0], schedule.ledger
        again = schedule.repeated_macs / (ledger.mac_count - schedule.repeated_macs)
        lines.append(
            f"{first.mode:<22} {f'{first.tile_x} x {first.tile_y}':>11} {ledger.tile_count:>9,}"
            f" {energy_text(schedule.energy_pj):>12} {schedule.latency_cycles:>15,.0f} {again:>15.1%}"
        )
    return "\n".join(lines)
