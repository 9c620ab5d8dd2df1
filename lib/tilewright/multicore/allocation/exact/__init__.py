"""Exact search over allocations.

A relaxation of all schedules is solved as a constraint program. It excludes allocations that cannot beat the best known
allocation. All other allocations are scheduled. The proofs are in docs/proofs/exact-allocation.md.
"""
