"""All faults of a mapping for several cores are found at once, each with its place."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx.helper import make_node
from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.envelope import write_document
from tilewright.base.errors import InputError
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import SystemProblem, part_digest, read_system_problem
from tilewright.pipeline.stages.preflight.cutting import layer_pairs
from tilewright.pipeline.stages.preflight.needs import prefetch_problems
from tilewright.pipeline.stages.preflight.network import checked_cn_graph, preflight

from tests.unit.multicore.nodes.networks import SAME, conv, read
from tests.unit.multicore.nodes.systems import CONFIG, QUAD_CORE, quad_core

NETWORK = read(
    [
        conv("x", "w0", "a", **SAME),
        make_node("MaxPool", ["a"], ["p"], name="p", kernel_shape=[2, 2], strides=[2, 2]),
        conv("p", "w1", "b", **SAME),
        make_node("Relu", ["b"], ["r"], name="r"),
    ],
    None,
    {"w0": (8, 4, 3, 3), "w1": (4, 8, 3, 3)},
)
"""Convolution a (6 x 6 pixels, 8 channels), pooling p, convolution b (3 x 3, 4 channels), and Relu r."""
REFERENCE = CONFIG.parent.parent / "shared" / "stream-reference"
DEFAULT: dict[str, Any] = {"name": "default"}


def problem(*entries: dict[str, Any], accelerator: MultiCoreAccelerator | None = None) -> SystemProblem:
    """The network on four cores for MACs (0-3), a pooling core (4), a vector unit (5) and off-chip memory (6)."""
    return SystemProblem(NETWORK, accelerator or quad_core(), parse_mapping([*entries, DEFAULT]))


def told(*entries: dict[str, Any], options: TilingOptions | None = None, **others: Any) -> list[str]:
    """The problems as texts."""
    found = preflight(problem(*entries, **others), options or TilingOptions())
    return [str(one) for one in found.problems]


def test_nothing_is_wrong_with_open_choices() -> None:
    """A mapping without choices has no problem, however the network is cut."""
    for options in (TilingOptions(), TilingOptions(1, [["OY", "all"]]), TilingOptions(mode="lbl")):  # type: ignore[list-item]
        found = preflight(problem(), options)
        assert found.problems == ()
        assert found.tiling is not None


BAD: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "reach of data on one core": (
        [{"name": "a", "memory_reach": {"topmost": {"O": "sram", "W": "sram", "I": "sram"}}}],
        ["a.memory_reach: is only for runs on one core; on several cores, the schedule decides where data are kept"],
    ),
    "unknown core": (
        [{"name": "a", "core_allocation": [0, 9]}],
        ["a.core_allocation[1]: no core has this id, got 9", "0, 1, 2, 3, 4, 5", "did you mean '5'"],
    ),
    "off-chip core": ([{"name": "a", "core_allocation": [6, 1]}], ["core 6 is the off-chip core"]),
    "core of another kind": (
        [{"name": "a", "core_allocation": [0, 4]}],
        ["a.core_allocation[1]: core 4 cannot run Conv a: it runs pooling, not Conv"],
    ),
    "core of another kind for a type": (
        [{"name": "Conv", "core_allocation": [0, 5]}],
        ["core 5 cannot run Conv a, b: it runs vector, not Conv"],
    ),
    "fixed core of another kind": (
        [{"name": "[ab]", "core_allocation": [0, 5], "core_allocation_is_fixed": True, "inter_core_tiling": ["K, 2"]}],
        ["core 5 cannot run Conv a, b"],
    ),
    "no core for a layer": (
        [{"name": "Relu", "core_allocation": [0, 1, 4]}],
        ["Relu.core_allocation: no core can run Relu r: core 0, 1 runs mac, not Relu; core 4 runs pooling, not Relu"],
    ),
    "too many tiles": (
        [{"name": "a", "intra_core_tiling": ["OY, 7"]}],
        ["a.intra_core_tiling[0]: more tiles than OY has indices, got OY, 7 (allowed: 1 to 6, or all)"],
    ),
    "too many parts": ([{"name": "b", "inter_core_tiling": ["K, 5"]}], ["b.inter_core_tiling[0]", "1 to 4"]),
    "more tiles than any layer": (
        [{"name": "Conv", "intra_core_tiling": ["OY, 7"]}],
        ["more tiles than OY has indices, in each of the 2 layers"],
    ),
    "unknown dimension": ([{"name": "a", "intra_core_tiling": ["QQ, 2"]}], ["intra_core_tiling[0]", "got QQ"]),
    "too few fixed cores": (
        [{"name": "a", "core_allocation": [0, 1], "core_allocation_is_fixed": True, "inter_core_tiling": ["K, 4"]}],
        ["a.core_allocation: fixes 2 cores, but a has 4 groups"],
    ),
    "open number of parts": (
        [{"name": "a", "inter_core_tiling": ["K, *"]}],
        ["a.core_allocation", "core_allocation, but core_allocation is not given"],
    ),
    "array dimension": (
        [{"name": "a", "spatial_mapping": {"D7": ["K, 4"]}}],
        ["a.spatial_mapping.D7: no core that can run these layers has this array dimension", "D1, D2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_entry_is_told(name: str) -> None:
    """One problem names the entry, the wrong value and the allowed values."""
    entries, texts = BAD[name]
    found = told(*entries)
    assert len(found) == 1
    for text in texts:
        assert text in found[0].replace("'OY, 7'", "OY, 7").replace("'QQ'", "QQ")


def test_all_problems_come_at_once_with_lines(tmp_path: Path) -> None:
    """Problems of the mapping file come first, in the order of lines, then problems of the options."""
    file = tmp_path / "mapping.yaml"
    file.write_text(
        "- name: a\n  core_allocation: [0, 9]\n  intra_core_tiling: ['OY, 70']\n"
        "- name: p\n  core_allocation: [0]\n"
        "- name: b\n  core_allocation: [1, 2]\n  core_allocation_is_fixed: true\n"
        "- name: default\n"
    )
    made = SystemProblem(NETWORK, quad_core(), parse_mapping(file), str(file))
    options = TilingOptions(layer_stacks=((0, 1), (1, 77)))
    with pytest.raises(InputError) as caught:
        checked_cn_graph(made, options)
    found = [(one.file == str(file), one.line, one.path) for one in caught.value.problems]
    assert found == [
        (True, 2, "a.core_allocation[1]"),
        (True, 3, "a.intra_core_tiling[0]"),
        (True, 5, "p.core_allocation"),
        (True, 7, "b.core_allocation"),
        (False, 0, "layer_stacks[1]"),
        (False, 0, "layer_stacks[1]"),
    ]


def test_an_artifact_has_paths_without_lines(tmp_path: Path) -> None:
    """Problems of an artifact name the file and the path in its lists, without lines."""
    file = tmp_path / "mapping.json"
    write_document(file, "tilewright/mapping", encode(problem({"name": "a", "core_allocation": [0, 9]}).mapping), {})
    made = SystemProblem(NETWORK, quad_core(), parse_mapping(file), str(file))
    (one,) = preflight(made, TilingOptions()).problems
    assert (one.file, one.line, one.path) == (str(file), 0, "a.core_allocation[1]")


def test_a_number_that_fits_some_layers_is_a_notice() -> None:
    """A number of tiles that fits a (6 lines) but not b (3 lines) is a notice, not a problem."""
    found = preflight(problem({"name": "Conv", "intra_core_tiling": ["OY, 6"]}), TilingOptions())
    assert found.problems == ()
    assert found.tiling is not None
    assert found.tiling.notices == ("b: OY of size 3 is too small for 6 tiles",)
    hints: Any = [["OY", 6]]
    assert preflight(problem(), TilingOptions(1, hints)).problems == ()


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"cn_define_mode": 1, "hint_loops": [["K", 2], ["OY", 7]]}, "hint_loops[1]"),
        ({"cn_define_mode": 3, "hint_loops": [[["OY", 6]], [["OY", 4]]], "layer_cutoffs": [1]}, "hint_loops[1][0]"),
        ({"cn_define_mode": 3, "hint_loops": {2: [["OY", 4]]}}, "hint_loops[(2,)][0]"),
    ],
)
def test_hint_loops_larger_than_all_their_layers(options: dict[str, Any], path: str) -> None:
    """Hint loops with more tiles than any layer has are problems: for all layers, after a cutoff, and in a table."""
    (one,) = preflight(problem(), TilingOptions(**options)).problems
    assert one.path == path
    assert "more tiles" in one.message


def test_a_general_entry_may_name_cores_for_some_of_its_layers() -> None:
    """A general entry may name cores that run only some of its layers; a core that runs none of them gives a notice."""
    everything = {"name": "default", "core_allocation": [0, 1, 4, 5]}
    made = SystemProblem(NETWORK, quad_core(), parse_mapping([everything]))
    assert preflight(made, TilingOptions()) == replace(preflight(problem(), TilingOptions()), notices=())
    rest = [{"name": "@vector", "core_allocation": [5]}, everything]
    found = preflight(SystemProblem(NETWORK, quad_core(), parse_mapping(rest)), TilingOptions())
    assert found.problems == ()
    assert [text for text in found.notices if "core 5 cannot run" in text]


def test_fixed_cores_are_a_choice_where_layers_are_not_cut() -> None:
    """Fixed cores that differ in number from the groups are allowed in mode lbl without tiles; other modes
    refuse them.
    """
    entry = {"name": "a", "core_allocation": [0, 1], "core_allocation_is_fixed": True, "inter_core_tiling": ["K, 2"]}
    assert told(entry) == []
    assert told(entry, options=TilingOptions(1, mode="lbl")) == []
    assert told(entry, options=TilingOptions(1)) == [
        "a.core_allocation: fixes 2 cores, but a has 1 group, got '[0, 1]'"
        " (allowed: one core for each group, or one for all)"
    ]


def test_mode_4_takes_a_fixed_core_for_each_group() -> None:
    """Mode 4 divides 2304 bits of weights into two groups, one for each of the two fixed cores."""
    entry = {"name": "a", "core_allocation": [0, 1], "core_allocation_is_fixed": True}
    assert told(entry, options=TilingOptions(4), accelerator=quad_core(all_cores=1500)) == []


def without_links(accelerator: MultiCoreAccelerator, *core_ids: int) -> MultiCoreAccelerator:
    """The accelerator without the links from and to these cores."""
    links = tuple(
        replace(link, edges=tuple(edge for edge in link.edges if not set(core_ids) & set(edge)))
        for link in accelerator.links
    )
    return replace(accelerator, links=links)


def test_cores_that_cannot_exchange_data() -> None:
    """Core 4 without links can get no data from a and send none to b. If p may also run on core 5, nothing is wrong."""
    cut_off = without_links(quad_core(), 4)
    entries = {"name": "a", "core_allocation": [2]}, {"name": "p", "core_allocation": [4]}
    found = told(*entries, accelerator=cut_off)
    assert [text.partition(" (allowed")[0] for text in found] == [
        "p.core_allocation: no data can get from a on core 2 to p on core 4",
        "default.core_allocation: no data can get from p on core 4 to b on core 0, 1, 2, 3",
    ]
    assert told(accelerator=cut_off) == []


def test_some_way_over_the_off_chip_memory_is_enough() -> None:
    """Links to and from the off-chip core alone are enough for data between cores."""
    accelerator = quad_core()
    links = tuple(link for link in accelerator.links if 6 in link.core_ids)
    assert told(accelerator=replace(accelerator, links=links)) == []


def test_layers_see_each_other_through_what_moves_data() -> None:
    """Producer and consumer are a pair even with a Transpose between them."""
    network = read(
        [
            conv("x", "w0", "a", **SAME),
            make_node("Transpose", ["a"], ["t"], perm=[0, 1, 3, 2]),
            conv("t", "w1", "b", **SAME),
        ],
        None,
        {"w0": (8, 4, 3, 3), "w1": (4, 8, 3, 3)},
    )
    names = {node.node_id: node.name for node in network.nodes}
    assert [(names[a], names[b]) for a, b in layer_pairs(network)] == [("a", "b")]


def test_operands_to_prefetch_are_read_by_some_layer() -> None:
    """Some layer reads W and I; operands that no layer reads, such as O, are problems."""
    assert prefetch_problems(NETWORK, ["W", "I"]) == []
    found = prefetch_problems(NETWORK, ["W", "O", "w"])
    assert [one.path for one in found] == ["operands_to_prefetch[1]", "operands_to_prefetch[2]"]
    assert found[1].nearest == "W"
    assert "operands_to_prefetch[0]" in str(preflight(problem(), TilingOptions(), ["X"]).problems[0])


def test_memories_without_room_for_an_element(tmp_path: Path) -> None:
    """A memory without room for an element is reported once, on the line of the core file, with the layers concerned.

    If other cores can run these layers, the problem becomes a notice.
    """
    folder = CONFIG / "hardware" / "multi"
    shutil.copytree(folder, tmp_path / "multi")
    small = tmp_path / "multi" / "cores" / "k16_c16.yaml"
    small.write_text(small.read_text().replace("size: 1 B", "size: 4 b"))
    file = tmp_path / "multi" / "quad_core.yaml"
    accelerator = parse_accelerator(file)
    assert isinstance(accelerator, MultiCoreAccelerator)
    given = replace(problem(accelerator=accelerator), hardware_file=str(file))
    found = preflight(given, TilingOptions())
    text = f"{small}:18 memories.rf_weight.size: holds 4 bits, but one element of W has 8 (in 2 layers: a, b)"
    assert [str(one) for one in found.problems] == [text]
    shutil.copy(folder / "cores" / "k16_c16.yaml", tmp_path / "multi" / "cores" / "sound.yaml")
    file.write_text(file.read_text().replace("  3: ./cores/k16_c16.yaml", "  3: ./cores/sound.yaml"))
    accelerator = parse_accelerator(file)
    assert isinstance(accelerator, MultiCoreAccelerator)
    found = preflight(replace(given, accelerator=accelerator), TilingOptions())
    assert found.problems == ()
    assert text in found.notices


def test_a_misspelt_layer_name_is_noted() -> None:
    """An entry whose name selects no layer gives a notice; entries for operators and kinds of operators do not."""
    entries = [{"name": "aa"}, {"name": "LSTM"}, {"name": "@softmax"}]
    (notice,) = preflight(problem(*entries), TilingOptions()).notices
    assert notice.startswith("aa.name: selects no layer")


def test_descriptions_are_read_together(tmp_path: Path) -> None:
    """Problems of the mapping file and of the hardware are reported together; hardware with one core is a problem."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- name: a\n  core_alocation: [0]\n")
    workload = CONFIG / "workload" / "resnet18.onnx"
    with pytest.raises(InputError) as caught:
        read_system_problem(Descriptions(CONFIG / "hardware" / "zigzag" / "tpu_like.yaml", workload, mapping))
    text = str(caught.value)
    assert "core_alocation" in text
    assert "several cores need" in text
    with pytest.raises(InputError, match="no mapping is given"):
        read_system_problem(Descriptions(QUAD_CORE, workload))


def test_what_the_graph_depends_on_of_an_accelerator() -> None:
    """The digest for the graph depends on memories and operator types of cores, not on links or energies."""
    accelerator = quad_core()
    cheap = replace(accelerator, links=tuple(replace(link, energy_pj_per_bit=0.0) for link in accelerator.links))
    assert part_digest(cheap) == part_digest(accelerator)
    assert part_digest(quad_core(core_1=64)) != part_digest(accelerator)
    places = (replace(accelerator.places[0], operator_types=("Conv",)), *accelerator.places[1:])
    assert part_digest(replace(accelerator, places=places)) != part_digest(accelerator)


@pytest.mark.parametrize("name", sorted(path.stem for path in REFERENCE.glob("cases/*.json")))
def test_files_of_the_reference_are_right(name: str) -> None:
    """The reference's accelerators, networks and mappings have no problem, and give the reference's stacks."""
    case = json.loads((REFERENCE / "cases" / f"{name}.json").read_text())
    given = case["case"]
    hardware = REFERENCE / "hw" / f"{Path(given['hw']).stem}.yaml"
    made = read_system_problem(Descriptions(hardware, REFERENCE / case["wl"], REFERENCE / case["mapping"]))
    stacks = given.get("stacks") if given["mode"] == "fused" else None
    graph, _ = checked_cn_graph(made, TilingOptions(mode=given["mode"], layer_stacks=stacks))
    ids = [layer.node_id for layer in graph.layers]
    assert [[ids[number] for number in stack] for stack in graph.stacks] == case["layer_stacks"]


def test_a_network_that_only_moves_data_is_refused() -> None:
    """A network without a layer that computes is refused."""
    moves = read([make_node("Transpose", ["x"], ["y"], name="t", perm=[0, 2, 3, 1])])
    found = preflight(replace(problem(), workload=moves), TilingOptions())
    assert [one.message for one in found.problems] == ["the network has no layer that computes anything"]
