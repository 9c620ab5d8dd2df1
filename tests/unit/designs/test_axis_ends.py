"""Axes that end too early for the best design, values that continue them, and axes with little effect."""

import random
from itertools import product
from typing import Any

import pytest
from tilewright.designs.answer import answer_of
from tilewright.designs.axis_ends import LARGEST_CHANGE, LEAST_GAIN, axis_ends, axis_sentences, weak_axes
from tilewright.designs.decision import decision_of
from tilewright.designs.decision_text import TURN
from tilewright.designs.front import fronts
from tilewright.designs.page import explore_page
from tilewright.designs.tables import answer_text

from tests.unit.designs.conftest import exploration, grid
from tests.unit.designs.decision_cases import texts

AXES = {"rows": (8, 16, 32), "sram": ("32 KiB", "64 KiB", "128 KiB", "256 KiB")}
SIZES = {"rows": (8, 16, 32, 64, 128), "sram": (32, 128, 512, 2048), "dram": ("LPDDR4", "HBM", "a<b>")}


def space_of(cost: Any, axes: dict[str, tuple[Any, ...]] = AXES, **changes: Any) -> Any:
    """Return the exploration of two axes; `cost` gives energy and latency of a design, or None for no result."""
    rows = []
    for rows_value, sram in product(*axes.values()):
        found = cost(rows_value, sram)
        row: dict[str, Any] = {"rows": rows_value, "sram": sram, "area_mm2": 1.0}
        if found is None:
            row |= {"status": "infeasible", "reason": "does not fit"}
        else:
            row |= {"energy_pj": found[0], "latency_cycles": found[1]}
        rows.append(row)
    return exploration(rows, axis_values=axes, **changes)


def overall(made: Any) -> Any:
    """Return the front of all networks."""
    return fronts(made)[-1]


def test_the_end_and_what_follows() -> None:
    """An end of an axis is reported if the best design is there, with its gain and the following values."""
    energy = {"32 KiB": 8.0, "64 KiB": 6.0, "128 KiB": 5.0, "256 KiB": 4.0}
    made = space_of(lambda rows, sram: (energy[sram] * 100, 10.0 + abs(rows - 16)))
    found = list(axis_ends(overall(made), AXES))
    assert [(one.axis, one.measure, one.value, one.before, one.is_largest) for one in found] == [
        ("sram", "energy_pj", "256 KiB", "128 KiB", True),
        ("sram", "edp_pj_cycles", "256 KiB", "128 KiB", True),
    ]
    assert found[0].gain == pytest.approx(0.2)
    assert found[0].following == ("512 KiB", "1024 KiB")
    assert axis_sentences(overall(made), AXES)[0] == (
        "Axis sram may end too early: from 128 KiB to 256 KiB, its largest value, the least energy falls by 20.0%, the"
        " least EDP falls by 20.0%. Values to try next: 512 KiB, 1024 KiB."
    )


def test_a_file_without_energies_has_no_ends_in_energy() -> None:
    """An axis has no end in energy if all energies are 0."""
    made = space_of(lambda rows, sram: (0.0, 100.0 / rows))
    assert {end.measure for end in axis_ends(overall(made), AXES)} == {"latency_cycles"}


def test_an_equal_design_inside_is_as_good() -> None:
    """An end is not reported if a design inside the axis is equally good."""
    made = space_of(lambda rows, sram: (100.0, 1000.0 / min(rows, 16)))
    assert list(axis_ends(overall(made), AXES)) == []


def test_a_constraint_is_not_the_end_of_an_axis() -> None:
    """A largest value without a result is not reported as the end of an axis."""
    made = space_of(lambda rows, sram: None if rows == 32 else (1000.0 / rows, 10.0))
    assert list(axis_ends(overall(made), AXES)) == []


@pytest.mark.parametrize("status", ["invalid", "infeasible"])
def test_values_that_fail_do_not_hide_the_end(status: str) -> None:
    """Values that fail do not hide the end of an axis before them: 32 is an end of 8, 16, 32, 64, 128. The sentence
    names the failing values and a reason. A constraint that excludes 64 does not make 32 an end."""
    axes: dict[str, tuple[Any, ...]] = {"rows": (8, 16, 32, 64, 128), "sram": ("32 KiB", "64 KiB")}
    rows: list[dict[str, Any]] = []
    for side, sram in product(*axes.values()):
        row: dict[str, Any] = {"rows": side, "sram": sram, "area_mm2": 1.0}
        if side > 32:
            rows.append(row | {"status": status, "reason": f"{side} columns are too wide"})
        else:
            rows.append(row | {"energy_pj": 1000.0 / side, "latency_cycles": 10.0})
    answer = answer_of(exploration(rows, axis_values=axes))
    (sentence,) = (one for one in answer.axis_notes if "largest value" in one)
    assert sentence == (
        "Axis rows: 32 is the largest value with results, because no design with 64, 128 has results"
        f" (for 64: {status}: 64 columns are too wide): from 16 to 32, the least energy falls by 50.0%, the least EDP"
        " falls by 50.0%."
    )
    assert f"4 of 10 evaluated designs have no results on some network and are not compared (4 {status})." in (
        answer.assumptions
    )
    decision = decision_of(answer, "EDP")
    assert [one.failed for one in decision.ends] == [(64, 128)]
    assert any("for 64" in one for one in texts(decision, TURN))
    for row in rows:
        row |= {"status": "ok", "reason": "", "energy_pj": 1000.0 / row["rows"], "latency_cycles": 10.0}
        row["unmet"] = "rows <= 32" if row["rows"] > 32 else ""
    assert not any("largest value" in one for one in answer_of(exploration(rows, axis_values=axes)).axis_notes)


@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [
        ((8, 16, 32), (64, 128), (4, 2)),
        ((8, 16, 24), (32, 40), ()),
        ((100, 150), (225,), (50,)),
        ((12, 16, 24, 32), (40, 48), (9,)),
        ((16, 24, 36, 48, 64), (80, 96), (8,)),
        ((0.25, 0.5), (1.0, 2.0), (0.125, 0.0625)),
        (("2 GB/s", "4 GB/s"), ("8 GB/s", "16 GB/s"), ("1 GB/s", "0.5 GB/s")),
        (("512 B", "1 KiB"), ("2 KiB", "4 KiB"), ("256 B", "128 B")),
        ((True, False), None, None),
        (("near", "far"), None, None),
        (("1 GHz", "500 MHz"), None, None),
    ],
)
def test_values_that_continue_an_axis(values: tuple[Any, ...], largest: Any, smallest: Any) -> None:
    """Values continue an axis by its ratio, its step, or the last step if the ratio gives a fraction.
    They keep unit and type and are positive; the sentence says if no value follows.
    """
    axes = {"rows": values, "sram": ("1 KiB",)}
    for is_up, expected in ((True, largest), (False, smallest)):
        order = list(values)
        made = space_of(
            lambda rows, _, up=is_up, order=order: (2.0 ** (-order.index(rows) if up else order.index(rows)), 1.0), axes
        )
        found = [one for one in axis_ends(overall(made), axes) if one.measure == "energy_pj"]
        assert [one.following for one in found] == ([] if expected is None else [expected])
        for sentence in (one for one in axis_sentences(overall(made), axes) if "may end too early" in one):
            assert ("Values to try next" in sentence) == bool(expected)
            assert ("No value to try next: no smaller positive value continues" in sentence) == (not expected)


def test_axes_that_hardly_matter() -> None:
    """An axis has little effect if each pair of designs that differ only in it differs at most by the printed share."""
    made = space_of(lambda rows, sram: (1000.0 / rows + (sram == "64 KiB") * 0.1, 10.0 * rows))
    (weak,) = weak_axes(overall(made), tuple(AXES))
    assert (weak.axis, weak.groups) == ("sram", 3)
    assert dict(weak.changes)["energy_pj"] == pytest.approx(0.1 / (1000 / 32))
    assert axis_sentences(overall(made), AXES)[-1].startswith(
        "Axis sram has little effect: between designs that differ only in this axis (3 groups of designs compared),"
        " it changes"
        " energy by at most 0.32%"
    )


@pytest.mark.parametrize("seed", range(60))
def test_plain_search_finds_the_same(seed: int) -> None:
    """Ends and weak axes of random costs equal those of a plain search over all pairs."""
    draw = random.Random(seed)
    slope = {axis: draw.choice((-0.5, -0.001, 0.0, 0.001, 0.5)) for axis in AXES}

    def cost(rows: int, sram: str) -> tuple[float, float] | None:
        if draw.random() < 0.15:
            return None
        place = slope["rows"] * AXES["rows"].index(rows) + slope["sram"] * AXES["sram"].index(sram)
        noise = draw.choice((0.0, 0.0, 0.05))
        return 1000 * 2**place * (1 + noise * draw.random()), 100 * 2**-place * (1 + noise * draw.random())

    made = space_of(cost)
    front = overall(made)
    designs = [row for row in made.table.to_dict("records") if row["status"] == "ok"]
    ends = set()
    for axis, measure in product(AXES, ("energy_pj", "latency_cycles", "edp_pj_cycles")):
        best = {
            value: min(row[measure] for row in designs if row[axis] == value)
            for value in AXES[axis]
            if any(row[axis] == value for row in designs)
        }
        least = min(best, key=lambda value, best=best: best[value])
        others = [number for value, number in best.items() if value != least]
        if least in (AXES[axis][0], AXES[axis][-1]) and others and 1 - best[least] / min(others) >= LEAST_GAIN:
            ends.add((axis, measure, least))
    assert {(one.axis, one.measure, one.value) for one in axis_ends(front, AXES)} == ends
    weak = set()
    for axis in AXES:
        other = next(name for name in AXES if name != axis)
        pairs = [(a, b) for a, b in product(designs, designs) if a[other] == b[other] and a[axis] != b[axis]]
        measures = ("energy_pj", "latency_cycles", "edp_pj_cycles", "area_mm2")
        if pairs and max(a[one] / b[one] - 1 for a, b in pairs for one in measures) <= LARGEST_CHANGE:
            weak.add(axis)
    assert {one.axis for one in weak_axes(front, tuple(AXES))} == weak


def test_text_and_page_say_it() -> None:
    """Text and page have the same sentences on axes."""
    answer = answer_of(grid(axis_values=SIZES))
    assert len(answer.axis_notes) == 3
    for sentence in answer.axis_notes:
        assert sentence in answer_text(answer)
        assert sentence in explore_page(answer)
