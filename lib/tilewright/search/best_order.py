"""Best loop order of a layer, searched for many cores one after another.

Two tables are cached. Cores with the same memory capacities share the table of allocations of loops to memories. Cores
with the same port widths share the table of accesses, which has one entry for each state. A state is the set of loops
that an operand keeps below a boundary between two memory levels (`best_order_kernel`).
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.record_pointer import pointer_to
from tilewright.cost.problem import PROBLEM_DTYPE
from tilewright.cost.tile_kernel import WHOLE_TILES
from tilewright.cost.workspace import WORKSPACE_DTYPE
from tilewright.search.batch import OrderBatch
from tilewright.search.best_order_kernel import (
    CANDIDATE_DTYPE,
    MOST_LOOPS,
    SEARCH_DTYPE,
    TABLES_DTYPE,
    find_best,
)

MOST_ORDERS = 1000
"""Largest number of loop orders for which tables are made, per spatial mapping."""
_KEPT_BYTES = 256 * 2**20
"""Size limit of the cached tables of a thread, in bytes."""
_of_thread = threading.local()
_numbers = itertools.count()


@dataclass(frozen=True)
class BestFound:
    """Best order of a layer."""

    problem: np.void
    """Problem record (PROBLEM_DTYPE) of the spatial mapping with the best order."""
    energy_pj: float
    latency_cycles: float
    workspace: np.void
    """Record of WORKSPACE_DTYPE with the breakdown, valid until the next search of this thread."""


@dataclass(frozen=True, eq=False)
class OrderSet:
    """Orders of a layer, one batch per spatial mapping.

    For each core, callers overwrite the problems in `arrays` and then call `best`. The result of `best` is exact:
    computing the cost of every order would give the same order. Of equally good orders, the first one wins. An object
    of this class is not thread-safe.
    """

    batches: tuple[OrderBatch, ...]
    objective: str
    arrays: np.ndarray = field(init=False)
    """Problem records (PROBLEM_DTYPE) of the spatial mappings, one for each batch."""
    _candidates: np.ndarray = field(init=False)
    _address: int = field(init=False)
    _orders: list[np.ndarray] = field(init=False, default_factory=list)
    _number: int = field(init=False, default_factory=lambda: next(_numbers))

    def __post_init__(self) -> None:
        arrays = np.zeros(len(self.batches), PROBLEM_DTYPE)
        for place, batch in enumerate(self.batches):
            arrays[place] = batch.problem.arrays
        object.__setattr__(self, "arrays", arrays)
        object.__setattr__(self, "_candidates", np.zeros(len(self.batches), CANDIDATE_DTYPE))
        object.__setattr__(self, "_address", pointer_to(self._candidates))
        for place in range(len(self.batches)):
            self._write_candidate(place)

    def best(self) -> BestFound | None:
        """Best order over all spatial mappings; None if no order fits."""
        search, tables, workspace = _scratch()
        self._lend_buffers()
        powers = OBJECTIVES[self.objective]
        search["candidates"] = self._address
        search["energy_power"], search["latency_power"] = powers.energy, powers.latency
        native_function(find_best, RECORDS)(search, tables, workspace, len(self.batches))
        place = int(search["best_candidate"])
        if place < 0:
            return None
        return BestFound(self.arrays[place], float(search["best_energy"]), float(search["best_latency"]), workspace)

    @property
    def bounds(self) -> list[np.ndarray]:
        """Lower bounds of energy and latency, one array [order, 2] per batch. The bounds are infinite for an order that
        does not fit.

        The bounds come from the last call of `best`, and are valid until the next search of this thread.
        """
        ends = np.cumsum(self._candidates["order_count"]).tolist()
        return [_of_thread.bounds[end - len(batch.orders) : end] for end, batch in zip(ends, self.batches, strict=True)]

    def _write_candidate(self, place: int) -> None:
        batch, candidate = self.batches[place], self._candidates[place]
        problem = batch.problem.arrays
        orders = np.ascontiguousarray(batch.orders, np.int8)
        self._orders.append(orders)
        counts = np.bincount(batch.orders[0], minlength=len(batch.loops))
        depth = int(problem.level_count.max())
        candidate["problem"] = pointer_to(self.arrays[place : place + 1])
        candidate["orders"] = pointer_to(orders)
        candidate["order_count"], candidate["length"] = orders.shape
        candidate["depth"], candidate["row_length"] = depth, depth * int(problem.operand_count)
        candidate["kinds"] = kinds = len(batch.loops)
        candidate["loop_dimension"][:kinds] = [batch.problem.dimensions.index(d) for d, _ in batch.loops]
        candidate["loop_size"][:kinds] = [size for _, size in batch.loops]
        candidate["repeats"][:kinds] = counts

    def _lend_buffers(self) -> None:
        """Write the addresses of the cached tables into the records of the search. The search reads earlier results
        from these tables and adds new results to them."""
        candidates, first = self._candidates, self.arrays[0]
        rows = (self._number, *[first[name].tobytes() for name in _CAPACITIES])
        found, known = _kept_buffers().take(rows, self._new_rows)
        candidates["rows"], candidates["rows_are_known"] = found, known
        accesses = (self._number, *[first[name].tobytes() for name in _WIDTHS])
        found, known = _kept_buffers().take(accesses, self._new_accesses)
        candidates["accesses"], candidates["accesses_are_known"] = found, known
        counts = candidates["order_count"]
        total = int(counts.sum())
        if len(getattr(_of_thread, "bounds", ())) < total:
            _of_thread.bounds = np.empty((total, 2))
        place = pointer_to(_of_thread.bounds)
        candidates["bounds"] = place + _of_thread.bounds.strides[0] * (np.cumsum(counts) - counts)

    def _new_rows(self) -> list[np.ndarray]:
        lengths = self._candidates["order_count"] * self._candidates["row_length"]
        return [np.empty(length, np.int8) for length in lengths.tolist()]

    def _new_accesses(self) -> list[np.ndarray]:
        first = self.arrays[0]
        services = int(first["port_start"][first["port_count"]])
        return [np.empty((services, states, 2)) for states in (self._candidates["repeats"] + 1).prod(axis=1).tolist()]


class _Buffers:
    """Cache of buffers for tables. The key of a buffer contains all values on which its content depends.

    If all buffers together exceed the size limit, the least recently used buffers are dropped.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[list[np.ndarray], list[int]]] = {}
        self._bytes = 0

    def take(self, key: tuple[object, ...], make: Callable[[], list[np.ndarray]]) -> tuple[list[int], bool]:
        """Pair (addresses of the buffers with the key `key`, whether these buffers were in the cache before this call).
        The function `make` makes missing buffers.
        """
        found = self._kept.pop(key, None)
        known = found is not None
        if found is None:
            arrays = make()
            found = arrays, [pointer_to(array) for array in arrays]
            self._bytes += sum(array.nbytes for array in arrays)
        self._kept[key] = found
        while self._bytes > _KEPT_BYTES and len(self._kept) > 2:  # buffers of the current search stay
            arrays, _ = self._kept.pop(next(iter(self._kept)))
            self._bytes -= sum(array.nbytes for array in arrays)
        return found[1], known


RECORDS = (SEARCH_DTYPE, TABLES_DTYPE, WORKSPACE_DTYPE)
_CAPACITIES = ("memory_bits", "force_double_buffering", "holds_everything")
"""Fields of a problem that differ between cores and determine the allocation of loops to memories."""
_WIDTHS = ("bandwidth_max_bits", "bandwidth_min_bits")
"""Fields of a problem that differ between cores and determine the accesses and transfers of a state (a set of loops
below a boundary)."""


def can_be_tabulated(batch: OrderBatch) -> bool:
    """True if tables can replace the evaluation of every order in the batch. The batch must be small and have no level
    boundaries. The costs of its orders must depend only on states: a state is the set of loops below a boundary, in any
    order.

    The costs depend on the order of the loops in three cases:

    * Windows slide over the output.
    * The rounding of fractional tile sizes depends on the order.
    * The rules of the core's control forbid some orders.
    """
    problem = batch.problem.arrays
    few = 0 < len(batch.orders) <= MOST_ORDERS and batch.orders.shape[1] <= MOST_LOOPS and batch.boundaries is None
    whole = bool(problem.switches[WHOLE_TILES]) or not problem.spatial_fractional
    return few and whole and not problem.relation_used[0].any() and not problem.has_control


def _scratch() -> tuple[np.void, np.void, np.void]:
    """Scratch records of this thread: triple (search, tables, workspace) of the types in RECORDS.

    The records have the type `np.void`, because reading a field by name is ten times faster than with `np.record`.
    """
    if not hasattr(_of_thread, "scratch"):
        _of_thread.scratch = tuple([np.zeros(1, dtype)[0] for dtype in RECORDS])
    found: tuple[np.void, np.void, np.void] = _of_thread.scratch
    return found


def _kept_buffers() -> _Buffers:
    """Cache of this thread for the buffers of tables."""
    if not hasattr(_of_thread, "buffers"):
        _of_thread.buffers = _Buffers()
    buffers: _Buffers = _of_thread.buffers
    return buffers
