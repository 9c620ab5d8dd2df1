"""Random small explorations, their statements, and a plain second computation of each decision."""

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from tilewright.base.harmless import csv_text
from tilewright.designs.answer import Answer, answer_of
from tilewright.designs.decision import Decision, decision_of
from tilewright.designs.decision_text import Commands, Statement, statements
from tilewright.designs.exploration import Exploration
from tilewright.designs.table_files import space_table

AXES = {"rows": (8, 16, 32), "sram": (64, 128)}
PARTS = ("energy_mac_pj", "energy_memory_sram_pj", "energy_memory_dram_pj")


def commands_of(answer: Answer) -> Commands:
    """Return commands for an exploration without a folder."""
    return Commands(Path("made.yaml"), Path("out"), answer.exploration.networks)


def made_of(decision: Decision) -> tuple[Statement, ...]:
    """Return the statements from the table of results alone."""
    return statements(decision, commands_of(decision.answer))


def texts(decision: Decision, topic: str) -> list[str]:
    """Return the sentences on one topic."""
    return [one.text for one in made_of(decision) if one.topic == topic]


def with_gaps(answer: Answer, gaps: Sequence[float]) -> Decision:
    """Return the decision by EDP for these mapping gaps, one for each row of the table."""
    known = replace(answer.exploration, table=answer.exploration.table.assign(mapping_gap=gaps))
    return decision_of(replace(answer, exploration=known), "EDP")


def random_answer(seed: int) -> Answer:
    """Return a random answer of six designs on one or two networks.

    Some designs have no results, some spaces have clocks, and some designs are equal.
    """
    draw = random.Random(seed)
    networks = ("one", "two")[: draw.choice((1, 2))]
    clocks = draw.choice(([None], [None], [500.0], [100.0, 250.0, 1000.0]))
    whole = draw.random() < 0.3
    rows = []
    for index, (side, sram) in enumerate(product(*AXES.values())):
        status = draw.choice(("ok",) * 6 + ("infeasible",)) if index else "ok"
        area, clock = float(draw.randint(1, 4) if whole else draw.uniform(0.5, 3)), draw.choice(clocks)
        for network in networks:
            row: dict[str, Any] = {"index": index, "design": f"d-{index}", "rows": side, "sram": sram}
            row |= {"network": network, "status": status, "reason": "" if status == "ok" else "too small", "unmet": ""}
            row |= dict.fromkeys((*PARTS, "energy_pj", "latency_cycles", "edp_pj_cycles", "area_mm2"), np.nan)
            if status == "ok":
                row |= _costs(draw, whole, clock) | {"area_mm2": area}
                row["unmet"] = "area_mm2 <= 2.9" if area > 2.9 else ""
            rows.append(row)
    return answer_of(
        Exploration(
            "made up",
            tuple(AXES),
            (),
            ("energy_pj", "latency_cycles", "area_mm2"),
            networks,
            ("model corrected",),
            pandas.DataFrame(rows),
            axis_values=AXES,
        )
    )


def _costs(draw: random.Random, whole: bool, clock_mhz: float | None) -> dict[str, float]:
    parts = {part: 1e6 * (draw.randint(1, 2) if whole else draw.uniform(0.5, 3)) for part in PARTS}
    energy, cycles = sum(parts.values()), float(draw.randint(2, 4) * 100 if whole else draw.randint(200, 900))
    row = parts | {"energy_pj": energy, "latency_cycles": cycles, "edp_pj_cycles": energy * cycles}
    if clock_mhz is not None:
        seconds = cycles * (1e3 / clock_mhz) * 1e-9
        row |= {"latency_s": seconds, "edp_pj_s": energy * seconds, "power_w": energy * 1e-12 / seconds}
    return row


@dataclass(frozen=True)
class Plain:
    """The compared designs with the sums of their measures, from the CSV of the space."""

    sums: dict[str, dict[str, float]]
    """Maps a design to energy, latency, EDP and area, and to the share of each part in energy and EDP."""
    is_in_time: bool
    barred: dict[str, dict[str, float]]
    """Maps a design to the values of `sums`, for designs with results for all networks that violate a constraint."""

    @classmethod
    def of(cls, answer: Answer) -> "Plain":
        """Return the sums of the CSV that `tilewright explore` writes."""
        rows = pandas.read_csv(io.StringIO(csv_text(space_table(answer))), keep_default_na=True).to_dict("records")
        by_design: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            by_design.setdefault(row["design"], []).append(row)
        ok = {name: own for name, own in by_design.items() if all(one["status"] == "ok" for one in own)}
        met = {name for name, own in ok.items() if all(one["unmet"] != one["unmet"] for one in own)}
        clocks = {
            round(one["latency_cycles"] / one["latency_s"])
            for own in by_design.values()
            for one in own
            if one["status"] == "ok" and one["unmet"] != one["unmet"] and one.get("latency_s", 0) > 0
        }
        latency = "latency_s" if len(clocks) > 1 else "latency_cycles"
        sums = {name: _sums(own, latency) for name, own in ok.items()}
        return cls(
            {name: own for name, own in sums.items() if name in met},
            len(clocks) > 1,
            {name: own for name, own in sums.items() if name not in met},
        )

    def best(self, measure: str) -> float:
        """Return the least value of a measure."""
        return min(one[measure] for one in self.sums.values())


def _sums(rows: list[dict[str, Any]], latency: str) -> dict[str, float]:
    found = {"energy": 0.0, "latency": 0.0, "EDP": 0.0, "area": rows[0]["area_mm2"]}
    for row in rows:
        found["energy"] += row["energy_pj"]
        found["latency"] += row[latency]
        found["EDP"] += row["energy_pj"] * row[latency]
        for part in PARTS:
            found[f"energy {part}"] = found.get(f"energy {part}", 0.0) + row[part]
            found[f"EDP {part}"] = found.get(f"EDP {part}", 0.0) + row[part] * row[latency]
    return found
