"""Program of a plan: layers of tiles with the memories of their tensors, and copies between memories.

The program says how often each layer and each copy runs.

A tile has some queries and some keys of some heads. The tiles with the same queries and heads are a row of tiles. Along
each axis, the first tile begins at the first query or key. The last tile of an axis is the remainder; all other tiles
have full size. A tile runs as a whole if at least one of its queries sees at least one of its keys.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from tilewright.tiles.attention.shape import (
    DIVIDE,
    FACTOR,
    MERGE_MOST,
    MERGE_OUTPUT,
    MERGE_SUM,
    MOST,
    POWERS,
    RESCALE_OUTPUT,
    RESCALE_SUM,
    SCORES,
    SUM,
    VALUES,
    AttentionShape,
)
from tilewright.tiles.attention.space import QUERIES_OUTER, AttentionPlan, Memories, Tile
from tilewright.workload.layer import OUTPUT

Key = TypeVar("Key")
Counts = tuple[tuple[int, int], ...]
"""Pairs (size, number of tiles of this size), one pair for each size."""


@dataclass(frozen=True)
class Visits:
    """Counts for the attention of one group of units: runs of tiles of each size, and loads of data of each size. A
    unit is one key head of one request.

    Each attribute is a table: size of the data -> number. The size of a tile is (heads, queries, keys). The size of a
    row of tiles is (heads, queries). The size of a tile of keys is its number of keys.
    """

    first: dict[tuple[int, int, int], int]
    """Number of times that a tile runs as the first tile of its row, by size of the tile. Such a tile has no earlier
    output to merge with.
    """
    later: dict[tuple[int, int, int], int]
    rows: dict[tuple[int, int], int]
    """Number of rows of tiles, by (heads, queries) of the row. At the end of each row, its output is divided by its
    softmax sum.
    """
    query_loads: dict[tuple[int, int], int]
    key_loads: dict[int, int]
    output_loads: dict[tuple[int, int], int]
    """Number of times that the partial outputs of rows of tiles are loaded again, by (heads, queries) of the row.
    Partial outputs are stored equally often.
    """


def split(size: int, tile: int) -> Counts:
    """Pairs (size, number of tiles of this size) for an axis of length `size` in tiles of length `tile`."""
    whole, rest = divmod(size, tile)
    return tuple([(one, count) for one, count in ((tile, whole), (rest, 1 if rest else 0)) if count])


def visits(shape: AttentionShape, tile: Tile, order: str) -> Visits:
    """Counts of runs and loads (`Visits`) if the loops over tiles have the order `order`.

    The loops, from outermost to innermost, are:

    * QUERIES_OUTER: heads, queries, keys.
    * KEYS_OUTER: keys, heads, queries.
    """
    return _visits(shape, tile.heads, tile.queries, tile.keys, order)


@lru_cache(maxsize=65536)
def _visits(shape: AttentionShape, heads: int, queries: int, keys: int, order: str) -> Visits:
    ranges = _key_ranges(shape, queries, keys)
    last_row, last_key = len(ranges) - 1, (shape.keys - 1) // keys
    sizes = [min(queries, shape.queries - place * queries) for place in range(last_row + 1)]
    rest = shape.keys - last_key * keys
    first: Counter[tuple[int, int, int]] = Counter()
    later: Counter[tuple[int, int, int]] = Counter()
    rows: Counter[tuple[int, int]] = Counter()
    for size, (low, high) in zip(sizes, ranges, strict=True):
        has_rest = low < high == last_key
        rows[heads, size] += 1
        first[heads, size, rest if low == last_key else keys] += 1
        later[heads, size, keys] += high - low - has_rest
        later[heads, size, rest] += has_rest
    head_tiles = split(shape.heads, heads)
    first, later, rows = (_of_heads(counts, head_tiles) for counts in (first, later, rows))
    if order == QUERIES_OUTER:
        loads = _key_loads(ranges, -(-shape.heads // heads), keys, rest, last_key)
        return Visits(_some(first), _some(later), _some(rows), _some(rows), _some(loads), {})
    stays = _stays_of_rows(ranges, sizes, last_key) if heads == shape.heads else Counter()
    again = Counter(dict.fromkeys(rows, 0))
    for (height, size, _), count in later.items():
        again[height, size] += count
    for size, count in stays.items():
        again[heads, size] -= count
    loads_of_queries = rows + again
    loads = Counter({keys: last_key - ranges[0][0]}) + Counter({rest: 1})
    return Visits(_some(first), _some(later), _some(rows), _some(loads_of_queries), _some(loads), _some(again))


def _of_heads(counts: "Counter[Any]", head_tiles: Counts) -> "Counter[Any]":
    """Counts for all tiles of heads, made from `counts`, the counts for one tile of heads.

    `head_tiles` has pairs (number of heads of a tile, number of tiles with this number of heads). A key is a tuple
    whose first element is the number of heads of a tile.
    """
    return Counter({(height, *key[1:]): n * count for key, n in counts.items() for height, count in head_tiles})


def _some(counts: Counter[Key]) -> dict[Key, int]:
    return {key: count for key, count in counts.items() if count}


def _key_ranges(shape: AttentionShape, queries: int, keys: int) -> list[tuple[int, int]]:
    """Pairs (first, last), one for each tile of queries: indexes of the first and the last tile of keys that the
    queries see.
    """
    found = []
    for start in range(0, shape.queries, queries):
        first, last = shape.seen(start, min(start + queries, shape.queries) - 1)
        found.append((first // keys, last // keys))
    return found


def _key_loads(ranges: list[tuple[int, int]], head_tiles: int, keys: int, rest: int, last_key: int) -> Counter[int]:
    """Number of loads of tiles of keys, by the number of keys in a tile. The loop over queries is outside the loop over
    keys.

    The last tile of keys for one tile of queries can be the first tile of keys for the next tile of queries. This tile
    of keys is loaded only once.
    """
    loads: Counter[int] = Counter()
    before = -1
    for times in (1, head_tiles - 1):  # all tiles of heads after the first one have the same loads
        for low, high in ranges if times else ():
            start = low + (low == before)
            has_rest = start <= high == last_key
            loads[keys] += times * (high - start + 1 - has_rest)
            loads[rest] += times * has_rest
            before = high
    return loads


def _stays_of_rows(ranges: list[tuple[int, int]], sizes: list[int], last_key: int) -> Counter[int]:
    """Number of times that a tile of queries stays loaded while the tile of keys changes, by the number of queries in
    the tile. The loop over keys is outermost.

    A tile of queries stays loaded if it runs last with one tile of keys and first with the next tile of keys.
    """
    stays: Counter[int] = Counter()
    last = first = 0
    for place in range(ranges[0][0], last_key):
        while last + 1 < len(ranges) and ranges[last + 1][0] <= place:
            last += 1
        while ranges[first][1] <= place:
            first += 1
        if last == first:
            stays[sizes[last]] += 1
    return stays


QUERIES, KEYS, VALUES_IN, SCORE, STATISTICS, RESULT = "queries", "keys", "values", "scores", "statistics", "output"
"""Kinds of tensors. STATISTICS are the maxima, sums and factors of the softmax, with one element per query and head."""
TENSORS = (QUERIES, KEYS, VALUES_IN, SCORE, STATISTICS, RESULT)


class TileStep(NamedTuple):
    """Layer of a tile, with its tensors: the first operand, the second operand, and the result."""

    layer: str
    first: str
    second: str
    """Tensor that is the second operand; '' if the layer has only one operand."""
    made: str


def kind_of(tensor: str) -> str:
    """Kind of a tensor of a tile. The name of a tensor consists of its kind, a dot, and its role."""
    return tensor.partition(".")[0]


@lru_cache(maxsize=64)
def steps(stages: tuple[str, ...], is_first: bool) -> tuple[TileStep, ...]:
    """Layers of a tile in the order in which they run. `stages` are the layers between the scores and the softmax.

    If `is_first` is true, the tile is the first of its row of tiles. It then has no earlier results, and the layers
    that merge results are left out.
    """
    names = [f"{SCORE}.{place}" for place in range(len(stages) + 1)]
    most, total, output = f"{STATISTICS}.most", f"{STATISTICS}.sum", f"{RESULT}.so_far"
    powers = f"{SCORE}.powers"
    found = [TileStep(SCORES, QUERIES, KEYS, names[0])]
    found += [TileStep(stage, names[place], "", names[place + 1]) for place, stage in enumerate(stages)]
    scaled = names[-1]
    if is_first:
        return (
            *found,
            TileStep(MOST, scaled, "", most),
            TileStep(POWERS, scaled, most, powers),
            TileStep(SUM, powers, "", total),
            TileStep(VALUES, powers, VALUES_IN, output),
        )
    own_most, own_sum, own_output = f"{most}_of_tile", f"{total}_of_tile", f"{RESULT}.of_tile"
    factor = f"{STATISTICS}.factor"
    return (
        *found,
        TileStep(MOST, scaled, "", own_most),
        TileStep(MERGE_MOST, f"{most}_before", own_most, most),
        TileStep(POWERS, scaled, most, powers),
        TileStep(FACTOR, f"{most}_before", most, factor),
        TileStep(SUM, powers, "", own_sum),
        TileStep(RESCALE_SUM, f"{total}_before", factor, f"{total}_rescaled"),
        TileStep(MERGE_SUM, f"{total}_rescaled", own_sum, total),
        TileStep(VALUES, powers, VALUES_IN, own_output),
        TileStep(RESCALE_OUTPUT, f"{output}_before", factor, f"{output}_rescaled"),
        TileStep(MERGE_OUTPUT, f"{output}_rescaled", own_output, output),
    )


LAST = (TileStep(DIVIDE, f"{RESULT}.so_far", f"{STATISTICS}.sum", f"{RESULT}.final"),)
"""Layers that run once at the end of a row of tiles. A row of tiles has all tiles of the same queries and heads."""
STATE = (f"{STATISTICS}.most", f"{STATISTICS}.sum", f"{RESULT}.so_far")
"""Tensors that stay in memory from one tile to the next tile of the same row. A row of tiles has all tiles of the same
queries and heads.
"""


class TileLayerProblem(NamedTuple):
    """Problem of mapping one layer of a tile. Each operand of the layer uses only the memories from the array up to the
    memory that holds the tensor of this operand.
    """

    layer: str
    tile: Tile
    reach: tuple[tuple[str, int], ...]
    """Pairs (operand, memory that holds the tensor of this operand). Memories are given by index."""
    reserved: tuple[tuple[int, int], ...]
    """Pairs (memory, number of its bits that are taken by data other than the operands of the layer)."""


class CopyProblem(NamedTuple):
    """Copy of data from one memory to another."""

    tensor: str
    """Kind of the tensor that is copied."""
    bits: int
    source: tuple[str, int]
    """Source of the data, as a pair (operand, index of a memory): the memory holds the data as this operand of a layer.
    """
    target: tuple[str, int]


class PlanPart(NamedTuple):
    """Part of a plan, with the number of times that the part runs. A part is either a layer of a tile or a copy."""

    problem: TileLayerProblem | CopyProblem
    times: int


@dataclass(frozen=True)
class PlanProgram:
    """Program of a plan: all parts with their numbers of runs, and the memory space that the plan takes."""

    parts: tuple[PlanPart, ...]
    live_bits: tuple[tuple[int, int], ...]
    """Pairs (memory, largest number of bits that tensors take in this memory at any time), one for each memory except
    the outermost.
    """

    def fits(self, memories: Memories) -> bool:
        """True if each memory has room for the tensors that lie in it."""
        return all(memories.core.memories[k].size_bits >= bits for k, bits in self.live_bits)


def tensor_bits(shape: AttentionShape, kind: str, tile: Tile) -> int:
    """Number of bits of a tensor of kind `kind`, for one tile."""
    bits, rows = shape.bits, tile.units * tile.heads * tile.queries
    return {
        QUERIES: rows * shape.key_width * bits.queries,
        KEYS: tile.units * tile.keys * shape.key_width * bits.keys,
        VALUES_IN: tile.units * tile.keys * shape.value_width * bits.values,
        SCORE: rows * tile.keys * bits.activations,
        STATISTICS: rows * bits.activations,
        RESULT: rows * shape.value_width * bits.activations,
    }[kind]


def program(shape: AttentionShape, memories: Memories, plan: AttentionPlan) -> PlanProgram:
    """Program of a plan for an attention of this shape."""
    found: Counter[TileLayerProblem | CopyProblem] = Counter()
    live: dict[int, int] = {}
    seen = visits(shape, plan.tile, plan.order)
    for units, times in split(shape.units, plan.tile.units):
        for counts, is_first in ((seen.first, True), (seen.later, False)):
            for size, count in counts.items():
                tile = Tile(units, *size)
                _add(found, live, _tile(shape, memories, plan, tile, steps(shape.stages, is_first)), times * count)
        for (heads, queries), count in seen.rows.items():
            tile = Tile(units, heads, queries, plan.tile.keys)
            _add(found, live, _tile(shape, memories, plan, tile, LAST), times * count)
        for problem, count in _moves(shape, memories, plan, units):
            found[problem] += times * count
    parts = tuple([PlanPart(problem, count) for problem, count in found.items()])
    return PlanProgram(parts, tuple(sorted(live.items())))


def _add(
    found: Counter[TileLayerProblem | CopyProblem],
    live: dict[int, int],
    tile: tuple[list[TileLayerProblem | CopyProblem], dict[int, int]],
    count: int,
) -> None:
    for problem in tile[0]:
        found[problem] += count
    for memory, bits in tile[1].items():
        live[memory] = max(live.get(memory, 0), bits)


def _moves(
    shape: AttentionShape, memories: Memories, plan: AttentionPlan, units: int
) -> Iterator[tuple[CopyProblem, int]]:
    """Pairs (copy, number of runs) for the tiles of one group of `units` units. A unit is one key head of one request.

    Copies bring queries, keys and values to their memories. Other copies store partial outputs and load these outputs
    again.
    """
    seen = visits(shape, plan.tile, plan.order)
    whole = Tile(units, shape.heads, shape.queries, shape.keys)
    for kind, place, operand in ((QUERIES, plan.queries, "I"), (KEYS, plan.keys, "W"), (VALUES_IN, plan.values, "W")):
        source, target = (operand, memories.single(operand)[-1]), (operand, place.memory)
        if source == target:
            continue
        if place.is_whole:
            yield CopyProblem(kind, tensor_bits(shape, kind, whole), source, target), 1
            continue
        loads = (
            [(Tile(units, *size, 1), count) for size, count in seen.query_loads.items()]
            if kind == QUERIES
            else [(Tile(units, 1, 1, size), count) for size, count in seen.key_loads.items()]
        )
        for tile, count in loads:
            yield CopyProblem(kind, tensor_bits(shape, kind, tile), source, target), count
    place = plan.output
    if place.memory == memories.top or place.is_whole:
        return
    here, top = (OUTPUT, place.memory), (OUTPUT, memories.top)
    for (heads, queries), count in seen.output_loads.items():
        tile = Tile(units, heads, queries, 1)
        for kind, times in ((RESULT, 1), (STATISTICS, 2)):
            bits = tensor_bits(shape, kind, tile)
            yield CopyProblem(kind, bits, here, top), times * count
            yield CopyProblem(kind, bits, top, here), times * count


# --- one tile -------------------------------------------------------------------------------------------------------


class _Layer(NamedTuple):
    """Layer of a tile of any size, with the tensors that are live while the layer runs."""

    name: str
    own: tuple[tuple[str, str], ...]
    """Pairs (operand, kind of tensor), one for each operand of the layer, sorted by operand. The kind is '' for a
    result that leaves the tile.
    """
    has_copy: bool
    """True if the second operand of the layer is a copied result. The copy is needed if the memory of results cannot
    serve second operands.
    """
    is_copied_now: bool
    others: tuple[tuple[str, int], ...]
    """Pairs (kind, number of tensors) for the live tensors that are not operands of the layer. Each tensor lies in the
    memory of its kind.
    """
    other_copies: tuple[tuple[str, int], ...]
    """Pairs (kind of tensor, number of copies) for the live copies of tensors that the layer itself does not use."""


@lru_cache(maxsize=64)
def _layers(sequence: tuple[TileStep, ...], copies: bool) -> tuple[_Layer, ...]:
    """Layers of a tile.

    `copies` is true if a result of the tile must be copied before a layer can read it as second operand.
    """
    found = []
    uses = _last_uses(sequence)
    living = {(one, False) for one in (QUERIES, KEYS, VALUES_IN, *_read_from_before(sequence))}
    for number, step in enumerate(sequence):
        second = (step.second, copies and kind_of(step.second) in (STATISTICS, RESULT))
        is_copied_now = second[1] and second not in living
        own = {(step.first, False), (step.made, False), *([second] if step.second else [])}
        living |= own
        beside = Counter((kind_of(tensor), is_copy) for tensor, is_copy in living - own)
        kinds = [("I", kind_of(step.first)), (OUTPUT, "" if step in LAST else kind_of(step.made))]
        kinds += [("W", kind_of(step.second))] if step.second else []
        here, copied = (tuple([(k, n) for (k, c), n in beside.items() if c == is_copy]) for is_copy in (False, True))
        found.append(_Layer(step.layer, tuple(sorted(kinds)), second[1], is_copied_now, here, copied))
        living = {one for one in living if uses.get(one, len(sequence)) > number}
    return tuple(found)


def _tile(
    shape: AttentionShape, memories: Memories, plan: AttentionPlan, tile: Tile, sequence: tuple[TileStep, ...]
) -> tuple[list[TileLayerProblem | CopyProblem], dict[int, int]]:
    """Pair (problems, bits) of a tile. The problems are the layers of the tile, and the copies of tensors that the tile
    makes. `bits` gives, for each memory except the outermost, the largest number of bits that tensors take during the
    tile.
    """
    problems: list[TileLayerProblem | CopyProblem] = []
    most: dict[int, int] = {}
    bits, top = {kind: tensor_bits(shape, kind, tile) for kind in TENSORS}, memories.top
    place = _places(plan) | {"": top}
    copies = place[RESULT] not in memories.seconds
    copied_to = {kind: _with_room(memories, bits[kind]) for kind in (STATISTICS, RESULT)} if copies else {}
    rest, by_row = _whole_rest(shape, plan, tile), tile._replace(keys=1)
    for layer in _layers(sequence, copies):
        reach, taken = [], dict(rest)
        for kind, count in layer.others:
            taken[place[kind]] = taken.get(place[kind], 0) + count * bits[kind]
        for kind, count in layer.other_copies:
            taken[copied_to[kind]] = taken.get(copied_to[kind], 0) + count * bits[kind]
        reserved = tuple(sorted([(k, amount) for k, amount in taken.items() if amount and k != top]))
        for operand, kind in layer.own:
            memory = copied_to[kind] if operand == "W" and layer.has_copy else place[kind]
            reach.append((operand, memory))
            taken[memory] = taken.get(memory, 0) + bits.get(kind, 0)
            if operand == "W" and layer.is_copied_now:
                problems.append(CopyProblem(kind, bits[kind], (OUTPUT, place[kind]), ("W", memory)))
        sized = tile if layer.name in _OVER_KEYS or layer.name in shape.stages else by_row
        problems.append(TileLayerProblem(layer.name, sized, tuple(reach), reserved))
        for k, amount in taken.items():
            if k != top and amount > most.get(k, 0):
                most[k] = amount
    return problems, most


_OVER_KEYS = (SCORES, MOST, POWERS, SUM, VALUES)


def _places(plan: AttentionPlan) -> dict[str, int]:
    """Indexes of memories, by kind of tensor."""
    output = plan.output.memory
    return {
        QUERIES: plan.queries.memory,
        KEYS: plan.keys.memory,
        VALUES_IN: plan.values.memory,
        SCORE: plan.scores,
        STATISTICS: output,
        RESULT: output,
    }


def _with_room(memories: Memories, bits: int) -> int:
    """Index of the innermost memory for second operands (`Memories.seconds`) with at least `bits` bits. If there is no
    such memory, the result is the index of the outermost memory.
    """
    sizes = memories.core.memories
    return next((k for k in memories.seconds if sizes[k].size_bits >= bits), memories.top)


def _read_from_before(sequence: tuple[TileStep, ...]) -> list[str]:
    """Names of the tensors that a tile reads from an earlier tile. Queries, keys and values are left out."""
    made: set[str] = {QUERIES, KEYS, VALUES_IN, ""}
    found = []
    for step in sequence:
        found += [tensor for tensor in (step.first, step.second) if tensor not in made]
        made |= {step.first, step.second, step.made}
    return found


def _last_uses(sequence: tuple[TileStep, ...]) -> dict[tuple[str, bool], int]:
    """Index of the last step that reads each tensor. The keys are (tensor, False) for a tensor itself, and (tensor,
    True) for its copy.

    A tensor that is missing in the result stays live until the end of the tile.
    """
    uses: dict[tuple[str, bool], int] = {}
    for number, step in enumerate(sequence):
        uses[step.first, False] = number
        if step.second:
            uses[step.second, False] = uses[step.second, True] = number
    stays = () if sequence == LAST else STATE
    return {key: number for key, number in uses.items() if key[1] or key[0] not in (QUERIES, KEYS, VALUES_IN, *stays)}


def _whole_rest(shape: AttentionShape, plan: AttentionPlan, tile: Tile) -> dict[int, int]:
    """Number of additional bits in each memory that holds a whole tensor: the bits of the tensor that the current tile
    does not use. {} if no memory holds a whole tensor.
    """
    if not (plan.queries.is_whole or plan.keys.is_whole or plan.values.is_whole or plan.output.is_whole):
        return {}
    whole = Tile(tile.units, shape.heads, shape.queries, shape.keys)
    rest: Counter[int] = Counter()
    for kinds, place in (
        ((QUERIES,), plan.queries),
        ((KEYS,), plan.keys),
        ((VALUES_IN,), plan.values),
        ((RESULT, STATISTICS, STATISTICS), plan.output),
    ):
        for kind in kinds if place.is_whole else ():
            rest[place.memory] += tensor_bits(shape, kind, whole) - tensor_bits(shape, kind, tile)
    return rest
