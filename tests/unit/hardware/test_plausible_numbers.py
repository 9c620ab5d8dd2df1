"""Numbers of hardware files in a probably wrong unit: each gets a notice with the range, none is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import Caution
from tilewright.cli.main import main
from tilewright.designs.space_reader import read_space
from tilewright.designs.tried_values import number_cautions
from tilewright.hardware.core_reader import core_entry
from tilewright.hardware.plausible_numbers import FAR, link_range, memory_range, operation_range
from tilewright.hardware.silicon.library import entries
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.yaml_checks import OFF_CHIP

from tests.unit.hardware.system_cases import core, memory


def changed(path: str, value: object) -> dict[str, Any]:
    """Data of a small core with another value at a path."""
    data = core("small", memory=memory())
    *above, last = path.split(".")
    place = data
    for key in above:
        place = place[key]
    place[last] = value
    return data


def told(data: dict[str, Any]) -> list[str]:
    """Return the notices about implausible numbers of a hardware file."""
    notices: list[str] = []
    parse_accelerator(data, notices)
    words = "what is known", "outside of the range", "8-bit multiply-accumulate", "energy_factor"
    return [one for one in notices if any(word in one for word in words)]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("clock_frequency", 0.7, "a clock of 0.7 MHz is outside of the range of accelerators and processors, 1 MHz to"),
        ("clock_frequency", 700000, "to 10 GHz; a plain number is in MHz"),
        ("clock_frequency", "20 GHz", "1 MHz to 10 GHz"),
        ("operational_array.unit_energy", 1e-6, "1e+05 times below what is known: the library of costs has 0.1 pJ"),
        ("operational_array.unit_energy", 1001, "pJ for each operation are"),
        ("memories.memory.r_cost", "1e-9 pJ/b", "1e-09 pJ for each bit are"),
        ("memories.memory.w_cost", 1e-6, "(register-40nm, scaled to 7 nm) to 70 pJ (ddr3)"),
        ("memories.memory.w_cost", 64001, "1,000 pJ for each bit are 14.3 times above what is known"),
    ],
)
def test_a_slip_of_units_is_a_caution(path: str, value: object, words: str) -> None:
    """A number in a probably wrong unit gives one caution with the value, the range and its source."""
    (found,) = told(changed(path, value))
    assert isinstance(found, Caution)
    assert found.startswith(f"{path}: ")
    assert words in found


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("clock_frequency", [1, "60 MHz", "1.8 GHz", 10000]),
        ("operational_array.unit_energy", [0, 0.001, 0.04, 4.6, 50]),
        ("memories.memory.r_cost", [0, 0.001, 1.2, 2600]),
    ],
)
def test_plausible_numbers_are_not_told(path: str, values: list[object]) -> None:
    """Ends of the ranges and an energy of 0 get no notice."""
    assert [told(changed(path, value)) for value in values] == [[]] * len(values)


def test_a_number_above_the_library_alone_is_a_note() -> None:
    """An energy slightly above the range of the library gets a note, not a caution."""
    (found,) = told(changed("operational_array.unit_energy", 60))
    assert "60 pJ for each operation are 1.2 times above what is known" in found
    assert not isinstance(found, Caution)


def test_the_node_of_the_memories_narrows_the_range() -> None:
    """A multiply-accumulate of 0.002 pJ is possible at 7 nm, but not at 65 nm."""
    data = changed("operational_array.unit_energy", 0.002)
    del data["memories"]["memory"]["r_cost"], data["memories"]["memory"]["w_cost"]
    data["memories"]["memory"]["cost"] = {"from": "sram", "node_nm": 65}
    (found,) = told(data)
    assert "0.002 pJ are" in found
    assert "of the energy of an 8-bit multiply-accumulate at 65 nm" in found


def test_a_tiny_factor_of_the_library_is_told() -> None:
    """A tiny `energy_factor` of a memory gets a notice."""
    data = changed("clock_frequency", "1 GHz")
    del data["memories"]["memory"]["r_cost"], data["memories"]["memory"]["w_cost"]
    data["memories"]["memory"]["cost"] = {"from": "sram", "node_nm": 22, "energy_factor": 1e-6}
    assert any("energy_factor: the energies are 1e+06 times below those of the library" in one for one in told(data))


def test_the_off_chip_core_is_compared_too() -> None:
    """An implausible energy of an off-chip memory gets a caution."""
    from tilewright.base.yamlfile import document_of

    notices: list[str] = []
    core_entry(document_of(changed("memories.memory.r_cost", 1e-7)), notices, OFF_CHIP)
    assert [isinstance(one, Caution) for one in notices] == [True]


def test_ranges_come_from_the_library() -> None:
    """Ends of the ranges are entries of the library, and the range of memories contains the register file."""
    assert operation_range(True).least_pj == entries()["mac-int8-7nm"].energy_pj
    assert operation_range(False).least_pj < operation_range(True).least_pj
    assert memory_range(False).least_pj < entries()["register-40nm"].energy_pj < memory_range(True).least_pj
    assert link_range().largest_name == "link-infinity-socket"
    assert FAR == 100


def test_values_of_axes_are_told_with_their_axis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Implausible values of an axis get a warning with the axis and the value."""
    base = tmp_path / "base.yaml"
    base.write_text(yaml.safe_dump(changed("operational_array.unit_energy", 1e-6)))
    network = Path(__file__).parents[2] / "workflow/tiny/workload/two_layers.yaml"
    axes = {"clock": {"path": "clock_frequency", "values": [700, 0.7, 0.8]}}
    data = {"accelerator": str(base), "networks": [str(network)], "axes": axes}
    space = read_space(data)
    of_design, of_axis = number_cautions(space)
    assert "unit_energy: 1e-06 pJ for each operation" in of_design
    assert "axes.clock: with 0.7 (and with 0.8): clock_frequency: a clock of 0.7 MHz" in of_axis
    (tmp_path / "space.yaml").write_text(yaml.safe_dump(data))
    assert main(["explore", str(tmp_path / "space.yaml")]) == 0
    told_by_explore = capsys.readouterr().err
    assert told_by_explore.count("warning: ") == 2
    assert "axes.clock: with 0.7 (and with 0.8): clock_frequency: a clock of 0.7 MHz" in told_by_explore
