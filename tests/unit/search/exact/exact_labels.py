"""The labels of the exact search, generation by generation, as loops and level boundaries."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tilewright.base.compiled import native_function
from tilewright.cost.problem import PROBLEM_DTYPE
from tilewright.cost.workspace import WORKSPACE_DTYPE, new_workspace
from tilewright.mapping.temporal import LoopMultiset
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.expansion_kernel import begin, expand_labels, next_generation
from tilewright.search.exact.lattice_record import EXACT_DTYPE, PATH_BITS, PATH_SYMBOLS
from tilewright.search.exact.tables import new_search

from tests.unit.search.exact.exact_brute_force import Mappings

_RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, EXACT_DTYPE)


@dataclass(frozen=True)
class Label:
    """The innermost loops of a mapping, and the bounds that the search gives for all its completions."""

    order: tuple[int, ...]
    """Indexes of the distinct loops, innermost first."""
    closed: tuple[int, ...]
    """Loops below each boundary between two levels, operand by operand; -1 while the boundary is open."""
    bound: float
    energy_bound_pj: float
    latency_bound_cycles: float

    def completions(self, mappings: Mappings, columns: np.ndarray) -> np.ndarray:
        """[mapping] whether a mapping completes the label; `columns` come from `boundary_columns`."""
        length = len(self.order)
        mask = mappings.fits & (mappings.orders[:, :length] == self.order).all(1)
        if mappings.boundaries is not None:
            closed = np.array(self.closed)
            mask &= np.where(closed >= 0, columns == closed, columns >= length).all(1)
        return mask


def boundary_columns(prepared: PreparedProblem, mappings: Mappings) -> np.ndarray:
    """Boundaries [mapping, boundary], operand by operand from the inside out, without the outermost levels."""
    if mappings.boundaries is None:
        return np.zeros((len(mappings.orders), 0), np.int64)
    counts = prepared.arrays.level_count[: prepared.arrays.operand_count].tolist()
    return np.concatenate([mappings.boundaries[:, o, : count - 1] for o, count in enumerate(counts)], axis=1)


def generations(
    prepared: PreparedProblem,
    multiset: LoopMultiset,
    objective: str,
    free: bool,
    best: float = math.inf,
    best_latency_cycles: float = math.inf,
) -> Iterator[list[Label]]:
    """All labels of one, two, ... loops, without complete ones.

    `best` is the value to beat. Bounds of latency need not hold beyond `best_latency_cycles`.
    """
    workspace = new_workspace()
    search = new_search(prepared, multiset, workspace, objective, free)
    assert search is not None
    search.best, search.best_latency, search.best_energy = best, best_latency_cycles, math.inf
    _call(begin, prepared, workspace, search, 0)
    while search.generation < multiset.length - 1 and search.label_count[search.current]:
        _call(expand_labels, prepared, workspace, search, int(search.label_count[search.current]))
        _call(next_generation, prepared, workspace, search, 0)
        yield [_label(search, i) for i in range(int(search.label_count[search.current]))]


def _call(entry, prepared, workspace, search, count) -> None:  # type: ignore[no-untyped-def]
    native_function(entry, _RECORDS)(prepared.arrays, workspace, search, count)


def _label(search: np.record, i: int) -> Label:
    """Label `i` of the generation that is expanded next."""
    g = int(search.current)
    words = search.label_path[g, i].tolist()
    order = tuple(
        words[position // PATH_SYMBOLS] >> (PATH_BITS * (position % PATH_SYMBOLS)) & ((1 << PATH_BITS) - 1)
        for position in range(int(search.generation))
    )
    points = {0: 0}
    point = 0
    for length, symbol in enumerate(order, start=1):
        point += int(search.stride[symbol])
        points[point] = length
    closed = search.label_boundary[g, i, : int(search.boundary_count)].tolist()
    return Label(
        order,
        tuple(-1 if value < 0 else points[value] for value in closed),
        float(search.label_bound[g, i]),
        float(search.label_energy_bound[g, i]),
        float(search.label_latency_bound[g, i]),
    )
