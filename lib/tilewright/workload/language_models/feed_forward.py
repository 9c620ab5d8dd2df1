"""The feed-forward part of a block: matrix products with an activation function, or a mixture of experts of them."""

import math
from collections import Counter

from tilewright.workload.access import affine
from tilewright.workload.language_models.architecture import FeedForward, Mixture
from tilewright.workload.language_models.builder import Builder, at
from tilewright.workload.language_models.request import EXPECTED


def feed_forward(builder: Builder, source: str, part: FeedForward) -> str:
    """down(activation(gate(x)) * up(x)), or down(activation(up(x))) without a gate: [rows, hidden]."""
    hidden = builder.shape(source)[1]
    up = builder.linear("up_proj", source, part.width, has_bias=part.has_bias)
    if part.is_gated:
        gate = builder.linear("gate_proj", source, part.width, has_bias=part.has_bias)
        inner = builder.elementwise("gated", "Mul", builder.elementwise("activation", part.activation, gate), up)
    else:
        inner = builder.elementwise("activation", part.activation, up)
    return builder.linear("down_proj", inner, hidden, has_bias=part.has_bias)


def expert_loads(mixture: Mixture, tokens: int, load: str | tuple[int, ...]) -> dict[int, int]:
    """Tokens of an expert -> how many experts get so many, the most first; experts without any are left out.

    BALANCED uses as many experts as there can be. EXPECTED uses as many as on average meet some token, where each
    token goes to experts at random: experts * (1 - (1 - chosen / experts) ** tokens), rounded. Both spread tokens
    evenly over them. Otherwise `load` has the tokens of each expert.
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
    """The weighted sum of the experts of each token, and what all tokens go through: [rows, hidden]."""
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
    total = builder.table("zeros", rows, hidden)  # what weighted outputs are added to, as they come
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
    """The shares of the chosen experts, normalised: [rows, chosen]."""
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
    """An expert on `rows` of the tokens, weighted and added to what there is: [all rows, hidden]."""
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
