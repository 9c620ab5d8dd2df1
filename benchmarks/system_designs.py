"""Comparison of designs of spaces of systems with separate runs of each design: every number must be equal to the last
bit.

    .venv/bin/python benchmarks/system_designs.py [--designs 60] [--jobs 2] [--seconds 3600]

Each seed is a random design of one of three accelerators on one of three networks, with random options. A design
changes the cores and their numbers, capacities, arrays, unit energies, areas and links. On some designs no mapping
fits, and some are not valid accelerators. The comparison covers energy, latency, area, all terms of the energy, and
whether there are results. Prints counts, CPU times of both ways, and every difference; `--seed N` repeats one design.
The exit code is 1 if there is a difference.
"""

from __future__ import annotations

import random
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from seeded import PROJECT, run

from tests.plain.tally import Tally

AT_ONCE = 10
NETWORKS = ("bert_tiny", "resnet18", "mobilenetv2")


@cache
def network(name: str) -> Any:
    """Network, which each process reads once."""
    from tilewright.designs.evaluate_system import NETWORK_MODEL
    from tilewright.pipeline.sources import parse_workload

    return parse_workload(PROJECT / "config" / "workload" / f"{name}.onnx", model=NETWORK_MODEL)


@cache
def evaluator(name: str, mapping: Path | None, options: Any) -> Any:
    """Evaluator of designs on a network. It has evaluated other designs before, as in a space."""
    from tilewright.designs.evaluate_system import SystemEvaluator

    return SystemEvaluator(network(name), mapping, options)


@cache
def base_of(name: str) -> Any:
    """Content of an accelerator file and its core files."""
    from tilewright.base.errors import Problems
    from tilewright.base.yamlfile import load_yaml
    from tilewright.designs.space_reader import system_base

    found = system_base(load_yaml(PROJECT / "config" / "hardware" / "multi" / f"{name}.yaml"), {}, Problems())
    assert found is not None
    return found.document.data


def random_options(rng: random.Random) -> Any:
    """Options of a run that ends soon."""
    from tilewright.designs.space import SystemOptions

    return SystemOptions(
        objective=rng.choice(("energy", "latency", "EDP")),
        lpf_limit=rng.choice((3, 4, 5)),
        nb_spatial_mappings_generated=rng.choice((1, 3)),
        nb_ga_individuals=4,
        nb_ga_generations=rng.choice((1, 3)),
        exhaustive_nodes=0,
        seed=rng.randrange(5),
        mode=rng.choice(("fused", "fused", "lbl")),
        scheduler_candidate_selection=rng.choice(("latency", "memory")),
        operands_to_prefetch=rng.choice(((), ("W",))),
        cn_runtime=rng.choice(("total1", "total2")),
    )


def try_design(seed: int) -> Tally:
    """Evaluate one design in both ways, and compare the results."""
    from tilewright.base.errors import InputError
    from tilewright.designs.design_cost import DesignCost
    from tilewright.designs.results import INVALID, OK
    from tilewright.pipeline.sources import parse_accelerator

    from tests.unit.designs.system_cases import BASES, alone, of_cost, random_system

    rng, group = random.Random(seed), random.Random(seed // AT_ONCE)  # evaluators are shared, as in a space
    base, net = group.choice(BASES), group.choice(NETWORKS)
    mappings = {"resnet18": "quad_core", "mobilenetv2": "heterogeneous"}
    name = group.choice((None, mappings.get(net)))
    mapping = None if name is None else PROJECT / "config" / "mapping" / "multi" / f"{name}.yaml"
    shared = evaluator(net, mapping, random_options(group))
    design = random_system(rng, base_of(base))
    began = time.process_time()
    try:
        found = shared.cost(parse_accelerator(design))
    except InputError:
        found = DesignCost(INVALID)
    between = time.process_time()
    expected = alone(design, network(net), shared.mapping, shared.options)
    ended = time.process_time()
    tally = Tally()
    tally.counts.update({"designs": 1, f"base: {base}": 1, f"network: {net}": 1, f"status: {found.status}": 1})
    tally.counts.update(
        {"CPU ms in a space": round(1e3 * (between - began)), "CPU ms alone": round(1e3 * (ended - between))}
    )
    is_same = repr(of_cost(found)) == repr(expected) if found.status == OK else len(expected) == 1
    if not is_same:
        tally.wrong.append(f"seed {seed}: {found} instead of {expected}")
    return tally


if __name__ == "__main__":
    sys.exit(run(__doc__, "design", 60, try_design, AT_ONCE))
