"""Tensors of networks that are lists of layers: edges by brute force, and rules for unequal shapes."""

from typing import Any

import numpy as np
import pytest
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import ORDERING
from tilewright.multicore.nodes.tiling import HintLoopOptions, hint_loop_tiling
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload
from tilewright.workload.yaml_reader import read_workload_yaml
from tilewright.workload.yaml_tensors import RESHAPE, with_tensors

from tests.unit.multicore.nodes.brute_force import brute_force
from tests.unit.workload.dependency_tables import influences

PRECISION = {"W": 8, "I": 8, "O": 16, "O_final": 8}
WINDOW = ["ix=1*ox+1*fx", "iy=1*oy+1*fy"]


def layer(number: int, kind: str, sizes: dict[str, int], sources: dict[str, int], **more: Any) -> dict[str, Any]:
    """A layer; `kind` is a key of EQUATIONS."""
    equation, relations, operator_type = EQUATIONS[kind]
    entry = {
        "id": number,
        "name": f"L{number}",
        "operator_type": operator_type,
        "equation": equation,
        "dimension_relations": relations,
        "loop_dims": list(sizes),
        "loop_sizes": list(sizes.values()),
        "operand_precision": PRECISION,
        "operand_source": sources,
    }
    return {**entry, **more}


EQUATIONS = {
    "conv": ("O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]", WINDOW, "Conv"),
    "strided": ("O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]", ["ix=2*ox+1*fx", "iy=2*oy+1*fy"], "Conv"),
    "point": ("O[b][k][oy][ox]+=W[k][c]*I[b][c][oy][ox]", [], "Conv"),
    "grouped": ("O[b][g][k][oy][ox]+=W[g][k][c]*I[b][g][c][oy][ox]", [], "Conv"),
    "pool": ("O[b][g][oy][ox]+=W[fy][fx]*I[b][g][iy][ix]", ["ix=2*ox+1*fx", "iy=2*oy+1*fy"], "Pooling"),
    "add": ("O[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g][oy][ox]", [], "Add"),
    "gemm": ("O[b][k]+=W[k][c]*I[b][c]", [], "Gemm"),
}
SAME = {"pr_loop_dims": ["IY", "IX"], "padding": [[1, 1], [1, 1]]}


def conv_sizes(k: int, c: int, oy: int, ox: int, fy: int = 3, fx: int = 3) -> dict[str, int]:
    """Loop sizes of a convolution of one image."""
    return {"B": 1, "K": k, "C": c, "OY": oy, "OX": ox, "FY": fy, "FX": fx}


LINES = [
    layer(0, "conv", conv_sizes(4, 1, 6, 5, 5, 5), {"W": 0, "I": 0}, pr_loop_dims=["IY", "IX"], padding=[[2, 2]] * 2),
    layer(1, "point", {"B": 1, "K": 2, "C": 4, "OY": 6, "OX": 5}, {"W": 1, "I": 0}),
    layer(2, "conv", conv_sizes(2, 2, 6, 5), {"W": 2, "I": 1}, **SAME, pr_loop_sizes=[6, 5]),
    layer(3, "conv", conv_sizes(3, 2, 6, 5), {"W": 3, "I": 2}, **SAME),
]
"""Convolutions at one resolution, one of them without windows."""
PIXELS = [
    layer(0, "conv", conv_sizes(2, 4, 4, 4, 1, 1), {"W": 0, "I": 0}),
    layer(1, "conv", conv_sizes(2, 2, 4, 4), {"W": 1, "I": 0}, **SAME),
    layer(2, "conv", conv_sizes(4, 2, 4, 4, 1, 1), {"W": 2, "I": 1}),
]
"""1x1, 3x3 and 1x1 convolutions."""
RESIDUAL = [
    layer(0, "strided", conv_sizes(4, 1, 8, 8), {"W": 0, "I": 0}, **SAME),
    layer(1, "pool", {"B": 1, "G": 4, "OY": 4, "OX": 4, "FY": 3, "FX": 3}, {"W": 1, "I": 0}, **SAME),
    layer(2, "conv", conv_sizes(4, 4, 4, 4), {"W": 2, "I": 1}, **SAME),
    layer(3, "add", {"B": 1, "G": 4, "OY": 4, "OX": 4}, {"W": 1, "I": 2}),
    layer(4, "grouped", {"B": 1, "G": 2, "K": 3, "C": 2, "OY": 4, "OX": 4}, {"W": 4, "I": 3}),
    layer(5, "point", {"B": 1, "K": 2, "C": 6, "OY": 4, "OX": 4}, {"W": 5, "I": 4}),
    layer(6, "gemm", {"B": 1, "K": 5, "C": 32}, {"W": 6, "I": 5}),
]
"""Stride, pooling, addition of two producers, groups, and a fully connected layer after an image."""


def network(entries: list[dict[str, Any]], notices: list[str] | None = None) -> Workload:
    """A network with tensors."""
    return with_tensors(read_workload_yaml(entries), notices)


@pytest.mark.parametrize(
    ("entries", "hint_loops"),
    [
        (LINES, [("OY", "all")]),
        (LINES, [("K", 2), ("OY", 4)]),
        (PIXELS, [("OX", 2), ("OY", "all")]),
        (RESIDUAL, [("OY", "all")]),
        (RESIDUAL, [("G", 2), ("OX", 2), ("OY", 3)]),
    ],
)
def test_edges_are_those_of_brute_force(entries: list[dict[str, Any]], hint_loops: list[tuple[str, Any]]) -> None:
    """The edges between CNs and their bits equal those of brute force over elements, and no notice is given."""
    notices: list[str] = []
    workload = network(entries, notices)
    tiling = hint_loop_tiling(workload, HintLoopOptions(hint_loops=hint_loops))
    graph = build_cn_graph(workload, tiling)
    expected = brute_force(workload, tiling)
    data = graph.edge_operand != ORDERING
    columns = (graph.edge_source, graph.edge_target, graph.edge_operand, graph.edge_bits)
    found = {
        (source, target, graph.operands[operand]): bits
        for source, target, operand, bits in zip(*(column[data].tolist() for column in columns), strict=True)
    }
    assert found == {key: 8 * count for key, count in expected.edges.items()}
    assert notices == []
    # Behind a reshape the box around what a tile needs may hold more than it needs; not so here.
    assert all(link.is_exact for link in graph.links)


def test_names_of_what_comes_and_goes() -> None:
    """Inputs are the tensors called I that no layer makes, weights are constants, and outputs are read by no layer."""
    workload = network(RESIDUAL)
    assert workload.inputs == ("L0.I",)
    assert workload.outputs == ("L6.O",)
    constants = [tensor.name for tensor in workload.tensors if tensor.is_constant]
    assert constants == ["L0.W", "L1.W", "L2.W", "L4.W", "L5.W", "L6.W"]
    assert workload.tensor_of["L0.I"].shape == (1, 1, 15, 15)
    assert workload.tensor_of["L4.O"].shape == (1, 6, 4, 4)
    assert {workload.tensor_of[name].bits for name in ("L0.O", "L6.O", "L2.W")} == {8}


def test_weights_without_bits_are_no_tensor() -> None:
    """Pooling has weights of 0 bits in this format, which make no tensor."""
    entries = [LINES[0], {**RESIDUAL[1], "loop_sizes": [1, 4, 3, 2, 2, 2], "operand_precision": {**PRECISION, "W": 0}}]
    entries[1].pop("padding")
    entries[1].pop("pr_loop_dims")
    workload = network(entries)
    assert [tensor.name for tensor in workload.tensors] == ["L0.W", "L0.I", "L0.O", "L1.O"]
    assert workload.nodes[1].inputs == ("L0.O",)


def test_layers_and_their_order_stay() -> None:
    """Nodes for reshapes are added; layers, sources and the order of execution are those of the file."""
    plain = read_workload_yaml(RESIDUAL)
    workload = network(RESIDUAL)
    layers = [node for node in workload.nodes if node.layer is not None]
    assert [(node.node_id, node.layer, node.sources) for node in layers] == [
        (node.node_id, node.layer, node.sources) for node in plain.nodes
    ]
    assert [node.name for node in workload.layers_in_order] == [node.name for node in plain.layers_in_order]
    assert [node.operator_type for node in workload.nodes if node.layer is None] == [RESHAPE]
    assert with_tensors(workload) is workload


def needed(workload: Workload, consumer: str) -> np.ndarray:
    """[output element of a layer, output element of the layer before the last] dependency, through reshapes."""
    by_name = {node.name: node for node in workload.nodes}
    node = by_name[consumer]
    tensors = workload.tensor_of
    maps = [index_map for index_map in node.index_maps if index_map.operand == "I"]
    source = maps[0].input.tensor
    table = influences(maps, tensors[node.outputs[0]].shape, tensors[source].shape)
    if f"{source}.{RESHAPE}" in by_name:
        reshape = by_name[f"{source}.{RESHAPE}"]
        behind = influences(reshape.index_maps, tensors[source].shape, tensors[reshape.inputs[0]].shape)
        table = (table.astype(int) @ behind.astype(int)) > 0
    return table


def test_another_shape_of_as_many_elements_is_a_reshape() -> None:
    """2 x 4 x 3 elements that are read as 24 channels are a reshape: element n is element n."""
    producer = layer(0, "point", {"B": 1, "K": 2, "C": 1, "OY": 4, "OX": 3}, {"W": 0, "I": 0})
    workload = network([producer, layer(1, "gemm", {"B": 1, "K": 2, "C": 24}, {"W": 1, "I": 0})])
    (reshape,) = (node for node in workload.nodes if node.layer is None)
    table = influences(reshape.index_maps, (1, 24), (1, 2, 4, 3))
    assert np.array_equal(table, np.eye(24, dtype=bool))
    assert needed(workload, "L1").all()


def test_an_axis_of_one_is_repeated() -> None:
    """A 1 x 1 image added to a 3 x 2 one is repeated: each element needs the element of its channel."""
    entries = [
        layer(0, "point", {"B": 1, "K": 2, "C": 1, "OY": 1, "OX": 1}, {"W": 0, "I": 0}),
        layer(1, "add", {"B": 1, "G": 2, "OY": 3, "OX": 2}, {"W": 1, "I": 0}),
    ]
    table = needed(network(entries), "L1").reshape(2, 6, 2)
    assert np.array_equal(table, np.repeat(np.eye(2, dtype=bool)[:, None], 6, axis=1))


@pytest.mark.parametrize(
    ("step", "size", "true_padding"),
    [(1, 6, (1, 1)), (1, 6, (0, 2)), (2, 11, (1, 1)), (2, 12, (1, 1)), (2, 12, (1, 0))],
)
def test_padding_that_is_not_given_makes_a_superset(step: int, size: int, true_padding: tuple[int, int]) -> None:
    """The rows that a window may need include the rows of any padding if no padding is given.

    A notice names both layers.
    """
    kind = "conv" if step == 1 else "strided"
    entries = [
        layer(0, "point", {"B": 1, "K": 1, "C": 1, "OY": size, "OX": 1}, {"W": 0, "I": 0}),
        layer(1, kind, conv_sizes(1, 1, 6, 1, 3, 1), {"W": 1, "I": 0}),
    ]
    notices: list[str] = []
    assumed = needed(network(entries, notices), "L1")
    padding = {"pr_loop_dims": ["IY", "IX"], "padding": [list(true_padding), [0, 0]]}
    true = needed(network([entries[0], {**entries[1], **padding}]), "L1")
    assert np.all(assumed | ~true)
    assert not assumed.all()
    assert len(notices) == 1
    assert "L1.I" in notices[0]
    assert "made by L0" in notices[0]


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [({"B": 1, "K": 1, "C": 2, "OY": 3, "OX": 4}, "axis"), ({"B": 1, "K": 1, "C": 4, "OY": 4, "OX": 4}, "axis")],
)
def test_axes_that_differ_are_needed_whole(sizes: dict[str, int], rows: str) -> None:
    """An axis that is read with another size (3 rows of 4) may be needed in full; the other axes stay exact."""
    notices: list[str] = []
    producer = layer(0, "point", {"B": 1, "K": 2, "C": 1, "OY": 4, "OX": 4}, {"W": 0, "I": 0})
    workload = network([producer, layer(1, "point", sizes, {"W": 1, "I": 0})], notices)
    table = needed(workload, "L1").reshape(sizes["OY"], 4, 2, 4, 4)
    differs = sizes["OY"] != 4
    for row, column in np.ndindex(sizes["OY"], 4):
        expected = np.zeros((2, 4, 4), bool)
        expected[:, slice(None) if differs else row, column] = True
        assert np.array_equal(table[row, column], expected)
    assert rows in notices[0]
    assert not workload.nodes[1].index_maps[1].is_exact


def test_unlike_numbers_of_axes_need_everything() -> None:
    """An operand of 5 x 3 elements that reads an image of 2 x 4 x 4 elements needs the whole image, with a notice."""
    notices: list[str] = []
    producer = layer(0, "point", {"B": 1, "K": 2, "C": 1, "OY": 4, "OX": 4}, {"W": 0, "I": 0})
    workload = network([producer, layer(1, "gemm", {"B": 5, "K": 1, "C": 3}, {"W": 1, "I": 0})], notices)
    assert needed(workload, "L1").all()
    assert notices == [
        "L1.I (5 x 3) is made by L0 (1 x 2 x 4 x 4): shapes differ, so a result can need the whole tensor"
    ]


def test_the_profile_decides() -> None:
    """The profile that models every operator is the only one that gives tensors to the layers of a file."""
    assert not parse_workload(LINES).tensors
    assert parse_workload(LINES, "corrected") == network(LINES) != parse_workload(LINES)
