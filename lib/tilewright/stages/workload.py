"""The stage Workload: runs the stages below it for every layer of a network, each distinct problem once."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.cost.record import Record
from tilewright.errors import InputError, MappingError, Problem
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import core_area_mm2
from tilewright.search.progress import search_progress
from tilewright.search.store import Store
from tilewright.stages.base import Change, Control, Rest, Same, Stage
from tilewright.stages.descriptions import NetworkProblem
from tilewright.stages.identity import SearchIdentity, is_identified
from tilewright.stages.items import Evaluations, LayerProblem, LayerRecord
from tilewright.stages.layers import order_total, search_layer, sum_if_known
from tilewright.workload import graph


@dataclass(frozen=True)
class Workload(Stage):
    """Maps every layer of a network in execution order; layers that pose the same problem are mapped once.

    Finished layers are kept in the store, and are not searched again unless the layer, the core, what the mapping file
    says, or the stages below with their parameters and code have changed. Layers for which nothing fits are told
    together, at the end.

    Example: [Workload, MinimalEnergy, SpatialMappingGenerator, SpatialMappingConversion, Loma, CostModel]
    """

    takes = NetworkProblem
    gives = LayerProblem
    collects = (Evaluations, list)
    returns = LayerRecord
    stands_for = "WorkloadStage"

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[LayerRecord]:
        """The records of each distinct problem, in the order of first use."""
        _check_names(item.workload, any(stage.exports for stage in rest.stages))
        observers, search = _split(rest)
        tasks = _distinct_problems(item, search)
        found = _LayerSearch(item, search).run(tasks)
        for task in tasks:
            # What only looks at results also sees those from the store, one layer after another.
            end = _giving([_named(record, task, item.core) for record in found[task.key]])
            yield from replace(observers, end=end)(task.problem)


@dataclass(frozen=True)
class _Task:
    """A distinct problem of a network."""

    key: str
    problem: LayerProblem


def _split(rest: Rest) -> tuple[Rest, Rest]:
    """The stages right below that only look at results, and the search.

    Stages that change the layer's problem may stand between them: they are part of both.
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
    """Layers are told apart by name in records, summaries and mapping files, and in names of files."""
    names = [node.layer.name for node in workload.layers_in_order if node.layer is not None]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError([Problem("two layers have this name", path=workload.name, value=name) for name in repeated])
    counts = Counter(name.replace("/", "_") for name in names)
    shared = [name for name in names if counts[name.replace("/", "_")] > 1]
    if files and shared:
        told = "another layer would be written to the same files"
        raise InputError([Problem(told, path=workload.name, value=name) for name in shared])


def _distinct_problems(item: NetworkProblem, search: Rest) -> list[_Task]:
    identity = SearchIdentity(search.stages)
    by_key: dict[str, LayerProblem] = {}
    names: dict[str, list[str]] = {}
    for place, node in enumerate(item.workload.layers_in_order):
        assert node.layer is not None
        reach = item.memory_reach[place] if item.memory_reach else None
        problem = LayerProblem(node.layer, item.core, item.mapping.constraints_for(node.layer), reach)
        key = identity.key_of(_as_searched(problem, search.stages))
        by_key.setdefault(key, problem)
        names.setdefault(key, []).append(node.layer.name)
    return [_Task(key, replace(problem, names=tuple(names[key]))) for key, problem in by_key.items()]


def _as_searched(problem: LayerProblem, stages: tuple[Stage, ...]) -> LayerProblem:
    """The problem after the stages that change it: what differs only before them is the same search."""
    for stage in stages:
        if isinstance(stage, Change):
            problem = stage.change(problem)
        elif stage.gives is not Same:
            break
    return problem


@dataclass
class _LayerSearch:
    """The search of all problems of a network that the store does not have, and what is known so far."""

    item: NetworkProblem
    search: Rest
    found: dict[str, list[Record]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def control(self) -> Control:
        return self.search.control

    @property
    def store(self) -> Store | None:
        """The store, unless a stage writes files while it searches, or comes from code that cannot be told apart."""
        stages = self.search.stages
        usable = all(is_identified(stage) for stage in stages) and not any(stage.exports for stage in stages)
        return self.control.store if usable else None

    def run(self, tasks: list[_Task]) -> dict[str, list[Record]]:
        """The records of each problem by key. Raises MappingError with the reasons of all layers that do not fit."""
        missing = [task for task in tasks if not self._take_from_store(task)]
        shown = self.control.show_progress and bool(missing)
        total = sum_if_known(order_total(self.search, task.problem) for task in missing) if shown else 0
        title = f"{self.item.workload.name} on {self.item.core.name}"
        with search_progress(total, title, shown) as advance:
            told = self.control.advance if not shown else advance
            control = replace(self.control, advance=told, stop=self.stop)
            self._search_all(missing, replace(self.search, control=control))
        if self.failures:
            raise MappingError("\n".join(self.failures[task.key] for task in missing if task.key in self.failures))
        return self.found

    def _search_all(self, missing: list[_Task], search: Rest) -> None:
        if self.control.threads <= 1 or len(missing) <= 1:
            for task in missing:
                self._finish(task, _attempt(search, task))
        else:
            self._search_in_threads(missing, search)

    def _search_in_threads(self, missing: list[_Task], search: Rest) -> None:
        """The kernel releases the interpreter lock, so threads are enough."""
        with ThreadPoolExecutor(self.control.threads) as pool:
            pending: dict[Future[list[Record] | str], _Task] = {
                pool.submit(_attempt, search, task): task for task in missing
            }
            try:
                while pending:
                    done, _ = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._finish(pending.pop(future), future.result())
            except BaseException:
                self.stop.set()
                for future in pending:
                    future.cancel()
                raise

    def _take_from_store(self, task: _Task) -> bool:
        """Use an earlier result of this problem if there is one."""
        stored = self.store.get(task.key) if self.store is not None else None
        if stored is not None:
            self.found[task.key] = stored if isinstance(stored, list) else [stored]
        return stored is not None

    def _finish(self, task: _Task, result: list[Record] | str) -> None:
        if isinstance(result, str):
            self.failures[task.key] = result
            return
        self.found[task.key] = result
        if self.store is not None:
            nameless = [_nameless(record) for record in result]
            self.store.put(task.key, nameless[0] if len(nameless) == 1 else nameless)
        if self.control.on_record is not None:
            for record in result:
                self.control.on_record(_named(record, task, self.item.core))


def _attempt(search: Rest, task: _Task) -> list[Record] | str:
    """The records of a layer, or why nothing fits."""
    try:
        return search_layer(search, task.problem)
    except MappingError as error:
        return str(error)


def _nameless(record: Record) -> Record:
    return {**record, "layer": {**record["layer"], "name": ""}, "core": ""}


def _named(record: Record, task: _Task, core: Core) -> LayerRecord:
    """A record with the names of the layers that have this problem, the first of them as its own.

    Its area is that of the whole core, also where the layer does without some of its memories.
    """
    names = task.problem.names
    layer = {**record["layer"], "name": names[0]}
    rest = {name: value for name, value in record.items() if name not in ("layer", "core")}
    rest["area_mm2"] = float(core_area_mm2(core))
    return LayerRecord({"layer": layer, "layer_names": list(names), "core": core.name, **rest})
