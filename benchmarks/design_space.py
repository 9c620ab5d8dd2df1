"""CPU seconds per design of a space on one network: of the whole command, and of zigzag-dse on some of the designs.

This module is part of `run_benchmarks.py`. Both tools read the same accelerators. zigzag-dse reads a hardware file for
each design, in one process, with one call of its API per design. Both tools try the three best generated spatial
mappings, and all orders of at most six loops.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import yaml
from measurements import PROJECT, Settings, last_json, ours, reference

TARGET_RATIO = 1000.0
TARGET_SECONDS = 0.05
LPF_LIMIT = 6
OBJECTIVE = "EDP"
PROFILES = ("corrected", "zigzag-3.9.1")
AXES: dict[str, dict[str, Any]] = {
    "rows": {"path": "operational_array.sizes.0", "values": [8, 16, 24, 32, 48]},
    "columns": {"path": "operational_array.sizes.1", "values": [8, 16, 24, 32, 48]},
    "sram_kib": {"values": [64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048]},
    "dram_bits": {"path": "memories.dram.ports.rw_port_1.bandwidth_max", "values": [64, 128, 192, 256]},
}
LAWS = {
    "memories.sram_2MB.size": "sram_kib * 8192",
    "memories.sram_2MB.r_cost": "416.16 * sqrt(sram_kib / 2048)",
    "memories.sram_2MB.w_cost": "378.4 * sqrt(sram_kib / 2048)",
}
MAPPING = [{"name": "default", "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"}}]


def measure_designs(settings: Settings) -> dict[str, Any]:
    """CPU seconds per design: of our search with both profiles, and of zigzag-dse.

    The result also has the largest relative difference between both tools, with the profile of the reference.
    """
    from tilewright.designs.space_reader import read_space

    network = PROJECT / "config" / "workload" / "mobilenetv2.onnx"
    mapping = settings.scratch / "designs_mapping.yaml"
    mapping.write_text(yaml.safe_dump(MAPPING))
    ours_of, tables, space = {}, {}, None
    for profile in PROFILES:
        file = settings.scratch / f"designs_{profile}.yaml"
        file.write_text(yaml.safe_dump(_space(network, mapping, profile), sort_keys=False))
        space = read_space(file)
        seconds, tables[profile] = _ours(file, settings)
        ours_of[profile] = seconds / len(space)
    assert space is not None
    count = 1 if settings.quick else 3
    chosen = [place * (len(space) - 1) // max(1, count - 1) for place in range(count)]
    files = []
    for index in chosen:
        files.append(settings.scratch / f"design_{index}.yaml")
        files[-1].write_text(yaml.safe_dump(space.design(index).hardware, sort_keys=False))
    arguments = ["designs", str(files[0]), str(network), str(mapping), "--others", *map(str, files[1:])]
    arguments += ["--objective", OBJECTIVE, "--lpf-limit", str(LPF_LIMIT), "--output", str(settings.scratch / "peer")]
    theirs = last_json(reference(settings, arguments))
    worst = max(_differences(tables["zigzag-3.9.1"].iloc[chosen], theirs))
    return {
        "network": network.stem,
        "designs": len(space),
        "ours_cpu_seconds": ours_of,
        "reference_designs": count,
        "reference_cpu_seconds": [row["cpu_seconds"] for row in theirs],
        "worst_relative_difference": worst,
        "ratio": {
            profile: statistics.median(row["cpu_seconds"] for row in theirs) / seconds
            for profile, seconds in ours_of.items()
        },
    }


def rows_of(found: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Rows of the table: name, tilewright, zigzag-dse, ratio, target, method."""
    theirs = statistics.median(found["reference_cpu_seconds"])
    worst = found["worst_relative_difference"]
    same = "same energy and latency" if worst < 1e-9 else f"RESULTS DIFFER by {worst:.1e} relative"
    for profile, seconds in found["ours_cpu_seconds"].items():
        compared = f"; {same} of these" if profile == "zigzag-3.9.1" else ", data kept on chip where there is room"
        yield (
            f"explore, CPU time a design\n{found['network']}, lpf_limit {LPF_LIMIT}, {profile}",
            f"{seconds * 1e3:.1f} ms",
            f"{theirs:,.1f} s",
            f"{found['ratio'][profile]:,.0f}x",
            f"{TARGET_RATIO:,.0f}x",
            f"CPU time of `tilewright explore` over {found['designs']:,} designs, start, tables and page included "
            f"(target {TARGET_SECONDS * 1e3:.0f} ms); reference: its API call, median of "
            f"{found['reference_designs']} of them{compared}",
        )


def _space(network: Path, mapping: Path, profile: str) -> dict[str, Any]:
    return {
        "accelerator": str(PROJECT / "config" / "hardware" / "zigzag" / "tpu_like.yaml"),
        "mapping": str(mapping),
        "networks": [str(network)],
        "axes": AXES,
        "laws": LAWS,
        "objectives": ["energy_pj", "latency_cycles"],
        "options": {
            "objective": OBJECTIVE,
            "lpf_limit": LPF_LIMIT,
            "model": profile,
            "exploit_data_locality": profile == "corrected",
        },
    }


def _ours(file: Path, settings: Settings) -> tuple[float, pandas.DataFrame]:
    """Pair (CPU seconds of the whole command, table that it wrote)."""
    seconds = []
    for run in range(1 if settings.quick else settings.repeats):
        output = settings.scratch / f"{file.stem}_{run}"
        seconds.append(ours(["-m", "tilewright", "explore", str(file), "-o", str(output)]).cpu_seconds)
    return statistics.median(seconds), pandas.read_parquet(output / "space.parquet")


def _differences(ours_found: pandas.DataFrame, theirs: list[dict[str, Any]]) -> Iterator[float]:
    for (_, own), other in zip(ours_found.iterrows(), theirs, strict=True):
        for key in ("energy_pj", "latency_cycles"):
            yield abs(float(own[key]) - other[key]) / other[key]
