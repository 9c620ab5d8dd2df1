"""Clocks and static power in hardware files: their meaning, their sharing, and their faults."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.errors import InputError
from tilewright.base.units import FieldError, parse_frequency_mhz, parse_power_mw
from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.static_power import (
    clock_period_ns,
    rate_pj_a_cycle,
    static_power_fields,
    static_power_mw,
    system_power_mw,
    system_rates_pj_a_cycle,
    without_static_power,
)

from tests.unit.hardware.system_cases import connected, core, memory, offchip, read


def leaky(name: str = "small", leakage: object = "3 uW", **further: Any) -> dict[str, Any]:
    """Data of a core whose memory and units leak."""
    data = core(name, sram=memory() | {"leakage": leakage})
    data["operational_array"]["unit_leakage"] = "2 nW"
    return data | further


def of_parts(counted: list[str], zero: list[str], not_given: list[str]) -> dict[str, dict[str, list[str]]]:
    """Return the field of a summary with these parts."""
    return {"static_power_parts": {"counted": counted, "zero": zero, "not_given": not_given}}


def test_a_core_leaks_through_all_units_and_all_instances() -> None:
    """A core leaks through its memory and all its units; energy per cycle is power times the clock period."""
    (found,) = parse_accelerator(leaky(clock_frequency="200 MHz")).cores
    units = found.operational_array.unit_count
    assert static_power_mw(found) == pytest.approx(3e-3 + units * 2e-6)
    assert clock_period_ns(found) == 5.0
    assert rate_pj_a_cycle(found, "leakage") == pytest.approx(5.0 * static_power_mw(found))
    assert static_power_mw(without_static_power(found)) == 0


def test_a_core_without_these_keys_is_as_it_was() -> None:
    """A core without a clock and leakage has no clock period and no static power."""
    (found,) = parse_accelerator(core("small", sram=memory())).cores
    assert clock_period_ns(found) is None
    assert static_power_mw(found) == rate_pj_a_cycle(found, "leakage") == 0
    assert without_static_power(found) is found


def test_parts_without_static_power_are_named() -> None:
    """The summary names the parts with a static power, the parts with a given power of 0, and all other parts."""
    data = leaky(clock_frequency="200 MHz")
    del data["operational_array"]["unit_leakage"]
    cores = parse_accelerator(data).cores
    assert static_power_fields(cores) == of_parts(["sram"], [], ["array"])
    twice = static_power_fields([*cores, replace(cores[0], name="other")])
    assert twice["static_power_parts"]["not_given"] == ["small array", "other array"]
    data["operational_array"]["unit_leakage"] = 0
    zero = parse_accelerator(data).cores
    assert static_power_fields(zero) == of_parts(["sram"], ["array"], [])
    assert zero == cores
    assert hash(zero[0]) == hash(cores[0])
    again = decode(Core, json.loads(json.dumps(encode(zero[0]))))
    assert static_power_fields([again]) == of_parts(["sram"], ["array"], [])
    data["memories"]["sram"]["leakage"] = "0 mW"
    assert static_power_fields(parse_accelerator(data).cores) == of_parts([], ["array", "sram"], [])

    data = core("small", sram=memory())
    assert static_power_fields(parse_accelerator(data).cores) == of_parts([], [], ["array", "sram"])


def test_static_power_without_a_clock_is_refused() -> None:
    """Static power without a clock is refused, because its energy is unknown."""
    with pytest.raises(InputError, match=r"static power \(sram, the array\) needs the frequency of the clock"):
        parse_accelerator(leaky())


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_power_mw, "20 uW", 0.02),
        (parse_power_mw, "3 nW", 3e-6),
        (parse_power_mw, 0.5, 0.5),
        (parse_power_mw, "0 mW", 0.0),
        (parse_frequency_mhz, "1.2 GHz", 1200.0),
        (parse_frequency_mhz, 200, 200.0),
        (parse_frequency_mhz, "32768 Hz", 0.032768),
    ],
)
def test_quantities(parse: Any, text: object, value: float) -> None:
    """Powers and frequencies are read in each unit."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "told"),
    [
        (parse_power_mw, "-1 mW", "negative"),
        (parse_power_mw, "3 mA", "unknown unit"),
        (parse_frequency_mhz, 0, "greater than 0"),
        (parse_frequency_mhz, "2 mHz", "unknown unit"),
        (parse_frequency_mhz, "9 THz", "unknown unit"),
        (parse_frequency_mhz, "9e9 GHz", "10\\^6 MHz"),
        (parse_frequency_mhz, True, "must be a number"),
    ],
)
def test_what_is_no_quantity(parse: Any, text: object, told: str) -> None:
    """A wrong power or frequency is refused with the reason."""
    with pytest.raises(FieldError, match=told):
        parse(text)


def test_cores_of_a_system_add_up_and_a_shared_memory_leaks_once(tmp_path: Path) -> None:
    """Static power of the cores and of the off-chip memory adds up; a shared memory leaks once."""
    dram = offchip()
    name = next(iter(dram["memories"]))
    dram["memories"][name]["leakage"] = "40 mW"
    shared = connected(2, [], core_memory_sharing=["0, 1"], clock_frequency="100 MHz")
    alone = connected(2, ["0, 1"], clock_frequency="100 MHz")
    one, two = (read(tmp_path, data, small=leaky(), dram=dram) for data in (shared, alone))
    units = 2 * one.cores[0].operational_array.unit_count * 2e-6
    assert system_power_mw(one) == pytest.approx(40 + 3e-3 + units)
    assert system_power_mw(two) == pytest.approx(40 + 6e-3 + units)
    assert sum(system_rates_pj_a_cycle(two).values()) == pytest.approx(10 * system_power_mw(two))


def test_cores_of_a_system_have_one_clock(tmp_path: Path) -> None:
    """The clock of one core or of the file holds for all cores; a second, different clock is refused."""
    named = read(tmp_path, connected(2, ["0, 1"]), small=leaky(clock_frequency="250 MHz"), dram=offchip())
    assert named.clock_frequency_mhz == 250.0
    assert {core.clock_frequency_mhz for core in named.cores} == {250.0}  # a term of the energy is given a core alone
    only_here = read(tmp_path, connected(2, ["0, 1"], clock_frequency="1 GHz"), small=leaky(), dram=offchip())
    assert {clock_period_ns(core) for core in only_here.cores} == {1.0}
    data = connected(2, ["0, 1"], clock_frequency="1 GHz")
    with pytest.raises(InputError, match="a schedule counts cycles of one clock"):
        read(tmp_path, data, small=leaky(clock_frequency="250 MHz"), dram=offchip())
    with pytest.raises(InputError, match=r"static power \(small\) needs the frequency of the clock"):
        read(tmp_path, connected(2, ["0, 1"]), small=leaky(), dram=offchip())


@given(st.floats(1e-6, 1e6), st.floats(0.01, 1e5))
def test_energy_of_a_cycle_does_not_depend_on_how_power_is_written(power_mw: float, clock_mhz: float) -> None:
    """Static energy per cycle is equal for powers and clocks with units (mW, MHz) and as plain numbers."""
    texts = (power_mw, f"{clock_mhz!r} MHz"), (f"{power_mw!r} mW", clock_mhz)
    found = [parse_accelerator(leaky(leakage=power, clock_frequency=clock)).cores[0] for power, clock in texts]
    assert rate_pj_a_cycle(found[0], "leakage") == rate_pj_a_cycle(found[1], "leakage") > 0


def test_a_clock_that_is_too_fast_is_told() -> None:
    """A clock that is faster than an access of a library memory is reported; without a clock, leakage is left out."""
    data = core("small", sram=memory() | {"cost": {"from": "sram", "node_nm": 22}, "size": "64 KiB"})
    for key in ("r_cost", "w_cost", "area"):
        data["memories"]["sram"].pop(key, None)
    notices: list[str] = []
    parse_accelerator(data, notices=notices)
    assert any("is left out: no file gives the clock" in one for one in notices)
    notices.clear()
    (found,) = parse_accelerator(data | {"clock_frequency": "20 GHz"}, notices=notices).cores
    assert any("but counts as one cycle of 0.05 ns" in one for one in notices)
    assert found.memories[0].cost_source is not None
    assert static_power_mw(found) == found.memories[0].cost_source.leakage_mw > 0


def test_the_clock_of_a_system_is_that_of_its_library(tmp_path: Path) -> None:
    """Library leakage in a system counts if the clock is known; otherwise one notice says that it is left out."""
    sourced = core("small", sram=memory() | {"cost": {"from": "sram", "node_nm": 22}, "size": "64 KiB"})
    for key in ("r_cost", "w_cost", "area"):
        sourced["memories"]["sram"].pop(key, None)
    notices: list[str] = []
    clockless = read(tmp_path, connected(2, ["0, 1"]), notices=notices, small=sourced, dram=offchip())
    assert [one for one in notices if "no file gives the clock" in one and "small" in one] == [notices[-1]]
    assert sum(system_rates_pj_a_cycle(clockless).values()) == 0
    notices.clear()
    clocked = read(
        tmp_path, connected(2, ["0, 1"], clock_frequency="100 MHz"), notices=notices, small=sourced, dram=offchip()
    )
    assert not any("no clock" in one for one in notices)
    assert sum(system_rates_pj_a_cycle(clocked).values()) > 0
    read(tmp_path, connected(2, ["0, 1"], clock_frequency="5 GHz"), notices=notices, small=sourced, dram=offchip())
    assert sum("small, sram: an access takes" in one for one in notices) == 1


SHIPPED = sorted([*Path("config/hardware/zigzag").glob("*.yaml"), *Path("config/hardware/multi").glob("*.yaml")])


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_accelerator_has_a_clock_and_no_static_power(file: Path) -> None:
    """Each shipped accelerator has a clock and no static power."""
    accelerator = parse_accelerator(file)
    for shipped in accelerator.cores:
        assert clock_period_ns(shipped) is not None, shipped.name
        assert static_power_mw(shipped) == 0
