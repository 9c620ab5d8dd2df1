"""Inter-core allocation: which core runs which part of which layer, found by a genetic algorithm or given.

Every allocation is judged by the scheduler (`tilewright.multicore.scheduling`); docs/multi-core-model.md#allocation
has the rules.
"""
