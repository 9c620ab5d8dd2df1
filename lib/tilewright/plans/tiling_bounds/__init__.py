"""Lower bounds of latency and energy that no plan of a network on a system can beat.

The proofs are in docs/proofs/every-plan-bounds.md.
"""
