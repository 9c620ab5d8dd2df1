"""Attention of one block: projections, positions, cache and groups of requests; also DeepSeek's latent attention (MLA).

In latent attention, the cache has one latent vector and one rotary key per token. There are two ways to compute latent
attention:

* ABSORBED: the up-projections of keys and values are applied to the queries and to the outputs. Attention then runs on
  the latent vectors, with one key head.
* EXPANDED: keys and values of all heads are computed from the latent vectors of all visible tokens, including cached
  tokens.

Both ways give the same result. The numbers of new and cached tokens decide which way needs less work.
"""

from collections.abc import Iterator

from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.workload.access import AxisIndex, IndexMap, affine
from tilewright.workload.language_models.architecture import RMS_NORM, Attention, LatentAttention
from tilewright.workload.language_models.attended import attend
from tilewright.workload.language_models.builder import Builder, at
from tilewright.workload.language_models.heads import Heads, Kept
from tilewright.workload.language_models.request import ABSORBED, ModelStep, Requests
from tilewright.workload.language_models.visible_keys import Piece, first_position, split, visible_pieces


def attention(builder: Builder, source: str, attention: Attention, step: ModelStep) -> str:
    """Add the layers of attention, and return the name of the output tensor [rows, hidden]. `source` is the name of the
    input tensor, the normalised hidden states.
    """
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


def pieces_of(group: Requests, step: ModelStep, window: int | None = None) -> tuple[Piece, ...]:
    """Rectangles of queries times keys that attention computes for a group of requests (see `visible_keys`)."""
    written = step.is_written_out
    return visible_pieces(group.tokens, group.context, window, step.key_block, is_written_out=written)


def _projected(builder: Builder, which: str, source: str, attention: Attention, heads: int, bits: int | None) -> str:
    """Add the projection that computes queries or keys, and return the name of its result. If the model normalises or
    rotates queries and keys, the result is normalised or rotated. An element of the result has `bits` bits.
    """
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
    """Pairs (first row, group), one for each group of requests. `first row` is the first row of the group in tensors
    with one row per new token of all requests."""
    first = 0
    for group in groups:
        yield first, group
        first += group.rows


def cached_tokens(group: Requests, window: int | None = None) -> int:
    """Number of cached tokens per request that attention reads. With a window, attention reads only the cached tokens
    that some new token sees."""
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
    """Keys or values of all tokens of a group of requests: the cached rows, followed by the rows of the new tokens.

    `new` is the tensor with the new rows, which begin at row `first` and at channel `start`. `cached` is the number of
    cached tokens of each request, and `size` is (heads, width). The new rows are already computed, so appending them
    costs nothing.
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
    """Name of a tensor of `shape` with the rows of all `parts`, in order. `parts` has one tensor per group of requests.
    If there are several tensors, a new node that only moves data joins them.
    """
    if len(parts) == 1:
        return parts[0]
    target, maps, first = builder.tensor(name, shape), [], 0
    for part in parts:
        rows, width = builder.shape(part)
        loops = (("D", rows), ("K", width))
        maps.append(IndexMap(loops, at(target, affine(("D", 1), offset=first), "K"), at(part, "D", "K")))
        first += rows
    return builder.move(name, "Concat", *maps)


def latent_attention(builder: Builder, source: str, attention: LatentAttention, step: ModelStep) -> str:
    """Add the layers of latent attention, and return the name of the output tensor [rows, hidden]. `source` is the name
    of the input tensor, the normalised hidden states.
    """
    rows, hidden = builder.shape(source)
    query = _queries(builder, source, attention)
    latent, turned = _latent(builder, source, attention)
    weight = builder.weight(
        "kv_b_proj.weight", attention.rank, attention.heads, attention.width + attention.value_width
    )
    groups, absorbed = step.groups, step.latent == ABSORBED
    if absorbed:
        query = _joined_query(
            builder, _into_latent(builder, query, attention, weight), query, attention, attention.rank
        )
    else:
        query = _joined_query(builder, query, query, attention, attention.width)
    outputs, first = [], 0
    for place, group in enumerate(groups):
        with builder.scope(f"requests{place}" if len(groups) > 1 else ""):
            cache = _cache(builder, (latent, turned), first, group, attention)
            if absorbed:
                (keys, values), key_heads = _absorbed(cache, attention), 1
            else:
                (keys, values), key_heads = _expanded(builder, cache, attention, weight, step), attention.heads
            heads = Heads(query, first, group, keys, values, key_heads, attention.heads // key_heads)
            outputs.append(attend(builder, heads, pieces_of(group, step)))
        first += group.rows
    width = attention.rank if absorbed else attention.value_width
    joined = join_rows(builder, outputs, (rows, attention.heads * width))
    if absorbed:
        joined = _out_of_latent(builder, joined, attention, weight)
    return builder.linear("o_proj", joined, hidden, has_bias=attention.has_bias)


def _queries(builder: Builder, source: str, attention: LatentAttention) -> str:
    """Add the products that compute the queries, and return the name of the tensor [rows, heads * (width + rotary
    width)]. The rotary position embedding is not yet applied.
    """
    outputs = attention.heads * (attention.width + attention.rotary_width)
    if attention.query_rank is None:
        return builder.linear("q_proj", source, outputs)
    low = builder.linear("q_a_proj", source, attention.query_rank, has_bias=attention.has_bias)
    return builder.linear("q_b_proj", builder.norm("q_a_norm", low, RMS_NORM), outputs)


def _latent(builder: Builder, source: str, attention: LatentAttention) -> tuple[str, str]:
    """Names of the tensors with the latent vectors and with the rotary keys of the new tokens. Both tensors have the
    form in which the cache keeps them.
    """
    both = builder.linear(
        "kv_a_proj_with_mqa", source, attention.rank + attention.rotary_width, has_bias=attention.has_bias
    )
    latent = builder.norm("kv_a_norm", both, RMS_NORM, width=attention.rank, bits=builder.precision.cache)
    turned = builder.rotary(
        "k_rotary",
        both,
        1,
        attention.rotary_width,
        (attention.rank + attention.rotary_width, attention.rank),
        builder.precision.cache,
    )
    return latent, turned


def _into_latent(builder: Builder, query: str, attention: LatentAttention, weight: str) -> str:
    """Add the product that applies the up-projection of keys to the non-rotary part of the queries, and return the name
    of its result [rows, heads * rank].
    """
    rows = builder.shape(query)[0]
    pitch = attention.width + attention.rotary_width
    target = builder.tensor("q_absorbed.out", (rows, attention.heads * attention.rank))
    return builder.nest(
        "q_absorbed",
        "MatMul",
        (("C", attention.width), ("D", rows), ("K", attention.rank), ("G", attention.heads)),
        at(target, "D", affine(("G", attention.rank), ("K", 1))),
        {"I": at(query, "D", affine(("G", pitch), ("C", 1))), "W": at(weight, "K", "G", "C")},
        unit=MAC_ARRAY,
    )


def _out_of_latent(builder: Builder, latent: str, attention: LatentAttention, weight: str) -> str:
    """Add the product of the tensor `latent` and the up-projection of values. `latent` has sums of latent vectors,
    weighted by the attention scores. Returns the name of the resulting tensor [rows, heads * value width]."""
    rows = builder.shape(latent)[0]
    target = builder.tensor("v_absorbed.out", (rows, attention.heads * attention.value_width))
    column = affine(("K", 1), offset=attention.width)
    return builder.nest(
        "v_absorbed",
        "MatMul",
        (("C", attention.rank), ("D", rows), ("K", attention.value_width), ("G", attention.heads)),
        at(target, "D", affine(("G", attention.value_width), ("K", 1))),
        {"I": at(latent, "D", affine(("G", attention.rank), ("C", 1))), "W": at(weight, "C", "G", column)},
        unit=MAC_ARRAY,
    )


def _joined_query(builder: Builder, plain: str, source: str, attention: LatentAttention, width: int) -> str:
    """Add a move that joins the two parts of the queries, and return the name of the resulting tensor [rows, heads *
    (width + rotary width)]. Each head has `width` channels of the tensor `plain`, followed by the rotary part.

    The rotary part is read from the tensor `source`, after rotary position embedding.
    """
    rows, heads, extra = builder.shape(source)[0], attention.heads, attention.rotary_width
    pitch = attention.width + extra
    turned = builder.rotary("q_rotary", source, heads, extra, (pitch, attention.width), None)
    target = builder.tensor("query", (rows, heads * (width + extra)))
    own = builder.shape(plain)[1] // heads
    outer = (("D", rows), ("G", heads))
    read = at(plain, "D", affine(("G", own), ("K", 1)))
    whole = width + extra
    return builder.move(
        "query",
        "Concat",
        IndexMap((*outer, ("K", width)), at(target, "D", affine(("G", whole), ("K", 1))), read),
        IndexMap(
            (*outer, ("K", extra)),
            at(target, "D", affine(("G", whole), ("K", 1), offset=width)),
            at(turned, "D", affine(("G", extra), ("K", 1))),
        ),
    )


def _cache(builder: Builder, new: tuple[str, str], first: int, group: Requests, attention: LatentAttention) -> str:
    """Add the cache of latent attention for a group of requests, and return the name of the tensor [requests, 1,
    tokens, rank + rotary width]. `tokens` are the cached tokens followed by the new tokens.

    The last axis holds the latent vector of a token, followed by its rotary key. `new` names two tensors with rows for
    the new tokens: (latent vectors, rotary keys). The rows of the group begin at row `first`.
    """
    cached = cached_tokens(group)
    rank, extra = attention.rank, attention.rotary_width
    latent = kept(builder, "latent_cache", new[0], first, group, cached, (1, rank))
    turned = kept(builder, "turned_cache", new[1], first, group, cached, (1, extra))
    tokens = cached + group.tokens
    whole = builder.tensor("latent_keys", (group.count, 1, tokens, rank + extra), builder.precision.cache)
    outer = (("B", group.count), ("D", tokens))
    maps = [
        IndexMap((*outer, ("K", size)), at(whole, "B", _ZERO, "D", affine(("K", 1), offset=start)), read)
        for size, start, read in (
            (rank, 0, at(latent.tensor, "B", _ZERO, "D", "K")),
            (extra, rank, at(turned.tensor, "B", _ZERO, "D", "K")),
        )
    ]
    return builder.move("latent_keys", "Concat", *maps)


_ZERO = AxisIndex()


def _absorbed(cache: str, attention: LatentAttention) -> tuple[Kept, Kept]:
    """Pair (keys of all heads, values of all heads). The keys are the rows of the tensor `cache`; the values are the
    latent part of these rows.
    """
    return Kept(cache, attention.rank + attention.rotary_width), Kept(cache, attention.rank)


def _expand(builder: Builder, keys: str, both: str, attention: LatentAttention, weight: str, step: ModelStep) -> None:
    """Add the up-projection that computes keys and values of all tokens. The up-projection reads the latent vectors
    from the tensor `keys`, and writes the tensor `both`. If attention processes keys in blocks, one repeated node
    represents all equal blocks of tokens.
    """
    count, heads, tokens, width = builder.shape(both)
    block = None if step.is_written_out else step.key_block
    for number, (first, size, repeats) in enumerate(split(tokens, block)):
        row = affine(("D", 1), offset=first)
        with builder.scope("", repeats):
            builder.nest(
                f"kv_b_proj.{number}" if number else "kv_b_proj",
                "MatMul",
                (("C", attention.rank), ("D", size), ("K", width), ("B", count), ("G", heads)),
                at(both, "B", "G", row, "K"),
                {"I": at(keys, "B", _ZERO, row, "C"), "W": at(weight, "C", "G", "K")},
                sizes={"I": (count, 1, size, attention.rank)},
                unit=MAC_ARRAY,
            )


def _expanded(
    builder: Builder, keys: str, attention: LatentAttention, weight: str, step: ModelStep
) -> tuple[Kept, Kept]:
    """Pair (keys of all heads, values of all heads), computed from the latent vectors of all tokens."""
    count, _, tokens, _ = builder.shape(keys)
    heads, width, extra = attention.heads, attention.width, attention.rotary_width
    bits = builder.precision.activations
    both = builder.tensor("kv_b_proj.out", (count, heads, tokens, width + attention.value_width), bits)
    _expand(builder, keys, both, attention, weight, step)
    joined = builder.tensor("expanded_keys", (count, heads, tokens, width + extra), bits)
    outer = (("B", count), ("G", heads), ("D", tokens))
    shared = at(keys, "B", _ZERO, "D", affine(("K", 1), offset=attention.rank))
    builder.move(
        "expanded_keys",
        "Concat",
        IndexMap((*outer, ("K", width)), at(joined, "B", "G", "D", "K"), at(both, "B", "G", "D", "K")),
        IndexMap((*outer, ("K", extra)), at(joined, "B", "G", "D", affine(("K", 1), offset=width)), shared),
    )
    values = builder.tensor("expanded_values", (count, heads, tokens, attention.value_width), bits)
    read = at(both, "B", "G", "D", affine(("K", 1), offset=width))
    loops = (*outer, ("K", attention.value_width))
    builder.move("expanded_values", "Slice", IndexMap(loops, at(values, "B", "G", "D", "K"), read))
    return Kept(joined, width + extra), Kept(values, attention.value_width)
