"""Layers of one step of a language model: embedding, blocks, last norm and the projection to the vocabulary.

One repeated block represents all blocks of a kind. The repeated blocks are in the order in which their kinds first
occur in the model. If the workload is written out, every block has its own layers, in the order of the model.

A block mixes tokens by attention or by a selective state space (Mamba: projections, a short causal convolution, and the
recurrence of its state). A block also has a feed-forward part or a mixture of experts.

The recurrence h = decay * h + input, y = C * h is computed token by token. The nodes for one token read the state and
write the new state. These nodes are repeated for each token of a request; if the workload is written out, each token
has its own nodes. Values that do not depend on the state are computed for all tokens together.
"""

import math
from collections import Counter

from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.workload.access import AxisIndex, IndexMap, affine
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.architecture import (
    PARALLEL,
    SANDWICH,
    Architecture,
    Attention,
    Block,
    FeedForward,
    LatentAttention,
    Mixture,
    StateSpace,
)
from tilewright.workload.language_models.attention import attention, join_rows, latent_attention
from tilewright.workload.language_models.builder import Builder, at
from tilewright.workload.language_models.heads import AttentionSite
from tilewright.workload.language_models.request import ALL, EXPECTED, ModelStep, Requests


def feed_forward(builder: Builder, source: str, part: FeedForward) -> str:
    """Add the layers of a feed-forward part, and return the name of the result [rows, hidden]. The result is
    down(activation(gate(x)) * up(x)), or down(activation(up(x))) if there is no gate.
    """
    hidden = builder.shape(source)[1]
    up = builder.linear("up_proj", source, part.width, has_bias=part.has_bias)
    if part.is_gated:
        gate = builder.linear("gate_proj", source, part.width, has_bias=part.has_bias)
        inner = builder.elementwise("gated", "Mul", builder.elementwise("activation", part.activation, gate), up)
    else:
        inner = builder.elementwise("activation", part.activation, up)
    return builder.linear("down_proj", inner, hidden, has_bias=part.has_bias)


def expert_loads(mixture: Mixture, tokens: int, load: str | tuple[int, ...]) -> dict[int, int]:
    """Spread of tokens over experts: number of tokens -> number of experts with this many tokens, most tokens first.

    BALANCED uses all experts that can have a token. EXPECTED sends each token to random experts. The number of used
    experts is the expected number of experts with a token, rounded: experts * (1 - (1 - chosen / experts) ** tokens),
    with `chosen` experts per token. In both cases, the used experts share the tokens evenly. If `load` is a tuple, the
    tuple has the number of tokens of each expert. Experts without tokens are left out.
    """
    if not isinstance(load, str):
        counts = Counter(tokens for tokens in load if tokens)
        return dict(sorted(counts.items(), reverse=True))
    chosen, experts = mixture.experts_per_token, mixture.experts
    pairs = tokens * chosen
    used = min(experts, pairs)
    if load == EXPECTED:
        share = 1 - chosen / experts
        met = experts * -math.expm1(tokens * math.log(share)) if share > 0 else experts
        used = max(chosen, min(used, round(met)))
    each, more = divmod(pairs, used)
    return {size: count for size, count in ((each + 1, more), (each, used - more)) if size and count}


def mixture_of_experts(
    builder: Builder, source: str, mixture: Mixture, load: str | tuple[int, ...], *, is_written_out: bool
) -> str:
    """Add the layers of a mixture of experts, and return the name of the output tensor [rows, hidden]. The output of a
    token is the weighted sum of the outputs of its chosen experts, plus the output of the shared expert (if there is
    one).
    """
    rows, hidden = builder.shape(source)
    scores = builder.linear("router", source, mixture.experts)
    if mixture.uses_sigmoid:
        shares = builder.elementwise("router_scores", "Sigmoid", scores)
        bias = builder.weight("router_scores.bias", mixture.experts)
        corrected = builder.tensor("router_corrected.out", (rows, mixture.experts))
        loops = (("D", rows), ("K", mixture.experts))
        inputs = {"I": at(shares, "D", "K"), "W": at(bias, "K")}
        shares = builder.nest("router_corrected", "Add", loops, at(corrected, "D", "K"), inputs)
    else:
        shares = builder.softmax("router_scores", scores)
    chosen = _chosen(builder, shares, mixture.experts_per_token)
    total = builder.table("zeros", rows, hidden)  # initial value of the sum of weighted outputs
    if mixture.shared is not None:
        with builder.scope("shared_experts"):
            total = feed_forward(builder, source, mixture.shared)
    number = 0
    for size, count in expert_loads(mixture, rows, load).items():
        for _ in range(count if is_written_out else 1):
            with builder.scope(f"experts.{number}", 1 if is_written_out else count):
                total = _expert(builder, source, mixture.expert, size, chosen, total)
            number += 1
    return total


def _chosen(builder: Builder, shares: str, count: int) -> str:
    """Add the choice of `count` experts for each token, and return the name of the tensor [rows, `count`] with the
    router scores of the chosen experts. The scores of a token are divided by their sum.
    """
    rows, experts = builder.shape(shares)
    best = builder.tensor("router_choice.out", (rows, count))
    loops = (("D", rows), ("C", experts))
    output = at(best, "D", affine())
    builder.nest("router_choice", "TopK", loops, output, {"I": at(shares, "D", "C")}, superset=("I",))
    total = builder.tensor("router_total.out", (rows,))
    inner = (("D", rows), ("K", count))
    builder.nest("router_total", "ReduceSum", inner, at(total, "D"), {"I": at(best, "D", "K")})
    target = builder.tensor("router_shares.out", (rows, count))
    inputs = {"I": at(best, "D", "K"), "W": at(total, "D")}
    return builder.nest("router_shares", "Div", inner, at(target, "D", "K"), inputs)


def _expert(builder: Builder, source: str, expert: FeedForward, rows: int, chosen: str, total: str) -> str:
    """Add the layers of one expert, and return the name of a tensor [tokens, hidden]: the sum of the tensor `total` and
    the weighted output of the expert.

    The expert processes `rows` tokens of the tensor `source`. `chosen` is the name of the tensor with the router
    scores.
    """
    tokens, hidden = builder.shape(source)
    picked = builder.tensor("tokens", (rows, hidden))
    found = feed_forward(builder, builder.move("tokens", "Gather", builder.any_of(picked, source)), expert)
    loops = (("D", rows), ("K", hidden))
    weighted = builder.tensor("weighted.out", (rows, hidden))
    inputs = {"I": at(found, "D", "K"), "W": at(chosen, "D", affine())}
    builder.nest("weighted", "Mul", loops, at(weighted, "D", "K"), inputs, superset=("W",))
    target = builder.tensor("sum.out", (tokens, hidden))
    output = at(target, "D", "K")
    inputs = {"I": at(weighted, "D", "K"), "W": at(total, "D", "K")}
    return builder.nest("sum", "Add", loops, output, inputs, superset=("I", "W"))


def state_space(
    builder: Builder, source: str, mixer: StateSpace, groups: tuple[Requests, ...], *, is_written_out: bool
) -> str:
    """Add the layers of a state-space mixer, and return the name of its output tensor [rows, hidden]. `source` is the
    name of the input tensor, the normalised hidden states.
    """
    rows, hidden = builder.shape(source)
    both = builder.linear("in_proj", source, 2 * mixer.width, has_bias=mixer.has_bias)
    parts, first = [], 0
    for place, group in enumerate(groups):
        with builder.scope(f"requests{place}" if len(groups) > 1 else ""):
            parts.append(_convolution(builder, both, first, group, mixer))
        first += group.rows
    inner = builder.elementwise(
        "conv1d_activation", "Silu", join_rows(builder, parts, (rows, mixer.width), "convolved")
    )
    chosen = builder.linear("x_proj", inner, mixer.rank + 2 * mixer.state)
    steps = builder.product("dt_proj", chosen, (rows, mixer.rank, mixer.width), has_bias=True)
    steps = builder.elementwise("step", "Softplus", steps)
    decays, updates = _discrete(builder, inner, chosen, steps, mixer)
    outputs, first = [], 0
    for place, group in enumerate(groups):
        with builder.scope(f"requests{place}" if len(groups) > 1 else ""):
            outputs.append(_recurrence(builder, (decays, updates, chosen), first, group, mixer, is_written_out))
        first += group.rows
    found = join_rows(builder, outputs, (rows, mixer.width), "scanned")
    found = _with_skip(builder, found, inner, mixer)
    gate = builder.tensor("gate.out", (rows, mixer.width))
    loops = (("D", rows), ("K", mixer.width))
    read = at(both, "D", affine(("K", 1), offset=mixer.width))
    builder.nest("gate", "Silu", loops, at(gate, "D", "K"), {"I": read})
    return builder.linear("out_proj", builder.elementwise("gated", "Mul", found, gate), hidden, has_bias=mixer.has_bias)


def _convolution(builder: Builder, both: str, first: int, group: Requests, mixer: StateSpace) -> str:
    """Add the depthwise convolution along the tokens of a request, and return the name of its result [rows, width]. The
    last input tokens of the convolution become its state for the next step.
    """
    before, tokens, bits = mixer.kernel - 1, group.tokens, builder.precision.cache
    padded = builder.tensor("conv_window", (group.count, before + tokens, mixer.width))
    loops = (("B", group.count), ("D", tokens), ("K", mixer.width))
    row = AxisIndex((("B", tokens), ("D", 1)), first)
    maps = [IndexMap(loops, at(padded, "B", affine(("D", 1), offset=before), "K"), at(both, row, "K"))]
    if before:
        state = builder.network_input("conv_state.before", (group.count, before, mixer.width), bits)
        old = (("B", group.count), ("D", before), ("K", mixer.width))
        maps.append(IndexMap(old, at(padded, "B", "D", "K"), at(state, "B", "D", "K")))
    builder.move("conv_window", "Concat", *maps)
    if before:
        after = builder.tensor("conv_state", (group.count, before, mixer.width), bits)
        old = (("B", group.count), ("D", before), ("K", mixer.width))
        read = at(padded, "B", affine(("D", 1), offset=tokens), "K")
        builder.move("conv_state", "Slice", IndexMap(old, at(after, "B", "D", "K"), read))
        builder.outputs.append(after)
    weight = builder.weight("conv1d.weight", mixer.width, mixer.kernel)
    others = [at(builder.weight("conv1d.bias", mixer.width), "G")] if mixer.has_kernel_bias else []
    target = builder.tensor("conv1d.out", (group.rows, mixer.width))
    # Each channel is a group of its own, as in a depthwise convolution.
    return builder.nest(
        "conv1d",
        "Conv",
        (("B", group.count), ("G", mixer.width), ("OX", tokens), ("FX", mixer.kernel)),
        at(target, AxisIndex((("B", tokens), ("OX", 1))), "G"),
        {"I": at(padded, "B", affine(("OX", 1), ("FX", 1)), "G"), "W": at(weight, "G", "FX")},
        others=others,
        unit=MAC_ARRAY,
    )


def _discrete(builder: Builder, inner: str, chosen: str, steps: str, mixer: StateSpace) -> tuple[str, str]:
    """Add the nodes that make a state-space model discrete in time. Returns the names of two tensors: the decay factor
    of the state at a token, and the update that is added to the state. Both tensors have the shape [rows, width,
    state], with one row per token.
    """
    rows = builder.shape(inner)[0]
    shape = (rows, mixer.width, mixer.state)
    loops = (("D", rows), ("K", mixer.width), ("C", mixer.state))
    rates = builder.weight("A_log", mixer.width, mixer.state)
    scaled = builder.tensor("decay_rate.out", shape)
    inputs = {"I": at(steps, "D", "K"), "W": at(rates, "K", "C")}
    builder.nest("decay_rate", "Mul", loops, at(scaled, "D", "K", "C"), inputs)
    decays = builder.tensor("decay.out", shape)
    builder.nest("decay", "Exp", loops, at(decays, "D", "K", "C"), {"I": at(scaled, "D", "K", "C")})
    weighted = builder.elementwise("step_input", "Mul", inner, steps)
    updates = builder.tensor("update.out", shape)
    column = affine(("C", 1), offset=mixer.rank)
    inputs = {"I": at(weighted, "D", "K"), "W": at(chosen, "D", column)}
    builder.nest("update", "Mul", loops, at(updates, "D", "K", "C"), inputs)
    return decays, updates


def _recurrence(
    builder: Builder,
    sources: tuple[str, str, str],
    first: int,
    group: Requests,
    mixer: StateSpace,
    is_written_out: bool,
) -> str:
    """Add the recurrence that updates the state from token to token, for a group of requests. Returns the name of the
    output tensor [rows of the group, width]. The state is an input and an output of the network.

    `sources` has the names of three tensors: the decay factors, the updates of the state, and the projection with the
    output coefficients C. `first` is the row of the first token of the group in these tensors.
    """
    shape = (group.count, mixer.width, mixer.state)
    state = builder.network_input("state.before", shape, builder.precision.cache)
    outputs = builder.tensor("scan", (group.rows, mixer.width))
    maps = []
    for token in range(group.tokens if is_written_out else 1):
        name = f"scan.{token}" if is_written_out else "scan"
        with builder.scope(name, 1 if is_written_out else group.tokens):
            state, found = _step(builder, sources, state, (first + token, group.tokens), shape, mixer)
        loops = (("B", group.count), ("K", mixer.width))
        row = AxisIndex((("B", group.tokens),), token)
        if is_written_out:
            maps.append(IndexMap(loops, at(outputs, row, "K"), at(found, "B", "K")))
        else:
            maps.append(builder.any_of(outputs, found))
    builder.outputs.append(state)
    return builder.move("scan", "Concat", *maps)


def _step(
    builder: Builder,
    sources: tuple[str, str, str],
    state: str,
    row: tuple[int, int],
    shape: tuple[int, int, int],
    mixer: StateSpace,
) -> tuple[str, str]:
    """Add the nodes for one token of each request, and return the names of two tensors: (new state, outputs [requests,
    width]).

    `row` is (row of this token in the first request, number of rows from one request to the next).
    """
    decays, updates, chosen = sources
    index = AxisIndex((("B", row[1]),), row[0])
    loops = (("B", shape[0]), ("K", shape[1]), ("C", shape[2]))
    decayed = builder.tensor("decayed.out", shape)
    inputs = {"I": at(decays, index, "K", "C"), "W": at(state, "B", "K", "C")}
    builder.nest("decayed", "Mul", loops, at(decayed, "B", "K", "C"), inputs)
    after = builder.tensor("state", shape, builder.precision.cache)
    inputs = {"I": at(decayed, "B", "K", "C"), "W": at(updates, index, "K", "C")}
    builder.nest("state", "Add", loops, at(after, "B", "K", "C"), inputs)
    found = builder.tensor("output.out", shape[:2])
    column = affine(("C", 1), offset=mixer.rank + mixer.state)
    inputs = {"I": at(after, "B", "K", "C"), "W": at(chosen, index, column)}
    inner = (("C", shape[2]), ("K", shape[1]), ("B", shape[0]))
    builder.nest("output", "MatMul", inner, at(found, "B", "K"), inputs, unit=MAC_ARRAY)
    return after, found


def _with_skip(builder: Builder, found: str, inner: str, mixer: StateSpace) -> str:
    """Add the skip connection of a state-space mixer, and return the name of the tensor y + D * x. y is `found`, x is
    `inner`, and D is a weight per channel.
    """
    rows = builder.shape(inner)[0]
    loops = (("D", rows), ("K", mixer.width))
    skip = builder.tensor("skip.out", (rows, mixer.width))
    inputs = {"I": at(inner, "D", "K"), "W": at(builder.weight("D", mixer.width), "K")}
    builder.nest("skip", "Mul", loops, at(skip, "D", "K"), inputs)
    return builder.elementwise("with_skip", "Add", found, skip)


def language_model_workload(model: Architecture, step: ModelStep, name: str = "") -> Workload:
    """Workload of one step. The inputs of the workload are the caches before the step. The outputs are the caches after
    the step and the logits."""
    return _built(model, step).workload(name or model.name)


def attentions_of(model: Architecture, step: ModelStep) -> tuple[Builder, tuple[AttentionSite, ...]]:
    """Pair (builder with all nodes and tensors of one step, all attentions of the workload)."""
    builder = _built(model, step)
    return builder, tuple(builder.attentions)


def _built(model: Architecture, step: ModelStep) -> Builder:
    builder = Builder(step.precision)
    hidden = _embedding(builder, model, step)
    if step.is_written_out:
        for place, block in enumerate(model.blocks):
            with builder.scope(f"layers.{place}"):
                hidden = _block(builder, hidden, block, step)
    else:
        for block, count in model.kinds.items():
            with builder.scope(f"layers.{block.name}" if block.name else "layers", count):
                hidden = _block(builder, hidden, block, step)
    if model.last_norm is not None:
        hidden = builder.norm("norm", hidden, model.last_norm)
    _logits(builder, hidden, model, step)
    return builder


def _embedding(builder: Builder, model: Architecture, step: ModelStep) -> str:
    """Add the embedding of the tokens, and return the name of the result [rows, hidden].

    Rows of the embedding table are read at no cost. If the model scales the embeddings or has learned positions, layers
    for the scaling and for the sum with the position embeddings follow.
    """
    rows = step.rows
    table = builder.weight("embed_tokens.weight", model.vocabulary, model.hidden)
    hidden = builder.tensor("embed_tokens", (rows, model.hidden))
    builder.move("embed_tokens", "Gather", builder.any_of(hidden, table))
    if model.scales_embedding:
        hidden = builder.elementwise("embed_scale", "Mul", hidden)
    if model.positions:
        table = builder.weight("embed_positions.weight", model.positions, model.hidden)
        chosen = builder.tensor("embed_positions", (rows, model.hidden))
        builder.move("embed_positions", "Gather", builder.any_of(chosen, table))
        hidden = builder.elementwise("embed_sum", "Add", hidden, chosen)
    return hidden


def _block(builder: Builder, hidden: str, block: Block, step: ModelStep) -> str:
    normed = builder.norm("input_norm", hidden, block.norm)
    mixed = _mixer(builder, normed, block, step)
    if block.feed_forward is None:
        return builder.elementwise("mixer_residual", "Add", hidden, mixed)
    if block.norms == PARALLEL:
        both = builder.elementwise("parts_sum", "Add", mixed, _second(builder, normed, block, step))
        return builder.elementwise("residual", "Add", hidden, both)
    if block.norms == SANDWICH:
        mixed = builder.norm("post_attention_norm", mixed, block.norm)
    hidden = builder.elementwise("attention_residual", "Add", hidden, mixed)
    before = "pre_feedforward_norm" if block.norms == SANDWICH else "post_attention_norm"
    found = _second(builder, builder.norm(before, hidden, block.norm), block, step)
    if block.norms == SANDWICH:
        found = builder.norm("post_feedforward_norm", found, block.norm)
    return builder.elementwise("feedforward_residual", "Add", hidden, found)


def _mixer(builder: Builder, normed: str, block: Block, step: ModelStep) -> str:
    if isinstance(block.mixer, Attention):
        with builder.scope("attention"):
            return attention(builder, normed, block.mixer, step)
    if isinstance(block.mixer, LatentAttention):
        with builder.scope("attention"):
            return latent_attention(builder, normed, block.mixer, step)
    with builder.scope("mixer"):
        return state_space(builder, normed, block.mixer, step.groups, is_written_out=step.is_written_out)


def _second(builder: Builder, normed: str, block: Block, step: ModelStep) -> str:
    part = block.feed_forward
    assert part is not None
    with builder.scope("feedforward"):
        if isinstance(part, Mixture):
            return mixture_of_experts(builder, normed, part, step.experts, is_written_out=step.is_written_out)
        return feed_forward(builder, normed, part)


def _logits(builder: Builder, hidden: str, model: Architecture, step: ModelStep) -> None:
    rows, width = builder.shape(hidden)
    if step.logits != ALL:
        rows = sum(group.count for group in step.groups)
        hidden = _last_rows(builder, hidden, step)
    weight = ""
    if model.is_tied:
        # The weight has the same numbers as the embedding, read as columns.
        weight = builder.tied("embed_tokens.weight", "lm_head.weight", (width, model.vocabulary))
    logits = builder.product("lm_head", hidden, (rows, width, model.vocabulary), weight=weight)
    if model.has_output_softcap:
        logits = builder.elementwise("logits_cap", "Tanh", logits)
    builder.outputs.append(logits)


def _last_rows(builder: Builder, hidden: str, step: ModelStep) -> str:
    """Name of the tensor with the hidden states of the last token of each request."""
    width = builder.shape(hidden)[1]
    last = builder.tensor("last_tokens", (sum(group.count for group in step.groups), width))
    maps, first, row = [], 0, 0
    for group in step.groups:
        loops = (("B", group.count), ("K", width))
        read = at(hidden, AxisIndex((("B", group.tokens),), first + group.tokens - 1), "K")
        maps.append(IndexMap(loops, at(last, affine(("B", 1), offset=row), "K"), read))
        first, row = first + group.rows, row + group.count
    return builder.move("last_tokens", "Slice", *maps)
