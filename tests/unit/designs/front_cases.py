"""Small spaces with known complete fronts, and the costs of single designs."""

from pathlib import Path
from typing import Any

import yaml

from tests.unit.designs.space_cases import BASE, ROOT

NETWORKS = {
    "bert": str(ROOT / "config" / "workload" / "bert_tiny.onnx"),
    "two": str(ROOT / "tests" / "workflow" / "tiny" / "workload" / "two_layers.yaml"),
}
WIDE = "memories.{}.ports.{}.bandwidth_max"
LAWS = {
    "memories.sram.size": "sram_kib * 8192",
    "memories.sram.r_cost": "0.217 * sram_kib ** 0.551 * word_bits ** 0.595",
    "memories.sram.w_cost": "0.108 * sram_kib ** 0.440 * word_bits ** 0.855",
    "memories.sram.area": "0.0037 * sram_kib",
    "memories.dram.r_cost": "dram_pj * dram_bits",
    "memories.dram.w_cost": "dram_pj * dram_bits",
    "memories.dram.area": "0.0002 * dram_bits",
}


def front_space(**changes: Any) -> dict[str, Any]:
    """Return a space over array, SRAM, words and unit energies."""
    ports = [WIDE.format("sram", port) for port in ("r_port_1", "w_port_1")]
    given: dict[str, Any] = {
        "accelerator": str(BASE),
        "networks": NETWORKS,
        "axes": {
            "dram_pj": {"values": [4, 20]},
            "rows": {"path": "operational_array.sizes.0", "values": [8, 16]},
            "sram_kib": {"values": [2, 64]},
            "word_bits": {"path": ports, "values": [64, 256]},
            "dram_bits": {"path": WIDE.format("dram", "rw_port_1"), "values": [64, 256]},
            "mac_pj": {"path": ["operational_array.unit_energy", "memories.sum_register.w_cost"], "values": [0.1, 0.3]},
        },
        "laws": LAWS,
        "options": {"objective": "EDP", "lpf_limit": 3},
    }
    return given | changes


def write_space(folder: Path, **changes: Any) -> Path:
    """Write the space into a file."""
    path = folder / "words.yaml"
    path.write_text(yaml.safe_dump(front_space(**changes), sort_keys=False))
    return path
