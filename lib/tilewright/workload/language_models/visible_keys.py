"""Visible keys of the queries of a request, as rectangles of queries times keys.

A request has n new tokens after c cached tokens. Each new query sees its own key and all earlier keys. With a window of
w keys, a query sees only the last w of these keys. The pieces have exactly as many (query, key) pairs as are visible:

* Cached keys that all new queries see form a rectangle.
* New queries and new keys form a triangle. Let m = n // 2 and p = n - m. In the triangle, the last p queries and the
  first m keys form a rectangle. Two triangles remain, with m and with p queries. The triangle with m queries is turned
  by 180 degrees and joined to the other triangle, which gives a rectangle of p queries x (m + 1) keys (FOLDED).
  Together, the two rectangles read n queries and n + 1 keys if n is even, or n + 1 queries and n keys if n is odd.
* If a block size is given, a rectangle with more keys than a block is cut into blocks and a remainder.
* With a window of w keys, queries are cut into blocks of 2 h queries; h is w / 2, rounded up. Each half of a block is a
  rectangle of h queries and w columns (WRAPPED). From query to query, one key leaves the window and one key enters it.
  The leaving keys and the entering keys form two triangles, which together fill the rectangle: column j has key j for
  the queries up to j, and key j + w for the later queries. Together, the rectangles of both halves read 2 h queries and
  2 w keys. The block has 2 h queries and 2 w keys if w is odd, or 2 h queries and 2 w - 1 keys if w is even.
* The last block can be smaller, with b < 2 h queries. All of these queries see the keys b to w - 1, counted from the
  first key of the block; these keys form a rectangle. The triangles before and after these keys are WRAPPED, with b
  keys for each half of the queries.

No query is in two blocks, so the results of different blocks need no merging.
"""

from collections.abc import Iterable
from typing import NamedTuple

RECTANGLE, FOLDED, WRAPPED = "rectangle", "folded", "wrapped"


class Piece(NamedTuple):
    """Rectangle of queries times keys. Queries are numbered from the first new query. Keys are numbered from the first
    key that any query sees."""

    kind: str
    name: str
    first_query: int
    queries: int
    """Number of queries. A FOLDED piece consists of two triangles; the number then counts only the queries of the
    larger triangle. The `other_queries` queries of the smaller triangle come before the queries of the larger
    triangle."""
    first_key: int
    keys: int
    other_queries: int = 0
    repeats: int = 1
    """Number of equal pieces that this piece represents along the keys. The pieces are consecutive blocks of keys; this
    piece is the first block."""
    wrap: int = 0
    """Distance between the first and the second key of a column of a WRAPPED piece, in keys; 0 for other pieces. The
    first `wrapped_keys` columns have two keys, all other columns have one."""
    first_row: int = 0
    """First row of a WRAPPED piece: the position, from 0, of the first query of the piece in the block of queries. The
    query in row r of the block sees the second key of the first r columns, and the first key of all other columns.
    """
    query_blocks: int = 1
    """Number of equal pieces that this piece represents along the queries. The pieces are consecutive blocks of
    queries; this piece is the first block."""

    @property
    def stands_for(self) -> int:
        """Number of equal pieces, along keys and queries, that this piece represents, itself included."""
        return self.repeats * self.query_blocks

    @property
    def pairs(self) -> int:
        """Number of (query, key) pairs of all pieces that this piece represents."""
        return self.queries * self.keys * self.stands_for

    @property
    def all_queries(self) -> tuple[int, int]:
        """Range (first query, number of queries) of all pieces that this piece represents."""
        return self.first_query - self.other_queries, self.queries * self.query_blocks + self.other_queries

    @property
    def wrapped_keys(self) -> int:
        """Number of columns of a WRAPPED piece that have a second key. These columns are the first columns of the
        piece."""
        return self.first_row + self.queries - 1 if self.kind == WRAPPED else 0


class Strip(NamedTuple):
    """Consecutive queries, with their pieces. All queries of a piece are in the same strip."""

    first_query: int
    queries: int
    parts: tuple[tuple[Piece, ...], ...]
    """Sequences of pieces of the strip, in the order in which they are merged. The pieces of one sequence have no query
    in common. Their results are concatenated first, and then merged with the results of other sequences."""


def first_position(context: int, window: int | None) -> int:
    """Position of the first key that any new query sees. Earlier keys need not be cached."""
    return 0 if window is None else max(0, context - window + 1)


def visible_pieces(
    tokens: int, context: int, window: int | None = None, block: int | None = None, *, is_written_out: bool = False
) -> tuple[Piece, ...]:
    """Pieces for `tokens` new queries after `context` cached tokens. A window includes the query's own key.

    Rectangles are cut into blocks of `block` keys. Equal blocks are one repeated piece; if `is_written_out` is true,
    each block is a piece of its own.
    """
    first = first_position(context, window)
    whole = tokens if window is None else min(tokens, max(0, window - context))
    pieces = _causal(whole, context)
    if window is not None and tokens > whole:
        start = context + whole - window + 1 - first
        pieces += _windows(tokens - whole, window, whole, start, is_written_out)
    pieces = pieces if len(pieces) > 1 else [pieces[0]._replace(name="")]
    return tuple(part for piece in pieces for part in _blocks(piece, block, is_written_out))


def strips(pieces: Iterable[Piece]) -> tuple[Strip, ...]:
    """Strips of queries, in the order of their queries. The pieces of each strip are in the order in which they are
    merged."""
    found: list[list[list[Piece]]] = []
    end = 0
    for piece in pieces:
        first, count = piece.all_queries
        if not found or first >= end:
            found.append([])
        strip = found[-1]
        if not strip or first < _end(strip[-1][-1]):
            strip.append([])
        strip[-1].append(piece)
        end = max(end, first + count)
    return tuple(_strip(parts) for parts in found)


def _strip(parts: list[list[Piece]]) -> Strip:
    first = min(piece.all_queries[0] for part in parts for piece in part)
    end = max(_end(piece) for part in parts for piece in part)
    return Strip(first, end - first, tuple(tuple(part) for part in parts))


def _end(piece: Piece) -> int:
    first, count = piece.all_queries
    return first + count


def split(size: int, block: int | None) -> list[tuple[int, int, int]]:
    """Blocks of an axis of a given size, as tuples (first index, block size, number of blocks): equal blocks first,
    then a shorter last block.
    """
    if block is None or size <= block:
        return [(0, size, 1)]
    count, rest = divmod(size, block)
    return [(0, block, count), *([(count * block, rest, 1)] if rest else [])]


def _blocks(piece: Piece, block: int | None, is_written_out: bool) -> list[Piece]:
    if piece.kind != RECTANGLE or block is None or piece.keys <= block:
        return [piece]
    found = []
    for number, (first, size, count) in enumerate(split(piece.keys, block)):
        kind = "rest" if number else "block"
        name = f"{piece.name}_{kind}" if piece.name else kind
        for place in range(count if is_written_out else 1):
            start = piece.first_key + first + place * size
            one = piece._replace(name=name, first_key=start, keys=size, repeats=1 if is_written_out else count)
            found.append(one._replace(name=f"{name}{place}") if is_written_out and count > 1 else one)
    return found


def _causal(tokens: int, context: int) -> list[Piece]:
    if not tokens:
        return []
    if tokens == 1:
        return [Piece(RECTANGLE, "own", 0, 1, 0, context + 1)]
    half = tokens // 2
    last = tokens - half
    pieces = [Piece(RECTANGLE, "cached", 0, tokens, 0, context)] if context else []
    pieces.append(Piece(RECTANGLE, "below", half, last, context, half))
    pieces.append(Piece(FOLDED, "diagonal", half, last, context, half + 1, half))
    return pieces


def _windows(tokens: int, window: int, first_query: int, first_key: int, is_written_out: bool) -> list[Piece]:
    """Pieces of `tokens` consecutive queries, from query `first_query` on. Each query sees `window` keys; the first
    query sees the keys from `first_key` on.

    If `is_written_out` is true, equal pieces are listed one by one. Otherwise, one repeated piece represents them.
    """
    half = (window + 1) // 2
    count = tokens // (2 * half) * 2
    pieces = []
    if count:
        whole = Piece(WRAPPED, "window", first_query, half, first_key, window, wrap=window, query_blocks=count)
        pieces += _query_blocks(whole, half) if is_written_out else [whole]
    done = count * half
    return pieces + _last_windows(tokens - done, window, first_query + done, first_key + done, is_written_out)


def _last_windows(tokens: int, window: int, first_query: int, first_key: int, is_written_out: bool) -> list[Piece]:
    """Pieces of the last block of queries, with a window of `window` keys per query. The block has `tokens` queries, at
    most `window`. Its first query sees the keys from `first_key` on.

    The keys that all these queries see form a rectangle. The other keys form one WRAPPED piece for each half of the
    queries. If `is_written_out` is false and both halves have the same number of queries, one repeated piece represents
    both.
    """
    if not tokens:
        return []
    if tokens == 1:
        return [Piece(RECTANGLE, "last", first_query, 1, first_key, window)]
    half = tokens // 2
    inside = Piece(RECTANGLE, "inside", first_query, tokens, first_key + tokens, window - tokens)
    edges = Piece(WRAPPED, "edges", first_query, half, first_key, tokens, wrap=window, query_blocks=2)
    if is_written_out or tokens % 2:
        one = edges._replace(name="edges0", query_blocks=1)
        more = tokens - half
        both = [one, one._replace(name="edges1", first_query=first_query + half, queries=more, first_row=half)]
    else:
        both = [edges]
    return [inside, *both] if tokens < window else both


def _query_blocks(piece: Piece, step: int) -> list[Piece]:
    """Single pieces that `piece` represents, one for each block of queries. From block to block, the first query and
    the first key both increase by `step`."""
    return [
        piece._replace(
            name=f"{piece.name}{place}",
            first_query=piece.first_query + place * step,
            first_key=piece.first_key + place * step,
            query_blocks=1,
        )
        for place in range(piece.query_blocks)
    ]
