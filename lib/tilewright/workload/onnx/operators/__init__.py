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
    "attention_rotary",
    "attention_microsoft",
    "pooling",
    "elementwise",
    "elementwise_quantised",
    "normalization",
    "normalization_statistics",
    "reduction",
    "resize",
    "resize_sampling",
    "movement",
    "movement_cuts",
    "gather",
    "gather_scatter",
    "embedding_microsoft",
    "experts",
    "not_modelled",
)


def register_operators() -> None:
    """Import every family, which registers its operators."""
    for family in _FAMILIES:
        import_module(f"{__name__}.{family}")
