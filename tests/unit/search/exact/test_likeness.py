"""Keys of mapping problems: equal keys mean equal costs, and exchanged loops of equal sides have equal keys."""

import itertools
import random
from collections.abc import Iterable
from contextlib import suppress

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.hardware.core import Core, OperationalArray
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.temporal import loop_multiset
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.exact.likeness import likeness
from tilewright.search.exact.search import search_candidates, search_exact
from tilewright.search.options import ExactParameters, SearchOptions
from tilewright.workload.layer import Layer

from tests.members import members
from tests.unit.cost.engine_cases import LINKS, convolution, gemm, memory

MODELS = ("corrected", "zigzag-3.9.1")
SIDES = (("D1", 4), ("D2", 4), ("D3", 3))
ORDERS = 12


def core_of(draw: random.Random) -> Core:
    """Core with two equal sides, D1 and D2. Each memory serves both sides or none."""
    every = tuple(name for name, _ in SIDES)
    served = [draw.choice([(), ("D1", "D2"), ("D3",)]) for _ in range(2)]
    return Core(
        "equal sides",
        OperationalArray(SIDES, 0.5),
        (
            memory("weights", 8 * draw.choice([1, 4]), ("I2",), served[0], (0.1, 0.1), 8, 8),
            memory("sums", 16 * draw.choice([1, 4]), ("O",), served[1], (0.2, 0.2), 16, 16),
            memory("buffer", draw.choice([2000, 20000]), ("I1", "O"), every, (10.0, 9.0), 64, 64),
            memory("top", 10**13, ("I1", "I2", "O"), every, (100.0, 90.0), 64, 64, top=True),
        ),
    )


def layer_of(draw: random.Random) -> Layer:
    """Convolution or matrix product. Some of its loops are not multiples of the lanes."""
    sizes = [1, 2, 3, 4, 5, 6, 7, 8, 12]
    if draw.random() < 0.3:
        return gemm(**{name: draw.choice(sizes) for name in ("C", "D", "K")})
    outer = {name: draw.choice(sizes) for name in ("K", "C", "OX", "OY")}
    return convolution(**outer, FX=draw.choice([1, 2, 3]), FY=draw.choice([1, 2, 3]))


def problems_of(layer: Layer, core: Core, model: str, unrollings: Iterable[Unrolling]) -> list[PreparedProblem]:
    """Prepared problems of the spatial mappings that the model allows."""
    found = []
    for unrolling in unrollings:
        with suppress(MappingError):  # the model of zigzag-dse refuses some lanes that divide no loop
            found.append(prepare(layer, core, LINKS, unrolling, SearchOptions(model=model)))
    return found


def unrollings_of(layer: Layer) -> list[Unrolling]:
    """Spatial mappings with at most one loop on each side of the array, and no more lanes than iterations."""
    lanes = [(d, f) for d, size in layer.loop_sizes for f in (2, 3, 4) if f <= size]
    found = []
    for chosen in itertools.product([None, *lanes], repeat=len(SIDES)):
        fits = all(loop is None or loop[1] <= room for loop, (_, room) in zip(chosen, SIDES, strict=True))
        if fits and all(count <= layer.size_of[d] for d, count in lanes_of(chosen).items()):
            found.append(tuple((s, (loop,) if loop else ()) for loop, (s, _) in zip(chosen, SIDES, strict=True)))
    return found


def lanes_of(chosen: Iterable[tuple[str, int] | None]) -> dict[str, int]:
    """Loop dimension -> its lanes on all sides together."""
    lanes: dict[str, int] = {}
    for dimension, factor in filter(None, chosen):
        lanes[dimension] = lanes.get(dimension, 1) * factor
    return lanes


def costs_of(prepared: PreparedProblem, draw: random.Random) -> list[np.ndarray]:
    """Energies, latencies and fits of ORDERS random loop orders; `draw` decides the orders."""
    loops = [loop for loop, count in loop_multiset(prepared.spatial.temporal_sizes, None).loops for _ in range(count)]
    orders = [tuple(draw.sample(loops, len(loops))) for _ in range(ORDERS)]
    costs = cost_orders(OrderBatch.of_orders(prepared, orders))
    return [costs.fits, costs.energy_pj[costs.fits], costs.latency_cycles[costs.fits]]


def exchanged(unrolling: Unrolling) -> Unrolling:
    """Spatial mapping with the loops of the sides D1 and D2 exchanged."""
    on = dict(unrolling)
    return tuple((name, on[{"D1": "D2", "D2": "D1"}.get(name, name)]) for name, _ in unrolling)


def test_problems_with_equal_keys_have_equal_costs() -> None:
    """Spatial mappings with one key have equal energy, latency and fit for random orders, to the last bit."""
    shared = 0
    for seed in range(members(800, 60)):
        draw = random.Random(seed)
        layer, core, model = layer_of(draw), core_of(draw), draw.choice(MODELS)
        some = draw.sample(every := unrollings_of(layer), min(5, len(every)))
        alike: dict[object, list[PreparedProblem]] = {}
        for prepared in problems_of(layer, core, model, [*some, *map(exchanged, some)]):
            alike.setdefault(likeness(prepared), []).append(prepared)
        for group in alike.values():
            first = costs_of(group[0], random.Random(seed))
            for other in group[1:]:
                shared += other.spatial.unrolling == exchanged(group[0].spatial.unrolling)
                for own, its in zip(first, costs_of(other, random.Random(seed)), strict=True):
                    assert np.array_equal(own, its), (seed, group[0].spatial.unrolling, other.spatial.unrolling)
    assert shared > members(800, 60)


def test_exchanged_loops_of_equal_sides_have_equal_keys_if_products_are_exact() -> None:
    """Exchanging the loops of two equal array dimensions keeps the key if the sizes are multiples of the lanes.

    The key also stays if the numbers of lanes are exact in binary, as halves are; with thirds of lanes, keys differ.
    Array dimensions that different memories serve are not equal.
    """
    core = core_of(random.Random(0))

    def key(layer: Layer, *lanes: tuple[str, int]) -> object:
        unrolling = tuple((side, (loop,)) for (side, _), loop in zip(SIDES, lanes, strict=False))
        rest = tuple((side, ()) for side, _ in SIDES[len(lanes) :])
        return likeness(prepare(layer, core, LINKS, (*unrolling, *rest), SearchOptions(model="corrected")))

    whole, halves = convolution(K=8, C=8, OX=8, OY=8), convolution(K=7, C=8, OX=7, OY=8)
    thirds = convolution(K=10, C=8, OX=10, OY=8)
    for layer, is_equal in ((whole, True), (halves, True), (thirds, False)):
        assert (key(layer, ("K", 4), ("OX", 4)) == key(layer, ("OX", 4), ("K", 4))) is is_equal
    assert key(whole, ("K", 3), ("OX", 3), ("C", 2)) != key(whole, ("K", 3), ("C", 2), ("OX", 3))
    assert key(whole, ("K", 4), ("OX", 4)) != key(whole, ("K", 4), ("OY", 4))


def test_a_search_looks_at_one_of_two_exchanged_spatial_mappings() -> None:
    """A search over all spatial mappings looks at no more of them than there are keys."""
    layer, core = convolution(K=4, C=2, OX=4), core_of(random.Random(3))
    options = SearchOptions(model="corrected", temporal_mapping_search_engine="exact", objective="energy")
    record = map_layer(layer, core, MappingConstraints("default", memory_operand_links=LINKS), options)
    keys = {likeness(prepared) for prepared in problems_of(layer, core, "corrected", unrollings_of(layer))}
    assert record.search["proven"]
    assert record.search["spatial_mappings"]["searched"] <= len(keys) < record.search["spatial_mappings"]["allowed"]


def test_optimum_of_all_spatial_mappings_is_the_least_optimum_of_one() -> None:
    """A search over spatial mappings, half of them exchanged, proves the least optimum of separate searches."""
    skipped = 0
    for seed in range(members(120, 12)):
        draw = random.Random(seed)
        layer, core, model = layer_of(draw), core_of(draw), draw.choice(MODELS)
        some = draw.sample(every := unrollings_of(layer), min(3, len(every)))
        problems = problems_of(layer, core, model, [*some, *map(exchanged, some)])
        options = ExactParameters(objective=draw.choice(("energy", "latency", "EDP")))
        alone = [found for prepared in problems if (found := search_exact(prepared, (), options)) is not None]
        together = search_candidates(problems, (), options) if problems else None
        assert (together is None) is (not alone)
        if together is not None:
            assert together.is_proven
            assert together.value == min(found.value for found in alone), seed
            skipped += len(problems) - len({likeness(prepared) for prepared in problems})
    assert skipped > 0


def test_best_bounds_the_optimum_with_any_effort() -> None:
    """The bound of `best` is at most the optimum, with open sides and any effort.

    The value of `best` is at least the optimum, and at most the value of loma.
    """
    given = MappingConstraints("default", memory_operand_links=LINKS)
    for seed in range(members(60, 5)):
        draw = random.Random(seed)
        layer, core = layer_of(draw), core_of(draw)
        found = {}
        for engine in ("exact", "best", "loma"):
            options = SearchOptions(
                model="corrected",
                temporal_mapping_search_engine=engine,
                objective="EDP",
                effort=draw.choice((1, 10_000, 100_000)),
                largest_gap=draw.choice((0.0, 0.01)),
            )
            with suppress(MappingError):  # the register of the core is too small for an element
                record = map_layer(layer, core, given, options)
                found[engine] = record.energy_pj * record.latency_cycles, record.search.get("lower_bound", 0.0)
        assert len(found) in (0, 3), seed
        if found:
            assert found["exact"][1] == pytest.approx(found["exact"][0])
            assert found["best"][1] <= found["exact"][0] * (1 + 1e-9)
            assert found["exact"][0] * (1 - 1e-9) <= found["best"][0] <= found["loma"][0] * (1 + 1e-9), seed
