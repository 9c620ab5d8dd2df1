"""Inter-core allocation: which core runs which part of which layer, found by a genetic algorithm or given.

The scheduler (`tilewright.multicore.scheduling`) evaluates every allocation; docs/multi-core-model.md#allocation has
the rules.
"""
