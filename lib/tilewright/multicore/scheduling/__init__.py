"""Multi-core scheduling: times of computation nodes on cores, transfers over links, latency and energy.

The input is a `SchedulingProblem` of plain arrays. Modules that know networks and hardware files fill these arrays. The
rules of the model are in docs/multi-core-model.md#scheduling, the lower bounds in docs/proofs.md#bounds.
"""
