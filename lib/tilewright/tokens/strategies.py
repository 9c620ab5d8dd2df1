"""Names of the ways in which several cores share the steps of a language model."""

TENSOR, DATA, PIPELINE = "tensor", "data", "pipeline"
STRATEGIES = (TENSOR, DATA, PIPELINE)
"""Strategies in the order in which one goes before another of equal time."""
BEST = "best"
CHOICES = (BEST, *STRATEGIES)
"""What `parallel` may be; BEST is the one that takes the least time at each point."""
