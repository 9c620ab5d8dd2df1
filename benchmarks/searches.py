"""Results of our searches over the distinct layers of one accelerator, printed as one JSON object. `exact_search.py`
runs this program.

    searches.py tpu_like --objective latency [--layers resnet18/fc ...] [--time-budget-s 30]

For each layer, five searches run: loma with its default `lpf_limit`, the exact search with both allocations, and salsa
with two budgets. The CPU time of the process is measured, without compilation. It begins with layer, core and mapping
constraints in memory, and ends when the best mapping is known.
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
"""Seeds of salsa. The value of salsa is the median over them."""
SALSA_LARGE_BUDGET = 10
"""Larger budget of salsa, as a multiple of the number of orders that loma evaluates."""
MINIMUM_CPU_SECONDS = 0.05
"""Least CPU time in seconds of a measurement. A search is repeated until this time is used, so that short searches are
measured well.
"""
ALLOCATIONS = ("greedy", "free")
Search = Callable[[PreparedProblem], Iterator[OrderBatch]]


def exact_search(case: LayerCase, allocation: str, objective: str, time_budget_s: float) -> Search:
    """Branch and bound over all orders. It is imported in this function, so that other searches can be measured without
    it.
    """
    from tilewright.search.exact.search import exact_batches

    options = ExactParameters(objective, allocation, time_budget_s)
    return lambda problem: exact_batches(problem, case.constraints.temporal_ordering, options)


def loma_search(case: LayerCase) -> Search:
    """Search over all orders of at most LPF_LIMIT loops."""
    return lambda problem: loma_batches(problem, case.constraints.temporal_ordering, LPF_LIMIT)


def salsa_search(case: LayerCase, objective: str, evaluations: int, seed: int) -> Search:
    """Simulated annealing with one chain that evaluates the requested number of orders."""
    options = SalsaParameters(objective=objective, salsa_iteration_number=evaluations, seed=seed)
    return lambda problem: salsa_batches(problem, case.constraints.temporal_ordering, options)


def run_search(case: LayerCase, search: Search, objective: str) -> dict[str, Any]:
    """Value of the best mapping, number of evaluated orders and further results of the search, with the CPU time."""
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
    """Value of the objective, from (energy, latency)."""
    return OBJECTIVES[objective].value(*costs)


def attempt(case: LayerCase, make_search: Callable[[], Search], objective: str) -> dict[str, Any]:
    """Result of `run_search`, or the reason why the search could not run."""
    try:
        return run_search(case, make_search(), objective)
    except (ImportError, TilewrightError) as failure:
        return {"failure": str(failure)}


def measure_layer(case: LayerCase, objective: str, time_budget_s: float) -> dict[str, Any]:
    """Results of every search for one layer."""
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
    """Run the command line."""
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
