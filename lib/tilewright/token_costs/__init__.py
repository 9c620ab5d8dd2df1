"""What tokens of a language model cost: of the first one and of each further one, over contexts and batches."""
