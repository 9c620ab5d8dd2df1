"""Small networks for the tests of CN graphs, as ONNX models."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx.helper import make_node
from tilewright.multicore.nodes.graph import CnGraph, Integers
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload

from tests.unit.workload.onnx.dependency_checks import build_model

IMAGE = (1, 4, 6, 6)


def read(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, ...]] | None = None,
    constants: dict[str, tuple[int, ...] | list[int]] | None = None,
) -> Workload:
    """The network of nodes. A constant is given as a tuple (the shape of floats) or as a list (values of integers)."""
    values = {
        name: np.ones(given, np.float32) if isinstance(given, tuple) else np.array(given, np.int64)
        for name, given in (constants or {}).items()
    }
    return parse_workload(build_model(nodes, inputs or {"x": IMAGE}, values), "corrected")


def conv(source: str, weight: str, output: str, **attributes: object) -> onnx.NodeProto:
    """A 2-D convolution, named like its output."""
    return make_node("Conv", [source, weight], [output], name=output, **attributes)


SAME = {"pads": [1, 1, 1, 1]}


def two_convolutions(side: int = 6) -> Workload:
    """3x3 convolutions a and b, 4 to 8 to 4 channels."""
    nodes = [conv("x", "w0", "a", **SAME), conv("a", "w1", "b", **SAME)]
    return read(nodes, {"x": (1, 4, side, side)}, {"w0": (8, 4, 3, 3), "w1": (4, 8, 3, 3)})


def content_box(graph: CnGraph, content: int) -> Integers:
    """Bounding box [axes, 2] of a content of a source tensor."""
    return graph.content_bounds[graph.content_start[content] : graph.content_start[content + 1]]


def cn_name(graph: CnGraph, cn: int) -> str:
    """The number of the layer and the number of the CN in the layer, as in `0.2`."""
    layer = int(graph.cn_layer[cn])
    return f"{layer}.{cn - graph.layers[layer].first_cn}"
