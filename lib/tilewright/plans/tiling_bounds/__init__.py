"""Lower bounds of latency and energy that hold for every plan of a network on a system.

The proofs are in docs/proofs.md#bounds-of-every-plan.
"""
