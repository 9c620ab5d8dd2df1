"""The page, the trace and the tables of a report: their numbers equal those of the run."""

import base64
import csv
import json
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.multi_core.runs import MIXED, branches, done, run, write_accelerator, write_mapping

LINES = ["--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]']


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with its report."""
    found = tmp_path_factory.mktemp("run")
    run(found, write_accelerator(found / "hw", MIXED), branches(found), write_mapping(found), LINES)
    done(["report", str(found), "-o", str(found / "report")])
    return found


@pytest.fixture(scope="module")
def summary(folder: Path) -> dict[str, Any]:
    """Return the payload of `summary.json`."""
    payload: dict[str, Any] = json.loads((folder / "summary.json").read_text())["payload"]
    return payload


@pytest.fixture(scope="module")
def schedule(folder: Path) -> dict[str, Any]:
    """Return the columns of `schedule.npz`."""
    return {name: column.tolist() for name, column in np.load(folder / "schedule.npz").items()}


def column(described: dict[str, Any]) -> list[float]:
    """Return a packed column of the page: deflated bytes of all values by place, mostly as differences."""
    planes = zlib.decompress(base64.b64decode(described["data"]))
    width = int(described["type"][1:])
    count = len(planes) // width
    raw = b"".join(bytes(planes[plane * count + i] for plane in range(width)) for i in range(count))
    values = np.frombuffer(raw, "<" + described["type"])
    return (np.cumsum(values) if described["delta"] else values).tolist()


def test_the_interactive_page(folder: Path, summary: dict[str, Any], schedule: dict[str, Any]) -> None:
    """The page has the bars, busy cycles, bits of pieces and causes of transfers of the run."""
    text = (folder / "report" / "schedule.html").read_text()
    start = text.index('id="schedule">') + len('id="schedule">')
    page = json.loads(text[start : text.index("</script>", start)])
    columns = {name: column(described) for name, described in page["columns"].items()}
    assert page["latency_cycles"] == summary["latency_cycles"]
    busy = {row["name"]: row["busy_cycles"] for row in page["rows"] if row["kind"] == "core"}
    assert busy == {f"{row['core']}: {row['name']}": row["busy_cycles"] for row in summary["cores"]}
    for row in page["rows"]:
        if row["kind"] != "core":
            share = next((link["busy"] for link in summary["links"] if link["name"] == row["name"]), None)
            assert share is None or row["busy_cycles"] / page["latency_cycles"] == pytest.approx(share)
    nodes = [i for i, kind in enumerate(columns["bar_kind"]) if kind == 0]
    bars = sorted((columns["bar_item"][i], columns["bar_start"][i], columns["bar_duration"][i]) for i in nodes)
    assert bars == [
        (cn, begin, end - begin)
        for cn, (begin, end) in enumerate(
            zip(schedule["schedule.start_cycles"], schedule["schedule.end_cycles"], strict=True)
        )
    ]
    energy = sum(columns["energy_values"][int(place)] for place in columns["node_energy"])
    assert energy == pytest.approx(summary["energy"]["on_core_pj"])
    assert columns["piece_bits"] == schedule["graph.piece_bits"]
    assert [page["causes"][int(c)] for c in columns["transfer_cause"]].count("off_chip_fetch") == (
        summary["energy"]["causes"]["off_chip_fetch"]["transfers"]
    )


def test_the_trace(folder: Path, summary: dict[str, Any], schedule: dict[str, Any]) -> None:
    """The trace has the slices, the bits by cause, and the peaks of the memories of the run."""
    trace = json.loads((folder / "report" / "trace.json").read_text())
    assert trace["otherData"]["latency_cycles"] == summary["latency_cycles"]
    assert trace["otherData"]["energy_pj"] == pytest.approx(summary["energy_pj"])
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    nodes = {event["args"]["cn"]: (event["ts"], event["dur"]) for event in slices if event["cat"] == "cn"}
    starts, ends = schedule["schedule.start_cycles"], schedule["schedule.end_cycles"]
    assert nodes == {cn: (starts[cn], ends[cn] - starts[cn]) for cn in range(len(starts))}
    energy = sum(event["args"]["energy_pj"] for event in slices if event["cat"] == "cn")
    assert energy == pytest.approx(summary["energy"]["on_core_pj"])
    bits: dict[str, int] = defaultdict(int)
    for args in {event["args"]["transfer"]: event["args"] for event in slices if event["cat"] == "transfer"}.values():
        bits[args["cause"]] += args["bits"] * len(args["to"])
    for cause, row in summary["energy"]["causes"].items():
        if cause != "off_chip_stream":
            assert bits[cause] == row["bits"], cause
    peaks: dict[str, int] = defaultdict(int)
    for event in trace["traceEvents"]:
        if event["ph"] == "C":
            peaks[event["name"]] = max(peaks[event["name"]], event["args"]["bits"])
    assert {row["name"]: row["peak_bits"] for row in summary["memories"][:-1] if row["peak_bits"]} == dict(peaks)


def test_the_table_of_layers(folder: Path, summary: dict[str, Any], schedule: dict[str, Any]) -> None:
    """Cycles, energy and nodes of the layers add up to those of the run, and times are those of their nodes."""
    with (folder / "report" / "layers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["cn_count"]) for row in rows) == summary["cn_count"]
    assert sum(int(row["busy_cycles"]) for row in rows) == sum(row["busy_cycles"] for row in summary["cores"])
    assert sum(float(row["on_core_energy_pj"]) for row in rows) == pytest.approx(summary["energy"]["on_core_pj"])
    for number, row in enumerate(rows):
        cns = [cn for cn, layer in enumerate(schedule["graph.layer"]) if layer == number]
        assert int(row["first_start_cycles"]) == min(schedule["schedule.start_cycles"][cn] for cn in cns)
        assert int(row["last_end_cycles"]) == max(schedule["schedule.end_cycles"][cn] for cn in cns)


def test_the_pareto_front_and_the_generations(folder: Path, summary: dict[str, Any]) -> None:
    """The chosen row of the front is the run, EDP is energy times latency, and the best latency never rises."""
    with (folder / "pareto.csv").open() as file:
        front = list(csv.DictReader(file))
    (chosen,) = [row for row in front if row["is_chosen"].lower() in ("true", "1")]
    assert float(chosen["energy_pj"]) == pytest.approx(summary["energy_pj"])
    assert int(chosen["latency_cycles"]) == summary["latency_cycles"]
    for row in front:
        assert float(row["edp"]) == pytest.approx(float(row["latency_cycles"]) * float(row["energy_pj"]))
    points = [(int(row["latency_cycles"]), float(row["energy_pj"])) for row in front]
    assert all(not (a[0] <= b[0] and a[1] <= b[1]) for a in points for b in points if a != b)
    with (folder / "generations.csv").open() as file:
        best = [int(row["best_latency_cycles"]) for row in csv.DictReader(file)]
    assert best == sorted(best, reverse=True)
    assert best[-1] == summary["latency_cycles"]
