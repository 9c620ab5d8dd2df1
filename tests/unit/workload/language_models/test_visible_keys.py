"""Pieces of queries and keys: together they have exactly the pairs that a causal mask, a cache and a window leave."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.workload.language_models.visible_keys import (
    RECTANGLE,
    WRAPPED,
    Piece,
    first_position,
    strips,
    visible_pieces,
)

from tests.unit.workload.language_models.piece_pairs import pair

CASES = [(n, c, w) for n in (1, 2, 3, 4, 7, 8) for c in (0, 1, 5) for w in (None, 1, 2, 4, 6, 20)]


def pairs_of(piece: Piece) -> list[tuple[int, int]]:
    """(query, key) of a piece, by the numbering of the piece."""
    return [pair(piece, row, column) for row in range(piece.queries) for column in range(piece.keys)]


@pytest.mark.parametrize(("tokens", "context", "window"), CASES)
def test_pieces_are_the_mask(tokens: int, context: int, window: int | None) -> None:
    """The pieces have every visible pair once and no other."""
    for block in (None, 1, 3):
        check_pieces(tokens, context, window, block)


@given(st.integers(1, 40), st.integers(0, 30), st.one_of(st.none(), st.integers(1, 25)), st.sampled_from([None, 1, 4]))
@settings(max_examples=150, deadline=None)
def test_pieces_of_any_step_are_the_mask(tokens: int, context: int, window: int | None, block: int | None) -> None:
    """The pieces have the pairs of the mask for any numbers of tokens, written out or not."""
    check_pieces(tokens, context, window, block)


def check_pieces(tokens: int, context: int, window: int | None, block: int | None) -> None:
    """Checks the pieces of a step against its mask, pair by pair."""
    base = first_position(context, window)
    true = {
        (query, key - base)
        for query in range(tokens)
        for key in range(context + query + 1)
        if window is None or key > context + query - window
    }
    pieces = visible_pieces(tokens, context, window, block, is_written_out=True)
    found = [pair for piece in pieces for pair in pairs_of(piece)]
    assert len(found) == len(set(found))
    assert set(found) == true
    assert len({piece.name for piece in pieces}) == len(pieces)
    for piece in pieces:
        others = {column for row in range(piece.queries) for column in range(min(piece.first_row + row, piece.keys))}
        assert piece.kind != WRAPPED or others == set(range(piece.wrapped_keys))
    folded = visible_pieces(tokens, context, window, block)
    assert sum(piece.pairs for piece in folded) == len(true)
    # What stands once for several has the same sizes as each of them.
    assert sizes_of(folded) == sizes_of(pieces)


def sizes_of(pieces: tuple[Piece, ...]) -> list[tuple[str, int, int]]:
    """(kind, queries, keys) of all pieces for which these pieces stand."""
    return sorted((one.kind, one.queries, one.keys) for one in pieces for _ in range(one.repeats * one.query_blocks))


@given(st.integers(1, 60), st.integers(0, 30), st.integers(1, 25), st.sampled_from([None, 4]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_strips_have_each_query_once(tokens: int, context: int, window: int, block: int | None, written: bool) -> None:
    """The strips together have all queries, and each part of a strip has some of its queries, none twice."""
    pieces = visible_pieces(tokens, context, window, block, is_written_out=written)
    end = 0
    for strip in strips(pieces):
        assert strip.first_query == end
        end += strip.queries
        for part in strip.parts:
            queries = [q for one in part for q in range(one.all_queries[0], sum(one.all_queries))]
            assert len(queries) == len(set(queries))
            assert set(queries) <= set(range(strip.first_query, end))
            # What is put side by side is all that the strip has; a single piece may have less (below a diagonal).
            if len(part) > 1 or part[0].query_blocks > 1:
                assert len(queries) == strip.queries
    assert end == tokens
    assert [one for strip in strips(pieces) for part in strip.parts for one in part] == list(pieces)


@given(st.integers(2, 400), st.integers(0, 100), st.integers(2, 60))
@settings(max_examples=150, deadline=None)
def test_a_block_of_a_window_reads_each_query_and_key_once(tokens: int, context: int, window: int) -> None:
    """Each block of queries reads the keys that its queries see and at most one more, if the cache holds a window."""
    pieces = visible_pieces(tokens, context + window, window)
    size = 2 * ((window + 1) // 2)
    blocks, rest = divmod(tokens, size)
    keys = sum(one.keys * one.query_blocks for one in pieces)
    seen = blocks * (window + size - 1) + (window + rest - 1 if rest else 0)
    assert seen <= keys <= seen + blocks + (rest > 1)
    inside = [one.queries for one in pieces if one.kind == RECTANGLE and rest > 1]
    assert sum(one.queries * one.query_blocks for one in pieces) == tokens + sum(inside)
    assert inside == ([rest] if 1 < rest < window else [])


def test_a_prompt_reads_each_query_and_key_about_once() -> None:
    """The two rectangles of a triangle have as many queries and keys as there are, and at most one more."""
    for tokens in (2, 3, 100, 101):
        pieces = visible_pieces(tokens, 0)
        assert 0 <= sum(piece.queries for piece in pieces) - tokens <= 1
        assert 0 <= sum(piece.keys for piece in pieces) - tokens <= 1
