"""The cost model: one loop order to energy and latency (compiled). Batches, searches and breakdowns all call this."""

from tilewright.compiled import kernel
from tilewright.cost.allocation_kernel import OUTPUT_INDEX, allocate
from tilewright.cost.energy_kernel import add_energy, add_terms
from tilewright.cost.latency_kernel import add_latency
from tilewright.cost.reuse_kernel import count_cycles, merge_stationary_loops, record_data_movement, size_tiles
from tilewright.cost.workspace import (
    FITS,
    IDEAL_TEMPORAL,
    LATENCY,
    NO_PORT,
    OFFLOADING,
    ONLOADING,
    STALL,
)


@kernel
def evaluate_order(problem, ws):
    """Allocate one loop order (innermost first) and cost it; returns an outcome, results are in `ws`."""
    outcome = allocate(problem, ws)
    if outcome != FITS:
        return outcome
    return evaluate_allocation(problem, ws)


@kernel
def evaluate_allocation(problem, ws):
    """Cost the allocation in `ws.bound`."""
    merge_stationary_loops(problem, ws)
    count_cycles(problem, ws)
    size_tiles(problem, ws, 0)
    record_data_movement(problem, ws, 0)
    integer = 0
    if problem.spatial_differs:
        integer = 1
        size_tiles(problem, ws, 1)
        record_data_movement(problem, ws, 1)
    memory_energy = add_energy(problem, ws)
    if memory_energy < 0:
        return NO_PORT
    total_cycles = ws.cycles[OUTPUT_INDEX, problem.level_count[OUTPUT_INDEX]]
    add_latency(problem, ws, integer, total_cycles)
    totals = ws.totals
    totals[IDEAL_TEMPORAL] = float(total_cycles)
    totals[LATENCY] = (
        totals[IDEAL_TEMPORAL] + totals[STALL] + totals[ONLOADING] + totals[OFFLOADING] + problem.drain_cycles
    )
    add_terms(problem, ws, memory_energy)
    return FITS
