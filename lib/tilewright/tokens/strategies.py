"""Names of the ways in which several cores share the steps of a language model."""

TENSOR, DATA, PIPELINE = "tensor", "data", "pipeline"
STRATEGIES = (TENSOR, DATA, PIPELINE)
"""Strategies. If two strategies take equal time, the first one is preferred."""
BEST = "best"
CHOICES = (BEST, *STRATEGIES)
"""Values of the option `parallel`. BEST chooses, for each batch and context, the strategy that takes the least time."""
