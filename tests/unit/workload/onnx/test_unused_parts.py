"""Attributes that an operator does not have are reported with the nearest name; known ones are not."""

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError, Unused
from tilewright.base.profile import profile_by_name
from tilewright.pipeline.sources import parse_workload
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.lowering import registered_operators
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.unused_parts import known_attributes, unused_of_model


def model(*nodes: onnx.NodeProto, domain: str = "", functions: Any = ()) -> onnx.ModelProto:
    """A network of nodes that lead from x to y."""
    info = helper.make_tensor_value_info
    ends = [info("x", TensorProto.FLOAT, [1, 4, 6, 6])], [info("y", TensorProto.FLOAT, None)]
    opsets = [helper.make_opsetid(domain, 17), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("mine", 1)]
    return helper.make_model(
        helper.make_graph(list(nodes), "g", *ends), opset_imports=opsets, functions=list(functions)
    )


def told(*nodes: onnx.NodeProto, **others: Any) -> list[str]:
    """The notices for a network of these nodes."""
    return list(map(str, unused_of_model(model(*nodes, **others))))


def test_misspelt_attribute_is_told_with_the_nearest() -> None:
    """A misspelt attribute gives one notice for all nodes that have it; defined attributes and given bits give none."""
    pools = [
        helper.make_node("MaxPool", ["x"], ["y"], name=name, kernel_shape=[2, 2], stride=[2, 2], act_size=4)
        for name in ("first", "second", "third")
    ]
    assert told(*pools) == [
        "first.stride: has no effect: MaxPool has no such attribute, here and in 2 more operators "
        "(did you mean 'strides'?)"
    ]


def test_attributes_in_graphs_and_functions_are_looked_at() -> None:
    """Attributes inside nested graphs and functions are checked.

    The attributes of a call are compared with those that its function declares.
    """
    inner = helper.make_node("Relu", ["x"], ["y"], name="inner", slope=0.1)
    branch = helper.make_graph([inner], "branch", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    choice = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=branch, else_branch=branch)
    assert told(choice) == ["inner.slope: has no effect: Relu has no such attribute, here and in 1 more operator"]
    body = [helper.make_node("Relu", ["a"], ["b"], name="body", slope=0.1)]
    function = helper.make_function("mine", "Act", ["a"], ["b"], body, [helper.make_opsetid("", 17)], ["gain"])
    call = helper.make_node("Act", ["x"], ["y"], name="call", domain="mine", gain=1, gian=2)
    assert told(call, functions=[function]) == [
        "call.gian: has no effect: Act has no such attribute",
        "body.slope: has no effect: Relu has no such attribute",
    ]


def test_operators_of_onnxruntime_have_attributes_of_their_own() -> None:
    """Attributes from onnxruntime's document are known; an unknown operator has no notice, because the coverage reports
    it.
    """
    product = helper.make_node("FusedMatMul", ["x", "x"], ["y"], name="p", domain="com.microsoft", transB=1, trnsA=1)
    assert told(product) == ["p.trnsA: has no effect: FusedMatMul has no such attribute (did you mean 'transA'?)"]
    assert told(helper.make_node("Anything", ["x"], ["y"], domain="com.microsoft", whatever=1)) == []


def test_every_operator_that_is_read_has_known_attributes() -> None:
    """Every operator outside of the standard that can be read has a list of known attributes."""
    register_operators()
    others = [key for key in registered_operators() if key[0] not in ("", "ai.onnx.ml", "ai.onnx.preview.training")]
    assert [key for key in others if known_attributes(key[1], key[0], 1) is None] == []


def test_attribute_that_is_given_twice_is_refused() -> None:
    """An attribute that is given twice is refused, because readers differ in the value they take."""
    pool = helper.make_node("MaxPool", ["x"], ["y"], name="pool", kernel_shape=[2, 2])
    pool.attribute.append(helper.make_attribute("kernel_shape", [3, 3]))
    with pytest.raises(InputError, match=r"pool\.kernel_shape: is given twice"):
        told(pool)


def test_operator_set_of_no_use_is_told_where_the_standard_one_is_missing() -> None:
    """Unused operator sets of a file get no notice, unless the set of a used operator is missing."""
    relu = helper.make_node("Relu", ["x"], ["y"])
    assert told(relu) == []
    assert [text.partition(":")[0] for text in told(relu, domain="ai.onn")] == [
        "opset_import.ai.onn",
        "opset_import.com.microsoft",
        "opset_import.mine",
    ]


@pytest.mark.parametrize("name", ["zigzag-3.9.1", "corrected"])
def test_readers_tell_it(name: str) -> None:
    """The coverage under both profiles, and the notices of a read workload, name the attribute."""
    given = model(helper.make_node("Relu", ["x"], ["y"], name="relu", slope=0.1))
    coverage = read_onnx(given, profile_by_name(name)).coverage
    assert [type(notice) for notice in coverage.notices if "slope" in notice] == [Unused]
    notices: list[str] = []
    parse_workload(given, name, notices=notices)
    assert notices == ["relu.slope: has no effect: Relu has no such attribute"]
