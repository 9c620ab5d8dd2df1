"""Lowering of ONNX operators, one module per family; importing the package registers all of them."""

from importlib import import_module

_FAMILIES = (
    "tilewright.workload.onnx.operators.convolution",
    "tilewright.workload.onnx.operators.convolution_transposed",
    "tilewright.workload.onnx.operators.matrix",
    "tilewright.workload.onnx.operators.einsum",
    "tilewright.workload.onnx.operators.recurrent",
    "tilewright.workload.onnx.operators.attention",
    "tilewright.workload.onnx.operators.attention_microsoft",
    "tilewright.workload.onnx.operators.pooling",
    "tilewright.workload.onnx.operators.elementwise",
    "tilewright.workload.onnx.operators.elementwise_quantised",
    "tilewright.workload.onnx.operators.softmax",
    "tilewright.workload.onnx.operators.normalization",
    "tilewright.workload.onnx.operators.reduction",
    "tilewright.workload.onnx.operators.resize",
    "tilewright.workload.onnx.operators.movement",
    "tilewright.workload.onnx.operators.gather",
    "tilewright.workload.onnx.operators.embedding_microsoft",
    "tilewright.workload.onnx.operators.experts",
    "tilewright.workload.onnx.operators.not_modelled",
)


def register_operators() -> None:
    """Import every family, and the modules of plug-ins, which registers their operators."""
    from tilewright.workload.onnx.lowering import OPERATORS

    for family in _FAMILIES:
        import_module(family)
    for name in OPERATORS.names:
        OPERATORS[name]
