"""Reads the file of an accelerator of several cores and the core files that it names."""

from pathlib import Path
from typing import Any

from tilewright.errors import Problems
from tilewright.hardware.connections import default_cost, read_connections
from tilewright.hardware.core import Core
from tilewright.hardware.core_files import CoreFile, NotOneCoreError, missing_file_problem, read_core_file
from tilewright.hardware.core_paths import CoreIds, core_file_names, core_files_of, core_ids_of, find_core_file
from tilewright.hardware.paths import check_paths
from tilewright.hardware.system import COMPUTE, MEMORY, OFFCHIP, CorePlace, Link, MultiCoreAccelerator, all_pairs
from tilewright.hardware.system_checks import (
    check_graph,
    check_ids,
    check_shared_memories,
    check_unmodelled,
    note_closed_memories,
    note_silent_ports,
    note_unmodelled,
    sharing_groups,
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
    groups = sharing_groups(problems, entry, ids)
    for group, path in groups:
        if all(core_id in files for core_id in group):
            check_shared_memories(problems, path, {core_id: files[core_id].core for core_id in group})
    sharing = {pair for group, _ in groups for pair in all_pairs(group)}
    connections: tuple[Connection, ...] = ()
    if isinstance(entry, GraphFile):
        check_graph(problems, document, entry, ids)
    else:
        connections = read_connections(problems, entry, ids, sharing)
        check_unmodelled(problems, entry, ids, {core_id: file.core for core_id, file in files.items()})
    _check_offchip_ports(problems, document, ids, files)
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
    sharers = tuple(group for group, _ in groups)
    accelerator = MultiCoreAccelerator(entry.name, cores, places, links, sharers)
    check_paths(problems, accelerator, ("graph",) if is_graph else ("core_connectivity",))
    problems.finish(notices)
    return accelerator


def _core_files(problems: Problems, document: YamlDocument, ids: CoreIds) -> dict[int, CoreFile]:
    """Core id -> file, of the files that can be read; each file is read once for each way it is used."""
    folder = Path(document.file).parent if document.file else Path()
    read: dict[tuple[Path, bool], CoreFile | None] = {}
    found: dict[int, CoreFile] = {}
    for core_id, (place, name) in core_files_of(document.data).items():
        path = find_core_file(name, folder)
        if path is None:
            missing = missing_file_problem(name, folder)
            problems.at(place, missing.message, name, missing.allowed, missing.nearest)
            continue
        key = (path, core_id == ids.offchip)
        if key not in read:
            try:
                read[key] = problems.attempt(read_core_file, *key, problems.notices)
            except NotOneCoreError as error:
                problems.at(place, str(error), name)
                read[key] = None
        core_file = read[key]
        if core_file is not None:
            found[core_id] = core_file
    return found


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
    names = dict(zip(ids.known, core_file_names([files[core_id].path for core_id in ids.known]), strict=True))
    roles: dict[int, str] = {core_id: MEMORY if files[core_id].is_memory else COMPUTE for core_id in ids.known}
    coordinates: dict[int, tuple[int, int]] = {}
    if isinstance(entry, GraphFile):
        roles |= {
            core_id: role for key, role in ROLE_KEYS.items() if (core_id := getattr(entry.graph, key)) is not None
        }
        coordinates = _graph(entry, ids).coordinates()
    else:
        roles |= entry.core_roles
        coordinates = {core_id: (place[0], place[1]) for core_id, place in entry.core_coordinates.items()}
    if ids.offchip is not None:
        roles[ids.offchip] = OFFCHIP
    routers = entry.routers
    if routers is None:
        routers = [core_id for core_id in ids.known if roles[core_id] == COMPUTE]
        # A memory of its own core file that compute cores share is one place with them.
        routers += [one for one, other in sharing if roles[one] == MEMORY and roles[other] == COMPUTE]
    return tuple(
        CorePlace(
            core_id=core_id,
            file_name=names[core_id],
            role=roles[core_id],
            is_router=core_id in routers,
            operator_types=_operator_types(entry, core_id, files[core_id]),
            coordinates=coordinates.get(core_id),
        )
        for core_id in ids.known
    )


def _operator_types(entry: Any, core_id: int, core_file: CoreFile) -> tuple[str, ...] | None:
    """What a core can run: what the accelerator says, else what the core file says, else unknown."""
    said = entry.core_operator_types.get(core_id)
    if said is not None:
        return tuple(said)
    core: Core = core_file.core
    return core.operator_types if core_file.says_operator_types else None
