"""Layers split over output channels: the function is unchanged, every part fits, and the parts are the fewest."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator
from tilewright.base.errors import InputError
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.source import parse_mapping
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.layer_splitting import (
    METADATA_KEY,
    SplitNetwork,
    SplitOptions,
    open_model,
    split_layers,
)
from tilewright.multicore.nodes.split_operators import NOT_INCLUDED, ChannelPart, OperatorForm, channel_parts
from tilewright.multicore.nodes.tiling_options import TilingOptions, network_tiling
from tilewright.multicore.nodes.weights import weight_bits
from tilewright.workload.graph import Workload
from tilewright.workload.layer import part_name, whole_name
from tilewright.workload.source import parse_workload

from tests.unit.multicore.nodes.split_cases import CASES, IMAGE, SAME, W, random_values
from tests.unit.multicore.nodes.systems import CONFIG, quad_core
from tests.unit.workload.onnx.dependency_checks import build_model

OPEN = parse_mapping([{"name": "default"}])


def split(
    model: onnx.ModelProto, bits: int, mapping: Mapping = OPEN, options: SplitOptions | None = None
) -> SplitNetwork:
    """The model split for memories of the given number of bits."""
    workload = parse_workload(model, "corrected")
    return split_layers(model, workload, quad_core(all_cores=bits), mapping, options or SplitOptions())


def outputs(model: onnx.ModelProto, inputs: dict[str, Any]) -> list[Any]:
    """The outputs that the model computes."""
    return list(ReferenceEvaluator(model).run(None, inputs))


def mac_count(workload: Workload) -> int:
    """Multiply-accumulates of the layers with weights."""
    return sum(node.layer.mac_count for node in workload.nodes if node.layer and node.unit == "mac_array")


def largest_weights(workload: Workload) -> int:
    """Bits of the largest weights of all layers."""
    return max(weight_bits(node.layer) for node in workload.nodes if node.layer)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("opset", [12, 20])
def test_the_network_stays_the_same_function(name: str, opset: int) -> None:
    """The split model is valid ONNX with equal outputs for random inputs, equal MACs, and weights that fit."""
    nodes, inputs, constants, bits, parts = CASES[name]
    model = build_model(nodes, inputs, constants, opset=opset)
    result = split(model, bits)
    onnx.checker.check_model(result.model, full_check=True)
    values = {key: random_values((*shape, 1))[..., 0] for key, shape in inputs.items()}
    for before, after in zip(outputs(model, values), outputs(result.model, values), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    before, after = (parse_workload(one, "corrected") for one in (model, result.model))
    build_cn_graph(after, network_tiling(after, OPEN, quad_core(), TilingOptions(mode="lbl")))
    assert mac_count(after) == mac_count(before)
    assert largest_weights(before) > bits >= largest_weights(after)
    assert sum(len(one.parts) for one in result.splits) == parts


def test_parts_are_the_fewest_that_fit() -> None:
    """One part fewer would not fit, whatever the sizes of a small layer. All tiles are equal, except a smaller last
    one.
    """
    for channels in range(1, 13):
        for most in range(1, channels + 1):
            sizes = [part.end - part.start for part in channel_parts(OperatorForm(1, 0, 1, channels), most)]
            assert sum(sizes) == channels
            assert max(sizes) <= most
            assert -(-channels // (len(sizes) - 1)) > most if len(sizes) > 1 else channels <= most
            assert len(set(sizes[:-1])) <= 1
            assert sizes[-1] <= sizes[0]


def test_no_part_has_a_piece_of_two_groups() -> None:
    """3 groups of 4 channels are cut at group borders: whole groups where one fits, else pieces of each group."""
    form = OperatorForm(1, 0, 1, 12, groups=3)
    assert channel_parts(form, 9) == (ChannelPart(0, 8, 0, 2), ChannelPart(8, 12, 2, 1))
    assert [(part.start, part.end, part.first_group) for part in channel_parts(form, 3)] == [
        (0, 2, 0), (2, 4, 0), (4, 6, 1), (6, 8, 1), (8, 10, 2), (10, 12, 2),
    ]  # fmt: skip


def test_quantised_convolution_has_scales_of_each_channel() -> None:
    """QLinearConv: scale, zero point and bias of the weights are cut with the channels."""
    node = make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], name="c", **SAME)
    constants = {
        "xs": np.float32(0.1), "xz": np.uint8(3), "w": W((10, 4, 3, 3), np.int8), "ws": abs(W((10,))) + 0.01,
        "wz": np.zeros(10, np.int8), "ys": np.float32(0.5), "yz": np.uint8(1), "b": W((10,), np.int32),
    }  # fmt: skip
    model = build_model([node], IMAGE, constants, kinds={"x": TensorProto.UINT8})
    result = split(model, 900)
    onnx.checker.check_model(result.model, full_check=True)
    values = {"x": W((1, 4, 5, 5), np.uint8)}
    np.testing.assert_array_equal(outputs(result.model, values)[0], outputs(model, values)[0])
    assert [len(one.parts) for one in result.splits] == [4]


def test_integer_products_have_zero_points_of_columns() -> None:
    """MatMulInteger with a zero point for each column computes the same after the split."""
    node = make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"], name="c")
    constants = {"w": W((6, 10), np.int8), "xz": np.uint8(2), "wz": W((10,), np.int8)}
    model = build_model([node], {"x": (3, 6)}, constants, kinds={"x": TensorProto.UINT8})
    result = split(model, 200)
    values = {"x": W((3, 6), np.uint8)}
    np.testing.assert_array_equal(outputs(result.model, values)[0], outputs(model, values)[0])


def chain(first: int = 10) -> onnx.ModelProto:
    """Convolutions a and b from 4 to `first` to 4 channels, 3 x 3, in 8 bits."""
    nodes = [
        make_node("Conv", ["x", "w0"], ["a"], name="a", **SAME),
        make_node("Conv", ["a", "w1"], ["b"], name="b", **SAME),
    ]
    return build_model(nodes, IMAGE, {"w0": W((first, 4, 3, 3)), "w1": W((4, first, 3, 3))})


def test_channels_of_parts_reach_the_right_consumers() -> None:
    """A consumer that is cut over channels has edges from the parts that make these channels, through the Concat."""
    model = build_model(
        [
            make_node("Conv", ["x", "w0"], ["a"], name="a", **SAME),
            make_node("Conv", ["a", "w1"], ["b"], name="b", group=10, **SAME),
        ],
        IMAGE,
        {"w0": W((10, 4, 3, 3)), "w1": W((10, 1, 3, 3))},
    )
    result = split(model, 900)
    assert [one.layer for one in result.splits] == ["a"]  # parts of 3, 3, 3, 1 channels; b has 720 bits
    workload = parse_workload(result.model, "corrected")
    graph = build_cn_graph(workload, network_tiling(workload, OPEN, quad_core(), TilingOptions(1, [["G", "all"]])))
    names = [layer.name for layer in graph.layers]
    reader = names.index("b")
    found = {
        (names[graph.cn_layer[source]], int(target) - graph.layers[reader].first_cn)
        for source, target, operand in zip(graph.edge_source, graph.edge_target, graph.edge_operand, strict=True)
        if operand >= 0 and graph.cn_layer[target] == reader
    }
    assert found == {(f"a#{channel // 3 + 1}of4", channel) for channel in range(10)}


def test_what_a_mapping_says_of_a_layer_holds_for_its_parts() -> None:
    """An entry for a layer, by exact name or by glob, holds for its parts; an entry for a part takes precedence."""
    mapping = parse_mapping(
        [
            {"name": "default"},
            {"name": "a", "core_allocation": [1]},
            {"name": "a#2of4", "core_allocation": [2]},
            {"name": "[b-z]", "core_allocation": [3]},
        ]
    )
    workload = parse_workload(split(chain(), 900).model, "corrected")
    cores = {node.name: mapping.constraints_for(node.layer).core_allocation for node in workload.nodes if node.layer}
    assert cores == {
        "a#1of4": (1,), "a#2of4": (2,), "a#3of4": (1,), "a#4of4": (1,),
        "b#1of4": (3,), "b#2of4": (3,), "b#3of4": (3,), "b#4of4": (3,),
    }  # fmt: skip


def test_names_of_parts_lead_back_to_the_layer() -> None:
    """Names of parts, and of parts of parts, lead back to the layer. Similar names are names of layers."""
    assert [part_name("a/b", place, 2) for place in range(2)] == ["a/b#1of2", "a/b#2of2"]
    assert whole_name("a/b#2of2") == whole_name("a/b#2of2#1of3") == "a/b"
    for name in ("conv", "#1of2", "a#0of2", "a#1of2x", "a1of2", ""):
        assert whole_name(name) == name


def test_the_limit_is_the_smallest_memory_of_the_cores_that_may_run_the_layer() -> None:
    """Core 1 has half the memory, and only b may run there, so only b is split, for core 1."""
    mapping = parse_mapping([{"name": "default", "core_allocation": [0]}, {"name": "b", "core_allocation": [0, 1]}])
    model, accelerator = chain(), quad_core(core_0=2880, core_1=1440)
    result = split_layers(model, parse_workload(model, "corrected"), accelerator, mapping, SplitOptions())
    assert [(one.layer, one.core_id, one.memory_bits, len(one.parts)) for one in result.splits] == [("b", 1, 1440, 2)]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (SplitOptions(), []),
        (SplitOptions(0.99), [2, 2]),
        (SplitOptions(1, True), [2, 2]),
        (SplitOptions(0.5, True), [5, 4]),
    ],
)
def test_a_share_of_the_memory_may_be_used(options: SplitOptions, parts: list[int]) -> None:
    """Layers a (288 bits a channel) and b (720 bits a channel) are split into more parts for a share of the
    2880 bits.
    """
    assert [len(one.parts) for one in split(chain(), 2880, options=options).splits] == parts


def test_layers_that_stay_whole_are_told() -> None:
    """A layer with fixed cores and an operator of another kind stay whole, and a notice gives the reason."""
    nodes = [
        make_node("Conv", ["x", "w0"], ["a"], name="a", **SAME),
        make_node("ConvTranspose", ["a", "w1"], ["b"], name="b", group=2),
    ]
    model = build_model(nodes, IMAGE, {"w0": W((10, 4, 3, 3)), "w1": W((10, 2, 3, 3))})
    mapping = parse_mapping(
        [{"name": "default"}, {"name": "a", "core_allocation": [0], "core_allocation_is_fixed": True}]
    )
    result = split(model, 900, mapping)
    assert not result.splits
    assert "its cores are fixed" in result.notices[0]
    assert "this form of ConvTranspose" in result.notices[1]
    assert [node.name for node in result.model.graph.node] == ["a", "b"]


def test_channels_that_do_not_fit_are_told_for_every_layer() -> None:
    """Both layers are reported: one channel of a has 288 bits, one of b 720, and the memory has 200."""
    with pytest.raises(InputError, match="one output channel") as caught:
        split(chain(), 200)
    assert [problem.path for problem in caught.value.problems] == ["a", "b"]


def test_a_network_that_fits_stays_as_it_is() -> None:
    """A network that fits keeps every byte."""
    model = chain()
    result = split(model, 10**6)
    assert result.model.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True)


def external(model: onnx.ModelProto, location: str) -> onnx.ModelProto:
    """The model with its constants one after the other in a file."""
    offset = 0
    for tensor in model.graph.initializer:
        length = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        offset += length
    return model


def test_rows_of_external_weights_stay_in_their_file(tmp_path: Path) -> None:
    """The parts of a convolution refer to places in the file of the weights, which is not opened."""
    inline = chain()
    content = b"".join(tensor.raw_data for tensor in inline.graph.initializer)
    result = split(external(chain(), "data.bin"), 900)
    assert result.notices == ()
    (tmp_path / "data.bin").write_bytes(content)
    (tmp_path / "split.onnx").write_bytes(result.model.SerializeToString())
    values = {"x": W((1, 4, 5, 5))}
    read = onnx.load(str(tmp_path / "split.onnx"))
    np.testing.assert_allclose(outputs(read, values)[0], outputs(inline, values)[0], rtol=1e-4, atol=1e-4)


def test_columns_of_external_weights_keep_their_shape_alone() -> None:
    """Columns of external weights are not contiguous in the file, so only their shapes are kept, with a notice."""
    model = build_model([make_node("MatMul", ["x", "w"], ["y"], name="c")], {"x": (3, 6)}, {"w": W((6, 10))})
    result = split(external(model, "data.bin"), 200)
    parts = {tensor.name: tensor for tensor in result.model.graph.initializer}
    assert [list(parts[f"w#{place}of3"].dims) for place in (1, 2, 3)] == [[6, 4], [6, 4], [6, 2]]
    assert all(entry.value == NOT_INCLUDED for tensor in parts.values() for entry in tensor.external_data)
    assert "have only a shape" in result.notices[0]
    assert "w" in result.notices[0]


def test_large_weights_are_not_written_again(tmp_path: Path) -> None:
    """Weights over 1 MiB are kept as shapes only, unless values are asked for; the layers are equal."""
    model = build_model([make_node("MatMul", ["x", "w"], ["y"], name="c")], {"x": (3, 600)}, {"w": W((600, 600))})
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    light, whole = split(open_model(path), 10**6), split(open_model(path, keep_weights=True), 10**6)
    assert light.model.ByteSize() < 10_000 < path.stat().st_size < whole.model.ByteSize() * 1.01
    assert parse_workload(light.model, "corrected").nodes == parse_workload(whole.model, "corrected").nodes
    values = {"x": W((3, 600))}
    np.testing.assert_allclose(outputs(whole.model, values)[0], outputs(model, values)[0], rtol=1e-4, atol=1e-3)


def test_the_model_says_what_was_split() -> None:
    """The model's metadata names the split layers and their numbers of parts; two runs give the same bytes."""
    results = [split(chain(), 900).model for _ in range(2)]
    metadata = {entry.key: entry.value for entry in results[0].metadata_props}
    assert json.loads(metadata[METADATA_KEY]) == {"a": 4, "b": 4}
    assert results[0].SerializeToString(deterministic=True) == results[1].SerializeToString(deterministic=True)


def test_constants_that_old_files_list_as_inputs() -> None:
    """A constant that is also an input of the model is removed, and its parts become inputs."""
    model = chain()
    for tensor in model.graph.initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    model.ir_version = 3
    result = split(model, 2000)
    assert [value.name for value in result.model.graph.input] == ["x", "w0#1of2", "w0#2of2", "w1#1of2", "w1#2of2"]
    onnx.checker.check_model(result.model)


@pytest.mark.parametrize("kibibytes", [256, 100])
def test_resnet18(kibibytes: int) -> None:
    """ResNet-18: all layers fit, MACs are equal, and there are as many parts as mode 4 makes groups."""
    path = CONFIG / "workload" / "resnet18.onnx"
    bits = kibibytes * 8192
    before = parse_workload(path, "corrected")
    accelerator = quad_core(all_cores=bits)
    result = split_layers(open_model(path), before, accelerator, OPEN, SplitOptions())
    after = parse_workload(result.model, "corrected")
    assert mac_count(after) == mac_count(before) == 1_814_073_344
    assert largest_weights(after) <= bits < largest_weights(before)
    tiling = network_tiling(before, OPEN, accelerator, TilingOptions(4))
    groups = {layer.node_id: layer.group_count for layer in tiling.layers if layer.group_count > 1}
    assert [len(one.parts) for one in result.splits] == list(groups.values())
    assert result.notices == ()
    for tensor in result.model.graph.initializer:  # the file has no data; zeros stand for them
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.CopyFrom(numpy_helper.from_array(np.zeros(tuple(tensor.dims), kind), tensor.name))
    onnx.checker.check_model(result.model, full_check=True)


@pytest.mark.slow
def test_resnet18_computes_the_same() -> None:
    """ResNet-18 with random weights, split for 256 KiB: 9 layers become 48, and a random image has the same scores."""
    model = onnx.load(str(CONFIG / "workload" / "resnet18.onnx"), load_external_data=False)
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            fan_in = int(np.prod(tensor.dims[1:])) or 1
            tensor.CopyFrom(numpy_helper.from_array(W(tuple(tensor.dims)) / np.float32(fan_in**0.5), tensor.name))
    result = split(model, 256 * 8192)
    assert (len(result.splits), sum(len(one.parts) for one in result.splits)) == (9, 48)
    image = {"image": W((1, 3, 224, 224))}
    np.testing.assert_allclose(outputs(result.model, image)[0], outputs(model, image)[0], rtol=1e-4, atol=1e-4)
