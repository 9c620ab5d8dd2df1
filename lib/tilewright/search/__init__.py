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
"""Modules that wings may import; what else is here may change without them."""
