"""New searches that reverse an order: each is confirmed by `map` with the changed hardware file."""

import copy
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.cli.explained_run import run_with_inputs
from tilewright.cli.run_ledgers import ledger_at
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.order_search import changed_core, searched_turns
from tilewright.hardware.core import single_core
from tilewright.pipeline.sources import parse_accelerator
from tilewright.results.order_turn import order_turns, uncertain_numbers
from tilewright.results.run_ledger import RunLedger
from tilewright.results.searched_turn import SearchedTurn

from tests.unit.results.test_order_turn import MAPPING, WORKLOAD, hardware, with_change

OPTIONS: dict[str, Any] = {"temporal_mapping_search_engine": "loma", "lpf_limit": 3}
Pair = tuple[tuple[dict[str, Any], RunLedger, ExplainedRun], tuple[dict[str, Any], RunLedger, ExplainedRun]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[dict[str, Any], RunLedger, ExplainedRun]]:
    """Run four cores with a clock; return hardware file, ledger, and run with its inputs."""
    draw, folder = random.Random(3), tmp_path_factory.mktemp("searched")
    found = []
    for number in range(4):
        document = hardware(f"core{number}", draw, clock=True)
        output = folder / f"core{number}"
        tilewright.map(WORKLOAD, copy.deepcopy(document), MAPPING, output=output, **OPTIONS)
        ledger = ledger_at(str(output), "")
        found.append((document, ledger, run_with_inputs(str(output), ledger.run)))
    return found


def mapped_again(pair: Pair, one: SearchedTurn, factor: float) -> float:
    """Return the difference of the second run to the first as a share, by `map` with the changed hardware files."""
    values = []
    for place, (document, _, _) in enumerate(pair):
        changed = with_change(document, place, one.number.name, factor)
        summary = tilewright.map(WORKLOAD, changed, MAPPING, **OPTIONS).summary
        seconds = summary["latency_cycles"] / summary["clock_frequency_mhz"]
        energy = summary["energy_pj"]
        values.append({"energy": energy, "latency": seconds, "EDP": energy * seconds}[one.measure])
    return values[1 - one.first] / values[one.first] - 1


def test_mapping_again_turns_the_order_and_with_nine_tenths_of_the_change_it_does_not(
    runs: list[tuple[dict[str, Any], RunLedger, ExplainedRun]],
) -> None:
    """A new mapping with the named change reverses the order, and nine tenths of the change do not."""
    kinds, turned = set(), 0
    for pair in pairwise(runs):
        ledgers, again = (pair[0][1], pair[1][1]), (pair[0][2], pair[1][2])
        turns = order_turns(*ledgers)
        for one in searched_turns(turns, again):
            kinds.add(one.number.kind)
            assert mapped_again(pair, one, one.factor) == pytest.approx(one.difference, abs=1e-9)
            if one.is_turned:
                turned += 1
                assert one.difference < 0
                assert mapped_again(pair, one, 1 + (one.factor - 1) * 0.9) > 0
            else:
                assert one.factor in (one.number.low, one.number.high)
    assert turned >= 4
    assert len(kinds) >= 2


def test_changed_cores_are_those_of_the_changed_files(
    runs: list[tuple[dict[str, Any], RunLedger, ExplainedRun]],
) -> None:
    """The changed core of a number equals that of the changed file; a run without the number keeps its core."""
    for pair in pairwise(runs):
        for number in uncertain_numbers(pair[0][1], pair[1][1]):
            for place, (document, _, run) in enumerate(pair):
                found = changed_core(run, number, place, 1.3)
                file = single_core(parse_accelerator(with_change(document, place, number.name, 1.3)))
                assert found.clock_frequency_mhz == file.clock_frequency_mhz
                assert found.operational_array == file.operational_array
                for one, other in zip(found.memories, file.memories, strict=True):
                    assert one.read_energy_pj == pytest.approx(other.read_energy_pj, rel=1e-12)
                    assert one.write_energy_pj == pytest.approx(other.write_energy_pj, rel=1e-12)
                if not number.parts[place]:
                    assert found == run.core


def test_bandwidths_per_second_follow_a_changed_clock(tmp_path: Path) -> None:
    """A DRAM with a bandwidth per second gives twice the bits per cycle at half the clock."""
    document = hardware("core", random.Random(1), clock=True)
    document |= {"clock_frequency": "1000 MHz"}
    dram = document["memories"]["dram"]
    dram["ports"][0] |= {"bandwidth_min": 8, "bandwidth_max": "8 GB/s"}
    dram.pop("cost", None)
    dram |= {"r_cost": "10 pJ/b", "w_cost": "10 pJ/b"}
    for name in ("a", "b"):
        tilewright.map(WORKLOAD, copy.deepcopy(document), MAPPING, output=tmp_path / name, **OPTIONS)
    ledgers = [ledger_at(str(tmp_path / name), "") for name in ("a", "b")]
    run = run_with_inputs(str(tmp_path / "a"), ledgers[0].run)
    clock = next(one for one in uncertain_numbers(*ledgers) if one.name == "clock of A")
    widths = [changed_core(run, clock, 0, factor).memories[-1].ports[0].bandwidth_max_bits for factor in (1, 0.5)]
    assert widths == [64, 128]


def test_runs_that_cannot_be_searched_again(tmp_path: Path) -> None:
    """A folder without a summary, and a run whose mappings came from a front, are refused."""
    document = hardware("core", random.Random(2), clock=True)
    tilewright.map(WORKLOAD, document, MAPPING, output=tmp_path / "chosen", energy_slack="5%")
    run = ledger_at(str(tmp_path / "chosen"), "").run
    with pytest.raises(InputError, match="chosen from the Pareto front of the network"):
        run_with_inputs(str(tmp_path / "chosen"), run)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="not the folder of a run"):
        run_with_inputs(str(tmp_path / "none"), run)
