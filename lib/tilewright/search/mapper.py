"""Mapping layers and whole networks onto one core: spatial candidates times temporal orders, best first."""

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from tilewright.cost.record import LoopOrder, Record, unrolling_record
from tilewright.errors import MappingError
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.search.evaluate import PreparedProblem, corrected_figures, evaluate_prepared, prepare
from tilewright.search.loma import OrderSearchResult, SearchStopped, count_orders, search_orders
from tilewright.search.loma_kernel import is_better
from tilewright.search.options import OBJECTIVES, SearchOptions
from tilewright.search.progress import Advance, search_progress
from tilewright.search.store import Store, problem_key
from tilewright.search.summary import summarize
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

DEFAULT_OPTIONS = SearchOptions()


@dataclass(frozen=True)
class MappedWorkload:
    """A network mapped on a core."""

    records: tuple[Record, ...]
    """The best mapping of each distinct layer problem, in the order of first use."""
    summary: dict[str, Any]
    """Totals of the network; see docs/artifacts.md."""


def map_layer(
    layer: Layer,
    core: Core,
    constraints: MappingConstraints,
    options: SearchOptions = DEFAULT_OPTIONS,
    progress: Advance | None = None,
    stop: threading.Event | None = None,
) -> Record:
    """The best mapping of one layer, with full breakdown and a row for each spatial candidate.

    Raises MappingError if nothing fits, with the reason for each candidate.
    """
    best: tuple[PreparedProblem, OrderSearchResult] | None = None
    rows = []
    for unrolling in spatial_candidates(
        layer,
        core,
        constraints,
        options.profile,
        options.nb_spatial_mappings_generated,
        options.enable_mix_spatial_mapping,
    ):
        row = {"spatial_mapping": unrolling_record(unrolling)}
        try:
            prepared = prepare(layer, core, constraints.memory_operand_links, unrolling, options)
            result = search_orders(prepared, constraints.temporal_ordering, options, progress, stop)
        except MappingError as error:
            rows.append(row | _candidate_columns(0, 0, None, None, str(error)))
            continue
        rows.append(
            row
            | _candidate_columns(
                result.orders, result.feasible, result.energy_pj, result.latency_cycles, result.reason
            )
        )
        if result.best_order is not None and (best is None or _beats(result, best[1], options.objective)):
            best = prepared, result
    if best is None or best[1].best_order is None:
        raise MappingError(_nothing_fits(layer, core, rows))
    return _best_record(best[0], best[1].best_order, options, rows)


def _candidate_columns(
    orders: int, feasible: int, energy_pj: float | None, latency_cycles: float | None, reason: str
) -> Record:
    return {
        "temporal_orders": orders,
        "feasible": feasible,
        "energy_pj": energy_pj,
        "latency_cycles": latency_cycles,
        "reason": reason,
    }


def _best_record(prepared: PreparedProblem, order: LoopOrder, options: SearchOptions, rows: list[Record]) -> Record:
    record = evaluate_prepared(prepared, order)
    return record | {
        "objective": options.objective,
        "model": options.model,
        "corrected": corrected_figures(prepared, order),
        "candidates": rows,
        "evaluations": sum(row["feasible"] for row in rows),
    }


def _beats(result: OrderSearchResult, best: OrderSearchResult, objective: str) -> bool:
    """The rule of the kernel's `is_better`, run as plain Python, between the winners of two spatial candidates."""
    index = OBJECTIVES.index(objective)
    rule = is_better.py_func
    return bool(rule(index, result.energy_pj, result.latency_cycles, best.energy_pj, best.latency_cycles))


def _nothing_fits(layer: Layer, core: Core, rows: list[Record]) -> str:
    lines = [f"no mapping of layer '{layer.name}' fits core '{core.name}':"]
    for row in rows:
        unrolling = "; ".join(
            f"{name}: {', '.join(f'{d} {f}' for d, f in factors.items()) or '-'}"
            for name, factors in row["spatial_mapping"].items()
        )
        lines.append(f"  with {unrolling or 'no spatial unrolling'}: {row['reason']}")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Task:
    """A distinct problem of a network and the layers that have it."""

    key: str
    layer: Layer
    constraints: MappingConstraints
    names: tuple[str, ...]


def _distinct_problems(workload: Workload, core: Core, mapping: Mapping, options: SearchOptions) -> list[_Task]:
    by_key: dict[str, tuple[Layer, MappingConstraints, list[str]]] = {}
    for node in workload.layers_in_order:
        assert node.layer is not None
        constraints = mapping.constraints_for(node.layer)
        key = problem_key(node.layer, core, constraints, options)
        by_key.setdefault(key, (node.layer, constraints, []))[2].append(node.layer.name)
    return [_Task(key, layer, constraints, tuple(names)) for key, (layer, constraints, names) in by_key.items()]


def map_workload(
    workload: Workload,
    core: Core,
    mapping: Mapping,
    options: SearchOptions = DEFAULT_OPTIONS,
    *,
    threads: int = 1,
    store: Store | None = None,
    on_record: Callable[[Record], None] | None = None,
    show_progress: bool = False,
) -> MappedWorkload:
    """Map every layer of a network, identical layers once.

    Raises MappingError naming every layer that fits in no way. When interrupted, finished layers stay in `store`.
    """
    tasks = _distinct_problems(workload, core, mapping, options)
    found = {task.key: store.get(task.key) if store else None for task in tasks}
    missing = [task for task in tasks if found[task.key] is None]
    total = sum(_order_total(task, core, options) for task in missing) if show_progress else 0
    with search_progress(total, f"{workload.name} on {core.name}", show_progress and bool(missing)) as advance:
        _map_missing(missing, found, core, options, threads, store, on_record, advance)
    records = tuple(_named(found[task.key], task, core) for task in tasks)
    return MappedWorkload(records, summarize(workload, core, options, records))


def _order_total(task: _Task, core: Core, options: SearchOptions) -> int:
    total = 0
    try:
        for unrolling in spatial_candidates(
            task.layer,
            core,
            task.constraints,
            options.profile,
            options.nb_spatial_mappings_generated,
            options.enable_mix_spatial_mapping,
        ):
            prepared = prepare(task.layer, core, task.constraints.memory_operand_links, unrolling, options)
            total += count_orders(prepared, task.constraints.temporal_ordering, options)
    except MappingError:
        return total
    return total


def _map_missing(missing, found, core, options, threads, store, on_record, advance) -> None:  # noqa: ANN001
    """Map the layers that the store did not have; the kernel releases the interpreter, so threads are enough."""
    stop = threading.Event()
    failures: dict[str, str] = {}

    def run(task: _Task) -> Record:
        return map_layer(task.layer, core, task.constraints, options, advance, stop)

    def finish(task: _Task, result: Callable[[], Record]) -> None:
        try:
            record = result()
        except MappingError as error:
            failures[task.key] = str(error)
            return
        found[task.key] = record
        if store is not None:
            store.put(task.key, _nameless(record))
        if on_record is not None:
            on_record(_named(record, task, core))

    if threads <= 1 or len(missing) <= 1:
        for task in missing:
            finish(task, lambda task=task: run(task))
    else:
        _run_in_threads(missing, run, finish, threads, stop)
    if failures:
        raise MappingError("\n".join(failures[task.key] for task in missing if task.key in failures))


def _run_in_threads(missing, run, finish, threads, stop) -> None:  # noqa: ANN001
    with ThreadPoolExecutor(threads) as pool:
        pending: dict[Future, _Task] = {pool.submit(run, task): task for task in missing}
        try:
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    finish(pending.pop(future), future.result)
        except BaseException:
            stop.set()
            for future in pending:
                future.cancel()
            raise


def _nameless(record: Record) -> Record:
    return {**record, "layer": {**record["layer"], "name": ""}, "core": ""}


def _named(record: Record | None, task: _Task, core: Core) -> Record:
    """A record with the names of the layers that have this problem, the first of them as its own."""
    assert record is not None
    layer = {**record["layer"], "name": task.names[0]}
    rest = {name: value for name, value in record.items() if name not in ("layer", "core")}
    return {"layer": layer, "layer_names": list(task.names), "core": core.name, **rest}


__all__ = ["MappedWorkload", "SearchStopped", "map_layer", "map_workload"]
