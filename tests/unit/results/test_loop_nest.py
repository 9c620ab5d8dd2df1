"""The printed loop nest."""

from tilewright.cost.record import record_of_row
from tilewright.results.loop_nest import loop_nest_text, network_loop_nests


def test_worked_example_is_printed_outermost_first_with_its_memories(record):
    """Temporal loops are printed outermost first with the memory of each operand, spatial loops with the memory that
    feeds them.
    """
    lines = loop_nest_text(record_of_row(record)).splitlines()
    loops = [line.split() for line in lines if line.strip().startswith("for ")]
    assert [words[1] for words in loops] == ["K", "C", "FY", "FX", "OY", "OX"]
    assert all(words[-3:] == ["sram_2MB", "rf_128B", "sram_2MB"] for words in loops)
    parallel = [line.split() for line in lines if line.strip().startswith("parfor ")]
    assert parallel[0] == ["parfor", "K", "in", "[0,", "32):", "sram_2MB", "dram", "sram_2MB", "D1"]
    assert "24 of 32 lanes counted" in " ".join(parallel[1])
    assert lines[-1].strip() == record["layer"]["equation"]


def test_columns_are_aligned(record):
    """Every operand column starts at one character in the title and in the rows."""
    lines = loop_nest_text(record_of_row(record)).splitlines()
    starts = {line.index("rf_128B") for line in lines if line.strip().startswith("for ")}
    title = next(line for line in lines if line.startswith("Temporal loops"))
    assert starts == {title.index(" W ") + 1}


def test_a_loop_moved_up_one_level_shows_the_other_memory(record):
    """A loop of O that moves up one level shows the memory of that level."""
    record["temporal_mapping"]["O"] = [record["loop_order"][:2], record["loop_order"][2:5], record["loop_order"][5:]]
    columns = [
        line.split()[-3]
        for line in loop_nest_text(record_of_row(record)).splitlines()
        if line.strip().startswith("for ")
    ]
    assert columns == ["dram", "sram_2MB", "sram_2MB", "sram_2MB", "rf_2B", "rf_2B"]


def test_layer_without_any_loop_prints(record):
    """A nest without loops prints a remark in place of the temporal loops and one in place of the spatial loops."""
    record["temporal_mapping"] = {operand: [[] for _ in levels] for operand, levels in record["memory_levels"].items()}
    record["loop_order"], record["spatial_mapping"] = [], {}
    text = loop_nest_text(record_of_row(record))
    assert "(none: one pass)" in text
    assert "(none: only one unit of the array works)" in text


def test_any_number_of_operands(record):
    """Layers with one and with three input operands are printed, too."""
    for table in ("memory_levels", "temporal_mapping", "spatial_levels"):
        del record[table]["W"]
    assert " W " not in loop_nest_text(record_of_row(record)).split("Temporal loops")[1].splitlines()[0]
    for table in ("memory_levels", "temporal_mapping", "spatial_levels"):
        record[table] |= {"A": record[table]["I"], "B": record[table]["I"]}
    rows = [line for line in loop_nest_text(record_of_row(record)).splitlines() if line.strip().startswith("for ")]
    assert all(len(row.split()) == 5 + 4 for row in rows)


def test_network_prints_each_distinct_layer_once(make_network):
    """Equal layers share one nest that names them all."""
    records, summary = make_network(14)
    text = network_loop_nests(records, summary)
    assert text.count("Temporal loops") == 12
    assert "also: /layer12/layer12.0/conv12/Conv" in text
