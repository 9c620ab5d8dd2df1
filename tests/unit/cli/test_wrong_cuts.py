"""Wrong cuts of layers, wrong additions of partial sums and wrong links: refused with their line and exit code 2."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from onnx.helper import make_node
from tilewright.cli.main import main

from tests.unit.multi_core.runs import core, off_chip, saved, write_accelerator

BUS = {"type": "bus", "cores": [0, 1, 2, 3], "bandwidth": 32, "energy_per_bit": "200 fJ"}
CUT = {"inter_core_tiling": ["C, 4"]}
Data = dict[str, Any]

# name: (keys of the entry of the product, line and path, parts of the message)
ENTRIES: dict[str, tuple[Data, str, list[str]]] = {
    "more parts than the loop has": (
        {"inter_core_tiling": ["K, 9"]},
        "map.yaml:4 y.inter_core_tiling[0]",
        ["more tiles than K has indices", "got 'K, 9'", "1 to 8"],
    ),
    "more tiles than the loop has": (
        {"intra_core_tiling": ["D, 5"]},
        "map.yaml:4 y.intra_core_tiling[0]",
        ["more tiles than D has indices", "1 to 4"],
    ),
    "more partial sums than the loop has": (
        {"inter_core_tiling": ["C, 65"], "reduction": {}},
        "map.yaml:4 y.inter_core_tiling[0]",
        ["more parts than C has indices", "1 to 64"],
    ),
    "a cut reduction without sums": (
        CUT,
        "map.yaml:4 y.inter_core_tiling[0]",
        ["a reduction cannot be split over cores without the key `reduction`", "got 'C, 4'", "D, K"],
    ),
    "no part": ({"inter_core_tiling": ["K, 0"]}, "map.yaml:4 y.inter_core_tiling[0]", ["must be at least 1"]),
    "a part of a part": ({"inter_core_tiling": ["K, 2.5"]}, "map.yaml:4 y.inter_core_tiling[0]", ["`K, *`"]),
    "a loop of no layer": ({"inter_core_tiling": ["Q, 2"]}, "map.yaml:4 y.inter_core_tiling[0]", ["C, D, K"]),
    "a core that does not exist": (
        CUT | {"reduction": {"core": 9}},
        "map.yaml:6 y.reduction.core",
        ["no core has this id", "got 9", "0, 1, 2, 3"],
    ),
    "the off-chip core": (
        CUT | {"reduction": {"core": 4}},
        "map.yaml:6 y.reduction.core",
        ["it is the off-chip core", "0, 1, 2, 3"],
    ),
    "a core that is no number": (
        CUT | {"reduction": {"core": "two"}},
        "map.yaml:6 y.reduction.core",
        ["must be a whole number"],
    ),
    "an unknown shape": (
        CUT | {"reduction": {"shape": "rnig"}},
        "map.yaml:6 y.reduction.shape",
        ["one_core, tree, ring", "did you mean 'ring'?"],
    ),
    "an unknown key": (
        CUT | {"reduction": {"shap": "ring"}},
        "map.yaml:6 y.reduction.shap",
        ["did you mean 'shape'?"],
    ),
    "no table": (CUT | {"reduction": True}, "map.yaml:5 y.reduction", ["must be a table of keys"]),
    "a ring around too few outputs": (
        {"inter_core_tiling": ["C, 16"], "reduction": {"shape": "ring"}},
        "map.yaml:6 y.reduction.shape",
        ["a ring of 16 parts needs an axis of the outputs of y with at least 16 indices", "one_core, tree"],
    ),
    "fewer fixed cores than parts": (
        CUT | {"reduction": {}, "core_allocation": [0, 1], "core_allocation_is_fixed": True},
        "map.yaml:6 y.core_allocation",
        ["fixes 2 cores, but y has 4 groups"],
    ),
    "a core twice": ({"core_allocation": [0, 0]}, "map.yaml:5 y.core_allocation[1]", ["named twice"]),
}

# name: (changes of the accelerator file, line and path, parts of the message)
SYSTEMS: dict[str, tuple[Data, str, list[str]]] = {
    "multicast on a directed link": (
        {
            "core_connectivity": [
                BUS,
                {"type": "link", "cores": [0, 4], "bandwidth": 8, "directed": True, "multicast": True},
                {"type": "link", "cores": [4, 0], "bandwidth": 8, "directed": True},
            ]
        },
        "core_connectivity[1].multicast",
        ["needs several receivers, but the link ends at core 4"],
    ),
    "a port at an unknown core": (
        {"offchip_ports": [{"cores": [0, 9]}]},
        "offchip_ports[0].cores[1]",
        ["no core has this id, got 9"],
    ),
    "a port without a link": ({"offchip_ports": [{"cores": []}]}, "offchip_ports[0].cores", ["at least 1"]),
    "no ports": ({"offchip_ports": []}, "offchip_ports", ["at least 1"]),
}


def files(folder: Path, changes: Data, types: tuple[str, ...] = ("all",)) -> tuple[Path, Path]:
    """Write a matrix product with an activation function, and four cores on a bus."""
    nodes = [make_node("MatMul", ["x", "w"], ["y"], name="y"), make_node("Relu", ["y"], ["z"], name="z")]
    network = saved(folder, nodes, {"x": (4, 64)}, {"w": np.ones((64, 8), np.float32)})
    cores = {number: core("lane", 4, "2 KiB", types) for number in range(4)}
    hardware = write_accelerator(folder / "hw", {"cores": cores, "offchip": off_chip(), "links": [BUS]})
    hardware.write_text(yaml.safe_dump(yaml.safe_load(hardware.read_text()) | changes, sort_keys=False))
    return network, hardware


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], entry: Data, changes: Data, *more: str) -> list[str]:
    """Return the lines of a refused `tilewright cns`."""
    types = ("mac",) if entry.pop("cores add", True) is False else ("all",)
    network, hardware = files(folder, changes, types)
    mapping = folder / "map.yaml"
    mapping.write_text(yaml.safe_dump([{"name": "default"}, {"name": "y", **entry}], sort_keys=False))
    given = ["--hardware", str(hardware), "--workload", str(network), "--mapping", str(mapping), *more]
    assert main(["cns", *given, "-o", str(folder / "out")]) == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("case", ENTRIES)
def test_wrong_cuts_are_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong cut is one message with file, line and path."""
    entry, place, parts = ENTRIES[case]
    (line,) = refusal(tmp_path, capsys, dict(entry), {})
    assert f"{place}: " in line
    assert all(part in line for part in parts), line


@pytest.mark.parametrize("case", SYSTEMS)
def test_wrong_links_are_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong link is one message with file, line and path."""
    changes, place, parts = SYSTEMS[case]
    (line,) = refusal(tmp_path, capsys, {}, changes)
    assert f" {place}: " in line
    assert "system.yaml:" in line
    assert all(part in line for part in parts), line


def test_sums_that_no_core_adds_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Additions and the activation function are both refused if no core can run them."""
    lines = refusal(tmp_path, capsys, {**CUT, "reduction": {}, "cores add": False}, {})
    assert [line for line in lines if "map.yaml:5 y.reduction: no core can add the partial sums of y" in line]
    assert [line for line in lines if "no core can run Relu z" in line]


def test_sums_of_nothing_are_told_and_refused_if_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`reduction` without a cut reduction has no effect, and --strict refuses it."""
    entry = {"inter_core_tiling": ["K, 2"], "reduction": {}}
    lines = refusal(tmp_path, capsys, entry, {}, "--strict")
    assert [line for line in lines if "map.yaml:5 y.reduction: has no effect" in line]
