"""Comparison of designs of spaces with `tilewright map` of each design alone: every number must be equal to the last
bit.

    .venv/bin/python benchmarks/designs.py [--designs 1000] [--jobs 2] [--seconds 3600]

Each seed is a random design of one of five accelerators on one of three networks, with random options. A design changes
sides of the array, capacities, port widths, unit energies and areas. Half of the designs also have keys for zeros and
for rules of the control. On some designs no mapping fits, and some are not valid accelerators. The comparison covers
status, energy, latency, area, the terms of the energy, the parts of the latency, and the reason why no mapping fits.
Prints counts and every difference; `--seed N` repeats one design. The exit code is 1 if there is a difference.
"""

from __future__ import annotations

import copy
import random
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from seeded import PROJECT, run
from shipped import shipped

from tests.plain.hardware_keys import random_shares, with_random_keys
from tests.plain.tally import Tally

AT_ONCE = 10
Shares = tuple[tuple[str, float], ...]
BASES = ("tpu_like", "eyeriss_like", "edge_tpu_like", "cube_3d", "systolic/systolic")
NETWORKS = ("bert_tiny", "resnet18", "mobilenetv2")


@cache
def network(name: str, model: str, zeros: Shares) -> Any:
    """Network with shares of zeros, which each process reads once."""
    from tilewright.pipeline.sources import parse_workload
    from tilewright.workload.network_options import NetworkOptions

    file = PROJECT / "config" / "workload" / f"{name}.onnx"
    return parse_workload(file, model=model, options=NetworkOptions(zeros=zeros))


@cache
def evaluator(name: str, mapping: Path | None, options: Any, zeros: Shares) -> Any:
    """Evaluator of designs on a network. It has evaluated other designs before, as in a space."""
    from tilewright.designs.evaluate import NetworkEvaluator

    return NetworkEvaluator(network(name, options.model, zeros), mapping, options)


@cache
def base_of(name: str) -> dict[str, Any]:
    """Content of a hardware file."""
    from tilewright.base.yamlfile import load_yaml

    data: dict[str, Any] = load_yaml(shipped("hardware", name)).data
    return data


def random_design(rng: random.Random, base: dict[str, Any]) -> dict[str, Any]:
    """Content of a hardware file in which some numbers are changed."""
    design = copy.deepcopy(base)
    array = design["operational_array"]
    array["sizes"] = [rng.choice((size, size, 2 * size, max(1, size // 2), 3, 16)) for size in array["sizes"]]
    array["unit_energy"] = rng.choice((0.04, 0.5))
    for memory in design["memories"].values():
        bits = rng.choice((1, 1, 1, 2, 0.5, 0.25, 0.03125))
        if isinstance(memory["size"], int):
            memory["size"] = max(1, int(memory["size"] * bits))
        memory["r_cost"] = rng.choice((memory["r_cost"], 1.5, 20, 300))
        memory["area"] = rng.choice((0, 0.25))
        if rng.random() < 0.3:
            wide = rng.choice((8, 64, 512))
            for port in memory["ports"]:
                port["bandwidth_min"], port["bandwidth_max"] = min(8, wide), wide
    if rng.random() < 0.05:
        rng.choice(list(design["memories"].values()))["size"] = rng.choice((0, -4, "2 parsecs"))
    return design


def random_options(rng: random.Random) -> Any:
    """Options of a search that ends soon."""
    from tilewright.search.options import SearchOptions

    return SearchOptions(
        objective=rng.choice(("energy", "latency", "EDP")),
        model=rng.choice(("corrected", "zigzag-3.9.1")),
        lpf_limit=rng.choice((3, 4, 5)),
        exploit_data_locality=rng.random() < 0.7,
        nb_spatial_mappings_generated=rng.choice((1, 3)),
        temporal_mapping_type=rng.choice(("uneven", "uneven", "uneven", "even")),
    )


def try_design(seed: int) -> Tally:
    """Evaluate one design in both ways, and compare the results."""
    from tilewright.base.errors import InputError
    from tilewright.designs.design_cost import DesignCost
    from tilewright.designs.results import INVALID
    from tilewright.pipeline.sources import parse_accelerator

    from tests.unit.designs.map_alone import mapped

    rng = random.Random(seed)
    base, net = rng.choice(BASES), rng.choice(NETWORKS)
    mapping = rng.choice((None, shipped("mapping", base)))
    if mapping is not None and not mapping.is_file():
        mapping = None
    options = random_options(random.Random(seed // AT_ONCE))  # so that evaluators are shared, as in a space
    design = random_design(rng, base_of(base))
    zeros = tuple(random_shares(random.Random(seed // AT_ONCE)).items())
    if is_keyed := rng.random() < 0.5:
        design = with_random_keys(rng, design)
    shared = evaluator(net, mapping, options, zeros)
    tally = Tally()
    try:
        found = shared.cost(parse_accelerator(design))
    except InputError:
        found = DesignCost(INVALID)
    expected = mapped(design, network(net, options.model, zeros), shared.mapping, options)
    tally.counts.update({"designs": 1, f"base: {base}": 1, f"network: {net}": 1, f"status: {found.status}": 1})
    tally.counts[f"with keys: {found.status}"] += is_keyed
    latency = {part: float(cycles) for part, cycles in found.latency_terms_cycles.items()}
    found = replace(found, latency_terms_cycles=latency, further={})
    ours = replace(found, memory_energy_pj={}, reason=found.reason if found.status == "infeasible" else "")
    if repr(ours) != repr(expected):
        tally.wrong.append(f"seed {seed}: {ours} instead of {expected}")
    return tally


if __name__ == "__main__":
    sys.exit(run(__doc__, "design", 1000, try_design, AT_ONCE))
