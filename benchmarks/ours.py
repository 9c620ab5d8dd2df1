"""Measurements inside tilewright's process; prints one JSON object. Run by `benchmarks/run_benchmarks.py`.

ours.py rate HARDWARE WORKLOAD MAPPING --lpf-limit 6
ours.py one  HARDWARE WORKLOAD MAPPING --lpf-limit 10 --layer NAME
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.base.profile import profile_by_name
from tilewright.hardware.core import Core
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import Mapping, TemporalOrderingEntry
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.batch import best_row, cost_orders
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.loma import loma_batches
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer
from tilewright.workload.onnx import read_onnx
from tilewright.workload.yaml_reader import read_workload_yaml

MINIMUM_CPU_SECONDS = 0.05
"""Least CPU time in seconds of a measurement. A layer is mapped again and again until this time is used, so that short
searches are measured well.
"""


def read_inputs(arguments: argparse.Namespace) -> tuple[Workload, Core, Mapping]:
    """Triple (workload, the only core, mapping file)."""
    if arguments.workload.suffix == ".onnx":
        workload = read_onnx(arguments.workload, profile_by_name(SearchOptions().model)).workload
    else:
        workload = read_workload_yaml(arguments.workload)
    return workload, read_accelerator(arguments.hardware).cores[0], read_mapping(arguments.mapping)


def distinct_layers(workload: Workload) -> list[Layer]:
    """Distinct layers in execution order: one from each group of layers that differ only by name."""
    first: dict[Layer, Layer] = {}
    for node in workload.layers_in_order:
        assert node.layer is not None
        first.setdefault(dataclasses.replace(node.layer, name=""), node.layer)
    return list(first.values())


def timed(evaluate: Callable[[], int]) -> dict[str, float]:
    """Pair (number of orders, CPU seconds) of `evaluate`, which is repeated until MINIMUM_CPU_SECONDS are used."""
    orders, start = 0, time.process_time()
    while (used := time.process_time() - start) < MINIMUM_CPU_SECONDS:
        orders += evaluate()
    return {"orders": orders, "cpu_seconds": used}


def feasible_orders(
    prepared: PreparedProblem, ordering: tuple[TemporalOrderingEntry, ...], options: SearchOptions
) -> int:
    """Number of loop orders that fit. All orders are made, costed and reduced, as in the stages of a search."""
    feasible = 0
    for batch in loma_batches(prepared, ordering, options.lpf_limit):
        costed = cost_orders(batch)
        best_row(costed, options.objective)
        feasible += int(costed.fits.sum())
    return feasible


def measure_rate(arguments: argparse.Namespace) -> dict[str, Any]:
    """Number of evaluated loop orders and CPU seconds for each distinct layer, without compilation.

    Two times are measured. The first covers only the orders: each order is made, allocated and costed, and the best is
    kept. The second covers all of `map_layer`: spatial candidates, problem, orders, breakdown with two profiles, and
    record.
    """
    workload, core, mapping = read_inputs(arguments)
    options = SearchOptions(lpf_limit=arguments.lpf_limit)
    layers = distinct_layers(workload)
    for layer in layers:  # warm-up: compiles or loads every kernel
        map_layer(layer, core, mapping.constraints_for(layer), SearchOptions(lpf_limit=3))
    rows = []
    for layer in layers:
        constraints = mapping.constraints_for(layer)
        problems = [
            prepare(layer, core, constraints.memory_operand_links, unrolling, options)
            for unrolling in spatial_candidates(layer, core, constraints, options.profile)
        ]
        ordering = constraints.temporal_ordering
        stream = timed(lambda p=problems, o=ordering: sum(feasible_orders(one, o, options) for one in p))
        whole = timed(lambda la=layer, c=constraints: map_layer(la, core, c, options).evaluations)
        rows.append({"layer": layer.name, **stream, "whole": whole})
    return {"measured": rows}


def measure_one(arguments: argparse.Namespace) -> dict[str, Any]:
    """Map one layer. The calling process measures the memory."""
    workload, core, mapping = read_inputs(arguments)
    layer = next(node.layer for node in workload.layers_in_order if node.name == arguments.layer)
    assert layer is not None
    start = time.process_time()
    record = map_layer(layer, core, mapping.constraints_for(layer), SearchOptions(lpf_limit=arguments.lpf_limit))
    return {"layer": layer.name, "orders": record.evaluations, "cpu_seconds": time.process_time() - start}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rate", "one"))
    for name in ("hardware", "workload", "mapping"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--lpf-limit", type=int, default=6)
    parser.add_argument("--layer", help="name of the layer to map")
    arguments = parser.parse_args()
    print(json.dumps({"rate": measure_rate, "one": measure_one}[arguments.what](arguments)))


if __name__ == "__main__":
    main()
