"""Notices about operands whose widths differ from the widths that the array's energy is for."""

from pathlib import Path

import pytest
import tilewright
import yaml
from tilewright.cli.main import main
from tilewright.designs.space_reader import read_space
from tilewright.designs.unused_parts import unused_of_networks
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.notices import array_width_notices

from tests.unit.cost.engine_cases import LINKS, gemm
from tests.unit.hardware.system_cases import core, memory

Links = tuple[tuple[str, str], ...]

HARDWARE = Path(__file__).parents[3] / "config/hardware/zigzag/aimc.yaml"
OTHER_WAY = (("O", "O"), ("W", "I1"), ("I", "I2"))


@pytest.mark.parametrize(
    ("links", "bits", "told"),
    [
        (LINKS, {"W": 8, "I": 8}, []),
        (LINKS, {"W": 2, "I": 4}, []),
        (LINKS, {"W": 8, "I": 16}, ["activations of 8 bits, but activations have 16 bits (in 2 layers: a, b)"]),
        (OTHER_WAY, {"W": 8, "I": 16}, ["weights of 8 bits, but weights have 16 bits (in 2 layers: a, b)"]),
    ],
)
def test_each_width_once_with_its_layers(
    links: tuple[tuple[str, str], ...], bits: dict[str, int], told: list[str]
) -> None:
    """Each width of operands gets one notice with its layers, on the line of the array."""
    core = read_accelerator(HARDWARE).cores[0]
    layers = [gemm(name, bits=(*bits.items(), ("O", 16), ("O_final", 8)), C=4, D=2, K=4) for name in "ab"]
    mapping = Mapping((MappingConstraints("default", memory_operand_links=links),))
    found = array_width_notices(layers, core, mapping, HARDWARE)
    line = next(n for n, text in enumerate(HARDWARE.read_text().splitlines(), 1) if "input_precision" in text)
    where = f"{HARDWARE}:{line} operational_array.input_precision: energy and cycles are computed for "
    assert found == [where + one for one in told]
    assert (
        array_width_notices(layers, read_accelerator(HARDWARE.with_name("tpu_like.yaml")).cores[0], mapping, "") == []
    )


def test_a_run_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run gives the notice once for all layers."""
    hardware, mapping = tmp_path / "core.yaml", HARDWARE.parents[2] / "mapping/zigzag/aimc.yaml"
    hardware.write_text(HARDWARE.read_text().replace("input_precision: [8, 8]", "input_precision: [4, 8]"))
    network = HARDWARE.parents[2] / "workload/fsrcnn.yaml"
    inputs = ["--hardware", str(hardware), "--mapping", str(mapping), "--workload", str(network)]
    assert (
        main(["map", "--preset", "zigzag", *inputs, "--lpf-limit", "2", "--no-store", "-o", str(tmp_path / "out")]) == 0
    )
    said = [line for line in capsys.readouterr().err.splitlines() if "input_precision" in line]
    assert len(said) == 1
    assert (
        "energy and cycles are computed for activations of 4 bits, but activations have 8 bits (in 8 layers:" in said[0]
    )


CORE = core("small", sram=memory())
CORE["operational_array"]["unit_energy_bits"] = 8


@pytest.mark.parametrize(
    ("bits", "told"),
    [
        ({"W": 8, "I": 8}, ""),
        ({"W": 8, "I": 16}, "I 16; in 2 layers: a, b"),
        ({"W": 4, "I": 16}, "I 16, W 4; in 2 layers: a, b"),
    ],
)
def test_an_energy_of_other_bits_is_told(bits: dict[str, int], told: str, tmp_path: Path) -> None:
    """A notice on the line of the energy lists other operand widths, if the file gives the bits of the energy."""
    file = tmp_path / "core.yaml"
    file.write_text(yaml.safe_dump(CORE, sort_keys=False))
    layers = [gemm(name, bits=(*bits.items(), ("O", 32), ("O_final", 16)), C=4, D=2, K=4) for name in "ab"]
    mapping = Mapping((MappingConstraints("default", memory_operand_links=LINKS),))
    found = array_width_notices(layers, read_accelerator(file).cores[0], mapping, file)
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "unit_energy:" in text)
    where = (
        f"{file}:{line} operational_array.unit_energy: the energy of an operation is given for numbers of 8 bits, and"
        " is used without scaling for inputs of other widths"
    )
    assert found == ([f"{where} ({told})"] if told else [])
    plain = read_accelerator(core("small", sram=memory())).cores[0]
    assert array_width_notices(layers, plain, mapping, "") == []


def test_a_space_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A space without a mapping file gives the notice for each core, and a run of a new accelerator gives it once."""
    network = tmp_path / "wide.yaml"
    layer = {
        "id": 0, "name": "wide", "operator_type": "Conv", "equation": "O[b][k]+=W[k][c]*I[b][c]",
        "loop_dims": ["B", "K", "C"], "loop_sizes": [2, 4, 8],
        "operand_precision": {"W": 8, "I": 16, "O": 16, "O_final": 16}, "operand_source": {"W": 0, "I": 0},
    }  # fmt: skip
    network.write_text(yaml.safe_dump([layer]))
    hardware, mapping = tilewright.new(tmp_path / "mine")
    space = tmp_path / "space.yaml"
    axes = {"clock": {"path": "clock_frequency", "values": ["400 MHz", "800 MHz"]}}
    written = {"name": "wide", "accelerator": str(hardware), "networks": [str(network)], "axes": axes}
    space.write_text(yaml.safe_dump(written, sort_keys=False))
    told = "used without scaling for inputs of other widths (I 16; in 1 layer: wide)"
    assert [told in notice for notice in unused_of_networks(read_space(space))] == [True]
    words = ["--hardware", str(hardware), "--mapping", str(mapping), "--workload", str(network), "--no-store"]
    assert main(["map", *words]) == 0
    assert capsys.readouterr().err.count(told) == 1
