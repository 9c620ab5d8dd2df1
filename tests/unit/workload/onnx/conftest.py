"""Small ONNX models for the parser's tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

ROOT = Path(__file__).parents[4]
Sizes = Sequence[int | str]
ModelFactory = Callable[..., onnx.ModelProto]


def _build(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sizes],
    outputs: Mapping[str, Sizes | None],
    weights: Mapping[str, Sequence[int]] | None = None,
    inner: Mapping[str, Sizes] | None = None,
) -> onnx.ModelProto:
    """A model of these nodes. `weights` have shapes only; `inner` are the stored shapes of intermediate tensors."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        value_info=[
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (inner or {}).items()
        ],
    )
    for name, shape in (weights or {}).items():
        tensor = graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="absent.bin")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.fixture
def build() -> ModelFactory:
    """The function that builds a model."""
    return _build


@pytest.fixture
def shared() -> Path:
    """The folder with reference material beside the repository; tests are skipped if it is absent."""
    folder = ROOT.parent / "shared"
    if not (folder / "models").is_dir():
        pytest.skip("reference material ../shared is not here")
    return folder
