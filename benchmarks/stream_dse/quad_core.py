"""Quad core of `config/hardware/multi/quad_core.yaml` as Python objects of stream-dse 0.0.8.

As in the YAML files, sizes are in bits, bandwidths in bits per cycle, and energies in pJ per word of the full
bandwidth. For a link, stream-dse takes the energy per cycle: the energy per bit in the YAML file, times the bandwidth.
"""

from networkx import DiGraph
from stream.classes.hardware.architecture.accelerator import Accelerator
from stream.classes.hardware.architecture.communication_link import CommunicationLink
from stream.classes.hardware.architecture.pooling_array import PoolingArray
from stream.classes.hardware.architecture.pooling_unit import PoolingUnit
from stream.classes.hardware.architecture.simd_array import SimdArray
from stream.classes.hardware.architecture.simd_unit import SimdUnit
from zigzag.classes.hardware.architecture.core import Core
from zigzag.classes.hardware.architecture.memory_hierarchy import MemoryHierarchy
from zigzag.classes.hardware.architecture.memory_instance import MemoryInstance
from zigzag.classes.hardware.architecture.operational_array import MultiplierArray
from zigzag.classes.hardware.architecture.operational_unit import Multiplier

COMPUTE, POOLING, SIMD, OFF_CHIP = (0, 1, 2, 3), 4, 5, 6
LINK_BITS = 64
LINK_PJ_PER_BIT, BUS_PJ_PER_BIT = 0.08, 0.32
SRAM_BITS = 256 * 1024 * 8
INPUT_PORTS = {"fh": "w_port_1", "tl": "r_port_1", "fl": None, "th": None}
OUTPUT_PORTS = {"fh": "w_port_1", "tl": "r_port_1", "fl": "w_port_1", "th": "r_port_1"}


def weight_register() -> MemoryInstance:
    """Register for one weight, beside each multiplier."""
    return MemoryInstance("rf_weight", 8, r_bw=8, w_bw=8, r_cost=0.02, w_cost=0.02)


def output_register(hierarchy: MemoryHierarchy, served: set[tuple[int, ...]]) -> None:
    """Add a register for one partial sum beside each adder tree. `served` has the array dimensions that the tree sums,
    as one-hot tuples.
    """
    memory = MemoryInstance("rf_output", 16, r_bw=16, w_bw=16, r_cost=0.04, w_cost=0.04, r_port=2, w_port=2)
    ports = {"fh": "w_port_1", "tl": "r_port_1", "fl": "w_port_2", "th": "r_port_2"}
    hierarchy.add_memory(memory_instance=memory, operands=("O",), port_alloc=(ports,), served_dimensions=served)


def sram(hierarchy: MemoryHierarchy, name: str, operands: tuple[str, ...]) -> None:
    """Add a top memory of 256 KiB. Its ports read and write 512 bits per cycle, in steps of 64 bits."""
    memory = MemoryInstance(
        name, SRAM_BITS, r_bw=512, w_bw=512, r_cost=420, w_cost=420, min_r_granularity=64, min_w_granularity=64
    )
    ports = tuple(OUTPUT_PORTS if operand == "O" else INPUT_PORTS for operand in operands)
    hierarchy.add_memory(memory_instance=memory, operands=operands, port_alloc=ports, served_dimensions="all")


def compute_core(core_id: int) -> Core:
    """Core of `cores/k16_c16.yaml`."""
    array = MultiplierArray(Multiplier([8, 8], 0.23, 0), {"D1": 16, "D2": 16})
    hierarchy = MemoryHierarchy(operational_array=array)
    hierarchy.add_memory(
        memory_instance=weight_register(), operands=("I2",), port_alloc=(INPUT_PORTS,), served_dimensions=set()
    )
    output_register(hierarchy, {(0, 1)})
    sram(hierarchy, "sram_weight", ("I2",))
    sram(hierarchy, "sram_activation", ("I1", "O"))
    return Core(core_id, array, hierarchy, [{"D1": ("K", 16), "D2": ("C", 16)}])


def pooling_core(core_id: int) -> Core:
    """Core of `cores/pooling.yaml`."""
    array = PoolingArray(PoolingUnit([8, 8], 0.03, 0), {"D1": 16, "D2": 3, "D3": 3})
    hierarchy = MemoryHierarchy(operational_array=array)
    output_register(hierarchy, {(0, 1, 0), (0, 0, 1)})
    sram(hierarchy, "sram", ("I1", "I2", "O"))
    return Core(core_id, array, hierarchy, [{"D1": ("K", 16), "D2": ("FX", 3), "D3": ("FY", 3)}])


def simd_core(core_id: int) -> Core:
    """Core of `cores/simd.yaml`."""
    array = SimdArray(SimdUnit([8, 8], 0.03, 0), {"D1": 32})
    hierarchy = MemoryHierarchy(operational_array=array)
    sram(hierarchy, "sram", ("I1", "I2", "O"))
    return Core(core_id, array, hierarchy, [{"D1": ("K", 32)}])


def off_chip_core(core_id: int) -> Core:
    """Core of `cores/offchip.yaml`, with one port for reads and writes."""
    array = MultiplierArray(Multiplier([8, 8], float("inf"), 0), {"D1": 1, "D2": 1})
    hierarchy = MemoryHierarchy(operational_array=array)
    dram = MemoryInstance(
        "dram", 2**33, r_bw=64, w_bw=64, r_cost=1300, w_cost=1300, r_port=0, w_port=0, rw_port=1, latency=1
    )
    port = "rw_port_1"
    inputs = {"fh": port, "tl": port, "fl": None, "th": None}
    ports = (inputs, inputs, {"fh": port, "tl": port, "fl": port, "th": port})
    hierarchy.add_memory(memory_instance=dram, operands=("I1", "I2", "O"), port_alloc=ports, served_dimensions="all")
    return Core(core_id, array, hierarchy)


def links(cores: dict[int, Core]) -> DiGraph:
    """Graph of links: links between neighbours in the square, a bus for all other pairs on the chip, and the single
    port of the off-chip memory.
    """
    graph = DiGraph()
    bus = CommunicationLink("Any", "Any", LINK_BITS, LINK_BITS * BUS_PJ_PER_BIT, bidirectional=True)
    port = CommunicationLink(cores[OFF_CHIP], "Any", LINK_BITS, LINK_BITS * BUS_PJ_PER_BIT, bidirectional=True)
    square = {(0, 1), (0, 2), (1, 3), (2, 3)}
    for first in cores:
        for second in cores:
            if first == second:
                continue
            if OFF_CHIP in (first, second):
                link = port
            elif (min(first, second), max(first, second)) in square:
                link = CommunicationLink(cores[first], cores[second], LINK_BITS, LINK_BITS * LINK_PJ_PER_BIT)
            else:
                link = bus
            graph.add_edge(cores[first], cores[second], cl=link)
    return graph


CORES = {core_id: compute_core(core_id) for core_id in COMPUTE}
CORES |= {POOLING: pooling_core(POOLING), SIMD: simd_core(SIMD), OFF_CHIP: off_chip_core(OFF_CHIP)}
accelerator = Accelerator("quad_core", links(CORES), offchip_core_id=OFF_CHIP)
"""Accelerator. stream-dse looks for this name."""
