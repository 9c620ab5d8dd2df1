"""The table of operator groups: complete, and without overlap between multipliers and vector units."""

import pytest
from tilewright.base.operator_groups import (
    GROUPS,
    KNOWN_TYPES,
    MAC_TYPES,
    OPERATOR_TYPES_OF,
    bare_type,
    group_has,
    is_listed,
    may_do_macs,
)
from tilewright.workload.onnx import lowering
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.operators.not_modelled import lower_not_modelled

MOVES = {
    *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Split", "Slice", "Pad", "Expand", "Tile"),
    *("CenterCropPad", "DepthToSpace", "SpaceToDepth", "Gather", "GatherElements", "GatherND", "Scatter", "OneHot"),
    *("ScatterElements", "ScatterND", "TensorScatter", "ReverseSequence", "Identity", "Dropout", "Range", "Shape"),
    *("Size", "Constant", "ConstantOfShape", "EyeLike", "RandomNormal", "RandomUniform", "RandomNormalLike"),
    *("RandomUniformLike", "Compress", "HannWindow", "HammingWindow", "BlackmanWindow", "Optional"),
}
"""Operators that move or generate data and have no layer."""


def test_every_operator_that_is_lowered_has_a_place() -> None:
    """Every operator that becomes a layer is a known type, so that a core can list it."""
    register_operators()
    functions = lowering._LOWER_FUNCTIONS.items()
    lowered = {name for (_, name), function in functions if function is not lower_not_modelled}
    assert sorted(lowered - set(KNOWN_TYPES) - MOVES) == []


def test_types_are_in_one_group() -> None:
    """No operator type is in two groups, and group names are no operator types."""
    listed = [*MAC_TYPES, *(name for types in OPERATOR_TYPES_OF.values() for name in types)]
    assert len(listed) == len(set(listed))
    assert not set(GROUPS) & set(KNOWN_TYPES)


@pytest.mark.parametrize(
    ("operator_type", "groups"),
    [
        ("Conv", {"mac", "all"}),
        ("MaxPool", {"vector", "pooling", "all"}),
        ("com.microsoft::Gelu", {"vector", "elementwise", "all"}),
        ("ReduceMax", {"vector", "reduction", "all"}),
        ("Softmax", {"vector", "softmax", "all"}),
        ("LayerNormalization", {"vector", "normalization", "all"}),
        ("Resize", {"vector", "all"}),
        ("my.domain::Unheard", {"all"}),
    ],
)
def test_groups_of_a_type(operator_type: str, groups: set[str]) -> None:
    """An operator type belongs to the expected groups."""
    assert {group for group in GROUPS if group_has(group, operator_type)} == groups


@pytest.mark.parametrize(
    ("operator_type", "may"),
    [
        *(("Conv", True), ("Relu", False), ("NonZero", False), ("DFT", True), ("ai.onnx.ml::ZipMap", False)),
        *(("ai.onnx.ml::SVMRegressor", True), ("SequenceAt", False), ("my.domain::Unheard", True)),
    ],
)
def test_operators_that_may_multiply_and_accumulate(operator_type: str, may: bool) -> None:
    """Operators count as without multiply-accumulates if they are known vector operators or listed as such."""
    assert may_do_macs(operator_type) == may


def test_lists_of_types_and_groups() -> None:
    """A list names types or groups of types; `mac`, `vector` and `all` select by unit, not by type."""
    assert is_listed("com.microsoft::Gelu", ("Gelu",))
    assert is_listed("Relu", ("pooling", "elementwise"))
    assert not is_listed("Relu", ("pooling", "mac", "vector", "all"))
    assert not is_listed("", ("elementwise",))
    assert bare_type("Conv") == "Conv"
