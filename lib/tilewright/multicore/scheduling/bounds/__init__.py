"""Lower bounds on latency and energy of the schedules of a problem (docs/proofs/bounds.md)."""
