"""Running the compiled scheduler: a problem and an allocation in, a `Schedule` out."""

from typing import Any

import numpy as np

from tilewright.compiled import native_function
from tilewright.errors import InputError, MappingError, Problem
from tilewright.scheduling.arrays import Array, Block, inputs_block, problem_arrays, state_block
from tilewright.scheduling.models import CAUSAL, OTHER_MODELS
from tilewright.scheduling.options import ScheduleOptions
from tilewright.scheduling.problem import Integers, SchedulingProblem
from tilewright.scheduling.result import Schedule, cause_energies
from tilewright.scheduling.simulation_kernel import run
from tilewright.scheduling.state_record import CANNOT_RUN, DOES_NOT_FIT, DONE, INPUTS, NO_MEMORY, NO_PATH, STATE


class Scheduler:
    """Schedules allocations of one problem; what does not depend on the allocation is made once.

    It may be called by several threads at once: each call has its own state, and the kernel releases the lock.
    """

    def __init__(self, problem: SchedulingProblem, options: ScheduleOptions | None = None) -> None:
        self.problem = problem
        self.options = options or ScheduleOptions()
        self._arrays: dict[str, Array] = problem_arrays(problem)
        self._run = native_function(run, (INPUTS, STATE))
        graph = problem.graph
        self._kept_bits = int(graph.piece_bits[(graph.piece_producer < 0) | graph.piece_is_output].sum())

    def __call__(self, allocation: Integers) -> Schedule:
        """The schedule where CN i runs on core `allocation[i]`; raises as `simulate` does."""
        count = self.problem.graph.node_count
        if len(allocation) != count:
            message = f"must name a core for each of {count} CNs"
            raise InputError([Problem(message, path="allocation", value=str(len(allocation)))])
        if self.options.schedule_model != CAUSAL:
            other = OTHER_MODELS[self.options.schedule_model]
            return other.simulate(self.problem, np.asarray(allocation, np.int64), self.options)
        _check_off_chip(self.problem, self._kept_bits, "constants and results take")
        inputs = inputs_block(self.problem, self._arrays, allocation, self.options)
        room = self._log_room() if self.options.record else (0, 0, 0)
        while True:
            state = state_block(self.problem, room)
            self._run(inputs.record, state.record, 0)
            if not self.options.record:
                break
            needed = _rows_needed(state)
            if all(count <= limit for count, limit in zip(needed, room, strict=True)):
                break
            room = needed  # evictions and fetching again made the logs longer than usual
        if state.record.status != DONE:
            raise _failure(self.problem, state)
        off_chip_bits = int(state.arrays["memories"]["peak_bits"][self.problem.system.off_chip_memory])
        _check_off_chip(self.problem, off_chip_bits, "this allocation puts there")
        return _schedule(self.problem, inputs, state)

    def _log_room(self) -> tuple[int, int, int]:
        """Rows for the logs that are enough where little is evicted: transfers, streams, memory changes."""
        problem = self.problem
        moves = len(problem.graph.piece_bits) + len(problem.graph.need_piece)
        streams = len(problem.system.link_bits_per_cycle) * problem.graph.node_count
        return moves, streams if np.any(problem.costs.stream_bits) else 0, 2 * moves + 1


def simulate(problem: SchedulingProblem, allocation: Integers, options: ScheduleOptions | None = None) -> Schedule:
    """The schedule of `problem` where CN i runs on core `allocation[i]`, by the rules of docs/scheduling.md.

    Raises MappingError where a CN cannot run on its core or does not fit its memories, data has no path, or the
    off-chip memory is too small; InputError where CNs wait for each other in a circle. To schedule many allocations
    of a problem, keep a `Scheduler`.
    """
    return Scheduler(problem, options)(allocation)


def _check_off_chip(problem: SchedulingProblem, bits: int, what: str) -> None:
    """Raise MappingError where the off-chip memory, which keeps all that is written to it, cannot hold the bits."""
    capacity = int(problem.system.memory_capacity_bits[problem.system.off_chip_memory])
    if bits > capacity:
        raise MappingError(f"the off-chip memory is too small: it has {capacity:,} bits, {what} {bits:,}")


def _rows_needed(state: Block) -> tuple[int, int, int]:
    record = state.record
    return int(record.transfers_count), int(record.streams_count), int(record.changes_count)


def _failure(problem: SchedulingProblem, state: Block) -> Exception:
    """Why there is no schedule."""
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
        return MappingError(f"{name} on core {core} needs {needed} bits in memory {other}, which has {capacity}")
    if len(problem.topological_order) < problem.graph.node_count:
        return InputError([Problem("CNs wait for each other in a circle", path="graph")])
    return AssertionError("the scheduler stopped before all CNs had run")


def _schedule(problem: SchedulingProblem, inputs: Block, state: Block) -> Schedule:
    arrays, allocation = state.arrays, inputs.arrays["allocation"]
    transfers, streams, changes = _rows_needed(state)
    on_core = problem.costs.on_core_energy_pj[problem.graph.cost_row, allocation]
    return Schedule(
        allocation=allocation,
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
        on_core_energy_pj=float(np.sum(on_core)),
        causes=cause_energies(problem.system, arrays["link_bits"], arrays["words_read"], arrays["words_written"]),
    )
