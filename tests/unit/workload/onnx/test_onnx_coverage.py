"""The coverage report of a network."""

from collections.abc import Callable

import onnx
import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.results.workload_tables import coverage_text as coverage_table_text
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx import read_onnx

Build = Callable[..., onnx.ModelProto]
node = helper.make_node


def _mixed(build: Build) -> onnx.ModelProto:
    return build(
        [
            node("Conv", ["x", "w"], ["c"], name="flat"),
            node("Relu", ["c"], ["r"], name="relu"),
            node("ConvTranspose", ["r", "t"], ["u"], name="up", strides=[2, 2]),
            node("Conv", ["v", "d"], ["z"], name="deep"),
        ],
        {"x": [1, 2, 4, 4], "v": [1, 2, 4, 4, 4]},
        {"u": [1, 5, 8, 8], "z": [1, 3, 2, 2, 2]},
        {"w": [3, 2, 1, 1], "t": [3, 5, 2, 2], "d": [3, 2, 3, 3, 3]},
        {"c": [1, 3, 4, 4], "r": [1, 3, 4, 4]},
    )


def test_work_that_is_not_costed_is_counted(build: Build) -> None:
    """Operators that multiply but have no layer are unsupported, by name and with their multiply-accumulates."""
    coverage = read_onnx(_mixed(build), REFERENCE).coverage
    rows = {(row.operator_type, row.status): (row.node_count, row.mac_count) for row in coverage.operators}
    assert rows == {
        ("Conv", "modelled"): (1, 96),
        ("Conv", "unsupported"): (1, 3 * 8 * 2 * 27),
        ("ConvTranspose", "unsupported"): (1, 48 * 5 * 4),
        ("Relu", "pass-through"): (1, 0),
    }
    assert coverage.modelled_mac_share == 96 / (96 + 1296 + 960)
    assert not coverage.is_complete
    text = "\n".join(coverage.notices)
    assert "deep" in text
    assert "up" in text


def test_coverage_as_data_and_as_table(build: Build) -> None:
    """The dictionary and the table have equal contents, which do not depend on the run."""
    coverage = read_onnx(_mixed(build), REFERENCE).coverage
    data = coverage.to_dict()
    assert data["mac_count"] == 96 + 1296 + 960
    assert [row["status"] for row in data["operators"]] == ["modelled", "unsupported", "unsupported", "pass-through"]
    table = coverage_table_text(coverage)
    assert all(row["operator_type"] in table for row in data["operators"])
    assert "1,296" in table
    assert table == coverage_table_text(read_onnx(_mixed(build), REFERENCE).coverage)


def test_recurrent_network(build: Build) -> None:
    """The work of an LSTM is counted inside its node: input and hidden weights once for each step."""
    model = build(
        [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=6)],
        {"x": [10, 2, 4]},
        {"y": [10, 1, 2, 6]},
        {"w": [1, 24, 4], "r": [1, 24, 6]},
    )
    work = 10 * 2 * (24 * 4 + 24 * 6)
    for profile, status in ((REFERENCE, "unsupported"), (CORRECTED, "modelled")):
        (row,) = read_onnx(model, profile).coverage.operators
        assert (row.status, row.mac_count) == (status, work)


def test_unknown_operator_is_not_silent(build: Build) -> None:
    """An operator of an unknown domain is unsupported with unknown work; a local function without products is free."""
    model = build([node("Magic", ["x"], ["y"], name="m", domain="com.example")], {"x": [2]}, {"y": [2]})
    (row,) = read_onnx(model, REFERENCE).coverage.operators
    assert (row.operator_type, row.status, row.mac_count) == ("com.example::Magic", "unsupported", None)
    function = helper.make_function("com.example", "Magic", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [])
    model.functions.append(function)
    (row,) = read_onnx(model, REFERENCE).coverage.operators
    assert (row.status, row.mac_count) == ("pass-through", 0)


def test_branches_count(build: Build) -> None:
    """The reference profile counts the larger branch of an If without costing it; the corrected profile needs a
    choice.
    """
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [2, 4])]
    then = helper.make_graph([node("MatMul", ["r", "w"], ["o"])], "then", [], out)
    other = helper.make_graph([node("Relu", ["r"], ["o"])], "else", [], out)
    model = build(
        [node("Relu", ["x"], ["r"]), node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other)],
        {"x": [2, 8], "c": [1]},
        {"y": [2, 4]},
        {"w": [8, 4]},
        {"r": [2, 8]},
    )
    parsed = read_onnx(model, REFERENCE)
    rows = {row.operator_type: (row.status, row.mac_count) for row in parsed.coverage.operators}
    assert rows["If"] == ("unsupported", 64)
    with pytest.raises(InputError, match=r"if: .*branch"):
        read_onnx(model, CORRECTED)
    chosen = {
        branch: read_onnx(model, CORRECTED, options=NetworkOptions(branches=(("if", branch),))).coverage.total_mac_count
        for branch in ("then", "else")
    }
    assert chosen == {"then": 64, "else": 0}


def test_network_without_work(build: Build) -> None:
    """A network without multiplications is complete."""
    coverage = read_onnx(build([node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}), REFERENCE).coverage
    assert coverage.modelled_mac_share == 1.0
    assert coverage.is_complete
