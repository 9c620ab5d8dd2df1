"""Names of the strategies by which several cores share the steps of a language model."""

TENSOR, DATA, PIPELINE = "tensor", "data", "pipeline"
STRATEGIES = (TENSOR, DATA, PIPELINE)
"""Strategies, in order of preference: if two strategies take equal time, the first one is chosen."""
BEST = "best"
CHOICES = (BEST, *STRATEGIES)
"""Values of the option `parallel`. BEST chooses the strategy with the least time, for each batch and context."""
