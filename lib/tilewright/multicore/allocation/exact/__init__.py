"""Exact search over allocations: a relaxation of every schedule says which could be better than the best one known.

It is solved as a constraint program; what could be better is scheduled. The proofs are in
docs/proofs.md#exact-allocation.
"""
