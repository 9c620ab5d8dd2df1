"""The exact search against brute force, the plain model, and loma."""

import itertools
import math
import random
from collections import Counter

import pytest
from tilewright.base.errors import MappingError
from tilewright.search import loma as loma_module
from tilewright.search.batch import best_row, cost_orders
from tilewright.search.evaluate import PreparedProblem, evaluate_prepared, prepare
from tilewright.search.loma import loma_batches
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.members import members
from tests.plain.allocation import Boundaries
from tests.plain.model import PlainModel
from tests.plain.relevancy import Loops
from tests.plain.spatial import DoesNotFitError
from tests.unit.cost.engine_cases import LINKS, convolution, gemm, tpu_like
from tests.unit.search.exact.exact_brute_force import (
    ALLOCATIONS,
    LARGEST_FREE_SPACE,
    OBJECTIVES,
    Mappings,
    check_optimum,
    free_mapping_count,
    greedy_mappings,
    optimum,
    search,
    space_of,
)
from tests.unit.search.exact.exact_cases import KINDS, MODELS, problems, random_case


@pytest.fixture
def no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets searches begin without the best of loma's orders, which for few loops is already the optimum."""
    monkeypatch.setattr(loma_module, "best_row", lambda costed, objective: None)


@pytest.mark.usefixtures("no_start")
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_value_is_that_of_brute_force(allocation: str) -> None:
    """The proven value is the least of all mappings, over random layers and cores, both profiles and all objectives.

    There is a result if and only if a mapping fits.
    """
    seen: Counter[str] = Counter()
    sized = members if allocation == "greedy" else max  # the fewer problems whose free spaces are small are all tried
    for where, case, prepared in problems(range(sized(240, 100))):
        if allocation == "free" and free_mapping_count(prepared) > LARGEST_FREE_SPACE:
            continue
        spaces = space_of(prepared, allocation)
        for objective in OBJECTIVES:
            check_optimum(search(prepared, allocation, objective), spaces, objective, (*where, objective))
        possible = optimum(spaces, "latency") < math.inf
        seen[case.kind] += possible
        seen["possible" if possible else "impossible"] += 1
        if possible:
            seen["four levels"] += int(prepared.arrays.level_count.max()) > 3
            seen["doubled"] += any(memory.force_double_buffering for memory in case.core.memories)
            seen["fractional"] += bool(prepared.arrays.spatial_fractional)
            seen["merged loops are better"] += merged_loops_are_better(spaces)
    assert seen["possible"] > sized(200, 80)
    assert seen["impossible"] > (20 if allocation == "free" else members(80, 30))
    assert all(seen[kind] > sized(12, 4) for kind in KINDS), seen
    assert seen["doubled"] > sized(60, 22), seen
    assert seen["fractional"] > sized(40, 14), seen
    if allocation == "greedy":
        assert seen["four levels"] > sized(20, 6), seen
        assert seen["merged loops are better"] > 0, "else whole spaces of the reference would go untested"


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_value_with_a_start(allocation: str) -> None:
    """A search that begins with the best of loma's orders gives the same values."""
    for where, _, prepared in problems(range(240, 240 + members(30, 12))):
        if allocation == "greedy" or free_mapping_count(prepared) <= LARGEST_FREE_SPACE:
            spaces = space_of(prepared, allocation)
            for objective in OBJECTIVES:
                check_optimum(search(prepared, allocation, objective), spaces, objective, (*where, objective))


def merged_loops_are_better(spaces: list[Mappings]) -> bool:
    """Whether some orders of merged loops beat all orders of prime factors."""
    primes = max(spaces, key=lambda space: space.orders.shape[1])
    return any(optimum(spaces, objective) < optimum([primes], objective) for objective in OBJECTIVES)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_mapping_has_the_value(allocation: str) -> None:
    """The mapping of a result, evaluated alone, has the result's value; only `free` has boundaries."""
    count = 0
    for where, _, prepared in problems(range(300, 300 + members(40, 16))):
        for objective in OBJECTIVES:
            result = search(prepared, allocation, objective)
            if result is None:
                continue
            record = evaluate_prepared(prepared, result.order, result.boundaries)
            latency, energy = record.latency_cycles, record.energy_pj
            value = {"latency": latency, "energy": energy, "EDP": latency * energy}[objective]
            assert value == pytest.approx(result.value, rel=1e-12), where
            assert allocation == "free" or result.boundaries is None, where
            count += 1
    assert count > members(100, 40)


def test_plain_model_agrees_on_the_best_mapping() -> None:
    """The found mapping has the found value in the plain Python model, and no other order has a better value."""
    count = 0
    for where, case, prepared in itertools.islice(problems(range(400, 500)), 0, None, 2):
        plain = PlainModel(case.layer, case.core, case.links, case.unrolling)
        result, free = search(prepared, "greedy", "latency"), search(prepared, "free", "latency")
        if result is None or len(result.order) > 4:
            continue
        least = min(
            cost
            for space in greedy_mappings(prepared)
            for row in space.orders
            if (cost := plain_latency(plain, tuple(space.loops[loop] for loop in row))) is not None
        )
        assert least == pytest.approx(result.value, rel=1e-9), where
        if free is not None and free.boundaries is not None:
            given = {o: tuple(b) for o, b in zip(case.layer.operands, free.boundaries, strict=True)}
            assert plain_latency(plain, free.order, given) == pytest.approx(free.value, rel=1e-9), where
            count += 1
    assert count > 10


def plain_latency(model: PlainModel, order: Loops, boundaries: Boundaries | None = None) -> float | None:
    """Latency of an order; None if it does not fit."""
    try:
        return float(model.cost(order, boundaries).latency_cycles)
    except DoesNotFitError:
        return None


@pytest.mark.usefixtures("no_start")
def test_even_mappings() -> None:
    """Even mappings are searched with greedy allocation and refused with free boundaries."""
    fitting, different = 0, 0
    for where, case, prepared in problems(range(800, 800 + members(60, 24)), temporal_mapping_type="even"):
        spaces = space_of(prepared, "greedy")
        for objective in OBJECTIVES:
            check_optimum(search(prepared, "greedy", objective), spaces, objective, (*where, objective))
        fitting += optimum(spaces, "energy") < math.inf
        different += optimum(spaces, "energy") != optimum(space_of(case.prepared(where[1]), "greedy"), "energy")
    assert fitting > members(50, 20)
    assert different > members(6, 2)
    with pytest.raises(MappingError, match="even"):
        search(prepared, "free", "latency")


def best_of_loma(prepared: PreparedProblem, limit: int | None, objective: str) -> float:
    """The least value that loma finds at an `lpf_limit`."""
    best = math.inf
    for batch in loma_batches(prepared, (), limit):
        costed = cost_orders(batch)
        row = best_row(costed, objective)
        if row is not None:
            energy, latency = float(costed.energy_pj[row]), float(costed.latency_cycles[row])
            best = min(best, {"latency": latency, "energy": energy, "EDP": latency * energy}[objective])
    return best


def test_never_worse_than_loma() -> None:
    """No optimum is worse than loma's result at any limit, for six and seven loops."""
    feasible = 0
    for seed in range(500, 500 + members(16, 6)):
        case = random_case(random.Random(seed), (6, 7))
        for model, objective in itertools.product(MODELS, OBJECTIVES):
            try:
                prepared = case.prepared(model)
            except MappingError:
                continue
            loma = min(best_of_loma(prepared, limit, objective) for limit in (1, 2, 3, 4, 5, 6, None))
            greedy, free = (search(prepared, allocation, objective) for allocation in ALLOCATIONS)
            if loma < math.inf:
                assert greedy is not None
                assert free is not None
                assert greedy.is_proven
                assert free.is_proven
                assert free.value * (1 - 1e-9) <= greedy.value <= loma * (1 + 1e-9), (seed, model, objective)
                feasible += 1
            else:
                assert greedy is None, (seed, model, objective)
    assert feasible > members(30, 10)


RESNET18_LAYERS = (
    convolution("layer3", K=256, C=256, OX=14, OY=14, FX=3, FY=3, padding=1),
    convolution("layer4 shortcut", K=512, C=256, OX=7, OY=7, strides=(2, 2)),
    gemm("classifier", C=512, D=1, K=1000),
)


@pytest.mark.parametrize("layer", RESNET18_LAYERS, ids=lambda layer: layer.name.replace(" ", "_"))
def test_never_worse_than_loma_on_real_layers(layer: Layer) -> None:
    """The value is at most that of loma with eight loops, on layers of ResNet-18 and the reference's example core."""
    prepared = prepare(layer, tpu_like(), LINKS, (("D1", (("K", 32),)), ("D2", (("C", 32),))), SearchOptions())
    for objective in ("latency", "energy"):
        loma = min(best_of_loma(prepared, limit, objective) for limit in (6, 7, 8))
        for allocation in ALLOCATIONS:
            result = search(prepared, allocation, objective, budget_s=3.0)
            assert result is not None
            assert result.lower_bound <= result.value <= loma * (1 + 1e-9)
