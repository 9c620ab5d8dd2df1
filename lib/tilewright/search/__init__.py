"""Spatial candidates times temporal orders, objectives, and the content-addressed store."""

FACE = (
    "batch",
    "best_order",
    "cost_ranges",
    "evaluate",
    "loma",
    "options",
    "priced_orders",
    "progress",
    "store",
    "summary",
)
"""Modules that rooms above may import; all other modules here are internal and may change."""
