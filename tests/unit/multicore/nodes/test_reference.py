"""CNs and edges of the reference (Stream 70eb6751) on its small cases are equal, or differ by a named decision."""

import json
from pathlib import Path
from typing import Any

import pytest
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import ORDERING, CnGraph
from tilewright.multicore.nodes.stacks import layer_stacks
from tilewright.multicore.nodes.tiling import mapped_tiling
from tilewright.workload.source import parse_workload

from tests.unit.multicore.nodes.networks import cn_name

REFERENCE = Path(__file__).resolve().parents[4].parent / "shared" / "stream-reference"
CASES = sorted(path.stem for path in REFERENCE.glob("cases/*.json"))
pytestmark = pytest.mark.skipif(not CASES, reason="the reference cases are not on this machine")

DIFFERENT = {
    "c41_chain3x3_OY4_padded_PATCHED": "border tiles: 6 lines in 4 are 3 tiles of 2, not 8 lines in 4 tiles of 2",
}
"""Cases whose CNs differ from the reference -> the decision, by its name in
docs/peers.md#numbers-that-differ-from-stream.
"""
ELEMENTWISE = {"B": "B", "H": "K", "D": "OY", "K": "OX"}
"""The reference's names of the axes of a tensor with four axes -> names in tilewright."""


def reference_case(name: str) -> dict[str, Any]:
    """The recorded case of the reference."""
    return json.loads((REFERENCE / "cases" / f"{name}.json").read_text())  # type: ignore[no-any-return]


def our_graph(case: dict[str, Any]) -> CnGraph:
    """tilewright's graph of the same ONNX file, mapping file and mode."""
    workload = parse_workload(REFERENCE / case["wl"], "corrected")
    stacks = layer_stacks(workload, case["case"]["mode"], case["case"].get("stacks"))
    if case["case"]["mode"] == "fused" and case["case"].get("stacks") is None:
        # The reference fuses as many layers as the weights of its memories allow, which is all of them or one.
        stacks = tuple(tuple(stack) for stack in case["layer_stacks"])
    entry_of = parse_mapping(REFERENCE / case["mapping"]).constraints_of(workload)
    return build_cn_graph(workload, mapped_tiling(workload, entry_of, stacks))


@pytest.mark.parametrize("name", [name for name in CASES if name not in DIFFERENT])
def test_cns_and_edges_equal_the_reference(name: str) -> None:
    """Ids, loop ranges, groups and edges are equal. An edge carries the overlap, at most the whole tile."""
    case = reference_case(name)
    graph = our_graph(case)
    nodes = {node["id"]: node for node in case["nodes"]}
    assert [cn_name(graph, cn) for cn in range(graph.cn_count)] == sorted(nodes, key=_place)
    for number, layer in enumerate(graph.layers):
        for dimension, _ in layer.loop_sizes:
            first, end = layer.grid.ranges(dimension)
            for cn in range(layer.cn_count):
                node = nodes[f"{number}.{cn}"]
                ranges = node["loop_ranges"]
                if "H" in ranges:
                    ranges = {ELEMENTWISE[axis]: limits for axis, limits in ranges.items()}
                if node["type"] == "conv" or dimension in ranges:
                    assert ranges[dimension] == [first[cn], end[cn]]
                assert node["group"] == layer.grid.groups[cn]
    whole = {(edge["src"], edge["dst"]): edge["bits"] for edge in case["edges"]}
    ours = {}
    for source, target, operand, bits in zip(
        graph.edge_source, graph.edge_target, graph.edge_operand, graph.edge_bits, strict=True
    ):
        pair = cn_name(graph, int(source)), cn_name(graph, int(target))
        ours[pair] = int(bits)
        assert (operand == ORDERING) == (whole.get(pair, 0) == 0)
    assert ours.keys() == whole.keys()
    assert len(graph.edge_source) == len(case["edges"])
    assert all(bits <= whole[pair] for pair, bits in ours.items())


def test_every_difference_is_named() -> None:
    """Each case in the table of differences differs from the reference, and docs/peers.md names it and its reason."""
    document = (Path(__file__).resolve().parents[4] / "docs" / "peers.md").read_text()
    for name, reason in DIFFERENT.items():
        case = reference_case(name)
        graph = our_graph(case)
        assert (graph.cn_count, len(graph.edge_source)) != (len(case["nodes"]), len(case["edges"]))
        assert reason.split(":")[0] in document.lower()
        assert name.split("_")[0] in document


def test_border_tiles_instead_of_padding() -> None:
    """The reference's CNs and edges in case c41 equal ours, apart from those of its tile that is all padding."""
    case = reference_case("c41_chain3x3_OY4_padded_PATCHED")
    graph = our_graph(case)
    real = {node["id"] for node in case["nodes"] if node["loop_ranges"]["OY"][0] < 6}
    assert {cn_name(graph, cn) for cn in range(graph.cn_count)} == real
    pairs = {
        (cn_name(graph, int(a)), cn_name(graph, int(b)))
        for a, b in zip(graph.edge_source, graph.edge_target, strict=True)
    }
    assert pairs == {(edge["src"], edge["dst"]) for edge in case["edges"] if {edge["src"], edge["dst"]} <= real}
    assert (graph.cn_count, len(graph.edge_source)) == (6, 11)


def _place(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))
