"""Tables, figures, loop nests, physical checks and mapping exports, all made from the records of a run.

A record is the result of one distinct layer problem. It is a dict with the content of one line of `layers.jsonl`
(docs/artifacts.md). This package reports what the artifacts contain; it neither searches nor evaluates mappings.
"""

FACE = (
    "batch_turn",
    "bottlenecks",
    "canvas",
    "checks",
    "error_bars.bars",
    "error_bars.bars_text",
    "error_bars.draws",
    "error_bars.faster",
    "error_bars.table",
    "figure_files",
    "figure_layout",
    "held_costs",
    "multi.bars",
    "multi.cost_ranges",
    "multi.gantt",
    "multi.memory_figure",
    "multi.summary",
    "noted_figure",
    "number_axes",
    "order_turn",
    "other_widths",
    "paper_tables",
    "pareto_figure",
    "port_limits",
    "recorded_mappings",
    "records",
    "run_ledger",
    "run_point",
    "schedule_options",
    "searched_turn",
    "sheet",
    "shown",
    "size_turn",
    "static_parts",
    "terminal_tables",
    "text_tables",
    "uncertainty",
    "verdict",
    "words",
)
"""Modules that other packages may import. All other modules of this package can change without notice."""
