"""Mirrors of square convolutions: mirrored spatial mappings have equal keys, equal costs and equal optima."""

import random
from dataclasses import replace

import numpy as np
from tilewright.cost.record import LoopOrder
from tilewright.mapping.constraints import TemporalOrderingEntry, Unrolling
from tilewright.mapping.temporal import LoopMultiset, loop_multiset
from tilewright.search.batch import OrderBatch, cost_orders
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.likeness import likeness
from tilewright.search.exact.mirrors import merged_multisets, merges_alike, mirror_of, mirrored_sizes
from tilewright.search.exact.search import search_candidates, search_exact
from tilewright.search.options import ExactParameters
from tilewright.workload.layer import Layer

from tests.members import members
from tests.unit.cost.engine_cases import convolution
from tests.unit.search.exact.test_likeness import core_of, problems_of, unrollings_of

EXCHANGED = {"OX": "OY", "OY": "OX", "FX": "FY", "FY": "FX"}
ORDERS = 12


def square(draw: random.Random) -> Layer:
    """Square convolution with a random stride, dilation and padding. Some loops are not multiples of the lanes."""
    sizes = [2, 3, 4, 5, 6, 7, 8, 12, 14]
    image, kernel = draw.choice(sizes), draw.choice([1, 2, 3, 5])
    outer = {name: draw.choice(sizes) for name in ("K", "C")}
    stride, dilation, padding = draw.choice([1, 1, 2]), draw.choice([1, 1, 2]), draw.choice([0, 1])
    sides = {"OX": image, "OY": image, "FX": kernel, "FY": kernel}
    return convolution("conv", padding, (stride, stride), (dilation, dilation), **outer, **sides)


def mirrored(unrolling: Unrolling) -> Unrolling:
    """Spatial mapping with rows and columns exchanged."""
    return tuple((side, tuple((EXCHANGED.get(d, d), f) for d, f in loops)) for side, loops in unrolling)


def mirrored_orders(orders: list[LoopOrder]) -> list[LoopOrder]:
    """Loop orders with rows and columns exchanged."""
    return [tuple((EXCHANGED.get(d, d), size) for d, size in order) for order in orders]


def orders_of(multiset: LoopMultiset, draw: random.Random) -> list[LoopOrder]:
    """ORDERS random loop orders of a multiset."""
    loops = [loop for loop, count in multiset.loops for _ in range(count)]
    return [tuple(draw.sample(loops, len(loops))) for _ in range(ORDERS)]


def assert_equal_costs(own: PreparedProblem, other: PreparedProblem, orders: list[LoopOrder]) -> None:
    """Assert that mirrored orders cost the same to the last bit."""
    first = cost_orders(OrderBatch.of_orders(own, orders))
    second = cost_orders(OrderBatch.of_orders(other, mirrored_orders(orders)))
    assert np.array_equal(first.fits, second.fits)
    assert np.array_equal(first.energy_pj[first.fits], second.energy_pj[second.fits])
    assert np.array_equal(first.latency_cycles[first.fits], second.latency_cycles[second.fits])


def pairs(seed: int, model: str = "corrected") -> list[tuple[PreparedProblem, PreparedProblem]]:
    """Problems of random spatial mappings of a square convolution, each with the problem of its mirror."""
    draw = random.Random(seed)
    layer, core = square(draw), core_of(draw)
    every = [one for one in unrollings_of(layer) if mirrored(one) != one]
    found = []
    for unrolling in draw.sample(every, min(3, len(every))):
        both = problems_of(layer, core, model, [unrolling, mirrored(unrolling)])
        if len(both) == 2:
            found.append((both[0], both[1]))
    return found


def test_mirrored_spatial_mappings_cost_the_same() -> None:
    """Mirrored spatial mappings with equal keys have equal costs of mirrored orders, for prime factors and merged
    loops.
    """
    shared = differing = 0
    for seed in range(members(1500, 100)):
        for one, other in pairs(seed):
            is_equal = likeness(one, ()) == likeness(other, ())
            shared, differing = shared + is_equal, differing + (not is_equal)
            if not is_equal:
                continue
            sizes = one.spatial.temporal_sizes
            for multiset in dict.fromkeys((*merged_multisets(sizes), loop_multiset(sizes, None))):
                assert_equal_costs(one, other, orders_of(multiset, random.Random(seed)))
    assert shared > members(1500, 100)
    assert differing > 0


def test_one_search_of_mirrored_spatial_mappings_is_enough() -> None:
    """The optimum of each of two spatial mappings with equal keys is the optimum of both, with any allocation."""
    shared = 0
    for seed in range(members(150, 12)):
        draw = random.Random(seed)
        for one, other in pairs(seed)[:1]:
            options = ExactParameters(
                objective=draw.choice(("energy", "latency", "EDP")), allocation=draw.choice(("greedy", "free"))
            )
            if likeness(one, (), free=options.allocation == "free") != likeness(other, (), free=True):
                continue
            alone = [search_exact(problem, (), options) for problem in (one, other)]
            together = search_candidates([one, other], (), options)
            assert (together is None) is (alone[0] is None) is (alone[1] is None)
            if together is not None and alone[0] is not None and alone[1] is not None:
                shared += 1
                assert together.searched + together.settled_by_bound == 2
                assert together.value == alone[0].value == alone[1].value, seed
    assert shared > 0


def test_mirrors_are_seen_only_where_the_space_is_mirrored() -> None:
    """Keys of mirrored mappings are equal with an empty ordering, and differ without one or with another one.

    A layer that is not square has no mirror, and loops that are merged differently are not alike.
    """
    layer = convolution(K=4, C=4, OX=8, OY=8, FX=3, FY=3)
    assert dict(mirror_of(layer)).items() >= EXCHANGED.items()
    assert not mirror_of(convolution(K=4, C=4, OX=8, OY=4, FX=3, FY=3))
    assert not mirror_of(convolution(K=4, C=4, OX=8, OY=8, FX=3, FY=1))
    assert not mirror_of(convolution(K=4, C=4, OX=8, OY=8, FX=3, FY=3, strides=(1, 2)))
    unrolling = (("D1", (("OX", 4),)), ("D2", ()), ("D3", ()))
    core = core_of(random.Random(1))
    one, other = problems_of(layer, core, "corrected", [unrolling, mirrored(unrolling)])
    assert likeness(one, ()) == likeness(other, ())
    assert likeness(one) != likeness(other)
    given = (TemporalOrderingEntry("OX"),)
    assert likeness(one, given) != likeness(other, given)
    mirror, dimensions = mirror_of(layer), one.dimensions
    tied = (("K", 4), ("C", 4), ("OY", 4), ("OX", 4))
    assert not merges_alike(tied, mirror, dimensions)
    assert mirrored_sizes((("OY", 2), ("OX", 8)), EXCHANGED, dimensions) == (("OY", 8), ("OX", 2))


def test_mirrors_are_not_seen_if_a_key_of_the_core_names_a_loop() -> None:
    """Mirrored spatial mappings have different keys if commands cover OX, as their mirrored orders take other times."""
    layer = convolution(K=4, C=4, OX=8, OY=8, FX=3, FY=3)
    core = core_of(random.Random(1))
    own = (("command_iterations", 4.0), ("least_command_cycles", 6.0))
    array = replace(core.operational_array, figures=own, command_dimensions=("OX",))
    unrolling = (("D1", (("OX", 4),)), ("D2", ()), ("D3", ()))
    waiting = replace(core, operational_array=array, waits=True)
    one, other = problems_of(layer, waiting, "corrected", [unrolling, mirrored(unrolling)])
    orders = orders_of(loop_multiset(one.spatial.temporal_sizes, None), random.Random(0))
    first = cost_orders(OrderBatch.of_orders(one, orders))
    second = cost_orders(OrderBatch.of_orders(other, mirrored_orders(orders)))
    assert (first.latency_cycles != second.latency_cycles)[first.fits].any()
    assert likeness(one, ()) != likeness(other, ())
