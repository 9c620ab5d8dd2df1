"""A tiny case in the files of a published one: two cores in a chain with DRAM links, two layers line by line."""

from pathlib import Path
from typing import Any

import yaml

LINE_BITS, WEIGHT_BITS = 4 * 8, 8
"""Bits of a line of 4 pixels of one channel, and of the weight of a layer."""


def _memory(
    size: int, operands: list[str], width: int, ports: dict[str, list[str]], served: list[str]
) -> dict[str, Any]:
    kinds = {"r": "read", "w": "write", "rw": "read_write"}
    return {
        "size": size,
        "r_cost": 2,
        "w_cost": 3,
        "area": 0,
        "latency": 1,
        "operands": operands,
        "ports": [
            {
                "name": name,
                "type": kinds[name],
                "bandwidth_min": width,
                "bandwidth_max": width,
                "allocation": allocation,
            }
            for name, allocation in ports.items()
        ],
        "served_dimensions": served,
    }


def core(register_bits: int = 64, dataflows: Any = None) -> dict[str, Any]:
    """Return a core of 4 units over OX: registers for 4 outputs, a memory for inputs and outputs, one for weights."""
    outputs = {"r": ["O, tl", "O, th"], "w": ["O, fh", "O, fl"]}
    both = {"r": ["I1, tl", "O, tl", "O, th"], "w": ["I1, fh", "O, fh", "O, fl"]}
    return {
        "name": "core",
        "memories": {
            "registers": _memory(register_bits, ["O"], register_bits, outputs, ["D1"]),
            "weights": _memory(1024, ["I2"], 8, {"r": ["I2, tl"], "w": ["I2, fh"]}, ["D1"]),
            "lines": _memory(1024, ["I1", "O"], 64, both, ["D1"]),
        },
        "operational_array": {
            "unit_energy": 1,
            "unit_area": 1,
            "dimensions": ["D1"],
            "sizes": [4],
            "input_precision": [8, 8],
        },
        "dataflows": dataflows or {"D1": ["OX, 4"]},
    }


OFF_CHIP = {
    "name": "dram",
    "memories": {
        "dram": _memory(
            100_000,
            ["I1", "I2", "O"],
            8,
            {"rw": ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"]},
            ["D1"],
        )
    },
    "operational_array": {
        "unit_energy": 0,
        "unit_area": 0,
        "dimensions": ["D1"],
        "sizes": [1],
        "input_precision": [8, 8],
    },
}
ACCELERATOR = {
    "name": "tiny",
    "cores": {0: "./cores/core.yaml", 1: "./cores/core.yaml"},
    "offchip_core": "./cores/dram.yaml",
    "core_connectivity": [
        {"type": "link", "cores": [0, 1], "bandwidth": 8, "directed": True},
        {"type": "link", "cores": [2, 0], "bandwidth": 8, "directed": False, "duplex": "half"},
        {"type": "link", "cores": [2, 1], "bandwidth": 8, "directed": False, "duplex": "half"},
    ],
    "bandwidth": 8,
    "unit_energy_cost": 0,
}


def layer(number: int, source: int, kernel: int = 1) -> dict[str, Any]:
    """Return a convolution of one channel on 3 lines of 4 pixels, `kernel` lines high, padded."""
    entry: dict[str, Any] = {
        "id": number,
        "name": f"L{number}",
        "operator_type": "Conv",
        "equation": "O[b][k][oy][ox]+=W[k][c][fy]*I[b][c][iy][ox]",
        "dimension_relations": ["iy=1*oy+1*fy"],
        "loop_dims": ["B", "K", "C", "OY", "OX", "FY"],
        "loop_sizes": [1, 1, 1, 3, 4, kernel],
        "operand_precision": {"O": 16, "O_final": 8, "W": 8, "I": 8},
        "operand_source": {"W": number, "I": source},
        "pr_loop_dims": ["IY"],
        "padding": [[kernel // 2, kernel // 2]],
    }
    return entry


LINKS = {"O": "O", "W": "I2", "I": "I1"}
MAPPING = [
    {"name": "L0", "core_allocation": [0], "spatial_mapping": {"D1": ["OX, 4"]}, "memory_operand_links": LINKS},
    {"name": "L1", "core_allocation": [1], "spatial_mapping": {"D1": ["OX, 4"]}, "memory_operand_links": LINKS},
    {"name": "default", "core_allocation": [0, 1], "memory_operand_links": LINKS},
]
RUN = {
    "cn_define_mode": 1,
    "hint_loops": [["OY", "all"]],
    "operands_to_prefetch": ["W"],
    "scheduler_candidate_selection": "latency",
    "loma_lpf_limit": 6,
    "intra_core_objective": "latency",
    "commit": "0",
}


def write_case(folder: Path, **changed: Any) -> Path:
    """Write the case into a folder; `changed` maps file names without suffix (core, workload, run, ...) to contents."""
    contents = {
        "accelerator": ACCELERATOR,
        "cores/core": core(),
        "cores/dram": OFF_CHIP,
        "workload": [layer(0, 0), layer(1, 0, 3)],
        "mapping": MAPPING,
        "run": RUN,
        "expected": {"measured": {"latency": 100}, "reproduced": {"latency": 90, "energy": 1000.0}},
    }
    for name, content in {**contents, **{key.replace("__", "/"): value for key, value in changed.items()}}.items():
        if content is not None:
            path = folder / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(content, sort_keys=False))
    return folder
