"""Groups of comparable runs, their table and their figure."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure
from tilewright.base.artifacts.envelope import write_document
from tilewright.cli.main import main
from tilewright.cli.runs import read_records
from tilewright.results.pareto import (
    RunPoint,
    _free_work,
    candidate,
    compare,
    figures_of,
    paper_columns,
    pareto_table,
    pareto_text,
)
from tilewright.results.pareto_figure import pareto_figure, scale_axes, write_pareto_figures

from tests.unit.results.conftest import network


def run(name: str, energy_pj: float, latency_cycles: float, area_mm2: float | None, **changes: Any) -> RunPoint:
    """A run of a network `net` on the core `name`."""
    summary = {
        "workload": changes.pop("workload", "net"),
        "hardware": name,
        "objective": changes.pop("objective", "latency"),
        "model": "zigzag-3.9.1",
        "energy_pj": energy_pj,
        "latency_cycles": latency_cycles,
        "area_mm2": area_mm2,
        "area_note": changes.pop("area_note", ""),
    }
    if "locality" in changes:
        exploited, below = changes.pop("locality")
        summary["data_locality"] = {"exploited": exploited, "layers": 21, "layers_below_top": below}
    options = {"objective": summary["objective"], "model": "zigzag-3.9.1", "lpf_limit": 6, **changes}
    return candidate(f"{summary['workload']}-{name}", summary, {"options": options, "inputs": {"workload": "abc"}})


def test_ties_stay_and_area_decides() -> None:
    """Equal runs are both on the front; a run with more energy and latency stays there if its area is smaller."""
    (group,) = compare([run("a", 1, 1, 2), run("b", 1, 1, 2), run("small", 2, 2, 1), run("worse", 2, 2, 2)])
    assert [group.on_front(index) for index in range(4)] == [True, True, True, False]
    assert group.dominators[3] == (0, 1, 2)
    assert group.notes == ()


def test_without_an_area_only_energy_and_latency_are_compared() -> None:
    """A missing area is named in a note, and only energy and latency are compared."""
    runs = [run("a", 1, 1, 5), run("small", 2, 2, 1), run("unknown", 3, 0.5, None, area_note="none")]
    runs.append(run("part", 4, 4, None, area_note="some"))
    (group,) = compare(runs)
    assert group.objectives == ("energy_pj", "latency_cycles")
    assert [group.on_front(index) for index in range(4)] == [True, False, True, False]
    assert group.notes == ("area not given: unknown, part; compared by energy and latency only",)
    table = pareto_table([group])
    assert table["area_mm2"].isna().tolist() == [False, False, True, True]
    assert table["area_note"].tolist() == ["", "", "none", "some"]


def test_areas_without_a_unit_are_named_and_not_compared() -> None:
    """Areas without a unit are not compared, and are named with this reason."""
    bare = "area without a unit (311.2): not in mm2"
    runs = [run("a", 1, 1, 5), run("eyeriss", 2, 2, None, area_note=bare), run("unknown", 3, 0.5, None)]
    (group,) = compare(runs)
    said = "area not given: unknown; area without a unit: eyeriss; compared by energy and latency only"
    assert group.notes == (said,)
    assert group.objectives == ("energy_pj", "latency_cycles")
    assert [figures_of(point)[2] for point in runs] == ["5", "no unit", "not given"]
    assert "not given" in pareto_text([group])


def test_static_power_of_some_runs_alone_is_told() -> None:
    """A note names the runs with static power if others have none; if all or none have it, there is no note."""
    leaky, other = replace(run("a", 9, 5, 1), static_power_w=0.01), replace(run("b", 9, 5, 1), static_power_w=0.02)
    bare, none = replace(run("c", 1, 5, 1), static_power_w=0.0), run("d", 1, 5, 1)
    (mixed,) = compare([leaky, other, bare, none])
    text = "static power is not given for c, d: only the energies of the other runs include it (a 0.01 W, b 0.02 W)"
    assert mixed.notes == (text,)
    for alike in ([leaky, other], [bare, none]):
        assert compare(alike)[0].notes == ()


def test_where_clocks_differ_time_is_compared_and_told() -> None:
    """Runs whose clocks differ are compared by time in seconds. If a clock is missing, cycles are compared."""
    slow = replace(run("s", 1, 50, 1), clock_frequency_mhz=100)
    fast = replace(run("f", 1, 90, 1), clock_frequency_mhz=200)
    (group,) = compare([slow, fast])
    assert [group.on_front(index) for index in range(2)] == [False, True]
    (note,) = group.notes
    assert note == "clocks differ: compare by time, not by cycles: s 5e-07 s, f 4.5e-07 s"
    assert note in pareto_text([group])
    table = pareto_table([group])
    assert table["latency_s"].tolist() == [5e-7, 4.5e-7]
    assert "latency_s" in paper_columns([group])
    assert not [name for name in paper_columns([group]) if name.endswith("cycles")]
    (mixed,) = compare([slow, run("bare", 1, 90, 1)])
    assert "latency_s" not in paper_columns([mixed])
    assert mixed.notes == ("no clock given: bare; compared by cycles, not by time",)
    assert [mixed.on_front(index) for index in range(2)] == [True, False]
    assert pareto_table([mixed])["latency_s"].isna().tolist() == [False, True]
    assert "latency_s" not in pareto_table(compare([run("bare", 1, 90, 1)]))


def test_only_like_is_compared_with_like() -> None:
    """Another network, option or model makes another group, named by the difference; another objective does not."""
    groups = compare(
        [
            run("a", 1, 1, 1),
            run("b", 2, 2, 2, objective="energy"),
            run("c", 3, 3, 3, lpf_limit=8),
            run("d", 4, 4, 4, workload="other"),
        ]
    )
    assert [[point.core for point in group.candidates] for group in groups] == [["a", "b"], ["c"], ["d"]]
    assert [group.difference for group in groups] == ["lpf_limit 6", "lpf_limit 8", ""]


def test_groups_of_one_network_are_named_by_what_differs() -> None:
    """Groups of one network are named by their difference: bits, a digest with its reason, or the model.

    Bits are named if only they differ. A digest is named if more differs or the difference is unknown. Networks that
    two models read differently are named by the model.
    """
    wide = {"workload_digest": "b" * 32, "bits": "W 8, I 16"}
    plain = replace(run("a", 1, 1, 1), workload_digest="a" * 32, bits="W 8, I 8", structure_digest="s")

    def names(**changes: Any) -> list[str]:
        return [group.difference for group in compare([plain, replace(plain, **{**wide, **changes})])]

    assert names() == ["bits W 8, I 8", "bits W 8, I 16"]
    assert names(structure_digest="t") == [
        "other layers or shapes, network aaaaaaaa (bits W 8, I 8)",
        "other layers or shapes, network bbbbbbbb (bits W 8, I 16)",
    ]
    assert names(structure_digest="") == ["network aaaaaaaa (bits W 8, I 8)", "network bbbbbbbb (bits W 8, I 16)"]
    assert names(bits=plain.bits)[1] == "other bits, zeros or costed operators, network bbbbbbbb"
    assert names(bits=plain.bits, structure_digest="t")[1] == "other layers or shapes, network bbbbbbbb"
    options = {"options": (*plain.options, ("model", "corrected")), "structure_digest": "t", "bits": plain.bits}
    told = names(model="corrected", **options)
    assert told[1].endswith("model corrected")
    assert not any("network" in name for name in told)


def test_where_data_are_between_layers_is_said_and_not_mixed() -> None:
    """Groups differ by where data stay between layers, by option or by mapping file, and every row names the setting.

    A group that does not use its memories for such data has a warning.
    """
    groups = compare(
        [
            run("a", 1, 1, 1, exploit_data_locality=True, locality=(True, 18)),
            run("b", 2, 2, 2, exploit_data_locality=False, locality=(True, 0)),
            run("c", 3, 3, 3, exploit_data_locality=False, locality=(False, 5)),
            run("d", 4, 4, 4, exploit_data_locality=False, locality=(False, 0)),
        ]
    )
    assert [[point.core for point in group.candidates] for group in groups] == [["a", "b"], ["c", "d"]]
    assert [group.difference for group in groups] == [
        "data between layers kept below",
        "data between layers top memory",
    ]
    kept = ["kept below: 18 of 21", "kept below: 0 of 21"]
    assert pareto_table(groups)["between_layers"].tolist() == [*kept, "top memory", "top memory"]
    assert groups[0].warning == ""
    assert "with this option, c would keep data between layers" in groups[1].warning
    text = pareto_text(groups)
    assert "assumed: every layer reads its inputs from the top memory" in text
    assert groups[1].warning in text
    assert any("exploit_data_locality is off" in line.get_text() for line in pareto_figure(groups).texts)


def test_a_pipeline_of_the_users_is_an_option_too() -> None:
    """Runs of another pipeline are another group; a long pipeline is named by its digest."""
    pipeline = [{"stage": f"a_stage_with_a_long_name_{i}"} for i in range(5)]
    groups = compare([run("a", 1, 1, 1), run("b", 2, 2, 2, pipeline=pipeline), run("c", 3, 3, 3, pipeline=pipeline)])
    assert [len(group.candidates) for group in groups] == [1, 2]
    assert groups[0].difference == "pipeline default"
    assert groups[1].difference.startswith("pipeline digest ")


def test_table_and_text(tmp_path: Path) -> None:
    """The table says true or false for each run and names the runs that dominate it; the text names them, too."""
    groups = compare([run("a", 1, 1, 2), run("b", 2, 2, 3), run("c", 1, 1, 1)])
    table = pareto_table(groups)
    assert table["pareto"].tolist() == ["false", "false", "true"]
    assert table["dominated_by"].tolist() == ["net-c", "net-c", ""]
    assert table["compared_by"].tolist() == ["energy latency area"] * 3
    assert pareto_table([]).columns.tolist() == table.columns.tolist()
    assert "dominated by" in pareto_text(groups)


@pytest.mark.parametrize("count", [1, 6, 40])
def test_figure_has_every_run_and_no_text_outside(count: int) -> None:
    """All runs are drawn and listed, and no text leaves the figure."""
    runs = [run(f"core_{i}", 1e6 + (i * 37 % 11) * 1e6, 1e3 * 1.3**i, 1 + i % 5) for i in range(count)]
    runs += [run("twin", runs[0].energy_pj, runs[0].latency_cycles, 3)]
    (group,) = compare(runs)
    figure = pareto_figure([group])
    renderer = figure.canvas.get_renderer()
    assert len(figure.axes[0].collections) == count + 1
    shown = [text.get_text() for text in figure.texts]
    assert all(point.core in shown for point in runs)
    assert f"1, {count + 1}" in [text.get_text() for text in figure.axes[0].texts]
    for text in figure.texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.y1


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([2.0, 12.0], (1.0, 13.0)),
        ([1.0, 9.0], (0.2, 9.8)),
        ([0.5, 6.0], None),
        ([4.0, 4.0], (3.6, 4.4)),
        ([0.0], (0.0, 1.0)),
    ],
)
def test_axes_fit_their_values(values: list[float], limits: tuple[float, float] | None) -> None:
    """An axis does not begin at 0 if the values are far from it, and is logarithmic if they are far apart."""
    axes = Figure().add_subplot()
    scale_axes(axes, np.array(values), np.array(values))
    assert axes.get_xscale() == axes.get_yscale() == ("linear" if limits else "log")
    for found in (axes.get_xlim(), axes.get_ylim()):
        assert found[0] < min(values) or found[0] == min(values) == 0
        assert found[1] > max(values)
        assert limits is None or found == pytest.approx(limits)


def test_figures_of_networks_and_groups(tmp_path: Path) -> None:
    """Each network has one file with stable bytes and a panel for each group; runs without any cost raise no error."""
    groups = compare([run("a", 1, 1, 1), run("b", 2, 2, 2, lpf_limit=8), run("c", 0, 0, 0, workload="other")])
    first = write_pareto_figures(groups, tmp_path / "one")
    second = write_pareto_figures(groups, tmp_path / "two")
    assert [path.name for path in first] == ["net.svg", "net.png", "other.svg", "other.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert len(pareto_figure([group for group in groups if group.workload == "net"]).axes) == 2


def write_summary(folder: Path, hardware: str, area_mm2: float, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the folder of a run with only a summary."""
    summary = copy.deepcopy(network(2)[1]) | {"hardware": hardware, "area_mm2": area_mm2, "area_note": ""}
    change(summary)
    made_by = {"options": {"objective": "latency"}, "inputs": {"workload": "w", "hardware": hardware}}
    write_document(folder / "summary.json", "tilewright/single-summary", summary, made_by)


def test_verb_reads_runs_and_writes_table_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb writes a CSV file, figures and a text table from folders of runs; --json gives the rows."""
    write_summary(tmp_path / "runs" / "one", "one", 1.0, lambda summary: None)
    write_summary(tmp_path / "runs" / "two", "two", 2.0, lambda summary: summary.update(energy_pj=1e12))
    outputs = ["--csv", str(tmp_path / "pareto.csv"), "--figures", str(tmp_path / "figures")]
    assert main(["pareto", str(tmp_path / "runs"), *outputs]) == 0
    table = pandas.read_csv(tmp_path / "pareto.csv", dtype={"pareto": str})
    assert table["pareto"].tolist() == ["true", "false"]
    assert (tmp_path / "figures" / "small_network.svg").is_file()
    assert main(["pareto", str(tmp_path / "runs"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["area_mm2"] for row in rows] == [1.0, 2.0]
    assert main(["pareto", str(tmp_path / "runs")]) == 0
    assert "dominated by" in capsys.readouterr().out
    assert main(["pareto", str(tmp_path / "nothing")]) == 2
    assert main(["pareto", str(tmp_path / "runs"), "--csv", str(tmp_path / "pareto.csv" / "x.csv")]) == 2


def test_summary_and_comparison_tell_the_same_area(tmp_path: Path) -> None:
    """An area without the memories is no area in records, summary, table of runs and comparison.

    The comparison names the missing part, and no number stands for the area.
    """
    tiny = Path(__file__).parents[2] / "workflow" / "tiny"
    hardware = tmp_path / "narrow.yaml"
    text = (tiny / "hardware" / "narrow.yaml").read_text()
    assert "unit_area: 0" in text
    hardware.write_text(text.replace("unit_area: 0", "unit_area: 1"))
    given = ["--mapping", str(tiny / "mapping" / "free.yaml"), "--workload", str(tiny / "workload" / "two_layers.yaml")]
    output = tmp_path / "run"
    assert (
        main(
            [
                "map",
                "--preset",
                "zigzag",
                "--hardware",
                str(hardware),
                *given,
                "--lpf-limit",
                "3",
                "--no-store",
                "-o",
                str(output),
            ]
        )
        == 0
    )
    assert main(["summarize", str(output), "--csv", str(tmp_path / "summary.csv")]) == 0
    assert main(["pareto", str(output), "--csv", str(tmp_path / "pareto.csv")]) == 0
    said = []
    for name in ("summary.csv", "pareto.csv"):
        (row,) = pandas.read_csv(tmp_path / name).to_dict("records")
        assert pandas.isna(row["area_mm2"])
        said.append(row["area_note"])
    assert said == ["area not given for register"] * 2
    assert [record.area_mm2 for record in read_records(output)] == [None, None]


def test_unfinished_runs_are_named(tmp_path: Path) -> None:
    """A run without a result is not compared, and is named beside the runs of its network."""
    runs = [run("a", 1, 1, 1), run("b", 1, 1, 1, workload="other")]
    groups = compare(runs, [{"run": "net-x", "workload": "net", "state": "stale"}])
    assert [group.not_compared for group in groups] == [("net-x",), ()]
    assert "not compared, because failed or stale: net-x" in pareto_text(groups)
    assert pareto_table(groups)["not_compared"].tolist() == ["net-x", ""]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], ""),
        ([(0, 7), (5, 3)], "5 MACs and 10 other operations"),
        ([(0, None), (0, 3)], "at least 3 other operations"),
        ([(0, None)], "an unknown number of other operations"),
        ([(None, 0), (2, 0)], "at least 2 MACs"),
    ],
)
def test_work_without_costs_may_be_unknown(rows: list[tuple[int | None, int | None]], text: str) -> None:
    """The work of operators without layers is unknown under the profile of the reference."""
    listed = [{"mac_count": macs, "operation_count": operations} for macs, operations in rows]
    assert _free_work({"coverage": {"not_costed": listed}}) == text
