"""Costs of tokens of a language model: the first one and each further one, over contexts and batches."""
