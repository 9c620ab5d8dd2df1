"""Arrays with exclusive dataflows: allowed and refused spatial mappings, in every search."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from onnx.helper import make_node
from tilewright.base.errors import InputError
from tilewright.hardware.core import Core, Dataflow, OperationalArray
from tilewright.hardware.source import parse_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints, Unrolling
from tilewright.mapping.dataflows import constraints_on_core, has_no_dataflow, refusal
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.pipeline.stages.preflight.network import preflight
from tilewright.pipeline.stages.run import below_workload, default_pipeline
from tilewright.pipeline.stages.spatial import CustomSpatialMappingGenerator, SpatialMappingGenerator
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

from tests.unit.multicore.nodes.networks import SAME, conv, read
from tests.unit.multicore.nodes.systems import CONFIG
from tests.unit.pipeline.stages.multi.core_cases import ANY, OPTIONS, core, cut, memory, system

KC: Dataflow = (("D1", (("K", 4),)), ("D2", (("C", 4),)))
DIAGONAL: Dataflow = (("D1", (("G", 4),)),)
NOTHING: Unrolling = (("D1", ()), ("D2", ()))
LOOPS = ("K", "C", "G", "OX", "OY", "FX", "FY")


def network(groups: int, channels: int = 8) -> Workload:
    """Return a convolution with `channels` inputs and outputs on 4 x 4 pixels, in groups."""
    weights = (channels, channels // groups, 3, 3)
    return read([conv("x", "w", "a", group=groups, **SAME)], {"x": (1, channels, 4, 4)}, {"w": weights})


def layer_of(workload: Workload) -> Layer:
    """Return the only layer of the network."""
    (node,) = workload.nodes
    assert node.layer is not None
    return node.layer


def exclusive(*dataflows: Dataflow, lanes: tuple[int, int] = (4, 4)) -> Core:
    """Return a core of a two-sided array with exclusive dataflows and one memory for all data."""
    everything = memory("all", 10**6, ("I1", "I2", "O"), 512, ("D1", "D2"))
    array = OperationalArray((("D1", lanes[0]), ("D2", lanes[1])), 0.5)
    return replace(core(everything), operational_array=array, dataflows=dataflows, exclusive_dataflows=True)


def chosen(layer: Layer, one: Core, given: Unrolling = ()) -> list[Unrolling]:
    """Return the spatial mappings that the search tries."""
    return [found.spatial_mapping for found in constraints_on_core(MappingConstraints("", given), layer, one)]


@pytest.mark.parametrize(
    ("groups", "dataflows", "given", "expected"),
    [
        (1, (KC,), (), [KC]),
        (8, (KC,), (), [NOTHING]),
        (8, (KC, DIAGONAL), (), [(DIAGONAL[0], ("D2", ()))]),
        (2, (KC, DIAGONAL), (), [KC, (DIAGONAL[0], ("D2", ()))]),
        (1, (KC,), (("D1", (("K", 2),)),), [(("D1", (("K", 2),)), KC[1])]),
        (1, (KC,), (("D2", ()),), [(KC[0], ("D2", ()))]),
        (1, (KC,), (("D1", (("OX", 4),)),), []),
        (1, (KC,), (("D1", (("K", 8),)),), []),
        (1, (KC,), (("D1", (("C", 4),)),), []),
        (1, (KC,), (("D1", (("Z", 4),)),), [(("D1", ()), KC[1])]),
        (1, (KC,), (("D3", (("OX", 4),)),), [KC]),
        (8, (KC,), (("D1", (("K", 4),)),), [NOTHING]),
    ],
)
def test_exclusive_dataflows_leave_nothing_open(
    groups: int, dataflows: tuple[Dataflow, ...], given: Unrolling, expected: list[Unrolling]
) -> None:
    """Sides without a loop stay idle; a mapping file may choose a dataflow or fewer lanes, and further loops are
    refused."""
    layer, one = layer_of(network(groups)), exclusive(*dataflows)
    wanted = [
        tuple((n, tuple(x for x in loops if layer.size_of.get(x[0], 1) > 1)) for n, loops in flow) for flow in expected
    ]
    assert chosen(layer, one, given) == wanted
    assert bool(refusal(MappingConstraints("", given), layer, one)) == (not expected)


def widest(layer: Layer, one: Core) -> int:
    """Return the most lanes that a dataflow gives a layer, computed independently."""
    lanes = [1]
    for flow in one.dataflows:
        product = 1
        for _, loops in flow:
            for dimension, factor in loops:
                product *= min(factor, dict(layer.loop_sizes).get(dimension, 1))
        lanes.append(product)
    return max(lanes)


def random_dataflow(draw: random.Random, lanes: tuple[int, int]) -> Dataflow:
    """Return a random dataflow with at most one loop for each side of the array."""
    flow = []
    for name, size in zip(("D1", "D2"), lanes, strict=True):
        loop = draw.choice((*LOOPS, ""))
        flow.append((name, ((loop, draw.randint(2, size)),) if loop else ()))
    return tuple(flow)


@pytest.mark.parametrize("seed", range(40))
def test_no_search_finds_more_lanes_than_a_dataflow_has(seed: int) -> None:
    """Random searches find no more lanes than the widest dataflow has."""
    draw = random.Random(seed)
    lanes = draw.choice(((4, 4), (2, 8), (3, 5)))
    one = exclusive(*dict.fromkeys(random_dataflow(draw, lanes) for _ in range(draw.randint(1, 3))), lanes=lanes)
    channels = draw.choice((4, 6, 8))
    workload = network(draw.choice([g for g in (1, 2, channels) if channels % g == 0]), channels)
    options = SearchOptions(
        model=draw.choice(("corrected", "zigzag-3.9.1")),
        temporal_mapping_search_engine=draw.choice(("loma", "exact")),
        nb_spatial_mappings_generated=draw.choice((0, 3)),
        enable_mix_spatial_mapping=draw.random() < 0.5,
        lpf_limit=4,
        objective=draw.choice(("latency", "energy")),
    )
    stages = below_workload(default_pipeline(options).stages)
    if draw.random() < 0.3:
        custom = CustomSpatialMappingGenerator(model=options.model)
        stages = tuple(custom if type(stage) is SpatialMappingGenerator else stage for stage in stages)
    (row,) = map_core(cut(workload), workload, ANY, system({"one": one}), "one", options, stages=stages)
    layer = layer_of(workload)
    assert row.can_run, row.reason
    macs = math.prod(size for _, size in layer.loop_sizes)
    assert row.total0_cycles * widest(layer, one) >= macs
    unrolled = row.mapping["spatial_mapping"]
    allowed = [{name: dict(loops) for name, loops in flow} for flow in one.dataflows]
    assert any(
        all(
            factor <= flow.get(side, {}).get(loop, 1)
            for side, loops in unrolled.items()
            for loop, factor in loops.items()
        )
        for flow in allowed
    )
    assert has_no_dataflow(layer, one) == (math.prod(f for loops in unrolled.values() for f in loops.values()) == 1)


def test_what_no_dataflow_does_is_a_row_with_the_reason() -> None:
    """A layer that no dataflow can run has a row with the reason and the dataflows of the core."""
    workload, given = network(8), Mapping((MappingConstraints("default", (("D1", (("OX", 4),)),)),))
    (row,) = map_core(cut(workload), workload, given, system({"one": exclusive(KC, DIAGONAL)}), "one", OPTIONS)
    assert not row.can_run
    assert "D1 OX 4" in row.reason
    assert "core small can use only its exclusive dataflows: D1 K 4, D2 C 4; or D1 G 4" in row.reason


def depthwise() -> Workload:
    """Return a depthwise convolution with 32 channels of 28 x 28 pixels."""
    return read([conv("x", "w", "dw", group=32, **SAME)], {"x": (1, 32, 28, 28)}, {"w": (32, 1, 3, 3)})


@pytest.mark.parametrize(
    ("name", "most"),
    [("k16_c16", 16), ("ox16_k16", 16), ("ox28_fx3_fy3", 252), ("diana_digital", 16), ("diana_analog", 9)],
)
def test_shipped_arrays_run_depthwise_layers_as_they_can(name: str, most: int) -> None:
    """Shipped arrays run a depthwise layer with about as many lanes as their dataflows allow."""
    one = next(iter(parse_accelerator(CONFIG / "hardware" / "multi" / "cores" / f"{name}.yaml").cores))
    workload = depthwise()
    (row,) = map_core(cut(workload), workload, ANY, system({"one": one}, 64), "one", OPTIONS)
    lanes = 32 * 28 * 28 * 9 / (row.ideal_cycles / row.spatial_utilisation)
    assert most / 1.2 < lanes <= most


def test_matrix_products_fill_columns_of_pixels_with_rows() -> None:
    """A matrix product fills an array of 16 pixels by 16 output channels; product rows take the place of pixels."""
    one = next(iter(parse_accelerator(CONFIG / "hardware" / "multi" / "cores" / "ox16_k16.yaml").cores))
    workload = read([make_node("MatMul", ["x", "w"], ["y"], name="y")], {"x": (32, 64)}, {"w": (64, 32)})
    (row,) = map_core(cut(workload), workload, ANY, system({"one": one}, 64), "one", OPTIONS)
    assert row.ideal_cycles == 32 * 64 * 32 // 256
    assert row.spatial_utilisation == 1.0


def told(workload: Workload, one: Core, *entries: dict[str, object]) -> tuple[list[str], tuple[str, ...]]:
    """Return problems and notices of the preflight."""
    mapping = parse_mapping([*entries, {"name": "default"}])
    found = preflight(SystemProblem(workload, system({"one": one}), mapping), TilingOptions(1, [["OY", "all"]]))  # type: ignore[list-item]
    return [str(problem) for problem in found.problems], found.notices


def test_the_preflight_tells_idle_arrays_hints_and_what_no_core_does() -> None:
    """The preflight reports idle arrays, hints without effect and layers that no core can run, before any search."""
    problems, notices = told(network(8), exclusive(KC))
    assert problems == []
    assert [note for note in notices if "on only one of its 16 units" in note and "Conv a" in note]
    assert told(network(8), exclusive(KC, DIAGONAL))[1] == ()
    entry = {"name": "Conv", "spatial_mapping": {"D1": ["OX, 4"]}, "spatial_mapping_hint": {"D2": ["FX"]}}
    problems, notices = told(network(1), exclusive(KC), entry)
    assert len(problems) == 1
    assert "no core can run a with this spatial mapping" in problems[0]
    assert any("spatial_mapping_hint" in note and "no effect" in note for note in notices)


def test_the_key_needs_dataflows_and_is_told_where_one_core_runs_alone(tmp_path: Path) -> None:
    """`exclusive_dataflows` without dataflows is refused; on a single core it gets a notice that it has no effect."""
    text = (CONFIG / "hardware" / "multi" / "cores" / "simd.yaml").read_text()
    wrong = tmp_path / "core.yaml"
    wrong.write_text(f"{text}exclusive_dataflows: true\n")
    with pytest.raises(InputError) as error:
        parse_accelerator(wrong)
    (problem,) = error.value.problems
    assert problem.path == "exclusive_dataflows"
    assert problem.line == text.count("\n") + 1
    wrong.write_text(f"{text}exclusive_dataflow: true\n")
    with pytest.raises(InputError) as error:
        parse_accelerator(wrong)
    assert error.value.problems[0].nearest == "exclusive_dataflows"
    notices: list[str] = []
    parse_accelerator(CONFIG / "hardware" / "multi" / "cores" / "k16_c16.yaml", notices)
    assert any("exclusive_dataflows: has an effect only in runs of several cores" in note for note in notices)
