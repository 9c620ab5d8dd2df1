"""Odd descriptions of language models give a right number or an error message, never a traceback."""

from typing import Any

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.workload.source import parse_workload

from tests.unit.workload.language_models.models import TINY_LLAMA, fields_of

DECODE: dict[str, Any] = {"phase": "decode", "context": 7}
MIXTURE = TINY_LLAMA | {"model_type": "mixtral", "num_local_experts": 1, "num_experts_per_tok": 1}
LATENT = {
    **{"model_type": "deepseek_v2", "hidden_size": 16, "intermediate_size": 8, "moe_intermediate_size": 4},
    **{"num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 4},
    **{"qk_rope_head_dim": 2, "v_head_dim": 4, "n_routed_experts": 2, "num_experts_per_tok": 1},
}


def paths_of(model: Any, **step: Any) -> list[str]:
    """The paths of the problems of a model and a step."""
    with pytest.raises(InputError) as found:
        parse_workload({"language_model": model, **(step or DECODE)})
    return [one.path for one in found.value.problems]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"head_dim": 3}, "head_dim"),
        ({"num_attention_heads": 32, "num_key_value_heads": 32}, "num_attention_heads"),
        ({"hidden_size": 4096.0}, "hidden_size"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"hidden_size": 10**30}, "hidden_size"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"vocab_size": [3]}, "vocab_size"),
        ({"vocab_size": float("nan")}, "vocab_size"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"hidden_act": {"a": 1}}, "hidden_act"),
        ({7: 1}, "7"),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 0}, "sliding_window"),
        ({"model_type": "qwen2", "max_window_layers": "x"}, "max_window_layers"),
        ({"model_type": "qwen2", "layer_types": [["x"]] * 3}, "layer_types[0]"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window"),
        ({"model_type": "gemma2", "head_dim": 8, "attn_logit_softcapping": "x"}, "attn_logit_softcapping"),
        ({"model_type": "falcon", "hidden_size": 12}, "num_attention_heads"),
    ],
    ids=str,
)
def test_fields_of_wrong_kinds_are_named(changed: dict[Any, Any], path: str) -> None:
    """A field of a wrong kind or value is named."""
    fields = TINY_LLAMA | changed
    if changed.get("model_type") == "falcon":
        fields = {key: one for key, one in fields.items() if key not in ("intermediate_size", "num_key_value_heads")}
    found = paths_of(fields)
    assert [one for one in found if one.endswith(path)], found


@pytest.mark.parametrize(
    "changed", [{"qk_rope_head_dim": 3}, {"qk_head_dim": 5}, {"first_k_dense_replace": 3}], ids=str
)
def test_latent_attention_of_wrong_widths_is_refused(changed: dict[str, Any]) -> None:
    """A wrong width of latent attention is refused, and the problem names its field."""
    assert paths_of(LATENT | changed)[0].endswith(next(iter(changed)))


@pytest.mark.parametrize("model", [5, [], "", None, True, {}], ids=repr)
def test_what_is_no_model_is_refused(model: Any) -> None:
    """Values that are no model are refused."""
    assert paths_of(model)


@pytest.mark.parametrize(
    "step",
    [
        {"phase": "decode", "context": 2**31 + 1},
        {"phase": "decode", "context": True},
        {"phase": "decode", "context": 1.5},
        {"phase": "prefill", "tokens": 0},
        {"phase": "prefill", "tokens": "8"},
        {"phase": "prefill", "tokens": 2**31, "batch": 10**6},
        {"requests": []},
        {"requests": [{"tokens": 1}]},
        {"requests": [{"tokens": 1, "context": 0, "count": 0}]},
        {"requests": {"tokens": 1, "context": 0}},
        {"phase": "decode", "context": 3, "key_block": 0},
        {"phase": "decode", "context": 3, "fields": [1]},
        {"phase": "decode", "context": 3, "precision": {"weights": 0}},
        {"phase": "decode", "context": 3, "precision": 8},
        {"phase": "decode", "context": 3, "experts": []},
    ],
    ids=repr,
)
def test_steps_that_are_none_are_refused(step: dict[str, Any]) -> None:
    """Values that are no step are refused."""
    assert paths_of(TINY_LLAMA, **step) is not None


def test_steps_of_too_many_layers_are_refused_before_they_are_made() -> None:
    """Too many layers are refused before they are made, for written-out blocks of one key and for 5000 requests."""
    long = {"phase": "decode", "context": 2**30, "key_block": 1, "written_out": True}
    assert paths_of(TINY_LLAMA, **long) == ["written_out"]
    assert paths_of(TINY_LLAMA, requests=[{"tokens": 1, "context": place} for place in range(5000)]) == ["requests"]


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        (TINY_LLAMA | {"num_attention_heads": 1, "num_key_value_heads": 1}, {"phase": "decode", "context": 0}),
        (TINY_LLAMA | {"head_dim": 6}, {"phase": "prefill", "tokens": 3}),
        (MIXTURE, {"phase": "prefill", "tokens": 3}),
        (MIXTURE, {"phase": "decode", "context": 0, "experts": [1]}),
        (TINY_LLAMA | {"model_type": "mistral", "sliding_window": 1}, {"phase": "prefill", "tokens": 5, "context": 3}),
        (TINY_LLAMA | {"model_type": "mistral", "sliding_window": 3}, {"phase": "prefill", "tokens": 8}),
        (TINY_LLAMA | {"vocab_size": 1, "tie_word_embeddings": True}, {"phase": "decode", "context": 2}),
        (
            TINY_LLAMA,
            {"requests": [{"tokens": 1, "context": 0}, {"tokens": 5, "context": 9}, {"tokens": 1, "context": 0}]},
        ),
        (LATENT | {"first_k_dense_replace": None}, {"phase": "decode", "context": 0}),
        ({"model_type": "mamba", "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 4, "conv_kernel": 1}, DECODE),
    ],
    ids=range(10),
)
def test_odd_but_sound_steps_have_the_work_that_they_need(fields: dict[str, Any], step: dict[str, Any]) -> None:
    """Odd but valid steps have equal work folded and written out, and `map` costs it.

    Examples are models with a single head, a head width that does not divide the hidden size, a window of one token,
    or an empty cache.
    """
    work = []
    for written in (False, True):
        workload = parse_workload({"language_model": fields, "written_out": written, **step})
        work.append(sum(node.layer.mac_count * node.repeats for node in workload.nodes if node.layer))
    assert work[0] == work[1] > 0
    found = tilewright.map(
        workload={"language_model": fields, **step},
        hardware="config/hardware/zigzag/tpu_like_vector.yaml",
        mapping="config/mapping/zigzag/tpu_like_vector.yaml",
        preset="zigzag",
        model="corrected",
        lpf_limit=1,
    )
    summary = found.summary
    assert summary["mac_count"] + summary["operation_count"] == work[0]


@pytest.mark.parametrize("experts", [1, 1.5, True, None, {}, "all", ["x"], [None], [2**40], [-1]], ids=repr)
@pytest.mark.parametrize("written", [False, True])
def test_loads_of_experts_that_are_none_are_refused(experts: Any, written: bool) -> None:
    """Wrong loads of experts are refused, also where the size of the written-out step depends on them."""
    assert paths_of(MIXTURE, phase="prefill", tokens=3, experts=experts, written_out=written)


def test_tokens_beyond_learned_positions_are_refused() -> None:
    """More tokens than GPT-2's table of positions has are refused.

    For other models, a note names the number of tokens that the model was made for.
    """
    gpt2 = {"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16, "vocab_size": 9}
    core = ("config/hardware/zigzag/tpu_like_vector.yaml", "config/mapping/zigzag/tpu_like_vector.yaml")
    with pytest.raises(InputError, match="was made for 16 tokens"):
        tilewright.tokens({"language_model": gpt2, "phase": "decode", "context": 1}, *core, [8, 17])
    llama = TINY_LLAMA | {"max_position_embeddings": 16}
    found = tilewright.tokens(
        {"language_model": llama, "phase": "decode", "context": 1}, *core, [17], lpf_limit=1, prompts=False
    )
    assert "was made for 16 tokens" in found.notes[0]


def test_a_million_steps_of_a_recurrence_are_summed_without_being_listed() -> None:
    """The energy of a million equal steps of a recurrence is that of one step times their number."""
    mamba = {"model_type": "mamba", "hidden_size": 8, "num_hidden_layers": 4, "vocab_size": 4, "state_size": 2}
    core = {
        "hardware": "config/hardware/zigzag/tpu_like_vector.yaml",
        "mapping": "config/mapping/zigzag/tpu_like_vector.yaml",
    }
    step = {"language_model": mamba, "phase": "prefill", "tokens": 2**20}
    found = tilewright.map(workload=step, **core, preset="zigzag", model="corrected", lpf_limit=1)
    energy_of = {name: record.energy_pj for record in found.records for name in record.names}
    repeats = {node.name: node.repeats for node in parse_workload(step).nodes if node.layer}
    assert max(repeats.values()) == 4 * 2**20
    total = sum(energy_of[name] * count for name, count in repeats.items())
    assert found.summary["energy_pj"] == pytest.approx(total, rel=1e-12)
    assert found.summary["layers"] == sum(repeats.values())


def test_a_published_model_with_absurd_sizes_is_refused_or_counted() -> None:
    """A layer with more than 2^60 operations is refused by name."""
    fields = fields_of("llama-3.1-8b") | {"vocab_size": 2**40, "hidden_size": 2**40, "head_dim": 128}
    with pytest.raises(InputError, match="more than 2\\^60 operations"):
        parse_workload({"language_model": fields, "phase": "prefill", "tokens": 8})


STATES = {"model_type": "mamba", "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 4, "state_size": 2}


@pytest.mark.parametrize(
    ("model", "key", "value", "part"),
    [
        (TINY_LLAMA, "latent_attention", "absorbed", "latent attention"),
        (TINY_LLAMA, "experts", "balanced", "experts"),
        (STATES, "key_block", 4, "attention"),
        (LATENT, "latent_attention", "absorbed", ""),
        (LATENT, "experts", "balanced", ""),
        (TINY_LLAMA, "key_block", 4, ""),
    ],
)
def test_keys_for_parts_that_a_model_lacks_are_told(model: Any, key: str, value: Any, part: str) -> None:
    """A key for a part that the model lacks gives one notice with the part; other keys give none."""
    notices: list[str] = []
    parse_workload({"language_model": model, **DECODE, key: value}, notices=notices)
    told = [notice for notice in notices if key in notice]
    assert [f"has no {part}" in notice for notice in told] == ([True] if part else [])
