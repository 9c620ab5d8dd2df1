"""Static powers by part: texts on the parts of runs and designs with a static power, and on the parts without one."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tilewright.base.errors import some_of


class StaticParts(NamedTuple):
    """Parts of the hardware of a run or of a design. All fields are empty if the parts are not known."""

    counted: tuple[str, ...] = ()
    """Parts with a static power above 0."""
    zero: tuple[str, ...] = ()
    """Parts with a static power of 0 in the hardware file."""
    not_given: tuple[str, ...] = ()
    """Parts without a static power in the hardware file; their static power counts as 0."""


NO_PARTS = StaticParts()


def static_parts_of(fields: Mapping[str, Any]) -> StaticParts:
    """Parts in a summary (`hardware.static_power.static_power_fields`). A summary that is older than the field has no
    parts."""
    parts = fields.get("static_power_parts", {})
    return StaticParts(*(tuple(parts.get(kind, ())) for kind in StaticParts._fields))


def parts_text(parts: StaticParts) -> str:
    """Text on the parts with a static power above 0, with a given power of 0, and without a given power; '' if all
    parts have a static power above 0, or if the parts are not known.
    """
    if not parts.zero and not parts.not_given:
        return ""
    named = (("of", parts.counted), ("given as 0 for", parts.zero), ("not given for", parts.not_given))
    return "; ".join(f"{words} {some_of(names)}" for words, names in named if names)


def uneven_parts(parts_of: Mapping[str, StaticParts]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs (name of a run or design, texts on parts). These parts have no static power in this run or design, but have
    a static power in another run or design. Each text has the part and the reason, as in `sram (not given)`. `parts_of`
    has the parts of all runs or designs by name.
    """
    counted = {part for parts in parts_of.values() for part in parts.counted}
    for name, parts in parts_of.items():
        reasons = dict.fromkeys(parts.zero, "given as 0") | dict.fromkeys(parts.not_given, "not given")
        if found := tuple(f"{part} ({why})" for part, why in reasons.items() if part in counted):
            yield name, found
