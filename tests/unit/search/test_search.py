"""The search over spatial candidates and temporal orders: optimum, ties, records, threads, store, interruption."""

import copy
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.base.profile import REFERENCE
from tilewright.cost.record import LayerRecord
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.temporal import loop_multiset
from tilewright.pipeline.stages.items import MappedWorkload
from tilewright.pipeline.stages.run import map_layer, map_workload
from tilewright.search import loma
from tilewright.search.batch import SearchStoppedError
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.search.store import Store, problem_key
from tilewright.workload.layer import Layer

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
    network,
    rank,
    small_core,
)
from tests.unit.mapping.test_temporal_orders import cool_lex, order_count

CORE = small_core(buffer_bits=600)
OPEN = constraints()
MAPPING = Mapping((OPEN,))
OBJECTIVES = ("latency", "energy", "EDP")
LAYERS = (
    convolution("one", K=8, C=3, OX=6, FX=3),
    gemm("two", C=12, D=5, K=6),
    convolution("three", padding=1, K=4, OX=4, OY=4, FX=3, FY=3),
)


# optimum --------------------------------------------------------------------------------------------------------------


def all_orders(sizes: dict[str, int], limit: int) -> list[Order]:
    """Every order, in the sequence of the enumeration."""
    multiset = loop_multiset(tuple(sizes.items()), limit)
    symbols = tuple(i for i, (_, repeats) in reversed(list(enumerate(multiset.loops))) for _ in range(repeats))
    orders = cool_lex(symbols, order_count(list(symbols)))
    return [tuple(multiset.loops[i][0] for i in order) for order in orders]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_best_order_equals_brute_force(layer: Layer, objective: str) -> None:
    """The search finds the best order of the plain model over all orders.

    The best order has the smallest objective. Ties go to the smaller other metric (not for EDP), then to the first.
    """
    unrolling = (("D1", (("K", 4),)), ("D2", (("C", 3),) if layer.size_of["C"] > 1 else ()))
    model = PlainModel(layer, CORE, LINKS, unrolling)
    best, best_rank, fitting = None, None, 0
    for order in all_orders(model.temporal_sizes, 4):
        try:
            result = model.cost(list(order))
        except DoesNotFitError:
            continue
        fitting += 1
        this = rank(objective, result.energy_pj, float(result.latency_cycles))
        if best_rank is None or this < best_rank:
            best, best_rank = order, this
    record = map_layer(layer, CORE, constraints(unrolling), SearchOptions(objective=objective, lpf_limit=4))
    assert best is not None
    assert [tuple(loop) for loop in record.loop_order] == list(best)
    assert rank(objective, record.energy_pj, record.latency_cycles) == best_rank
    assert record.evaluations == fitting


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_best_candidate_wins(objective: str) -> None:
    """The best of several spatial candidates wins by the same rule, and each has a row with its own best figures."""
    record = map_layer(LAYERS[1], CORE, OPEN, SearchOptions(objective=objective, nb_spatial_mappings_generated=6))
    rows = [row for row in record.candidates if row.feasible]
    assert len(record.candidates) == 6
    best = min(rank(objective, row.energy_pj, row.latency_cycles) for row in rows)
    assert rank(objective, record.energy_pj, record.latency_cycles) == best
    first = next(row for row in rows if rank(objective, row.energy_pj, row.latency_cycles) == best)
    assert record.spatial_mapping == first.spatial_mapping
    assert record.evaluations == sum(row.feasible for row in rows)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.parametrize("kind", ["uneven", "even"])
def test_record_equals_evaluation_of_its_own_mapping(layer: Layer, kind: str) -> None:
    """Evaluating a record's spatial mapping and loop order gives the record again."""
    options = SearchOptions(temporal_mapping_type=kind)
    record = map_layer(layer, CORE, OPEN, options)
    unrolling = tuple((name, tuple(factors.items())) for name, factors in record.spatial_mapping.items())
    order = tuple((d, size) for d, size in record.loop_order)
    expected = replace(record, candidates=None, evaluations=None)
    assert evaluate(layer, CORE, LINKS, unrolling, order, options) == expected


# nothing fits ---------------------------------------------------------------------------------------------------------


def test_nothing_fits_says_what_was_needed() -> None:
    """24-bit sums in a register of 16 bits: the error names layer, core, spatial mapping, memory, operand, need and
    limit.
    """
    layer = gemm("wide", C=4, D=4, K=4, bits=(("W", 8), ("I", 8), ("O", 24), ("O_final", 24)))
    with pytest.raises(MappingError) as caught:
        map_layer(layer, CORE, constraints((("D1", (("K", 4),)), ("D2", ()))))
    text = str(caught.value)
    for part in ("'wide'", "'small'", "D1: K 4", "'sums'", "operand O", "needs 24 bits", "has 16"):
        assert part in text


def test_candidate_that_does_not_fit_is_a_row() -> None:
    """A candidate for which nothing fits has a row with the reason, and the others decide.

    C over D2 leaves a sum of all of C in the register (8 bits). Other candidates keep partial sums of 24 bits there,
    which do not fit.
    """
    layer = gemm("mixed", C=4, D=4, K=1, bits=(("W", 8), ("I", 8), ("O", 24), ("O_final", 8)))
    record = map_layer(layer, CORE, OPEN, SearchOptions(nb_spatial_mappings_generated=0))
    assert {bool(row.feasible) for row in record.candidates} == {True, False}
    for row in record.candidates:
        assert (row.reason == "") == (row.feasible > 0)
        assert (row.energy_pj is None) == (row.feasible == 0)
        assert row.feasible or "memory 'sums'" in row.reason


def test_missing_memory_for_operand() -> None:
    """A core without a memory for an operand raises MappingError with this reason."""
    core = small_core()
    memories = tuple(m for m in core.memories if m.name in ("sums", "buffer"))
    with pytest.raises(MappingError, match=r"no memory for operand W \(I2\)"):
        map_layer(LAYERS[1], type(core)(core.name, core.operational_array, memories), constraints((("D1", ()),)))


# networks -------------------------------------------------------------------------------------------------------------


def renamed(layer: Layer, name: str) -> Layer:
    """The layer with another name."""
    values = {field: getattr(layer, field) for field in layer.__dataclass_fields__}
    return Layer(**(values | {"name": name}))


NETWORK = network([*LAYERS, renamed(LAYERS[0], "four"), renamed(LAYERS[1], "five")])


def mapped(store: Store | None = None, **other: Any) -> MappedWorkload:
    """The result of mapping the network with few orders."""
    return map_workload(NETWORK, CORE, MAPPING, SearchOptions(lpf_limit=4), store=store, **other)


def test_identical_layers_are_mapped_once() -> None:
    """Five layers are three problems: records come in order of first use, with the names of their layers; sums count
    all.
    """
    seen: list[LayerRecord] = []
    result = mapped(on_record=seen.append)
    assert [record.layer_names for record in result.records] == [("one", "four"), ("two", "five"), ("three",)]
    assert [record.layer.name for record in seen] == ["one", "two", "three"]
    assert list(result.records) == seen
    summary = result.summary
    assert (summary["layers"], summary["distinct_layers"]) == (5, 3)
    one, two, three = result.records
    assert summary["energy_pj"] == sum(r.energy_pj for r in (one, two, three, one, two))
    assert summary["latency_cycles"] == sum(r.latency_cycles for r in (one, two, three, one, two))
    assert summary["mac_count"] == sum(layer.mac_count for layer in LAYERS) + LAYERS[0].mac_count + LAYERS[1].mac_count
    assert summary["evaluations"] == sum(record.evaluations for record in result.records)
    assert summary["layer_index"] == [["one", 0], ["two", 1], ["three", 2], ["four", 0], ["five", 1]]


def test_names_do_not_count_but_values_do() -> None:
    """The key of a problem ignores names of layer, core and mapping entry, and changes with anything else."""
    options = SearchOptions()
    key = problem_key(LAYERS[0], CORE, OPEN, options.as_dict())
    other_core = type(CORE)("other", CORE.operational_array, CORE.memories)
    other_entry = MappingConstraints("Conv")
    assert problem_key(renamed(LAYERS[0], "x"), other_core, other_entry, options.as_dict()) == key
    keys = {
        key,
        problem_key(LAYERS[1], CORE, OPEN, options.as_dict()),
        problem_key(LAYERS[0], small_core(buffer_bits=601), OPEN, options.as_dict()),
        problem_key(LAYERS[0], CORE, constraints((("D1", ()),)), options.as_dict()),
        problem_key(LAYERS[0], CORE, OPEN, SearchOptions(objective="energy").as_dict()),
        problem_key(LAYERS[0], CORE, OPEN, SearchOptions(lpf_limit=None).as_dict()),
    }
    assert len(keys) == 6


def test_threads_do_not_change_records() -> None:
    """One thread and two give equal records, in the same order."""
    assert mapped(threads=2) == mapped(threads=1)


def test_all_layers_that_do_not_fit_are_named() -> None:
    """One error names every layer of the network for which nothing fits, for any number of threads."""
    wide = (("W", 8), ("I", 8), ("O", 24), ("O_final", 24))
    workload = network([gemm("a", C=4, bits=wide), LAYERS[1], gemm("b", C=4, D=3, bits=wide)])
    texts = []
    for threads in (1, 2):
        with pytest.raises(MappingError) as caught:
            map_workload(workload, CORE, MAPPING, threads=threads)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert texts[0].startswith("no mapping of 2 layers fits core 'small': a, b\n")


# store ----------------------------------------------------------------------------------------------------------------


def test_store_round_trip(tmp_path: Path) -> None:
    """Records from the store equal those put in and those of a run without a store; nothing is mapped twice."""
    store = Store(tmp_path)
    first = mapped(store)
    assert len(store.entries()) == 3
    again: list[LayerRecord] = []
    second = mapped(store, on_record=again.append)
    assert second == first == mapped()
    assert again == []
    assert repr(second.records) == repr(first.records), "also as text: integers stay integers"


def test_stored_records_serve_other_names(tmp_path: Path) -> None:
    """A record stored for one network serves another network, with the names of the latter."""
    store = Store(tmp_path)
    mapped(store)
    workload = network([renamed(LAYERS[2], "x"), renamed(LAYERS[0], "y")], "other")
    core = type(CORE)("elsewhere", CORE.operational_array, CORE.memories)
    new: list[LayerRecord] = []
    result = map_workload(workload, core, MAPPING, SearchOptions(lpf_limit=4), store=store, on_record=new.append)
    assert new == []
    assert [(r.layer.name, r.layer_names, r.core) for r in result.records] == [
        ("x", ("x",), "elsewhere"),
        ("y", ("y",), "elsewhere"),
    ]


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"key": 1}', "changed"])
def test_damaged_entry_is_ignored_and_mended(tmp_path: Path, damage: str) -> None:
    """An entry that is cut off, not JSON, or changed counts as absent and is written again."""
    store = Store(tmp_path)
    first = mapped(store)
    entry = store.entries()[1]
    intact = entry.read_text()
    changed = json.loads(intact)
    changed["records"][0]["energy_pj"] += 1
    entry.write_text(json.dumps(changed) if damage == "changed" else damage)
    again: list[LayerRecord] = []
    assert mapped(store, on_record=again.append) == first
    assert len(again) == 1
    assert entry.read_text() == intact


def test_put_leaves_an_intact_entry_alone(tmp_path: Path) -> None:
    """Storing a record twice writes it once."""
    store = Store(tmp_path)
    record = mapped().records[0]
    store.put("abc", [record])
    before = store.path_of("abc").stat().st_mtime_ns
    store.put("abc", [replace(record, energy_pj=1.5)])
    assert store.path_of("abc").stat().st_mtime_ns == before
    assert store.get("abc") == [record]
    assert store.get("abd") is None


# interruption ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_interruption_keeps_finished_layers(tmp_path: Path, threads: int) -> None:
    """Ctrl-C after the first layer leaves it in the store; a second run maps only the others."""
    store = Store(tmp_path)

    def interrupt(record: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mapped(store, threads=threads, on_record=interrupt)
    kept = len(store.entries())
    assert kept >= 1
    again: list[LayerRecord] = []
    assert mapped(store, on_record=again.append) == mapped()
    assert len(again) == 3 - kept


def test_interruption_between_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during a report of progress ends the search of a layer at once."""
    monkeypatch.setattr(loma, "BATCH_ORDERS", 5)
    blocks: list[int] = []

    def interrupt(orders: int) -> None:
        blocks.append(orders)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_layer(LAYERS[1], CORE, OPEN, SearchOptions(), interrupt)
    assert blocks == [5]


def test_stop_event_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set stop event ends the search before the next block."""
    monkeypatch.setattr(loma, "BATCH_ORDERS", 5)
    stop = threading.Event()
    blocks: list[int] = []

    def advance(orders: int) -> None:
        blocks.append(orders)
        stop.set()

    with pytest.raises(SearchStoppedError):
        map_layer(LAYERS[1], CORE, OPEN, SearchOptions(), advance, stop)
    assert blocks == [5]


def test_records_are_not_shared() -> None:
    """Changing a returned record does not change the result of a later search."""
    record = map_layer(LAYERS[0], CORE, OPEN)
    kept = copy.deepcopy(record)
    record.layer.loop_sizes["K"] = 0
    record.layer.precision_bits["W"] = 0
    assert map_layer(LAYERS[0], CORE, OPEN) == kept


@settings(max_examples=members(120, 50), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases(), st.booleans(), st.sampled_from([1, 3]), st.sampled_from([REFERENCE.name, "corrected"]))
def test_search_ends_in_a_record_or_a_reason(case: Case, mixed: bool, count: int, model: str) -> None:
    """Any layer, core and partly given mapping end in a record that its own mapping reproduces, or in MappingError."""
    options = SearchOptions(
        model=model, lpf_limit=3, nb_spatial_mappings_generated=count, enable_mix_spatial_mapping=mixed
    )
    entry = constraints(case.unrolling[:1], memory_operand_links=case.links)
    try:
        record = map_layer(case.layer, case.core, entry, options)
    except MappingError:
        return
    unrolling = tuple((name, tuple(factors.items())) for name, factors in record.spatial_mapping.items())
    order = tuple((d, size) for d, size in record.loop_order)
    again = evaluate(case.layer, case.core, case.links, unrolling, order, options)
    assert again == replace(record, candidates=None, evaluations=None)
