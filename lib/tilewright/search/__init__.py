"""Search for the mapping of a layer: loop orders, search engines, objectives, and the store of results."""

FACE = (
    "batch",
    "best_order",
    "cost_ranges",
    "evaluate",
    "loma",
    "network_choice",
    "options",
    "priced_orders",
    "progress",
    "store",
    "summary",
)
"""Modules that higher packages can import. All other modules of this package are internal and can change."""
