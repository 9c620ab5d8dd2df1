"""Tiles on one core: chains of layers depth first, and attention."""
