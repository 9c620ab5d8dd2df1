"""Index maps of random small graphs, compared with experiments that change one input element."""

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from onnx.helper import make_node

from tests.members import members
from tests.unit.workload.onnx.dependency_checks import assert_dependencies, build_model
from tests.unit.workload.onnx.graph_builder import GraphBuilder
from tests.unit.workload.onnx.random_graphs import one_operator, random_graph
from tests.unit.workload.onnx.random_operators import FAMILIES

_FIXED = settings(
    derandomize=True, deadline=None, database=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_operator_depends_on_what_experiments_show(family: str) -> None:
    """Each family alone, with random shapes and attributes, equals the experiment if exact, and else contains it."""

    @settings(_FIXED, max_examples=members(25, 10))
    @given(one_operator(family))
    def check(graph: GraphBuilder) -> None:
        note(repr(graph))
        assert_dependencies(graph.model(), graph.ranges)

    check()


@settings(_FIXED, max_examples=members(150, 60))
@given(random_graph())
def test_chains_and_branches_compose(graph: GraphBuilder) -> None:
    """Composed maps of two to four operators equal the experiment, or contain it behind normalisations."""
    note(repr(graph))
    assert_dependencies(graph.model(), graph.ranges, only_contains=graph.hides_dependencies)


@given(st.integers(0, 3))
@settings(_FIXED, max_examples=4)
def test_wrong_dependencies_are_found(shift: int) -> None:
    """The check finds wrong maps: the experiment of another model raises AssertionError."""
    model = build_model([make_node("Pad", ["x", "pads"], ["y"])], {"x": (5,)}, {"pads": [shift, 0]})
    other = build_model([make_node("Pad", ["x", "pads"], ["y"])], {"x": (5,)}, {"pads": [shift + 1, -1]})
    with pytest.raises(AssertionError, match="depend"):
        assert_dependencies(other, evaluated=model)
