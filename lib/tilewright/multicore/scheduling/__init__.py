"""Multi-core scheduling: times of computation nodes on cores, transfers over links, latency and energy.

The input is a `SchedulingProblem` of plain arrays. Other modules, which read networks and hardware files, fill these
arrays. docs/multi-core-model/scheduling.md has the rules of the model, and docs/proofs/bounds.md has the lower bounds.
"""
