"""Bandwidths per second and energies per bit, which do not depend on the clock."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.base.units import FieldError, parse_bits_per_second, parse_energy_per_bit_pj
from tilewright.hardware.core import Memory
from tilewright.hardware.source import parse_accelerator

CONFIG = Path(__file__).resolve().parents[3] / "config" / "hardware"
TPU = yaml.safe_load((CONFIG / "zigzag" / "tpu_like.yaml").read_text())


def core(
    bandwidth: Any = "2 GB/s", energy: Any = "12 pJ/b", clock: Any = "250 MHz", least: Any = None
) -> dict[str, Any]:
    """Data of the shipped core with another DRAM; `clock` None gives a file without a clock."""
    data = copy.deepcopy(TPU)
    data.pop("clock_frequency", None)
    if clock is not None:
        data["clock_frequency"] = clock
    dram = data["memories"]["dram"]
    dram |= {"r_cost": energy, "w_cost": energy}
    for port in dram["ports"]:
        port |= {"bandwidth_max": bandwidth, "bandwidth_min": bandwidth}
    return data


def dram_of(data: dict[str, Any], notices: list[str] | None = None) -> Memory:
    """Read the DRAM."""
    return parse_accelerator(data, notices).cores[0].memories[-1]


def problems_of(data: dict[str, Any]) -> list[str]:
    """Return path and message of each problem of a file."""
    with pytest.raises(InputError) as caught:
        parse_accelerator(data)
    return [f"{one.path}: {one.message}" for one in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "bits"),
    [
        ("1 b/s", 1),
        ("800 Mb/s", 8 * 10**8),
        ("25.6 GB/s", 2048 * 10**8),
        ("1 GiB/s", 2**33),
        ("2 TB/sec", 16 * 10**12),
    ],
)
def test_rates_are_read_exactly(written: str, bits: int) -> None:
    """Rates in each unit of size are read exactly."""
    assert parse_bits_per_second(written) == bits


@pytest.mark.parametrize("written", ["0 GB/s", "-1 GB/s", "1 GX/s", "fast"])
def test_wrong_rates_are_refused(written: str) -> None:
    """Rates of 0 or below, with unknown units or without a number are refused."""
    with pytest.raises(FieldError):
        parse_bits_per_second(written)


def test_energies_per_bit() -> None:
    """An energy per byte is divided by eight to give the energy per bit."""
    assert parse_energy_per_bit_pj("8 pJ/b") == 8.0
    assert parse_energy_per_bit_pj("8pJ / bit") == 8.0
    assert parse_energy_per_bit_pj("64 pJ/B") == 8.0
    assert parse_energy_per_bit_pj("80 fJ/byte") == 0.01


def test_the_same_part_at_two_clocks() -> None:
    """Bits per cycle and energy per word follow the clock; the rate per second and the energy per bit stay the same."""
    slow, fast = dram_of(core(clock="250 MHz")), dram_of(core(clock="1 GHz"))
    assert [one.ports[0].bandwidth_max_bits for one in (slow, fast)] == [64, 16]
    assert [one.read_energy_pj for one in (slow, fast)] == [64 * 12.0, 16 * 12.0]
    assert slow == dram_of(core(64, 768.0))
    assert fast == dram_of(core(16, 192.0, "1 GHz"))


@given(st.integers(1, 10**6), st.integers(1, 4000), st.sampled_from(["b", "B", "Kib", "MB"]))
def test_bits_are_never_more_than_the_part_has(amount: int, mhz: int, unit: str) -> None:
    """Bits per cycle are rounded down by less than one bit; a rate below one bit per cycle is refused."""
    rate = parse_bits_per_second(f"{amount} {unit}/s")
    data = core(f"{amount} {unit}/s", "1 pJ/b", f"{mhz} MHz")
    notices: list[str] = []
    if rate < mhz * 10**6:
        assert all("less than one bit" in one for one in problems_of(data))
        return
    bits = dram_of(data, notices).ports[0].bandwidth_max_bits
    assert bits * mhz * 10**6 <= rate < (bits + 1) * mhz * 10**6
    assert any("rounded down to" in one for one in notices) == (rate != bits * mhz * 10**6)


def test_rounding_is_said() -> None:
    """The notice about rounding has the exact number of bits."""
    notices: list[str] = []
    assert dram_of(core("25.6 GB/s", clock="1 GHz"), notices).ports[0].bandwidth_max_bits == 204
    said = [one for one in notices if "rounded down to" in one]
    assert len(said) == 2 * len(TPU["memories"]["dram"]["ports"])
    assert all("25.6 GB/s at 1000 MHz are 204.8 bits per cycle, rounded down to 204" in one for one in said)


def test_a_rounded_number_shows_its_fraction() -> None:
    """The notice shows the fraction of a wide port: 146285.71 bits, not 146286."""
    notices: list[str] = []
    dram_of(core("12.8 GB/s", clock="700 kHz"), notices)
    assert any("are 146285.71 bits per cycle, rounded down to 146285" in one for one in notices)


def test_a_clock_is_needed_and_asked_for_once() -> None:
    """A missing clock gives a single problem for all ports."""
    (problem,) = problems_of(core(clock=None))
    assert problem == (
        "memories.dram.ports.rw_port_1.bandwidth_max: bandwidths per second need the frequency of the clock"
        if "bandwidth_max" in problem
        else "memories.dram.ports.rw_port_1.bandwidth_min: bandwidths per second need the frequency of the clock"
    )


def test_an_energy_of_a_word_is_refused() -> None:
    """A plain word energy is refused beside a bandwidth per second, because the word depends on the clock; 0 is
    allowed."""
    found = problems_of(core(energy=700))
    assert [one.partition(":")[0] for one in found] == ["memories.dram.r_cost", "memories.dram.w_cost"]
    assert all("depends on the clock" in one for one in found)
    assert dram_of(core(energy=0)).read_energy_pj == 0
    assert dram_of(core(energy="0 pJ/b")).read_energy_pj == 0


def test_other_problems_are_told_together() -> None:
    """Wrong units, wrong energies and a wrong size are reported together."""
    data = core("2 GX/s", "12 qJ/b")
    data["memories"]["dram"]["size"] = 0
    paths = {one.partition(":")[0] for one in problems_of(data)}
    assert {"memories.dram.size", "memories.dram.r_cost", "memories.dram.w_cost"} <= paths
    assert any(path.endswith("bandwidth_max") for path in paths)


def test_an_energy_per_bit_beside_bits_per_cycle() -> None:
    """A read costs the energy per bit times the width of the read port, and a write times that of the write port."""
    data = core(64, "2 pJ/b")
    port = data["memories"]["dram"]["ports"][0]
    reading = [one for one in port["allocation"] if one.endswith(("tl", "th"))]
    writing = [one for one in port["allocation"] if one not in reading]
    data["memories"]["dram"]["ports"] = [
        {"name": "r", "type": "read", "bandwidth_min": 8, "bandwidth_max": 32, "allocation": reading},
        {"name": "w", "type": "write", "bandwidth_min": 8, "bandwidth_max": 16, "allocation": writing},
    ]
    dram = dram_of(data)
    assert (dram.read_energy_pj, dram.write_energy_pj) == (64.0, 32.0)


@pytest.mark.parametrize(
    ("bandwidth", "clock", "said"),
    [
        (
            "2 TB/s",
            "1 GHz",
            "16,000 bits per cycle at 1000 MHz are 2,000 GB/s; one LPDDR4 gives 25.6 GB/s (3200 MT/s, 64 bits wide), so"
            " the memory needs 79 of them",
        ),
        (256, "1 GHz", "256 bits per cycle at 1000 MHz are 32 GB/s; one LPDDR4"),
        ("25.6 GB/s", "200 MHz", ""),
        (1024, "200 MHz", ""),
        (1024, None, ""),
    ],
)
def test_more_than_a_part_gives_is_said(bandwidth: Any, clock: str | None, said: str) -> None:
    """A bandwidth above that of the named DRAM type gets a notice if the clock is known."""
    data = core(bandwidth, clock=clock)
    for key in ("r_cost", "w_cost", "area"):
        data["memories"]["dram"].pop(key, None)
    data["memories"]["dram"]["cost"] = {"from": "dram", "type": "lpddr4"}
    notices: list[str] = []
    dram_of(data, notices)
    found = [one for one in notices if "LPDDR4 gives" in one]
    assert bool(found) == bool(said)
    assert all(said in one for one in found)


def system(clock: Any, **links: Any) -> dict[str, Any]:
    """Data of two cores and an off-chip memory in one file."""
    part = {key: value for key, value in TPU.items() if key != "clock_frequency"}
    off = core(clock=None)
    data: dict[str, Any] = {
        "name": "pair",
        "cores": {0: "part", 1: "part"},
        "offchip_core": "off",
        "core_files": {"part": part, "off": off},
        "core_connectivity": [{"cores": [0, 1], **links}],
    }
    return data if clock is None else {**data, "clock_frequency": clock}


def test_links_and_cores_have_the_clock_of_the_accelerator() -> None:
    """Links and the off-chip core take the clock of the accelerator for their rates per second."""
    found = parse_accelerator(system("500 MHz", bandwidth="4 GB/s", energy_per_bit="80 fJ"))
    link = next(one for one in found.links if one.edges[0] in ((0, 1), (1, 0)))
    assert link.bandwidth_bits_per_cycle == 64
    off = next(
        one
        for one in found.cores
        if one.memories[-1].name == "dram" and one.memories[-1].ports[0].bandwidth_max_bits == 32
    )
    assert off.memories[-1].read_energy_pj == 32 * 12.0


def test_a_wrong_clock_is_not_missing() -> None:
    """A wrong clock gives one problem at `clock_frequency`, and none at the bandwidths."""
    assert [one.split(":")[0] for one in problems_of(core(clock="600 KHz"))] == ["clock_frequency"]


def test_wrong_systems_are_refused() -> None:
    """Bandwidths per second are refused if the system has no clock, or if it gives an energy per busy cycle."""
    assert any(
        "need the frequency of the clock" in one
        for one in problems_of(system(None, bandwidth="4 GB/s", energy_per_bit=0))
    )
    found = problems_of(system("500 MHz", bandwidth="4 GB/s", unit_energy_cost=2))
    assert found == [
        "core_connectivity[0].unit_energy_cost: is an energy per busy cycle, but the bandwidth is per second: the"
        " number of bits per cycle, and therefore the energy per bit, depends on the clock"
    ]
    of_all = {**system("500 MHz", bandwidth="4 GB/s"), "unit_energy_cost": 2}
    assert [one.partition(":")[0] for one in problems_of(of_all)] == ["unit_energy_cost"]
