"""Bounds by ordered phases: every schedule, divided among the phases, obeys all constraints of the bounds."""

from dataclasses import dataclass

import numpy as np
import pytest
from tilewright.base.errors import MappingError
from tilewright.multicore.scheduling.bounds.chains import NodeChain, chain_of
from tilewright.multicore.scheduling.bounds.classes import cn_classes
from tilewright.multicore.scheduling.bounds.limits import system_limits
from tilewright.multicore.scheduling.bounds.ordered_phases import Members, OrderedPhases
from tilewright.multicore.scheduling.bounds.paths import paths_through
from tilewright.multicore.scheduling.bounds.phase_program import Item
from tilewright.multicore.scheduling.bounds.work import possible_moves
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import Booleans, Floats, Integers, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate

from tests.unit.multicore.scheduling.random_networks import random_network
from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.tiny_systems import CAUSES

FETCH, CORE_TO_CORE = CAUSES.index("off_chip_fetch"), CAUSES.index("core_to_core")
WRITTEN = (CAUSES.index("eviction"), CAUSES.index("sink_output"))


@dataclass(frozen=True, eq=False)
class Divided:
    """A schedule, divided among the phases of a chain."""

    problem: SchedulingProblem
    schedule: Schedule
    ends: Integers
    """[phase] time of its end"""

    def part(self, start: float, end: float) -> Floats:
        """[phase] share of the time from `start` to `end` that is over when the phase ends."""
        found: Floats = np.clip((self.ends - start) / max(end - start, 1e-9), 0.0, 1.0)
        return found

    def run(self, cn: int) -> Floats:
        """[phase] share of the run of a CN that is over."""
        return self.part(float(self.schedule.start_cycles[cn]), float(self.schedule.end_cycles[cn]))

    def fetched(self, piece: int, memory: int, before: int) -> Floats:
        """[phase] share of a fetch that is over; it is the last fetch of a piece into a memory before a time."""
        moves = self.schedule.transfers
        found = (moves["piece"] == piece) & (moves["cause"] == FETCH) & (moves["target_memory"] == memory)
        rows = moves[found & (moves["end_cycles"] <= before)]
        last = rows[rows["end_cycles"].argmax()]
        return self.part(float(last["start_cycles"]), float(last["end_cycles"]))

    def moved(self, piece: int, memories: set[int], item: Item) -> tuple[Floats, Floats]:
        """(begun, done) of the first move of a result into one of the memories.

        `begun` equals `done` if the legs of the item count as one.
        """
        is_one = all(leg == 0 for _, leg in item.legs)
        moves = self.schedule.transfers
        found = (moves["piece"] == piece) & np.isin(moves["cause"], (FETCH, CORE_TO_CORE))
        rows = moves[found & np.isin(moves["target_memory"], list(memories))]
        first = rows[np.lexsort((rows["start_cycles"], rows["end_cycles"]))[0]]
        done = self.part(float(first["start_cycles"]), float(first["end_cycles"]))
        if first["cause"] == CORE_TO_CORE:
            assert self.is_way(item, self.load(first), np.zeros_like(self.load(first)))
            return done, done
        rows = moves[(moves["piece"] == piece) & np.isin(moves["cause"], WRITTEN)]
        row = rows[rows["end_cycles"].argmin()]
        written = self.part(float(row["start_cycles"]), float(row["end_cycles"]))
        assert self.is_way(item, self.load(row), self.load(first))
        return ((written + done) / 2,) * 2 if is_one else (written, done)

    def load(self, move: np.void) -> Floats:
        """[link] cycles for each bit of a move."""
        widths = self.problem.system.link_bits_per_cycle
        found = np.zeros(len(widths))
        links = np.unique(self.problem.system.path(int(move["source_core"]), int(move["target_core"])))
        found[links] = 1.0 / widths[links]
        return found

    def is_way(self, item: Item, first: Floats, second: Floats) -> bool:
        """Whether an item may move on these links. Legs over equal links count together."""
        ways = item.loads[:, :, item.loads.shape[2] - len(first) :]
        legs = np.stack((first + second, 0 * second) if np.array_equal(first, second) else (first, second))
        return bool(np.all(np.isclose(ways, legs), axis=(1, 2)).any())


def phase_ends(schedule: Schedule, chain: NodeChain) -> Integers:
    """[phase] time of its end."""
    times = [time for cn in chain.cns.tolist() for time in (schedule.start_cycles[cn], schedule.end_cycles[cn])]
    return np.array([*times, schedule.latency_cycles], np.int64)


def faults(problem: SchedulingProblem, schedule: Schedule, allowed: Booleans | None, count: int) -> list[str]:
    """Violated constraints on the order of moves and runs and on pieces that stay in memory; there must be none."""
    classes = cn_classes(problem, allowed)
    paths = paths_through(problem, classes, system_limits(problem.system))
    moves, chain = (possible_moves(problem, classes, with_streamed=True), chain_of(problem, paths, count))
    made = OrderedPhases(problem, classes, moves, chain)
    program = made.program(paths)
    divided = Divided(problem, schedule, phase_ends(schedule, chain))
    begun = np.zeros((len(program.items), program.phases))
    done = np.zeros_like(begun)
    memory_of, core = problem.system.core_memory, schedule.allocation

    def fill(members: Members, part_of) -> None:  # type: ignore[no-untyped-def]
        for item, found in members.of_item.items():
            total = sum(members.weight[one] for one in found)
            for one in found:
                parts = part_of(item, one)
                begun[item] += members.weight[one] / total * parts[0]
                done[item] += members.weight[one] / total * parts[1]

    def of_fetch(item: int, piece: int) -> tuple[Floats, Floats]:
        reader, operand = made.reader_of[piece]
        place = int(memory_of[core[reader], operand])
        found = divided.fetched(piece, place, int(schedule.start_cycles[reader]))
        return found, found

    def of_move(item: int, piece: int) -> tuple[Floats, Floats]:
        readers = [one for one in range(len(moves.piece)) if moves.piece[one] == piece]
        kind = made.kind_of[piece]
        readers = [one for one in readers if moves.kind[one] == kind]
        if moves.reader[readers[0]] < 0:
            rows = schedule.transfers[
                (schedule.transfers["piece"] == piece) & np.isin(schedule.transfers["cause"], WRITTEN)
            ]
            row = rows[rows["end_cycles"].argmin()]
            found = divided.part(float(row["start_cycles"]), float(row["end_cycles"]))
            return found, found
        places = {int(memory_of[core[moves.reader[one]], moves.operand[one]]) for one in readers}
        return divided.moved(piece, places, program.items[item])

    fill(made.runs, lambda _, cn: (divided.run(cn),) * 2)
    fill(made.fetched, of_fetch)
    fill(made.moved, of_move)
    wrong = []
    for item, one in enumerate(program.items):
        if begun[item, one.first - 1 : one.first].any() or (done[item, one.last :] < 1 - 1e-9).any():
            wrong.append(f"item {item} is not done in its phases")
    for before, after in program.orders.tolist():
        if (begun[after] > done[before] + 1e-9).any():
            wrong.append(f"item {after} is ahead of item {before}")
    for x in range(1, program.phases):
        held = np.zeros(len(program.room_bits))
        for bits, reader, of_set in program.stays.tolist():
            there = program.items[bits].count * (done[bits, x - 1] - begun[reader, x - 1])
            held += max(there, 0.0) * program.inside[of_set]
        if (held > program.room_bits * (1 + 1e-9)).any():
            wrong.append(f"at the beginning of phase {x} more stays than fits")
    return wrong


@pytest.mark.parametrize("seed", range(60))
def test_schedules_obey_orders_and_stays(seed: int) -> None:
    """Schedules of small problems and of networks obey the constraints on order and on pieces that stay in memory.

    The constraints are those for all allocations, and those for the allocation of the schedule.
    """
    options = ScheduleOptions(
        scheduler_candidate_selection=("latency", "memory")[seed % 2],
        operands_to_prefetch=((), (1,), (1, 2))[seed % 3],
        prefetch_results=seed % 5 == 0,
        layers_by_off_chip=(0, 2) if seed % 4 == 0 else (),
    )
    if seed % 3:
        problem, space = random_network(7000 + seed, 40)
        draw = np.random.default_rng(seed)
        cores = np.array([draw.choice(choices) for choices in space.choices])
        allocation = cores[space.part_of_cn]
    else:
        problem, allocation = random_problem(7000 + seed, 25)
    own = np.zeros((len(allocation), problem.system.core_count), np.bool_)
    own[np.arange(len(allocation)), allocation] = True
    try:
        schedule = simulate(problem, allocation, options)
    except MappingError:
        return  # an allocation without a path, or that does not fit
    for allowed in (None, own):
        for count in (1, 4, 16):
            assert faults(problem, schedule, allowed, count) == []
