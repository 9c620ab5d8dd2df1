"""Einsum: work, layers, and dependencies, compared with the reference evaluator."""

import pytest
from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT

from tests.unit.workload.onnx.dependency_checks import lower_model
from tests.unit.workload.onnx.operators.matrix_cases import MatrixCase, check_matrix_case, only_layer

Shape = tuple[int, ...]


def _case(equation: str, *shapes: Shape, macs: int = 0, weights: tuple[int, ...] = ()) -> MatrixCase:
    return MatrixCase("Einsum", list(shapes), macs, {"equation": equation}, weights=weights)


CASES = {
    "matrix product": _case("ij,jk->ik", (2, 3), (3, 4), macs=24),
    "implicit output": _case("ij, jk", (2, 3), (3, 4), macs=24),
    "output in the order of letters": _case("ba,cb", (2, 3), (4, 2), macs=24),
    "attention scores": _case("bhqd,bhkd->bhqk", (1, 2, 3, 2), (1, 2, 2, 2), macs=24),
    "ellipsis": _case("...ij,...jk->...ik", (2, 2, 3), (2, 3, 2), macs=24),
    "implicit output after an ellipsis": _case("i...j,jk", (3, 2, 2), (2, 3), macs=36),
    "broadcast ellipsis": _case("...i,...i->...", (1, 3, 2), (2, 1, 2), macs=12),
    "sum over a label of one operand": _case("ij,k->k", (2, 3), (2,), macs=12),
    "diagonal": _case("ii->i", (3, 3)),
    "trace": _case("ii", (3, 3)),
    "diagonal in a product": _case("iij,jk->ik", (2, 2, 3), (3, 2), macs=12),
    "transposition": _case("abc->cab", (2, 3, 4)),
    "sum of one": _case("abc->b", (2, 3, 4)),
    "sum of all": _case("ab->", (2, 3)),
    "outer product": _case("i,j->ij", (3,), (4,)),
    "element by element": _case("ij,ij->ij", (2, 3), (2, 3)),
    "inner product": _case("i,i->", (4,), (4,), macs=4),
    "three operands": _case("ij,jk,kl->il", (2, 3), (3, 2), (2, 4), macs=2 * 3 * 2 + 2 * 2 * 4),
    "three operands, elementwise first": _case("ij,ij,jk->ik", (2, 3), (2, 3), (3, 2), macs=12),
    "constant operand": _case("bij,jk->bik", (2, 2, 3), (3, 2), macs=24, weights=(1,)),
    "upper and lower case": _case("aA,Ab->ab", (2, 3), (3, 2), macs=12),
    "scalar operand": _case(",ij->i", (), (2, 3), macs=6),
}


@pytest.mark.parametrize("name", CASES)
def test_einsum(name: str) -> None:
    """Work, form of the layers, and dependencies are right."""
    check_matrix_case(CASES[name])


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("transposition", [""]),
        ("diagonal", [""]),
        ("sum of one", [VECTOR_UNIT]),
        ("outer product", [VECTOR_UNIT]),
        ("inner product", [MAC_ARRAY]),
        ("three operands, elementwise first", [VECTOR_UNIT, MAC_ARRAY]),
    ],
)
def test_unit(name: str, units: list[str]) -> None:
    """A sum of products runs on multipliers, a sum alone or a product alone on the vector unit.

    A transposition runs on no unit.
    """
    assert [node.unit for node in lower_model(CASES[name].model()).nodes] == units


def test_one_loop_for_each_label() -> None:
    """Loops have the names of the labels, doubled for upper-case labels."""
    assert only_layer(CASES["upper and lower case"]).size_of == {"A": 2, "B": 2, "AA": 3}


def test_too_many_labels_are_unsupported() -> None:
    """More loops than the cost model takes are reported as unsupported."""
    letters = "abcdefghijklmnopq"
    case = _case(f"{letters},{letters}->a", *((1,) * 17 for _ in range(2)))
    assert lower_model(case.model()).statuses == {"op": "unsupported"}


@pytest.mark.parametrize("equation", ["ij,jk->iz", "ij->i", "ij,jk,kl->i", "ij,j->ii", "i1,jk->ik"])
def test_wrong_equations_are_refused(equation: str) -> None:
    """An equation that does not fit the inputs raises InputError, which names the operator."""
    model = _case("ij,jk->ik", (2, 3), (3, 4)).model()
    model.graph.node[0].attribute[0].s = equation.encode()
    with pytest.raises(InputError, match="op: Einsum does not fit its inputs"):
        lower_model(model)
