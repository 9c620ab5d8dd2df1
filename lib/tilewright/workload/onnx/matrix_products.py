"""Matrix products of ONNX operators as layers, with batches, transposed operands and checked sizes."""

import math
from dataclasses import dataclass

from tilewright.base.profile import ModelProfile
from tilewright.workload.layer import Layer
from tilewright.workload.onnx.node import OnnxNode, OperandRoles, Shape, Shapes, precision_bits


@dataclass(frozen=True)
class MatrixProduct:
    """Product out[batch, D, K] = sum over C of left[batch, D, C] * right[batch, C, K]. The batch sizes are (), (B,) or
    (B, H).
    """

    out_batch: Shape
    left_batch: Shape
    """Batch sizes of the left operand, one for each size in `out_batch`. A size of 1 means that all batches share the
    left operand."""
    right_batch: Shape | None
    """Batch sizes of the right operand; None if its shape is not known."""
    rows: int
    depth: int
    columns: int

    @property
    def mac_count(self) -> int:
        """Number of multiply-accumulates: number of output elements, times the number of products in the sum of one
        element.
        """
        return math.prod(self.out_batch) * self.rows * self.columns * self.depth


def matrix_product(node: OnnxNode, shapes: Shapes) -> MatrixProduct:
    """Sizes of a Gemm or MatMul. Raises InputError if inputs are missing, or if shapes do not fit together.

    As ONNX defines, vectors become matrices of one row or one column, and operands of lower rank are repeated over the
    batches. If there are more than two batch dimensions, all dimensions after the first are merged into one.
    """
    left, out = node.input_shape(0, shapes), node.output_shape(shapes)
    right = shapes.get(node.inputs[1]) if len(node.inputs) > 1 else None
    if len(node.inputs) < 2:
        raise node.error(f"{node.operator_type} needs two inputs", str(len(node.inputs)))
    if not left or right == ():
        raise node.error("an operand of a matrix product is a scalar")
    if node.proto.op_type == "Gemm":
        left, right = _transposed(node, left, right)
    if len(left) == 1:
        left, out = (1, *left), (*out[:-1], 1, *out[-1:]) if right is None or len(right) > 1 else (1, *out)
    if right is not None and len(right) == 1:
        right, out = (*right, 1), (*out, 1)
    if len(out) < 2 or len(left) > len(out):
        raise node.error(
            "the ranks of the operands and of the output do not fit together", f"{len(left)} and {len(out)}"
        )
    if left[-2] != out[-2]:
        raise node.error("the first operand and the output have different numbers of rows", f"{left[-2]} and {out[-2]}")
    if right is not None and (right[-2] != left[-1] or right[-1] != out[-1]):
        raise node.error("wrong shape of the second operand", str(list(right)), f"[..., {left[-1]}, {out[-1]}]")
    if min(out[-2], out[-1], left[-1]) < 1:
        raise node.error("an operand of this matrix product has an empty or negative dimension")
    rank = len(out)
    batches = [_batch_sizes(shape, rank) for shape in (out, left, right or ())]
    return MatrixProduct(batches[0], batches[1], batches[2] if right else None, out[-2], left[-1], out[-1])


def _transposed(node: OnnxNode, left: Shape, right: Shape | None) -> tuple[Shape, Shape | None]:
    if len(left) != 2 or (right is not None and len(right) != 2):
        raise node.error("Gemm needs operands of rank 2", f"{len(left)}" + (f" and {len(right)}" if right else ""))
    if node.integer("transA", 0):
        left = left[::-1]
    if right is not None and node.integer("transB", 0):
        right = right[::-1]
    return left, right


def _batch_sizes(shape: Shape, rank: int) -> Shape:
    batch = (1,) * (rank - len(shape)) + shape[: max(len(shape) - 2, 0)]
    batch = batch[-(rank - 2) :] if rank > 2 else ()
    batch = tuple(max(size, 1) for size in batch)
    return batch if len(batch) <= 2 else (batch[0], math.prod(batch[1:]))


def gemm_layer(node: OnnxNode, product: MatrixProduct, roles: OperandRoles, profile: ModelProfile) -> Layer:
    """Layer of a matrix product: O[b][h][d][k] += I[b][h][d][c] * W[c][k].

    Bias, alpha and beta cost nothing, as in zigzag-dse 3.9.1. Without the switch `trace_onnx_constants`, W has the
    batch dimensions if and only if W is not constant, also as in zigzag-dse. With the switch, each operand has the
    batch dimensions of its tensor.
    """
    names = ("B", "H")[: len(product.out_batch)]
    left, right = _dims_carried(product, product.left_batch, names), names
    if not profile.trace_onnx_constants:
        right = () if roles.weight_is_constant else names
    elif product.right_batch is not None:
        right = _dims_carried(product, product.right_batch, names)
    exchanged = roles.weight_input == 0
    left_operand, right_operand = ("W", "I") if exchanged else ("I", "W")
    dimensions = {left_operand: (*left, "D", "C"), right_operand: (*right, "C", "K")}
    return Layer(
        name=node.name,
        operator_type=node.proto.op_type,
        operand_dimensions=(("O", (*names, "D", "K")), ("I", dimensions["I"]), ("W", dimensions["W"])),
        loop_sizes=(
            ("C", product.depth),
            ("D", product.rows),
            ("K", product.columns),
            *zip(names, product.out_batch, strict=True),
        ),
        precision_bits=precision_bits(node, weight_is_activation=not roles.weight_is_constant),
        constant_operands=roles.constant_operands,
    )


def _dims_carried(product: MatrixProduct, batch: Shape, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the batch dimensions that index an operand with the batch sizes `batch`. A batch dimension of size 1 in
    the output counts as indexing every operand."""
    sizes = zip(names, batch, product.out_batch, strict=True)
    return tuple(name for name, own, full in sizes if own > 1 or full == 1)
