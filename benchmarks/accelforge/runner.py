"""Best mapping of one layer, found by the pinned peer accelforge and printed as a JSON object.

    runner.py ARCHITECTURE.yaml --layer '{"sizes": {"K": 64, ...}, ...}' --objective energy
        [--memory-orders all] [--cpu-limit-s 300]

Only the Python of the accelforge environment can run this module. The layer has the form that `peer_layer` of
`benchmarks/layer_cases.py` makes. The search runs in one process with one thread. Its CPU time includes reading the
architecture and ends when the best mapping is known. Two CPU times are reported separately: the time to import the
peer, and the time of a first search over a tiny convolution, which loads the peer's compiled code.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

START = time.process_time()
warnings.filterwarnings("ignore")

import accelforge  # noqa: E402
from accelforge.frontend.arch import Memory  # noqa: E402
from accelforge.frontend.mapper.metrics import Metrics  # noqa: E402
from accelforge.mapper.FFM.main import join_pmappings, make_pmappings  # noqa: E402
from accelforge.util import set_n_parallel_jobs  # noqa: E402

IMPORT_CPU_S = time.process_time() - START
METRICS = {"energy": Metrics.ENERGY, "latency": Metrics.LATENCY, "EDP": Metrics.ENERGY_DELAY_PRODUCT}
COLUMNS = {"energy": "energy", "latency": "latency", "EDP": "energy_delay_product"}
TOLD: dict[str, Callable[[Any], float]] = {
    "templates": lambda found: sum(len(jobs) for jobs in found.einsum2jobs.values()),
    "mappings_in_space": lambda found: found.n_total_pmappings(),
    "mappings_evaluated": lambda found: found.n_evaluated_pmappings(),
}
"""Counts of a search of the peer, by name: functions that read the count from the result of `make_pmappings`."""
MEMORY_LIMIT_BYTES = 8 * 2**30
"""Largest address space of the process, in bytes. A search that needs more fails, so that other processes keep their
memory.
"""
TINY_LAYER = {
    "sizes": {"K": 4, "C": 4, "OX": 4, "FX": 2},
    "operands": {"output": ["K", "OX"], "input": ["C", "IX"], "weight": ["K", "C", "FX"]},
    "spatial": [["D1", "K", 2]],
    "relations": {"IX": [["OX", 1], ["FX", 1]]},
}


def einsum_of(layer: dict[str, Any]) -> dict[str, Any]:
    """Einsum of the peer for a layer. Loop dimensions of size 1 are left out."""
    accesses = []
    for tensor, dimensions in layer["operands"].items():
        projection = {rank: index for rank in dimensions if (index := index_of(rank, layer))}
        accesses.append({"name": tensor, "projection": projection, "output": tensor == "output"})
    return {"name": "Layer", "tensor_accesses": accesses}


def index_of(rank: str, layer: dict[str, Any]) -> str:
    """Index of a rank of a tensor: one loop, or a sum of two loops for a sliding window. '' if no loop iterates over
    the rank.

    A stride without a window, as in a strided 1 x 1 convolution, skips pixels. The tensor of the peer has only the
    pixels that are used.
    """
    sizes = layer["sizes"]
    terms = [(loop, factor) for loop, factor in layer["relations"].get(rank, [[rank, 1]]) if sizes.get(loop, 1) > 1]
    if len(terms) == 1:
        return terms[0][0].lower()
    return " + ".join(loop.lower() if factor == 1 else f"{factor} * {loop.lower()}" for loop, factor in terms)


def read_problems(
    architecture: Path, layer: dict[str, Any], objective: str, memory_orders: str
) -> Iterator[accelforge.Spec]:
    """Yield problems of the peer: the architecture with the spatial mapping of the layer, and the layer as workload.
    There is one problem for each order of the memories.
    """
    spatial = [(f"{array}_{loop.lower()}", loop.lower(), size) for array, loop, size in layer["spatial"]]
    spec = accelforge.Spec.from_yaml(str(architecture), jinja_parse_data={"spatial": spatial})
    spec.workload = accelforge.Workload(
        iteration_space_shape={
            loop.lower(): f"0 <= {loop.lower()} < {size}" for loop, size in layer["sizes"].items() if size > 1
        },
        bits_per_value={"All": 8},
        einsums=[einsum_of(layer)],
    )
    spec.mapper.metrics = METRICS[objective]
    nodes = spec.arch.nodes
    for order in orders_of_nodes(list(nodes)) if memory_orders == "all" else [list(nodes)]:
        spec.arch.nodes = type(nodes)(order)
        yield spec


def orders_of_nodes(nodes: list[Any]) -> Iterator[list[Any]]:
    """Yield orders of the nodes of the architecture, outermost first. The first memory stays outermost.

    Memories of different operands change places. Memories of one operand keep their order, and no memory moves to the
    other side of the array.
    """
    groups = [list(group) for _, group in itertools.groupby(nodes[1:], lambda node: isinstance(node, Memory))]
    choices = [[order for order in itertools.permutations(group) if keeps_levels(order, group)] for group in groups]
    for chosen in itertools.product(*choices):
        yield [nodes[0], *itertools.chain.from_iterable(chosen)]


def keeps_levels(order: tuple[Any, ...], group: list[Any]) -> bool:
    """True if memories that keep the same operand have the same order in `order` as in `group`."""
    operands = {node.name: set(node.tensors.keep.split(" | ")) for node in group if isinstance(node, Memory)}
    pairs = itertools.combinations(group, 2)
    shared = [(a, b) for a, b in pairs if operands.get(a.name, set()) & operands.get(b.name, set())]
    return all(order.index(a) < order.index(b) for a, b in shared)


def search(architecture: Path, layer: dict[str, Any], objective: str, memory_orders: str = "file") -> dict[str, Any]:
    """Value of the best mapping over all orders of memories, CPU seconds, and the counts of TOLD, summed over the
    orders.
    """
    start, best, told = time.process_time(), math.inf, dict.fromkeys(TOLD, 0.0)
    for spec in read_problems(architecture, layer, objective, memory_orders):
        found = make_pmappings(spec, print_progress=False)
        mappings = join_pmappings(found, metrics=spec.mapper.metrics, print_progress=False)
        best = min([best, *mappings.data[f"Total<SEP>{COLUMNS[objective]}"]])
        for name, ask in TOLD.items():
            told[name] += float(ask(found))
    if best == math.inf:
        raise RuntimeError("the peer found no mapping")
    return {"cpu_seconds": time.process_time() - start, "value": float(best), **told}


def stop_after(cpu_limit_s: int, known: dict[str, Any]) -> None:
    """Limit the further CPU time of the process. At the limit, the process prints the result `timeout` and ends."""

    def give_up(*_: object) -> None:
        print(json.dumps(known | {"outcome": "timeout", "cpu_seconds": float(cpu_limit_s)}), flush=True)
        os._exit(0)

    signal.signal(signal.SIGXCPU, give_up)
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + cpu_limit_s) + 1, int(used + cpu_limit_s) + 30))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architecture", type=Path)
    parser.add_argument(
        "--layer",
        type=json.loads,
        default=TINY_LAYER,
        help="sizes, operands, relations and spatial of the layer as JSON; default: a tiny layer",
    )
    parser.add_argument("--objective", choices=tuple(METRICS), default="latency")
    parser.add_argument(
        "--memory-orders",
        choices=("file", "all"),
        default="file",
        help="file: order of memories in the file; all: try all orders",
    )
    parser.add_argument("--cpu-limit-s", type=int, default=300)
    arguments = parser.parse_args()
    set_n_parallel_jobs(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    first = search(arguments.architecture, TINY_LAYER, arguments.objective)["cpu_seconds"]
    known = {"import_cpu_seconds": IMPORT_CPU_S, "first_search_cpu_seconds": first}
    stop_after(arguments.cpu_limit_s, known)
    try:
        asked = (arguments.architecture, arguments.layer, arguments.objective, arguments.memory_orders)
        result = {"outcome": "found"} | search(*asked)
    except Exception as failure:  # the peer's own message, whatever its kind, goes into the table
        lines = str(failure).strip().splitlines() or [""]
        result = {"outcome": "failed", "reason": f"{type(failure).__name__}: {lines[0]}"}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps(known | {"peak_memory_mb": peak} | result), flush=True)


if __name__ == "__main__":
    main()
