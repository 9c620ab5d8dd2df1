"""Keys of Stream 2.1 that are read and checked, and have no part in the model: what is told of each, once a file."""

from collections.abc import Mapping
from typing import Any

from tilewright.errors import KeyPath, Problems
from tilewright.hardware.core import Core
from tilewright.hardware.core_paths import CoreIds
from tilewright.hardware.interconnect import Link
from tilewright.hardware.system_checks import known_core
from tilewright.hardware.system_schema import ConnectivityFile, RateEntry, parse_rate_place
from tilewright.hardware.top_memories import top_memories
from tilewright.validation import each

_MOST_LISTED = 8


def check_unmodelled(problems: Problems, entry: ConnectivityFile, ids: CoreIds, cores: Mapping[int, Core]) -> None:
    """Record ids, memories and ports that `bandwidth` and `memory_aliases` name and no core has."""
    rates = entry.bandwidth if isinstance(entry.bandwidth, dict) else {}
    for key in rates:
        core_id, memory, port = parse_rate_place(key)
        if not known_core(problems, ("bandwidth", key), core_id, ids):
            continue
        if memory and core_id in rates:
            problems.at(("bandwidth", key), f"core {core_id} has rates of its own, which are those of its ports")
        elif memory and core_id in cores:
            _check_port(problems, ("bandwidth", key), cores[core_id], memory, port)
    for index, group in each(entry.memory_aliases):
        for place, (core_id, memory) in each(group):
            path: KeyPath = ("memory_aliases", index, place)
            if not known_core(problems, path, core_id, ids) or core_id not in cores:
                continue
            memories = [memory.name for memory in cores[core_id].memories]
            if memory not in memories:
                problems.unknown_name(path, f"core {core_id} has no such memory", memory, memories)


def note_unmodelled(problems: Problems, entry: ConnectivityFile, links: tuple[Link, ...]) -> None:
    """Note what an accelerator file says that changes no number here."""
    if isinstance(entry.bandwidth, dict):
        rates = [_rate(key, rate, links) for key, rate in list(entry.bandwidth.items())[:_MOST_LISTED]]
        more = len(entry.bandwidth) - len(rates)
        listed = "; ".join(rates) + (f"; and {more} more" if more else "")
        problems.notice(("bandwidth",), f"not modelled, transfers go at the width of links: {listed}")
    notes = {
        "technology_node": "not used: energies and areas are those of the core files",
        "memory_aliases": "not used: each core keeps its own memory and its area; core_memory_sharing makes them one",
        "kernel_library": "not used: it is for cores of types aie2, which have no memory hierarchy",
        "reconfiguration": "not used: it is for cores of types aie2, which have no memory hierarchy",
    }
    for key, text in notes.items():
        if getattr(entry, key):
            problems.notice((key,), text)


def _check_port(problems: Problems, path: KeyPath, core: Core, memory: str, port: str) -> None:
    tops = {found.name: found for found, _ in top_memories(core)}
    if memory not in tops:
        problems.unknown_name(path, "is not a memory at the top of this core", memory, list(tops))
        return
    ports = [found.name for found in tops[memory].ports]
    if port not in ports:
        problems.unknown_name(path, f"{memory} has no such port", port, ports)


def _rate(key: Any, rate: RateEntry, links: tuple[Link, ...]) -> str:
    """The rates of a port or core in words, with what the links of the core carry."""
    core_id = parse_rate_place(key)[0]
    burst = f", in bursts of {rate.burst} bytes" if rate.burst else ""
    strided = ", less for parts of rows" if rate.strided else ""
    arriving = _width([link for link in links if any(edge[1] == core_id for edge in link.edges)])
    leaving = _width([link for link in links if any(edge[0] == core_id for edge in link.edges)])
    own = f"links of core {core_id}: {arriving} in, {leaving} out"
    name = key if isinstance(key, str) else f"core {key}"
    return f"{name} ({rate.ceiling:g} bits a cycle at most{burst}{strided}; {own})"


def _width(links: list[Link]) -> str:
    widths = [link.bandwidth_bits_per_cycle for link in links]
    return "no limit" if None in widths else str(sum(width for width in widths if width is not None))
