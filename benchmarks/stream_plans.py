"""Comparison of `tilewright fuse` with plans in mapping files of Stream, both costed by our scheduler.

    .venv/bin/python benchmarks/stream_plans.py MAPPING.yaml --hardware SYSTEM.yaml --workload NETWORK.onnx
        [--seconds 20] [--precision file]

The mapping file has any form that `tilewright fuse --mapping` reads. A file of stream-dse 2.x may have only a part of
the layers of the network. The comparison then has only these layers.

Two searches get `--seconds` CPU seconds each, in one process. The first search has the mapping file, which fixes cores,
parts, tiles and fused groups. This search tries everything that the file leaves open: rules of the scheduler, prefetch,
and the choice among several listed cores. The second search has no mapping file. Prints a row in Markdown with the best
latency of each search; `README.md` has the results.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "lib"))

from tilewright.mapping.source import parse_mapping  # noqa: E402
from tilewright.pipeline.configuration.fusion_options import FusionOptions  # noqa: E402
from tilewright.pipeline.stages.descriptions import Descriptions  # noqa: E402
from tilewright.pipeline.stages.multi.items import SystemProblem, read_system_problem  # noqa: E402
from tilewright.plans.call import fused  # noqa: E402
from tilewright.plans.plan import layers_of  # noqa: E402
from tilewright.plans.segments import part_of_network  # noqa: E402
from tilewright.workload.network_options import NetworkOptions  # noqa: E402

Stacks = tuple[tuple[int, ...], ...]


def problem_of(mapping: Path | None, arguments: argparse.Namespace) -> SystemProblem:
    """Network on the system, with the decisions of a mapping file, or without any fixed decision."""
    source = [{"name": "default"}] if mapping is None else mapping
    options = NetworkOptions() if arguments.precision is None else NetworkOptions(precision=arguments.precision)
    return read_system_problem(Descriptions(arguments.hardware, arguments.workload, source, options))


def cut_out(problem: SystemProblem, named: SystemProblem) -> SystemProblem:
    """Part of the network that the mapping file of `named` maps. If the mapping file has a network plan, the part has
    the layers with entries in the plan. If it has ordinary entries, the part is the whole network.
    """
    if not named.mapping.places:
        return problem
    names = {entry.name for entry, place in zip(named.mapping.entries, named.mapping.places, strict=True) if place >= 0}
    nodes = layers_of(problem.workload)
    places = [place for place, node in enumerate(nodes) if node.layer is not None and node.layer.name in names]
    return part_of_network(problem, nodes, places[0], places[-1])


def stacks_in(problem: SystemProblem) -> Stacks | None:
    """Stacks that the mapping file fixes, reduced to the layers of the part."""
    ids = {node.node_id for node in layers_of(problem.workload)}
    stacks = (tuple(one for one in stack if one in ids) for stack in problem.mapping.stacks)
    return tuple(stack for stack in stacks if stack) or None


def latency(problem: SystemProblem, seconds: float, stacks: Stacks | None = None) -> tuple[int, float]:
    """Pair (least latency in cycles that a search finds, CPU seconds of the search)."""
    start = time.process_time()
    found = fused(problem, FusionOptions(fusion_cpu_budget_s=seconds, nb_plans=10**6, jobs=1), stacks)
    return found.latency_cycles, time.process_time() - start


def main() -> None:
    """Compare the plan of one file with a search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mapping", type=Path)
    parser.add_argument("--hardware", type=Path, required=True)
    parser.add_argument("--workload", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds of each search")
    parser.add_argument("--precision", help="as for `tilewright fuse`")
    arguments = parser.parse_args()
    given = problem_of(arguments.mapping, arguments)
    for notice in given.notices:
        print(notice, file=sys.stderr)
    fixed = cut_out(given, given)
    peer, peer_s = latency(fixed, arguments.seconds, stacks_in(fixed))
    free = replace(fixed, mapping=parse_mapping([{"name": "default"}]), mapping_file="", written=None)
    if given.read is not None:  # without the parts and additions of cut reductions
        free = cut_out(problem_of(None, arguments), given)
    ours, ours_s = latency(free, arguments.seconds)
    row = (arguments.mapping.stem, f"{peer:,}", f"{peer_s:.1f}", f"{ours:,}", f"{ours_s:.1f}", f"{ours / peer:.3f}")
    print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
