"""Bandwidths that reverse an order: each is confirmed by `evaluate` with the changed hardware and equal mappings."""

import copy
import random
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import pytest
import tilewright
from tilewright.cli.explained_run import run_with_inputs
from tilewright.cli.run_ledgers import ledger_at
from tilewright.cli.runs import read_records
from tilewright.designs.bandwidth_numbers import (
    BandwidthNumber,
    _first_turned,
    _grids,
    bandwidth_numbers,
    with_bandwidth,
)
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.held_mappings import Outcome
from tilewright.hardware.core import single_core
from tilewright.pipeline.sources import parse_accelerator
from tilewright.results.order_turn import change_text, order_turns, turn_lines, turn_object
from tilewright.results.recorded_mappings import mapping_entries
from tilewright.results.run_ledger import RunLedger

from tests.unit.results.test_order_turn import MAPPING, WORKLOAD, hardware

MEASURES = ("latency", "EDP")


class Ran(NamedTuple):
    """A run with its hardware file and its mappings as a mapping file."""

    document: dict[str, Any]
    ledger: RunLedger
    run: ExplainedRun
    entries: list[dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Run four cores with a clock; the last core is the first core with another SRAM, so both have the same DRAM."""
    draw, folder = random.Random(7), tmp_path_factory.mktemp("bandwidths")
    documents = [hardware(f"core{number}", draw, clock=True) for number in range(3)]
    documents.append(copy.deepcopy(documents[0]) | {"name": "core3"})
    documents[3]["memories"]["sram"]["ports"][0] |= {"bandwidth_min": 32, "bandwidth_max": 32}
    found = []
    for document in documents:
        output = folder / document["name"]
        options = {"temporal_mapping_search_engine": "loma", "lpf_limit": 2}
        tilewright.map(WORKLOAD, copy.deepcopy(document), MAPPING, output=output, **options)
        ledger = ledger_at(str(output), "")
        entries = mapping_entries(read_records(output))
        found.append(Ran(document, ledger, run_with_inputs(str(output), ledger.run), entries))
    return found


def evaluated(ran: Ran, factor: float, is_changed: bool) -> dict[str, float]:
    """Return latency in seconds and EDP of the mappings with a scaled DRAM bandwidth, by `evaluate`."""
    document = copy.deepcopy(ran.document)
    dram = document["memories"]["dram"]
    before = dram["ports"][0]["bandwidth_max"]
    if is_changed:
        bits = int(before * factor * (1 + 1e-12))
        dram["ports"][0] |= {"bandwidth_min": bits, "bandwidth_max": bits}
        dram |= {key: dram[key] * bits / before for key in ("r_cost", "w_cost") if key in dram}
    records = tilewright.evaluate(hardware=document, workload=WORKLOAD, mapping=ran.entries, model="corrected")
    energy, cycles = (sum(getattr(one, name) for one in records) for name in ("energy_pj", "latency_cycles"))  # type: ignore[union-attr]
    seconds = cycles / (float(document["clock_frequency"].split()[0]) * 1e6)
    return {"latency": seconds, "EDP": energy * seconds}


def gap(pair: tuple[Ran, Ran], number: BandwidthNumber, measure: str, first: int, factor: float) -> float:
    """Return the difference of the second run to the first as a share, by the changed hardware files."""
    values = [evaluated(ran, factor, bool(own))[measure] for ran, own in zip(pair, number.parts, strict=True)]
    return values[1 - first] / values[first] - 1


def test_named_bandwidths_turn_the_order_and_nine_tenths_of_the_change_do_not(runs: list[Ran]) -> None:
    """A named bandwidth reverses the order, and nine tenths of its change reverse nothing.
    Other bandwidths reverse nothing at either end of their range.
    """
    turned, shared = 0, 0
    for pair in combinations(runs, 2):
        numbers = bandwidth_numbers((pair[0].run, pair[1].run))
        assert len(numbers) == (1 if all(numbers[0].parts) else 2)
        for number in numbers:
            shared += all(number.parts)
            for measure in MEASURES:
                now = [evaluated(ran, 1, is_changed=False)[measure] for ran in pair]
                first = int(now[1] < now[0])
                if now[0] == now[1]:
                    continue
                assert gap(pair, number, measure, first, 1) == pytest.approx(number.share(measure, 1, first), abs=1e-9)
                factor = number.turning_factor(measure, first)
                if factor is None:
                    for end in (number.low, number.high):
                        assert gap(pair, number, measure, first, end) >= 0
                    continue
                turned += 1
                assert number.low <= factor <= number.high
                assert gap(pair, number, measure, first, factor) < 0
                assert gap(pair, number, measure, first, 1 + (factor - 1) * 0.9) >= 0
    assert turned >= 3
    assert shared >= 1


def test_words_that_fit_only_in_the_middle_turn_an_edp(runs: list[Ran]) -> None:
    """A bandwidth that reverses the order by EDP is found, although only words of 24 to 40 bits need less energy."""
    number = next(one for one in bandwidth_numbers((runs[0].run, runs[1].run)) if one.parts[0])
    width = number.width_bits

    def outcomes(factor: float) -> tuple[Outcome, Outcome]:
        bits = round(factor * width)
        energy_pj = 50.0 if 3 / 8 * width <= bits <= 5 / 8 * width else 100.0
        return Outcome(energy_pj, 100.0 + width / bits), Outcome(90.0, 101.0)

    changed = replace(number, outcomes=outcomes, seconds_a_cycle=(1.0, 1.0))
    assert changed.turning_factor("latency", 1) == (width + 1) / width
    assert changed.turning_factor("EDP", 1) == 5 * width // 8 / width
    assert changed.difference("EDP", 1.0, 1) > 0
    assert changed.difference("EDP", number.low, 1) > 0


def test_sentences_name_the_bandwidth_beside_the_smallest_change(runs: list[Ran]) -> None:
    """Sentences name the bandwidth in whole bits per cycle, or say that bandwidths are not considered."""
    named = 0
    for pair in pairwise(runs):
        numbers = bandwidth_numbers((pair[0].run, pair[1].run))
        for one in order_turns(pair[0].ledger, pair[1].ledger, numbers):
            line = turn_lines((one,), by_time=True)[0]
            assert not one.others
            assert one.has_bandwidths == (one.measure != "energy")
            assert ("none of the tried bandwidths of off-chip memories" in line) == (
                one.has_bandwidths and one.bandwidth is None
            )
            if one.bandwidth is not None:
                named += 1
                number, factor = one.bandwidth
                assert isinstance(number, BandwidthNumber)
                bits = round(number.width_bits * factor)
                assert f"would also be first with {change_text(one.bandwidth)}" in line
                assert f" -> {bits:,} b/cycle)" in line
                assert turn_object(one)["bandwidth_change"]["to"] == [pytest.approx(bits)]  # type: ignore[index, call-overload]
        told = {one.measure: one.others for one in order_turns(pair[0].ledger, pair[1].ledger)}
        assert all("bandwidths are not considered" in text for measure, text in told.items() if measure != "energy")
        assert not told.get("energy")
    assert named >= 1


def test_energy_per_bit_is_held() -> None:
    """A word of 1.5 times the bits takes 1.5 times the energy; fractions of a bit are dropped."""
    core = single_core(parse_accelerator(hardware("core", random.Random(4), clock=True)))
    before, width = core.memories[-1], core.memories[-1].ports[0].bandwidth_max_bits
    after = with_bandwidth(core, ["dram"], 1.5).memories[-1]
    assert after.ports[0].bandwidth_max_bits == after.ports[0].bandwidth_min_bits == width * 3 // 2
    assert after.read_energy_pj == pytest.approx(before.read_energy_pj * 1.5)
    assert after.write_energy_pj == pytest.approx(before.write_energy_pj * 1.5)
    narrow = with_bandwidth(core, ["dram"], 1.99 / width).memories[-1]
    assert narrow.ports[0].bandwidth_max_bits == 1
    fine = replace(core, memories=(replace(before, ports=(replace(before.ports[0], bandwidth_min_bits=8),)),))
    assert with_bandwidth(fine, ["dram"], 2).memories[0].ports[0].bandwidth_min_bits == 8
    assert with_bandwidth(fine, ["dram"], 1) == fine


@pytest.mark.parametrize("width", [1, 7, 64, 4096])
def test_bandwidths_to_try(width: int) -> None:
    """Tried bandwidths cover a factor of ten both ways, nearest first, and the first reversal is found exactly."""
    for is_fine in (False, True):
        above, below = _grids(width, is_fine)
        assert above == sorted(set(above))
        assert below == sorted(set(below), reverse=True)
        assert above[-1] == 10 * width
        assert width not in above + below
        assert not below or below[-1] == -(-width // 10)
    for limit in range(width + 1, 10 * width, max(1, width // 3)):
        assert _first_turned(width, 10 * width, lambda bits, limit=limit: bits >= limit) == limit  # type: ignore[misc]
