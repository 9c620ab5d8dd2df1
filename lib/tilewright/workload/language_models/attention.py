"""Attention of one block: projections, positions, the cache of keys and values, and for each group of requests what
`attended` makes of the pieces of queries and keys."""

from collections.abc import Iterator

from tilewright.workload.access import AxisIndex, IndexMap, affine
from tilewright.workload.language_models.architecture import Attention
from tilewright.workload.language_models.attended import Heads, Kept, attend
from tilewright.workload.language_models.builder import Builder, at
from tilewright.workload.language_models.request import Requests, Step
from tilewright.workload.language_models.visible_keys import Piece, first_position, visible_pieces


def attention(builder: Builder, source: str, attention: Attention, step: Step) -> str:
    """The output of attention, [rows, hidden], from the normalised hidden states."""
    hidden, rows = builder.shape(source)[1], builder.shape(source)[0]
    groups, cache_bits = step.groups, builder.precision.cache
    queries = _projected(builder, "q", source, attention, attention.heads, None)
    keys = _projected(builder, "k", source, attention, attention.key_heads, cache_bits)
    width = attention.key_heads * attention.width
    values = builder.linear("v_proj", source, width, has_bias=attention.has_input_bias, bits=cache_bits)
    outputs = []
    for place, (first, group) in enumerate(_rows_of(groups)):
        with builder.scope(f"requests{place}" if len(groups) > 1 else ""):
            cached = cached_tokens(group, attention.window)
            size = (attention.key_heads, attention.width)
            heads = Heads(
                queries=queries,
                first_row=first,
                group=group,
                keys=kept(builder, "key_cache", keys, first, group, cached, size),
                values=kept(builder, "value_cache", values, first, group, cached, size),
                key_heads=attention.key_heads,
                shared=attention.heads // attention.key_heads,
                has_softcap=attention.has_softcap,
                window=attention.window,
            )
            outputs.append(attend(builder, heads, pieces_of(group, step, attention.window)))
    joined = join_rows(builder, outputs, (rows, attention.heads * attention.width))
    return builder.linear("o_proj", joined, hidden, has_bias=attention.has_output_bias)


def pieces_of(group: Requests, step: Step, window: int | None = None) -> tuple[Piece, ...]:
    """The pieces of queries and keys of a group of requests."""
    written = step.is_written_out
    return visible_pieces(group.tokens, group.context, window, step.key_block, is_written_out=written)


def _projected(builder: Builder, which: str, source: str, attention: Attention, heads: int, bits: int | None) -> str:
    """Queries or keys; what is done last to them is stored with `bits`."""
    width = attention.width
    has_norm = attention.head_norm is not None
    last = None if has_norm or attention.is_rotary else bits
    found = builder.linear(f"{which}_proj", source, heads * width, has_bias=attention.has_input_bias, bits=last)
    if attention.head_norm is not None:
        found = builder.norm(f"{which}_norm", found, attention.head_norm, heads)
    if attention.is_rotary:
        found = builder.rotary(f"{which}_rotary", found, heads, width, (width, 0), bits)
    return found


def _rows_of(groups: tuple[Requests, ...]) -> Iterator[tuple[int, Requests]]:
    """(first row, group) for each group of requests."""
    first = 0
    for group in groups:
        yield first, group
        first += group.rows


def cached_tokens(group: Requests, window: int | None = None) -> int:
    """Tokens of each request that are read from its cache."""
    return group.context - first_position(group.context, window)


def kept(
    builder: Builder,
    name: str,
    new: str,
    first: int,
    group: Requests,
    cached: int,
    size: tuple[int, int],
    start: int = 0,
) -> Kept:
    """What is kept of a group's requests: the cache before the step with the new rows behind it.

    `size` is (heads, width) of the channels of `new` that belong to it, from `start` on. The new rows were stored when
    they were made; here they only find their place.
    """
    heads, width = size
    bits, tokens = builder.precision.cache, group.tokens
    whole = builder.tensor(name, (group.count, heads, cached + tokens, width), bits)
    loops = (("B", group.count), ("G", heads), ("D", tokens), ("K", width))
    row = AxisIndex((("B", tokens), ("D", 1)), first)
    read = at(new, row, affine(("G", width), ("K", 1), offset=start))
    maps = [IndexMap(loops, at(whole, "B", "G", affine(("D", 1), offset=cached), "K"), read)]
    if cached:
        before = builder.network_input(f"{name}.before", (group.count, heads, cached, width), bits)
        old = (("B", group.count), ("G", heads), ("D", cached), ("K", width))
        maps.append(IndexMap(old, at(whole, "B", "G", "D", "K"), at(before, "B", "G", "D", "K")))
    builder.outputs.append(whole)
    return Kept(builder.move(name, "Concat", *maps), width)


def join_rows(builder: Builder, parts: list[str], shape: tuple[int, int], name: str = "attended") -> str:
    """The rows of groups of requests one below the other."""
    if len(parts) == 1:
        return parts[0]
    target, maps, first = builder.tensor(name, shape), [], 0
    for part in parts:
        rows, width = builder.shape(part)
        loops = (("D", rows), ("K", width))
        maps.append(IndexMap(loops, at(target, affine(("D", 1), offset=first), "K"), at(part, "D", "K")))
        first += rows
    return builder.move(name, "Concat", *maps)
