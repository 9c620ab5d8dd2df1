"""Causes for which a ranking can mislead: each is told exactly where its numbers differ, with names and numbers."""

from dataclasses import replace

import pytest
from tilewright.results.pareto import compare, pareto_table
from tilewright.results.part_costs import HardwareCosts, MemoryPart
from tilewright.results.run_point import RunPoint
from tilewright.results.unlike_runs import (
    CLOCKS,
    FREE_ENERGY,
    FREE_PORTS,
    FREE_WORK,
    MAC_ENERGY,
    MODELS,
    OFF_CHIP_ENERGY,
    SOURCES,
    STATIC_POWER,
    UNKNOWN_COSTS,
    causes_by_network,
    unlike_causes,
)

SRAM = MemoryPart("sram", 8192, 10.0, 12.0, 64, 64, 1, "sram 22 nm hp", 0.7, 1.3, is_on_chip=True)
DRAM = MemoryPart("dram", 2**33, 512.0, 512.0, 64, 64, 1, "dram lpddr4", 1.0, 1.75, is_on_chip=False)
COSTS = HardwareCosts(0.3, (SRAM, DRAM))
A = RunPoint("net-a", "net", "1", "a", "EDP", "corrected", (), 100.0, 10.0, None, bits="W 8", costs=COSTS)
B = replace(A, run="net-b", core="b")
BY_HAND = replace(DRAM, law="", low=1.0, high=1.0)


def test_runs_of_one_world_have_no_cause() -> None:
    """Nor has a single run."""
    assert unlike_causes((A, B)) == ()
    assert unlike_causes((A,)) == ()


def test_runs_of_several_models_are_ranked_apart() -> None:
    """A table names the models, and warns only of what differs among the runs of one model."""
    other = replace(A, run="net-c", model="zigzag-3.9.1", costs=replace(COSTS, unit_energy_pj=0.04))
    models = "models differ, so rank only runs of the same model: a, b: model corrected; c: model zigzag-3.9.1"
    assert causes_by_network((A, B)) == ()
    assert causes_by_network((A, B, other)) == (("net", ((MODELS, models),)),)
    unlike = replace(B, costs=replace(COSTS, unit_energy_pj=0.5))
    ((_, causes),) = causes_by_network((A, unlike, other))
    assert [cause.kind for cause in causes] == [MODELS, MAC_ENERGY]


@pytest.mark.parametrize(
    ("kind", "text", "changes"),
    [
        (CLOCKS, "no clock given: a; compared by cycles, not by time", {"clock_frequency_mhz": 500.0}),
        (
            STATIC_POWER,
            "static power is not given for a: only the energies of the other runs include it (b 0.02 W)",
            {"static_power_w": 0.02},
        ),
        (
            MAC_ENERGY,
            "the energy of a MAC differs: a: 0.3 pJ; b: 0.04 pJ",
            {"costs": replace(COSTS, unit_energy_pj=0.04)},
        ),
        (
            MAC_ENERGY,
            "the energy of a MAC is the same, although the bits of operands differ: a: 0.3 pJ (W 8 bits); b: 0.3 pJ"
            " (W 4 bits)",
            {"bits": "W 4"},
        ),
        (
            SOURCES,
            "energies of memories have different sources: a: library of costs (dram lpddr4, sram 22 nm hp);"
            " b: library of costs (sram 22 nm hp) and numbers of the hardware file, without a source",
            {"costs": replace(COSTS, memories=(SRAM, BY_HAND))},
        ),
        (
            OFF_CHIP_ENERGY,
            "the energy per bit of the off-chip memory differs: a: dram 8 pJ/b; b: dram 4 (read) and 8 (write) pJ/b",
            {"costs": replace(COSTS, memories=(SRAM, replace(DRAM, read_energy_pj=256.0)))},
        ),
        (
            FREE_WORK,
            "free of cost, because there is no cost model for this work: b: 7 other operations",
            {"free_work": "7 other operations"},
        ),
        (
            FREE_ENERGY,
            "the hardware file gives no energy for these operations: b: MACs, sram (reading)",
            {"costs": HardwareCosts(0.0, (replace(SRAM, read_energy_pj=0.0), DRAM))},
        ),
        (
            FREE_PORTS,
            "costs from the library count one port that reads and writes; energy and area of further ports are free:"
            " b: sram has 2",
            {"costs": replace(COSTS, memories=(replace(SRAM, port_count=2), DRAM))},
        ),
        (
            UNKNOWN_COSTS,
            "the hardware of b is not known, so energies of MACs and memories, and the sources"
            " of these energies, are not compared",
            {"costs": None},
        ),
    ],
)
def test_each_cause(kind: str, text: str, changes: dict[str, object]) -> None:
    """It is told in `pareto` too, under the table and in its file."""
    runs = (A, replace(B, **changes))  # type: ignore[arg-type]
    assert (kind, text) in unlike_causes(runs)
    (group,) = compare(runs)
    assert text in group.lines
    assert all(text in cell for cell in pareto_table([group])["notes"])


def test_clocks_that_differ_change_the_measure() -> None:
    """Seconds, with the unit."""
    runs = (replace(A, clock_frequency_mhz=1000.0), replace(B, clock_frequency_mhz=250.0))
    text = "clocks differ: compare by time, not by cycles: a 1e-08 s, b 4e-08 s"
    assert unlike_causes(runs) == ((CLOCKS, text),)


def test_words_of_another_width_are_the_same_part() -> None:
    """A bit takes the same energy, so that nothing differs."""
    wide = replace(DRAM, read_energy_pj=1024.0, write_energy_pj=1024.0, read_bits=128, write_bits=128)
    assert unlike_causes((A, replace(B, costs=replace(COSTS, memories=(SRAM, wide))))) == ()
