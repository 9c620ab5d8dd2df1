"""Stage Workload, which runs the stages below it for each distinct layer problem of a network.

Layers for which no mapping fits are reported together, grouped by cause.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base.artifacts.digests import content_digest
from tilewright.base.errors import (
    InputError,
    Label,
    MappingError,
    NothingFitsError,
    Problem,
    cause_of,
    count_of,
    indented,
    some_of,
)
from tilewright.base.harmless import terminal, terminal_lines
from tilewright.base.objectives import Goal
from tilewright.base.profile import profile_by_name
from tilewright.cost.rates import core_figures
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.mapping.memory_reach import core_for
from tilewright.pipeline.stages.base import Change, Rest, Same, Stage
from tilewright.pipeline.stages.data_locality import RemoveUnusedMemory
from tilewright.pipeline.stages.descriptions import NetworkProblem
from tilewright.pipeline.stages.items import Evaluations, LayerProblem
from tilewright.pipeline.stages.layer_file_names import check_file_names
from tilewright.pipeline.stages.layer_search import LayerSearch, LayerTask
from tilewright.pipeline.stages.layers import what_is_minimised
from tilewright.pipeline.stages.network_choice import chooses_for_network, records_for_network, stages_of
from tilewright.pipeline.stages.temporal import Best
from tilewright.pipeline.stages.user_stages import SearchIdentity
from tilewright.search.evaluate import with_reach
from tilewright.search.network_choice import NetworkWeight
from tilewright.workload import graph

Failure = tuple[Sequence[str], MappingError]
"""Pair (names of all layers with the same layer problem, error with the reason why no mapping fits)."""


def told_by_cause(failures: Sequence[Failure], core: str) -> str:
    """Message about the layers of a network for which no mapping fits the core. Layers with the same cause form a
    group; the message has the full cause of the first layer of each group.
    """
    alike: dict[tuple[str, ...], list[Failure]] = {}
    for names, error in failures:
        reasons = error.reasons if isinstance(error, NothingFitsError) else str(error).splitlines()
        cause = tuple(part.replace(f"'{names[0]}'", "''") for part in cause_of(reasons))
        alike.setdefault(cause, []).append((names, error))
    return "\n".join(_told(found, core) for found in alike.values())


def _told(failures: Sequence[Failure], core: str) -> str:
    names = [name for problem_names, _ in failures for name in problem_names]
    error = failures[0][1]
    if len(names) == 1 or not isinstance(error, NothingFitsError):
        others = terminal(f"; the same for {some_of(names[1:])}") if len(names) > 1 else ""
        return f"{error}{others}"
    head = f"no mapping of {count_of(len(names), 'layer')} fits core '{core}': {some_of(names)}"
    first: dict[tuple[str, ...], str] = {}
    for reason in error.reasons:
        first.setdefault(cause_of([reason]), f"{names[0]} {reason}")
    return terminal_lines([head, *indented(first.values())])


@dataclass(frozen=True)
class Workload(Goal, Stage):
    """Maps every layer of a network in execution order. Layers with the same layer problem are mapped only one time.

    Stages above Workload get one mapping for each layer. If the stages below Workload return several mappings, the
    outermost reduction below Workload chooses the best mapping; without a reduction, `objective` decides. The field
    `alternatives` of the record is the number of the other mappings.

    Results of finished layers are kept in the store. A layer is searched again only if one of these has changed: the
    layer, the core, the constraints of the layer in the mapping file, or the parameters or the code of a stage below
    Workload. Layers for which no mapping fits are reported together at the end.

    Example: [Workload, MinimalEnergy, SpatialMappingGenerator, SpatialMappingConversion, Loma, CostModel]
    """

    takes = NetworkProblem
    gives = LayerProblem
    collects = (Evaluations, list)
    returns = LayerRecord
    stands_for = "WorkloadStage"

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[LayerRecord]:
        """Yield a record for each distinct problem, in the order in which the problems first occur."""
        _check_names(item.workload, any(stage.exports for stage in rest.stages))
        observers, search = _split(rest)
        wanted = any(stage.observes for stage in observers.stages)
        tasks = _distinct_problems(item, search, "" if _is_reduced(search) else self.objective)
        mapper = chooses_for_network(search.stages) if rest.control.is_network else None
        wanted_layers = rest.control.layers
        if wanted_layers is not None and mapper is None:
            tasks = [task for task in tasks if not wanted_layers.isdisjoint(task.problem.names)]
        title, tell = f"{item.workload.name} on {item.core.name}", _telling(item, search)
        layers = LayerSearch(title, search, tell, objective=self.objective, all_of_them=wanted)
        layers.run(tasks)
        if layers.failures:
            failed = [(task.problem.names, layers.failures[task.key]) for task in tasks if task.key in layers.failures]
            raise MappingError(*told_by_cause(failed, item.core.name).splitlines())
        found = layers.found
        if mapper is not None:
            found = _for_network(item, tasks, found, mapper, layers)
        for task in tasks:
            if wanted_layers is not None and wanted_layers.isdisjoint(task.problem.names):
                continue
            # Stages that only observe results also get results from the store, one layer after another.
            records = [_named(record, task, item, search) for record in found[task.key]]
            yield from list(replace(observers, end=_giving(records))(task.problem))[:1]


def _for_network(
    item: NetworkProblem,
    tasks: Sequence[LayerTask],
    found: dict[str, list[LayerRecord]],
    mapper: Best,
    layers: LayerSearch,
) -> dict[str, list[LayerRecord]]:
    """Records by key of the layer problem, with the mappings that are chosen for the EDP of the network. `layers` is
    the earlier search, which searched each layer for its own EDP; `found` has the records of that search.
    """
    if any(len(found[task.key]) > 1 for task in tasks):
        return found
    repeats = {node.layer.name: node.repeats for node in item.workload.layers_in_order if node.layer is not None}
    counts = [sum(repeats[name] for name in task.problem.names) for task in tasks]

    def again(places: Sequence[int], weight: NetworkWeight) -> list[LayerRecord | None]:
        stages = stages_of(layers.search.stages, mapper, weight)
        identity = SearchIdentity(stages)
        own = [
            replace(tasks[place], key=identity.key_of(_as_searched(tasks[place].problem, stages))) for place in places
        ]
        search = replace(layers, search=replace(layers.search, stages=stages), on_found=None, found={}, failures={})
        search.run(own)
        return [search.found[task.key][0] if task.key in search.found else None for task in own]

    first = [found[task.key][0] for task in tasks]
    chosen = records_for_network(first, counts, mapper, again)
    return {task.key: [record] for task, record in zip(tasks, chosen, strict=True)}


def _is_reduced(search: Rest) -> bool:
    """True if a stage of the search keeps only the best of several mappings."""
    return bool(what_is_minimised(search.stages))


def _telling(item: NetworkProblem, search: Rest) -> Callable[[LayerTask, list[LayerRecord]], None]:
    """Function that passes the record of a layer problem to `control.on_record` after the search of this problem. The
    function does nothing if `on_record` is None.
    """

    def tell(task: LayerTask, records: list[LayerRecord]) -> None:
        if search.control.on_record is not None:
            search.control.on_record(_named(records[0], task, item, search))

    return tell


def _split(rest: Rest) -> tuple[Rest, Rest]:
    """Pair (leading stages, search), made from the stages below Workload. The leading stages are those at the beginning
    that observe results or change the layer problem. The search has all stages below Workload, except the leading
    stages that observe results.
    """
    stages = rest.stages
    count = next(
        (i for i, stage in enumerate(stages) if not (stage.observes or isinstance(stage, Change))), len(stages)
    )
    search = (*(stage for stage in stages[:count] if not stage.observes), *stages[count:])
    return replace(rest, stages=stages[:count]), replace(rest, stages=search)


def _giving(records: list[LayerRecord]) -> Callable[[Any], Iterable[LayerRecord]]:
    return lambda _: records


def _check_names(workload: graph.Workload, files: bool) -> None:
    """Raise InputError if two layers have the same name. If `files` is True, also raise it if files of two layers would
    have the same name.
    """
    names = [node.layer.name for node in workload.layers_in_order if node.layer is not None]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            [Problem("two layers have this name", path=Label(workload.name), value=name) for name in repeated]
        )
    if files:
        check_file_names(workload, numbered=True)


def _distinct_problems(item: NetworkProblem, search: Rest, objective: str) -> list[LayerTask]:
    """Distinct layer problems with their keys. A key depends on the layer problem and on the stages of the search. It
    also depends on `objective`, which is '' if a stage chooses the best mapping.
    """
    identity = SearchIdentity(search.stages)
    by_key: dict[str, LayerProblem] = {}
    names: dict[str, list[str]] = {}
    for place, node in enumerate(item.workload.layers_in_order):
        assert node.layer is not None
        reach = item.memory_reach[place] if item.memory_reach else None
        given = item.mapping.constraints_for(node.layer)
        problem = LayerProblem(node.layer, core_for(node.layer, item.core, given), given, reach)
        key = identity.key_of(_as_searched(problem, search.stages))
        key = content_digest([key, objective]) if objective else key
        by_key.setdefault(key, problem)
        names.setdefault(key, []).append(node.layer.name)
    return [LayerTask(key, replace(problem, names=tuple(names[key]))) for key, problem in by_key.items()]


def _as_searched(problem: LayerProblem, stages: tuple[Stage, ...]) -> LayerProblem:
    """Layer problem after the stages that change it. Layer problems that become equal need only one search."""
    for stage in stages:
        if isinstance(stage, Change):
            problem = stage.change(problem)
        elif stage.gives is not Same:
            break
    return problem


def _named(record: LayerRecord, task: LayerTask, item: NetworkProblem, search: Rest) -> LayerRecord:
    """Record with the names of all layers that have this layer problem. The name of the record is the first of these
    names.

    The numbers of operations depend on the unit (MAC array or vector unit) that runs the layer. The area is the area of
    the complete core, even if the layer does not use some memories.
    """
    core, names = item.core, task.problem.names
    node = next(node for node in item.workload.layers_in_order if node.layer and node.layer.name == names[0])
    named = replace(
        record,
        layer=record.layer.on_unit(node.unit)._replace(name=names[0]),
        layer_names=tuple(names),
        core=core.name,
        **core_figures(core, profile_by_name(record.model)),
    )
    return _on_own_core(named, core, _as_searched(task.problem, search.stages), search.stages)


def _on_own_core(record: LayerRecord, core: Core, problem: LayerProblem, stages: tuple[Stage, ...]) -> LayerRecord:
    """Record for the complete core `core`. If the layer was mapped on a changed core, such as a core with fewer
    memories, the record also has the differences between the two cores.
    """
    is_reduced = problem.memory_reach is not None and any(isinstance(stage, RemoveUnusedMemory) for stage in stages)
    if problem.core == core and not is_reduced and problem.constraints.memory_reach is None:
        return record
    return with_reach(record, core, problem.core, problem.layer, problem.constraints.memory_operand_links)
