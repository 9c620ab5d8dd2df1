"""Reader of the file of a multi-core accelerator: core files, regular graph or connectivity list, and common clock.

Schedules count the cycles of one common clock. The accelerator file or a core file can give its frequency.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.base.errors import WRITTEN, InputError, KeyPath, Problem, Problems, TilewrightError, nearest_name
from tilewright.base.validation import validate
from tilewright.base.yamlfile import YamlDocument, load_yaml, table
from tilewright.hardware.attributes import LEAKAGE, Figures
from tilewright.hardware.core import Core, Memory
from tilewright.hardware.core_paths import (
    CoreIds,
    contained_cores,
    core_file_names,
    core_files_of,
    core_ids_of,
    find_core_file,
)
from tilewright.hardware.core_reader import clock_notes, core_entry, core_of, only_stores
from tilewright.hardware.physical_rates import CLOCK_KEY, links_in_cycles, written_clock_mhz
from tilewright.hardware.plausible_numbers import report_bit_of_link, report_clock
from tilewright.hardware.static_power import NS_A_CYCLE_AT_1_MHZ, missing_clock, static_power_mw
from tilewright.hardware.system import COMPUTE, MEMORY, OFFCHIP, CorePlace, Link, MultiCoreAccelerator, all_pairs
from tilewright.hardware.system_checks import (
    check_energy_keys,
    check_graph,
    check_ids,
    check_multicast,
    check_unmodelled,
    core_list,
    graph_sizes,
    note_closed_memories,
    note_silent_ports,
    note_unmodelled,
    read_sharing,
)
from tilewright.hardware.system_links import (
    Connection,
    Graph,
    LinkCost,
    connection_links,
    graph_links,
    offchip_links,
    offchip_ports,
    whole_bits,
    with_multicast,
)
from tilewright.hardware.system_paths import check_paths
from tilewright.hardware.system_ports import MemoryPort, port_links, read_ports
from tilewright.hardware.system_schema import ROLE_KEYS, ConnectionEntry, ConnectivityFile, GraphFile, SystemFile
from tilewright.hardware.yaml_checks import OFF_CHIP, PART, STORE


def read_connections(
    problems: Problems, entry: ConnectivityFile, ids: CoreIds, sharing: set[tuple[int, int]]
) -> tuple[Connection, ...]:
    """Connections in the valid entries of the connectivity list, and connections of the copies of cores. Errors in the
    other entries are reported."""
    connections: list[Connection] = []
    joined: dict[tuple[int, int], int] = {}
    for index, written in enumerate(entry.core_connectivity or ()):
        place = problems.within("core_connectivity", index)
        bare = None if written is None else _bare_connection(place, written, ids)
        connection = None if bare is None else _finished(place, written, problems, entry, bare)
        if connection is None:
            continue
        for one in _for_copies(connection, ids):
            _check_pairs(place, index, one, joined, sharing)
            connections.append(one)
    return tuple(connections)


def _for_copies(connection: Connection, ids: CoreIds) -> Iterator[Connection]:
    """Connections that replace `connection` if its cores have copies. A bus becomes one bus that joins all the cores
    and copies. A directed bus becomes several directed buses: one from the sender and one from each copy of the sender,
    each to all receivers and their copies. A link becomes one link for each pair of a sender (or its copy) and a
    receiver (or its copy).
    """
    first, *others = connection.core_ids
    if connection.is_bus and not connection.directed:
        yield replace(connection, core_ids=ids.with_copies(connection.core_ids))
    elif connection.is_bus:
        for sender in ids.with_copies([first]):
            yield replace(connection, core_ids=(sender, *ids.with_copies(others)))
    else:
        for pair in itertools.product(ids.with_copies([first]), ids.with_copies(others)):
            yield replace(connection, core_ids=pair)


def default_cost(entry: ConnectivityFile | ConnectionEntry) -> LinkCost:
    """Energy of a link by the keys of `entry`; 0 if `entry` has no such key. `entry` is a connection, or the
    accelerator file with its defaults for all connections."""
    return LinkCost(entry.unit_energy_cost or 0.0, entry.energy_per_bit)


def _bare_connection(problems: Problems, entry: ConnectionEntry | list[int], ids: CoreIds) -> Connection | None:
    """Connection of a list entry, without bandwidth and cost; None if a part of the entry is wrong. Errors are
    reported.
    """
    if isinstance(entry, list):
        found = core_list(problems, (), entry, ids)
        return Connection(found, len(found) > 2, None, LinkCost()) if found else None
    is_broken = problems.has()
    check_energy_keys(problems, entry)
    found = core_list(problems, ("cores",), entry.cores, ids)
    if is_broken or found is None:
        return None
    if entry.type == "link" and len(found) != 2:
        problems.at(("cores",), "a link joins two cores; a bus joins more", list(found), "type: bus")
        return None
    if entry.duplex is not None and (entry.directed or entry.type == "bus"):
        what = "a directed link has one direction" if entry.directed else "both directions of a bus share its bandwidth"
        problems.at(("duplex",), f"{what}, so duplex has no effect", entry.duplex, "leave the key out")
        return None
    is_half = entry.duplex == "half"
    return Connection(found, entry.type == "bus", None, LinkCost(), bool(entry.directed), is_half)


def _finished(
    place: Problems, written: ConnectionEntry | list[int], problems: Problems, file: ConnectivityFile, bare: Connection
) -> Connection | None:
    """Connection `bare` with its bandwidth and its cost. Both come from the entry `written`. If the entry lacks the
    bandwidth or the cost, the default of the file is taken.

    None if a bandwidth is missing, or if a link of infinite bandwidth has an energy per busy cycle. Such an error is
    reported.
    """
    own = written if isinstance(written, ConnectionEntry) else ConnectionEntry.model_construct()
    # If `bandwidth` of the file is a table, it has rates of ports.
    default = None if isinstance(file.bandwidth, dict) else file.bandwidth
    bandwidth = default if own.bandwidth is None else own.bandwidth
    if bandwidth is None and file.bandwidth is None and problems.has("bandwidth"):
        return None
    if bandwidth is None:
        place.at(
            (),
            "has no bandwidth, and the file has no default for it",
            allowed="bandwidth: 64, in this entry or at the top of the file",
        )
        return None
    has_cost = own.unit_energy_cost is not None or own.energy_per_bit is not None
    cost = default_cost(own if has_cost else file)
    if math.isinf(bandwidth) and cost.energy_pj_per_bit is None and cost.unit_energy_pj_per_cycle:
        message = "transfers over infinite bandwidth take no cycles, so an energy per busy cycle would have no effect"
        place.at((), message, allowed="energy_per_bit, or unit_energy_cost: 0")
        return None
    is_multicast = bool(file.multicast if own.multicast is None else own.multicast)
    return replace(bare, bandwidth_bits_per_cycle=whole_bits(bandwidth), cost=cost, is_multicast=is_multicast)


def _check_pairs(
    problems: Problems,
    index: int,
    connection: Connection,
    joined: dict[tuple[int, int], int],
    sharing: set[tuple[int, int]],
) -> None:
    """Report a second link between two cores in the same direction, and a link between cores that share memory. The
    pairs of cores that `connection` joins are added to `joined`.
    """
    if connection.is_bus:
        return
    first, second = connection.core_ids
    pairs = ((first, second),) if connection.directed else all_pairs(connection.core_ids)
    if (first, second) in sharing:
        problems.at((), "these cores share memory, so no link can join them", list(connection.core_ids))
    for pair in pairs:
        if pair in joined:
            message = f"core {pair[0]} has a link to core {pair[1]} already, in entry {joined[pair]}"
            problems.at((), message, list(connection.core_ids))
            break
    joined.update(dict.fromkeys(pairs, index))


def read_clock(problems: Problems, entry: SystemFile, cores: Mapping[KeyPath, Core]) -> float:
    """Clock frequency in MHz that the accelerator file or a core file gives; 0 if no file gives it.

    Two things are reported as problems: different clocks of cores, and a missing clock if some core file gives static
    power. Static power from the library of costs is no problem: without a clock, it is left out. `cores` has the cores
    that could be read, by their path in the accelerator file.
    """
    clock = entry.clock_frequency or max((core.clock_frequency_mhz for core in cores.values()), default=0.0)
    for place, core in cores.items():
        if core.clock_frequency_mhz not in (0.0, clock):
            own = f"{core.name} has a clock of {core.clock_frequency_mhz:g} MHz"
            told = f"{own}, but another core or this file gives {clock:g} MHz"
            problems.at(place, f"{told}: a schedule counts cycles of one clock", WRITTEN, "one frequency for all cores")
    leaking = [core.name for core in cores.values() if _leaks_by_its_file(core)]
    if leaking and not clock:
        problems.at((CLOCK_KEY,), missing_clock(", ".join(dict.fromkeys(leaking))), allowed="200 MHz, 1.2 GHz")
    else:
        _note_clock(problems, clock, cores)
    return clock


def _leaks_by_its_file(core: Core) -> bool:
    """True if the core has static power that its own file gives. Leakage from the library of costs does not count."""
    own = tuple(replace(memory, figures=_of_the_file(memory)) for memory in core.memories)
    return static_power_mw(replace(core, memories=own)) > 0


def _of_the_file(memory: Memory) -> Figures:
    """Attributes of a memory that the hardware file gives. Leakage from the library of costs is left out."""
    source = memory.cost_source
    given = dict(memory.figures)
    if source is not None and given.get(LEAKAGE.field) == source.leakage_mw:
        given.pop(LEAKAGE.field, None)
    return tuple(given.items())


def _note_clock(problems: Problems, clock_mhz: float, cores: Mapping[KeyPath, Core]) -> None:
    """Report notices on the clock, each once per core file. If `clock_mhz` is 0, there is no clock: a notice names the
    static power that is left out. Otherwise, a notice names the accesses and operations that take longer than a cycle.
    """
    period_ns = NS_A_CYCLE_AT_1_MHZ / clock_mhz if clock_mhz else None
    told = set()
    for place, core in cores.items():
        for path, said in clock_notes(core, period_ns):
            part = "" if path == (CLOCK_KEY,) else f", {path[-1]}"
            text = f"{core.name}{part}: {said}"
            if text not in told:
                (problems.notice if period_ns is None else problems.caution)(place, text)
            told.add(text)


class NotOneCoreError(TilewrightError):
    """Error of a core file that describes an accelerator of several cores."""


@dataclass(frozen=True)
class CoreFile:
    """Core file that has been read."""

    path: Path | None
    """Path of the file; None for a core that the accelerator file contains."""
    name: str
    """Name of the core file without folder and suffix. If several core files of an accelerator have the same name, the
    reader of the accelerator adds folders or the suffix."""
    core: Core
    says_operator_types: bool
    """True if the core file gives the operators that the core can run. If it is false, `operator_types` of `core` is
    only a default, and is ignored."""
    is_memory: bool = False
    """True if the file says that the core only stores data."""


def read_core_file(path: Path, offchip: bool, notices: list[str], clock_mhz: float | None = None) -> CoreFile:
    """Core that a file describes. Raises InputError with all problems of the file, and NotOneCoreError if the file
    describes several cores.
    """
    return core_file_of(load_yaml(path, notices), path, path.stem, offchip, notices, clock_mhz)


def contained_core_file(document: YamlDocument, name: str, offchip: bool, notices: list[str]) -> CoreFile:
    """Core that an accelerator file contains under `core_files`. Raises the errors of `read_core_file`."""
    place: KeyPath = ("core_files", name)
    lines = {path[2:]: line for path, line in document.lines.items() if path[:2] == place}
    part = YamlDocument(document.file, document.written(place), lines)
    try:
        return core_file_of(part, None, name, offchip, notices, written_clock_mhz(document.data))
    except InputError as error:
        before = ".".join(map(str, place))
        paths = [f"{before}.{one.path}" if one.path else before for one in error.problems]
        raise InputError(replace(one, path=path) for one, path in zip(error.problems, paths, strict=True)) from None


def core_file_of(
    document: YamlDocument,
    path: Path | None,
    name: str,
    offchip: bool,
    notices: list[str],
    clock_mhz: float | None = None,
) -> CoreFile:
    """Core of a loaded document; `clock_mhz` is the clock of the accelerator. Raises the errors of `read_core_file`."""
    if "cores" in table(document.data):
        raise NotOneCoreError("is an accelerator of several cores; the file of one core is needed")
    is_memory = only_stores(document)
    entry = core_entry(document, notices, OFF_CHIP if offchip else STORE if is_memory else PART, clock_mhz)
    return CoreFile(path, name, core_of(entry), "operator_types" in entry.model_fields_set, is_memory)


def missing_file_problem(name: str, folder: Path) -> Problem:
    """Problem of a core file that cannot be found."""
    beside = sorted(path.name for path in folder.glob("*.y*ml")) if folder.is_dir() else []
    beside += sorted(f"cores/{path.name}" for path in folder.glob("cores/*.y*ml"))
    near = nearest_name(name.removeprefix("./"), beside)
    return Problem("no such core file", value=repr(name), allowed=f"a path relative to {folder}", nearest=near)


Pair = tuple[int, int]


def multi_core_of(document: YamlDocument, notices: list[str] | None = None) -> MultiCoreAccelerator:
    """Accelerator in a loaded document. Raises InputError with all problems of the document and of its core files.

    The search for core files starts in the folder of the document, or in the working folder if the document is not a
    file.
    """
    problems = Problems(document)
    document = links_in_cycles(document, problems)
    data = table(document.data)
    is_graph = "graph" in data or isinstance(data.get("cores"), list)
    entry: SystemFile = validate(GraphFile if is_graph else ConnectivityFile, data, problems)
    ids = core_ids_of(document)
    files = _core_files(problems, document, ids)
    check_ids(problems, document, entry, ids)
    shared = read_sharing(problems, entry, ids, {core_id: file.core for core_id, file in files.items()})
    sharing = shared.pairs
    connections: tuple[Connection, ...] = ()
    if isinstance(entry, GraphFile):
        check_graph(problems, document, entry, ids)
    else:
        connections = read_connections(problems, entry, ids, sharing)
        check_multicast(problems, entry, ids, _routers(entry, ids, _roles(entry, ids, files), sharing))
        check_unmodelled(problems, entry, ids, {core_id: file.core for core_id, file in files.items()})
    ports = read_ports(problems, entry, ids, connections)
    _check_offchip_ports(problems, document, ids, files)
    named = core_files_of(document.data)
    report_clock(problems, (CLOCK_KEY,), entry.clock_frequency)
    clock = read_clock(
        problems, entry, {named[core_id][0]: file.core for core_id, file in files.items() if core_id in named}
    )
    for core_id, (place, _) in core_files_of(document.data).items():
        if core_id in files:
            note = note_silent_ports if core_id == ids.offchip else note_closed_memories
            note(problems, place, files[core_id].core)
    problems.finish()
    links = _links(entry, connections, ports, ids, files, sharing)
    for energy_pj in dict.fromkeys(link.energy_pj_per_bit for link in links):
        first = next(link.name for link in links if link.energy_pj_per_bit == energy_pj)
        report_bit_of_link(problems, ("graph" if is_graph else "core_connectivity",), f"link {first}", energy_pj)
    if isinstance(entry, ConnectivityFile):
        note_unmodelled(problems, entry, links)
    places = _places(entry, ids, files, sharing)
    # Every core gets the common clock, because an energy term of a layer can need the clock and receives only a core.
    cores = tuple(replace(files[core_id].core, clock_frequency_mhz=clock) for core_id in ids.known)
    accelerator = MultiCoreAccelerator(
        entry.name,
        cores,
        places,
        links,
        shared.sharing_groups,
        shared.shared_memories,
        clock_frequency_mhz=clock,
        equal_paths=entry.equal_paths,
        forwards_constants=entry.forwarding,
    )
    check_paths(problems, accelerator, ("graph",) if is_graph else ("core_connectivity",))
    problems.finish(notices)
    return accelerator


def _core_files(problems: Problems, document: YamlDocument, ids: CoreIds) -> dict[int, CoreFile]:
    """Core files that can be read, by core id. A file that is used both for the off-chip core and for another core is
    read twice; any other file is read once."""
    folder = Path(document.file).parent if document.file else Path()
    contained = contained_cores(document.data)
    read: dict[tuple[Path | str, bool], CoreFile | None] = {}
    found: dict[int, CoreFile] = {}
    for core_id, (place, name) in core_files_of(document.data).items():
        path = find_core_file(name, folder) if contained is None else name
        if contained is not None and name not in contained:
            problems.unknown_name(place, "core_files has no such core", name, list(map(str, contained)))
            continue
        if path is None:
            missing = missing_file_problem(name, folder)
            problems.at(place, missing.message, name, missing.allowed, missing.nearest)
            continue
        key = (path, core_id == ids.offchip)
        if key not in read:
            try:
                read[key] = problems.attempt(_read_core, document, *key, problems.notices)
            except NotOneCoreError as error:
                problems.at(place, str(error), name)
                read[key] = None
        core_file = read[key]
        if core_file is not None:
            found[core_id] = core_file
    paths = {core_id: file.path for core_id, file in found.items() if file.path is not None}
    names = dict(zip(paths, core_file_names(list(paths.values())), strict=True))
    return {core_id: replace(file, name=names.get(core_id, file.name)) for core_id, file in found.items()}


def _read_core(document: YamlDocument, place: Path | str, offchip: bool, notices: list[str]) -> CoreFile:
    """Core file at `place`, which is a path, or a name under `core_files` of the accelerator file. Raises the errors of
    `read_core_file`.
    """
    if isinstance(place, Path):
        return read_core_file(place, offchip, notices, written_clock_mhz(document.data))
    return contained_core_file(document, place, offchip, notices)


def _check_offchip_ports(problems: Problems, document: YamlDocument, ids: CoreIds, files: dict[int, CoreFile]) -> None:
    """Report a problem if the off-chip memory has no port that can read, or no port that can write. Report a notice if
    there is no off-chip core.
    """
    if ids.offchip is None or ids.offchip not in files:
        if ids.known and ids.offchip is None:
            problems.notice((), "has no off-chip core, which would hold the weights and inputs of the network")
        return
    place, name = core_files_of(document.data)[ids.offchip]
    read, write, _ = offchip_ports(files[ids.offchip].core)
    for width, word in ((read, "read"), (write, "write")):
        if width is None:
            problems.at(place, f"no port of the off-chip memory can {word}", name)


def _links(
    entry: SystemFile,
    connections: tuple[Connection, ...],
    ports: tuple[MemoryPort, ...],
    ids: CoreIds,
    files: dict[int, CoreFile],
    sharing: set[Pair],
) -> tuple[Link, ...]:
    links: list[Link] = []
    if isinstance(entry, GraphFile):
        cost, is_multicast = LinkCost(entry.graph.unit_energy_cost), bool(entry.graph.multicast)
        links += with_multicast(graph_links(_graph(entry, ids), sharing), is_multicast)
    else:
        cost, is_multicast = default_cost(entry), bool(entry.multicast)
        for connection in connections:
            links += with_multicast(connection_links(connection, sharing), connection.is_multicast)
    named = any(ids.offchip in connection.core_ids for connection in connections)
    if ids.offchip is not None and ports:
        links += with_multicast(port_links(ports, ids.offchip, files[ids.offchip].core, cost), is_multicast)
    elif ids.offchip is not None and not named:
        links += with_multicast(offchip_links(ids.offchip, files[ids.offchip].core, ids.onchip, cost), is_multicast)
    return tuple(links)


def _graph(entry: GraphFile, ids: CoreIds) -> Graph:
    graph = entry.graph
    special = {graph.pooling_core_id, graph.simd_core_id, ids.offchip}
    return Graph(
        topology=graph.type,
        sizes=graph_sizes(graph),
        regular=tuple(core_id for core_id in ids.known if core_id not in special),
        pooling=graph.pooling_core_id,
        simd=graph.simd_core_id,
        bandwidth_bits_per_cycle=whole_bits(graph.bandwidth),
        cost=LinkCost(graph.unit_energy_cost),
    )


def _places(entry: SystemFile, ids: CoreIds, files: dict[int, CoreFile], sharing: set[Pair]) -> tuple[CorePlace, ...]:
    roles = _roles(entry, ids, files)
    coordinates: dict[int, tuple[int, int]] = {}
    if isinstance(entry, GraphFile):
        coordinates = _graph(entry, ids).coordinates()
    else:
        coordinates = {core_id: (place[0], place[1]) for core_id, place in entry.core_coordinates.items()}
    routers = _routers(entry, ids, roles, sharing)
    return tuple(
        CorePlace(
            core_id=core_id,
            file_name=files[core_id].name,
            role=roles[core_id],
            is_router=core_id in routers,
            operator_types=_operator_types(entry, ids, core_id, files[core_id]),
            coordinates=coordinates.get(core_id),
        )
        for core_id in ids.known
    )


def _roles(entry: SystemFile, ids: CoreIds, files: dict[int, CoreFile]) -> dict[int, str]:
    """Role of each core, by core id. A core whose file cannot be read counts as a compute core."""
    storing = {core_id for core_id, file in files.items() if file.is_memory}
    roles: dict[int, str] = {core_id: MEMORY if core_id in storing else COMPUTE for core_id in ids.known}
    if isinstance(entry, GraphFile):
        roles |= {
            core_id: role for key, role in ROLE_KEYS.items() if (core_id := getattr(entry.graph, key)) is not None
        }
    else:
        said = entry.core_roles or {}
        roles |= {copy: role for core_id, role in said.items() for copy in ids.with_copies([core_id])}
    if ids.offchip is not None:
        roles[ids.offchip] = OFFCHIP
    return roles


def _routers(entry: SystemFile, ids: CoreIds, roles: Mapping[int, str], sharing: set[Pair]) -> set[int]:
    """Ids of the cores through which data of other cores can pass."""
    if entry.routers is not None:
        return set(ids.with_copies(entry.routers))
    # A memory core that shares its memory with a compute core counts as a router.
    beside = {one for one, other in sharing if roles[one] == MEMORY and roles[other] == COMPUTE}
    return {core_id for core_id in ids.known if roles[core_id] == COMPUTE} | beside


def _operator_types(entry: Any, ids: CoreIds, core_id: int, core_file: CoreFile) -> tuple[str, ...] | None:
    """Operators that a core can run: from the accelerator file, else from the core file; None if neither gives them."""
    said = ids.said_of(entry.core_operator_types, core_id)
    if said is not None:
        return tuple(said)
    core: Core = core_file.core
    return core.operator_types if core_file.says_operator_types else None
