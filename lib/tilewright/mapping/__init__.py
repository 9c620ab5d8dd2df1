"""Spatial mappings (given, generated), loop factors, temporal orders and their constraints."""
