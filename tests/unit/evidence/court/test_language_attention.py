"""Attention of language models in the court: the counts of each source, and wrong rows."""

import csv
from pathlib import Path
from typing import Any

import pytest
from tilewright.cli.main import main
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.gpu_attention import AlikeSequences
from tilewright_evidence.court.language_attention import (
    CONFIGURATOR,
    CONFIGURATOR_COLUMNS,
    MIXED,
    SERVING,
    SERVING_COLUMNS,
)
from tilewright_evidence.court.tpu import DEVICE as TPU_DEVICE
from tilewright_evidence.court.tpu import TPU
from tilewright_evidence.court.tpu import prepare as prepare_tpu

MODEL = "meta-llama/Llama-3.1-8B"


def prepared(folder: Path, device: str, profiler: str, counts: tuple[int, int, int, int], **changes: Any) -> Any:
    """Return the prepared row of a call; `counts` has chunk, chunk keys, decoding sequences and their keys."""
    first = ("x", profiler, device, MODEL, "bf16", 1)
    row = dict(zip(SERVING_COLUMNS, (*first, *counts, 50.0), strict=True)) | changes
    file = folder / "rows.csv"
    with file.open("w") as handle:
        writer = csv.DictWriter(handle, list(row))
        writer.writeheader()
        writer.writerow(row)
    (found,) = SERVING.prepare([file])
    return found


def test_the_old_profiler_counts_all_keys_of_a_call(tmp_path: Path) -> None:
    """The old profiler gives the keys of all sequences together, with those of the chunk.

    The new one gives the cached keys of each sequence.
    """
    old = prepared(tmp_path, "H100", "v0 vidur-style", (0, 0, 8, 4096))
    assert old.sequences == [AlikeSequences(8, 1, 512)]
    assert old.case(SERVING.values()).part == "h100, decode"
    chunk = prepared(tmp_path, "A6000", "v0 vidur-style", (448, 448, 0, 0))
    assert chunk.sequences == [AlikeSequences(1, 448, 448)]
    assert chunk.kernel.keys == 32
    new = prepared(tmp_path, "RTX4090", "v1 (vLLM 0.19.0)", (32, 512, 8, 4096))
    assert new.sequences == [AlikeSequences(1, 32, 544), AlikeSequences(8, 1, 4097)]
    assert new.kernel == MIXED
    assert new.phase == "mixed"


def test_heads_are_those_of_one_device(tmp_path: Path) -> None:
    """Heads are divided by the tensor parallelism, and a device keeps at least one head of keys."""
    found = prepared(tmp_path, "H100", "v0", (0, 0, 1, 64), tp=4)
    assert (found.heads.query, found.heads.key_value) == (8, 2)
    assert prepared(tmp_path, "H100", "v0", (0, 0, 1, 64), tp=16).heads.key_value == 1


def test_the_tpu_is_predicted_as_in_its_own_set(tmp_path: Path) -> None:
    """Each row of the sample of `tpu-v6e` has the same bound, estimate and roofline in both sets."""
    rows = [one for one in prepare_tpu(set_files(DATA / TPU.name, TPU.patterns)) if "phase" in one.row]
    assert {one.row["phase"] for one in rows} == {"prefill", "decode"}
    for one in rows:
        row, case = one.row, one.case(TPU.values())
        is_decoding = row["phase"] == "decode"
        if not is_decoding and row["batch"] > 1:
            continue
        new, old = row["new_tokens"], row["cached_tokens"]
        counts = (0, 0, row["batch"], old) if is_decoding else (new, old, 0, 0)
        found = prepared(tmp_path, "TPU-v6e-1", "v0 vidur-style", counts).case(SERVING.values())
        assert found.part == f"{TPU_DEVICE}, {row['phase']}"
        for name in ("bound", "estimate", "roofline"):
            assert getattr(found, name) == pytest.approx(getattr(case, name) / 1e3)
        assert not found.fitted


@pytest.mark.parametrize("court_set", [SERVING, CONFIGURATOR], ids=lambda one: one.name)
def test_bounds_hold_or_are_marked_by_the_source(court_set: Any) -> None:
    """A row below its bound has a mark of the source; a kernel has at most three constants."""
    cases = [row.case(court_set.values()) for row in court_set.prepare(set_files(DATA / court_set.name, ("*.csv",)))]
    assert all(case.explained for case in cases if case.breaks_bound)
    assert all(0 < case.bound <= case.roofline * (1 + 1e-12) for case in cases)
    assert all(len(constants) <= 3 for constants in court_set.constants.values())


def test_other_systems_and_models_are_left_out(tmp_path: Path) -> None:
    """Known but unsupported models and systems are left out; unknown names are refused."""
    with (DATA / CONFIGURATOR.name / "sample.csv").open() as file:
        row = next(csv.DictReader(file))
    file = tmp_path / "rows.csv"
    file.write_text("\n".join([",".join(row), ",".join((row | {"system": "b60"}).values())]))
    assert list(CONFIGURATOR.prepare([file])) == []
    (tmp_path / "rows.csv").unlink()
    with (DATA / SERVING.name / "sample.csv").open() as file:
        row = next(csv.DictReader(file))
    other = tmp_path / "other.csv"
    other.write_text("\n".join([",".join(row), ",".join((row | {"model": "zai-org/GLM-5", "dtype": "fp8"}).values())]))
    assert list(SERVING.prepare([other])) == []


@pytest.mark.parametrize(
    ("court_set", "columns", "damages"),
    [
        (
            SERVING,
            SERVING_COLUMNS,
            [
                ({"device": "A40"}, "device: no such name, got 'A40' (allowed: h100, h100sxm, a6000"),
                ({"model": "meta-llama/Llama-3.1-8"}, "did you mean 'meta-llama/Llama-3.1-8B'"),
                ({"tp": "3"}, "tp: does not divide the heads, got 3"),
                ({"profiler": "x0"}, "profiler: no such name, got 'x0' (allowed: v0, v1)"),
                ({"latency_us": "0"}, "latency_us: wrong number, got 0.0 (allowed: more than 0)"),
                ({"decode_sequences": "-1"}, "decode_sequences: wrong number, got -1 (allowed: at least 0)"),
                (
                    {"prefill_chunk_tokens": "0", "decode_sequences": "0"},
                    "prefill_chunk_tokens: the call has no tokens (allowed: a chunk, or decode_sequences)",
                ),
                (
                    {"device": "H100", "profiler": "v0", "prefill_chunk_tokens": "99", "prefill_kv_tokens": "9"},
                    "prefill_kv_tokens: wrong number, got 9 (allowed: at least prefill_chunk_tokens)",
                ),
            ],
        ),
        (
            CONFIGURATOR,
            CONFIGURATOR_COLUMNS,
            [
                ({"system": "h300_sxm"}, "device: no such name, got 'h300_sxm'"),
                ({"op": "decode"}, "op: no such name, got 'decode' (allowed: context, generation)"),
                ({"kv_heads": "7"}, "kv_heads: does not divide heads, got 7"),
                ({"batch": "0"}, "batch: wrong number, got 0 (allowed: at least 1)"),
            ],
        ),
    ],
    ids=["serving", "configurator"],
)
def test_damaged_rows_are_told_together(
    court_set: Any,
    columns: Any,
    damages: list[tuple[dict[str, str], str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Messages about damaged rows come together, with file, line, column, value and allowed values."""
    folder = tmp_path / court_set.name
    folder.mkdir()
    with (DATA / court_set.name / "sample.csv").open() as file:
        row = next(csv.DictReader(file))
    assert list(row) == list(columns)
    lines = [",".join(columns), *(",".join((row | changes).values()) for changes, _ in damages)]
    (folder / "rows.csv").write_text("\n".join(lines))
    assert main(["accuracy", court_set.name, "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    for line, (_, text) in enumerate(damages, start=2):
        assert text in told
        assert f"rows.csv:{line} " in told
