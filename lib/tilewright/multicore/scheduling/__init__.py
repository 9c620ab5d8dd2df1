"""Multi-core scheduling: what runs when on which core, which data moves when over which links, and what that costs.

The input is a `SchedulingProblem` of plain arrays, filled by whoever knows networks and hardware files; the rules of
the model are in docs/multi-core-model.md#scheduling, the lower bounds in docs/proofs.md#bounds.
"""
