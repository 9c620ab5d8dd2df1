"""Layers in tiles on one core: depth-first schedules for chains of layers, and fused attention."""
