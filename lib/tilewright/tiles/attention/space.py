"""Space of fused attention: sizes of tiles, order of the loops over tiles, and memories of the tensors."""

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
    """Tile of an attention, as four counts: units, query heads per key head, queries, and keys. A unit is one key head
    of one request.
    """

    units: int
    heads: int
    queries: int
    keys: int


class TensorPlace(NamedTuple):
    """Memory of a tensor while tiles run."""

    memory: int
    """Index of the memory in the core. If this is the outermost memory, the tensor is read and written there without
    copies.
    """
    is_whole: bool = False
    """True if the memory holds the whole tensor of the units (pairs of a request and a key head) in the current tile,
    including data that only other tiles of these units need. False if the memory holds only the data that the current
    tile needs."""


class AttentionPlan(NamedTuple):
    """Plan of a fused attention: tile, order of loops, and memories of tensors."""

    tile: Tile
    order: str
    scores: int
    """Index of the memory of the scores and of the results of the softmax."""
    queries: TensorPlace
    keys: TensorPlace
    values: TensorPlace
    output: TensorPlace
    """Memory of the partial output, and of the maxima and sums that belong to the output."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of tiles that the search tries.

    If the sizes of an axis are (), the search tries all divisors of the axis length, and all powers of two up to this
    length.
    """

    units: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    orders: tuple[str, ...] = ORDERS


def sizes_of(given: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Tile sizes `given` for an axis of length `most`, ascending and without duplicates. A size above `most` is
    replaced by `most`. If `given` is (), the sizes are all divisors of `most` and all powers of two up to `most`.
    """
    if given:
        return tuple(sorted({min(size, most) for size in given}))
    found = {size for size in range(1, most + 1) if most % size == 0}
    return tuple(sorted(found | {1 << bit for bit in range(most.bit_length())}))


@dataclass(frozen=True, eq=False)  # compared by identity, because hashing a core takes long
class Memories:
    """Indexes of the memories of a core in which tensors of an attention can lie, innermost first.

    `chain` has all memories of an operand. The other lists have only the outermost memory and memories with a single
    instance. Other memories with several instances are left out, because several parts of the array can need the same
    data.
    """

    core: Core
    constraints: MappingConstraints

    @cached_property
    def links(self) -> dict[str, str]:
        """Table from layer operand to memory operand."""
        return dict(self.constraints.memory_operand_links)

    def chain(self, operand: str) -> tuple[int, ...]:
        """Memories of an operand, innermost first."""
        return memory_hierarchy(self.core).memories_of(self.links[operand])

    def single(self, operand: str) -> tuple[int, ...]:
        """Memories that hold an operand and have only one instance, and the outermost memory of the operand."""
        chain = self.chain(operand)
        return tuple([k for k in chain if k == chain[-1] or instance_count(self.core, k) == 1])

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Memories for queries, and for results that a later layer reads as its first operand."""
        return self.single("I")

    @cached_property
    def seconds(self) -> tuple[int, ...]:
        """Memories for second operands of layers: keys, values, and the maximum, the sum and the rescaling factor of
        each row of the scores.
        """
        return self.single("W")

    @cached_property
    def made(self) -> tuple[int, ...]:
        """Memories for results that a later layer reads."""
        return tuple([k for k in self.single(OUTPUT) if k in self.inputs])

    @property
    def top(self) -> int:
        """Outermost memory. This memory holds the inputs and the outputs of the attention."""
        return self.inputs[-1]

    def check(self) -> None:
        """Raise InputError if inputs and outputs of layers have no outermost memory in common."""
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
        """Tiles of all combinations of tile sizes."""
        shape, given = self.shape, self.sizes
        axes = (
            sizes_of(given.units, shape.units),
            sizes_of(given.heads, shape.heads),
            sizes_of(given.queries, shape.queries),
            sizes_of(given.keys, shape.keys),
        )
        return tuple([Tile(*sizes) for sizes in product(*axes)])

    def plans(self) -> Iterator[AttentionPlan]:
        """Plans of the space. Of equivalent plans, only one is included.

        There are two loops: one over query heads and queries, and one over keys. If one of these loops has only one
        tile, both orders of the loops are equivalent. A plan can keep a whole tensor in a memory only if both loops
        have several tiles, and if the inner loop runs over the parts of this tensor.
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
        """True if the space contains the plan."""
        return plan in set(self.plans_of(plan.tile))

    def plans_of(self, tile: Tile) -> Iterator[AttentionPlan]:
        """Plans of the space with this tile; none if the space does not have this tile."""
        units, heads, queries, keys = ((size,) for size in tile)
        some = Sizes(units, heads, queries, keys, self.sizes.orders)
        return AttentionSpace(self.shape, self.memories, some).plans() if tile in self.tiles else iter(())


def _places(memories: tuple[int, ...], with_whole: bool) -> list[TensorPlace]:
    found = [TensorPlace(k) for k in memories]
    return found + [TensorPlace(k, True) for k in memories[:-1]] if with_whole else found
