"""Extreme numbers: numbers beyond the limits are reported at their line, and the largest allowed ones give finite
results."""

import math
from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import parse_yaml
from tilewright.hardware.yaml_reader import accelerator_of
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.pipeline.stages.run import map_workload
from tilewright.workload.yaml_reader import workload_of

TPU = Path("config/hardware/zigzag/tpu_like.yaml").read_text()
LAYER = """\
- id: 0
  name: conv
  operator_type: Conv
  equation: O[k][ox] += W[k][c] * I[c][ox]
  loop_dims: [K, C, OX]
  loop_sizes: [8, 4, 6]
  operand_precision: {W: 8, I: 8, O: 16, O_final: 8}
"""


@pytest.mark.parametrize(
    ("old", "new", "path", "told"),
    [
        ("r_cost: 0.095", "r_cost: 1e308", "memories.rf_128B.r_cost", "must not be greater than 10^12 pJ"),
        ("r_cost: 0.095", "r_cost: 1.0e+308", "memories.rf_128B.r_cost", "must not be greater than 10^12 pJ"),
        ("w_cost: 750", "w_cost: 2 J", "memories.dram.w_cost", "must not be greater than 10^12 pJ"),
        ("w_cost: 750", "w_cost: .inf", "memories.dram.w_cost", "must be a finite number"),
        ("unit_energy: 0.04", "unit_energy: .nan", "operational_array.unit_energy", "must be a finite number"),
        ("unit_area: 1", "unit_area: 1e10", "operational_array.unit_area", "must not be greater than 10^9 mm2"),
        ("area: 0", "area: 1e300", "memories.rf_128B.area", "must not be greater than 10^9 mm2"),
        ("size: 1024", "size: 1e40", "memories.rf_128B.size", "must not be greater than 2^60 bits"),
        ("sizes: [32, 32]", "sizes: [2000000, 2000000]", "operational_array.sizes", "more than 2^40 units"),
    ],
)
def test_beyond_the_limits(old: str, new: str, path: str, told: str) -> None:
    """A number beyond its limit is one problem at its line."""
    text = TPU.replace(old, new, 1)
    line = next(number for number, row in enumerate(text.splitlines(), 1) if new in row)
    with pytest.raises(InputError) as caught:
        accelerator_of(parse_yaml(text, "core.yaml"))
    assert str(caught.value).startswith(f"core.yaml:{line} {path}: ")
    assert told in str(caught.value)
    assert len(caught.value.problems) == 1


def test_at_the_limits() -> None:
    """Energy and latency are finite for numbers at the limits."""
    text = TPU.replace("r_cost: 0.095", "r_cost: 1 J").replace("unit_energy: 0.04", "unit_energy: 1e12")
    text = text.replace("unit_area: 1", "unit_area: 1e9").replace("sizes: [32, 32]", "sizes: [1048576, 1048576]")
    text = text.replace("size: 10000000000", "size: 1152921504606846976")
    (core,) = accelerator_of(parse_yaml(text)).cores
    workload = workload_of(parse_yaml(LAYER), "net")
    mapping = read_mapping([{"name": "default", "spatial_mapping": {"D1": ["K, 8"], "D2": ["C, 4"]}}])
    summary = map_workload(workload, core, mapping).summary
    assert math.isfinite(summary["energy_pj"])
    assert summary["energy_pj"] > 1e12
    assert math.isfinite(summary["latency_cycles"])


def test_results_wider_than_sums_are_noted_once() -> None:
    """Final outputs wider than partial sums get one notice with file, line and number of layers."""
    wide = LAYER.replace("O_final: 8", "O_final: 32")
    other = wide.replace("id: 0", "id: 1").replace("name: conv", "name: other")
    notices: list[str] = []
    workload_of(parse_yaml(wide + other, "net.yaml"), "net", notices)
    assert notices == [
        "net.yaml:7 conv.operand_precision.O_final: final outputs have 32 bits, but partial sums (O) have only 16"
        " bits; the additional bits add no accuracy (in 2 layers of the file)"
    ]
    notices = []
    workload_of(parse_yaml(LAYER, "net.yaml"), "net", notices)
    assert notices == []
