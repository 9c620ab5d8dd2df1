"""Our searches over the distinct layers of one accelerator; prints one JSON object. Run by `exact_search.py`.

    searches.py tpu_like --objective latency [--layers resnet18/fc ...] [--time-budget-s 30]

For each layer: loma at its default `lpf_limit`, the exact search with both allocations, salsa with two budgets. What is
measured is the CPU time of the process, compilation excluded, from layer, core and mapping constraints in memory to
knowing the best mapping.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from layer_cases import ACCELERATORS, LayerCase, layer_cases, loop_count
from tilewright.base.errors import TilewrightError
from tilewright.base.objectives import OBJECTIVES
from tilewright.search.batch import OrderBatch, best_row, cost_orders, is_better
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.loma import loma_batches
from tilewright.search.options import ExactParameters, SearchOptions
from tilewright.search.salsa import SalsaParameters, salsa_batches

LPF_LIMIT = 6
SALSA_SEEDS = range(5)
"""Salsa's value is the median over these."""
SALSA_LARGE_BUDGET = 10
"""The larger budget of salsa, in multiples of the orders that loma looks at."""
MINIMUM_CPU_SECONDS = 0.05
"""A search is repeated until this much CPU time was used, so that a short one is timed well."""
ALLOCATIONS = ("greedy", "free")
Search = Callable[[PreparedProblem], Iterator[OrderBatch]]


def exact_search(case: LayerCase, allocation: str, objective: str, time_budget_s: float) -> Search:
    """Branch and bound over all orders; imported here, so that the rest can be measured without it."""
    from tilewright.search.exact.search import exact_batches

    options = ExactParameters(objective, allocation, time_budget_s)
    return lambda problem: exact_batches(problem, case.constraints.temporal_ordering, options)


def loma_search(case: LayerCase) -> Search:
    """All orders of at most LPF_LIMIT loops."""
    return lambda problem: loma_batches(problem, case.constraints.temporal_ordering, LPF_LIMIT)


def salsa_search(case: LayerCase, objective: str, evaluations: int, seed: int) -> Search:
    """One chain of simulated annealing that looks at this many orders."""
    options = SalsaParameters(objective=objective, salsa_iteration_number=evaluations, seed=seed)
    return lambda problem: salsa_batches(problem, case.constraints.temporal_ordering, options)


def run_search(case: LayerCase, search: Search, objective: str) -> dict[str, Any]:
    """Value of the best mapping, orders looked at, and what the search says of itself, with the CPU time of it all."""
    runs, start = 0, time.process_time()
    while (used := time.process_time() - start) < MINIMUM_CPU_SECONDS:
        best, visited, notes = (math.inf, math.inf), 0, {}
        for batch in search(case.prepare(SearchOptions())):
            costed = cost_orders(batch)
            visited += batch.visited
            notes |= dict(batch.search)
            if (row := best_row(costed, objective)) is not None:
                costs = float(costed.energy_pj[row]), float(costed.latency_cycles[row])
                best = costs if is_better(objective, costs, best) else best
        runs += 1
    return {"value": value_of(best, objective), "visited": visited, "cpu_seconds": used / runs, "notes": notes}


def value_of(costs: tuple[float, float], objective: str) -> float:
    """The objective from (energy, latency)."""
    return OBJECTIVES[objective].value(*costs)


def attempt(case: LayerCase, make_search: Callable[[], Search], objective: str) -> dict[str, Any]:
    """`run_search`, or the reason why it could not be run."""
    try:
        return run_search(case, make_search(), objective)
    except (ImportError, TilewrightError) as failure:
        return {"failure": str(failure)}


def measure_layer(case: LayerCase, objective: str, time_budget_s: float) -> dict[str, Any]:
    """One layer under every search."""
    loma = run_search(case, loma_search(case), objective)
    exact = {
        allocation: attempt(
            case, lambda allocation=allocation: exact_search(case, allocation, objective, time_budget_s), objective
        )
        for allocation in ALLOCATIONS
    }
    salsa = []
    for evaluations in (loma["visited"], loma["visited"] * SALSA_LARGE_BUDGET):
        runs = [run_search(case, salsa_search(case, objective, evaluations, seed), objective) for seed in SALSA_SEEDS]
        salsa.append(
            {
                "evaluations": evaluations,
                "value": statistics.median(run["value"] for run in runs),
                "cpu_seconds": statistics.median(run["cpu_seconds"] for run in runs),
            }
        )
    return {
        "layer": case.name,
        "repeats": case.repeats,
        "loops": loop_count(case.prepare(SearchOptions())),
        "loma": loma,
        "exact": exact,
        "salsa": salsa,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("accelerator", choices=ACCELERATORS)
    parser.add_argument("--objective", choices=tuple(OBJECTIVES), default="latency")
    parser.add_argument("--layers", nargs="*", help="names as network/layer; default all")
    parser.add_argument("--time-budget-s", type=float, default=30.0, help="of the exact search, for each layer")
    arguments = parser.parse_args()
    cases = layer_cases(arguments.accelerator)
    chosen = [case for case in cases if not arguments.layers or case.name in arguments.layers]
    measure_layer(cases[-1], arguments.objective, 1.0)  # loads or compiles every kernel
    rows = [measure_layer(case, arguments.objective, arguments.time_budget_s) for case in chosen]
    result = {"accelerator": arguments.accelerator, "objective": arguments.objective, "layers": rows}
    print(json.dumps(result, default=lambda number: number.item()))  # numbers of numpy


if __name__ == "__main__":
    main()
