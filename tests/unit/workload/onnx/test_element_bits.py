"""Bits of every element type of ONNX, from the place where a tensor is stored to the layer that reads it."""

from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.base.profile import CORRECTED
from tilewright.workload.network_options import ASSUMED, FILE, NetworkOptions
from tilewright.workload.onnx import ParsedNetwork, read_onnx

BITS = {
    **{"BOOL": 8, "FLOAT": 32, "DOUBLE": 64, "FLOAT16": 16, "BFLOAT16": 16, "COMPLEX64": 64, "COMPLEX128": 128},
    **{"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "INT8": 8, "UINT8": 8, "INT16": 16, "UINT16": 16},
    **{"INT32": 32, "UINT32": 32, "INT64": 64, "UINT64": 64},
    **{"FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "FLOAT8E8M0": 8},
    **{"FLOAT4E2M1": 4, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6},
}
"""Element type -> bits, as onnx.proto says; a boolean is stored in a byte."""
WITHOUT_BITS = ("UNDEFINED", "STRING")
REAL = ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "COMPLEX64", "COMPLEX128")
STORED = tuple(
    name for name in BITS if name.startswith(("INT", "UINT", "FLOAT")) and name not in REAL and BITS[name] <= 16
)
"""Formats of weights that stand for real numbers."""
ROWS, COLUMNS, BLOCK = 16, 8, 4
POLICIES = (ASSUMED, FILE)
INSTALLED = [name for name in dict(onnx.TensorProto.DataType.items()) if name not in WITHOUT_BITS]


def test_every_element_type_has_a_row() -> None:
    """Every type of the installed onnx is in the table; new types must be added with the standard's bits."""
    assert set(INSTALLED) <= set(BITS)


def _read(model: onnx.ModelProto, policy: str) -> ParsedNetwork:
    return read_onnx(model, CORRECTED, options=NetworkOptions(precision=policy))


def _model(nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[int]]], tensors: list[onnx.TensorProto],
           functions: tuple[onnx.FunctionProto, ...] = ()) -> onnx.ModelProto:  # fmt: skip
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "bits",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for node in nodes for name in node.output if name not in read],
        tensors,
    )
    version = onnx.defs.onnx_opset_version()
    sets = [helper.make_opsetid("", version), helper.make_opsetid("own", 1), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, functions=functions)


@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_tensor_has_the_bits_of_its_type(name: str, policy: str) -> None:
    """A tensor has the bits of its type as an input and behind a move of data; floats count as assumed or as stored."""
    kind = TensorProto.DataType.Value(name)
    model = _model([helper.make_node("Transpose", ["x"], ["y"])], {"x": (kind, [2, 3])}, [])
    tensors = {tensor.name: tensor for tensor in _read(model, policy).workload.tensors}
    expected = 8 if name in REAL and policy == ASSUMED else BITS[name]
    assert {key: tensor.bits for key, tensor in tensors.items()} == {"x": expected, "y": expected}


def _raw(name: str) -> onnx.TensorProto:
    bits = ROWS * COLUMNS * BITS[name]
    kind = TensorProto.DataType.Value(name)
    content = bytes(number * 37 % 256 for number in range(-(-bits // 8)))
    return TensorProto(name="w", data_type=kind, dims=[ROWS, COLUMNS], raw_data=content)


def _typed(name: str) -> onnx.TensorProto:
    kind = TensorProto.DataType.Value(name)
    per_entry = 8 // BITS[name] if BITS[name] in (2, 4) else 1
    return TensorProto(name="w", data_type=kind, dims=[ROWS, COLUMNS], int32_data=[1] * (ROWS * COLUMNS // per_entry))


def _external(name: str) -> onnx.TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.DataType.Value(name), dims=[ROWS, COLUMNS])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="absent.bin")
    return tensor


def _without_data(name: str) -> onnx.TensorProto:
    return TensorProto(name="w", data_type=TensorProto.DataType.Value(name), dims=[ROWS, COLUMNS])


PLACES: dict[str, Callable[[str], onnx.TensorProto]] = {
    "raw": _raw, "typed": _typed, "external": _external, "absent": _without_data
}  # fmt: skip
node = helper.make_node


def _dequantised(axis: int, scale: str, **attributes: int) -> list[onnx.NodeProto]:
    return [node("DequantizeLinear", ["w", scale], ["f"], axis=axis, **attributes)]


def _cast_and(*steps: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [node("Cast", ["w"], ["c"], to=TensorProto.FLOAT), *steps]


WAYS: dict[str, list[onnx.NodeProto]] = {
    "dequantised": _dequantised(1, "one"),
    "dequantised by column": _dequantised(1, "columns"),
    "dequantised by block": _dequantised(0, "blocks", block_size=BLOCK),
    "cast": [node("Cast", ["w"], ["f"], to=TensorProto.FLOAT)],
    "cast like": [node("CastLike", ["w", "one"], ["f"])],
    "cast like the input": [node("CastLike", ["w", "x"], ["f"])],
    "cast twice": [
        node("Cast", ["w"], ["c"], to=TensorProto.FLOAT16), node("Cast", ["c"], ["f"], to=TensorProto.FLOAT)
    ],
    "cast and scaled": _cast_and(node("Mul", ["c", "columns"], ["f"])),
    "scaled by what comes first": _cast_and(node("Mul", ["columns", "c"], ["f"])),
    "cast, shifted and divided": _cast_and(node("Sub", ["c", "one"], ["s"]), node("Div", ["s", "columns"], ["f"])),
    "cast and scaled by block": _cast_and(
        node("Reshape", ["c", "split"], ["r"]),
        node("Mul", ["r", "per_block"], ["m"]),
        node("Reshape", ["m", "whole"], ["f"]),
    ),
    "scaled by an expanded scale": _cast_and(
        node("Expand", ["columns", "whole"], ["e"]), node("Mul", ["e", "c"], ["f"])
    ),
    "moved": [
        node("Transpose", ["w"], ["t"]),
        node("Transpose", ["t"], ["b"]),
        node("Cast", ["b"], ["f"], to=TensorProto.FLOAT),
    ],
    "cut and joined": _cast_and(
        node("Split", ["c"], ["p", "q"], num_outputs=2), node("Concat", ["q", "p"], ["f"], axis=0)
    ),
    "negated and clipped": _cast_and(node("Neg", ["c"], ["n"]), node("Clip", ["n"], ["f"])),
}  # fmt: skip


def _scales() -> list[onnx.TensorProto]:
    shapes = {
        "one": (),
        "columns": (COLUMNS,),
        "blocks": (ROWS // BLOCK, COLUMNS),
        "per_block": (ROWS // BLOCK, 1, COLUMNS),
    }
    scales = [numpy_helper.from_array(np.full(shape, 0.5, np.float32), name) for name, shape in shapes.items()]
    shape_of = {"split": (ROWS // BLOCK, BLOCK, COLUMNS), "whole": (ROWS, COLUMNS)}
    return scales + [numpy_helper.from_array(np.asarray(sizes, np.int64), name) for name, sizes in shape_of.items()]


def _product(weights: list[onnx.NodeProto], stored: onnx.TensorProto) -> onnx.ModelProto:
    nodes = [*weights, node("MatMul", ["x", "f"], ["y"], name="product")]
    return _model(nodes, {"x": (TensorProto.FLOAT, [4, ROWS])}, [stored, *_scales()])


def _weight_bits(model: onnx.ModelProto, policy: str) -> tuple[int, int]:
    """(bits of a weight of the product, bits of the tensor that it reads)."""
    workload = _read(model, policy).workload
    (product,) = (found for found in workload.layers_in_order if found.layer and found.layer.operator_type == "MatMul")
    assert product.layer is not None
    (read,) = (workload.tensor_of[name] for name in product.inputs if workload.tensor_of[name].is_constant)
    return dict(product.layer.precision_bits)["W"], read.bits


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("way", WAYS)
def test_weights_have_the_bits_that_are_stored(way: str, policy: str) -> None:
    """Values computed from weights before run time have the bits of the stored weights, under both policies."""
    for name in STORED:
        for place, stored in PLACES.items():
            bits = _weight_bits(_product(WAYS[way], stored(name)), policy)
            assert bits == (BITS[name], BITS[name]), (name, place)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", REAL[:4])
def test_floats_that_are_cast_count_as_floats(name: str, policy: str) -> None:
    """A BFLOAT16 that is cast to FLOAT is no quantised number: it counts as 8 bits if assumed, else as FLOAT."""
    expected = 8 if policy == ASSUMED else 32
    assert _weight_bits(_product(WAYS["cast"], _external(name)), policy) == (expected, expected)


def _in_function(name: str) -> onnx.ModelProto:
    stored = _raw(name)
    body = [node("Constant", [], ["w"], value=stored), *WAYS["cast and scaled"]]
    sets = [helper.make_opsetid("", onnx.defs.onnx_opset_version())]
    function = helper.make_function("own", "Weights", ["columns"], ["f"], body, sets)
    nodes = [node("Weights", ["columns"], ["f"], domain="own"), node("MatMul", ["x", "f"], ["y"])]
    return _model(nodes, {"x": (TensorProto.FLOAT, [4, ROWS])}, _scales(), (function,))


def _in_branch(name: str) -> onnx.ModelProto:
    result = [helper.make_tensor_value_info("f", TensorProto.FLOAT, [ROWS, COLUMNS])]
    graphs = {
        f"{label}_branch": helper.make_graph(WAYS["dequantised by block"], label, [], result, [_raw(name)])
        for label in ("then", "else")
    }
    always = numpy_helper.from_array(np.asarray(True), "always")
    nodes = [node("If", ["always"], ["g"], **graphs), node("MatMul", ["x", "g"], ["y"])]
    return _model(nodes, {"x": (TensorProto.FLOAT, [4, ROWS])}, [always, *_scales()])


def _in_loop(name: str) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("s", TensorProto.FLOAT, [4, ROWS]),
    ]
    results = [
        helper.make_tensor_value_info("on", TensorProto.BOOL, []),
        helper.make_tensor_value_info("kept", TensorProto.FLOAT, [4, ROWS]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, COLUMNS]),
    ]
    nodes = [node("Identity", ["go"], ["on"]), node("Identity", ["s"], ["kept"]), *WAYS["cast"]]
    body = helper.make_graph([*nodes, node("MatMul", ["s", "f"], ["y"])], "body", ends, results, [_raw(name)])
    constants = [numpy_helper.from_array(np.asarray(1, np.int64), "n"), numpy_helper.from_array(np.asarray(True), "t")]
    loop = node("Loop", ["n", "t", "x"], ["last", "all"], body=body)
    return _model([loop], {"x": (TensorProto.FLOAT, [4, ROWS])}, [*constants, *_scales()])


@pytest.mark.parametrize("inside", [_in_function, _in_branch, _in_loop])
def test_weights_inside_functions_and_subgraphs(inside: Callable[[str], onnx.ModelProto]) -> None:
    """A constant of a function, a branch or a loop body has the bits that are stored."""
    for name in STORED:
        assert _weight_bits(inside(name), FILE) == (BITS[name], BITS[name]), name


def test_what_is_quantised_at_run_time() -> None:
    """The results of QuantizeLinear and of DequantizeLinear have the bits of the quantised type."""
    for name in (name for name in STORED if name != "FLOAT8E8M0"):  # which is for scales only
        kind = TensorProto.DataType.Value(name)
        nodes = [
            node("QuantizeLinear", ["x", "one"], ["q"], output_dtype=kind),
            node("DequantizeLinear", ["q", "one"], ["d"]),
            node("MatMul", ["d", "b"], ["y"]),
        ]
        matrix = (TensorProto.FLOAT, [4, 4])
        workload = _read(_model(nodes, {"x": matrix, "b": matrix}, _scales()), FILE).workload
        assert (workload.tensor_of["q"].bits, workload.tensor_of["d"].bits) == (BITS[name], BITS[name]), name


def test_what_is_narrowed_before_run_time() -> None:
    """A constant that is cast to a narrower format, and back, has the bits of the narrowest one."""
    for name in ("INT4", "UINT2", "FLOAT4E2M1", "FLOAT6E2M3"):
        kind = TensorProto.DataType.Value(name)
        nodes = [node("Cast", ["w"], ["n"], to=kind), node("Cast", ["n"], ["f"], to=TensorProto.FLOAT)]
        for stored in ("FLOAT", "INT8", "INT16"):
            assert _weight_bits(_product(nodes, _external(stored)), FILE) == (BITS[name], BITS[name]), (name, stored)


def test_numbers_that_are_unpacked_before_run_time() -> None:
    """Weights that are packed two in a byte, and unpacked by a mask and a shift, have four bits."""
    values = np.arange(ROWS * COLUMNS // 2, dtype=np.uint8).reshape(ROWS // 2, COLUMNS)
    constants = {"packed": values, "mask": np.uint8(15), "four": np.uint8(4), "zero": np.float32(8)}
    nodes = [
        node("BitwiseAnd", ["packed", "mask"], ["low"]),
        node("BitShift", ["packed", "four"], ["high"], direction="RIGHT"),
        node("Concat", ["low", "high"], ["both"], axis=0),
        node("Cast", ["both"], ["c"], to=TensorProto.FLOAT),
        node("Sub", ["c", "zero"], ["s"]),
        node("Mul", ["s", "columns"], ["f"]),
        node("MatMul", ["x", "f"], ["y"]),
    ]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    model = _model(nodes, {"x": (TensorProto.FLOAT, [4, ROWS])}, [*tensors, *_scales()])
    assert _weight_bits(model, FILE) == (4, 4)


def test_numbers_from_a_table_of_codes() -> None:
    """Weights of four bits that pick one of sixteen table entries have four bits."""
    table = numpy_helper.from_array(np.linspace(-1, 1, 16, dtype=np.float32), "table")
    codes = [node("Cast", ["w"], ["i"], to=TensorProto.INT64), node("Gather", ["table", "i"], ["f"])]
    model = _product(codes, _external("UINT4"))
    model.graph.initializer.append(table)
    assert _weight_bits(model, FILE) == (4, 4)


def _packed() -> Iterator[tuple[int, int, int]]:
    for bits in (2, 4, 8):
        for depth in (64, 60, 33, 5):
            yield bits, depth, 32


@pytest.mark.parametrize("policy", POLICIES)
def test_weights_that_are_packed_in_blocks(policy: str) -> None:
    """Weights of MatMulNBits have the bits that the node states, also if the last block is incomplete."""
    for bits, depth, block in _packed():
        blocks = -(-depth // block)
        sizes = [COLUMNS, blocks, block * bits // 8]
        packed = TensorProto(name="w", data_type=TensorProto.UINT8, dims=sizes, raw_data=bytes(int(np.prod(sizes))))
        scales = numpy_helper.from_array(np.ones((COLUMNS, blocks), np.float32), "s")
        attributes = {"K": depth, "N": COLUMNS, "bits": bits, "block_size": block}
        nodes = [node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **attributes)]
        parsed = _read(_model(nodes, {"x": (TensorProto.FLOAT, [3, depth])}, [packed, scales]), policy)
        (found,) = parsed.workload.layers_in_order
        assert found.layer is not None
        assert dict(found.layer.precision_bits)["W"] == bits
        assert found.layer.mac_count == 3 * depth * COLUMNS


def test_rows_of_a_packed_table() -> None:
    """Rows that GatherBlockQuantized reads have the bits of the codes, packed in bytes or in a narrow type."""
    for kind, width, bits in (("UINT8", 16, 4), ("UINT4", 32, 4), ("INT4", 32, 4), ("UINT8", 32, 8)):
        table = TensorProto(name="w", data_type=TensorProto.DataType.Value(kind), dims=[10, width])
        scales = numpy_helper.from_array(np.ones((10, 2), np.float32), "s")
        names = {"domain": "com.microsoft", "gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": bits}
        nodes = [node("GatherBlockQuantized", ["w", "i", "s"], ["y"], **names)]
        workload = _read(_model(nodes, {"i": (TensorProto.INT64, [5])}, [table, scales]), FILE).workload
        (layer,) = workload.layers_in_order
        assert layer.layer is not None
        assert dict(layer.layer.precision_bits)["I"] == bits, (kind, width)


@pytest.mark.parametrize(
    "cast", [node("Cast", ["w"], ["f"], to=TensorProto.FLOAT), node("CastLike", ["w", "x"], ["f"])]
)
def test_booleans_behind_a_cast_are_stored_in_bytes(cast: onnx.NodeProto) -> None:
    """Booleans behind a cast are stored in bytes, under both policies."""
    weights = numpy_helper.from_array(np.zeros((ROWS, COLUMNS), bool), "w")
    model = _model([cast, node("MatMul", ["x", "f"], ["y"])], {"x": (TensorProto.FLOAT, [4, ROWS])}, [weights])
    for policy in POLICIES:
        assert _weight_bits(model, policy) == (8, 8)
