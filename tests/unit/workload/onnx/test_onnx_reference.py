"""The parser compared with published work of real networks, and with the layers of zigzag-dse 3.9.1."""

import csv
import json
import time
from pathlib import Path

import pytest
from tilewright.base.profile import REFERENCE
from tilewright.workload.layer import Layer
from tilewright.workload.onnx import ParsedNetwork, read_onnx

NETWORKS = (
    "pypi/zigzag_dse/alexnet.onnx",
    "pypi/zigzag_dse/mobilenetv2.onnx",
    "pypi/zigzag_dse/resnet18.onnx",
    "torch_export/alexnet_dynamo.onnx",
    "torch_export/bert_tiny_eager_seq128_dynamo.onnx",
    "torch_export/bert_tiny_sdpa_seq128_dynamo.onnx",
    "torch_export/mobilenet_v2_dynamo.onnx",
    "torch_export/mobilenet_v2_torchscript.onnx",
    "torch_export/resnet18_dynamo.onnx",
    "torch_export/resnet18_dynbatch_dynamo.onnx",
    "torch_export/resnet18_torchscript.onnx",
    "torch_export/resnet50_dynamo.onnx",
    "torch_export/squeezenet1_1_dynamo.onnx",
    "torch_export/vgg16_dynamo.onnx",
)
"""The networks that must be costed completely; the other files of the list are read further below."""
COUNTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def _rows(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "models" / "expected.csv").open(newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def _dims(row: dict[str, str], symbols: bool) -> dict[str, int]:
    """Place -> size, from `x=1,3,640,640`; fixed dimensions are left out."""
    if not row["input_shapes"] or not symbols:
        return {}
    name, sizes = row["input_shapes"].split("=")
    return {f"{name}[{axis}]": int(size) for axis, size in enumerate(sizes.split(",")) if axis != 1}


@pytest.mark.parametrize("file", NETWORKS)
def test_work_of_real_networks(shared: Path, file: str) -> None:
    """The networks, in every export, are costed completely with the independently counted work."""
    expected = int(_rows(shared)[file]["macs_of_conv_convtranspose_gemm_matmul"])
    parsed = read_onnx(shared / "models" / file, REFERENCE)
    assert parsed.coverage.modelled_mac_count == expected
    assert parsed.coverage.is_complete


def test_work_of_all_listed_models(shared: Path) -> None:
    """Every listed model is read, and its convolutions and products have the listed work, costed or not."""
    for file, row in _rows(shared).items():
        expected = row["macs_of_conv_convtranspose_gemm_matmul"]
        if not expected:
            continue
        dims = _dims(row, symbols="dynbatch" not in file)
        coverage = read_onnx(shared / "models" / file, REFERENCE, dims=dims).coverage
        counted = sum(item.mac_count or 0 for item in coverage.operators if item.operator_type in COUNTED)
        assert counted == int(expected), file


def test_recurrent_network_is_told(shared: Path) -> None:
    """The work of LSTM nodes, gates x hidden x (inputs + hidden) a step, is counted and reported as not costed."""
    coverage = read_onnx(shared / "models" / "torch_export/lstm2_dynamo.onnx", REFERENCE).coverage
    assert coverage.total_mac_count == 50 * 4 * 64 * (40 + 64) + 50 * 4 * 64 * (64 + 64)
    assert coverage.modelled_mac_count == 0
    assert not coverage.is_complete


def _record(layer: Layer) -> dict[str, object]:
    return {
        "name": layer.name,
        "type": layer.operator_type,
        "equation": layer.equation.replace("+=", "="),
        "loop_dims": [dimension for dimension, _ in layer.loop_sizes],
        "loop_sizes": [size for _, size in layer.loop_sizes],
        "dimension_relations": [
            f"{relation.data_dimension} = " + " + ".join(f"{scale}*{dimension}" for dimension, scale in relation.terms)
            for relation in layer.relations
        ],
        "operand_precision": list(layer.precision_bits),
        "pr_layer_dim_sizes": dict(layer.data_dimension_sizes),
        "padding": {dimension: list(amounts) for dimension, amounts in layer.padding},
        "constant_operands": list(layer.constant_operands),
        "operand_order": list(layer.operands),
        "total_mac_count": layer.mac_count,
    }


def _pairs(table: dict[str, int]) -> list[tuple[str, int]]:
    """A table as pairs, so that order counts in a comparison."""
    return list(table.items())


def test_layers_as_the_reference_reads_them(shared: Path) -> None:
    """Names, order and all fields of layers equal those of zigzag-dse 3.9.1 on its three example networks."""
    networks: dict[str, ParsedNetwork] = {}
    compared = set()
    for path in sorted((shared / "conformance" / "flow").glob("*_onnx__*.json")):
        workload = path.name.split("__")[1].removesuffix("_onnx")
        record = json.loads(path.read_text())
        if workload not in networks:
            networks[workload] = read_onnx(shared / "conformance" / "workload" / f"{workload}.onnx", REFERENCE)
        nodes = networks[workload].workload.layers_in_order
        assert [node.name for node in nodes] == [name for name, _ in record["layers"]]
        for node, (_, index) in zip(nodes, record["layers"], strict=True):
            expected = record["unique_layers"][index]["layer"]
            assert node.layer is not None
            found = _record(node.layer)
            # Layers that pose the same problem share one record, that of the first of them.
            found["name"] = expected["name"]
            assert found == {
                key: _pairs(expected[key]) if key == "operand_precision" else expected[key] for key in found
            }
            compared.add((workload, node.name))
    assert len(compared) == 21 + 8 + 53


def test_reading_is_fast(shared: Path) -> None:
    """A network with complete shapes is read in less than 0.3 seconds, which a user does not notice."""
    path = shared / "conformance" / "workload" / "resnet18.onnx"
    read_onnx(path, REFERENCE)
    start = time.process_time()
    read_onnx(path, REFERENCE)
    assert time.process_time() - start < 0.3


def test_operator_test_models(shared: Path) -> None:
    """The reference profile costs convolutions of one and two axes; other ones are reported with their work."""
    folder = shared / "models" / "onnx_node_tests"
    costed, told = 0, 0
    for path in sorted(folder.glob("*.onnx")):
        coverage = read_onnx(path, REFERENCE, dims={}).coverage
        if "Conv1d" in path.name or "Conv2d" in path.name:
            assert coverage.is_complete, path.name
            costed += 1
        if "Conv3d" in path.name or "ConvTranspose" in path.name:
            assert coverage.total_mac_count > 0
            assert not coverage.is_complete, path.name
            told += 1
    assert costed > 10
    assert told > 5
