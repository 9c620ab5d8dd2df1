"""Lowering of ONNX operators, one module per family. Importing this package registers all of them."""

from importlib import import_module

_FAMILIES = (
    "convolution",
    "convolution_transposed",
    "matrix",
    "matrix_microsoft",
    "einsum",
    "recurrent",
    "attention",
    "attention_microsoft",
    "pooling",
    "elementwise",
    "elementwise_quantised",
    "normalization",
    "reduction",
    "resize",
    "movement",
    "gather",
    "embedding_microsoft",
    "experts",
    "not_modelled",
)


def register_operators() -> None:
    """Import every family, which registers its operators."""
    for family in _FAMILIES:
        import_module(f"{__name__}.{family}")
