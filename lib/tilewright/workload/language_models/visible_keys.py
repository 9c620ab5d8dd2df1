"""Which keys the queries of a request see, cut into pieces that are rectangles of queries times keys.

Query i of n new tokens behind c cached ones sees itself and all before it, or the last w of them. The pieces have as
many pairs of query and key as that is, no more:

* keys of the cache that all new queries see: a rectangle;
* the triangle of new queries and new keys, n = m + p with m = n // 2: the last p queries and the first m keys are a
  rectangle, and the two triangles that are left fill one of p x (m + 1), one of them turned around (FOLDED). Taken
  together, the two rectangles read every query once, every key once, and one more where n is even;
* a rectangle of more keys than a block, where blocks are given, is so many blocks and what is left;
* queries that see w keys each, where a window is shorter: a band, key = query + place in the window.
"""

from typing import NamedTuple

RECTANGLE, FOLDED, BAND = "rectangle", "folded", "band"


class Piece(NamedTuple):
    """Some queries with some keys; the first new query and the first key that any query sees have number 0."""

    kind: str
    name: str
    first_query: int
    queries: int
    """Of a FOLDED piece those of the larger triangle: the other one has the `other_queries` before them."""
    first_key: int
    keys: int
    """Of a BAND for each query."""
    other_queries: int = 0
    repeats: int = 1
    """Pieces that this one stands for: blocks of keys one after the other, of which it has the first."""

    @property
    def pairs(self) -> int:
        """Pairs of query and key, of all that it stands for."""
        return self.queries * self.keys * self.repeats

    @property
    def all_queries(self) -> tuple[int, int]:
        """(first, count) of the queries that it has keys of."""
        return self.first_query - self.other_queries, self.queries + self.other_queries

    @property
    def keys_read(self) -> int:
        """Distinct keys that its operand has: of a band, those of all its windows."""
        return self.queries + self.keys - 1 if self.kind == BAND else self.keys


def first_position(context: int, window: int | None) -> int:
    """Position of the first key that some new query sees; the earlier ones need not be kept."""
    return 0 if window is None else max(0, context - window + 1)


def visible_pieces(
    tokens: int, context: int, window: int | None = None, block: int | None = None, *, is_written_out: bool = False
) -> tuple[Piece, ...]:
    """The pieces for `tokens` new queries behind `context` cached tokens; a window counts the query itself.

    Rectangles are cut into blocks of `block` keys, which stand once for all of them unless they are written out.
    """
    first = first_position(context, window)
    whole = tokens if window is None else min(tokens, max(0, window - context))
    pieces = _causal(whole, context)
    rest = tokens - whole
    if rest:
        assert window is not None
        start = context + whole - window + 1 - first
        kind = RECTANGLE if rest == 1 else BAND
        pieces.append(Piece(kind, "window", whole, rest, start, window))
    pieces = pieces if len(pieces) > 1 else [pieces[0]._replace(name="")]
    return tuple(part for piece in pieces for part in _blocks(piece, block, is_written_out))


def split(size: int, block: int | None) -> list[tuple[int, int, int]]:
    """(first, size, how many) of the blocks that a size is cut into: equal ones, and a shorter one behind them."""
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
