"""Designs with an access longer than a clock cycle: columns, constraints, sentences and warnings."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.designs.answer import Answer, answer_of
from tilewright.designs.decision import decision_of
from tilewright.designs.decision_page import decision_page
from tilewright.designs.decision_text import CHOICE, RUNNER_UP, decision_markdown, decision_text
from tilewright.designs.explore import explored
from tilewright.designs.parts import check_space
from tilewright.designs.space_reader import read_space
from tilewright.designs.table_files import space_table
from tilewright.designs.tables import answer_text
from tilewright.hardware.access_times import AccessTime, access_times, core_access_times, system_access_times
from tilewright.hardware.silicon.memory_cost import MemoryShape, sram_memory
from tilewright.hardware.source import parse_accelerator

from tests.unit.designs.decision_cases import made_of
from tests.unit.hardware.system_cases import connected, offchip, read

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
KIB = (64, 512)


def base(clock: str | None = "800 MHz") -> dict[str, Any]:
    """Return an accelerator whose memory has costs of the library."""
    data: dict[str, Any] = yaml.safe_load((TINY / "hardware" / "wide.yaml").read_text())
    for key in ("r_cost", "w_cost", "area"):
        data["memories"]["memory"].pop(key)
    data["memories"]["memory"] |= {"cost": {"from": "sram", "node_nm": 28}, "size": "64 KiB"}
    data["operational_array"]["unit_area"], data["memories"]["register"]["area"] = "400 um2", "20 um2"
    return data if clock is None else data | {"clock_frequency": clock}


def keys(clock: str | None = "800 MHz", **changes: Any) -> dict[str, Any]:
    """Return a space of four designs: two sizes of the memory, two kinds of its cells."""
    return {
        "name": "made",
        "accelerator": base(clock),
        "mapping": str(TINY / "mapping" / "free.yaml"),
        "networks": [str(TINY / "workload" / "two_layers.yaml")],
        "axes": {
            "kib": {"values": list(KIB)},
            "cells": {"path": "memories.memory.cost.cells", "values": ["hp", "lstp"]},
        },
        "laws": {"memories.memory.size": "kib * 8192"},
        "options": {"objective": "EDP", "lpf_limit": 3, "bounds": False},
    } | changes


def answered(**changes: Any) -> Answer:
    """Return the answer to the space."""
    source = keys(**changes)
    return answer_of(explored(source, read_space(source), 1, lambda count: None))


def expected_ns(kib: int, cells: str) -> float:
    """Return the access time of the memory, from the library."""
    found = sram_memory(MemoryShape(kib * 8192, 128, 128, 2), 28, cells).source.access_time_ns
    assert found is not None
    return found


def test_columns_have_the_access_times_of_the_library() -> None:
    """The table has access times in ns and in cycles of 1.25 ns, and the names of slow memories."""
    table = space_table(answered())
    assert len(table) == 4
    for row in table.to_dict("records"):
        access_ns = expected_ns(int(row["kib"]), row["cells"])
        assert row["access_ns"] == access_ns
        assert row["access_cycles"] == pytest.approx(access_ns / 1.25, rel=1e-12)
        assert row["slow_memories"] == ("memory" if access_ns > 1.25 else "")
    assert {*table["slow_memories"]} == {"", "memory"}


def test_without_a_clock_only_the_time_is_known() -> None:
    """A space without a clock has only times in ns; a space without access times has no such columns."""
    answer = answered(clock=None)
    assert "access_cycles" not in answer.exploration.table
    assert answer.exploration.table["access_ns"].notna().all()
    assert answer.access_notes == ()
    plain = keys()
    plain["accelerator"]["memories"]["memory"] |= {"cost": None, "r_cost": 1, "w_cost": 1, "area": 1}
    plain["axes"].pop("cells")
    found = answer_of(explored(plain, read_space(plain), 1, lambda count: None))
    assert not {"access_ns", "access_cycles", "slow_memories"} & {*found.exploration.table}


def test_explore_counts_designs_and_memories_and_names_the_best() -> None:
    """The sentence counts slow designs and memories, and the table of the front has the longest access."""
    answer = answered(clock="1 GHz")
    table = answer.exploration.table
    slow = table[table["access_cycles"] > 1]
    (sentence,) = answer.access_notes
    assert sentence.startswith(
        f"In {len(slow)} of 4 compared designs, an access of a memory takes longer than a clock cycle (memory in"
        f" {len(slow)} designs)."
    )
    longest = slow.loc[slow["access_ns"].idxmax()]
    assert f"in {longest['design']}: memory: an access takes {longest['access_ns']:.4g} ns" in sentence
    for column, word in (("energy_pj", "energy"), ("edp_pj_cycles", "EDP"), ("area_mm2", "area")):
        best = table.loc[table[column].idxmin(), "design"]
        assert (f"{best} (least {word})" in sentence) == (best in set(slow["design"]))
    text = answer_text(answer)
    assert sentence in text
    heads = re.compile(r"^Pareto front .*\n(.*\n)?.* access\n", re.MULTILINE)
    assert heads.search(text)
    assert not heads.search(answer_text(answered(clock="100 MHz")))
    assert answered(clock="100 MHz").access_notes == ()


def test_a_constraint_excludes_slow_designs() -> None:
    """Constraints on access_cycles and access_ns exclude slow designs."""
    for limit in ("access_cycles <= 1", "access_ns <= 1.25"):
        table = answered(constraints=[limit]).exploration.table
        assert ((table["unmet"] == limit) == (table["access_ns"] > 1.25)).all()
    unknown = answered(clock=None, constraints=["access_cycles <= 1"]).exploration.table
    assert {*unknown["unmet"]} == {"access_cycles <= 1: access_cycles is not known"}
    with pytest.raises(InputError, match="is known only after evaluation"):
        read_space(keys(laws={"memories.memory.size": "kib * access_ns"}))
    with pytest.raises(InputError, match="name"):
        read_space(keys(axes={"access_ns": {"path": "memories.memory.size", "values": [1024]}}, laws={}))


def test_complete_fronts_refuse_such_a_constraint() -> None:
    """Complete fronts refuse constraints on access times, because certificates do not have them."""
    space = read_space(keys(constraints=["area_mm2 <= 2", "access_cycles <= 1"], options={"lpf_limit": 3}))
    with pytest.raises(InputError, match="complete fronts have no access times") as raised:
        check_space(space)
    assert [one.value for one in raised.value.problems] == ["access_cycles <= 1"]


@pytest.mark.parametrize("clock", ["1 GHz", "800 MHz", "100 MHz", "5 GHz"])
def test_decide_warns_of_the_choice_and_the_runner_up(clock: str) -> None:
    """`decide` warns of slow memories in the choice and the runner-up, and names the best design without them."""
    answer = answered(clock=clock)
    table = answer.exploration.table
    decision = decision_of(answer, "EDP")
    assert decision.runner_up is not None
    made = made_of(decision)
    ordered = table.sort_values(["edp_pj_cycles"])
    period = {"1 GHz": 1.0, "800 MHz": 1.25, "100 MHz": 10.0, "5 GHz": 0.2}[clock]
    for topic, row in zip((CHOICE, RUNNER_UP), ordered.to_dict("records"), strict=False):
        told = [one for one in made if one.topic == topic and one.text.startswith("Warning")]
        assert len(told) == (row["access_ns"] > period)
        for one in told:
            assert f"{row['access_ns']:.4g} ns, but counts as one cycle of {period:g} ns" in one.text
            assert one.commands[0].endswith(f"--show {row['design']}")
            assert one.commands[1] == f"tilewright validate out/designs/{row['design']}/hardware.yaml"
            pages = decision_text(decision, made), html.unescape(decision_page(decision, made))
            assert all(one.text in page for page in pages)
            assert "longer than a clock cycle" in decision_markdown(decision, made)
    named = {one.name for _, one in decision.named}
    has_slow = bool((table[table["design"].isin(named)]["access_ns"] > period).any())
    assert ("longest access [cycles]" in html.unescape(decision_page(decision, made))) == has_slow
    assert ("access_cycles" in decision.table) == has_slow
    fast = ordered[ordered["access_ns"] <= period]
    warned = " ".join(one.text for one in made if one.topic == CHOICE)
    if ordered["access_ns"].iloc[0] <= period:
        assert "Warning" not in warned
    elif fast.empty:
        assert "All compared designs have such memories." in warned
    else:
        best = fast.iloc[0]
        excess = best["edp_pj_cycles"] / ordered["edp_pj_cycles"].iloc[0] - 1
        assert f"without such memories, {best['design']} has the least EDP: {excess:.1%} more than that of" in warned


def test_the_printed_commands_show_the_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning of `decide` names a command that prints the same words on the access time."""
    path = tmp_path / "made.yaml"
    path.write_text(yaml.safe_dump(keys("1 GHz")))
    tilewright.explore(path, tmp_path / "out")
    found = tilewright.decide(tmp_path / "out", advice=False)
    (warning,) = (one for one in found.statements if one.topic == CHOICE and one.text.startswith("Warning"))
    words = re.search(r"an access takes [\d.]+ ns, [^)]* ns", warning.text)
    assert words is not None
    for command in warning.commands:
        capsys.readouterr()
        assert main(command.split()[1:]) == 0
    assert words[0] in capsys.readouterr().err


def test_access_times_of_cores_and_systems(tmp_path: Path) -> None:
    """Memories without a known access time are left out; in a system they have the name of their core."""
    (core,) = parse_accelerator(base()).cores
    (one,) = core_access_times(core)
    assert one == AccessTime("memory", expected_ns(64, "hp"), 1.25)
    assert access_times(core, None)[0].is_slow is False
    own = {key: value for key, value in base(None).items() if key != "name"} | {"name": "own"}
    system = read(tmp_path, connected(2, ["0, 1"], clock_frequency="800 MHz"), small=own, dram=offchip())
    assert system_access_times(system) == (AccessTime("own.memory", expected_ns(64, "hp"), 1.25),)
