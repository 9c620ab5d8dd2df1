"""Legends of `explain`: each explains the terms in its table, and no others."""

from dataclasses import replace
from typing import Any

import pytest
from tilewright.cost.record import LayerRecord, record_of_row
from tilewright.cost.waiting import CALL, COMMAND, REQUEST
from tilewright.results.bottlenecks import Bottlenecks, bottlenecks_of
from tilewright.results.bottlenecks_text import (
    CAUSE_WORDS,
    DIRECTION_WORDS,
    LAYER_CHARACTERS,
    MOST_LAYERS,
    bottlenecks_text,
)
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import ENERGY, LATENCY, ledger_of_layers, words_of_term
from tilewright.search.evaluate import evaluate

from tests.unit.results.conftest import scaled_example, summarize
from tests.unit.results.test_bottlenecks import GEMM, LINKS, ORDER, core_of, explained

LIMITED_BY = "limited by: the kind of cycles with most of the layer's latency"


def with_cycles(**cycles: int) -> Bottlenecks:
    """Bottlenecks of a layer with further terms of the latency."""
    record: LayerRecord = evaluate(GEMM, core_of(inputs=8, weights=8), LINKS, (), ORDER)
    parts: Any = record.latency_breakdown_cycles | cycles
    record = replace(record, latency_cycles=sum(parts.values()), latency_breakdown_cycles=parts)
    return bottlenecks_of(ledger_of_layers("run", [record], None, {}), layers_in_order([record]))


def table_of(text: str, title: str) -> list[str]:
    """Lines of the table with this title and of its legend."""
    return next(part for part in text.split("\n\n") if part.startswith(title)).splitlines()


@pytest.mark.parametrize("term", ["onloading", "offloading", "drain", CALL, COMMAND, REQUEST])
def test_each_cause_of_cycles_is_explained_where_it_occurs(term: str) -> None:
    """A term with cycles has a row and a text in the legend; a term without cycles has neither."""
    absent = dict.fromkeys(CAUSE_WORDS, 0)
    lines = table_of(bottlenecks_text(with_cycles(**absent | {term: 1000})), "Cycles by cause")
    legend = f"{words_of_term(term)}: {CAUSE_WORDS[term]}"
    assert [line.strip() for line in lines if ": " in line] == [legend]
    (row,) = [line for line in lines if line.strip().startswith(f"{words_of_term(term)} ")]
    assert "1,000" in row
    none = table_of(bottlenecks_text(with_cycles(**absent)), "Cycles by cause")
    assert not [line for line in none if ": " in line]
    assert not [line for line in none if line.strip().startswith(f"{words_of_term(term)} ")]


def test_the_cycles_of_all_causes_are_the_latency() -> None:
    """The rows add up to the number in the row `all` and in the heading."""
    found = with_cycles(drain=7)
    rows = [line.split() for line in table_of(bottlenecks_text(found), "Cycles by cause")[3:]]
    cycles = [int(row[-2].replace(",", "")) for row in rows if row and row[-1].endswith("%")]
    assert [row[1] for row in rows if row and row[0] == "all"] == [f"{sum(cycles):,}"]
    assert found.total(LATENCY) == sum(cycles)


def test_the_legend_of_energies_has_the_directions_of_the_table() -> None:
    """Each column with a direction is explained, in the order of the columns."""
    found = explained(core_of(inputs=8, weights=4))
    lines = table_of(bottlenecks_text(found), "Energy by memory, operand and direction [µJ]")
    columns = [name for name in lines[1].split() if name in DIRECTION_WORDS]
    assert set(columns) == {one.direction for one in found.shares if one.quantity == ENERGY and one.direction}
    legend = "; ".join(f"{name}: {DIRECTION_WORDS[name]}" for name in columns)
    assert legend in [line.strip() for line in lines]


def test_the_legend_of_layers_is_there_if_a_port_limits() -> None:
    """The legend is left out if the limiting ports are unknown, or if no port limits any layer."""
    limited, free = explained(core_of(inputs=8, weights=2)), explained(core_of(inputs=64, weights=64))
    assert LIMITED_BY in bottlenecks_text(limited)
    assert LIMITED_BY not in bottlenecks_text(free)
    assert LIMITED_BY not in bottlenecks_text(with_cycles())


def test_the_legend_of_equal_layers_is_there_if_layers_share_a_row() -> None:
    """Two equal layers have one row with `x 2`; a single layer has no such legend."""
    legend = "x 2: two layers with equal mappings and costs"
    text = bottlenecks_text(explained(core_of(inputs=8, weights=4)))
    assert legend in text
    assert "gemm x 2" in text
    assert legend not in bottlenecks_text(with_cycles())


def test_layers_that_are_not_shown_are_counted() -> None:
    """The table has MOST_LAYERS rows; the legend says how many other layers there are, and where to find them."""
    rows = [scaled_example(f"/layer{number}/Conv", number + 1) for number in range(MOST_LAYERS + 3)]
    index = [[row["layer"]["name"], number] for number, row in enumerate(rows)]
    summary, records = summarize(rows, index), [record_of_row(row) for row in rows]
    found = bottlenecks_of(ledger_of_layers("run", records, summary, {}), layers_in_order(records, summary))
    lines = table_of(bottlenecks_text(found), "Layers, the longest first")
    assert "not shown: 3 shorter layers (`-o FOLDER` writes all)" in [line.strip() for line in lines]
    names = [line.split()[0] for line in lines if line.strip().startswith("layer") and "%" in line]
    assert len(names) == MOST_LAYERS
    assert max(map(len, names)) <= LAYER_CHARACTERS
