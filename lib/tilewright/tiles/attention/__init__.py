"""Attention fused on one core: scores, softmax and weighted values in tiles, so that scores stay on chip."""
