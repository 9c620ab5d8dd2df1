"""Pieces of queries and keys: together exactly the pairs that a causal mask, a cache and a window leave."""

import pytest
from tilewright.workload.language_models.visible_keys import BAND, FOLDED, Piece, first_position, visible_pieces

CASES = [(n, c, w) for n in (1, 2, 3, 4, 7, 8) for c in (0, 1, 5) for w in (None, 1, 2, 4, 6, 20)]


def pairs_of(piece: Piece) -> list[tuple[int, int]]:
    """(query, key) of a piece, both as they are counted in it."""
    pairs = []
    for row in range(piece.queries):
        for column in range(piece.keys):
            if piece.kind == BAND:
                pairs.append((piece.first_query + row, piece.first_key + row + column))
            elif piece.kind == FOLDED and column > row:
                pairs.append((piece.first_query - 1 - row, piece.first_key + piece.other_queries - column))
            elif piece.kind == FOLDED:
                pairs.append((piece.first_query + row, piece.first_key + piece.other_queries + column))
            else:
                pairs.append((piece.first_query + row, piece.first_key + column))
    return pairs


@pytest.mark.parametrize(("tokens", "context", "window"), CASES)
def test_pieces_are_the_mask(tokens: int, context: int, window: int | None) -> None:
    """Every pair once, no other."""
    base = first_position(context, window)
    true = {
        (query, key - base)
        for query in range(tokens)
        for key in range(context + query + 1)
        if window is None or key > context + query - window
    }
    for block in (None, 1, 3):
        pieces = visible_pieces(tokens, context, window, block, is_written_out=True)
        found = [pair for piece in pieces for pair in pairs_of(piece)]
        assert len(found) == len(set(found))
        assert set(found) == true
        assert sum(piece.pairs for piece in visible_pieces(tokens, context, window, block)) == len(true)


def test_a_prompt_reads_each_query_and_key_about_once() -> None:
    """The operands of the two rectangles of a triangle are as large as the queries and keys, and one key more."""
    for tokens in (2, 3, 100, 101):
        pieces = visible_pieces(tokens, 0)
        assert 0 <= sum(piece.queries for piece in pieces) - tokens <= 1
        assert 0 <= sum(piece.keys_read for piece in pieces) - tokens <= 1
