"""Small systems of several cores for the tests of cost tables, and networks cut for them."""

from tilewright.hardware.core import Core, Dataflow, Memory, OperationalArray, Port
from tilewright.hardware.system import OFFCHIP, CorePlace, MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.nodes.tiling import HintLoopOptions, hint_loop_tiling
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload

OPTIONS = SearchOptions(model="corrected")
ANY = Mapping((MappingConstraints("default"),))


def memory(
    name: str,
    size_bits: int,
    operands: tuple[str, ...],
    width: int = 32,
    served: tuple[str, ...] = ("D1",),
    energy: tuple[float, float] = (1.0, 2.0),
) -> Memory:
    """A memory with a read port and a write port, which move whole words only."""
    read = tuple((operand, way) for operand in operands for way in ("tl", "th"))
    write = tuple((operand, way) for operand in operands for way in ("fh", "fl"))
    ports = (Port("r", "read", width, width, read), Port("w", "write", width, width, write))
    return Memory(name, size_bits, *energy, operands, ports, served)


def core(
    *memories: Memory,
    lanes: int = 4,
    dataflows: tuple[Dataflow, ...] = ((("D1", (("K", 4),)),),),
    name: str = "small",
) -> Core:
    """A core of `lanes` multipliers in a row; a multiplication takes 0.5 pJ."""
    return Core(name, OperationalArray((("D1", lanes),), 0.5), memories, dataflows, ("all",))


def off_chip(width: int = 8) -> Core:
    """An off-chip core: a large memory with one port."""
    ways = tuple((operand, way) for operand in ("I1", "I2", "O") for way in ("fh", "tl", "fl", "th"))
    dram = Memory("dram", 2**33, 100.0, 200.0, ("I1", "I2", "O"), (Port("rw", "read_write", width, width, ways),), ())
    return Core("off", OperationalArray((("D1", 1),), 0.0), (dram,))


def system(cores: dict[str, Core], memory_width: int = 8, **places: object) -> MultiCoreAccelerator:
    """An accelerator with one core for each file, and an off-chip core behind a port of `memory_width` bits a cycle."""
    own = [CorePlace(number, name, **places) for number, name in enumerate(cores)]  # type: ignore[arg-type]
    everything = (*cores.values(), off_chip(memory_width))
    return MultiCoreAccelerator("system", everything, (*own, CorePlace(len(own), "off", OFFCHIP, False)), ())


def cut(workload: Workload, *loops: tuple[str, int | str]) -> CnGraph:
    """The CN graph of a network whose layers are all cut alike."""
    return build_cn_graph(workload, hint_loop_tiling(workload, HintLoopOptions(hint_loops=list(loops))))
