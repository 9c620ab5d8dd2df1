"""The table of all runs, on one core and on several."""

from pathlib import Path
from typing import Any

import pandas
import pytest
from tilewright.results.run_columns import run_row
from tilewright.results.run_tables import multi_text, runs_table
from tilewright.results.run_text import unfinished_lines
from tilewright.results.tables import runs_legend, summary_text
from tilewright.results.text_tables import write_csv, write_parquet

CAUSES = {"off_chip_fetch": {"link_pj": 1.0, "memory_pj": 2.0}, "core_to_core": {"link_pj": 4.0, "memory_pj": 8.0}}


def multi_summary(**changes: Any) -> dict[str, Any]:
    """The summary of a run on several cores, with the fields that tables show."""
    baseline = {"energy_pj": 4e6, "latency_cycles": 3000, "edp_pj_cycles": 12e9, "gap": 0.25}
    baseline |= {"speedup": 3.0, "energy_ratio": 2.0}
    return {
        "workload": "net",
        "hardware": "duo",
        "objective": "latency",
        "model": "corrected",
        "schedule_model": "causal",
        "layers": 3,
        "cn_count": 18,
        "energy_pj": 2e6,
        "latency_cycles": 1000,
        "edp_pj_cycles": 2e9,
        "energy": {"on_core_pj": 1.5e6, "causes": CAUSES},
        "coverage": {"mac_count": 10, "operation_count": 4, "mac_share": 1.0, "operation_share": None},
        "lower_bound": {"latency_cycles": 900, "energy_pj": 1e6},
        "gap_latency": 0.1,
        "gap_energy": 0.5,
        "area_mm2": None,
        "area_note": "area not given for left: units",
        "baselines": [
            {"name": "single_core", "core": 1, "core_name": "right", **baseline},
            {"name": "layer_by_layer", "core": None, "core_name": None, **baseline},
            {"name": "this_run", "core": None, "core_name": None, **baseline},
        ],
        **changes,
    }


def single_summary() -> dict[str, Any]:
    """The summary of a run on one core, with the fields that tables show."""
    return {
        **{"workload": "net", "hardware": "wide", "objective": "energy", "model": "zigzag-3.9.1", "layers": 2},
        **{"distinct_layers": 1, "mac_count": 7, "energy_pj": 5.5, "latency_cycles": 20.0, "edp_pj_cycles": 110.0},
        **{"mac_energy_pj": 1.0, "memory_energy_pj": 4.5, "latency_breakdown_cycles": {"ideal": 10}},
        **{"operation_count": 3, "area_mm2": 2.5, "area_note": ""},
        **{"corrected": {"energy_pj": None, "latency_cycles": None}, "layers_differing_over_5_percent": []},
        "evaluations": 3,
    }


def test_a_row_of_several_cores() -> None:
    """Energy is split into cores and moved data, and baselines have columns of their own."""
    row = run_row("a", multi_summary())
    assert (row["run"], row["flow"], row["hardware"], row["model"], row["schedule_model"]) == (
        *("a", "multi", "duo", "corrected", "causal"),
    )
    assert row["on_core_energy_pj"] == 1.5e6
    assert row["moved_data_energy_pj"] == 15.0
    assert (row["gap_latency"], row["lower_bound_latency_cycles"]) == (0.1, 900)
    assert row["single_core_latency_cycles"] == row["layer_by_layer_latency_cycles"] == 3000
    assert "this_run_latency_cycles" not in row


def test_without_bound_and_baselines() -> None:
    """The cells are empty if there is no bound and no baseline."""
    summary = multi_summary(lower_bound=None, gap_latency=None, gap_energy=None, baselines=[])
    row = run_row("a", summary)
    assert row["lower_bound_latency_cycles"] is None
    assert "layer_by_layer_energy_pj" not in row
    assert "layer by layer" not in multi_text({"a": summary})


def test_a_run_that_is_worse_than_its_baselines_is_told_below_the_table() -> None:
    """A run that is worse than a baseline is named below the table with the ratio; other runs are not named."""
    one, layer_by_layer, this_run = multi_summary()["baselines"]
    slow = [{**one, "speedup": 3.0, "energy_ratio": None}, {**layer_by_layer, "speedup": 0.31, "energy_ratio": 0.8}]
    text = multi_text({"good": multi_summary(), "bad": multi_summary(baselines=[*slow, this_run])})
    assert text.endswith(
        "\nbad takes 3.23 times as long as layer by layer\nbad needs 1.25 times the energy of layer by layer\n"
    )
    assert "good takes" not in text
    assert "one core (1: right)\n" not in text


def test_both_flows_in_one_table(tmp_path: Path) -> None:
    """Both flows share a table: counts stay whole numbers beside empty cells, and rows keep their order."""
    table = runs_table({"s": single_summary()}, {"m": multi_summary()})
    assert list(table["run"]) == ["s", "m"]
    assert list(table["flow"]) == ["single", "multi"]
    write_csv(table, tmp_path / "a.csv")
    head, one, other = (tmp_path / "a.csv").read_text().splitlines()
    place = head.split(",").index
    assert one.split(",")[place("distinct_layers")] == "1"
    assert other.split(",")[place("distinct_layers")] == ""
    assert other.split(",")[place("cn_count")] == "18"
    assert one.split(",")[place("latency_cycles")] == "20.0"
    write_parquet(table, tmp_path / "a.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "a.parquet"), table, check_dtype=False)


@pytest.mark.parametrize("flow", ["single", "multi"])
def test_one_flow_alone(flow: str) -> None:
    """A table of one flow has only the columns of that flow."""
    table = runs_table({"s": single_summary()}, {}) if flow == "single" else runs_table({}, {"m": multi_summary()})
    assert ("cn_count" in table.columns) == (flow == "multi")
    assert ("mac_energy_pj" in table.columns) == (flow == "single")


def test_both_flows_tell_areas_and_states() -> None:
    """Rows of both flows have a state, and an area or a note on parts without an area."""
    table = runs_table({"s": single_summary()}, {"m": multi_summary()})
    assert list(table["state"]) == ["done", "done"]
    assert table["area_mm2"].tolist()[0] == 2.5
    assert pandas.isna(table["area_mm2"].tolist()[1])
    assert list(table["area_note"]) == ["", "area not given for left: units"]


def test_unfinished_runs_have_a_row_without_figures(tmp_path: Path) -> None:
    """A failed run has a row with its name and state, but no figures; counts stay whole numbers."""
    lost = {"run": "x", "flow": "single", "state": "stale", "workload": "net", "hardware": "wide"}
    table = runs_table({"s": single_summary()}, {}, [lost])
    assert list(table["run"]) == ["s", "x"]
    assert list(table["state"]) == ["done", "stale"]
    assert [name for name in table.columns if not pandas.isna(table[name].tolist()[1])] == list(lost)
    write_csv(table, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[1].split(",")[8] == "1"
    assert list(unfinished_lines([lost]))[1].split()[:2] == ["x", "stale:"]
    assert list(unfinished_lines([])) == []


def test_the_legend_explains_what_is_there() -> None:
    """The legend explains every heading that is no plain word, and `?` only if it is shown."""
    single, multi = run_row("s", single_summary()), run_row("m", multi_summary())
    assert "corrected energy" not in runs_legend([single | {"model": "corrected"}], [])
    known = single | {"costed_mac_share": 1.0, "costed_operation_share": 1.0}
    text = runs_legend([known], [])
    assert [line.split(":")[0].strip() for line in text.splitlines() if line[:3].strip()] == [
        *("MACs", "array use", "corrected energy, latency", "costed"),
    ]
    assert "?:" not in text
    assert "gap to bound of its tiles:" not in text
    both = runs_legend([single], [multi])
    assert "?: not known" in both
    assert "gap to bound of its tiles:" in both
    assert max(map(len, both.splitlines())) <= 110
    assert runs_legend([], []) == ""


def test_macs_and_operations_are_two_columns() -> None:
    """MACs and other operations are two columns, not one sum."""
    text = summary_text({"s": single_summary() | {"mac_count": 7_000_000, "operation_count": 3_000_000}})
    assert text.splitlines()[1].split()[:4] == ["run", "layers", "[10⁶]", "[10⁶]"]
    row = next(line for line in text.splitlines() if line.split()[0] == "s")
    assert row.split()[1:4] == ["2", "7", "3"]


def test_columns_that_say_nothing_are_left_out() -> None:
    """A column is left out if it says nothing.

    Figures under the corrected model are shown only if a run has another model, and seconds only if clocks differ.
    """
    one = single_summary()
    fixed = one | {"model": "corrected"}
    assert "corrected" in summary_text({"a": one, "b": one})
    assert "corrected" not in summary_text({"a": fixed, "b": fixed})
    rows = {line.split()[0]: line.split() for line in summary_text({"a": one, "b": fixed}).splitlines() if line.strip()}
    assert rows["b"][-3] == "-"
    assert rows["a"][-4:-2] != ["-", "-"]
    slow, fast = (one | {"clock_frequency_mhz": mhz, "latency_s": 1 / mhz} for mhz in (200.0, 800.0))
    assert "[s]" not in summary_text({"a": slow, "b": slow})
    assert "[s]" not in summary_text({"a": slow, "b": one})
    text = summary_text({"a": slow, "b": fast})
    assert "[s]" in text
    assert "0.005" in text
    assert "0.00125" in text


def test_text() -> None:
    """The text has the totals with the gap, and below them the baselines."""
    lines = multi_text({"fused": multi_summary()}).splitlines()
    run = next(line for line in lines if line.strip().startswith("fused"))
    for part in (" 18 ", " 2 ", " 1,000 ", " 0.002 ", " 10.0% ", " 100%, ?"):
        assert part in run
    first, second = lines[lines.index(run) + 1 :]
    assert first.split() == ["layer", "by", "layer", "4", "3,000", "0.012", "25.0%", "3.00", "×"]
    assert second.startswith("   one core (1: right)")


def test_ends_of_energy_and_area_are_columns_where_costs_have_ranges() -> None:
    """Both flows have columns for the ends of energy and area, if there are ranges and an area."""
    ranges = {"energy_pj": [4.0, 7.0], "area_mm2": [2.0, 3.0], "parts": []}
    single = run_row("s", single_summary() | {"cost_ranges": ranges})
    assert (single["energy_low_pj"], single["energy_high_pj"]) == (4.0, 7.0)
    assert (single["area_low_mm2"], single["area_high_mm2"]) == (2.0, 3.0)
    multi = run_row("m", multi_summary(cost_ranges=ranges | {"area_mm2": None}))
    assert multi["energy_high_pj"] == 7.0
    assert "area_low_mm2" not in multi
    assert "energy_low_pj" not in run_row("s", single_summary())
