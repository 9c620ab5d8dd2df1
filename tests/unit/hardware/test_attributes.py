"""Attributes of hardware that one declaration adds: a power and its key, from the file to the tables."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.hardware.attributes import BUILT_IN, ENTERED, Attribute, attributes, figure, figures_of, power_terms
from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.static_power import rate_pj_a_cycle, static_power_mw, without_static_power
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.pipeline.stages.run import map_workload
from tilewright.results.checks import check_run, failure_message
from tilewright.results.multi.summary_text import summary_text
from tilewright.results.run_columns import run_row
from tilewright.results.tables import layer_table
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import gemm, network
from tests.unit.hardware.system_cases import core, memory
from tests.unit.multi_core.runs import DUO, branches, done, run, write_accelerator, write_mapping
from tools.validate_files import schema_text

REFRESH = Attribute(
    "upkeep", "memory", "upkeep_mw", "power_mw", "What keeping the data of one instance draws.", term="upkeep"
)
RETENTION = Attribute(
    "retention", "core", "retention_ms", "number", "Time after which data is lost, in ms.", default=64
)
ENTRIES = {ENTERED.owner: {"upkeep": f"{__name__}:REFRESH", "retention": f"{__name__}:RETENTION"}}
LINES = ("--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]')
EXAMPLE = Path(__file__).parents[3] / "config/hardware/zigzag/tpu_like.yaml"


@pytest.fixture
def entered() -> Iterator[None]:
    """Register both attributes while a test runs."""
    enter(ENTRIES)
    yield
    withdraw(ENTRIES)


def refreshed(**further: Any) -> dict[str, Any]:
    """Data of a core whose memory has a refresh power."""
    return core("small", sram=memory() | {"upkeep": "3 uW"}) | further


def read(data: dict[str, Any]) -> Core:
    """Read the core of a file."""
    return parse_accelerator(data).cores[0]


def test_the_key_is_unknown_until_it_is_declared() -> None:
    """A key without a declaration is refused as unknown."""
    with pytest.raises(InputError, match=r"memories\.sram\.upkeep: unknown key"):
        read(refreshed(clock_frequency="200 MHz"))
    assert '"upkeep"' not in schema_text("hardware")
    assert "upkeep" not in power_terms()


def test_a_key_is_a_figure_with_its_unit(entered: None) -> None:
    """A value of the file is kept under a name with the unit; the default applies where no value is kept."""
    found = read(refreshed(clock_frequency="200 MHz", retention=32))
    assert found.memories[0].figures == (("upkeep_mw", 0.003),)
    assert (found.figures, figure(RETENTION, found.figures)) == ((("retention_ms", 32),), 32)
    plain = read(core("small", sram=memory()))
    assert (plain.memories[0].figures, plain.figures) == ((), ())
    assert figure(RETENTION, plain.figures) == 64
    assert figures_of("core", {"retention": 64}) == ()
    properties = json.loads(schema_text("hardware"))["$defs"]["MemoryEntry"]["properties"]
    assert properties["upkeep"]["description"] == REFRESH.sentence


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (refreshed(), r"static power \(sram\) needs the frequency of the clock"),
        (refreshed(clock_frequency=100, retention=-1), "retention: "),
        (core("small", sram=memory() | {"upkeep": "3 mA"}), "unknown unit"),
        (core("small", sram=memory() | {"upkep": "3 mW"}), "did you mean 'upkeep'"),
    ],
)
def test_what_is_wrong_with_it_is_told(entered: None, data: dict[str, Any], told: str) -> None:
    """A wrong value of a declared key is refused with the message of its quantity."""
    with pytest.raises(InputError, match=told):
        read(data)


def test_power_is_energy_of_a_cycle(entered: None) -> None:
    """Each power has a rate of its own, and the static power is the sum of all powers."""
    data = refreshed(clock_frequency="200 MHz")
    data["operational_array"]["unit_leakage"] = "2 nW"
    found = read(data)
    units = found.operational_array.unit_count
    assert rate_pj_a_cycle(found, "upkeep") == pytest.approx(5 * 3e-3)
    assert rate_pj_a_cycle(found, "leakage") == pytest.approx(5 * units * 2e-6)
    assert static_power_mw(found) == pytest.approx(3e-3 + units * 2e-6)
    assert static_power_mw(without_static_power(found)) == 0
    assert attributes("memory") == (*(one for one in BUILT_IN if one.of == "memory"), REFRESH)


def test_one_core(entered: None, tmp_path: Path) -> None:
    """Records, checks, summary and tables of one core have the new energy term after the others."""
    file = yaml.safe_load(EXAMPLE.read_text()) | {"clock_frequency": "500 MHz"}
    for name in ("sram_2M", "dram"):
        file["memories"][next(key for key in file["memories"] if key.startswith(name[:4]))]["upkeep"] = "10 mW"
    mapped_on = read(file)
    workload, given = network([gemm(C=64, D=8, K=64)]), Mapping((MappingConstraints("default"),))
    mapped = map_workload(workload, mapped_on, given, SearchOptions())
    (record,) = mapped.records
    assert list(record.energy_terms_pj)[-1] == "upkeep"
    assert record.energy_terms_pj["upkeep"] == pytest.approx(
        rate_pj_a_cycle(mapped_on, "upkeep") * record.latency_cycles
    )
    assert failure_message(check_run(mapped.records, mapped.summary, mapped_on)) == ""
    assert layer_table(mapped.records, mapped.summary)["upkeep_energy_pj"][0] == record.energy_terms_pj["upkeep"]
    assert run_row("run", mapped.summary)["static_power_w"] == pytest.approx(static_power_mw(mapped_on) / 1e3)


def test_several_cores(entered: None, tmp_path: Path) -> None:
    """The schedule has the energy term for all cores over the whole run; cost tables do not have it."""
    hardware = write_accelerator(tmp_path / "hw", DUO)
    for path in tmp_path.glob("hw/**/*.yaml"):
        data = yaml.safe_load(path.read_text())
        if "memories" in data:
            for own in data["memories"].values():
                own["upkeep"] = "1 mW"
            path.write_text(yaml.safe_dump(data | {"clock_frequency": "100 MHz"}, sort_keys=False))
    folder = tmp_path / "run"
    summary = run(folder, hardware, branches(tmp_path), write_mapping(tmp_path), LINES)
    power_mw = sum(static_power_mw(one, "upkeep") for one in parse_accelerator(hardware).cores)
    assert power_mw > 0
    expected = power_mw * 10.0 * summary["latency_cycles"]
    assert summary["energy"]["terms_pj"] == {"upkeep": pytest.approx(expected)}
    assert "on_core_terms_pj" not in summary["energy"]
    done(["check", str(folder)])
    assert "upkeep" in summary_text(summary)
