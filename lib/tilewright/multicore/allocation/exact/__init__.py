"""The exact search over allocations: a relaxation of every schedule, solved as a constraint program, says which
allocations could be better than the best one known; those are scheduled (docs/proofs.md#exact-allocation has the
proofs)."""
