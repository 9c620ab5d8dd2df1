"""Depth-first schedules on one core: layers run in tiles, one tile through all layers of a stack before the next."""
