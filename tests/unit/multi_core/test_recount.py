"""Every number of finished runs, recounted from their logs, tables and descriptions (`recount`)."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.multicore.nodes.graph import CnGraph, read_cn_graph
from tilewright.multicore.nodes.tiling import Tiling
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload

from tests.unit.multi_core.recount import recount
from tests.unit.multi_core.runs import (
    BUS,
    DUO,
    MIXED,
    PIPE,
    ROW,
    attention,
    branches,
    chain,
    run,
    write_accelerator,
    write_mapping,
)
from tests.unit.multicore.nodes.brute_force import brute_force

LINES = ["--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]']
CHANNELS = ["--cn-define-mode", "1", "--hint-loops", '[["C", 2], ["OY", 4]]']
WHOLE = ["--mode", "lbl", "--cn-define-mode", "1"]
PARTS = {"name": "default", "intra_core_tiling": ["OY, all"], "inter_core_tiling": ["K, 2"]}
CASES: dict[str, tuple[Callable[[Path], Path], Any, list[str], list[str]]] = {
    "lines": (chain, DUO, LINES, ["--operands-to-prefetch", '["W"]']),
    "stream-2023": (chain, DUO, LINES, ["--schedule-model", "stream-2023", "--cn-runtime", "total2"]),
    "branches": (branches, MIXED, LINES, ["--scheduler-candidate-selection", "memory"]),
    "partial sums": (branches, MIXED, CHANNELS, ["--cn-runtime", "total2", "--share-divisor", "1"]),
    "attention": (
        attention,
        MIXED,
        ["--cn-define-mode", "1", "--hint-loops", '[["D", 2]]'],
        ["--cn-runtime", "total0"],
    ),
    "layer by layer": (branches, MIXED, WHOLE, []),
    "memories between cores": (chain, PIPE, LINES, []),
    "parts on a bus": (chain, BUS, [], ["--scheduler-candidate-selection", "memory"]),
    "forwarding on a row": (chain, ROW | {"multicast": False, "forwarding": True}, [], []),
    "parts on a row with multicast": (chain, ROW, [], ["--operands-to-prefetch", '["W"]']),
}


Run = tuple[Path, Path, Workload]
"""Tuple (folder of a run, its accelerator, its network)."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Return a function that makes the run of a case at its first call."""

    @cache
    def of_case(name: str) -> Run:
        network, accelerator, tiling, schedule = CASES[name]
        folder = tmp_path_factory.mktemp("run")
        hardware = write_accelerator(folder / "hardware", accelerator)
        model = network(folder)
        mapping = write_mapping(folder, *([] if tiling else [PARTS]))
        run(folder / "run", hardware, model, mapping, tiling, schedule=schedule)
        return folder / "run", hardware, parse_workload(model, "corrected")

    return of_case


@pytest.mark.parametrize("case", CASES)
def test_all_numbers_follow_from_the_logs(case: str, finished: Callable[[str], Run]) -> None:
    """Energies, use of cores and links, peaks, gaps, work, traffic and edges follow from the logs."""
    assert recount(*finished(case)) == []


def test_all_causes_of_movement_are_reached(finished: Callable[[str], Run]) -> None:
    """The cases together have transfers for every cause, broadcasts, and partial sums."""
    moved: dict[str, int] = {}
    folders = [finished(case)[0] for case in CASES]
    for folder in folders:
        causes = json.loads((folder / "summary.json").read_text())["payload"]["energy"]["causes"]
        moved |= {name: moved.get(name, 0) + row["transfers"] for name, row in causes.items()}
    assert all(moved.values()), moved
    columns = [dict(np.load(folder / "schedule.npz")) for folder in folders]
    assert any((found["schedule.transfers.broadcast_of"] >= 0).any() for found in columns)
    assert any(b'"partial_sum"' in found["description"].tobytes() for found in columns)


@pytest.mark.parametrize("case", ["lines", "branches", "attention"])
def test_edges_are_those_of_single_elements(case: str, finished: Callable[[str], Run]) -> None:
    """Edges between computation nodes have the bits of a count element by element, or at least as many for boxes."""
    folder, _, workload = finished(case)
    graph = read_cn_graph(folder / "cn_graph.json", folder / "cn_graph.npz")
    elements = brute_force(workload, Tiling(tuple(layer.tiling for layer in graph.layers), graph.stacks)).edges
    is_exact = {(link.producer, link.consumer): link.is_exact for link in graph.links}
    names = ("edge_source", "edge_target", "edge_operand", "edge_bits")
    found = {
        (source, target, graph.operands[operand]): bits
        for source, target, operand, bits in zip(*(getattr(graph, name).tolist() for name in names), strict=True)
        if operand >= 0
    }
    assert found.keys() == elements.keys()
    for (source, target, operand), bits in found.items():
        layer = graph.cn_layer[source]
        wanted = elements[source, target, operand] * _element_bits(workload, graph, layer)
        assert bits == wanted if is_exact[layer, graph.cn_layer[target]] else bits >= wanted


def _element_bits(workload: Workload, graph: CnGraph, layer: int) -> int:
    return workload.tensor_of[graph.layers[layer].outputs[0]].bits


@pytest.mark.parametrize(
    ("path", "change", "word"),
    [
        (("energy", "causes", "sink_output", "link_pj"), 1.01, "link energy of sink_output"),
        (("energy", "causes", "off_chip_fetch", "bits"), 2, "bits of off_chip_fetch"),
        (("energy", "on_core_pj"), 1.01, "on-core energy"),
        (("memories", 0, "peak_bits"), 0.5, "peak of"),
        (("cores", 1, "array_utilisation"), 1.01, "use of array"),
        (("edp_pj_cycles",), 1.01, "EDP"),
        (("gap_latency",), 0.9, "gap_latency"),
    ],
)
def test_a_wrong_number_is_found(
    path: tuple[str | int, ...], change: float, word: str, finished: Callable[[str], Run], tmp_path: Path
) -> None:
    """The recount finds a wrong number in a summary."""
    folder, hardware, workload = finished("lines")
    shutil.copytree(folder, tmp_path / "run")
    summary = json.loads((folder / "summary.json").read_text())
    place = summary["payload"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] *= change
    (tmp_path / "run" / "summary.json").write_text(json.dumps(summary))
    assert any(word in fault for fault in recount(tmp_path / "run", hardware, workload))
