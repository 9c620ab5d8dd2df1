"""Contradicting or meaningless sizes in a workload file, and fields of a language model without effect."""

from typing import Any

import pytest
from tilewright.base.unused import unused_in
from tilewright.workload.yaml_reader import read_workload_yaml

LAYER = {
    **{"id": 0, "name": "c", "operator_type": "Conv", "equation": "O[k][oy][ox]+=W[k][fy][fx]*I[iy][ix]"},
    "dimension_relations": ["ix=2*ox+1*fx", "iy=2*oy+1*fy"],
    **{"loop_dims": ["K", "OY", "OX", "FY", "FX"], "loop_sizes": [2, 4, 4, 3, 3]},
    "operand_precision": {"W": 8, "I": 8, "O": 8, "O_final": 8},
    "operand_source": {"I": 0, "W": 0},
    "pr_loop_dims": ["IX", "IY"],
}


def told(source: Any) -> list[str]:
    """The notices about unused keys."""
    notices: list[str] = []
    read_workload_yaml(source, notices)
    return list(map(str, unused_in(notices)))


@pytest.mark.parametrize(
    ("size", "padding", "contradicts"),
    [
        (8, [1, 0], False),
        (9, [1, 0], False),
        (8, [1, 1], False),
        (6, [1, 0], True),
        (10, [1, 0], True),
        (7, [0, 1], True),
    ],
)
def test_padding_and_sizes_that_contradict_each_other(size: int, padding: list[int], contradicts: bool) -> None:
    """Four windows of three at a stride of two cover nine positions; sizes and padding with a tenth give a notice."""
    found = told([{**LAYER, "pr_loop_sizes": [size, size], "padding": [padding, [1, 0]]}])
    first = [line for line in found if "padding[0]" in line]
    assert bool(first) == contradicts
    if contradicts:
        positions = f"IX has {size} + 1 positions, but the loops span 9"
        assert f"the two keys contradict each other: {positions}" in first[0]


def test_quantization_of_a_language_model_is_told() -> None:
    """A notice says that the quantisation of a language model has no effect, because the workload file gives
    the bits.
    """
    model = {
        **{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1},
        **{"num_attention_heads": 4, "vocab_size": 100},
    }
    step = {"phase": "decode", "context": 8}
    assert told({"language_model": model, **step}) == []
    quantised = {**model, "quantization_config": {"bits": 4, "quant_method": "gptq"}}
    found = told({"language_model": quantised, **step})
    assert len(found) == 1
    assert "language_model.quantization_config: has no effect" in found[0]


@pytest.mark.parametrize(
    ("more", "is_told"), [({}, True), ({"padding": [[1, 0], [1, 0]]}, False), ({"pr_loop_sizes": [9, 9]}, False)]
)
def test_names_of_windows_without_sizes_are_told(more: dict[str, Any], is_told: bool) -> None:
    """Names of window dimensions without sizes or padding give a notice, because they mean nothing alone."""
    assert any("pr_loop_dims: has no effect" in one for one in told([{**LAYER, **more}])) == is_told
