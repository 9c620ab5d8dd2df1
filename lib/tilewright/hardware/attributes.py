"""Attributes: additional numbers of memories, arrays and cores, each declared once.

Each declaration defines a key of hardware files, and a field of the memory, array or core in artifacts. An attribute
with an energy term (`term`) is a static power. The energy of this power grows with time, and is part of the term.
Plug-ins enter their attributes in `ENTERED` under a name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, get_args

from tilewright.base.errors import InputError, Problem
from tilewright.base.registry import Registry

Owner = Literal["memory", "array", "core"]
OWNER_WORDS: dict[Owner, str] = {"memory": "a memory", "array": "the array", "core": "a core"}
"""Owner of an attribute -> its text in messages."""
Quantity = Literal["power_mw", "energy_pj", "size_bits", "count", "number"]
Figures = tuple[tuple[str, float], ...]
"""Pairs (field of an attribute, value), sorted by name. Attributes that have their default value are left out."""


@dataclass(frozen=True)
class Attribute:
    """Attribute: an additional number that tilewright or a plug-in declares for memories, the array, or the core."""

    key: str
    """Key of the attribute in hardware files."""
    of: Owner
    field: str
    """Name of the number in artifacts, with its unit."""
    quantity: Quantity
    """Kind of the number: a power, energy or size with its unit, a whole number, or any number that is not negative."""
    sentence: str
    """Description of the number, for documentation and schema."""
    default: float = 0.0
    term: str = ""
    """Energy term that contains the energy of this power; '' if there is no such term. An attribute with an energy term
    is a static power: hardware draws it in every cycle, busy or idle."""


LEAKAGE = Attribute(
    "leakage",
    "memory",
    "leakage_mw",
    "power_mw",
    "Static power of one instance, in mW (or `20 uW`). The instance draws this power in every cycle, busy or idle.",
    term="leakage",
)
UNIT_LEAKAGE = Attribute(
    "unit_leakage",
    "array",
    "unit_leakage_mw",
    "power_mw",
    "Static power of one unit of the array, in mW (or `3 nW`).",
    term="leakage",
)
UNIT_ENERGY_BITS = Attribute(
    "unit_energy_bits",
    "array",
    "unit_energy_bits",
    "count",
    "Bits of the operands for which `unit_energy` holds. The energy is not scaled: a note names layers whose operands"
    " have other bits. Default: not given, so no note.",
)
CALL_CYCLES = Attribute(
    "call_cycles",
    "core",
    "call_cycles",
    "number",
    "Cycles that the host needs to issue one call. A call computes the loops that every operand keeps below its"
    " outermost memory. Each call loads the inputs of these loops anew.",
)
CALLS_IN_FLIGHT = Attribute(
    "calls_in_flight", "core", "calls_in_flight", "count", "Number of calls that the core works on at the same time."
)
START_CYCLES = Attribute(
    "start_cycles",
    "core",
    "start_cycles",
    "number",
    "Cycles that the host needs for each layer before it issues the first call. The core does nothing meanwhile.",
)
CALL_KEYS = (CALL_CYCLES, CALLS_IN_FLIGHT)
"""Attributes of calls, with which a host starts work on a core. The model considers calls only for a core with at least
one of these attributes.
"""
COMMAND_ITERATIONS = Attribute(
    "command_iterations",
    "array",
    "command_iterations",
    "count",
    "Largest number of iterations that one command of the array covers, in the loops over `command_dimensions`.",
)
LEAST_COMMAND = Attribute(
    "least_command_cycles",
    "array",
    "least_command_cycles",
    "number",
    "Smallest number of cycles for which one command occupies the array. Needs `command_iterations`.",
)
COMMAND_LATENCY = Attribute(
    "command_latency_cycles",
    "array",
    "command_latency_cycles",
    "number",
    "Cycles from the issue of a command to its end, minus the cycles for which the command occupies the array. The"
    " remaining cycles include queues, and the filling and draining of the array. Needs `commands_in_flight`.",
)
COMMANDS_IN_FLIGHT = Attribute(
    "commands_in_flight",
    "array",
    "commands_in_flight",
    "count",
    "Number of commands that the array works on at the same time. Needs `command_latency_cycles`.",
)
QUEUED_COMMANDS = Attribute(
    "queued_commands",
    "array",
    "queued_commands",
    "count",
    "Number of commands that a queue holds. A call makes room for the next call as soon as its requests are sent and"
    " its last commands are in the queue. Default: 0, so a call makes room when it has ended. Needs"
    " `command_iterations`, and `calls_in_flight` of the core.",
)
REQUEST_LATENCY = Attribute(
    "request_latency_cycles",
    "memory",
    "request_latency_cycles",
    "number",
    "Cycles from a request to the arrival of its data, if no cache has the data. Needs `requests_in_flight` and"
    " `burst`.",
)
REQUESTS_IN_FLIGHT = Attribute(
    "requests_in_flight",
    "memory",
    "requests_in_flight",
    "count",
    "Number of requests that wait for their data at the same time. Needs `request_latency_cycles`.",
)
BURST = Attribute(
    "burst",
    "memory",
    "burst_bits",
    "size_bits",
    "Size of a request, in bits (or `64 B`). Each request begins at a multiple of this size. Needs"
    " `request_latency_cycles`.",
)
WORD_CYCLES = Attribute(
    "word_cycles",
    "memory",
    "word_cycles",
    "number",
    "Cycles for which each word on the port delays the following requests. With 1, requests wait until the data before"
    " them have moved. Default: 0, so data move while requests wait. Needs `request_latency_cycles`.",
)
STORE_LATENCY = Attribute(
    "store_latency_cycles",
    "memory",
    "store_latency_cycles",
    "number",
    "Cycles from a request that stores outputs to the answer of the first cache. Needs `caches`.",
)
STORE_BURST = Attribute(
    "store_burst",
    "memory",
    "store_burst_bits",
    "size_bits",
    "Size of a request that stores outputs, in bits (or `16 B`). Default: `burst`. Needs `store_latency_cycles`.",
)
LINE = Attribute(
    "line",
    "memory",
    "line_bits",
    "size_bits",
    "Size of a line of the caches, in bits (or `64 B`). A load of a part of a line brings the whole line into a cache."
    " Needs `caches` and `row_dimensions`.",
)
PAGE = Attribute(
    "page",
    "memory",
    "page_bits",
    "size_bits",
    "Size of a page of addresses or of a row of the memory, in bits (or `4 KiB`). Needs `page_cycles`.",
)
PAGE_CYCLES = Attribute(
    "page_cycles",
    "memory",
    "page_cycles",
    "number",
    "Cycles for which the first request to a page delays all other requests. Needs `page`.",
)
COMMAND_KEYS = (COMMAND_ITERATIONS, LEAST_COMMAND, COMMAND_LATENCY, COMMANDS_IN_FLIGHT, QUEUED_COMMANDS)
"""Attributes of the commands of an array."""
REQUEST_KEYS = (
    *(REQUEST_LATENCY, REQUESTS_IN_FLIGHT, BURST, WORD_CYCLES),
    *(STORE_LATENCY, STORE_BURST, LINE, PAGE, PAGE_CYCLES),
)
"""Attributes of the requests to a memory."""
WAITING = (
    *(START_CYCLES, *CALL_KEYS),
    *COMMAND_KEYS,
    *REQUEST_KEYS,
)
"""Attributes from which the waiting terms of the latency follow (`cost.waiting`)."""
BUILT_IN = (LEAKAGE, UNIT_LEAKAGE, UNIT_ENERGY_BITS, *WAITING)


def _fault(name: str, entry: object) -> str:
    """Reason why the attribute of a plug-in is invalid by itself; '' if it is valid. `attributes` finds conflicts
    between attributes."""
    if not isinstance(entry, Attribute):
        return f"is a {type(entry).__name__}, not an Attribute"
    if entry.of not in get_args(Owner):
        return f"belongs to {entry.of!r}; allowed: {', '.join(get_args(Owner))}"
    if entry.quantity not in get_args(Quantity):
        return f"has the quantity {entry.quantity!r}; allowed: {', '.join(get_args(Quantity))}"
    if entry.term and entry.quantity != "power_mw":
        return f"belongs to the energy term {entry.term!r}, which needs a power, not {entry.quantity}"
    if entry.term and entry.default:
        return f"is a power, so its default must be 0, not {entry.default:g}: only a hardware file can give a power"
    return ""


ENTERED: Registry[Attribute] = Registry(__name__, _fault)
"""Attributes of plug-ins."""


def attributes(owner: Owner | None = None) -> tuple[Attribute, ...]:
    """Attributes of one owner (memory, array or core), or of all owners if `owner` is None. Built-in attributes come
    first.

    Raises InputError if two attributes of one owner have the same key or the same field.
    """
    known = _checked(tuple(ENTERED[name] for name in ENTERED.names))
    return tuple(one for one in known if owner in (None, one.of))


@cache
def _checked(others: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    """Attributes of all owners: the built-in ones, then `others`, which are the attributes of plug-ins. Raises
    InputError if two attributes of one owner have the same key or the same field."""
    problems = []
    known = list(BUILT_IN)
    for attribute in others:
        for one in known:
            if one.of == attribute.of and (one.key == attribute.key or one.field == attribute.field):
                what = f"the key {one.key!r}" if one.key == attribute.key else f"the field {one.field!r}"
                path = f"attribute of {OWNER_WORDS[one.of]}"
                problems.append(Problem(f"has {what}, which another attribute already has", path))
        known.append(attribute)
    if problems:
        raise InputError(problems)
    return tuple(known)


def power_terms() -> tuple[str, ...]:
    """Energy terms that attributes define, in the order in which they are added."""
    return tuple(dict.fromkeys(one.term for one in attributes() if one.term))


def figures_of(owner: Owner, given: Mapping[str, Any]) -> Figures:
    """Pairs (field, value) of the attributes of a memory, array or core (`owner`). `given` has the values in the
    hardware file, by key. Attributes with their default value are left out. None in `given` stands for the default."""
    found = {
        one.field: given[one.key]
        for one in attributes(owner)
        if given.get(one.key) is not None and given[one.key] != one.default
    }
    return tuple(sorted(found.items()))


def gives_zero_power(owner: Owner, given: Mapping[str, Any]) -> bool:
    """True if `given`, the values of a memory, array or core by key, has a static power and all its static powers are
    0."""
    powers = [given[one.key] for one in attributes(owner) if one.term and given.get(one.key) is not None]
    return bool(powers) and not any(powers)


def figure(attribute: Attribute, figures: Figures) -> float:
    """Value of an attribute in `figures`, the attributes of a memory, array or core. An attribute that `figures` lacks
    has its default value."""
    return dict(figures).get(attribute.field, attribute.default)


def _fields(owner: Owner) -> tuple[str, ...]:
    return tuple(one.field for one in attributes(owner))


def spread(owner: Owner) -> dict[str, Any]:
    """Metadata of a dataclass field that holds the attributes of `owner`. In artifacts, each attribute has a separate
    key, beside the other fields.
    """
    return {"spread": partial(_fields, owner)}
