"""The options that cut a network, and the tilings they make for an accelerator."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.tiling import Tiling
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling
from tilewright.multicore.nodes.weights import (
    network_input_operands,
    total_weight_capacity_bits,
    weight_bits,
    weight_capacity_bits,
    weight_operand,
)
from tilewright.workload.source import parse_workload

from tests.unit.multicore.nodes.networks import SAME, conv, read
from tests.unit.multicore.nodes.systems import CONFIG, quad_core

CHAIN = read(
    [conv("x", "w0", "a", **SAME), conv("a", "w1", "b", **SAME), conv("b", "w2", "c", **SAME)],
    None,
    {"w0": (8, 4, 3, 3), "w1": (8, 8, 3, 3), "w2": (4, 8, 3, 3)},
)
"""Convolutions a, b and c with 2304, 4608 and 2304 bits of weights, on 6 x 6 pixels."""
OPEN = parse_mapping([{"name": "default"}])


def loops(tiling: Tiling) -> list[list[tuple[str, int]]]:
    """(dimension, count) of the loops of each layer."""
    return [[(loop.dimension, loop.count) for loop in layer.loops] for layer in tiling.layers]


def test_lists_of_a_yaml_file_are_taken_as_they_are() -> None:
    """Lists from a YAML file become tuples; keys of a table may be numbers or text."""
    assert TilingOptions(1, [["OY", "all"]]) == TilingOptions(1, (("OY", "all"),))  # type: ignore[list-item]
    table: Any = {"0, 1": [["OY", 2]], 2: [["OX", 3]], "(3,)": []}
    assert TilingOptions(3, table).hint_loops == {(0, 1): (("OY", 2),), (2,): (("OX", 3),), (3,): ()}
    stacks: Any = [[0, 1], [2]]
    assert TilingOptions(layer_stacks=stacks).layer_stacks == ((0, 1), (2,))


def test_stated_options_are_plain_data() -> None:
    """The stated options are JSON, from which the same options are made again."""
    options = TilingOptions(3, {(0,): (("OY", "all"),)}, split_W_percentage=0.5)
    stated = json.loads(json.dumps(options.stated()))
    assert stated["hint_loops"] == [[[0], [["OY", "all"]]]]
    plain = TilingOptions(1, (("OY", 2), ("K", 2)), layer_stacks=((0, 1),))
    assert TilingOptions(**json.loads(json.dumps(plain.stated()))) == plain


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "mode 5": ({"cn_define_mode": 5}, ["cn_define_mode", "1, 2, 3, 4"]),
    "true is no mode": ({"cn_define_mode": True}, ["cn_define_mode"]),
    "loops without a mode": ({"hint_loops": [["OY", 2]]}, ["needs a cn_define_mode"]),
    "an empty list too": ({"hint_loops": []}, ["needs a cn_define_mode"]),
    "loops as a text": ({"cn_define_mode": 1, "hint_loops": "OY, 2"}, ["hint_loops", "wrong form"]),
    "loops as a number": ({"cn_define_mode": 3, "hint_loops": 4}, ["hint_loops", "wrong form"]),
    "flat loop": ({"cn_define_mode": 1, "hint_loops": ["OY", "all"]}, ["hint_loops[0]", "hint_loops[1]"]),
    "zero tiles": ({"cn_define_mode": 1, "hint_loops": [["OY", 0]]}, ["hint_loops[0]", "at least 1"]),
    "lists in mode 1": ({"cn_define_mode": 1, "hint_loops": [[["OY", 2]]]}, ["hint_loops[0]"]),
    "table in mode 1": ({"cn_define_mode": 1, "hint_loops": {0: []}}, ["cn_define_mode is not 3"]),
    "key of a table": ({"cn_define_mode": 3, "hint_loops": {"conv1": []}}, ["must name layers", "'conv1'"]),
    "cutoffs in mode 1": ({"cn_define_mode": 1, "layer_cutoffs": [3]}, ["layer_cutoffs", "3 only"]),
    "cutoffs missing": ({"cn_define_mode": 3, "hint_loops": [[], []]}, ["one less than the number of lists"]),
    "mode": ({"mode": "layer by layer"}, ["mode", "lbl, fused"]),
    "near miss": ({"mode": "fusd"}, ["did you mean 'fused'"]),
    "stacks in lbl": ({"mode": "lbl", "layer_stacks": [[0]]}, ["layer_stacks", "no effect with `mode: lbl`"]),
    "stacks and cutoffs": ({"layer_stacks": [[0]], "stack_cutoffs": [1]}, ["stack_cutoffs", "no effect together"]),
    "stacks of names": ({"layer_stacks": [["a"]]}, ["layer_stacks[0]", "node ids"]),
    "falling cutoffs": ({"stack_cutoffs": [4, 2]}, ["stack_cutoffs", "must rise"]),
    "negative cutoff": ({"stack_cutoffs": [-1]}, ["stack_cutoffs", "node ids"]),
    "per cent": ({"split_W_percentage": 50}, ["split_W_percentage", "at most 1"]),
    "no share": ({"split_W_percentage": 0.0}, ["split_W_percentage"]),
    "nan": ({"split_W_percentage": float("nan")}, ["split_W_percentage"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_are_told(name: str) -> None:
    """The message names the key and the allowed values."""
    values, told = WRONG[name]
    with pytest.raises(InputError) as caught:
        TilingOptions(**values)
    for text in told:
        assert text in str(caught.value)


def test_all_wrong_values_are_told_at_once() -> None:
    """One error reports all wrong values."""
    with pytest.raises(InputError) as caught:
        TilingOptions(7, 5, [-1], "x", 3, "y", 2)  # type: ignore[arg-type]
    paths = {problem.path for problem in caught.value.problems}
    expected = {"cn_define_mode", "hint_loops", "layer_cutoffs", "mode", "layer_stacks", "stack_cutoffs"}
    assert paths == expected | {"split_W_percentage"}


def test_checking_a_configuration_loads_nothing_heavy() -> None:
    """Making these options imports none of the heavy packages, because the Snakefile does it at every parse."""
    code = (
        "import sys; from tilewright.multicore.nodes.tiling_options import TilingOptions;"
        "TilingOptions(4, [['OY', 'all']]);"
        "print([m for m in ('numpy','pandas','onnx','numba','pydantic','networkx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_mode_lbl_has_every_layer_alone() -> None:
    """Mode `lbl` makes each layer a stack of its own. Hint loops replace the tiling of the mapping.

    Without hint loops, parts for several cores stay.
    """
    mapping = parse_mapping([{"name": "default", "inter_core_tiling": ["K, 2"], "intra_core_tiling": ["OY, all"]}])
    plain = network_tiling(CHAIN, mapping, quad_core(), TilingOptions(1, mode="lbl"))
    assert (loops(plain), plain.stacks) == ([[], [], []], ((0,), (1,), (2,)))
    by_mapping = network_tiling(CHAIN, mapping, quad_core(), TilingOptions(mode="lbl"))
    assert loops(by_mapping) == [[("K", 2)]] * 3


@pytest.mark.parametrize(
    ("options", "stacks"),
    [
        ({}, ((0, 1, 2),)),
        ({"layer_stacks": ((0, 1),)}, ((0, 1), (2,))),
        ({"stack_cutoffs": (0,)}, ((0,), (1,), (2,))),
        ({"cn_define_mode": 1}, ((0, 1, 2),)),
        ({"cn_define_mode": 1, "layer_stacks": ((1, 2),)}, ((0,), (1, 2))),
        ({"cn_define_mode": 1, "stack_cutoffs": (1,)}, ((0, 1), (2,))),
    ],
)
def test_stacks_are_given_or_follow_from_the_weights(options: dict[str, Any], stacks: Any) -> None:
    """Stacks are given, or follow from the weights, which all fit here. Hint loops without stacks fuse the whole
    network.
    """
    assert network_tiling(CHAIN, OPEN, quad_core(), TilingOptions(**options)).stacks == stacks


def test_a_stack_has_weights_for_all_memories_together() -> None:
    """A stack fits if its weights fit in the memories of all cores together; a shared memory counts once.

    Four cores of 1000 bits hold no two layers. Four cores of 1800 bits hold a and b (6912 of 7200 bits), not c.
    """
    accelerator = quad_core(all_cores=1000)
    tight = replace(accelerator, cores=accelerator.cores[:4], places=accelerator.places[:4])
    assert total_weight_capacity_bits(CHAIN, OPEN.constraints_of(CHAIN), tight) == 4000
    assert network_tiling(CHAIN, OPEN, tight, TilingOptions()).stacks == ((0,), (1,), (2,))
    shared = replace(quad_core(all_cores=1800), cores=quad_core(all_cores=1800).cores[:4], places=tight.places)
    assert network_tiling(CHAIN, OPEN, shared, TilingOptions()).stacks == ((0, 1), (2,))
    one_memory = replace(shared, sharing_groups=((0, 1, 2, 3),))
    assert total_weight_capacity_bits(CHAIN, OPEN.constraints_of(CHAIN), one_memory) == 1800


def test_mode_4_splits_for_the_smallest_memory_of_the_cores_that_may_run_the_layer() -> None:
    """One K of a has 288 bits, one K of b and c 576. b may run on core 0 alone, which has room."""
    mapping = parse_mapping([{"name": "default", "core_allocation": [0, 1]}, {"name": "b", "core_allocation": [0]}])
    accelerator = quad_core(core_0=8000, core_1=1200)
    tiling = network_tiling(CHAIN, mapping, accelerator, TilingOptions(4, [["OY", 2]]))  # type: ignore[list-item]
    assert loops(tiling) == [[("OY", 2), ("K", 2)], [("OY", 2)], [("OY", 2), ("K", 2)]]
    half = network_tiling(CHAIN, mapping, accelerator, TilingOptions(4, split_W_percentage=0.5))
    assert loops(half) == [[("K", 4)], [("K", 2)], [("K", 4)]]


@pytest.mark.parametrize("hints", [[], [["OY", "all"]], [["K", 2]]])
def test_mode_4_cuts_alike_where_the_cores_that_were_found_are_fixed(hints: Any) -> None:
    """A mapping file that fixes a core for each group gives the same CNs as mode 4, also on cores with other
    memories.
    """
    accelerator, options = quad_core(core_0=8000, core_1=1200), TilingOptions(4, hints)
    found = network_tiling(CHAIN, parse_mapping([{"name": "default", "core_allocation": [0, 1]}]), accelerator, options)
    entries: list[dict[str, Any]] = [
        {
            "name": node.name,
            "core_allocation": [0] * found.of_node[node.node_id].group_count,
            "core_allocation_is_fixed": True,
        }
        for node in CHAIN.nodes
    ]
    fixed = network_tiling(CHAIN, parse_mapping([{"name": "default"}, *entries]), accelerator, options)
    assert loops(fixed) == loops(found)


def test_a_core_without_room_for_weights_is_no_limit() -> None:
    """The weights of a layer are limited only by memories of cores that may run it; without such a memory there is no
    limit.
    """
    node = CHAIN.nodes[0]
    entry = parse_mapping([{"name": "default", "core_allocation": [4]}]).entries[0]
    assert weight_capacity_bits(node, entry, quad_core()) is None
    both = parse_mapping([{"name": "default", "core_allocation": [4, 2]}]).entries[0]
    assert weight_capacity_bits(node, both, quad_core(core_2=1001), 0.5) == 500


def test_inputs_of_the_network_are_no_weights() -> None:
    """An input that a list of layers calls constant is not a weight. Weights are W, else the last constant that is no
    input.
    """
    layer = CHAIN.nodes[0].layer
    assert layer is not None
    both = replace(layer, constant_operands=("W", "I"))
    assert (weight_operand(both), weight_bits(both)) == ("W", 2304)
    only_input = replace(layer, constant_operands=("I",))
    assert weight_operand(only_input) == "I"
    assert weight_operand(only_input, frozenset("I")) is None
    assert weight_bits(only_input, frozenset("I")) == 0
    assert network_input_operands(CHAIN.nodes[0], CHAIN) == {"I"}
    assert network_input_operands(CHAIN.nodes[1], CHAIN) == frozenset()


def test_resnet18_line_by_line() -> None:
    """ResNet-18 line by line has 1,381 CNs, and 1,697 when weights are also split for 256 KiB."""
    workload = parse_workload(CONFIG / "workload" / "resnet18.onnx", "corrected")
    lines: Any = [["OY", "all"]]
    counts = {}
    for mode in (1, 4):
        graph = build_cn_graph(workload, network_tiling(workload, OPEN, quad_core(), TilingOptions(mode, lines)))
        counts[mode] = graph.cn_count
        for layer in graph.layers:
            assert layer.tiling.group_count == 1 or mode == 4
    assert counts == {1: 1381, 4: 1697}
