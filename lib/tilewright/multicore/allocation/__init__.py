"""Inter-core allocation: the core that runs each part of each layer, found by a search or given by the user.

The scheduler (`tilewright.multicore.scheduling`) evaluates every allocation. The rules are in
docs/multi-core-model/allocation.md.
"""
