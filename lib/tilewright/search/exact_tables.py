"""Tables of the exact search: the lattice of loop multisets, and what can still come above each of its points.

Numbers come from the cost model (`exact_tables_kernel`); here are the minima over everything larger, on which the lower
bounds rest, and what the reference's allocator is bound to do (docs/exact.md, 2 to 5).
"""

import math
import threading
from dataclasses import dataclass

import numpy as np

from tilewright.compiled import native_function
from tilewright.cost.problem import PROBLEM_DTYPE, Problem, new_record
from tilewright.cost.workspace import WORKSPACE_DTYPE, Workspace
from tilewright.errors import MappingError
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.mapping.loop_factors import LoopMultiset
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact_lattice import OUTPUT, Lattice, boundaries_of, held_by, precisions_of, tile_bits
from tilewright.search.exact_record import (
    EXACT_DTYPE,
    MAX_BOUNDARIES,
    MAX_BUSY_PORTS,
    MAX_LATTICE,
    MAX_PLACED,
    MAX_SYMBOLS,
)
from tilewright.search.exact_rules import GreedyRules, tiles_are_rounded
from tilewright.search.exact_tables_kernel import fill_tables

ROUNDING = 1e-12
_FAR = 1 << 58
_LINKS = ((TH, 0), (FH, 0), (TL, 1), (FL, 1))
"""Direction of each link of a boundary, and whether it belongs to the memory above."""


def new_search(
    prepared: PreparedProblem, multiset: LoopMultiset, workspace: Workspace, objective: int, free: bool
) -> np.record:
    """The record of a search over all orders of a multiset, with all its tables.

    Raises MappingError where the problem is larger than the record has room for.
    """
    problem = prepared.arrays
    lattice = Lattice(tuple(count + 1 for _, count in multiset.loops))
    _check_room(problem, multiset, lattice)
    search = _cleared_record()
    search.objective, search.free = objective, free
    search.symbol_count, search.loop_count, search.lattice_size = len(multiset.loops), multiset.length, lattice.size
    search.length = multiset.length
    for j, ((dimension, factor), count) in enumerate(multiset.loops):
        search.loop_dimension[j], search.loop_size[j] = prepared.dimensions.index(dimension), factor
        search.multiplicity[j], search.stride[j] = count, math.prod(lattice.shape[j + 1 :])
    _number_boundaries(problem, search)
    for o in range(problem.operand_count):
        search.inexact[o] = tiles_are_rounded(problem, o)
    native_function(fill_tables, (PROBLEM_DTYPE, WORKSPACE_DTYPE, EXACT_DTYPE))(
        problem, workspace, search, lattice.size
    )
    search.keep_paths = bool(search.uncertain)  # then no label stands for another
    _least_elements(problem, search, lattice)
    _mark_memories(problem, search, lattice)
    GreedyRules(prepared, search, lattice).mark()
    _mark_possible(problem, search, lattice)
    _mark_classes(problem, search, lattice)
    _sum_up(problem, search, lattice)
    return search


_records = threading.local()
_LARGE_BYTES = 1 << 19


def _cleared_record() -> np.record:
    """This thread's record, at zero but for the large fields, which each search fills as far as it reads them.

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


def _check_room(problem: Problem, multiset: LoopMultiset, lattice: Lattice) -> None:
    boundaries = int(problem.level_count[: problem.operand_count].sum()) - int(problem.operand_count)
    for what, count, limit in (
        ("loops", multiset.length, MAX_PLACED),
        ("distinct loops", len(multiset.loops), MAX_SYMBOLS),
        ("multisets of loops", lattice.size, MAX_LATTICE),
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


def _least_elements(problem: Problem, search: np.record, lattice: Lattice) -> None:
    n = lattice.size
    for row in range(int(problem.level_count[: problem.operand_count].sum())):
        search.least_elements[row, :n] = lattice.least_above(search.elements[row, :n])
    for o in range(problem.operand_count):
        if problem.level_count[o] > 1:
            search.least_tile_bits[o] = int(search.tile_bits[search.first_boundary[o], :n].min())


def _mark_memories(problem: Problem, search: np.record, lattice: Lattice) -> None:
    """Which memories are shared, and which always have room for a second tile whatever the mapping."""
    n = lattice.size
    for b, o, m in boundaries_of(search):
        k = int(problem.level_memory[o, m])
        search.shares[b] = len(held_by(problem, k)) > 1 and not problem.holds_everything[k]
    for i in range(problem.held_memory_count):
        k = int(problem.memory_order[i])
        size, share = float(problem.memory_bits[k]), 0.0
        for o, m in held_by(problem, k):
            precision = int(problem.precision_bits[o]) if o != OUTPUT else precisions_of(problem, o, m)[1]
            largest = search.elements[search.first_level[o] + m, :n] * precision
            if m < problem.level_count[o] - 1:
                b = search.first_boundary[o] + m
                fitting = search.elements[search.first_level[o] + m, :n] * precisions_of(problem, o, m)[0] <= size
                tiles = np.maximum(search.effective_bits[b, :n], largest)[fitting]
                share += float(tiles.max()) / size if tiles.size else 0.0
            else:
                share += float(largest.max()) / size
        search.always_buffered[k] = share <= 0.5
    for b, o, m in boundaries_of(search):
        ports = _link_ports(problem, o, m)
        alone = all(_activities(problem, p) == 1 for p in ports)
        search.simple[b] = alone and len(held_by(problem, int(problem.level_memory[o, m]))) == 1


def _link_ports(problem: Problem, o: int, m: int) -> list[int]:
    """Ports of the links of a boundary that can move data."""
    used = range(4) if o == OUTPUT else (1, 2)
    ports = [int(problem.port_of[o, m + above, d]) for d, above in (_LINKS[q] for q in used)]
    return [p for p in ports if p >= 0]


def _activities(problem: Problem, port: int) -> int:
    """How many links can move data over a port."""
    count = 0
    for s in range(problem.port_start[port], problem.port_start[port + 1]):
        o, m, d = (int(problem[f"service_{name}"][s]) for name in ("operand", "level", "direction"))
        top = m == problem.level_count[o] - 1
        input_link = d == TL or (d == FH and not top)
        count += (d in (TL, FL) or not top) if o == OUTPUT else input_link
    return count


def _mark_possible(problem: Problem, search: np.record, lattice: Lattice) -> None:
    """Where a boundary may lie at all: its tile fits, and (greedy) the allocator could have stopped there."""
    n = lattice.size
    for b, o, m in boundaries_of(search):
        k = int(problem.level_memory[o, m])
        if search.pinned[b]:
            possible = np.zeros(n, bool)
            possible[n - 1] = True
        elif problem.holds_everything[k]:
            possible = np.ones(n, bool)
        else:
            least, most = precisions_of(problem, o, m)
            limit = float(problem.memory_bits[k]) * (1 + ROUNDING)
            possible = tile_bits(problem, search, o, m, least, n) <= limit
            if search.filled[b]:
                bits = tile_bits(problem, search, o, m, most, n)
                overflows = np.zeros(n, bool)
                for symbol in range(len(lattice.shape)):
                    overflows |= lattice.successors(bits, symbol, 0.0) > float(problem.memory_bits[k])
                overflows[n - 1] = True
                possible &= overflows
        search.possible[b, :n] = possible & np.isfinite(search.link_energy[b, :n])


def _mark_classes(problem: Problem, search: np.record, lattice: Lattice) -> None:
    """Number the distinct sets of numbers of each boundary; points with the same number are interchangeable."""
    n = lattice.size
    for b, o, m in boundaries_of(search):
        elements = search.elements[search.first_level[o] + m, :n]
        columns = [elements] if search.shares[b] or search.objective == 1 else []
        if search.objective != 1:
            counts = search.link_count[b, :, :n]
            columns += [search.tile_bits[b, :n], *search.link_bits[b, :, :n]]
            if search.simple[b]:
                columns += list(np.minimum(counts, 2))
            else:
                columns += [search.cycles[:n], search.effective_bits[b, :n], *counts, *search.link_bandwidth[b, :, :n]]
        table = np.column_stack([column.astype(float) for column in columns])
        search.class_of[b, :n] = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)


def _sum_up(problem: Problem, search: np.record, lattice: Lattice) -> None:
    """The least that each boundary and those above it can still cost, from every point on."""
    for o in range(problem.operand_count):
        _array_to_go(problem, search, lattice, o)
        above = _Above(np.zeros(lattice.size), np.zeros(lattice.size, np.int64), {}, {})
        for m in range(int(problem.level_count[o]) - 2, -1, -1):
            above = _add_boundary(problem, search, lattice, (int(search.first_boundary[o]) + m, o, m), above)
        _top_transfers(problem, search, lattice, o)


@dataclass(frozen=True)
class _Above:
    """Least cost of a boundary and those above it, at every point."""

    energy_pj: np.ndarray
    loading: np.ndarray
    busy: dict[int, np.ndarray]
    """Port -> cycles."""
    joint: dict[int, np.ndarray]
    """Port -> cycles, loading included."""


def _add_boundary(
    problem: Problem, search: np.record, lattice: Lattice, place: tuple[int, int, int], above: _Above
) -> _Above:
    """Add a boundary below those summed up so far, and write the sums into the record."""
    b, n = place[0], lattice.size
    possible = search.possible[b, :n].astype(bool)
    zero = np.zeros(n, np.int64)
    pair = _loads_to_go(problem, search, lattice, place, possible)
    pair = pair if search.adds_up[b] else zero
    own = _port_times(problem, search, place, n)
    ports = sorted({*own, *above.busy})
    if len(ports) > MAX_BUSY_PORTS:
        raise MappingError(f"the exact search has room for {MAX_BUSY_PORTS} ports above a level, this has {len(ports)}")
    busy = {p: own.get(p, zero) + above.busy.get(p, zero) for p in ports}
    joint = {p: own.get(p, zero) + pair + above.joint.get(p, above.loading) for p in ports}
    result = _Above(
        lattice.least_above(np.where(possible, search.link_energy[b, :n] + above.energy_pj, np.inf)),
        _chain(lattice, possible, pair + above.loading),
        {p: _chain(lattice, possible, values) for p, values in busy.items()},
        {p: _chain(lattice, possible, values) for p, values in joint.items()},
    )
    search.energy_to_go[b, :n], search.pairs_to_go[b, :n] = result.energy_pj, result.loading
    search.busy_port[b, :] = -1
    for r, port in enumerate(ports):
        search.busy_port[b, r] = port
        search.busy_to_go[b, r, :n], search.joint_to_go[b, r, :n] = result.busy[port], result.joint[port]
    return result


def _array_to_go(problem: Problem, search: np.record, lattice: Lattice, o: int) -> None:
    n = lattice.size
    stays = search.stays[o, :n].astype(bool)
    search.array_energy_to_go[o, :n] = lattice.least_above(np.where(stays, search.array_energy[o, :n], np.inf))
    search.array_count_to_go[o, :n] = _chain(lattice, stays, search.array_count[o, :n])


def _chain(lattice: Lattice, possible: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The least of `values` over larger multisets at which the boundary may lie."""
    return lattice.least_above(np.minimum(np.where(possible, values, _FAR), _FAR))


def _loads_to_go(
    problem: Problem, search: np.record, lattice: Lattice, place: tuple[int, int, int], possible: np.ndarray
) -> np.ndarray:
    """Fill the least loading time of each link: one transfer of a repeated one, at least the first tile of a single.

    Returns the loading between the two memories of the boundary at each point, as far as it is sure.
    """
    b, o, m = place
    n = lattice.size
    pair = np.zeros(n, np.int64)
    for q, (d, upper) in enumerate(_LINKS):
        wide = int(problem.bandwidth_max_bits[o, m + upper, d])
        cycles, count = search.link_cycles[b, q, :n], search.link_count[b, q, :n]
        first = math.ceil(int(search.least_tile_bits[o]) / wide) if wide else 0
        load = np.where(count > 1, cycles, np.where(count == 1, np.minimum(cycles, first), 0))
        least = _chain(lattice, possible, load)
        search.load_to_go[b, q, :n] = np.where(least == _FAR, 0, least)
        if q in ((0, 3) if o == OUTPUT else (1, 2)):
            pair = np.maximum(pair, load)
    search.adds_up[b] = o == OUTPUT or _adds_up(problem, o, m)
    return pair


def _adds_up(problem: Problem, o: int, m: int) -> bool:
    """Whether loading between two levels of an input is part of on-loading for sure.

    Of the pairs of memories with one port that both inputs share the reference keeps the last one only.
    """
    shared = [_shared_ports(problem, o, level) for level in range(int(problem.level_count[o]) - 1)]
    if problem.operand_count == 2:
        return shared[m] == 0
    return shared[m] != 1 or 1 not in shared[m + 1 :]


def _shared_ports(problem: Problem, o: int, m: int) -> int:
    """How many of the two ports between levels m and m + 1 of an input serve the other input too."""
    ports = (int(problem.port_of[o, m, FH]), int(problem.port_of[o, m + 1, TL]))
    return sum(bool(problem.port_shared_by_inputs[port]) for port in ports if port >= 0)


def _port_times(problem: Problem, search: np.record, place: tuple[int, int, int], n: int) -> dict[int, np.ndarray]:
    """Cycles that each port spends on a boundary after the first period, at every point."""
    b, o, m = place
    own: dict[int, np.ndarray] = {}
    for q, (d, upper) in enumerate(_LINKS):
        port = int(problem.port_of[o, m + upper, d])
        if port >= 0 and (o == OUTPUT or q in (1, 2)):
            busy = search.link_cycles[b, q, :n] * np.maximum(search.link_count[b, q, :n] - 1, 0)
            own[port] = own.get(port, np.zeros(n, np.int64)) + busy
    return own


def _top_transfers(problem: Problem, search: np.record, lattice: Lattice, o: int) -> None:
    """What an operand moves over the port of its topmost memory: once as a whole, or in repeated transfers."""
    n = lattice.size
    top = int(problem.level_count[o]) - 1
    search.top_port[o], search.top_whole[o] = -1, -1
    main, back = (3, 2) if o == OUTPUT else (2, 3)
    port = int(problem.port_of[o, top, _LINKS[main][0]])
    if top == 0 or port < 0:
        return
    b = int(search.first_boundary[o]) + top - 1
    possible = search.possible[b, :n].astype(bool)
    cycles, count = search.link_cycles[b, :, :n], search.link_count[b, :, :n]
    search.top_port[o] = port
    if possible[n - 1] and count[main, n - 1] == 1:
        search.top_whole[o] = cycles[main, n - 1]
    busy = cycles[main] * (count[main] - 1)
    if o == OUTPUT and problem.port_of[o, top, TL] == port:
        busy = busy + cycles[back] * np.maximum(count[back] - 1, 0)
    repeated = possible & (count[main] > 1)
    for name, values in (("busy", busy), ("joint", busy + cycles[main]), ("load", cycles[main])):
        search[f"top_{name}"][o, :n] = _chain(lattice, repeated, values)
    band = np.where(repeated, search.link_bandwidth[b, main, :n], np.inf)
    search.top_bandwidth[o, :n] = lattice.least_above(band)
