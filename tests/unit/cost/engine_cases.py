"""Fixed and random layers, cores and mappings for the tests of the engines."""

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import MappingConstraints, TemporalOrderingEntry, Unrolling
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import DimensionRelation, Layer

from tests.unit.mapping.vector_layers import vector_layers

LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))
BITS = (("W", 8), ("I", 8), ("O", 16), ("O_final", 8))
CONVOLUTION_LOOPS = ("B", "K", "C", "OY", "OX", "FY", "FX")
Order = tuple[tuple[str, int], ...]


def convolution(
    name: str = "conv",
    padding: int = 0,
    strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1),
    bits: tuple[tuple[str, int], ...] = BITS,
    **sizes: int,
) -> Layer:
    """Return a convolution; omitted loop sizes are 1."""
    return Layer(
        name,
        "Conv",
        (("O", ("B", "K", "OY", "OX")), ("W", ("K", "C", "FY", "FX")), ("I", ("B", "C", "IY", "IX"))),
        tuple((d, sizes.get(d, 1)) for d in CONVOLUTION_LOOPS),
        (
            DimensionRelation("IX", (("OX", strides[0]), ("FX", dilations[0]))),
            DimensionRelation("IY", (("OY", strides[1]), ("FY", dilations[1]))),
        ),
        bits,
        (("IX", (padding, padding)), ("IY", (padding, padding))) if padding else (),
        constant_operands=("W",),
    )


def depthwise(name: str = "depthwise", bits: tuple[tuple[str, int], ...] = BITS, **sizes: int) -> Layer:
    """Return a convolution with one channel a group; with 0 bits for W it is a pooling layer."""
    return Layer(
        name,
        "Conv",
        (("O", ("B", "G", "OY", "OX")), ("W", ("G", "FY", "FX")), ("I", ("B", "G", "IY", "IX"))),
        tuple((d, sizes.get(d, 1)) for d in ("B", "G", "OX", "OY", "FX", "FY")),
        (DimensionRelation("IX", (("OX", 2), ("FX", 1))), DimensionRelation("IY", (("OY", 2), ("FY", 1)))),
        bits,
    )


def gemm(name: str = "gemm", bits: tuple[tuple[str, int], ...] = BITS, **sizes: int) -> Layer:
    """Return O[d][k] += I[d][c] * W[c][k]."""
    return Layer(
        name,
        "Gemm",
        (("O", ("D", "K")), ("I", ("D", "C")), ("W", ("C", "K"))),
        tuple((d, sizes.get(d, 1)) for d in ("C", "D", "K")),
        (),
        bits,
        constant_operands=("W",),
    )


def one_input(name: str = "relu", bits: tuple[tuple[str, int], ...] = BITS, **sizes: int) -> Layer:
    """Return O[d][k] += I[d][k]."""
    return Layer(
        name, "Relu", (("O", ("D", "K")), ("I", ("D", "K"))), tuple((d, sizes.get(d, 1)) for d in ("D", "K")), (), bits
    )


def memory(
    name: str,
    size_bits: int,
    operands: tuple[str, ...],
    served: tuple[str, ...],
    costs: tuple[float, float] = (1.0, 1.0),
    read: int = 64,
    write: int = 64,
    granularity: int = 8,
    top: bool = False,
    **other: Any,
) -> Memory:
    """Return a memory with one read and one write port."""
    reads = [(o, d) for o in operands for d in (("tl", "th") if o == "O" else ("tl",)) if not (top and d == "th")]
    writes = [(o, d) for o in operands for d in (("fl", "fh") if o == "O" else ("fh",)) if not (top and d == "fh")]
    ports = [Port("r_port_1", "read", min(granularity, read), read, tuple(reads))]
    if writes:
        ports.append(Port("w_port_1", "write", min(granularity, write), write, tuple(writes)))
    return Memory(name, size_bits, *costs, operands, tuple(ports), served, **other)


def small_core(
    array: tuple[tuple[str, int], ...] = (("D1", 4), ("D2", 4)), buffer_bits: int = 4096, **buffer: Any
) -> Core:
    """Return registers for weights and outputs, a buffer for inputs and outputs, and a top memory for all operands."""
    served = tuple(name for name, _ in array)
    return Core(
        "small",
        OperationalArray(array, 0.5),
        (
            memory("weights", 64, ("I2",), (), (0.1, 0.1), 8, 8),
            memory("sums", 16, ("O",), served[1:2], (0.2, 0.2), 16, 16),
            memory("buffer", buffer_bits, ("I1", "O"), served, (10.0, 9.0), 64, 64, **buffer),
            memory("top", 10**13, ("I1", "I2", "O"), served, (100.0, 90.0), 64, 64, top=True),
        ),
    )


def register_core(
    buffer_bits: int = 10**6, array: tuple[tuple[str, int], ...] = (("D1", 4),), top_bits: int = 10**12
) -> Core:
    """Return one buffer for all operands below a top memory, which is easy to work out by hand."""
    served = tuple(name for name, _ in array)
    return Core(
        "register",
        OperationalArray(array, 1.0),
        (
            memory("buffer", buffer_bits, ("I1", "I2", "O"), served, (1.0, 1.0)),
            memory("top", top_bits, ("I1", "I2", "O"), served, (10.0, 10.0), top=True),
        ),
    )


def tpu_like() -> Core:
    """The example core of zigzag-dse 3.9.1: 32 x 32 multipliers, registers, 2 MB of SRAM, DRAM; systolic."""
    every = ("D1", "D2")
    dram = ("I1", "I2", "O")
    return Core(
        "tpu_like",
        OperationalArray((("D1", 32), ("D2", 32)), 0.04, 1.0, every),
        (
            memory("rf_128B", 1024, ("I2",), (), (0.095, 0.095), 8, 8, 8),
            Memory(
                "rf_2B",
                16,
                0.021,
                0.021,
                ("O",),
                (
                    Port("r_port_1", "read", 16, 16, (("O", "tl"),)),
                    Port("r_port_2", "read", 16, 16, (("O", "th"),)),
                    Port("w_port_1", "write", 16, 16, (("O", "fh"),)),
                    Port("w_port_2", "write", 16, 16, (("O", "fl"),)),
                ),
                (),
            ),
            memory("sram_2MB", 16777216, ("I1", "O"), every, (416.16, 378.4), 2048, 2048, 64),
            Memory(
                "dram",
                10**10,
                700.0,
                750.0,
                dram,
                (
                    Port(
                        "rw_port_1",
                        "read_write",
                        64,
                        64,
                        tuple((o, d) for o in dram for d in (("fl", "tl", "fh", "th") if o == "O" else ("tl", "fh"))),
                    ),
                ),
                every,
            ),
        ),
    )


def network(layers: list[Layer], name: str = "network") -> Workload:
    """Return a network of layers without edges."""
    return Workload(name, tuple(WorkloadNode(i, x.name, x.operator_type, x) for i, x in enumerate(layers)))


def constraints(unrolling: Unrolling = (), ordering: list[list[Any]] | None = None, **other: Any) -> MappingConstraints:
    """Return mapping constraints; `ordering` is as in a mapping file, innermost first."""
    entries = tuple(TemporalOrderingEntry(d, None if size == "*" else size) for d, size in ordering or [])
    return MappingConstraints("default", unrolling, temporal_ordering=entries, **other)


def rank(objective: str, energy_pj: float, latency_cycles: float) -> tuple[float, ...]:
    """Return the key by which two mappings are compared."""
    return {
        "latency": (latency_cycles, energy_pj),
        "energy": (energy_pj, latency_cycles),
        "EDP": (latency_cycles * energy_pj,),
    }[objective]


@dataclass(frozen=True)
class Case:
    """A layer on a core with a spatial mapping; the order is drawn once the temporal sizes are known."""

    layer: Layer
    core: Core
    links: tuple[tuple[str, str], ...]
    unrolling: Unrolling
    even: bool


sizes = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 12])
bit_widths = st.sampled_from([1, 4, 8, 16])


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    """Generate small layers of every kind."""
    final = draw(bit_widths)
    bits = (
        ("W", draw(st.sampled_from([0, 1, 4, 8]))),
        ("I", draw(bit_widths)),
        ("O", draw(st.sampled_from([final, 2 * final, 24]))),
        ("O_final", final),
    )
    kind = draw(st.sampled_from(["convolution", "convolution", "gemm", "depthwise", "one_input", "vector", "vector"]))
    if kind == "vector":
        return draw(vector_layers())
    if kind == "convolution":
        pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
        values = {d: draw(sizes) for d in CONVOLUTION_LOOPS}
        values |= {d: draw(st.integers(1, 3)) for d in ("B", "FX", "FY")}
        return convolution(padding=0, strides=draw(pair), dilations=draw(pair), bits=bits, **values)
    if kind == "gemm":
        return gemm(bits=bits, **{d: draw(sizes) for d in ("C", "D", "K")})
    if kind == "depthwise":
        values = {d: draw(sizes) for d in ("G", "OX", "OY")} | {d: draw(st.integers(1, 3)) for d in ("FX", "FY")}
        return depthwise(bits=bits, **values)
    return one_input(bits=bits, **{d: draw(sizes) for d in ("D", "K")})


@st.composite
def ports(draw: st.DrawFn, operands: tuple[str, ...], top: bool) -> tuple[Port, ...]:
    """Generate one to four ports that cover every link of the operands."""
    links = [(o, d) for o in operands for d in (("tl", "fl", "th", "fh") if o == "O" else ("tl", "fh"))]
    if top:
        links = [(o, d) for o, d in links if d not in ("th", "fh")]
    count = draw(st.integers(1, 4))
    served: list[list[tuple[str, str]]] = [[] for _ in range(count)]
    for link in draw(st.permutations(links)):
        served[draw(st.integers(0, count - 1))].append(link)
    result = []
    for index, pairs in enumerate(served):
        wide = draw(st.sampled_from([4, 8, 16, 64, 100]))
        narrow = draw(st.sampled_from([x for x in (1, 3, 4, 8, wide) if x <= wide]))
        result.append(Port(f"rw_port_{index}", "read_write", narrow, wide, tuple(pairs)))
    return tuple(result)


@st.composite
def cores(draw: st.DrawFn) -> Core:
    """Generate small cores of one to three array dimensions and up to four memories below a top memory."""
    names = ("D1", "D2", "D3")[: draw(st.integers(1, 3))]
    array = tuple((name, draw(st.sampled_from([1, 2, 3, 4, 5, 8]))) for name in names)
    groups = st.sampled_from([("I1",), ("I2",), ("O",), ("I1", "O"), ("O", "I1"), ("I1", "I2"), ("I1", "I2", "O")])
    memories = []
    for index in range(draw(st.integers(1, 4))):
        operands = draw(groups)
        memories.append(
            Memory(
                f"m{index}",
                draw(st.sampled_from([32, 64, 200, 1000, 5000, 100000])),
                draw(st.sampled_from([0.0, 0.1, 1.0, 3.7])),
                draw(st.sampled_from([0.1, 2.0, 4.9])),
                operands,
                draw(ports(operands, False)),
                tuple(name for name in names if draw(st.booleans())),
                force_double_buffering=draw(st.sampled_from([False, False, True])),
            )
        )
    operands = draw(st.permutations(["I1", "I2", "O"]))
    top_bits = draw(st.sampled_from([10**9, 10**9, 20000]))
    top = Memory("top", top_bits, 100.0, 90.1, tuple(operands), draw(ports(tuple(operands), True)), names)
    systolic = tuple(name for name in names if draw(st.booleans()))
    return Core("random", OperationalArray(array, 0.04, 1.0, systolic), (*memories, top))


@st.composite
def unrollings(draw: st.DrawFn, layer: Layer, core: Core) -> Unrolling:
    """Generate spatial mappings, also with mixed or non-dividing factors and with idle array dimensions."""
    result = []
    for name, size in draw(st.permutations(core.operational_array.dimensions)):
        room, factors = size, {}
        for dimension in draw(st.permutations(list(layer.size_of)))[: draw(st.integers(0, 2))]:
            factor = draw(st.integers(1, max(1, min(room, layer.size_of[dimension]))))
            factors[dimension] = factor
            room //= factor
        if factors or draw(st.booleans()):
            result.append((name, tuple(factors.items())))
    return tuple(result)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Generate a case without its order."""
    layer, core = draw(layers()), draw(cores())
    swapped = (("O", "O"), ("W", "I1"), ("I", "I2"))
    links = draw(st.sampled_from([LINKS, LINKS, swapped]))
    return Case(layer, core, links, draw(unrollings(layer, core)), draw(st.booleans()))


def split(size: int, draw: st.DrawFn) -> list[int]:
    """Split a size into factors."""
    factors = []
    for divisor in range(2, size + 1):
        while size % divisor == 0 and draw(st.booleans()):
            factors.append(divisor)
            size //= divisor
    return [*factors, size] if size > 1 else factors


@st.composite
def orders(draw: st.DrawFn, sizes_left: dict[str, int]) -> Order:
    """Generate a random order of random factors."""
    loops = [(d, factor) for d, size in sizes_left.items() for factor in split(size, draw)]
    assert {d: math.prod(f for n, f in loops if n == d) for d in sizes_left} == sizes_left
    return tuple(draw(st.permutations(loops)))
