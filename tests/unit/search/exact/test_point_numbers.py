"""Numbers of lattice points that several searches of a spatial mapping share, compared with the cost model at each
point.
"""

import math

import numpy as np
import pytest
from tilewright.cost.workspace import new_workspace
from tilewright.mapping.temporal import LoopMultiset, loop_multiset
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact import point_numbers, rounds
from tilewright.search.exact.lattice_record import BUCKETS, LABELS, LEAST_FIELDS, MARK_FIELDS, NUMBER_FIELDS
from tilewright.search.exact.point_numbers import KeptNumbers, points_of
from tilewright.search.exact.rounds import MultisetPart, Watch
from tilewright.search.exact.tables import fields_of, has_whole_tiles, new_search
from tilewright.search.options import SearchLimits

from tests.unit.search.exact.exact_cases import problems

NAMES = tuple(field[0] for field in (*NUMBER_FIELDS, *MARK_FIELDS, *LEAST_FIELDS) if field[0] != "counts")


def tables(problem: PreparedProblem, multiset: LoopMultiset, free: bool, kept: KeptNumbers | None) -> dict[str, bytes]:
    """Content of all tables of a search, without entries of other searches."""
    search = new_search(problem, multiset, new_workspace(), "EDP", free, kept=kept)
    assert search is not None
    levels, points = int(problem.arrays.level_count.sum()), points_of(multiset)
    ports = fields_of(search)["busy_port"]
    result = {}
    for name in NAMES:
        field = fields_of(search)[name]
        if field.ndim > 1:
            field = field[: levels - int(problem.arrays.operand_count)] if len(field) == len(ports) else field[:levels]
        if name in ("busy_to_go", "traffic_to_go"):  # rows without a port have no numbers
            field = field[ports[: len(field)] >= 0]
        elif name == "joint_to_go":
            field = field[np.pad(ports[: len(field)] >= 0, ((0, 0), (0, 1)), constant_values=True)]
        result[name] = (field[..., :points] if field.ndim and field.shape[-1] > points else field).tobytes()
    return result


def test_tables_from_kept_numbers_equal_tables_from_the_cost_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of merged loops and of prime factors have the same bytes, whichever search computed the numbers."""
    monkeypatch.setattr(point_numbers, "FEW_POINTS", 0)
    compared = 0
    for _, case, problem in problems(range(40)):
        sizes = problem.spatial.temporal_sizes
        primes = loop_multiset(sizes, None)
        if not has_whole_tiles(problem.arrays) or problem.arrays.relation_used[0].any():
            continue
        kept = KeptNumbers(primes)
        for multiset in dict.fromkeys([*(loop_multiset(sizes, limit) for limit in range(1, primes.length)), primes]):
            for free in (False, True):
                assert tables(problem, multiset, free, kept) == tables(problem, multiset, free, None), case
                compared += points_of(multiset) > 1
        assert kept.numbers is not None or primes.length == 0
    assert compared > 60


def test_merged_loops_have_the_points_of_their_factors() -> None:
    """Points of merged loops are the points of prime factors with the same product for each dimension."""
    primes = loop_multiset((("C", 12), ("K", 30)), None)
    merged = LoopMultiset(((("C", 3), 1), (("C", 4), 1), (("K", 5), 1), (("K", 6), 1)))

    def products(multiset: LoopMultiset, point: int) -> dict[str, int]:
        counts = np.unravel_index(point, [count + 1 for _, count in multiset.loops])
        found: dict[str, int] = {"C": 1, "K": 1}
        for ((dimension, size), _), times in zip(multiset.loops, counts, strict=True):
            found[dimension] *= size ** int(times)
        return found

    numbers = point_numbers.PointNumbers(primes, {"cycles": np.arange(points_of(primes))}, {})
    fields = {"cycles": np.zeros(100, np.int64)}
    numbers.write(merged, fields)
    for point, place in enumerate(fields["cycles"][: points_of(merged)].tolist()):
        assert products(primes, place) == products(merged, point)


def test_a_round_has_more_buckets_than_labels() -> None:
    """A generation of a round leaves buckets empty; otherwise a search for a label would not end."""
    watch = Watch.start("EDP", SearchLimits(0.0, None, None), None, None)
    for _, _, problem in problems(range(10)):
        multiset = loop_multiset(problem.spatial.temporal_sizes, None)
        levels = problem.arrays.level_count[: problem.arrays.operand_count].tolist()
        for free in (False, True):
            part = MultisetPart(problem, 0, multiset, (), free, watch)
            for width in rounds.WIDTHS:
                count = part._bucket_count(width)
                assert count & (count - 1) == 0
                assert count <= BUCKETS
                most = width * len(multiset.loops) * (math.prod(levels) if free else 1)
                assert count > min(most, LABELS)
