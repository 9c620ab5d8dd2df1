"""Probabilities of fronts: against loops over samples, and against designs with changed costs."""

from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.designs.answer import answer_of, best_probability
from tilewright.designs.effects import best_first
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.front_odds import least_probability, part_columns, parts_of_row, with_odds
from tilewright.designs.results import energy_parts
from tilewright.designs.space import ODDS
from tilewright.designs.table_files import front_table, space_table
from tilewright.designs.tables import answer_text
from tilewright.hardware.source import parse_accelerator
from tilewright.pipeline.sources import parse_workload
from tilewright.results import uncertainty
from tilewright.results.uncertainty import Ranges, energy_range_pj, sampled_factors
from tilewright.search.cost_ranges import CostPart
from tilewright.search.options import SearchOptions

from tests.unit.designs.conftest import exploration, grid

LAWS = {"dram x": (0.5, 2.0), "sram 22 nm hp": (0.7, 1.3), "sram 45 nm hp": (0.7, 1.3)}
OBJECTIVES = ("energy_pj", "latency_cycles", "area_mm2")
SAMPLES = 40
few = st.integers(1, 4)
design = st.tuples(few, few, few, st.lists(st.tuples(few, few), min_size=len(LAWS), max_size=len(LAWS)))


def row_of(energy: float, latency: float, area: float, shares: list[tuple[int, int]]) -> dict[str, Any]:
    """Return a design whose energy and area have one uncertain part for each law, and certain parts."""
    parts = [
        CostPart("", law, own * 0.71, on_chip * 0.37, *ends)
        for (law, ends), (own, on_chip) in zip(LAWS.items(), shares, strict=True)
    ]
    known = {"energy_pj": energy * 1.13 + sum(part.energy_pj for part in parts), "latency_cycles": float(latency)}
    known["area_mm2"] = area * 0.9 + sum(part.area_mm2 for part in parts)
    return known | {"parts": parts}


def table_of(designs: list[dict[str, Any]], **changes: Any) -> Any:
    """Return the answer of an artificial space."""
    rows = [row | part_columns(row["parts"], row["latency_cycles"]) for row in designs]
    return answer_of(exploration([{k: v for k, v in row.items() if k != "parts"} for row in rows], **changes))


def costs_of(row: dict[str, Any], factors: dict[str, float]) -> dict[str, float]:
    """Return the costs of a design with these factors, added up plainly."""
    energy = row["energy_pj"] + sum(part.energy_pj * (factors[part.law] - 1) for part in row["parts"])
    area = row["area_mm2"] + sum(part.area_mm2 * (factors[part.law] - 1) for part in row["parts"])
    cycles = row["latency_cycles"]
    return {"energy_pj": energy, "latency_cycles": cycles, "edp_pj_cycles": energy * cycles, "area_mm2": area}


def samples() -> list[dict[str, float]]:
    """Return the factors of each sample."""
    ends = np.array([LAWS[law] for law in sorted(LAWS)])
    return [dict(zip(sorted(LAWS), one, strict=True)) for one in sampled_factors(Ranges(*ends.T)).T.tolist()]


def no_worse(a: float, b: float) -> bool:
    """Return whether a is at most b, up to rounding."""
    return a <= b * (1 + 1e-12)


def dominates(one: dict[str, float], other: dict[str, float], keys: tuple[str, ...]) -> bool:
    """Return whether one design dominates the other, by the definition."""
    return all(no_worse(one[key], other[key]) for key in keys) and any(
        not no_worse(other[key], one[key]) for key in keys
    )


@settings(max_examples=25, deadline=None)
@given(
    st.lists(design, min_size=1, max_size=9),
    st.sampled_from((OBJECTIVES, OBJECTIVES[:2], ("edp_pj_cycles", "area_mm2"), ("energy_pj",))),
)
def test_probabilities_are_those_of_a_loop_over_samples(designs: list[Any], objectives: tuple[str, ...]) -> None:
    """Probabilities of the front and of the best designs equal a loop over samples."""
    rows = [row_of(*one) for one in designs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uncertainty, "SAMPLES", SAMPLES)
        front = table_of(rows, objectives=objectives).overall
        drawn = samples()
        best = {
            key: (best_first(front, key).index[0], best_probability(front, key)) for key in costs_of(rows[0], drawn[0])
        }
    on_front, least = np.zeros(len(rows)), dict.fromkeys(best, 0)
    for factors in drawn:
        costs = [costs_of(row, factors) for row in rows]
        on_front += [not any(dominates(other, own, objectives) for other in costs) for own in costs]
        for key, (place, _) in best.items():
            least[key] += all(no_worse(costs[place][key], other[key]) for other in costs)
    assert front.rows["front_probability"].to_numpy() == pytest.approx(on_front / SAMPLES)
    assert {key: probability for key, (_, probability) in best.items()} == {
        key: count / SAMPLES for key, count in least.items()
    }


def test_all_networks_together_have_the_parts_of_all() -> None:
    """Energies and energies times latencies of all networks are added up, and an area counts once."""
    ones, twos = ([row_of(n, 4 - n, n, [(n, n)] * 3) for n in range(1, 4)] for _ in range(2))
    for two in twos:
        two["latency_cycles"] *= 5
    rows = [row for pair in zip(ones, twos, strict=True) for row in pair]
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        second["area_mm2"] = first["area_mm2"]
    answer = table_of(rows, networks=("one", "two"), objectives=("edp_pj_cycles", "area_mm2"))
    ends = {law: max(pair) for law, pair in LAWS.items()}
    both = [[costs_of(row, ends) for row in pair] for pair in zip(ones, twos, strict=True)]
    overall = answer.overall.rows
    assert overall["energy_high_pj"].tolist() == pytest.approx([a["energy_pj"] + b["energy_pj"] for a, b in both])
    assert overall["area_high_mm2"].tolist() == pytest.approx([a["area_mm2"] for a, _ in both])
    _, edp = uncertainty_ends(overall, "edp_pj_cycles")
    assert edp == pytest.approx([a["edp_pj_cycles"] + b["edp_pj_cycles"] for a, b in both])
    table = space_table(answer)
    assert set(ODDS) < set(table.columns)
    assert "front_probability_all_networks" in table
    assert not set(ODDS) & set(energy_parts(table.columns))


def uncertainty_ends(rows: pandas.DataFrame, measure: str) -> tuple[list[float], list[float]]:
    """Return the ends of a measure for all rows."""
    from tilewright.designs.front_odds import _quantity, _ranges

    laws, ranges = _ranges(rows)
    low, high = _quantity(rows, laws, measure).ends(ranges)
    return low.tolist(), high.tolist()


def test_one_law_is_one_factor_in_all_designs() -> None:
    """One law has one factor in all designs: half as much of the same DRAM is always better.
    Half as much of another DRAM is not always better.
    """
    much, little = [(4, 0), (0, 0), (0, 0)], [(2, 0), (0, 0), (0, 0)]
    assert table_of([row_of(1, 1, 1, much), row_of(1, 1, 1, little)]).overall.rows["front_probability"].tolist() == [
        0,
        1,
    ]
    other = [(0, 0), (3, 0), (0, 0)]
    found = table_of([row_of(1, 1, 1, [(3, 0), (0, 0), (0, 0)]), row_of(1, 1, 1, other)]).overall.rows
    assert 0.3 < found["front_probability"].min() < found["front_probability"].max() < 0.7
    assert found["front_probability"].sum() == pytest.approx(1)


def test_without_ranges_nothing_is_said() -> None:
    """Tables and text without ranges have no probabilities, and `front` refers to `explore` for them."""
    plain = answer_of(grid())
    for table in (space_table(plain), front_table(plain)):
        assert not set(ODDS) & set(table.columns)
    assert "stays" not in answer_text(plain)
    rows = [row_of(n, 4 - n, n, [(n, n)] * 3) for n in range(1, 4)]
    known, settled = table_of(rows), table_of(rows, settled=7)
    assert "100,000 samples of costs within their ranges (" in answer_text(known)
    assert "front_probability" not in front_table(settled)
    assert front_table(settled)["energy_high_pj"].equals(front_table(known)["energy_high_pj"])
    assert "`tilewright explore` computes this probability" in answer_text(settled)
    assert with_odds(grid().table, OBJECTIVES, is_whole=True).equals(grid().table)


HARDWARE: dict[str, Any] = {
    "name": "sourced",
    "operational_array": {"dimensions": ["D1"], "sizes": [4], "unit_energy": 0.3, "unit_area": "1000 um2"},
    "memories": {
        name: {
            "operands": ["I1", "I2", "O"],
            "size": size,
            "cost": cost,
            "served_dimensions": ["D1"],
            "ports": [
                {"name": "rw", "type": "read_write", "bandwidth_min": 64, "bandwidth_max": 64}
                | {"allocation": [f"{operand}, {way}" for operand in ("I1", "I2", "O") for way in ways[operand]]}
            ],
        }
        for name, size, cost, ways in (
            (
                "sram",
                "64 KiB",
                {"from": "sram", "node_nm": 45},
                dict.fromkeys(("I1", "I2"), ("tl", "fh")) | {"O": ("tl", "fh", "fl", "th")},
            ),
            (
                "dram",
                "1 GiB",
                {"from": "dram", "type": "lpddr4"},
                dict.fromkeys(("I1", "I2"), ("tl",)) | {"O": ("tl", "fl")},
            ),
        )
    },
}
LAYERS = [
    {"id": 0, "name": "mm", "operator_type": "MatMul", "equation": "O[d][k]+=I[d][c]*W[c][k]"}
    | {
        "loop_dims": ["D", "K", "C"],
        "loop_sizes": [8, 12, 20],
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
    }
    | {"operand_source": {"I": 0, "W": 0}}
]


def numbers_of(accelerator: Any, factors: dict[str, float]) -> dict[str, Any]:
    """Return the hardware file with a number for each library cost: the cost times the factor of its law."""
    memories = {}
    (core,) = accelerator.cores
    for memory in core.memories:
        factor = factors[memory.cost_source.law]
        own = {key: value for key, value in HARDWARE["memories"][memory.name].items() if key != "cost"}
        memories[memory.name] = own | {
            "r_cost": memory.read_energy_pj * factor,
            "w_cost": memory.write_energy_pj * factor,
            "area": f"{memory.area_mm2 * factor!r} mm2",
        }
    return HARDWARE | {"memories": memories}


def test_parts_of_a_design_are_what_other_costs_make_of_it() -> None:
    """The parts of a design give the same energy as its mapping with the costs of some samples."""
    options = SearchOptions(lpf_limit=1, nb_spatial_mappings_generated=1)
    evaluator = NetworkEvaluator(parse_workload(LAYERS), None, options)
    accelerator = parse_accelerator(HARDWARE)
    found = evaluator.cost(accelerator)
    row = {"energy_pj": found.energy_pj, "latency_cycles": found.latency_cycles, "area_mm2": found.area_mm2}
    row["parts"] = found.cost_parts
    assert [part.law for part in found.cost_parts] == ["sram 45 nm hp", "dram lpddr4"]
    for factors in ({"sram 45 nm hp": 0.8, "dram lpddr4": 1.6}, {"sram 45 nm hp": 1.3, "dram lpddr4": 1.0}):
        changed = numbers_of(accelerator, factors)
        again = evaluator.cost(parse_accelerator(changed))
        assert again.cost_parts == ()
        expected = costs_of(row, factors)
        assert (again.energy_pj, again.latency_cycles) == pytest.approx(
            (expected["energy_pj"], expected["latency_cycles"])
        )
        assert again.area_mm2 == pytest.approx(expected["area_mm2"])
    kept = parts_of_row(part_columns(found.cost_parts, found.latency_cycles))
    assert energy_range_pj(found.energy_pj, kept) == pytest.approx(energy_range_pj(found.energy_pj, found.cost_parts))


def test_the_best_of_equals_stays() -> None:
    """Two equal designs both stay the best in all samples."""
    rows = table_of([row_of(1, 1, 1, [(1, 1)] * 3)] * 2).overall.rows
    assert least_probability(rows, "energy_pj", rows.index[0]) == 1.0
    assert rows["front_probability"].tolist() == [1.0, 1.0]
