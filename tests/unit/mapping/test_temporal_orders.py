"""Temporal orders that a search visits: enumeration, merging of factors, and constraints."""

import itertools
import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.cost.problem import new_record
from tilewright.mapping.constraints import WILDCARD, TemporalOrderingEntry
from tilewright.mapping.temporal import LoopMultiset, loop_multiset, order_pattern, prime_factors
from tilewright.pipeline.stages.run import map_layer
from tilewright.search.loma_kernel import STREAM_DTYPE, matches, next_order
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import constraints, gemm, register_core
from tests.unit.search.exact.exact_brute_force import meets

Pattern = list[tuple[str, int | None]]
DIMENSIONS = ("C", "D", "K")


def entries(pattern: Pattern) -> tuple[TemporalOrderingEntry, ...]:
    """Return ordering entries of (dimension, size) pairs."""
    return tuple(TemporalOrderingEntry(dimension, size) for dimension, size in pattern)


# enumeration ----------------------------------------------------------------------------------------------------------


def order_count(symbols: list[int]) -> int:
    """Return the number of distinct permutations, a multinomial coefficient."""
    return math.factorial(len(symbols)) // math.prod(math.factorial(n) for n in Counter(symbols).values())


def cool_lex(symbols: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """Return successors by the prefix shifts of Williams (2009); i is the length of the longest falling prefix."""
    result = [symbols]
    while len(result) < count:
        s = result[-1]
        n = len(s)
        i = next((k for k in range(1, n) if s[k] > s[k - 1]), n)
        moved = n - 1
        if i <= n - 2:
            moved = i + 1 if s[i + 1] <= s[i - 1] else i
        result.append((s[moved], *s[:moved], *s[moved + 1 :]))
    return result


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=8).filter(lambda symbols: order_count(symbols) <= 3000))
def test_every_distinct_order_exactly_once(symbols: list[int]) -> None:
    """The successor visits each distinct permutation once and then returns to the descending order."""
    stream = SimpleNamespace(order=sorted(symbols, reverse=True))
    seen = []
    for _ in range(order_count(symbols)):
        seen.append(tuple(stream.order))
        next_order.py_func(stream, len(symbols))
    assert set(seen) == set(itertools.permutations(symbols)) if len(symbols) < 8 else len(set(seen)) == len(seen)
    assert all(Counter(order) == Counter(symbols) for order in seen)
    assert stream.order == sorted(symbols, reverse=True), "the last order is followed by the first"


def test_cool_lex_by_hand() -> None:
    """The orders of {0, 0, 1, 1} come in the sequence of Williams (2009), worked out by hand."""
    expected = ["1100", "0110", "1010", "0101", "0011", "1001"]
    assert ["".join(map(str, order)) for order in cool_lex((1, 1, 0, 0), 6)] == expected


def test_compiled_successor_equals_rule() -> None:
    """The compiled successor follows the rule and leaves the values behind the order unchanged."""
    stream = new_record(STREAM_DTYPE)
    stream.order[:7] = [2, 1, 1, 0, 0, 7, 7]
    for expected in cool_lex((2, 1, 1, 0, 0), 30):
        assert stream.order[:7].tolist() == [*expected, 7, 7]
        next_order(stream, 5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(DIMENSIONS), st.integers(2, 96), min_size=1))
def test_order_count_is_multinomial(sizes: dict[str, int]) -> None:
    """`order_count` is the multinomial coefficient of the multiset."""
    multiset = loop_multiset(tuple(sizes.items()), None)
    symbols = [i for i, (_, repeats) in enumerate(multiset.loops) for _ in range(repeats)]
    assert multiset.length == len(symbols)
    assert multiset.order_count == order_count(symbols)


# factors --------------------------------------------------------------------------------------------------------------


def loops(multiset: LoopMultiset) -> list[str]:
    """Return loops as text: 'K3', 'C2 x2'."""
    return [f"{d}{size}" + (f" x{repeats}" if repeats > 1 else "") for (d, size), repeats in multiset.loops]


def test_prime_factors() -> None:
    """1 has no prime factors, 12 has 2 2 3, and 97 is prime."""
    assert [prime_factors(n) for n in (1, 2, 12, 97, 1001)] == [[], [2], [2, 2, 3], [97], [7, 11, 13]]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, ["C2 x3", "K2 x2", "K3"]),
        (6, ["C2 x3", "K2 x2", "K3"]),
        (5, ["C2 x3", "K3", "K4"]),
        (4, ["C2", "C4", "K3", "K4"]),
        (3, ["C2", "C4", "K12"]),
        (2, ["C8", "K12"]),
        (1, ["C8", "K12"]),
    ],
)
def test_merging_by_hand(limit: int | None, expected: list[str]) -> None:
    """Merging joins the two smallest factors of the dimension with most factors until the limit holds.
    A limit below the number of dimensions is raised to this number.
    """
    assert loops(loop_multiset((("K", 12), ("C", 8)), limit)) == expected


def test_merging_single_smallest() -> None:
    """18 = 2 3 3 merges its single 2 with a 3, not the two equal factors."""
    assert loops(loop_multiset((("K", 18),), 2)) == ["K3", "K6"]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(DIMENSIONS), st.integers(2, 360), min_size=1), st.integers(1, 8))
def test_merging_keeps_sizes_and_limit(sizes: dict[str, int], limit: int) -> None:
    """Merged factors multiply to the size of each dimension; their number is at most the limit or one a dimension."""
    multiset = loop_multiset(tuple(sizes.items()), limit)
    product = {d: math.prod(size**n for (name, size), n in multiset.loops if name == d) for d in sizes}
    assert product == sizes
    assert multiset.length <= max(limit, len(sizes))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ([("D", 6)], ["D2", "D6"]),
        ([("D", 12)], ["D12"]),
        ([("D", 2), ("D", 2)], ["D2 x2", "D3"]),
        ([("D", 4)], ["D3", "D4"]),
        ([("D", None)], ["D2 x2", "D3"]),
        ([("D", 1), ("D", 3)], None),
    ],
)
def test_sized_loops_stay_whole(pattern: Pattern, expected: list[str] | None) -> None:
    """A loop with a given size stays one loop, and all loops of D still multiply to 12."""
    multiset = loop_multiset((("D", 12),), None, entries(pattern))
    assert math.prod(size**n for (_, size), n in multiset.loops) == 12
    assert expected is None or loops(multiset) == expected


def test_sized_loops_are_not_merged() -> None:
    """K 24 keeps its given loop of 4 and merges 2 3 into 6; the limit of 1 cannot be met."""
    assert loops(loop_multiset((("K", 24), ("C", 4)), 1, entries([("K", 4)]))) == ["C4", "K4", "K6"]


# patterns -------------------------------------------------------------------------------------------------------------


def kernel_match(order: list[tuple[str, int]], pattern: Pattern) -> bool:
    """Return whether an order matches, by the kernel's code as plain Python."""
    arrays = order_pattern(entries(pattern), DIMENSIONS)
    stream = SimpleNamespace(
        length=len(order),
        order=range(len(order)),
        loop_dimension=[DIMENSIONS.index(d) for d, _ in order],
        loop_size=[size for _, size in order],
        pattern_length=len(arrays.dimension),
        pattern_dimension=arrays.dimension,
        pattern_size=arrays.size,
    )
    return bool(matches.py_func(stream))


@settings(max_examples=500, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(DIMENSIONS), st.sampled_from([2, 3])), max_size=6),
    st.lists(
        st.one_of(st.just((WILDCARD, None)), st.tuples(st.sampled_from(DIMENSIONS), st.sampled_from([None, 1, 2, 3]))),
        min_size=1,
        max_size=6,
    ),
)
def test_matching_equals_brute_force(order: list[tuple[str, int]], pattern: Pattern) -> None:
    """A pattern with gaps matches like a glob; a pattern without gaps names the innermost loops."""
    effective = [entry for entry in pattern if entry[1] != 1]
    if effective and all(dimension != WILDCARD for dimension, _ in effective):
        effective.append((WILDCARD, None))
    if not effective:
        return  # no pattern: the kernel does not ask
    assert kernel_match(order, pattern) == meets(order, effective)


# constraints in the search --------------------------------------------------------------------------------------------

CORE = register_core()
LAYER = gemm(C=4, D=6, K=4)


def search(ordering: list[list[Any]], layer: Any = LAYER, **options: Any) -> dict[str, Any]:
    """Return the best mapping without spatial unrolling."""
    return map_layer(layer, CORE, constraints((("D1", ()),), ordering), SearchOptions(**options))


def expected_matches(pattern: Pattern, loop_list: list[tuple[str, int]]) -> int:
    """Return the number of distinct orders that match."""
    return sum(meets(list(order), pattern) for order in set(itertools.permutations(loop_list)))


def test_full_ordering_is_evaluated_as_it_is() -> None:
    """A complete ordering is evaluated as one order; its loops are neither split nor merged, and loops of 1 are
    dropped."""
    record = search([["K", 4], ["C", 1], ["D", 3], ["C", 4], ["D", 2]], lpf_limit=3)
    assert record.loop_order == (("K", 4), ("D", 3), ("C", 4), ("D", 2))
    assert record.evaluations == 1


def test_full_ordering_that_does_not_fit() -> None:
    """A complete ordering that does not fit is an error: the tensors need 512 bits, the memory has 300."""
    core = register_core(buffer_bits=64, top_bits=300)
    with pytest.raises(MappingError, match=r"memory 'top' is too small .* together: needs 512 bits, has 300"):
        map_layer(gemm(C=4, D=4, K=4), core, constraints((("D1", ()),), [["K", 4], ["C", 4], ["D", 4]]))


def test_partial_ordering_binds_innermost_loops() -> None:
    """[K, *], [D, 3] evaluates all orders whose innermost loop is of K and whose next loop is D 3."""
    record = search([["K", "*"], ["D", 3]])
    assert record.loop_order[0][0] == "K"
    assert record.loop_order[1] == ("D", 3)
    pattern: Pattern = [("K", None), ("D", 3), (WILDCARD, None)]
    primes = [("C", 2), ("C", 2), ("D", 2), ("D", 3), ("K", 2), ("K", 2)]
    assert record.evaluations == expected_matches(pattern, primes)


def test_outermost_side() -> None:
    """An ordering that begins with a gap puts its loops outermost; the reference cannot do this (B7)."""
    record = search([["*", "*"], ["D", 2], ["K", 4]])
    assert record.loop_order[-2:] == (("D", 2), ("K", 4))
    pattern: Pattern = [(WILDCARD, None), ("D", 2), ("K", 4)]
    assert record.evaluations == expected_matches(pattern, [("C", 2), ("C", 2), ("D", 2), ("D", 3), ("K", 4)])


def test_both_sides() -> None:
    """A gap in the middle fixes the loops on both ends."""
    record = search([["K", "*"], ["*", "*"], ["C", "*"]])
    assert (record.loop_order[0][0], record.loop_order[-1][0]) == ("K", "C")


def test_dimensions_of_other_layers_are_ignored() -> None:
    """An entry for a dimension that the layer lacks has no effect."""
    assert search([["OX", 7], ["K", "*"]]).evaluations == search([["K", "*"]]).evaluations


@pytest.mark.parametrize("size", [6, 12])
def test_sized_loop_of_two_primes(size: int) -> None:
    """[D, 6] or [D, 12] on D = 12 keeps the number of cycles, which the reference triples (B8)."""
    record = search([["D", size]], gemm(C=4, D=12, K=4))
    assert record.loop_order[0] == ("D", size)
    assert math.prod(n for _, n in record.loop_order) == 4 * 12 * 4


def test_repeated_sized_loops() -> None:
    """[D, 2], [D, 2] on D = 12 are the two innermost loops, and a loop of 3 remains; the reference crashes."""
    record = search([["D", 2], ["D", 2]], gemm(C=4, D=12, K=4))
    assert record.loop_order[:2] == (("D", 2), ("D", 2))
    assert ("D", 3) in record.loop_order[2:]


def test_sized_loop_of_one() -> None:
    """A loop of size 1 has no effect; the reference crashes (B9)."""
    layer = gemm(C=4, D=1, K=4)
    assert search([["D", 1], ["K", "*"]], layer).evaluations == search([["K", "*"]], layer).evaluations


def test_size_that_does_not_divide() -> None:
    """A size that does not divide the iterations is refused with its dimension and size."""
    with pytest.raises(
        MappingError, match=r"temporal_ordering has the loops D 5, whose product does not divide the 6 iterations"
    ):
        search([["D", 5]])


def test_ordering_longer_than_the_order() -> None:
    """An ordering with more loops than an order has is refused; the reference raises an IndexError."""
    with pytest.raises(MappingError, match="no loop order matches temporal_ordering"):
        search([["C", "*"], ["D", "*"], ["K", "*"], ["C", "*"]], gemm(C=2, D=2, K=2))


def test_unsized_loop_of_an_absent_dimension() -> None:
    """An ordering with a loop of a dimension of size 1 is refused."""
    with pytest.raises(MappingError, match="no loop order matches temporal_ordering"):
        search([["D", "*"]], gemm(C=2, D=1, K=2))


def test_no_loops_at_all() -> None:
    """A layer with all loops of size 1 has one empty order, at which the reference's printer fails (B18)."""
    record = search([], gemm(C=1, D=1, K=1))
    assert record.loop_order == ()
    assert record.evaluations == 1
    assert record.latency_breakdown_cycles["ideal"] == 1
