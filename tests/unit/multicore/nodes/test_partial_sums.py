"""Reductions cut between cores: what the parts compute, their additions, their traffic, and refused cuts."""

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from onnx.helper import make_node
from tilewright.base.errors import Problems
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.partial_sums import additions_of, reductions_of
from tilewright.multicore.nodes.reduction_cuts import cut_reductions
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling
from tilewright.workload.graph import Workload
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer

from tests.members import members
from tests.unit.multicore.nodes.networks import read
from tests.unit.multicore.nodes.summed_networks import computed, random_products
from tests.unit.multicore.nodes.systems import quad_core

SHAPES = ("one_core", "tree", "ring")


def cut(workload: Workload, entries: list[dict[str, Any]]) -> tuple[Workload, Mapping]:
    """The network and the mapping with parts; raises an error if there is a problem."""
    mapping = read_mapping(entries)
    problems = Problems(document_behind(mapping, ""))
    found = cut_reductions(workload, mapping, quad_core(), problems)
    problems.finish()
    return found


def layer_of(workload: Workload, name: str) -> Layer:
    """The layer with this name."""
    found = next(node.layer for node in workload.nodes if node.name == name)
    assert found is not None
    return found


def random_cut(draw: random.Random, workload: Workload) -> dict[str, Any] | None:
    """A mapping entry that cuts one or two reductions of layer y, and perhaps an output; None if y has no reduction."""
    layer = layer_of(workload, "y")
    reduced = [name for name in reductions_of(layer) if layer.size_of[name] > 1]
    if not reduced:
        return None
    chosen = draw.sample(reduced, min(len(reduced), draw.choice((1, 1, 2))))
    loops = [f"{name}, {draw.randint(2, min(4, layer.size_of[name]))}" for name in chosen]
    outputs = [name for name in layer.size_of if name not in reductions_of(layer) and layer.size_of[name] > 1]
    if outputs and draw.random() < 0.4:
        loops.insert(draw.randint(0, len(loops)), f"{draw.choice(outputs)}, 2")
    return {"name": "y", "inter_core_tiling": loops, "reduction": {"shape": draw.choice(SHAPES)}}


def random_member(seed: int) -> tuple[Workload, Workload, Mapping, str] | None:
    """A network, the same network with parts, its mapping and the shape; None if this seed gives no cut."""
    draw = random.Random(seed)
    workload = random_products(draw)
    entry = random_cut(draw, workload)
    if entry is None:
        return None
    mapping = read_mapping([{"name": "default"}, entry])
    problems = Problems(document_behind(mapping, ""))
    network, found = cut_reductions(workload, mapping, quad_core(), problems)
    if problems.found:
        assert "needs an axis of the outputs" in str(problems.found[0])
        return None
    return workload, network, found, entry["reduction"]["shape"]


def test_parts_compute_the_layer() -> None:
    """Networks with parts compute what the uncut network computes, for random layers, cuts and numbers."""
    tried = 0
    for seed in range(members(2000, 200)):
        found = random_member(seed)
        if found is None:
            continue
        workload, network, _, _ = found
        expected, got = (computed(one, np.random.default_rng(seed)) for one in (workload, network))
        for name, values in expected.items():
            assert (got[name] == values).all(), (seed, name)
        tried += 1
    assert tried >= members(1500, 150)


def test_work_and_traffic_by_the_definition() -> None:
    """The parts have the multiplications of the layer, and k parts need k - 1 additions for each output.

    Widths are as defined.
    """
    for seed in range(members(2000, 200)):
        found = random_member(seed)
        if found is None:
            continue
        workload, network, _, shape = found
        layer, sizes = layer_of(workload, "y"), layer_of(workload, "y").size_of
        parts = [node for node in network.nodes if node.name.startswith("y#") and node.operator_type != "Add"]
        sums = [node for node in network.nodes if node.name.startswith("y#sum")]
        outputs = math.prod(sizes[name] for name in dict(layer.operand_dimensions)[OUTPUT])
        assert sum(node.layer.mac_count for node in parts if node.layer) == layer.mac_count, seed
        assert sum(node.layer.mac_count for node in sums if node.layer) == (len(parts) - 1) * outputs, seed
        partial, final = layer.bits_of[OUTPUT], layer.bits_of[FINAL_OUTPUT]
        bits = {tensor.name: tensor.bits for tensor in network.tensors}
        for node in (*parts, *sums):
            assert node.layer is not None
            is_final = node.outputs[0] == "y" or (shape == "ring" and _is_last_of_share(node.outputs[0], network))
            assert bits[node.outputs[0]] == (final if is_final else partial), (seed, node.name)
            assert node.layer.bits_of[FINAL_OUTPUT] == (final if is_final else partial), (seed, node.name)
        beside = [node.name for node in network.nodes for one in node.index_maps if one.input.tensor == "bias"]
        readers = len(parts) if shape == "ring" else 1
        assert len(beside) == (readers if "bias" in workload.tensor_of else 0), seed
        assert all("#sum" in name for name in beside)


def _is_last_of_share(tensor: str, network: Workload) -> bool:
    return any(tensor in node.inputs for node in network.nodes if node.operator_type == "Concat")


def graph_of(network: Workload, mapping: Mapping) -> CnGraph:
    """The CN graph of a network with parts."""
    return build_cn_graph(network, network_tiling(network, mapping, quad_core(), TilingOptions()))


def test_partial_sums_flow_at_their_width() -> None:
    """The bits into an addition are those of the partial results it reads; readers of the layer read the sum."""
    for seed in range(members(600, 60)):
        found = random_member(seed)
        if found is None:
            continue
        workload, network, mapping, shape = found
        layer, graph = layer_of(workload, "y"), graph_of(network, mapping)
        outputs = math.prod(layer.size_of[name] for name in dict(layer.operand_dimensions)[OUTPUT])
        flow: dict[str, int] = {}
        for link in graph.links:
            name = graph.layers[link.consumer].name
            flow[name] = flow.get(name, 0) + link.bits
        parts = sum(one.name.startswith("y#") and "#sum" not in one.name for one in graph.layers)
        into_sums = sum(bits for name, bits in flow.items() if "#sum" in name)
        assert into_sums == 2 * (parts - 1) * outputs * layer.bits_of[OUTPUT], (seed, shape)
        if "z" in flow:
            assert flow["z"] == outputs * layer.bits_of[FINAL_OUTPUT], seed
            senders = {graph.layers[one.producer].name for one in graph.links if graph.layers[one.consumer].name == "z"}
            assert len(senders) == (parts if shape == "ring" else 1)
            assert all("#sum" in name for name in senders), (seed, senders)


@pytest.mark.parametrize("parts", range(2, 10))
def test_additions(parts: int) -> None:
    """Each shape adds each part once. A tree has the least depth; each core of a ring adds every share but its own."""
    for shape in SHAPES:
        additions = additions_of(parts, shape)
        shares: dict[int, list[int]] = {}
        content: dict[tuple[int, int], tuple[int, ...]] = {}
        depth: dict[tuple[int, int], int] = {}
        for number, one in enumerate(additions):
            both = [(item, one.share) for item in (one.first, one.second)]
            for item in both:
                assert item[0] < parts + number
                content.setdefault(item, (item[0],))
            content[parts + number, one.share] = content[both[0]] + content[both[1]]
            depth[parts + number, one.share] = 1 + max(depth.get(item, 0) for item in both)
            shares.setdefault(one.share, []).append(number)
        for share, numbers in shares.items():
            assert sorted(content[parts + numbers[-1], share]) == list(range(parts))
            assert len(numbers) == parts - 1
        if shape == "tree":
            assert max(depth.values()) == math.ceil(math.log2(parts))
        if shape == "ring":
            assert len(shares) == parts
            assert [one.home for one in additions if one.share == 0] == [*range(2, parts), 0]
            for core in range(parts):
                assert sum(one.home == core for one in additions) == parts - 1


def gemm(rows: int = 4, inner: int = 64, columns: int = 8) -> Workload:
    """A matrix product and a reader."""
    nodes = [make_node("Gemm", ["x", "w", "bias"], ["y"], name="y"), make_node("Relu", ["y"], ["z"], name="z")]
    return read(nodes, {"x": (rows, inner)}, {"w": (inner, columns), "bias": (columns,)})


def entry(**keys: Any) -> dict[str, Any]:
    """An entry that cuts C of layer y into 4 parts."""
    return {"name": "y", "inter_core_tiling": ["C, 4"], "core_allocation": [0, 1, 2, 3], "reduction": {}, **keys}


def test_cores_of_parts_and_additions() -> None:
    """Fixed cores are divided among the parts. If the array cannot add, the additions run on the vector unit."""
    fixed = entry(core_allocation_is_fixed=True, inter_core_tiling=["K, 2", "C, 2"])
    network, mapping = cut(gemm(), [{"name": "default"}, fixed])
    cores = {one.name: (one.core_allocation, one.core_allocation_is_fixed) for one in mapping.entries[2:]}
    assert cores == {"y#1of2": ((0, 1), True), "y#2of2": ((2, 3), True), "y#sum1of1": ((5,), True)}
    outer = entry(core_allocation_is_fixed=True, inter_core_tiling=["C, 2", "K, 2"])
    _, mapping = cut(gemm(), [{"name": "default"}, outer])
    assert [one.core_allocation for one in mapping.entries[2:4]] == [(0, 2), (1, 3)]
    assert all([loop.dimension for loop in one.inter_core_tiling] == ["K"] for one in mapping.entries[2:])
    assert cut_reductions(network, mapping, quad_core(), Problems())[0] is network


def test_cores_that_can_add() -> None:
    """Cores that can add also run the additions: in a tree on the left core of each pair, in a ring from core
    to core.
    """
    system = quad_core()
    able = replace(system, places=tuple(replace(place, operator_types=("all",)) for place in system.places))
    for shape, expected in (
        ("tree", [(0,), (2,), (0,)]),
        ("one_core", [(0,), (0,), (0,)]),
        ("ring", [(2,), (3,), (0,), (3,), (0,), (1,), (0,), (1,), (2,), (1,), (2,), (3,)]),
    ):
        mapping = read_mapping([{"name": "default"}, entry(core_allocation_is_fixed=True, reduction={"shape": shape})])
        _, found = cut_reductions(gemm(), mapping, able, Problems(document_behind(mapping, "")))
        assert [one.core_allocation for one in found.entries if "#sum" in one.name] == expected


def test_an_entry_of_the_file_for_a_part_takes_precedence() -> None:
    """A mapping entry that names a part of a layer, such as `y#2of4`, takes precedence over the layer's entry."""
    own = {"name": "y#2of4", "core_allocation": [3], "core_allocation_is_fixed": True}
    _, mapping = cut(gemm(), [{"name": "default"}, entry(), own])
    assert [one.core_allocation for one in mapping.entries if one.name == "y#2of4"] == [(3,)]


def test_the_layer_stays_one_stack() -> None:
    """The parts and additions of a layer stay in one stack; ids in the file choose stacks."""
    network, mapping = cut(gemm(), [{"name": "default"}, entry()])
    for options, count in (
        (TilingOptions(mode="lbl"), 2),
        (TilingOptions(layer_stacks=[[0], [1]]), 2),
        (TilingOptions(layer_stacks=[[0, 1]]), 1),
        (TilingOptions(stack_cutoffs=[0]), 2),
    ):
        stacks = network_tiling(network, mapping, quad_core(), options).stacks
        assert len(stacks) == count
        assert sorted(one for stack in stacks for one in stack) == sorted(
            node.node_id for node in network.nodes if node.layer
        )
        assert len(stacks[0]) == (7 if count == 2 else 8)


def test_too_many_additions_are_refused() -> None:
    """A reduction of 5,000 parts is refused, because it needs more than 4,096 additions."""
    mapping = read_mapping([{"name": "default"}, entry(inter_core_tiling=["C, all"])])
    problems = Problems(document_behind(mapping, ""))
    cut_reductions(gemm(1, 5000, 1), mapping, quad_core(), problems)
    assert "5,000 parts need 4,999 additions of partial results, more than 4,096" in str(problems.found[0])


def test_choices_of_other_arrays_are_left_out() -> None:
    """The default entry's spatial mapping for arrays of two sides is dropped for a vector unit of one side."""
    default = {"name": "default", "spatial_mapping": {"D1": ["K, 4"], "D9": ["C, 4"]}}
    _, mapping = cut(gemm(), [default, entry()])
    assert {one.spatial_mapping for one in mapping.entries if "#sum" in one.name} == {()}
    assert all(one.spatial_mapping == () for one in mapping.entries if one.name == "y#1of4")


REFUSED = {
    "core that cannot add": ({"reduction": {"core": 0}}, "y.reduction.core", "core 0 cannot add", "runs mac, not Add"),
    "no such core": ({"reduction": {"core": 9}}, "y.reduction.core", "no core has this id", "did you mean"),
    "off-chip core": ({"reduction": {"core": 6}}, "y.reduction.core", "cannot add", "off-chip core"),
    "more parts than indices": ({"inter_core_tiling": ["C, 65"]}, "y.inter_core_tiling[0]", "more parts than C", "64"),
    "ring without shares": (
        {"inter_core_tiling": ["C, all"], "reduction": {"shape": "ring"}},
        *(
            "y.reduction.shape",
            "a ring of 64 parts needs an axis of the outputs of y with at least 64 indices",
            "one_core, tree",
        ),
    ),
    "cores": (
        {"core_allocation": [0, 1, 2], "core_allocation_is_fixed": True},
        "y.core_allocation",
        "fixes 3 cores, but y has 4 groups",
        "1 core or 4 cores",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_cuts(name: str, tmp_path: Path) -> None:
    """Each mistake is reported with its place in the file, and the layer stays whole."""
    changed, path, *told = REFUSED[name]
    file = tmp_path / "mapping.yaml"
    file.write_text(yaml.safe_dump([{"name": "default"}, entry(**changed)], sort_keys=False))
    mapping = read_mapping(file)
    problems = Problems(document_behind(mapping, str(file)))
    network, found = cut_reductions(gemm(), mapping, quad_core(), problems)
    assert [problem.path for problem in problems.found] == [path]
    assert problems.found[0].line > 1
    for text in told:
        assert text in str(problems.found[0])
    assert [node.name for node in network.nodes] == ["y", "z"]
    assert not any(one.reduction for one in found.entries)
