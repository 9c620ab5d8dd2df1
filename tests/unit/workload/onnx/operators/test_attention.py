"""Attention and rotary embeddings: work, parts, and dependencies, compared with the reference evaluator."""

from typing import Any

import pytest
from onnx import TensorProto
from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_ARRAY

from tests.unit.workload.onnx.dependency_checks import lower_model, predicted_dependencies
from tests.unit.workload.onnx.operators.matrix_cases import MatrixCase, array_layers, check_matrix_case

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


def _case(shapes: list[Any], macs: int, **others: Any) -> MatrixCase:
    return MatrixCase("Attention", shapes, macs, **{"opset": 23, **others})


HEADS = {"q_num_heads": 2, "kv_num_heads": 2}
QKV = [(1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 3)]
WORK = 2 * 3 * 4 * (2 + 3)
CACHE = [(1, 2, 2, 2), (1, 2, 3, 2), (1, 2, 3, 2), None, (1, 2, 2, 2), (1, 2, 2, 2)]

CASES = {
    "heads": _case(QKV, WORK),
    "flat": _case([(1, 3, 4), (1, 4, 4), (1, 4, 6)], WORK, attributes=HEADS),
    "grouped queries": _case([(2, 4, 2, 2), (2, 2, 3, 2), (2, 2, 3, 1)], 2 * 4 * 2 * 3 * 3),
    "grouped queries, flat": _case(
        [(1, 2, 8), (1, 3, 4), (1, 3, 4)], 4 * 2 * 3 * 4, attributes={"q_num_heads": 4, "kv_num_heads": 2}
    ),
    "mask": _case([*QKV, (3, 4)], WORK),
    "mask of heads": _case([*QKV, (1, 2, 1, 4)], WORK),
    "logical mask": _case([*QKV, (1, 1, 3, 4)], WORK, kinds={3: BOOL}),
    "causal": _case([(1, 1, 3, 2), (1, 1, 3, 2), (1, 1, 3, 2)], 9 * 4, attributes={"is_causal": 1}, is_exact=False),
    "causal with mask": _case(
        [(1, 1, 3, 2), (1, 1, 3, 2), (1, 1, 3, 2), (3, 3)], 9 * 4, attributes={"is_causal": 1}, is_exact=False
    ),
    "causal with fewer keys": _case(
        [(1, 1, 4, 2), (1, 1, 2, 2), (1, 1, 2, 2)], 8 * 4, attributes={"is_causal": 1}, is_exact=False
    ),
    "cache": _case(CACHE, 2 * 2 * 5 * 4, outputs=3),
    "causal with cache": _case(CACHE, 2 * 2 * 5 * 4, outputs=3, attributes={"is_causal": 1}, is_exact=False),
    "one causal query with cache": _case(
        [(1, 2, 1, 2), (1, 2, 1, 2), (1, 2, 1, 2), None, (1, 2, 2, 2), (1, 2, 2, 2)],
        2 * 3 * 4,
        outputs=3,
        attributes={"is_causal": 1},
    ),
    "soft cap": _case(QKV, WORK, attributes={"softcap": 2.0, "scale": 0.5}),
    "short mask": _case([*QKV, (3, 3)], WORK, opset=24, is_exact=False),
    "window": _case(
        [(1, 1, 4, 1), (1, 1, 4, 1), (1, 1, 4, 1)],
        16 * 2,
        attributes={"left_window_size": 1, "right_window_size": 0},
        opset=25,
        is_exact=False,
    ),
    **{
        f"scores of stage {stage}": _case(
            [(1, 1, 2, 1), (1, 1, 3, 1), (1, 1, 3, 1), (2, 3)],
            12,
            outputs=4,
            unnamed=(1, 2),
            is_exact=False,
            attributes={"qk_matmul_output_mode": stage, "softcap": 3.0, "is_causal": 1},
        )
        for stage in range(4)
    },
    "rotary": MatrixCase("RotaryEmbedding", [(1, 2, 3, 4), (1, 3, 2), (1, 3, 2)], 0, opset=23),
    "rotary, interleaved": MatrixCase(
        "RotaryEmbedding", [(1, 2, 3, 4), (1, 3, 2), (1, 3, 2)], 0, {"interleaved": 1}, opset=23, weights=(1, 2)
    ),
    "rotary, flat": MatrixCase("RotaryEmbedding", [(1, 3, 8), (1, 3, 2), (1, 3, 2)], 0, {"num_heads": 2}, opset=23),
    "rotary, some channels": MatrixCase(
        "RotaryEmbedding", [(1, 2, 3, 6), (1, 3, 2), (1, 3, 2)], 0, {"rotary_embedding_dim": 4}, opset=23
    ),
    "rotary, known positions": MatrixCase(
        "RotaryEmbedding", [(1, 2, 3, 4), (5, 2), (5, 2), (1, 3)], 0, opset=23, values={3: [[4, 0, 2]]}
    ),
    "rotary, positions at run time": MatrixCase(
        "RotaryEmbedding",
        [(1, 1, 2, 4), (5, 2), (5, 2), (1, 2)],
        0,
        opset=23,
        weights=(1, 2),
        kinds={3: INT64},
        ranges={"x3": (0, 4)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_attention(name: str) -> None:
    """Work of both products, form of the layers, and dependencies are right."""
    check_matrix_case(CASES[name])


def test_parts_of_attention() -> None:
    """The parts are scores, scale, mask, four parts of softmax, and the weighted sum."""
    lowered = lower_model(CASES["mask"].model())
    assert [node.name for node in lowered.nodes] == [
        f"op/{part}"
        for part in ("scores", "scaled", "mask0", "softmax_max", "softmax_exp", "softmax_sum", "softmax_div", "values")
    ]
    assert [node.unit == MAC_ARRAY for node in lowered.nodes] == [True, *[False] * 6, True]


def test_grouped_queries_share_keys() -> None:
    """All queries of a group read the same keys, so H is irrelevant for W."""
    scores, values = array_layers(lower_model(CASES["grouped queries"].model()))
    assert scores.size_of == {"C": 2, "D": 2, "K": 3, "B": 2, "G": 2, "H": 2}
    for layer in (scores, values):
        assert "H" not in dict(layer.operand_dimensions)["W"]
        assert "H" in dict(layer.operand_dimensions)["I"]


def test_hidden_keys_are_told() -> None:
    """A causal attention that hides keys is approximated with all keys; one that hides none is exact."""
    assert lower_model(CASES["causal"].model()).statuses == {"op": "approximated"}
    assert lower_model(CASES["one causal query with cache"].model()).statuses == {"op": "modelled"}


def test_lengths_at_run_time_are_approximated() -> None:
    """Lengths of keys as an input give a superset of dependencies, and the output depends on them."""
    case = _case([*QKV, None, None, None, (1,)], WORK, opset=24, kinds={6: INT64}, attributes={"is_causal": 1})
    predicted = predicted_dependencies(case.model())
    assert predicted.lowered.statuses == {"op": "approximated"}
    assert not predicted.is_exact
    assert predicted.tables["y0", "x6"].all()


def test_heads_that_do_not_fit_are_refused() -> None:
    """A width that is no multiple of the heads raises InputError."""
    case = _case([(1, 3, 4), (1, 4, 4), (1, 4, 4)], 0, attributes={"q_num_heads": 2, "kv_num_heads": 2})
    model = case.model()
    model.graph.node[0].attribute[1].i = 3
    with pytest.raises(InputError, match="heads of tensor 'x0', got 3"):
        lower_model(model)
