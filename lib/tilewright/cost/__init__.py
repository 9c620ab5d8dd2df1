"""The cost model: energy, latency and their breakdowns from one compiled kernel."""

FACE = (
    "breakdown",
    "energy_terms",
    "latency_terms",
    "ledger",
    "problem",
    "problem_figures",
    "rates",
    "record",
    "workspace",
)
"""Modules that rooms above may import; all other modules here are internal and may change."""
