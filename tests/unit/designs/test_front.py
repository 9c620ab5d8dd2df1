"""Fronts of artificial spaces, against the definition."""

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.designs.answer import answer_of
from tilewright.designs.exploration import Exploration
from tilewright.designs.front import Front
from tilewright.designs.results import ALL_NETWORKS

from tests.unit.designs.conftest import exploration, grid

few = st.integers(1, 4).map(float)
results = st.lists(
    st.tuples(few, few, few, st.sampled_from(("ok", "ok", "ok", "infeasible")), st.sampled_from(("", "", "area <= 1"))),
    max_size=30,
)


def fronts_of(space: Exploration) -> dict[str, Front]:
    """Return the fronts by network."""
    return {front.network: front for front in answer_of(space).fronts}


def dominates(one: list[float], other: list[float]) -> bool:
    """Return whether one point dominates the other, by the definition."""
    return all(a <= b for a, b in zip(one, other, strict=True)) and one != other


def plainly(points: dict[str, list[float]]) -> dict[str, bool]:
    """Return whether each design is on the front, by comparing every pair."""
    return {name: not any(dominates(other, own) for other in points.values()) for name, own in points.items()}


def plain_points(space: Exploration) -> dict[str, list[float]]:
    """Return sums over networks of the designs with results that meet every constraint."""
    rows = space.table.to_dict("records")
    found: dict[str, list[float]] = {}
    for name in dict.fromkeys(row["design"] for row in rows):
        own = [row for row in rows if row["design"] == name]
        if all(row["status"] == "ok" and not row["unmet"] for row in own):
            sums = [sum(row[key] for row in own) for key in ("energy_pj", "latency_cycles")]
            found[name] = [*sums, own[0]["area_mm2"]]
    return found


@given(results, st.sampled_from((("one",), ("one", "two"))))
def test_the_front_is_what_the_definition_says(made: list[tuple], networks: tuple[str, ...]) -> None:
    """The front of all networks follows the definition; a named dominator dominates and is on the front."""
    made = made[: len(made) // len(networks) * len(networks)]
    keys = ("energy_pj", "latency_cycles", "area_mm2", "status", "unmet")
    rows = [dict(zip(keys, row, strict=True)) for row in made]
    for first, *others in zip(*[iter(rows)] * len(networks), strict=True):
        for other in others:
            other["area_mm2"] = first["area_mm2"]
    space = exploration(rows, networks)
    points = plain_points(space)
    front = answer_of(space).overall
    compared = front.compared.set_index("design")
    assert compared["pareto"].to_dict() == plainly(points)
    for name, other in compared["dominated_by"].items():
        assert (other == "") == compared["pareto"][name]
        if other:
            first = next(n for n in points if compared["pareto"][n] and dominates(points[n], points[name]))
            assert other == first
    assert not front.rows[front.rows["unmet"] != ""]["pareto"].any()


def test_equal_designs_all_stay() -> None:
    """Equal designs are on the front together and have no dominator."""
    point = {"energy_pj": 1.0, "latency_cycles": 2.0, "area_mm2": 3.0}
    front = fronts_of(exploration([point, point, point | {"area_mm2": 4.0}]))["net"]
    assert front.rows["pareto"].tolist() == [True, True, False]
    assert front.rows["dominated_by"].tolist() == ["", "", "design-0"]


def test_an_area_that_is_not_given_leaves_out_areas() -> None:
    """Areas are no objective if a compared design has none, and a note says so."""
    small = {"energy_pj": 2.0, "latency_cycles": 2.0, "area_mm2": 1.0}
    unknown = {"energy_pj": 1.0, "latency_cycles": 1.0, "area_mm2": np.nan}
    front = fronts_of(exploration([small, unknown]))["net"]
    assert front.objectives == ("energy_pj", "latency_cycles")
    assert front.rows["dominated_by"].tolist() == ["design-1", ""]
    assert front.note == "area not given, or without a unit, for 1 design: compared by energy and latency only"
    other = fronts_of(exploration([small, unknown | {"unmet": "latency_cycles >= 2"}]))["net"]
    assert other.objectives == ("energy_pj", "latency_cycles", "area_mm2")
    assert not other.note


def test_areas_of_none_are_not_given() -> None:
    """None in the table counts as a missing area, like NaN."""
    space = exploration([{"energy_pj": 1.0, "latency_cycles": 1.0}])
    table = space.table.assign(area_mm2=pandas.Series([None], dtype=object))
    assert fronts_of(exploration([], table=table))["net"].without_area == 1


def test_networks_together_are_sums() -> None:
    """Energies, latencies, EDPs and terms of all networks are added up, and the area counts once.
    A design that fails on one network is left out.
    """
    fronts = fronts_of(grid())
    assert list(fronts) == ["mobilenet", "bert", ALL_NETWORKS]
    together = fronts[ALL_NETWORKS].rows.set_index("design")
    one, two = (fronts[name].rows.set_index("design") for name in ("mobilenet", "bert"))
    assert set(together.index) == set(one.index) & set(two.index)
    for key in ("energy_pj", "edp_pj_cycles", "energy_memory_sram_pj", "latency_ideal_cycles"):
        assert together[key].tolist() == (one[key] + two.loc[one.index][key])[together.index].tolist()
    assert together["area_mm2"].tolist() == one["area_mm2"][together.index].tolist()


@pytest.mark.parametrize("rows", [[], [{"status": "infeasible", "reason": "too small"}] * 3])
def test_a_front_may_be_empty(rows: list[dict]) -> None:
    """A space without results has a front without members."""
    front = answer_of(exploration(rows)).overall
    assert front.rows.empty
    assert front.members.empty


def test_the_largest_parts_are_named() -> None:
    """The largest energy term is named by memory, and the largest part of latency by name."""
    front = fronts_of(grid())["bert"]
    assert set(front.rows["largest_energy_term"]) == {"dram"}
    assert set(front.rows["largest_latency_part"]) == {"ideal"}
