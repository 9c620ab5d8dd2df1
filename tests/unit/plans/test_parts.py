"""Numbers of parts of layers, and the cores on which parts of a new plan begin."""

import random
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from tilewright.mapping.constraints import TilingEntry
from tilewright.multicore.allocation.space import AllocationSpace
from tilewright.plans.cores import LayerCores, handed_on, recut_parts
from tilewright.plans.evaluate import PlanOutcome
from tilewright.plans.moves import PlanMoves
from tilewright.plans.plan import LayerTiles, Plan
from tilewright.plans.segments import PART_RULES, blocks
from tilewright.plans.space import Fixed, LayerSpace, PartRule, PlanSpace, plan_space

from tests.unit.plans.cases import BLANK, system_problem
from tests.unit.plans.test_passing import on_a_bus
from tests.unit.workload.onnx.dependency_checks import build_model

CONFIG = Path(__file__).resolve().parents[3] / "config"
# Two cores unroll 16 output and 16 input channels, one 16 columns and 16 output channels, one columns and kernels.


@cache
def mobilenet(array_dimension: str = "", unrolling: str = "") -> PlanSpace:
    """The space of plans of mobilenetv2 on unlike cores; each convolution may run on four of them."""
    entry = {"name": "stage5.1.project", "spatial_mapping": {array_dimension: [unrolling]}}
    entries = [entry] if array_dimension else []
    network, system = CONFIG / "workload" / "mobilenetv2.onnx", CONFIG / "hardware" / "multi" / "heterogeneous.yaml"
    return plan_space(system_problem(network, system, [*entries, *BLANK]), Fixed())


def layer(name: str, *spatial_mapping: str) -> LayerSpace:
    """The layer of the network with this name."""
    return next(one for one in mobilenet(*spatial_mapping).layers if one.node.name == name)


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("stage5.1.project", (16, 16, 16, 1)),
        ("stage5.1.depthwise", (16, 16, 1, 1)),  # by groups, where the first two have nothing else to unroll
        ("classifier", (16, 16, 16, 1)),  # no columns and kernels: one unit of the last core
    ],
)
def test_what_arrays_take_at_a_time(name: str, units: tuple[int, ...]) -> None:
    """The units along each dimension follow from the dataflows of the cores."""
    assert layer(name).units == units


def test_the_mapping_file_says_it_before_the_cores() -> None:
    """A spatial mapping in the file overrules the cores if it unrolls fewer channels, except on cores without its array
    dimension.

    A core whose exclusive dataflows have no channels on that dimension does not run the layer.
    """
    assert layer("stage5.1.project", "D1", "K, 8").units == (8, 8, 1, 1)
    assert layer("stage5.1.project", "D3", "K, 3").units == (16, 16, 16, 1)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("stage5.1.project", {1, 2, 3, 6}),  # 96 channels in parts of 96, 48, 32, 16
        ("stage6.1.project", {1, 2, 5, 10}),  # 160 in parts of 160, 80, 32, 16
        ("classifier", {9, 21, 63}),  # 1000 in parts of 112, 48, 16
    ],
)
def test_parts_that_fill_an_array_are_among_those_tried(name: str, counts: set[int]) -> None:
    """The tried numbers of parts include those that fill an array; no two of them give parts of the same size."""
    one = layer(name)
    size = one.size(one.channels[0])
    assert counts <= set(one.part_counts)
    assert len({-(-size // count) for count in one.part_counts}) == len(one.part_counts)
    assert all(-(-size // -(-size // count)) == count for count in one.part_counts)


def test_work_is_spread_so_that_arrays_are_full() -> None:
    """Work is spread so that arrays are full, worked out by hand for 160 channels on four cores.

    Three of the cores compute 16 channels at a time. 10 parts of 16 channels, at most 3 on a core, use the time of up
    to 4 x 3 x 16 = 192 channels. 8 parts of 20 channels take two passes each: 8 x 2 x 16 = 256.
    """
    spread, few = PartRule(0.5, True), PartRule(0.5, False)
    chosen = {
        name: layer(name).parts_for(spread) for name in ("stage6.1.project", "stage5.1.project", "stage2.0.project")
    }
    assert chosen == {"stage6.1.project": 10, "stage5.1.project": 3, "stage2.0.project": 2}
    assert layer("stage6.1.project").parts_for(few) == 2
    assert layer("stage6.1.add").parts_for(spread) == 1, "only the vector unit adds"


def test_weights_fit_whatever_else_parts_are_chosen_by() -> None:
    """The weights of each part fit in their share of the memory, unless more parts are impossible."""
    for one in mobilenet().layers:
        for share in (1.0, 0.5, 0.25):
            for spreads in (True, False):
                parts = one.parts_for(PartRule(share, spreads))
                assert parts in one.part_counts
                fits = one.weight_bits <= parts * share * one.weight_room_bits
                assert fits or parts == one.part_counts[-1] or not one.weight_room_bits


def test_layers_without_channels_are_whole() -> None:
    """A layer without channels to cut, or without a core, has one part."""
    one = layer("stage6.1.add")
    assert LayerSpace(one.node, "", "", (), 2, 0, 0).parts_for(PartRule(0.5, True)) == 1
    assert LayerSpace(one.node, "", "", ("K",), 0, 0, 0).parts_for(PartRule(0.5, True)) == 1, "no core runs it"


def space_of(counts: list[int], choices: tuple[int, ...] = (0, 1, 2)) -> AllocationSpace:
    """A space of layers with the given numbers of parts."""
    parts = tuple((place, group) for place, count in enumerate(counts) for group in range(count))
    nothing = np.ones((len(parts), 3))
    return AllocationSpace(parts, np.arange(len(parts)), (choices,) * len(parts), nothing.astype(np.int64), nothing)


def test_cores_keep_their_shares_of_a_layer() -> None:
    """New parts of a layer keep the shares of its cores: 3 parts become 6 or 2, and 4 parts on two cores become 3."""
    known: LayerCores = ((0, 1, 2), (0, 0, 2, 2))
    assert handed_on(space_of([6, 3]), known, None) == (0, 0, 1, 1, 2, 2, 0, 0, 2)
    assert handed_on(space_of([6, 3]), known, (1,) * 9) == (0, 0, 1, 1, 2, 2, 1, 1, 1)
    assert handed_on(space_of([2, 4]), known, None) == (0, 1, 0, 0, 2, 2)
    assert handed_on(space_of([3, 4], (1, 2)), known, None) == (1, 1, 2, 1, 1, 2, 2)


def test_which_layers_are_cut_anew() -> None:
    """Layers are cut again only if their number of parts changes."""
    known: LayerCores = ((0, 1, 2), (0, 0, 2, 2))
    assert recut_parts(space_of([3, 2]), known) == (3, 4)
    assert recut_parts(space_of([3, 4]), known) == ()
    assert recut_parts(space_of([3, 2]), None) == ()


def test_parts_of_one_core_are_made_one() -> None:
    """A step joins the parts of a layer into fewer, at most as many as there are cores, and changes nothing else."""
    space = mobilenet()
    tiles = {place: one.tiles(4, 1) for place, one in enumerate(space.layers)}
    plan = space.plan(list(tiles.values()), ())
    cut = {place: _parts(tiles[place]) for place in tiles}
    # The parts of each other layer on one core, those of the others on two.
    cores = tuple((0,) * cut[place] if place % 2 else (0, 1, 0, 1)[: cut[place]] for place in tiles)
    moves = PlanMoves(space, blocks(space), random.Random(0))
    seen = set()
    for _ in range(40):
        changed = moves.kinds["merged"](moves, PlanOutcome(plan, None, cores))
        assert isinstance(changed, Plan)
        assert changed.stacks == plan.stacks
        for place, now in enumerate(changed.tiles):
            if now != plan.tiles[place]:
                assert len(set(cores[place])) <= _parts(now) < cut[place]
                assert now.within == plan.tiles[place].within
                seen.add((place % 2, _parts(now)))
    assert {(1, 1), (0, 2)} <= seen


def test_steps_cut_layers_into_blocks() -> None:
    """Steps cut layers into blocks along rows and channels at once, with at most four blocks a core.

    Tiles within a core stay, and so do layers that only one core can run.
    """
    space = mobilenet()
    plan = space.plan([one.tiles(4, 1) for one in space.layers], ())
    moves = PlanMoves(space, blocks(space), random.Random(0))
    assert "blocks" not in moves.kinds, "four cores are few for a network of several layers"
    dimensions = set()
    for _ in range(40):
        changed = PlanMoves._other_blocks(moves, PlanOutcome(plan, None, ())) or plan
        assert changed.stacks == plan.stacks
        for one, now, before in zip(space.layers, changed.tiles, plan.tiles, strict=True):
            assert now.within == before.within
            if now != before:
                counts = {loop.dimension: int(loop.tiles) for loop in now.between}
                assert one.cores > 1
                assert set(counts) <= set(one.block_dimensions)
                assert tuple(counts.get(name, 1) for name in one.block_dimensions) in {cut.counts for cut in one.blocks}
                dimensions.add(len(counts))
    assert 2 in dimensions


def _parts(tiles: LayerTiles) -> int:
    return next((int(loop.tiles) for loop in tiles.between if isinstance(loop, TilingEntry)), 1)


def test_the_rule_of_the_image_gives_all_cores_equal_parts(tmp_path: Path) -> None:
    """The rule cuts rows first, then columns, then channels. Weights that do not fit a core are cut along channels."""
    nodes = [
        onnx.helper.make_node("Conv", ["a", "w"], ["b"], name="many_rows"),
        onnx.helper.make_node("MaxPool", ["b"], ["c"], name="pool", kernel_shape=[4, 4], strides=[4, 4]),
        onnx.helper.make_node("Conv", ["c", "u"], ["d"], name="few_rows"),
        onnx.helper.make_node("Relu", ["d"], ["e"], name="relu"),
        onnx.helper.make_node("Conv", ["e", "v"], ["y"], name="many_weights"),
    ]
    sizes = {"w": (16, 4, 1, 1), "u": (16, 16, 1, 1), "v": (4096, 16, 1, 1)}
    weights = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
    path = tmp_path / "net.onnx"
    onnx.save(build_model(nodes, {"a": (1, 4, 56, 56)}, weights), str(path))
    space = plan_space(system_problem(path, on_a_bus(tmp_path, 8, 8, runs_all=True)), Fixed())
    (rule,) = (rule for rule in PART_RULES if rule.in_image)
    found = {
        one.node.name: {loop.dimension: loop.tiles for loop in one.cut_by(rule, 1).between} for one in space.layers
    }
    assert found == {
        "many_rows": {"OY": 8},
        "pool": {"OY": 2, "OX": 2, "K": 2},
        "few_rows": {"OY": 2, "OX": 2, "K": 2},
        "relu": {"OY": 2, "OX": 2, "K": 2},
        "many_weights": {"K": 8},
    }
