"""Axes that change no cost: named if and only if area, power and energies stay equal along them."""

from typing import Any

import pytest
from tilewright.designs.answer import answer_of
from tilewright.designs.decision import decision_of
from tilewright.designs.decision_trials import free_statements
from tilewright.designs.explore import explored
from tilewright.designs.free_axes import free_axes, free_sentence, with_free_axes
from tilewright.designs.space import Space
from tilewright.designs.space_reader import read_space
from tilewright.designs.tables import answer_text

from tests.unit.designs.decision_cases import commands_of
from tests.unit.designs.test_slow_memories import keys

WIDTH = ["memories.memory.ports.r_port_1.bandwidth_max", "memories.memory.ports.w_port_1.bandwidth_max"]
AXES: dict[str, dict[str, Any]] = {
    "library_size": {"path": "memories.memory.size", "values": ["64 KiB", "128 KiB"]},
    "library_width": {"path": WIDTH, "values": [64, 128]},
    "lanes": {"path": "operational_array.sizes.0", "values": [4, 8]},
    "unit_energy": {"path": "operational_array.unit_energy", "values": [0.5, 1]},
    "word_energy": {"path": "memories.register.r_cost", "values": [0.1, 0.2]},
    "leakage": {"path": "memories.memory.leakage", "values": ["1 mW", "2 mW"]},
    "clock": {"path": "clock_frequency", "values": ["400 MHz", "800 MHz"]},
    "width": {"path": "memories.register.ports.r_port_1.bandwidth_max", "values": [8, 16]},
    "size": {"path": "memories.register.size", "values": [16, 32]},
}
FREE = {"clock", "width", "size"}
CELLS = {"path": "memories.memory.cost.cells", "values": ["hp", "lstp"]}


def source_of(name: str) -> dict[str, Any]:
    """Return a space of two axes: the named axis, and the kind of cells, which changes costs."""
    source = keys(axes={name: AXES[name], "cells": CELLS}, laws={})
    if name == "leakage":
        source["accelerator"]["memories"]["memory"]["leakage"] = "1 mW"
    return source


@pytest.mark.parametrize("name", AXES)
def test_only_axes_without_a_cost_are_named(name: str) -> None:
    """`free_axes` names exactly the axes without a cost, and lists their values, for each design of a space."""
    space: Space = read_space(source_of(name))
    for index in range(len(space)):
        found = list(free_axes(space, index))
        assert [one.name for one in found] == ([name] if name in FREE else [])
        for one in found:
            own = space.design(index).values[name]
            assert one.value == own
            assert {*one.others, own} == {*AXES[name]["values"]}


def test_without_an_area_nothing_is_said() -> None:
    """No axis is named if the area is unknown."""
    source = source_of("clock")
    source["accelerator"]["operational_array"].pop("unit_area")
    assert list(free_axes(read_space(source), 0)) == []


def test_explore_and_decide_say_it() -> None:
    """The summary of `explore` and a statement of `decide` have the sentence on free axes."""
    source = source_of("clock")
    space = read_space(source)
    answer = with_free_axes(space, answer_of(explored(source, space, 1, lambda count: None)))
    decision = decision_of(answer, "EDP")
    (statement,) = free_statements(decision, space, commands_of(answer))
    index = int(answer.overall.rows.set_index("design").loc[decision.choice.name, "index"])
    (axis,) = free_axes(space, index)
    assert statement.text == free_sentence(axis, decision.choice.name, answer.overall, decision.objective)
    assert f"The value {axis.value} of {decision.choice.name} is therefore chosen without a price" in statement.text
    assert answer.free_notes == (statement.text,)
    assert statement.text in answer_text(answer)
