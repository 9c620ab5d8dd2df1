"""Space of fused attention: sizes of tiles, the order of their loops, and where tensors lie."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from tilewright.base.errors import InputError, Problem
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import instance_count, memory_hierarchy
from tilewright.mapping.constraints import MappingConstraints
from tilewright.tiles.attention.shape import AttentionShape
from tilewright.workload.layer import OUTPUT

QUERIES_OUTER, KEYS_OUTER = "queries-outer", "keys-outer"
ORDERS = (QUERIES_OUTER, KEYS_OUTER)


class Tile(NamedTuple):
    """Sizes of a tile."""

    units: int
    heads: int
    queries: int
    keys: int


class TensorPlace(NamedTuple):
    """Place of a tensor while tiles run."""

    memory: int
    """Index of the memory in the core. A tensor in the outermost memory is read and written there, without copies."""
    is_whole: bool = False
    """Whether the memory holds the whole tensor of the current units, instead of the part for one tile."""


class AttentionPlan(NamedTuple):
    """Plan: one way to run an attention fused."""

    tile: Tile
    order: str
    scores: int
    """Memory of the scores and of the results of the softmax."""
    queries: TensorPlace
    keys: TensorPlace
    values: TensorPlace
    output: TensorPlace
    """Place of the partial output, with the maxima and sums of its rows."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of tiles that are searched. () means all divisors of the length of an axis, and all powers of two up to
    this length."""

    units: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    orders: tuple[str, ...] = ORDERS


def sizes_of(given: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Sizes along an axis of length `most`, ascending and without duplicates. A larger size is reduced to `most`."""
    if given:
        return tuple(sorted({min(size, most) for size in given}))
    found = {size for size in range(1, most + 1) if most % size == 0}
    return tuple(sorted(found | {1 << bit for bit in range(most.bit_length())}))


@dataclass(frozen=True, eq=False)  # compared by identity, because hashing a core takes long
class Memories:
    """Memories of a core in which tensors of an attention can lie, by index, innermost first.

    Data that several parts of the array read or write must lie in a memory with one instance.
    """

    core: Core
    constraints: MappingConstraints

    @cached_property
    def links(self) -> dict[str, str]:
        """Memory operand of each operand of a layer."""
        return dict(self.constraints.memory_operand_links)

    def chain(self, operand: str) -> tuple[int, ...]:
        """All memories of an operand, innermost first."""
        return memory_hierarchy(self.core).memories_of(self.links[operand])

    def single(self, operand: str) -> tuple[int, ...]:
        """Memories of an operand that have one instance, and the outermost memory."""
        chain = self.chain(operand)
        return tuple([k for k in chain if k == chain[-1] or instance_count(self.core, k) == 1])

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Memories for queries, and for tensors that a later layer reads as first operand."""
        return self.single("I")

    @cached_property
    def seconds(self) -> tuple[int, ...]:
        """Memories for keys and values, and for those maxima, sums and factors of rows that are a second operand."""
        return self.single("W")

    @cached_property
    def made(self) -> tuple[int, ...]:
        """Memories for tensors that one layer makes and a later layer reads."""
        return tuple([k for k in self.single(OUTPUT) if k in self.inputs])

    @property
    def top(self) -> int:
        """Outermost memory, which holds the inputs and the outputs of the attention."""
        return self.inputs[-1]

    def check(self) -> None:
        """Raise InputError if the core has no memory through which a layer can pass a tensor to the next layer."""
        chains = [self.chain(operand) for operand in ("I", "W", OUTPUT)]
        if not all(chains) or len({chain[-1] for chain in chains}) > 1:
            text = "inputs and outputs of layers need the same outermost memory, where attention begins and ends"
            raise InputError([Problem(text, path=self.core.name)])


@dataclass(frozen=True)
class AttentionSpace:
    """Space of all plans of an attention on a core."""

    shape: AttentionShape
    memories: Memories
    sizes: Sizes = Sizes()

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        """Tiles with all combinations of sizes."""
        shape, given = self.shape, self.sizes
        axes = (
            sizes_of(given.units, shape.units),
            sizes_of(given.heads, shape.heads),
            sizes_of(given.queries, shape.queries),
            sizes_of(given.keys, shape.keys),
        )
        return tuple([Tile(*sizes) for sizes in product(*axes)])

    def plans(self) -> Iterator[AttentionPlan]:
        """All plans. For each group of equivalent plans, there is one plan.

        If the loop over rows or the loop over keys has only one tile, both orders of loops are equivalent. If a tensor
        has only one tile, a place for one tile and a place for the whole tensor are equivalent.
        """
        memories, shape = self.memories, self.shape
        held = [k for k in memories.made if k != memories.top]
        for tile in self.tiles:
            has_rows = tile.queries < shape.queries or tile.heads < shape.heads
            has_keys = tile.keys < shape.keys
            for order in self.sizes.orders if has_rows and has_keys else self.sizes.orders[:1]:
                outer = order == QUERIES_OUTER
                queries = _places(memories.inputs, has_rows and has_keys and not outer)
                seconds = _places(memories.seconds, has_rows and has_keys and outer)
                outputs = _places(memories.made, has_rows and has_keys and not outer)
                for scores, *places in product(held, queries, seconds, seconds, outputs):
                    yield AttentionPlan(tile, order, scores, *places)

    def has(self, plan: AttentionPlan) -> bool:
        """Whether a plan is in the space."""
        return plan in set(self.plans_of(plan.tile))

    def plans_of(self, tile: Tile) -> Iterator[AttentionPlan]:
        """Plans with tiles of this size; there are none if the size is not in the space."""
        units, heads, queries, keys = ((size,) for size in tile)
        some = Sizes(units, heads, queries, keys, self.sizes.orders)
        return AttentionSpace(self.shape, self.memories, some).plans() if tile in self.tiles else iter(())


def _places(memories: tuple[int, ...], with_whole: bool) -> list[TensorPlace]:
    found = [TensorPlace(k) for k in memories]
    return found + [TensorPlace(k, True) for k in memories[:-1]] if with_whole else found
