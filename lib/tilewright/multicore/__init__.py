"""Networks on several cores: computation nodes (CNs), the schedules of CNs, and the allocation of CNs to cores."""

FACE = (
    "allocation.evaluate",
    "allocation.options",
    "allocation.search",
    "allocation.space",
    "nodes.cut_memory",
    "nodes.generation",
    "nodes.graph",
    "nodes.partial_sums",
    "nodes.pieces",
    "nodes.reduction_cuts",
    "nodes.stacks",
    "nodes.tiling",
    "nodes.tiling_options",
    "nodes.weights",
    "scheduling.assembly",
    "scheduling.bounds.classes",
    "scheduling.bounds.forwarding",
    "scheduling.bounds.limits",
    "scheduling.bounds.lower_bounds",
    "scheduling.bounds.work",
    "scheduling.core_costs",
    "scheduling.cost_classes",
    "scheduling.energy_ledger",
    "scheduling.options",
    "scheduling.problem",
    "scheduling.result",
    "scheduling.schedule",
    "scheduling.simulate",
    "scheduling.system_assembly",
)
"""Modules of this package that wings (optional parts of tilewright) may import. All other modules are internal and can
change.
"""
