"""Softmax and normalisations: their parts, operations and dependencies."""

import numpy as np
import pytest

from tests.unit.workload.onnx.dependency_checks import lower_model
from tests.unit.workload.onnx.operators.vector_cases import Case, check_case, layers_of

CHANNELS = np.array([0.5, 1.5, -2.0, 0.7])

CASES: dict[str, Case] = {
    "softmax": Case("Softmax", [(2, 4)], [8] * 4),
    "softmax along an axis": Case("Softmax", [(2, 3, 2)], [12] * 4, attributes={"axis": 1}),
    "softmax from the last axis on": Case("Softmax", [(2, 3, 2)], [12] * 4, attributes={"axis": 2}, opset=11),
    "logarithm of softmax": Case("LogSoftmax", [(2, 4)], [8, 8, 8, 8, 2, 8]),
    "hardmax": Case("Hardmax", [(2, 4)], [8, 8]),
    "euclidean norm": Case("LpNormalization", [(2, 4)], [8, 2, 8]),
    "sum of absolute values": Case("LpNormalization", [(2, 4)], [8, 8], attributes={"p": 1, "axis": 0}),
    "neighbouring channels": Case("LRN", [(3, 3, 2, 1)], [54, 18, 18], attributes={"size": 3, "alpha": 1.0}),
    "evenly many channels": Case("LRN", [(4, 4, 1, 2)], [128, 32, 32], attributes={"size": 4, "alpha": 1.0}),
    "layer": Case("LayerNormalization", [(2, 3, 4)], [24, 24, 24, 6, 24, 24], [CHANNELS, CHANNELS]),
    "layer without shift": Case("LayerNormalization", [(2, 4)], [8, 8, 8, 2, 8, 8], [CHANNELS]),
    "layer with scale 1": Case("LayerNormalization", [(2, 4)], [8, 8, 8, 2, 8], [np.ones(1)]),
    "layer of two axes": Case(
        "LayerNormalization", [(2, 3, 2)], [12, 12, 12, 2, 12, 12], [np.ones((3, 2))], {"axis": 1}
    ),
    "layer with statistics": Case("LayerNormalization", [(2, 4)], [8, 8, 8, 2, 8, 8], [CHANNELS, CHANNELS], outputs=3),
    "layer with computed scale": Case("LayerNormalization", [(2, 4), (4,), (4,)], [8, 8, 8, 2, 8, 8]),
    "root mean square": Case("RMSNormalization", [(2, 4)], [8, 2, 8, 8], [CHANNELS], opset=23),
    "instance": Case("InstanceNormalization", [(2, 4, 2, 2)], [32, 32, 32, 8, 32, 32], [CHANNELS, CHANNELS]),
    "group": Case(
        "GroupNormalization", [(1, 4, 3)], [12, 12, 12, 2, 12, 12], [CHANNELS, CHANNELS], {"num_groups": 2}, opset=21
    ),
    "group with scales of groups": Case(
        "GroupNormalization", [(1, 4, 3)], [12, 12, 12, 2, 12, 12], [[1.0, 2.0]] * 2, {"num_groups": 2}, opset=18
    ),
    "mean and variance": Case("MeanVarianceNormalization", [(2, 2, 2, 2)], [16, 16, 16, 2, 16]),
    "batch": Case("BatchNormalization", [(2, 4, 2, 1)], [16], [CHANNELS, CHANNELS, CHANNELS, CHANNELS**2]),
    "batch of vectors": Case("BatchNormalization", [(2, 4)], [8], [CHANNELS, CHANNELS, CHANNELS, CHANNELS**2]),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_do_one_operation_for_every_loop_iteration(name: str) -> None:
    """Operations of every part, layers, and dependencies by experiment are right."""
    check_case(CASES[name])


@pytest.mark.parametrize(
    ("name", "equations"),
    [
        (
            "softmax",
            ["O[b] += I[b][k]", "O[b][k] += I[b][k] * W[b]", "O[b] += I[b][k]", "O[b][k] += I[b][k] * W[b]"],
        ),
        (
            "layer",
            [
                "O[b][d] += I[b][d][k]",
                "O[b][d][k] += I[b][d][k] * W[b][d]",
                "O[b][d] += I[b][d][k]",
                "O[b][d][k] += I[b][d][k]",
                "O[b][d][k] += I[b][d][k] * W[b][d]",
                "O[b][d][k] += I[b][d][k] * W[k]",
            ],
        ),
        ("batch", ["O[b][k][oy][ox] += I[b][k][oy][ox] * W[k]"]),
    ],
)
def test_parts_reuse_statistics_and_weights(name: str, equations: list[str]) -> None:
    """A statistic is an operand without the loops over which it was taken."""
    assert [layer.equation for layer in layers_of(CASES[name])] == equations


def test_parts_have_names_of_their_own() -> None:
    """Each part of an operator is named by the operator's name, a slash and its own name."""
    names = [node.name for node in lower_model(CASES["softmax"].model()).nodes]
    assert names == ["op/max", "op/exp", "op/sum", "op/div"]


def test_scale_and_shift_are_weights() -> None:
    """Scale and shift are constant weights, and the shift costs nothing."""
    *_, last = lower_model(CASES["layer"].model()).nodes
    assert last.layer is not None
    assert last.layer.constant_operands == ("W",)
    assert last.inputs[1:] == ("c0", "c1")


def test_statistics_that_are_computed_are_told() -> None:
    """Computed scale, shift, mean and variance are marked approximated, because folding is free for constants only."""
    case = Case("BatchNormalization", [(2, 4, 2), (4,), (4,), (4,), (4,)], [16])
    assert set(lower_model(case.model()).statuses.values()) == {"approximated"}


def test_training_is_not_modelled() -> None:
    """Batch normalisation in training mode is unsupported, because running statistics are computed, too."""
    case = Case("BatchNormalization", [(2, 4, 2)], [], [CHANNELS] * 4, {"training_mode": 1}, opset=15, outputs=3)
    assert set(lower_model(case.model()).statuses.values()) == {"unsupported"}


def test_dynamic_quantisation_finds_extremes_first() -> None:
    """Dynamic quantisation is two reductions, one operation each for scale and zero point, and one for each element."""
    case = Case("DynamicQuantizeLinear", [(2, 3)], [6, 6, 1, 1, 6], outputs=3, is_exact=True)
    lowered = lower_model(case.model())
    assert [node.layer.mac_count for node in lowered.nodes if node.layer] == case.operations


def test_softmax_before_opset_13_takes_all_axes_from_the_stated_one_on_together() -> None:
    """Softmax before opset 13 takes all axes from the stated one on together: rows of 6 from axis 1.

    The reference evaluator knows only the later meaning.
    """
    layers = layers_of(Case("Softmax", [(2, 3, 2)], [], opset=11))
    assert [layer.equation for layer in layers[:2]] == ["O[b] += I[b][d][k]", "O[b][d][k] += I[b][d][k] * W[b]"]


def test_batch_normalisation_before_opset_14_is_inference_with_one_output() -> None:
    """Batch normalisation with one output before opset 14 is inference; the reference evaluator takes it for
    training.
    """
    (layer,) = layers_of(Case("BatchNormalization", [(2, 4, 2)], [], [CHANNELS] * 4, opset=9))
    assert layer.equation == "O[b][d][k] += I[b][d][k] * W[d]"


def test_neighbouring_channels_are_a_window() -> None:
    """Normalisation over neighbouring channels reads the window d - 1, d and d + 1."""
    first, *_ = lower_model(CASES["neighbouring channels"].model()).nodes
    assert first.layer is not None
    assert [set(dict(relation.terms)) for relation in first.layer.relations] == [{"K", "F"}]
    assert first.index_maps[0].input.axes[1].offset == -1
