"""Notices on doubtful values that `explore` and `decide` propose, such as a bandwidth that no single DRAM part has."""

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
    """Answer with sentences on doubtful proposed values. A proposed value is doubtful if the hardware file of a best
    design gets a caution or a new notice on costs with this value.
    """
    best = dict(best_designs(answer.overall))
    ends = axis_ends(answer.overall, answer.exploration.axis_values, answer.failures) if best else ()
    of_best = ((end, int(best[end.measure]["index"])) for end in ends if end.measure in best)
    return replace(answer, proposal_notes=tuple(proposal_sentences(space, of_best)))


def proposal_sentences(space: Space, ends: Iterable[tuple[AxisEnd, int]]) -> Iterator[str]:
    """Sentences on doubtful values beyond the end of an axis. A value is doubtful if the hardware file gets a new
    notice with this value. `ends` has pairs (end of an axis, index of a design). The values are set in the hardware
    file of this design. A sentence names all designs with the same notice.
    """
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    axes = {axis.name: (place, axis) for place, axis in enumerate(space.axes)}
    for end, index in ends:
        place, axis = axes[end.axis]
        if any(place in law.formula.axes for law in space.laws):
            continue
        hardware = space.design(index).hardware
        for value in end.following:
            for notice in new_notices(hardware, _settings(axis, value)):
                key = (axis.name, value_text(value), notice)
                found.setdefault(key, {})[space.design_name(index)] = None
    for (name, text, notice), designs in found.items():
        yield f"Axis {name}, proposed value {text} instead of the value of {' or '.join(designs)}: {notice}."


def new_notices(hardware: JsonObject, settings: Iterable[tuple[Any, Any]]) -> list[str]:
    """New notices on costs and new cautions for a hardware file, after the values in `settings` are set."""
    known = _notices(hardware)
    return [notice for notice in _notices(with_values(hardware, [*settings])) if notice not in known]


def _settings(axis: Axis, value: Value) -> list[tuple[Any, Value]]:
    """Changes that write a new value of the axis to all paths of the axis. [] if the axis writes values that differ
    from its listed values, as an axis of choices does.
    """
    are_own = all(set_value == axis.values[0] for _, set_value in axis.settings[0])
    return [(path, value) for path, _ in axis.settings[0]] if are_own else []


def _notices(hardware: JsonObject) -> list[str]:
    """Notices on the hardware file of a design: notices on costs of memories, and cautions. Remarks are left out. [] if
    the file is not valid."""
    notices: list[str] = []
    try:
        parse_accelerator(hardware, notices)
    except InputError:
        return []
    told = [notice for notice in notices if _OF_COSTS in notice or isinstance(notice, Caution)]
    return [notice for notice in told if not isinstance(notice, Remark)]
