"""The figure of a loop nest over its memory levels."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib.figure import Figure
from tilewright.base.errors import InputError
from tilewright.cost.record import record_of_row
from tilewright.results.nest_figure import (
    BAND_INCHES,
    ROW_INCHES,
    NestBlock,
    nest_figure,
    nest_layout,
    nest_pages,
    write_layer_nests,
)


def column(record: dict[str, Any], operand: str) -> list[NestBlock]:
    """The blocks of an operand, from the array upwards."""
    return [block for block in nest_layout(record_of_row(record)).blocks if block.operand == operand]


def texts(figure: Figure) -> list[str]:
    """All texts of a figure."""
    return [text.get_text() for text in figure.texts]


def assert_texts_are_readable(figure: Figure) -> None:
    """Checks that no text leaves the figure or touches another text."""
    renderer = figure.canvas.get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in figure.texts if text.get_text()]
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
    for (one, box), (other, other_box) in itertools.combinations(boxes, 2):
        assert not box.shrunk(0.98, 0.9).overlaps(other_box.shrunk(0.98, 0.9)), f"{one} / {other}"


def test_columns_are_stacked_without_gaps_to_one_height(record: dict[str, Any]) -> None:
    """Each block starts where the block below it ends, and all columns have one height."""
    layout = nest_layout(record_of_row(record))
    for operand in ("O", "W", "I"):
        blocks = column(record, operand)
        assert blocks[0].bottom == 0
        assert blocks[-1].top == layout.height
        assert all(lower.top == upper.bottom for lower, upper in itertools.pairwise(blocks))
        assert [block.level for block in blocks if block.level is not None] == [0, 1, 2][: len(blocks) - 1]


def test_a_level_spans_exactly_its_loops(record: dict[str, Any]) -> None:
    """A loop stands at one height in all columns, and each memory level spans exactly its own loops."""
    loops = record["loop_order"]
    record["temporal_mapping"]["O"] = [loops[:2], loops[2:5], loops[5:]]
    layout = nest_layout(record_of_row(record))
    assert [list(loop) for loop in layout.loops] == loops
    assert all(lower + ROW_INCHES <= upper for lower, upper in itertools.pairwise(layout.loop_bottoms))
    for operand in ("O", "W", "I"):
        for level, kept in enumerate(record["temporal_mapping"][operand]):
            (block,) = [block for block in column(record, operand) if block.level == level]
            inside = [
                loop
                for loop, bottom in zip(loops, layout.loop_bottoms, strict=True)
                if block.bottom <= bottom and bottom + ROW_INCHES <= block.top
            ]
            assert inside == kept


def test_levels_without_loops_and_spatial_loops_have_a_place(record: dict[str, Any]) -> None:
    """An empty level is as high as its texts; a band of spatial loops stands below the memory that feeds it."""
    blocks = column(record, "O")
    assert [block.level for block in blocks] == [0, None, 1, 2]
    assert blocks[0].top == ROW_INCHES
    assert blocks[1].top - blocks[1].bottom == pytest.approx(BAND_INCHES)
    assert blocks[1].spatial == (("K", 32.0), ("C", 24.0))
    assert [block.level for block in column(record, "I")] == [None, 0, 1]


@pytest.mark.parametrize("loop_count", [0, 1, 6, 18])
def test_texts_are_readable(loop_count: int, record: dict[str, Any]) -> None:
    """No text leaves the figure or touches another text, for any number of loops."""
    loops = [["OX", 112], ["OY", 7], ["FX", 3]] * 6
    loops = loops[:loop_count]
    record["loop_order"] = loops
    third = loop_count // 3
    record["temporal_mapping"] = {
        "O": [loops[:third], loops[third : 2 * third], loops[2 * third :]],
        "W": [loops, []],
        "I": [[], loops],
    }
    figure = nest_figure(record_of_row(record))
    assert_texts_are_readable(figure)
    assert len([text for text in texts(figure) if text.startswith("for ")]) == loop_count


def test_numbers_are_those_of_the_record(record: dict[str, Any]) -> None:
    """The figure has the record's tile, filling and energy of each level, and the lanes asked for and counted."""
    shown = texts(nest_figure(record_of_row(record)))
    assert "tile 2 B, 100.0% full, 0.08361 µJ" in shown
    assert "tile 2.25 KiB, 0.2% full, 0.2612 µJ" in shown
    assert any("C 32 (24 counted)" in text for text in shown)
    assert any("3,807 cycles" in text for text in shown)
    assert shown.count("parfor K 32, C 24") == 3


def test_other_operand_counts_and_names_that_look_like_formulas(record: dict[str, Any]) -> None:
    """Layers with one or three input operands are drawn, and dollar signs in a name stay text."""
    record["layer"]["name"] = "a$b$_{c"
    tables = ("memory_levels", "temporal_mapping", "spatial_levels", "energy_breakdown_pj", "word_accesses")
    tables += ("memory_utilization", "memory_utilization_individual")
    for table in tables:
        del record[table]["W"]
    figure = nest_figure(record_of_row(record))
    assert_texts_are_readable(figure)
    assert "Layer a$b$_{c" in texts(figure)
    for table in tables:
        record[table] |= {"A": record[table]["I"], "B": record[table]["I"]}
    assert_texts_are_readable(nest_figure(record_of_row(record)))


def test_pages_have_the_same_bytes_every_time(
    make_network: Callable[[int], tuple[list[dict[str, Any]], dict[str, Any]]], tmp_path: Path
) -> None:
    """Each distinct layer has a page; dates and the user's settings do not reach the file."""
    records, summary = make_network(14)
    data = nest_pages(records, summary)
    with matplotlib.rc_context({"font.size": 20.0, "pdf.fonttype": 42}):
        assert nest_pages(records, summary) == data
    assert len(re.findall(rb"/Type /Page\b", data)) == 12
    assert b"CreationDate" not in data
    assert nest_pages([]).startswith(b"%PDF")


def test_layers_are_drawn_by_name(
    make_network: Callable[[int], tuple[list[dict[str, Any]], dict[str, Any]]], tmp_path: Path
) -> None:
    """A layer that shares a record is drawn under its own name; an unknown name is reported with the nearest."""
    records, summary = make_network(14)
    name = "/layer13/layer13.0/conv13/Conv"
    paths = write_layer_nests(records, summary, [name], tmp_path)
    assert [path.name for path in paths] == ["layer13_layer13.0_conv13_Conv.svg", "layer13_layer13.0_conv13_Conv.png"]
    with pytest.raises(InputError, match="did you mean"):
        write_layer_nests(records, summary, ["/layer13/layer13.0/conv13/Con"], tmp_path)
