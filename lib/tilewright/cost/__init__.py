"""The cost model: energy, latency and their breakdowns from one compiled kernel."""

FACE = (
    "breakdown",
    "energy_terms",
    "ledger",
    "problem",
    "problem_figures",
    "rates",
    "record",
    "workspace",
)
"""Modules that wings may import; what else is here may change without them."""
