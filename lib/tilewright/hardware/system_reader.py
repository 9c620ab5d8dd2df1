"""Reads the file of an accelerator of several cores and the core files that it names."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.errors import Problems
from tilewright.hardware.connections import default_cost, read_connections
from tilewright.hardware.core import Core
from tilewright.hardware.core_files import (
    CoreFile,
    NotOneCoreError,
    contained_core_file,
    missing_file_problem,
    read_core_file,
)
from tilewright.hardware.core_paths import (
    CoreIds,
    contained_cores,
    core_file_names,
    core_files_of,
    core_ids_of,
    find_core_file,
)
from tilewright.hardware.memory_sharing import read_sharing
from tilewright.hardware.paths import check_paths
from tilewright.hardware.system import COMPUTE, MEMORY, OFFCHIP, CorePlace, Link, MultiCoreAccelerator
from tilewright.hardware.system_checks import (
    check_graph,
    check_ids,
    check_unmodelled,
    note_closed_memories,
    note_silent_ports,
    note_unmodelled,
)
from tilewright.hardware.system_clock import read_clock
from tilewright.hardware.system_links import (
    Connection,
    Graph,
    LinkCost,
    connection_links,
    graph_links,
    offchip_links,
    offchip_ports,
    whole_bits,
)
from tilewright.hardware.system_schema import MESH, ROLE_KEYS, ConnectivityFile, GraphFile, SystemFile
from tilewright.validation import validate
from tilewright.yamlfile import YamlDocument, table

Pair = tuple[int, int]


def multi_core_of(document: YamlDocument, notices: list[str] | None = None) -> MultiCoreAccelerator:
    """The accelerator of a loaded document. Raises InputError with every problem of it and of its core files.

    Core files are found from the folder of the document, or from the working folder if it has no file.
    """
    problems, data = Problems(document), table(document.data)
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
        check_unmodelled(problems, entry, ids, {core_id: file.core for core_id, file in files.items()})
    _check_offchip_ports(problems, document, ids, files)
    named = core_files_of(document.data)
    clock = read_clock(
        problems, entry, {named[core_id][0]: file.core for core_id, file in files.items() if core_id in named}
    )
    for core_id, (place, _) in core_files_of(document.data).items():
        if core_id in files:
            note = note_silent_ports if core_id == ids.offchip else note_closed_memories
            note(problems, place, files[core_id].core)
    problems.finish()
    links = _links(entry, connections, ids, files, sharing)
    if isinstance(entry, ConnectivityFile):
        note_unmodelled(problems, entry, links)
    places = _places(entry, ids, files, sharing)
    cores = tuple(files[core_id].core for core_id in ids.known)
    shares = shared.sharing_groups, shared.shared_memories
    accelerator = MultiCoreAccelerator(entry.name, cores, places, links, *shares, clock_frequency_mhz=clock)
    check_paths(problems, accelerator, ("graph",) if is_graph else ("core_connectivity",))
    problems.finish(notices)
    return accelerator


def _core_files(problems: Problems, document: YamlDocument, ids: CoreIds) -> dict[int, CoreFile]:
    """Core id -> file, of the files that can be read; each file is read once for each way it is used."""
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
    """The core in a file, or in the accelerator file under a name. Raises InputError."""
    if isinstance(place, Path):
        return read_core_file(place, offchip, notices)
    return contained_core_file(document, place, offchip, notices)


def _check_offchip_ports(problems: Problems, document: YamlDocument, ids: CoreIds, files: dict[int, CoreFile]) -> None:
    """Record an off-chip memory that cannot be read or written, and note ports that nothing uses."""
    if ids.offchip is None or ids.offchip not in files:
        if ids.known and ids.offchip is None:
            problems.notice((), "has no off-chip core: weights and inputs of the network have nowhere to come from")
        return
    place, name = core_files_of(document.data)[ids.offchip]
    read, write, _ = offchip_ports(files[ids.offchip].core)
    for width, word in ((read, "read"), (write, "write")):
        if width is None:
            problems.at(place, f"no port of the off-chip memory can {word}", name)


def _links(
    entry: SystemFile,
    connections: tuple[Connection, ...],
    ids: CoreIds,
    files: dict[int, CoreFile],
    sharing: set[Pair],
) -> tuple[Link, ...]:
    links: list[Link] = []
    if isinstance(entry, GraphFile):
        cost = LinkCost(entry.graph.unit_energy_cost)
        links += graph_links(_graph(entry, ids), sharing)
    else:
        cost = default_cost(entry)
        for connection in connections:
            links += connection_links(connection, sharing)
    named = any(ids.offchip in connection.core_ids for connection in connections)
    if ids.offchip is not None and not named:
        links += offchip_links(ids.offchip, files[ids.offchip].core, ids.onchip, cost)
    return tuple(links)


def _graph(entry: GraphFile, ids: CoreIds) -> Graph:
    graph = entry.graph
    is_mesh = graph.type == MESH
    special = {graph.pooling_core_id, graph.simd_core_id, ids.offchip}
    return Graph(
        rows=(graph.nb_rows or 0) if is_mesh else 0,
        columns=(graph.nb_cols or 0) if is_mesh else 0,
        regular=tuple(core_id for core_id in ids.known if core_id not in special),
        pooling=graph.pooling_core_id,
        simd=graph.simd_core_id,
        bandwidth_bits_per_cycle=whole_bits(graph.bandwidth),
        cost=LinkCost(graph.unit_energy_cost),
    )


def _places(entry: SystemFile, ids: CoreIds, files: dict[int, CoreFile], sharing: set[Pair]) -> tuple[CorePlace, ...]:
    roles: dict[int, str] = {core_id: MEMORY if files[core_id].is_memory else COMPUTE for core_id in ids.known}
    coordinates: dict[int, tuple[int, int]] = {}
    if isinstance(entry, GraphFile):
        roles |= {
            core_id: role for key, role in ROLE_KEYS.items() if (core_id := getattr(entry.graph, key)) is not None
        }
        coordinates = _graph(entry, ids).coordinates()
    else:
        roles |= {copy: role for core_id, role in entry.core_roles.items() for copy in ids.with_copies([core_id])}
        coordinates = {core_id: (place[0], place[1]) for core_id, place in entry.core_coordinates.items()}
    if ids.offchip is not None:
        roles[ids.offchip] = OFFCHIP
    routers = None if entry.routers is None else list(ids.with_copies(entry.routers))
    if routers is None:
        routers = [core_id for core_id in ids.known if roles[core_id] == COMPUTE]
        # A memory of its own core file that compute cores share is one place with them.
        routers += [one for one, other in sharing if roles[one] == MEMORY and roles[other] == COMPUTE]
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


def _operator_types(entry: Any, ids: CoreIds, core_id: int, core_file: CoreFile) -> tuple[str, ...] | None:
    """What a core can run: what the accelerator says, else what the core file says, else unknown."""
    said = ids.said_of(entry.core_operator_types, core_id)
    if said is not None:
        return tuple(said)
    core: Core = core_file.core
    return core.operator_types if core_file.says_operator_types else None
