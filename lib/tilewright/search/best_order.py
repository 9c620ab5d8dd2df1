"""The best order of a layer's loops, on one core after the other: what does not depend on figures is kept."""

import threading
from dataclasses import dataclass, field

import numpy as np

from tilewright.compiled import native_function
from tilewright.cost.problem import PROBLEM_DTYPE, Problem, new_record
from tilewright.cost.tile_kernel import WHOLE_TILES
from tilewright.cost.workspace import WORKSPACE_DTYPE, Workspace, new_workspace
from tilewright.objectives import OBJECTIVES
from tilewright.record_pointer import pointer_to
from tilewright.search.batch import OrderBatch
from tilewright.search.best_order_kernel import (
    CANDIDATE_DTYPE,
    MOST_LOOPS,
    SEARCH_DTYPE,
    TABLES_DTYPE,
    find_best,
)

MOST_ORDERS = 1000
"""Orders of a spatial mapping: more are no matter of tables."""
_KEPT_CAPACITIES = 16
"""Capacities of the memories for which it is kept where the allocator puts the loops."""
_of_thread = threading.local()


@dataclass(frozen=True)
class BestFound:
    """The best order of a layer."""

    problem: Problem
    energy_pj: float
    latency_cycles: float
    workspace: Workspace
    """Its breakdown, until the next search of this thread."""


@dataclass(frozen=True, eq=False)
class OrderSet:
    """The orders of a layer with its spatial mappings, a batch for each; `arrays` has their problems, to be written to.

    Results are those of costing all orders: the first of the best under the objective. Not for several threads.
    """

    batches: tuple[OrderBatch, ...]
    objective: str
    arrays: np.ndarray = field(init=False)
    """PROBLEM_DTYPE [batch]"""
    _candidates: np.ndarray = field(init=False)
    bounds: list[np.ndarray] = field(init=False, default_factory=list)
    """[order, 2] of each batch: lower bounds of energy and latency in the last search; infinite where none fits."""
    _orders: list[np.ndarray] = field(init=False, default_factory=list)
    _rows: dict[bytes, list[np.ndarray]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        arrays = np.zeros(len(self.batches), PROBLEM_DTYPE)
        for place, batch in enumerate(self.batches):
            arrays[place] = batch.problem.arrays
        object.__setattr__(self, "arrays", arrays)
        object.__setattr__(self, "_candidates", np.zeros(len(self.batches), CANDIDATE_DTYPE))
        for place in range(len(self.batches)):
            self._write_candidate(place)

    def best(self) -> BestFound | None:
        """The best order of all spatial mappings; None if nothing fits."""
        self._take_rows()
        search, tables, workspace = _scratch()
        powers = OBJECTIVES[self.objective]
        search.candidates = pointer_to(self._candidates)
        search.energy_power, search.latency_power = powers.energy, powers.latency
        records = (SEARCH_DTYPE, TABLES_DTYPE, WORKSPACE_DTYPE)
        native_function(find_best, records)(search, tables, workspace, len(self.batches))
        if search.best_candidate < 0:
            return None
        problem = self.arrays.view(np.recarray)[int(search.best_candidate)]
        return BestFound(problem, float(search.best_energy), float(search.best_latency), workspace)

    def _write_candidate(self, place: int) -> None:
        batch, candidate = self.batches[place], self._candidates[place]
        problem = batch.problem.arrays
        orders = np.ascontiguousarray(batch.orders, np.int8)
        bounds = np.empty((len(orders), 2))
        self._orders.append(orders)
        self.bounds.append(bounds)
        counts = np.bincount(batch.orders[0], minlength=len(batch.loops))
        depth = int(problem.level_count.max())
        candidate["problem"] = pointer_to(self.arrays[place : place + 1])
        candidate["orders"], candidate["bounds"] = pointer_to(orders), pointer_to(bounds)
        candidate["order_count"], candidate["length"] = orders.shape
        candidate["depth"], candidate["row_length"] = depth, depth * int(problem.operand_count)
        candidate["kinds"] = kinds = len(batch.loops)
        candidate["loop_dimension"][:kinds] = [batch.problem.dimensions.index(d) for d, _ in batch.loops]
        candidate["loop_size"][:kinds] = [size for _, size in batch.loops]
        candidate["repeats"][:kinds] = counts

    def _take_rows(self) -> None:
        """Use the rows of these capacities, known or to be filled."""
        first = self.arrays[0]
        capacity = b"".join(first[name].tobytes() for name in _CAPACITY)
        rows = self._rows.pop(capacity, None)
        known = rows is not None
        if rows is None:
            lengths = self._candidates["order_count"] * self._candidates["row_length"]
            rows = [np.empty(length, np.int8) for length in lengths.tolist()]
        self._rows[capacity] = rows
        if len(self._rows) > _KEPT_CAPACITIES:
            del self._rows[next(iter(self._rows))]
        self._candidates["rows"] = [pointer_to(row) for row in rows]
        self._candidates["rows_are_known"] = known


_CAPACITY = ("memory_bits", "force_double_buffering", "holds_everything")
"""Fields of a problem on which it depends where the allocator puts loops, besides those that do not change."""


def can_be_tabulated(batch: OrderBatch) -> bool:
    """Whether what the orders of a batch cost depends on states alone, and these are few.

    Not where windows slide over the output, nor where fractions of elements add up in the sequence of the loops.
    """
    problem = batch.problem.arrays
    few = 0 < len(batch.orders) <= MOST_ORDERS and batch.orders.shape[1] <= MOST_LOOPS and batch.boundaries is None
    whole = bool(problem.switches[WHOLE_TILES]) or not problem.spatial_fractional
    return few and whole and not problem.relation_used[0].any()


def _scratch() -> tuple[np.record, np.record, Workspace]:
    """What a search writes to, of this thread."""
    if not hasattr(_of_thread, "scratch"):
        _of_thread.scratch = new_record(SEARCH_DTYPE), new_record(TABLES_DTYPE), new_workspace()
    found: tuple[np.record, np.record, Workspace] = _of_thread.scratch
    return found
