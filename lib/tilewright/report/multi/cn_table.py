"""A table of a CN graph: how each layer is cut, and what flows into it."""

from typing import Any

import numpy as np

from tilewright.fusion.graph import ORDERING, CnGraph, CnLayer
from tilewright.report.short_names import short_layer_name
from tilewright.report.text_tables import render, text_table

_WIDTH = 150


def cn_rows(graph: CnGraph) -> list[dict[str, Any]]:
    """A row for each layer: its loops, its CNs, groups and classes, edges with data into it and what they carry, and
    what it reads from outside."""
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
    """A CN graph in numbers, as plain data."""
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
    """The table for the terminal. Loops stand innermost first."""
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
    """[layer] bits of the distinct contents that its CNs read; overlaps of windows count in each content."""
    reader = graph.cn_layer[graph.read_cn]
    pairs = np.unique(np.stack((reader, graph.read_content)), axis=1)
    bits = np.zeros(len(graph.layers), np.int64)
    np.add.at(bits, pairs[0], graph.content_bits[pairs[1]])
    return bits
