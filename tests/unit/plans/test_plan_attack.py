"""Bounds of every plan on wide systems: random attacks, and examples in which a bound once was above a schedule."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.helper import make_node
from tilewright.base.errors import InputError, Problems
from tilewright.hardware.system_paths import path_table
from tilewright.mapping.constraints import Mapping as LayerMapping
from tilewright.mapping.constraints import PartAdditions, TilingEntry
from tilewright.multicore.nodes.reduction_cuts import cut_reductions
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.pipeline.sources import parse_accelerator
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.evaluate import PlanEvaluator
from tilewright.plans.plan import LayerTiles, Plan, layers_of
from tilewright.plans.tiling_bounds.bound import tiling_bounds
from tilewright.plans.tiling_bounds.needed_shares import needed_boxes
from tilewright.search.options import CnSearchOptions

from tests.members import members
from tests.unit.multi_core.random_cases import further_parts, with_larger_memories, with_wider_links
from tests.unit.multi_core.random_grids import random_small_network, random_wide_system
from tests.unit.multi_core.runs import core, off_chip, saved, write_accelerator
from tests.unit.plans.cases import system_problem
from tests.unit.plans.plan_attack import attack
from tests.unit.plans.random_plans import random_settings

SETTINGS, SEARCH = ScheduleSettings(), CnSearchOptions(lpf_limit=2)


@pytest.mark.parametrize("seed", range(members(10000, 24)))
def test_no_random_plan_on_a_wide_system_is_below_the_bounds(seed: int) -> None:
    """Random parts, stacks, allocations, detours and sums of parts on buses, meshes, rings, tori, stars and rows
    respect the bounds.
    """
    assert attack(seed).wrong == []


@pytest.mark.parametrize("seed", range(members(300, 6)))
def test_a_better_wide_system_has_no_larger_bound(seed: int, tmp_path: Path) -> None:
    """Twice the bandwidth or memory, a further core or link, multicast and forwarding do not make a bound larger.

    Further links that change paths are left out, because more data could then share a port.
    """
    draw = random.Random(seed)
    given = connected_system(draw, tmp_path)
    file = random_small_network(draw).save(tmp_path)
    settings, is_cut = random_settings(draw), draw.random() < 0.3

    def bounds_of(name: str, changed: dict[str, Any]) -> tuple[float, float, Paths]:
        problem = system_problem(file, write_accelerator(tmp_path / name, {**given, **changed}))
        found = tiling_bounds(problem, SEARCH.model, settings, cuts_reductions=is_cut)
        paths = {pair: path.core_ids for pair, path in path_table(problem.accelerator).items()}
        return found.latency_cycles, found.energy_pj, paths

    cycles, energy, paths = bounds_of("given", {})
    further = further_parts(random.Random(seed + 1), given, bandwidth=1000)
    better = {"wider": with_wider_links(given), "larger": with_larger_memories(given), "forwarding": FORWARDING}
    for name, changed in {**better, **further}.items():
        further_cycles, further_energy, new_paths = bounds_of(name, changed)
        if name == "link" and any(new_paths[pair] != path for pair, path in paths.items()):
            continue
        assert further_cycles <= cycles, name
        assert further_energy <= energy * (1 + 1e-12), name


FORWARDING = {"forwarding": True}
Paths = dict[tuple[int, int], tuple[int, ...]]
"""Cores along the path of each pair (sender, receiver)."""


def connected_system(draw: random.Random, folder: Path) -> dict[str, Any]:
    """A wide system whose cores all reach the off-chip memory.

    Its paths do not depend on the load of links, because a further core could then change the paths of all other cores.
    """
    while True:
        given = random_wide_system(draw)
        given.pop("equal_paths", None)
        try:
            parse_accelerator(write_accelerator(folder / "drawn", given))
        except InputError:
            continue
        return given


def system(folder: Path, links: list[dict[str, Any]], cores: Mapping[int, Any], **more: Any) -> Path:
    """Accelerator with links that take no energy and a fast off-chip memory."""
    free = [{"type": "link", "energy_per_bit": "0 fJ", **link} for link in links]
    return write_accelerator(folder, {"cores": cores, "offchip": off_chip(10000, 10000), "links": free, **more})


def latencies(problem: SystemProblem, plans: Iterator[Plan]) -> list[int]:
    """Latencies of plans whose layers each have only one core."""
    found = []
    for plan in plans:
        made = PlanEvaluator(problem, SEARCH, SETTINGS, "latency").multi_core_problem(plan)
        scheduler = Scheduler(made.assembled.problem, replace(made.options, record=False))
        genome = made.space.genome(tuple(cores[0] for cores in made.space.choices))
        found.append(scheduler(made.space.allocation(genome)).latency_cycles)
    return found


def in_tiles(problem: SystemProblem, count: int, **rules: Any) -> Plan:
    """Plan of one stack whose layers have up to `count` tiles along the first long dimension of their output."""
    nodes = layers_of(problem.workload)
    tiles = []
    for node in nodes:
        assert node.layer is not None
        sizes = node.layer.size_of
        names = [name for name in dict(node.layer.operand_dimensions)["O"] if sizes[name] >= count]
        tiles.append(LayerTiles((), (TilingEntry(names[0], count) if names else TilingEntry(next(iter(sizes)), 1),)))
    return Plan(tuple(tiles), (tuple(node.node_id for node in nodes),), "latency", (), **rules)


def test_forwarded_inputs_do_not_load_the_port_of_their_reader(tmp_path: Path) -> None:
    """Two layers read one input on two cores; with forwarding, core 1 gets it from core 0.

    The narrow port of core 1 then carries only results.
    """
    nodes = [make_node("Relu", ["x"], [name], name=name) for name in ("a", "b")]
    network = saved(tmp_path, nodes, {"x": (1, 16, 16, 16)}, {})
    cores = {number: core("wide", 8, "64 KiB") for number in range(2)}
    ports = [{"cores": [0], "bandwidth": 1000}, {"cores": [1], "bandwidth": 8}]
    mapping = [{"name": "default"}, {"name": "a", "core_allocation": [0]}, {"name": "b", "core_allocation": [1]}]
    bounds = []
    for forwards in (False, True):
        described = {"cores": cores, "offchip": off_chip(1000), "offchip_ports": ports, "forwarding": forwards}
        links = [{"type": "link", "cores": [0, 1], "bandwidth": 8, "energy_per_bit": "0 fJ"}]
        hardware = write_accelerator(tmp_path / "hw", {**described, "links": links})
        problem = system_problem(network, hardware, mapping)
        plan = replace(in_tiles(problem, 4), prefetch=("I",))
        found = latencies(problem, iter([plan]))
        bounds.append(tiling_bounds(problem, SEARCH.model, SETTINGS).latency_cycles)
        assert bounds[-1] <= min(found)
    assert bounds[1] < bounds[0]


def test_the_two_legs_of_a_detour_can_be_in_two_phases(tmp_path: Path) -> None:
    """The two legs of a detour can be in two phases.

    Results of core 1 leave early over its narrow link, and core 2 fetches them late over its own narrow link. The
    direct path would occupy both links at once, while weights need one link and results the other.
    """
    nodes = [
        make_node("Relu", ["x"], ["t"], name="a"),
        make_node("MatMul", ["t", "u"], ["b"], name="b"),
        make_node("MatMul", ["v", "w"], ["c"], name="c"),
        make_node("MatMul", ["c", "u"], ["s"], name="s"),
        make_node("Add", ["z", "s"], ["d"], name="d"),
    ]
    weights = {"w": np.ones((64, 16), np.float32), "u": np.ones((16, 1), np.float32)}
    network = saved(tmp_path, nodes, {"x": (64, 16), "v": (1, 64), "z": (64, 16)}, weights)
    widths = {(1, 0): 8, (0, 1): 5000, (0, 2): 8, (2, 0): 5000}
    links = [{"cores": list(pair), "bandwidth": width, "directed": True} for pair, width in widths.items()]
    cores = {0: core("hub", 1, "4 KiB"), 1: core("wide", 64, "64 KiB"), 2: core("wide", 64, "64 KiB")}
    hardware = system(tmp_path / "hw", links, cores, offchip_ports=[{"cores": [0], "bandwidth": 10000}], routers=[0])
    of_layer = {"a": 1, "b": 2, "c": 2, "s": 2, "d": 1}
    mapping = [{"name": name, "core_allocation": [core_id]} for name, core_id in of_layer.items()]
    problem = system_problem(network, hardware, [{"name": "default"}, *mapping])
    first = layers_of(problem.workload)[0].node_id
    plan = replace(in_tiles(problem, 16, by_off_chip=(first,)), selection="memory")
    assert tiling_bounds(problem, SEARCH.model, SETTINGS).latency_cycles <= min(latencies(problem, iter([plan])))


def test_a_bias_goes_to_the_core_that_adds(tmp_path: Path) -> None:
    """A matrix that is added to a product in parts does not pass the narrow port of the cores that multiply."""
    node = make_node("Gemm", ["x", "w", "q"], ["y"], name="y")
    weights = {"w": np.ones((2, 128), np.float32), "q": np.ones((8, 128), np.float32)}
    network = saved(tmp_path, [node], {"x": (8, 2)}, weights)
    cores: dict[int, Any] = {number: core("wide", 64, "64 KiB", ["mac"]) for number in range(2)}
    cores |= {2: core("vector", 64, "64 KiB", ["vector"])}
    links = [{"cores": [number, 2], "bandwidth": 5000} for number in range(2)]
    ports = [{"cores": [0, 1], "bandwidth": 2}, {"cores": [2], "bandwidth": 10000}]
    hardware = system(tmp_path / "hw", links, cores, offchip_ports=ports, routers=[0, 1], roles={2: "simd"})
    problem = system_problem(network, hardware)
    (layer,) = layers_of(problem.workload)
    assert layer.layer is not None
    entry = replace(
        problem.mapping.constraints_for(layer.layer),
        name="y",
        inter_core_tiling=(TilingEntry("C", 2),),
        reduction=PartAdditions("tree"),
    )
    mapping = LayerMapping((entry, *problem.mapping.entries))
    network_in_parts, mapping_of_parts = cut_reductions(problem.workload, mapping, problem.accelerator, Problems())
    cut = replace(problem, workload=network_in_parts, mapping=mapping_of_parts)
    found = min(latencies(cut, (in_tiles(cut, count) for count in (1, 4, 8))))
    bounds = tiling_bounds(problem, SEARCH.model, SETTINGS, cuts_reductions=True)
    assert bounds.latency_cycles <= found
    assert bounds.energy_pj <= tiling_bounds(problem, SEARCH.model, SETTINGS).energy_pj


def test_a_part_does_not_wait_for_a_bias(tmp_path: Path) -> None:
    """The last addition is the only one with an input that is not an operand of the product."""
    nodes = [
        make_node("MatMul", ["x", "w"], ["q"], name="q"),
        make_node("Gemm", ["x", "v", "q"], ["y"], name="y"),
    ]
    weights = {name: np.ones((4, 4), np.float32) for name in ("w", "v")}
    workload = system_problem(saved(tmp_path, nodes, {"x": (6, 4)}, weights)).workload
    last = layers_of(workload)[-1].node_id
    assert "q" in needed_boxes(workload, last)
    assert "q" not in needed_boxes(workload, last, ("C",))
