"""Reductions and choices along an axis: operations, loops and dependencies."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_tensor_value_info

from tests.unit.workload.onnx.dependency_checks import lower_model
from tests.unit.workload.onnx.operators.vector_cases import Case, check_case, check_layers, layers_of

KINDS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"]
POSITIVE = {"x0": (0.5, 3.0)}


def _reduce(operator: str, operations: list[int], *constants: Any, opset: int = 18, **attributes: Any) -> Case:
    return Case(operator, [(2, 3, 4)], operations, list(constants), attributes, opset=opset)


CASES: dict[str, Case] = {
    **{kind: _reduce(kind, [24], [1]) for kind in KINDS},
    "root of a sum": _reduce("ReduceL2", [24, 8], [1]),
    "logarithm of a sum": Case("ReduceLogSum", [(2, 3, 4)], [24, 8], [[1]], opset=18, ranges=POSITIVE),
    "logarithm of exponentials": _reduce("ReduceLogSumExp", [24, 24, 8], [1]),
    "all axes": _reduce("ReduceSum", [24]),
    "all axes, none kept": _reduce("ReduceSum", [24], keepdims=0),
    "two axes": _reduce("ReduceMean", [24], [0, -1]),
    "two axes, none kept": _reduce("ReduceMean", [24], [-1, 0], keepdims=0),
    "axes as attribute": _reduce("ReduceMean", [24], axes=[1, 2], opset=13),
    "axes as attribute, none kept": _reduce("ReduceMax", [24], axes=[-2], keepdims=0, opset=11),
    "no axes, nothing to do": _reduce("ReduceSum", [], np.zeros(0, np.int64), noop_with_empty_axes=1),
    "no axes, all": _reduce("ReduceSum", [24], np.zeros(0, np.int64)),
    "place of the largest": _reduce("ArgMax", [24], axis=1),
    "place of the smallest, not kept": _reduce("ArgMin", [24], axis=-1, keepdims=0),
    "largest ones": Case("TopK", [(2, 5)], [2 * 3 * 5], [[3]], outputs=2),
}


@pytest.mark.parametrize("name", CASES)
def test_reductions_do_one_operation_for_every_element(name: str) -> None:
    """Operations, layers, and dependencies by experiment are right."""
    check_case(CASES[name])


@pytest.mark.parametrize(
    ("case", "equation"),
    [
        (_reduce("ReduceSum", [], [1]), "O[b][k] += I[b][d][k]"),
        (_reduce("ReduceSum", [], [1], keepdims=0), "O[b][k] += I[b][d][k]"),
        (_reduce("ReduceSum", []), "O += I[b][d][k]"),
        (_reduce("ArgMax", [], axis=2), "O[b][d] += I[b][d][k]"),
    ],
)
def test_the_output_lacks_the_loops_that_are_reduced(case: Case, equation: str) -> None:
    """The output lacks the reduced loops; axes of size 1 have no loops."""
    assert [layer.equation for layer in layers_of(case)] == [equation]


def test_top_k_says_that_its_operations_are_an_estimate() -> None:
    """The operations of TopK are marked approximated, because there are better ways than comparing all pairs."""
    assert set(lower_model(CASES["largest ones"].model()).statuses.values()) == {"approximated"}


def test_what_depends_on_values_is_not_modelled() -> None:
    """NonZero is unsupported, because the number of its results is known at run time only."""
    case = Case("NonZero", [(2, 3)], [])
    lowered = lower_model(case.model(), {"y0[1]": 4})
    check_layers(case, lowered.nodes)
    assert set(lowered.statuses.values()) == {"unsupported"}


def test_axes_of_the_run_time_are_a_superset_that_says_so() -> None:
    """Dependencies are a superset if axes are known at run time only, but operations are known."""
    case = Case("ReduceSum", [(2, 3), (1,)], [6], kinds={"x1": TensorProto.INT64}, ranges={"x1": (0, 1)}, opset=13)
    model = case.model()
    model.graph.output[0].CopyFrom(make_tensor_value_info("y0", TensorProto.FLOAT, (1, 3)))
    lowered = lower_model(model, {"y0[0]": 1, "y0[1]": 3})
    check_layers(case, lowered.nodes)
    assert set(lowered.statuses.values()) == {"approximated"}
    assert {index_map.is_exact for index_map in lowered.index_maps} == {True, False}
