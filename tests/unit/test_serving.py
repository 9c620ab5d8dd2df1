"""`tilewright serving`: profiles give LLMServingSim the times of `map` for the same step."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.peers.llmservingsim.points import MixtureSize, ProfileLimits
from tilewright.peers.llmservingsim.releases import BUNDLE, FLAT, PREDICTIONS, points_of
from tilewright.search.options import SearchOptions
from tilewright.tokens.serving import ServingProfile, operator_of, variant_of
from tilewright.workload.language_models.request import Precision

from tests.unit.llmservingsim_reader import Bundle, Flat, Predictions

HARDWARE, MAPPING = "config/hardware/zigzag/tpu_like_vector.yaml", "config/mapping/zigzag/tpu_like_vector.yaml"
OPTIONS = SearchOptions(model="corrected", lpf_limit=1)
PERIOD_NS = 1000 / 700
TINY: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 16,
}
MIXTURE = TINY | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
HEAD_NORMS = TINY | {"model_type": "qwen3", "head_dim": 2}
KEY_BLOCK = 64
Step = list[tuple[int, int]]


def core() -> dict[str, Any]:
    """Return the core with the clock of TPU v1 (Jouppi et al., ISCA 2017)."""
    described: dict[str, Any] = yaml.safe_load(Path(HARDWARE).read_text())
    return described | {"clock_frequency": "700 MHz"}


def step_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a workload of the model; its requests have no effect."""
    return {"language_model": fields, "phase": "decode", "context": 1}


@cache
def profile(form: str, kind: str, tokens: int, requests: int, context: int) -> ServingProfile:
    """Return a profile of a tiny model."""
    fields = {"llama": TINY, "mixtral": MIXTURE, "qwen3": HEAD_NORMS}[kind]
    return tilewright.serving(  # type: ignore[no-any-return]
        step_of(fields),
        core(),
        MAPPING,
        form,
        OPTIONS,
        max_tokens=tokens,
        max_requests=requests,
        max_context=context,
        key_block=KEY_BLOCK,
        served_model_name="tiny/llama",
        hardware_name="npu",
    )


def mapped_ns(fields: dict[str, Any], step: Step, **more: Any) -> float:
    """Return the time of `map` for one step."""
    requests = [{"count": 1, "tokens": tokens, "context": cached} for tokens, cached in step]
    merged = [one | {"count": requests.count(one)} for place, one in enumerate(requests) if one not in requests[:place]]
    workload = {"language_model": fields, "requests": merged, "key_block": KEY_BLOCK, **more}
    found = tilewright.map(workload=workload, hardware=core(), mapping=MAPPING, options=OPTIONS)
    return float(found.summary["latency_cycles"]) * PERIOD_NS


def rounding(layers: int) -> float:
    """Return the largest rounding error of a step in ns.

    Each of the 16 layers of a block, and each of three other layers, is wrong by at most 0.5 ns. The embedding, which
    takes no time here, is wrong by at most 1 ns.
    """
    return 0.5 * (16 * layers + 3) + 1


@pytest.mark.parametrize("step", [[(32, 0)], [(1, 63)] * 3, [(1, 127)], [(32, 0), (1, 63)]])
def test_release_1_0_reads_what_map_says(step: Step) -> None:
    """Release 1.0 reads the time of `map` for a prompt, for answers, and for both in one step."""
    found = Predictions(profile(PREDICTIONS, "llama", 33, 3, 128).files, "npu", "tiny/llama")
    assert found.step_ns(step, 3) == pytest.approx(mapped_ns(TINY, step), abs=rounding(3))


def test_release_1_0_finds_every_step_within_the_limits() -> None:
    """Release 1.0 finds each key for prompts of any length beside answers of any context."""
    found = Predictions(profile(PREDICTIONS, "llama", 33, 3, 128).files, "npu", "tiny/llama")
    for tokens in range(1, 33):
        for cached in range(1, 128, 7):
            assert found.step_ns([(tokens, 0), (1, cached)], 3) > 0


def test_release_1_0_reads_experts() -> None:
    """Release 1.0 reads the time of `map` for three tokens with two experts each.

    Four experts get 3, 2, 1 and 0 tokens. The last expert is not passed to the reader, which would count one token for
    it.
    """
    found = Predictions(profile(PREDICTIONS, "mixtral", 3, 3, 64).files, "npu", "tiny/llama")
    step = [(1, 63)] * 3
    assert found.step_ns(step, 3, (3, 2, 1)) == pytest.approx(
        mapped_ns(MIXTURE, step, experts=[3, 2, 1, 0]), abs=rounding(3)
    )


@pytest.mark.parametrize("step", [[(5, 0)], [(1, 5)], [(1, 9)]])
def test_release_0_2_reads_what_map_says(step: Step) -> None:
    """Release 0.2 reads the time of `map` for one request whose head sees all tokens."""
    found = Flat(profile(FLAT, "llama", 5, 1, 10).files, "npu", "tiny/llama")
    expected = mapped_ns(TINY, step, logits="all")
    assert found.step_ns(step, 3) == pytest.approx(expected, abs=rounding(3))


@pytest.mark.parametrize("step", [[(4, 0)], [(2, 16)], [(1, 16)] * 2, [(2, 16), (1, 16), (1, 16)]])
@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_release_1_1_reads_what_map_says(kind: str, step: Step) -> None:
    """Release 1.1 reads the time of `map` at points of the grid, where it interpolates nothing."""
    found = Bundle(profile(BUNDLE, kind, 4, 2, 16).files, "npu", "tiny/llama", "int8")
    fields = TINY if kind == "llama" else HEAD_NORMS
    assert found.step_ns(step, 3) == pytest.approx(mapped_ns(fields, step), abs=rounding(3))


def test_release_1_1_reads_experts() -> None:
    """Release 1.1 reads the time of `map` for four tokens on all four experts, and for one token on two."""
    found = Bundle(profile(BUNDLE, "mixtral", 4, 2, 16).files, "npu", "tiny/llama", "int8")
    for step, experts in (([(4, 0)], 4), ([(1, 16)], 2)):
        expected = mapped_ns(MIXTURE, step, experts="balanced")
        assert found.step_ns(step, 3, experts) == pytest.approx(expected, abs=rounding(3))


def test_release_1_1_has_what_it_reads_beside_the_tables() -> None:
    """A profile for release 1.1 states its limits, that nothing is fitted, and the settings behind its numbers."""
    files = profile(BUNDLE, "llama", 4, 2, 16).files
    about = yaml.safe_load(files["perf/npu/tiny/llama/int8/meta.yaml"])
    assert about["engine_effective"] == {"max_num_batched_tokens": 4, "max_num_seqs": 2}
    assert about["skew_fit"] == {"enabled": False}
    assert (about["clock_period_ns"], about["key_block"], about["cost_model"]) == (PERIOD_NS, KEY_BLOCK, "corrected")


def test_points_are_those_that_a_release_looks_up() -> None:
    """Points of release 1.0 have every number of tokens and multiples of 64 keys; in release 1.1, values double."""
    points = points_of(PREDICTIONS, ProfileLimits(40, 2, 100), None)
    assert points.rows == tuple(range(1, 41))
    assert points.prompts == ((32, 0), (64, 0))
    assert points.answers == ((1, 63), (1, 127), (2, 63), (2, 127))
    points = points_of(BUNDLE, ProfileLimits(6, 3, 40), MixtureSize(5, 2))
    assert points.rows == (1, 2, 3, 4, 6)
    assert {context for _, context in points.prompts} == {0, 16, 32, 40}
    assert {requests for requests, _ in points.answers} == {1, 2, 3}
    assert points.mixtures == ((1, 2), (2, 2), (4, 2), (6, 2), (2, 4), (4, 4), (6, 4), (4, 5), (6, 5))


def test_a_core_without_a_clock_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A core without a clock is refused, because its cycles have no time."""
    unclocked = tmp_path / "core.yaml"
    unclocked.write_text(yaml.safe_dump({key: one for key, one in core().items() if key != "clock_frequency"}))
    workload = "config/workload/llama_3.1_8b_decode.yaml"
    given = ["--hardware", str(unclocked), "--mapping", MAPPING, "--workload", workload]
    assert main(["serving", *given, "--format", BUNDLE, "-o", str(tmp_path / "out"), "--no-store"]) == 2
    told = capsys.readouterr().err
    assert "clock_frequency" in told
    assert "has no clock" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("fields", "more", "told"),
    [
        (
            {"model_type": "mamba", "hidden_size": 16, "num_hidden_layers": 1, "vocab_size": 8},
            {},
            "attention with cached keys",
        ),
        (TINY | {"model_type": "gemma2", "sliding_window": 4}, {}, "models whose blocks are all equal"),
        (MIXTURE, {"form": FLAT}, "does not support experts"),
        (TINY, {"form": FLAT, "served_model_name": "Qwen/Qwen2.5"}, "with llama in their name"),
        (TINY, {"hardware_name": "TPU-v9"}, "leaves out positional encodings"),
        (TINY, {"hardware_name": "../npu"}, "cannot be the name of a folder"),
        (TINY, {"served_model_name": "a/../b"}, "cannot be the name of a model"),
        (TINY, {"variant": "a/b"}, "cannot be the name of a folder"),
        (TINY, {"form": "llmservingsim-1.2"}, "llmservingsim-1.1"),
        (TINY, {"max_context": 0}, "max_context"),
        (TINY, {"max_tokens": 1.5}, "max_tokens"),
        (TINY, {"key_block": True}, "key_block"),
    ],
)
def test_what_the_simulator_would_get_wrong_is_refused(fields: dict[str, Any], more: dict[str, Any], told: str) -> None:
    """Models with unknown layers, and ambiguous names, are refused."""
    with pytest.raises(InputError, match=told):
        tilewright.serving(step_of(fields), core(), MAPPING, options=OPTIONS, **more)


def test_work_that_a_core_does_not_run_is_named() -> None:
    """Notes name the work that a core does not run, such as softmax."""
    described = core()
    del described["operator_types"]
    found = tilewright.serving(
        step_of(TINY), described, MAPPING, options=OPTIONS, max_tokens=1, max_requests=1, max_context=1
    )
    assert "not costed: Softmax not run by the core" in found.notes
    about = yaml.safe_load(next(text for place, text in found.files.items() if place.endswith("meta.yaml")))
    assert about["not_costed"] == list(found.notes)


def test_files_are_written_where_the_simulator_looks(tmp_path: Path) -> None:
    """Files are written into the folder of the simulator's profiler."""
    tilewright.serving(
        step_of(TINY),
        core(),
        MAPPING,
        PREDICTIONS,
        OPTIONS,
        max_tokens=1,
        max_requests=1,
        max_context=1,
        output=tmp_path,
    )
    folder = tmp_path / "perf_models" / "tpu_like_vector" / "model" / "tp1"
    assert (folder / "layers.csv").is_file()
    assert {path.name for path in (folder / "predictions").iterdir()} == {
        "attn_decode_predictions.csv",
        "attn_prefill_predictions.csv",
    }


def test_every_layer_has_an_operator() -> None:
    """A layer without an operator raises a ValueError."""
    with pytest.raises(ValueError, match="belongs to no operator"):
        operator_of("layers/feedforward/new_part")


@pytest.mark.parametrize(
    ("weights", "cache", "name"), [(8, 8, "int8"), (16, 16, "bf16"), (4, 8, "int4-kvint8"), (6, 6, "6bit")]
)
def test_the_variant_is_named_by_bits(weights: int, cache: int, name: str) -> None:
    """A variant is named by the bits of weights, and of the cache if these differ."""
    assert variant_of(Precision(weights=weights, cache=cache)) == name
