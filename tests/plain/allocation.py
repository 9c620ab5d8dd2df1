"""The loops of each memory level: allocated greedily as by the reference, or given; and whether tiles fit."""

import itertools
import math

from tilewright.hardware.core import Core, Memory

from tests.plain.control import can_have
from tests.plain.relevancy import Loop, Loops, Number, product, sizes_by_dimension
from tests.plain.reuse import Levels, OperandModel
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import Switches

Boundaries = dict[str, tuple[int, ...]]


class Allocator:
    """Allocation of the loops of one layer to the memories of one core."""

    def __init__(
        self,
        core: Core,
        link: dict[str, str],
        models: dict[str, OperandModel],
        chains: dict[str, list[Memory]],
        switches: Switches,
        even: bool,
    ) -> None:
        self.core, self.link, self.models, self.chains, self.even = core, link, models, chains, even
        self.whole = "whole_tiles" in switches
        self.room = "room_for_final_outputs" in switches
        self.sorted = "ties_by_equation" in switches
        self.memo: dict[object, Number] = {}
        self.reused = {o: frozenset(model.rel.irrelevant) for o, model in models.items()}
        self.spatial = {o: (model.exact if self.whole else model.fractional) for o, model in models.items()}

    def held(self, memory: Memory) -> list[str]:
        """Layer operands that a memory holds, in the memory's order; if `sorted`, in the order of the equation."""
        by_memory_operand = {m: o for o, m in self.link.items()}
        held = [by_memory_operand[name] for name in memory.operands if name in by_memory_operand]
        return [o for o in self.models if o in held] if self.sorted else held

    def element_bits(self, o: str, level: int, left: Loops) -> int:
        """Bits of an element in memory `level` while the loops `left` are at this level and above."""
        rel = self.models[o].rel
        bits = self.models[o].bits_of
        if o != "O":
            return bits[o]
        lanes = [loop for loops in self.spatial[o][level + 1 :] for loop in loops]
        above = {d for d, _ in left} | {d for d, factor in lanes if factor > 1 or not self.room}
        accumulating = set(rel.irrelevant)
        if self.room:
            accumulating |= {d for relation in rel.relations for d, _ in relation.terms}
        if not above & accumulating:
            return bits["O_final"]
        return bits["O"]

    def bits(self, o: str, level: int, below: Loops, left: Loops, here: int) -> Number:
        """Bits of a tile in the memory of a level.

        The tile spans the loops `below` the level and the first `here` loops of `left`.
        """
        if self.whole:
            sizes = sizes_by_dimension(below + left[:here])
            return self.models[o].tile(level, sizes).whole * self.element_bits(o, level, left)
        done: list[Loop] = list(self.spatial[o][0])
        start = 0
        for m, loops in enumerate(self.inner[o]):
            done += [*loops, *self.spatial[o][m + 1]]
            start += len(loops)
        return self.models[o].rel.elements([*done, *left[:here]]) * self.element_bits(o, level, left)

    inner: dict[str, list[Loops]]
    """Operand -> loops of the levels allocated so far."""
    used: dict[str, Number]
    """Memory -> bits that the tiles of given boundaries take."""

    def tile_bits(self, memory: Memory, o: str, order: Loops, here: int) -> Number:
        """Bits that a tile takes in a memory: twice its size if the memory double-buffers and the tile is replaced."""
        level = len(self.inner[o])
        below = tuple(loop for loops in self.inner[o] for loop in loops)
        left = order[len(below) :]
        key = (o, tuple(len(loops) for loops in self.inner[o]), here, order)
        if key not in self.memo:
            size = self.bits(o, level, below, left, here)
            if (
                memory.force_double_buffering
                and here < len(left)
                and size < self.bits(o, level, below, left, len(left))
            ):
                size *= 2
            self.memo[key] = size
        return self.memo[key]

    # given ----------------------------------------------------------------------------------------------------------

    def given(self, order: Loops, boundaries: Boundaries) -> dict[str, Levels]:
        """Loops between given boundaries. Raises DoesNotFitError if boundaries do not nest or tiles do not fit."""
        for o, bounds in boundaries.items():
            nested = all(a <= b for a, b in itertools.pairwise((0, *bounds)))
            if not nested or bounds[-1] != len(order) or len(bounds) != len(self.chains[o]):
                raise DoesNotFitError
        self.inner = {o: [] for o in self.models}
        self.used = {}
        for memory in self.core.memories:
            used: Number = 0
            for o in self.held(memory):
                level = len(self.inner[o])
                start = boundaries[o][level - 1] if level else 0
                here = boundaries[o][level] - start
                used += self.tile_bits(memory, o, order, here)
            self.used[memory.name] = used
            if used > memory.size_bits:
                raise DoesNotFitError
            held = self.held(memory)
            left = {o: order[sum(len(loops) for loops in self.inner[o]) :] for o in held}
            counts = [boundaries[o][len(self.inner[o])] - len(order) + len(left[o]) for o in held]
            if self.even and not self._is_even(held, counts, left, len(order)):
                raise DoesNotFitError
            for o in held:
                level = len(self.inner[o])
                start = boundaries[o][level - 1] if level else 0
                self.inner[o].append(order[start : boundaries[o][level]])
        return {o: tuple(levels) for o, levels in self.inner.items()}

    # greedy ---------------------------------------------------------------------------------------------------------

    def greedy(self, order: Loops) -> dict[str, Levels]:
        """Loops as the reference allocates them. Raises DoesNotFitError if they do not fit."""
        self.inner = {o: [] for o in self.models}
        for memory in self.core.memories:
            operands = self.held(memory)
            left = {o: order[sum(len(loops) for loops in self.inner[o]) :] for o in operands}
            slices = [self._slices(memory, o, order, left[o]) for o in operands]
            chosen = self._combination(memory, operands, slices, left, len(order))
            for o, count in zip(operands, chosen, strict=True):
                self.inner[o].append(left[o][:count])
                if len(self.inner[o]) == len(self.chains[o]) and count < len(left[o]):
                    raise DoesNotFitError
        return {o: tuple(levels) for o, levels in self.inner.items()}

    def _slices(self, memory: Memory, o: str, order: Loops, left: Loops) -> list[tuple[int, Number, Number]]:
        """(loops, bits, bits moved over the upper boundary) of each number of loops that a memory can keep."""
        sizes: list[tuple[int, Number, Number]] = []
        for here in range(len(left) + 1):
            size = self.tile_bits(memory, o, order, here)
            if size > memory.size_bits:
                break
            is_top = len(self.inner[o]) == len(self.chains[o]) - 1
            if here and not is_top and not can_have(memory, left[here - 1][0], self.reused[o]):
                break
            sizes.append((here, size, product(left[here:]) * size))
        if not sizes:
            raise DoesNotFitError
        if len(self.inner[o]) == len(self.chains[o]) - 1:
            return [(sizes[-1][0], sizes[-1][1], 0)]
        return sizes

    def _combination(
        self, memory: Memory, operands: list[str], slices: list, left: dict[str, Loops], total: int
    ) -> list[int]:
        best, best_cost = None, math.inf
        for number, combination in enumerate(itertools.product(*slices)):
            if sum(size for _, size, _ in combination) > memory.size_bits:
                if number == 0:
                    raise DoesNotFitError
                continue
            counts = [count for count, _, _ in combination]
            cost = sum(cost for _, _, cost in combination)
            if cost <= best_cost and (not self.even or self._is_even(operands, counts, left, total)):
                best, best_cost = counts, cost
        return best if best is not None else [0] * len(operands)

    @staticmethod
    def _is_even(operands: list[str], counts: list[int], left: dict[str, Loops], total: int) -> bool:
        """Whether no loop that one operand takes at this level stays above this level for another operand."""
        here, above = [], []
        for operand, count in zip(operands, counts, strict=True):
            first = total - len(left[operand])
            positions = [(first + i, loop) for i, loop in enumerate(left[operand])]
            here.append(set(positions[:count]))
            above.append(set(positions[count:]))
        return not any(here[i] & above[j] for i in range(len(here)) for j in range(len(here)) if i != j)
