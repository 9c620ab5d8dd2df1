"""Networks on several cores: computation nodes (CNs), the schedules of CNs, and the allocation of CNs to cores."""

FACE = (
    "allocation.evaluate",
    "allocation.options",
    "allocation.search",
    "allocation.space",
    "nodes.cut_memory",
    "nodes.generation",
    "nodes.graph",
    "nodes.pieces",
    "nodes.stacks",
    "nodes.tiling",
    "nodes.tiling_options",
    "nodes.weights",
    "scheduling.assembly",
    "scheduling.bounds.lower_bounds",
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
"""Modules that wings may import. All other modules of this package can change without notice to the wings."""
