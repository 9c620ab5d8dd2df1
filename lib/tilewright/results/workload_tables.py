"""Tables of a network that was read from a file: the layers with their work and tensors, and the share of the work that
has costs.
"""

import pandas

from tilewright.base.errors import Unused, count_of
from tilewright.base.harmless import ended_lines
from tilewright.base.operator_groups import work_counts
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.words import short_layer_name
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.onnx.coverage import Coverage, OperatorCoverage

_LONGEST_NOTE = 400
"""Longest notice below the table, in characters. Longer notices are cut; the artifact has the full text."""
_WIDTH = 150
IN_PAPER = (
    "layer",
    "operator_type",
    "repeats",
    "mac_count",
    "operation_count",
    "weight_bits",
    "input_bits",
    "output_bits",
)
"""Columns of `workload_table` that the table for a paper contains."""


def workload_table(workload: Workload) -> pandas.DataFrame:
    """Table with a row for each layer in execution order: sizes, work, and the elements and bits of weights and
    activations.

    A row can represent several equal layers. Such a row has the number of these layers, and the sums of their work and
    data.
    """
    columns = [
        "layer", "operator_type", "origin", "unit", "loop_sizes", "mac_count", "operation_count",
        "weight_elements", "weight_bits", "input_elements", "input_bits", "output_elements", "output_bits",
    ]  # fmt: skip
    columns += ["repeats"] if workload.is_folded else []
    return pandas.DataFrame([_row(workload, node) for node in workload.layers_in_order], columns=columns)


def _row(workload: Workload, node: WorkloadNode) -> dict[str, object]:
    layer = node.layer
    assert layer is not None
    tensors = [workload.tensor_of[name] for name in node.inputs if name in workload.tensor_of]
    outputs = [workload.tensor_of[name] for name in node.outputs if name in workload.tensor_of]
    weights = [tensor for tensor in tensors if tensor.is_constant]
    activations = [tensor for tensor in tensors if not tensor.is_constant]
    row: dict[str, object] = {
        "layer": layer.name,
        "operator_type": layer.operator_type,
        "origin": node.origin,
        "unit": node.unit,
        "loop_sizes": " ".join(f"{dimension}={size}" for dimension, size in layer.loop_sizes if size != 1),
        **work_counts(node.unit, layer.mac_count * node.repeats),
    }
    if workload.is_folded:
        row["repeats"] = node.repeats
    known = bool(workload.tensors)
    for kind, group in (("weight", weights), ("input", activations), ("output", outputs)):
        row[f"{kind}_elements"] = sum(tensor.element_count for tensor in group) * node.repeats if known else None
        row[f"{kind}_bits"] = sum(tensor.size_bits for tensor in group) * node.repeats if known else None
    return row


def workload_text(workload: Workload) -> str:
    """Text of the layers of a network for the terminal."""
    rows = workload_table(workload).to_dict("records")
    macs = sum(row["mac_count"] for row in rows)
    operations = sum(row["operation_count"] for row in rows)
    layers = sum(row.get("repeats", 1) for row in rows)
    totals = count_of(layers, "layer"), count_of(macs, "MAC"), count_of(operations, "other operation")
    title = f"{workload.name}: {', '.join(totals)}"
    known = bool(workload.tensors)
    elements = ("weights\n[elements]", "inputs\n[elements]", "outputs\n[elements]") if known else ()
    table = text_table(title, ("layer", "operator", "loop sizes"), ("MACs", "other\noperations", *elements))
    for row in rows:
        also = f"{row['repeats']:,} x " if row.get("repeats", 1) > 1 else ""
        name = also + short_layer_name(row["layer"], row["operator_type"], 40)
        counts = [row["mac_count"], row["operation_count"]]
        if known:
            counts += [row[f"{kind}_elements"] for kind in ("weight", "input", "output")]
        table.add_row(name, row["operator_type"], row["loop_sizes"], *(_number(count) for count in counts))
    return render(table, _WIDTH)


def coverage_text(coverage: Coverage) -> str:
    """Text for the terminal with the share of a network's work that has costs, by operator type. Notices are at the
    end.
    """
    share_is_known = coverage.modelled_mac_share is not None
    numbers = ("nodes", "MACs", "share\nof MACs", "other\noperations", "bytes read\nand written")
    table = text_table("Coverage", ("operator", "status"), numbers)
    for row in coverage.operators:
        share = _share(row.mac_count / coverage.total_mac_count if share_is_known else None) if row.mac_count else "-"
        counts = (str(row.node_count), _number(row.mac_count), share, _number(row.operation_count), _bytes(row))
        table.add_row(row.operator_type, row.status, *counts)
    table.add_section()
    table.add_row(
        "costed",
        "",
        str(sum(row.node_count for row in coverage.operators)),
        f"{coverage.modelled_mac_count:,}",
        _share(coverage.modelled_mac_share),
        _share(coverage.modelled_operation_share),
        "",
    )
    # Commands report unused parts of files at their end.
    others = (notice for notice in coverage.notices if not isinstance(notice, Unused))
    notes = ended_lines(map(_shortened, others), "note: ")
    return render(table, _WIDTH) + notes


def _share(share: float | None) -> str:
    """Text of a share of work; `unknown` if the share is not known."""
    return "unknown" if share is None else f"{share:.1%}"


def _number(count: int | None) -> str:
    if count is None:
        return "unknown"
    return f"{count:,}" if count else "-"


def _bytes(row: OperatorCoverage) -> str:
    return _number(None if row.moved_bits is None else -(-row.moved_bits // 8))


def _shortened(notice: str) -> str:
    return notice if len(notice) <= _LONGEST_NOTE else notice[:_LONGEST_NOTE].rsplit(",", 1)[0] + ", ..."
