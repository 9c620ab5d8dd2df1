"""Artificial results of design spaces."""

from itertools import product
from typing import Any

import numpy as np
import pandas
from tilewright.designs.exploration import Exploration

MEMORIES = ("rf", "sram", "dram")
PARTS = ("ideal", "spatial_stall", "temporal_stall", "onloading")


def costs(energy_pj: float, latency_cycles: float, area_mm2: float) -> dict[str, float]:
    """Return the measures of a design with terms that add up to them."""
    row = {"energy_pj": energy_pj, "latency_cycles": latency_cycles, "edp_pj_cycles": energy_pj * latency_cycles}
    row |= {"area_mm2": area_mm2, "energy_mac_pj": energy_pj / 4, "energy_memory_pj": energy_pj * 3 / 4}
    row |= {
        f"energy_memory_{name}_pj": energy_pj * share for name, share in zip(MEMORIES, (0.1, 0.15, 0.5), strict=True)
    }
    shares = zip(PARTS, (0.5, 0.1, 0.3, 0.1), strict=True)
    return row | {f"latency_{part}_cycles": latency_cycles * share for part, share in shares}


def exploration(rows: list[dict[str, Any]], networks: tuple[str, ...] = ("net",), **changes: Any) -> Exploration:
    """Return an exploration from rows, with defaults for index, design, network, status, reason and unmet."""
    full = []
    for number, row in enumerate(rows):
        index = row.get("index", number // len(networks))
        start = {
            "index": index,
            "design": f"design-{index}",
            "rows": 8 + index,
            "sram": "32 KiB",
            "rows_x_2": 2 * index,
        }
        start |= {"network": networks[number % len(networks)], "status": "ok", "reason": "", "unmet": ""}
        merged = start | costs(np.nan, np.nan, np.nan) | row
        full.append(merged | costs(merged["energy_pj"], merged["latency_cycles"], merged["area_mm2"]))
    given: dict[str, Any] = {
        "name": "made up",
        "axis_names": ("rows", "sram"),
        "law_names": ("rows_x_2",),
        "objectives": ("energy_pj", "latency_cycles", "area_mm2"),
        "networks": networks,
        "assumptions": (
            "model corrected",
            "data between two layers stay in a memory below the top memory if such a memory has room",
        ),
        "table": pandas.DataFrame(full) if full else pandas.DataFrame(columns=_columns()),
    }
    return Exploration(**(given | changes))


def grid(
    networks: tuple[str, ...] = ("mobilenet", "bert"),
    sides: tuple[int, ...] = (8, 16, 32, 64, 128),
    sizes: tuple[int, ...] = (32, 128, 512, 2048),
    **changes: Any,
) -> Exploration:
    """Return a space of 5 x 4 x 3 designs, some of them infeasible, invalid, or too large."""
    rows = []
    for index, (side, sram, dram) in enumerate(product(sides, sizes, ("LPDDR4", "HBM", "a<b>"))):
        area = side * side * 1e-3 + sram * 1e-2
        for number, _network in enumerate(networks):
            row: dict[str, Any] = {"index": index, "rows": side, "sram": sram, "dram": dram, "rows_x_2": 2 * side}
            if dram == "a<b>" and side == 8:
                row |= {"status": "invalid", "reason": "memory `dram`: a bandwidth of 0 <bits>"}
            elif sram == 32 and side == 128 and number == 0:
                row |= {"status": "infeasible", "reason": f"conv{index}: 4,{index:03} bits do not fit sram"}
            else:
                energy = 1e9 * (1 + number) * (1 + 20 / sram + side / 64) * (0.6 if dram == "HBM" else 1)
                latency = 1e6 * (1 + number) * (64 / side + 50 / sram) * (0.9 if dram == "HBM" else 1)
                row |= {"energy_pj": energy, "latency_cycles": latency, "area_mm2": area}
                row |= {"unmet": "area_mm2 <= 30"} if area > 30 else {}
            rows.append(row)
    return exploration(
        rows, networks, axis_names=("rows", "sram", "dram"), **{"excluded": {"rows <= 128": 12}} | changes
    )


def _columns() -> list[str]:
    start = ["index", "design", "rows", "sram", "rows_x_2", "network", "status", "reason", "unmet"]
    return [*start, *costs(1.0, 1.0, 1.0)]
