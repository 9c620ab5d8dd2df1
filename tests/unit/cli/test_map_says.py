"""Messages of `tilewright map` about unusual files and missing mappings: each cause appears once."""

import re
from pathlib import Path

import pytest
import tilewright
from tilewright.cli.main import main

NETWORK = "config/workload/mobilenetv2.onnx"
TPU = Path("config/hardware/zigzag/tpu_like.yaml")
MAPPING = Path("config/mapping/zigzag/tpu_like.yaml")
SHORT = """\
- name: default
  spatial_mapping:
    D1: ["K, 64"]
    D2: ["C, 32"]
- name: stem.conw
  spatial_mapping: {D1: ["K, 8"]}
- name: "stage9.*"
- name: "stem.c*"
- name: stem.conv
- name: MatMul
"""


def run_map(hardware: Path | str, mapping: Path | str, *options: str, network: str = NETWORK) -> int:
    """Return the exit code of `tilewright map`."""
    described = ["--hardware", str(hardware), "--workload", network, "--mapping", str(mapping), "--no-store"]
    return main(["map", *described, "--preset", "zigzag", *options])


def test_everything_unusual_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`map` reports unused and replaced entries, missing lanes, and the notices of each file."""
    mapping, hardware = tmp_path / "mapping.yaml", tmp_path / "core.yaml"
    mapping.write_text(SHORT)
    text = TPU.read_text().replace('"O, fh", "O, tl", "O, fl", "O, th"]', '"O, fh", "O, fl", "O, th"]')
    hardware.write_text(text)
    assert run_map(hardware, mapping, "-o", str(tmp_path / "out")) == 0
    lanes = "asks for 64 lanes, but the array of tpu_like has only 32 on this side: the excess lanes are left out"
    first = "stage2.0.expand, stage2.1.expand, stage3.0.expand, stage3.1.expand and 25 more"
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"note: {hardware}:61 memories.dram.ports: no port carries 'O, tl': loop orders that read partial sums back"
        " will be refused",
        f"note: {mapping}:3 default.spatial_mapping.D1: {lanes} (in 29 layers: {first})",
        f"note: {mapping}:5 stem.conw.name: selects no layer of mobilenetv2 (did you mean 'stem.conv'?)",
        f"note: {mapping}:7 stage9.*.name: selects no layer of mobilenetv2",
        f"note: {mapping}:8 stem.c*.name: has no effect: other entries have priority for all layers that this entry"
        " selects",
    ]
    assert main(["validate", str(hardware)]) == 0
    assert capsys.readouterr().err.splitlines() == said[:1], "`map` repeats the notes of `validate`"


def test_a_network_file_that_is_unusual(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate`, `parse` and `map` report final outputs wider than partial sums."""
    network = tmp_path / "net.yaml"
    network.write_text(
        "- {id: 0, name: a, operator_type: Gemm, equation: 'O[k] += W[k][c] * I[c]', loop_dims: [K, C],"
        " loop_sizes: [8, 8],\n   operand_precision: {W: 8, I: 8, O: 16, O_final: 32}}\n"
    )
    for verb in (["validate", str(network)], ["parse", "workload", str(network)]):
        assert main(verb) == 0
        assert f"note: {network}:2 a.operand_precision.O_final: final outputs have 32 bits" in capsys.readouterr().err
    assert run_map(TPU, MAPPING, network=str(network)) == 0
    assert f"note: {network}:2 a.operand_precision.O_final: final outputs have 32 bits" in capsys.readouterr().err


def test_several_cores(capsys: pytest.CaptureFixture[str]) -> None:
    """`map` refuses a file of several cores and names the verbs for it."""
    assert run_map("config/hardware/multi/quad_core.yaml", MAPPING) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(
        "error: config/hardware/multi/quad_core.yaml quad_core has 7 cores, but one core is required here"
    )
    assert "`flow: multi`, or the verbs cns, cost, allocate, schedule" in said


def test_a_register_smaller_than_a_weight(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A register smaller than a weight is one message on its line with the number of layers, before any search."""
    hardware = tmp_path / "core.yaml"
    hardware.write_text(TPU.read_text().replace("size: 1024", "size: 4"))
    assert run_map(hardware, MAPPING) == 2
    assert capsys.readouterr().err == (
        f"error: {hardware}:17 memories.rf_128B.size: holds 4 bits, but one element of W has 8 (in 53 layers:"
        " stem.conv, stage1.0.depthwise, stage1.0.project, stage2.0.expand and 49 more)\n"
    )


def test_layers_that_fail_for_one_cause_are_told_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Layers that fail for one cause are reported together, with the numbers of the first layer."""
    hardware = tmp_path / "core.yaml"
    hardware.write_text(TPU.read_text().replace("size: 10000000000", "size: 100000"))
    assert run_map(hardware, MAPPING, network="config/workload/resnet18.onnx") == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no mapping of 20 layers fits core 'tpu_like': conv1, layer1.0.conv1, layer1.0.conv2, layer1.1.conv1"
        " and 16 more",
        "error:   conv1 with D1: K 32; D2: C 3: memory 'dram' is too small for the spatial tile of operand I: needs"
        " 1204224 bits, has 100000 bits",
        "error: no mapping of layer 'fc' fits core 'tpu_like':",
        "error:   with D1: K 32; D2: C 32: memory 'dram' is too small for the spatial tile of operand W: needs 512000"
        " bits, has 100000 bits",
    ]


@pytest.mark.parametrize(("objective", "told"), [("EDP", True), ("energy", True), ("latency", False)])
def test_hardware_without_energies(
    objective: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An objective with energy is reported as without effect if all energies are 0, and refused with --strict."""
    hardware, network = tmp_path / "core.yaml", tmp_path / "net.yaml"
    hardware.write_text(re.sub(r"(r_cost|w_cost|unit_energy): [0-9.]+", r"\1: 0", TPU.read_text()))
    network.write_text(
        "- {id: 0, name: a, operator_type: Gemm, equation: 'O[k] += W[k][c] * I[c]', loop_dims: [K, C],"
        " loop_sizes: [8, 8],\n   operand_precision: {W: 8, I: 8, O: 16, O_final: 8}}\n"
    )
    options = ["--objective", objective, "--lpf-limit", "2"]
    assert run_map(hardware, MAPPING, *options, network=str(network)) == 0
    why = "does not compare mappings, because the hardware file gives no energies and all mappings have the value 0"
    assert (f"objective: {why}" in capsys.readouterr().err) == told
    assert run_map(hardware, MAPPING, *options, "--strict", network=str(network)) == (2 if told else 0)


@pytest.mark.parametrize(("objective", "told"), [("EDP", True), ("latency", False)])
def test_designs_without_energies(
    objective: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`explore` reports an objective without effect, --strict refuses it, and `decide` refuses to choose by it."""
    hardware, network, space = tmp_path / "core.yaml", tmp_path / "net.yaml", tmp_path / "space.yaml"
    hardware.write_text(re.sub(r"(r_cost|w_cost|unit_energy): [0-9.]+", r"\1: 0", TPU.read_text()))
    network.write_text(
        "- {id: 0, name: a, operator_type: Gemm, equation: 'O[k] += W[k][c] * I[c]', loop_dims: [K, C],"
        " loop_sizes: [8, 8],\n   operand_precision: {W: 8, I: 8, O: 16, O_final: 8}}\n"
    )
    space.write_text(
        f"accelerator: {hardware}\nnetworks: [{network}]\nmapping: {MAPPING.resolve()}\n"
        "axes: {side: {path: operational_array.sizes.0, values: [8, 16]}}\n"
        f"options: {{objective: {objective}, lpf_limit: 2}}\n"
    )
    why = "does not compare {0}, because the hardware file gives no energies and all {0} have the value 0"
    command = ["explore", str(space), "-o", str(tmp_path / "out")]
    assert main(command) == 0
    assert (f"objective: {why.format('mappings')}" in capsys.readouterr().err) == told
    assert main([*command, "--strict"]) == (2 if told else 0)
    capsys.readouterr()
    decided = main(["decide", str(tmp_path / "out"), "--objective", objective, "--no-advice"])
    assert decided == (2 if told else 0)
    assert (f"objective: {why.format('designs')}" in capsys.readouterr().err) == told


def test_a_register_smaller_than_a_partial_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message about a register smaller than a partial sum names wider registers and narrower sums."""
    hardware, mapping, *_ = tilewright.new(tmp_path / "mine")
    assert run_map(hardware, mapping, "--bits", "weights=8,activations=16,partial=64") == 2
    hint = "this is one partial sum: give the memory and its ports 64 bits, or the partial sums at most 32 bits"
    assert hint in capsys.readouterr().err


def test_the_name_of_a_network_is_no_path(capsys: pytest.CaptureFixture[str]) -> None:
    """`map` refuses the name of a network and gives its path."""
    assert run_map(TPU, MAPPING, network="resnet18") == 2
    said = capsys.readouterr().err
    assert said == "error: resnet18: no such workload file (did you mean 'config/workload/resnet18.onnx'?)\n"
