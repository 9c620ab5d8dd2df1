"""Small accelerators of several cores and made-up cost tables, for tests of whole scheduling problems."""

from collections.abc import Sequence
from dataclasses import replace

from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.hardware.system import (
    BUS,
    OFFCHIP,
    OFFCHIP_PORT,
    POINT_TO_POINT,
    CorePlace,
    Link,
    MultiCoreAccelerator,
    all_pairs,
)
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.tiling import HintLoopOptions, hint_loop_tiling
from tilewright.multicore.scheduling.core_costs import CoreCostRow, Stream
from tilewright.multicore.scheduling.cost_classes import cost_classes
from tilewright.workload.graph import Workload

ANY = Mapping((MappingConstraints("default"),))
WIDTH = 64
OPERANDS = ("I1", "I2", "O")


def memory(name: str, operands: Sequence[str] = OPERANDS, size_bits: int = 100_000, width: int = 1024) -> Memory:
    """A memory with a read port and a write port; a word costs 1 pJ to read and 2 pJ to write."""
    read = tuple((operand, direction) for operand in operands for direction in ("tl", "th"))
    write = tuple((operand, direction) for operand in operands for direction in ("fh", "fl"))
    ports = (Port("r", "read", 8, width, read), Port("w", "write", 8, width, write))
    return Memory(name, size_bits, 1.0, 2.0, tuple(operands), ports, ("D1",))


def core(name: str, *memories: Memory) -> Core:
    """A core with one unit of computation."""
    return Core(name, OperationalArray((("D1", 1),), 1.0), memories or (memory("buffer"),))


def off_chip_core(width: int = WIDTH) -> Core:
    """An off-chip memory with one port; a word costs 10 pJ to read and 20 pJ to write."""
    both = tuple((operand, direction) for operand in OPERANDS for direction in ("tl", "th", "fh", "fl"))
    port = Port("rw", "read_write", width, width, both)
    dram = Memory("dram", 10**9, 10.0, 20.0, OPERANDS, (port,), ("D1",))
    return Core("offchip", OperationalArray((("D1", 1),), 0.0), (dram,))


def accelerator(
    cores: Sequence[Core], links: Sequence[Link] = (), sharing: Sequence[tuple[int, ...]] = (), port_pj: float = 0.5
) -> MultiCoreAccelerator:
    """Cores 0, 1, ... and the off-chip core, whose one port is a link to all."""
    off_chip = len(cores)
    ids = tuple(range(off_chip))
    edges = tuple((i, off_chip) for i in ids) + tuple((off_chip, i) for i in ids)
    port = Link(f"port of {off_chip}", OFFCHIP_PORT, edges, WIDTH, port_pj)
    places = tuple(CorePlace(i, one.name) for i, one in enumerate(cores))
    places += (CorePlace(off_chip, "offchip", OFFCHIP, False),)
    return MultiCoreAccelerator("tiny", (*cores, off_chip_core()), places, (*links, port), tuple(sharing))


def one_way(source: int, target: int, width: int | None = WIDTH) -> Link:
    """A link from one core to another, at 0.25 pJ a bit."""
    return Link(f"{source}->{target}", POINT_TO_POINT, ((source, target),), width, 0.0 if width is None else 0.25)


def bus(*core_ids: int) -> Link:
    """A bus that links some cores, at 0.25 pJ a bit."""
    return Link("bus", BUS, all_pairs(core_ids), WIDTH, 0.25)


def two_cores(width: int | None = WIDTH) -> MultiCoreAccelerator:
    """Two unlike cores with one buffer each, linked in both directions."""
    return accelerator([core("left"), core("right")], [one_way(0, 1, width), one_way(1, 0, width)])


def with_place(system: MultiCoreAccelerator, core_id: int, **changes: object) -> MultiCoreAccelerator:
    """The accelerator with changed properties of one core."""
    places = tuple(
        replace(place, **changes) if place.core_id == core_id else place  # type: ignore[arg-type]
        for place in system.places
    )
    return replace(system, places=places)


def cut(workload: Workload, loops: Sequence[tuple[str, int | str]] = ()) -> CnGraph:
    """The CN graph of a network whose layers are cut by loops; without loops, each layer is one CN."""
    return build_cn_graph(workload, hint_loop_tiling(workload, HintLoopOptions(hint_loops=list(loops))))


def costs(
    graph: CnGraph,
    workload: Workload,
    system: MultiCoreAccelerator,
    cycles: int = 100,
    energy_pj: float = 7.0,
    streams: Sequence[Stream] = (),
    mapping: Mapping = ANY,
) -> dict[str, tuple[CoreCostRow, ...]]:
    """Equal costs for every class on every core; total0 is a cycle less than total1, total2 a cycle more."""
    count = len(cost_classes(graph, workload, mapping).classes)
    rows = tuple(
        CoreCostRow(
            number,
            ideal_cycles=1,
            total0_cycles=cycles - 1,
            total1_cycles=cycles,
            total2_cycles=cycles + 1,
            on_core_energy_pj=energy_pj,
            operational_energy_pj=energy_pj,
            streams=tuple(streams),
        )
        for number in range(count)
    )
    return dict.fromkeys(system.distinct_cores, rows)
