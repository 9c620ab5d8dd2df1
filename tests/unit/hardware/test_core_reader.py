"""Core files of older and newer tools mean the same as files in the form of zigzag-dse 3.9.1."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.hardware.core import Core
from tilewright.pipeline.sources import parse_accelerator

from tests.unit.hardware.system_cases import connected, core, mesh, offchip, read

OLD = """\
name: core_a
multipliers:
  input_precision: [8, 8]
  multiplier_energy: 0.5
  multiplier_area: 2
  dimensions: [D1, D2]
  sizes: [4, 4]
memories:
  rf:
    size: 32
    r_bw: 32
    w_bw: 16
    r_cost: 0.02
    w_cost: 0.03
    area: 0
    r_port: 2
    w_port: 1
    rw_port: 0
    latency: 1
    operands: [O]
    min_w_granularity: 8
    ports:
      - {fh: w_port_1, tl: r_port_1, fl: w_port_1, th: r_port_2}
    served_dimensions: [D1]
  sram:
    size: 4096
    r_bw: 64
    w_bw: 64
    r_cost: 10
    w_cost: 11
    area: 0
    r_port: 0
    w_port: 0
    rw_port: 2
    latency: 1
    operands: [I1, I2, O]
    ports:
      - {fh: rw_port_1, tl: rw_port_2}
      - {fh: rw_port_1, tl: rw_port_2}
      - {fh: rw_port_1, tl: rw_port_2, fl: rw_port_1, th: rw_port_2}
    served_dimensions: [D1, D2]
"""


def old() -> dict[str, Any]:
    """Data of a core in the form of 2024."""
    data: dict[str, Any] = yaml.safe_load(OLD)
    return data


def parsed(data: dict[str, Any], notices: list[str] | None = None) -> Core:
    """Read the core in the data."""
    return parse_accelerator(data, notices).cores[0]


def test_ports_come_from_counts_and_tables_of_directions() -> None:
    """Ports of an old file come from counts and tables of directions; read ports take r_bw, write ports w_bw."""
    rf, sram = parsed(old()).memories
    assert [(p.name, p.port_type, p.bandwidth_min_bits, p.bandwidth_max_bits, p.allocation) for p in rf.ports] == [
        ("r_port_1", "read", 32, 32, (("O", "tl"),)),
        ("r_port_2", "read", 32, 32, (("O", "th"),)),
        ("w_port_1", "write", 8, 16, (("O", "fh"), ("O", "fl"))),
    ]
    assert [(p.name, p.port_type, p.bandwidth_max_bits) for p in sram.ports] == [
        ("rw_port_1", "read_write", 64),
        ("rw_port_2", "read_write", 64),
    ]
    assert sram.ports[0].allocation == (("I1", "fh"), ("I2", "fh"), ("O", "fh"), ("O", "fl"))
    assert (sram.size_bits, sram.read_energy_pj, sram.write_energy_pj) == (4096, 10.0, 11.0)


def test_multipliers_are_the_array() -> None:
    """The table `multipliers` of an old file is read as `operational_array`."""
    array = parsed(old()).operational_array
    assert (array.dimensions, array.unit_energy_pj, array.unit_area_mm2) == ((("D1", 4), ("D2", 4)), 0.5, 2.0)
    data = old()
    data["operational_array"] = data.pop("multipliers")
    assert parsed(data).operational_array == array


def test_an_old_accelerator_is_read_with_its_offchip_core(tmp_path: Path) -> None:
    """An accelerator of Stream in the form of 2024 is read with old core files and an off-chip core without units."""
    dram = offchip()
    ports = [dict.fromkeys(("fh", "tl"), "rw_port_1") for _ in range(2)]
    ports.append(dict.fromkeys(("fh", "tl", "fl", "th"), "rw_port_1"))
    widths = {"r_bw": 48, "w_bw": 48, "r_port": 0, "w_port": 0, "rw_port": 1}
    dram["memories"]["dram"] |= widths | {"ports": ports}
    array = {
        "input_precision": [8, 8],
        "multiplier_energy": 0,
        "multiplier_area": 0,
        "dimensions": ["D1"],
        "sizes": [0],
    }
    for key in ("operational_array", "multipliers"):
        dram.pop("operational_array", None)
        dram.pop("multipliers", None)
        accelerator = read(tmp_path, mesh(1, 2), small=old(), dram=dram | {key: array})
        assert accelerator.links[-1].bandwidth_bits_per_cycle == 48
        assert accelerator.core_of[2].operational_array.unit_count == 1


def test_newest_keys_say_what_a_core_is_for(tmp_path: Path) -> None:
    """A core of type memory passes no data on, and a notice says that operand_precision is not used."""
    notices: list[str] = []
    newest = core() | {"type": "zigzag.compute", "operand_precision": {"input": "int8"}}
    tile = core("tile") | {"type": "zigzag.memory"}
    data = connected(2, ["0, 1"])
    data["cores"][1] = "tile.yaml"
    accelerator = read(tmp_path, data, notices, small=newest, tile=tile, dram=offchip() | {"type": "zigzag.offchip"})
    assert [(place.role, place.is_router) for place in accelerator.places[:2]] == [("compute", True), ("memory", False)]
    assert any("operand_precision: not used" in notice for notice in notices)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w_port": 0}, "ports[0].fh: no such port, got 'w_port_1' (allowed: r_port_1, r_port_2)"),
        ({"ports": []}, "ports: needs one table of directions for each of `operands`, got 0 (allowed: 1 tables)"),
        (
            {"rw_port": 1},
            "w_bw: a port that reads and writes has one bandwidth, but w_bw differs from r_bw, got 16 (allowed: 32)",
        ),
        ({"r_bw": "x"}, "ports.r_port_1.bandwidth_max: must be a number"),
        ({"ports": "x"}, "ports: needs one table"),
        ({"size": 0}, "size: must be greater than 0"),
    ],
)
def test_what_is_wrong_in_the_old_form_is_told(change: dict[str, Any], message: str) -> None:
    """Each problem in an old file has its place."""
    data = old()
    data["memories"]["rf"] |= change
    with pytest.raises(InputError) as caught:
        parsed(data)
    assert any(f"memories.rf.{message}" in str(problem) for problem in caught.value.problems), str(caught.value)


def test_cores_without_a_memory_hierarchy_are_refused() -> None:
    """A core that has only a capacity, without a memory hierarchy, is refused."""
    with pytest.raises(InputError, match="cores of this type have no memory hierarchy"):
        parsed({"name": "tile", "type": "aie2.memory", "memory": {"capacity": 1}})
