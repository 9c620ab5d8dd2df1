"""Whole tensors and equal CNs of the model `stream-2023`: worked out by hand, and on a system with published
numbers.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import ORDERING, CnGraph
from tilewright.multicore.nodes.pieces import OUTSIDE, data_pieces
from tilewright.multicore.nodes.tiling import HintLoopOptions, hint_loop_tiling
from tilewright.multicore.scheduling.assembled import AssembledProblem
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import CostTable, NodeGraph, SchedulingProblem
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.peers.stream.whole_tiles import whole_tile_graph, whole_tile_problem
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload

from tests.unit.multicore.scheduling.tiny_systems import INPUT, WEIGHT, Link, Memory, make_system

PRECISION = {"W": 8, "I": 8, "O": 16, "O_final": 8}


def conv(number: int, source: int, sizes: tuple[int, ...], step: int = 1, padding: int = 0) -> dict[str, Any]:
    """A convolution with sizes (K, C, side, window)."""
    k, c, side, window = sizes
    return {
        "id": number,
        "name": f"L{number}",
        "operator_type": "Conv",
        "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
        "dimension_relations": [f"ix={step}*ox+1*fx", f"iy={step}*oy+1*fy"],
        "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
        "loop_sizes": [1, k, c, side, side, window, window],
        "operand_precision": PRECISION,
        "operand_source": {"W": number, "I": source},
        "pr_loop_dims": ["IY", "IX"],
        "padding": [[padding, padding]] * 2,
    }


def pool(number: int, source: int, channels: int, side: int) -> dict[str, Any]:
    """A pooling layer: the maximum of each 2 x 2 window."""
    return {
        **conv(number, source, (1, 1, side, 2), 2),
        "operator_type": "MaxPool",
        "equation": "O[b][k][oy][ox]+=W[fy][fx]*I[b][k][iy][ix]",
        "loop_dims": ["B", "K", "OY", "OX", "FY", "FX"],
        "loop_sizes": [1, channels, side, side, 2, 2],
        "operand_precision": {**PRECISION, "W": 0},
    }


def add(number: int, one: int, other: int, channels: int, side: int) -> dict[str, Any]:
    """A layer that adds two layers."""
    return {
        "id": number,
        "name": f"L{number}",
        "operator_type": "Add",
        "equation": "O[b][k][oy][ox]=W[b][k][oy][ox]+I[b][k][oy][ox]",
        "loop_dims": ["B", "K", "OY", "OX"],
        "loop_sizes": [1, channels, side, side],
        "operand_precision": PRECISION,
        "operand_source": {"W": one, "I": other},
    }


def graphs(entries: list[dict[str, Any]], **options: Any) -> tuple[Workload, CnGraph, CnGraph]:
    """(network, its CN graph, its graph in the model stream-2023)."""
    workload = parse_workload(entries, "corrected")
    graph = build_cn_graph(workload, hint_loop_tiling(workload, HintLoopOptions(**options)))
    return workload, graph, whole_tile_graph(workload, graph)


def assembled(workload: Workload, graph: CnGraph, cycles: list[int], core_of_layer: list[int]) -> AssembledProblem:
    """The problem on four cores that share a memory of 256 KB, with the given cycles for each layer on its core.

    The off-chip memory has a read port and a write port. Weights lie in separate memories.
    """
    pieces = data_pieces(workload, graph)
    operand = np.array([{"W": WEIGHT, "I": INPUT}[name] for name in graph.operands])
    elementwise = np.array([layer.operator_type == "Add" for layer in graph.layers])
    memory_operand = operand[pieces.need_operand]
    memory_operand[elementwise[graph.cn_layer[pieces.need_cn]]] = INPUT
    count = graph.cn_count
    ordering = graph.edge_operand == ORDERING
    nodes = NodeGraph(
        layer=graph.cn_layer.astype(np.int64),
        group=graph.group.astype(np.int64),
        stack=np.zeros(count, np.int64),
        cost_row=graph.cn_layer.astype(np.int64),
        piece_bits=pieces.bits,
        piece_producer=np.where(pieces.producer == OUTSIDE, -1, pieces.producer),
        piece_is_output=pieces.is_output & (pieces.producer != OUTSIDE),
        need_start=np.searchsorted(pieces.need_cn, np.arange(count + 1)),
        need_piece=pieces.need_piece,
        need_operand=memory_operand,
        order_start=np.searchsorted(graph.edge_target[ordering], np.arange(count + 1)),
        order_predecessor=graph.edge_source[ordering],
    )
    shared, weights, off_chip = 0, 1, 5
    memory_of_core = [[shared, weights + core, shared] for core in range(4)] + [[off_chip] * 3]
    memories = [Memory(2**21, 512), *(Memory(2**21, 512) for _ in range(4)), Memory(2**25, 128)]
    paths = {(4, core): [0] for core in range(4)} | {(core, 4): [1] for core in range(4)}
    system = make_system(memory_of_core, memories, [Link(128), Link(128)], paths)
    runtime = np.full((len(cycles), 5), -1, np.int64)
    runtime[np.arange(len(cycles)), core_of_layer] = cycles
    streams = np.zeros((len(cycles), 5, 3), np.int64)
    costs = CostTable(runtime, np.zeros(runtime.shape), streams, streams + 1, np.zeros_like(streams[:, 0], np.bool_))
    return AssembledProblem(SchedulingProblem(nodes, costs, system), None, pieces, None)  # type: ignore[arg-type]


def test_all_tiles_of_a_layer_are_one_class_in_one_chain() -> None:
    """3 x 3 windows on 4 x 4: all CNs of a layer are one class, though border lines read less. K in two tiles makes two
    groups.
    """
    _, graph, whole = graphs(
        [conv(0, 0, (2, 1, 4, 3), padding=1), conv(1, 0, (2, 2, 4, 3), padding=1)],
        hint_loops=[("K", 2), ("OY", "all")],
    )
    assert len(graph.shapes) > len(whole.shapes) == 2
    assert whole.shape.tolist() == [0] * 8 + [1] * 8
    assert [dict(shape.loop_sizes)["OY"] for shape in whole.shapes] == [1, 1]
    assert all(shape.padding == () for shape in whole.shapes)
    assert whole.group.tolist() == [0, 1] * 8
    chain = whole.edge_operand == ORDERING
    assert whole.edge_source[chain].tolist() == [*range(7), *range(8, 15)]
    assert whole.edge_target[chain].tolist() == [*range(1, 8), *range(9, 16)]


def test_edges_carry_whole_outputs() -> None:
    """Edges carry whole outputs: a CN makes 2 elements of 8 bits, and a neighbour that needs one of them gets
    16 bits.
    """
    _, graph, whole = graphs(
        [conv(0, 0, (2, 1, 4, 1)), conv(1, 0, (2, 2, 4, 3), padding=1)], hint_loops=[("OX", 2), ("OY", "all")]
    )
    data, same = graph.edge_operand != ORDERING, whole.edge_operand != ORDERING
    assert set(graph.edge_bits[data].tolist()) == {16, 32}
    assert set(whole.edge_bits[same].tolist()) == {32}
    assert np.array_equal(graph.edge_source[data], whole.edge_source[same])
    assert np.array_equal(graph.edge_target[data], whole.edge_target[same])


def test_tensors_of_inputs_have_halo_and_padding() -> None:
    """Tensors of inputs include halo and padding.

    Each line of a 3 x 3 convolution on 2 channels of 4 x 4 reads 3 lines of 6 pixels, 288 bits, also at borders. The
    pieces are four shared lines of 64 bits. The weights of 288 bits are one tensor.
    """
    workload, _, whole = graphs([conv(0, 0, (2, 2, 4, 3), padding=1)], hint_loops=[("OY", "all")])
    problem = assembled(workload, whole, [5], [0])
    found = whole_tile_problem(problem, workload, whole).problem.graph
    made = found.piece_producer >= 0
    assert found.piece_bits[made].tolist() == [64] * 4
    assert found.piece_is_output[made].all()
    assert sorted(found.piece_bits[~made].tolist()) == [288] * 5
    assert np.diff(found.need_start).tolist() == [2] * 4
    assert sorted(problem.pieces.bits[problem.pieces.producer == OUTSIDE].tolist()) == [64] * 4 + [288]
    assert set(found.need_operand.tolist()) == {WEIGHT, INPUT}


LINES_OF_TWO = [("OY", 2), ("OX", 5), ("FY", 3), ("FX", 3)]


def test_each_layer_costs_what_its_largest_tile_with_the_least_padding_does() -> None:
    """A layer has the costs of its largest tile with the least padding.

    Lines of 3 x 3 windows on 5 x 5 make tiles of 2, 2 and 1 lines. The second tile has no padding above.
    """
    workload, graph, _ = graphs([conv(0, 0, (1, 1, 5, 3), padding=1)], cn_define_mode=2, hint_loops=LINES_OF_TWO)
    problem = assembled(workload, graph, [5], [0])
    rows = replace(problem.problem.graph, cost_row=np.array([0, 1, 2]))
    costs = CostTable(*(np.repeat(getattr(problem.problem.costs, field.name), 3, 0) for field in fields(CostTable)))
    problem = replace(problem, problem=SchedulingProblem(rows, costs, problem.problem.system))
    assert graph.cn_count == 3
    assert whole_tile_problem(problem, workload, graph).problem.graph.cost_row.tolist() == [1, 1, 1]


def test_weights_are_one_tensor_for_each_part_of_the_channels() -> None:
    """K in two tiles makes two tensors of weights, each for four lines; both parts read the same inputs."""
    workload, _, whole = graphs([conv(0, 0, (2, 2, 4, 1))], hint_loops=[("K", 2), ("OY", "all")])
    found = whole_tile_problem(assembled(workload, whole, [5], [0]), workload, whole).problem.graph
    outside = found.piece_producer < 0
    assert sorted(found.piece_bits[outside].tolist()) == [16] * 2 + [64] * 4
    needs = np.bincount(found.need_piece, minlength=len(outside))[outside]
    assert sorted(needs.tolist()) == [2] * 4 + [4] * 2


RESNET_HEAD = [
    conv(0, 0, (64, 3, 112, 7), 2, 3),
    pool(1, 0, 64, 56),
    conv(2, 1, (64, 64, 56, 3), padding=1),
    conv(3, 2, (64, 64, 56, 3), padding=1),
    conv(4, 1, (64, 64, 56, 1)),
    add(5, 3, 4, 64, 56),
    conv(6, 5, (64, 64, 56, 3), padding=1),
    conv(7, 6, (64, 64, 56, 3), padding=1),
    add(8, 5, 7, 64, 56),
]
"""The published head of ResNet-18 on the DIANA chip: numbers of CNs and edges, and cycles of a CN."""
TILES = [[("K", 4), ("OX", 8), ("OY", 112)], [("OX", 4), ("OY", 56)], [("OY", 56)]]
CORES = [0, 2, 1, 1, 1, 3, 1, 1, 3]
"""The core of each layer: 0 digital, 1 analog, 2 pooling, 3 elementwise."""
TOTAL_2 = [152, 64, 2690, 2690, 898, 1794, 2690, 2690, 1794]


def test_the_published_latency_of_cores_that_share_a_memory() -> None:
    """4,200 CNs and 9,385 edges take the published 791,852 cycles, with weights fetched ahead and no eviction."""
    workload, _, whole = graphs(RESNET_HEAD, cn_define_mode=3, hint_loops=TILES, layer_cutoffs=(1, 2))
    assert (whole.cn_count, len(whole.edge_source)) == (4200, 9385)
    problem = whole_tile_problem(assembled(workload, whole, TOTAL_2, CORES), workload, whole).problem
    options = ScheduleOptions(
        schedule_model="stream-2023", scheduler_candidate_selection="memory", operands_to_prefetch=(WEIGHT,)
    )
    schedule = simulate(problem, np.array(CORES)[whole.cn_layer], options)
    assert schedule.latency_cycles == 791_852
    assert schedule.energy_terms_pj["eviction"].memory_pj == 0
