"""Running the compiled scheduler: arrays in, `Schedule` out."""

from typing import Any

import numpy as np

from tilewright.errors import InputError, MappingError, Problem
from tilewright.schedule.options import ScheduleOptions
from tilewright.schedule.problem import Integers, SchedulingProblem
from tilewright.schedule.result import Schedule, cause_energies
from tilewright.schedule.simulation_kernel import run
from tilewright.schedule.state import (
    CANNOT_RUN,
    CAUSES,
    CHANGES,
    DOES_NOT_FIT,
    DONE,
    MEMORY_COLUMNS,
    NO_MEMORY,
    NO_PATH,
    NOW,
    PLACE,
    PLACE_CORE,
    PLACE_OTHER,
    STATUS,
    STREAM_COLUMNS,
    STREAMS,
    TRANSFER_COLUMNS,
    TRANSFERS,
    Inputs,
    State,
)


def simulate(
    problem: SchedulingProblem, allocation: Integers, options: ScheduleOptions | None = None
) -> Schedule:
    """The schedule of `problem` where CN i runs on core `allocation[i]`, by the rules of docs/scheduling.md.

    Raises MappingError where a CN cannot run on its core or does not fit its memories, or data has no path, InputError
    where CNs wait for each other in a circle.
    """
    options = options or ScheduleOptions()
    if len(allocation) != problem.graph.node_count:
        message = f"must name a core for each of {problem.graph.node_count} CNs"
        raise InputError([Problem(message, path="allocation", value=str(len(allocation)))])
    inputs = _inputs(problem, np.ascontiguousarray(allocation, dtype=np.int64), options)
    room = _log_room(problem) if options.record else (0, 0, 0)
    while True:
        state = _new_state(problem, room)
        run(inputs, state)
        needed = tuple(int(state.scalars[i]) for i in (TRANSFERS, STREAMS, CHANGES))
        if all(count <= limit for count, limit in zip(needed, room, strict=True)):
            break
        room = needed  # evictions and fetching again made the logs longer than usual
    if state.scalars[STATUS] != DONE:
        raise _failure(problem, state)
    return _schedule(problem, inputs, state)


def _inputs(problem: SchedulingProblem, allocation: Integers, options: ScheduleOptions) -> Inputs:
    graph, costs, system = problem.graph, problem.costs, problem.system
    prefetches = np.zeros(system.core_memory.shape[1], np.bool_)
    for operand in options.operands_to_prefetch:
        if operand >= len(prefetches):
            raise InputError([Problem("is no operand", path="operands_to_prefetch", value=str(operand))])
        prefetches[operand] = True
    need_piece, need_operand = problem.fetch_order
    settings = (
        system.off_chip_core,
        system.off_chip_memory,
        options.share_divisor,
        options.candidate_selection == "memory",
        options.record,
    )
    return Inputs(
        cost_row=_int64(graph.cost_row),
        rank=problem.memory_rank,
        need_start=_int64(graph.need_start),
        need_piece=_int64(need_piece),
        need_operand=_int64(need_operand),
        need_cn=problem.need_cn,
        piece_need_start=problem.piece_needs[0],
        piece_need=problem.piece_needs[1],
        output_start=problem.outputs[0],
        output_piece=problem.outputs[1],
        successor_start=problem.edges[0],
        successor=problem.edges[1],
        piece_bits=_int64(graph.piece_bits),
        piece_producer=_int64(graph.piece_producer),
        piece_is_output=np.ascontiguousarray(graph.piece_is_output, dtype=np.bool_),
        runtime_cycles=_int64(costs.runtime_cycles),
        stream_bits=_int64(costs.stream_bits),
        stream_bits_per_cycle=_int64(costs.stream_bits_per_cycle),
        core_memory=_int64(system.core_memory),
        capacity_bits=_int64(system.memory_capacity_bits),
        read_bits=_int64(system.memory_read_bits),
        write_bits=_int64(system.memory_write_bits),
        link_bits_per_cycle=_int64(system.link_bits_per_cycle),
        link_is_broadcast=np.ascontiguousarray(system.link_is_broadcast, dtype=np.bool_),
        path_exists=np.ascontiguousarray(system.path_exists, dtype=np.bool_),
        path_start=_int64(system.path_start),
        path_link=_int64(system.path_link),
        allocation=allocation,
        prefetches=prefetches,
        settings=np.array(settings, np.int64),
    )


def _int64(values: Any) -> Integers:
    return np.ascontiguousarray(values, dtype=np.int64)


def _log_room(problem: SchedulingProblem) -> tuple[int, int, int]:
    """Rows for the logs that are enough where little is evicted: (transfers, streams, memory changes)."""
    pieces, needs = len(problem.graph.piece_bits), len(problem.graph.need_piece)
    links = len(problem.system.link_bits_per_cycle)
    return pieces + needs, 4 * links * problem.graph.node_count if np.any(problem.costs.stream_bits) else 0, 4 * (
        pieces + needs
    ) + 1


def _new_state(problem: SchedulingProblem, room: tuple[int, int, int]) -> State:
    """A state with zeros where the kernel counts on them; memory that is never touched costs nothing."""
    nodes, pieces, needs = problem.graph.node_count, len(problem.graph.piece_bits), len(problem.graph.need_piece)
    cores, memories = problem.system.core_count, len(problem.system.memory_capacity_bits)
    links, copies = len(problem.system.link_bits_per_cycle), pieces + needs
    flights = 2 * copies + 8

    def empty(*shape: int) -> Any:
        return np.empty(shape, np.int64)

    def small(*shape: int) -> Any:
        return np.empty(shape, np.int32)

    def zeros(*shape: int) -> Any:
        return np.zeros(shape, np.int64)

    return State(
        unstarted=problem.predecessor_count.copy(),
        ready_cycles=zeros(nodes),
        start_cycles=np.full(nodes, -1, np.int64),
        end_cycles=np.full(nodes, -1, np.int64),
        need_copy=small(needs),
        home=small(pieces),
        off_chip=np.empty(pieces, np.int8),
        pending=np.zeros(pieces, np.int32),
        stream_uses=np.zeros(pieces, np.int32),
        copy_piece=small(copies),
        copy_memory=small(copies),
        copy_core=small(copies),
        copy_state=np.empty(copies, np.int8),
        copy_pins=small(copies),
        copy_uses=small(copies),
        copy_version=small(copies),
        copy_mark=small(copies),
        write_next=small(copies),
        write_cause=np.empty(copies, np.int8),
        claimed_bits=zeros(memories),
        stored_bits=zeros(memories),
        peak_bits=zeros(memories),
        evictable_bits=zeros(memories),
        changes=zeros(memories),
        required_bits=zeros(memories),
        write_first=empty(memories),
        write_last=empty(memories),
        evict_start=empty(memories + 1),
        evict_count=zeros(memories),
        evict_key=empty(2 * copies + 16 * memories),
        evict_copy=small(2 * copies + 16 * memories),
        evict_version=small(2 * copies + 16 * memories),
        slot=empty(cores),
        slot_state=empty(cores),
        tentative=zeros(cores),
        new_candidate=zeros(cores),
        failed_at=empty(cores),
        issued=zeros(cores),
        arrived=zeros(cores),
        running=empty(cores),
        busy_until=zeros(cores),
        core_start=empty(cores + 1),
        future_count=zeros(cores),
        future=small(nodes),
        ready_count=zeros(cores),
        ready=small(nodes),
        prefetch_start=empty(cores + 1),
        prefetch_next=zeros(cores),
        prefetch_copy=small(copies),
        prefetching=empty(cores),
        free_bits_per_cycle=empty(links),
        demand=zeros(links),
        load=zeros(links),
        stream_share=zeros(cores, links),
        flight_copy=small(flights),
        flight_source=small(flights),
        flight_cause=np.empty(flights, np.int8),
        flight_rate=empty(flights),
        flight_path=small(flights),
        flight_shared=small(flights),
        flight_free=small(flights),
        event_cycles=empty(flights + cores),
        event_order=empty(flights + cores),
        event_what=empty(flights + cores),
        request=empty(2 * (cores + memories) + 2),
        link_bits=zeros(len(CAUSES), links),
        words_read=zeros(len(CAUSES), memories),
        words_written=zeros(len(CAUSES), memories),
        transfers=empty(room[0], len(TRANSFER_COLUMNS)),
        streams=empty(room[1], len(STREAM_COLUMNS)),
        memory_changes=empty(room[2], len(MEMORY_COLUMNS)),
        scalars=zeros(PLACE_OTHER + 1),
    )


def _failure(problem: SchedulingProblem, state: State) -> Exception:
    """Why there is no schedule."""
    status, cn, core, other = (int(state.scalars[i]) for i in (STATUS, PLACE, PLACE_CORE, PLACE_OTHER))
    name = f"CN {cn} of layer {problem.graph.layer[cn]}"
    if status == CANNOT_RUN:
        return MappingError(f"{name} cannot run on core {core}")
    if status == NO_MEMORY:
        return MappingError(f"{name}: core {core} has no memory for operand {other}")
    if status == NO_PATH:
        return MappingError(f"there is no path from core {core} to core {other}")
    if status == DOES_NOT_FIT:
        needed, capacity = int(state.required_bits[other]), int(problem.system.memory_capacity_bits[other])
        return MappingError(f"{name} on core {core} needs {needed} bits in memory {other}, which has {capacity}")
    if len(problem.topological_order) < problem.graph.node_count:
        return InputError([Problem("CNs wait for each other in a circle", path="graph")])
    return AssertionError("the scheduler stopped before all CNs had run")


def _schedule(problem: SchedulingProblem, inputs: Inputs, state: State) -> Schedule:
    graph, system = problem.graph, problem.system
    on_core = problem.costs.on_core_energy_pj[graph.cost_row, inputs.allocation]
    return Schedule(
        allocation=inputs.allocation,
        start_cycles=state.start_cycles,
        end_cycles=state.end_cycles,
        latency_cycles=int(state.scalars[NOW]),
        transfers=state.transfers[: state.scalars[TRANSFERS]],
        streams=state.streams[: state.scalars[STREAMS]],
        memory_changes=state.memory_changes[: state.scalars[CHANGES]],
        peak_bits=state.peak_bits,
        link_bits=state.link_bits,
        words_read=state.words_read,
        words_written=state.words_written,
        on_core_energy_pj=float(np.sum(on_core)),
        causes=cause_energies(system, state.link_bits, state.words_read, state.words_written),
    )
