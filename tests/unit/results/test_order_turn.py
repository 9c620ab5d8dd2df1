"""Changes that reverse the order of two runs: each named change is made in the hardware file, and the run
recomputed.
"""

import copy
import random
import re
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import pytest
import tilewright
from tilewright.cli.run_ledgers import ledger_at
from tilewright.cli.runs import read_records, read_summary
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import static_power_mw
from tilewright.pipeline.sources import parse_accelerator
from tilewright.results.order_turn import (
    LARGEST_FACTOR,
    MEASURES,
    NAMES,
    TERM_ENERGY,
    OrderTurn,
    Turn,
    change_text,
    order_turns,
    outward,
    turn_lines,
    turn_object,
    uncertain_numbers,
)
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import ENERGY, LedgerPlace, RunLedger
from tilewright.results.searched_turn import searchable
from tilewright.search.cost_ranges import CostPart

PAIRS = 100
WORKLOAD = [
    {
        "id": number,
        "operator_type": "Gemm",
        "equation": "O[b][k] += I[b][c] * W[c][k]",
        "loop_dims": ["B", "C", "K"],
        "loop_sizes": sizes,
        "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
        "operand_source": {"W": number, "I": number},
    }
    for number, sizes in enumerate(([4, 32, 64], [8, 64, 32]))
]
MAPPING = [
    {
        "name": "default",
        "spatial_mapping": {"D1": ["K, 4"], "D2": ["C, 4"]},
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }
]


def memory(operands: list[str], size: str, bits: int, served: list[str], costs: dict[str, Any]) -> dict[str, Any]:
    """A memory with one port."""
    ways = {"I1": ("tl", "fh"), "I2": ("tl", "fh"), "O": ("tl", "fh", "fl", "th")}
    allocation = [f"{operand}, {way}" for operand in operands for way in ways[operand]]
    port = {"name": "rw", "type": "read_write", "bandwidth_min": bits, "bandwidth_max": bits, "allocation": allocation}
    return {"operands": operands, "size": size, "served_dimensions": served, "ports": [port], **costs}


def hardware(name: str, draw: random.Random, clock: bool) -> dict[str, Any]:
    """A core with random costs, some from the library and some given as numbers."""
    sram_bits, dram_bits = draw.choice([64, 128]), draw.choice([32, 64])
    numbers = {"r_cost": draw.uniform(2, 30), "w_cost": draw.uniform(2, 30)}
    sram = draw.choice([{"cost": {"from": "sram", "node_nm": draw.choice([22, 45]), "cells": "lstp"}}, numbers])
    part = {"cost": {"from": "dram", "type": draw.choice(["lpddr4", "hbm2"])}}
    each = draw.choice([8, 12.5]) * dram_bits
    dram = draw.choice([part, part, {"r_cost": each, "w_cost": each}])
    return {
        "name": name,
        **({"clock_frequency": f"{draw.choice([250, 500, 1000])} MHz"} if clock else {}),
        "operational_array": {"dimensions": ["D1", "D2"], "sizes": [4, 4], "unit_energy": draw.choice([0.1, 0.3, 0.5])},
        "memories": {
            "register": memory(["O"], "4 B", 16, [], {"r_cost": 0.02, "w_cost": 0.02}),
            "sram": memory(["I1", "I2", "O"], draw.choice(["4 KiB", "16 KiB"]), sram_bits, ["D1", "D2"], sram),
            "dram": memory(["I1", "I2", "O"], "1 GiB", dram_bits, ["D1", "D2"], dram),
        },
    }


@dataclass(frozen=True)
class Ran:
    """A run, and the hardware file it was made from."""

    document: dict[str, Any]
    ledger: RunLedger
    records: list[LayerRecord]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    """Sixteen runs on cores with a clock, and four on cores without one."""
    draw, folder = random.Random(11), tmp_path_factory.mktemp("runs")
    found = []
    for number in range(20):
        document = hardware(f"core{number}", draw, clock=number < 16)
        output = folder / f"core{number}"
        options: dict[str, Any] = {"temporal_mapping_search_engine": "loma", "lpf_limit": 2}
        tilewright.map(WORKLOAD, copy.deepcopy(document), MAPPING, output=output, **options)
        found.append(
            Ran(
                document,
                ledger_at(str(output), ""),
                [placed.record for placed in layers_in_order(read_records(output), read_summary(output))],
            )
        )
    return found


# a second, plain implementation --------------------------------------------------------------------------------------


def recomputed(records: list[LayerRecord], core: Core, in_time: bool) -> dict[str, float]:
    """Energy in pJ, latency and EDP from the accesses of the records and the costs in a hardware file."""
    costs = {one.name: (one.read_energy_pj, one.write_energy_pj) for one in core.memories}
    energy, cycles = 0.0, 0.0
    for record in records:
        energy += record.layer.mac_count * core.operational_array.unit_energy_pj
        for operand, names in record.memory_levels.items():
            for level, name in enumerate(names):
                for way, words in record.word_accesses[operand][level].items():
                    energy += words * costs[name][way in ("fl", "fh")]
        cycles += record.latency_cycles
    mhz = core.clock_frequency_mhz
    energy += static_power_mw(core) * cycles * 1e3 / mhz if mhz else 0.0
    latency = cycles / (mhz * 1e6) if in_time else cycles
    return {"energy": energy, "latency": latency, "EDP": energy * latency}


def with_change(document: dict[str, Any], place: int, name: str, factor: float) -> dict[str, Any]:
    """The hardware file of the run at `place` after a change that a sentence names."""
    changed = copy.deepcopy(document)
    if name.startswith("clock of "):
        if name == f"clock of {NAMES[place]}":
            changed["clock_frequency"] = f"{float(document['clock_frequency'].split()[0]) * factor!r} MHz"
        return changed
    what, of_runs = re.fullmatch(r"energy of (.*) in ([AB](?: and B)?)", name).groups()  # type: ignore[union-attr]
    if NAMES[place] not in of_runs.split(" and "):
        return changed
    if what == "a MAC":
        changed["operational_array"]["unit_energy"] *= factor
        return changed
    names, law = re.fullmatch(r"(.*?)(?: \((.*)\))?", what).groups()  # type: ignore[union-attr]
    parsed = {one.name: one for one in parse_accelerator(copy.deepcopy(document)).cores[0].memories}
    for memory_name in names.split(", "):
        entry, known = changed["memories"][memory_name], parsed[memory_name]
        source = known.cost_source
        if (source.law if source else None) != law:
            continue
        entry.pop("cost", None)
        entry |= {"r_cost": known.read_energy_pj * factor, "w_cost": known.write_energy_pj * factor}
        if source and source.leakage_mw:
            entry["leakage"] = f"{source.leakage_mw!r} mW"
    return changed


def gap(pair: tuple[Ran, Ran], one: OrderTurn, turn: Turn | None, factor: float = 1.0) -> float:
    """The relative difference of the second run to the first in a measure, after the turn's number is multiplied."""
    in_time = all("clock_frequency" in ran.document for ran in pair)
    values = []
    for place, ran in enumerate(pair):
        document = ran.document if turn is None else with_change(ran.document, place, turn.number.name, factor)
        core = parse_accelerator(copy.deepcopy(document)).cores[0]
        values.append(recomputed(ran.records, core, in_time)[one.measure])
    return (values[1 - one.first] - values[one.first]) / values[one.first]


# tests ----------------------------------------------------------------------------------------------------------------


def test_the_plain_implementation_gives_the_totals_of_the_runs(runs: list[Ran]) -> None:
    """The recomputed totals equal those of the runs, so the plain implementation can verify changes."""
    for ran in runs:
        core = parse_accelerator(copy.deepcopy(ran.document)).cores[0]
        found = recomputed(ran.records, core, in_time=bool(core.clock_frequency_mhz))
        run = ran.ledger.run
        assert found["energy"] == pytest.approx(run.energy_pj, rel=1e-12)
        assert found["latency"] == pytest.approx(run.latency_s or run.latency_cycles, rel=1e-12)


def chosen(runs: list[Ran]) -> list[tuple[Ran, Ran]]:
    """Random pairs of runs with clocks."""
    return random.Random(5).sample(list(combinations(runs[:16], 2)), PAIRS)


def test_named_changes_turn_the_order_and_nine_tenths_of_them_do_not(runs: list[Ran]) -> None:
    """The order reverses just beyond the named factor and at the printed factor, and not at nine tenths of the change.

    At least 60 of 100 pairs name a change for the EDP, which the runs minimise.
    """
    named = dict.fromkeys(MEASURES, 0)
    kinds = set()
    for pair in chosen(runs):
        for one in order_turns(pair[0].ledger, pair[1].ledger):
            assert gap(pair, one, None) == pytest.approx(one.difference, rel=1e-6)
            if one.turn is None:
                continue
            number, factor = one.turn
            named[one.measure] += 1
            kinds.add((number.name.split()[-1], number.has_range, number.name.split()[2]))
            assert number.low <= factor <= number.high
            assert gap(pair, one, one.turn, 1 + (factor - 1) * (1 + 1e-6)) < 0
            assert gap(pair, one, one.turn, 1 + (factor - 1) * 0.9) > 0
            assert gap(pair, one, one.turn, outward(factor, factor)) < 0
            assert f"{outward(factor, factor):.4g} times the {number.name}" in change_text(one.turn)
    assert named["EDP"] >= 60
    assert min(named.values()) >= 40
    assert {has_range for _, has_range, _ in kinds} == {True, False}
    assert {"a", "sram", "dram", "A", "B"} & {what for *_, what in kinds} >= {"dram", "A", "B"}


def test_the_named_change_is_the_smallest(runs: list[Ran]) -> None:
    """No other number in the files reverses the order within a smaller factor; all are tried."""
    for pair in chosen(runs)[:12]:
        for one in order_turns(pair[0].ledger, pair[1].ledger):
            if one.turn is None:
                continue
            most = max(one.turn.factor, 1 / one.turn.factor)
            for number in uncertain_numbers(pair[0].ledger, pair[1].ledger):
                for factor in (most**0.999, most**-0.999):
                    if number.low <= factor <= number.high:
                        assert gap(pair, one, Turn(number, factor), factor) > 0


def test_ends_of_ranges_that_do_not_turn_the_order(runs: list[Ran]) -> None:
    """The order is the same at both ends of every range if no range reverses it.

    The printed difference is the least difference at all these ends.
    """
    from tilewright.results.order_turn import uncertain_numbers

    count = 0
    for pair in chosen(runs)[:20]:
        for one in order_turns(pair[0].ledger, pair[1].ledger):
            if one.nearest_end is None:
                continue
            ranged = [number for number in uncertain_numbers(pair[0].ledger, pair[1].ledger) if number.has_range]
            for number in ranged:
                for end in (number.low, number.high):
                    assert gap(pair, one, Turn(number, end), end) > 0
            number, end = one.nearest_end
            first = min(gap(pair, one, Turn(row, at), at) for row in ranged for at in (row.low, row.high))
            assert gap(pair, one, one.nearest_end, end) == pytest.approx(first) == pytest.approx(one.left)
            count += 1
            (line, _) = turn_lines((one,), by_time=True)
            assert line.count("reverses the order") <= (1 if one.turn is None else 0), "said once"
    assert count >= 5


def test_without_clocks_the_ratio_of_clocks_is_named_for_the_latency_alone(runs: list[Ran]) -> None:
    """A ratio of clocks is named for latency alone if there are no clocks, because a clock could bring
    leakage energy.
    """
    for a, b in combinations(runs[16:], 2):
        for one in order_turns(a.ledger, b.ledger):
            if one.turn is not None and "clock" in one.turn.number.name:
                assert one.measure == "latency"
                assert one.turn.factor == pytest.approx(1 + one.difference)


def test_sentences(runs: list[Ran]) -> None:
    """Sentences name both runs and whether the order reverses; the last one says that the mappings are kept."""
    pair = chosen(runs)[0]
    turns = order_turns(pair[0].ledger, pair[1].ledger)
    *lines, held = turn_lines(turns, by_time=True)
    assert "the factors above are for unchanged mappings" in held
    assert turn_lines((), by_time=True) == ()
    for one, line in zip(turns, lines, strict=True):
        assert f"{NAMES[1 - one.first]} is" in line
        assert f"above {NAMES[one.first]}" in line
        assert turn_object(one)["measure"] == one.measure
        assert ("reverses the order" in line) or ("would be first with" in line)


def with_tree(ledger: RunLedger, energy_pj: float, tree_pj: float) -> RunLedger:
    """The ledger of a run with the energy of a plug-in's term, which its hardware file sets."""
    assert ledger.run.costs is not None
    costs = replace(ledger.run.costs, figures=(("array", (("tree_pj", tree_pj),)),))
    entries = {**ledger.entries, LedgerPlace(ENERGY, "0", "clock_tree"): energy_pj}
    return replace(
        ledger, run=replace(ledger.run, costs=costs, energy_pj=ledger.run.energy_pj + energy_pj), entries=entries
    )


def test_terms_of_plug_ins_are_numbers(runs: list[Ran]) -> None:
    """Terms of plug-ins are numbers that can reverse the order.

    The energy of a term that only one run has reverses the order at the factor that makes both energies equal. A term
    of both runs is one number if the attributes of their files are equal, else two.
    """
    a, b = sorted((ran.ledger for ran in runs[:2]), key=lambda ledger: ledger.run.energy_pj)
    more = b.run.energy_pj - a.run.energy_pj
    pair = with_tree(a, more * 1.05, 0.4), b
    (tree,) = (one for one in uncertain_numbers(*pair) if one.kind == TERM_ENERGY)
    assert tree.name == "energy of clock tree in A"
    assert tree.turning_factor("energy", 1) == pytest.approx(1 / 1.05)
    energy = next(one for one in order_turns(*pair) if one.measure == "energy")
    assert "energy of clock tree" in energy.kinds
    assert searchable(replace(energy, turn=Turn(tree, 1 / 1.05), bandwidth=None)) == ()
    for tree_pj, names in ((0.4, ["A and B"]), (0.2, ["A", "B"])):
        numbers = uncertain_numbers(with_tree(a, more, 0.4), with_tree(b, more, tree_pj))
        assert [one.name for one in numbers if one.kind == TERM_ENERGY] == [
            f"energy of clock tree in {own}" for own in names
        ]
    (alone,) = (one for one in uncertain_numbers(a, with_tree(b, more, 0.4)) if one.kind == TERM_ENERGY)
    assert alone.turning_factor("energy", 0) is None


def test_a_sentence_without_a_change_lists_the_numbers(runs: list[Ran]) -> None:
    """A sentence that no change reverses the order lists the numbers that were changed: it claims nothing of others."""
    ledger = with_tree(runs[0].ledger, 1.0, 0.4)
    large = replace(ledger, run=replace(ledger.run, energy_pj=ledger.run.energy_pj * 1000))
    line = next(line for line in turn_lines(order_turns(ledger, large), by_time=True) if line.startswith("energy:"))
    assert "no change of a single number by up to 10 times, or within its range, reverses the order (numbers: " in line
    assert "energy of a MAC" in line
    assert "energy of clock tree" in line


def test_ranges_of_designs_name_memories_although_they_have_no_names(runs: list[Ran]) -> None:
    """Tables of designs keep cost parts without names of memories, and the text then says `memories`."""
    a, b = (replace(ran.ledger, run=replace(ran.ledger.run, cost_parts=nameless(ran))) for ran in chosen(runs)[0])
    names = [one.name for one in uncertain_numbers(a, b) if one.has_range]
    assert names
    assert all(name.startswith("energy of memories (") for name in names)


def nameless(ran: Ran) -> tuple[CostPart, ...]:
    """The cost parts of a run without the names of their memories."""
    return tuple(part._replace(memory="") for part in ran.ledger.run.cost_parts)


def test_runs_that_are_equal_have_no_order(runs: list[Ran]) -> None:
    """Equal runs have no order to reverse."""
    assert order_turns(runs[0].ledger, runs[0].ledger) == ()


def test_without_known_costs_only_ranges_and_clocks_are_considered(runs: list[Ran]) -> None:
    """Ranges and clocks are the only changes considered if costs are unknown, and the sentence says so."""
    pair = [replace(ran.ledger, run=replace(ran.ledger.run, costs=None)) for ran in chosen(runs)[3]]
    for one in order_turns(pair[0], pair[1]):
        if one.turn is not None:
            assert one.turn.number.has_range or one.turn.number.is_inverse
        assert one.measure == "latency" or "not known here" in turn_lines((one,), by_time=True)[0]


@pytest.mark.parametrize(
    ("value", "factor", "text"), [(0.70149, 0.7, "0.701"), (1.3001, 1.3, "1.31"), (5.6, 0.7, "5.59"), (250.0, 2, "251")]
)
def test_bounds_are_rounded_away_from_one(value: float, factor: float, text: str) -> None:
    """Printed bounds are rounded away from one, so that the printed change reverses the order, too."""
    assert f"{outward(value, factor):.4g}" == text
    assert LARGEST_FACTOR > 1
