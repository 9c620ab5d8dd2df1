"""Operators for the tests of layer splitting."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.helper import make_node

Shapes = dict[str, tuple[int, ...]]


def random_values(shape: tuple[int, ...], kind: type = np.float32) -> Any:
    """Random values that differ in every channel."""
    generator = np.random.default_rng(len(shape) * 1000 + sum(shape))
    if np.dtype(kind).kind in "ui":
        return generator.integers(1, 9, shape).astype(kind)
    return generator.standard_normal(shape).astype(kind)


Case = tuple[Sequence[onnx.NodeProto], Shapes, dict[str, Any], int, int]
"""Operators, inputs, constants, bits of the memory, parts."""
SAME = {"pads": [1, 1, 1, 1]}
IMAGE = {"x": (1, 4, 5, 5)}


def conv(*inputs: str, **attributes: Any) -> list[onnx.NodeProto]:
    """A convolution called c."""
    return [make_node("Conv", list(inputs), ["y"], name="c", **attributes)]


W = random_values
CASES: dict[str, Case] = {
    # 288 bits for a channel of 4 x 3 x 3 weights of 8 bits.
    "conv with bias": (conv("x", "w", "b", **SAME), IMAGE, {"w": W((10, 4, 3, 3)), "b": W((10,))}, 900, 4),
    "conv without bias": (conv("x", "w", strides=[2, 2]), IMAGE, {"w": W((10, 4, 3, 3))}, 288, 10),
    "conv over one axis": (conv("x", "w", "b"), {"x": (2, 4, 9)}, {"w": W((6, 4, 3)), "b": W((6,))}, 300, 2),
    # 4 groups of 3 channels of 2 x 9 weights, 432 bits a group: 2 groups fit.
    "groups": (conv("x", "w", "b", group=4), {"x": (1, 8, 5, 5)}, {"w": W((12, 2, 3, 3)), "b": W((12,))}, 900, 2),
    # Three of five groups fit: 3 and 2.
    "uneven groups": (conv("x", "w", group=5), {"x": (1, 10, 5, 5)}, {"w": W((15, 2, 3, 3))}, 1300, 2),
    # Two channels of a group fit: 2 and 1 of each of the 4 groups.
    "pieces of groups": (
        conv("x", "w", "b", group=4), {"x": (1, 8, 5, 5)}, {"w": W((12, 2, 3, 3)), "b": W((12,))}, 300, 8,
    ),
    "depthwise": (conv("x", "w", group=8), {"x": (1, 8, 5, 5)}, {"w": W((8, 1, 3, 3))}, 220, 3),
    "transposed convolution": (
        [make_node("ConvTranspose", ["x", "w", "b"], ["y"], name="c")],
        IMAGE, {"w": W((4, 10, 3, 3)), "b": W((10,))}, 900, 4,
    ),
    "gemm": (
        [make_node("Gemm", ["x", "w", "b"], ["y"], name="c", alpha=0.5, beta=2.0)],
        {"x": (3, 6)}, {"w": W((6, 10)), "b": W((10,))}, 200, 3,
    ),
    "gemm transposed": (
        [make_node("Gemm", ["x", "w", "b"], ["y"], name="c", transB=1, transA=1)],
        {"x": (6, 3)}, {"w": W((10, 6)), "b": W((3, 10))}, 200, 3,
    ),
    "gemm, one bias": (
        [make_node("Gemm", ["x", "w", "b"], ["y"], name="c")], {"x": (3, 6)}, {"w": W((6, 10)), "b": W((3, 1))}, 200, 3,
    ),
    "gemm, weights on the left": (
        [make_node("Gemm", ["w", "x", "b"], ["y"], name="c")],
        {"x": (6, 3)}, {"w": W((10, 6)), "b": W((10, 1))}, 200, 3,
    ),
    "gemm, weights on the left, transposed": (
        [make_node("Gemm", ["w", "x", "b"], ["y"], name="c", transA=1)],
        {"x": (6, 10)}, {"w": W((6, 10)), "b": W((10,))}, 200, 3,
    ),
    "matmul": ([make_node("MatMul", ["x", "w"], ["y"], name="c")], {"x": (2, 3, 6)}, {"w": W((6, 10))}, 200, 3),
    "matmul of a vector": ([make_node("MatMul", ["x", "w"], ["y"], name="c")], {"x": (6,)}, {"w": W((6, 10))}, 200, 3),
    "matmul with heads": (
        [make_node("MatMul", ["x", "w"], ["y"], name="c")], {"x": (2, 3, 6)}, {"w": W((2, 6, 10))}, 200, 5,
    ),
    "matmul, weights on the left": (
        [make_node("MatMul", ["w", "x"], ["y"], name="c")], {"x": (2, 6, 3)}, {"w": W((10, 6))}, 200, 3,
    ),
    "matmul, weights times a vector": (
        [make_node("MatMul", ["w", "x"], ["y"], name="c")], {"x": (6,)}, {"w": W((10, 6))}, 200, 3,
    ),
    "weights from an operator": (
        [make_node("Transpose", ["w"], ["wt"], perm=[1, 0]), make_node("MatMul", ["x", "wt"], ["y"], name="c")],
        {"x": (3, 6)}, {"w": W((10, 6))}, 200, 3,
    ),
    "two layers of the same weights": (
        [make_node("MatMul", ["x", "w"], ["a"], name="a"), make_node("MatMul", ["a", "w"], ["y"], name="c")],
        {"x": (3, 6)}, {"w": W((6, 6))}, 150, 4,
    ),
}  # fmt: skip
