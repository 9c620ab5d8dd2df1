"""Work and data of a step of a language model, counted token by token from the fields.

The counts use nothing of the package. They are the formulas of attention, latent attention, experts and state spaces
from papers.
"""

from typing import Any

Fields = dict[str, Any]
GATED = 3
PLAIN = 2


def seen_keys(position: int, window: int | None) -> int:
    """Number of keys that the token at a position sees, itself included."""
    return position + 1 if window is None else min(position + 1, window)


def windows(fields: Fields) -> list[int | None]:
    """The window of each layer."""
    layers = fields.get("num_hidden_layers") or fields["n_layer"]
    if fields["model_type"] == "gemma2":
        return [fields["sliding_window"] if layer % 2 == 0 else None for layer in range(layers)]
    if fields["model_type"] in ("mistral", "mixtral"):
        return [fields.get("sliding_window")] * layers
    return [None] * layers


def multiply_accumulates(fields: Fields, requests: list[tuple[int, int]]) -> int:
    """Multiply-accumulates of a step; `requests` are (new tokens, cached tokens). Logits are for last tokens only."""
    rows = sum(tokens for tokens, _ in requests)
    kind = fields["model_type"]
    hidden = fields.get("hidden_size") or fields["n_embd"]
    total = len(requests) * hidden * fields["vocab_size"]
    for layer, window in enumerate(windows(fields)):
        if kind == "mamba":
            total += rows * mamba_token(fields)
            continue
        if kind.startswith("deepseek"):
            total += latent_attention(fields, requests)
        else:
            total += grouped_attention(fields, requests, window)
        total += rows * feed_forward_token(fields, layer)
    return total


def pairs(requests: list[tuple[int, int]], window: int | None) -> int:
    """Number of pairs of a new token and a key that it sees."""
    return sum(seen_keys(cached + new, window) for tokens, cached in requests for new in range(tokens))


def grouped_attention(fields: Fields, requests: list[tuple[int, int]], window: int | None) -> int:
    """Multiply-accumulates of four projections, scores and weighted values."""
    hidden = fields.get("hidden_size") or fields["n_embd"]
    heads = fields.get("num_attention_heads") or fields["n_head"]
    width = fields.get("head_dim") or hidden // heads
    key_heads = 1 if fields.get("multi_query") else fields.get("num_key_value_heads", heads)
    rows = sum(tokens for tokens, _ in requests)
    projections = hidden * width * (heads + 2 * key_heads) + heads * width * hidden
    return rows * projections + 2 * heads * width * pairs(requests, window)


def latent_attention(fields: Fields, requests: list[tuple[int, int]]) -> int:
    """Multiply-accumulates on latent vectors if each request has one new token, else on expanded keys and values."""
    hidden, heads, rank = fields["hidden_size"], fields["num_attention_heads"], fields["kv_lora_rank"]
    plain, turned, value = fields["qk_nope_head_dim"], fields["qk_rope_head_dim"], fields["v_head_dim"]
    rows = sum(tokens for tokens, _ in requests)
    low = fields["q_lora_rank"]
    queries = hidden * heads * (plain + turned) if low is None else low * (hidden + heads * (plain + turned))
    total = rows * (queries + hidden * (rank + turned) + heads * value * hidden)
    if all(tokens == 1 for tokens, _ in requests):
        total += rows * heads * rank * (plain + value)
        return total + heads * (rank + turned + rank) * pairs(requests, None)
    seen = sum(tokens + cached for tokens, cached in requests)
    return total + seen * rank * heads * (plain + value) + heads * (plain + turned + value) * pairs(requests, None)


def feed_forward_token(fields: Fields, layer: int) -> int:
    """Multiply-accumulates of a feed-forward layer for one token."""
    hidden = fields.get("hidden_size") or fields["n_embd"]
    kind = fields["model_type"]
    if kind == "mixtral":
        chosen = fields["num_experts_per_tok"]
        return hidden * fields["num_local_experts"] + chosen * GATED * hidden * fields["intermediate_size"]
    if kind == "qwen3_moe":
        chosen = fields["num_experts_per_tok"]
        return hidden * fields["num_experts"] + chosen * GATED * hidden * fields["moe_intermediate_size"]
    if kind.startswith("deepseek") and layer >= fields["first_k_dense_replace"]:
        experts = fields["num_experts_per_tok"] + fields["n_shared_experts"]
        return hidden * fields["n_routed_experts"] + experts * GATED * hidden * fields["moe_intermediate_size"]
    if kind in ("gpt2", "falcon"):
        return PLAIN * hidden * 4 * hidden
    if kind == "opt":
        return PLAIN * hidden * fields["ffn_dim"]
    return GATED * hidden * fields["intermediate_size"]


def mamba_token(fields: Fields) -> int:
    """Multiply-accumulates of the projections, the convolution, and the product of the state with C, for one token."""
    hidden, state, rank = fields["hidden_size"], fields["state_size"], fields["time_step_rank"]
    inner = fields["expand"] * hidden
    products = hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden
    return products + inner * fields["conv_kernel"] + inner * state


def kept_numbers(fields: Fields, requests: list[tuple[int, int]]) -> int:
    """Numbers that the cache holds after the step: keys and values, latent vectors, or states.

    With a window, the cache holds only the new tokens and the tokens that the first new token sees.
    """
    total = 0
    for window in windows(fields):
        for tokens, cached in requests:
            if fields["model_type"] == "mamba":
                inner = fields["expand"] * fields["hidden_size"]
                total += inner * (fields["state_size"] + fields["conv_kernel"] - 1)
                continue
            seen = tokens + (cached if window is None else min(cached, window - 1))
            if fields["model_type"].startswith("deepseek"):
                total += seen * (fields["kv_lora_rank"] + fields["qk_rope_head_dim"])
                continue
            heads = fields.get("num_attention_heads") or fields["n_head"]
            hidden = fields.get("hidden_size") or fields["n_embd"]
            key_heads = 1 if fields.get("multi_query") else fields.get("num_key_value_heads", heads)
            total += seen * 2 * key_heads * (fields.get("head_dim") or hidden // heads)
    return total
