"""Small random problems for the exact search: every kind of layer, on cores with little memory and bandwidth."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.base.errors import MappingError
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.temporal import loop_multiset, prime_factors
from tilewright.search.evaluate import PreparedProblem, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.unit.cost.engine_cases import LINKS, convolution, depthwise, gemm, one_input

SWAPPED_LINKS = (("O", "O"), ("W", "I1"), ("I", "I2"))
KINDS = ("convolution", "pointwise", "depthwise", "pooling", "gemm", "one input", "two inputs")
MODELS = ("zigzag-3.9.1", "corrected")
SIZES = (1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class ExactCase:
    """A layer on a core with a spatial mapping."""

    kind: str
    layer: Layer
    core: Core
    links: tuple[tuple[str, str], ...]
    unrolling: Unrolling

    def prepared(self, model: str = "zigzag-3.9.1", **options: object) -> PreparedProblem:
        """The prepared problem; raises MappingError if the spatial mapping is impossible."""
        return prepare(self.layer, self.core, self.links, self.unrolling, SearchOptions(model=model, **options))


def problems(seeds: range, **options: str) -> Iterator[tuple[tuple[int, str], ExactCase, PreparedProblem]]:
    """Random problems with a possible spatial mapping, each with seed and model profile, under both profiles."""
    for seed in seeds:
        case = random_case(random.Random(seed))
        for model in MODELS:
            try:
                yield (seed, model), case, case.prepared(model, **options)
            except MappingError:
                continue


def random_case(rng: random.Random, loops: tuple[int, int] = (2, 5)) -> ExactCase:
    """A problem whose number of prime factors to iterate over is in the given range."""
    while True:
        kind = rng.choice(KINDS)
        layer = random_layer(rng, kind)
        array = tuple((name, rng.choice((1, 2, 3, 4, 5, 6))) for name in ("D1", "D2")[: rng.choice((1, 1, 2))])
        core = random_core(rng, layer, array)
        case = ExactCase(kind, layer, core, rng.choice((LINKS, SWAPPED_LINKS)), random_unrolling(rng, layer, core))
        try:
            sizes = case.prepared().spatial.temporal_sizes
        except MappingError:
            continue
        if loops[0] <= loop_multiset(sizes, None, ()).length <= loops[1]:
            return case


def random_layer(rng: random.Random, kind: str) -> Layer:
    """A layer of a kind, with at most nine prime factors."""
    final = rng.choice((1, 4, 8, 8, 16))
    sums = rng.choice((final, 2 * final, 3 * final, 24))
    weight = 0 if kind == "pooling" else rng.choice((1, 4, 8))
    bits = (("W", weight), ("I", rng.choice((1, 4, 8, 16))), ("O", sums), ("O_final", final))
    names = {
        "convolution": ("B", "K", "C", "OY", "OX"),
        "pointwise": ("B", "K", "C", "OX"),
        "depthwise": ("B", "G", "OY", "OX"),
        "pooling": ("B", "G", "OY", "OX"),
        "gemm": ("C", "D", "K"),
    }.get(kind, ("D", "K"))
    while True:
        values = {name: rng.choice(SIZES) for name in names}
        if kind in ("convolution", "depthwise", "pooling"):
            values |= {"FX": rng.choice((1, 2, 3, 3, 5)), "FY": rng.choice((1, 1, 2, 3))}
        if 2 <= sum(len(prime_factors(size)) for size in values.values()) <= 9:
            break
    if kind in ("convolution", "pointwise"):
        pairs = [(rng.randint(1, 3), rng.randint(1, 3)) for _ in range(2)]
        padding = 1 if values.get("FX", 1) > 1 and values.get("FY", 1) > 1 and rng.random() < 0.4 else 0
        return convolution(kind, padding, pairs[0], pairs[1], bits, **values)
    if kind in ("depthwise", "pooling"):
        return depthwise(kind, bits, **values)
    if kind == "gemm":
        return gemm(kind, bits, **values)
    if kind == "one input":
        return one_input(kind, bits, **values)
    sizes = tuple((name, values[name]) for name in names)
    operands = (("O", names), ("W", names), ("I", rng.choice((names, names[1:]))))
    return Layer(kind, "Add", operands, sizes, (), bits)


def random_ports(rng: random.Random, operands: tuple[str, ...], top: bool) -> tuple[Port, ...]:
    """Random ports: one for all links, one for each link, or a number between; narrow ports cause stalls and long
    loading.
    """
    links = [(o, d) for o in operands for d in (("tl", "fl", "th", "fh") if o == "O" else ("tl", "fh"))]
    if top:
        links = [(o, d) for o, d in links if d not in ("th", "fh")]
    rng.shuffle(links)
    count = rng.choice((1, 2, 3, len(links)))
    ports = []
    for i in range(min(count, len(links))):
        wide = rng.choice((1, 2, 4, 8, 8, 16, 32, 64, 100))
        narrow = rng.choice([x for x in (1, 2, 3, 4, 8, wide) if x <= wide])
        ports.append(Port(f"rw_port_{i}", "read_write", narrow, wide, tuple(links[i::count])))
    return tuple(ports)


def random_core(rng: random.Random, layer: Layer, array: tuple[tuple[str, int], ...]) -> Core:
    """A random core with up to three memories below the topmost for each operand.

    Memories are shared or not, and have room for one element or for all.
    """
    groups = (("I1",), ("I2",), ("O",), ("I1", "O"), ("O", "I2"), ("I1", "I2"), ("I1", "I2", "O"))
    names = tuple(name for name, _ in array)
    memories: list[Memory] = []
    wanted = rng.choice((1, 2, 3, 3, 4))
    while len(memories) < wanted:
        full = {o for o in ("I1", "I2", "O") if sum(o in memory.operands for memory in memories) >= 3}
        if len(full) == 3:
            break
        operands = rng.choice(groups)
        if full & set(operands):
            continue
        memories.append(_memory(rng, layer, f"m{len(memories)}", operands, names, top=False))
    tops = rng.choice(((("I1", "I2", "O"),), (("O", "I2", "I1"),), (("I1", "O"), ("I2",)), (("I1",), ("I2",), ("O",))))
    for i, operands in enumerate(tops):
        memories.append(_memory(rng, layer, f"top{i}", operands, names, top=True))
    systolic = tuple(name for name in names if rng.random() < 0.3)
    return Core("random", OperationalArray(array, 0.04, 1.0, systolic), tuple(memories))


def _memory(
    rng: random.Random, layer: Layer, name: str, operands: tuple[str, ...], array: tuple[str, ...], top: bool
) -> Memory:
    size = 10**9
    if not top or rng.random() < 0.2:
        size = _random_size(rng, layer, len(operands), top)
    costs = (
        (rng.choice((100.0, 41.7)), 90.1) if top else (rng.choice((0.0, 0.1, 1.0, 3.7)), rng.choice((0.1, 2.0, 4.9)))
    )
    served = array if top else tuple(dimension for dimension in array if rng.random() < 0.5)
    doubled = not top and rng.random() < 0.25
    return Memory(
        name, size, *costs, operands, random_ports(rng, operands, top), served, force_double_buffering=doubled
    )


def _random_size(rng: random.Random, layer: Layer, held: int, top: bool) -> int:
    """Room for one element of each operand, for a part of the layer's loops, or for more than all of them."""
    widest = max(bits for _, bits in layer.precision_bits)
    if not top and rng.random() < 0.2:
        return max(1, widest * held * rng.choice((1, 1, 2)))
    primes = [factor for _, size in layer.loop_sizes for factor in prime_factors(size)]
    part = math.prod(factor for factor in primes if rng.random() < (0.9 if top else 0.45))
    return max(1, int(part * widest * held * rng.choice((0.5, 1.0, 1.5, 2.0))))


def random_unrolling(rng: random.Random, layer: Layer, core: Core) -> Unrolling:
    """An unrolling with one or two loop dimensions on some array dimensions, also with factors that do not divide."""
    result = []
    for name, size in core.operational_array.dimensions:
        room, factors = size, {}
        for dimension in rng.sample(list(layer.size_of), rng.choice((0, 1, 1, 2))):
            factor = rng.randint(1, max(1, min(room, layer.size_of[dimension])))
            factors[dimension] = factor
            room //= factor
        result.append((name, tuple(factors.items())))
    return tuple(result)
