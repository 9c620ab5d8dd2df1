"""Ports of the off-chip memory that are linked with only some of the cores: the key `offchip_ports` of an accelerator
file.

Each port is a link (or a link for each direction) between the off-chip core and the cores that the port names. Every
port reaches all data. Without the key, all other cores are linked with the same ports, which are in the core file of
the off-chip memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.base.errors import WRITTEN, KeyPath, Problems
from tilewright.base.validation import each
from tilewright.hardware.core import Core
from tilewright.hardware.core_paths import CoreIds
from tilewright.hardware.system import Link
from tilewright.hardware.system_checks import known_core
from tilewright.hardware.system_links import Connection, LinkCost, offchip_links, whole_bits
from tilewright.hardware.system_schema import SystemFile

KEY = "offchip_ports"


@dataclass(frozen=True)
class MemoryPort:
    """Port of the off-chip memory."""

    core_ids: tuple[int, ...]
    """Ids of the cores that the port is linked with."""
    bandwidth: int | float | None
    """Bandwidth of the port, in bits per cycle; None for the bandwidth that the core file of the off-chip memory gives.
    """


def read_ports(
    problems: Problems, entry: SystemFile, ids: CoreIds, connections: Sequence[Connection]
) -> tuple[MemoryPort, ...]:
    """Ports that the key `offchip_ports` of a file gives, without ports that name unknown cores. Errors are
    reported.
    """
    if not entry.offchip_ports:
        return ()
    if ids.offchip is None:
        problems.at((KEY,), "needs an off-chip core, but the file has none", WRITTEN, "offchip_core: FILE")
    if any(ids.offchip in connection.core_ids for connection in connections):
        message = "an entry of core_connectivity also names the off-chip core, and would add one more port"
        problems.at((KEY,), message, WRITTEN, f"either links of the off-chip core in core_connectivity, or {KEY}")
    found = []
    for index, port in each(entry.offchip_ports):
        path: KeyPath = (KEY, index, "cores")
        if problems.has(KEY, index) or port.cores is None:
            continue
        fine = [known_core(problems, (*path, place), core_id, ids) for place, core_id in enumerate(port.cores)]
        problems.repeated(path, port.cores, "is listed twice")
        if ids.offchip in port.cores:
            problems.at((*path, port.cores.index(ids.offchip)), "is the off-chip core itself", ids.offchip, ids.allowed)
        if all(fine):
            found.append(MemoryPort(ids.with_copies(port.cores), port.bandwidth))
    return tuple(found)


def port_links(ports: Sequence[MemoryPort], offchip_id: int, core: Core, cost: LinkCost) -> Iterator[Link]:
    """Links of the ports of the off-chip core. The name of a link contains the index of its port in the file."""
    for number, port in enumerate(ports):
        width = None if port.bandwidth is None else whole_bits(port.bandwidth)
        is_given = port.bandwidth is not None
        yield from offchip_links(offchip_id, core, port.core_ids, cost, f"port {number}", (width,) if is_given else ())
