"""Costs of tokens of a language model: the first token and each further token, over contexts and batches."""
