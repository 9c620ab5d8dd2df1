"""Mapping one layer onto one core: spatial candidates times temporal orders, best first."""

import threading

from tilewright.cost.record import LoopOrder, Record, unrolling_record
from tilewright.errors import MappingError
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.search.evaluate import PreparedProblem, corrected_figures, evaluate_prepared, prepare
from tilewright.search.loma import OrderSearchResult, count_orders, search_orders
from tilewright.search.loma_kernel import is_better
from tilewright.search.options import OBJECTIVES, SearchOptions
from tilewright.search.progress import Advance
from tilewright.workload.layer import Layer

DEFAULT_OPTIONS = SearchOptions()


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
    for unrolling in _candidates(layer, core, constraints, options):
        row = {"spatial_mapping": unrolling_record(unrolling)}
        try:
            prepared = prepare(layer, core, constraints.memory_operand_links, unrolling, options)
            result = search_orders(prepared, constraints.temporal_ordering, options, progress, stop)
        except MappingError as error:
            rows.append(row | _candidate_columns(0, 0, None, None, str(error)))
            continue
        rows.append(
            row
            | _candidate_columns(result.orders, result.feasible, result.energy_pj, result.latency_cycles, result.reason)
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


def _candidates(layer: Layer, core: Core, constraints: MappingConstraints, options: SearchOptions) -> list[Unrolling]:
    count, mixed = options.nb_spatial_mappings_generated, options.enable_mix_spatial_mapping
    return spatial_candidates(layer, core, constraints, options.profile, count, mixed)


def order_total(layer: Layer, core: Core, constraints: MappingConstraints, options: SearchOptions) -> int:
    """How many orders `map_layer` will visit, as far as can be told before; for progress only."""
    total = 0
    try:
        for unrolling in _candidates(layer, core, constraints, options):
            prepared = prepare(layer, core, constraints.memory_operand_links, unrolling, options)
            total += count_orders(prepared, constraints.temporal_ordering, options)
    except MappingError:
        return total
    return total
