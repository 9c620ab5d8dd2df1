"""What computation nodes cost on each core, as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas

from tilewright.cost.ledger import energy_columns
from tilewright.report.text_tables import TERMINAL_WIDTH, millions, render, spatial_text, text_table
from tilewright.scheduling.core_costs import CoreCostRow

CostTables = Mapping[str, Sequence[CoreCostRow]]
"""Core file name -> its rows, one for each cost class."""
_MOST_REASON_CHARACTERS = 60


def cost_table(tables: CostTables, layer_names: Sequence[str] = ()) -> pandas.DataFrame:
    """One row for each class and core, classes in order; numbers are of one CN where the name does not say `all`.

    `layer_names` are those of the layers of the CN graph, else their numbers are told. Cores that cannot run a class
    have empty numbers and a reason.
    """
    count = max((len(rows) for rows in tables.values()), default=0)
    return pandas.DataFrame(
        [_row(core, rows[number], layer_names) for number in range(count) for core, rows in tables.items()]
    )


def cost_table_text(table: pandas.DataFrame, width: int = TERMINAL_WIDTH) -> str:
    """A cost table for the terminal."""
    headings = ("CNs", "cycles", "energy\n[µJ]", "array\nuse")
    text = text_table("", ("class", "core"), headings)
    text.add_column("streams, or why it cannot run")
    for row in table.to_dict("records"):
        numbers = ("", "", "")
        if row["can_run"]:
            numbers = (f"{row['cycles']:,.0f}", millions(row["on_core_energy_pj"]), f"{row['utilisation']:.1%}")
        told = row["streams"] if row["can_run"] else row["reason"]
        told = told if len(told) <= _MOST_REASON_CHARACTERS else told[: _MOST_REASON_CHARACTERS - 1] + "…"
        name = f"{row['cost_class']} {row['what']}"
        text.add_row(name, row["core"], f"{row['cn_count']:,}", *numbers, told)
    return render(text, width)


def _row(core: str, row: CoreCostRow, layer_names: Sequence[str]) -> dict[str, Any]:
    layers = (layer_names[number] if layer_names else str(number) for number in row.layers)
    runs = row.can_run
    return {
        "cost_class": row.cost_class,
        "what": row.what,
        "core": core,
        "layers": " ".join(layers),
        "cn_count": row.cn_count,
        "can_run": runs,
        "ideal_cycles": row.ideal_cycles if runs else None,
        "cycles": row.total1_cycles if runs else None,
        "cycles_with_offloading": row.total2_cycles if runs else None,
        "all_cycles": row.total1_cycles * row.cn_count if runs else None,
        "on_core_energy_pj": row.on_core_energy_pj if runs else None,
        "all_on_core_energy_pj": row.on_core_energy_pj * row.cn_count if runs else None,
        **energy_columns(dict(row.term_energy_pj)),
        "spatial_utilisation": row.spatial_utilisation if runs else None,
        "utilisation": row.utilisation if runs else None,
        "spatial_mapping": spatial_text(row.mapping["spatial_mapping"]) if row.mapping else "",
        "streams": ", ".join(f"{s.operand} {s.bits:,} b at {s.bits_per_cycle:,} b/cycle" for s in row.streams),
        "reason": row.reason,
    }
