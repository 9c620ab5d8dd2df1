"""An energy term that a plug-in adds, the refresh of memories: all sums, checks, tables and figures include it."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.cost.energy_terms import ENERGY_TERMS, TermCost, further_energy_terms
from tilewright.cost.record import record_of_row, record_row
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping, MappingConstraints, Unrolling
from tilewright.multicore.scheduling.core_costs import read_core_costs
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.checks import check_run, failure_message
from tilewright.results.figures import energy_figure
from tilewright.results.multi.energy_figure import on_core_parts
from tilewright.results.multi.use_tables import core_use_rows
from tilewright.results.run_columns import run_row
from tilewright.results.tables import layer_table
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.unit.cost.engine_cases import gemm, network, register_core
from tests.unit.multi_core.runs import DUO, branches, done, run, write_accelerator, write_mapping

PJ_A_CYCLE_AND_BIT = 1 / 64
LINES = ("--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]')
ENTRIES = {ENERGY_TERMS.owner: {"refresh": f"{__name__}:Refresh"}}
LAYER = gemm(C=4, D=6, K=4)
CORE = register_core()


def power(core: Core) -> float:
    """Return the refresh power of a core's memories in pJ a cycle; large memories count as 2^15 bits."""
    return PJ_A_CYCLE_AND_BIT * sum(min(memory.size_bits, 2**15) for memory in core.memories)


class _Refresh:
    """Refresh of every bit of a memory in every cycle."""

    def concerns(self, core: Core) -> bool:
        """Return True: every core has memories."""
        return True

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Return an energy that grows with latency."""
        return TermCost(pj_a_cycle=power(core))

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Return the energy of a cycle in which data are copied and no layer runs."""
        return power(core)


Refresh = _Refresh()


@pytest.fixture(autouse=True)
def refresh() -> Iterator[None]:
    """Register the term while a test runs."""
    enter(ENTRIES)
    yield
    withdraw(ENTRIES)


def test_one_core() -> None:
    """Records, artifacts, the summary, checks, tables and figures have the term."""
    mapped = map_workload(network([LAYER]), CORE, Mapping((MappingConstraints("default"),)), SearchOptions())
    (record,) = mapped.records
    expected = power(CORE) * record.latency_cycles
    assert list(record.energy_terms_pj) == ["mac", "memory", "refresh"]
    assert record.energy_terms_pj["refresh"] == expected
    assert record.energy_pj == pytest.approx(sum(record.energy_terms_pj.values()), rel=1e-15)
    assert record_row(record)["refresh_energy_pj"] == expected
    assert record_of_row(record_row(record)) == record
    assert failure_message(check_run(mapped.records, mapped.summary, CORE)) == ""
    assert layer_table(mapped.records, mapped.summary)["refresh_energy_pj"][0] == expected
    assert run_row("run", mapped.summary)["refresh_energy_pj"] == expected
    texts = {text.get_text() for legend in energy_figure(mapped.records).legends for text in legend.get_texts()}
    assert {"MAC", "refresh"} <= texts


def test_layers_that_differ_only_in_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers that differ only in constant operands are searched separately, because a term can depend on these."""

    def cost(term: _Refresh, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        return TermCost(fixed_pj=float(len(layer.constant_operands)))

    monkeypatch.setattr(_Refresh, "cost", cost)
    layers = [replace(LAYER, name=f"with {len(given)}", constant_operands=given) for given in ((), ("W",))]
    mapped = map_workload(network(layers), CORE, Mapping((MappingConstraints("default"),)), SearchOptions())
    energies = {name: one.energy_terms_pj["refresh"] for one in mapped.records for name in one.layer_names}
    assert energies == {"with 0": 0.0, "with 1": 1.0}


def test_what_is_missing_from_the_sum_is_found() -> None:
    """Checks fail for a record or a summary whose energy leaves the term out."""
    mapped = map_workload(network([LAYER]), CORE, Mapping((MappingConstraints("default"),)), SearchOptions())
    (record,) = mapped.records
    wrong = replace(record, energy_pj=record.energy_pj - record.energy_terms_pj["refresh"])
    assert "breakdowns_sum_to_totals" in failure_message(check_run([wrong]))
    summary = mapped.summary | {"refresh_energy_pj": 0.0}
    assert "refresh_energy_pj is 0.0 in the summary" in failure_message(check_run(mapped.records, summary))


@pytest.mark.parametrize(
    "value", [TermCost(-1.0), TermCost(0.0, -2.0), TermCost(math.inf), TermCost(math.nan), TermCost(True), 3.0, None]
)
def test_what_is_no_energy_is_refused(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message about a negative, infinite or missing energy names the plug-in and the layer."""
    monkeypatch.setattr(_Refresh, "cost", lambda self, layer, core, unrolling: value)
    with pytest.raises(InputError) as caught:
        map_workload(network([LAYER]), CORE, Mapping((MappingConstraints("default"),)), SearchOptions())
    said = str(caught.value)
    assert f"plug-in refresh is not a valid energy for layer {LAYER.name} on {CORE.name}" in said
    assert "allowed: TermCost(fixed_pj, pj_a_cycle) with finite numbers of at least 0" in said


@pytest.mark.parametrize("value", [-1.0, math.inf, "3"])
def test_what_is_no_energy_of_copies_is_refused(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong energy of cycles in which data are copied is refused."""
    monkeypatch.setattr(_Refresh, "waiting_pj_a_cycle", lambda self, core: value)
    (term,) = further_energy_terms(CORE).values()
    with pytest.raises(InputError, match="plug-in refresh is not a valid energy for cycles in which data are copied"):
        term.waiting_pj_a_cycle(CORE)


def test_several_cores(tmp_path: Path) -> None:
    """Cost tables, the schedule, its checks, its summary and its report have the term."""
    hardware, mapping = write_accelerator(tmp_path / "hw", DUO), write_mapping(tmp_path)
    summary = run(tmp_path / "run", hardware, branches(tmp_path), mapping, LINES)
    refreshed = 0.0
    for core in summary["cores"]:
        rows = read_core_costs(tmp_path / "run" / "cost" / f"{core['name']}.jsonl")
        for row in rows:
            terms = dict(row.term_energy_pj)
            assert terms["refresh"] == pytest.approx(PJ_A_CYCLE_AND_BIT * 4096 * 8 * row.total2_cycles)
            parts = (row.operational_energy_pj, *dict(row.memory_energy_pj).values(), *terms.values())
            assert row.on_core_energy_pj == pytest.approx(sum(parts), rel=1e-12)
        refreshed += core.get("term_energy_pj", {}).get("refresh", 0.0)
    assert refreshed > 0
    assert summary["energy"]["on_core_terms_pj"] == {"refresh": pytest.approx(refreshed)}
    assert sum(row.get("refresh_energy_pj", 0.0) for row in core_use_rows(summary)) == pytest.approx(refreshed)
    done(["report", str(tmp_path / "run"), "-o", str(tmp_path / "report")])
    assert "refresh_energy_pj" in (tmp_path / "report" / "cores.csv").read_text()
    assert on_core_parts(summary)["refresh"] == pytest.approx(refreshed)
