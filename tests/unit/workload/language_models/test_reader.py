"""Workload files of language models: their contents and all errors in them."""

import json
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.artifacts.digests import input_digest
from tilewright.base.errors import InputError, Problem
from tilewright.workload.source import parse_workload

from tests.unit.workload.language_models.models import TINY_LLAMA

DECODE: dict[str, Any] = {"language_model": TINY_LLAMA, "phase": "decode", "context": 7}


def problems_of(data: dict[str, Any]) -> list[Problem]:
    """The problems of a workload."""
    with pytest.raises(InputError) as found:
        parse_workload(data)
    return list(found.value.problems)


def test_blocks_that_repeat_are_there_once() -> None:
    """Three equal layers of the model are one block that stands for three."""
    workload = parse_workload(DECODE)
    assert {node.repeats for node in workload.nodes if node.name.startswith("layers/")} == {3}
    assert {node.repeats for node in workload.nodes if not node.name.startswith("layers")} == {1}


def test_written_out_every_block_is_there() -> None:
    """The written-out step has every block with the same work, and the second block reads the result of the first."""
    folded, written = parse_workload(DECODE), parse_workload(DECODE | {"written_out": True})
    assert not written.is_folded
    work = [sum(node.layer.mac_count * node.repeats for node in one.nodes if node.layer) for one in (folded, written)]
    assert work[0] == work[1]
    second = next(node for node in written.nodes if node.name == "layers.1/input_norm.variance")
    assert second.inputs == ("layers.0/feedforward_residual.out",)


def test_a_configuration_may_be_a_file_beside_the_workload(tmp_path: Path) -> None:
    """A configuration may be a file; fields of the workload file overrule it, and both files count in the digest."""
    (tmp_path / "tiny.json").write_text(json.dumps(TINY_LLAMA))
    file = tmp_path / "step.yaml"
    file.write_text("language_model: tiny.json\nfields: {num_hidden_layers: 5}\nphase: prefill\ntokens: 4\n")
    workload = parse_workload(file)
    assert workload.name == "step"
    assert max(node.repeats for node in workload.nodes) == 5
    before = input_digest(file)
    (tmp_path / "tiny.json").write_text(json.dumps(TINY_LLAMA | {"vocab_size": 65}))
    assert input_digest(file) != before


def test_a_file_that_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    """A missing file is reported with the nearest name in its folder."""
    (tmp_path / "tiny.json").write_text(json.dumps(TINY_LLAMA))
    file = tmp_path / "step.yaml"
    file.write_text("language_model: tyny.json\nphase: decode\ncontext: 1\n")
    with pytest.raises(InputError, match=r"did you mean 'tiny.json'"):
        parse_workload(file)


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    """One error reports all problems of both files, each on its line."""
    (tmp_path / "tiny.json").write_text(json.dumps(TINY_LLAMA | {"hidden_act": "sillu", "head_dims": 3}, indent=1))
    file = tmp_path / "step.yaml"
    file.write_text("language_model: tiny.json\nphase: decod\ncontext: -1\nlogits: first\n")
    with pytest.raises(InputError) as found:
        parse_workload(file)
    told = {(Path(one.file).name, one.line, one.path, one.nearest) for one in found.value.problems}
    assert told == {
        ("step.yaml", 2, "phase", "decode"),
        ("step.yaml", 3, "context", ""),
        ("step.yaml", 4, "logits", ""),
        ("tiny.json", 9, "hidden_act", "silu"),
        ("tiny.json", 10, "head_dims", "head_dim"),
    }


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"phase": None}, "phase"),
        ({"context": None}, "context"),
        ({"requests": [{"tokens": 1, "context": 3}]}, "phase"),
        ({"experts": [1, 1]}, "experts"),
        ({"language_model": {**TINY_LLAMA, "model_type": "lama"}}, "language_model.model_type"),
        ({"language_model": {**TINY_LLAMA, "num_key_value_heads": 3}}, "language_model.num_key_value_heads"),
        ({"language_model": {**TINY_LLAMA, "num_attention_heads": 5}}, "language_model.num_attention_heads"),
        ({"language_model": {**TINY_LLAMA, "vocab_size": True}}, "language_model.vocab_size"),
        ({"language_model": {"model_type": "llama"}}, "language_model.hidden_size"),
    ],
)
def test_what_is_wrong_is_told_by_its_name(changed: dict[str, Any], path: str) -> None:
    """Missing, unknown and contradicting keys are reported by name."""
    data = {key: value for key, value in (DECODE | changed).items() if value is not None}
    assert path in [one.path for one in problems_of(data)]


def test_what_is_not_modelled_is_refused() -> None:
    """An unknown layout of blocks is refused."""
    falcon = {
        "model_type": "falcon",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 64,
        "new_decoder_architecture": True,
    }
    (one,) = problems_of({"language_model": falcon, "phase": "prefill", "tokens": 2})
    assert (one.path, one.allowed) == ("language_model.new_decoder_architecture", "false")


def test_tokens_of_experts_must_add_up() -> None:
    """The given tokens of experts must add up to the tokens of the step times the experts of each token."""
    model = {key: value for key, value in TINY_LLAMA.items() if key != "model_type"}
    model |= {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    step = {"language_model": model, "phase": "prefill", "tokens": 4}
    (one,) = problems_of(step | {"experts": [4, 4, 1, 0]})
    assert (one.path, one.value, one.allowed) == ("experts", "9", "4 tokens x 2 experts = 8")
    workload = parse_workload(step | {"experts": [4, 2, 2, 0]})
    gates = [node for node in workload.nodes if node.name.endswith("gate_proj")]
    assert [(dict(node.layer.loop_sizes)["D"], node.repeats) for node in gates if node.layer] == [(4, 3), (2, 6)]


def test_positions_that_a_model_did_not_learn_are_refused() -> None:
    """Positions beyond GPT-2's table are refused."""
    gpt2 = {"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16, "vocab_size": 9}
    (one,) = problems_of({"language_model": gpt2, "phase": "decode", "context": 16})
    assert one.path == "context"


def test_steps_that_are_too_large_to_be_written_out_are_refused() -> None:
    """Writing out a step that is too large is refused before it begins."""
    mamba = {"model_type": "mamba", "hidden_size": 16, "num_hidden_layers": 8, "vocab_size": 16}
    step = {"language_model": mamba, "phase": "prefill", "tokens": 4096, "written_out": True}
    assert [one.path for one in problems_of(step)] == ["written_out"]


def test_several_requests_in_one_step_share_the_matrix_products() -> None:
    """Several requests share matrix products: 4 + 2 rows, with separate attention for each kind of request."""
    requests = [{"tokens": 4, "context": 8}, {"count": 2, "tokens": 1, "context": 5}]
    workload = parse_workload({"language_model": TINY_LLAMA, "requests": requests})
    layers = {node.name: node.layer for node in workload.nodes if node.layer}
    assert layers["layers/attention/q_proj"].size_of["D"] == 6
    assert layers["layers/attention/requests1/scores"].size_of == {"C": 8, "D": 1, "K": 6, "B": 2, "G": 2, "H": 2}
    assert layers["lm_head"].size_of["D"] == 3
