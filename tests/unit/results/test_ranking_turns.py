"""Best and second of a ranking, and the sentences on changes that would reverse their order."""

import re
from dataclasses import replace

import pytest
from tilewright.cli.verb import command_of
from tilewright.cost.ledger import ACCESSES
from tilewright.hardware.array_model import MAC
from tilewright.results.order_turn import HELD
from tilewright.results.pareto import ComparableRuns, compare
from tilewright.results.part_costs import HardwareCosts, MemoryPart
from tilewright.results.ranking_turns import COVERS, best_two, with_order_lines
from tilewright.results.run_ledger import ENERGY, LATENCY, LedgerPlace, RunLedger, ledger_of
from tilewright.results.run_point import RunPoint


def point(name: str, energy_pj: float, cycles: float, clock_mhz: float | None = None) -> RunPoint:
    """A run whose DRAM takes half of the energy."""
    dram = MemoryPart("dram", 10**9, 8.0 * len(name), 8.0 * len(name), 8, 8, 1, "", 1.0, 1.0, is_on_chip=False)
    costs = HardwareCosts(0.5 / len(name), (dram,))
    return RunPoint(
        name,
        "net",
        "d",
        name,
        "EDP",
        "corrected",
        (),
        energy_pj,
        cycles,
        None,
        clock_frequency_mhz=clock_mhz,
        costs=costs,
    )


def ledger(run: RunPoint) -> RunLedger:
    """A ledger with half of the energy for MACs and half for the DRAM."""
    places = (
        LedgerPlace(ENERGY, "l", MAC),
        LedgerPlace(ENERGY, "l", ACCESSES, "dram", "W"),
        LedgerPlace(LATENCY, "l", "ideal"),
    )
    return ledger_of(run, zip(places, (run.energy_pj / 2, run.energy_pj / 2, run.latency_cycles), strict=True))


def told(*points: RunPoint) -> ComparableRuns:
    """The only group of the runs, with its sentences."""
    (group,) = with_order_lines(compare(points), ledger)
    return group


def test_best_and_second_of_each_measure() -> None:
    """Each measure has its own best and second; with MACs as half of the energy, the named change makes both values
    equal.
    """
    group = told(point("worst", 300.0, 300.0), point("a", 100.0, 200.0), point("bb", 120.0, 100.0))
    energy, latency, edp, covers = group.order_lines
    assert energy.startswith("best (A: a) and second (B: bb): energy: B is 20.0% above A; B would be first with ")
    assert "at least 1.41 times the energy of a MAC in A" in energy  # 50 + 50 x 1.4 = 120
    assert latency.startswith("best (A: bb) and second (B: a): latency in cycles: B is 100.0% above A")
    assert "at least 2.01 times the clock of B relative to that of A" in latency
    assert edp.startswith("best (A: bb) and second (B: a): EDP in cycles: B is 66.7% above A")
    assert covers == COVERS


def test_sentences_name_options_that_compare_has() -> None:
    """The sentences on what a ranking leaves out name only options that exist in `compare`."""
    options = {one for parameter in command_of("tilewright.cli.compare").params for one in parameter.opts}
    for text in (COVERS, HELD):
        named = set(re.findall(r"--[a-z-]+", text))
        assert {"--search-again", "--batches", "--sizes"} <= named <= options


def test_ranking_by_time_if_clocks_differ() -> None:
    """Runs whose clocks differ are ranked by time, so the run with more cycles can be first."""
    group = told(point("slow", 100.0, 100.0, 100.0), point("fast", 100.5, 150.0, 400.0))
    assert best_two(group, "latency")[0].run == "fast"
    latency = next(line for line in group.order_lines if "latency" in line)
    assert latency.startswith("best (A: fast) and second (B: slow): latency in seconds: B is 166.7% above A")


def test_clocks_of_some_runs_make_no_false_order() -> None:
    """Runs are all ranked by cycles if some have no clock.

    The best two by cycles get no sentence on their order if their order by time is the other one.
    """
    group = told(point("slow", 100.0, 100.0, 100.0), point("fast", 90.0, 150.0, 400.0), point("none", 200.0, 200.0))
    assert [run.run for run in best_two(group, "latency")] == ["slow", "fast"]
    assert not any("latency" in line for line in group.order_lines)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_runs_have_no_order(count: int) -> None:
    """Fewer than two runs, or equal runs, have no order."""
    groups = with_order_lines(compare([point("a", 1.0, 1.0)][:count]), ledger)
    assert all(group.order_lines == () for group in groups)
    a = point("a", 1.0, 1.0)
    (equal,) = with_order_lines(compare([a, replace(a, run="b", core="b")]), ledger)
    assert equal.order_lines == ()


def test_records_that_cannot_be_read() -> None:
    """The sentence of each measure says so if records cannot be read."""
    (group,) = with_order_lines(compare([point("a", 1.0, 1.0), point("b", 2.0, 2.0)]), lambda _: None)
    assert sum("the records cannot be read" in line for line in group.order_lines) == 3
