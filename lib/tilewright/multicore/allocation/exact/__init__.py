"""Exact search over allocations.

A relaxation of all schedules, solved as a constraint program, excludes allocations that cannot beat the best known one.
All other allocations are scheduled. The proofs are in docs/proofs.md#exact-allocation.
"""
