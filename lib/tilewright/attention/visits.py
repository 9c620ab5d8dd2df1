"""How often tiles of each size run, and how often their tensors change: counted over the order of loops.

Tiles are whole ones from the first query and key on; the last of an axis is what is left. A tile runs where one of its
queries sees one of its keys, and then as a whole.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from tilewright.attention.shape import AttentionShape
from tilewright.attention.space import QUERIES_OUTER, Tile

Key = TypeVar("Key")
Counts = tuple[tuple[int, int], ...]
"""(size, how many)."""


@dataclass(frozen=True)
class Visits:
    """For one tile of units. Sizes in brackets are (heads, queries, keys), (heads, queries) or keys."""

    first: dict[tuple[int, int, int], int]
    """Tiles that begin a row of tiles: there is no output of it so far."""
    later: dict[tuple[int, int, int], int]
    rows: dict[tuple[int, int], int]
    """Rows of tiles, each of which ends with a division."""
    query_loads: dict[tuple[int, int], int]
    key_loads: dict[int, int]
    output_loads: dict[tuple[int, int], int]
    """How often a row comes back to its output so far; as often it is put away."""


def split(size: int, tile: int) -> Counts:
    """The tiles of an axis."""
    whole, rest = divmod(size, tile)
    return tuple([(one, count) for one, count in ((tile, whole), (rest, 1 if rest else 0)) if count])


def visits(shape: AttentionShape, tile: Tile, order: str) -> Visits:
    """The visits of all tiles in an order of loops: heads, queries, keys from the outermost one, or keys, heads,
    queries."""
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
    """The counts of one tile of heads, of all of them."""
    return Counter({(height, *key[1:]): n * count for key, n in counts.items() for height, count in head_tiles})


def _some(counts: Counter[Key]) -> dict[Key, int]:
    return {key: count for key, count in counts.items() if count}


def _key_ranges(shape: AttentionShape, queries: int, keys: int) -> list[tuple[int, int]]:
    """(first, last) tile of keys that each tile of queries sees."""
    found = []
    for start in range(0, shape.queries, queries):
        first, last = shape.seen(start, min(start + queries, shape.queries) - 1)
        found.append((first // keys, last // keys))
    return found


def _key_loads(ranges: list[tuple[int, int]], head_tiles: int, keys: int, rest: int, last_key: int) -> Counter[int]:
    """Changes of the tile of keys where rows are outside: it stays where the next row begins as the last one ended."""
    loads: Counter[int] = Counter()
    before = -1
    for times in (1, head_tiles - 1):  # all heads but the first do as the second one
        for low, high in ranges if times else ():
            start = low + (low == before)
            has_rest = start <= high == last_key
            loads[keys] += times * (high - start + 1 - has_rest)
            loads[rest] += times * has_rest
            before = high
    return loads


def _stays_of_rows(ranges: list[tuple[int, int]], sizes: list[int], last_key: int) -> Counter[int]:
    """Where keys are outside: the row that is the last one of a tile of keys and the first one of the next."""
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
