"""Whole networks of many exporters: all their work is modelled, and parsed networks are read back."""

import csv
from pathlib import Path

import onnx
import pytest
from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.base.profile import CORRECTED
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.reader import ParsedNetwork

RUN_TIME_INDICES = {"Gather", "GatherND"}
"""Moves of data whose indices are computed at run time, the only inexact maps of these networks."""
NOT_MODELLED = {
    *("SequenceAt", "SequenceConstruct", "SequenceErase", "SequenceInsert", "SequenceLength"),
    *("ConcatFromSequence", "SplitToSequence", "StringNormalizer", "ai.onnx.preview.training::Gradient"),
}
NO_SIZE = {"simple__test_sequence_model1.onnx", "simple__test_sequence_model4.onnx"}


def _rows(shared: Path) -> list[dict[str, str]]:
    with (shared / "models" / "expected.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _parse(shared: Path, row: dict[str, str]) -> ParsedNetwork:
    name, _, sizes = row["input_shapes"].partition("=")
    shapes = ((name, tuple(int(size) for size in sizes.split(","))),) if name else ()
    return read_onnx(shared / "models" / row["file"], CORRECTED, options=NetworkOptions(input_shapes=shapes))


def test_listed_networks_are_modelled_whole(shared: Path) -> None:
    """The listed multiply-accumulates are all costed, nothing is unsupported, and every tensor has a shape.

    Every index map has an index for each axis, over its loops. The maps of a layer have the layer's loops.
    """
    for row in _rows(shared):
        parsed = _parse(shared, row)
        coverage, workload = parsed.coverage, parsed.workload
        listed = row["macs_of_conv_convtranspose_gemm_matmul"]
        if listed:
            assert coverage.modelled_mac_count == int(listed), row["file"]
        assert coverage.modelled_mac_share == coverage.modelled_operation_share == 1, row["file"]
        assert coverage.is_complete, row["file"]
        approximated = {entry.operator_type for entry in coverage.operators if entry.status == "approximated"}
        assert approximated <= RUN_TIME_INDICES, row["file"]
        layers = [node.layer for node in workload.layers_in_order if node.layer and node.unit == MAC_ARRAY]
        assert sum(layer.mac_count for layer in layers) == coverage.modelled_mac_count, row["file"]
        known = workload.tensor_of
        assert all(name in known for node in workload.nodes for name in (*node.inputs, *node.outputs)), row["file"]
        _check_maps(workload)


def _check_maps(workload: Workload) -> None:
    assert any(node.index_maps for node in workload.nodes)
    for node in workload.nodes:
        for index_map in node.index_maps:
            loops = {name for name, _ in index_map.loops}
            for access in (index_map.output, index_map.input):
                assert len(access.axes) == len(workload.tensor_of[access.tensor].shape), node.name
                assert {name for axis in access.axes for name, _ in axis.terms} <= loops, node.name
            assert node.layer is None or index_map.loops == node.layer.loop_sizes, node.name


@pytest.mark.parametrize("file", ["static/all-MiniLM-L6-v2-int8_static.onnx", "torch_export/lstm2_dynamo.onnx"])
def test_networks_read_back_without_loss(shared: Path, file: str) -> None:
    """The encoded form of a network holds all of it."""
    workload = read_onnx(shared / "models" / file, CORRECTED).workload
    assert decode(Workload, encode(workload)) == workload


def test_operator_models_have_the_stored_output_shapes(shared: Path) -> None:
    """One-operator models have the stored output shapes; only sequences, texts and gradients are unsupported."""
    for path in sorted((shared / "models" / "onnx_node_tests").glob("*.onnx")):
        if path.name in NO_SIZE:
            continue
        parsed = read_onnx(path, CORRECTED)
        assert {row.operator_type for row in parsed.coverage.unsupported} <= NOT_MODELLED, path.name
        for value in onnx.load(path).graph.output:
            stored = tuple(dimension.dim_value for dimension in value.type.tensor_type.shape.dim)
            assert parsed.workload.tensor_of[value.name].shape == stored, path.name
