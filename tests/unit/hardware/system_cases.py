"""Small accelerators for the tests: a core file, an off-chip file, and accelerator files that name them."""

from pathlib import Path
from typing import Any

import yaml
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.sources import parse_accelerator

ROOT = Path(__file__).resolve().parents[3]
MULTI = ROOT / "config" / "hardware" / "multi"
SHARED = ROOT.parent / "shared"
FOREIGN_KEY = "core_memory_sharing_memories"
"""A key from the files of the case `diana`, refused as unknown (docs/accuracy/three-chips.md names the replacement)."""
_OF_CHIPS = sorted((SHARED / "validation").rglob("accelerator.yaml"))
WITH_FOREIGN_KEY = [path for path in _OF_CHIPS if f"\n{FOREIGN_KEY}:" in path.read_text()]
PUBLISHED_CHIPS = [path for path in _OF_CHIPS if path not in WITH_FOREIGN_KEY]


def memory(size: int = 65536, operands: tuple[str, ...] = ("I1", "I2", "O"), width: int = 64) -> dict[str, Any]:
    """A memory with a read and a write port."""
    read = [f"{name}, tl" for name in operands] + ["O, th"] * ("O" in operands)
    write = [f"{name}, fh" for name in operands] + ["O, fl"] * ("O" in operands)
    ports = [("r", "read", read), ("w", "write", write)]
    return {
        "size": size,
        "r_cost": 1,
        "w_cost": 2,
        "operands": list(operands),
        "served_dimensions": ["D1"],
        "ports": [
            {"name": name, "type": kind, "bandwidth_min": width, "bandwidth_max": width, "allocation": served}
            for name, kind, served in ports
        ],
    }


def core(name: str = "small", **memories: dict[str, Any]) -> dict[str, Any]:
    """Data of a core of four multipliers, by default with one memory, called sram."""
    array = {"dimensions": ["D1"], "sizes": [4], "unit_energy": 0.5}
    return {"name": name, "memories": memories or {"sram": memory()}, "operational_array": array}


def offchip(*port_types: str) -> dict[str, Any]:
    """Data of an off-chip core as in files of Stream: an array without units, and a memory with one port by default."""
    data = core("dram", dram=memory(10**9))
    data["operational_array"]["sizes"] = [0]
    everything = [f"{name}, {direction}" for name in ("I1", "I2", "O") for direction in ("fh", "tl")] + [
        "O, fl",
        "O, th",
    ]
    if not port_types:
        port = {"name": "rw", "type": "read_write", "bandwidth_min": 64, "bandwidth_max": 64, "allocation": everything}
        data["memories"]["dram"]["ports"] = [port]
    return data


def write(folder: Path, **files: dict[str, Any]) -> None:
    """Write each YAML file into the folder."""
    for name, data in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(data, sort_keys=False))


def connected(count: int, connectivity: list[Any], **more: Any) -> dict[str, Any]:
    """Data of an accelerator in the form of 2025, with `count` small cores and an off-chip core."""
    cores = dict.fromkeys(range(count), "small.yaml")
    head = {"name": "x", "cores": cores, "offchip_core": "dram.yaml", "core_connectivity": connectivity}
    return head | {"bandwidth": 32, "unit_energy_cost": 0} | more


def mesh(rows: int, columns: int, special: dict[str, int] | None = None, **graph: Any) -> dict[str, Any]:
    """Data of a mesh in the form of 2024; `special` has the ids of special cores, the last of which is off-chip."""
    special = {"offchip_core_id": rows * columns} if special is None else special
    cores = ["small.yaml"] * (rows * columns + len(special))
    if "offchip_core_id" in special:
        cores[special["offchip_core_id"]] = "dram.yaml"
    shape = {"type": "2d_mesh", "nb_rows": rows, "nb_cols": columns, "bandwidth": 64, "unit_energy_cost": 0.5}
    return {"name": "x", "cores": cores, "graph": shape | special | graph}


def read(folder: Path, data: dict[str, Any], notices: list[str] | None = None, **files: Any) -> MultiCoreAccelerator:
    """Read the accelerator of a file, with its core files beside it."""
    write(folder, **{"small": core(), "dram": offchip(), **files, "accelerator": data})
    found = parse_accelerator(folder / "accelerator.yaml", notices)
    assert isinstance(found, MultiCoreAccelerator)
    return found
