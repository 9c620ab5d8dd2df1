"""Facts that the lowering of an operator states: the shapes of its results, and the names of its attributes."""

from collections.abc import Iterator

import onnx
import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError
from tilewright.base.operator_groups import GROUPS, KNOWN_TYPES, NOT_MODELLED, group_has
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.workload.onnx import lowering, read_onnx
from tilewright.workload.onnx.lowering import Lowering, lowers, registered_operators
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.operators.elementwise import elementwise
from tilewright.workload.onnx.resolution.custom import STATED, CustomCall, OperatorFacts, Output, like_first_input

DOMAIN = "org.example"
SIZES = [4, 8]


def halved(call: CustomCall) -> list[Output]:
    """Type and shape of an output that is like the input, with half the length of the last axis."""
    *outer, last = call.shape(0)
    return [(call.element_type(0), (*outer, last // 2))]


@pytest.fixture
def unstated() -> Iterator[None]:
    """Removes what a test has registered."""
    functions, facts = dict(lowering._LOWER_FUNCTIONS), dict(STATED)
    yield
    for table, before in ((lowering._LOWER_FUNCTIONS, functions), (STATED, facts)):
        for key in table.keys() - before.keys():
            del table[key]  # type: ignore[attr-defined]


def register(operator: str, domain: str = DOMAIN, **facts: object) -> None:
    """Register an operator with one operation for each element of its output."""

    @lowers(operator, domain=domain, **facts)  # type: ignore[arg-type]
    def lower_it(op: Lowering) -> None:
        loops = tuple(zip("BK", op.output_shape(), strict=True))
        written = lowering.access(op.output(), "B", "K")
        op.nest(loops, written, {"I": lowering.access(op.input(), "B", "K")})


def network(operator: str, domain: str = DOMAIN, version: int = 1, **attributes: object) -> onnx.ModelProto:
    """An operator and a Relu behind it; the file stores only the shape of the input."""
    node = helper.make_node(operator, ["x"], ["y"], name="op", domain=domain, **attributes)
    nodes = [node, helper.make_node("Relu", ["y"], ["z"], name="relu")]
    ends = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)] for name, sizes in (("x", SIZES), ("z", None))
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(domain, version)]
    return helper.make_model(helper.make_graph(nodes, "net", *ends), opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize(("rule", "sizes"), [(like_first_input, [4, 8]), (halved, [4, 4])])
def test_a_rule_gives_the_shapes_that_a_file_does_not_store(unstated: None, rule: object, sizes: list[int]) -> None:
    """The operator and those behind it have the sizes of the given rule; without a rule, the file is refused."""
    register("Unruled")
    with pytest.raises(InputError, match="the shape of tensor 'y'"):
        read_onnx(network("Unruled"), CORRECTED)
    register("Ruled", shapes=rule)
    layers = [node.layer for node in read_onnx(network("Ruled"), CORRECTED).workload.nodes]
    assert [[size for _, size in layer.loop_sizes] for layer in layers if layer] == [sizes, sizes]


def test_a_rule_serves_operators_that_onnx_defines_without_shapes(
    unstated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scaler of ai.onnx.ml is defined without shapes; with a rule, the operators behind it have costs."""
    key = ("ai.onnx.ml", "Scaler")
    model = network(key[1], key[0], 3, offset=[0.0], scale=[1.0])
    monkeypatch.delitem(STATED, key, raising=False)
    with pytest.raises(InputError, match="the shape of tensor 'y'"):
        read_onnx(model, CORRECTED)
    monkeypatch.setitem(STATED, key, OperatorFacts(like_first_input, None))
    rows = {row.operator_type: row for row in read_onnx(model, CORRECTED).coverage.operators}
    assert rows["Relu"].operation_count == 32


@pytest.mark.parametrize("profile", [CORRECTED, REFERENCE], ids=lambda profile: profile.name)
def test_attributes_that_are_not_stated_are_reported(unstated: None, profile: object) -> None:
    """A notice names the nearest attribute, under both profiles; an operator without stated attributes has no
    notice.
    """
    register("Silent", shapes=like_first_input)
    assert read_onnx(network("Silent", steep=2), profile).coverage.notices == ()  # type: ignore[arg-type]
    register("Stating", shapes=like_first_input, attributes="steepness offset")
    (notice,) = read_onnx(network("Stating", steepnes=2, offset=1), profile).coverage.notices  # type: ignore[arg-type]
    assert notice == "op.steepnes: has no effect: Stating has no such attribute (did you mean 'steepness'?)"


@pytest.mark.parametrize(
    ("domain", "operator"), [("", "Relu"), (NOT_MODELLED[0].domain, NOT_MODELLED[0].names.split()[0])]
)
def test_an_operator_has_one_function(unstated: None, domain: str, operator: str) -> None:
    """A second function for an operator is refused, also if the list of unsupported operators registered the first.

    The message names both modules.
    """
    register_operators()
    other = registered_operators()[domain, operator].__module__
    with pytest.raises(ValueError, match=f"{operator} is registered by {other} and by {__name__}"):
        register(operator, domain)


def test_what_is_not_modelled_has_no_place_in_a_group() -> None:
    """Each operator is in the groups of modelled operators, or once in the list of unsupported ones."""
    names = [name for listed in NOT_MODELLED for name in listed.types]
    assert len(names) == len(set(names))
    assert not set(names) & set(KNOWN_TYPES)
    assert {group for name in names for group in GROUPS if group_has(group, name)} == {"all"}
    assert all(listed.reason and listed.names for listed in NOT_MODELLED)


def test_the_operator_with_elements(unstated: None) -> None:
    """The helper for elementwise operators works with a stated shape, as in the page on plug-ins."""

    @lowers("SoftSwitch", domain=DOMAIN, shapes=like_first_input, attributes="")
    def lower_it(op: Lowering) -> None:
        elementwise(op, op.output(), [op.input()])

    coverage = read_onnx(network("SoftSwitch"), CORRECTED).coverage
    assert [(row.status, row.operation_count) for row in coverage.operators] == [("modelled", 32)] * 2


def test_a_rule_without_effect_is_refused(unstated: None) -> None:
    """A rule for shapes that onnx infers is refused, because it has no effect; a lowering alone is accepted."""
    with pytest.raises(ValueError, match="onnx infers the shapes of BlackmanWindow: `shapes` would have no effect"):
        register("BlackmanWindow", domain="", shapes=like_first_input)
    register("BlackmanWindow", domain="")
