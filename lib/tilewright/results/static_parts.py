"""Static powers by part: texts on the parts of runs and designs with a static power, and on the parts without one."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tilewright.base.errors import some_of


class StaticParts(NamedTuple):
    """Parts of the hardware of a run or of a design. Both fields are empty if no part has a static power, or if the
    parts are not known."""

    counted: tuple[str, ...] = ()
    """Parts with a static power above 0."""
    zero: tuple[str, ...] = ()
    """Parts without a static power, or with a static power of 0."""


NO_PARTS = StaticParts()


def static_parts_of(fields: Mapping[str, Any]) -> StaticParts:
    """Parts in a summary (`hardware.static_power.static_power_fields`). A summary that is older than the field has no
    parts."""
    parts = fields.get("static_power_parts", {})
    return StaticParts(tuple(parts.get("counted", ())), tuple(parts.get("zero", ())))


def parts_text(parts: StaticParts) -> str:
    """Text on the parts with a static power and the parts without one; '' if all parts have a static power, or if the
    parts are not known.
    """
    return f"of {some_of(parts.counted)}; none, or 0, is given for {some_of(parts.zero)}" if parts.zero else ""


def uneven_parts(parts_of: Mapping[str, StaticParts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs (name of a run or design, parts). These parts have no static power in this run or design, but have a static
    power in another run or design. `parts_of` has the parts of all runs or designs by name.
    """
    counted = {part for parts in parts_of.values() for part in parts.counted}
    for name, parts in parts_of.items():
        if found := tuple(part for part in parts.zero if part in counted):
            yield name, found
