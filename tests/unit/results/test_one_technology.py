"""The shipped accelerators of one technology can be ranked: they share node, parts, clock and size."""

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
import yaml
from tilewright.hardware.core import Core, single_core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.static_power import static_power_mw
from tilewright.results.part_costs import BY_HAND, hardware_costs
from tilewright.results.run_point import RunPoint
from tilewright.results.unlike_runs import unlike_causes

CONFIG = Path(__file__).resolve().parents[3] / "config"
FILES = sorted((CONFIG / "hardware").glob("*_45nm.yaml"))
REGISTER_PJ_PER_BIT, REGISTER_UM2_PER_BIT = 0.0112, 7.852


def core_of(file: Path) -> Core:
    """The core of a file; reading the file must give no note."""
    notes: list[str] = []
    core = single_core(parse_accelerator(file, notes))
    assert notes == []
    return core


def test_the_default_run_compares_these() -> None:
    """The default run compares all of these accelerators, each with a mapping file of its name."""
    sweeps = yaml.safe_load((CONFIG / "config.yaml").read_text("utf-8"))["sweeps"]
    named = [*sweeps["networks"]["hardware"], sweeps["whole_networks"]["hardware"]]
    assert sorted(named) == [file.stem for file in FILES]
    assert all((CONFIG / "mapping" / file.name).is_file() for file in FILES)


def test_no_ranking_of_them_has_a_cause_to_mislead() -> None:
    """Clocks, static power, energies of MACs and DRAM, sources and ports give no cause for a misleading ranking."""
    points = []
    for file in FILES:
        point = RunPoint(file.stem, "net", "1", file.stem, "EDP", "corrected", (), 1.0, 1.0, 1.0)
        core = core_of(file)
        clock, power_w = core.clock_frequency_mhz, static_power_mw(core) * 1e-3
        points.append(replace(point, costs=hardware_costs(core), clock_frequency_mhz=clock, static_power_w=power_w))
    assert unlike_causes(points) == ()


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_each_has_the_parts_of_the_set(file: Path) -> None:
    """Each core has about 1024 multipliers, 512 KiB and 6.4 GB/s at 200 MHz, with costs from the library or a
    register's law.
    """
    core = core_of(file)
    assert core.clock_frequency_mhz == 200
    assert 1000 <= prod(size for _, size in core.operational_array.dimensions) <= 1024
    assert (core.operational_array.unit_energy_pj, core.operational_array.unit_area_mm2) == (0.3, 419e-6)
    memories = {memory.name: memory for memory in core.memories}
    assert memories["sram"].size_bits == 512 * 1024 * 8
    assert {port.bandwidth_max_bits for port in memories["dram"].ports} == {6.4e9 * 8 / 200e6}
    for memory in core.memories:
        if memory.cost_source is None:
            width = max(port.bandwidth_max_bits for port in memory.ports)
            assert memory.read_energy_pj == pytest.approx(REGISTER_PJ_PER_BIT * width)
            assert memory.write_energy_pj == pytest.approx(REGISTER_PJ_PER_BIT * width)
            assert memory.area_mm2 == pytest.approx(REGISTER_UM2_PER_BIT * memory.size_bits * 1e-6, rel=1e-3)
    assert set(hardware_costs(core).sources) == {"sram 45 nm lstp", "dram lpddr4", BY_HAND}
