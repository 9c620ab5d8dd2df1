"""Matrix products: work, layers, and dependencies, compared with the reference evaluator."""

import numpy as np
import pytest
from onnx import TensorProto
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx import read_onnx

from tests.unit.workload.onnx.dependency_checks import lower_model
from tests.unit.workload.onnx.operators.matrix_cases import MatrixCase, check_matrix_case, only_layer

U8, I8 = TensorProto.UINT8, TensorProto.INT8
LARGE = {"x0": (0.0, 200.0), "x1": (0.0, 200.0)}
MICROSOFT = "com.microsoft"

CASES = {
    "gemm": MatrixCase("Gemm", [(2, 4), (4, 3)], 24, weights=(1,)),
    "gemm, transposed, bias of columns": MatrixCase(
        "Gemm", [(4, 2), (3, 4), (3,)], 24, {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}, weights=(1,)
    ),
    "gemm, bias of rows": MatrixCase("Gemm", [(2, 4), (4, 3), (2, 1)], 24, weights=(1,)),
    "gemm, scalar bias": MatrixCase("Gemm", [(2, 4), (4, 3), ()], 24, weights=(1,)),
    "gemm, two activations": MatrixCase("Gemm", [(2, 4), (4, 3), (2, 3)], 24),
    "gemm, opset 6": MatrixCase("Gemm", [(2, 4), (4, 3), (1, 3)], 24, weights=(1, 2), opset=7),
    "matmul": MatrixCase("MatMul", [(2, 4), (4, 3)], 24, weights=(1,)),
    "constant first": MatrixCase("MatMul", [(2, 4), (3, 4, 5)], 120, weights=(0,)),
    "row vector": MatrixCase("MatMul", [(4,), (4, 3)], 12),
    "column vector": MatrixCase("MatMul", [(2, 4), (4,)], 8),
    "two vectors": MatrixCase("MatMul", [(4,), (4,)], 4),
    "vector and batches": MatrixCase("MatMul", [(4,), (2, 4, 3)], 24),
    "batches": MatrixCase("MatMul", [(2, 3, 2, 4), (2, 3, 4, 2)], 96),
    "shared matrix": MatrixCase("MatMul", [(2, 3, 4), (4, 2)], 48, weights=(1,)),
    "broadcast both ways": MatrixCase("MatMul", [(1, 3, 2, 2), (2, 1, 2, 3)], 72),
    "broadcast lower rank": MatrixCase("MatMul", [(2, 2, 3, 2), (1, 2, 2)], 48),
    "rank 5": MatrixCase("MatMul", [(2, 1, 2, 2, 3), (1, 2, 2, 3, 2)], 96),
    "rank 6 and a vector": MatrixCase("MatMul", [(2, 1, 2, 1, 2, 3), (3,)], 24),
    "integers": MatrixCase(
        "MatMulInteger", [(2, 4), (4, 3), (), (3,)], 24, kinds={0: U8, 1: U8, 2: U8, 3: U8}, ranges=LARGE, opset=10
    ),
    "quantised": MatrixCase(
        "QLinearMatMul",
        [(2, 4), (), (), (4, 3), (), (), (), ()],
        24,
        weights=(3,),
        values={index: 1.0 if index in (1, 4) else 9.0 if index == 6 else np.uint8(0) for index in (1, 2, 4, 5, 6, 7)},
        kinds={0: U8, 3: U8},
        ranges=LARGE,
        opset=10,
    ),
}

MICROSOFT_CASES = {
    "FusedMatMul": ([(2, 4, 2), (2, 3, 4)], {"transA": 1, "transB": 1}, 48, "O[b][d][k] += I[b][c][d] * W[b][k][c]"),
    "FusedGemm": ([(2, 4), (3, 4), (3,)], {"transB": 1, "activation": "Relu"}, 24, "O[d][k] += I[d][c] * W[k][c]"),
    "MatMulIntegerToFloat": ([(2, 4), (4, 3), (), (3,), (), (), (3,)], {}, 24, "O[d][k] += I[d][c] * W[c][k]"),
    "DynamicQuantizeMatMul": ([(2, 4), (4, 3), (), (), (3,)], {}, 24, "O[d][k] += I[d][c] * W[c][k]"),
    "QGemm": (
        [(2, 4), (), (), (3, 4), (), (), (3,), (), ()],
        {"transB": 1},
        24,
        "O[d][k] += I[d][c] * W[k][c]",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_matrix_product(name: str) -> None:
    """Work, form of the layers, and dependencies are right."""
    check_matrix_case(CASES[name])


def test_layer_of_two_activations() -> None:
    """Loops and operands have the order of zigzag-dse, and each operand has its own batch loops."""
    layer = only_layer(CASES["broadcast both ways"])
    assert layer.loop_sizes == (("C", 2), ("D", 2), ("K", 3), ("B", 2), ("H", 3))
    assert layer.equation == "O[b][h][d][k] += I[h][d][c] * W[b][c][k]"
    assert layer.constant_operands == ()


def test_constant_first_operand_is_the_weight() -> None:
    """A constant first operand is the weight W."""
    layer = only_layer(CASES["constant first"])
    assert layer.constant_operands == ("W",)
    assert layer.equation == "O[b][d][k] += I[b][c][k] * W[d][c]"


def test_layer_of_rank_five_keeps_every_batch_dimension() -> None:
    """A product of rank 5 has a loop for each batch dimension, and an operand has only the loops that it uses."""
    layer = only_layer(CASES["rank 5"])
    assert layer.size_of == {"C": 3, "D": 2, "K": 2, "B": 2, "H": 2, "B2": 2}
    dimensions = dict(layer.operand_dimensions)
    assert dimensions["I"] == ("B", "B2", "D", "C")
    assert dimensions["W"] == ("H", "B2", "C", "K")


@pytest.mark.parametrize("operator", MICROSOFT_CASES)
def test_products_of_microsoft(operator: str) -> None:
    """Products of com.microsoft have the right work, and the right axes of both operands."""
    shapes, attributes, macs, equation = MICROSOFT_CASES[operator]
    case = MatrixCase(operator, list(shapes), macs, attributes, domain=MICROSOFT, has_reference=False)
    check_matrix_case(case)
    assert only_layer(case).equation == equation


def test_transposed_batches_are_unsupported() -> None:
    """FusedMatMul with transposed batches is reported as unsupported."""
    case = MatrixCase("FusedMatMul", [(2, 4), (4, 3)], 0, {"transBatchA": 1}, domain=MICROSOFT)
    assert lower_model(case.model()).statuses == {"op": "unsupported"}


@pytest.mark.parametrize("bits", [4, 8, 2])
def test_packed_weights(bits: int) -> None:
    """MatMulNBits reads the packed bytes of its weights, with as many bits as they have."""
    depth, columns, block = 64, 3, 32
    attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    shapes = [(2, depth), (columns, depth // block, block * bits // 8), (columns * 2,)]
    case = MatrixCase(
        "MatMulNBits",
        list(shapes),
        2 * depth * columns,
        attributes,
        weights=(1, 2),
        kinds={1: U8},
        domain=MICROSOFT,
        has_reference=False,
    )
    layer = only_layer(case)
    assert layer.mac_count == case.macs
    weights = dict(layer.operand_dimensions)["W"]
    assert np.prod([layer.size_of[name] for name in weights]) * layer.bits_of["W"] == depth * columns * bits


@pytest.mark.parametrize(
    ("shapes", "text"),
    [([(2, 4), (4, 3), (4,)], "bias"), ([(2, 4), (4, 3), (1, 2, 3)], "bias")],
)
def test_bias_that_does_not_fit_is_refused(shapes: list[tuple[int, ...]], text: str) -> None:
    """A bias that cannot be broadcast to the result raises InputError."""
    with pytest.raises(InputError, match=text):
        lower_model(MatrixCase("Gemm", list(shapes), 0, weights=(1, 2)).model())


@pytest.mark.parametrize(("precision", "bits"), [("assumed", (8, 8, 8, 16)), ("file", (16, 16, 16, 32))])
def test_precision_policy(precision: str, bits: tuple[int, int, int, int]) -> None:
    """Floats count as 8 bits, or as the file stores them, with a 32-bit accumulator."""
    case = MatrixCase(
        "MatMul", [(2, 4), (4, 3)], 24, weights=(1,), kinds={0: TensorProto.FLOAT16, 1: TensorProto.FLOAT16}
    )
    (node,) = read_onnx(case.model(), CORRECTED, options=NetworkOptions(precision=precision)).workload.nodes
    assert node.layer is not None
    assert tuple(node.layer.bits_of[operand] for operand in ("W", "I", "O_final", "O")) == bits
