"""The TPU in the court: what rows hold decides bound and estimate."""

from typing import Any

import pytest
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.tpu import DEVICE, TPU, prepare, tpu

IDEAL = {DEVICE: {"matrix_efficiency": 1.0, "memory_efficiency": 1.0}}
HEAD = "op,m,n,k,contents,time_ns"
ATTENTION_HEAD = "phase,batch,new_tokens,cached_tokens,p50_ns,flops,kv_bytes"


def case_of(tmp_path: Any, line: str, kind: str = "matmul") -> Any:
    """The case of one row on an ideal chip."""
    for name, head in (("matmul", HEAD), ("attention", ATTENTION_HEAD)):
        (tmp_path / f"{name}_x.csv").write_text("\n".join([head, *([line] if name == kind else [])]) + "\n")
    (prepared,) = prepare(sorted(tmp_path.glob("*.csv")))
    return prepared.case(IDEAL)


@pytest.mark.parametrize(
    ("contents", "weights", "bound_weights"),
    [("own", 1, 1), ("up+down", 2, 2), ("weights on chip", 0, 0), ("q or q+k+v", 1, 1)],
)
def test_what_a_row_holds_is_what_is_moved(tmp_path: Any, contents: str, weights: int, bound_weights: int) -> None:
    """Eight tokens, 4096 x 4096 weights of two bytes: moved once, twice, or not at all."""
    found = case_of(tmp_path, f"x,8,4096,4096,{contents},1e9")
    read = 1e9 * 2 * 4096 * 4096 / tpu().hbm_bytes_per_s
    others = max(1, weights) * 1e9 * 8 * 4 * 4096 / tpu().hbm_bytes_per_s
    computing = 2e9 * 8 * 4096**2 / tpu().flops_per_s
    assert found.estimate == pytest.approx(max(weights * read + others, computing))
    assert found.bound == pytest.approx(bound_weights * read) or weights == 0


def test_tokens_are_padded(tmp_path: Any) -> None:
    """4,097 tokens compute as long as 4,104."""
    seconds = [case_of(tmp_path, f"x,{m},4096,4096,own,1e9").estimate for m in (4097, 4104)]
    assert seconds[0] == pytest.approx(seconds[1])


def test_an_impossible_row_is_explained(tmp_path: Any) -> None:
    """It breaks the bound, and is told as what it is."""
    found = case_of(tmp_path, "lm_head,1,128256,4096,implausible,330000")
    assert found.breaks_bound
    assert "reading the weights" in found.explained


def test_attention_moves_expanded_keys_and_scores(tmp_path: Any) -> None:
    """Four times the keys and values, twelve bytes a score."""
    found = case_of(tmp_path, "decode,1,1,99,1e9,1,1000", "attention")
    assert found.estimate == pytest.approx(1e9 * (4 * 1000 + 12 * 32 * 100) / tpu().hbm_bytes_per_s)
    assert found.bound == pytest.approx(1e9 * 1000 / tpu().hbm_bytes_per_s)


def test_samples_hold_all_kinds_of_rows() -> None:
    """So that each is tried without the full set."""
    parts = {one.case(TPU.values()).part for one in prepare(set_files(DATA / TPU.name, TPU.patterns))}
    assert {"products", "q or q+k+v", "weights on chip", "attention, decode", "attention, prefill"} <= parts
