"""Blocks: layers cut along several dimensions, the cores of the blocks, and the order in which cuts are tried."""

import itertools
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
import yaml
from tilewright.mapping.constraints import TilingEntry
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.sources import parse_workload
from tilewright.plans.arrangements import arrangements
from tilewright.plans.blocks import Blocks, Machine, OnCores, core_counts, part_counts, uniform_blocks
from tilewright.plans.cores import SchedulingJudge
from tilewright.plans.evaluate import PlanEvaluator, PlanToBeat, Task
from tilewright.plans.plan import LayerTiles
from tilewright.plans.space import Fixed, LayerSpace, PlanSpace, plan_space
from tilewright.search.options import CnSearchOptions

from tests.unit.pipeline.stages.multi.multi_cases import LAYERS
from tests.unit.plans.cases import SHORT, fused, options, system_problem
from tests.unit.workload.onnx.dependency_checks import build_model

CORES = Path(__file__).resolve().parents[3] / "config" / "hardware" / "multi" / "cores"
SEARCH: dict[str, Any] = {**SHORT, "nb_plans": 60}


def gemm(folder: Path, rows: int, inner: int, columns: int) -> Path:
    """A matrix product of these sizes with constant weights."""
    node = onnx.helper.make_node("MatMul", ["a", "w"], ["y"], name="mm")
    path = folder / "mm.onnx"
    onnx.save(build_model([node], {"a": (rows, inner)}, {"w": np.zeros((inner, columns), np.float32)}), str(path))
    return path


def mesh(folder: Path, rows: int, columns: int, weights: str, activations: str) -> Path:
    """A mesh of equal cores, each with two memories of these sizes, and a DRAM with one port of 64 bits."""
    core = yaml.safe_load((CORES / "k16_c16.yaml").read_text())
    core["memories"]["sram_weight"]["size"], core["memories"]["sram_activation"]["size"] = weights, activations
    (folder / "core.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    (folder / "offchip.yaml").write_text((CORES / "offchip.yaml").read_text())
    cores = ["./core.yaml"] * rows * columns
    links = {"type": "2d_mesh", "nb_rows": rows, "nb_cols": columns, "bandwidth": 64, "unit_energy_cost": 1.0}
    system = {
        "name": "mesh",
        "cores": [*cores, "./offchip.yaml"],
        "graph": {**links, "offchip_core_id": rows * columns},
    }
    path = folder / "mesh.yaml"
    path.write_text(yaml.safe_dump(system, sort_keys=False))
    return path


def space_of(network: Path, hardware: Path) -> PlanSpace:
    """The space of plans of a network on a system."""
    return plan_space(system_problem(network, hardware), Fixed())


def layer_of(network: Path, hardware: Path) -> LayerSpace:
    """The only layer of a network."""
    (one,) = space_of(network, hardware).layers
    return one


@pytest.mark.parametrize(
    ("sizes", "sides", "weights", "activations"),
    [((40, 32, 48), (1, 3), "4 KiB", "4 KiB"), ((12, 64, 20), (1, 2), "512 B", "512 B")],
)
def test_no_uniform_cut_is_better(
    sizes: tuple[int, int, int], sides: tuple[int, int], weights: str, activations: str, tmp_path: Path
) -> None:
    """The search without a mapping file is no worse than the best of all cuts into a x b parts.

    All of these cuts are scheduled. Each core gets one to four parts, either every n-th part or adjacent parts.
    """
    network, hardware = gemm(tmp_path, *sizes), mesh(tmp_path, *sides, weights, activations)
    found = fused(network, hardware, **SEARCH)
    best = _best_uniform(network, hardware)
    assert found.latency_cycles <= best
    assert len(found.best.plan.tiles[0].between) <= 2


def _best_uniform(network: Path, hardware: Path) -> int:
    """Least latency of all cuts by plain enumeration, which shares only the scheduler with the search."""
    problem = system_problem(network, hardware)
    space = plan_space(problem, Fixed())
    evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
    rows, columns = space.layers[0].size("D"), space.layers[0].size("K")
    cores, best, seen = space.layers[0].cores, math.inf, set()
    for wanted in itertools.product(range(1, 4 * cores + 1), repeat=2):
        if math.prod(wanted) > 4 * cores or wanted[0] > rows or wanted[1] > columns:
            continue
        counts = {
            "D": math.ceil(rows / math.ceil(rows / wanted[0])),
            "K": math.ceil(columns / -(-columns // wanted[1])),
        }
        for names in ("DK", "KD"):
            loops = tuple(TilingEntry(name, counts[name]) for name in names if counts[name] > 1)
            if loops in seen:
                continue
            seen.add(loops)
            made = evaluator.multi_core_problem(space.plan([LayerTiles(loops, (TilingEntry("D", 1),))], (0,)))
            judge, parts = SchedulingJudge(made), math.prod(counts.values())
            for used in range(math.ceil(parts / 4), min(parts, cores) + 1):
                for place in (lambda part: part % used, lambda part: part * used // parts):  # noqa: B023
                    figures = judge(tuple(map(place, range(parts))), ())
                    best = best if figures is None else min(best, figures.latency_cycles)
    return int(best)


def test_the_answer_in_blocks_is_a_run_that_others_can_make(tmp_path: Path) -> None:
    """The mapping file of a plan that cuts a layer along two loops has a core for each part.

    A run with the file gives the same latency and energy.
    """
    network, hardware = gemm(tmp_path, 128, 128, 128), mesh(tmp_path, 2, 2, "64 KiB", "64 KiB")
    found = fused(network, hardware, **{**SEARCH, "nb_plans": 30})
    (row,) = found.document["layers"]
    assert len(row["inter_core_tiling"]) == 2, "two loops cut the layer between cores"
    counts = [int(text.split(", ")[1]) for text in row["inter_core_tiling"]]
    assert len(row["cores"]) == math.prod(counts)
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(found.mapping_text)
    settings = found.schedule_settings.stated()
    again = tilewright.run_multi_core(network, hardware, mapping, lpf_limit=4, **settings)
    assert (again.latency_cycles, again.energy_pj) == (found.latency_cycles, found.energy_pj)


def test_equal_bytes_for_any_number_of_processes(tmp_path: Path) -> None:
    """One process and two processes choose and leave out the same cuts, so the files are equal."""
    network, hardware = gemm(tmp_path, 24, 16, 32), mesh(tmp_path, 1, 2, "4 KiB", "4 KiB")
    one, two = (fused(network, hardware, **{**SEARCH, "nb_plans": 24, "jobs": jobs}) for jobs in (1, 2))
    assert one.found.tried == two.found.tried
    assert one.mapping_text == two.mapping_text


def test_numbers_of_parts_are_those_that_cut_differently() -> None:
    """Parts of 10 have 10, 5, 4, 3 or 2 elements; equal parts need a divisor of 10. No two counts cut alike."""
    assert part_counts(10, 6) == (1, 2, 3, 4, 5)
    assert part_counts(10, 6, evenly=True) == (1, 2, 5)
    for size, most in ((7, 7), (13, 5), (96, 40)):
        assert len({-(-size // count) for count in part_counts(size, most)}) == len(part_counts(size, most))


def test_numbers_of_cores_give_each_core_up_to_four_parts() -> None:
    """26 parts on 16 cores use 13 cores with up to 2 parts each, 9 with up to 3, or 7 with up to 4.

    One part for each core would need 26 cores.
    """
    assert core_counts(26, 16) == (13, 9, 7)
    assert core_counts(4, 16) == (4, 2, 1)


def test_reads_follow_from_the_definition(tmp_path: Path) -> None:
    """Reads of blocks follow from the definition: a core reads its rows of the input and its columns of the weights.

    Of 2 x 3 blocks on 6 cores, the input is read 3 times and the weights 2 times. On 3 cores, each core takes two
    blocks that share rows or columns, whichever reads less.
    """
    one = layer_of(gemm(tmp_path, 32, 16, 48), mesh(tmp_path, 2, 4, "8 KiB", "8 KiB"))
    cut = next(cut for cut in one.blocks if cut.counts == (2, 3))
    inputs, weights, results = 32 * 16 * 8, 16 * 48 * 8, 32 * 48 * 8
    moved = {choice.cores: choice.moved_bits for choice in cut.choices}
    assert moved[6] == 3 * inputs + 2 * weights + results
    # Two blocks of a core are two rows (all of the input, a third of the weights) or two columns.
    assert moved[3] == 3 * min(inputs + weights / 3, inputs / 2 + 2 * weights / 3) + results
    assert cut.block_cycles == 16 * 1 * 1  # 16 rows; 16 inputs and 16 outputs at a time


def test_a_bus_brings_equal_data_once() -> None:
    """A bus brings equal data once to all cores, so all cuts read equally much."""
    layer = parse_workload(LAYERS, "corrected").nodes[0].layer
    assert layer is not None
    rooms = ((10**6, ("O", "I", "W")),)
    heard, alone = (Machine(4, (), 16, rooms, 8.0, 8.0, True, is_heard) for is_heard in (True, False))
    by_bus = {choice.moved_bits for cut in uniform_blocks(layer, ("D", "K"), heard) for choice in cut.choices}
    assert len(by_bus) == 1
    reads = {cut.counts: cut.choices[0].moved_bits for cut in uniform_blocks(layer, ("D", "K"), alone)}
    assert reads[1, 1] == by_bus.pop() < reads[2, 2]


def test_multicast_lets_cores_begin_before_all_data_have_arrived() -> None:
    """A core with 2 x 2 blocks begins when half of each input has arrived; a core with one block waits for all."""
    layer = parse_workload(LAYERS, "corrected").nodes[0].layer
    assert layer is not None
    rooms = ((10**6, ("O", "I", "W")),)
    multicast = Machine(4, (), 16, rooms, 8.0, 8.0, True, True, is_multicast=True)
    cuts = {cut.counts: cut for cut in uniform_blocks(layer, ("D", "K"), multicast)}
    whole = cuts[2, 2].choices[0].first_cycles
    assert cuts[2, 2].choices[0].cores == cuts[4, 4].choices[0].cores == 4
    assert cuts[4, 4].choices[0].first_cycles == whole / 2


@pytest.mark.parametrize("seed", range(6))
def test_arrangements_use_every_core_and_balance_the_parts(seed: int) -> None:
    """Each arrangement gives every part a core and leaves no core idle; parts are spread as evenly as possible.

    One arrangement deals the parts out to the cores in turn.
    """
    draw = random.Random(seed)
    shape = tuple(draw.randint(1, 6) for _ in range(draw.randint(1, 3)))
    parts = math.prod(shape)
    cores = draw.randint(1, parts)
    ways = arrangements(shape, cores)
    assert len(set(ways)) == len(ways)
    assert tuple(part % cores for part in range(parts)) in ways
    for way in ways:
        loads = Counter(way)
        assert set(loads) == set(range(cores))
        assert len(way) == parts
        assert max(loads.values()) <= math.ceil(parts / cores)


def test_a_grid_gives_each_core_a_rectangle() -> None:
    """4 x 4 parts on 2 x 2 cores, by hand: each core has a rectangle, and the innermost loop counts fastest."""
    assert (0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3) in arrangements((4, 4), 4)


def test_cuts_that_cannot_win_are_not_scheduled(tmp_path: Path) -> None:
    """A plan is left out only if none of its schedules can beat the rival.

    If the rival is slower than the plan's schedule, the plan is scheduled. If the rival takes 1 cycle, the plan is not
    scheduled, and the reason says so.
    """
    network, hardware = gemm(tmp_path, 24, 64, 20), mesh(tmp_path, 2, 2, "512 B", "512 B")
    problem, space = system_problem(network, hardware), space_of(network, hardware)
    one = space.layers[0]
    assert one.machine is not None
    for counts in ((1, 2), (2, 2), (3, 4)):
        evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
        plan = space.plan([one.in_blocks(counts, 1)], (0,))
        alone = evaluator.evaluate(Task(plan, spread=(0,), on_every_count=True))
        assert alone.figures is not None
        for rival in (alone.figures.latency_cycles + 1, 1):
            fresh = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
            outcome = fresh.evaluate(Task(plan, spread=(0,), on_every_count=True, rival=PlanToBeat(rival, one.machine)))
            assert (outcome.figures == alone.figures) == (rival > 1)
            assert ("a plan with fewer cycles is known" in outcome.reason) == (rival == 1)


def test_fewer_cores_are_tried(tmp_path: Path) -> None:
    """The outcome is no worse than 8 parts dealt out in turn to 2, 3 or 4 cores."""
    network, hardware = gemm(tmp_path, 32, 64, 32), mesh(tmp_path, 2, 2, "2 KiB", "2 KiB")
    problem, space = system_problem(network, hardware), space_of(network, hardware)
    evaluator = PlanEvaluator(problem, options().part(CnSearchOptions), ScheduleSettings(), "latency")
    plan = space.plan([space.layers[0].in_blocks((2, 4), 1)], (0,))
    judge = SchedulingJudge(evaluator.multi_core_problem(plan))
    found = evaluator.evaluate(Task(plan, spread=(0,), on_every_count=True)).figures
    tried = [judge(tuple(part % used for part in range(8)), ()) for used in (2, 3, 4)]
    assert found is not None
    assert found.latency_cycles <= min(one.latency_cycles for one in tried if one is not None)


def test_fixed_parts_are_not_cut_into_blocks(tmp_path: Path) -> None:
    """Parts that the mapping file fixes are not cut into blocks."""
    network, hardware = gemm(tmp_path, 32, 16, 32), mesh(tmp_path, 2, 2, "8 KiB", "8 KiB")
    mapping = [{"name": "default", "inter_core_tiling": ["K, 2"]}]
    (one,) = plan_space(system_problem(network, hardware, mapping), Fixed()).layers
    assert one.blocks == ()
    found = fused(network, hardware, mapping, **{**SEARCH, "nb_plans": 20})
    assert found.document["layers"][0]["inter_core_tiling"] == ["K, 2"]


def test_the_order_of_cuts_follows_the_objective() -> None:
    """Cuts are ordered by latency, traffic or their product, each for the best number of cores."""
    quick = Blocks((1, 2), 1.0, (OnCores(2, 10.0, 0.0, 5.0, 0.0, 100.0), OnCores(1, 12.0, 0.0, 9.0, 0.0, 40.0)))
    frugal = Blocks((2, 1), 1.0, (OnCores(1, 30.0, 0.0, 9.0, 0.0, 30.0),))
    assert quick.rank("latency") < frugal.rank("latency")
    assert quick.rank("energy") > frugal.rank("energy")
    assert quick.rank("EDP")[0] == 480.0 < frugal.rank("EDP")[0] == 900.0
    assert quick.rank("latency", stretch=4.0)[0] == 20.0, "5 cycles that take 4 times as long"
