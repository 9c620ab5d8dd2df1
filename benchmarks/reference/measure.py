"""Measurements inside the process of the pinned peer; prints one JSON object. `benchmarks/run_benchmarks.py` runs this
program.

measure.py whole  HARDWARE WORKLOAD MAPPING --lpf-limit 6 --objective latency --output DIR measure.py orders HARDWARE
WORKLOAD MAPPING --lpf-limit 8 [--layers 2] [--sample 300] measure.py designs HARDWARE WORKLOAD MAPPING --lpf-limit 6
--objective EDP --output DIR --others HARDWARE ...
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import runner  # silences the peer's logging
from zigzag.api import get_hardware_performance_zigzag
from zigzag.cost_model.cost_model import CostModelEvaluation
from zigzag.hardware.architecture.accelerator import Accelerator
from zigzag.mapping.temporal_mapping import TemporalMappingType
from zigzag.opt.loma.engine import LomaEngine
from zigzag.opt.loma.memory_allocator import (
    MemoryAllocator,
    MemoryHierarchyTooSmallException,
    MemoryTooSmallException,
)
from zigzag.parser.onnx.onnx_model_parser import ONNXModelParser
from zigzag.stages.parser.workload_parser import WorkloadParserStage
from zigzag.workload.layer_node import LayerNode

Search = tuple[runner.Unrolling, LomaEngine]
"""Pair (user-level spatial mapping, search over loop orders with this spatial mapping). The search is prepared, but not
run.
"""


def measure_whole(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the whole search of the peer through its API, which also writes the output files. The calling process
    measures the time.
    """
    energy, latency, evaluations = get_hardware_performance_zigzag(
        str(arguments.workload),
        str(arguments.hardware),
        str(arguments.mapping),
        opt=arguments.objective,
        lpf_limit=arguments.lpf_limit,
        dump_folder=str(arguments.output),
        loma_show_progress_bar=False,
    )
    return {"energy_pj": energy, "latency_cycles": latency, "layers": len(evaluations[0][1])}


def measure_designs(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Run `measure_whole` for each hardware file. Returns the results with the CPU seconds of each call."""
    rows = []
    for hardware in (arguments.hardware, *arguments.others):
        start = time.process_time()
        found = measure_whole(argparse.Namespace(**{**vars(arguments), "hardware": hardware}))
        rows.append({**found, "cpu_seconds": time.process_time() - start})
    return rows


def layers_of(workload: Path, mapping: Path) -> list[LayerNode]:
    """Layers that the peer costs, in the peer's order. Equal layers are listed each time."""
    if workload.suffix == ".onnx":
        nodes = ONNXModelParser(str(workload), str(mapping)).run().topological_sort()
    else:
        stage = WorkloadParserStage([None], workload=str(workload), mapping=str(mapping))
        nodes = stage.parse_workload().topological_sort()
    return [node for node in nodes if isinstance(node, LayerNode)]


def measure_orders(arguments: argparse.Namespace) -> dict[str, Any]:
    """CPU time of allocating and costing loop orders of some layers, and the number of orders of all layers."""
    accelerator = runner.read_accelerator(arguments.hardware)
    problems = [(layer, searches(accelerator, layer, arguments)) for layer in layers_of(*paths(arguments))]
    counted = {layer.name: sum(engine.nb_permutations for _, engine in found) for layer, found in problems}
    rows = []
    for layer, found in distinct(problems)[: arguments.layers]:
        spatial, engine = found[0]
        orders = list(engine.ordering_generator())
        step = max(1, len(orders) // arguments.sample) if arguments.sample else 1
        rows.append({"layer": layer.name} | time_orders(accelerator, layer, spatial, orders[::step]))
    return {"measured": rows, "order_count": sum(counted.values()), "orders_of_layer": counted}


def paths(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """Pair (path of the workload file, path of the mapping file)."""
    return arguments.workload, arguments.mapping


def distinct(problems: list[tuple[LayerNode, list[Search]]]) -> list[tuple[LayerNode, list[Search]]]:
    """Layers of distinct shape: the first layer of each shape with its searches, sorted by number of orders, most
    orders first.
    """
    first: dict[tuple[Any, ...], tuple[LayerNode, list[Search]]] = {}
    for layer, found in problems:
        shape = (layer.equation.data, *layer.layer_dim_sizes.items(), str(layer.dimension_relations))
        first.setdefault(shape, (layer, found))
    return sorted(first.values(), key=lambda problem: -problem[1][0][1].nb_permutations)


def searches(accelerator: Accelerator, layer: LayerNode, arguments: argparse.Namespace) -> list[Search]:
    """Searches for a layer: one for each spatial mapping that the peer would try. They are prepared, but not run."""
    found = []
    for spatial in runner.candidate_spatials(accelerator, layer):
        engine = LomaEngine(
            accelerator=accelerator,
            layer=layer,
            spatial_mapping=runner.convert_spatial(accelerator, layer, spatial)[0],
            mapping_type=TemporalMappingType.UNEVEN,
            loma_lpf_limit=arguments.lpf_limit,
        )
        engine.temporal_loop_dim_size = engine.get_temporal_loops()
        engine.update_min_lpf_factor(engine.temporal_loop_dim_size)
        engine.get_prime_factors()
        found.append((spatial, engine))
    return found


def time_orders(
    accelerator: Accelerator, layer: LayerNode, unrolling: runner.Unrolling, orders: list[Any]
) -> dict[str, Any]:
    """CPU seconds of allocating and costing the loop orders. Stalls and loading are costed, too; making the orders is
    not timed.
    """
    spatial, spatial_int = runner.convert_spatial(accelerator, layer, unrolling)
    feasible = 0
    start = time.process_time()
    for order in orders:
        try:
            temporal = MemoryAllocator(accelerator, layer, spatial, order, TemporalMappingType.UNEVEN).run()
        except (MemoryTooSmallException, MemoryHierarchyTooSmallException):
            continue
        CostModelEvaluation(
            accelerator=accelerator,
            layer=layer,
            spatial_mapping=spatial,
            spatial_mapping_int=spatial_int,
            temporal_mapping=temporal,
        )
        feasible += 1
    return {"orders": len(orders), "feasible": feasible, "cpu_seconds": time.process_time() - start}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("whole", "orders", "designs"))
    for name in ("hardware", "workload", "mapping"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--lpf-limit", type=int, default=6)
    parser.add_argument("--objective", default="latency")
    parser.add_argument("--output", type=Path, help="folder for the peer's own output files")
    parser.add_argument("--others", nargs="*", type=Path, default=[], help="further hardware files")
    parser.add_argument("--layers", type=int, default=2, help="number of distinct layers to time, most orders first")
    parser.add_argument(
        "--sample", type=int, default=0, help="number of evenly spread orders to time per layer; 0: all"
    )
    arguments = parser.parse_args()
    measures = {"whole": measure_whole, "orders": measure_orders, "designs": measure_designs}
    print(json.dumps(measures[arguments.what](arguments)))


if __name__ == "__main__":
    main()
