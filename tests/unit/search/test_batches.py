"""Batches of loop orders from LOMA: their orders, their costs, explicit level boundaries, and the best order."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, reject, settings
from hypothesis import strategies as st
from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import InputError, MappingError
from tilewright.cost.problem import PROBLEM_DTYPE
from tilewright.cost.record import Figures
from tilewright.cost.workspace import new_workspace
from tilewright.mapping.temporal import loop_multiset
from tilewright.search import loma
from tilewright.search.batch import (
    NOTHING_MATCHES,
    CostedBatch,
    OrderBatch,
    best_row,
    boundary_shape,
    cost_orders,
    is_better,
)
from tilewright.search.blocks import cost_rows, thread_block, write_block
from tilewright.search.evaluate import PreparedProblem, corrected_figures, evaluate_prepared, prepare
from tilewright.search.loma import loma_batches
from tilewright.search.loma_kernel import BATCH_ORDERS
from tilewright.search.options import SearchOptions

from tests.members import members
from tests.plain.model import PlainModel
from tests.plain.spatial import DoesNotFitError
from tests.unit.cost.engine_cases import (
    LINKS,
    Case,
    Order,
    cases,
    constraints,
    convolution,
    gemm,
    orders,
    rank,
    register_core,
    small_core,
)

CORE = small_core(buffer_bits=600)
LAYER = convolution("one", K=8, C=3, OX=6, FX=3)
OBJECTIVES = ("latency", "energy", "EDP")


def problem(layer: Any = LAYER, core: Any = CORE, unrolling: Any = (("D1", (("K", 4),)),), **options: Any) -> Any:
    """A prepared small problem."""
    return prepare(layer, core, LINKS, unrolling, SearchOptions(**options))


# LOMA -----------------------------------------------------------------------------------------------------------------


def enumerated(prepared: PreparedProblem, limit: int | None, ordering: Any = ()) -> list[Order]:
    """All orders in LOMA's batches."""
    return [batch.loop_order(i) for batch in loma_batches(prepared, ordering, limit) for i in range(len(batch.orders))]


@pytest.mark.parametrize("limit", [1, 4, 6, None])
def test_loma_hands_over_every_order_once(limit: int | None) -> None:
    """Each distinct order of the factors comes once, in arrays of integers."""
    prepared = problem()
    multiset = loop_multiset(prepared.spatial.temporal_sizes, limit)
    found = enumerated(prepared, limit)
    loops = [loop for loop, repeats in multiset.loops for _ in range(repeats)]
    assert len(found) == len(set(found)) == multiset.order_count
    assert all(sorted(order) == sorted(loops) for order in found)
    assert next(loma_batches(prepared, (), limit)).orders.dtype == np.int64


@pytest.mark.parametrize("rows", [1, 7, BATCH_ORDERS])
def test_batches_are_cut_anywhere(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """The size of batches changes neither the orders, nor their sequence, nor the number visited."""
    prepared = problem()
    whole = enumerated(prepared, 5)
    monkeypatch.setattr(loma, "BATCH_ORDERS", rows)
    batches = list(loma_batches(prepared, (), 5))
    assert all(len(batch.orders) == rows for batch in batches[:-1])
    assert [batch.loop_order(i) for batch in batches for i in range(len(batch.orders))] == whole
    assert sum(batch.visited for batch in batches) == len(whole)


def test_orders_that_do_not_match_are_visited_but_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches hold only orders that match the ordering; the visited orders add up to all orders."""
    monkeypatch.setattr(loma, "BATCH_ORDERS", 5)
    monkeypatch.setattr(loma, "VISITS_PER_ROW", 2)
    prepared = problem()
    ordering = constraints((), [["K", "*"], ["*", "*"], ["OX", "*"]]).temporal_ordering
    batches = list(loma_batches(prepared, ordering, 6))
    found = [batch.loop_order(i) for batch in batches for i in range(len(batch.orders))]
    assert found == [o for o in enumerated(prepared, 6) if (o[0][0], o[-1][0]) == ("K", "OX")]
    assert sum(batch.visited for batch in batches) == loop_multiset(prepared.spatial.temporal_sizes, 6).order_count
    assert any(len(batch.orders) == 0 for batch in batches), "ten orders in a row without one that matches"


def test_empty_batch_says_that_nothing_matches() -> None:
    """An ordering that no order meets gives batches without orders, and the reason."""
    prepared = problem(gemm(C=2, D=2, K=2), register_core(), (("D1", ()),))
    ordering = constraints((), [["C", "*"], ["D", "*"], ["K", "*"], ["C", "*"]]).temporal_ordering
    (batch,) = loma_batches(prepared, ordering, 6)
    costed = cost_orders(batch)
    assert (len(batch.orders), batch.visited, costed.closest_failure) == (0, 6, NOTHING_MATCHES)
    assert best_row(costed, "energy") is None


def test_no_loops_is_one_empty_order() -> None:
    """One order without loops exists if nothing is left to iterate, and it has a cost."""
    prepared = problem(gemm(C=1, D=1, K=1), register_core(), (("D1", ()),))
    (batch,) = loma_batches(prepared, (), 6)
    assert batch.orders.shape == (1, 0)
    assert cost_orders(batch).fits.tolist() == [True]


def test_complete_ordering_is_one_order() -> None:
    """A complete ordering is handed over unchanged, also with a loop that comes twice."""
    prepared = problem(gemm(C=4, D=2, K=1), register_core(), (("D1", ()),))
    ordering = constraints((), [["C", 2], ["D", 2], ["C", 2]]).temporal_ordering
    (batch,) = loma_batches(prepared, ordering, 6)
    assert batch.loop_order(0) == (("C", 2), ("D", 2), ("C", 2))
    assert len(batch.loops) == 2


# costs ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=members(100, 40), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_batch_costs_equal_single_evaluations(case: Case) -> None:
    """An order has the same costs in a batch as alone, or fits in neither case.

    If no order of a batch fits, the stated reason is that of one of its orders.
    """
    options = SearchOptions(temporal_mapping_type="even" if case.even else "uneven")
    prepared = prepare(case.layer, case.core, case.links, case.unrolling, options)
    batch = next(loma_batches(prepared, (), 4))
    costed = cost_orders(batch)
    reasons = []
    for row in range(len(batch.orders))[:: 1 + len(batch.orders) // 20]:
        try:
            record = evaluate_prepared(prepared, batch.loop_order(row))
        except MappingError as error:
            reasons.append(str(error))
            assert not costed.fits[row]
            assert costed.energy_pj[row] == costed.latency_cycles[row] == math.inf
            continue
        assert costed.fits[row]
        assert (costed.energy_pj[row], costed.latency_cycles[row]) == (record.energy_pj, record.latency_cycles)
    event("nothing fits" if not costed.fits.any() else "fits")
    assert (costed.closest_failure == "") == costed.fits.any()
    if len(reasons) == len(batch.orders):
        assert costed.closest_failure in reasons


def test_closest_failure_missed_by_least() -> None:
    """The reported order is the one with the smallest ratio of need to room if no order fits.

    In this order, I, W and the final outputs have 16 elements of 8 bits each: 384 bits. Other orders keep partial sums
    of 16 bits in the top memory.
    """
    core = register_core(buffer_bits=64, top_bits=300)
    prepared = problem(gemm(C=4, D=4, K=4), core, (("D1", ()),))
    costed = cost_orders(next(loma_batches(prepared, (), 6)))
    assert "needs 384 bits, has 300" in costed.closest_failure
    assert costed.closest_ratio == 384 / 300


# explicit boundaries --------------------------------------------------------------------------------------------------


def given_case(data: st.DataObject) -> tuple[Case, PreparedProblem, PlainModel, Order]:
    """A random problem with an order."""
    case = data.draw(cases())
    try:
        model = PlainModel(case.layer, case.core, case.links, case.unrolling, case.even)
        options = SearchOptions(temporal_mapping_type="even" if case.even else "uneven")
        prepared = prepare(case.layer, case.core, case.links, case.unrolling, options)
    except (DoesNotFitError, MappingError):
        assume(False)
    return case, prepared, model, data.draw(orders(model.temporal_sizes))


@settings(max_examples=members(300, 120), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_given_boundaries_equal_plain_model(data: st.DataObject) -> None:
    """The kernel finds the costs of the plain model for any level boundaries, or that the mapping does not fit."""
    case, prepared, model, order = given_case(data)
    # Mostly large boundaries at low levels hardly ever fit; small ones often do.
    bound = st.one_of(st.integers(0, len(order)), st.integers(0, min(2, len(order))))
    given = {o: (*sorted(data.draw(bound) for _ in model.chains[o][1:]), len(order)) for o in case.layer.operands}
    boundaries = [list(given[o]) for o in case.layer.operands]
    batch = OrderBatch.of_orders(prepared, [order], [boundaries])
    costed = cost_orders(batch)
    try:
        expected = model.cost(order, given)
    except DoesNotFitError:
        event("rejected")
        assert not costed.fits[0]
        with pytest.raises(MappingError):
            evaluate_prepared(prepared, order, boundaries)
        return
    event("fits")
    record = evaluate_prepared(prepared, order, boundaries)
    assert costed.fits[0]
    assert (costed.energy_pj[0], costed.latency_cycles[0]) == (expected.energy_pj, expected.latency_cycles)
    assert record.latency_breakdown_cycles == expected.parts
    assert encode(record.word_accesses) == expected.words
    assert record.level_boundaries == {o: tuple(bounds) for o, bounds in given.items()}
    assert batch.level_boundaries(0) == tuple(tuple(bounds) for bounds in boundaries)


@settings(max_examples=members(100, 40), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_boundaries_of_the_allocator_are_accepted(data: st.DataObject) -> None:
    """The allocator's boundaries, given explicitly, fit and cost the same."""
    _, prepared, _, order = given_case(data)
    try:
        expected = evaluate_prepared(prepared, order)
    except MappingError:
        reject()  # nothing fits
    ws = new_workspace()
    block = write_block(
        thread_block(),
        [prepared.dimensions.index(d) for d, _ in order],
        [size for _, size in order],
        np.arange(len(order)).reshape(1, -1),
    )
    cost_rows(prepared.arrays, ws, block, 1)
    counts = prepared.arrays.level_count.tolist()
    boundaries = [ws.bound[o, : counts[o]].tolist() for o in range(len(prepared.layer.operands))]
    record = evaluate_prepared(prepared, order, boundaries)
    assert encode(record.level_boundaries) == dict(zip(prepared.layer.operands, boundaries, strict=True))
    assert replace(record, level_boundaries=None) == expected


def test_corrected_figures_keep_the_boundaries() -> None:
    """The figures under `corrected` are for the given boundaries; its own allocation would give other figures."""
    order, boundaries = (("D", 4), ("C", 4), ("K", 4)), [[1, 3], [1, 3], [1, 3]]
    layer, core = gemm(C=4, D=4, K=4), register_core()
    record = evaluate_prepared(problem(layer, core, (("D1", ()),), model="corrected"), order, boundaries)
    figures = corrected_figures(problem(layer, core, (("D1", ()),)), order, boundaries)
    assert figures == Figures(record.energy_pj, record.latency_cycles)
    assert figures != corrected_figures(problem(layer, core, (("D1", ()),)), order)


@pytest.mark.parametrize(
    ("boundaries", "reason"),
    [
        ([[0, 3], [0, 3], [0, 2]], "at the topmost memory, it must be the number of loops"),
        ([[4, 3], [0, 3], [0, 3]], "at most the number of loops"),
        ([[-1, 3], [0, 3], [0, 3]], "must be at least the boundary of the next inner level"),
        ([[0, 3], [0, 3]], "level boundaries are needed for operands O, I, W, but 2 lists given"),
        ([[0, 3], [3], [0, 3]], r"operand I has 2 memory levels, but its level boundaries are \[3\]"),
        ([[0, 3], [0.5, 3], [0, 3]], "operand I has 2 memory levels"),
        ([[2, 3], [0, 3], [0, 3]], "too small for the tiles of all its operands together: needs 144 bits, has 100"),
    ],
)
def test_wrong_boundaries_have_a_reason(boundaries: Any, reason: str) -> None:
    """Boundaries that are not nested, not complete, of the wrong number or too large are refused with a reason.

    The last case: two loops of 4 keep 4 x 4 elements of O at 8 bits, with 8 bits each of I and W: 144 bits.
    """
    prepared = problem(gemm(C=1, D=4, K=8), register_core(buffer_bits=100), (("D1", ()),))
    order = (("D", 4), ("K", 4), ("K", 2))
    with pytest.raises(MappingError, match=reason):
        evaluate_prepared(prepared, order, boundaries)


def test_uneven_boundaries_are_refused_where_even_is_asked_for() -> None:
    """Loops that one operand keeps and another does not are allowed as uneven and refused as even."""
    order, boundaries = (("D", 4), ("K", 4)), [[1, 2], [0, 2], [0, 2]]
    layer, core = gemm(C=1, D=4, K=4), register_core()
    evaluate_prepared(problem(layer, core, (("D1", ()),)), order, boundaries)
    even = problem(layer, core, (("D1", ()),), temporal_mapping_type="even")
    with pytest.raises(MappingError, match="the mapping is not even"):
        evaluate_prepared(even, order, boundaries)
    evaluate_prepared(even, order, [[1, 2], [1, 2], [1, 2]])


# the best of a batch --------------------------------------------------------------------------------------------------


@settings(max_examples=members(300, 120), deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.booleans()), max_size=12))
def test_best_row_is_the_first_of_the_best(rows: list[tuple[int, int, bool]]) -> None:
    """The best row has the least objective; of equal rows, the one with the least other metric (not for EDP) wins.

    Of rows that are still equal, the first one wins.

    The rule for two candidates agrees.
    """
    fits = np.array([fit for _, _, fit in rows], np.bool_)
    energy = np.array([e if fit else math.inf for e, _, fit in rows], np.float64)
    latency = np.array([t if fit else math.inf for _, t, fit in rows], np.float64)
    costed = CostedBatch(None, energy, latency, fits, "")  # type: ignore[arg-type]
    for objective in OBJECTIVES:
        expected = None
        for i, (e, t, fit) in enumerate(rows):
            if fit and (expected is None or rank(objective, e, t) < rank(objective, *rows[expected][:2])):
                assert expected is None or is_better(objective, (e, t), rows[expected][:2])
                expected = i
        assert best_row(costed, objective) == expected


# batches by hand ------------------------------------------------------------------------------------------------------


def test_batches_made_by_hand_are_checked() -> None:
    """Arrays and names that do not fit together raise an error."""
    prepared = problem(gemm(C=2, D=2, K=2), register_core(), (("D1", ()),))
    loops = (("C", 2), ("D", 2), ("K", 2))
    one = np.array([[0, 1, 2]])
    assert boundary_shape(prepared) == (3, 2)
    for message, arguments in (
        (r"an array \[order, position\]", (loops, np.array([0, 1, 2]))),
        ("at most 16384 orders", (loops, np.zeros((BATCH_ORDERS + 1, 3), np.int64))),
        ("outside the 3 loops of the batch", (loops, np.array([[0, 1, 3]]))),
        ("outside the 3 loops of the batch", (loops, np.array([[0, -1, 2]]))),
        ("no loop dimension Q", ((*loops, ("Q", 2)), one)),
        (r"the shape \(1, 3, 1\) instead of \(1, 3, 2\)", (loops, one, np.zeros((1, 3, 1), np.int64))),
        ("97 temporal loops; at most 96", (loops, np.zeros((1, 97), np.int64))),
        ("97 different loops; at most 96", (tuple(("C", size) for size in range(97)), one)),
    ):
        with pytest.raises(MappingError, match=message):
            cost_orders(OrderBatch(prepared, *arguments))


def test_orders_by_name_are_checked() -> None:
    """Orders that do not cover the layer, or have different numbers of loops, are refused."""
    prepared = problem(gemm(C=4, D=2, K=2), register_core(), (("D1", ()),))
    whole = (("C", 4), ("D", 2), ("K", 2))
    for message, given_orders in (
        ("iterations after the spatial mapping: C 2 instead of 4", [(("C", 2), ("D", 2), ("K", 2))]),
        ("no loop dimension Q", [(*whole, ("Q", 2))]),
        ("different numbers of loops", [whole, (("C", 2), ("C", 2), ("D", 2), ("K", 2))]),
    ):
        with pytest.raises(MappingError, match=message):
            OrderBatch.of_orders(prepared, given_orders)
    batch = OrderBatch.of_orders(prepared, [whole, whole[::-1]], search=(("engine", "mine"),))
    assert [batch.loop_order(0), batch.loop_order(1)] == [whole, whole[::-1]]
    assert (batch.visited, batch.search) == (2, (("engine", "mine"),))
    assert len(OrderBatch.of_orders(prepared, []).orders) == 0


# options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temporal_mapping_search_engine", "slasa"),
        ("allocation", "gredy"),
        ("time_budget_s", 0),
        ("time_budget_s", math.inf),
        ("time_budget_s", "60"),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", 1.0),
        ("salsa_iteration_number", 0),
        ("salsa_start_temperature", -0.05),
        ("salsa_start_temperature", math.nan),
        ("salsa_restarts", True),
        ("exploit_data_locality", 1),
    ],
)
def test_options_that_cannot_be(name: str, value: Any) -> None:
    """An impossible option is one problem, with its name and the given value."""
    with pytest.raises(InputError) as caught:
        SearchOptions(**{name: value})
    (found,) = caught.value.problems
    assert (found.path, found.value) == (name, repr(value))


def test_wrong_options_are_told_together() -> None:
    """One error reports all wrong options with the nearest names; free allocation needs the exact engine."""
    with pytest.raises(InputError) as caught:
        SearchOptions(objective="enrgy", temporal_mapping_search_engine="salsa", allocation="free", seed=-1)
    assert {entry.path for entry in caught.value.problems} == {"objective", "allocation", "seed"}
    with pytest.raises(InputError) as caught:
        SearchOptions(objective="enrgy", temporal_mapping_search_engine="exat", allocation="free", seed=-1)
    found = {entry.path: entry for entry in caught.value.problems}
    # What is meant by `exat` may be what `free` needs.
    assert set(found) == {"objective", "temporal_mapping_search_engine", "seed"}
    assert found["temporal_mapping_search_engine"].nearest == "exact"
    SearchOptions(temporal_mapping_search_engine="exact", allocation="free", time_budget_s=1)


def test_records_have_no_field_that_numpy_has() -> None:
    """Names of record fields do not hide attributes of numpy's records."""
    from tilewright.search.loma_kernel import BLOCK_DTYPE, STREAM_DTYPE
    from tilewright.search.salsa_kernel import CHAIN_DTYPE

    for dtype in (PROBLEM_DTYPE, BLOCK_DTYPE, STREAM_DTYPE, CHAIN_DTYPE):
        assert not set(dtype.names or ()) & set(dir(np.record))
