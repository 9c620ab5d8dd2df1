"""Check of the values of each axis, one at a time: the first design of a space is built with each value."""

from collections.abc import Iterator
from typing import NamedTuple

from tilewright.base.errors import Caution, InputError, count_of
from tilewright.base.json_values import JsonObject
from tilewright.designs.design_cost import reason_of
from tilewright.designs.design_evaluator import accelerator_of
from tilewright.designs.laws import Value, value_word
from tilewright.designs.space import Space

MOST_BUILT = 400
"""Largest number of designs that are built. If the axes have more values, the further values are not checked."""


class FailedValue(NamedTuple):
    """Value of an axis with which the first design of the space is not a valid accelerator."""

    axis: str
    value: Value
    reason: str


class TriedValues(NamedTuple):
    """Outcome of the check of a space."""

    built: int
    """Number of designs that were built."""
    failed: tuple[FailedValue, ...]


def tried_values(space: Space) -> TriedValues:
    """Outcome of building the designs that differ from the first allowed design in the value of one axis. Designs that
    constraints exclude, and designs that a design sheet does not have, are left out.
    """
    built, failed = 0, []
    for axis, value, index in _neighbours(space):
        if built == MOST_BUILT:
            break
        design = space.design(index)
        if design.excluded_by:
            continue
        built += 1
        if reason := design.problem or _reason(design.hardware, space.is_of_systems):
            failed.append(FailedValue(axis, value, reason))
    return TriedValues(built, tuple(failed))


def value_cautions(space: Space) -> Iterator[str]:
    """Cautions on the values of each axis with which the first design is not valid, one for each axis."""
    built, failed = tried_values(space)
    for axis in dict.fromkeys(one.axis for one in failed):
        own = [one for one in failed if one.axis == axis]
        values = ", ".join(value_word(one.value) for one in own)
        first = f"reason for {value_word(own[0].value)}: {own[0].reason}"
        yield Caution(
            f"{space.file} axes.{axis}: the first design of the space is invalid with {values} ({first}); of"
            f" {len(space):,} designs, the check built {count_of(built, 'design')} that {_differs(built)} from the"
            " first in one value"
        )


def _differs(count: int) -> str:
    return "differs" if count == 1 else "differ"


def _neighbours(space: Space) -> Iterator[tuple[str, Value, int]]:
    """Triples (axis, value, index of a design): the designs of the space that differ from the first allowed design only
    in this value of this axis.
    """
    first = space.first_allowed()
    if first is None:
        return
    for place, axis in enumerate(space.axes):
        for value, index in space.along(first, place):
            yield axis.name, value, index


def _reason(hardware: JsonObject, is_of_systems: bool) -> str:
    """Reason why the hardware file of a design is not a valid accelerator; '' if it is one."""
    try:
        accelerator_of(hardware, is_of_systems)
    except InputError as error:
        return reason_of(error)
    return ""
