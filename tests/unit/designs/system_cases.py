"""Spaces of several cores, for tests, and a separate run of one design."""

import copy
import random
from pathlib import Path
from typing import Any

from tilewright.api import run_multi_core
from tilewright.base.errors import InputError, MappingError
from tilewright.designs.space import Space, SystemOptions
from tilewright.designs.space_reader import read_space
from tilewright.multicore.scheduling.energy_ledger import term_parts
from tilewright.workload.graph import Workload

ROOT = Path(__file__).resolve().parents[3]
HARDWARE = ROOT / "config" / "hardware" / "multi"
BERT = ROOT / "config" / "workload" / "bert_tiny.onnx"
BASES = ("quad_core", "quad_mesh", "heterogeneous")
QUICK = {"nb_ga_individuals": 4, "nb_ga_generations": 2, "exhaustive_nodes": 0, "lpf_limit": 4}
"""Options of a run that ends soon."""
SIZE = "core_files.k16_c16.memories.sram_activation.size"
WIDTH = "core_connectivity.4.bandwidth"
SMALL: dict[str, Any] = {
    "name": "cores",
    "accelerator": str(HARDWARE / "quad_core.yaml"),
    "networks": {"bert": str(BERT)},
    "axes": {
        "activation": {"path": SIZE, "values": ["1 KiB", "64 KiB", "256 KiB"]},
        "width": {"path": WIDTH, "values": [32, 64, 0]},
    },
    "options": QUICK,
    "shard_designs": 4,
}
"""A space of nine designs, three of which are invalid."""


def system_space(**keys: Any) -> Space:
    """Read a space over quad_core."""
    return read_space(SMALL | keys)


def random_system(rng: random.Random, base: dict[str, Any]) -> dict[str, Any]:
    """Return a random design with changed cores, counts, memories, arrays, links and energies.

    Some designs fit no layer, and some are invalid.
    """
    design = copy.deepcopy(base)
    for name, core in design["core_files"].items():
        for memory in core["memories"].values():
            if name != "offchip" and rng.random() < 0.3:
                memory["size"] = rng.choice(("16 B", "4 KiB", "32 KiB", "1 MiB"))
            memory["r_cost"] = rng.choice((memory["r_cost"], 1.5, 300))
            memory["area"] = rng.choice((0, 0.25))
        if rng.random() < 0.2:
            core["operational_array"]["sizes"] = [rng.choice((4, 16)) for _ in core["operational_array"]["sizes"]]
            core.pop("dataflows", None)
        if rng.random() < 0.2 and name != "offchip":
            core["operational_array"]["unit_area"] = 0.001
    _change_links(rng, design)
    if rng.random() < 0.1:
        core = rng.choice(list(design["core_files"].values()))
        rng.choice(list(core["memories"].values()))["size"] = rng.choice((0, "2 parsecs"))
    return design


def _change_links(rng: random.Random, design: dict[str, Any]) -> None:
    if "graph" in design:
        design["graph"]["bandwidth"] = rng.choice((8, 64, 256, 0))
        if rng.random() < 0.3:
            design["graph"]["nb_rows"] = 3
            design["core_counts"] = {0: 3}
        return
    for link in design["core_connectivity"]:
        link["bandwidth"] = rng.choice((16, 64, 256))
        link["energy_per_bit"] = rng.choice(("80 fJ", "1 pJ", "-1 pJ") if rng.random() < 0.1 else ("80 fJ", "1 pJ"))
    if rng.random() < 0.3:
        design["core_counts"] = {rng.choice((0, 1)): rng.choice((2, 3))}
    if rng.random() < 0.3:
        design["cores"][0] = rng.choice(list(design["core_files"]))


def alone(hardware: dict[str, Any], network: Workload, mapping: Any, options: SystemOptions) -> tuple[Any, ...]:
    """Return energy, latency, energy terms and area of a separate run, or the kind of its error."""
    try:
        found = run_multi_core(network, hardware, mapping, **options.as_dict())
    except (InputError, MappingError) as error:
        return (type(error).__name__,)
    terms = {
        f"{term}_{part}" if part else term: pj for term, part, pj in term_parts(found.artifact.schedule.energy_terms_pj)
    }
    area = found.summary["area_mm2"]
    return found.energy_pj, found.latency_cycles, terms, float("nan") if area is None else area


def of_cost(cost: Any) -> tuple[Any, ...]:
    """Return energy, latency, energy terms and area of the costs of a design."""
    return cost.energy_pj, cost.latency_cycles, dict(cost.energy_terms_pj), cost.area_mm2
