"""Start of a search with the plan of an earlier search, for example on hardware with less memory or for another
objective.

The earlier plan is evaluated without changes on the hardware of the new search. Therefore the new result is never worse
than the earlier plan.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError, Problem, Problems, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import FUSION
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.constraints import TilingEntry
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.plans.cores import LayerCores
from tilewright.plans.evaluate import Task
from tilewright.plans.plan import LayerTiles, Plan
from tilewright.plans.space import LayerSpace, PlanSpace


def read_start(path: Path, schema: str) -> JsonObject:
    """Content of a result of `tilewright fuse`. `path` is the result file or its folder. Raises ArtifactError for other
    files.
    """
    found: dict[str, Any] = read_artifact(path / FUSION if path.is_dir() else path, schema).payload
    return found


def start_task(said: Mapping[str, Any], file: str, space: PlanSpace, accelerator: MultiCoreAccelerator) -> Task:
    """Task that evaluates the plan and the cores of an earlier result without changes.

    Raises InputError with all problems: choices that do not fit the network or the cores, and choices for which this
    search fixes another value.
    """
    names, layers = [one.node.name for one in space.layers], said["layers"]
    if [row["name"] for row in layers] != names:
        raise InputError([Problem(_other_layers(names, [row["name"] for row in layers]), file, path="layers")])
    problems = Problems()
    tiles = tuple(_tiles(one, row, file, problems) for one, row in zip(space.layers, layers, strict=True))
    cores = _cores(layers, accelerator, file, problems)
    plan = _plan(said, tiles, space)
    _check_stacks(plan, space, file, problems)
    for name, mine, fixed in _decisions(plan, space):
        if fixed is not None and mine != fixed:
            problems.found.append(
                Problem("this search fixes another value", file, path=name, value=str(mine), allowed=str(fixed))
            )
    problems.finish()
    return Task(plan, cores, as_given=True)


def _plan(said: Mapping[str, Any], tiles: tuple[LayerTiles, ...], space: PlanSpace) -> Plan:
    settings = ScheduleSettings.of(said["settings"])
    return Plan(
        tiles,
        tuple(tuple(stack) for stack in said["layer_stacks"]),
        settings.scheduler_candidate_selection,
        tuple(name for name in settings.operands_to_prefetch if name in space.prefetchable),
        settings.prefetch_results,
        tuple(settings.layers_by_off_chip),
    )


def _decisions(plan: Plan, space: PlanSpace) -> list[tuple[str, object, object]]:
    """Triples (name of a choice, value in the plan, value that the search fixes). The last value is None if the search
    leaves the choice open.
    """
    fixed = space.fixed
    return [
        ("layer_stacks", plan.stacks, fixed.stacks),
        ("scheduler_candidate_selection", plan.selection, fixed.selection),
        ("operands_to_prefetch", plan.prefetch, fixed.prefetch),
        ("prefetch_results", plan.prefetch_results, fixed.prefetch_results),
        ("layers_by_off_chip", plan.by_off_chip, fixed.by_off_chip),
    ]


def _other_layers(mine: Sequence[str], its: Sequence[str]) -> str:
    if len(mine) != len(its):
        return (
            f"is the plan of a network with {count_of(len(its), 'layer')}, but this network has"
            f" {count_of(len(mine), 'layer')}"
        )
    place = next(place for place, (one, other) in enumerate(zip(mine, its, strict=True)) if one != other)
    return (
        f"is the plan of another network: layer {place} is {its[place]!r} in the plan, but {mine[place]!r} in"
        " this network"
    )


def _tiles(one: LayerSpace, row: Mapping[str, Any], file: str, problems: Problems) -> LayerTiles:
    """Tiles of a layer, read from a row of an earlier result. The row has no loops over tiles if the layer was alone in
    its stack; the layer then gets one tile, or the tiles that the mapping file fixes. Loops that do not fit the layer
    or the mapping file are reported in `problems`.
    """
    found = []
    for key, fixed in (("inter_core_tiling", one.between), ("intra_core_tiling", one.within)):
        loops = tuple(_loop(text) for text in row[key])
        where = f"layers.{one.node.name}.{key}"
        for loop in loops:
            if loop.dimension not in one.layer.size_of:
                allowed = ", ".join(one.layer.size_of)
                problems.found.append(
                    Problem("the layer has no such loop", file, path=where, value=loop.dimension, allowed=allowed)
                )
        if fixed is not None and loops and loops != fixed:
            problems.found.append(
                Problem("the mapping file fixes another value", file, path=where, value=", ".join(row[key]))
            )
        found.append(loops)
    between, within = found
    return LayerTiles(between, within or one.rows_within(1))


def _loop(text: str) -> TilingEntry:
    dimension, _, count = text.rpartition(", ")
    return TilingEntry(dimension, int(count) if count.isdigit() else count)


def _cores(
    layers: Sequence[Mapping[str, Any]], accelerator: MultiCoreAccelerator, file: str, problems: Problems
) -> LayerCores:
    """Core of each part of each layer, as a position in `accelerator.core_ids`; -1 for a core that the hardware does
    not have. If there are such cores, one problem that names all of them is added to `problems`.
    """
    number = {core_id: place for place, core_id in enumerate(accelerator.core_ids)}
    unknown = sorted({core_id for row in layers for core_id in row["cores"] if core_id not in number})
    if unknown:
        text = ", ".join(map(str, unknown))
        problems.found.append(Problem("the hardware has no such core", file, path="layers", value=text))
    return tuple(tuple(number.get(core_id, -1) for core_id in row["cores"]) for row in layers)


def _check_stacks(plan: Plan, space: PlanSpace, file: str, problems: Problems) -> None:
    ids = sorted(node_id for stack in plan.stacks for node_id in stack)
    if ids != sorted(space.node_ids):
        problems.found.append(Problem("must list each layer of the network exactly once", file, path="layer_stacks"))
