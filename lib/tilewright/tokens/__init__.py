"""Time and energy of the first token and of each further token of a language model, over contexts and batches."""
