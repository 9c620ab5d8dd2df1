"""Check of all axis values: for each value, the first design of the space is built with only this value changed."""

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
    """Axis value that makes the first design of the space an invalid accelerator."""

    axis: str
    value: Value
    reason: str


class DoubtfulValue(NamedTuple):
    """Value of an axis with which the first design of the space gets a caution, such as a clock of 0.7 MHz."""

    axis: str
    value: Value
    caution: str


class TriedValues(NamedTuple):
    """Outcome of the check of a space."""

    built: int
    """Number of designs that were built."""
    failed: tuple[FailedValue, ...]
    doubtful: tuple[DoubtfulValue, ...] = ()
    of_first: tuple[str, ...] = ()
    """Cautions on the first design."""


def tried_values(space: Space) -> TriedValues:
    """Outcome of building the designs that differ from the first allowed design in the value of one axis. Designs that
    constraints exclude, and designs that a design sheet does not have, are left out.
    """
    built, failed, doubtful = 0, [], []
    first = space.first_allowed()
    of_first = () if first is None else _checked(space.design(first).hardware, space.is_of_systems).cautions
    for axis, value, index in _neighbours(space):
        if built == MOST_BUILT:
            break
        design = space.design(index)
        if design.excluded_by:
            continue
        built += 1
        reason, cautions = _checked(design.hardware, space.is_of_systems)
        if reason := design.problem or reason:
            failed.append(FailedValue(axis, value, reason))
        doubtful += [DoubtfulValue(axis, value, one) for one in cautions if one not in of_first]
    return TriedValues(built, tuple(failed), tuple(doubtful), of_first)


def value_cautions(space: Space) -> Iterator[str]:
    """Cautions on values that make the first design invalid, one caution for each axis. Cautions on numbers follow
    (`number_cautions`).
    """
    found = tried_values(space)
    built, failed = found.built, found.failed
    for axis in dict.fromkeys(one.axis for one in failed):
        own = [one for one in failed if one.axis == axis]
        values = ", ".join(value_word(one.value) for one in own)
        first = f"reason for {value_word(own[0].value)}: {own[0].reason}"
        yield Caution(
            f"{space.file} axes.{axis}: the first design of the space is invalid with {values} ({first}); of"
            f" {len(space):,} designs, the check built {count_of(built, 'design')} that {_differs(built)} from the"
            " first in one value"
        )
    yield from number_cautions(space, found)


def number_cautions(space: Space, found: TriedValues | None = None) -> Iterator[str]:
    """Cautions on numbers of the first design, and on numbers that a value of an axis sets. `found` is the outcome of
    the check of the space, if it is known already. If several values of an axis have a caution on the same number, only
    the first caution is given, with the number of the other values."""
    index = space.first_allowed()
    if index is None:
        return
    if space.rows is not None:
        yield from _cautions_of_rows(space)
        return
    found = found or tried_values(space)
    for caution in found.of_first:
        yield Caution(f"{space.file} design {space.design_name(index)}: {caution}")
    groups: dict[tuple[str, str], list[DoubtfulValue]] = {}
    for one in found.doubtful:
        groups.setdefault((one.axis, one.caution.partition(": ")[0]), []).append(one)
    for (axis, _), (first, *others) in groups.items():
        values = dict.fromkeys(value_word(one.value) for one in others if one.value != first.value)
        more = f" (and with {', '.join(values)})" if values else ""
        yield Caution(f"{space.file} axes.{axis}: with {value_word(first.value)}{more}: {first.caution}")


def _cautions_of_rows(space: Space) -> Iterator[str]:
    """Cautions on numbers in the designs of a design sheet. Each caution names the first design to which it applies,
    and states how many other designs it applies to."""
    designs_of: dict[str, list[str]] = {}
    for index in range(min(len(space), MOST_BUILT)):
        design = space.design(index)
        if not design.excluded_by and not design.problem:
            for caution in _checked(design.hardware, space.is_of_systems).cautions:
                designs_of.setdefault(caution, []).append(space.design_name(index))
    for caution, (first, *others) in designs_of.items():
        more = f" (and {count_of(len(others), 'other design')})" if others else ""
        yield Caution(f"{space.file} design {first}{more}: {caution}")


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


class _Check(NamedTuple):
    """Outcome of reading the hardware file of a design."""

    reason: str
    """Reason why the file is not a valid accelerator; '' if the file is valid."""
    cautions: tuple[str, ...]


def _checked(hardware: JsonObject, is_of_systems: bool) -> _Check:
    """Outcome of reading the hardware file of a design."""
    notices: list[str] = []
    try:
        accelerator_of(hardware, is_of_systems, notices)
    except InputError as error:
        return _Check(reason_of(error), ())
    return _Check("", tuple(dict.fromkeys(one for one in notices if isinstance(one, Caution))))
