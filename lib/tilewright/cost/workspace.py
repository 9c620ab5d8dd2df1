"""The arrays a kernel writes while it evaluates one loop order; after a batch of one they are the full breakdown."""

from typing import NamedTuple

import numpy as np

from tilewright.cost.problem import Problem

# Where `totals` holds what. Energies in pJ, the rest in cycles.
(
    ENERGY,
    MEMORY_ENERGY,
    LATENCY,
    IDEAL_TEMPORAL,
    STALL,
    ONLOADING,
    OFFLOADING,
    TOTAL_COUNT,
) = range(8)

# Outcome of an evaluation, and (in `failure`) the memory and the operand concerned.
FITS, TOO_SMALL, TOO_SMALL_TOGETHER, LOOPS_LEFT, NO_PORT = range(5)


class Workspace(NamedTuple):
    """Axes as in `Problem`; `v` is 0 for the fractional and 1 for the integer spatial representation."""

    bound: np.ndarray  # [o, m] temporal loops allocated up to and including level m
    merged: np.ndarray  # [o, m] the same after merging stationary loops down
    dimension_size: np.ndarray  # [o, d] running tile sizes of the allocation
    slice_dimension_size: np.ndarray  # [d] scratch: the same while slices of one operand are tried
    slice_bits: np.ndarray  # [j, i] size of operand j of a memory with i more loops
    slice_cost: np.ndarray  # [j, i]
    window_size: np.ndarray  # [r, 2] running sizes of sliding windows
    window_before: np.ndarray  # [r, 2] distinct positions and reuse so far
    stationary_cycles: np.ndarray  # [o] innermost stationarity at the array
    cycles: np.ndarray  # [o, a] cycles in which the loops below arch level a run once
    top_relevant: np.ndarray  # [o, a]
    top_irrelevant: np.ndarray  # [o, a]
    tile_elements: np.ndarray  # [v, o, a]
    tile_precision: np.ndarray  # [v, o, a]
    partial_sum: np.ndarray  # [v, a] bool, of the output
    reuse_above: np.ndarray  # [v, a] output accumulations at level a and above
    amount: np.ndarray  # [v, o, m, x] elements per period
    precision: np.ndarray  # [v, o, m, x] bits
    period: np.ndarray  # [v, o, m, x] cycles
    count: np.ndarray  # [v, o, m, x] periods
    bandwidth: np.ndarray  # [v, o, m, x] average bits per cycle, truncated
    exact_bandwidth: np.ndarray  # [v, o, m, x] average bits per cycle
    window: np.ndarray  # [v, o, m, x] cycles a transfer may take without double buffering
    words: np.ndarray  # [o, m, x] word accesses
    energy: np.ndarray  # [o, m, x] pJ
    utilization: np.ndarray  # [o, m] own share of the memory
    shared_utilization: np.ndarray  # [o, m] with the operands it shares the memory with
    effective: np.ndarray  # [o, m] own effective share
    shared_effective: np.ndarray  # [o, m]
    double_buffered: np.ndarray  # [o, a] bool
    real: np.ndarray  # [o, m, x] cycles of one transfer
    allowed: np.ndarray  # [o, m, x] cycles it may take
    port_stall: np.ndarray  # [p] stall (positive) or slack
    port_union: np.ndarray  # [p] union of transfer windows
    activity: np.ndarray  # [j, 4] scratch: allowed, period, count, union per period
    loading: np.ndarray  # [j] scratch
    loading_floor: np.ndarray  # [j] scratch
    loading_service: np.ndarray  # [j] scratch
    load: np.ndarray  # [o, m, x] cycles of loading before or after the steady state
    totals: np.ndarray  # [TOTAL_COUNT]
    failure: np.ndarray  # [memory, operand, level]
    failure_bits: np.ndarray  # [needed, limit]


def new_workspace(problem: Problem, loop_count: int) -> Workspace:
    """A workspace for `problem` and up to `loop_count` temporal loops."""
    operands, depth, _ = problem.port_of.shape
    dimensions = problem.kind.shape[1]
    relations = problem.relation_size.shape[0]
    ports = max(1, problem.port_shared_by_inputs.shape[0])
    services = max(1, problem.service_operand.shape[0])
    arch = depth + 2

    def whole(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    def real(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float64)

    link = (2, operands, depth, 4)
    return Workspace(
        bound=whole(operands, depth),
        merged=whole(operands, depth),
        dimension_size=real(operands, dimensions),
        slice_dimension_size=real(dimensions),
        slice_bits=real(3, loop_count + 2),
        slice_cost=real(3, loop_count + 2),
        window_size=real(relations, 2),
        window_before=real(relations, 2),
        stationary_cycles=whole(operands),
        cycles=whole(operands, arch),
        top_relevant=whole(operands, arch),
        top_irrelevant=whole(operands, arch),
        tile_elements=whole(2, operands, arch),
        tile_precision=whole(2, operands, arch),
        partial_sum=np.zeros((2, arch), np.bool_),
        reuse_above=real(2, arch + 2),
        amount=whole(*link),
        precision=whole(*link),
        period=whole(*link),
        count=whole(*link),
        bandwidth=whole(*link),
        exact_bandwidth=real(*link),
        window=whole(*link),
        words=whole(operands, depth, 4),
        energy=real(operands, depth, 4),
        utilization=real(operands, depth),
        shared_utilization=real(operands, depth),
        effective=real(operands, depth),
        shared_effective=real(operands, depth),
        double_buffered=np.zeros((operands, arch), np.bool_),
        real=whole(operands, depth, 4),
        allowed=whole(operands, depth, 4),
        port_stall=whole(ports),
        port_union=whole(ports),
        activity=whole(services, 4),
        loading=real(services),
        loading_floor=real(services),
        loading_service=whole(services),
        load=real(operands, depth, 4),
        totals=real(TOTAL_COUNT),
        failure=whole(3),
        failure_bits=real(2),
    )
