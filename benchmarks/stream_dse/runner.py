"""Mapping of a network on the quad core by the pinned peer (stream-dse 0.0.8); prints one JSON object on its last line.

    runner.py graph MODEL.onnx [--loops '[["OY", "all"]]'] [--repeats 5] (or '{"conv1": [["OY", 112]], ...}')
    runner.py stages MODEL.onnx [--loops ...] [--lpf-limit 6] [--repeats 5]
    runner.py run MODEL.onnx [--loops ...] [--lpf-limit 6] [--individuals 16] [--generations 16]

Only the Python of the peer's environment can run this module. `graph` and `stages` report CPU seconds of this process,
part by part. `graph` times the graph of computation nodes, made from the parsed network. Each repeat uses a copy of the
network, because the peer changes it. `stages` also times the cost table (once, without stored results), one evaluation
of an allocation as in the genetic algorithm of the peer, and the scheduler alone. `run` is the whole flow of the peer,
with the same stages as its `api.py`.

The peer is not patched. In the network, the axis of each Flatten is written out, because the peer does not know the
default of ONNX.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

START = time.process_time()
HERE = Path(__file__).resolve().parent

import onnx  # noqa: E402
from quad_core import accelerator  # noqa: E402
from stream.classes.cost_model.scheduler import schedule_graph  # noqa: E402
from stream.classes.stages import (  # noqa: E402
    GenerateCNWorkloadHybridStage,
    InterCoreMappingStage,
    IntraCoreMappingStage,
)
from stream.classes.stages.ModelParserStage import ONNXModelParserStage  # noqa: E402
from zigzag.classes.stages import MainStage  # noqa: E402
from zigzag.utils import pickle_deepcopy  # noqa: E402

IMPORT_CPU_S = time.process_time() - START
MAPPING = "quad_core_mapping"
SELECTION: dict[str, Any] = {"scheduler_candidate_selection": "memory", "operands_to_prefetch": []}
NO_PLOTS = {"plot_hof": True, "plot_file_name": "", "plot_full_schedule": False, "plot_data_transfer": False}
"""Plot options of the peer's last stage. `plot_hof` draws nothing in this version, but the peer has no result without
it.
"""


class Stop:
    """Last stage, which returns the results of the stages before it."""

    def __init__(self, following: list[Any], **made: Any) -> None:
        self.made = made

    def run(self) -> Any:
        """Yield the results of the earlier stages once."""
        yield self.made, None

    def is_leaf(self) -> bool:
        """True: no stage follows."""
        return True


class Searched(InterCoreMappingStage):
    """Last stage of the peer, which also counts its evaluations and keeps all allocations that it found."""

    evaluations = 0
    """Number of evaluated allocations. The class keeps it, because the peer discards the object of the stage."""
    found: list[dict[str, Any]] = []  # noqa: RUF012
    """Hall of fame of the peer. No allocation in it has both less energy and less latency than another one."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        evaluate = self.fitness_evaluator.get_fitness

        def counted(*genes: Any, **options: Any) -> Any:
            Searched.evaluations += 1
            return evaluate(*genes, **options)

        self.fitness_evaluator.get_fitness = counted

    def run(self) -> Any:
        """Run the peer's stage. Then store its hall of fame in `found`."""
        yield from super().run()
        fixed = {node.name: [node.core_allocation] for node in self.workload if isinstance(node.core_allocation, int)}
        names = {node.id[0]: node.name for node in self.workload}
        for genes in self.genetic_algorithm.hof:
            chosen: dict[str, list[int]] = {}
            for (layer, _), core in zip(self.layer_groups_flexible, genes, strict=True):
                chosen.setdefault(names[layer], []).append(core)
            energy, latency = genes.fitness.values
            row = {"latency_cycles": int(latency), "energy_pj": float(energy), "cores": fixed | chosen}
            Searched.found.append(row)


def made_by(stage: Any, **given: Any) -> dict[str, Any]:
    """Results that one stage passes to the next stage, by name."""
    made: dict[str, Any] = next(iter(stage([Stop], **given).run()))[0]
    return made


def prepared(model: Path, folder: Path) -> Path:
    """Path of a copy of the network with the axis of every Flatten and the shapes of all tensors."""
    network = onnx.load(model, load_external_data=False)
    for node in network.graph.node:
        if node.op_type == "Flatten" and not node.attribute:
            node.attribute.append(onnx.helper.make_attribute("axis", 1))
    onnx.save(onnx.shape_inference.infer_shapes(network), folder / model.name)
    return folder / model.name


def parsed(model: Path) -> Any:
    """Network of layers in the peer's form."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(prepared(model, Path(folder)))
        made = made_by(ONNXModelParserStage, workload_path=path, mapping_path=MAPPING, accelerator=accelerator)
        return made["workload"]


def tiling(loops: Any, model: Path) -> dict[str, Any]:
    """Options of the peer for outer loops. `loops` is a list of loops for all layers, or a dict of lists by layer."""
    if isinstance(loops, list):
        return {"cn_define_mode": 1, "hint_loops": [tuple(loop) for loop in loops]}
    nodes = onnx.load(model, load_external_data=False).graph.node
    of_node = [[tuple(loop) for loop in loops.get(node.name, [])] for node in nodes]
    # A layer's number is the place of its node; it takes the entry whose number is that of the cut-offs up to it.
    return {"cn_define_mode": 3, "hint_loops": of_node, "layer_cutoffs": list(range(1, len(nodes)))}


def cn_graph(workload: Any, arguments: argparse.Namespace) -> tuple[Any, list[float]]:
    """Pair (graph, CPU seconds of making the graph, for each repeat)."""
    seconds = []
    graph = None
    options = tiling(arguments.loops, arguments.model)
    for _ in range(arguments.repeats):
        layers, given = copy.deepcopy(workload), copy.deepcopy(options)
        graph = None
        gc.collect()  # else the collection of one graph counts for the next
        start = time.process_time()
        stage = GenerateCNWorkloadHybridStage
        graph = made_by(stage, workload=layers, accelerator=accelerator, **given)["workload"]
        seconds.append(time.process_time() - start)
    return graph, seconds


def graph_facts(graph: Any, seconds: list[float]) -> dict[str, Any]:
    """Sizes and times of a graph."""
    with_data = sum("operand" in data for _, _, data in graph.edges(data=True))
    return {
        "cns": graph.number_of_nodes(),
        "edges": graph.number_of_edges(),
        "data_edges": with_data,
        "layers": len({node.id[0] for node in graph}),
        "cpu_seconds": seconds,
        "peak_mib": peak_mib(),
    }


def cost_table(graph: Any, lpf_limit: int) -> tuple[Any, dict[str, Any]]:
    """Pair (cost table, facts about the table). The table has every distinct computation node on every core that can
    run it. No stored results are used.
    """
    start = time.process_time()
    stage = IntraCoreMappingStage([Stop], workload=graph, accelerator=accelerator, loma_lpf_limit=lpf_limit)
    costs = next(iter(stage.run()))[0]["node_hw_performances"]
    seconds = time.process_time() - start
    rows = [
        {
            "layer": node.name,
            "core": core.id,
            "total0": cost.latency_total0,
            "total1": cost.latency_total1,
            "total2": cost.latency_total2,
            "energy_pj": cost.energy_total,
        }
        for node, by_core in costs.items()
        for core, cost in by_core.items()
    ]
    searched = sum(len({id(cost) for cost in by_core.values()}) for by_core in costs.values())
    return costs, {"cpu_seconds": seconds, "entries": len(rows), "searches": searched, "rows": rows}


def evaluations(graph: Any, costs: Any, repeats: int) -> dict[str, Any]:
    """Times and costs of one allocation, which is evaluated `repeats` times. Gene i is placed on compute core i modulo
    4.
    """
    stage = InterCoreMappingStage(
        [],
        workload=graph,
        accelerator=accelerator,
        node_hw_performances=costs,
        nb_ga_generations=1,
        nb_ga_individuals=4,
        **NO_PLOTS,
        **SELECTION,
    )
    allocation = [place % 4 for place in range(stage.individual_length)]
    names = {node.id[0]: node.name for node in graph}
    seconds, of_scheduler = [], []
    for _ in range(repeats):
        start = time.process_time()
        energy, latency = stage.fitness_evaluator.get_fitness(allocation)
        seconds.append(time.process_time() - start)
        copies = pickle_deepcopy(graph), pickle_deepcopy(accelerator)
        start = time.process_time()
        schedule_graph(*copies, candidate_selection="memory", operands_to_prefetch=[])
        of_scheduler.append(time.process_time() - start)
    return {
        "cpu_seconds": seconds,
        "scheduler_cpu_seconds": of_scheduler,
        "genes": stage.individual_length,
        "allocation": {
            f"{names[layer]}/{group}": core
            for (layer, group), core in zip(stage.layer_groups_flexible, allocation, strict=True)
        },
        "latency_cycles": int(latency),
        "energy_pj": float(energy),
    }


def whole_run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run all stages, including the genetic algorithm. The CPU time is that of the whole process, including imports."""
    random.seed(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        stages = [
            ONNXModelParserStage,
            GenerateCNWorkloadHybridStage,
            IntraCoreMappingStage,
            Searched,
        ]
        main = MainStage(
            stages,
            accelerator=accelerator,
            workload_path=str(prepared(arguments.model, Path(folder))),
            mapping_path=MAPPING,
            loma_lpf_limit=arguments.lpf_limit,
            nb_ga_individuals=arguments.individuals,
            nb_ga_generations=arguments.generations,
            **tiling(arguments.loops, arguments.model),
            **NO_PLOTS,
            **SELECTION,
        )
        result = main.run()[0][0]
    return {
        "cpu_seconds": time.process_time(),
        "import_cpu_seconds": IMPORT_CPU_S,
        "latency_cycles": int(result.latency),
        "energy_pj": float(result.energy),
        "evaluations": Searched.evaluations,
        "found": Searched.found,
        "peak_mib": peak_mib(),
    }


def stage_by_stage(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run the parts one by one, and return their times."""
    graph, seconds = cn_graph(parsed(arguments.model), arguments)
    found = {"graph": graph_facts(graph, seconds)}
    if arguments.part == "stages":
        costs, found["cost"] = cost_table(graph, arguments.lpf_limit)
        found["schedule"] = evaluations(graph, costs, arguments.repeats)
    return found | {"import_cpu_seconds": IMPORT_CPU_S, "peak_mib": peak_mib()}


def peak_mib() -> float:
    """Peak resident memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("graph", "stages", "run"))
    parser.add_argument("model", type=Path)
    parser.add_argument("--loops", type=json.loads, default=[["OY", "all"]])
    parser.add_argument("--lpf-limit", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--individuals", type=int, default=16)
    parser.add_argument("--generations", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # the peer prints tables of its own
        found = whole_run(arguments) if arguments.part == "run" else stage_by_stage(arguments)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
