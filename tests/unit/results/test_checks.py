"""The physical checks: they pass on correct records and name the error in damaged ones."""

import copy
from pathlib import Path

import pytest
from tilewright.cost.record import record_of_row
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.pipeline.stages.run import map_layer
from tilewright.results.checks import check_run, checks_document, failure_message, own_dimensions
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import constraints
from tests.unit.mapping.vector_layers import binary

PROJECT = Path(__file__).resolve().parents[3]


def check_rows(rows, summary=None, core=None):
    """The checks of rows of layers.jsonl."""
    return check_run([record_of_row(row) for row in rows], summary, core)


def failed(records, summary=None, core=None):
    """Names of the failed checks, and their details."""
    return {check.name: check.detail for check in check_rows(records, summary, core) if not check.passed}


def test_the_worked_example_passes_every_check(record, core):
    """A correct record passes every check, with the core known or not."""
    assert failed([record]) == {}
    assert failed([record], None, core) == {}
    assert len(check_rows([record], None, core)) == 10


def test_a_network_adds_up_to_its_summary(make_rows, core):
    """Sums over layers, in execution order and with repeats, are the totals of the summary."""
    records, summary = make_rows(21)
    assert failed(records, summary, core) == {}


def break_energy(record):
    """Make one access energy negative."""
    record["energy_breakdown_pj"]["O"][0]["tl"] = -1.0


def break_latency(record):
    """Make the off-loading negative."""
    record["latency_breakdown_cycles"]["offloading"] = -289


def break_mac_count(record):
    """Lose a MAC."""
    record["layer"]["mac_count"] -= 1


def break_coverage(record):
    """Leave half of the output channels uncomputed."""
    record["loop_order"].remove(["K", 2])


def break_operand_loops(record):
    """Give one operand another loop nest than the others."""
    record["temporal_mapping"]["W"] = [record["loop_order"][:-1], []]


def break_capacity(record):
    """Fill a memory twice over."""
    record["memory_utilization"]["W"][0] = record["memory_utilization_individual"]["W"][0] = 2.0


def break_shares(record):
    """Let the operands of one memory not add up to its fill."""
    record["memory_utilization"]["I"][0] = 0.5


def break_sum(record):
    """Change a total by one part in a million."""
    record["memory_energy_pj"] *= 1 + 1e-6


def break_stall(record):
    """Give the layer a stall that no port has."""
    record["ports"][0]["stall_slack_cycles"] = 1295


def break_corrected(record):
    """Make the corrected latency not a number."""
    record["corrected"]["latency_cycles"] = float("nan")


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (break_energy, "no_negative_values"),
        (break_latency, "no_negative_values"),
        (break_mac_count, "macs_conserved"),
        (break_coverage, "loops_cover_layer"),
        (break_operand_loops, "loops_cover_layer"),
        (break_capacity, "capacity_respected"),
        (break_shares, "capacity_respected"),
        (break_sum, "breakdowns_sum_to_totals"),
        (break_stall, "cycles_follow_loops"),
        (break_corrected, "corrected_finite"),
    ],
)
def test_each_damage_is_found_and_the_layer_named(record, damage, name):
    """Each damage fails its check, and the message names the layer."""
    damage(record)
    assert failed([record])[name].startswith("/conv1/Conv: ")


def test_accesses_below_the_tensor_are_found(record, core):
    """Reading only half of the weights from DRAM fails the check."""
    record["word_accesses"]["W"][1]["tl"] //= 2
    record["energy_breakdown_pj"]["W"][1]["tl"] /= 2
    assert "accesses_at_least_compulsory" in failed([record], None, core)


def test_energy_that_does_not_follow_accesses_is_found(record, core):
    """An access energy that differs from the core's cost fails the check."""
    record["energy_breakdown_pj"]["I"][1]["tl"] *= 1.01
    record["mac_energy_pj"] *= 1.01
    assert failed([record], None, core)["energy_follows_accesses"].count("pJ") >= 3


def test_missing_port_is_found(record, core):
    """Data without a port out of their memory fail the check, because they cannot have moved."""
    record["memory_operand_links"]["W"] = "I3"
    assert "no port" in failed([record], None, core)["accesses_at_least_compulsory"]


def test_double_buffer_needs_twice_the_tile(record, core):
    """The size of a tile that is replaced counts two times with double buffering; that of a tile that stays, once."""
    buffered = copy.deepcopy(core)
    object.__setattr__(buffered.memories[0], "force_double_buffering", True)
    share = record["memory_utilization_individual"]["W"]
    share[0] = record["memory_utilization"]["W"][0] = 0.6
    assert failed([record], None, buffered) == {}
    record["temporal_mapping"]["W"] = [record["loop_order"][:-1], record["loop_order"][-1:]]
    assert "rf_128B" in failed([record], None, buffered)["double_buffers_fit"]


def test_summary_that_lost_a_layer_is_found(make_rows):
    """Missing layers, and records that belong to no layer, fail the check."""
    records, summary = make_rows(4)
    summary["layer_index"] = summary["layer_index"][:-1]
    detail = failed(records, summary)["layers_add_up_to_network"]
    assert "counts 4 layers, but lists 3" in detail
    assert "no layer has the record" in detail


def test_messages_are_short_and_the_document_is_plain(make_rows):
    """Messages show five of many violations, and the document has plain values only."""
    records, summary = make_rows(12)
    for record in records:
        break_mac_count(record)
    checks = check_rows(records, summary)
    text = failure_message(checks)
    assert "and 7 more" in text
    assert text.startswith("check failed: macs_conserved: ")
    document = checks_document(checks)
    assert document["passed"] is False
    assert set(document["checks"][0]) == {"name", "passed", "detail"}


def test_dimensions_of_an_operand_are_read_from_the_equation():
    """The operand I is not found inside the name XI, and equations with `=` or `+=` are read."""
    equation = "O[b][k] += XI[c][k] * I[b][c]"
    assert own_dimensions(equation, "I") == {"B", "C"}
    assert own_dimensions("O[b][k]=W[k][c]*I[b][c]", "O") == {"B", "K"}
    assert own_dimensions(equation, "W") == set()


def test_a_mapping_that_does_not_fit_the_corrected_model_is_no_fault(make_rows):
    """The figures of a mapping that does not fit the corrected model are unknown, and so are the totals; a known total
    is an error.
    """
    records, summary = make_rows(3)
    records[1]["corrected"] = {"energy_pj": None, "latency_cycles": None}
    assert "corrected" in failed(records, summary)["layers_add_up_to_network"]
    summary["corrected"] = {"energy_pj": None, "latency_cycles": None}
    assert failed(records, summary) == {}


def test_a_network_without_layers_passes():
    """A network without layers passes every check."""
    totals = dict.fromkeys(("energy_pj", "mac_energy_pj", "memory_energy_pj", "latency_cycles", "edp_pj_cycles"), 0.0)
    counts = {"mac_count": 0, "operation_count": 0, "layers": 0, "distinct_layers": 0, "layer_index": []}
    summary = totals | counts | {"latency_breakdown_cycles": {}, "corrected": {"energy_pj": 0.0, "latency_cycles": 0.0}}
    assert failed([], summary) == {}


def test_lanes_that_do_not_divide_move_whole_lanes_at_least():
    """The checks pass if lanes do not divide a loop, so that moved elements are rounded down or up.

    49 rows on 32 lanes take 2 passes of 24.5 rows. A tile of 24.5 x 24.5 has 600.25 elements, of which the reference
    model moves 600. The latency of `corrected` counts 25 rows.
    """
    core = read_accelerator(PROJECT / "config" / "hardware" / "zigzag" / "tpu_like.yaml").cores[0]
    unrolling = (("D1", (("OY", 32),)), ("D2", (("OX", 32),)))
    for model in ("zigzag-3.9.1", "corrected"):
        options = SearchOptions(model=model)
        record = map_layer(binary(K=14, OY=49, OX=49), core, constraints(unrolling), options)
        assert failure_message(check_run([record], None, core)) == ""
