"""The summary of a run on several cores as text."""

from typing import Any

from tilewright.results.multi.summary_text import summary_text

CORE = {"core": 0, "name": "wide", "role": "compute", "cn_count": 3, "busy_cycles": 5, "utilisation": 0.5}
CORE |= {"array_utilisation": 0.25, "energy_pj": 3e6, "operational_energy_pj": 1e6, "memory_energy_pj": {"sram": 2e6}}
FIGURES = {"latency_cycles": 4000, "energy_pj": 8e6, "gap": 0.75, "speedup": 4.0, "energy_ratio": 1.6}
EQUAL = {"speedup": 1.0, "energy_ratio": 1.0}
SUMMARY: dict[str, Any] = {
    **{"workload": "net", "hardware": "duo", "schedule_model": "causal", "cn_count": 1234, "edge_count": 5678},
    **{"latency_cycles": 1000, "energy_pj": 5e6, "edp_pj_cycles": 5e9, "gap_latency": 0.2, "gap_energy": 0.4},
    "lower_bound": {
        "latency_cycles": 800,
        "latency_terms": {"critical_path": 700, "core_work": 800, "off_chip_traffic": 60, "link_traffic": 50},
        "energy_pj": 3e6,
    },
    "energy": {
        "on_core_pj": 3e6,
        "on_core_operational_pj": 1e6,
        "on_core_memory_pj": {"sram": 2e6},
        "causes": {"eviction": {"link_pj": 0.5e6, "memory_pj": 1.5e6}},
    },
    "cores": [CORE],
    "memories": [
        {"name": "0: sram", "cores": [0], "capacity_bits": 81920, "peak_bits": 73728, "peak_share": 0.9},
        {"name": "1: dram", "cores": [1], "capacity_bits": 2**30, "peak_bits": 1, "peak_share": 0.0},
    ],
    "links": [{"name": "0->1", "width_bits_per_cycle": None, "bits": 8192, "busy": 0.125}],
    "reloads": [
        {
            **{"layer": "wide.conv", "data": "constants", "bits": 16384, "loaded_bits": 163840},
            **{"factor": 10.0, "tiles": 12, "cause": "streamed"},
        }
    ],
    "baselines": [
        {"name": "single_core", "core": 0, "core_name": "wide", **FIGURES},
        {"name": "this_run", "core": None, "core_name": None, **FIGURES, "latency_cycles": 1000, **EQUAL},
    ],
    "coverage": {"complete": True, "not_costed": []},
    "passed_through": {},
}


FIGURES_AND_WORDS = [
    ["net on duo:", "1,234 computation nodes", "5,678 edges"],
    ["latency 1,000 cycles", "energy 5 µJ", "EDP 0.005 J cycles"],
    ["800 cycles, 3 µJ", "20.0% in latency, 40.0% in energy"],
    ["critical path 700, core work 800, off chip traffic 60, link traffic 50"],
    ["everything on one core (0: wide)", "4,000", "75.0%", "4.00 ×"],
    ["0: wide", "compute", "50.0%", "25.0%", "3", "90.0%"],
    ["wide.conv: its constants (2 KiB) are loaded 10.0 times by 12 tiles", "each tile reads them"],
    ["0: sram", "10", "90.0%"],
    ["0->1", "unlimited", "1", "12.5%"],
    ["arrays", "1", "20.0%"],
    ["sram, in cores", "2", "40.0%"],
    ["eviction", "2", "40.0%"],
]
"""Figures and words that stand together in a line."""


def test_every_figure_is_in_a_line_with_its_unit_or_heading() -> None:
    """Every figure is in a line with its unit or heading, and parts of the energy are shares of the whole."""
    lines = summary_text(SUMMARY).splitlines()
    for words in FIGURES_AND_WORDS:
        assert any(all(word in line for word in words) for line in lines), words


def test_a_run_that_is_worse_than_layer_by_layer_is_told_in_words() -> None:
    """A speedup of 0.31 is reported as 3.2 times the latency; a run that is as good or better is not reported."""
    slow = {**FIGURES, "name": "layer_by_layer", "core": None, "core_name": None, "speedup": 0.31, "energy_ratio": 0.8}
    text = summary_text(SUMMARY | {"baselines": [slow, *SUMMARY["baselines"]]}, in_full=False)
    assert "this run takes 3.23 times as long as layer by layer" in text
    assert "this run needs 1.25 times the energy of layer by layer" in text
    assert "everything on one core (0: wide)" in text
    assert text.count("this run ") == 3  # the two, and the row of this run
    assert "tilewright fuse" in text
    assert "tilewright fuse" not in summary_text(SUMMARY)


def test_an_energy_ratio_that_is_not_known_is_not_told_of() -> None:
    """A run without energy has no words on a ratio of energies."""
    rows = [{**row, "energy_ratio": None} for row in SUMMARY["baselines"]]
    assert "this run needs" not in summary_text(SUMMARY | {"baselines": rows})


def test_the_short_text_has_no_tables_of_memories_links_and_energy() -> None:
    """The short text has no tables of memories, links and energy; utilisation and peak memory of each core stay."""
    short = summary_text(SUMMARY, in_full=False)
    assert summary_text(SUMMARY).startswith(short.rstrip("\n"))
    assert "fullest memory" in short
    assert "capacity" not in short


def test_a_model_without_bounds_says_so() -> None:
    """A model without bounds says so, and no number stands for a bound."""
    text = summary_text(
        {**SUMMARY, "lower_bound": None, "gap_latency": None, "gap_energy": None, "schedule_model": "stream-2023"}
    )
    assert "no lower bound: the schedule model stream-2023 is not causal" in text
    assert "largest of" not in text
