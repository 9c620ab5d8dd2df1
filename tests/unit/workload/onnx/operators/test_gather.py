"""Operators that gather and scatter: their index maps, compared with the reference evaluator."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_node
from tilewright.base.errors import InputError

from tests.unit.workload.onnx.dependency_checks import (
    assert_dependencies,
    build_model,
    lower_model,
    predicted_dependencies,
)

INT64 = TensorProto.INT64

# name: (operator, shapes of inputs by place, constants by place, attributes)
Case = tuple[str, dict[int, tuple[int, ...]], dict[int, Any], dict[str, Any]]
CONSTANT_INDICES: dict[str, Case] = {
    "gather, rows": ("Gather", {0: (5, 3)}, {1: [4, 0, 0, -1]}, {}),
    "gather, axis 1, table of indices": ("Gather", {0: (2, 5, 2)}, {1: [[0, 2, 4], [1, 0, 3]]}, {"axis": 1}),
    "gather, scalar index": ("Gather", {0: (2, 5)}, {1: np.array(3)}, {"axis": -1}),
    "gather elements": ("GatherElements", {0: (2, 4)}, {1: [[0, 3, 3], [-1, 2, 0]]}, {"axis": 1}),
    "gather elements, axis 0": ("GatherElements", {0: (3, 2)}, {1: [[2, 0], [1, 1], [0, 2]]}, {}),
    "gather ND, elements": ("GatherND", {0: (3, 4)}, {1: [[0, 1], [2, 3], [-1, 0]]}, {}),
    "gather ND, slices": ("GatherND", {0: (3, 4, 2)}, {1: [[[2], [0]]]}, {}),
    "gather ND, batch": ("GatherND", {0: (2, 3, 2)}, {1: [[[1]], [[2]]]}, {"batch_dims": 1}),
    "one-hot": ("OneHot", {0: (2, 3)}, {1: np.array(4), 2: [0.0, 1.0]}, {"axis": 1}),
    "reverse sequence": ("ReverseSequence", {0: (4, 3, 2)}, {1: [4, 1, 3]}, {"time_axis": 0, "batch_axis": 1}),
    "reverse sequence, batch first": ("ReverseSequence", {0: (2, 4)}, {1: [2, 4]}, {"time_axis": 1, "batch_axis": 0}),
    "scatter ND": ("ScatterND", {0: (5, 2), 2: (2, 2)}, {1: [[3], [0]]}, {}),
    "scatter ND, elements": ("ScatterND", {0: (3, 4), 2: (2, 2)}, {1: [[[0, 1], [2, 3]], [[1, 0], [-1, -2]]]}, {}),
    "scatter ND, one element": ("ScatterND", {0: (3, 4), 2: ()}, {1: [1, 2]}, {}),
    "scatter ND, repeated place": ("ScatterND", {0: (4,), 2: (3,)}, {1: [[1], [2], [1]]}, {}),
    "scatter ND, sum": ("ScatterND", {0: (4, 2), 2: (3, 2)}, {1: [[1], [2], [1]]}, {"reduction": "add"}),
    "scatter ND, maximum": ("ScatterND", {0: (4,), 2: (3,)}, {1: [[1], [2], [1]]}, {"reduction": "max"}),
    "scatter elements": ("ScatterElements", {0: (3, 4), 2: (2, 2)}, {1: [[0, 3], [2, -1]]}, {"axis": 1}),
    "scatter elements, sum": (
        "ScatterElements", {0: (3, 2), 2: (2, 2)}, {1: [[0, 1], [0, 2]]}, {"reduction": "add"},
    ),
}  # fmt: skip
COMPUTED_INDICES: dict[str, tuple[str, dict[int, tuple[int, ...]], dict[int, Any], dict[str, Any], int]] = {
    "gather": ("Gather", {0: (4, 2), 1: (3,)}, {}, {}, 3),
    "gather, axis 1": ("Gather", {0: (2, 3, 2), 1: (2, 2)}, {}, {"axis": 1}, 2),
    "gather elements": ("GatherElements", {0: (2, 4), 1: (2, 3)}, {}, {"axis": 1}, 3),
    "gather ND": ("GatherND", {0: (3, 3, 2), 1: (2, 2)}, {}, {}, 2),
    "gather ND, batch": ("GatherND", {0: (2, 3, 2), 1: (2, 1)}, {}, {"batch_dims": 1}, 2),
    "one-hot": ("OneHot", {0: (2, 2)}, {1: np.array(4), 2: [0.0, 1.0]}, {}, 3),
    "reverse sequence": ("ReverseSequence", {0: (4, 2), 1: (2,)}, {}, {"time_axis": 0, "batch_axis": 1}, 4),
    "scatter ND": ("ScatterND", {0: (4, 2), 1: (2, 1), 2: (2, 2)}, {}, {}, 3),
    "scatter elements": ("ScatterElements", {0: (3, 4), 1: (2, 2), 2: (2, 2)}, {}, {"axis": 1}, 3),
}


def model_of(case: Case, opset: int = 18, **changes: Any) -> Any:
    """The model of a table row."""
    operator, shapes, constants, attributes = case
    names = [f"x{place}" for place in range(len(shapes) + len(constants))]
    given = {names[place]: shape for place, shape in shapes.items()}
    values = {names[place]: np.asarray(value) for place, value in constants.items()}
    return build_model([make_node(operator, names, ["y"], **attributes)], given, values, opset=opset, **changes)


@pytest.mark.parametrize("name", CONSTANT_INDICES)
def test_constant_indices_give_exact_dependencies(name: str) -> None:
    """Every output element depends exactly on the element that its constant index names."""
    case = CONSTANT_INDICES[name]
    kinds = {"x0": INT64} if case[0] == "OneHot" else {}
    predicted = assert_dependencies(model_of(case, kinds=kinds), {"x0": (0, 3)} if kinds else None, must_be_exact=True)
    assert set(predicted.lowered.statuses.values()) == {"pass-through"}


@pytest.mark.parametrize("name", COMPUTED_INDICES)
def test_computed_indices_give_a_superset_that_says_so(name: str) -> None:
    """Every element that a computed index may name is a dependency, and so are the indices."""
    *case, highest = COMPUTED_INDICES[name]
    index = 0 if case[0] == "OneHot" else 1
    low = 1 if case[0] == "ReverseSequence" else 0
    model = model_of(tuple(case), kinds={f"x{index}": INT64})  # type: ignore[arg-type]
    predicted = assert_dependencies(model, {f"x{index}": (low, highest)})
    assert predicted.tables["y", f"x{index}"].any()
    expected = "pass-through" if case[0] == "OneHot" else "approximated"
    assert set(predicted.lowered.statuses.values()) == {expected}
    assert (expected == "pass-through") == predicted.is_exact


def test_computed_indices_reach_all_of_the_gathered_axis_and_nothing_else() -> None:
    """Column j of the output depends, with computed indices, on all rows of column j of the data and on no other
    column.
    """
    predicted = assert_dependencies(model_of(("Gather", {0: (4, 2), 1: (3,)}, {}, {}), kinds={"x1": INT64}))
    expected = np.tile(np.tile(np.eye(2, dtype=bool), (1, 4)), (3, 1))
    assert (predicted.tables["y", "x0"] == expected).all()


def test_computed_indices_into_an_axis_of_one_element_do_not_matter() -> None:
    """Computed indices into an axis of one element do not matter."""
    model = model_of(("Gather", {0: (2, 1), 1: (3,)}, {}, {"axis": 1}), kinds={"x1": INT64})
    predicted = assert_dependencies(model, {"x1": (0, 0)}, must_be_exact=True)
    assert not predicted.tables["y", "x1"].any()


def test_equal_steps_are_one_piece() -> None:
    """Indices 0, 2, 4, ... need one map, for any number of them."""
    model = model_of(("Gather", {0: (2, 1000)}, {1: np.arange(0, 1000, 2)}, {"axis": 1}))
    (index_map,) = lower_model(model).index_maps
    assert [coefficient for _, coefficient in index_map.input.axes[1].terms] == [2]


def test_indices_without_a_pattern_are_a_superset_beyond_a_limit() -> None:
    """Ten thousand random rows give one map, which is a superset."""
    indices = np.random.default_rng(0).integers(0, 1000, 10_000)
    lowered = lower_model(model_of(("Gather", {0: (1000, 2)}, {1: indices}, {})))
    assert [index_map.is_exact for index_map in lowered.index_maps] == [False]
    assert "can depend on the whole axis" in lowered.remarks[0]


def test_compress_by_a_constant_condition_is_exact() -> None:
    """Columns 0 and 3 of the input are columns 0 and 1 of the output, by a constant condition."""
    model = model_of(("Compress", {0: (2, 5)}, {1: np.array([True, False, False, True])}, {"axis": 1}))
    predicted = predicted_dependencies(model, {"y[1]": 2})
    assert predicted.is_exact
    assert np.argwhere(predicted.tables["y", "x0"]).tolist() == [[0, 0], [1, 3], [2, 5], [3, 8]]


def test_compress_by_a_computed_condition_is_a_superset() -> None:
    """Every output element may depend on every input element if the condition is computed."""
    model = model_of(("Compress", {0: (2, 3), 1: (3,)}, {}, {"axis": 1}), kinds={"x1": TensorProto.BOOL})
    predicted = predicted_dependencies(model, {"y[1]": 2})
    assert not predicted.is_exact
    assert all(table.all() for table in predicted.tables.values())


@pytest.mark.parametrize("index", [5, -6])
def test_indices_outside_the_axis_are_an_error(index: int) -> None:
    """An index outside of the axis raises InputError, with the found and the allowed values."""
    with pytest.raises(InputError, match="an axis"):
        lower_model(model_of(("Gather", {0: (5, 3)}, {1: [0, index]}, {})))


@pytest.mark.parametrize(
    ("attributes", "columns"),
    [({}, (12, 4)), ({"strides": [2, 2], "pads": [0, 1, 1, 0]}, (12, 4)), ({"dilations": [2, 1]}, (12, 2))],
)
def test_columns_become_an_image_by_one_addition_each(attributes: dict[str, Any], columns: tuple[int, int]) -> None:
    """Columns become an image by one addition each: 2 x 2 blocks over a 3 x 3 image."""
    image, block = ([3, 3], [2, 2])
    node = make_node("Col2Im", ["x", "image", "block"], ["y"], **attributes)
    model = build_model([node], {"x": (1, *columns)}, {"image": image, "block": block}, opset=18)
    predicted = assert_dependencies(model)
    (part,) = predicted.lowered.nodes
    assert part.layer is not None
    assert part.layer.mac_count == columns[0] * columns[1]
