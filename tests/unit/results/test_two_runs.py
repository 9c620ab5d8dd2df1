"""Comparison of two runs: differences add up, other networks are refused, and other differences are named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.cost.ledger import agree
from tilewright.cost.record import LayerRecord
from tilewright.results.order_turn import turn_line
from tilewright.results.pareto import RunPoint
from tilewright.results.part_costs import HardwareCosts, MemoryPart
from tilewright.results.run_ledger import (
    ENERGY,
    LATENCY,
    NO_TERM,
    QUANTITIES,
    Entries,
    LedgerPlace,
    RunLedger,
    ledger_of,
    ledger_of_layers,
)
from tilewright.results.two_runs import (
    COLUMNS,
    RunComparison,
    compare_two,
    comparison_object,
    comparison_table,
    large_differences,
    needs_networks,
    slower_with_more_memory,
    with_own_names,
)
from tilewright.results.two_runs_figure import comparison_figure, write_comparison_figure
from tilewright.results.two_runs_text import comparison_text, shown, titles_of
from tilewright.search.cost_ranges import CostPart
from tilewright.workload.network_identity import NetworkDifference

MakeNetwork = Callable[[int], tuple[list[LayerRecord], dict[str, Any]]]


def run_of(entries: Entries, name: str = "a", **changes: Any) -> RunLedger:
    """A run with these numbers, whose totals are their sums."""
    totals = {key: sum(value for place, value in entries.items() if place.quantity == key) for key in QUANTITIES}
    known: dict[str, Any] = {"workload": "net", "workload_digest": "1", "core": name, "objective": "EDP"}
    known |= {"model": "corrected", "options": (("seed", "0"),), "area_mm2": None, **totals}
    return ledger_of(RunPoint(run=name, **(known | changes)), entries.items())


WHOLE = st.integers(0, 2**40)
PLACES = st.builds(
    LedgerPlace,
    st.sampled_from(QUANTITIES),
    st.sampled_from(["conv", "[b]pool[/b]", "fc"]),
    st.sampled_from(["memory", "mac", "ideal"]),
    st.sampled_from(["", "sram", "dram"]),
    st.sampled_from(["", "W"]),
)
ENTRIES = st.dictionaries(PLACES, WHOLE, max_size=20)


@given(ENTRIES, ENTRIES)
def test_differences_add_up_to_that_of_the_totals(a: Entries, b: Entries) -> None:
    """Differences by number, term and layer add up to the difference of the totals, to the last unit.

    This includes the row that stands for rows not shown. Shares are of the whole. With the runs exchanged, all signs
    change.
    """
    compared, back = compare_two(run_of(a), run_of(b, "b")), compare_two(run_of(b, "b"), run_of(a))
    table = comparison_table(compared)
    for quantity in QUANTITIES:
        total = compared.totals(quantity)
        rows = table[table["quantity"] == quantity]
        assert sum(rows["difference"]) == total.difference
        assert [-abs(value) for value in rows["difference"]] == sorted(-abs(value) for value in rows["difference"])
        for view in (compared.by_term(quantity), compared.by_layer(quantity)):
            assert not view or (sum(row.a for row in view), sum(row.b for row in view)) == (total.a, total.b)
            for most in (1, 3, 100):
                assert not view or sum(row.difference for row in shown(view, most)) == total.difference
        if total.difference:
            assert sum(rows["share_of_difference"]) == pytest.approx(1)
        assert {row.name: -row.difference for row in back.by_layer(quantity)} == {
            row.name: row.difference for row in compared.by_layer(quantity)
        }


def test_rounding_errors_are_no_differences() -> None:
    """Terms that differ only in their last bits are equal in texts and tables for a paper; files keep the
    difference.
    """
    values = {"mac": (5.0, 9.0), "sram": (3.0, 3.0 * (1 + 4e-16)), "dram": (7.0, 7.0 * (1 - 3e-16)), "rf": (2.0, 2.0)}
    a, b = ({LedgerPlace(ENERGY, "conv", term): pair[k] for term, pair in values.items()} for k in (0, 1))
    found = compare_two(run_of(a), run_of(b, "b"))
    rows = shown(found.by_term(ENERGY), 12)
    assert [(row.name, row.real_difference) for row in rows] == [("MAC", 4.0), ("3 others, equal", 0.0)]
    assert "e-1" not in comparison_text(found).replace("1e-1", "")
    table = comparison_table(found)
    assert len(table) == 4
    assert [*large_differences(table)[0]["term"]] == ["mac"]
    same = compare_two(
        run_of(a), run_of(a | {LedgerPlace(ENERGY, "conv", "sram"): b[LedgerPlace(ENERGY, "conv", "sram")]}, "b")
    )
    assert "by term" not in comparison_text(same)
    assert len(large_differences(comparison_table(same))[0]) == 4


def test_a_total_without_its_terms_is_told_apart_too() -> None:
    """The part of a total beyond its terms becomes a term, so that differences still add up."""
    entries = {LedgerPlace(ENERGY, "conv", "mac"): 5.0}
    ledger = run_of(entries, energy_pj=7.0)
    assert ledger.entries == entries | {LedgerPlace(ENERGY, "", NO_TERM): 2.0}


def test_the_ledger_of_records_is_whole(make_network: MakeNetwork) -> None:
    """The ledger has the energy and cycles of all 20 layers, even of equal layers, with and without the summary."""
    records, summary = make_network(20)
    made_by = {"inputs": {"workload": "1"}, "options": {"lpf_limit": 6}}
    for known in (summary, None):
        ledger = ledger_of_layers("a", records, known, made_by)
        for quantity in QUANTITIES:
            parts = [value for place, value in ledger.entries.items() if place.quantity == quantity]
            assert agree(sum(parts), summary[quantity])
            assert agree(ledger.total(quantity), summary[quantity])
        assert len({place.layer for place in ledger.entries}) == 20
        assert not any(place.term == NO_TERM for place in ledger.entries)


def compared(changed: dict[str, Any], **options: str) -> RunComparison:
    """The comparison of a run with a changed copy."""
    entries = {LedgerPlace(ENERGY, "conv", "mac"): 5.0, LedgerPlace(LATENCY, "conv", "ideal"): 7.0}
    other = run_of({place: 2 * value for place, value in entries.items()}, "b", **changed)
    chosen = tuple({"seed": "0", **options}.items())
    return compare_two(run_of(entries), replace(other, run=replace(other.run, options=chosen)))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"workload": "other", "workload_digest": "2"}, "runs of different networks cannot be compared: 'net' and 'ot"),
        ({"workload_digest": "2"}, "the network 'net' is not the same in both runs; more is not known"),
        ({"workload_digest": "2", "bits": "W 4"}, r"\(bits of the operands: not known in A; W 4 in B\); more is not"),
        ({"workload": "", "workload_digest": ""}, "'net' and an unknown network"),
    ],
)
def test_other_networks_are_refused(changed: dict[str, Any], reason: str) -> None:
    """Runs of different networks are refused: networks differ in name, or in digest if one model read both."""
    with pytest.raises(InputError, match=reason):
        compared(changed)


def test_plug_ins_that_differ_are_named() -> None:
    """A sentence names each plug-in package that only one run has, or whose code differs.

    Without such packages, it says that hardware, mapping, workload, options and plug-ins are the same.
    """
    a = replace(
        run_of({LedgerPlace(ENERGY, "conv", "mac"): 5.0}),
        made_of={"workload": "1", "hardware": "h", "mapping": "m"},
        made_with={"tree 1": "x", "noc 1": "n"},
    )
    same = comparison_text(compare_two(a, replace(a, run=replace(a.run, run="b"))))
    assert "they have the same hardware, mapping, workload, options and plug-ins" in same
    b = replace(a, made_with={"tree 1": "y", "noc 2": "n"})
    told = ("plug-in noc 1 (only in A)", "plug-in noc 2 (only in B)", "plug-in tree 1 (with different code)")
    assert compare_two(a, b).differs == told
    assert f"they differ in: {', '.join(told)}" in comparison_text(compare_two(a, b))
    plain = replace(a, made_with={})
    assert "they have the same hardware, mapping, workload and options\n" in comparison_text(compare_two(plain, plain))


def test_other_bits_are_compared_and_named() -> None:
    """Different bits are named in the heading and in a note; a different structure is refused with the difference."""
    entries = {LedgerPlace(ENERGY, "conv", "mac"): 5.0, LedgerPlace(LATENCY, "conv", "ideal"): 7.0}
    a = replace(run_of(entries, bits="W 8"), made_of={"workload": "1", "hardware": "h", "mapping": "m"})
    b = replace(run_of(entries, "b", bits="W 4", workload_digest="2"), made_of={**a.made_of, "workload": "2"})
    assert needs_networks(a, b)
    assert not needs_networks(a, a)
    known = compare_two(a, b, NetworkDifference(bits="1 of 2 layers (conv)", zeros="2 of 2 layers"))
    assert known.differs == ("bits of the operands", "shares of zeros in the operands")
    note = "the bits of the operands differ in 1 of 2 layers (conv) of the network: W 8 in A; W 4 in B"
    text = comparison_text(known)
    assert text.count(note) == 1
    assert text.count("bits of the operands differ") == 1
    assert "the shares of zeros in the operands differ in 2 of 2 layers of the network" in text
    with pytest.raises(InputError, match="not the same in both runs: only A has 1 layer fc"):
        compare_two(a, b, NetworkDifference(structure="only A has 1 layer fc"))


def test_the_product_of_the_totals_has_a_row() -> None:
    """The EDP has a row, in J s with clocks and in J cycles without. Clocks can reverse the order of the runs."""
    entries = {LedgerPlace(ENERGY, "one", "mac"): 4e6, LedgerPlace(LATENCY, "one", "ideal"): 100}
    slow, fast = (run_of(entries, name, clock_frequency_mhz=mhz) for name, mhz in (("a", 50.0), ("b", 200.0)))
    rows = [line.split() for line in comparison_text(compare_two(slow, fast)).splitlines()]
    assert ["EDP", "[nJ", "s]", "0.008", "0.002", "-0.006", "-75.0%"] in rows
    rows = [line.split() for line in comparison_text(compare_two(slow, run_of(entries, "c"))).splitlines()]
    assert ["EDP", "[J", "cycles]", "0.0004", "0.0004", "0", "+0.0%"] in rows


def test_a_clock_that_changes_an_energy_has_its_reason() -> None:
    """The line names static energy and the direction if a clock reverses the order of energies; latency needs no
    reason.
    """
    still, static = LedgerPlace(ENERGY, "one", "mac"), LedgerPlace(ENERGY, "one", "leakage")
    cycles = LedgerPlace(LATENCY, "one", "ideal")
    a = run_of({still: 5e6, static: 5e6, cycles: 100}, clock_frequency_mhz=100.0)
    b = run_of({still: 5e6, static: 6e6, cycles: 110}, "b", clock_frequency_mhz=100.0)
    energy, latency, _ = compare_two(a, b).turns
    assert "(static energy, such as leakage, " in turn_line(energy, by_time=True)
    grows = energy.turn is not None and energy.turn.factor < 1
    assert ("grows as the clock becomes slower" in turn_line(energy, by_time=True)) == grows
    assert "static energy" not in turn_line(latency, by_time=True)


def test_designs_of_one_space_share_one_line_of_assumptions() -> None:
    """The terminal names the file with the assumptions of designs; tables, and a design beside a run, have them in
    full.
    """
    one, other = (run_of({}, name, assumes="many words", assumes_file="space/front.csv") for name in "ab")
    text = comparison_text(compare_two(one, other))
    assert "(column `assumes` of space/front.csv)" in text
    assert "many words" not in text
    assert "many words" in comparison_text(compare_two(one, run_of({}, "c")))
    assert comparison_object(compare_two(one, other))["assumes"].endswith("many words")


def test_a_ranged_number_beside_a_fixed_one_gives_no_probability() -> None:
    """No probability is given if only one of two memories has a range, and a note names both numbers."""
    dram = MemoryPart("dram", 2**33, 512.0, 512.0, 64, 64, 1, "dram lpddr4", 1.0, 1.75, is_on_chip=False)
    part = CostPart("dram", "dram lpddr4", 50.0, 0.0, 1.0, 1.75)
    place = LedgerPlace(ENERGY, "one", "memory", "dram")
    a = run_of({place: 50.0}, costs=HardwareCosts(0.3, (dram,)), cost_parts=(part,))
    fixed = HardwareCosts(0.3, (replace(dram, law="", low=1.0, high=1.0),))
    told = " ".join(compare_two(a, run_of({place: 60.0}, "b", costs=fixed)).notices)
    assert "samples of costs within" not in told
    assert "a: dram 8 to 14 pJ/b; b: dram 8 pJ/b, without a range" in told
    same = run_of({place: 60.0}, "b", costs=a.run.costs, cost_parts=(part._replace(energy_pj=60.0),))
    assert "in 100.0% of 100,000 samples" in " ".join(compare_two(a, same).notices)


def test_a_network_may_have_another_name() -> None:
    """Networks with different names are compared if their digests are equal."""
    (order,) = compared({"workload": "copy"}).notices
    assert order.endswith("the search of B gives no lower bound")


@pytest.mark.parametrize(
    ("changed", "options", "notice"),
    [
        ({}, {"seed": "1"}, "options differ: seed 0 | 1"),
        ({}, {"lpf_limit": "6"}, "options differ: lpf_limit not given | 6"),
        ({"objective": "energy"}, {}, "options differ: objective EDP | energy"),
        (
            {"model": "zigzag-3.9.1", "workload_digest": "2"},
            {},
            "some layers are in one run only: the models read the network in different ways, or one run has only"
            " a part",
        ),
        ({"workload_digest": "", "model": ""}, {}, "it is not known whether they are the same"),
        ({"could_keep": True}, {}, "with this option, b would keep data between layers"),
        ({"is_of_several_cores": True}, {}, "data that move between cores belong to no layer"),
    ],
)
def test_what_differs_besides_is_named(changed: dict[str, Any], options: dict[str, str], notice: str) -> None:
    """Text, file and figure name each difference besides the costs."""
    comparison = compared(changed, **options)
    assert any(notice in line for line in comparison.notices)
    assert notice in comparison_text(comparison)
    assert notice in comparison_table(comparison)["assumes"][0]
    assert any(notice in line for line in comparison_object(comparison)["notes"])
    drawn = " ".join(text.get_text() for text in comparison_figure(comparison).texts)
    assert notice[:60] in drawn


def test_more_memory_that_takes_more_cycles_is_told() -> None:
    """A note says if a run with more memory, and no smaller memory, takes more cycles, in either order of the runs."""

    def run(name: str, cycles: int, **sizes: int) -> RunLedger:
        place = LedgerPlace(LATENCY, "conv", "ideal")
        return replace(run_of({place: cycles}, name), memory_bits=sizes)

    small, large = run("small", 100, l1=8192, l2=8192), run("large", 107, l1=8192, l2=16384)
    told = "large has more memory than small (l2 1 KiB -> 2 KiB) and takes 107 cycles instead of 100."
    for pair in ((small, large), (large, small)):
        assert told in slower_with_more_memory(*pair)
        assert told in " ".join(compare_two(*pair).notices)
    for other in (
        run("large", 100, l1=8192, l2=16384),  # no slower
        run("large", 107, l1=8192, l2=8192),  # no larger
        run("large", 107, l1=8191, l2=16384),  # one is smaller
        run("large", 107, l1=8192, l3=16384),  # other memories
        run("large", 107),  # not known
    ):
        assert slower_with_more_memory(small, other) == slower_with_more_memory(other, small) == ""


def test_where_clocks_differ_time_stands_beside_cycles() -> None:
    """Time stands beside cycles if clocks differ, as a faster clock may win; with one clock there are no seconds."""
    entries = {LedgerPlace(LATENCY, "one", "ideal"): 100}
    slow, fast = (run_of(entries, name, clock_frequency_mhz=mhz) for name, mhz in (("a", 50.0), ("b", 200.0)))
    text = comparison_text(compare_two(slow, fast))
    assert ["time", "[s]", "2e-06", "5e-07", "-1.5e-06", "-75.0%"] in [line.split() for line in text.splitlines()]
    assert "clocks differ" in text
    assert comparison_object(compare_two(slow, fast))["b"]["latency_s"] == 5e-7
    assert "time [s]" not in comparison_text(compare_two(slow, slow))
    mixed = comparison_text(compare_two(slow, run_of(entries, "c")))
    assert "no clock given: c; compared by cycles, not by time" in mixed
    assert "time [s]" not in mixed


def test_the_largest_difference_comes_first_with_its_share() -> None:
    """The text has the largest difference first with its share, and the total last; equal runs have no tables of
    differences.
    """
    a = run_of({LedgerPlace(ENERGY, "one", "mac"): 1e6, LedgerPlace(ENERGY, "two", "memory", "sram"): 4e6})
    b = run_of({LedgerPlace(ENERGY, "one", "mac"): 2e6, LedgerPlace(ENERGY, "two", "memory", "sram"): 1e6}, "b")
    text = comparison_text(compare_two(a, b))
    lines = [line.split() for line in text.splitlines()]
    assert ["sram", "4", "1", "-3", "-60.0%"] in lines
    assert lines.index(["sram", "4", "1", "-3", "-60.0%"]) < lines.index(["MAC", "1", "2", "+1", "+20.0%"])
    assert ["total", "5", "3", "-2", "-40.0%"] in lines
    assert "by term" not in comparison_text(compare_two(a, a))


@pytest.mark.parametrize(
    ("places", "names"),
    [
        (("out/bounds/space-503/net", "out/designs/space-511/net"), ("space-503/net", "space-511/net")),
        (("out/bounds/space-511/net", "out/designs/space-511/net"), ("bounds/space-511/net", "designs/space-511/net")),
        (("a/net", "b/c/net"), ("a/net", "c/net")),
        (("net", "b/net/summary.json"), ("net", "b/net")),
    ],
)
def test_runs_of_one_name_have_the_names_of_their_folders(places: tuple[str, str], names: tuple[str, str]) -> None:
    """Runs of one name get names that begin at the last folder in which their paths differ."""
    compared = compare_two(*with_own_names(run_of({}, "net", core="a"), run_of({}, "net", core="a"), places))
    assert tuple(run.run for run in compared.runs) == names
    caption = comparison_figure(compared).caption_lines
    assert caption[0].startswith(f"Totals of net on a, {names[0]} → {names[1]}: energy")


@given(ENTRIES, ENTRIES)
def test_a_paper_has_the_large_differences(a: Entries, b: Entries) -> None:
    """A table for a paper shows the largest row; its rows and the sums in its notes add up to the whole difference."""
    table = comparison_table(compare_two(run_of(a), run_of(b, "b")))
    shown, notes = large_differences(table)
    for quantity in QUANTITIES:
        rows, kept = (one.loc[one["quantity"] == quantity, "difference"] for one in (table, shown))
        told = [note for note in notes if note.startswith(f"{quantity}: ")]
        assert len(told) == (len(kept) < len(rows))
        if len(rows):
            assert max(abs(kept)) == max(abs(rows))
            assert min(abs(kept)) >= 0.001 * max(abs(rows))
        if told:
            left = float(told[0].rpartition(" ")[2].rstrip(".").replace(",", ""))
            assert left == pytest.approx(sum(rows) - sum(kept), rel=1e-5)
            assert f" {len(rows) - len(kept):,} of {len(rows):,} rows are left out" in told[0]


def test_table_and_figure_without_differences(tmp_path: Path) -> None:
    """The table of equal runs has its columns but no rows, and the figure says that there is no difference."""
    a = run_of({})
    same = compare_two(*with_own_names(a, a, ("x/a", "y/a")))
    assert [run.run for run in same.runs] == ["x/a", "y/a"]
    assert titles_of(same) == "net on a, x/a → y/a"
    assert list(comparison_table(same).columns) == [*COLUMNS, "assumes"]
    assert comparison_table(same).empty
    paths = write_comparison_figure(same, tmp_path / "comparison")
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in write_comparison_figure(same, tmp_path / "comparison")] == before
