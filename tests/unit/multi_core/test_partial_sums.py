"""Runs whose mapping file cuts a reduction between cores: checked, recounted and reproduced."""

import random
from pathlib import Path

import onnx
import pytest
from tilewright.base.errors import Problems
from tilewright.cli.main import main
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.multicore.nodes.reduction_cuts import cut_reductions
from tilewright.multicore.scheduling.energy_terms import CAUSES
from tilewright.multicore.scheduling.result import read_schedule
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload

from tests.members import members
from tests.unit.multi_core.random_cases import random_options, random_system
from tests.unit.multi_core.recount import recount
from tests.unit.multi_core.runs import FAST, core, off_chip, run, write_accelerator, write_mapping
from tests.unit.workload.onnx.dependency_checks import build_model

SHAPES = ("one_core", "tree", "ring")


def network_of(folder: Path, rows: int, inner: int, columns: int) -> Path:
    """Write a matrix product with a bias, and an activation."""
    make = onnx.helper.make_node
    nodes = [make("Gemm", ["x", "w", "bias"], ["y"], name="y"), make("Relu", ["y"], ["z"], name="z")]
    constants = {name: onnx.numpy_helper.to_array(_ones(name, shape)) for name, shape in _shapes(inner, columns)}
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(build_model(nodes, {"x": (rows, inner)}, constants), str(folder / "net.onnx"))
    return folder / "net.onnx"


def _shapes(inner: int, columns: int) -> list[tuple[str, tuple[int, ...]]]:
    return [("w", (inner, columns)), ("bias", (columns,))]


def _ones(name: str, shape: tuple[int, ...]) -> onnx.TensorProto:
    count = 1
    for size in shape:
        count *= size
    return onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, shape, [1.0] * count)


def cut_network(network: Path, hardware: Path, mapping: Path) -> Workload:
    """Return the network with its parts and additions."""
    accelerator = parse_accelerator(hardware)
    assert isinstance(accelerator, MultiCoreAccelerator)
    return cut_reductions(parse_workload(network, "corrected"), read_mapping(mapping), accelerator, Problems())[0]


@pytest.mark.parametrize("seed", range(members(200, 4)))
def test_a_random_run_with_parts(seed: int, tmp_path: Path) -> None:
    """A random run with cut reductions passes the checks, and its written mapping file gives the same schedule."""
    draw = random.Random(seed)
    network = network_of(tmp_path, draw.randint(1, 6), draw.randint(8, 40), draw.randint(4, 12))
    hardware = write_accelerator(tmp_path / "hw", random_system(draw))
    loops = [f"C, {draw.randint(2, 4)}", *draw.choice(([], ["K, 2"]))]
    entry = {"name": draw.choice(("y", "Gemm")), "inter_core_tiling": draw.sample(loops, len(loops))}
    entry |= {"reduction": {"shape": SHAPES[seed % 3]}}
    options = random_options(draw)
    mapping = write_mapping(tmp_path, {"name": "default"}, entry)
    found = run(tmp_path / "run", hardware, network, mapping, schedule=options)
    assert recount(tmp_path / "run", hardware, cut_network(network, hardware, mapping)) == []
    again = run(tmp_path / "again", hardware, network, tmp_path / "run" / "mapping.yaml", schedule=options)
    assert (again["latency_cycles"], again["energy_pj"]) == (found["latency_cycles"], found["energy_pj"])
    assert main(["audit", str(tmp_path / "run")]) == 0


def four_cores(folder: Path, types: tuple[str, ...] = ("all",)) -> Path:
    """Write four equal cores and the off-chip memory on one bus."""
    system = {
        "cores": {number: core("lane", 4, "4 KiB", types) for number in range(4)},
        "offchip": off_chip(),
        "links": [{"type": "bus", "cores": [0, 1, 2, 3, 4], "bandwidth": 32, "energy_per_bit": "200 fJ"}],
    }
    return write_accelerator(folder / "hw", system)


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_between_cores_by_hand(shape: str, tmp_path: Path) -> None:
    """Partial sums of k parts on fixed cores move (k - 1) x outputs between cores; an adding core keeps its own."""
    network, hardware = network_of(tmp_path, 4, 32, 8), four_cores(tmp_path)
    entry = {"name": "y", "inter_core_tiling": ["C, 4"], "core_allocation": [0, 1, 2, 3]}
    entry |= {"core_allocation_is_fixed": True, "reduction": {"shape": shape}}
    reader = {"name": "z", "core_allocation": [0], "core_allocation_is_fixed": True}
    mapping = write_mapping(tmp_path, {"name": "default"}, entry, reader)
    run(tmp_path / "run", hardware, network, mapping)
    outputs, partial_bits, final_bits, parts = 4 * 8, 16, 8, 4
    # Core 0 reads the output: of a ring, it has one of the four shares itself.
    read_elsewhere = outputs * (parts - 1) // parts * final_bits if shape == "ring" else 0
    expected = (parts - 1) * outputs * partial_bits + read_elsewhere
    assert _core_to_core_bits(tmp_path / "run") == expected


def _core_to_core_bits(folder: Path) -> int:
    artifact = read_schedule(folder / "schedule.npz")
    transfers, bits = artifact.schedule.transfers, artifact.problem.graph.piece_bits
    direct = transfers["cause"] == CAUSES.index("core_to_core")
    return int(bits[transfers["piece"][direct]].sum())


def test_more_cores_than_outputs_pay_off(tmp_path: Path) -> None:
    """A long reduction with few outputs is faster on four cores than on one."""
    network, hardware = network_of(tmp_path, 1, 512, 4), four_cores(tmp_path)
    cut = {"name": "y", "inter_core_tiling": ["C, 4"], "reduction": {"shape": "tree"}}
    whole = run(tmp_path / "one", hardware, network, write_mapping(tmp_path, {"name": "default"}))
    parts = run(tmp_path / "four", hardware, network, write_mapping(tmp_path, {"name": "default"}, cut))
    assert parts["latency_cycles"] < whole["latency_cycles"]


def test_a_graph_of_another_shape_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A CN graph that adds partial sums in a tree is refused if the mapping now adds them on one core."""
    network, hardware = network_of(tmp_path, 4, 32, 8), four_cores(tmp_path)
    given = ["--hardware", str(hardware), "--workload", str(network), "--mapping"]
    entry = {"name": "y", "inter_core_tiling": ["C, 4"]}
    mapping = write_mapping(tmp_path, {"name": "default"}, entry | {"reduction": {"shape": "tree"}})
    assert main(["cns", *given, str(mapping), "-o", str(tmp_path / "run")]) == 0
    write_mapping(tmp_path, {"name": "default"}, entry | {"reduction": {"shape": "one_core"}})
    folder, table = str(tmp_path / "run"), tmp_path / "run" / "cost" / "lane.jsonl"
    assert main(["cost", *given, str(mapping), "--core", "lane", "--cns", folder, *FAST, "-o", str(table)]) == 2
    assert not table.exists()
    assert "was made from another mapping file; run `tilewright cns` again" in capsys.readouterr().err


def test_no_core_can_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cut reduction is refused with its line and reason if no core can add."""
    network, hardware = network_of(tmp_path, 4, 32, 8), four_cores(tmp_path, ("mac",))
    entry = {"name": "y", "inter_core_tiling": ["C, 4"], "reduction": {}}
    mapping = write_mapping(tmp_path, {"name": "default"}, entry)
    given = ["--hardware", str(hardware), "--workload", str(network), "--mapping", str(mapping)]
    assert main(["cns", *given]) == 2
    said = capsys.readouterr().err
    assert "y.reduction: no core can add the partial sums of y: core 0, 1, 2, 3 runs mac, not Add" in said
    assert f"{mapping}:{_line(mapping, 'reduction')}" in said


def _line(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_key_without_effect_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`reduction` beside loops over outputs alone gets a notice that it has no effect; --strict refuses it."""
    network, hardware = network_of(tmp_path, 4, 32, 8), four_cores(tmp_path)
    entry = {"name": "y", "inter_core_tiling": ["K, 4"], "reduction": {}}
    mapping = write_mapping(tmp_path, {"name": "default"}, entry)
    given = ["--hardware", str(hardware), "--workload", str(network), "--mapping", str(mapping)]
    assert main(["cns", *given]) == 0
    assert "y.reduction: has no effect" in capsys.readouterr().err
    assert main(["cns", *given, "--strict"]) == 2
