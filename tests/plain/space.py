"""Plain brute force: every temporal mapping of a small problem, with its cost by the plain model alone."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.plain.allocation import Boundaries
from tests.plain.model import PlainModel
from tests.plain.relevancy import Loops, Number
from tests.plain.reuse import Levels
from tests.plain.spatial import DoesNotFitError

OBJECTIVES = ("latency", "energy", "EDP")


@dataclass(frozen=True)
class Found:
    """The best of a space for an objective."""

    value: float
    order: Loops
    boundaries: Boundaries | None


class Best:
    """The least value of each objective so far."""

    def __init__(self) -> None:
        self.found: dict[str, Found] = {}
        self.by_order: dict[str, dict[Loops, float]] = {objective: {} for objective in OBJECTIVES}
        """The least value of each order that fits."""
        self.mappings = 0
        self.costs: set[tuple[float, float]] = set()
        """Distinct pairs of energy in pJ and latency in cycles."""

    def see(self, energy: float, latency: Number, order: Loops, boundaries: Boundaries | None) -> None:
        """Take another mapping into account."""
        self.mappings += 1
        self.costs.add((float(energy), float(latency)))
        for objective, value in zip(OBJECTIVES, (float(latency), energy, energy * latency), strict=True):
            if objective not in self.found or value < self.found[objective].value:
                self.found[objective] = Found(float(value), order, boundaries)
            by_order = self.by_order[objective]
            by_order[order] = min(float(value), by_order.get(order, math.inf))

    def value(self, objective: str) -> float:
        """The least value; infinite if no mapping fits."""
        return self.found[objective].value if objective in self.found else math.inf


# loops ----------------------------------------------------------------------------------------------------------------


def primes(size: int) -> list[int]:
    """Prime factors in ascending order, with multiplicity."""
    result, divisor = [], 2
    while size > 1:
        while size % divisor == 0:
            result.append(divisor)
            size //= divisor
        divisor += 1
    return result


def merged_loops(sizes: dict[str, int], limit: int | None) -> Loops:
    """The loops that orders consist of: prime factors, merged while there are more than `limit`.

    The two smallest factors of the dimension with most factors become one, but each dimension keeps at least one.
    """
    factors = {d: primes(size) for d, size in sizes.items()}
    least = max(1, len(factors)) if limit is None else max(limit, len(factors))
    while limit is not None and sum(map(len, factors.values())) > least:
        longest = max(factors, key=lambda d: len(factors[d]))
        first, second, *rest = factors[longest]
        factors[longest] = sorted([first * second, *rest])
    return tuple((d, f) for d, own in factors.items() for f in own)


def distinct_orders(loops: Loops) -> Iterator[Loops]:
    """All distinct orders of these loops."""
    left = Counter(loops)
    if not left:
        yield ()
    for loop in left:
        rest = left - Counter([loop])
        for order in distinct_orders(tuple(rest.elements())):
            yield (loop, *order)


def order_count(loops: Loops) -> int:
    """Number of distinct orders of these loops."""
    return math.factorial(len(loops)) // math.prod(math.factorial(n) for n in Counter(loops).values())


def greedy_multisets(sizes: dict[str, int]) -> set[Loops]:
    """Every multiset of loops that results from some limit."""
    most = sum(len(primes(size)) for size in sizes.values())
    return {tuple(sorted(merged_loops(sizes, limit))) for limit in (None, *range(1, most + 1))}


# spaces ---------------------------------------------------------------------------------------------------------------


def greedy_count(model: PlainModel) -> int:
    """Number of mappings in the greedy space."""
    return sum(order_count(loops) for loops in greedy_multisets(model.temporal_sizes))


def free_count(model: PlainModel) -> int:
    """Number of mappings in the free space."""
    loops = merged_loops(model.temporal_sizes, None)
    return order_count(loops) * math.prod(
        math.comb(len(loops) + len(chain) - 1, len(chain) - 1) for chain in model.chains.values()
    )


def greedy_best(model: PlainModel) -> Best:
    """The best of all orders of the prime factors and of every merging of them, allocated greedily."""
    best = Best()
    for loops in sorted(greedy_multisets(model.temporal_sizes)):
        seen: dict[object, tuple[float, Number]] = {}
        for order in distinct_orders(loops):
            try:
                energy, latency = model.figures(order, model.allocate(order), seen)
            except DoesNotFitError:
                continue
            best.see(energy, latency, order, None)
    return best


def free_best(model: PlainModel) -> Best:
    """The best of all orders of the prime factors with all boundaries of all operands."""
    best = Best()
    seen: dict[object, tuple[float, Number]] = {}
    for order in distinct_orders(merged_loops(model.temporal_sizes, None)):
        choices = [_choices(model, o, order) for o in model.operands]
        for chosen in itertools.product(*choices):
            if _fits_together(model, chosen):
                allocated = {o: levels for o, (_, levels, _) in zip(model.operands, chosen, strict=True)}
                try:
                    energy, latency = model.figures(order, allocated, seen)
                except DoesNotFitError:
                    continue
                boundaries = {o: bounds for o, (bounds, _, _) in zip(model.operands, chosen, strict=True)}
                best.see(energy, latency, order, boundaries)
    return best


Choice = tuple[tuple[int, ...], Levels, dict[str, Number]]
"""(boundaries, loops of the levels, bits in each memory by name)"""


def _choices(model: PlainModel, o: str, order: Loops) -> list[Choice]:
    """Boundaries of one operand whose tiles fit without the other operands."""
    chain = model.chains[o]
    result = []
    for inner in itertools.combinations_with_replacement(range(len(order) + 1), len(chain) - 1):
        bounds = (*inner, len(order))
        starts = (0, *bounds)
        levels = tuple(order[a:b] for a, b in itertools.pairwise(starts))
        bits: dict[str, Number] = {}
        for m, memory in enumerate(chain):
            model.allocator.inner = {o: list(levels[:m])}
            bits[memory.name] = model.allocator.tile_bits(memory, o, order, len(levels[m]))
            if bits[memory.name] > memory.size_bits:
                break
        else:
            result.append((bounds, levels, bits))
    return result


def _fits_together(model: PlainModel, chosen: tuple[Choice, ...]) -> bool:
    return all(
        sum(bits.get(memory.name, 0) for _, _, bits in chosen) <= memory.size_bits for memory in model.core.memories
    )
