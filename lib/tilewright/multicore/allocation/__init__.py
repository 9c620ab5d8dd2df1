"""Inter-core allocation: which core runs which part of which layer, found by a genetic algorithm or given.

Every allocation is judged by the scheduler (`tilewright.multicore.scheduling`); docs/allocation.md has the rules.
"""
