"""Layers in tiles on one core: depth-first schedules for chains of layers, and fused attention.

A *layer of a tile* is the part of a layer that is computed for one tile.
"""
