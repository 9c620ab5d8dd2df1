"""Time and memory of making the graph of computation nodes (CNs): 10^3 to 10^6 CNs, and networks line by line.

    cn_graph.py [--largest 6] [--networks FOLDER_OR_FILE ...]

Each synthetic network has two 3x3 convolutions and an addition, cut into tiles of one output element. ONNX files are
cut into lines of every layer. Two CPU times are measured: the time to make the graph from the parsed network and the
tiling, and the time to make the pieces of data from the graph. The time to read the file is not included. Each graph is
made in a separate process, whose peak resident memory is also measured.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.pieces import data_pieces
from tilewright.multicore.nodes.tiling import HintLoopOptions, hint_loop_tiling
from tilewright.workload.source import parse_workload

FLOAT = onnx.TensorProto.FLOAT
LAYERS_OF_RESIDUAL_BLOCK = 3


def residual_block(side: int) -> onnx.ModelProto:
    """Network with two convolutions of a square image, and the sum of both results."""
    nodes = [
        make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1], name="first"),
        make_node("Conv", ["a", "w1"], ["b"], pads=[1, 1, 1, 1], name="second"),
        make_node("Add", ["a", "b"], ["y"], name="sum"),
    ]
    weights = [onnx.numpy_helper.from_array(_zeros(8, 8, 3, 3), name) for name in ("w0", "w1")]
    image = (1, 8, side, side)
    ends = [make_tensor_value_info(name, FLOAT, image) for name in ("x", "y")]
    graph = make_graph(nodes, "residual_block", ends[:1], ends[1:], weights)
    return make_model(graph, opset_imports=[make_opsetid("", 20)], ir_version=9)


def _zeros(*shape: int) -> Any:
    import numpy as np

    return np.zeros(shape, np.float32)


def measure(source: str) -> dict[str, Any]:
    """Measure one graph. `source` is a number of CNs or the path of an ONNX file."""
    if source.isdigit():
        side = round(math.sqrt(int(source) / LAYERS_OF_RESIDUAL_BLOCK))
        workload = parse_workload(residual_block(side), "corrected")
        loops = [("OX", "all"), ("OY", "all")]
    else:
        workload = parse_workload(source, "corrected")
        loops = [("OY", "all"), ("D", "all")]
        known = {dimension for node in workload.nodes if node.layer for dimension in node.layer.size_of}
        loops = [loop for loop in loops if loop[0] in known]
    before_mib = _peak_mib()
    start = time.process_time()
    tiling = hint_loop_tiling(workload, HintLoopOptions(hint_loops=loops))
    graph = build_cn_graph(workload, tiling)
    seconds = time.process_time() - start
    start = time.process_time()
    pieces = data_pieces(workload, graph)
    piece_seconds = time.process_time() - start
    return {
        "source": Path(source).name,
        "layers": len(graph.layers),
        "cns": graph.cn_count,
        "edges": len(graph.edge_source),
        "data_edges": graph.data_edge_count,
        "shapes": len(graph.shapes),
        "seconds": round(seconds, 3),
        "pieces": len(pieces.bits),
        "piece_seconds": round(piece_seconds, 3),
        "peak_mib": round(_peak_mib()),
        "peak_before_mib": round(before_mib),
    }


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure all graphs, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=6, help="10 to this power is the largest number of CNs")
    parser.add_argument("--networks", nargs="*", default=[], help="ONNX files, cut line by line")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    titles = ("layers", 8), ("CNs", 10), ("edges", 12), ("shapes", 8), ("seconds", 10), ("pieces", 10), ("seconds", 10)
    print(f"{'source':28}" + "".join(f"{title:>{width}}" for title, width in (*titles, ("peak MiB", 10))))
    for source in [*(str(10**power) for power in range(3, arguments.largest + 1)), *arguments.networks]:
        command = [sys.executable, __file__, "--one", source]
        row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(
            f"{row['source']:28}{row['layers']:8}{row['cns']:10}{row['edges']:12}{row['shapes']:8}"
            f"{row['seconds']:10.3f}{row['pieces']:10}{row['piece_seconds']:10.3f}{row['peak_mib']:10}"
        )


if __name__ == "__main__":
    main()
