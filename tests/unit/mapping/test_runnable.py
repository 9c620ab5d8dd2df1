"""The layers of a network that a core can run, and the report on the other layers."""

from dataclasses import replace

import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.hardware.core import Core
from tilewright.mapping.runnable import (
    NOT_MODELLED,
    NOT_RUN,
    UNSUPPORTED,
    UncostedWork,
    can_run,
    coverage_of,
    restrict_to_core,
    unmodelled_work,
)
from tilewright.pipeline.stages.descriptions import of_core
from tilewright.pipeline.stages.run import map_workload
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer
from tilewright.workload.onnx import read_onnx

from tests.unit.cost.engine_cases import constraints, convolution, gemm, tpu_like
from tests.unit.mapping.locality_cases import mapping
from tests.unit.mapping.vector_layers import binary, max_pool, one_input_layer, relu


def core(*operator_types: str) -> Core:
    """Return the core tpu_like with the given operator types."""
    return replace(tpu_like(), operator_types=operator_types) if operator_types else tpu_like()


def node(place: int, layer: Layer, unit: str, *sources: int, origin_type: str = "", origin: str = "") -> WorkloadNode:
    """Return a node whose inputs I and W are the outputs of other nodes."""
    edges = tuple(zip(("I", "W"), sources, strict=False))
    name = f"{layer.name}{place}"
    return WorkloadNode(
        place, name, layer.operator_type, replace(layer, name=name), edges, None, False, unit, origin, origin_type
    )


def small_network() -> Workload:
    """Return conv -> relu -> pool -> parts of a softmax -> addition of softmax and pool."""
    exp = one_input_layer("Exp", ("B", "K"), {"B": 1, "K": 8})
    div = binary("Div", bits=8, K=8)
    return Workload(
        "small",
        (
            node(0, convolution("conv", K=8, C=4, OY=4, OX=4), MAC_ARRAY, origin_type="Conv"),
            node(1, relu(K=8, OY=4, OX=4), VECTOR_UNIT, 0, origin_type="Relu"),
            node(2, max_pool(K=8, OY=2, OX=2, FY=2, FX=2), VECTOR_UNIT, 1, origin_type="MaxPool"),
            node(3, exp, VECTOR_UNIT, 2, origin_type="Softmax", origin="softmax"),
            node(4, div, VECTOR_UNIT, 3, 2, origin_type="Softmax", origin="softmax"),
            node(5, binary("Add", K=8), VECTOR_UNIT, 4, 2, origin_type="Add"),
        ),
    )


@pytest.mark.parametrize(
    ("operator_types", "run"),
    [
        ((), {0}),
        (("mac",), {0}),
        (("all",), {0, 1, 2, 3, 4, 5}),
        (("vector",), {1, 2, 3, 4, 5}),
        (("Conv", "MaxPool"), {0, 2}),
        (("Gemm",), set()),
        (("mac", "elementwise"), {0, 1, 3, 4, 5}),
        (("softmax",), {3, 4}),
        (("Softmax", "pooling"), {2, 3, 4}),
    ],
)
def test_what_a_core_runs(operator_types: tuple[str, ...], run: set[int]) -> None:
    """A core runs operators by unit, operator type or group; parts run by the operator that they belong to."""
    network = small_network()
    restricted, _ = restrict_to_core(network, core(*operator_types))
    assert {node.node_id for node in restricted.nodes if node.layer is not None} == run
    assert [node.name for node in restricted.nodes] == [node.name for node in network.nodes]


def test_layers_without_a_unit_run_on_multipliers() -> None:
    """Layers without a unit, as in YAML networks, run on any core that multiplies, whatever their type."""
    unnamed = node(0, replace(gemm(C=2), operator_type="Pooling"), "")
    assert can_run(core(), unnamed)
    assert can_run(core("mac", "softmax"), unnamed)
    assert not can_run(core("pooling"), unnamed)
    assert can_run(core("Gemm"), node(0, gemm(C=2), ""))


def test_a_layer_left_out_passes_its_data_on() -> None:
    """A node that a core does not run keeps its edges and the size of its output, without a layer."""
    restricted, _ = restrict_to_core(small_network(), core())
    left = restricted.nodes[2]
    assert (left.layer, left.output_elements, left.sources) == (None, 8 * 2 * 2, (("I", 1),))
    assert [node.name for node in restricted.layers_in_order] == ["conv0"]


def test_a_core_that_runs_everything_changes_nothing() -> None:
    """`restrict_to_core` returns the unchanged network object for a core that runs all layers."""
    network = small_network()
    assert restrict_to_core(network, core("all")) == (network, ())
    assert restrict_to_core(network, core("all"))[0] is network


def test_rows_of_what_is_not_run() -> None:
    """Each operator type that is not run has one row; the parts of a softmax are one node with summed operations."""
    _, rows = restrict_to_core(small_network(), core())
    assert {row.operator_type: (row.reason, row.node_count, row.mac_count, row.operation_count) for row in rows} == {
        "Relu": (NOT_RUN, 1, 0, 128),
        "MaxPool": (NOT_RUN, 1, 0, 32 * 4),
        "Softmax": (NOT_RUN, 1, 0, 16),
        "Add": (NOT_RUN, 1, 0, 8),
    }
    _, rows = restrict_to_core(small_network(), core("vector"))
    assert [(row.operator_type, row.mac_count, row.operation_count) for row in rows] == [("Conv", 512, 0)]


def test_shares_of_the_work() -> None:
    """Coverage gives the share of known work with costs; the share is unknown if one part is unknown."""
    restricted, rows = restrict_to_core(small_network(), core("mac", "pooling"))
    coverage = coverage_of(restricted, rows)
    assert (coverage["complete"], coverage["mac_share"], coverage["operation_share"]) == (False, 1.0, 128 / 280)
    assert (coverage["mac_count"], coverage["operation_count"]) == (512, 128)
    unknown = (*rows, UncostedWork("Loop", NOT_MODELLED, 1, None, None))
    assert coverage_of(restricted, unknown)["mac_share"] is None
    assert coverage_of(restricted, unknown)["operation_share"] is None
    assert coverage_of(Workload("none", ()), ())["mac_share"] == 1.0


def test_unsupported_operators_are_told() -> None:
    """Unsupported operators are reported with their work; known vector operators count no multiply-accumulates."""

    def row(operator_type: str) -> UncostedWork:
        left = WorkloadNode(0, "x", operator_type, None, status=UNSUPPORTED, origin_type=operator_type)
        (told,) = unmodelled_work(Workload("x", (left,)))
        return told

    assert (row("NonZero").mac_count, row("NonZero").operation_count) == (0, None)
    assert row("DeformConv").mac_count is row("Loop").mac_count is row("org.own::Thing").mac_count is None
    assert row("com.microsoft::BiasGelu").mac_count == 0
    assert row("NonZero").text == "1 NonZero (work unknown) not modelled"


def relu_model() -> bytes:
    """Return conv -> relu -> flatten as an ONNX model."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Flatten", ["r"], ["y"], name="flatten"),
    ]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [2, 3, 1, 1], [0.0] * 6)
    ends = [info("x", TensorProto.FLOAT, [1, 3, 4, 4])], [info("y", TensorProto.FLOAT, [1, 32])]
    graph = helper.make_graph(nodes, "g", *ends, [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_profiles_that_model_some_operators_only_say_so() -> None:
    """The reference profile reports Relu as not modelled, and `corrected` as not run; Flatten does no work."""
    reference = read_onnx(relu_model(), REFERENCE).workload
    (row,) = unmodelled_work(reference)
    assert (row.operator_type, row.reason, row.mac_count, row.operation_count) == ("Relu", NOT_MODELLED, 0, None)
    corrected = read_onnx(relu_model(), CORRECTED).workload
    assert unmodelled_work(corrected) == ()
    assert [row.operator_type for row in restrict_to_core(corrected, core())[1]] == ["Relu"]


# the problem and its summary ------------------------------------------------------------------------------------------


def test_every_problem_is_restricted_once() -> None:
    """A problem keeps only the layers that its core can run; a changed copy keeps the list of left-out layers, too."""
    problem = of_core(small_network(), core(), mapping())
    assert len(problem.workload.layers_in_order) == 1
    assert problem.uncosted is not None
    assert len(problem.uncosted) == 4
    again = replace(problem, notices=("x",))
    assert again.uncosted == problem.uncosted
    assert again.workload == problem.workload


def test_strict_lists_all_work_that_is_not_costed() -> None:
    """A strict run lists one problem for each operator type without costs."""
    with pytest.raises(InputError) as refused:
        of_core(small_network(), core(), mapping()).check_complete()
    assert len(refused.value.problems) == 4
    assert (
        "small on tpu_like has operators without costs, which the option strict forbids: 1 Relu (128 operations)"
        in str(refused.value)
    )
    of_core(small_network(), core("all"), mapping()).check_complete()


def test_summary_tells_multiply_accumulates_from_other_operations() -> None:
    """The summary counts operations of vector units apart from MACs, and gives the share with costs."""
    everything = map_workload(small_network(), core("all"), mapping()).summary
    assert (everything["mac_count"], everything["operation_count"]) == (512, 280)
    assert everything["coverage"]["complete"]
    assert everything["layers"] == 6
    some = map_workload(small_network(), core(), mapping()).summary
    assert (some["mac_count"], some["operation_count"], some["layers"]) == (512, 0, 1)
    assert some["coverage"]["operation_share"] == 0
    assert some["energy_pj"] < everything["energy_pj"]
    assert some["passed_through"] == {}


def test_a_core_that_runs_nothing_of_a_network() -> None:
    """A core that runs no layer of a network gives an empty run without costs."""
    summary = map_workload(small_network(), core("Gemm"), mapping()).summary
    assert (summary["layers"], summary["energy_pj"], summary["coverage"]["mac_share"]) == (0, 0, 0)


def test_what_else_a_core_runs_changes_no_layer() -> None:
    """Other operator types of a core do not change the key of a layer in the store."""
    from tilewright.search.store import problem_key

    keys = {problem_key(gemm(C=4), core(*types), constraints(), []) for types in ((), ("all",), ("Gemm", "softmax"))}
    assert len(keys) == 1
