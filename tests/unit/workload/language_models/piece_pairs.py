"""The pair of query and key of each element of a piece, by the definition of the kinds of pieces."""

from tilewright.workload.language_models.visible_keys import FOLDED, WRAPPED, Piece


def pair(piece: Piece, row: int, column: int) -> tuple[int, int]:
    """(query, key) of an element of a piece, counted from the first new query and the first key that is kept."""
    if piece.kind == FOLDED and column > row:
        return piece.first_query - 1 - row, piece.first_key + piece.other_queries - column
    if piece.kind == FOLDED:
        return piece.first_query + row, piece.first_key + piece.other_queries + column
    is_other = piece.kind == WRAPPED and column < piece.first_row + row
    return piece.first_query + row, piece.first_key + column + (piece.wrap if is_other else 0)
