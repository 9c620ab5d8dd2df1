"""Record of an exact search over the orders of one multiset of loops, with its tables (docs/proofs.md#exact-search).

The tables are those of sections 2 to 6 there; section 8 says where the outcome could depend on the order in which the
model multiplies.
"""

import math
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from tilewright.base.compiled import Kernel, native_function
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import SWITCHES
from tilewright.cost.problem import PROBLEM_DTYPE, Problem, new_record
from tilewright.cost.workspace import WORKSPACE_DTYPE, Workspace
from tilewright.mapping.temporal import LoopMultiset
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.expansion_kernel import fill_tables, mark_tables, sum_tables
from tilewright.search.exact.lattice_record import (
    EXACT_DTYPE,
    MAX_BOUNDARIES,
    MAX_BUSY_PORTS,
    MAX_LATTICE,
    MAX_PLACED,
    MAX_SYMBOLS,
)
from tilewright.search.exact.rules_kernel import find_floor


def order_sensitive_dimensions(problem: Problem, search: np.record) -> set[int]:
    """Dimensions whose tile sizes can depend on the order of multiplication in the last bit.

    With a spatial factor that is no binary fraction, if there are two odd loops to multiply; none where tiles are
    whole.
    """
    if problem.switches[SWITCHES.index("whole_tiles")]:
        return set()
    odd = dict.fromkeys(range(problem.dimension_count), 0)
    for j in range(search.symbol_count):
        if search.loop_size[j] & (search.loop_size[j] - 1):
            odd[int(search.loop_dimension[j])] += int(search.multiplicity[j])
    sensitive = set()
    for o in range(problem.operand_count):
        for s in range(problem.spatial_start[o].max()):
            dimension = int(problem.spatial_dimension[o, s])
            if Fraction(float(problem.spatial_factor[0, o, s])).denominator > 2**20 and odd[dimension] > 1:
                sensitive.add(dimension)
    return sensitive


def tiles_are_rounded(problem: Problem, o: int) -> bool:
    """Whether the model multiplies tiles of an operand from numbers that are not exact in binary.

    Those are ratios of window positions, and spatial factors that are no binary fractions.
    """
    if not problem.spatial_differs:
        return False
    factors = [float(factor) for factor in problem.spatial_factor[0, o, : problem.spatial_start[o].max()]]
    return bool(problem.relation_used[o].any()) or any(Fraction(f).denominator > 2**20 for f in factors)


def outputs_outgrow_sums(problem: Problem) -> bool:
    """Whether a memory has less to keep while outputs are accumulated than when they are final (fault B44)."""
    return bool(problem.final_precision_bits > problem.precision_bits[0])


def truncates_by_order(problem: Problem, search: np.record) -> bool:
    """Whether the reference may truncate the size of a window differently in different orders (fault B12)."""
    if problem.switches[SWITCHES.index("exact_window_sizes")]:
        return False
    windows = {int(d) for d in problem.relation_dimension[: problem.relation_count].ravel()}
    return bool(windows & order_sensitive_dimensions(problem, search))


OUTPUT = 0
TABLE_STEPS = (fill_tables, mark_tables, sum_tables)
TABLE_RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, EXACT_DTYPE)
FLOOR_SWITCHES = ("whole_tiles", "exact_window_sizes")
"""Switches under which one more loop below a boundary never adds to what crosses it."""
CHUNK_POINTS = 4096
"""Points of the lattice filled between two looks at the clock."""


def new_search(
    prepared: PreparedProblem,
    multiset: LoopMultiset,
    workspace: Workspace,
    objective: str,
    free: bool,
    in_time: Callable[[], bool] = lambda: True,
) -> np.record | None:
    """The record of a search over all orders of a multiset, with all its tables; None where there was no time for them.

    Raises MappingError where the problem is larger than the record has room for, and what `in_time` raises.
    """
    search = _described(prepared, multiset, objective, free)
    problem = prepared.arrays
    for entry, argument in _table_steps(problem, search):
        if not in_time():
            return None
        native_function(entry, TABLE_RECORDS)(problem, workspace, search, argument)
    ports = int(search.most_busy_ports)
    if ports > MAX_BUSY_PORTS:
        raise MappingError(f"the exact search has room for {MAX_BUSY_PORTS} ports above a level, this has {ports}")
    return search


def has_whole_tiles(problem: Problem) -> bool:
    """Whether tiles are whole numbers whatever the order in which sizes are multiplied."""
    return not (problem.spatial_differs or problem.spatial_fractional)


def energy_floor(prepared: PreparedProblem, multiset: LoopMultiset, workspace: Workspace) -> float:
    """A lower bound of the energy of all mappings in pJ, but for what grows with latency; 0 where none is claimed.

    Raises MappingError as `new_search` does.
    """
    problem = prepared.arrays
    sure = has_whole_tiles(problem) and not outputs_outgrow_sums(problem)
    if not sure or not all(problem.switches[SWITCHES.index(name)] for name in FLOOR_SWITCHES):
        return 0.0
    search = _described(prepared, multiset, "energy", True)
    native_function(find_floor, TABLE_RECORDS)(problem, workspace, search, 0)
    return float(search.floor_energy)


def _described(prepared: PreparedProblem, multiset: LoopMultiset, objective: str, free: bool) -> np.record:
    """Record of this thread with what is searched, and no tables. Raises MappingError where there is no room."""
    problem = prepared.arrays
    shape = [count + 1 for _, count in multiset.loops]
    _check_room(problem, multiset, math.prod(shape))
    search = _cleared_record()
    powers = OBJECTIVES[objective]
    search.energy_power, search.latency_power, search.free = powers.energy, powers.latency, free
    search.latency_counts = powers.latency > 0 or problem.energy_pj_a_cycle > 0
    search.wide_final = free and outputs_outgrow_sums(problem)
    search.symbol_count, search.loop_count, search.lattice_size = len(shape), multiset.length, math.prod(shape)
    search.length = multiset.length
    for j, ((dimension, factor), count) in enumerate(multiset.loops):
        search.loop_dimension[j], search.loop_size[j] = prepared.dimensions.index(dimension), factor
        search.multiplicity[j], search.stride[j] = count, math.prod(shape[j + 1 :])
    _number_boundaries(problem, search)
    for o in range(problem.operand_count):
        search.inexact[o] = tiles_are_rounded(problem, o)
    search.same_in_any_order = not order_sensitive_dimensions(problem, search)
    return search


def _table_steps(problem: Problem, search: np.record) -> Iterator[tuple[Kernel, int]]:
    """The steps in which tables are made, each short enough to stop after it."""
    for _ in range(0, int(search.lattice_size), CHUNK_POINTS):
        yield fill_tables, CHUNK_POINTS
    yield mark_tables, 0
    for operand in range(int(problem.operand_count)):
        yield sum_tables, operand


_records = threading.local()
_LARGE_BYTES = 1 << 19


def _cleared_record() -> np.record:
    """Record of this thread, at zero but for the large fields, which each search fills as far as it reads them.

    One record serves all searches of a thread: a new one costs more than a small search, in pages of memory.
    """
    if not hasattr(_records, "search"):
        _records.search = new_record(EXACT_DTYPE)
        _records.search.bucket[...] = -1
        _records.small = [name for name in EXACT_DTYPE.names or () if EXACT_DTYPE[name].itemsize < _LARGE_BYTES]
    search: np.record = _records.search
    kept = int(search.slot_count)
    for name in _records.small:
        search[name] = 0
    search.slot_count = kept  # which hashes the search before has left to be forgotten
    return search


def _check_room(problem: Problem, multiset: LoopMultiset, points: int) -> None:
    boundaries = int(problem.level_count[: problem.operand_count].sum()) - int(problem.operand_count)
    for what, count, limit in (
        ("loops", multiset.length, MAX_PLACED),
        ("distinct loops", len(multiset.loops), MAX_SYMBOLS),
        ("multisets of loops", points, MAX_LATTICE),
        ("boundaries between memory levels", boundaries, MAX_BOUNDARIES),
    ):
        if count > limit:
            raise MappingError(f"the exact search has room for {limit} {what}, this problem has {count}")
    if problem.relation_used[OUTPUT].any():
        raise MappingError("the exact search has no bounds for outputs that are addressed by a sliding window")


def _number_boundaries(problem: Problem, search: np.record) -> None:
    boundary = level = 0
    for o in range(problem.operand_count):
        search.first_boundary[o], search.first_level[o] = boundary, level
        level += int(problem.level_count[o])
        for m in range(problem.level_count[o] - 1):
            search.boundary_operand[boundary], search.boundary_level[boundary] = o, m
            boundary += 1
    search.boundary_count = boundary
