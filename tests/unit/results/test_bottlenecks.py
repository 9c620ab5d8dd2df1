"""Bottlenecks of a run: shares add up, and the limiting port is compared with brute force."""

import math
from dataclasses import replace
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.results.bottlenecks import (
    Bottlenecks,
    bottlenecks_object,
    bottlenecks_of,
    limit_words,
    limiting_table,
    port_table,
    share_table,
    totals_table,
)
from tilewright.results.bottlenecks_figure import bottlenecks_figure, shown_roofs
from tilewright.results.bottlenecks_text import bottlenecks_text
from tilewright.results.port_limits import LEAST_SHARE, PortLimit, PortName, Widened
from tilewright.results.recorded_mappings import recorded_mappings
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import ENERGY, LATENCY, ledger_of_layers
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer

from tests.plain.port_limits import try_port_limit

BITS = (("W", 8), ("I", 8), ("O", 8), ("O_final", 8))
OPERANDS = (("O", ("D", "K")), ("I", ("D", "C")), ("W", ("C", "K")))
GEMM = Layer("gemm", "Gemm", OPERANDS, (("D", 4), ("K", 4), ("C", 4)), (), BITS)
LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))
ORDER = (("C", 4), ("K", 4), ("D", 4))


def memory(operand: str, width: int) -> Memory:
    """A memory of one operand whose links all use one port."""
    directions = ("tl", "fl", "th", "fh") if operand == "O" else ("tl", "fh")
    port = Port("rw", "read_write", min(width, 8), width, tuple((operand, one) for one in directions))
    return Memory(f"m{operand}", 10**6, 1.0, 2.0, (operand,), (port,), ("D1",))


def core_of(*, inputs: int, weights: int, outputs: int = 64) -> Core:
    """One multiplier with a memory for each operand, with ports of these widths."""
    memories = (memory("I1", inputs), memory("I2", weights), memory("O", outputs))
    return Core("one", OperationalArray((("D1", 1),), 0.5), memories)


def network(*layers: Layer) -> Workload:
    """A network of layers."""
    return Workload("net", tuple(WorkloadNode(i, one.name, "Gemm", one) for i, one in enumerate(layers)))


def explained(core: Core, other: Core | None = None, model: str = REFERENCE.name) -> Bottlenecks:
    """The bottlenecks of the matrix product on a core; they are computed on `other` if it is given."""
    record = evaluate(GEMM, core, LINKS, (), ORDER, SearchOptions(model=model))
    record = replace(record, layer_names=("gemm", "again"))
    placed = layers_in_order([record])
    return bottlenecks_of(ledger_of_layers("run", [record], None, {}), placed, other or core, network(GEMM))


@pytest.mark.parametrize("seed", range(20))
def test_no_other_port_helps_more(seed: int) -> None:
    """No other port helps more, for random layers, mappings and cores; `benchmarks/port_limits.py` tries more."""
    tally = try_port_limit(seed)
    assert tally.counts["pairs"] == 1
    assert tally.wrong == []


def test_the_port_that_the_array_waits_for_limits() -> None:
    """Weights come over a port of half the needed width, so this port limits."""
    found = explained(core_of(inputs=8, weights=4))
    limit = found.limits["gemm"]
    assert limit.limiting is not None
    assert limit.limiting.ports == (("mI2", "rw"),)
    assert found.added(LATENCY, lambda one: (one.term, one.memory))["temporal_stall", "mI2"] == 2 * 63
    assert found.network_limit is not None
    assert found.network_limit.gain_cycles(found.network_limit.ports[0]) == 2 * limit.gain_cycles(limit.limiting)
    assert limit_words(limit) == "mI2 rw"


def test_ports_that_limit_together() -> None:
    """The array waits equally for two ports: widening one does not help, only both together."""
    found = explained(core_of(inputs=2, weights=2))
    limit = found.limits["gemm"]
    told = bottlenecks_text(found)
    assert limit.limiting is None
    assert limit.runner_up is None
    assert limit.ties == ()
    assert limit.together is not None
    assert limit.together.ports == (("mI1", "rw"), ("mI2", "rw"))
    assert limit_words(limit) == "together: mI1 rw and mI2 rw"
    assert limit.is_limited
    assert "in 2 of 2 layers, no single port is the limit" in told
    assert "2 of these layers would be faster if several ports were wider" in told


def test_where_no_port_limits() -> None:
    """No port limits if every transfer takes one cycle, the least possible."""
    limit = explained(core_of(inputs=64, weights=64)).limits["gemm"]
    assert (limit.limiting, limit.together, limit_words(limit)) == (None, None, "no port")


def one_port_core(width: int) -> Core:
    """Core with one memory whose only port serves all operands, so that their transfers take turns."""
    served = tuple((operand, one) for operand in ("I1", "I2", "O") for one in ("tl", "fl", "th", "fh"))
    served = tuple(pair for pair in served if pair[0] == "O" or pair[1] in ("tl", "fh"))
    port = Port("rw", "read_write", min(width, 8), width, served)
    shared = Memory("all", 10**6, 1.0, 2.0, ("I1", "I2", "O"), (port,), ("D1",))
    return Core("one", OperationalArray((("D1", 1),), 0.5), (shared,))


def test_where_transfers_take_turns() -> None:
    """The text says how long the array waits and that no width helps if all transfers of a port take one cycle.

    If a wider port helps, the text does not say so.
    """
    found = explained(one_port_core(64))
    limit = found.limits["gemm"]
    waits = found.added(LATENCY, lambda one: one.term)["temporal_stall"] / found.total(LATENCY)
    assert limit.is_beyond_width
    assert waits > 0.5
    told = bottlenecks_text(found)
    assert f"2 of these layers wait for data in {waits:.1%} of all cycles, and ports of any width" in told
    assert f"the layer waits for data in {waits:.1%} of all cycles" in bottlenecks_text(found.of_layer("gemm"))
    for core in (one_port_core(4), core_of(inputs=8, weights=2)):
        assert "ports of any width" not in bottlenecks_text(explained(core))


def test_the_table_for_a_paper_is_ordered() -> None:
    """The parts of each quantity are in descending order, and add up to the row with the total and to 100 %."""
    table = totals_table(explained(core_of(inputs=8, weights=4)))
    for quantity, rows in table.groupby("quantity"):
        *parts, total = rows["value"].tolist()
        assert parts == sorted(parts, reverse=True)
        assert rows["term"].tolist()[-1] == "all"
        assert math.isclose(math.fsum(parts), total, rel_tol=1e-12)
        assert math.isclose(math.fsum(rows["share"].tolist()[:-1]), 1.0, rel_tol=1e-12), quantity


@pytest.mark.parametrize(("saved", "limits"), [(99, False), (100, True), (101, True), (0, False)])
def test_a_port_limits_where_it_saves_enough(saved: int, limits: bool) -> None:
    """A port limits if it saves at least one per cent of the latency; the best port is named in any case."""
    assert LEAST_SHARE == 0.01
    port = Widened((PortName("m", "p"),), 10_000 - saved)
    limit = PortLimit(10_000, (port,))
    assert limit.is_limited == limits
    assert (limit.limiting is not None) == (saved > 0)


def test_what_takes_most_cycles_limits() -> None:
    """The kind of cause with most cycles limits; a port that is worth widening stands beside it."""
    found = explained(core_of(inputs=8, weights=2))
    moving = found.total(LATENCY) - 128
    assert found.kinds().winner == ("moving data", moving)
    limit = found.network_limit
    assert limit is not None
    assert limit.verdict.winner is not None
    saved = limit.verdict.winner.value
    shares = [f"{part / found.total(LATENCY):.1%}" for part in (moving, saved)]
    assert found.limited_by() == found.limited_by("gemm") == f"moving data {shares[0]}: mI2 rw -{shares[1]}"
    told = bottlenecks_text(found)
    assert "gemm x 2" in told, "equal layers stand in one row"
    assert "mI2 rw -" in told
    at_work = explained(core_of(inputs=64, weights=64))
    assert at_work.limited_by() == "array 50.8%"
    assert bottlenecks_object(at_work)["limits"]["gemm"]["limited_by"] == "array 50.8%"
    assert bottlenecks_object(found)["network_limit"]["is_limited"]


@pytest.mark.parametrize("bits", [8, 64])
def test_a_paper_has_the_limits_of_the_terminal(bits: int) -> None:
    """The table for a paper has the words of `explain` for each layer, and cycles of a port only if it alone limits.

    Equal layers share a row with the sums of their cycles, as in the terminal.
    """
    found = explained(core_of(inputs=bits, weights=2 if bits == 8 else 64))
    shared, sum_notes = limiting_table(found)
    assert shared["layer"].tolist() == ["gemm x 2"]
    assert any("sums over 2 equal layers" in note for note in sum_notes)
    table, notes = limiting_table(replace(found, equal_layers=()))
    assert table["layer"].tolist() == list(found.limits)
    numbers = ["latency_cycles", "busy_cycles", "stall_cycles", "gain_cycles"]
    sums = table[numbers].sum(min_count=1).tolist()
    assert [float(value) for value in shared[numbers].iloc[0]] == pytest.approx(sums, nan_ok=True)
    assert table["limited_by"].tolist() == [found.limited_by(layer) for layer in found.limits]
    for row, limit in zip(table.to_dict("records"), found.limits.values(), strict=True):
        assert (row["gain_cycles"] == row["gain_cycles"]) == limit.is_limited_by_one
        if limit.is_limited_by_one:
            ports = port_table(found)
            (first,) = ports[(ports["layer"] == row["layer"]) & (ports["rank"] == 1)].to_dict("records")
            assert [row[key] for key in ("gain_cycles", "busy_cycles", "stall_cycles")] == [
                first[key] for key in ("gain_cycles", "busy_cycles", "stall_cycles")
            ]
    none = sum(not limit.is_limited_by_one for limit in found.limits.values())
    assert none == (0 if bits == 8 else 2)
    assert any(f"in {none} of 2 layers, no single port is the limit" in note for note in notes) == bool(none)
    assert any("stall cycles below 0 are slack" in note for note in notes)


def test_shares_add_up() -> None:
    """Shares of cycles add up exactly, and shares of energy up to rounding; one layer can be explained alone."""
    found = explained(core_of(inputs=8, weights=4))
    table = share_table(found)
    assert table[table["quantity"] == LATENCY]["value"].sum() == found.run.latency_cycles
    energies = table[table["quantity"] == ENERGY]["value"]
    assert math.isclose(math.fsum(energies), found.run.energy_pj, rel_tol=1e-14)
    alone = found.of_layer("again")
    assert [alone.run.energy_pj * 2, alone.run.latency_cycles * 2] == [found.run.energy_pj, found.run.latency_cycles]
    assert set(port_table(alone)["layer"]) == {"again"}
    assert "twice as wide saves" in bottlenecks_text(alone)
    with pytest.raises(InputError, match="did you mean 'again'"):
        found.of_layer("agan")


def test_a_term_that_is_new_shows() -> None:
    """A new term of the energy or the latency appears under its name."""
    record = evaluate(GEMM, core_of(inputs=8, weights=8), LINKS, (), ORDER)
    changed: dict[str, Any] = {"energy_pj": record.energy_pj + 7, "latency_cycles": record.latency_cycles + 3}
    terms = {"energy_terms_pj": record.energy_terms_pj | {"leakage": 7.0}}
    parts = {"latency_breakdown_cycles": record.latency_breakdown_cycles | {"wake_up": 3}}
    record = replace(record, **changed, **terms, **parts)
    found = bottlenecks_of(ledger_of_layers("run", [record], None, {}), layers_in_order([record]))
    assert found.added(ENERGY, lambda one: one.term)["leakage"] == 7
    assert found.added(LATENCY, lambda one: one.term)["wake_up"] == 3
    told = bottlenecks_text(found)
    assert "leakage" in told
    assert "wake up" in told


def test_other_hardware_is_refused() -> None:
    """Hardware on which a mapping costs something else than its record says is refused."""
    with pytest.raises(InputError, match=r"for this mapping, the cost model gives .* but the run has"):
        explained(core_of(inputs=8, weights=4), core_of(inputs=8, weights=8))
    record = evaluate(GEMM, core_of(inputs=8, weights=8), LINKS, (), ORDER)
    with pytest.raises(InputError, match="the workload has no such layer"):
        recorded_mappings([record], core_of(inputs=8, weights=8), network(replace(GEMM, name="other")))


def test_the_roof_is_above_every_layer() -> None:
    """No layer has more operations a cycle than its roofline allows.

    The array does one operation a cycle. The port carries one byte of weights in two cycles, and each byte is used
    once. The reference model leaves out the first transfer (B42), so it can exceed the roofline.
    """
    found = explained(core_of(inputs=8, weights=4), model=CORRECTED.name)
    roofs = {roof.port.memory: roof for roof in shown_roofs(found)}
    assert next(iter(roofs)) == "mI2"
    roof = roofs["mI2"]
    assert roof.bytes_a_cycle == 0.5
    assert [point.operations_a_byte for point in roof.points] == [1.0, 1.0]
    for one in roofs.values():
        for point in one.points:
            assert point.operations_a_cycle <= min(1.0, point.operations_a_byte * one.bytes_a_cycle)


def test_the_figure_has_a_panel_for_each_roof(make_network: Any) -> None:
    """The figure has panels for cycles, for energy and for each roofline; a run of 60 layers has no rooflines."""
    assert len(bottlenecks_figure(explained(core_of(inputs=8, weights=4))).axes) == 5
    records, summary = make_network(60)
    found = bottlenecks_of(
        ledger_of_layers("run", records, summary, {}), layers_in_order(records, summary), unknown="?"
    )
    assert len(bottlenecks_figure(found).axes) == 2
    assert bottlenecks_object(found)["limits"] == {}
    assert "The limiting ports are not known: ?" in bottlenecks_text(found)


def test_records_are_not_changed() -> None:
    """Records do not change when their bottlenecks are computed."""
    core = core_of(inputs=8, weights=4)
    record: LayerRecord = evaluate(GEMM, core, LINKS, (), ORDER)
    explained(core)
    assert evaluate(GEMM, core, LINKS, (), ORDER) == record
