"""Mapping files of stream-dse 2.x for a network: tiles equal to release 2.1.1, refused files and notices."""

import json
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some
from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.errors import InputError
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.network_plans import PlanLayer
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.peers.stream.fused_axes import loops_in_order
from tilewright.peers.stream.mapping_schema import stream_mapping_schema
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.preflight.network import checked_cn_graph, read_checked

from tests.unit.peers.stream import plan_networks
from tests.unit.peers.stream.plan_networks import average_network, image_network, matrix_network, one_product

CASES = json.loads((Path(__file__).parent / "data" / "stream-plans.json").read_text())
HARDWARE = Path(__file__).resolve().parents[4] / "config" / "hardware"
CORE, OFFCHIP = HARDWARE / "zigzag" / "tpu_like_vector.yaml", HARDWARE / "multi" / "cores" / "offchip.yaml"


@pytest.fixture(name="system", scope="module")
def _system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four equal cores on a bus; each runs all operators."""
    path = tmp_path_factory.mktemp("system") / "four.yaml"
    cores = {place: str(CORE) for place in range(4)}
    links = {"core_connectivity": ["0, 1, 2, 3"], "bandwidth": 64, "unit_energy_cost": 0}
    path.write_text(yaml.safe_dump({"name": "four", "cores": cores, "offchip_core": str(OFFCHIP), **links}))
    return path


def problem_of(network: Path, system: Path, file: Any) -> SystemProblem:
    """The problem of a network on the four cores with a mapping file."""
    return read_checked(Descriptions(system, network, file), TilingOptions())


def tiles_of(problem: SystemProblem) -> dict[str, dict[int, int]]:
    """Layer -> position of a loop -> number of parts and tiles that run one after another on a core."""
    found = {}
    for node in problem.workload.nodes:
        if node.layer is None or node.whole_id is not None:
            continue
        entry = problem.mapping.constraints_for(node.layer)
        order = loops_in_order(node)
        assert order is not None
        cores = dict.fromkeys(entry.core_allocation)
        count = 1
        loops = {order.index(loop.dimension): int(loop.tiles) for loop in entry.intra_core_tiling if loop.tiles != 1}
        for loop in entry.inter_core_tiling:
            if count >= len(cores):  # the parts of a layer alone in its group that run on the same cores
                loops[order.index(loop.dimension)] = int(loop.tiles)
            count *= int(loop.tiles)
        found[node.name] = loops
    return found


def _cuts_no_sum(entry: dict[str, Any]) -> bool:
    """True if an entry cuts the reduction of a mean or of a maximum, whose parts tilewright cannot add."""
    cuts = [cut["dim"] for part in entry["inter_core_tiling"] for cut in part]
    return entry["name"] in ("mean", "pool") and not {"D4", "D5"}.isdisjoint(cuts)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_tiles_are_those_of_release_2_1_1(number: int, system: Path, tmp_path: Path) -> None:
    """Random groups, parts and tiles give the tiles that Stream 2.1.1 recorded, or an error where it refused the file.

    The network has further layers, so the file is a part of a mapping. Two kinds of files differ on purpose: cuts of a
    reduction that cannot be added, and tiles over a reduction in a layer that is alone in its group.
    """
    case = CASES[number]
    network = getattr(plan_networks, case["network"])(tmp_path)
    if case["tiles"] is None:
        with pytest.raises(InputError):
            problem_of(network, system, case["file"])
        return
    if any(_cuts_no_sum(entry) for entry in case["file"]["layers"]):
        with pytest.raises(InputError, match="not a sum of products"):
            problem_of(network, system, case["file"])
        return
    found = tiles_of(problem_of(network, system, case["file"]))
    alone = len(case["tiles"]) == 1
    for name, loops in case["tiles"].items():
        if name in found:
            wanted = dict(loops)
            assert found[name] == wanted or (alone and found[name].items() <= wanted.items())


GATED = """
layers:
- {name: left, core_allocation: [[0, 1, 2, 3]], inter_core_tiling: [[{dim: D2, split: 4}]]}
- {name: right, core_allocation: [[0, 1, 2, 3]], inter_core_tiling: [[{dim: D2, split: 4}]]}
- {name: Mul, core_allocation: [[2]]}
- {name: down, core_allocation: [[0, 1, 2, 3]], inter_core_tiling: [[{dim: D1, split: 4}]]}
- {name: last, core_allocation: [[3]], inter_core_tiling: []}
fused_groups:
- name: gate
  layers: [left, right, Mul]
  intra_core_tiling: [{dim: left.D0, tile: 8}, {dim: right.D2, tile: 8}]
- {name: rest, layers: [down, last], intra_core_tiling: [{dim: last.D0, tile: 16}]}
"""


def written(folder: Path, text: str) -> Path:
    """A mapping file with this text."""
    path = folder / "mapping.yaml"
    path.write_text(text)
    return path


def test_groups_become_stacks_and_shared_tiles(system: Path, tmp_path: Path) -> None:
    """Layers `left` and `right` are tiled like the product `mul` in their stack; `down` cuts its reduction."""
    problem = problem_of(matrix_network(tmp_path), system, written(tmp_path, GATED))
    names = {node.node_id: node.name for node in problem.workload_as_read.nodes}
    assert [[names[one] for one in stack] for stack in problem.mapping.stacks] == [
        ["left", "right", "mul"],
        ["down", "last"],
    ]
    entries = {entry.name: entry for entry in problem.mapping_as_read.entries}
    for name in ("left", "right"):
        assert [(loop.dimension, loop.tiles) for loop in entries[name].intra_core_tiling] == [("D", 4), ("K", 2)]
        assert entries[name].core_allocation == (0, 1, 2, 3)
        assert entries[name].core_allocation_is_fixed
    assert [loop.tiles for loop in entries["mul"].intra_core_tiling] == [4, 2]
    assert entries["down"].reduction is not None
    assert [(loop.dimension, loop.tiles) for loop in entries["down"].intra_core_tiling] == [("D", 2)]
    graph, _ = checked_cn_graph(problem, TilingOptions())
    assert len(graph.stacks) == 2


def test_options_take_precedence_over_groups(system: Path, tmp_path: Path) -> None:
    """Groups of the file are not the stacks if the mode is lbl or if `layer_stacks` is given."""
    problem = problem_of(matrix_network(tmp_path), system, written(tmp_path, GATED))
    graph, _ = checked_cn_graph(problem, TilingOptions(mode="lbl"))
    assert len(graph.stacks) == 5
    graph, _ = checked_cn_graph(problem, TilingOptions(layer_stacks=[[0, 1, 2, 3, 4]]))
    assert len(graph.stacks) == 1


@pytest.mark.parametrize(
    ("options", "name"),
    [({"layer_stacks": [[0, 1, 2, 3, 4]]}, "layer_stacks"), ({"stack_cutoffs": [2]}, "stack_cutoffs")],
)
def test_options_that_overrule_groups_are_told(
    options: dict[str, Any], name: str, system: Path, tmp_path: Path
) -> None:
    """A notice has the line of the groups and the option's name if options overrule the groups; else there is no
    notice.
    """
    problem = problem_of(matrix_network(tmp_path), system, written(tmp_path, GATED))
    told = f"mapping.yaml:8 fused_groups: the groups give only the tiles, because {name} decides the stacks"
    _, notices = checked_cn_graph(problem, TilingOptions(**options))
    assert [notice for notice in map(str, notices) if notice.endswith(told)], notices
    _, notices = checked_cn_graph(problem, TilingOptions())
    assert not [notice for notice in map(str, notices) if "decides the stacks" in notice]


def test_the_schema_for_editors_takes_both_forms_and_no_others() -> None:
    """The table and the list of its layers are valid. Older lists, unknown keys and wrong loops are invalid."""
    jsonschema = pytest.importorskip("jsonschema")
    valid = jsonschema.Draft202012Validator(stream_mapping_schema()).is_valid
    table = yaml.safe_load(GATED)
    assert valid(table)
    assert valid(table["layers"])
    assert not valid([{"name": "default", "core_allocation": [0, 1], "inter_core_tiling": ["K, *"]}])
    assert not valid({**table, "groups": []})
    assert not valid({"layers": [{**table["layers"][0], "inter_core_tiling": [[{"dim": "K", "split": 4}]]}]})
    assert not valid({"layers": [{**table["layers"][0], "inter_core_tiling": [[{"dim": "D2", "split": 0}]]}]})


WRONG = {
    "unknown core": ("[[2]]", "[[2, 9]]", 5, ["no such core", "0, 1, 2, 3"]),
    "unknown layer": ("[[3]], inter_core_tiling: []}", "[[3]]}\n- {name: dwon, core_allocation: [[0]]}", 8, ["'down'"]),
    "group of a misspelt layer": ("name: right,", "name: rigth,", 10, ["no entry of `layers`", "'rigth'"]),
    "unknown layer in a group": (
        "[left, right, Mul]",
        "[left, rigth, right, Mul]",
        10,
        ["no entry of `layers`", "'right'"],
    ),
    "loop that the layer lacks": (
        "left.D0, tile: 8",
        "left.D3, tile: 8",
        11,
        ["has no such loop", "D0 (D, 32), D1 (C, 16)"],
    ),
    "parts of a loop that the layer lacks": ("[[{dim: D1, split: 4}]]", "[[{dim: D7, split: 4}]]", 6, ["no such loop"]),
    "more parts than the loop has": (
        "[[{dim: D1, split: 4}]]",
        "[[{dim: D1, split: 128}]]",
        6,
        ["size 64", "1, 2, 4; nearest 4)"],
    ),
    "parts that do not divide": (
        "[[{dim: D1, split: 4}]]",
        "[[{dim: D1, split: 3}]]",
        6,
        ["size 64", "must divide this size", "1, 2, 4; nearest 2 and 4"],
    ),
    "more parts than cores": (
        "[[3]], inter_core_tiling: []",
        "[[3]], inter_core_tiling: [[{dim: D0, split: 2}]]",
        7,
        ["2 parts", "2 cores, or cuts into at most 1 part"],
    ),
    "tile larger than the share of a core": (
        "right.D2, tile: 8",
        "right.D2, tile: 64",
        11,
        ["16 indices each", "1, 2, 4, 8, 16; nearest 16"],
    ),
    "tile that does not divide": (
        "right.D2, tile: 8",
        "right.D2, tile: 7",
        11,
        ["16 indices each; the tile must divide this share", "1, 2, 4, 8, 16; nearest 4 and 8"],
    ),
    "two tiles of one axis": ("right.D2, tile: 8", "Mul.D0, tile: 4", 11, ["left.D0 are one axis"]),
    "tile of a layer of another group": ("right.D2, tile: 8", "down.D0, tile: 4", 11, ["group has no such layer"]),
    "both forms": ("[[2]]", "[2]", 5, ["form of Stream before 2.0", "[[0, 1]]"]),
    "old tiling": ("[[{dim: D1, split: 4}]]", '["C, 4"]', 6, ["form of Stream before 2.0"]),
    "old key": ("core_allocation: [[2]]", "core_allocation: [[2]], core_allocation_is_fixed: true", 5, ["before 2.0"]),
    "layer in two groups": (
        "layers: [down, last]",
        "layers: [down, last, left]",
        12,
        ["group gate has this layer", "each layer once"],
    ),
    "two lists of cores": ("[[2]]", "[[2], [3]]", 5, ["has 2 lists", "such as [[0, 1]]"]),
    "text for a loop": ("dim: D1,", "dim: C,", 6, ["must be D and the position"]),
    "no parts": ("{dim: D1, split: 4}", "{dim: D1, split: 0}", 6, ["greater than 0"]),
    "misspelt key": ("core_allocation: [[2]]", "core_alocation: [[2]]", 5, ["core_allocation"]),
    "two lists of cuts": (
        "[[{dim: D1, split: 4}]]",
        "[[{dim: D1, split: 2}], [{dim: D2, split: 2}]]",
        6,
        ["has 2 lists", "such as [[{dim: D2, split: 4}]]"],
    ),
    "layer twice in a group": ("[down, last]", "[down, last, last]", 12, ["the list has this layer twice"]),
    "core twice": ("[[2]]", "[[2, 2]]", 5, ["named twice", "in the list once"]),
    "loop cut twice": (
        "[[{dim: D1, split: 4}]]",
        "[[{dim: D1, split: 2}, {dim: D1, split: 2}]]",
        6,
        ["'D1'", "one cut of each loop"],
    ),
    "position that no loop has": ("dim: D1,", "dim: D77,", 6, ["'D77'", "D0, D1, ..., D64"]),
    "entry for all layers": ("name: right,", "name: default,", 4, ["'default'", "an operator type such as Conv"]),
    "name twice": (
        "name: right,",
        "name: left,",
        4,
        ["entry 1 of `layers` has the same name", "one entry for each name"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_by_line(case: str, system: Path, tmp_path: Path) -> None:
    """Each problem has the line and says what is allowed."""
    old, new, line, said = WRONG[case]
    assert old in GATED
    path = written(tmp_path, GATED.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        problem_of(matrix_network(tmp_path), system, path)
    here = [one for one in caught.value.problems if one.line == line and one.file == str(path)]
    assert here, [str(one) for one in caught.value.problems]
    text = "\n".join(map(str, here))
    assert all(one in text for one in said), text


def test_a_group_without_layers_is_told_once(system: Path, tmp_path: Path) -> None:
    """The tiles of a group without layers give no further messages."""
    path = written(tmp_path, GATED.replace("layers: [down, last]", "layers: []"))
    with pytest.raises(InputError) as caught:
        problem_of(matrix_network(tmp_path), system, path)
    assert [(one.line, one.path) for one in caught.value.problems] == [(12, "fused_groups.rest.layers")]


def test_a_cut_of_a_maximum_names_the_loops_that_can_be_cut(system: Path, tmp_path: Path) -> None:
    """Partial results of MaxPool cannot be added; the message has the loop of the file and the loops of the output."""
    text = "layers: [{name: pool, core_allocation: [[0, 1, 2]], inter_core_tiling: [[{dim: D4, split: 3}]]}]\n"
    with pytest.raises(InputError) as caught:
        problem_of(image_network(tmp_path), system, written(tmp_path, text))
    (problem,) = caught.value.problems
    assert (problem.line, problem.value, problem.allowed) == (1, "'D4'", "D0 (B), D1 (K), D2 (OY), D3 (OX)")
    assert "D4 (FY) of pool has size 3; MaxPool is not a sum of products" in problem.message


def test_an_operator_without_a_known_order_of_loops_has_the_loop_of_the_file(system: Path, tmp_path: Path) -> None:
    """The message has the line and the loop, and says to leave layers of the operator uncut."""
    text = "layers: [{name: avg, core_allocation: [[0, 1]], inter_core_tiling: [[{dim: D1, split: 2}]]}]\n"
    with pytest.raises(InputError) as caught:
        problem_of(average_network(tmp_path), system, written(tmp_path, text))
    (problem,) = caught.value.problems
    assert (problem.line, problem.value) == (1, "'D1'")
    assert problem.allowed == "no cuts of layers with the operator AveragePool"


def test_all_problems_are_told_at_once(system: Path, tmp_path: Path) -> None:
    """A wrong core, a wrong part and a wrong tile give three problems."""
    text = GATED.replace("[[2]]", "[[9]]").replace("D1, split: 4", "D1, split: 3").replace("tile: 16", "tile: 5")
    with pytest.raises(InputError) as caught:
        problem_of(matrix_network(tmp_path), system, written(tmp_path, text))
    assert {one.line for one in caught.value.problems} >= {5, 6, 12}


def test_an_operator_that_a_core_cannot_run_has_the_line(tmp_path: Path, system: Path) -> None:
    """A later check of operators, which knows entries only, still names the line of the file."""
    core = tmp_path / "mac.yaml"
    core.write_text(CORE.read_text().replace("operator_types:", "operator_types: [Gemm, MatMul] #"))
    text = system.read_text().replace(f"2: {CORE}", f"2: {core}")
    hardware = tmp_path / "unlike.yaml"
    hardware.write_text(text)
    with pytest.raises(InputError) as caught:
        checked_cn_graph(problem_of(matrix_network(tmp_path), hardware, written(tmp_path, GATED)), TilingOptions())
    assert [one.line for one in caught.value.problems] == [5]


def test_what_has_no_effect_is_told(system: Path, tmp_path: Path) -> None:
    """Notices report kernels and arguments of code, layers without an entry and layers without a group."""
    text = GATED.replace("core_allocation: [[2]]", "core_allocation: [[2]], kernel: {name: mul, kwargs: {}}")
    text = text.replace("- {name: last, core_allocation: [[3]], inter_core_tiling: []}\n", "")
    text = text.replace("- {name: rest, layers: [down, last], intra_core_tiling: [{dim: last.D0, tile: 16}]}\n", "")
    problem = problem_of(matrix_network(tmp_path), system, written(tmp_path, text + "runtime_args: {x: {}}\n"))
    told = "\n".join(map(str, problem.notices))
    for one in (
        "kernel: has no effect",
        "runtime_args: has no effect",
        "1 layer of the network (last)",
        "1 layer (down)",
    ):
        assert one in told


def test_a_list_of_layers_is_read_too(system: Path, tmp_path: Path) -> None:
    """The list form has no groups, so options decide the stacks, and no layer is cut into tiles."""
    layers = yaml.safe_load(GATED)["layers"]
    problem = problem_of(matrix_network(tmp_path), system, written(tmp_path, yaml.safe_dump(layers)))
    assert problem.mapping.stacks == ()
    assert any("no fused groups" in str(one) for one in problem.notices)
    graph, _ = checked_cn_graph(problem, TilingOptions())
    assert len(graph.stacks) == 1


def test_tiles_of_a_layer_alone_in_its_group_are_parts_on_the_same_cores(system: Path, tmp_path: Path) -> None:
    """Tiles of a layer alone in its group become parts: each of four cores computes 4 of the 16 parts of K.

    Tiles of the reduction are dropped with a notice.
    """
    text = """
layers: [{name: second, core_allocation: [[0, 1, 2, 3]], inter_core_tiling: [[{dim: D6, split: 4}]]}]
fused_groups:
- {name: g, layers: [second], intra_core_tiling: [{dim: second.D5, tile: 8}, {dim: second.D6, tile: 1}]}
"""
    problem = problem_of(image_network(tmp_path), system, written(tmp_path, text))
    entry = next(one for one in problem.mapping.entries if one.name == "second")
    assert [(loop.dimension, loop.tiles) for loop in entry.inter_core_tiling] == [("K", 4), ("K", 4)]
    assert entry.core_allocation == (0, 1, 2, 3) * 4
    assert any("second: C, 2" in str(one) for one in problem.notices)


NAMES = some.text("abcd/._1", min_size=1, max_size=6).filter(lambda name: name.strip(".") != "")


@some.composite
def files(draw: some.DrawFn) -> dict[str, Any]:
    """Content of a mapping file that is valid without a network."""
    names = draw(some.lists(NAMES, min_size=1, max_size=4, unique=True))
    layers = []
    for name in names:
        cuts = draw(
            some.lists(some.tuples(some.integers(0, 9), some.integers(1, 99)), max_size=3, unique_by=lambda one: one[0])
        )
        cores = draw(some.lists(some.integers(0, 99), min_size=1, max_size=5, unique=True))
        tiling = [[{"dim": f"D{place}", "split": parts} for place, parts in cuts]] if cuts else []
        layers.append({"name": name, "core_allocation": [cores], "inter_core_tiling": tiling})
    tiles = draw(
        some.lists(some.tuples(some.sampled_from(names), some.integers(0, 9), some.integers(1, 99)), max_size=3)
    )
    tiling = [{"dim": f"{name}.D{place}", "tile": size} for name, place, size in tiles]
    return {"layers": layers, "fused_groups": [{"name": "g", "layers": names, "intra_core_tiling": tiling}]}


def _cuts(layer: PlanLayer) -> list[dict[str, Any]]:
    """The cuts of a layer, in the form of a file."""
    return [{"dim": f"D{cut.dimension}", "split": cut.parts} for cut in layer.splits]


@given(files())
@settings(max_examples=60, deadline=None)
def test_reading_keeps_everything(file: dict[str, Any]) -> None:
    """The plan has all numbers of the file, and its encoded form gives the same plan."""
    mapping = read_mapping(file, plans=True)
    plan = mapping.plan
    assert plan is not None
    layers = [
        {
            "name": one.name,
            "core_allocation": [list(one.cores)],
            "inter_core_tiling": [[{"dim": f"D{cut.dimension}", "split": cut.parts} for cut in one.splits]]
            * bool(one.splits),
        }
        for one in plan.layers
    ]
    groups = [
        {
            "name": one.name,
            "layers": list(one.layers),
            "intra_core_tiling": [{"dim": f"{tile.layer}.D{tile.dimension}", "tile": tile.size} for tile in one.tiles],
        }
        for one in plan.groups
    ]
    assert {"layers": layers, "fused_groups": groups} == file
    assert decode(Mapping, json.loads(json.dumps(encode(mapping)))) == mapping


def test_other_artifacts_do_not_change() -> None:
    """A mapping without a plan is encoded without the fields of plans."""
    assert encode(Mapping((MappingConstraints("default"),))).keys() == {"entries"}


def test_fuse_keeps_the_decisions_of_a_file(system: Path, tmp_path: Path) -> None:
    """The plan found by `fuse` has the cores, tiles and stacks of the file; a network of one layer works, too."""
    network, file = matrix_network(tmp_path), written(tmp_path, GATED)
    found = tilewright.fuse(network, system, file, nb_plans=4, jobs=1, fusion_time_budget_s=None)
    names = {node.node_id: node.name for node in found.problem.workload_as_read.nodes}
    assert [names[stack[0]] for stack in found.plan.stacks] == ["left", "down"]
    entries = {entry["name"]: entry for entry in yaml.safe_load(found.mapping_text)}
    assert entries["left"]["core_allocation"] == [0, 1, 2, 3]
    assert entries["left"]["intra_core_tiling"] == ["D, 4", "K, 2"]
    alone = tilewright.fuse(one_product(tmp_path), system, written(tmp_path, ONE), nb_plans=4, jobs=1)
    assert yaml.safe_load(alone.mapping_text)[0]["core_allocation"] == [1, 0]


ONE = """
layers: [{name: only, core_allocation: [[1, 0]], inter_core_tiling: [[{dim: D2, split: 2}]]}]
fused_groups: [{name: g, layers: [only], intra_core_tiling: [{dim: only.D0, tile: 32}]}]
"""


def test_a_run_with_the_written_mapping_has_the_same_schedule(system: Path, tmp_path: Path) -> None:
    """`allocate` writes ordinary entries. With the stacks from its first line, they give the same latency and
    energy.
    """
    network, file = matrix_network(tmp_path), written(tmp_path, GATED)
    made = tilewright.run_multi_core(str(network), str(system), str(file))
    text = made.mapping_text()
    stacks = json.loads(text.partition("layer_stacks: ")[2].partition("\n")[0])
    (tmp_path / "fixed.yaml").write_text(text)
    again = tilewright.run_multi_core(str(network), str(system), str(tmp_path / "fixed.yaml"), layer_stacks=stacks)
    assert (again.latency_cycles, again.energy_pj) == (made.latency_cycles, made.energy_pj)


def test_a_type_of_several_layers_is_in_no_single_group(system: Path, tmp_path: Path) -> None:
    """An entry for an operator type in one of two groups makes no stacks, as the file does not say which layers it
    means.

    With one group, all layers of the type are in the group.
    """
    text = """
layers:
- {name: last, core_allocation: [[0]]}
- {name: Mul, core_allocation: [[1]]}
- {name: Gemm, core_allocation: [[0]]}
fused_groups:
- {name: a, layers: [Gemm, Mul]}
- {name: b, layers: [last]}
"""
    with pytest.raises(InputError, match="selects 3 layers") as caught:
        problem_of(matrix_network(tmp_path), system, written(tmp_path, text))
    assert [one.line for one in caught.value.problems] == [7]
    one = text.replace("[Gemm, Mul]", "[Gemm, Mul, last]").replace("- {name: b, layers: [last]}\n", "")
    assert len(problem_of(matrix_network(tmp_path), system, written(tmp_path, one)).mapping.stacks) == 1
