"""Static power as an energy term: power times time, on one core and on several, in searches and results."""

import math
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.cost.rates import rates
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.static_power import static_power_mw
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.pipeline.stages.run import map_layer, map_workload
from tilewright.results.checks import check_run, failure_message
from tilewright.results.run_columns import run_row
from tilewright.results.run_text import power_lines
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import LINKS, constraints, gemm, network, register_core
from tests.unit.multi_core.runs import DUO, branches, run, write_accelerator, write_mapping

EXAMPLE = Path(__file__).parents[3] / "config/hardware/zigzag/tpu_like.yaml"
LAYER = gemm(C=4, D=6, K=4)
LINES = ("--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]')


def leaky(core: Core, power_mw: float = 0.2, clock_mhz: float = 100.0) -> Core:
    """Return the core with a static power for each memory, and a tenth of it for each unit."""
    memories = tuple(replace(memory, figures=(("leakage_mw", power_mw),)) for memory in core.memories)
    array = replace(core.operational_array, figures=(("unit_leakage_mw", power_mw / 10),))
    return replace(core, memories=memories, operational_array=array, clock_frequency_mhz=clock_mhz)


def test_one_core() -> None:
    """The energy term is power times time, the total includes it, and rates follow from both."""
    core = leaky(register_core())
    mapped = map_workload(network([LAYER]), core, Mapping((MappingConstraints("default"),)), SearchOptions())
    (record,) = mapped.records
    assert list(record.energy_terms_pj) == ["mac", "memory", "leakage"]
    assert record.energy_terms_pj["leakage"] == pytest.approx(static_power_mw(core) * 10.0 * record.latency_cycles)
    assert record.energy_pj == pytest.approx(sum(record.energy_terms_pj.values()), rel=1e-15)
    assert failure_message(check_run(mapped.records, mapped.summary, core)) == ""
    row = run_row("run", mapped.summary)
    assert row["latency_s"] == pytest.approx(record.latency_cycles * 10e-9)
    assert row["power_w"] == pytest.approx(record.energy_pj * 1e-12 / row["latency_s"])
    assert row["static_power_w"] == pytest.approx(static_power_mw(core) / 1e3)
    assert row["tops"] == pytest.approx(2 * LAYER.mac_count / row["latency_s"] / 1e12)
    assert row["tops_per_w"] == pytest.approx(row["tops"] / row["power_w"])
    assert "at 100 MHz" in next(iter(power_lines(mapped.summary)))


POWERS = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
UNITS_OF_CLOCK = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}


@given(
    powers_uw=st.one_of(st.just([0.0] * 5), st.lists(POWERS, min_size=5, max_size=5)),
    clock_hz=st.floats(1e6, 5e9),
    unit=st.sampled_from(sorted(UNITS_OF_CLOCK)),
    data=st.data(),
)
@settings(max_examples=30, deadline=None)
def test_a_file_by_hand(powers_uw: list[float], clock_hz: float, unit: str, data: st.DataObject) -> None:
    """Static energy of a file is the power of all instances and units times cycles over the clock frequency.
    The other energies stay the same; without any power nothing changes.
    """
    served = [data.draw(st.lists(st.sampled_from(["D1", "D2"]), unique=True)) for _ in range(3)] + [["D1", "D2"]]
    file = yaml.safe_load(EXAMPLE.read_text())
    sides = dict(zip(file["operational_array"]["dimensions"], file["operational_array"]["sizes"], strict=True))
    watts = 0.0
    file["clock_frequency"] = f"{clock_hz / UNITS_OF_CLOCK[unit]!r} {unit}"
    for memory, of_memory, microwatts in zip(file["memories"].values(), served, powers_uw, strict=False):
        memory["served_dimensions"] = of_memory
        memory["size"] *= 4096  # room for the lanes that it serves
        memory["leakage"] = f"{microwatts!r} uW"
        watts += microwatts * 1e-6 * math.prod(size for name, size in sides.items() if name not in of_memory)
    file["operational_array"]["unit_leakage"] = f"{1e3 * powers_uw[-1]!r} nW"
    watts += powers_uw[-1] * 1e-6 * math.prod(sides.values())
    bare = deepcopy(file)
    for memory in bare["memories"].values():
        del memory["leakage"]
    del bare["operational_array"]["unit_leakage"], bare["clock_frequency"]
    layer, lanes = gemm(C=40, D=6, K=36), (("D1", (("K", 32),)), ("D2", (("C", 32),)))
    order = [("C", 2), ("D", 6), ("K", 2)]
    model = data.draw(st.sampled_from(["zigzag-3.9.1", "corrected"]))
    found = []
    for described in (file, bare):
        try:
            core = parse_accelerator(described).cores[0]
            found.append(evaluate(layer, core, LINKS, lanes, order, SearchOptions(model=model)))
        except MappingError:
            found.append(None)
    leaking, plain = found
    assert (leaking is None) == (plain is None)
    if leaking is None or plain is None:
        return
    event("fits")
    assert leaking.latency_cycles == plain.latency_cycles
    expected = watts * leaking.latency_cycles / clock_hz * 1e12
    assert leaking.energy_pj == pytest.approx(plain.energy_pj + expected, rel=1e-12)
    if not watts:
        assert leaking.energy_pj == plain.energy_pj
        assert leaking.energy_terms_pj == plain.energy_terms_pj


def test_without_a_clock_nothing_is_added() -> None:
    """A run without a clock has no static energy, and one printed line says so."""
    mapped = map_workload(network([LAYER]), register_core(), Mapping((MappingConstraints("default"),)), SearchOptions())
    assert not {"latency_s", "power_w", "leakage_energy_pj"} & mapped.summary.keys()
    (line,) = power_lines(mapped.summary)
    assert "static power is left out" in line


def test_a_memory_that_a_layer_does_not_see_goes_on_leaking() -> None:
    """A memory leaks during a layer that does not use it."""
    core = leaky(register_core())
    layers = [gemm("first", C=4, D=6, K=4), gemm("second", C=4, D=6, K=4)]
    mapping = Mapping((MappingConstraints("default"),))
    for kept in (False, True):
        found = map_workload(network(layers), core, mapping, SearchOptions(exploit_data_locality=kept)).summary
        assert found["leakage_energy_pj"] == pytest.approx(static_power_mw(core) * 10.0 * found["latency_cycles"])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    ("size", "power_mw"),
    [({"C": 4, "D": 6, "K": 4}, 0.001), ({"C": 8, "D": 4, "K": 9}, 0.2), ({"C": 12, "D": 2, "K": 6}, 50.0)],
)
def test_the_certified_optimum_is_the_best_of_all_orders(objective: str, size: dict[str, int], power_mw: float) -> None:
    """The certified optimum is the best of all orders for a tiny, a medium and a dominant static power."""
    layer, core = gemm(**size), leaky(register_core(buffer_bits=300), power_mw)
    options = SearchOptions(objective=objective)

    def value(record: LayerRecord) -> float:
        return OBJECTIVES[objective].value(record.energy_pj, record.latency_cycles)

    tried = [map_layer(layer, core, constraints(), replace(options, lpf_limit=limit)) for limit in (None, 2, 3, 4, 5)]
    exact = map_layer(layer, core, constraints(), replace(options, temporal_mapping_search_engine="exact"))
    assert exact.search["proven"]
    assert value(exact) == pytest.approx(min(map(value, tried)), rel=1e-12)


def test_more_static_power_never_costs_less() -> None:
    """The least energy rises with the static power; at a high power its mapping has the least latency."""
    options = SearchOptions(objective="energy", temporal_mapping_search_engine="exact")
    layer, core = gemm(C=8, D=4, K=9), register_core(buffer_bits=300)
    found = [map_layer(layer, leaky(core, power), constraints(), options) for power in (1e-6, 0.01, 0.1, 1.0, 1e3)]
    assert all(one.energy_pj < other.energy_pj for one, other in pairwise(found))
    assert all(one.latency_cycles >= other.latency_cycles for one, other in pairwise(found))
    fastest = map_layer(layer, core, constraints(), replace(options, objective="latency"))
    assert found[-1].latency_cycles == fastest.latency_cycles


@settings(max_examples=50)
@given(st.floats(0.01, 100), st.integers(1, 10**12), st.floats(1, 1e15), st.integers(1, 10**15), st.floats(0.01, 1e3))
def test_rates_agree_with_each_other(period_ns: float, cycles: int, energy_pj: float, macs: int, area: float) -> None:
    """Power times time is energy, and operations a joule are operations a second over the power."""
    found = rates(period_ns, cycles, energy_pj, macs, 0.0, area)
    assert found["power_w"] * found["latency_s"] == pytest.approx(energy_pj * 1e-12)
    assert found["tops_per_w"] * found["power_w"] == pytest.approx(found["tops"])
    assert found["tops_per_mm2"] * area == pytest.approx(found["tops"])
    assert rates(None, cycles, energy_pj, macs, 0.0, area) == {}


def test_several_cores(tmp_path: Path) -> None:
    """All cores leak from start to end of a run, even while they wait; cost tables have no leakage."""
    given = branches(tmp_path), write_mapping(tmp_path), LINES
    plain = run(tmp_path / "plain", write_accelerator(tmp_path / "a", DUO), *given)
    leaking = deepcopy(DUO)
    for core in leaking["cores"].values():
        core["clock_frequency"] = "100 MHz"
        core["memories"]["memory"]["leakage"] = "0.5 mW"
    summary = run(tmp_path / "leaky", write_accelerator(tmp_path / "b", leaking), *given)
    leaked = 2 * 0.5 * 10.0 * summary["latency_cycles"]
    assert summary["energy"]["terms_pj"] == {"leakage": pytest.approx(leaked)}
    assert summary["static_power_w"] == pytest.approx(1e-3)
    assert summary["power_w"] * summary["latency_s"] == pytest.approx(summary["energy_pj"] * 1e-12)
    (line,) = (line for line in power_lines(summary) if line.startswith("static power"))
    share = f"drawn all the time, {leaked / summary['energy_pj']:.1%} of the energy"
    parts = summary["static_power_parts"]
    counted, missing = (", ".join(parts[kind]) for kind in ("counted", "not_given"))
    assert line == f"static power: 0.001 W (of {counted}; not given for {missing}), {share}"
    assert parts["zero"] == []
    tables = [(tmp_path / one / "cost" / "left.jsonl").read_text().splitlines()[1:-1] for one in ("plain", "leaky")]
    assert tables[0] == tables[1]
    assert "leakage" not in plain["energy"].get("terms_pj", {})
