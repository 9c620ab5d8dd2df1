"""Wrong hardware files of in-memory arrays: all problems are reported at once, each with its place."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError, Problem
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.yaml_reader import read_accelerator

FILES = Path(__file__).parents[2] / "conformance/data/in_memory/hardware"


def problems_of(tmp_path: Path, name: str, array: dict[str, Any], cells: dict[str, Any]) -> dict[str, Problem]:
    """Return path -> problem of a file with changed keys of the array and its cells; None removes a key."""
    described = yaml.safe_load((FILES / f"{name}.yaml").read_text())
    for table, changes in ((described["operational_array"], array), (described["memories"]["cells"], cells)):
        table |= {key: value for key, value in changes.items() if value is not None}
        for key in [key for key, value in changes.items() if value is None]:
            del table[key]
    file = tmp_path / "core.yaml"
    file.write_text(yaml.safe_dump(described, sort_keys=False))
    with pytest.raises(InputError) as raised:
        read_accelerator(file)
    return {problem.path: problem for problem in raised.value.problems}


ARRAY, CELLS = "operational_array", "memories.cells"


@pytest.mark.parametrize(
    ("name", "array", "cells", "path", "told"),
    [
        ("analog_24x40", {"imc_type": None}, {}, f"{ARRAY}.imc_type", "analog, digital"),
        ("analog_24x40", {"imc_type": "analogue"}, {}, f"{ARRAY}.imc_type", "analog"),
        ("analog_24x40", {"input_precision": None}, {}, f"{ARRAY}.input_precision", "required key is missing"),
        ("analog_24x40", {"bit_serial_precision": None}, {}, f"{ARRAY}.bit_serial_precision", "required key"),
        ("analog_24x40", {"bit_serial_precision": 8}, {}, f"{ARRAY}.bit_serial_precision", "up to 4"),
        ("analog_24x40", {"bit_serial_precision": 3}, {}, f"{ARRAY}.bit_serial_precision", "power of two"),
        ("analog_24x40", {"input_precision": [6, 8]}, {}, f"{ARRAY}.input_precision[0]", "power of two"),
        ("analog_24x40", {"adc_resolution": -1}, {}, f"{ARRAY}.adc_resolution", "less than 0"),
        ("digital_16x32x3", {"adc_resolution": 4}, {}, f"{ARRAY}.adc_resolution", "0, or leave the key out"),
        ("digital_16x32x3", {"sizes": [16, 24, 3]}, {}, f"{ARRAY}.sizes[1]", "the size of D2 (the bit lines)"),
        ("analog_24x40", {}, {"operands": ["I2", "I1"]}, f"{CELLS}.operands", "[I2]"),
        ("analog_24x40", {}, {"served_dimensions": ["D1"]}, f"{CELLS}.served_dimensions", "[]"),
        ("analog_24x40", {}, {"size": 12}, f"{CELLS}.size", "8, 16, ..."),
        ("analog_24x40", {}, {"auto_cost_extraction": True}, f"{CELLS}.auto_cost_extraction", "leave the key out"),
        ("analog_24x40", {"is_imc": False}, {}, f"{ARRAY}.imc_type", "only in-memory arrays"),
        ("analog_24x40", {"is_imc": False}, {}, f"{ARRAY}.unit_energy", "required key is missing"),
    ],
)
def test_problem_with_its_place(
    tmp_path: Path, name: str, array: dict[str, Any], cells: dict[str, Any], path: str, told: str
) -> None:
    """Each problem has its place and the allowed values."""
    found = problems_of(tmp_path, name, array, cells)
    assert path in found
    assert told in str(found[path])


def test_all_problems_at_once(tmp_path: Path) -> None:
    """Problems of the kind of array, of widths and of cells are reported together."""
    array = {"imc_type": "digital", "bit_serial_precision": 3, "sizes": [16, 24]}
    found = problems_of(tmp_path, "analog_24x40", array, {"size": 12})
    assert set(found) == {
        f"{ARRAY}.adc_resolution",
        f"{ARRAY}.bit_serial_precision",
        f"{ARRAY}.sizes[1]",
        f"{CELLS}.size",
    }


def test_cells_under_another_name(tmp_path: Path) -> None:
    """A weight memory with another name than `cells` is refused with the nearest name."""
    text = (FILES / "analog_24x40.yaml").read_text().replace("  cells:", "  cell:")
    (tmp_path / "core.yaml").write_text(text)
    with pytest.raises(InputError, match=r"needs the memory 'cells'.*did you mean 'cell'"):
        read_accelerator(tmp_path / "core.yaml")


def test_one_side_is_no_array_of_lines(tmp_path: Path) -> None:
    """An in-memory array with a single dimension is refused."""
    text = (FILES / "analog_24x40.yaml").read_text()
    for old, new in (("[D1, D2]", "[D1]"), ("[D2]", "[D1]"), ("[24, 40]", "[24]")):
        text = text.replace(old, new)
    (tmp_path / "core.yaml").write_text(text)
    with pytest.raises(InputError, match="two dimensions or more"):
        read_accelerator(tmp_path / "core.yaml")


@pytest.mark.parametrize(("key", "value"), [("cost", {"from": "sram", "node_nm": 22}), ("auto_cost_extraction", True)])
def test_cells_that_ask_the_library_are_one_problem(tmp_path: Path, key: str, value: Any) -> None:
    """Cells with costs from the library are a single problem, because the library has no cells."""
    changes = {"r_cost": None, "w_cost": None, "area": None, key: value}
    found = problems_of(tmp_path, "analog_24x40", {}, changes)
    assert list(found) == [f"{CELLS}.{key}"]
    assert "the library of costs has no cells: give r_cost, w_cost and area" in str(found[f"{CELLS}.{key}"])


def test_an_analog_array_without_converters_is_told() -> None:
    """An analog array without `adc_resolution` gets a notice that its converters cost nothing."""
    described = yaml.safe_load((FILES / "analog_24x40.yaml").read_text())
    notices: list[str] = []
    parse_accelerator(described, notices)
    assert not notices
    del described["operational_array"]["adc_resolution"]
    parse_accelerator(described, notices)
    (told,) = notices
    assert "adc_resolution: missing or 0, so the analog-to-digital converters of the array cost nothing" in told
