"""Spatial mappings (given or generated), loop factors, temporal orders and the constraints on them."""
