"""Tables and drawing of a parsed network."""

from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest
from matplotlib.figure import Figure
from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT
from tilewright.base.profile import CORRECTED
from tilewright.results.figure_files import save_figure
from tilewright.results.network_figure import write_network_figure
from tilewright.results.workload_tables import coverage_text, workload_table, workload_text
from tilewright.workload.access import IndexMap, access_of_loops, identity_map
from tilewright.workload.graph import Tensor, Workload, WorkloadNode
from tilewright.workload.layer import Layer
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.coverage import OperatorCoverage, build_coverage


@pytest.fixture
def network() -> Workload:
    """A network of a matrix product, an activation function and a change of shape."""
    product = Layer(
        "fc/MatMul",
        "MatMul",
        (("O", ("D", "K")), ("I", ("D", "C")), ("W", ("C", "K"))),
        (("C", 4), ("D", 2), ("K", 3)),
        precision_bits=(("I", 8), ("W", 4), ("O_final", 8), ("O", 16)),
        constant_operands=("W",),
    )
    relu = Layer("relu", "Relu", (("O", ("B", "K")), ("I", ("B", "K"))), (("B", 2), ("K", 3)), (), (("I", 8), ("O", 8)))
    loops = product.loop_sizes
    written, read, weights = (access_of_loops(*pair) for pair in (("y", "DK"), ("x", "DC"), ("w", "CK")))
    nodes = (
        WorkloadNode(
            0, "fc/MatMul", "MatMul", product, (), None, False, MAC_ARRAY, "fc", "MatMul", "modelled",
            ("x", "w"), ("y",), (IndexMap(loops, written, read, "I"), IndexMap(loops, written, weights, "W")),
        ),
        WorkloadNode(
            1, "relu", "Relu", relu, (("I", 0),), None, False, VECTOR_UNIT, "relu", "Relu", "modelled", ("y",), ("z",),
            (identity_map("z", "y", (2, 3)),),
        ),
        WorkloadNode(
            2, "flat", "Reshape", None, (("I", 1),), 6, True, "", "flat", "Reshape", "pass-through", ("z",), ("o",)
        ),
    )  # fmt: skip
    tensors = (
        Tensor("x", (2, 4), 8),
        Tensor("w", (4, 3), 4, is_constant=True),
        *(Tensor(name, (2, 3), 8) for name in "yz"),
        Tensor("o", (6,), 8),
    )
    return Workload("net", nodes, tensors, ("x",), ("o",))


def test_rows_say_work_and_tensors(network: Workload) -> None:
    """Each layer has a row with work by unit, and elements and bits of weights, inputs and outputs."""
    rows = workload_table(network).set_index("layer")
    assert list(rows.index) == ["fc/MatMul", "relu"]
    assert (rows.mac_count["fc/MatMul"], rows.operation_count["fc/MatMul"]) == (24, 0)
    assert (rows.mac_count["relu"], rows.operation_count["relu"]) == (0, 6)
    assert (rows.weight_elements["fc/MatMul"], rows.weight_bits["fc/MatMul"]) == (12, 48)
    assert (rows.input_elements["fc/MatMul"], rows.input_bits["fc/MatMul"]) == (8, 64)
    assert (rows.output_elements["relu"], rows.output_bits["relu"]) == (6, 48)
    assert rows.loop_sizes["fc/MatMul"] == "C=4 D=2 K=3"


def test_text_has_totals(network: Workload) -> None:
    """The heading has the sums of the work."""
    assert workload_text(network).startswith("net: 2 layers, 24 MACs, 6 other operations")


def test_network_of_layers_alone() -> None:
    """A network without tensors has no columns for them."""
    layer = Layer("a", "Conv", (("O", ("K",)), ("I", ("K",))), (("K", 3),), (), (("I", 8), ("O", 8)))
    text = workload_text(Workload("n", (WorkloadNode(0, "a", "Conv", layer),)))
    assert "1 layer, 3 MACs" in text
    assert "elements" not in text


def test_coverage_rows_and_shares() -> None:
    """Work without costs is in the table, unknown work is called unknown, and long notices are shortened."""
    coverage = build_coverage(
        [
            OperatorCoverage("Conv", "modelled", 1, 75, 0, 800),
            OperatorCoverage("Magic", "unsupported", 1, 25, None, 80),
            OperatorCoverage("Relu", "modelled", 1, 0, 10, 160),
            OperatorCoverage("Relu", "modelled", 1, 0, 5, 160),
        ],
        ["long: " + "operator, " * 100],
    )
    text = coverage_text(coverage)
    assert "75.0%" in text
    assert "unknown" in text
    assert "note: long" in text
    assert len(text.splitlines()[-1]) < 420
    assert coverage.modelled_mac_share == 0.75
    assert coverage.modelled_bits_share == 1120 / 1200
    assert not coverage.is_complete
    relu = next(row for row in coverage.operators if row.operator_type == "Relu")
    assert (relu.node_count, relu.operation_count, relu.moved_bits) == (2, 15, 320)


def test_drawing_names_every_node(network: Workload, tmp_path: Path) -> None:
    """The SVG has a box with name and shape for each node, and the same bytes each time."""
    first, second = tmp_path / "a.svg", tmp_path / "b" / "b.svg"
    write_network_figure(network, first)
    write_network_figure(network, second)
    assert first.read_bytes() == second.read_bytes()
    text = " ".join(ElementTree.parse(first).getroot().itertext())
    for words in ("net: 3 nodes", "relu", "Reshape 6", "MatMul 2×3"):
        assert words in text


def test_drawing_of_names_that_cannot_be_drawn(tmp_path: Path) -> None:
    """Control characters in names, which XML cannot express, are replaced, so that the drawing is valid."""
    name = "conv\x01\x0b\x1b[31m\ufffe<&>\"'"
    relu = onnx.helper.make_node("Relu", ["x\x02"], ["y\x03"], name=name)
    shapes = [onnx.helper.make_tensor_value_info(text, onnx.TensorProto.FLOAT, [1, 3]) for text in ("x\x02", "y\x03")]
    graph = onnx.helper.make_graph([relu], "graph\x07", shapes[:1], shapes[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    path = tmp_path / "network.svg"
    write_network_figure(read_onnx(model, CORRECTED).workload, path)
    texts = [text.text or "" for text in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert "conv\ufffd\ufffd\ufffd[31m\ufffd<&>\"'" in texts
    assert any(text.startswith("Network graph\ufffd: 1 nodes") for text in texts)


def test_figures_of_runs_are_valid_too(tmp_path: Path) -> None:
    """A figure whose letters are outlines is valid SVG even if its text has a control character."""
    figure = Figure()
    figure.text(0.1, 0.1, "a\x01b")
    svg, _ = save_figure(figure, tmp_path / "figure")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
