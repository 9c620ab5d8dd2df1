"""Advice: changes of one number, their exact gains, and their names."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.registry import enter, withdraw
from tilewright.base.yamlfile import load_yaml, parse_yaml
from tilewright.cli.map import map_workload
from tilewright.cost.energy_terms import ENERGY_TERMS, TermCost
from tilewright.designs.advice import Advice, Advices, together
from tilewright.designs.advice_text import advice_text, assumptions_of
from tilewright.designs.changes import FileChange, possible_changes, scaled
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.trials import advices_of
from tilewright.hardware.attributes import ENTERED, Attribute, figure
from tilewright.hardware.core import Core
from tilewright.hardware.dotted_paths import key_path
from tilewright.hardware.text_edits import with_values
from tilewright.mapping.constraints import Unrolling
from tilewright.pipeline.sources import parse_mapping, parse_workload
from tilewright.results.records import layers_in_order
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from benchmarks.shipped import shipped
from tests.unit.designs.advice_cases import CONFIG, try_advices, try_mapping_changes

TREE = Attribute("tree", "array", "tree_pj", "energy_pj", "Energy of the clock tree of one unit, for each cycle.")
RETENTION = Attribute("retention", "core", "retention_ms", "number", "Time after which data are lost, in ms.")


class ClockTree:
    """An energy term that is linear in a number of the hardware file."""

    concerns = staticmethod(lambda core: figure(TREE, core.operational_array.figures) > 0)
    waiting_pj_a_cycle = staticmethod(lambda core: 0.0)

    @staticmethod
    def cost(layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Return the energy of all units in each cycle."""
        array = core.operational_array
        return TermCost(pj_a_cycle=figure(TREE, array.figures) * array.unit_count)


TREE_ENTRIES = {
    ENTERED.owner: {"tree": f"{__name__}:TREE", "retention": f"{__name__}:RETENTION"},
    ENERGY_TERMS.owner: {"clock_tree": f"{__name__}:ClockTree"},
}
TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny" / "workload" / "two_layers.yaml"


@pytest.mark.parametrize("seed", range(3))
def test_advices_are_confirmed_by_the_changed_file(seed: int) -> None:
    """Runs of the changed file confirm advice exactly, at equal mappings and after a new search.
    `benchmarks/advices.py` tries more.
    """
    tally = try_advices(seed, count=4, networks=("bert_tiny",))
    assert tally.counts["advices"] == 4
    assert tally.wrong == []


@pytest.mark.parametrize("seed", range(2))
def test_changes_of_spatial_mappings_are_confirmed_by_the_changed_file(seed: int) -> None:
    """Runs of the changed mapping file confirm its changes exactly."""
    tally = try_mapping_changes(seed, count=3, networks=("bert_tiny",))
    assert tally.counts["advices"] == 3
    assert tally.wrong == []


@pytest.mark.parametrize(
    ("value", "factor", "is_whole", "expected"),
    [
        (64, Fraction(2), True, 128),
        (3, Fraction(1, 2), True, 1),
        (1, Fraction(1, 2), True, None),
        (0.095, Fraction(1, 2), False, 0.0475),
        (700, Fraction(1, 3), False, 700 / 3),
        ("64 KiB", Fraction(3, 2), True, "96 KiB"),
        ("1 KiB", Fraction(1, 2), True, "0.5 KiB"),
        ("8 B/cycle", Fraction(2), True, "16 B/cycle"),
        ("40 fJ", Fraction(1, 2), False, "20 fJ"),
        (0, Fraction(2), False, None),
        ("from a table", Fraction(2), False, None),
        (True, Fraction(2), True, None),
        ({"value": 3}, Fraction(2), True, None),
    ],
)
def test_numbers_are_scaled_as_they_are_written(value: Any, factor: Fraction, is_whole: bool, expected: Any) -> None:
    """Numbers are scaled with their unit; other values are left unchanged."""
    assert scaled(value, factor, is_whole=is_whole) == expected


def test_changes_name_their_place() -> None:
    """Each change names its key and line, and a word is at least as wide as its smallest part."""
    file = CONFIG / "hardware" / "zigzag" / "tpu_like.yaml"
    changes = possible_changes(load_yaml(file), Fraction(2))
    lines = file.read_text().splitlines()
    for one in changes:
        assert str(one.before) in lines[one.line - 1]
        written = next(str(key) for key in reversed(one.path) if not isinstance(key, int))
        assert written in lines[one.line - 1]
        assert one.file == str(file)
    by_key = {(one.key, one.more): one for one in changes}
    dram = "memories.dram.ports.rw_port_1.bandwidth_max"
    assert by_key[dram, True].after == 128
    assert by_key[dram, True].also == ()
    path = ("memories", "dram", "ports", 0)
    assert by_key[dram, False].settings == (((*path, "bandwidth_max"), 32), ((*path, "bandwidth_min"), 32))
    assert by_key["memories.dram.r_cost", True].after == 350
    assert ("memories.dram.r_cost", False) not in by_key
    assert {one.kind for one in changes} == {"bandwidth", "size", "array side", "energy"}


@pytest.mark.parametrize("name", ["tpu_like", "edge_tpu_like", "cube_3d", "aimc", "dimc"])
def test_a_key_can_be_pasted_into_a_design_space(name: str) -> None:
    """The key of a change is its path in a design space, and messages spell the path in the same way."""
    document = load_yaml(shipped("hardware", name))
    changes = possible_changes(document, Fraction(2))
    assert any(change.key.endswith("sizes.0") for change in changes)
    for change in changes:
        assert key_path(document.data, change.key) == change.path
        assert key_path(document.data, document.dotted(change.path)) == change.path


def test_costs_with_a_source_follow_a_change() -> None:
    """Costs from the library follow a change of size, and the text of the change says so."""
    text = (
        "memories: {s: {size: 64 KiB, cost: {from: sram}}, m: {size: 8, r_cost: 1}}\noperational_array: {sizes: [4]}\n"
    )
    changes = possible_changes(parse_yaml(text, "sourced.yaml"), Fraction(2))
    assert {one.key for one in changes if one.is_sourced} == {"memories.s.size", "memories.s.cost.cells"}
    keys = "memories.s.size", "memories.m.size"
    told = [assumptions_of([one for one in changes if one.key == key]) for key in keys]
    assert [["follow its size" in note for note in notes] for notes in told] == [[True], [False]]


@pytest.mark.parametrize(("written", "after"), [(", cells: hp", "lstp"), (", cells: lstp", "hp"), ("", "lstp")])
def test_other_cells_are_a_change(tmp_path: Path, written: str, after: str) -> None:
    """Advice tries the other type of cells for each SRAM with costs from the library, and names the cost's line."""
    cost = f"{{from: sram, node_nm: 22{written}}}"
    text = f"memories:\n  s: {{size: 64 KiB,\n    cost: {cost}}}\n  m: {{size: 8, r_cost: 1}}\n"
    document = parse_yaml(text, "cells.yaml")
    (found,) = [one for one in possible_changes(document, Fraction(2)) if one.kind == "cells"]
    assert (found.key, found.after, found.line, found.more) == ("memories.s.cost.cells", after, 3, True)
    assert with_values(document.data, found.settings)["memories"]["s"]["cost"]["cells"] == after


def test_cells_that_leak_less_are_tried(tmp_path: Path) -> None:
    """SRAM cells that leak less are the best advice if leakage takes much of the energy.

    The gain equals a run of the exported mappings, and a note says that an access takes longer than a cycle.
    """
    files = tilewright.new(tmp_path / "own", node_nm=22, clock="1.2 GHz")
    hardware, mapping = files[0], files[1]
    tilewright.map_workload(TINY, hardware, mapping, output=tmp_path / "run")
    found = tilewright.advise(tmp_path / "run", search=False, mapping_changes=False)
    first = found.found[0]
    assert (first.change.key, first.change.after) == ("memories.sram.cost.cells", "lstp")
    changed = tmp_path / "changed.yaml"
    changed.write_text(hardware.read_text().replace("cells: hp", "cells: lstp"))
    fixed = tmp_path / "fixed.yaml"
    tilewright.export(tmp_path / "run", output=fixed)
    again = tilewright.evaluate(workload=TINY, hardware=changed, mapping=fixed)
    assert first.same is not None
    assert first.same.energy_pj == pytest.approx(sum(one.energy_pj for one in again), rel=1e-12)
    assert any("with memories.sram.cost.cells: lstp, an access takes" in note for note in found.notes)


def test_older_files_have_one_width_for_all_ports(tmp_path: Path) -> None:
    """`r_bw` and `w_bw` of a memory in an older file are changes, with their units."""
    text = "memories: {m: {size: 8, r_bw: 64, w_bw: 8 B/cycle, min_w_granularity: 64, r_cost: 1 pJ}}\n"
    found: dict[tuple[str, bool], FileChange] = {
        (one.key, one.more): one for one in possible_changes(parse_yaml(text, "old.yaml"), Fraction(2))
    }
    assert found["memories.m.r_bw", True].after == 128
    narrower = found["memories.m.w_bw", False]
    assert narrower.settings == (
        (("memories", "m", "w_bw"), "4 B/cycle"),
        (("memories", "m", "min_w_granularity"), "4 B/cycle"),
    )


def change(more: bool) -> FileChange:
    """Return a change of the size of a memory."""
    return FileChange("size", ("memories", "rf", "size"), "memories.rf.size", "h.yaml", 3, 16, 32 if more else 8, more)


def test_a_luckier_search_takes_nothing_away() -> None:
    """A gain of a luckier search is reported as a gain of the search and is not credited to a change.
    Half a register file counts as spare only if it costs no more than the mappings found for the present hardware.
    """
    now, known = Outcome(100.0, 1000.0), Outcome(90.0, 800.0)
    smaller = Advice(
        change(more=False), Outcome(reason="does not fit"), Outcome(95.0, 850.0), held=Outcome(95.0, 850.0)
    )
    larger = Advice(change(more=True), now, Outcome(90.0, 790.0), held=known)
    made = Advices.of("latency", now, [smaller, larger], searched=True, known=known)
    assert made.spare == ()
    assert made.search_gain == pytest.approx(0.2)
    ((_, one),) = made.helpful
    assert made.hardware_gain(one) == pytest.approx(0.01)
    told = advice_text(made)
    assert "for nothing" not in told
    assert "change latency by -20.0%: this saving comes from the search" in told
    assert "its mappings without it: result of the mappings of the new search on the unchanged hardware" in told
    free = Advice(change(more=False), now, Outcome(90.0, 800.0))
    ((_, one),) = Advices.of("latency", now, [free], searched=True, known=known).spare
    assert one is free, "the spare change keeps the mappings of the run"


def test_keys_can_be_copied_from_the_table() -> None:
    """A long key stays on one line in the tables of gains and of spare resources."""
    key = "memories.weights_of_the_second_array.ports.read_and_write_port_1.bandwidth_max"
    now = Outcome(100.0, 1000.0)
    values = {"before": "12345678901234567890", "after": "123456789012345678901"}
    wider, narrower = (replace(change(more=more), key=key, **values) for more in (True, False))
    found = [Advice(wider, Outcome(100.0, 900.0), now), Advice(narrower, now, now)]
    told = advice_text(Advices.of("latency", now, found, searched=True, known=now))
    assert told.count(f" {key} ") == 2


def test_where_no_change_helps_alone_the_fewest_are_named() -> None:
    """Two changes that help only together are named if no single change helps."""
    now = Outcome(100.0, 1000.0)
    changes = [replace(change(more=True), key=f"key{place}") for place in range(4)]

    def on_changed(chosen: Sequence[FileChange]) -> Outcome:
        keys = {one.key for one in chosen}
        return Outcome(100.0, 530.0 if {"key1", "key3"} <= keys else 1000.0)

    made = Advices.of("latency", now, [Advice(one, on_changed([one]), None) for one in changes], searched=False)
    made = replace(made, together=together(made, changes, on_changed))
    assert made.together is not None
    assert [one.key for one in made.together.changes] == ["key1", "key3"]
    assert "No single change saves 0.1% of latency." in advice_text(made)
    assert (
        "Together, these changes help (same mappings): key1 (16 -> 32) and key3 (16 -> 32): -47.0% of latency."
        in advice_text(made)
    )


def test_attributes_are_changes(tmp_path: Path) -> None:
    """Each attribute of a hardware file gives possible changes, whether it is built in or comes from a plug-in.

    Energies and powers only fall, other numbers change both ways. The gain of a plug-in's number is that of its term.
    """
    data = yaml.safe_load((CONFIG.parent / "docs/examples/accelerator.yaml").read_text())
    data |= {"clock_frequency": "1 GHz", "retention": 5}
    data["memories"]["dram"]["leakage"] = "20 uW"
    data["operational_array"] |= {"tree": "40 fJ", "unit_energy_bits": 8}
    (tmp_path / "tree.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    enter(TREE_ENTRIES)
    try:
        changes = possible_changes(load_yaml(tmp_path / "tree.yaml"), Fraction(2))
        found = {(one.key, one.after): one.more for one in changes}
        assert found.items() >= {
            (("memories.dram.leakage", "10 uW"), True),
            (("operational_array.tree", "20 fJ"), True),
            (("retention", 10), True),
            (("retention", 2.5), True),
        }
        assert not any("unit_energy_bits" in key for key, _ in found)
        assert sum("tree" in key or "leakage" in key for key, _ in found) == 2
        files = (parse_workload(TINY), parse_mapping(CONFIG.parent / "docs/examples/mapping.yaml"))
        mapped = map_workload(files[0], tmp_path / "tree.yaml", files[1], SearchOptions())
        placed = layers_in_order(mapped.records, mapped.summary)
        run = ExplainedRun("run", placed, load_yaml(tmp_path / "tree.yaml").data, *files, SearchOptions())
        (advice,) = advices_of(run, [one for one in changes if "tree" in one.key], search=False).found
    finally:
        withdraw(TREE_ENTRIES)
    assert advice.same is not None
    assert mapped.summary is not None
    saved = mapped.summary["energy_pj"] - advice.same.energy_pj
    assert saved == pytest.approx(mapped.summary["clock_tree_energy_pj"] / 2)


def test_a_port_of_an_older_file_has_one_width(tmp_path: Path) -> None:
    """`r_bw` and `w_bw` of a port that reads and writes change together."""
    text = "memories: {m: {size: 8, r_bw: 64, w_bw: 64, rw_port: 1, min_r_granularity: 64, r_cost: 1}}\n"
    found = {
        (one.key, one.more): one.settings
        for one in possible_changes(parse_yaml(text, "old.yaml"), Fraction(2))
        if one.kind == "bandwidth"
    }
    assert found == {
        ("memories.m.r_bw", True): ((("memories", "m", "r_bw"), 128), (("memories", "m", "w_bw"), 128)),
        ("memories.m.r_bw", False): (
            (("memories", "m", "r_bw"), 32),
            (("memories", "m", "w_bw"), 32),
            (("memories", "m", "min_r_granularity"), 32),
        ),
    }


def test_energies_per_bit_follow_the_widths_of_ports() -> None:
    """The text says whether a changed width changes the energy of a word: energies per bit do so, energies per word do
    not."""
    text = (
        "memories: {d: {size: 8, r_cost: 8 pJ/b, ports: [{name: r, bandwidth_max: 64}]},"
        " m: {size: 8, r_cost: 1, ports: [{name: r, bandwidth_max: 64}]}}\noperational_array: {sizes: [4]}\n"
    )
    changes = possible_changes(parse_yaml(text, "per_bit.yaml"), Fraction(2))
    assert {one.key for one in changes if one.is_per_bit and one.kind == "bandwidth"} == {
        "memories.d.ports.r.bandwidth_max"
    }
    assert {str(one.after) for one in changes if one.key == "memories.d.r_cost"} == {"4 pJ/b"}
    for memory, words in (
        ("d", "a memory with an energy per bit keeps this energy"),
        ("m", "is counted with the old energy per word"),
    ):
        (note,) = assumptions_of([one for one in changes if one.key == f"memories.{memory}.ports.r.bandwidth_max"])
        assert words in note


@pytest.mark.parametrize(("latency", "told"), [(1000.3, "+<0.1%"), (999.7, "-<0.1%"), (1000.0, "0"), (900.0, "-10.0%")])
def test_changes_have_one_notation(latency: float, told: str) -> None:
    """A share has a sign, and a tiny share has an upper limit instead of 0."""
    now = Outcome(100.0, 1000.0)
    found = [Advice(change(more=True), Outcome(100.0, latency), Outcome(100.0, 500.0))]
    text = advice_text(Advices.of("latency", now, found, searched=True, known=now))
    assert f" {told} " in next(line for line in text.splitlines() if line.startswith(" 1 "))
