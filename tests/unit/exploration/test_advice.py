"""Advice: changes of one number, their exact gains, and what they are called."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tilewright.exploration.advice import Advice
from tilewright.exploration.advice_text import _assumed
from tilewright.exploration.changes import Change, possible_changes, scaled
from tilewright.exploration.held_mappings import Outcome
from tilewright.hardware.dotted_paths import key_path
from tilewright.yamlfile import load_yaml, parse_yaml

from tests.unit.exploration.advice_cases import CONFIG, try_advices, try_mapping_changes


@pytest.mark.parametrize("seed", range(3))
def test_advices_are_confirmed_by_the_changed_file(seed: int) -> None:
    """To the last bit, at the same mappings and after a new search; `benchmarks/advices.py` tries more."""
    tally = try_advices(seed, count=4, networks=("bert_tiny",))
    assert tally.counts["advices"] == 4
    assert tally.wrong == []


@pytest.mark.parametrize("seed", range(2))
def test_changes_of_spatial_mappings_are_confirmed_by_the_changed_file(seed: int) -> None:
    """To the last bit: text and mapping of a change are the same."""
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
    """With their unit; what is no number is left alone."""
    assert scaled(value, factor, is_whole=is_whole) == expected


def test_changes_name_their_place() -> None:
    """Key, file and line of every number, more before less; a word is no narrower than its smallest part."""
    file = CONFIG / "hardware" / "tpu_like.yaml"
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
    """It is the path of the number there; so is the spelling of messages."""
    document = load_yaml(CONFIG / "hardware" / f"{name}.yaml")
    changes = possible_changes(document, Fraction(2))
    assert any(change.key.endswith("sizes.0") for change in changes)
    for change in changes:
        assert key_path(document.data, change.key) == change.path
        assert key_path(document.data, document.dotted(change.path)) == change.path


def test_costs_with_a_source_follow_a_change() -> None:
    """Of memories that leave them to the library, and of no other number; the text says which way it is."""
    text = (
        "memories: {s: {size: 64 KiB, cost: {from: sram}}, m: {size: 8, r_cost: 1}}\noperational_array: {sizes: [4]}\n"
    )
    changes = possible_changes(parse_yaml(text, "sourced.yaml"), Fraction(2))
    assert {one.key for one in changes if one.is_sourced} == {"memories.s.size"}
    rows = [(number, Advice(one, Outcome(1, 1), None)) for number, one in enumerate(changes)]
    told = [
        _assumed([row for row in rows if row[1].change.key == key]) for key in ("memories.s.size", "memories.m.size")
    ]
    assert [["follow its size" in note for note in notes] for notes in told] == [[True], [False]]


def test_older_files_have_one_width_for_all_ports(tmp_path: Path) -> None:
    """`r_bw` and `w_bw` of a memory, with units too."""
    text = "memories: {m: {size: 8, r_bw: 64, w_bw: 8 B/cycle, min_w_granularity: 64, r_cost: 1 pJ}}\n"
    found: dict[tuple[str, bool], Change] = {
        (one.key, one.more): one for one in possible_changes(parse_yaml(text, "old.yaml"), Fraction(2))
    }
    assert found["memories.m.r_bw", True].after == 128
    narrower = found["memories.m.w_bw", False]
    assert narrower.settings == (
        (("memories", "m", "w_bw"), "4 B/cycle"),
        (("memories", "m", "min_w_granularity"), "4 B/cycle"),
    )
