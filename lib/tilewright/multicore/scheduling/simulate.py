"""Call of the compiled scheduler.

The module converts the problem and the allocation to the records that the scheduler reads, and converts the result to a
`Schedule`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.base.errors import InputError, MappingError, Problem, count_of
from tilewright.base.record_pointer import pointer_to
from tilewright.multicore.scheduling.energy_ledger import CAUSES
from tilewright.multicore.scheduling.memory_rank import MemoryRank, memory_rank
from tilewright.multicore.scheduling.options import CAUSAL, OTHER_MODELS, ScheduleOptions
from tilewright.multicore.scheduling.problem import Booleans, CoreSystem, Integers, SchedulingProblem, starts_of
from tilewright.multicore.scheduling.progress_rank import ProgressRank, progress_rank
from tilewright.multicore.scheduling.result import with_energy
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulation_kernel import run
from tilewright.multicore.scheduling.stack_barriers import StackBarriers, stack_barriers
from tilewright.multicore.scheduling.state_record import (
    CANNOT_RUN,
    CELL,
    CHANGE_LOG,
    COPY,
    CORE,
    COST,
    DOES_NOT_FIT,
    DONE,
    ENTRY,
    EVENT,
    FLIGHT,
    INPUTS,
    LINK,
    LINK_STATE,
    MEMORY,
    MEMORY_STATE,
    NEED,
    NO_MEMORY,
    NO_PATH,
    NODE,
    NODE_STATE,
    NONE,
    PAIR,
    PIECE,
    PIECE_STATE,
    STATE,
    STREAM,
    STREAM_LOG,
    TRANSFER_LOG,
    WAIT,
)

Array = np.ndarray[Any, Any]

RECORDS = (INPUTS, STATE)
"""Types of the two records of the compiled scheduler: the input, which it reads, and the state, which it changes."""
Rank = MemoryRank | ProgressRank
RANKS: dict[str, Callable[[SchedulingProblem], Rank]] = {"memory": memory_rank, "progress": progress_rank}
"""Candidate selection -> function that makes the priority order of the CNs. A candidate selection that is not listed
has no fixed priority order.
"""


@dataclass(frozen=True, eq=False)
class KernelRecord:
    """Record that the compiled scheduler (the kernel) reads or changes, with its arrays. An array field of the record
    holds only the address of an array. `arrays` has the arrays themselves, by field name.
    """

    record: np.record
    arrays: dict[str, Array]


def _block(dtype: np.dtype, arrays: dict[str, Array], numbers: dict[str, int]) -> KernelRecord:
    record: np.record = np.zeros(1, dtype).view(np.recarray)[0]
    for name, array in arrays.items():
        record[name] = pointer_to(array)
    for name, number in numbers.items():
        record[name] = number
    return KernelRecord(record, arrays)


def _table(dtype: np.dtype, count: int, **columns: Any) -> Array:
    """Array of `count` records of type `dtype`. `columns` has the values of fields, by field name. If a field has fewer
    than `count` values, it is 0 in the last records.
    """
    table = np.zeros(count, dtype)
    for name, values in columns.items():
        table[name][: len(values)] = values
    return table


def problem_arrays(problem: SchedulingProblem) -> dict[str, Array]:
    """Arrays of the record `INPUTS` that depend neither on the allocation nor on the options."""
    graph, costs, system = problem.graph, problem.costs, problem.system
    need_piece, need_operand = problem.fetch_order
    return {
        "nodes": _table(
            NODE,
            graph.node_count + 1,
            cost_row=graph.cost_row,
            need_start=graph.need_start,
            output_start=problem.outputs[0],
            successor_start=problem.edges[0],
        ),
        "needs": _table(NEED, len(need_piece), piece=need_piece, cn=problem.need_cn, operand=need_operand),
        "pieces": _table(
            PIECE,
            len(graph.piece_bits) + 1,
            bits=graph.piece_bits,
            producer=graph.piece_producer,
            need_start=problem.piece_needs[0],
            is_output=graph.piece_is_output,
        ),
        "memories": _table(
            MEMORY,
            len(system.memory_capacity_bits),
            capacity_bits=system.memory_capacity_bits,
            read_bits=system.memory_read_bits,
            write_bits=system.memory_write_bits,
        ),
        "links": _table(
            LINK,
            len(system.link_bits_per_cycle),
            bits_per_cycle=system.link_bits_per_cycle,
            is_broadcast=system.link_is_broadcast,
            is_multicast=system.multicast,
        ),
        "pairs": _table(PAIR, system.core_count**2 + 1, start=system.path_start, exists=system.path_exists),
        "costs": _table(
            COST,
            costs.runtime_cycles.size,
            runtime_cycles=costs.runtime_cycles.ravel(),
            has_streams=np.any(costs.stream_bits > 0, axis=2).ravel(),
        ),
        "streams": _table(
            STREAM,
            costs.stream_bits.size,
            bits=costs.stream_bits.ravel(),
            bits_per_cycle=costs.stream_bits_per_cycle.ravel(),
        ),
        "core_memory": _cells(system.core_memory.ravel()),
        "prefetch_order": np.arange(graph.node_count),
        **_memory_users(system),
        "piece_need": _cells(problem.piece_needs[1]),
        "output_piece": _cells(problem.outputs[1]),
        "successor": _cells(problem.edges[1]),
        "path_link": _cells(system.path_link),
    }


def _memory_users(system: CoreSystem) -> dict[str, Array]:
    """Arrays `user_start` and `user` of the record `INPUTS`, by field name: the cores that use each memory, as a CSR
    table.
    """
    core, operand = np.nonzero(system.core_memory >= 0)
    key = np.unique(system.core_memory[core, operand] * system.core_count + core)
    memory, core = np.divmod(key, system.core_count)
    return {"user_start": _cells(starts_of(memory, len(system.memory_capacity_bits))), "user": _cells(core)}


def _cells(values: Any) -> Array:
    return np.ascontiguousarray(values, dtype=np.int64)


def inputs_block(
    problem: SchedulingProblem,
    arrays: dict[str, Array],
    rank: Rank | None,
    allocation: Integers,
    options: ScheduleOptions,
    barriers: StackBarriers | None = None,
) -> KernelRecord:
    """Input record (`INPUTS`) of the compiled scheduler for an allocation. `arrays` is the result of `problem_arrays`.
    The candidate selections in `RANKS` need `rank`; otherwise `rank` is None.
    """
    system = problem.system
    prefetches = np.zeros(system.core_memory.shape[1], np.int64)
    for operand in options.operands_to_prefetch:
        if operand >= len(prefetches):
            raise InputError(
                [Problem("is not the number of an operand", path="operands_to_prefetch", value=str(operand))]
            )
        prefetches[operand] = 1
    if options.layers_by_off_chip:
        arrays = {**arrays, "pieces": arrays["pieces"].copy()}
        arrays["pieces"]["goes_off_chip"][:-1] = goes_off_chip(problem, options.layers_by_off_chip)
    if rank is not None:
        arrays = {**arrays, "nodes": arrays["nodes"].copy()}
        arrays["nodes"]["rank"][:-1] = rank.of(problem, np.asarray(allocation, np.int64))
        if rank.orders_prefetch:
            arrays["prefetch_order"] = np.argsort(arrays["nodes"]["rank"][:-1])
    numbers = {
        "node_count": problem.graph.node_count,
        "piece_count": len(problem.graph.piece_bits),
        "core_count": system.core_count,
        "operand_count": system.core_memory.shape[1],
        "memory_count": len(system.memory_capacity_bits),
        "link_count": len(system.link_bits_per_cycle),
        "off_chip_core": system.off_chip_core,
        "off_chip_memory": system.off_chip_memory,
        "share_divisor": options.share_divisor,
        "by_rank": rank is not None,
        "record": options.record,
        "prefetches_results": options.prefetch_results,
        "forwards_constants": system.forwards_constants,
        "stream_width": system.stream_width,
        "stack_count": 0 if barriers is None else len(barriers.sizes),
    }
    if barriers is not None:
        arrays = {**arrays, **{name: _cells(values) for name, values in barriers.lists().items()}}
    return _block(INPUTS, {**arrays, "allocation": _cells(allocation), "prefetches": prefetches}, numbers)


def goes_off_chip(problem: SchedulingProblem, layers: Collection[int]) -> Booleans:
    """True if a CN of one of the layers produces the piece (one entry for each piece)."""
    is_of_layer = np.isin(problem.graph.layer, list(layers))
    producer = problem.graph.piece_producer
    return (producer >= 0) & is_of_layer[producer]


def state_block(
    problem: SchedulingProblem, room: tuple[int, int, int], barriers: StackBarriers | None = None
) -> KernelRecord:
    """State record (`STATE`) of the compiled scheduler at the beginning of a run. `room` has the number of rows of each
    log: transfers, streams, memory changes.

    An array is initialised only if the kernel reads its entries before it writes them. All other arrays are left as
    they are, because initialising memory costs time. With barriers, each CN outside the first stack has one more
    predecessor: the previous stack.
    """
    nodes, pieces, needs = problem.graph.node_count, len(problem.graph.piece_bits), len(problem.graph.need_piece)
    cores, memories = problem.system.core_count, len(problem.system.memory_capacity_bits)
    links, copies = len(problem.system.link_bits_per_cycle), pieces + needs
    flights = 2 * copies + 8
    stream_width = problem.system.stream_width
    unstarted = problem.predecessor_count
    if barriers is not None:
        unstarted = unstarted + (barriers.of_cn > 0)
    arrays = {
        "nodes": _table(NODE_STATE, nodes, unstarted=unstarted),
        "stack_left": _cells([] if barriers is None else barriers.sizes),
        "pieces": np.zeros(pieces, PIECE_STATE),
        "copies": np.empty(copies, COPY),
        "memories": np.zeros(memories + 1, MEMORY_STATE),
        "entries": np.empty(2 * copies + 16 * memories, ENTRY),
        "cores": np.zeros(cores + 1, CORE),
        "links": np.zeros(links, LINK_STATE),
        "flights": np.empty(flights, FLIGHT),
        "events": np.empty(flights + cores, EVENT),
        "transfers": np.empty(room[0], TRANSFER_LOG),
        "streams": np.empty(room[1], STREAM_LOG),
        "memory_changes": np.empty(room[2], CHANGE_LOG),
        "request": np.empty(2 * (cores + memories) + 2, CELL),
        "stream_link": np.empty(cores * stream_width, np.int64),
        "stream_share": np.empty(cores * stream_width, np.int64),
        "waits": np.full(3 * cores + memories, NONE, WAIT),
        "changed_memory": _flags(memories),
        "link_bits": np.zeros((len(CAUSES), links), np.int64),
        "words_read": np.zeros((len(CAUSES), memories), np.int64),
        "words_written": np.zeros((len(CAUSES), memories), np.int64),
    }
    for name in ("to_prepare", "to_claim", "to_forward", "to_prefetch"):
        arrays[name] = _flags(cores)
    for name in ("future", "ready"):
        arrays[name] = np.empty(nodes, CELL)
    for name in ("prefetch_copy", "forward_copy"):
        arrays[name] = np.empty(copies, CELL)
    arrays["need_copy"] = np.empty(needs, CELL)
    arrays["flight_free"] = np.empty(flights, CELL)
    return _block(STATE, arrays, {"transfer_room": room[0], "stream_room": room[1], "change_room": room[2]})


def _flags(count: int) -> Array:
    """Array with `count` entries of FLAG, all 0. Its length is rounded up to a multiple of 8 entries, because the
    kernel reads eight entries at once.
    """
    return np.zeros((count + 7) // 8, np.int64)


class Scheduler:
    """Function object that schedules allocations of one problem: call it with an allocation.

    Data that do not depend on the allocation are computed only once. Several threads can call one scheduler at the same
    time: each call uses a separate state, and the kernel releases the interpreter lock.
    """

    def __init__(self, problem: SchedulingProblem, options: ScheduleOptions | None = None) -> None:
        self.problem = problem
        self.options = options or ScheduleOptions()
        self._arrays: dict[str, Array] = problem_arrays(problem)
        make_rank = RANKS.get(self.options.scheduler_candidate_selection)
        self._rank = None if make_rank is None else make_rank(problem)
        self._barriers = stack_barriers(problem) if self.options.has_barriers else None
        self._run = native_function(run, RECORDS)
        graph = problem.graph
        self._kept_bits = int(graph.piece_bits[(graph.piece_producer < 0) | graph.piece_is_output].sum())

    def __call__(
        self, allocation: Integers, layers_by_off_chip: tuple[int, ...] | None = None, record: bool | None = None
    ) -> Schedule:
        """Schedule in which CN i runs on core `allocation[i]`. Raises the errors of `simulate`. If `layers_by_off_chip`
        or `record` is not None, it replaces the value of the options.
        """
        count = self.problem.graph.node_count
        if len(allocation) != count:
            message = f"must name {count_of(count, 'core')}, one for each computation node (CN)"
            raise InputError([Problem(message, path="allocation", value=count_of(len(allocation), "core"))])
        if self.options.schedule_model != CAUSAL:
            other = OTHER_MODELS[self.options.schedule_model]
            return other.simulate(self.problem, np.asarray(allocation, np.int64), self.options)
        _check_off_chip(self.problem, self._kept_bits, "constants and results take")
        options = self.options
        if layers_by_off_chip is not None and layers_by_off_chip != options.layers_by_off_chip:
            options = replace(options, layers_by_off_chip=layers_by_off_chip)
        if record is not None and record != options.record:
            options = replace(options, record=record)
        inputs = inputs_block(self.problem, self._arrays, self._rank, allocation, options, self._barriers)
        room = self._log_room() if options.record else (0, 0, 0)
        while True:
            state = state_block(self.problem, room, self._barriers)
            self._run(inputs.record, state.record, 0)
            if not options.record:
                break
            needed = _rows_needed(state)
            if all(count <= limit for count, limit in zip(needed, room, strict=True)):
                break
            room = needed  # the logs are longer than usual, because pieces were evicted and fetched again
        if state.record.status != DONE:
            raise _failure(self.problem, state)
        off_chip_bits = int(state.arrays["memories"]["peak_bits"][self.problem.system.off_chip_memory])
        _check_off_chip(self.problem, off_chip_bits, "this allocation needs")
        return _schedule(self.problem, inputs, state)

    def _log_room(self) -> tuple[int, int, int]:
        """Numbers of rows that are reserved for the three logs: (transfers, streams, memory changes). These rows
        suffice if few pieces are evicted.
        """
        problem = self.problem
        moves = len(problem.graph.piece_bits) + len(problem.graph.need_piece)
        streams = problem.system.stream_width * problem.graph.node_count
        return moves, streams if np.any(problem.costs.stream_bits) else 0, 2 * moves + 1


def simulate(problem: SchedulingProblem, allocation: Integers, options: ScheduleOptions | None = None) -> Schedule:
    """Schedule of `problem` in which CN i runs on core `allocation[i]`. The rules are in
    docs/multi-core-model/scheduling.md.

    Raises MappingError in four cases: a CN cannot run on its core, the data of a CN do not fit the memories of its
    core, a path for data is missing, or the off-chip memory is too small. Raises InputError if the dependences of CNs
    form a cycle. To schedule many allocations of a problem, keep a `Scheduler`.
    """
    return Scheduler(problem, options)(allocation)


def _check_off_chip(problem: SchedulingProblem, bits: int, what: str) -> None:
    """Raise MappingError if the off-chip memory cannot hold `bits` bits. The off-chip memory keeps all data that are
    written to it. `what` is the part of the message before the number of bits, such as "this allocation needs".
    """
    capacity = int(problem.system.memory_capacity_bits[problem.system.off_chip_memory])
    if bits > capacity:
        raise MappingError(f"the off-chip memory is too small: it has {capacity:,} bits, but {what} {bits:,} bits")


def _rows_needed(state: KernelRecord) -> tuple[int, int, int]:
    record = state.record
    return int(record.transfers_count), int(record.streams_count), int(record.changes_count)


def _failure(problem: SchedulingProblem, state: KernelRecord) -> Exception:
    """Error with the reason why there is no schedule."""
    record: Any = state.record
    status, cn, core, other = int(record.status), int(record.place), int(record.place_core), int(record.place_other)
    if status == NO_PATH:
        return MappingError(f"there is no path from core {core} to core {other}")
    if status in (CANNOT_RUN, NO_MEMORY, DOES_NOT_FIT):
        name = f"CN {cn} of layer {problem.graph.layer[cn]}"
        if status == CANNOT_RUN:
            return MappingError(f"{name} cannot run on core {core}")
        if status == NO_MEMORY:
            return MappingError(f"{name}: core {core} has no memory for operand {other}")
        needed = int(state.arrays["memories"]["required_bits"][other])
        capacity = int(problem.system.memory_capacity_bits[other])
        return MappingError(f"{name} on core {core} needs {needed} bits in memory {other}, which has {capacity} bits")
    if len(problem.topological_order) < problem.graph.node_count:
        return InputError([Problem("computation nodes (CNs) wait for each other in a cycle", path="graph")])
    return AssertionError("the scheduler stopped before all CNs had run")


def _schedule(problem: SchedulingProblem, inputs: KernelRecord, state: KernelRecord) -> Schedule:
    arrays = state.arrays
    transfers, streams, changes = _rows_needed(state)
    schedule = Schedule(
        allocation=inputs.arrays["allocation"],
        start_cycles=arrays["nodes"]["start_cycles"],
        end_cycles=arrays["nodes"]["end_cycles"],
        latency_cycles=int(state.record.now),
        transfers=arrays["transfers"][:transfers],
        streams=arrays["streams"][:streams],
        memory_changes=arrays["memory_changes"][:changes],
        peak_bits=arrays["memories"]["peak_bits"][:-1],
        link_bits=arrays["link_bits"],
        words_read=arrays["words_read"],
        words_written=arrays["words_written"],
    )
    return with_energy(problem, schedule)
