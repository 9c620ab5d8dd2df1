"""Files in the forms of other tools and years: each verb runs with them or says what is wrong.

The samples are written for these tests, in the forms of stream-dse 2.x, Timeloop v4 and AccelForge.
"""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tilewright.cli.main import main

CONFIG = Path(__file__).resolve().parents[3] / "config"
STREAM_2 = """
layers:
- name: first
  core_allocation: [[0, 1, 2, 3]]
  inter_core_tiling: [[{dim: D2, split: 4}]]
fused_groups:
- name: G
  layers: [first]
  intra_core_tiling: [{dim: first.D0, tile: 1}]
"""
STREAM_2_LAYERS_ONLY = "layers: [{name: third, core_allocation: [[0]], kernel: {name: conv}}]\n"
STREAM_2_ONE_ENTRY = "name: first\ncore_allocation: [[0, 1]]\n"
NESTED_CORES = """
- {name: default, core_allocation: [[0, 1]], inter_core_tiling: [[{dim: D2, split: 2}]]}
- {name: first, core_allocation: [[0]]}
"""
TIMELOOP_MAPPING = """
mapping:
- {target: DRAM, type: temporal, factors: C=1 M=4, permutation: CM}
- {target: buffer, type: spatial, factors: C=2}
"""
TIMELOOP_ARCHITECTURE = """
architecture:
  version: 0.4
  nodes:
  - !Container {name: system}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 64, datawidth: 8}}
"""
TIMELOOP_PROBLEM = """
problem:
  version: 0.4
  instance: {C: 4, M: 8}
  shape: {name: gemm, dimensions: [C, M], data_spaces: [{name: W, projection: [[[C]], [[M]]]}]}
"""
ACCELFORGE_ARCHITECTURE = """
arch:
  nodes:
  - !Memory {name: MainMemory, size: inf, tensors: {keep: ~Intermediates}}
  - !Compute {name: MAC}
"""
ACCELFORGE_MAPPING = """
mapping:
  nodes:
  - !Storage {tensors: [T0, W0], component: MainMemory}
  - !Compute {einsum: E0, component: MAC}
"""
ACCELFORGE_WORKLOAD = """
workload:
  rank_sizes: {M: 4, N0: 4}
  einsums:
  - {name: E0, tensor_accesses: [{name: T0, projection: [m, n0]}]}
"""
SAMPLES = {
    "stream 2.x": STREAM_2,
    "stream 2.x, layers only": STREAM_2_LAYERS_ONLY,
    "stream 2.x, one entry": STREAM_2_ONE_ENTRY,
    "stream 2.x cores in a list of entries": NESTED_CORES,
    "timeloop mapping": TIMELOOP_MAPPING,
    "timeloop architecture": TIMELOOP_ARCHITECTURE,
    "timeloop problem": TIMELOOP_PROBLEM,
    "accelforge architecture": ACCELFORGE_ARCHITECTURE,
    "accelforge mapping": ACCELFORGE_MAPPING,
    "accelforge workload": ACCELFORGE_WORKLOAD,
    "nothing": "",
    "text": "just text\n",
    "numbers": "[1, 2, 3]\n",
    "lists": "[[1], [2]]\n",
    "entry that is no table": "[{name: default}, 7, null]\n",
}
VERBS = {
    "map": ["map", "--preset", "zigzag", "--lpf-limit", "1"],
    "cns": ["cns"],
    "fuse": ["fuse", "--nb-plans", "1"],
    "split": ["split"],
    "depth-first": ["depth-first"],
    "tokens": ["tokens"],
    "attention": ["attention"],
}
ROLES = ("mapping", "hardware", "workload")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small network (one convolution, pooling, a product) and the samples."""
    made = tmp_path_factory.mktemp("dialects")
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first", kernel_shape=[1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["g"], name="gap"),
        helper.make_node("Flatten", ["g"], ["f"], name="flat", axis=1),
        helper.make_node("Gemm", ["f", "v"], ["a"], name="fc"),
        helper.make_node("Softmax", ["a"], ["y"], name="softmax"),
    ]
    weights = [numpy_helper.from_array(np.zeros((8, 4, 1, 1), np.float32), "w")]
    weights += [numpy_helper.from_array(np.zeros((8, 6), np.float32), "v")]
    ends = [info("x", TensorProto.FLOAT, [1, 4, 6, 6])], [info("y", TensorProto.FLOAT, [1, 6])]
    graph = helper.make_graph(nodes, "head", *ends, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), made / "head.onnx")
    for number, text in enumerate(SAMPLES.values()):
        (made / f"{number}.yaml").write_text(text)
    return made


def _arguments(verb: str, role: str, sample: Path, folder: Path) -> list[str]:
    one_core = verb in ("map", "depth-first", "tokens", "attention")
    files = {
        "mapping": CONFIG / "mapping" / "zigzag" / "tpu_like.yaml",
        "hardware": CONFIG / "hardware" / ("zigzag/tpu_like.yaml" if one_core else "multi/quad_core.yaml"),
        "workload": folder / "head.onnx",
    }
    files[role] = sample
    options = [text for key, file in files.items() for text in (f"--{key}", str(file))]
    return [*VERBS[verb], *options, "-o", str(folder / "out")]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("verb", VERBS)
def test_files_of_other_tools_are_refused_in_words(
    verb: str, role: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of another tool is refused with exit code 2 and a message, without an internal error."""
    for number, name in enumerate(SAMPLES):
        code = main(_arguments(verb, role, folder / f"{number}.yaml", folder))
        said = capsys.readouterr().err
        assert code == 2, (name, code, said)
        assert "error: " in said, (name, said)
        assert "internal" not in said, (name, said)
        assert "Traceback" not in said, (name, said)


def test_a_mapping_of_stream_2_is_refused_on_one_core(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Verbs for one core refuse a valid mapping of stream-dse 2.x with one message."""
    sample = folder / "0.yaml"
    assert main(["validate", str(sample)]) == 0
    capsys.readouterr()
    for verb in ("map", "tokens"):
        assert main(_arguments(verb, "mapping", sample, folder)) == 2
        every = capsys.readouterr().err.splitlines()
        said = [line for line in every if line.startswith("error") and str(sample) in line]
        assert len(said) == 1
        assert "stream-dse 2.x" in said[0]
        assert "several cores" in said[0]


def test_a_mapping_of_stream_2_is_checked_against_the_network(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Verbs for several cores refuse parts that the network does not allow, with their line."""
    sample = folder / "0.yaml"
    for verb in ("cns", "fuse"):
        assert main(_arguments(verb, "mapping", sample, folder)) == 2
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
        assert len(said) == 1
        assert f"{sample}:5 layers.first.inter_core_tiling[0][0].split" in said[0]
        assert "allowed: 1, 2, 3; nearest 3" in said[0]


def _two_cores(folder: Path) -> Path:
    """Write an accelerator whose cores run all operators."""
    shutil.copy(CONFIG / "hardware" / "zigzag" / "tpu_like_vector.yaml", folder / "core.yaml")
    shutil.copy(CONFIG / "hardware" / "multi" / "cores" / "offchip.yaml", folder / "offchip.yaml")
    text = """
name: two
cores: { 0: ./core.yaml, 1: ./core.yaml, 5: ./core.yaml }
offchip_core: ./offchip.yaml
core_connectivity: [ { type: link, cores: [0, 1], bandwidth: 64 }, { type: link, cores: [1, 5], bandwidth: 64 } ]
bandwidth: 64
unit_energy_cost: 0
"""
    path = folder / "two.yaml"
    path.write_text(text)
    return path


DEFAULT_OF_STREAM = """
- name: default
  core_allocation: [0, 1]
  inter_core_tiling: ["K, *"]
  memory_operand_links: { O: O, W: I2, I: I1 }
"""
DIMENSION_OF_NO_LAYER = """
- {name: default, intra_core_tiling: ["OY, all"], inter_core_tiling: ["K, 1"]}
- {name: gap, core_allocation: [5], intra_core_tiling: ["OY, all"], inter_core_tiling: ["K, 1"]}
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            DEFAULT_OF_STREAM,
            "softmax/max: K, * of entry default is left out, because it would split a reduction over cores",
        ),
        (DIMENSION_OF_NO_LAYER, "gap.intra_core_tiling[0]: no layer that this entry selects has the loop dimension OY"),
    ],
)
def test_mappings_that_stream_runs(
    text: str, told: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A default entry that would split a reduction, or that has an unknown dimension, gets a notice."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(text)
    assert main([*_arguments("cns", "mapping", mapping, folder), "--hardware", str(_two_cores(tmp_path))]) == 0
    assert told in capsys.readouterr().err


def test_a_reduction_that_is_split_by_its_own_entry_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry that splits the reduction of a named layer is refused."""
    mapping = tmp_path / "mapping.yaml"
    entry = '- {name: softmax/max, core_allocation: [0, 1], inter_core_tiling: ["K, 2"]}'
    mapping.write_text(f"{DEFAULT_OF_STREAM}\n{entry}\n")
    assert main([*_arguments("cns", "mapping", mapping, folder), "--hardware", str(_two_cores(tmp_path))]) == 2
    told = "softmax/max.inter_core_tiling[0]: a reduction cannot be split over cores without the key `reduction`"
    error = capsys.readouterr().err
    assert told in error
    assert error.count("cannot be split") == 1
