"""Numbers of layers that are wider than those of an in-memory array: told, since the model does not see them."""

from pathlib import Path

import pytest
from tilewright.cli.main import main
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.notices import array_width_notices

from tests.unit.cost.engine_cases import LINKS, gemm

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
    """On the line of the array; cells hold what the mapping links to I2."""
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
    """Once for all layers."""
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
