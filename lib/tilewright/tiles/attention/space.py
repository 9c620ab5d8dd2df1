"""The ways to run an attention fused: sizes of tiles, the order of their loops, and where tensors lie."""

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
    """Where a tensor lies while tiles run."""

    memory: int
    """Memory by its index in the core; the outermost one: it is read and written there, and never copied."""
    is_whole: bool = False
    """Whether all of it lies there that the tiles of the same units need, not that of one tile."""


class AttentionPlan(NamedTuple):
    """A way to run an attention fused."""

    tile: Tile
    order: str
    scores: int
    """The memory of scores and what the softmax makes of them."""
    queries: TensorPlace
    keys: TensorPlace
    values: TensorPlace
    output: TensorPlace
    """Place of the output so far, with the extremes and sums of its rows."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of tiles that are searched; () for all divisors and powers of two of an axis, and all of it."""

    units: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    orders: tuple[str, ...] = ORDERS


def sizes_of(given: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Sizes along an axis, ascending, each once; a larger one than there is takes all."""
    if given:
        return tuple(sorted({min(size, most) for size in given}))
    found = {size for size in range(1, most + 1) if most % size == 0}
    return tuple(sorted(found | {1 << bit for bit in range(most.bit_length())}))


@dataclass(frozen=True, eq=False)  # compared as the object that it is: a core takes long to hash
class Memories:
    """The memories of a core that tensors of an attention can lie in, by index, innermost first.

    What several parts of the array read or write lies in a memory that exists once.
    """

    core: Core
    constraints: MappingConstraints

    @cached_property
    def links(self) -> dict[str, str]:
        """Operand of a layer -> memory operand."""
        return dict(self.constraints.memory_operand_links)

    def chain(self, operand: str) -> tuple[int, ...]:
        """All memories of an operand."""
        return memory_hierarchy(self.core).memories_of(self.links[operand])

    def single(self, operand: str) -> tuple[int, ...]:
        """Memories that exist once, and the outermost one."""
        chain = self.chain(operand)
        return tuple([k for k in chain if k == chain[-1] or instance_count(self.core, k) == 1])

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Memories of queries, and of what is read after it was made."""
        return self.single("I")

    @cached_property
    def seconds(self) -> tuple[int, ...]:
        """Memories of keys and values, and of rows' extremes, sums and factors where they are the second operand."""
        return self.single("W")

    @cached_property
    def made(self) -> tuple[int, ...]:
        """Memories of what is made and read again."""
        return tuple([k for k in self.single(OUTPUT) if k in self.inputs])

    @property
    def top(self) -> int:
        """Where attention begins and ends."""
        return self.inputs[-1]

    def check(self) -> None:
        """Raise InputError for a core that cannot hand tensors over."""
        chains = [self.chain(operand) for operand in ("I", "W", OUTPUT)]
        if not all(chains) or len({chain[-1] for chain in chains}) > 1:
            text = "inputs and outputs of layers have no outermost memory in common, where attention begins and ends"
            raise InputError([Problem(text, path=self.core.name)])


@dataclass(frozen=True)
class AttentionSpace:
    """All plans of an attention on a core."""

    shape: AttentionShape
    memories: Memories
    sizes: Sizes = Sizes()

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        """Tiles of all sizes; heads are cut only where units run one by one."""
        shape, given = self.shape, self.sizes
        axes = (
            sizes_of(given.units, shape.units),
            sizes_of(given.heads, shape.heads),
            sizes_of(given.queries, shape.queries),
            sizes_of(given.keys, shape.keys),
        )
        return tuple([Tile(*sizes) for sizes in product(*axes)])

    def plans(self) -> Iterator[AttentionPlan]:
        """Every plan once. Of plans that differ in nothing the first is there: loops of one tile have no order, and
        all of a tensor is its one tile."""
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
        """The plans in tiles of a size; none for a size that is not searched."""
        units, heads, queries, keys = ((size,) for size in tile)
        some = Sizes(units, heads, queries, keys, self.sizes.orders)
        return AttentionSpace(self.shape, self.memories, some).plans() if tile in self.tiles else iter(())


def _places(memories: tuple[int, ...], with_whole: bool) -> list[TensorPlace]:
    found = [TensorPlace(k) for k in memories]
    return found + [TensorPlace(k, True) for k in memories[:-1]] if with_whole else found
