"""A network of three layers for tests that look at what follows from its file."""

from pathlib import Path

from onnx import TensorProto, helper


def write_network(path: Path) -> None:
    """Conv -> Relu -> Conv, with weights of which some do not fit a small memory."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w"], ["y"], name="second"),
    ]
    weights = [
        helper.make_tensor("v", TensorProto.FLOAT, [8, 4, 3, 3], [0.0] * 288),
        helper.make_tensor("w", TensorProto.FLOAT, [4, 8, 1, 1], [0.0] * 32),
    ]
    ends = [info("x", TensorProto.FLOAT, [1, 4, 6, 6])], [info("y", TensorProto.FLOAT, [1, 4, 6, 6])]
    graph = helper.make_graph(nodes, "net", *ends, weights)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
