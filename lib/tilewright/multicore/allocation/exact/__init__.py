"""Exact search over allocations: a relaxation of all schedules bounds which allocations could beat the best known one.

The relaxation is solved as a constraint program; allocations that it does not exclude are scheduled. The proofs are in
docs/proofs.md#exact-allocation.
"""
