"""Rates that hold at any clock: bandwidths per second, and energies per bit.

The cost model counts words, and a port moves one word per cycle. A memory part has a bandwidth per second, which does
not depend on the clock of the accelerator. With `bandwidth_max: 25.6 GB/s`, a word has as many bits as the part
delivers in a cycle. The energy of a word is then computed from the energy per bit. The same holds for links between
cores.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base.errors import KeyPath, Problems
from tilewright.base.units import (
    FieldError,
    is_energy_per_bit,
    is_per_second,
    parse_bits_per_second,
    parse_energy_per_bit_pj,
    parse_frequency_mhz,
)
from tilewright.base.yamlfile import YamlDocument, items, table

CLOCK_KEY = "clock_frequency"
"""Key of the clock in hardware files."""
_WIDTHS = ("bandwidth_min", "bandwidth_max")
_ENERGIES = {"r_cost": "write", "w_cost": "read"}
"""Key with which a memory gives an energy per word -> type of port that does not use this energy."""
_HERTZ_A_MEGAHERTZ = 10**6
_STANDS_IN = 64
"""Bandwidth in bits per cycle that replaces an invalid bandwidth. The reader then also finds the other problems of the
file."""
_BANDWIDTH, _ENERGY_OF_A_CYCLE = "bandwidth", "unit_energy_cost"


def written_clock_mhz(data: Any) -> float | None:
    """Clock frequency in MHz in the content of a hardware file; None if the frequency is missing or wrong."""
    try:
        return parse_frequency_mhz(table(data).get(CLOCK_KEY))
    except FieldError:
        return None


def core_in_cycles(document: YamlDocument, problems: Problems, clock_mhz: float | None = None) -> YamlDocument:
    """Core file in which bandwidths per second of ports are converted to bits per cycle, and energies per bit to
    energies per word in pJ.

    `clock_mhz`, the clock of the accelerator that contains the core, is used only if the core file gives no clock.
    Three things are reported as problems: an invalid value, a bandwidth per second without a clock, and an energy per
    word if the width of the word depends on the clock.
    """
    memories = table(table(document.data).get("memories"))
    if not any(_has_physical_rate(memory) for memory in memories.values()):
        return document
    clock = _clock_of(document.data, clock_mhz)
    changed = {
        name: _memory_in_cycles(memory, problems.within("memories", name), clock)
        if isinstance(memory, dict)
        else memory
        for name, memory in memories.items()
    }
    return replace(document, data={**document.data, "memories": changed})


def links_in_cycles(document: YamlDocument, problems: Problems) -> YamlDocument:
    """Accelerator file in which bandwidths per second of links are converted to bits per cycle.

    A bandwidth per second is reported as a problem if the file gives no clock. An energy per busy cycle is reported as
    a problem if the bandwidth of the link is per second.
    """
    data = table(document.data)
    changed = dict(data)
    clock = _clock_of(data)
    changed |= _link_in_cycles(data, problems, clock)
    if isinstance(graph := data.get("graph"), dict):
        changed["graph"] = {**graph, **_link_in_cycles(graph, problems.within("graph"), clock)}
    for key in ("core_connectivity", "offchip_ports"):
        if isinstance(connections := data.get(key), list):
            changed[key] = [
                {**one, **_link_in_cycles(one, problems.within(key, place), clock, data)}
                if isinstance(one, dict)
                else one
                for place, one in enumerate(connections)
            ]
    return document if changed == data else replace(document, data=changed)


@dataclass
class _Clock:
    """Clock of a file. `is_missed` becomes true when the missing clock is reported as a problem, so that it is
    reported only once."""

    frequency_mhz: float | None
    is_missed: bool = False


def _clock_of(data: Any, common_mhz: float | None = None) -> "_Clock":
    """Clock of the content of a file; `common_mhz` if the file gives none. A wrong clock is reported elsewhere, so it
    is not reported as missing.
    """
    clock_mhz = written_clock_mhz(data) or common_mhz
    return _Clock(clock_mhz, is_missed=clock_mhz is None and table(data).get(CLOCK_KEY) is not None)


def _has_physical_rate(memory: Any) -> bool:
    """True if a memory has a bandwidth per second or an energy per bit."""
    own = table(memory)
    widths = (table(port).get(key) for port in items(own.get("ports")) for key in _WIDTHS)
    return any(map(is_per_second, widths)) or any(is_energy_per_bit(own.get(key)) for key in _ENERGIES)


def _memory_in_cycles(memory: dict[Any, Any], problems: Problems, clock: "_Clock") -> dict[Any, Any]:
    ports = [
        {**port, **dict(_widths(port, problems.within("ports", place), clock))} if isinstance(port, dict) else port
        for place, port in enumerate(items(memory.get("ports")))
    ]
    depends = {
        port.get("type")
        for port in items(memory.get("ports"))
        if isinstance(port, dict) and is_per_second(port.get("bandwidth_max"))
    }
    energies = dict(_energies(memory, ports, depends, problems))
    return {**memory, **({"ports": ports} if isinstance(memory.get("ports"), list) else {}), **energies}


def _widths(port: dict[Any, Any], problems: Problems, clock: "_Clock") -> Iterator[tuple[str, int]]:
    """Pairs (key, bits per cycle) for the bandwidths of a port that the file gives per second."""
    for key in _WIDTHS:
        if (bits := _bits_per_cycle(port.get(key), problems, (key,), clock)) is not None:
            yield key, bits


def _bits_per_cycle(value: Any, problems: Problems, path: KeyPath, clock: "_Clock") -> int | None:
    """Bandwidth in bits per cycle, rounded down, if `value` is a bandwidth per second; None for any other value.

    If the bandwidth per second is invalid or the clock is missing, the result is _STANDS_IN, and `problems` gets a
    problem. A missing clock is reported only once.
    """
    if not is_per_second(value):
        return None
    try:
        rate = parse_bits_per_second(value)
    except FieldError as error:
        problems.at(path, error.message, value, error.allowed, error.nearest)
        return _STANDS_IN
    if clock.frequency_mhz is None:
        if not clock.is_missed:
            clock.is_missed = True
            allowed = f"{CLOCK_KEY} in the file, such as 1 GHz, or a bandwidth in bits per cycle, such as 64 b/cycle"
            problems.at(path, "bandwidths per second need the frequency of the clock", value, allowed)
        return _STANDS_IN
    exact = rate / (type(rate)(clock.frequency_mhz) * _HERTZ_A_MEGAHERTZ)
    bits = int(exact)
    if bits < 1:
        message = f"is less than one bit per cycle at {clock.frequency_mhz:g} MHz"
        problems.at(path, message, value, "at least one bit per cycle")
        return _STANDS_IN
    if exact != bits:
        digits = max(6, len(str(bits)) + 2)  # a fraction stays visible, so that the number never looks rounded up
        said = (
            f"{value} at {clock.frequency_mhz:g} MHz are {float(exact):.{digits}g} bits per cycle, rounded down to"
            f" {bits}"
        )
        problems.notice(path, said)
    return bits


def _energies(
    memory: dict[Any, Any], ports: list[Any], depends: set[Any], problems: Problems
) -> Iterator[tuple[str, float]]:
    """Pairs (key, energy of a word in pJ) for the energies of a memory that are per bit in the file. `depends` has the
    types of the ports whose width depends on the clock."""
    for key, other_kind in _ENERGIES.items():
        value = memory.get(key)
        if is_energy_per_bit(value):
            widths = [port.get("bandwidth_max") for port in ports if table(port).get("type") != other_kind]
            try:
                energy = parse_energy_per_bit_pj(value)
            except FieldError as error:
                problems.at((key,), error.message, value, error.allowed, error.nearest)
                yield key, 0.0
                continue
            whole = [width for width in widths if type(width) is int]
            if len(whole) == len(widths):
                yield key, energy * max(whole, default=0)
            else:
                problems.at(
                    (key,),
                    "an energy per bit needs a valid bandwidth of each port, in bits per cycle or per second",
                    value,
                )
                yield key, 0.0
        elif value not in (None, 0, 0.0) and depends - {other_kind}:
            message = (
                "is an energy per word, but a port has a bandwidth per second: the width of a word, and therefore its"
                " energy, depends on the clock"
            )
            problems.at((key,), message, value, "an energy per bit, such as 8 pJ/b")


def _link_in_cycles(
    link: dict[Any, Any], problems: Problems, clock: "_Clock", default: dict[Any, Any] | None = None
) -> dict[str, int]:
    """Table with the key `bandwidth`, the bandwidth of a link in bits per cycle; {} if the file does not give the
    bandwidth per second.

    An energy per busy cycle is reported as a problem if the bandwidth is per second, because this energy depends on the
    clock. If `link` has no energy, the energy of the table `default` applies.
    """
    bits = _bits_per_cycle(link.get(_BANDWIDTH), problems, (_BANDWIDTH,), clock)
    if bits is None:
        return {}
    own = {_ENERGY_OF_A_CYCLE, "energy_per_bit"} & link.keys()
    if (link if own else default or {}).get(_ENERGY_OF_A_CYCLE) not in (None, 0, 0.0):
        message = (
            "is an energy per busy cycle, but the bandwidth is per second: the number of bits per cycle, and"
            " therefore the energy per bit, depends on the clock"
        )
        place = problems if own or default is None else Problems(problems.places)
        if place is not problems:
            place.found, place.notices = problems.found, problems.notices
        place.at((_ENERGY_OF_A_CYCLE,), message, allowed="energy_per_bit, such as 80 fJ")
    return {_BANDWIDTH: bits}
