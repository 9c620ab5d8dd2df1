"""CN graphs of random small networks under random tilings, against enumeration of elements."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import ORDERING, CnGraph
from tilewright.multicore.nodes.tiling import Tiling, counted_loops, layer_tiling
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload

from tests.members import members
from tests.unit.multicore.nodes.brute_force import brute_force
from tests.unit.multicore.nodes.networks import content_box
from tests.unit.workload.onnx.graph_builder import GraphBuilder
from tests.unit.workload.onnx.random_graphs import one_operator, random_graph
from tests.unit.workload.onnx.random_operators import FAMILIES

_FIXED = settings(
    derandomize=True, deadline=None, database=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck)
)


def tiled(workload: Workload, counts: Mapping[str, list[tuple[str, int]]] | None = None) -> Tiling:
    """Every layer cut as `counts` says by layer name, innermost loop first; one stack, one group a layer."""
    layers = []
    for node in workload.nodes:
        if node.layer is not None:
            loops, _ = counted_loops(node.layer, (counts or {}).get(node.name, []))
            layers.append(layer_tiling(node.node_id, loops, [False] * len(loops)))
    return Tiling(tuple(layers), (tuple(layer.node_id for layer in layers),))


@st.composite
def random_tiling(draw: st.DrawFn, workload: Workload) -> Tiling:
    """Random tiling in which each layer is a stack and one group.

    A layer has up to three loops over random dimensions, also two over one dimension. Tile counts may not divide.
    """
    layers = []
    for node in workload.nodes:
        if node.layer is None:
            continue
        long = [dimension for dimension, size in node.layer.loop_sizes if size > 1]
        names = draw(st.lists(st.sampled_from(long), max_size=3)) if long else []
        counts = [(name, draw(st.integers(2, 5))) for name in names]
        loops, _ = counted_loops(node.layer, counts)
        layers.append(layer_tiling(node.node_id, loops, [False] * len(loops)))
    return Tiling(tuple(layers), tuple((layer.node_id,) for layer in layers))


def assert_equals_enumeration(workload: Workload, tiling: Tiling) -> CnGraph:
    """The graph has the edges, elements, reads and ranges of the enumeration; a link that is marked inexact may have
    more.
    """
    graph = build_cn_graph(workload, tiling)
    expected = brute_force(workload, tiling)
    for layer, ranges in zip(graph.layers, expected.ranges, strict=True):
        assert layer.cn_count == len(ranges)
        for dimension, _ in layer.loop_sizes:
            pairs = np.stack(layer.grid.ranges(dimension), axis=1).tolist()
            assert pairs == [list(box[dimension]) for box in ranges]
    bits = {link.tensor: workload.tensor_of[link.tensor].bits for link in graph.links}
    exact = {(link.producer, link.consumer, link.operand): link.is_exact for link in graph.links}
    tensor_of_link = {(link.producer, link.consumer, link.operand): link.tensor for link in graph.links}
    found = {}
    for source, target, operand, volume in zip(
        graph.edge_source.tolist(),
        graph.edge_target.tolist(),
        graph.edge_operand,
        graph.edge_bits.tolist(),
        strict=True,
    ):
        if operand != ORDERING:
            name = graph.operands[operand]
            link = (int(graph.cn_layer[source]), int(graph.cn_layer[target]), name)
            assert (source, target, name) not in found
            assert 0 < volume <= graph.output_bits[source]
            found[source, target, name] = volume // bits[tensor_of_link[link]], exact[link]
    for key, elements in expected.edges.items():
        assert key in found, f"edge {key} is missing"
        assert found[key][0] >= elements
    for key, (elements, is_exact) in found.items():
        if is_exact:
            assert elements == expected.edges.get(key, 0), f"edge {key}"
    assert_reads(graph, expected.reads)
    for name, column, elements_of in (
        ("made", graph.output_bits, expected.made),
        ("leaving", graph.network_output_bits, expected.leaving),
    ):
        for cn in range(graph.cn_count):
            tensor = graph.layers[graph.cn_layer[cn]].outputs[0]
            expected_bits = elements_of.get(cn, 0) * workload.tensor_of[tensor].bits
            assert column[cn] == expected_bits if name == "made" else column[cn] >= expected_bits
    return graph


def assert_reads(graph: CnGraph, expected: Mapping[tuple[int, str], set[int]]) -> None:
    """The contents that CNs read from outside hold all elements that the CNs need."""
    boxes: dict[tuple[int, str], set[int]] = {}
    for cn, content in zip(graph.read_cn.tolist(), graph.read_content.tolist(), strict=True):
        source = graph.sources[graph.content_source[content]]
        box = content_box(graph, content)
        volume = int(np.prod(box[:, 1] - box[:, 0]))
        assert graph.content_bits[content] == volume * source.bits
        whole = np.arange(int(np.prod(source.shape))).reshape(source.shape)
        part = whole[tuple(slice(low, high) for low, high in box.tolist())]
        assert part.size == volume
        boxes.setdefault((cn, source.name), set()).update(part.ravel().tolist())
    for key, elements in expected.items():
        assert not elements or elements <= boxes[key]


@settings(_FIXED, max_examples=members(150, 60))
@given(st.data())
def test_random_graphs_equal_enumeration(data: st.DataObject) -> None:
    """Graphs of two to four operators of all families, in chains and branches with random cuts, equal the
    enumeration.
    """
    graph = data.draw(random_graph())
    note(repr(graph))
    assume(graph.nodes)
    workload = parse_workload(graph.model(), "corrected")
    assert_equals_enumeration(workload, data.draw(random_tiling(workload)))


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ("shape",)])
def test_pairs_of_one_operator_equal_enumeration(family: str) -> None:
    """Graphs with an operator of each family between two layers that are cut into lines and columns equal the
    enumeration.
    """

    @settings(_FIXED, max_examples=15)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        graph: GraphBuilder = data.draw(one_operator(family))
        for name in [name for name in graph.tensors if name.startswith("t") and len(graph.tensors[name])]:
            graph.add("Relu", [name], graph.tensors[name])
        note(repr(graph))
        assume(graph.nodes)
        workload = parse_workload(graph.model(), "corrected")
        assert_equals_enumeration(workload, data.draw(random_tiling(workload)))

    check()
