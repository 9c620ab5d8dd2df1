"""Sizes of memories that reverse an order: each is applied to the hardware file and computed again."""

import copy
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import MappingError
from tilewright.cli.explained_run import run_with_inputs
from tilewright.cli.main import main
from tilewright.cli.run_ledgers import ledger_at
from tilewright.cli.runs import read_records, read_summary
from tilewright.cost.record import LayerRecord
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.size_search import size_orders, sized_memories
from tilewright.hardware.core import single_core
from tilewright.pipeline.sources import parse_accelerator
from tilewright.results.order_turn import order_turns
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import RunLedger
from tilewright.results.size_turn import LARGEST_STEP, SizedMemory, SizeOrder

from tests.unit.results.test_order_turn import MAPPING, WORKLOAD, hardware, recomputed

pytestmark = pytest.mark.usefixtures("unpainted")

OPTIONS: dict[str, Any] = {"temporal_mapping_search_engine": "loma", "lpf_limit": 3}
COUNT = 8


class Ran:
    """A run with its hardware file, for a comparison by hand."""

    def __init__(self, document: dict[str, Any], folder: Path) -> None:
        self.document, self.folder = document, folder
        self.ledger: RunLedger = ledger_at(str(folder), "")
        self.inputs: ExplainedRun = run_with_inputs(str(folder), self.ledger.run)
        placed = layers_in_order(read_records(folder), read_summary(folder))
        self.records: list[LayerRecord] = [one.record for one in placed]

    def with_size(self, memory: SizedMemory, bits: int) -> dict[str, Any]:
        """Return the hardware file with another size of a memory."""
        made = copy.deepcopy(self.document)
        made["memories"][memory.name]["size"] = bits
        return made


def mapped(document: dict[str, Any], folder: Path) -> Ran:
    """Run a core, beside the files of its inputs."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    tilewright.map(WORKLOAD, copy.deepcopy(document), MAPPING, output=folder, **OPTIONS)
    return Ran(document, folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Run cores with cheap DRAMs and SRAMs that mostly have costs of the library, so that the SRAM matters."""
    draw, folder = random.Random(5), tmp_path_factory.mktemp("sizes")
    found = []
    for number in range(COUNT):
        document = hardware(f"core{number}", draw, clock=True) | {"clock_frequency": "500 MHz"}
        if number % 4:
            sram = document["memories"]["sram"]
            sram["cost"] = {"from": "sram", "node_nm": draw.choice([22, 45]), "cells": "lstp"}
            sram["size"] = draw.choice(["8 KiB", "32 KiB", "64 KiB"])
            sram.pop("r_cost", None)
            sram.pop("w_cost", None)
        found.append(mapped(document, folder / f"core{number}"))
    return found


def orders_of(pair: tuple[Ran, Ran], is_searched: bool) -> tuple[SizeOrder, ...]:
    """Return the orders of two runs under other sizes."""
    inputs = pair[0].inputs, pair[1].inputs
    turns = order_turns(pair[0].ledger, pair[1].ledger)
    return size_orders(turns, inputs, sized_memories(inputs), is_searched)


def value(measure: str, energy: float, seconds: float) -> float:
    """Return the value of a measure."""
    return {"energy": energy, "latency": seconds, "EDP": energy * seconds}[measure]


def held_difference(pair: tuple[Ran, Ran], one: SizeOrder, memory: SizedMemory, bits: int) -> float:
    """Return the relative difference of two runs after their recorded mappings are costed on the changed file."""
    values = []
    for place, run in enumerate(pair):
        document = run.with_size(memory, bits) if place == memory.place else run.document
        again = recomputed(run.records, single_core(parse_accelerator(document)), in_time=True)
        values.append(value(one.measure, again["energy"], again["latency"]))
    return values[1 - one.first] / values[one.first] - 1


def searched_difference(pair: tuple[Ran, Ran], one: SizeOrder, memory: SizedMemory, bits: int) -> float:
    """Return the difference of the second run to the first as a share, by `map` with the changed file."""
    values = []
    for place, run in enumerate(pair):
        document = run.with_size(memory, bits) if place == memory.place else copy.deepcopy(run.document)
        summary = tilewright.map(WORKLOAD, document, MAPPING, **OPTIONS).summary
        values.append(value(one.measure, summary["energy_pj"], summary["latency_cycles"] / 5e8))
    return values[1 - one.first] / values[one.first] - 1


@pytest.mark.slow
def test_held_mappings_turn_at_the_size_and_not_at_nine_tenths_of_the_change(runs: list[Ran]) -> None:
    """A named memory size reverses the order of two runs; nine tenths of the change of size do not reverse it."""
    turned, unturned = 0, 0
    for pair in itertools.combinations(runs, 2):
        for one in orders_of(pair, is_searched=False):
            if one.turn is None:
                for memory, bits, _ in [one.nearest] if one.nearest else []:
                    unturned += 1
                    assert held_difference(pair, one, memory, bits) >= 0
                continue
            turned += 1
            memory, bits, share, before, _ = one.turn
            assert memory.has_library_costs
            assert held_difference(pair, one, memory, bits) == pytest.approx(share, rel=1e-6, abs=1e-9)
            assert held_difference(pair, one, memory, bits) < 0
            nine_tenths = memory.resized(1 + 0.9 * (bits / memory.size_bits - 1))
            assert held_difference(pair, one, memory, nine_tenths) >= 0
            assert abs(before - memory.size_bits) >= 0.9 * abs(bits - memory.size_bits) - memory.step_bits
    assert turned >= 10
    assert unturned >= 10


@pytest.mark.slow
def test_new_searches_turn_at_the_size_and_not_at_the_size_before(runs: list[Ran]) -> None:
    """New runs of `map` confirm each named size and the size before it, and find no mapping for a misfit."""
    turned, misfits, by_hand = 0, 0, 0
    for pair in [*itertools.pairwise(runs)][:4]:
        for one in orders_of(pair, is_searched=True):
            for memory, bits, reason in one.misfits[:1]:
                misfits += 1
                assert reason == "no mapping fits"
                with pytest.raises(MappingError):
                    searched_difference(pair, one, memory, bits)
            if one.turn is None:
                continue
            turned += 1
            memory, bits, share, before, last = one.turn
            by_hand += not memory.has_library_costs
            assert searched_difference(pair, one, memory, bits) == pytest.approx(share, abs=1e-12)
            assert share < 0
            assert abs(before - memory.size_bits) >= 0.9 * abs(bits - memory.size_bits) - memory.step_bits
            if last.difference is not None:
                again = searched_difference(pair, one, memory, before)
                assert again == pytest.approx(last.difference, abs=1e-12)
                assert again >= 0
    assert turned >= 2
    assert misfits >= 1


def test_sizes_are_at_most_eight_times_larger_or_smaller(runs: list[Ran]) -> None:
    """Sizes are at most eight times larger or smaller."""
    for pair in itertools.combinations(runs[:5], 2):
        for one in orders_of(pair, is_searched=False):
            for memory, bits in [one.turn[:2]] if one.turn else [one.nearest[:2]] if one.nearest else []:
                assert memory.resized(0.5**LARGEST_STEP) <= bits <= memory.resized(2.0**LARGEST_STEP)


def test_the_command_says_what_is_covered(runs: list[Ran], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command names the memories with hand-written costs; `comparison.json` has the numbers of its sentences."""
    folders = []
    for number in (0, 1):
        document = copy.deepcopy(runs[number].document)
        if number == 0:
            document["memories"]["sram"] |= {"r_cost": 9.0, "w_cost": 9.0}
            document["memories"]["sram"].pop("cost", None)
        for name, data in (("net", WORKLOAD), (f"core{number}", document), ("map", MAPPING)):
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
        files = {"hardware": tmp_path / f"core{number}.yaml", "mapping": tmp_path / "map.yaml"}
        folders.append(str(tmp_path / f"run{number}"))
        tilewright.map(**files, workload=tmp_path / "net.yaml", output=folders[-1], **OPTIONS)
    assert main(["compare", *folders, "--sizes", "-o", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "sizes: other sizes of register in A, sram in A, register in B change no result" in text
    assert "with the same mappings; the costs follow the size" in text
    assert "searched again" not in text
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())["size_turns"]
    assert found
    assert all(not one["is_searched"] and (one["turn"] or {"memory": "sram"})["memory"] == "sram" for one in found)
    assert main(["compare", *folders, "--sizes", "--search-again"]) == 0
    text = capsys.readouterr().out
    assert "sizes, searched again, energy: " in text
    assert "the mappings of the changed run were searched for each tried size; the costs of register in A, sram" in text
    assert main(["compare", folders[0], folders[0], "--sizes"]) == 0
    assert "sizes, energy" not in capsys.readouterr().out


def test_runs_that_cannot_be_evaluated_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that cannot be evaluated are refused with the name of the option."""
    draw = random.Random(2)
    for number in (0, 1):
        made = hardware(f"core{number}", draw, clock=True)
        tilewright.map(WORKLOAD, made, MAPPING, output=tmp_path / f"core{number}", **OPTIONS)
        (tmp_path / f"core{number}" / "accelerator.json").unlink()
    assert main(["compare", str(tmp_path / "core0"), str(tmp_path / "core1"), "--sizes"]) == 2
    assert "hardware: the hardware of this run was not found" in capsys.readouterr().err
