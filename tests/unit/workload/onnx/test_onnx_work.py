"""The multiply-accumulates of a network equal those of a plain walk over it, under each profile.

`python -m tests.unit.workload.onnx.test_onnx_work 10000` compares that many graphs.
"""

import sys

import onnx
import pytest
from onnx import TensorProto, helper
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.workload.onnx import read_onnx

from tests.plain.onnx_work import count_macs
from tests.unit.workload.onnx.work_graphs import PIECES, work_graph

_GRAPHS = 60


def differences(first: int, count: int) -> list[str]:
    """The seeds whose counts differ, with the plain, corrected and reference counts."""
    found = []
    for seed in range(first, first + count):
        model = work_graph(seed)
        plain = count_macs(model)
        coverages = [read_onnx(model, profile).coverage for profile in (CORRECTED, REFERENCE)]
        counts = [None if row.modelled_mac_share is None else row.total_mac_count for row in coverages]
        kinds = [node.op_type for node in model.graph.node]
        if counts != [plain, plain] or not coverages[0].is_complete:
            found.append(f"seed {seed}: {kinds}: {plain} {counts}")
    return found


def test_counts_of_random_graphs_are_those_of_a_plain_walk() -> None:
    """Both profiles report the multiply-accumulates of the plain walk; the corrected profile also costs all of them."""
    kinds = {node.op_type for seed in range(_GRAPHS) for node in work_graph(seed).graph.node}
    assert len(kinds) > len(PIECES)
    assert not differences(0, _GRAPHS)


@pytest.mark.parametrize("profile", [CORRECTED, REFERENCE])
def test_attention_with_a_cache(profile: object) -> None:
    """A decode step with 127 cached keys: 8 heads x 1 query x 128 keys x (32 + 32)."""
    ends = {"q": [1, 1, 256], "k": [1, 1, 64], "v": [1, 1, 64], "pk": [1, 2, 127, 32], "pv": [1, 2, 127, 32]}
    made = {"y": [1, 1, 256], "nk": [1, 2, 128, 32], "nv": [1, 2, 128, 32]}
    attributes = {"q_num_heads": 8, "kv_num_heads": 2, "is_causal": 1}
    node = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "nk", "nv"], name="att", **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "decode",
        [info(name, TensorProto.FLOAT, shape) for name, shape in ends.items()],
        [info(name, TensorProto.FLOAT, shape) for name, shape in made.items()],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    assert read_onnx(model, profile).coverage.total_mac_count == 65_536  # type: ignore[arg-type]


if __name__ == "__main__":
    lines = differences(1_000_000, int(sys.argv[1]))
    print("\n".join([*lines, f"{sys.argv[1]} graphs, {len(lines)} differ"]))
    sys.exit(bool(lines))
