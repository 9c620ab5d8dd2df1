"""`tilewright new`: files of a new accelerator that validate, with costs of the library."""

import math
from itertools import product
from pathlib import Path

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.cli.new_files import KINDS, SUM_BITS
from tilewright.cli.validate import _checked
from tilewright.hardware import yaml_reader
from tilewright.hardware.silicon.library import dram_types
from tilewright.hardware.static_power import static_power_mw
from tilewright.hardware.system import core_area
from tilewright.hardware.yaml_reader import core_of

PROJECT = Path(__file__).resolve().parents[3]
NETWORK = str(PROJECT / "config" / "workload" / "bert_tiny.onnx")


@pytest.mark.parametrize(
    ("kind", "array", "node_nm"), list(product(KINDS, ("16x16", "4x12", "1x1", "128x128"), (7.0, 28.0, 65.0)))
)
def test_the_files_validate(kind: str, array: str, node_nm: float, tmp_path: Path) -> None:
    """The files of each kind, array and node validate, and their memories have costs of the library."""
    files = tilewright.new(tmp_path / "mine", like=kind, array=array, node_nm=node_nm, networks=[NETWORK])
    assert [file.name for file in files] == ["hardware.yaml", "mapping.yaml", "config.yaml"]
    assert tilewright.validate(files[:2], strict=True) == ()
    core = yaml.safe_load(files[0].read_text())
    assert core["name"] == "mine"
    assert core["operational_array"]["sizes"] == [int(side) for side in array.split("x")]
    assert all("cost" in memory and "r_cost" not in memory for memory in core["memories"].values())


@pytest.mark.parametrize(("kind", "array"), list(product(KINDS, ("1x1", "2x2", "5x4", "3x8", "16x16", "12x14"))))
def test_no_side_asks_for_more_lanes_than_it_has_units(kind: str, array: str, tmp_path: Path) -> None:
    """The mapping never asks for more lanes on a side than it has units."""
    files = tilewright.new(tmp_path / "mine", like=kind, array=array)
    units = dict(zip(("D1", "D2"), map(int, array.split("x")), strict=True))
    for entry in yaml.safe_load(files[1].read_text()):
        for side, loops in entry["spatial_mapping"].items():
            assert math.prod(int(loop.split(",")[1]) for loop in loops) <= units[side], entry


@pytest.mark.parametrize("kind", KINDS)
def test_registers_and_runs_have_sums_of_32_bits(kind: str, tmp_path: Path) -> None:
    """Registers, the printed command and the configuration have partial sums of 32 bits, enough for products of bytes.

    Relative paths in the configuration start from another folder than those of a space, and a comment says so.
    """
    files = tilewright.new(tmp_path / "mine", like=kind, networks=[NETWORK])
    core = tilewright.parse("hardware", files[0]).cores[0]
    registers = [memory for memory in core.memories if memory.name.startswith("sum_register")]
    assert [port.bandwidth_max_bits for memory in registers for port in memory.ports] == [SUM_BITS] * 2
    assert all(memory.size_bits % SUM_BITS == 0 for memory in registers)
    assert SUM_BITS >= 24
    text = files[2].read_text()
    assert yaml.safe_load(text)["bits"] == {"bert_tiny": {"partial": SUM_BITS}}
    assert "start from the folder of that file" in " ".join(text.replace("#", "").split())


def test_a_line_says_what_the_accelerator_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line has peak, area and static power, and compares leaking cells with others."""
    for cells in ("hp", "lstp"):
        assert main(["new", str(tmp_path / cells), "--cells", cells]) == 0
        line = next(line for line in capsys.readouterr().err.splitlines() if "TOP/s" in line)
        core = tilewright.parse("hardware", tmp_path / cells / "hardware.yaml").cores[0]
        assert line.startswith(f"note: peak {2 * 256 * 800e6 / 1e12:.4g} TOP/s, area {core_area(core).mm2:.3g} mm2, ")
        assert f"static power of the memories {static_power_mw(core) / 1e3:.3g} W" in line
        assert ("cells: hp of the SRAM leak 0.127 W" in line) == (cells == "hp")
        assert ("--cells lstp would leak" in line) == (cells == "hp")


def test_each_configuration_has_its_own_folder_of_results(tmp_path: Path) -> None:
    """Each configuration has its own folder of results, named like the accelerator."""
    for name, folder in (("one", "one"), ("my chip", "my_chip")):
        *_, configuration = tilewright.new(tmp_path / name, networks=[NETWORK])
        assert yaml.safe_load(configuration.read_text())["results_dir"] == f"results/configurations/{folder}"


def test_each_dram_has_a_cost(tmp_path: Path) -> None:
    """Each DRAM type of the library gives valid files."""
    for dram in dram_types():
        files = tilewright.new(tmp_path / dram, dram=dram)
        assert [file.name for file in files] == ["hardware.yaml", "mapping.yaml"]
        assert tilewright.validate(files) == ()


def test_the_run_of_the_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example command creates files that validate and map, with energies of the library."""
    monkeypatch.chdir(tmp_path)
    given = ["--like", "eyeriss", "--array", "12x14", "--sram", "108 KiB", "--node-nm", "65", "--network", NETWORK]
    assert main(["new", "mine", *given]) == 0
    *paths, told = capsys.readouterr().out.splitlines()
    assert paths == ["mine/hardware.yaml", "mine/mapping.yaml", "mine/config.yaml"]
    files = f"--hardware mine/hardware.yaml --mapping mine/mapping.yaml --workload {NETWORK}"
    assert told == f"to map a network: tilewright map {files} --bits=partial=32 -o mine/run"
    assert main(["validate", "mine/config.yaml"]) == 0
    words = [*files.split(), "--temporal-mapping-search-engine", "loma", "--lpf-limit", "3", "--no-store", "-o", "out"]
    assert main(["map", *words]) == 0
    core = tilewright.parse("hardware", "mine/hardware.yaml").cores[0]
    unit = next(row for row in tilewright.cost_library(["mac-int8-45nm"]))
    assert core.operational_array.unit_energy_pj > unit["energy_pj"], "a MAC at 65 nm needs more than at 45 nm"
    (row,) = tilewright.cost_library(["sram"], size="108 KiB", width=512, node_nm=65)
    sram = next(memory for memory in core.memories if memory.name == "sram")
    assert sram.read_energy_pj == row["read_energy_pj"]
    assert (tmp_path / "out" / "summary.json").exists()


def test_the_hardware_file_is_parsed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hardware file is parsed once, and the notices have the path and line of the written file."""
    calls = []
    monkeypatch.setattr(yaml_reader, "core_of", lambda entry: calls.append(entry) or core_of(entry))
    assert main(["new", str(tmp_path / "mine"), "--dram-bandwidth", "3 Gb/s"]) == 0
    assert len(calls) == 1
    file = tmp_path / "mine" / "hardware.yaml"
    line = next(
        number for number, line in enumerate(file.read_text().splitlines(), 1) if "bandwidth_max: 3 Gb/s" in line
    )
    said = capsys.readouterr().err
    assert (
        f"note: {file}:{line} memories.dram.ports.rw.bandwidth_max: 3 Gb/s at 800 MHz are 3.75 bits per cycle" in said
    )


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """An existing file is a problem, and no other file is written."""
    (tmp_path / "mapping.yaml").write_text("mine")
    with pytest.raises(InputError) as raised:
        tilewright.new(tmp_path)
    assert [problem.message for problem in raised.value.problems] == ["exists already"]
    assert [path.name for path in tmp_path.iterdir()] == ["mapping.yaml"]


def test_wrong_choices_are_told_at_once(tmp_path: Path) -> None:
    """Wrong choices are reported together by the names of their options, and nothing is written."""
    with pytest.raises(InputError) as raised:
        tilewright.new(tmp_path / "mine", array="16", sram="much", node_nm=3.0, clock="fast")
    assert [problem.path for problem in raised.value.problems] == ["array", "sram", "clock", "node_nm"]
    with pytest.raises(InputError, match="bandwidth"):
        tilewright.new(tmp_path / "mine", dram_bandwidth="wide")
    with pytest.raises(InputError, match="words"):
        tilewright.new(tmp_path / "mine", sram="64 B")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--sram", "384", "a size with a unit"),
        ("--sram", "4 GiB", "8,388,608 bytes"),
        ("--sram", "64 B", "a larger SRAM; its words have 512 bits"),
        ("--dram-bandwidth", "17", "12.8 GB/s or 64 b/cycle"),
        ("--clock", "700", "800 MHz"),
    ],
)
def test_wrong_numbers_are_those_of_options(
    option: str, value: str, allowed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message about a wrong number names the option, and a number without a unit is refused."""
    assert main(["new", str(tmp_path / "mine"), option, value]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: {option}: ")
    assert f"got {value} " in said
    assert allowed in said
    assert not (tmp_path / "mine").exists()


def test_each_network_has_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each network has a printed command with its own folder."""
    names = "resnet18", "mobilenetv2"
    assert main(["new", str(tmp_path / "mine"), *(word for name in names for word in ("--network", name))]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("to map ")]
    assert [line.partition(":")[0] for line in told] == [f"to map {name}" for name in names]
    assert len({line.rpartition(" -o ")[2] for line in told}) == 2


def test_a_configuration_is_valid_here_and_in_the_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration is valid where `new` ran and in the folder of the project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").write_bytes(Path(NETWORK).read_bytes())
    assert main(["new", "mine", "--network", "net.onnx"]) == 0
    for folder in (tmp_path, PROJECT):
        monkeypatch.chdir(folder)
        assert main(["validate", str(tmp_path / "mine" / "config.yaml")]) == 0, capsys.readouterr().err
    name = tilewright.new(tmp_path / "named", networks=["bert_tiny"])[-1]
    assert yaml.safe_load(name.read_text())["sweeps"]["networks"]["workload"] == ["bert_tiny"]


def test_an_unknown_network_is_told_with_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown network is refused with the nearest name; names of networks work only in the folder of the project."""
    monkeypatch.chdir(PROJECT)
    assert main(["new", str(tmp_path / "mine"), "--network", "resnet8", "--network", "none.onnx"]) == 2
    said = capsys.readouterr().err
    assert "error: --network: no such workload file in config/workload, got 'resnet8' (allowed: " in said
    assert "(did you mean 'resnet18'?)" in said
    assert "error: --network: no such workload file in ., got 'none.onnx'" in said
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine", "--network", "resnet18"]) == 2
    assert "(allowed: the path of an ONNX or YAML file)" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_no_note_complains_of_a_file_that_new_wrote(tmp_path: Path) -> None:
    """The files of `new` get no notice on their mapping."""
    for kind in KINDS:
        files = tilewright.new(tmp_path / kind, like=kind)
        notices = [notice for *_, own in _checked([*files, Path(NETWORK)], None, strict=False) for notice in own]
        assert not [notice for notice in notices if "mapping.yaml" in notice]
