"""Scores, softmax and weighted values over the pieces of queries and keys.

A score is a product of a query and a key. Each visible pair of a query and a key needs one multiply-accumulate per
channel for the score, one operation for scaling, four operations for the softmax, and one multiply-accumulate per
channel of the value. A soft cap needs one more operation per pair.

If the pairs of a request are in several pieces (`visible_keys`), each piece is a layer. Further layers then merge the
row maxima, the row sums and the outputs of the pieces. A row of a FOLDED piece has the pairs of two queries, but counts
as one row with one maximum and one sum. About half of the maxima and sums of the piece are therefore not counted.
"""

from typing import NamedTuple

from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess
from tilewright.workload.language_models.builder import Builder, Loops, at
from tilewright.workload.language_models.heads import AttentionSite, Heads, Kept
from tilewright.workload.language_models.visible_keys import FOLDED, WRAPPED, Piece, strips


def attend(builder: Builder, heads: Heads, pieces: tuple[Piece, ...]) -> str:
    """Add the layers that compute softmax(scale * queries * keys) * values for each piece, and return the name of the
    result. The shape of the result is [new tokens of all requests of the group, heads * value width].
    """
    rows, first = heads.group.rows, len(builder.nodes)
    scores = [_scores(builder, heads, piece) for piece in pieces]
    scaled = [_stage(builder, heads, piece, "scale", "Mul", one) for piece, one in zip(pieces, scores, strict=True)]
    if heads.has_softcap:
        scaled = [_stage(builder, heads, piece, "cap", "Tanh", one) for piece, one in zip(pieces, scaled, strict=True)]
    most = _statistics(builder, heads, pieces, "softmax.max", "ReduceMax", "Max", scaled)
    powers = [
        _stage(builder, heads, piece, "softmax.exp", "Exp", one, most)
        for piece, one in zip(pieces, scaled, strict=True)
    ]
    total = _statistics(builder, heads, pieces, "softmax.sum", "ReduceSum", "Add", powers)
    shares = [
        _stage(builder, heads, piece, "softmax.div", "Div", one, total)
        for piece, one in zip(pieces, powers, strict=True)
    ]
    parts = [_weighted(builder, heads, piece, one) for piece, one in zip(pieces, shares, strict=True)]
    found = _together(builder, heads, "values", "Add", pieces, parts, (rows, builder.shape(parts[0])[1]))
    builder.attentions.append(AttentionSite(builder.prefix, builder.repeats, heads, (first, len(builder.nodes))))
    return found


def _part(name: str, piece: Piece) -> str:
    return f"{name}.{piece.name}" if piece.name else name


def _query(piece: Piece, is_other: bool = False) -> AxisIndex:
    """Index of the query in row D of a piece: first query + D.

    A row of a FOLDED piece has a second query, from the smaller triangle. If `is_other` is true, the result is the
    index of this second query: first query - 1 - D.
    """
    if is_other:
        return AxisIndex((("D", -1),), piece.first_query - 1)
    return AxisIndex((("D", 1),), piece.first_query)


def _key(piece: Piece, name: str, is_other: bool = False) -> AxisIndex:
    """Index of the key in a column of a piece, along the axis of keys. `name` is the loop over the columns of the
    piece. If `is_other` is true, the result is the index of the second key of the column. Only FOLDED and WRAPPED
    pieces have second keys.
    """
    if piece.kind == FOLDED:
        first = piece.first_key + piece.other_queries
        return AxisIndex(((name, -1),), first) if is_other else AxisIndex(((name, 1),), first)
    return AxisIndex(((name, 1),), piece.first_key + (piece.wrap if is_other else 0))


def _other_keys(
    heads: Heads, piece: Piece, kept: Kept, loops: Loops, output: TensorAccess, names: tuple[str, str]
) -> list[IndexMap]:
    """Index maps for reading the second keys of the columns of a piece. Only columns of FOLDED and WRAPPED pieces can
    have a second key. The result is [] if no column has one.

    `kept` has the tensor that is read (keys or values), and `names` is (loop over columns, loop over channels). `loops`
    and `output` are the loops and the output of the layer that reads the keys or values.
    """
    column, channel = names
    other = at(kept.tensor, "B", "G", _key(piece, column, True), channel)
    if piece.kind == WRAPPED and piece.wrapped_keys:
        sizes = dict(loops) | {column: min(piece.wrapped_keys, piece.keys)}
        return [IndexMap(tuple(sizes.items()), output, other, "W", False)]
    return [IndexMap(loops, output, other, "W", False)] if piece.kind == FOLDED else []


def _scores(builder: Builder, heads: Heads, piece: Piece) -> str:
    """Add the layer that computes the scores of a piece, and return the name of its output tensor [requests, key heads,
    query heads per key head, queries, keys]. A score takes one multiply-accumulate per channel.
    """
    width, group = heads.keys.width, heads.group
    target = builder.tensor(
        _part("scores", piece) + ".out", (group.count, heads.key_heads, heads.shared, piece.queries, piece.keys)
    )
    loops = (("C", width), ("D", piece.queries), ("K", piece.keys), *heads.outer)
    output = at(target, "B", "G", "H", "D", "K")
    query = at(heads.queries, heads.row(_query(piece)), heads.channel(width, "C"))
    key = at(heads.keys.tensor, "B", "G", _key(piece, "K"), "C")
    further = {"W": _other_keys(heads, piece, heads.keys, loops, output, ("K", "C"))}
    if piece.kind == FOLDED:
        other = at(heads.queries, heads.row(_query(piece, True)), heads.channel(width, "C"))
        further = {"I": [IndexMap(loops, output, other, "I", False)], **further}
    with builder.scope("", piece.stands_for):
        return builder.nest(
            _part("scores", piece),
            "MatMul",
            loops,
            output,
            {"I": query, "W": key},
            further=further,
            sizes={"W": (group.count, heads.key_heads, piece.keys, width)},
            unit=MAC_ARRAY,
        )


def _stage(
    builder: Builder, heads: Heads, piece: Piece, name: str, operator_type: str, source: str, row: str = ""
) -> str:
    """Add an operation on every (query, key) pair, and return the name of its output tensor.

    If `row` is not '', it names a tensor [requests, key heads, query heads per key head, queries]. For each pair, the
    operation then also reads the element of this tensor that belongs to the query.
    """
    loops = (*heads.outer, ("D", piece.queries), ("K", piece.keys))
    target = builder.tensor(_part(name, piece) + ".out", builder.shape(source))
    output = at(target, "B", "G", "H", "D", "K")
    inputs = {"I": at(source, "B", "G", "H", "D", "K")}
    further = None
    if row:
        inputs["W"] = at(row, "B", "G", "H", _query(piece))
        if piece.kind == FOLDED:
            other = at(row, "B", "G", "H", _query(piece, True))
            further = {"W": [IndexMap(loops, output, other, "W", False)]}
    operator = (name.partition(".")[0], "Softmax") if name.startswith("softmax") else None
    with builder.scope("", piece.stands_for):
        return builder.nest(
            _part(name, piece), operator_type, loops, output, inputs, further=further, operator=operator
        )


def _statistics(
    builder: Builder,
    heads: Heads,
    pieces: tuple[Piece, ...],
    name: str,
    operator_type: str,
    merge_type: str,
    sources: list[str],
) -> str:
    """Add the layers that compute one statistic per query, and return the name of the tensor [requests, key heads,
    query heads per key head, queries]. The statistic is the maximum or the sum over all (query, key) pairs of a query.
    """
    parts, whole = [], (heads.group.count, heads.key_heads, heads.shared, heads.group.tokens)
    for piece, source in zip(pieces, sources, strict=True):
        loops = (*heads.outer, ("D", piece.queries), ("K", piece.keys))
        found = builder.tensor(_part(name, piece) + ".out", (*whole[:3], piece.queries))
        with builder.scope("", piece.stands_for):
            builder.nest(
                _part(name, piece),
                operator_type,
                loops,
                at(found, "B", "G", "H", "D"),
                {"I": at(source, "B", "G", "H", "D", "K")},
                operator=("softmax", "Softmax"),
            )
        parts.append(found)
    return _together(builder, heads, name, merge_type, pieces, parts, whole)


def _together(
    builder: Builder,
    heads: Heads,
    name: str,
    operator_type: str,
    pieces: tuple[Piece, ...],
    parts: list[str],
    shape: tuple[int, ...],
) -> str:
    """Add the layers that merge the results of the pieces for all queries, and return the name of the merged tensor,
    which has the shape `shape`.

    The pieces of a strip of queries are merged one after another. A repeated piece represents several blocks of keys,
    and each of these blocks is merged. Different strips have no query in common, so their results are concatenated.
    """
    found = dict(zip(pieces, parts, strict=True))
    results = []
    for strip in strips(pieces):
        result, size = "", _of_queries(heads, shape, strip.queries)
        for together in strip.parts:
            first = together[0]
            rows = [_Rows(found[one], one.first_query, one.queries, one.query_blocks) for one in together]
            part = _side_by_side(builder, heads, f"{name}.of_{first.name}", rows, strip.first_query, size)
            others = first.repeats if result else first.repeats - 1
            if others:
                merged = f"{name}.with_{first.name if len(together) == 1 else first.name.rstrip('0123456789')}"
                with builder.scope("", others):
                    result = _merged(builder, merged, operator_type, result or part, part, size)
            else:
                result = result or part
        results.append(_Rows(result, strip.first_query, strip.queries))
    return _side_by_side(builder, heads, f"{name}.of_all", results, 0, shape)


class _Rows(NamedTuple):
    """Results of consecutive queries, in one tensor."""

    tensor: str
    first_query: int
    queries: int
    blocks: int = 1
    """Number of blocks, of `queries` queries each, whose results the tensor represents."""


def _of_queries(heads: Heads, shape: tuple[int, ...], queries: int) -> tuple[int, ...]:
    """Shape of the results of `queries` queries. `shape` is the shape for all queries of the group: [requests, key
    heads, query heads per key head, queries] for statistics, or [requests * queries, channels] for weighted values. The
    returned shape has the same axes.
    """
    return (*shape[:-1], queries) if len(shape) > 2 else (heads.group.count * queries, shape[1])


def _side_by_side(
    builder: Builder, heads: Heads, name: str, rows: list[_Rows], start: int, shape: tuple[int, ...]
) -> str:
    """Name of a tensor of `shape` with the results of consecutive queries. `start` is the index of the first query.

    `rows` has the tensors with these results. If there are several tensors, or if a tensor represents several blocks of
    queries, a new node that only moves data puts the results of all queries into one tensor.
    """
    if len(rows) == 1 and rows[0].blocks == 1:
        return rows[0].tensor
    target = builder.tensor(name, shape)
    maps = []
    for tensor, first, queries, blocks in rows:
        terms = (("R", queries), ("D", 1)) if blocks > 1 else (("D", 1),)
        inner = (("R", blocks), ("D", queries)) if blocks > 1 else (("D", queries),)
        if len(shape) > 2:
            outer, place = ("B", "G", "H"), AxisIndex(terms, first - start)
            loops = (*zip(outer, shape[:-1], strict=True), *inner)
            maps.append(IndexMap(loops, at(target, *outer, place), at(tensor, *outer, "D")))
        else:
            row = AxisIndex((("B", shape[0] // heads.group.count), *terms), first - start)
            source = AxisIndex((("B", queries), ("D", 1)))
            loops = (("B", heads.group.count), *inner, ("K", shape[1]))
            maps.append(IndexMap(loops, at(target, row, "K"), at(tensor, source, "K")))
    return builder.move(name, "Concat", *maps)


def _merged(builder: Builder, name: str, operator_type: str, one: str, other: str, shape: tuple[int, ...]) -> str:
    """Add a layer that merges the results `one` and `other` of two pieces, and return the name of its output, a tensor
    of `shape`. The layer takes one operation per element of `shape`, even if a piece has fewer rows than `shape`.
    """
    names = ("B", "G", "H", "D")[: len(shape)] if len(shape) > 2 else ("D", "K")
    target = builder.tensor(f"{name}.out", shape)
    loops = tuple(zip(names, shape, strict=True))
    inputs = {"I": at(one, *names), "W": at(other, *names)}
    return builder.nest(name, operator_type, loops, at(target, *names), inputs, superset=("I", "W"))


def _weighted(builder: Builder, heads: Heads, piece: Piece, shares: str) -> str:
    """Add the layer that computes the weighted sum of the values for each query of the piece, and return the name of
    its output tensor. `shares` is the name of the tensor of weights.
    """
    width, group = heads.values.width, heads.group
    name = _part("values", piece)
    target = builder.tensor(f"{name}.out", (group.count * piece.queries, heads.key_heads * heads.shared * width))
    loops = (("C", piece.keys), ("D", piece.queries), ("K", width), *heads.outer)
    output = at(target, AxisIndex((("B", piece.queries), ("D", 1))), heads.channel(width, "K"))
    value = at(heads.values.tensor, "B", "G", _key(piece, "C"), "K")
    further = {"W": _other_keys(heads, piece, heads.values, loops, output, ("C", "K"))}
    with builder.scope("", piece.stands_for):
        return builder.nest(
            name,
            "MatMul",
            loops,
            output,
            {"I": at(shares, "B", "G", "H", "D", "C"), "W": value},
            further=further,
            sizes={"W": (group.count, heads.key_heads, piece.keys, width)},
            unit=MAC_ARRAY,
        )
