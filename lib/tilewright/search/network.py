"""Mapping a whole network onto one core: identical layers once, finished layers kept in a store."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from tilewright.cost.record import Record
from tilewright.errors import InputError, MappingError, Problem
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.search.mapper import DEFAULT_OPTIONS, map_layer, order_total
from tilewright.search.options import SearchOptions
from tilewright.search.progress import Advance, search_progress
from tilewright.search.store import Store, problem_key
from tilewright.search.summary import summarize
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

OnRecord = Callable[[Record], None]


@dataclass(frozen=True)
class MappedWorkload:
    """A network mapped on a core."""

    records: tuple[Record, ...]
    """The best mapping of each distinct layer problem, in the order of first use."""
    summary: dict[str, Any]
    """Totals of the network; see docs/artifacts.md."""


@dataclass(frozen=True)
class _Task:
    """A distinct problem of a network and the layers that have it."""

    key: str
    layer: Layer
    constraints: MappingConstraints
    names: tuple[str, ...]


def map_workload(
    workload: Workload,
    core: Core,
    mapping: Mapping,
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    threads: int = 1,
    store: Store | None = None,
    on_record: OnRecord | None = None,
    show_progress: bool = False,
) -> MappedWorkload:
    """Map every layer of a network. `on_record` is told each newly mapped layer as it is finished.

    Raises MappingError naming every layer that fits in no way. When interrupted, finished layers stay in `store`.
    """
    _check_names(workload)
    tasks = _distinct_problems(workload, core, mapping, options)
    search = _NetworkSearch(core, options, store, on_record)
    missing = [task for task in tasks if not search.take_from_store(task)]
    total = sum(order_total(task.layer, core, task.constraints, options) for task in missing) if show_progress else 0
    with search_progress(total, f"{workload.name} on {core.name}", show_progress and bool(missing)) as advance:
        search.run(missing, threads, advance)
    records = tuple(_named(search.found[task.key], task, core) for task in tasks)
    return MappedWorkload(records, summarize(workload, core, options, records))


def _check_names(workload: Workload) -> None:
    """Layers are told apart by name in records, summaries and mapping files."""
    counts = Counter(node.layer.name for node in workload.layers_in_order if node.layer is not None)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise InputError([Problem("two layers have this name", path=workload.name, value=name) for name in repeated])


def _distinct_problems(workload: Workload, core: Core, mapping: Mapping, options: SearchOptions) -> list[_Task]:
    by_key: dict[str, tuple[Layer, MappingConstraints, list[str]]] = {}
    for node in workload.layers_in_order:
        assert node.layer is not None
        constraints = mapping.constraints_for(node.layer)
        key = problem_key(node.layer, core, constraints, options)
        by_key.setdefault(key, (node.layer, constraints, []))[2].append(node.layer.name)
    return [_Task(key, layer, constraints, tuple(names)) for key, (layer, constraints, names) in by_key.items()]


@dataclass
class _NetworkSearch:
    """The work on the layers that the store does not have, and what is known so far."""

    core: Core
    options: SearchOptions
    store: Store | None
    on_record: OnRecord | None
    found: dict[str, Record] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def take_from_store(self, task: _Task) -> bool:
        """Use an earlier result of this problem if there is one."""
        record = self.store.get(task.key) if self.store else None
        if record is not None:
            self.found[task.key] = record
        return record is not None

    def run(self, missing: list[_Task], threads: int, advance: Advance) -> None:
        """Map `missing`. Raises MappingError with the reasons of all layers that do not fit."""
        if threads <= 1 or len(missing) <= 1:
            for task in missing:
                self._finish(task, self._attempt(task, advance))
        else:
            self._run_in_threads(missing, threads, advance)
        if self.failures:
            raise MappingError("\n".join(self.failures[task.key] for task in missing if task.key in self.failures))

    def _run_in_threads(self, missing: list[_Task], threads: int, advance: Advance) -> None:
        """The kernel releases the interpreter lock, so threads are enough."""
        with ThreadPoolExecutor(threads) as pool:
            pending: dict[Future[Record | str], _Task] = {
                pool.submit(self._attempt, task, advance): task for task in missing
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

    def _attempt(self, task: _Task, advance: Advance) -> Record | str:
        """The best mapping of a layer, or why nothing fits."""
        try:
            return map_layer(task.layer, self.core, task.constraints, self.options, advance, self.stop)
        except MappingError as error:
            return str(error)

    def _finish(self, task: _Task, result: Record | str) -> None:
        if isinstance(result, str):
            self.failures[task.key] = result
            return
        self.found[task.key] = result
        if self.store is not None:
            self.store.put(task.key, _nameless(result))
        if self.on_record is not None:
            self.on_record(_named(result, task, self.core))


def _nameless(record: Record) -> Record:
    return {**record, "layer": {**record["layer"], "name": ""}, "core": ""}


def _named(record: Record, task: _Task, core: Core) -> Record:
    """A record with the names of the layers that have this problem, the first of them as its own."""
    layer = {**record["layer"], "name": task.names[0]}
    rest = {name: value for name, value in record.items() if name not in ("layer", "core")}
    return {"layer": layer, "layer_names": list(task.names), "core": core.name, **rest}
