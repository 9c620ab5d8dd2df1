"""Quantised weights whose groups have scales: size and traffic, by separate formulas."""

from typing import Any

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.request import BALANCED, ModelStep, Precision, Requests
from tilewright.workload.language_models.weights import parameter_count, weight_bits
from tilewright.workload.source import parse_workload

from tests.unit.workload.language_models.models import PUBLISHED, TINY_LLAMA, fields_of, model_of

GROUPS = {"weights": 4, "weight_group": 128, "weight_scale": 16, "weight_zero_point": 4}
PRECISION = Precision(weights=4, weight_group=128, weight_scale=16, weight_zero_point=4)
WITHOUT_LATENT = [name for name in PUBLISHED if not name.startswith("deepseek")]
HARDWARE, MAPPING = "config/hardware/zigzag/tpu_like_vector.yaml", "config/mapping/zigzag/tpu_like_vector.yaml"
WORD_BITS = 64
"""Bits of a word of the DRAM's port."""
OPTIONS = SearchOptions(model="corrected", lpf_limit=2)


def up(size: int, part: int) -> int:
    """Number of parts of a size; the last one may be shorter."""
    return (size + part - 1) // part


def llama_scales(fields: dict[str, Any], group: int) -> int:
    """Number of scales of a Llama model, written out matrix by matrix."""
    hidden, inner, layers = fields["hidden_size"], fields["intermediate_size"], fields["num_hidden_layers"]
    width = fields.get("head_dim") or hidden // fields["num_attention_heads"]
    queries, keys = width * fields["num_attention_heads"], width * fields["num_key_value_heads"]
    block = up(hidden, group) * (queries + keys + keys + inner + inner) + up(queries, group) * hidden
    return layers * (block + up(inner, group) * hidden) + up(hidden, group) * fields["vocab_size"]


def step_of(precision: dict[str, int], **more: Any) -> Workload:
    """A step of one more token of a tiny model."""
    step = {"language_model": TINY_LLAMA, "phase": "decode", "context": 7, "precision": precision}
    return parse_workload(step | more)


def node_of(workload: Workload, name: str) -> WorkloadNode:
    """The node with this name."""
    return next(node for node in workload.nodes if node.name == name)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "llama-3.2-1b", "llama-3.1-405b"])
def test_bits_of_weights_and_scales(name: str) -> None:
    """Weights of products take 4.15625 bits each, to the bit; the embedding of an untied model has no scales."""
    fields, model = fields_of(name), model_of(fields_of(name))
    assert weight_bits(model, PRECISION) == 4 * PUBLISHED[name] + 20 * llama_scales(fields, 128)
    assert weight_bits(model, Precision(weights=4)) == 4 * PUBLISHED[name]


@pytest.mark.parametrize("name", WITHOUT_LATENT)
def test_scales_that_are_read_are_those_that_are_counted(name: str) -> None:
    """The scales in the workload's tensors are as many bits as counted, in every family."""
    model = model_of(fields_of(name))
    workload = language_model_workload(model, ModelStep((Requests(1, 512, 0),), PRECISION, experts=BALANCED))
    found = sum(
        workload.tensor_of[one].size_bits * node.repeats
        for node in workload.nodes
        for one in node.inputs
        if one.endswith(".scales")
    )
    assert found == weight_bits(model, PRECISION) - 4 * parameter_count(model) > 0


@pytest.mark.parametrize(("group", "groups"), [(32, 1), (16, 2), (24, 2), (5, 7), (1000, 1)])
def test_groups_that_do_not_divide_the_inputs_have_a_shorter_one_behind(group: int, groups: int) -> None:
    """32 inputs in groups of 24 have two scales an output; a group of all inputs has one scale a channel."""
    workload = step_of({"weights": 4, "weight_group": group})
    scale = node_of(workload, "layers/attention/q_proj.scale")
    assert workload.tensor_of["layers/attention/q_proj.scales"].shape == (groups, 32)
    assert workload.tensor_of["layers/attention/q_proj.scales"].bits == 16
    assert scale.layer is not None
    assert scale.layer.size_of == {"C": groups, "D": 1, "K": 32}


def test_products_leave_sums_and_scales_make_results() -> None:
    """Products leave sums, and scales make results: scaled values have the bits of the cache, unscaled ones those of
    sums.
    """
    workload = step_of(GROUPS | {"activations": 8, "kv_cache": 6, "partial_sums": 24})
    product, scale = (node_of(workload, f"layers/attention/v_proj{part}") for part in ("", ".scale"))
    assert product.layer is not None
    assert scale.layer is not None
    assert product.layer.bits_of == {"I": 8, "W": 4, "O_final": 24, "O": 24}
    assert scale.layer.bits_of["W"] == 20
    assert scale.layer.bits_of["O_final"] == 6
    assert scale.inputs == ("layers/attention/v_proj.out", "layers/attention/v_proj.scales")


def test_a_bias_is_added_to_what_is_scaled() -> None:
    """A bias is added to the scaled result, and the product does not read it."""
    qwen = TINY_LLAMA | {"model_type": "qwen2"}
    workload = step_of(GROUPS, language_model=qwen)
    assert "layers/attention/q_proj.bias" in node_of(workload, "layers/attention/q_proj.scale").inputs
    assert "layers/attention/q_proj.bias" not in node_of(workload, "layers/attention/q_proj").inputs


def test_every_weight_and_scale_is_read_once_for_one_token() -> None:
    """Every weight and scale is read once from the top memory for one token."""
    workload = step_of({"weights": 4, "weight_group": 16, "weight_scale": 16, "weight_zero_point": 4})
    found = tilewright.map(workload=workload, hardware=HARDWARE, mapping=MAPPING, options=OPTIONS)
    named = {name: record for record in found.records for name in record.names}
    for name, operand_bits in (("up_proj", 32 * 64 * 4), ("up_proj.scale", 2 * 64 * 20)):
        record = named[f"layers/feedforward/{name}"]
        assert record.memory_levels["W"][-1] == "dram"
        assert record.word_accesses["W"][-1]["tl"] * WORD_BITS == operand_bits


def test_tokens_cost_what_map_says_and_count_scales() -> None:
    """`tokens` and `map` give equal energy and latency, and the memory for weights includes the scales."""
    step = {"language_model": TINY_LLAMA, "phase": "decode", "context": 7, "precision": GROUPS | {"weight_group": 16}}
    found = tilewright.tokens(step, HARDWARE, MAPPING, [8], options=OPTIONS, prompts=False)
    mapped = tilewright.map(workload=step, hardware=HARDWARE, mapping=MAPPING, options=OPTIONS)
    assert found.rows[0]["time_per_token_cycles"] == mapped.summary["latency_cycles"]
    model = model_of(TINY_LLAMA)
    scales = llama_scales(TINY_LLAMA, 16)
    assert found.weight_bits == 4 * parameter_count(model) + 20 * scales


@pytest.mark.parametrize(
    ("precision", "more", "path"),
    [
        ({"weight_scale": 16}, {}, "precision.weight_scale"),
        ({"weight_zero_point": 4}, {}, "precision.weight_zero_point"),
        ({"weight_group": 0}, {}, "precision.weight_group"),
        ({"weight_group": -128}, {}, "precision.weight_group"),
        ({"weight_group": True}, {}, "precision.weight_group"),
        ({"weight_group": "128"}, {}, "precision.weight_group"),
        ({"weight_group": 12.5}, {}, "precision.weight_group"),
        ({"weight_group": 128, "weight_scale": 0}, {}, "precision.weight_scale"),
        ({"weight_group": 128, "weight_scales": 16}, {}, "precision.weight_scales"),
        ({"weight_group": 128}, {"language_model": fields_of("deepseek-v2-lite")}, "precision.weight_group"),
    ],
)
def test_what_is_wrong_is_named(precision: dict[str, Any], more: dict[str, Any], path: str) -> None:
    """Each wrong key is named."""
    with pytest.raises(InputError) as found:
        step_of(precision, **more)
    assert path in [one.path for one in found.value.problems]
