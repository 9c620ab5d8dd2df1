"""Causes for a misleading ranking: each is reported exactly if its numbers differ, with names and numbers."""

from dataclasses import replace

import pytest
from tilewright.hardware.silicon.memory_cost import node_nm_of
from tilewright.results.pareto import compare, pareto_table, pareto_text
from tilewright.results.part_costs import HardwareCosts, MemoryPart
from tilewright.results.run_point import RunPoint
from tilewright.results.static_parts import StaticParts
from tilewright.results.unlike_runs import (
    BITS,
    CLOCKS,
    FREE_ENERGY,
    FREE_PORTS,
    FREE_WORK,
    MAC_ENERGY,
    MAC_OF_BITS,
    MODELS,
    NODES,
    OFF_CHIP_ENERGY,
    SOURCES,
    STATIC_POWER,
    UNKNOWN_COSTS,
    WARNED,
    WARNING,
    cause_lines,
    causes_by_network,
    one_sided_ranges,
    unlike_causes,
)
from tilewright.search.cost_ranges import CostPart

SRAM = MemoryPart("sram", 8192, 10.0, 12.0, 64, 64, 1, "sram 22 nm hp", 0.7, 1.3, is_on_chip=True)
DRAM = MemoryPart("dram", 2**33, 512.0, 512.0, 64, 64, 1, "dram lpddr4", 1.0, 1.75, is_on_chip=False)
COSTS = HardwareCosts(0.3, (SRAM, DRAM))
A = RunPoint("net-a", "net", "1", "a", "EDP", "corrected", (), 100.0, 10.0, None, bits="W 8", costs=COSTS)
B = replace(A, run="net-b", core="b")
BY_HAND = replace(DRAM, law="", low=1.0, high=1.0)


def test_runs_of_one_world_have_no_cause() -> None:
    """Runs with equal costs have no cause, and neither has a single run."""
    assert unlike_causes((A, B)) == ()
    assert unlike_causes((A,)) == ()


def test_runs_of_several_models_are_ranked_apart() -> None:
    """Runs of different models are named with their models; other differences are named only within one model."""
    other = replace(A, run="net-c", model="zigzag-3.9.1", costs=replace(COSTS, unit_energy_pj=0.04))
    models = "models differ, so rank only runs of the same model: a, b: model corrected; c: model zigzag-3.9.1"
    assert causes_by_network((A, B)) == ()
    assert causes_by_network((A, B, other)) == (("net", ((MODELS, models),)),)
    unlike = replace(B, costs=replace(COSTS, unit_energy_pj=0.5))
    ((_, causes),) = causes_by_network((A, unlike, other))
    assert [cause.kind for cause in causes] == [MODELS, MAC_ENERGY]


def test_static_power_of_some_parts_alone_is_told() -> None:
    """A part whose static power only one run counts is reported for each run; equal parts are not."""
    both = {"static_power_w": 0.02}
    a = replace(A, **both, static_parts=StaticParts(("sram",), ("array",), ("dram", "rf")))
    b = replace(B, **both, static_parts=StaticParts(("array", "rf", "sram"), (), ("dram",)))
    told = "these parts have a static power in other runs, but none here: array (given as 0), rf (not given) in a"
    assert [(cause.kind, cause.text) for cause in unlike_causes((a, b))] == [(STATIC_POWER, told)]
    assert unlike_causes((a, replace(b, static_parts=a.static_parts))) == ()


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
            NODES,
            "process nodes differ (a: 22 nm; b: 45 nm), so energies, areas, and a ranking by them do not compare the"
            " architectures",
            {"costs": replace(COSTS, memories=(replace(SRAM, law="sram 45 nm lstp"), DRAM))},
        ),
        (BITS, "the bits of the operands differ: a: W 8; b: W 4", {"bits": "W 4"}),
        (
            MAC_OF_BITS,
            "the energy of a MAC is the same, although the bits of the operands differ: 0.3 pJ in a: W 8; b: W 4",
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
    """Each cause is also in `pareto`, below the table and in its file."""
    runs = (A, replace(B, **changes))  # type: ignore[arg-type]
    assert (kind, text) in unlike_causes(runs)
    (group,) = compare(runs)
    assert (f"{WARNING}{text}" if kind in WARNED else text) in group.lines
    assert all(text in cell for cell in pareto_table([group])["notes"])


def test_energies_that_differ_in_part_are_told_apart_from_bits() -> None:
    """Equal energies of a MAC are not reported as different; a separate cause names the bits."""
    wide, third = replace(B, bits="W 16"), replace(B, run="net-c", core="c", costs=replace(COSTS, unit_energy_pj=0.5))
    told = dict(unlike_causes((A, wide, third)))
    assert told[MAC_ENERGY] == "the energy of a MAC differs: a, b: 0.3 pJ; c: 0.5 pJ"
    assert told[MAC_OF_BITS].endswith(": 0.3 pJ in a: W 8; b: W 16")


def test_other_nodes_are_a_warning_above_all_else() -> None:
    """Different process nodes are a warning, first in each list and above the table of `pareto`.

    This holds, too, if only the laws with a range are known.
    """
    part = CostPart("sram", "sram 45 nm hp", 5.0, 0.1, 0.7, 1.3)
    for other in (
        replace(B, costs=replace(COSTS, memories=(replace(SRAM, law="sram 45 nm hp"), DRAM))),
        replace(B, costs=None, cost_parts=(part,)),
    ):
        assert unlike_causes((A, other))[0].kind == NODES
        (group,) = compare((A, other))
        assert pareto_text([group]).startswith("WARNING: process nodes differ (a: 22 nm; b: 45 nm)")
        assert cause_lines((A, other))[0].startswith("net: WARNING: process nodes differ")


@pytest.mark.parametrize("node_nm", [7, 12.5, 22, 45, 130])
def test_the_node_of_a_law_is_read_back(node_nm: float) -> None:
    """The process node is read from the names of SRAM and register file laws; the name of a DRAM law has no node."""
    for kind in ("sram {:g} nm hp", "sram {:g} nm lstp", "register_file {:g} nm"):
        assert node_nm_of(kind.format(node_nm)) == node_nm
    assert node_nm_of("dram lpddr4") is None
    assert node_nm_of("") is None


def test_ranges_of_some_runs_only_are_named() -> None:
    """A range of a memory in only one run is named with its numbers; memories are matched by name, or as off-chip
    memory.
    """
    fixed = replace(B, costs=replace(COSTS, memories=(SRAM, replace(BY_HAND, name="lpddr"))))
    assert one_sided_ranges((A, B)) == ""
    assert one_sided_ranges((fixed, fixed)) == ""
    assert one_sided_ranges((A, replace(B, costs=None))) == ""
    assert one_sided_ranges((A, fixed)) == "a: dram 8 to 14 pJ/b; b: lpddr 8 pJ/b, without a range"
    plain = replace(B, costs=replace(COSTS, memories=(replace(SRAM, law="", low=1.0, high=1.0), DRAM)))
    assert one_sided_ranges((A, plain)).startswith("a: sram 0.1094 to 0.2031 pJ/b; b: sram 0.1562 (read)")


def test_no_probability_is_made_from_ranges_of_some_runs() -> None:
    """Energies keep their ranges if only some runs have ranges, but the front has no probabilities, and a text says
    why.
    """
    part = CostPart("dram", "dram lpddr4", 50.0, 0.0, 1.0, 1.75)
    ranged = replace(A, cost_parts=(part,))
    (both,) = compare((ranged, replace(ranged, run="net-b", core="b")))
    assert both.front_probabilities == (1.0, 1.0)
    (group,) = compare((ranged, replace(B, costs=replace(COSTS, memories=(SRAM, BY_HAND)))))
    assert group.front_probabilities == ()
    told = next(line for line in group.lines if line.startswith("energies if costs vary"))
    assert "on the front" not in told
    assert told.endswith("a: dram 8 to 14 pJ/b; b: dram 8 pJ/b, without a range")
    table = pareto_table([group])
    assert table["energy_high_pj"].tolist() == [137.5, 100.0]
    assert table["front_probability"].isna().all()


def test_clocks_that_differ_change_the_measure() -> None:
    """The cause says to compare by time, in seconds, if clocks differ."""
    runs = (replace(A, clock_frequency_mhz=1000.0), replace(B, clock_frequency_mhz=250.0))
    text = "clocks differ: compare by time, not by cycles: a 1e-08 s, b 4e-08 s"
    assert unlike_causes(runs) == ((CLOCKS, text),)


def test_words_of_another_width_are_the_same_part() -> None:
    """Memories with words of another width are equal if a bit takes the same energy."""
    wide = replace(DRAM, read_energy_pj=1024.0, write_energy_pj=1024.0, read_bits=128, write_bits=128)
    assert unlike_causes((A, replace(B, costs=replace(COSTS, memories=(SRAM, wide))))) == ()
