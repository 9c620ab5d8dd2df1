"""Multi-core scheduling: times of computation nodes on cores, transfers over links, latency and energy.

The input is a `SchedulingProblem` of plain arrays. Other modules, which read networks and hardware files, fill these
arrays. docs/multi-core-model.md#scheduling has the rules of the model, and docs/proofs.md#bounds has the lower bounds.
"""
