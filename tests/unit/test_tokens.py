"""`tilewright tokens`: curves are sums of layers that are searched once, and equal `map` at each point."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import document_of
from tilewright.cli.main import main
from tilewright.pipeline.sources import parse_accelerator, parse_mapping
from tilewright.pipeline.stages.base import Control
from tilewright.search.options import SearchOptions
from tilewright.tokens.layer_figures import LayerFigures
from tilewright.tokens.steps import ENERGY, LATENCY, MACS
from tilewright.tokens.table import TokenCurves, spread
from tilewright.workload.language_models.reader import describe_language_model
from tilewright.workload.language_models.weights import parameter_count

HARDWARE, MAPPING = (
    Path("config/hardware/zigzag/tpu_like_vector.yaml"),
    Path("config/mapping/zigzag/tpu_like_vector.yaml"),
)
TINY: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": 32,
}
MODELS: dict[str, dict[str, Any]] = {
    "llama": TINY | {"model_type": "llama"},
    "mixed": TINY | {"model_type": "gemma2", "head_dim": 8, "sliding_window": 12},
    "narrow": TINY | {"model_type": "mistral", "sliding_window": 5},
    "latent": TINY
    | {
        "model_type": "deepseek_v2",
        "moe_intermediate_size": 8,
        "kv_lora_rank": 8,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 8,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 1,
    },
    "mamba": {"model_type": "mamba", "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 32, "state_size": 4},
}
OPTIONS = SearchOptions(model="corrected", lpf_limit=2)

LINKS = {"O": "O", "W": "I2", "I": "I1"}
EXACT: dict[str, Any] = {"temporal_mapping_search_engine": "exact"}


def step_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a workload of the model; its requests have no effect."""
    return {"language_model": fields, "phase": "decode", "context": 1}


FIGURES = LayerFigures(
    parse_accelerator(HARDWARE),  # type: ignore[arg-type]
    parse_mapping(MAPPING),
    OPTIONS,
    Control(),
    with_limits=False,
)
"""Costs of layers for all models, since they do not depend on the model."""


def curves_of(fields: dict[str, Any], figures: LayerFigures | None = None) -> TokenCurves:
    """Return curves with blocks of 8 keys and chunks of 8 tokens."""
    return TokenCurves(describe_language_model(document_of(step_of(fields)), "tiny"), figures or FIGURES, 8, 8)


def mapped(fields: dict[str, Any], **requests: Any) -> dict[str, Any]:
    """Return the summary of `map` for one step with the same blocks."""
    workload = {"language_model": fields, "key_block": 8, **requests}
    found = tilewright.map(workload=workload, hardware=HARDWARE, mapping=MAPPING, options=OPTIONS)
    summary: dict[str, Any] = found.summary
    return summary


@pytest.mark.parametrize("name", MODELS)
def test_a_token_costs_what_map_says(name: str) -> None:
    """A token costs the same as in `map`, for contexts of whole blocks and others, within a window and beyond it."""
    curves = curves_of(MODELS[name])
    for batch, context in ((1, 5), (3, 40)):
        found = curves.next_token(batch, context)
        summary = mapped(MODELS[name], phase="decode", batch=batch, context=context - 1)
        assert found[LATENCY] == summary["latency_cycles"]
        assert found[ENERGY] == pytest.approx(summary["energy_pj"], rel=1e-12)
        assert found[MACS] == summary["mac_count"]


@pytest.mark.parametrize("name", MODELS)
def test_a_prompt_is_the_sum_of_its_chunks(name: str) -> None:
    """Every figure of a prompt is the sum over its chunks, even over chunks whose figures come from the polynomial."""
    curves = curves_of(MODELS[name])
    for tokens in (8, 75):
        whole, rest = divmod(tokens, 8)
        chunks = [curves.figures.of(curves._prompt_step(8, 8 * place)) for place in range(whole)]
        chunks += [curves.figures.of(curves._prompt_step(rest, 8 * whole))] if rest else []
        assert curves.prompt(tokens).tolist() == pytest.approx(sum(chunks).tolist(), rel=1e-12)
        assert curves.prompt(tokens)[LATENCY] == sum(chunk[LATENCY] for chunk in chunks)


def test_a_chunk_costs_what_map_says() -> None:
    """A chunk behind three others costs the same as in `map`."""
    curves = curves_of(MODELS["latent"])
    summary = mapped(MODELS["latent"], phase="prefill", tokens=8, context=24)
    assert curves._chunk(3)[LATENCY] == summary["latency_cycles"]
    assert curves._chunk(3)[MACS] == summary["mac_count"]


@pytest.mark.parametrize(("name", "context"), [("mixed", 8), ("mixed", 32), ("narrow", 0), ("narrow", 32)])
def test_a_chunk_of_windows_costs_what_map_says(name: str, context: int) -> None:
    """A chunk with windows costs the same as in `map`, before and beyond the context from which windows limit all
    chunks."""
    found = curves_of(MODELS[name])._chunk(context // 8)
    summary = mapped(MODELS[name], phase="prefill", tokens=8, context=context)
    assert found[LATENCY] == summary["latency_cycles"]
    assert found[ENERGY] == pytest.approx(summary["energy_pj"], rel=1e-12)
    assert found[MACS] == summary["mac_count"]


def test_many_contexts_need_no_more_searches_than_few() -> None:
    """Many contexts need hardly more searches than one, because they repeat the same layers in other numbers."""
    curves = curves_of(MODELS["llama"], replace(FIGURES, _figures={}, _kinds={}))
    curves.search([64], [1], [64])
    few = curves.figures.searched
    curves.search(range(16, 1024, 16), [1], range(16, 1024, 16))
    assert curves.figures.searched <= few + 2


def test_the_table_says_what_fits_and_what_limits(tmp_path: Path) -> None:
    """The table says which weights and caches fit, which port limits, and how many tokens a joule gives."""
    found = tilewright.tokens(
        step_of(MODELS["llama"]),
        HARDWARE,
        MAPPING,
        [8, 16],
        [1, 4],
        options=OPTIONS,
        key_block=8,
        chunk=8,
        prompts=False,
        output=tmp_path,
    )
    table = found.table
    assert list(zip(table["batch"], table["context"], strict=True)) == [(1, 8), (1, 16), (4, 8), (4, 16)]
    weights = 8 * parameter_count(describe_language_model(document_of(step_of(MODELS["llama"])), "tiny").model)
    assert found.weight_bits == weights
    assert list(table["cache_bits"]) == [
        8 * batch * 2 * 2 * 16 * context for batch, context in ((1, 8), (1, 16), (4, 8), (4, 16))
    ]
    row = found.rows[3]
    assert row["tokens_per_joule"] == pytest.approx(1e12 / row["energy_per_token_pj"])
    assert row["fits"]
    assert row["largest_batch"] > 1000
    assert set(row["bound_by"].split(" and ")) <= {"compute", "spatial stall", "moving data", "dram", "sram_2MB"}
    assert 0 < row["bound_by_share"] <= 1
    assert 0 <= row["gain_of_twice_the_width"] <= 0.5
    sizes = [row[f"saved_by_twice_the_size_of_{name}"] for name in ("rf_128B", "rf_2B", "sram_2MB")]
    assert row["gain_of_twice_the_size"] == max(sizes) >= 0
    assert {path.name for path in tmp_path.iterdir()} == {"tokens.csv", "tokens.json", "tokens.svg", "tokens.png"}
    assert json.loads((tmp_path / "tokens.json").read_text())["payload"]["rows"][3]["batch"] == 4


def test_twice_the_room_is_what_a_core_with_it_takes() -> None:
    """Twice the size of a memory takes the cycles of a hardware file with this size, and never more than before."""
    described = describe_language_model(document_of(step_of(MODELS["llama"] | {"hidden_size": 64})), "tiny")
    core = yaml.safe_load(HARDWARE.read_text())
    core["memories"]["sram_2MB"]["size"] = 32768  # so that there is something to gain
    larger = copy.deepcopy(core)
    larger["memories"]["sram_2MB"]["size"] = 65536
    found = []
    for hardware in (core, larger):
        figures = LayerFigures(parse_accelerator(hardware), parse_mapping(MAPPING), OPTIONS, Control())  # type: ignore[arg-type]
        found.append((figures, TokenCurves(described, figures, 8, 8).decode_step(64, 8)))
    (small, step), (large, _) = found
    assert small.larger == ["rf_128B", "rf_2B", "sram_2MB"]
    best = 0.0
    for node in step.nodes:
        if node.layer is not None:
            one = replace(step, nodes=(replace(node, sources=(), repeats=1),))
            own, with_more = small.of(one), large.of(one)
            assert small.larger_cycles(own)[2] == min(own[LATENCY], with_more[LATENCY]), node.name
            best = max(best, own[LATENCY] - with_more[LATENCY])
    assert best > 0


def test_the_note_says_how_far_the_mappings_are_from_the_best_at_most() -> None:
    """The note has the largest gap of a layer; mappings of the engine `exact` are better by at most this gap.

    Both engines use the spatial mapping of the file. The note does not cover other spatial mappings.
    """
    curves = {}
    sides = {"D1": ["K, 8"], "D2": ["C, 8"]}
    fixed = parse_mapping([{"name": "default", "spatial_mapping": sides, "memory_operand_links": LINKS}])
    for name, options in {"loma": replace(OPTIONS, bounds=True), "exact": replace(OPTIONS, **EXACT)}.items():
        figures = LayerFigures(FIGURES.accelerator, fixed, options, Control(), with_limits=False)
        curves[name] = (figures, curves_of(MODELS["llama"], figures).decode_step(16, 2))
    (figures, step), (best, _) = curves["loma"], curves["exact"]
    values = [one.of(step)[LATENCY] for one in (figures, best)]
    assert values[0] >= values[1]
    gaps = []
    for node in step.nodes:
        if node.layer is not None:
            alone = replace(step, nodes=(replace(node, sources=(), repeats=1),))
            gaps.append(figures._gaps[figures._kind(node)])
            assert best.of(alone)[LATENCY] >= figures.of(alone)[LATENCY] * (1 - gaps[-1]) * (1 - 1e-9), node.name
    assert values[1] >= values[0] * (1 - max(gaps)) * (1 - 1e-9)
    (note,) = figures.notes(0)
    share = float(note.partition("could fall by at most ")[2].partition("%")[0])
    assert max(gaps) * 100 <= share + 1e-9 <= max(gaps) * 100 + 0.1 + 1e-6
    assert "the time of a step is a sum over layers, so it could fall by at most " in note


def test_without_bounds_the_note_says_that_the_distance_is_not_known() -> None:
    """A run without bounds has a note that the gap of the named engine is unknown."""
    FIGURES.search([curves_of(MODELS["llama"]).decode_step(16, 2)])
    assert "found by loma; it was not computed how much better the best mappings are" in FIGURES.notes(0)[-1]


def test_contexts_are_spread_over_whole_blocks() -> None:
    """Contexts are spread over whole blocks, with both ends."""
    found = spread(1024, 1 << 20, 64, 1024)
    assert (found[0], found[-1]) == (1024, 1 << 20)
    assert all(context % 1024 == 0 for context in found)
    assert len(spread(8, 8192, 5, 1)) == 5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--contexts", "1k:2k"], "first:last:how-many"),
        (["--contexts", "x"], "such as 512, 4k or 1M"),
        (["--batches", "0,many"], "--batches: is not a batch, got 'many'"),
        (["--batches", "0", "--contexts", "x"], "--batches: is not a batch, got '0'"),
        (["--batches", "0", "--contexts", "x"], "--contexts: is not a context, got 'x'"),
        (["--chunk", "1000"], "multiple of 1024"),
        (["--exploit-data-locality"], "--exploit-data-locality: "),
        (["--workload", "config/workload/fsrcnn.yaml"], "is not a language model"),
    ],
)
def test_what_is_wrong_is_told(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong options are refused by name with the allowed values."""
    given = [
        "--hardware",
        str(HARDWARE),
        "--mapping",
        str(MAPPING),
        "--workload",
        "config/workload/llama_3.1_8b_decode.yaml",
    ]
    assert main(["tokens", *given, "--no-store", *options]) == 2
    assert told in capsys.readouterr().err


def test_a_load_of_experts_holds_for_one_step_alone() -> None:
    """A load of experts is refused for a curve, because it holds for one step only."""
    fields = TINY | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    step = step_of(fields) | {"experts": [1, 1, 0, 0]}
    with pytest.raises(InputError, match="not for a curve"):
        tilewright.tokens(step, HARDWARE, MAPPING, [8], options=OPTIONS)


def test_requests_of_the_file_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests and a block of keys in the file are reported as unused."""
    (tmp_path / "model.json").write_text(json.dumps(MODELS["llama"]))
    file = tmp_path / "step.yaml"
    file.write_text("language_model: model.json\nphase: decode\ncontext: 9\nbatch: 7\n")
    given = ["tokens", "--hardware", str(HARDWARE), "--mapping", str(MAPPING), "--workload", str(file), "--no-prompts"]
    given += ["--contexts", "8", "--lpf-limit", "2", "--no-store", "--temporal-mapping-search-engine", "loma"]
    assert main([*given, "--strict"]) == 0
    said = capsys.readouterr()
    told = "phase, batch, context are not used, because contexts and batches come from the options"
    assert f"step.yaml:2 phase: {told}" in said.err
    assert "\\n" not in said.out, "no line break is written as text"
    file.write_text(file.read_text() + "key_block: 4\n")
    assert main([*given, "--strict"]) == 2
    assert "key_block: has no effect" in capsys.readouterr().err
