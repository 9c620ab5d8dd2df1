"""Mappings near the optimum of one measure: the loss stays below the share, and bounds and sentences stay true."""

import random
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.results.proof_text import proof_lines
from tilewright.search.options import MapOptions, SearchOptions

from tests.members import members

SHARES = (0.0, 0.001, 0.02)
MEASURES = {"latency": ("latency_cycles", "energy_pj"), "energy": ("energy_pj", "latency_cycles")}
CORES = (
    "config/hardware/zigzag/tpu_like.yaml",
    "config/hardware/zigzag/edge_tpu_like.yaml",
    "config/hardware/cube_3d.yaml",
)


def layers(draw: random.Random, count: int) -> list[dict[str, Any]]:
    """Convolutions and matrix products with few prime factors."""
    found: list[dict[str, Any]] = []
    for number in range(count):
        sizes = [draw.choice((1, 2, 3, 4, 8, 12, 16, 24, 32, 64)) for _ in range(3)]
        layer = {
            "id": number,
            "operator_type": "Gemm",
            "equation": "O[b][k] += I[b][c] * W[c][k]",
            "loop_dims": ["B", "C", "K"],
            "loop_sizes": sizes,
        }
        if number % 2:
            layer |= {
                "operator_type": "Conv",
                "equation": "O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]",
                "dimension_relations": ["ix = 1*ox + 1*fx", "iy = 1*oy + 1*fy"],
                "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
                "loop_sizes": [1, *sizes[:2], *(draw.choice((1, 4, 7, 14)) for _ in range(2)), 3, draw.choice((1, 3))],
            }
        found.append(
            layer
            | {
                "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
                "operand_source": {"W": number, "I": number},
            }
        )
    return found


def runs_of(number: int, folder: Path) -> dict[tuple[str, float], tuple[dict[str, Any], Any]]:
    """(objective, share) -> (summary, records), for one random network on one core."""
    draw = random.Random(number)
    hardware = CORES[number % len(CORES)]
    mapping = hardware.replace("hardware", "mapping")
    workload = layers(draw, 4)
    found = {}
    for objective in MEASURES:
        for share in SHARES:
            output = folder / f"{objective}-{share}"
            options: dict[str, Any] = {"objective": objective, "near_optimum": share, "effort": 20_000}
            tilewright.map(workload, hardware, mapping, output=output, **options)
            records = tilewright.load(output / "layers.jsonl")
            found[objective, share] = (tilewright.load(output / "summary.json"), records)
    return found


@pytest.mark.parametrize("number", range(members(24, 3)))
def test_a_small_loss_buys_less_of_the_other_measure(number: int, tmp_path: Path) -> None:
    """The objective of each layer grows at most by the allowed share; the other measure and the bound never grow.

    The certificate states the costs of the mapping in the record.
    """
    found = runs_of(number, tmp_path)
    for (objective, share), (summary, records) in found.items():
        own, other = MEASURES[objective]
        plain_summary, plain = found[objective, 0.0]
        for record, least in zip(records, plain, strict=True):
            assert getattr(least, own) <= getattr(record, own) <= getattr(least, own) * (1 + share)
            assert getattr(record, other) <= getattr(least, other)
            search = record.search
            assert search["value"] == getattr(record, own)
            assert search["lower_bound"] == least.search["lower_bound"] <= getattr(least, own)
            assert search["proven"] == (search["lower_bound"] >= search["value"] * (1 - 2e-9))
            assert ("least_value" in search) == (share > 0)
        if share:
            stated = summary["certificate"]["least_value"]
            assert stated[own] == pytest.approx(plain_summary[own], rel=1e-12)
            assert stated[other] == pytest.approx(plain_summary[other], rel=1e-12)
        else:
            assert "least_value" not in plain_summary["certificate"]


def test_some_networks_gain_and_the_line_has_the_numbers(tmp_path: Path) -> None:
    """The sentence in the summary has the numbers that two runs give, one of which accepts no loss."""
    said = []
    for number in range(3):
        for (objective, share), (summary, _) in runs_of(number, tmp_path / str(number)).items():
            lines = [line for line in proof_lines(summary) if "near the least" in line]
            assert len(lines) == (share > 0)
            if not share:
                plain = summary
                continue
            own, other = MEASURES[objective]
            rise, fall = summary[own] / plain[own] - 1, 1 - summary[other] / plain[other]
            if fall:
                said.append(fall)
                assert f" and {fall:.2%} " in lines[0]
                assert (f"{rise:.2%} more" in lines[0]) == (rise >= 0.0001)
            else:
                assert lines[0].startswith("no mapping with ")
    assert max(said) > 0.01


def test_the_preset_zigzag_and_other_commands_accept_no_loss() -> None:
    """A loss is accepted only by `map` with its default preset; the loss has no effect on EDP, which has both
    measures.
    """
    assert MapOptions().near_optimum == 0.001
    assert MapOptions(preset="zigzag", temporal_mapping_search_engine="best").near_optimum == 0
    assert SearchOptions().near_optimum == 0
    assert "near_optimum" in MapOptions(objective="EDP").without_effect()
    assert "near_optimum" not in MapOptions(objective="energy").without_effect()
