"""Choice of mappings for the EDP of a network: never worse, close to the optimum, and with true bounds."""

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from tilewright.base.objectives import EDP
from tilewright.search.network_choice import MOST_SEARCHES, Found, NetworkChoice, NetworkLayer, NetworkWeight
from tilewright.search.run_bound import LayerBounds, Line, least_weighted_sums, run_bound

from tests.members import members

Points = list[tuple[float, float]]
GAP = 0.01


def layers_of(draw: random.Random) -> list[tuple[Points, int]]:
    """Layers, each with the energies and latencies of all its mappings, and the number of its runs."""
    found = []
    for _ in range(draw.randint(1, 5)):
        energy, latency = 10 ** draw.uniform(0, 2), 10 ** draw.uniform(0, 2)
        points = [(energy * draw.uniform(1, 2.5), latency * draw.uniform(1, 2.5)) for _ in range(draw.randint(1, 6))]
        found.append((points, draw.randint(1, 3)))
    return found


def least_of_network(layers: list[tuple[Points, int]]) -> float:
    """Least EDP over every choice of a mapping for each layer."""
    counts = [count for _, count in layers]
    return min(
        sum(c * p[0] for c, p in zip(counts, chosen, strict=True))
        * sum(c * p[1] for c, p in zip(counts, chosen, strict=True))
        for chosen in itertools.product(*(points for points, _ in layers))
    )


def chosen_for(layers: list[tuple[Points, int]], draw: random.Random) -> tuple[NetworkChoice[object], float, int]:
    """(choice after its searches, EDP before, number of searches).

    The bounds of a layer and the mappings of the searches miss the optimum by up to 1 %.
    """
    made = []
    for points, count in layers:
        least = min(points, key=lambda point: point[0] * point[1])
        share = draw.choice((1.0, 0.99))
        bounds = LayerBounds(
            min(p[0] for p in points) * share, min(p[1] for p in points) * share, least[0] * least[1] * share, count
        )
        made.append(NetworkLayer[object](bounds, [Found(*least, None)]))
    choice = NetworkChoice[object](made, GAP)
    searches = 0

    def search(places: Sequence[int], weight: NetworkWeight) -> list[Found[object] | None]:
        nonlocal searches
        searches += len(places)
        found: list[Found[object] | None] = []
        for place in places:
            sums = sorted((p[0] + weight.pj_a_cycle * p[1], p) for p in layers[place][0])
            near = [one for one in sums if one[0] <= sums[0][0] * 1.01]
            level = sums[0][0] * draw.choice((1.0, 0.99))
            found.append(Found(*draw.choice(near)[1], None, Line(weight.pj_a_cycle, level)))
        return found

    before = choice.totals[0] * choice.totals[1]
    choice.run(search)
    return choice, before, searches


def test_the_choice_is_never_worse_and_its_bound_is_true() -> None:
    """The EDP is at most that of each layer's best mappings. The bounds from the gap and the layers hold."""
    better = close = 0
    for seed in range(members(1500, 200)):
        draw = random.Random(seed)
        layers = layers_of(draw)
        choice, before, searches = chosen_for(layers, draw)
        after, least = choice.totals[0] * choice.totals[1], least_of_network(layers)
        assert least * (1 - 1e-12) <= after <= before, seed
        assert run_bound([layer.bounds for layer in choice.layers], EDP) <= least, seed
        assert after * (1 - choice.gap) <= least, seed
        assert searches <= MOST_SEARCHES
        better += after < before * (1 - 1e-9)
        close += after <= least * 1.01
    assert better > members(1500, 200) / 10
    assert close > members(1500, 200) * 0.9


def test_sums_are_bounded_without_bounds_of_the_ends() -> None:
    """Sums are bounded by the curve of equal EDP and by lines if there are no bounds of the ends."""
    slopes = np.array([1.0, 4.0])
    assert least_weighted_sums(LayerBounds(0.0, 0.0, 9.0), slopes).tolist() == [6.0, 12.0]
    assert least_weighted_sums(LayerBounds(0.0, 0.0, 9.0, 1, (Line(1.0, 8.0),)), slopes).tolist() == [8.0, 12.0]
    assert least_weighted_sums(LayerBounds(0.0, 0.0, 0.0), slopes).tolist() == [0.0, 0.0]


def test_nothing_is_searched_below_the_accepted_gap() -> None:
    """A network whose gap is at most the accepted gap keeps its mappings, without a search."""
    layer = NetworkLayer[object](LayerBounds(1.0, 1.0, 1.0), [Found(1.0, 1.004, None)])
    NetworkChoice([layer, layer], GAP).run(lambda places, weight: pytest.fail("a search"))


def test_a_worse_mapping_of_a_layer_can_be_better_for_the_network() -> None:
    """A mapping of a layer with larger EDP can give less EDP of two layers together."""
    first, second = [(1.0, 10.0), (3.0, 4.0)], [(100.0, 1.0)]
    layers = [(first, 1), (second, 1)]
    choice, before, _ = chosen_for(layers, random.Random(0))
    assert before == pytest.approx(101.0 * 11.0)
    assert choice.totals == (103.0, 5.0)
    assert choice.layers[0].chosen.energy_pj * choice.layers[0].chosen.latency_cycles > 10.0
