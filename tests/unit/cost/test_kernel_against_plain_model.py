"""The compiled allocator and cost model against the plain-Python ones, on random small problems."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.cost.record import record_row
from tilewright.search.evaluate import evaluate, prepare
from tilewright.search.options import SearchOptions

from tests.members import members
from tests.plain.comparison import comparisons
from tests.plain.model import PlainModel
from tests.plain.problems import Problem
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import switches_of
from tests.unit.cost.engine_cases import Case, cases, orders


def plain_model(case: Case) -> PlainModel | None:
    """Return the plain model, or None if the spatial mapping is impossible."""
    try:
        return PlainModel(case.layer, case.core, case.links, case.unrolling, case.even)
    except DoesNotFitError:
        return None


@settings(max_examples=members(400, 160), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_kernel_equals_plain_model(data: st.DataObject) -> None:
    """Kernel and plain model have equal energy, latency, accesses, stalls and allocation, and refuse the same cases."""
    case = data.draw(cases())
    model = plain_model(case)
    options = SearchOptions(temporal_mapping_type="even" if case.even else "uneven")
    arguments = (case.layer, case.core, case.links, case.unrolling)
    if model is None:
        with pytest.raises(MappingError):
            prepare(*arguments, options)
        return
    order = data.draw(orders(model.temporal_sizes))
    try:
        expected = model.cost(order)
    except DoesNotFitError:
        event("rejected")
        with pytest.raises(MappingError):
            evaluate(*arguments, order, options)
        return
    record = record_row(evaluate(*arguments, order, options))
    event("fits")
    for name in ("energy_pj", "memory_energy_pj", "mac_energy_pj", "latency_cycles"):
        assert record[name] == getattr(expected, name), name
    assert record["latency_breakdown_cycles"] == expected.parts
    assert record["word_accesses"] == expected.words
    temporal = {o: [[tuple(x) for x in level] for level in levels] for o, levels in record["temporal_mapping"].items()}
    assert temporal == {o: [list(level) for level in levels] for o, levels in expected.temporal_mapping.items()}
    for port in record["ports"]:
        k = next(k for k, memory in enumerate(case.core.memories) if memory.name == port["memory"])
        p = next(p for p, entry in enumerate(case.core.memories[k].ports) if entry.name == port["port"])
        assert port["stall_slack_cycles"] == expected.port_stalls.get((k, p), 0)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_temporal_sizes_equal_plain_model(case: Case) -> None:
    """The temporal loops equal those of the plain model, in the order of the layer."""
    model = plain_model(case)
    if model is None:
        return
    prepared = prepare(case.layer, case.core, case.links, case.unrolling, SearchOptions())
    assert prepared.spatial.temporal_sizes == tuple(model.temporal_sizes.items())


def same_widths(problem: Problem) -> bool:
    """Return whether partial sums are as wide as final outputs."""
    return problem.layer.bits_of["O"] == problem.layer.bits_of["O_final"]


def test_every_switch_and_any_boundaries() -> None:
    """Kernel and plain model agree on random problems under random switches, in each transfer, stall, access and
    energy.
    The problems include any boundaries, tight memories, and outputs of other widths than partial sums.
    """
    seen: Counter[str] = Counter()
    for seed in range(members(500, 200)):
        for compared in comparisons(seed):
            widths = "same" if same_widths(compared.problem) else "other"
            fits = compared.cost is not None and compared.record is not None
            seen[f"{widths} widths, {'fits' if fits else 'refused'}"] += 1
            seen["room for both widths"] += (
                widths == "other" and fits and "room_for_final_outputs" in switches_of(compared.problem.model)
            )
            assert not compared.differences, (seed, compared.problem.model, compared.order, compared.boundaries)
    assert seen["same widths, fits"] > members(150, 60)
    assert seen["other widths, fits"] > members(250, 100)
    assert seen["room for both widths"] > members(100, 40)
