"""Random problems: accelerators, layers, spatial mappings and model profiles of every kind, from a seed."""

import math
import random
from dataclasses import dataclass, replace
from typing import Any

from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import DimensionRelation, Layer

from tests.plain.allocation import Boundaries
from tests.plain.model import Links, PlainModel
from tests.plain.relevancy import Loops, positions
from tests.plain.space import merged_loops, primes
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import REFERENCE, SWITCHES

KINDS = (
    "convolution",
    "pointwise",
    "grouped",
    "depthwise",
    "pooling",
    "one input window",
    "gemm",
    "batched",
    "one input",
    "reduction",
    "two inputs",
)
WIDTHS = (1, 2, 3, 4, 8, 8, 8, 12, 16, 16, 24, 32)
SIZES = (1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15)
BANDWIDTHS = (1, 2, 4, 8, 8, 12, 16, 24, 32, 50, 64, 100, 128, 256)
ENERGIES = (0.0, 0.1, 0.5, 1.0, 1.7, 3.7, 10.0, 41.7, 130.0)
ARRAY_SIZES = (1, 2, 3, 4, 5, 6, 7, 8)


@dataclass(frozen=True)
class Problem:
    """A layer on a core with a spatial mapping, under a model profile."""

    kind: str
    layer: Layer
    core: Core
    links: Links
    unrolling: Unrolling
    model: str

    def plain(self, model: str | None = None, even: bool = False) -> PlainModel:
        """The plain model of the problem. Raises DoesNotFitError if the spatial mapping is impossible."""
        return PlainModel(self.layer, self.core, self.links, self.unrolling, even, model or self.model)


def random_problem(
    seed: int, loops: tuple[int, int] = (0, 8), switches: tuple[str, ...] = SWITCHES, kind: str | None = None
) -> Problem:
    """A problem whose temporal loops have a number of prime factors in the given range."""
    rng = random.Random(seed)
    kind = kind or rng.choice(KINDS)
    while True:
        layer = random_layer(rng, kind)
        count = rng.choice((1, 1, 2, 2, 3))
        array = tuple((name, rng.choice(ARRAY_SIZES)) for name in ("D1", "D2", "D3")[:count])
        core = random_core(rng, layer, array)
        links = rng.choice(((("O", "O"), ("W", "I2"), ("I", "I1")), (("O", "O"), ("W", "I1"), ("I", "I2"))))
        unrolling = random_unrolling(rng, layer, core)
        problem = Problem(kind, layer, core, links, unrolling, random_model(rng, switches))
        try:
            sizes = problem.plain().temporal_sizes
        except DoesNotFitError:
            continue
        if loops[0] <= len(merged_loops(sizes, None)) <= loops[1]:
            return problem


def random_model(rng: random.Random, switches: tuple[str, ...]) -> str:
    """A model profile: often one of the two named ones, else any combination of switches."""
    drawn = rng.random()
    if drawn < 0.45:
        return "corrected" if switches == SWITCHES else REFERENCE + "".join(f"+{s}" for s in switches)
    if drawn < 0.6:
        return REFERENCE
    return REFERENCE + "".join(f"+{switch}" for switch in switches if rng.random() < 0.5)


# layers ---------------------------------------------------------------------------------------------------------------


def random_bits(rng: random.Random, kind: str) -> tuple[tuple[str, int], ...]:
    """Random bits of operands; final outputs are as wide as partial sums, narrower or wider."""
    final = rng.choice(WIDTHS)
    sums = rng.choice((final, 2 * final, 24, rng.choice(WIDTHS)))
    weights = 0 if kind == "pooling" or rng.random() < 0.05 else rng.choice(WIDTHS)
    return (("W", weights), ("I", rng.choice(WIDTHS)), ("O", sums), ("O_final", final))


def random_layer(rng: random.Random, kind: str) -> Layer:
    """A layer of a kind, with at most nine prime factors."""
    names = {
        "convolution": ("B", "K", "C", "OY", "OX"),
        "pointwise": ("B", "K", "C", "OX"),
        "grouped": ("G", "K", "C", "OX", "OY"),
        "depthwise": ("B", "G", "OY", "OX"),
        "pooling": ("B", "G", "OY", "OX"),
        "one input window": ("B", "K", "OY", "OX"),
        "gemm": ("C", "D", "K"),
        "batched": ("B", "C", "D", "K"),
        "one input": ("D", "K"),
        "reduction": ("B", "D", "K"),
        "two inputs": ("B", "D", "K"),
    }[kind]
    has_windows = kind in ("convolution", "grouped", "depthwise", "pooling", "one input window")
    while True:
        values = {name: rng.choice(SIZES) for name in names}
        if has_windows:
            values |= {"FY": rng.choice((1, 1, 2, 3)), "FX": rng.choice((1, 2, 3, 3, 4, 5))}
        if 1 <= sum(len(primes(size)) for size in values.values()) <= 9:
            break
    bits = random_bits(rng, kind)
    order = list(values)
    rng.shuffle(order)
    sizes = tuple((name, values[name]) for name in order)
    if has_windows or kind == "pointwise":
        return _windowed(rng, kind, values, sizes, bits)
    operands = _operands(rng, kind)
    has_weights = any(o == "W" for o, _ in operands)
    return Layer(kind, "Gemm" if has_weights else "Relu", operands, sizes, (), bits if has_weights else bits[1:])


def _operands(rng: random.Random, kind: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Dimensions of the operands of layers without windows."""
    if kind == "gemm":
        inputs = [("I", ("D", "C")), ("W", ("C", "K"))]
        rng.shuffle(inputs)
        return (("O", ("D", "K")), *inputs)
    if kind == "batched":
        weights = rng.choice((("C", "K"), ("B", "C", "K")))
        return (("O", ("B", "D", "K")), ("I", ("B", "D", "C")), ("W", weights))
    if kind == "one input":
        return (("O", ("D", "K")), ("I", ("D", "K")))
    if kind == "reduction":
        return (("O", rng.choice((("B",), ("B", "K"), (), ("D",)))), ("I", ("B", "D", "K")))
    every = ("B", "D", "K")
    return (("O", every), ("I", every), ("W", rng.choice((every, ("K",), ("D", "K"), ()))))


def _windowed(
    rng: random.Random, kind: str, values: dict[str, int], sizes: tuple[tuple[str, int], ...], bits: Any
) -> Layer:
    """A layer with sliding windows, or one whose windows have size 1."""
    strides = [rng.choice((1, 1, 2, 3)) for _ in range(2)]
    dilations = [rng.choice((1, 1, 2, 3)) for _ in range(2)]
    rows, channels = {
        "convolution": (("B", "K"), ("B", "C")),
        "pointwise": (("B", "K"), ("B", "C")),
        "grouped": (("G", "K"), ("G", "C")),
    }.get(kind, (("B", "G"), ("B", "G")))
    if kind == "one input window":
        rows = channels = ("B", "K")
    weights = tuple(d for d in ("G", "K", "C", "FY", "FX") if d in values)
    relations = (
        DimensionRelation("IX", (("OX", strides[0]), ("FX", dilations[0]))),
        DimensionRelation("IY", (("OY", strides[1]), ("FY", dilations[1]))),
    )
    outputs: tuple[str, ...] = ("OY", "OX")
    windows: tuple[str, ...] = ("IY", "IX")
    if kind == "pointwise":
        values |= {"FX": 1, "FY": 1, "OY": 1}
        sizes = (*sizes, ("OY", 1), ("FX", 1), ("FY", 1))
        weights = ("K", "C", "FY", "FX")
    elif rng.random() < 0.15:
        # Only one axis slides; the other one is indexed by its loops.
        relations, windows = relations[:1], ("OY", "FY", "IX")
    padding, extents = (), ()
    if rng.random() < 0.3:
        pads = []
        for relation in relations:
            (d2, c2), (d3, c3) = relation.terms
            distinct = positions(c2, values[d2], c3, values[d3], clipped=True)
            most = min(values[d3] - 1, (distinct - 1) // 2)
            pads.append((relation.data_dimension, (rng.randint(0, most), rng.randint(0, most))))
        padding = tuple(pads)
        if rng.random() < 0.3:
            extents = tuple(
                (r.data_dimension, max(1, sum(c * (values[d] - 1) for d, c in r.terms) + 1 - sum(pair)))
                for r, (_, pair) in zip(relations, padding, strict=True)
            )
    operands: list[tuple[str, tuple[str, ...]]] = [("O", (*rows, *outputs)), ("I", (*channels, *windows))]
    if kind != "one input window":
        operands.insert(rng.choice((1, 2)), ("W", weights))
    else:
        bits = bits[1:]
    return Layer(kind, "Conv", tuple(operands), sizes, relations, bits, padding, extents)


# cores ----------------------------------------------------------------------------------------------------------------


def random_core(rng: random.Random, layer: Layer, array: tuple[tuple[str, int], ...]) -> Core:
    """A core with up to three memories below the topmost for each operand, shared or not.

    Memories have room for one element, for some, or for all.
    """
    groups = (("I1",), ("I2",), ("O",), ("I1", "O"), ("O", "I2"), ("I2", "I1"), ("I1", "I2", "O"), ("O", "I1", "I2"))
    names = tuple(name for name, _ in array)
    memories: list[Memory] = []
    wanted = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5))
    while len(memories) < wanted:
        full = {o for o in ("I1", "I2", "O") if sum(o in memory.operands for memory in memories) >= 3}
        if len(full) == 3:
            break
        operands = rng.choice(groups)
        if not full & set(operands):
            memories.append(_memory(rng, layer, f"m{len(memories)}", operands, names, top=False))
    tops = rng.choice(
        (
            (("I1", "I2", "O"),),
            (("O", "I2", "I1"),),
            (("I2", "O", "I1"),),
            (("I1", "O"), ("I2",)),
            (("O",), ("I2", "I1")),
            (("I1",), ("I2",), ("O",)),
        )
    )
    if rng.random() < 0.1:
        tops = _tops_without_some(rng, tops, memories)
    for i, operands in enumerate(tops):
        memories.append(_memory(rng, layer, f"top{i}", operands, names, top=True))
    systolic = tuple(name for name in names if rng.random() < 0.3)
    return Core("random", OperationalArray(array, rng.choice((0.0, 0.04, 1.0)), 1.0, systolic), tuple(memories))


def _tops_without_some(
    rng: random.Random, tops: tuple[tuple[str, ...], ...], memories: list[Memory]
) -> tuple[tuple[str, ...], ...]:
    """Operands of each topmost memory, without some operands that also have a memory further down."""
    below = {o for memory in memories for o in memory.operands if rng.random() < 0.6}
    return tuple(left for left in (tuple(o for o in operands if o not in below) for operands in tops) if left)


def _memory(
    rng: random.Random, layer: Layer, name: str, operands: tuple[str, ...], array: tuple[str, ...], top: bool
) -> Memory:
    size = 10**9
    if not top or rng.random() < 0.2:
        size = _size(rng, layer, len(operands), top)
    served = array if top and rng.random() < 0.9 else tuple(d for d in array if rng.random() < 0.5)
    doubled = rng.random() < (0.05 if top else 0.2)
    cheap = ENERGIES if not top else ENERGIES[4:]
    return Memory(
        name,
        size,
        rng.choice(cheap),
        rng.choice(cheap),
        operands,
        random_ports(rng, operands, top),
        served,
        force_double_buffering=doubled,
    )


def _size(rng: random.Random, layer: Layer, held: int, top: bool) -> int:
    """Room for one element of each operand, for a part of the layer's loops, or for more than all of them."""
    widest = max(bits for _, bits in layer.precision_bits)
    if not top and rng.random() < 0.2:
        return max(1, widest * held * rng.choice((1, 1, 2)))
    factors = [factor for _, size in layer.loop_sizes for factor in primes(size)]
    part = math.prod(factor for factor in factors if rng.random() < (0.9 if top else 0.45))
    return max(1, int(part * widest * held * rng.choice((0.5, 0.75, 1.0, 1.5, 2.0))) + rng.choice((0, 0, 0, 1, 5)))


def random_ports(rng: random.Random, operands: tuple[str, ...], top: bool) -> tuple[Port, ...]:
    """Ports for all links of a memory: one, one to read and one to write, several of each, or one for each link."""
    links = [(o, d) for o in operands for d in (("tl", "fl", "th", "fh") if o == "O" else ("tl", "fh"))]
    if top and rng.random() < 0.8:
        links = [(o, d) for o, d in links if d not in ("th", "fh")]
    rng.shuffle(links)
    reads, writes = ([x for x in links if (x[1] in ("tl", "th")) == read] for read in (True, False))
    style = rng.choice(("one", "one", "read and write", "read and write", "links", "split", "split"))
    if style == "one":
        return (_port(rng, "rw_port_1", "read_write", links),)
    if style == "links":
        return tuple(
            _port(rng, f"port_{i}", "read" if link in reads else "write", [link]) for i, link in enumerate(links)
        )
    if style == "read and write":
        kinds = (("read", reads, 1), ("write", writes, 1))
    else:
        kinds = (("read", reads, rng.choice((1, 2))), ("write", writes, rng.choice((1, 2))))
        if rng.random() < 0.4:
            kinds = (("read_write", links, rng.choice((2, 3))),)
    ports = []
    for kind, served, count in kinds:
        for i in range(count):
            if served[i::count]:
                ports.append(_port(rng, f"{kind}_{i}", kind, served[i::count]))
    return tuple(ports)


def _port(rng: random.Random, name: str, kind: str, links: list[tuple[str, str]]) -> Port:
    wide = rng.choice(BANDWIDTHS)
    narrow = rng.choice([x for x in (1, 2, 3, 4, 8, 16, wide, wide) if x <= wide])
    return Port(name, kind, narrow, wide, tuple(links))


# spatial mappings -----------------------------------------------------------------------------------------------------


def random_unrolling(rng: random.Random, layer: Layer, core: Core) -> Unrolling:
    """An unrolling with one or two loop dimensions on some array dimensions, with factors that divide or do not.

    All array dimensions together unroll a loop dimension by at most its size.
    """
    result = []
    left = dict(layer.size_of)
    dimensions = list(core.operational_array.dimensions)
    if rng.random() < 0.3:
        rng.shuffle(dimensions)
    for name, size in dimensions:
        room, factors = size, {}
        for dimension in rng.sample(list(left), min(len(left), rng.choice((0, 1, 1, 1, 2)))):
            most = max(1, min(room, left[dimension]))
            factor = most if rng.random() < 0.5 else rng.randint(1, most)
            factors[dimension] = factor
            left[dimension] //= factor
            room //= factor
        if factors or rng.random() < 0.5:
            result.append((name, tuple(factors.items())))
    return tuple(result)


def with_memory(core: Core, index: int, **changes: Any) -> Core:
    """The core with one memory changed."""
    memories = list(core.memories)
    memories[index] = replace(memories[index], **changes)
    return replace(core, memories=tuple(memories))


def tightened(rng: random.Random, problem: Problem, plain: PlainModel, order: Loops, boundaries: Boundaries) -> Problem:
    """Copy of a mapping problem in which some memories are smaller. A given mapping just fits, or second tiles of some
    operands just fit or just do not fit.
    """
    cost = plain.cost(order, boundaries)
    used = {
        memory.name: math.ceil(bits)
        for memory, bits in zip(problem.core.memories, plain.allocator.used.values(), strict=True)
    }
    core = problem.core
    for k, memory in enumerate(core.memories):
        if rng.random() < 0.5:
            room = used[memory.name]
            for o in plain.held[k]:
                m = plain.chains[o].index(memory)
                if rng.random() < 0.5:
                    room += int(cost.effective_bits[o][m])
            core = with_memory(core, k, size_bits=max(1, used[memory.name], room - rng.choice((0, 0, 0, 1))))
    return replace(problem, core=core)
