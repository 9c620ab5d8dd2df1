"""Small runs of the flow for several cores: accelerators, networks, and the verbs from files to schedule."""

import json
from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx.helper import make_node
from tilewright.cli.main import main

from tests.unit.multicore.nodes.networks import SAME, conv
from tests.unit.workload.onnx.dependency_checks import build_model

READ, WRITE = ["I1, tl", "I2, tl", "O, tl", "O, th"], ["I1, fh", "I2, fh", "O, fh", "O, fl"]
GA = ("--nb-ga-individuals", "4", "--nb-ga-generations", "2", "--exhaustive-nodes", "0")
FAST = ("--model", "corrected", "--lpf-limit", "4", "--no-store")


def ports(read_bits: int, write_bits: int = 0) -> list[dict[str, Any]]:
    """Return a read and a write port, or one port for both."""
    if not write_bits:
        both = {"name": "rw_port_1", "type": "read_write", "bandwidth_min": 8, "bandwidth_max": read_bits}
        return [{**both, "allocation": [*READ, *WRITE]}]
    return [
        {"name": "r_port_1", "type": "read", "bandwidth_min": 8, "bandwidth_max": read_bits, "allocation": READ},
        {"name": "w_port_1", "type": "write", "bandwidth_min": 8, "bandwidth_max": write_bits, "allocation": WRITE},
    ]


def core(name: str, units: int, size: str, types: Sequence[str] = ("all",), energy: float = 50.0) -> dict[str, Any]:
    """Return a core with one array dimension and one memory for all operands."""
    memory = {
        **{"operands": ["I1", "I2", "O"], "size": size, "r_cost": energy, "w_cost": energy + 10, "area": 0},
        **{"latency": 1, "served_dimensions": ["D1"], "ports": ports(128, 64)},
    }
    array = {"dimensions": ["D1"], "sizes": [units], "unit_energy": 0.5, "unit_area": 0}
    return {
        **{"name": name, "operational_array": array, "operator_types": list(types)},
        "memories": {"memory": memory},
    }


def off_chip(read_bits: int = 64, write_bits: int = 0) -> dict[str, Any]:
    """Return the off-chip core."""
    described = core("offchip", 1, "1 MiB", energy=1000.0)
    del described["operator_types"]
    described["memories"] = {"dram": described["memories"]["memory"] | {"ports": ports(read_bits, write_bits)}}
    return described


DUO = {
    "cores": {0: core("left", 2, "4 KiB"), 1: core("right", 4, "4 KiB", energy=40.0)},
    "offchip": off_chip(),
    "links": [{"type": "link", "cores": [0, 1], "bandwidth": 32, "energy_per_bit": "100 fJ"}],
}
MIXED = {
    "cores": {
        0: core("wide", 8, "768 B"),
        1: core("wide", 8, "768 B"),
        2: core("wide", 8, "768 B"),
        3: core("narrow", 2, "1 KiB", energy=20.0),
        4: core("vector", 4, "2 KiB", ["vector", "pooling"]),
    },
    "offchip": off_chip(96, 64),
    "links": [
        {"type": "bus", "cores": [0, 2, 3, 4], "bandwidth": 24, "energy_per_bit": "300 fJ"},
        {"type": "link", "cores": [1, 3], "bandwidth": 64, "energy_per_bit": "100 fJ"},
        {"type": "link", "cores": [0, 3], "bandwidth": 16, "unit_energy_cost": 3.2, "duplex": "half"},
        {"type": "link", "cores": [1, 2], "bandwidth": 40, "energy_per_bit": "150 fJ", "directed": True},
    ],
    "sharing": [[0, 1]],
    "roles": {4: "simd"},
}
"""Cores of two kinds, two of them with a shared memory: a bus, several links, small memories, two off-chip ports."""

BUS = {
    "cores": {number: core("lane", 4, "2 KiB") for number in range(3)},
    "offchip": off_chip(),
    "links": [{"type": "bus", "cores": [0, 1, 2, 3], "bandwidth": 32, "energy_per_bit": "200 fJ"}],
}
"""Three equal cores and the off-chip memory on one bus."""
ROW = {
    "cores": {number: core("lane", 4, "2 KiB") for number in range(4)},
    "offchip": off_chip(),
    "links": [
        {"type": "link", "cores": [0, 1], "bandwidth": 32, "energy_per_bit": "200 fJ"},
        {"type": "link", "cores": [1, 2], "bandwidth": 24, "energy_per_bit": "200 fJ"},
        {"type": "link", "cores": [1, 3], "bandwidth": 32, "energy_per_bit": "100 fJ", "multicast": False},
        {"type": "link", "cores": [0, 4], "bandwidth": 48, "energy_per_bit": "300 fJ"},
    ],
    "multicast": True,
}
"""Four equal cores on a path with a branch, with the off-chip memory at its end; all links but one have multicast."""


def pipe(name: str, units: int) -> dict[str, Any]:
    """Return a core with separate memories for inputs, weights and outputs."""
    found = core(name, units, "1 KiB")
    both = found["memories"]["memory"]
    held = {"in": ["I1"], "weights": ["I2"], "out": ["O"]}
    found["memories"] = {place: both | {"operands": operands, "ports": []} for place, operands in held.items()}
    for place, operands in held.items():
        ways = [way for way in (*READ, *WRITE) if way.split(",")[0] in operands]
        port = {"name": "rw_port_1", "type": "read_write", "bandwidth_min": 8, "bandwidth_max": 64, "allocation": ways}
        found["memories"][place]["ports"] = [port]
    return found


PIPE = {
    "cores": {0: pipe("wide", 4), 1: pipe("narrow", 2), 2: pipe("wide", 4)},
    "offchip": off_chip(),
    "links": [{"type": "link", "cores": [0, 2], "bandwidth": 16, "energy_per_bit": "100 fJ"}],
    "sharing": [["0.out", "1.in"], ["2.in", "1.out"]],
}
"""Three cores in a row: each reads the outputs of the previous core in place; weights are not shared."""


def write_accelerator(folder: Path, described: Table[str, Any], energy_per_bit: str = "400 fJ") -> Path:
    """Write the files of an accelerator and return the path of the main file."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {**{one["name"]: one for one in described["cores"].values()}, "offchip": described["offchip"]}
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    accelerator = {
        **{"name": "system", "cores": {number: f"./{one['name']}.yaml" for number, one in described["cores"].items()}},
        **{"offchip_core": "./offchip.yaml", "core_connectivity": described["links"], "bandwidth": 64},
        **{"energy_per_bit": energy_per_bit, "core_memory_sharing": described.get("sharing", [])},
        "core_roles": described.get("roles", {}),
        "multicast": described.get("multicast", False),
        "forwarding": described.get("forwarding", False),
        **{key: described[key] for key in ("offchip_ports", "equal_paths", "routers") if key in described},
    }
    path = folder / "system.yaml"
    path.write_text(yaml.safe_dump(accelerator, sort_keys=False))
    return path


def write_mapping(folder: Path, *entries: Table[str, Any]) -> Path:
    """Write a mapping file with the given entries, or with a default entry."""
    links = {"O": "O", "W": "I2", "I": "I1"}
    found = [{"memory_operand_links": links, **entry} for entry in entries or ({"name": "default"},)]
    path = folder / "mapping.yaml"
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    return path


def chain(folder: Path, prefix: str = "") -> Path:
    """Write three 3x3 convolutions in a row; names of layers and tensors begin with `prefix`."""
    names = [f"{prefix}{name}" for name in ("x", "a", "b", "c")]
    nodes = [conv(names[i], f"{prefix}w{i}", names[i + 1], **SAME) for i in range(3)]
    weights = {f"{prefix}w{i}": np.ones((4, 4, 3, 3), np.float32) for i in range(3)}
    return saved(folder, nodes, {names[0]: (1, 4, 8, 8)}, weights)


def branches(folder: Path) -> Path:
    """Write a network with branches.

    It has two inputs, a residual, a concatenation, depthwise and grouped convolutions, a bias, pooling and two outputs.
    """
    nodes = [
        conv("x", "w0", "a", **SAME),
        make_node("Relu", ["a"], ["r"], name="r"),
        conv("r", "w1", "b", group=8, **SAME),
        make_node("Add", ["b", "r"], ["s"], name="s"),
        make_node("Conv", ["s", "w2", "bias"], ["d"], name="d"),
        make_node("Concat", ["d", "y"], ["k"], name="k", axis=1),
        conv("k", "w3", "e", group=2, **SAME),
        make_node("MaxPool", ["e"], ["p"], name="p", kernel_shape=[2, 2], strides=[2, 2]),
        conv("k", "w4", "f", strides=[2, 2]),
        make_node("Add", ["p", "f"], ["z"], name="z"),
    ]
    shapes = {"w0": (8, 4, 3, 3), "w1": (8, 1, 3, 3), "w2": (8, 8, 1, 1), "bias": (8,), "w3": (8, 6, 3, 3)}
    weights = {name: np.ones(shape, np.float32) for name, shape in (shapes | {"w4": (8, 12, 1, 1)}).items()}
    return saved(folder, nodes, {"x": (1, 4, 8, 8), "y": (1, 4, 8, 8)}, weights)


def attention(folder: Path) -> Path:
    """Write one attention head: three projections, reshaped and transposed products, a softmax, a residual."""
    nodes = [make_node("MatMul", ["x", f"w{i}"], [f"m{i}"], name=f"m{i}") for i in range(3)]
    nodes += [
        make_node("Transpose", ["m1"], ["t"], name="t", perm=[0, 2, 1]),
        make_node("MatMul", ["m0", "t"], ["score"], name="score"),
        make_node("Softmax", ["score"], ["soft"], name="soft", axis=-1),
        make_node("MatMul", ["soft", "m2"], ["mixed"], name="mixed"),
        make_node("MatMul", ["mixed", "w3"], ["o"], name="o"),
        make_node("Add", ["o", "x"], ["z"], name="z"),
    ]
    return saved(folder, nodes, {"x": (1, 8, 12)}, {f"w{i}": np.ones((12, 12), np.float32) for i in range(4)})


def saved(folder: Path, nodes: Any, inputs: Any, weights: Any) -> Path:
    """Write an ONNX file of nodes, shapes of inputs, and weights, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "net.onnx"
    onnx.save(build_model(nodes, inputs, weights), str(path))
    return path


def run(
    folder: Path,
    hardware: Path,
    network: Path,
    mapping: Path,
    tiling: Sequence[str] = (),
    costs: Sequence[str] = FAST,
    search: Sequence[str] = GA,
    schedule: Sequence[str] = (),
) -> dict[str, Any]:
    """Run all steps from files to a checked schedule, and return the payload of `summary.json`."""
    given = ["--hardware", str(hardware), "--workload", str(network), "--mapping", str(mapping)]
    done(["cns", *given, *tiling, "-o", str(folder)])
    for name in dict.fromkeys(Path(file).stem for file in yaml.safe_load(hardware.read_text())["cores"].values()):
        table = str(folder / "cost" / f"{name}.jsonl")
        done(["cost", *given, "--core", name, "--cns", str(folder), *costs, "-o", table])
    folders = ["--cns", str(folder), "--costs", str(folder / "cost"), "-o", str(folder)]
    done(["allocate", *given, *folders, *search, *schedule])
    done(["schedule", *given, *folders, "--core-allocation", str(folder / "allocation.json"), *schedule])
    done(["check", str(folder), *given])
    payload: dict[str, Any] = json.loads((folder / "summary.json").read_text())["payload"]
    return payload


def done(arguments: Sequence[str]) -> None:
    """Run a verb and assert that it succeeds."""
    assert main(list(arguments)) == 0, " ".join(arguments)
