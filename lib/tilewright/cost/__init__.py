"""Cost model: energy, latency and their breakdowns, computed by one compiled kernel."""

FACE = (
    "breakdown",
    "energy_terms",
    "latency_terms",
    "ledger",
    "problem",
    "problem_figures",
    "rates",
    "record",
    "waiting",
    "workspace",
)
"""Modules that other packages can import. All other modules of this package are internal."""
