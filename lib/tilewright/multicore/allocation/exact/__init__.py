"""Exact search over allocations: a relaxation of all schedules excludes allocations that cannot beat the best one.

The relaxation is solved as a constraint program. Allocations that it does not exclude are scheduled. The proofs are in
docs/proofs.md#exact-allocation.
"""
