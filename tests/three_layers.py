"""A network of three layers for tests of files and runs."""

from pathlib import Path

from onnx import NodeProto, TensorProto, helper

RELU = helper.make_node("Relu", ["c"], ["r"], name="relu")


def write_network(path: Path, middle: NodeProto = RELU, side: int = 6, side_behind: int = 6) -> None:
    """Write Conv -> Relu -> Conv, with some weights that do not fit a small memory.

    `middle` can be another node that reads c; the images before and behind it have sides of their own.
    """
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["c"], name="first", pads=[1, 1, 1, 1]),
        middle,
        helper.make_node("Conv", [middle.output[0], "w"], ["y"], name="second"),
    ]
    weights = [
        helper.make_tensor("v", TensorProto.FLOAT, [8, 4, 3, 3], [0.0] * 288),
        helper.make_tensor("w", TensorProto.FLOAT, [4, 8, 1, 1], [0.0] * 32),
    ]
    shapes = [1, 4, side, side], [1, 4, side_behind, side_behind]
    ends = [info("x", TensorProto.FLOAT, shapes[0])], [info("y", TensorProto.FLOAT, shapes[1])]
    graph = helper.make_graph(nodes, "net", *ends, weights)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
