"""A system of one core: each layer has the figures of the flow for a single core."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.multi_core.runs import (
    branches,
    chain,
    core,
    done,
    off_chip,
    ports,
    run,
    write_accelerator,
    write_mapping,
)

WHOLE = ["--mode", "lbl", "--cn-define-mode", "1"]
SEARCH = ["--model", "corrected", "--lpf-limit", "4", "--no-store"]


def one_core(weight_bytes: int) -> dict[str, Any]:
    """Return eight multipliers with registers for outputs, a memory for weights and one for the other operands."""
    described = core("own", 8, "8 KiB")
    whole = described["memories"].pop("memory")
    registers = {
        **{"operands": ["O"], "size": "2 B", "r_cost": 0.1, "w_cost": 0.2, "area": 0, "latency": 1},
        **{"served_dimensions": [], "ports": _of(ports(16, 16), "O")},
    }
    described["memories"] = {
        "registers": registers,
        "weights": whole | {"operands": ["I2"], "size": f"{weight_bytes} B", "ports": _of(whole["ports"], "I2")},
        "rest": whole | {"operands": ["I1", "O"], "ports": _of(whole["ports"], "I1", "O")},
    }
    return described


def _of(given: list[dict[str, Any]], *operands: str) -> list[dict[str, Any]]:
    """Return ports with only the accesses of some operands."""
    return [
        port | {"allocation": [pair for pair in port["allocation"] if pair.split(",")[0] in operands]} for port in given
    ]


def single_flow(
    folder: Path, described: dict[str, Any], network: Path, mapping: Path, objective: str
) -> dict[str, Any]:
    """Return name of a layer -> its record by `tilewright map`."""
    folder.mkdir()
    (folder / "core.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
    files = ["--hardware", str(folder / "core.yaml"), "--workload", str(network), "--mapping", str(mapping)]
    done(["map", *files, "--preset", "zigzag", *SEARCH, "--objective", objective, "-o", str(folder)])
    rows = [json.loads(line) for line in (folder / "layers.jsonl").read_text().splitlines()[1:]]
    return {name: row for row in rows for name in row.get("layer_names", ())}


def rows_of(folder: Path) -> dict[str, Any]:
    """Return name of a layer -> row of its only computation node in the cost table."""
    names = [layer["name"] for layer in json.loads((folder / "cn_graph.json").read_text())["payload"]["layers"]]
    rows = [json.loads(line) for line in (folder / "cost" / "own.jsonl").read_text().splitlines()[1:]]
    return {names[number]: row for row in rows for number in row.get("layers", ())}


@pytest.mark.parametrize("objective", ["latency", "energy"])
def test_layers_that_fit_cost_the_same(objective: str, tmp_path: Path) -> None:
    """Each layer that fits has the cycles and energy of the single-core flow, and the schedule has their sums."""
    described, network, mapping = one_core(2048), branches(tmp_path), write_mapping(tmp_path)
    hardware = write_accelerator(tmp_path / "hw", {"cores": {0: described}, "offchip": off_chip(), "links": []})
    runtime = ["--cn-runtime", "total2"]
    costs = [*SEARCH, "--objective", objective]
    summary = run(tmp_path / "run", hardware, network, mapping, WHOLE, costs, schedule=runtime)
    records = single_flow(tmp_path / "map", described, network, mapping, objective)
    rows = rows_of(tmp_path / "run")
    assert rows.keys() == records.keys()
    for name, row in rows.items():
        assert row["streams"] == []
        assert row["on_core_energy_pj"] == pytest.approx(records[name]["energy_pj"], rel=1e-12)
        assert row["total2_cycles"] == math.ceil(records[name]["latency_cycles"])
    assert summary["energy"]["on_core_pj"] == pytest.approx(sum(record["energy_pj"] for record in records.values()))
    busy = sum(math.ceil(record["latency_cycles"]) for record in records.values())
    assert summary["cores"][0]["busy_cycles"] == busy
    assert summary["latency_cycles"] > busy


def _rank(record: dict[str, Any]) -> tuple[float, ...]:
    """Return the cycles up to off-loading, which schedules count, then the energy."""
    parts = record["latency_breakdown_cycles"]
    return record["latency_cycles"] - parts["offloading"] - parts["drain"], record["energy_pj"]


def test_what_streams_costs_what_the_memory_above_it_does(tmp_path: Path) -> None:
    """Weights that stream cost as much as with a DRAM for weights and the best buffer.

    The weights have 144 bytes. The buffer is the best of 64, 32, 16, 8 and 4 bytes. On-core energy excludes the DRAM.
    """
    described, network, mapping = one_core(64), chain(tmp_path), write_mapping(tmp_path)
    outside = off_chip()
    hardware = write_accelerator(tmp_path / "hw", {"cores": {0: described}, "offchip": outside, "links": []})
    run(tmp_path / "run", hardware, network, mapping, WHOLE, SEARCH)
    dram = outside["memories"]["dram"]
    above = dram | {"operands": ["I2"], "ports": _of(dram["ports"], "I2")}
    flows = []
    for size in (64, 32, 16, 8, 4):  # the run tries smaller buffers too: they are full earlier
        whole = described | {"memories": one_core(size)["memories"] | {"dram": above}}
        flows.append(single_flow(tmp_path / f"map{size}", whole, network, mapping, "latency"))
    records = {name: min((flow[name] for flow in flows), key=_rank) for name in flows[0]}
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())["payload"]
    off_chip_pj = 0.0
    for name, row in rows_of(tmp_path / "run").items():
        assert [stream["operand"] for stream in row["streams"]] == ["I2"]
        top = records[name]["energy_breakdown_pj"]["W"][-1]
        assert records[name]["memory_levels"]["W"][-1] == "dram"
        off_chip_pj += sum(top.values())
        assert row["on_core_energy_pj"] == pytest.approx(records[name]["energy_pj"] - sum(top.values()), rel=1e-12)
        assert row["total2_cycles"] == math.ceil(records[name]["latency_cycles"])
    assert summary["energy"]["causes"]["off_chip_stream"]["memory_pj"] == pytest.approx(off_chip_pj)
