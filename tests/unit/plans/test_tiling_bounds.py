"""Bounds over every plan: no plan of the space is below them, and each step of their proofs holds for every plan."""

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.scheduling.cost_classes import cost_classes
from tilewright.pipeline.stages.multi.items import CostedCnProblem, SystemProblem
from tilewright.plans.evaluate import PlanEvaluator
from tilewright.plans.plan import layers_of, planned_mapping
from tilewright.plans.tiling_bounds.bound import layer_works, tiling_bounds
from tilewright.plans.tiling_bounds.covering_program import CoveringProgram
from tilewright.plans.tiling_bounds.needed_shares import needed_boxes
from tilewright.search.options import CnSearchOptions

from tests.members import members
from tests.unit.multi_core.random_cases import RandomNetwork, further_parts, random_system
from tests.unit.multi_core.runs import write_accelerator
from tests.unit.plans.cases import random_case, system_problem
from tests.unit.plans.random_plans import random_plan, random_settings, schedules

SYSTEMS = Path(__file__).parents[3] / "config" / "hardware" / "multi"
PLANS = 6
"""Number of plans for each pair of network and system; each plan is scheduled with up to four allocations."""


@pytest.mark.parametrize("seed", range(members(400, 6)))
def test_no_random_plan_is_below_the_bounds(seed: int, tmp_path: Path) -> None:
    """Random parts, tiles, stacks, allocations and rules take at least the bounds."""
    draw = random.Random(seed)
    problem = system_problem(*random_case(seed, tmp_path))
    search, settings = CnSearchOptions(lpf_limit=2, objective=draw.choice(("latency", "energy"))), random_settings(draw)
    bounds = tiling_bounds(problem, search.model, settings)
    found = [figures for _, figures in schedules(draw, problem, search, settings, PLANS)]
    assert (bounds.latency_cycles > 0) == bool(layers_of(problem.workload))
    assert [one for one in found if one.latency_cycles < bounds.latency_cycles] == []
    assert [one for one in found if one.energy_pj < bounds.energy_pj] == []


@pytest.mark.parametrize("seed", range(members(400, 6)))
def test_no_cut_of_a_layer_is_below_its_least_work(seed: int, tmp_path: Path) -> None:
    """The tiles of a layer take at least the least cycles and the least energy of the layer, on each core file."""
    draw = random.Random(seed)
    problem = system_problem(*random_case(seed, tmp_path))
    compared = sum(least_work_is_kept(draw, problem) for _ in range(PLANS))
    assert compared > 0 or not layers_of(problem.workload)


@pytest.mark.parametrize("seed", range(members(200, 5)))
@pytest.mark.parametrize("system", ["heterogeneous", "diana"])
def test_no_cut_on_arrays_with_registers_is_below_the_least_work(seed: int, system: str, tmp_path: Path) -> None:
    """The least work also holds on cores with dataflows, registers and several ports, and on in-memory arrays."""
    draw = random.Random(seed)
    network = RandomNetwork(draw).save(tmp_path)
    problem = system_problem(network, SYSTEMS / f"{system}.yaml")
    compared = sum(least_work_is_kept(draw, problem) for _ in range(3))
    assert compared > 0 or not layers_of(problem.workload)


def least_work_is_kept(draw: random.Random, problem: SystemProblem) -> int:
    """Number of comparisons of layers on core files, for one random plan; checks each of them."""
    search, settings = CnSearchOptions(lpf_limit=2, objective=draw.choice(("latency", "energy"))), random_settings(draw)
    costed = random_cut(draw, problem, search)
    if costed is None:
        return 0
    graph, mapping = costed.graph, costed.descriptions.mapping
    of_cn = cost_classes(graph, problem.workload, mapping).of_cn
    compared = 0
    for layer, works in enumerate(layer_works(problem, search.model, settings)):
        rows = of_cn[graph.cn_layer == layer].tolist()
        for name, work in works.items():
            table = costed.costs[name]
            if any(table[row].reason for row in rows):
                continue
            cycles = sum(getattr(table[row], f"{settings.cn_runtime}_cycles") for row in rows)
            energy = sum(table[row].on_core_energy_pj for row in rows)
            where = layers_of(problem.workload)[layer].layer, name, len(rows), settings.cn_runtime
            assert work.shared_cycles <= work.cycles <= cycles + 1e-6, where
            assert work.energy_pj <= energy * (1 + 1e-9), where
            compared += 1
    return compared


def random_cut(draw: random.Random, problem: SystemProblem, search: CnSearchOptions) -> CostedCnProblem | None:
    """The network cut by a random plan, with costs; None if the plan cannot be cut."""
    plan = random_plan(draw, problem)
    try:
        costed = PlanEvaluator(problem, search, random_settings(draw), "latency").costed(plan)
    except (InputError, MappingError):
        return None
    mapping = planned_mapping(problem.mapping, layers_of(problem.workload), plan)
    return replace(costed, descriptions=replace(problem, mapping=mapping))


@pytest.mark.parametrize("seed", range(members(400, 10)))
def test_every_tile_waits_for_the_boxes_that_it_needs(seed: int, tmp_path: Path) -> None:
    """All tiles on which a tile depends together make at least the elements that the bounds claim for it."""
    draw = random.Random(seed)
    problem = system_problem(*random_case(seed, tmp_path))
    search = CnSearchOptions(lpf_limit=1)
    costed = next((one for one in (random_cut(draw, problem, search) for _ in range(5)) if one is not None), None)
    assert costed is not None
    graph, nodes = costed.graph, layers_of(problem.workload)
    made = elements_before(problem, graph)
    for pivot, node in enumerate(nodes):
        boxes = needed_boxes(problem.workload, node.node_id)
        for layer, earlier in enumerate(nodes[:pivot]):
            box = boxes.get(earlier.outputs[0])
            if box is None or len(earlier.outputs) > 1:
                continue
            least = min(made[cn, layer] for cn in np.flatnonzero(graph.cn_layer == pivot).tolist())
            assert math.prod(box) <= least, (node.name, earlier.name, box)


def elements_before(problem: SystemProblem, graph: CnGraph) -> np.ndarray:
    """[cn, layer] number of the layer's elements that the CN and its predecessors make."""
    bits = [problem.workload.tensor_of[layer.outputs[0]].bits for layer in graph.layers]
    before = np.eye(graph.cn_count, dtype=np.bool_)
    for cn in range(graph.cn_count):
        edges = np.flatnonzero((graph.edge_target == cn) & (graph.edge_source < cn))
        for source in graph.edge_source[edges].tolist():
            before[cn] |= before[source]
    found = np.zeros((graph.cn_count, len(graph.layers)), np.int64)
    for layer, element in enumerate(bits):
        own = graph.cn_layer == layer
        found[:, layer] = before[:, own] @ graph.output_bits[own] // element
    return found


@pytest.mark.parametrize("seed", range(members(200, 8)))
def test_a_better_system_has_no_larger_bound(seed: int, tmp_path: Path) -> None:
    """Wider links, larger memories, a further core or link, and multicast do not make a bound larger.

    Equal inputs give equal bounds.
    """
    draw = random.Random(seed)
    network, _ = random_case(seed, tmp_path)
    system = random_system(random.Random(seed + 1))
    settings = random_settings(draw)

    def bounds_of(name: str, changed: dict[str, Any]) -> tuple[float, float]:
        problem = system_problem(network, write_accelerator(tmp_path / name, {**system, **changed}))
        found = tiling_bounds(problem, CnSearchOptions().model, settings)
        return found.latency_cycles, found.energy_pj

    cycles, energy = bounds_of("given", {})
    wider = [{**link, "bandwidth": 2 * link["bandwidth"]} for link in system["links"]]
    more_cycles, _ = bounds_of("wider", {"links": wider})
    assert more_cycles <= cycles
    larger = {number: with_twice_the_memory(core) for number, core in system["cores"].items()}
    memory_cycles, memory_energy = bounds_of("larger", {"cores": larger})
    assert (memory_cycles, memory_energy) <= (cycles, energy)
    assert memory_energy <= energy
    assert bounds_of("same", {}) == (cycles, energy)
    for name, changed in further_parts(random.Random(seed + 2), system).items():
        further_cycles, further_energy = bounds_of(name, changed)
        assert further_cycles <= cycles, name
        assert further_energy <= energy * (1 + 1e-12), name


TWICE = {"512 B": "1 KiB", "1 KiB": "2 KiB", "2 KiB": "4 KiB", "4 KiB": "8 KiB"}


def with_twice_the_memory(core: dict[str, Any]) -> dict[str, Any]:
    """The core with memories of twice the size."""
    memories = {name: {**memory, "size": TWICE[memory["size"]]} for name, memory in core["memories"].items()}
    return {**core, "memories": memories}


def test_any_prices_give_a_bound() -> None:
    """A covering program of two lengths, which must be at least 3 and 5, gives a bound of 8, and never more."""
    program = CoveringProgram()
    for limit in (3.0, 5.0):
        length, part = program.length(), program.share()
        busy, whole = program.row(0.0), program.row(1.0)
        program.add(busy, length, 1.0)
        program.add(busy, part, -limit)
        program.add(whole, part, 1.0)
    assert 8.0 * (1 - 1e-6) <= program.lower_bound() <= 8.0
