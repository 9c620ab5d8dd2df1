"""Checks across several fields of a multi-core accelerator file, and reading of the memories that cores share.

The module also checks keys of Stream 2.1 that the model does not use. Each of these keys is reported once per file as
unused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.base.errors import WRITTEN, KeyPath, Problems
from tilewright.base.validation import each
from tilewright.base.yamlfile import YamlDocument
from tilewright.hardware.core import Core, Memory
from tilewright.hardware.core_paths import CoreIds
from tilewright.hardware.hierarchy import memory_differences, shared_memory_names, top_memories
from tilewright.hardware.system import Link, MemoryPlace, all_pairs, memory_text
from tilewright.hardware.system_schema import (
    ROLE_KEYS,
    ConnectionEntry,
    ConnectivityFile,
    GraphEntry,
    GraphFile,
    RateEntry,
    SystemFile,
    parse_rate_place,
)
from tilewright.hardware.topologies import COLUMNS, ROWS, topology


def check_ids(problems: Problems, document: YamlDocument, entry: SystemFile, ids: CoreIds) -> None:
    """Report errors in the ids and roles of cores: repeated and unknown ids, roles that the off-chip core cannot have,
    and keys that exclude each other."""
    for path in document.repeated:
        if len(path) == 2 and path[0] == "cores":
            problems.at(path, "another core has this id, and only the last one would count", path[1])
    for core_id in entry.core_operator_types or {}:
        known_core(problems, ("core_operator_types", core_id), core_id, ids)
    for core_id in entry.core_counts or {}:
        if known_core(problems, ("core_counts", core_id), core_id, ids) and core_id == ids.offchip:
            problems.at(("core_counts", core_id), "an accelerator has only one off-chip core", core_id)
    for index, core_id in each(entry.routers):
        known_core(problems, ("routers", index), core_id, ids)
        if core_id == ids.offchip:
            problems.at(("routers", index), "data cannot pass through the off-chip core", core_id)
    problems.repeated(("routers",), entry.routers or (), "is listed twice")
    names_offchip_file = "offchip_core" in entry.model_fields_set
    if isinstance(entry, ConnectivityFile):
        _check_roles(problems, entry, ids)
        if names_offchip_file and "offchip_core_id" in entry.model_fields_set:
            problems.at(("offchip_core_id",), "offchip_core is given too; give only one of the two keys")
    if entry.cores and ids.known == (ids.offchip,) and not names_offchip_file:
        problems.at(("cores",), "the file has no core besides the off-chip core")


def _check_roles(problems: Problems, entry: ConnectivityFile, ids: CoreIds) -> None:
    """Report errors in the keys of roles. Only files with a list of connections have these keys."""
    check_energy_keys(problems, entry)
    for key in ("core_roles", "core_coordinates"):
        for core_id in getattr(entry, key) or {}:
            known_core(problems, (key, core_id), core_id, ids)
    if entry.offchip_core_id is not None:
        known_core(problems, ("offchip_core_id",), entry.offchip_core_id, ids)
    if ids.offchip is not None and ids.offchip in (entry.core_roles or {}):
        problems.at(("core_roles", ids.offchip), "is the off-chip core", WRITTEN)
    places: dict[tuple[int, ...], int] = {}
    for core_id, place in (entry.core_coordinates or {}).items():
        if place is not None and places.setdefault(tuple(place), core_id) != core_id:
            problems.at(
                ("core_coordinates", core_id), f"core {places[tuple(place)]} has these coordinates already", place
            )


def check_energy_keys(problems: Problems, entry: ConnectivityFile | ConnectionEntry) -> None:
    """Report a table that gives both the energy per bit and the energy per busy cycle of a link."""
    keys = ("energy_per_bit", "unit_energy_cost")
    if all(getattr(entry, key) is not None or problems.has(key) for key in keys):
        problems.at(("energy_per_bit",), "unit_energy_cost is given too; give only one of the two keys")


def known_core(problems: Problems, path: KeyPath, core_id: int, ids: CoreIds) -> bool:
    """True if a core has this id. Otherwise, the id is reported as a problem. If two cores of the file have the same
    id, the ids are uncertain, and nothing is reported.
    """
    if core_id not in ids.known and ids.is_certain:
        problems.at(path, "no core has this id", core_id, ids.allowed)
    return core_id in ids.known


def check_multicast(problems: Problems, entry: ConnectivityFile, ids: CoreIds, routers: Collection[int]) -> None:
    """Report each directed link with `multicast: true` whose receiving core does not pass data to other cores. Only
    this core can receive the data of the link, so the key has no effect. Another check reports a core whose role or id
    is wrong."""
    if problems.has("routers") or problems.has("core_roles"):
        return
    for index, written in each(entry.core_connectivity):
        if not isinstance(written, ConnectionEntry) or not (written.multicast and written.directed):
            continue
        receiver = written.cores[1] if written.type == "link" and len(written.cores or ()) == 2 else None
        if receiver in ids.known and receiver not in routers:
            message = (
                f"needs several receivers, but the link ends at core {receiver}, which passes no data on to other cores"
            )
            allowed = f"no multicast, or {receiver} among the routers, or type: bus"
            problems.at(("core_connectivity", index, "multicast"), message, written.multicast, allowed)


def core_list(problems: Problems, path: KeyPath, listed: Sequence[int] | None, ids: CoreIds) -> tuple[int, ...] | None:
    """Core ids of a list. None if the list has fewer than two cores, a repeated core, or an unknown core. These errors
    are reported."""
    if listed is None or problems.has(*path):
        return None
    found = tuple(listed)
    fine = [known_core(problems, path, core_id, ids) for core_id in found]
    if len(set(found)) < len(found):
        repeated = next(core_id for index, core_id in enumerate(found) if core_id in found[:index])
        what = "a core cannot be linked with itself" if len(set(found)) == 1 else "a core is listed twice"
        problems.at(path, what, repeated)
        return None
    if len(found) < 2:
        problems.at(path, "too few cores", WRITTEN, "at least 2")
        return None
    return found if all(fine) else None


def note_closed_memories(problems: Problems, path: KeyPath, core: Core) -> None:
    """Report a notice for each top memory that other cores cannot access, because its ports lack a direction: writing
    inputs to the memory, or reading outputs from it."""
    for memory, operands in top_memories(core):
        needed = [(operand, "th" if operand == "O" else "fh") for operand in operands]
        missing = [
            f"'{operand}, {direction}'" for operand, direction in needed if (operand, direction) not in memory.port_of
        ]
        if missing:
            message = (
                f"no port of {memory.name} carries {', '.join(missing)}, which is needed to move data between cores"
            )
            problems.notice(path, message)


def note_silent_ports(problems: Problems, path: KeyPath, core: Core) -> None:
    """Report a notice for each top memory of the off-chip core, `core`, whose ports cannot stream. Streaming needs the
    direction `tl` (read out to the lower level) for inputs, and `fl` (written by the lower level) for outputs.

    Data that do not fit into an on-chip core are streamed.
    """
    for memory, operands in top_memories(core):
        needed = [(operand, "fl" if operand == "O" else "tl") for operand in operands]
        missing = [f"'{operand}, {way}'" for operand, way in needed if (operand, way) not in memory.port_of]
        if missing:
            message = (
                f"no port of {memory.name} carries {', '.join(missing)}: data that do not fit a core cannot be streamed"
            )
            problems.notice(path, message)


def check_graph(problems: Problems, document: YamlDocument, entry: GraphFile, ids: CoreIds) -> None:
    """Report errors in the sizes of a regular graph, and in the ids of its pooling, SIMD and off-chip core. Keys that
    only files with a list of connections can have are errors, too."""
    graph = entry.graph
    if graph is None:
        return
    other = next((key for key in ("core_connectivity", "offchip_core") if key in document.data), None)
    if other is not None:
        problems.found[:] = [problem for problem in problems.found if problem.path != other]
        problems.at((other,), "belongs to accelerator files of the other kind; give either graph or core_connectivity")
    special: dict[int, str] = {}
    is_known = True
    for key in (*ROLE_KEYS, "offchip_core_id"):
        core_id = getattr(graph, key)
        if core_id is None:
            is_known = is_known and not problems.has("graph", key)
            continue
        if not known_core(problems, ("graph", key), core_id, ids):
            is_known = False
            continue
        if core_id in special:
            problems.at(("graph", key), f"is {special[core_id]} too", core_id)
        special.setdefault(core_id, key)
        if core_id in (entry.core_counts or {}) and core_id != ids.offchip:
            problems.at(
                ("core_counts", core_id), f"is the core that {key} names, and a graph has only one such core", core_id
            )
    if graph.type is not None:
        _check_sizes(problems, graph, [core_id for core_id in ids.known if core_id not in special], is_known)


def _check_sizes(problems: Problems, graph: GraphEntry, regular: Sequence[int], is_known: bool) -> None:
    """Report sizes that are missing, that the topology does not have, or that do not match the number of cores.

    If `is_known` is false, the id of the pooling, SIMD or off-chip core is wrong. The number of regular cores is then
    unknown, so the check against this number is left out.
    """
    shape = topology(graph.type)
    sizes = graph_sizes(graph)
    for key in (ROWS, COLUMNS):
        if key in sizes and key not in shape.keys:
            problems.unused(("graph", key), f"has no effect on a graph of type {graph.type}", WRITTEN)
    for key in (key for key in graph.sizes or {} if key not in shape.keys or key in (ROWS, COLUMNS)):
        problems.unknown_name(("graph", "sizes", key), f"{graph.type} has no such size", key, shape.keys)
    missing = [key for key in shape.keys if key not in sizes]
    for key in missing:
        if not problems.has(*_size_path(key)):
            problems.at(_size_path(key), f"required key is missing; a graph of type {graph.type} needs it")
    if not missing and regular and is_known and (fault := shape.fault(sizes, len(regular))) is not None:
        if fault.key in sizes:
            problems.at(_size_path(fault.key), fault.message, sizes[fault.key], fault.allowed)
        else:
            problems.at(("graph", "type"), fault.message, graph.type, fault.allowed)


def _size_path(key: str) -> KeyPath:
    """Path of a graph size in the file."""
    return ("graph", key) if key in (ROWS, COLUMNS) else ("graph", "sizes", key)


def graph_sizes(graph: GraphEntry) -> dict[str, int]:
    """Sizes that the file gives for a regular graph, by key."""
    given = {ROWS: graph.nb_rows, COLUMNS: graph.nb_cols} | dict(graph.sizes or {})
    return {key: size for key, size in given.items() if size is not None}


_MOST_LISTED = 8


def check_unmodelled(problems: Problems, entry: ConnectivityFile, ids: CoreIds, cores: Mapping[int, Core]) -> None:
    """Report ids, memories and ports in `bandwidth` and `memory_aliases` that do not exist. Also report the rates of a
    port whose core already has rates for all its ports."""
    rates = entry.bandwidth if isinstance(entry.bandwidth, dict) else {}
    for key in rates:
        core_id, memory, port = parse_rate_place(key)
        if not known_core(problems, ("bandwidth", key), core_id, ids):
            continue
        if memory and core_id in rates:
            problems.at(("bandwidth", key), f"core {core_id} already has rates, which apply to all its ports")
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
    """Report the unused keys of an accelerator file. Unused keys change no result."""
    if isinstance(entry.bandwidth, dict):
        rates = [_rate(key, rate, links) for key, rate in list(entry.bandwidth.items())[:_MOST_LISTED]]
        more = len(entry.bandwidth) - len(rates)
        listed = "; ".join(rates) + (f"; and {more} more" if more else "")
        problems.unused(
            ("bandwidth",), f"not modelled: only the bandwidths of links limit transfers; the file gives {listed}"
        )
    notes = {
        "technology_node": "not used: energies and areas are those of the core files",
        "memory_aliases": "not used: each core has its own memory and area; to merge memories, use core_memory_sharing",
        "kernel_library": "not used: this key is for cores of the types aie2.*, which tilewright does not model",
        "reconfiguration": "not used: this key is for cores of the types aie2.*, which tilewright does not model",
    }
    for key, text in notes.items():
        if getattr(entry, key):
            problems.unused((key,), text)


def _check_port(problems: Problems, path: KeyPath, core: Core, memory: str, port: str) -> None:
    tops = {found.name: found for found, _ in top_memories(core)}
    if memory not in tops:
        problems.unknown_name(path, "is not a memory at the top of this core", memory, list(tops))
        return
    ports = [found.name for found in tops[memory].ports]
    if port not in ports:
        problems.unknown_name(path, f"{memory} has no such port", port, ports)


def _rate(key: Any, rate: RateEntry, links: tuple[Link, ...]) -> str:
    """Text with the rates of a port or core, and with the total bandwidth of the links into and out of the core. `key`
    names the core, or a port of the core."""
    core_id = parse_rate_place(key)[0]
    burst = f", in bursts of {rate.burst} bytes" if rate.burst else ""
    strided = ", less for strided data" if rate.strided else ""
    arriving = _width([link for link in links if any(edge[1] == core_id for edge in link.edges)])
    leaving = _width([link for link in links if any(edge[0] == core_id for edge in link.edges)])
    own = f"links of core {core_id}: {arriving} in, {leaving} out"
    name = key if isinstance(key, str) else f"core {key}"
    return f"{name} ({rate.ceiling:g} bits per cycle at most{burst}{strided}; {own})"


def _width(links: list[Link]) -> str:
    widths = [link.bandwidth_bits_per_cycle for link in links]
    return "no limit" if None in widths else str(sum(width for width in widths if width is not None))


KEY = "core_memory_sharing"


@dataclass(frozen=True)
class MemorySharing:
    """Memories that cores share. `MultiCoreAccelerator` has the same fields."""

    sharing_groups: tuple[tuple[int, ...], ...] = ()
    shared_memories: tuple[tuple[MemoryPlace, ...], ...] = ()

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Pairs of cores that are in the same sharing group. Data between these cores do not move over links."""
        return {pair for group in self.sharing_groups for pair in all_pairs(group)}


def read_sharing(problems: Problems, entry: SystemFile, ids: CoreIds, cores: Mapping[int, Core]) -> MemorySharing:
    """Groups of cores that share memories, and groups of memories that are one physical memory, as the file gives them.
    Errors in the groups are reported. `cores` holds the cores whose files could be read; the memories of other cores
    are not checked.
    """
    groups: list[tuple[int, ...]] = []
    memories: list[tuple[MemoryPlace, ...]] = []
    owner: dict[MemoryPlace, str] = {}
    # A group with an invalid item has been reported already.
    whole = [(index, listed) for index, listed in each(entry.core_memory_sharing) if None not in listed]
    for index, listed in whole:
        path: KeyPath = (KEY, index)
        core_ids = [item for item in listed if isinstance(item, int)]
        group = _group_of_cores(problems, path, core_ids, ids, groups) if core_ids else None
        if group is not None:
            groups.append(group)
            if all(core_id in cores for core_id in group):
                names = _check_group(problems, path, {core_id: cores[core_id] for core_id in group})
                owner |= {(core_id, name): f"{KEY}[{index}]" for core_id in group for name in names}
    for index, listed in whole:
        places = [item for item in listed if not isinstance(item, int)]
        if places:
            places = _group_of_memories(problems, (KEY, index), places, ids, cores, owner)
            owner |= dict.fromkeys(places, f"{KEY}[{index}]")
            memories.append(tuple(sorted(places)))
    return MemorySharing(tuple(groups), tuple(memories))


def _group_of_cores(
    problems: Problems, path: KeyPath, listed: list[int], ids: CoreIds, groups: list[tuple[int, ...]]
) -> tuple[int, ...] | None:
    """Ids of the cores in `listed` and of their copies, sorted. None if fewer than two cores are listed, if an id is
    unknown or repeated, or if the off-chip core is listed.

    Each of these errors is reported. A core that is already in an earlier group is reported, too, but the ids are
    returned.
    """
    found = core_list(problems, path, listed, ids)
    if found is None:
        return None
    if ids.offchip in found:
        problems.at(path, "the off-chip core cannot share its memory", ids.offchip)
        return None
    earlier = {core_id for other in groups for core_id in other}
    for core_id in sorted(earlier.intersection(found)):
        message = "the core is also in another group"
        problems.at(
            path,
            message,
            core_id,
            "each core in only one group; to put a core into several groups, list memories such as [0.out, 1.in]",
        )
    return tuple(sorted(ids.with_copies(found)))


def _check_group(problems: Problems, path: KeyPath, group: dict[int, Core]) -> list[str]:
    """Names of the top memories that a group of cores shares.

    A problem is reported if no top memory has the same name in all cores, or if the cores describe a shared memory
    differently. A notice names top memories that a core does not share.
    """
    ids, cores = list(group), list(group.values())
    shared = shared_memory_names(cores)
    if not shared:
        names = "; ".join(f"core {key}: {', '.join(_top_names(core))}" for key, core in group.items())
        problems.at(
            path, f"these cores cannot share a memory, because no top memory has the same name in all of them ({names})"
        )
        return shared
    first = {memory.name: memory for memory, _ in top_memories(cores[0])}
    for core_id, core in list(group.items())[1:]:
        for memory, _ in top_memories(core):
            differences = memory_differences(first[memory.name], memory) if memory.name in shared else []
            if differences:
                message = (
                    f"{memory.name} of core {core_id} differs from that of core {ids[0]}: {', '.join(differences)}"
                )
                problems.at(path, message)
    for core_id, core in group.items():
        private = [
            f"{memory.name} ({', '.join(operands)})"
            for memory, operands in top_memories(core)
            if memory.name not in shared
        ]
        if private:
            problems.notice(
                path, f"core {core_id} shares only {', '.join(shared)}, and does not share {', '.join(private)}"
            )
    return shared


def _group_of_memories(
    problems: Problems,
    path: KeyPath,
    listed: list[MemoryPlace],
    ids: CoreIds,
    cores: Mapping[int, Core],
    owner: Mapping[MemoryPlace, str],
) -> list[MemoryPlace]:
    """Memories in `listed`, and the memories of the same names in the copies of their cores (`core_counts`). All these
    memories are one physical memory. Errors in `listed` are reported.
    """
    seen: set[int] = set()
    first: tuple[MemoryPlace, Memory] | None = None
    for place in listed:
        core_id, name = place
        if not known_core(problems, path, core_id, ids):
            continue
        if core_id == ids.offchip:
            problems.at(path, "the off-chip core cannot share its memory", memory_text(place))
        elif core_id in seen:
            allowed = "one memory of each core"
            problems.at(path, "the group lists another memory of this core too", memory_text(place), allowed)
        elif place in owner:
            problems.at(path, f"{owner[place]} already shares this memory", memory_text(place))
        elif core_id in cores:
            top = {memory.name: memory for memory, _ in top_memories(cores[core_id])}
            if name not in top:
                problems.unknown_name(path, f"core {core_id} has no such memory at its top", name, list(top))
            elif first is None:
                first = place, top[name]
            elif differences := memory_differences(first[1], top[name]):
                message = f"{memory_text(place)} differs from {memory_text(first[0])}: {', '.join(differences)}"
                problems.at(path, message)
        seen.add(core_id)
    if len(listed) < 2:
        problems.at(path, "too few memories", memory_text(listed[0]), "at least 2")
    return [(one, name) for core_id, name in listed for one in ids.with_copies([core_id])]


def _top_names(core: Core) -> Iterable[str]:
    return (memory.name for memory, _ in top_memories(core))
