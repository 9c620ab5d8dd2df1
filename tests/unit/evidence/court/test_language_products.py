"""Matrix products of language models in the court: constants of devices from other sets, and wrong rows."""

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright import evaluate
from tilewright.cli.main import main
from tilewright_evidence.court.case import DATA, in_hundred, set_files
from tilewright_evidence.court.gpu import GPU, gpus, product
from tilewright_evidence.court.language_devices import GPU_NAMES, device_of, known_time, values_of
from tilewright_evidence.court.language_products import (
    COMPASS,
    COMPASS_CALL_US,
    SERVING,
    SERVING_COLUMNS,
    SHARE,
    VIDUR,
    VIDUR_COLUMNS,
    salt_of,
)
from tilewright_evidence.court.mapped_layer import PRODUCT_EQUATION
from tilewright_evidence.court.tpu import DEVICE as TPU_DEVICE
from tilewright_evidence.court.tpu import ON_CHIP, OWN, TPU, UP_DOWN
from tilewright_evidence.court.tpu import prepare as prepare_tpu
from tilewright_evidence.court.tpu_mapping import DIMENSIONS, clock_mhz, tpu_document

TPU_ROW = {"row_id": "x", "device": "TPU-v6e-1", "dtype": "bf16?", "roofline_flag": ""}


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a sample."""
    with (DATA / name / "sample.csv").open() as file:
        return list(csv.DictReader(file))


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a file with rows."""
    file = folder / "rows.csv"
    with file.open("w") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def tpu_rows(folder: Path, operator: str, tokens: list[int], time_us: float = 1e6) -> list[Any]:
    """Return prepared rows of an operator of Llama-3.1-8B on the TPU."""
    inputs = 14336 if operator == "down_proj" else 4096
    changes = {"layer": operator, "gemm_k": inputs, "gemm_n": 4096, "latency_us": time_us}
    return list(SERVING.prepare([written(folder, [TPU_ROW | changes | {"tokens": one} for one in tokens])]))


@pytest.mark.parametrize("court_set", [VIDUR, SERVING], ids=lambda one: one.name)
def test_devices_of_other_sets_are_predicted_with_the_constants_of_these_sets(court_set: Any) -> None:
    """Rows of A100 and H100 are not fitted here, and their estimates are those of `gpu-gemm`."""
    rows = court_set.prepare(set_files(DATA / court_set.name, court_set.patterns))
    known = [row for row in rows if row.device in ("a100", "h100")]
    assert known
    for row in known:
        case, layer = row.case(court_set.values()), row.layer
        one = product(gpus()[row.device], "bf16", layer.tokens, layer.outputs, layer.inputs)
        assert case.estimate == 1e6 * one.seconds(GPU.values()[row.device])[0]
        assert not case.fitted
        assert row.drawn_by is None
        assert case.fitted_roofline == known_time(row.device, one.roofline_terms)
    assert not {"a100", "h100", TPU_DEVICE} & set(court_set.constants)


def test_the_rtx_3090_takes_the_constants_of_a_card_of_its_kind() -> None:
    """The RTX 3090 has its own description and the constants of the RTX 4090, because it has no rows to fit."""
    assert values_of("rtx_3090", SERVING.values()) == SERVING.values()["rtx_4090"]
    assert gpus()["rtx_3090"] != gpus()["rtx_4090"]


def test_spellings_of_devices() -> None:
    """Spellings of devices ignore case and punctuation, and every known device has a hardware file."""
    assert device_of("A100_SXM") == device_of("a100") == "a100"
    assert device_of("RTX PRO 6000") == device_of("RTXPRO6000") == "rtx_pro_6000"
    assert device_of("TPU-v6e-1") == device_of("TPU_v6e") == TPU_DEVICE
    assert device_of("TPU-v5e-1") is None
    assert set(GPU_NAMES.values()) == set(gpus())


def test_evaluate_gives_the_estimates_of_the_tpu_to_the_bit(tmp_path: Path) -> None:
    """`evaluate` gives exactly the estimates of the TPU; a row of two products is their sum."""
    rows = [*tpu_rows(tmp_path, "down_proj", [256, 1024]), *tpu_rows(tmp_path, "o_proj", [512])]
    assert [row.product.row["contents"] for row in rows] == [UP_DOWN, OWN, ON_CHIP]
    for row in rows:
        cycles = 0.0
        hardware, workload = tmp_path / "hardware.yaml", tmp_path / "workload.yaml"
        hardware.write_text(
            yaml.safe_dump(tpu_document(weights_on_chip=row.layer.operator == "o_proj"), sort_keys=False)
        )
        for mapping in row.product.mappings:
            entry = {
                "id": 0,
                "name": mapping.layer.name,
                "operator_type": "MatMul",
                "equation": PRODUCT_EQUATION,
                "loop_dims": list(DIMENSIONS),
                "loop_sizes": [mapping.layer.size_of[name] for name in DIMENSIONS],
                "operand_precision": {"W": 16, "I": 16, "O": 32, "O_final": 16},
                "operand_source": {"I": 0, "W": 0},
            }
            workload.write_text(yaml.safe_dump([entry], sort_keys=False))
            points = [mapping.point()]
            (record,) = evaluate(hardware=str(hardware), workload=str(workload), points=points, model="corrected")
            cycles += record.latency_cycles
        assert 1e3 * cycles / clock_mhz() / 1e3 == row.case(SERVING.values()).estimate


def test_the_tpu_is_predicted_as_in_its_own_set(tmp_path: Path) -> None:
    """A row of `tpu-v6e` has the same error in both sets and is fitted in both or in none."""
    files = set_files(DATA / TPU.name, TPU.patterns)
    own = {
        (one.row["op"], one.row["m"]): one.case(TPU.values())
        for one in prepare_tpu(files)
        if one.row.get("op") in ("o_proj", "down_proj") and one.row["m"] >= 256
    }
    assert {operator for operator, _ in own} == {"o_proj", "down_proj"}
    for (operator, tokens), case in own.items():
        (row,) = tpu_rows(tmp_path, operator, [tokens], case.measured / 1e3)
        found = row.case(SERVING.values())
        assert found.error == pytest.approx(case.error)
        assert found.fitted == case.fitted
        assert found.bound == pytest.approx(case.bound / 1e3)


def test_rows_of_the_tpu_with_unknown_contents_are_left_out(tmp_path: Path) -> None:
    """TPU rows with few tokens, or with operators that can contain others, are left out."""
    assert not tpu_rows(tmp_path, "o_proj", [255])
    assert not tpu_rows(tmp_path, "q_proj", [512])


@pytest.mark.parametrize("court_set", [VIDUR, SERVING, COMPASS], ids=lambda one: one.name)
def test_bounds_hold_or_are_explained(court_set: Any) -> None:
    """No row of the samples is faster than its bound without an explanation."""
    cases = [row.case(court_set.values()) for row in court_set.prepare(set_files(DATA / court_set.name, ("*.csv",)))]
    assert all(case.explained for case in cases if case.breaks_bound)
    assert all(0 < case.bound <= case.roofline for case in cases)


@pytest.mark.parametrize(("share", "is_explained"), [(0.99, True), (0.9, False)])
def test_a_clock_explains_only_a_little(tmp_path: Path, share: float, is_explained: bool) -> None:
    """A GeForce card can be a few percent faster than its published peak; more is not explained."""
    row = next(one for one in rows_of("llmservingsim_layers") if one["device"] == "RTX4090")
    row |= {"tokens": "4096", "gemm_k": "8192", "gemm_n": "8192"}
    peak_us = 1e6 * 2 * 4096 * 8192 * 8192 / gpus()["rtx_4090"].flops_per_s["bf16"]
    (one,) = SERVING.prepare([written(tmp_path, [row | {"latency_us": str(share * peak_us)}])])
    case = one.case(SERVING.values())
    assert case.breaks_bound
    assert bool(case.explained) == is_explained


def test_a_call_of_llmcompass_takes_the_time_that_its_authors_give() -> None:
    """The estimate of a LLMCompass row is that of `gpu-gemm` plus the published time of a call."""
    for row in COMPASS.prepare(set_files(DATA / COMPASS.name, ("*.csv",))):
        layer = row.layer
        one = product(gpus()["a100"], "bf16", layer.tokens, layer.outputs, layer.inputs)
        assert row.case({}).estimate == 1e6 * one.seconds(GPU.values()["a100"])[0] + COMPASS_CALL_US


@pytest.mark.parametrize(
    ("court_set", "columns"), [(VIDUR, VIDUR_COLUMNS), (SERVING, SERVING_COLUMNS)], ids=["vidur", "serving"]
)
def test_damaged_rows_are_told_together(
    court_set: Any, columns: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Messages about damaged rows come together, with file, line, column, value and allowed values.
    Rows without sizes are left out.
    """
    folder = tmp_path / court_set.name
    folder.mkdir()
    rows = [dict(rows_of(court_set.name)[0]) for _ in range(6)]
    time = next(name for name in columns if name.startswith("latency"))
    size = next(name for name in columns if name in ("n", "gemm_n"))
    rows[0]["device"] = "H1000"
    rows[1]["tokens"] = "0"
    rows[2][time] = "-3"
    rows[3]["dtype"] = "fp4"
    rows[4][size] = "many"
    rows[5] |= {size: "", "device": "unknown"}
    written(folder, rows)
    assert main(["accuracy", court_set.name, "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    for line, text in (
        (2, "device: no such name, got 'H1000' (allowed: a100, a100sxm, h100, h100sxm"),
        (3, "tokens: wrong number, got 0 (allowed: at least 1)"),
        (4, f"{time}: wrong number, got -3.0 (allowed: more than 0)"),
        (5, "dtype: no such name, got 'fp4'"),
        (6, f"{size}: wrong or missing, got 'many'"),
    ):
        assert f"rows.csv:{line} {text}" in told
    assert "rows.csv:7" not in told
    assert "did you mean 'h100'" in told


@pytest.mark.parametrize("court_set", [VIDUR, SERVING], ids=lambda one: one.name)
def test_at_most_a_tenth_of_the_products_is_fitted(court_set: Any) -> None:
    """The rule chooses at most a tenth of many products for the fit of constants."""
    sizes = [f"{outputs} x 1024 x {tokens}" for tokens in range(1, 101) for outputs in range(256, 25857, 256)]
    fitted = sum(in_hundred(one, salt_of(court_set.name)) < SHARE for one in sizes)
    assert 0 < fitted <= len(sizes) / 10
