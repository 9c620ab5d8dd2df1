"""Time and memory to read a large network: a transformer of 100 layers with a dynamic batch.

    python benchmarks/onnx_parsing.py [--layers 100] [--hidden 2048] [--length 512]

The weights (10 GB of float16) are external data in a file that does not exist. Large ONNX files are often passed on
without their weights. The model is written once. Each step is measured in a separate process, including imports. The
targets for reading are less than 10 s of CPU time and less than 500 MB.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGET_SECONDS, TARGET_MEGABYTES = 10.0, 500.0
STEPS = ("import", "decode", "resolve", "read")
_HEADS = 16


class _Builder:
    """Graph to which nodes are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initialisers: list[onnx.TensorProto] = []
        self.weight_bytes = 0

    def add(self, operator: str, inputs: list[str], name: str, **attributes: object) -> str:
        """Add an operator. Returns the name of its result."""
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}_output"], name=name, **attributes))
        return f"{name}_output"

    def weight(self, name: str, *shape: int) -> str:
        """Add a weight without bytes. Returns its name."""
        tensor = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT16, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="absent.bin")
        tensor.external_data.add(key="offset", value=str(self.weight_bytes))
        self.weight_bytes += 2 * int(np.prod(shape))
        self.initialisers.append(tensor)
        return name

    def constant(self, name: str, value: object) -> str:
        """Add a small constant. Returns its name."""
        self.initialisers.append(numpy_helper.from_array(np.asarray(value), name))
        return name


def transformer(layers: int, hidden: int, length: int) -> tuple[onnx.ModelProto, int]:
    """Write a decoder as the exporter of PyTorch writes it, including reshapes by computed shapes. Returns the bytes of
    its weights.
    """
    build = _Builder()
    zero, first = build.constant("zero", 0), build.constant("first", [0])
    data = "x"
    for index in range(layers):
        data = _block(build, f"/layers.{index}", data, hidden, zero, first)
    build.add("Identity", [data], "y")
    graph = helper.make_graph(
        build.nodes,
        "transformer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["batch", length, hidden])],
        [helper.make_tensor_value_info("y_output", TensorProto.FLOAT16, ["batch", length, hidden])],
        build.initialisers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), build.weight_bytes


def _block(build: _Builder, name: str, data: str, hidden: int, zero: str, first: str) -> str:
    """Add a block: attention and two fully connected layers, each with a normalisation before it and a sum after it."""
    split, joined = (
        build.constant(f"{name}/split", [0, _HEADS, hidden // _HEADS]),
        build.constant(f"{name}/all", [-1, hidden]),
    )
    scale = build.constant(f"{name}/root", np.float16((hidden / _HEADS) ** -0.5))
    normed = build.add("LayerNormalization", [data, build.weight(f"{name}/ln1", hidden)], f"{name}/LayerNorm1")
    batch = build.add("Gather", [build.add("Shape", [normed], f"{name}/Shape"), zero], f"{name}/Gather", axis=0)
    rows = build.add("Unsqueeze", [batch, first], f"{name}/Unsqueeze")
    heads = build.add("Concat", [rows, split], f"{name}/Concat1", axis=0)
    parts = []
    for part in "qkv":
        product = build.add(
            "MatMul", [normed, build.weight(f"{name}/w{part}", hidden, hidden)], f"{name}/MatMul_{part}"
        )
        biased = build.add("Add", [product, build.weight(f"{name}/b{part}", hidden)], f"{name}/Add_{part}")
        shaped = build.add("Reshape", [biased, heads], f"{name}/Reshape_{part}")
        turned = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
        parts.append(build.add("Transpose", [shaped], f"{name}/Transpose_{part}", perm=turned))
    scores = build.add("MatMul", parts[:2], f"{name}/MatMul_scores")
    scaled = build.add("Mul", [scores, scale], f"{name}/Mul")
    weights = build.add("Softmax", [scaled], f"{name}/Softmax", axis=-1)
    mixed = build.add("MatMul", [weights, parts[2]], f"{name}/MatMul_mixed")
    turned_back = build.add("Transpose", [mixed], f"{name}/Transpose", perm=[0, 2, 1, 3])
    target = build.add("Concat", [rows, joined], f"{name}/Concat2", axis=0)
    merged = build.add("Reshape", [turned_back, target], f"{name}/Reshape")
    output = build.add("MatMul", [merged, build.weight(f"{name}/wo", hidden, hidden)], f"{name}/MatMul_out")
    summed = build.add("Add", [output, data], f"{name}/Add1")
    again = build.add("LayerNormalization", [summed, build.weight(f"{name}/ln2", hidden)], f"{name}/LayerNorm2")
    wide = build.add("MatMul", [again, build.weight(f"{name}/w1", hidden, 4 * hidden)], f"{name}/MatMul1")
    gate = build.add("Sigmoid", [wide], f"{name}/Sigmoid")
    active = build.add("Mul", [wide, gate], f"{name}/Mul1")
    narrow = build.add("MatMul", [active, build.weight(f"{name}/w2", 4 * hidden, hidden)], f"{name}/MatMul2")
    return build.add("Add", [narrow, summed], f"{name}/Add2")


def run_step(step: str, path: str) -> dict[str, float]:
    """Run all steps up to `step`. Returns the time and memory used by the process so far, and the number of nodes."""
    from tilewright.base.profile import CORRECTED
    from tilewright.workload.onnx import read_onnx
    from tilewright.workload.onnx.loading import load_model
    from tilewright.workload.onnx.resolution.network import resolve_graph

    nodes = 0
    if step == "read":
        nodes = len(read_onnx(path, CORRECTED).workload.nodes)
    elif step != "import":
        model, _, _ = load_model(path)
        nodes = len(model.graph.node if step == "decode" else resolve_graph(model).nodes)
    return {
        "nodes": nodes,
        "cpu_seconds": time.process_time(),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> int:
    """Print the table. A slow result is reported, but is no failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=100)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(run_step(arguments.step, arguments.file)))
        return 0
    model, weight_bytes = transformer(arguments.layers, arguments.hidden, arguments.length)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "transformer.onnx"
        path.write_bytes(model.SerializeToString())
        print(
            f"{len(model.graph.node)} operators, {weight_bytes / 1e9:.1f} GB of weights, file {path.stat().st_size} B"
        )
        print(f"{'up to':<10}{'nodes':>8}{'CPU s':>10}{'MB':>10}")
        for step in STEPS:
            command = [sys.executable, __file__, "--step", step, "--file", str(path)]
            used = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{step:<10}{used['nodes']:>8}{used['cpu_seconds']:>10.2f}{used['megabytes']:>10.0f}")
    print(f"targets: under {TARGET_SECONDS:.0f} s and {TARGET_MEGABYTES:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
