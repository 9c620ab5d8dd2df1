"""Designs with different clocks: comparison, ranking and text use time, not cycles."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import yaml
from tilewright.cli.explore import explore
from tilewright.cli.front import front
from tilewright.designs.answer import Answer, answer_of
from tilewright.designs.axis_ends import axis_ends
from tilewright.designs.certify import certify
from tilewright.designs.clocks import Clocks, clocks_of
from tilewright.designs.design_ledger import ledger_of_design
from tilewright.designs.effects import best_designs
from tilewright.designs.explore import exploration_of
from tilewright.designs.figures import front_figure
from tilewright.designs.front import drawn_rows, order_of_sample
from tilewright.designs.front_odds import part_columns
from tilewright.designs.page import explore_page, page_data
from tilewright.designs.results import measures_in_time
from tilewright.designs.shard import ShardContent
from tilewright.designs.space_reader import read_space
from tilewright.designs.table_files import front_table, space_table, write_front_tables
from tilewright.designs.tables import answer_text
from tilewright.results.sheet import drawn_for
from tilewright.search.cost_ranges import CostPart

from tests.unit.designs.conftest import costs, exploration
from tests.unit.designs.space_cases import BASE, ROOT
from tests.unit.designs.test_slow_memories import answered

IN_TIME = "Clocks of designs differ: latency and EDP are compared in time, not in cycles."
IN_CYCLES = "Some designs have no clock: latencies are compared in cycles, not in seconds."


def timed(energy_pj: float, latency_cycles: float, clock_mhz: float, area_mm2: float = 1.0) -> dict[str, Any]:
    """Return the measures of a design with a clock."""
    seconds = latency_cycles / clock_mhz / 1e6
    times = {"latency_s": seconds, "edp_pj_s": energy_pj * seconds, "power_w": energy_pj * 1e-12 / seconds}
    return costs(energy_pj, latency_cycles, area_mm2) | times


def best(answer: Answer) -> dict[str, str]:
    """Return the name of the best design by each measure."""
    return {key: row["design"] for key, row in best_designs(answer.overall)}


def test_the_relation_of_clocks() -> None:
    """Clocks that differ by rounding are equal; an unknown clock among known ones prevents a comparison in time."""
    nothing = np.nan
    cases = {
        Clocks.ALIKE: ([], [nothing] * 3, [2.0, 2.0 * (1 + 1e-15)], [5.0]),
        Clocks.DIFFER: ([1.0, 2.0], [1.0, 1.0 + 1e-6, 1.0]),
        Clocks.PARTLY_UNKNOWN: ([1.0, nothing], [1.0, 2.0, nothing]),
    }
    for expected, periods in cases.items():
        for given in periods:
            assert clocks_of(np.array(given)) is expected
    assert [one.note for one in Clocks] == ["", IN_TIME, IN_CYCLES]


def test_the_table_of_a_paper_has_no_cycles_of_different_clocks(tmp_path: Path) -> None:
    """The table of a paper has times if clocks differ, and cycles if they are equal."""
    rows = [timed(4.0e6, 1000.0, 100.0, 2.0), timed(5.0e6, 1500.0, 300.0)]
    for name in ("time", "cycles"):
        (tmp_path / name).mkdir()
    with drawn_for("page"):
        write_front_tables(answer_of(exploration(rows)), tmp_path / "time")
        write_front_tables(answer_of(exploration([timed(4.0e6, 1000.0, 100.0)])), tmp_path / "cycles")
    heading = (tmp_path / "time" / "front.md").read_text().splitlines()[0].replace("\\", "")
    assert "cycles" not in heading
    assert "time [µs]" in heading
    assert "EDP [pJ s]" in heading
    assert "cycles" in (tmp_path / "cycles" / "front.md").read_text().splitlines()[0]


def test_the_order_in_time_is_the_opposite_of_the_order_in_cycles() -> None:
    """Fewer cycles of a slower clock lose: best designs, front, tables, page and figure agree."""
    rows = [timed(4.0, 1000.0, 100.0, 2.0), timed(5.0, 1500.0, 300.0), timed(6.0, 2000.0, 1000.0)]
    answer = answer_of(exploration(rows))
    assert best(answer) == {
        "energy_pj": "design-0",
        "latency_s": "design-2",
        "edp_pj_s": "design-2",
        "area_mm2": "design-1",
    }
    assert answer.overall.objectives == ("energy_pj", "latency_s", "area_mm2")
    text = answer_text(answer)
    assert "Pareto front of net by energy, time, area: 3 of 3 designs" in text
    assert f"assumed: {IN_TIME}" in text
    assert "time" in text
    assert "[µs]" in text
    assert "[cycles]" not in text
    assert IN_TIME in explore_page(answer)
    column = {"key": "latency_s", "words": "time", "unit": "µs", "kind": "measure"}
    assert column in page_data(answer)["columns"]
    assert front_table(answer)["compared_by"].unique().tolist() == ["energy_pj latency_s area_mm2"]
    drawn = drawn_rows(answer.overall, 10, order_of_sample(answer.exploration.table))
    labels = front_figure(answer, answer.overall, drawn).axes[0]
    assert (labels.get_xlabel(), labels.get_ylabel()) == ("time [µs]", "energy [µJ]")


def test_a_design_with_fewer_cycles_can_be_dominated() -> None:
    """A design is dominated by one with more cycles and less time."""
    rows = [timed(4.0, 1000.0, 100.0), timed(4.0, 2000.0, 1000.0)]
    table = space_table(answer_of(exploration(rows)))
    assert table["pareto"].tolist() == [False, True]
    assert table["dominated_by"].tolist() == ["design-1", ""]


def test_one_clock_is_compared_in_cycles() -> None:
    """Designs of one clock, or of partly unknown clocks, are compared in cycles; a note says if clocks are unknown."""
    same = [timed(1.0, 10.0 * n, 500.0) for n in (1, 2, 3)]
    for rows in (same, [costs(1.0, 2.0, 3.0), costs(2.0, 1.0, 3.0)]):
        answer = answer_of(exploration(rows))
        assert answer.assumptions == exploration(rows).assumptions
        assert "latency_cycles" in best(answer)
    some = answer_of(exploration([*same[:1], costs(1.0, 9.0, 1.0) | {"latency_s": np.nan, "edp_pj_s": np.nan}]))
    assert some.assumptions[-1] == IN_CYCLES
    assert best(some)["latency_cycles"] == "design-1"


def test_only_compared_designs_count() -> None:
    """Clocks of designs without results, or outside the constraints, do not change the units."""
    other = timed(1.0, 1.0, 100.0)
    rows = [timed(1.0, 10.0, 500.0), timed(2.0, 9.0, 500.0), other | {"unmet": "area_mm2 <= 0"}]
    for last in (rows[-1], {"status": "invalid", "reason": "no"}):
        assert answer_of(exploration([*rows[:2], last])).exploration.clocks is Clocks.ALIKE
    assert answer_of(exploration([*rows[:2], other])).exploration.clocks is Clocks.DIFFER


def test_sums_over_networks_are_in_time() -> None:
    """Times and EDPs of networks are added up, and the power follows from the sums."""
    rows = [timed(n + 1.0, 100.0 * (n % 2 + 1), (100.0, 400.0)[n // 2]) for n in range(4)]
    overall = answer_of(exploration(rows, ("one", "two"))).overall
    for place, row in enumerate(overall.rows.to_dict("records")):
        own = rows[2 * place : 2 * place + 2]
        assert row["latency_s"] == own[0]["latency_s"] + own[1]["latency_s"]
        assert row["edp_pj_s"] == own[0]["edp_pj_s"] + own[1]["edp_pj_s"]
        assert row["power_w"] == pytest.approx((own[0]["energy_pj"] + own[1]["energy_pj"]) * 1e-12 / row["latency_s"])


def test_units_are_chosen_once_for_a_table() -> None:
    """Each column of a table has the largest unit in which no value is below 1."""
    table = pandas.DataFrame({"latency_s": [2e-3, 5.0], "edp_pj_s": [3e2, 9e5]})
    measures = measures_in_time(table)
    assert [one.title for one in measures.values()] == ["energy [µJ]", "time [ms]", "EDP [pJ s]", "area [mm²]"]
    assert measures["latency_s"].text(2e-3) == "2"
    assert measures["edp_pj_s"].text(9e5) == "900,000"


def test_ends_of_axes_are_in_time() -> None:
    """An axis is reported as ending too early if its last step saves time, even if it takes more cycles."""
    axes = {"rows": (8, 16, 32)}
    rows = [timed(1.0, 1000.0 * 2**n, 100.0 * 4**n) | {"rows": 8 * 2**n} for n in range(3)]
    found = list(axis_ends(answer_of(exploration(rows, axis_values=axes)).overall, axes))
    assert [(one.measure, one.value) for one in found] == [("latency_s", 32), ("edp_pj_s", 32)]
    assert found[0].gain == pytest.approx(0.5)


def test_probabilities_are_those_of_the_time() -> None:
    """Probabilities of the front are based on time."""
    part = CostPart("", "sram", 0.5, 0.0, 0.5, 2.0)
    rows = [timed(1.0, 1000.0, 100.0), timed(1.0, 2000.0, 1000.0)]
    rows = [row | part_columns((part,), row["latency_cycles"], row["latency_s"]) for row in rows]
    answer = answer_of(exploration(rows, objectives=("edp_pj_cycles",)))
    assert answer.overall.objectives == ("edp_pj_s",)
    assert answer.overall.rows["front_probability"].tolist() == [0.0, 1.0]


def clock_space(seed: int) -> dict[str, Any]:
    """Return a space over the clock and the array.

    The DRAM has the same bandwidth per second at every clock, so a faster clock takes more cycles and less time.
    """
    draw = random.Random(seed)
    clocks = sorted(draw.sample((100, 250, 400, 800, 1600), 3))
    kept = {"clock_frequency": None}
    return {
        "accelerator": str(BASE),
        "networks": [str(ROOT / "tests" / "workflow" / "tiny" / "workload" / "two_layers.yaml")],
        "axes": {
            "clock": {
                "choices": {
                    f"at {mhz} MHz": kept
                    | {
                        "clock_frequency": f"{mhz} MHz",
                        "memories.dram.ports.rw_port_1.bandwidth_max": "12.8 GB/s",
                        "memories.dram.r_cost": "10 pJ/b",
                        "memories.dram.w_cost": "10 pJ/b",
                    }
                    for mhz in clocks
                }
            },
            "rows": {"path": "operational_array.sizes.0", "values": [8, 16]},
        },
        "options": {"objective": "EDP", "lpf_limit": 3},
    }


def test_constraints_on_cycles_are_told() -> None:
    """A note names constraints that limit cycles if clocks differ."""
    table = pandas.DataFrame([{"index": n, "status": "ok", **timed(1.0, 9.0 + n, 100.0 + n)} for n in range(3)])
    for constraints, count in ((["latency_cycles <= 10"], 1), (["energy_pj <= 5"], 0), ([], 0)):
        space = read_space(clock_space(1) | {"constraints": constraints})
        table = table.assign(**{axis.name: axis.values[0] for axis in space.axes})
        found = exploration_of(space, ShardContent(table, {}))
        assert sum("but these constraints limit cycles, not time" in one for one in found.assumptions) == count
        assert found.table["unmet"].tolist() == ["", "", constraints[0] if count else ""]


def test_explore_and_front_rank_by_time(tmp_path: Path) -> None:
    """`explore` and `front` rank by time, not by cycles.

    The design with the fewest cycles has the slowest clock. The design with the least time has the fastest clock.
    """
    path = tmp_path / "clocks.yaml"
    path.write_text(yaml.safe_dump(clock_space(1), sort_keys=False))
    table = explore(path, output=tmp_path / "explored")
    assert table.loc[table["latency_cycles"].idxmin(), "clock"] == table["clock"].iloc[0]
    assert table.loc[table["latency_s"].idxmin(), "clock"] == table["clock"].iloc[-1]
    values = table[["energy_pj", "latency_s", "area_mm2"]].to_numpy()
    is_member = [not ((values <= row).all(axis=1) & (values < row).any(axis=1)).any() for row in values]
    assert table["pareto"].tolist() == is_member
    found = front(path, tmp_path / "front")
    assert sorted(found["design"]) == sorted(table["design"][is_member])
    assert found["compared_by"].iloc[0] == "energy_pj latency_s area_mm2"
    certificate = tmp_path / "front" / "certificate.parquet"
    assert not certify(path, read_space(path), certificate, 9, 0, True, 1, lambda _: None).problems
    mhz = ledger_of_design(tmp_path / "explored", table["design"].iloc[-1]).run.clock_frequency_mhz
    assert f"at {mhz:g} MHz" == table["clock"].iloc[-1]


@pytest.mark.parametrize("column", ["latency_s", "power_w", "edp_pj_s"])
def test_a_constraint_limits_time_and_power(column: str) -> None:
    """A limit on time, power or EDP excludes the designs above it; no design without a clock meets the limit."""
    axes = {"clock": {"path": "clock_frequency", "values": ["100 MHz", "800 MHz"]}}
    values = answered(axes=axes, laws={}).exploration.table[column]
    limit = f"{column} <= {values.mean():.6g}"
    table = answered(axes=axes, laws={}, constraints=[limit]).exploration.table
    assert ((table["unmet"] == limit) == (table[column] > values.mean())).all()
    assert table["unmet"].nunique() == 2
    unknown = answered(clock=None, constraints=[limit]).exploration.table
    assert {*unknown["unmet"]} == {f"{limit}: {column} is not known"}


def test_complete_fronts_meet_limits_of_time_and_power(tmp_path: Path) -> None:
    """`front` and its certificate compare the same designs as `explore` under limits of time and power."""
    path = tmp_path / "clocks.yaml"
    path.write_text(yaml.safe_dump(clock_space(1), sort_keys=False))
    table = explore(path)
    limits = [f"{column} <= {float(table[column].quantile(0.7))!r}" for column in ("latency_s", "power_w", "edp_pj_s")]
    path.write_text(yaml.safe_dump(clock_space(1) | {"constraints": limits}, sort_keys=False))
    limited = explore(path)
    assert 0 < (limited["unmet"] == "").sum() < len(limited)
    found = front(path, tmp_path / "front")
    assert sorted(found["design"]) == sorted(limited["design"][limited["pareto"]])
    certificate = tmp_path / "front" / "certificate.parquet"
    assert not certify(path, read_space(path), certificate, 9, 0, True, 1, lambda _: None).problems
