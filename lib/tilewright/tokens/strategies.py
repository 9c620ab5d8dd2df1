"""Names of the ways in which several cores share the steps of a language model."""

TENSOR, DATA, PIPELINE = "tensor", "data", "pipeline"
STRATEGIES = (TENSOR, DATA, PIPELINE)
"""Strategies in their order of preference at equal time."""
BEST = "best"
CHOICES = (BEST, *STRATEGIES)
"""Values of the option `parallel`; BEST is the strategy that takes the least time at each point."""
