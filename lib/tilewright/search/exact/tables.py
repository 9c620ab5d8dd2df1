"""Record of an exact search over the orders of one multiset of loops, with its tables (docs/proofs/exact-search.md).

Sections 2 to 6 of that chapter describe the tables. Section 8 lists the cases in which another order of multiplications
in the cost model could change the result.
"""

import math
import mmap
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction

import numpy as np

from tilewright.base.compiled import Kernel, address_of, native_function
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import SWITCHES
from tilewright.cost.problem import PROBLEM_DTYPE, Problem
from tilewright.cost.workspace import WORKSPACE_DTYPE, Workspace
from tilewright.mapping.temporal import LoopMultiset
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.exact.bounds_kernel import TOLERANCE
from tilewright.search.exact.expansion_kernel import fill_tables, mark_tables, sum_tables
from tilewright.search.exact.lattice_record import (
    BUCKETS,
    EXACT_DTYPE,
    MAX_BOUNDARIES,
    MAX_BUSY_PORTS,
    MAX_LATTICE,
    MAX_PLACED,
    MAX_SYMBOLS,
)
from tilewright.search.exact.point_numbers import KeptNumbers, PointNumbers
from tilewright.search.exact.rules_kernel import find_floor


def order_sensitive_dimensions(problem: Problem, search: np.record) -> set[int]:
    """Dimensions whose tile sizes can depend, in the last bit, on the order of multiplication.

    Such a dimension has a spatial factor that is not a binary fraction, and at least two loops whose size is not a
    power of two. If the model rounds tile sizes up to whole numbers (switch `whole_tiles`), there are no such
    dimensions.
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
    """True if the model computes the tiles of operand `o` from factors that have no exact binary form.

    These factors are ratios of window positions, and spatial factors that are not binary fractions.
    """
    if not problem.spatial_differs:
        return False
    factors = [float(factor) for factor in problem.spatial_factor[0, o, : problem.spatial_start[o].max()]]
    return bool(problem.relation_used[o].any()) or any(Fraction(f).denominator > 2**20 for f in factors)


def outputs_outgrow_sums(problem: Problem) -> bool:
    """True if partial sums need less room in a memory than final outputs (fault B44, docs/model.md)."""
    return bool(problem.final_precision_bits > problem.precision_bits[0])


def truncates_by_order(problem: Problem, search: np.record) -> bool:
    """True if two loop orders can truncate the size of the same window differently in the model, as in the reference
    (fault B12, docs/model.md).
    """
    if problem.switches[SWITCHES.index("exact_window_sizes")]:
        return False
    windows = {int(d) for d in problem.relation_dimension[: problem.relation_count].ravel()}
    return bool(windows & order_sensitive_dimensions(problem, search))


OUTPUT = 0
TABLE_STEPS = (fill_tables, mark_tables, sum_tables)
TABLE_RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, EXACT_DTYPE)
FLOOR_SWITCHES = ("whole_tiles", "exact_window_sizes")
"""Switches of the model profile that `energy_floor` needs. If both are on, one more loop below a boundary between
memory levels never increases the data that cross this boundary."""
CHUNK_POINTS = 4096
"""Number of table entries that are filled between two checks of the clock. There is one entry for each multiset of
loops."""


def new_search(
    prepared: PreparedProblem,
    multiset: LoopMultiset,
    workspace: Workspace,
    objective: str,
    free: bool,
    in_time: Callable[[], bool] = lambda: True,
    kept: KeptNumbers | None = None,
) -> np.record | None:
    """Record of a search over all orders of a multiset, with all tables; None if the time ended before the tables were
    made.

    A given `kept` must belong to the same spatial mapping. The numbers of the cost model are then copied from `kept` if
    copying takes less time than running the cost model. Raises MappingError if the problem is too large for the record.
    Exceptions that `in_time` raises are passed on.
    """
    problem = prepared.arrays
    is_kept = kept is not None and has_whole_tiles(problem) and kept.serves(multiset)
    if kept is not None and is_kept and kept.numbers is None:
        search = _described(prepared, kept.multiset, objective, free)
        if not _run(_fill_steps(search), (problem, workspace, search), in_time):
            return None
        kept.numbers = PointNumbers.of(kept.multiset, fields_of(search), int(problem.level_count.sum()))
    search = _described(prepared, multiset, objective, free)
    if kept is not None and is_kept and kept.numbers is not None:
        kept.numbers.write(multiset, fields_of(search))
    fill = () if is_kept else _fill_steps(search)
    if not _run((*fill, *_minimum_steps(problem)), (problem, workspace, search), in_time):
        return None
    ports = int(search.most_busy_ports)
    if ports > MAX_BUSY_PORTS:
        raise MappingError(
            f"the exact search supports at most {MAX_BUSY_PORTS} ports that move one operand between memories, but this"
            f" core has {ports}"
        )
    return search


def has_whole_tiles(problem: Problem) -> bool:
    """True if the sizes of all tiles are whole numbers. The order in which the factors of a size are multiplied then
    does not matter.
    """
    return not (problem.spatial_differs or problem.spatial_fractional)


def sizes_tiles_in_any_order(problem: Problem) -> bool:
    """True if the order in which the factors of a tile size are multiplied does not matter. The order does not matter
    if all sizes are whole numbers, or if the model rounds all sizes up to whole numbers (switch `whole_tiles`).
    """
    return has_whole_tiles(problem) or bool(problem.switches[SWITCHES.index("whole_tiles")])


def energy_floor(prepared: PreparedProblem, multiset: LoopMultiset, workspace: Workspace) -> float:
    """Lower bound in pJ of the energy of all mappings, without terms that grow with latency; 0 if no bound is certain.

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
    """Search record of this thread. The record describes the problem, but has no tables yet.

    Raises MappingError if the problem is too large for the record.
    """
    problem = prepared.arrays
    shape = [count + 1 for _, count in multiset.loops]
    _check_room(problem, multiset, math.prod(shape))
    search = _cleared_record()
    fields, powers = fields_of(search), OBJECTIVES[objective]
    is_counted = powers.latency > 0 or problem.energy_pj_a_cycle > 0
    for name, value in (
        ("energy_power", powers.energy),
        ("latency_power", powers.latency),
        ("free", free),
        ("latency_counts", is_counted),
        ("wide_final", free and outputs_outgrow_sums(problem)),
        ("symbol_count", len(shape)),
        ("loop_count", multiset.length),
        ("length", multiset.length),
        ("lattice_size", math.prod(shape)),
        ("best_share", 1 - TOLERANCE),
        ("bucket_count", BUCKETS),
    ):
        fields[name][0] = value
    count = len(shape)
    fields["loop_dimension"][:count] = [prepared.dimensions.index(dimension) for (dimension, _), _ in multiset.loops]
    fields["loop_size"][:count] = [factor for (_, factor), _ in multiset.loops]
    fields["multiplicity"][:count] = [times for _, times in multiset.loops]
    fields["stride"][:count] = [math.prod(shape[j + 1 :]) for j in range(count)]
    _number_boundaries(problem, fields)
    for o in range(problem.operand_count):
        search.inexact[o] = tiles_are_rounded(problem, o)
    search.same_in_any_order = not order_sensitive_dimensions(problem, search)
    return search


def _run(
    steps: Iterable[tuple[Kernel, int]], records: tuple[Problem, Workspace, np.record], in_time: Callable[[], bool]
) -> bool:
    """Run steps that make tables. Return False if the time ends before the last step."""
    addresses = [address_of(record) for record in records]
    for entry, argument in steps:
        if not in_time():
            return False
        native_function(entry, TABLE_RECORDS)(*addresses, argument)
    return True


def _fill_steps(search: np.record) -> Iterator[tuple[Kernel, int]]:
    """Steps that compute the numbers of the cost model at all lattice points (multisets of loops). A step is a pair
    (compiled function, last argument of the function). Each step is short, so that the clock can be checked between
    steps.
    """
    for _ in range(0, int(search.lattice_size), CHUNK_POINTS):
        yield fill_tables, CHUNK_POINTS


def _minimum_steps(problem: Problem) -> Iterator[tuple[Kernel, int]]:
    """Steps that make the tables of marks and of minima. A step is a pair (compiled function, last argument of the
    function). Before these steps, the record must have the numbers of the cost model at all lattice points (multisets
    of loops).
    """
    yield mark_tables, 0
    for operand in range(int(problem.operand_count)):
        yield sum_tables, operand


def _sparse_record(dtype: np.dtype) -> np.record:
    """New record in which all fields are 0, with memory only for the small pages that are written.

    NumPy asks the operating system for huge pages of 2 MB. A small search writes only a few kilobytes of each table row
    of 1 MB, so clearing huge pages would take longer than the search.
    """
    memory = mmap.mmap(-1, dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # only on Linux
        with suppress(OSError):  # the kernel has no huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    record: np.record = np.frombuffer(memory, dtype).view(np.recarray)[0]
    return record


_records = threading.local()
_LARGE_BYTES = 1 << 16


def _cleared_record() -> np.record:
    """Search record of this thread (EXACT_DTYPE), with its small fields set to zero.

    Large fields are not cleared; each search fills the entries that it reads. All searches of a thread share one
    record, because making a new record takes more time than a small search.
    """
    if not hasattr(_records, "search"):
        _records.search = _sparse_record(EXACT_DTYPE)
        _records.fields = _views_of(_records.search)
        _records.small = _small_parts(_records.search)
    slots = _records.fields["slot_count"]
    count = int(slots[0])  # the hash table of the previous search must be cleared, for which its size is kept
    for part in _records.small:
        part.fill(0)
    slots[0] = count
    search: np.record = _records.search
    return search


def _small_parts(search: np.record) -> list[np.ndarray]:
    """Memory of the small fields of a record, as arrays of bytes. Adjacent small fields share one array."""
    octets = np.asarray(search.base).reshape(1).view(np.uint8)
    places = EXACT_DTYPE.fields
    assert places is not None
    parts, begin = [], 0
    for kind, offset, *_ in places.values():
        if kind.itemsize >= _LARGE_BYTES:
            parts.append(octets[begin:offset])
            begin = offset + kind.itemsize
    return [part for part in (*parts, octets[begin:]) if len(part)]


Fields = dict[str, np.ndarray]
"""Fields of a record by name, as arrays. A field that is a single number becomes an array of length 1."""


def fields_of(search: np.record) -> Fields:
    """Fields of a search record by name. Reading a field from this dictionary takes less time than reading it from the
    record.
    """
    known: np.record | None = getattr(_records, "search", None)
    return _records.fields if search is known else _views_of(search)


def _views_of(search: np.record) -> Fields:
    record = np.asarray(search.base).reshape(1)
    return {name: record[name][0] if EXACT_DTYPE[name].shape else record[name] for name in EXACT_DTYPE.names or ()}


def _check_room(problem: Problem, multiset: LoopMultiset, points: int) -> None:
    boundaries = int(problem.level_count[: problem.operand_count].sum()) - int(problem.operand_count)
    for what, count, limit in (
        ("loops", multiset.length, MAX_PLACED),
        ("distinct loops", len(multiset.loops), MAX_SYMBOLS),
        ("multisets of loops", points, MAX_LATTICE),
        ("boundaries between memory levels", boundaries, MAX_BOUNDARIES),
    ):
        if count > limit:
            raise MappingError(f"the exact search supports at most {limit} {what}, but this problem has {count}")
    if problem.relation_used[OUTPUT].any():
        raise MappingError("the exact search has no bounds for outputs that are addressed by a sliding window")


def _number_boundaries(problem: Problem, fields: Fields) -> None:
    boundary = level = 0
    for o, levels in enumerate(problem.level_count[: problem.operand_count].tolist()):
        fields["first_boundary"][o], fields["first_level"][o] = boundary, level
        level += levels
        fields["boundary_operand"][boundary : boundary + levels - 1] = o
        fields["boundary_level"][boundary : boundary + levels - 1] = range(levels - 1)
        boundary += levels - 1
    fields["boundary_count"][0] = boundary
