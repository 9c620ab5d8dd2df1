"""EDP of the default of `tilewright map`, compared with the mappings of `--preset zigzag` under the same cost model.

    .venv/bin/python benchmarks/default_beside_preset.py [--cores tpu_like ...] [--networks resnet18 ...]

The program compares 24 pairs of a shipped core and network, with and without data kept on chip between layers. It
exports the mappings of the preset. `tilewright evaluate` then costs these mappings with the model of the default. The
data that the default keeps on chip stay there in this evaluation, too. The placement of the preset is not used, because
it never fetches weights on chip, a known fault of zigzag-dse. The EDP of the default must not be larger. Prints a row
for each comparison. The exit code is 1 if the default is worse in one of them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

import yaml
from seeded import PROJECT
from shipped import shipped

from tests.plain.printed_text import VerbError, said

CORES = ("tpu_like", "edge_tpu_like", "eyeriss_like", "cube_3d", "aimc", "dimc", "tpu_like_vector", "meta_prototype_df")
NETWORKS = ("resnet18", "mobilenetv2", "bert_tiny")
CLOSE = 1e-9


def share_of_edp(core: str, network: str, is_local: bool, folder: Path) -> float | None:
    """EDP of the default, divided by the EDP of the mappings of the preset; None if no mapping of the preset fits.

    Both EDPs are computed with the model of the default.
    """
    files = [
        *("--hardware", shipped("hardware", core)),
        *("--workload", PROJECT / "config" / "workload" / f"{network}.onnx"),
    ]
    given = [*files, "--mapping", shipped("mapping", core), "--no-store"]
    given.append("--exploit-data-locality" if is_local else "--no-exploit-data-locality")
    default = json.loads(said("map", *given, "--json", "-o", folder / "default"))["summary"]
    try:
        said("map", *given, "--preset", "zigzag", "-o", folder / "preset")
        lines = said("evaluate", *files, "--mapping", _mappings(files[:2], folder), "--json").splitlines()
    except VerbError:
        return None
    records = [json.loads(line) for line in lines]
    assert len(records) == default["layers"], "each layer has one mapping"
    energy, latency = (math.fsum(record[name] for record in records) for name in ("energy_pj", "latency_cycles"))
    return float(default["energy_pj"] * default["latency_cycles"] / (energy * latency))


def _mappings(hardware: list[object], folder: Path) -> Path:
    """Mapping file with the loops of the preset, and with the data that the default keeps on chip.

    Some layers, such as vector operations, are costed only by the default. They have the mapping of the default.
    """
    entries = {}
    for name in ("default", "preset"):
        path = folder / f"{name}.yaml"
        said("export", folder / name, *hardware, "-o", path)
        entries[name] = {entry["name"]: entry for entry in yaml.safe_load(path.read_text("utf-8"))}
    for name, entry in entries["preset"].items():
        entry.pop("memory_reach", None)
        if "memory_reach" in entries["default"][name]:
            entry["memory_reach"] = entries["default"][name]["memory_reach"]
    path = folder / "found.yaml"
    merged = {**entries["default"], **entries["preset"]}
    path.write_text(yaml.safe_dump(list(merged.values()), sort_keys=False), "utf-8")
    return path


def main() -> int:
    """Compare all pairs. Returns 1 if the default is worse, else 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cores", nargs="+", choices=CORES, default=CORES)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    options = parser.parse_args()
    shares = []
    for core in options.cores:
        for network in options.networks:
            for is_local in (True, False):
                with tempfile.TemporaryDirectory() as folder:
                    share = share_of_edp(core, network, is_local, Path(folder))
                told = "no mapping of the preset fits" if share is None else f"{share:.4f}"
                where = "on chip" if is_local else "through the DRAM"
                print(f"{core:18} {network:12} data between layers {where:16} {told}", flush=True)
                shares += [] if share is None else [share]
    worse = sum(share > 1 + CLOSE for share in shares)
    extent = f"{min(shares):.4f} to {max(shares):.4f}"
    print(f"{len(shares)} comparisons: EDP of the default is {extent} times that of the preset")
    print(f"worse than the preset: {worse}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
