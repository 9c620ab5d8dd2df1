"""Bytes of published models: operands of the layers of a step, compared with plain formulas from the fields."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.request import ABSORBED, EXPANDED, ModelStep, Precision, Requests
from tilewright.workload.source import parse_workload

from tests.unit.workload.language_models.models import PUBLISHED, fields_of, model_of
from tests.unit.workload.language_models.plain_counts import GATED, multiply_accumulates, pairs, seen_keys, windows

PRECISION = Precision(weights=4, activations=16, cache=8)
CONTEXT = 777
EXPERTS = {"mixtral-8x7b-v0.1": "num_local_experts", "qwen3-30b-a3b": "num_experts", "deepseek-v3": "n_routed_experts"}


def step_workload(name: str, requests: Requests) -> Workload:
    """One step of a published model."""
    latent = ABSORBED if requests.tokens == 1 else EXPANDED
    return language_model_workload(model_of(fields_of(name)), ModelStep((requests,), PRECISION, latent=latent))


def operand_bits(node: WorkloadNode, operand: str) -> int:
    """Bits of an operand, computed from its loops, in all layers that a node stands for."""
    assert node.layer is not None
    dimensions = dict(node.layer.operand_dimensions)[operand]
    sizes = node.layer.size_of | dict(node.layer.data_dimension_sizes)
    return math.prod(sizes[one] for one in dimensions) * node.layer.bits_of[operand] * node.repeats


def weight_bits_read(workload: Workload) -> int:
    """Bits of weights that matrix products and convolutions read."""
    return sum(
        operand_bits(node, operand)
        for node in workload.nodes
        if node.layer is not None and node.unit == MAC_ARRAY
        for operand in node.layer.constant_operands
    )


def cache_bits_read(workload: Workload) -> int:
    """Bits of the cache that scores and weighted values read."""
    return sum(
        operand_bits(node, "W")
        for node in workload.nodes
        if node.layer is not None and node.name.rpartition("/")[2].partition(".")[0] in ("scores", "values")
        if node.unit == MAC_ARRAY
    )


def attention_products(fields: dict[str, Any], tokens: int) -> int:
    """Products of two computed numbers, for one request: scores, weighted values, the state of Mamba."""
    if fields["model_type"] == "mamba":
        inner = fields["expand"] * fields["hidden_size"]
        return int(fields["num_hidden_layers"] * tokens * inner * fields["state_size"])
    heads = fields.get("num_attention_heads") or fields["n_head"]
    total = 0
    for window in windows(fields):
        seen = pairs([(tokens, CONTEXT)], window)
        if fields["model_type"].startswith("deepseek"):
            both = 2 * fields["kv_lora_rank"] + fields["qk_rope_head_dim"]
        else:
            both = 2 * (fields.get("head_dim") or (fields.get("hidden_size") or fields["n_embd"]) // heads)
        total += heads * both * seen
    return total


@pytest.mark.parametrize("name", PUBLISHED)
def test_one_token_reads_every_weight_that_it_meets_once(name: str) -> None:
    """One token reads 4 bits for each of its products with weights, because each weight is used in one product."""
    fields = fields_of(name)
    weights = multiply_accumulates(fields, [(1, CONTEXT)]) - attention_products(fields, 1)
    assert weight_bits_read(step_workload(name, Requests(1, 1, CONTEXT))) == 4 * weights


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in (*EXPERTS, "deepseek-v2-lite")])
def test_a_batch_and_a_chunk_read_no_weight_twice(name: str) -> None:
    """A batch and a chunk read as many weights as one token, in models without experts."""
    one = weight_bits_read(step_workload(name, Requests(1, 1, 100)))
    for requests in (Requests(7, 1, 100), Requests(1, 64, 100)):
        assert weight_bits_read(step_workload(name, requests)) == one


@pytest.mark.parametrize("name", EXPERTS)
def test_a_batch_reads_the_experts_that_meet_a_token_on_average(name: str) -> None:
    """A batch reads E (1 - (1 - k / E)^T) experts, rounded, and all other weights once."""
    fields, tokens = fields_of(name), 40
    experts, chosen = fields[EXPERTS[name]], fields["num_experts_per_tok"]
    layers = fields["num_hidden_layers"] - fields.get("first_k_dense_replace", 0)
    width = fields.get("moe_intermediate_size") or fields["intermediate_size"]
    used = round(experts * (1 - (1 - chosen / experts) ** tokens))
    more = layers * (used - chosen) * GATED * fields["hidden_size"] * width
    one = weight_bits_read(step_workload(name, Requests(1, 1, CONTEXT)))
    assert weight_bits_read(step_workload(name, Requests(tokens, 1, CONTEXT))) == one + 4 * more


@pytest.mark.parametrize("name", [name for name in PUBLISHED if not name.startswith("mamba")])
def test_one_token_of_each_request_reads_what_it_sees_of_the_cache(name: str) -> None:
    """One token of each request reads each visible key and value once, even if several heads share them.

    Models with latent attention read latent vectors in place of keys and values.
    """
    fields, requests = fields_of(name), 3
    numbers = 0
    for window in windows(fields):
        seen = seen_keys(CONTEXT, window)
        if fields["model_type"].startswith("deepseek"):
            numbers += seen * (2 * fields["kv_lora_rank"] + fields["qk_rope_head_dim"])
            continue
        heads = fields.get("num_attention_heads") or fields["n_head"]
        key_heads = 1 if fields.get("multi_query") else fields.get("num_key_value_heads", heads)
        width = fields.get("head_dim") or (fields.get("hidden_size") or fields["n_embd"]) // heads
        numbers += seen * 2 * key_heads * width
    assert cache_bits_read(step_workload(name, Requests(requests, 1, CONTEXT))) == 8 * requests * numbers


SMALL: dict[str, Any] = {
    "model_type": "mistral",
    "hidden_size": 8,
    "intermediate_size": 4,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 8,
    "head_dim": 6,
}


def operations(node: WorkloadNode) -> int:
    """Operations of all layers that a node stands for."""
    assert node.layer is not None
    return node.layer.mac_count * node.repeats


@given(st.integers(2, 70), st.integers(0, 40), st.integers(2, 40), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_chunk_behind_a_window_has_the_work_and_data_of_its_blocks(
    tokens: int, more: int, window: int, written: bool
) -> None:
    """A chunk behind a window has the work and data of blocks of as many queries as the window has keys.

    The products are those of all pairs. A block reads each key and value that it sees once, and at most one further
    key and value. Only the last block has merges, if it is shorter.
    """
    context, heads, key_heads, width = window + more, 4, 2, 6
    step = ModelStep((Requests(1, tokens, context),), PRECISION, is_written_out=written)
    workload = language_model_workload(model_of(SMALL | {"sliding_window": window}), step)
    layers = [node for node in workload.nodes if node.layer is not None and "attention/" in node.name]
    of_pairs = sum(
        operations(node)
        for node in layers
        if node.unit == MAC_ARRAY and node.name.rpartition("/")[2].partition(".")[0] in ("scores", "values")
    )
    assert of_pairs == 2 * heads * width * pairs([(tokens, context)], window)
    size = window + window % 2
    blocks, rest = divmod(tokens, size)
    seen = blocks * (window + size - 1) + (window + rest - 1 if rest else 0)
    numbers = cache_bits_read(workload) // (8 * 2 * key_heads * width)
    assert seen <= numbers <= seen + blocks + (rest > 1)
    merges = sum(operations(node) for node in layers if ".with_" in node.name)
    assert merges == (heads * (2 + width) * rest if 1 < rest < window else 0)


def test_windows_that_are_too_many_to_write_out_are_refused() -> None:
    """A step that would write out too many windows, or keys in too many blocks, is refused."""
    step = {"language_model": SMALL | {"sliding_window": 2}, "phase": "prefill", "tokens": 100_000}
    assert sum(node.repeats for node in parse_workload(step).nodes if node.layer) > 100_000
    with pytest.raises(InputError, match="with `written_out`, the step has too many layers"):
        parse_workload({**step, "written_out": True})
