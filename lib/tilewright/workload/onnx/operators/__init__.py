"""Lowering of ONNX operators, with one module per family; `register_operators` registers the operators of all
families.
"""

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
    """Import every module of an operator family, and every module of a plug-in. Each module registers its operators
    when it is imported."""
    from tilewright.workload.onnx.lowering import OPERATORS

    for family in _FAMILIES:
        import_module(family)
    for name in OPERATORS.names:
        OPERATORS[name]
