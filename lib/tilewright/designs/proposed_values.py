"""Notices on values that `explore` proposes for an axis, such as a bandwidth that one DRAM part does not have."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tilewright.base.errors import InputError, Remark
from tilewright.base.json_values import JsonObject
from tilewright.designs.answer import Answer
from tilewright.designs.axis_ends import axis_ends
from tilewright.designs.effects import best_designs
from tilewright.designs.results import value_text
from tilewright.designs.space import Axis, Space, Value
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.text_edits import with_values

_OF_COSTS = ".cost: "
"""Text between the path and the message of a notice on the costs of a memory."""


def with_proposed_values(space: Space, answer: Answer) -> Answer:
    """Answer with sentences on proposed values for which the hardware file of a best design gets a new notice on
    costs.
    """
    return replace(answer, proposal_notes=tuple(dict.fromkeys(_sentences(space, answer))))


def _sentences(space: Space, answer: Answer) -> Iterator[str]:
    best = dict(best_designs(answer.overall))
    axes = {axis.name: (place, axis) for place, axis in enumerate(space.axes)}
    for end in axis_ends(answer.overall, answer.exploration.axis_values, answer.failures) if best else ():
        place, axis = axes[end.axis]
        if any(place in law.formula.axes for law in space.laws) or end.measure not in best:
            continue
        hardware = space.design(int(best[end.measure]["index"])).hardware
        known = _notices(hardware)
        for value in end.following:
            for notice in _notices(with_values(hardware, _settings(axis, value))):
                if notice not in known:
                    yield f"Axis {axis.name}, proposed value {value_text(value)}: {notice}."


def _settings(axis: Axis, value: Value) -> list[tuple[Any, Value]]:
    """Changes that set a new value at the paths at which the axis sets its own values; [] if it sets other values."""
    are_own = all(set_value == axis.values[0] for _, set_value in axis.settings[0])
    return [(path, value) for path, _ in axis.settings[0]] if are_own else []


def _notices(hardware: JsonObject) -> list[str]:
    """Notices on costs of memories in the hardware file of a design, without remarks; [] if the file is not valid."""
    notices: list[str] = []
    try:
        parse_accelerator(hardware, notices)
    except InputError:
        return []
    return [notice for notice in notices if _OF_COSTS in notice and not isinstance(notice, Remark)]
