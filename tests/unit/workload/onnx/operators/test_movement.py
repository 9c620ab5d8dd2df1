"""Operators that move data along axes: their index maps, compared with the reference evaluator."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, defs
from onnx.helper import make_node
from tilewright.base.errors import InputError

from tests.unit.workload.onnx.dependency_checks import (
    assert_dependencies,
    build_model,
    lower_model,
    predicted_dependencies,
)

NEWEST = defs.onnx_opset_version()
LARGEST = np.iinfo(np.int64).max
SMALLEST = np.iinfo(np.int64).min

# name: (operator, input shapes, constants for the further inputs, attributes, opset)
Case = tuple[str, list[tuple[int, ...]], list[Any], dict[str, Any], int]
CASES: dict[str, Case] = {
    "reshape, split axis": ("Reshape", [(2, 6)], [[2, 3, 2]], {}, 20),
    "reshape, minus one": ("Reshape", [(2, 3, 4)], [[-1, 4]], {}, 13),
    "reshape, zero copies": ("Reshape", [(2, 3, 4)], [[0, -1]], {}, 5),
    "reshape, axes that do not fit": ("Reshape", [(4, 6)], [[6, 4]], {}, 20),
    "reshape, axes that do not fit inside others": ("Reshape", [(2, 3, 5, 2)], [[2, 5, 3, 2]], {}, 20),
    "reshape, size 1 axes": ("Reshape", [(1, 6, 1, 2)], [[3, 1, 4]], {}, 20),
    "reshape, scalar": ("Reshape", [(1, 1)], [np.zeros(0, np.int64)], {}, 20),
    "flatten": ("Flatten", [(2, 3, 4)], [], {"axis": 2}, 13),
    "flatten, negative axis": ("Flatten", [(2, 3, 4)], [], {"axis": -2}, 13),
    "flatten, axis 0": ("Flatten", [(2, 3)], [], {"axis": 0}, 9),
    "squeeze, attribute": ("Squeeze", [(1, 3, 1, 2)], [], {"axes": [0, 2]}, 11),
    "squeeze, input": ("Squeeze", [(1, 3, 1, 2)], [[-2]], {}, 13),
    "squeeze, all": ("Squeeze", [(1, 3, 1, 2)], [], {}, 13),
    "unsqueeze, attribute": ("Unsqueeze", [(3, 2)], [], {"axes": [0, 3]}, 11),
    "unsqueeze, input": ("Unsqueeze", [(3, 2)], [[-1, 1]], {}, 13),
    "transpose, reversed": ("Transpose", [(2, 3, 4)], [], {}, 13),
    "transpose, cycle": ("Transpose", [(2, 3, 4)], [], {"perm": [1, 2, 0]}, 13),
    "concat": ("Concat", [(2, 3, 2), (2, 1, 2), (2, 4, 2)], [], {"axis": 1}, 13),
    "concat, negative axis": ("Concat", [(2, 3), (2, 1)], [], {"axis": -1}, 13),
    "concat, default axis": ("Concat", [(2, 3), (2, 1)], [], {"axis": 1}, 3 + 4),
    "slice, attributes": ("Slice", [(4, 5)], [], {"starts": [1, -3], "ends": [1000, -1], "axes": [0, 1]}, 9),
    "slice, inputs": ("Slice", [(4, 5)], [[1], [4], [1]], {}, 13),
    "slice, negative step": ("Slice", [(7,)], [[-1], [SMALLEST], [0], [-2]], {}, 13),
    "slice, negative step to an end": ("Slice", [(7, 2)], [[5], [-6], [-2], [-1]], {}, 13),
    "slice, far ends": ("Slice", [(7, 3)], [[-1000, 1], [LARGEST, LARGEST], [0, 1], [3, 1]], {}, 13),
    "pad, constant": ("Pad", [(2, 3)], [[1, 0, 0, 2]], {}, 13),
    "pad, attribute": ("Pad", [(2, 3)], [], {"pads": [0, 2, 1, 0]}, 10),
    "pad, axes": ("Pad", [(2, 3, 2)], [[1, 2], 0.0, [-2]], {}, 18),
    "pad, reflect": ("Pad", [(2, 4)], [[0, 3, 0, 2]], {"mode": "reflect"}, 13),
    "pad, reflect both axes": ("Pad", [(3, 4)], [[1, 1, 2, 3]], {"mode": "reflect"}, 13),
    "pad, edge": ("Pad", [(2, 4)], [[1, 3, 0, 2]], {"mode": "edge"}, 13),
    "pad, wrap": ("Pad", [(2, 3)], [[0, 5, 1, 4]], {"mode": "wrap"}, 19),
    "expand": ("Expand", [(3, 1)], [[2, 1, 4]], {}, 13),
    "expand, scalar": ("Expand", [()], [[2, 3]], {}, 13),
    "expand, smaller target": ("Expand", [(3, 2)], [[1]], {}, 13),
    "tile": ("Tile", [(2, 3)], [[2, 3]], {}, 13),
    "depth to space, DCR": ("DepthToSpace", [(1, 8, 2, 3)], [], {"blocksize": 2}, 13),
    "depth to space, CRD": ("DepthToSpace", [(1, 8, 2, 2)], [], {"blocksize": 2, "mode": "CRD"}, 13),
    "space to depth": ("SpaceToDepth", [(2, 2, 4, 2)], [], {"blocksize": 2}, 13),
    "space to depth, CRD": ("SpaceToDepth", [(1, 2, 4, 2)], [], {"blocksize": 2, "mode": "CRD"}, NEWEST),
    "center crop pad": ("CenterCropPad", [(5, 4, 2)], [[2, 7, 2]], {}, 18),
    "center crop pad, axes": ("CenterCropPad", [(5, 4)], [[7]], {"axes": [0]}, 18),
}


@pytest.mark.parametrize("name", CASES)
def test_index_maps_are_exactly_what_experiments_show(name: str) -> None:
    """Every output element depends on exactly the input elements that change it."""
    operator, shapes, values, attributes, opset = CASES[name]
    inputs = {f"x{number}": shape for number, shape in enumerate(shapes)}
    constants = {f"c{number}": value for number, value in enumerate(values)}
    node = make_node(operator, [*inputs, *constants], ["y"], **attributes)
    predicted = assert_dependencies(build_model([node], inputs, constants, opset=opset), must_be_exact=True)
    assert set(predicted.lowered.statuses.values()) == {"pass-through"}
    assert all(lowered.layer is None for lowered in predicted.lowered.nodes)


@pytest.mark.parametrize(
    ("sizes", "values", "attributes", "opset"),
    [
        ((3, 3), None, {}, 13),
        ((1, 3, 2), [1, 3, 2], {}, 13),
        ((1, 3, 2), None, {"split": [1, 3, 2]}, 11),
        ((3, 3), None, {"num_outputs": 2}, 18),
        ((2, 2, 2), None, {"num_outputs": 3}, 18),
    ],
)
def test_split_takes_each_output_from_its_exact_offset(
    sizes: tuple[int, ...], values: list[int] | None, attributes: dict[str, Any], opset: int
) -> None:
    """Split takes each output from its offset: for equal parts, for given sizes, and for a given number of outputs."""
    outputs = [f"y{number}" for number in range(len(sizes))]
    constants = {} if values is None else {"split": values}
    node = make_node("Split", ["x", *constants], outputs, axis=1, **attributes)
    assert_dependencies(build_model([node], {"x": (2, 6, 2)}, constants, opset=opset), must_be_exact=True)


def test_uneven_split_into_a_number_of_outputs_has_a_smaller_last_one() -> None:
    """7 elements in 3 outputs are split into 3, 3 and 1."""
    node = make_node("Split", ["x"], ["a", "b", "c"], axis=0, num_outputs=3)
    assert_dependencies(build_model([node], {"x": (7, 2)}, opset=18), must_be_exact=True)


def test_concatenated_channels_have_their_exact_offsets() -> None:
    """Each concatenated input has one map, at its offset along the axis."""
    node = make_node("Concat", ["a", "b"], ["y"], axis=1)
    maps = lower_model(build_model([node], {"a": (1, 3, 2), "b": (1, 4, 2)})).index_maps
    assert [index_map.output.axes[1].offset for index_map in maps] == [0, 3]
    assert [index_map.input.tensor for index_map in maps] == ["a", "b"]


def test_reshape_between_factors_is_one_map() -> None:
    """A reshape that splits heads off the hidden size is one map."""
    node = make_node("Reshape", ["x", "shape"], ["y"])
    model = build_model([node], {"x": (1, 197, 768)}, {"shape": [1, 197, 12, 64]})
    assert len(lower_model(model).index_maps) == 1


def test_reshape_without_a_short_exact_form_is_a_superset_that_says_so() -> None:
    """A reshape of 4096 x 4095 to 4095 x 4096 would need thousands of pieces, so its map is a superset."""
    node = make_node("Reshape", ["x", "shape"], ["y"])
    model = build_model([node], {"x": (4096, 4095)}, {"shape": [4095, 4096]})
    assert [index_map.is_exact for index_map in lower_model(model).index_maps] == [False]


def test_negative_padding_crops() -> None:
    """Negative padding crops: output row 0 is input row 1, and output column 0 is padding.

    The reference evaluator has no negative padding.
    """
    model = build_model([make_node("Pad", ["x", "pads"], ["y"])], {"x": (4, 5)}, {"pads": [-1, 1, -1, -2]})
    expected = np.pad(np.arange(20).reshape(4, 5), ((0, 0), (1, 0)), constant_values=-1)[1:3, :-2]
    table = predicted_dependencies(model).tables["y", "x"]
    assert (table == (expected.reshape(-1, 1) == np.arange(20))).all()


def test_padding_value_of_the_run_time_is_a_dependency() -> None:
    """The output depends on a computed padding value."""
    node = make_node("Pad", ["x", "pads", "value"], ["y"])
    predicted = assert_dependencies(build_model([node], {"x": (3,), "value": ()}, {"pads": [1, 1]}))
    assert predicted.tables["y", "value"].all()


def test_operators_that_read_only_shapes_depend_on_no_element() -> None:
    """EyeLike reads only the shape of its input, so it depends on no element."""
    predicted = predicted_dependencies(build_model([make_node("EyeLike", ["x"], ["y"])], {"x": (3, 3)}))
    assert not predicted.tables["y", "x"].any()
    assert [node.outputs for node in predicted.lowered.nodes] in ([], [("y",)])


@pytest.mark.parametrize("number", [0, 1])
def test_slice_bounds_of_the_run_time_give_a_superset(number: int) -> None:
    """The maps of a slice contain all possible dependencies if its bounds are known at run time only."""
    inputs = {"x": (4, 2), "starts": (1,), "ends": (1,)}
    constants = {} if number == 0 else {"starts": [1]}
    given = {name: shape for name, shape in inputs.items() if name not in constants}
    node = make_node("Slice", ["x", "starts", "ends"], ["y"])
    model = build_model([node], given, constants, kinds={"starts": TensorProto.INT64, "ends": TensorProto.INT64})
    predicted = predicted_dependencies(model, {"y[0]": 2, "y[1]": 2})
    assert not predicted.is_exact
    assert predicted.tables["y", "x"].all()


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (make_node("Transpose", ["x"], ["y"], perm=[0, 0]), "perm"),
        (make_node("Slice", ["x", "zero", "zero", "zero", "zero"], ["y"]), "step"),
        (make_node("Pad", ["x", "zero"], ["y"]), "Pads"),
        (make_node("DepthToSpace", ["x"], ["y"], blocksize=2), "4-dimensional"),
    ],
)
def test_wrong_attributes_are_errors_that_name_the_node(node: Any, words: str) -> None:
    """A wrong attribute raises InputError, which names the node and the attribute."""
    from onnx import helper

    node.name = "wrong"
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in ("x", "y")]
    constant = helper.make_tensor("zero", TensorProto.INT64, [1], [0])
    graph = helper.make_graph([node], "test", given[:1], given[1:], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    with pytest.raises(InputError) as caught:
        predicted_dependencies(model)
    assert "wrong" in str(caught.value)
    assert words in str(caught.value)
