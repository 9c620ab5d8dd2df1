"""Notices on values that `explore` and `decide` propose, such as a bandwidth that one DRAM part does not have."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tilewright.base.errors import Caution, InputError, Remark
from tilewright.base.json_values import JsonObject
from tilewright.designs.answer import Answer
from tilewright.designs.axis_ends import AxisEnd, axis_ends
from tilewright.designs.effects import best_designs
from tilewright.designs.results import value_text
from tilewright.designs.space import Axis, Space, Value
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.text_edits import with_values

_OF_COSTS = ".cost: "
"""Text between the path and the message of a notice on the costs of a memory."""


def with_proposed_values(space: Space, answer: Answer) -> Answer:
    """Answer with sentences on proposed values for which the hardware file of a best design gets a new notice on costs,
    or a caution.
    """
    best = dict(best_designs(answer.overall))
    ends = axis_ends(answer.overall, answer.exploration.axis_values, answer.failures) if best else ()
    of_best = ((end, int(best[end.measure]["index"])) for end in ends if end.measure in best)
    return replace(answer, proposal_notes=tuple(dict.fromkeys(proposal_sentences(space, of_best))))


def proposal_sentences(space: Space, ends: Iterable[tuple[AxisEnd, int]]) -> Iterator[str]:
    """Sentences on the values that follow the ends of axes, if the hardware file gets a new notice with them. `ends`
    has pairs (end of an axis, index of the design in whose hardware file the values are set)."""
    axes = {axis.name: (place, axis) for place, axis in enumerate(space.axes)}
    for end, index in ends:
        place, axis = axes[end.axis]
        if any(place in law.formula.axes for law in space.laws):
            continue
        hardware = space.design(index).hardware
        for value in end.following:
            for notice in new_notices(hardware, _settings(axis, value)):
                yield f"Axis {axis.name}, proposed value {value_text(value)}: {notice}."


def new_notices(hardware: JsonObject, settings: Iterable[tuple[Any, Any]]) -> list[str]:
    """Notices on costs, and cautions, that a hardware file gets if the values in `settings` are set."""
    known = _notices(hardware)
    return [notice for notice in _notices(with_values(hardware, [*settings])) if notice not in known]


def _settings(axis: Axis, value: Value) -> list[tuple[Any, Value]]:
    """Changes that set a new value at the paths at which the axis sets its own values; [] if it sets other values."""
    are_own = all(set_value == axis.values[0] for _, set_value in axis.settings[0])
    return [(path, value) for path, _ in axis.settings[0]] if are_own else []


def _notices(hardware: JsonObject) -> list[str]:
    """Notices on costs of memories, and cautions, on the hardware file of a design, without remarks; [] if the file is
    not valid."""
    notices: list[str] = []
    try:
        parse_accelerator(hardware, notices)
    except InputError:
        return []
    told = [notice for notice in notices if _OF_COSTS in notice or isinstance(notice, Caution)]
    return [notice for notice in told if not isinstance(notice, Remark)]
