"""Measurements of the multi-core flow inside tilewright's process; prints one JSON object. See `multi_core.py`.

    multi_core_ours.py tiling HARDWARE WORKLOAD MAPPING --loops null --stack-cutoffs '[12, 23]'
    multi_core_ours.py graph  HARDWARE WORKLOAD MAPPING [--loops '[["OY", "all"]]'] [--repeats 5]
    multi_core_ours.py stages HARDWARE WORKLOAD MAPPING [--allocation '{"conv1": 0}'] ...
    multi_core_ours.py run    HARDWARE WORKLOAD MAPPING [--individuals 16] [--generations 16] ...
    multi_core_ours.py scale  HARDWARE WORKLOAD MAPPING --loops ...

Times are CPU seconds of this process with all its threads. `tiling` gives the outer loops of each layer by name.
`graph` times the graph of computation nodes. `stages` times all parts one by one. Each part runs once before on a small
network; this first run, which compiles and loads code, is reported separately. No results are stored. `run` covers
everything from the files to the chosen schedule and its lower bound; its CPU time includes imports. `scale` makes,
assembles and schedules one large graph.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

START = time.process_time()

import numpy as np  # noqa: E402
from tilewright.hardware.source import parse_accelerator  # noqa: E402
from tilewright.hardware.system import MultiCoreAccelerator  # noqa: E402
from tilewright.mapping.constraints import Mapping  # noqa: E402
from tilewright.mapping.yaml_reader import read_mapping  # noqa: E402
from tilewright.multicore.allocation.options import AllocationOptions  # noqa: E402
from tilewright.multicore.allocation.search import schedule_judge, search_allocation  # noqa: E402
from tilewright.multicore.allocation.space import allocation_space  # noqa: E402
from tilewright.multicore.nodes.generation import build_cn_graph  # noqa: E402
from tilewright.multicore.nodes.graph import CnGraph  # noqa: E402
from tilewright.multicore.nodes.tiling import Tiling  # noqa: E402
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling  # noqa: E402
from tilewright.multicore.scheduling.assembled import AssembledProblem  # noqa: E402
from tilewright.multicore.scheduling.assembly import scheduling_problem  # noqa: E402
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds  # noqa: E402
from tilewright.multicore.scheduling.core_costs import CoreCostRow, cost_classes  # noqa: E402
from tilewright.multicore.scheduling.options import ScheduleOptions  # noqa: E402
from tilewright.multicore.scheduling.simulate import Scheduler  # noqa: E402
from tilewright.pipeline.stages.multi.core_mapping import map_core  # noqa: E402
from tilewright.pipeline.stages.multi.kept_operands import class_needs  # noqa: E402
from tilewright.search.options import SearchOptions  # noqa: E402
from tilewright.workload.graph import Workload  # noqa: E402
from tilewright.workload.source import parse_workload  # noqa: E402

IMPORT_CPU_S = time.process_time() - START
Costs = dict[str, tuple[CoreCostRow, ...]]


@dataclass(frozen=True)
class Inputs:
    """Content of the input files."""

    accelerator: MultiCoreAccelerator
    workload: Workload
    mapping: Mapping

    def options(self, arguments: argparse.Namespace) -> TilingOptions:
        """Options by which every layer is cut. If outer loops are given, all layers have them; otherwise, the mapping
        file and the given stacks determine the loops.
        """
        loops = arguments.loops
        if loops is None:
            return TilingOptions(stack_cutoffs=tuple(arguments.stack_cutoffs))
        known = {dimension for node in self.workload.nodes if node.layer for dimension, _ in node.layer.loop_sizes}
        return TilingOptions(cn_define_mode=1, hint_loops=tuple(loop for loop in loops if loop[0] in known))

    def tiling(self, options: TilingOptions) -> Tiling:
        """Tiling of every layer."""
        return network_tiling(self.workload, self.mapping, self.accelerator, options)

    def graph(self, options: TilingOptions) -> CnGraph:
        """Graph of computation nodes of a tiling."""
        return build_cn_graph(self.workload, self.tiling(options))

    def costs(self, graph: CnGraph, lpf_limit: int) -> Costs:
        """Cost table of each core file, computed by one thread without a store."""
        options = SearchOptions(lpf_limit=lpf_limit)
        given = graph, self.workload, self.mapping, self.accelerator
        needs = class_needs(graph, self.workload, cost_classes(graph, self.workload, self.mapping))
        names = self.accelerator.distinct_cores
        return {name: map_core(*given, name, options, threads=1, needs=needs) for name in names}

    def problem(self, graph: CnGraph, costs: Costs) -> AssembledProblem:
        """Allocation problem from a graph, its costs and the accelerator."""
        return scheduling_problem(self.workload, graph, self.accelerator, self.mapping, costs)


def read_inputs(arguments: argparse.Namespace) -> Inputs:
    """Accelerator, network and mapping, read from the input files."""
    accelerator, workload = parse_accelerator(arguments.hardware), parse_workload(arguments.workload, "corrected")
    return Inputs(accelerator, workload, read_mapping(arguments.mapping))


def timed(make: Callable[..., Any], repeats: int, *copied: Any) -> tuple[Any, list[float]]:
    """Pair (last result, CPU seconds of each repetition). Each repetition gets new copies of `copied`, so that no
    result is reused.
    """
    seconds = []
    for _ in range(repeats):
        arguments = copy.deepcopy(copied)
        gc.collect()
        start = time.process_time()
        made = make(*arguments)
        seconds.append(time.process_time() - start)
    return made, seconds


def graph_facts(graph: CnGraph, seconds: list[float]) -> dict[str, Any]:
    """Sizes and times of a graph."""
    return {
        "cns": graph.cn_count,
        "edges": len(graph.edge_source),
        "data_edges": graph.data_edge_count,
        "layers": len(graph.layers),
        "cpu_seconds": seconds,
        "peak_mib": peak_mib(),
    }


def allocation_of(names: dict[str, int], assembled: AssembledProblem, inputs: Inputs) -> Any:
    """Core of each CN, as an array [cn]. It is the core that `names` gives to the layer/group of the CN. If there is
    none, it is the only allowed core, or the first core.
    """
    space = allocation_space(assembled.problem)
    columns = {core_id: column for column, core_id in enumerate(inputs.accelerator.core_ids)}
    cores = []
    for (layer, group), choices in zip(space.parts, space.choices, strict=True):
        name = f"{assembled.names.layer_names[layer]}/{group}"
        cores.append(columns[names[name]] if name in names else choices[0])
    return space.allocation(space.genome(cores))


def loops_by_layer(arguments: argparse.Namespace) -> dict[str, Any]:
    """Outer loops of each layer by name, as pairs (dimension, number of tiles), innermost first."""
    inputs = read_inputs(arguments)
    tiling = inputs.tiling(inputs.options(arguments))
    return {
        node.name: [(loop.dimension, loop.count) for loop in tiling.of_node[node.node_id].loops]
        for node in inputs.workload.nodes
        if node.layer
    }


def stage_by_stage(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times of the parts. The first run of each part is reported separately."""
    inputs = read_inputs(arguments)
    first = time.process_time()
    warm_up(replace(inputs, workload=copy.deepcopy(inputs.workload)), arguments)
    warm_up_seconds = time.process_time() - first
    options = inputs.options(arguments)
    # As on the peer's side: the network is copied for each graph, the accelerator stays.
    graph, seconds = timed(
        lambda workload: replace(inputs, workload=workload).graph(options), arguments.repeats, inputs.workload
    )
    found: dict[str, Any] = {"graph": graph_facts(graph, seconds)}
    if arguments.part == "stages":
        costs, seconds = timed(lambda: inputs.costs(graph, arguments.lpf_limit), arguments.repeats)
        rows = [(name, row) for name, table in costs.items() for row in table if not row.reason]
        found["cost"] = {"cpu_seconds": seconds, "entries": len(rows), "rows": cost_rows(rows)}
        assembled, seconds = timed(lambda: inputs.problem(graph, costs), arguments.repeats)
        found["assembly"] = {"cpu_seconds": seconds}
        found["schedule"] = schedules(assembled, inputs, arguments)
    return found | {
        "warm_up_cpu_seconds": warm_up_seconds,
        "import_cpu_seconds": IMPORT_CPU_S,
        "peak_mib": peak_mib(),
    }


def warm_up(inputs: Inputs, arguments: argparse.Namespace) -> None:
    """Run every part once without a cut, so that the compiled code is loaded."""
    graph = inputs.graph(TilingOptions(cn_define_mode=1, hint_loops=()))
    if arguments.part != "graph":
        problem = inputs.problem(graph, inputs.costs(graph, 1)).problem
        space = allocation_space(problem)
        search_allocation(space, schedule_judge(problem), AllocationOptions(nb_ga_individuals=2, nb_ga_generations=0))


def cost_rows(rows: list[tuple[str, CoreCostRow]]) -> list[dict[str, Any]]:
    """Numbers in the entries of the cost table."""
    return [
        {
            "class": row.cost_class,
            "core": name,
            "total0": row.total0_cycles,
            "total1": row.total1_cycles,
            "total2": row.total2_cycles,
        }
        for name, row in rows
    ]


def schedules(assembled: AssembledProblem, inputs: Inputs, arguments: argparse.Namespace) -> dict[str, Any]:
    """Evaluate one allocation many times as the genetic algorithm does, and once with a record of all events."""
    judge = schedule_judge(assembled.problem)
    allocation = allocation_of(arguments.allocation, assembled, inputs)
    (latency, energy), seconds = timed(lambda: judge(allocation), max(arguments.repeats, 21))
    with_logs = Scheduler(assembled.problem, ScheduleOptions(record=True))
    _, logged_seconds = timed(lambda: with_logs(allocation), arguments.repeats)
    return {
        "cpu_seconds": seconds,
        "logged_cpu_seconds": logged_seconds,
        "latency_cycles": int(latency),
        "energy_pj": float(energy),
    }


def whole_run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run everything: from the files to the chosen schedule, its lower bound and the gap between the two."""
    inputs = read_inputs(arguments)
    graph = inputs.graph(inputs.options(arguments))
    problem = inputs.problem(graph, inputs.costs(graph, arguments.lpf_limit)).problem
    options = AllocationOptions(
        nb_ga_individuals=arguments.individuals,
        nb_ga_generations=arguments.generations,
        seed=arguments.seed,
        threads=1,
    )
    result = search_allocation(allocation_space(problem), schedule_judge(problem), options)
    schedule = Scheduler(problem, ScheduleOptions(record=True))(result.allocation)
    bounds = lower_bounds(problem)
    return {
        "cpu_seconds": time.process_time(),
        "import_cpu_seconds": IMPORT_CPU_S,
        "evaluations": result.evaluations,
        "latency_cycles": schedule.latency_cycles,
        "energy_pj": schedule.energy_pj,
        "gap_latency": bounds.latency_gap(schedule.latency_cycles),
        "peak_mib": peak_mib(),
    }


def scale(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make, assemble and schedule one large graph, each once. Compiled code is loaded before."""
    inputs = read_inputs(arguments)
    warm_up(inputs, arguments)
    seconds: dict[str, float] = {}
    peaks: dict[str, float] = {"before": peak_mib()}

    def step(name: str, make: Callable[[], Any]) -> Any:
        made, (seconds[name],) = timed(make, 1)
        peaks[name] = peak_mib()
        return made

    graph = step("graph", lambda: inputs.graph(inputs.options(arguments)))
    costs = step("cost", lambda: inputs.costs(graph, arguments.lpf_limit))
    assembled = step("assembly", lambda: inputs.problem(graph, costs))
    allocation = step("allocation", lambda: allocation_of(arguments.allocation, assembled, inputs))
    scheduler = step("preparation", lambda: Scheduler(assembled.problem, ScheduleOptions(record=arguments.logs)))
    schedule = step("schedule", lambda: scheduler(np.asarray(allocation)))
    return {
        "cns": graph.cn_count,
        "edges": len(graph.edge_source),
        "pieces": len(assembled.problem.graph.piece_bits),
        "needs": len(assembled.problem.graph.need_piece),
        "cpu_seconds": seconds,
        "peak_mib": peaks,
        "latency_cycles": schedule.latency_cycles,
    }


def peak_mib() -> float:
    """Peak resident memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("tiling", "graph", "stages", "run", "scale"))
    for name in ("hardware", "workload", "mapping"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--loops", type=json.loads, default=[["OY", "all"]], help="null: loops of the mapping file")
    parser.add_argument("--stack-cutoffs", type=json.loads, default=[])
    parser.add_argument("--allocation", type=json.loads, default={}, help="core id of each layer/group, as JSON")
    parser.add_argument("--lpf-limit", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--individuals", type=int, default=16)
    parser.add_argument("--generations", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logs", action="store_true", help="with `scale`: record transfers and memory use")
    arguments = parser.parse_args()
    parts = {
        "tiling": loops_by_layer,
        "graph": stage_by_stage,
        "stages": stage_by_stage,
        "run": whole_run,
        "scale": scale,
    }
    print(json.dumps(parts[arguments.part](arguments)))


if __name__ == "__main__":
    main()
