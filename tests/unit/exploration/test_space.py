"""Spaces of designs: from an index to values and a hardware file, and back."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.exploration.space import Space
from tilewright.exploration.space_reader import read_space
from tilewright.hardware.yaml_reader import read_accelerator

ROOT = Path(__file__).resolve().parents[3]
BASE = ROOT / "config" / "hardware" / "systolic" / "systolic.yaml"
NETWORK = ROOT / "config" / "workload" / "mobilenetv2.onnx"


def space_of(**keys: Any) -> Space:
    """A space over the systolic array, given as a dict."""
    return read_space({"accelerator": str(BASE), "networks": [str(NETWORK)]} | keys)


def test_every_design_of_a_small_space() -> None:
    """The last axis varies fastest; laws and paths set what they name, and nothing else."""
    space = space_of(
        axes={
            "rows": {"path": "operational_array.sizes.0", "values": [8, 16]},
            "sram_kib": {"from": 32, "to": 128, "factor": 2},
        },
        laws={
            "sram_area": "0.0012 * sram_kib + 0.05",
            "memories.sram.size": "sram_kib * 8192",
            "memories.sram.area": "sram_area",
        },
        constraints=["rows * sram_kib <= 1024", "area_mm2 <= 2"],
    )
    assert len(space) == 6
    assert space.value_names == ("rows", "sram_kib", "sram_area")
    designs = [space.design(index) for index in range(6)]
    assert [(design.values["rows"], design.values["sram_kib"]) for design in designs] == [
        *((8, 32), (8, 64), (8, 128), (16, 32), (16, 64), (16, 128))
    ]
    assert [design.excluded_by for design in designs] == ["", "", "", "", "", "rows * sram_kib <= 1024"]
    assert space.count_allowed() == 5
    base = yaml.safe_load(BASE.read_text())
    for design in designs:
        assert list(design.values) == list(space.value_names)
        base["operational_array"]["sizes"][0] = design.values["rows"]
        base["memories"]["sram"] |= {"size": design.values["sram_kib"] * 8192, "area": design.values["sram_area"]}
        assert design.hardware == base
        assert read_accelerator(design.hardware).cores
    assert space.unmet(designs[0].values, {"area_mm2": 2.0}) == ""
    assert space.unmet(designs[0].values, {"area_mm2": 2.1}) == "area_mm2 <= 2"
    assert [space.design_name(index) for index in (0, 5)] == ["space-0", "space-5"]
    with pytest.raises(IndexError):
        space.design(6)
