"""Tables of computation nodes (CNs): how each layer is cut, the data that flow into it, and the costs on each core."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas

from tilewright.base.units import microjoules_text
from tilewright.cost.ledger import energy_columns
from tilewright.multicore.nodes.graph import ORDERING, CnGraph, CnLayer
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.results.terminal_tables import TERMINAL_WIDTH, render, text_table
from tilewright.results.text_tables import spatial_text
from tilewright.results.words import short_layer_name

_WIDTH = 150


def cn_rows(graph: CnGraph) -> list[dict[str, Any]]:
    """Rows of a table, one for each layer. A row has the loops, three counts (CNs, groups and classes), and the inputs.

    Three numbers describe the inputs: edges that carry data into the layer, bits on these edges, and bits that the
    layer reads from tensors that no CN makes.
    """
    count = len(graph.layers)
    target = graph.cn_layer[graph.edge_target]
    with_data = graph.edge_operand != ORDERING
    edges = np.bincount(target[with_data], minlength=count)
    bits = np.zeros(count, np.int64)
    np.add.at(bits, target, graph.edge_bits)
    read_bits = _distinct_read_bits(graph)
    return [
        {
            "layer": layer.name,
            "node_id": layer.node_id,
            "operator_type": layer.operator_type,
            "stack": layer.stack,
            "loops": [[loop.dimension, loop.count] for loop in layer.tiling.loops],
            "cns": layer.cn_count,
            "groups": len(np.unique(graph.group[_cns(layer)])),
            "classes": len(np.unique(graph.shape[_cns(layer)])),
            "edges_in": int(edges[number]),
            "edge_bits": int(bits[number]),
            "outside_bits": int(read_bits[number]),
        }
        for number, layer in enumerate(graph.layers)
    ]


def cn_summary(graph: CnGraph) -> dict[str, Any]:
    """Size of a CN graph (numbers of layers, CNs, edges and so on), as a JSON object."""
    return {
        "network": graph.network,
        "cns": graph.cn_count,
        "edges": len(graph.edge_source),
        "data_edges": graph.data_edge_count,
        "classes": len(graph.shapes),
        "stacks": [list(stack) for stack in graph.stacks],
        "layers": cn_rows(graph),
        "notices": list(graph.notices),
    }


def cn_table_text(graph: CnGraph) -> str:
    """Text table of the layers of a CN graph, for the terminal. Loops are written innermost first."""
    numbers = ("CNs", "groups", "classes", "edges in\nwith data", "they carry\n[bits]", "from outside\n[bits]")
    table = text_table(f"{graph.network} in computation nodes", ("layer", "operator", "stack", "cut in"), numbers)
    rows = cn_rows(graph)
    for row in rows:
        loops = ", ".join(f"{dimension} {count}" for dimension, count in row["loops"]) or "-"
        counts = [row[key] for key in ("cns", "groups", "classes", "edges_in", "edge_bits", "outside_bits")]
        name = short_layer_name(row["layer"], row["operator_type"], 40)
        table.add_row(name, row["operator_type"], str(row["stack"]), loops, *(f"{count:,}" for count in counts))
    table.add_section()
    totals = [sum(row[key] for row in rows) for key in ("cns", "groups", "edges_in", "edge_bits", "outside_bits")]
    totals.insert(2, len(graph.shapes))
    table.add_row("all", "", str(len(graph.stacks)), "", *(f"{count:,}" for count in totals))
    return render(table, _WIDTH)


def _cns(layer: CnLayer) -> slice:
    return slice(layer.first_cn, layer.first_cn + layer.cn_count)


def _distinct_read_bits(graph: CnGraph) -> Any:
    """Bits of the data blocks that the CNs of a layer read (one entry for each layer). A block counts once, even if
    several CNs read it. If two blocks overlap, the elements in the overlap are counted twice.
    """
    reader = graph.cn_layer[graph.read_cn]
    pairs = np.unique(np.stack((reader, graph.read_content)), axis=1)
    bits = np.zeros(len(graph.layers), np.int64)
    np.add.at(bits, pairs[0], graph.content_bits[pairs[1]])
    return bits


CostTables = Mapping[str, Sequence[CoreCostRow]]
"""Rows of the cost table of each core file, one row for each class of CNs."""
_MOST_REASON_CHARACTERS = 60


def cost_table(tables: CostTables, layer_names: Sequence[str] = ()) -> pandas.DataFrame:
    """Table with one row for each class and core, sorted by class.

    Numbers are for one CN, except in columns whose name contains `all`. `layer_names` are the names of the layers of
    the CN graph; if they are missing, the table has the indices of the layers instead. If a core cannot run a class,
    its row has the reason in place of numbers.
    """
    count = max((len(rows) for rows in tables.values()), default=0)
    return pandas.DataFrame(
        [_row(core, rows[number], layer_names) for number in range(count) for core, rows in tables.items()]
    )


def cost_table_text(table: pandas.DataFrame, width: int = TERMINAL_WIDTH) -> str:
    """Text of a cost table for the terminal."""
    headings = ("CNs", "cycles", "energy\n[µJ]", "array\nuse")
    text = text_table("", ("class", "core"), headings)
    text.add_column("streamed operands, or reason\nwhy the class cannot run")
    for row in table.to_dict("records"):
        numbers = ("", "", "")
        if row["can_run"]:
            numbers = (f"{row['cycles']:,.0f}", microjoules_text(row["on_core_energy_pj"]), f"{row['utilisation']:.1%}")
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
