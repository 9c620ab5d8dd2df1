"""Time and memory of the multi-core scheduler for 10^3 to 10^6 CNs.

    .venv/bin/python benchmarks/schedule_scale.py [--nodes 1000000] [--cores 4] [--logs]

The network is a fused stack of layers on a quad-core. Tile i of a layer needs tiles i - 1, i and i + 1 of the layer
before it, and the weights of its layer, which all tiles share. The first layer reads constants, and the last layer
writes results. Core memories hold only a part of the live data, so tiles and weights are evicted and fetched again.
Each size runs in a separate process, on one core of the machine. The compiled kernel is loaded before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "lib"))

from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds  # noqa: E402
from tilewright.multicore.scheduling.check.rules import check_schedule  # noqa: E402
from tilewright.multicore.scheduling.options import ScheduleOptions  # noqa: E402
from tilewright.multicore.scheduling.problem import CoreSystem, CostTable, NodeGraph, SchedulingProblem  # noqa: E402
from tilewright.multicore.scheduling.simulate import Scheduler  # noqa: E402

LAYERS = 20
WEIGHT, INPUT = 1, 2


def fused_stack(nodes: int, cores: int) -> tuple[SchedulingProblem, np.ndarray]:
    """Pair (problem, allocation) for LAYERS layers with nodes / LAYERS tiles each. Layer i runs on core i modulo the
    number of cores.
    """
    tiles = nodes // LAYERS
    count = tiles * LAYERS
    layer, tile = np.divmod(np.arange(count), tiles)
    # Pieces: one a CN, then one a layer for its weights, then the rows of the input.
    piece_bits = np.concatenate((np.full(count, 2048), np.full(LAYERS, 65536), np.full(tiles, 2048)))
    producer = np.concatenate((np.arange(count), np.full(LAYERS + tiles, -1)))
    neighbours = np.stack([np.clip(tile + offset, 0, tiles - 1) for offset in (-1, 0, 1)], axis=1)
    before = np.where(layer[:, None] == 0, count + LAYERS + neighbours, (layer[:, None] - 1) * tiles + neighbours)
    needs = np.sort(np.concatenate((before, (count + layer)[:, None]), axis=1), axis=1)
    first = np.ones_like(needs, dtype=bool)
    first[:, 1:] = needs[:, 1:] != needs[:, :-1]
    piece = needs[first]
    is_weight = (piece >= count) & (piece < count + LAYERS)
    graph = NodeGraph(
        layer=layer,
        group=np.zeros(count, np.int64),
        stack=np.zeros(count, np.int64),
        cost_row=layer,
        piece_bits=piece_bits,
        piece_producer=producer,
        piece_is_output=np.concatenate((layer == LAYERS - 1, np.zeros(LAYERS + tiles, bool))),
        need_start=np.concatenate(([0], np.cumsum(first.sum(axis=1)))),
        need_piece=piece,
        need_operand=np.where(is_weight, WEIGHT, INPUT),
        order_start=np.zeros(count + 1, np.int64),
        order_predecessor=np.zeros(0, np.int64),
    )
    shape = (LAYERS, cores + 1, 3)
    runtime = np.tile(100 + 7 * np.arange(LAYERS)[:, None], (1, cores + 1))
    runtime[:, cores] = -1
    costs = CostTable(
        runtime,
        np.full(shape[:2], 5.0),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape[::2], np.bool_),
    )
    return SchedulingProblem(graph, costs, quad_core(cores)), layer % cores


def quad_core(cores: int) -> CoreSystem:
    """Cores with one memory each, a bus between them, and a port to the off-chip memory. The off-chip memory has the
    last number.
    """
    pairs = [(i, j) for i in range(cores + 1) for j in range(cores + 1)]
    paths = [[] if i == j else [0, 1] if cores in (i, j) else [0] for i, j in pairs]
    return CoreSystem(
        off_chip_core=cores,
        core_memory=np.repeat(np.arange(cores + 1)[:, None], 3, axis=1),
        memory_capacity_bits=np.array([600_000] * cores + [2**50]),
        memory_read_bits=np.full(cores + 1, 512),
        memory_write_bits=np.full(cores + 1, 512),
        memory_read_energy_pj=np.full(cores + 1, 10.0),
        memory_write_energy_pj=np.full(cores + 1, 10.0),
        link_bits_per_cycle=np.array([128, 64]),
        link_energy_pj_per_bit=np.array([0.1, 4.0]),
        link_is_broadcast=np.array([True, False]),
        path_exists=np.ones(len(pairs), np.bool_),
        path_start=np.concatenate(([0], np.cumsum([len(path) for path in paths]))),
        path_link=np.array([link for path in paths for link in path]),
    )


def measure(nodes: int, cores: int, selection: str, record: bool) -> dict[str, object]:
    """Times and sizes of one problem."""
    begin = time.perf_counter()
    problem, allocation = fused_stack(nodes, cores)
    options = ScheduleOptions(scheduler_candidate_selection=selection, record=record)
    Scheduler(*fused_stack(LAYERS, cores)[:1], options)  # loads the kernel
    built = time.perf_counter()
    scheduler = Scheduler(problem, options)
    prepared = time.perf_counter()
    schedule = scheduler(allocation)
    done = time.perf_counter()
    bounds = lower_bounds(problem)
    bounded = time.perf_counter()
    faults = check_schedule(problem, schedule) if record else []
    assert not faults, faults[:3]
    return {
        "nodes": problem.graph.node_count,
        "edges": len(problem.edges[1]),
        "transferred": int(np.sum(schedule.link_bits[:, 0]) // 2048),
        "latency_cycles": schedule.latency_cycles,
        "gap": round(bounds.latency_gap(schedule.latency_cycles), 4),
        "selection": selection,
        "build_s": round(built - begin, 3),
        "prepare_s": round(prepared - built, 3),
        "schedule_s": round(done - prepared, 4),
        "us_per_node": round((done - prepared) / problem.graph.node_count * 1e6, 2),
        "bounds_s": round(bounded - done, 3),
        **({"check_s": round(time.perf_counter() - bounded, 3)} if record else {}),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def main() -> None:
    """Print a row for each size and selection rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, help="one size only, measured in this process")
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--selection", choices=("latency", "memory"), default="latency")
    parser.add_argument("--logs", action="store_true", help="record transfers and memory use, and check the schedule")
    arguments = parser.parse_args()
    if arguments.nodes:
        print(json.dumps(measure(arguments.nodes, arguments.cores, arguments.selection, arguments.logs)))
        return
    for nodes in (10**3, 10**4, 10**5, 10**6):
        for selection in ("latency", "memory"):
            command = [sys.executable, __file__, "--nodes", str(nodes), "--cores", str(arguments.cores)]
            command += ["--selection", selection, *(["--logs"] if arguments.logs else [])]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
