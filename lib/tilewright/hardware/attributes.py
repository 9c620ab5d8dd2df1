"""Attributes: additional numbers of memories, arrays and cores, each declared once.

The declaration defines a key of hardware files, and a figure of the memory, array or core in artifacts. An attribute
that is a power also adds to an energy term that grows with time. Plug-ins enter their attributes in `ENTERED` under a
name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, get_args

from tilewright.base.errors import InputError, Problem
from tilewright.base.registry import Registry

Owner = Literal["memory", "array", "core"]
Quantity = Literal["power_mw", "energy_pj", "count", "number"]
Figures = tuple[tuple[str, float], ...]
"""Pairs (field of an attribute, value), sorted by name. Attributes that have their default value are left out."""


@dataclass(frozen=True)
class Attribute:
    """Attribute: an additional number of each memory, of the array, or of the core."""

    key: str
    """Key of the attribute in hardware files."""
    of: Owner
    field: str
    """Name of the number in artifacts, with its unit."""
    quantity: Quantity
    """Allowed values: a power or energy with its unit, a whole number, or any number that is not negative."""
    sentence: str
    """Description of the number, for documentation and schema."""
    default: float = 0.0
    term: str = ""
    """Energy term that includes this power; '' if the attribute is in no energy term. An attribute with an energy term
    is a static power: hardware draws it in every cycle, busy or idle.
    """


LEAKAGE = Attribute(
    "leakage",
    "memory",
    "leakage_mw",
    "power_mw",
    "Static power of one instance, in mW (or `20 uW`): what it draws in each cycle, used or not.",
    term="leakage",
)
UNIT_LEAKAGE = Attribute(
    "unit_leakage",
    "array",
    "unit_leakage_mw",
    "power_mw",
    "Static power of one unit, in mW (or `3 nW`).",
    term="leakage",
)
BUILT_IN = (LEAKAGE, UNIT_LEAKAGE)


def _fault(name: str, entry: object) -> str:
    """Reason why an attribute of a plug-in is invalid by itself; '' if it is valid. `attributes` finds conflicts
    between attributes.
    """
    if not isinstance(entry, Attribute):
        return f"is a {type(entry).__name__}, not an Attribute"
    if entry.of not in get_args(Owner):
        return f"is of {entry.of!r}; allowed: {', '.join(get_args(Owner))}"
    if entry.quantity not in get_args(Quantity):
        return f"has the quantity {entry.quantity!r}; allowed: {', '.join(get_args(Quantity))}"
    if entry.term and entry.quantity != "power_mw":
        return f"belongs to the energy term {entry.term!r}, which needs a power, not {entry.quantity}"
    if entry.term and entry.default:
        return (
            f"is a power with the default {entry.default:g}; the default of a power must be 0, as files must state it"
        )
    return ""


ENTERED: Registry[Attribute] = Registry(__name__, _fault)
"""Attributes of plug-ins."""


def attributes(owner: Owner | None = None) -> tuple[Attribute, ...]:
    """Attributes of one owner, or of all owners if `owner` is None; built-in attributes come first.

    Raises InputError if two attributes of one owner have the same key or the same field.
    """
    known = _checked(tuple(ENTERED[name] for name in ENTERED.names))
    return tuple(one for one in known if owner in (None, one.of))


@cache
def _checked(others: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    """All attributes, built-in ones first. Raises InputError if two attributes of one owner have the same key or
    field."""
    problems = []
    known = list(BUILT_IN)
    for attribute in others:
        for one in known:
            if one.of == attribute.of and (one.key == attribute.key or one.field == attribute.field):
                what = f"the key {one.key!r}" if one.key == attribute.key else f"the field {one.field!r}"
                problems.append(Problem(f"has {what}, which another attribute has", f"attribute of a {one.of}"))
        known.append(attribute)
    if problems:
        raise InputError(problems)
    return tuple(known)


def power_terms() -> tuple[str, ...]:
    """Energy terms that attributes define, in the order in which they are added."""
    return tuple(dict.fromkeys(one.term for one in attributes() if one.term))


def figures_of(owner: Owner, given: Mapping[str, Any]) -> Figures:
    """Figures of a memory, array or core. `given` has the values in the hardware file, by key. A value of None stands
    for the default.
    """
    found = {
        one.field: given[one.key]
        for one in attributes(owner)
        if given.get(one.key) is not None and given[one.key] != one.default
    }
    return tuple(sorted(found.items()))


def figure(attribute: Attribute, figures: Figures) -> float:
    """Value of an attribute in `figures`, the figures of a memory, array or core. If `figures` lacks the attribute, the
    result is its default.
    """
    return dict(figures).get(attribute.field, attribute.default)


def _fields(owner: Owner) -> tuple[str, ...]:
    return tuple(one.field for one in attributes(owner))


def spread(owner: Owner) -> dict[str, Any]:
    """Metadata of a dataclass field that holds figures. Artifacts then write each figure as a key beside the other
    fields."""
    return {"spread": partial(_fields, owner)}
