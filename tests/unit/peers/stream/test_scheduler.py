"""The model `stream-2023` on tiny systems, worked out on paper. Systems and costs are those of test_tiny_systems.py."""

from collections.abc import Sequence

import numpy as np
import pytest
from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate

from tests.unit.multicore.scheduling.random_problems import random_problem
from tests.unit.multicore.scheduling.tiny_systems import (
    CAUSES,
    INPUT,
    WEIGHT,
    Link,
    Memory,
    Node,
    Piece,
    bus_system,
    make_problem,
    make_system,
)


def run(problem: SchedulingProblem, allocation: Sequence[int], **options: object) -> Schedule:
    """The schedule of an allocation by the 2023 model."""
    return simulate(problem, np.array(allocation), ScheduleOptions(schedule_model="stream-2023", **options))  # type: ignore[arg-type]


def spans(schedule: Schedule) -> list[tuple[int, int]]:
    """(start, end) of each CN."""
    return list(zip(schedule.start_cycles.tolist(), schedule.end_cycles.tolist(), strict=True))


def moves(schedule: Schedule) -> list[tuple[int, str, int, int]]:
    """(piece, cause, start, end) of each transfer."""
    return [(row[0], CAUSES[row[1]], row[6], row[7]) for row in schedule.transfers.tolist()]


def test_transfers_take_a_link_one_after_the_other_smallest_first() -> None:
    """Transfers take the link one after the other, the smallest first, and energy counts by bits.

    The input of 30 bits comes 0-3, the weight of 50 bits 3-8, CN 0 runs 8-15, and the result of 20 bits leaves 15-17.
    Energy: 40 + 24 and 10 + 21.
    """
    problem = make_problem(bus_system(1), [Piece(50), Piece(30), Piece(20, 0, True)], [Node(7, [(0, 1), (1, 2)])])
    schedule = run(problem, [0])
    assert moves(schedule) == [(1, "off_chip_fetch", 0, 3), (0, "off_chip_fetch", 3, 8), (2, "sink_output", 15, 17)]
    assert spans(schedule) == [(8, 15)]
    assert schedule.latency_cycles == 17
    assert schedule.energy_pj == 40 + 24 + 10 + 21


def test_transfers_are_as_late_as_useful() -> None:
    """A transfer is as late as useful: CN 1 runs after CN 0 (0-20), so its 40 bits come at 20 - 4 = 16."""
    problem = make_problem(bus_system(1), [Piece(40)], [Node(20), Node(5, [(0, WEIGHT)], after=[0])])
    schedule = run(problem, [0, 0])
    assert moves(schedule) == [(0, "off_chip_fetch", 16, 20)]
    assert spans(schedule) == [(0, 20), (20, 25)]


def test_gaps_of_links_are_not_filled() -> None:
    """A gap of a link is not filled.

    CN 0 runs 0-20 on core 0. The next CN there, CN 1, fetches 40 bits 16-20. CN 2 on core 1 is ready at 20, too, and
    fetches 20 bits 20-22. The link is idle until 16, but the decision for CN 1 comes first.
    """
    nodes = [Node(20), Node(5, [(0, WEIGHT)], after=[0]), Node(5, [(1, WEIGHT)], after=[0])]
    schedule = run(make_problem(bus_system(2), [Piece(40), Piece(20)], nodes), [0, 0, 1])
    assert moves(schedule) == [(0, "off_chip_fetch", 16, 20), (1, "off_chip_fetch", 20, 22)]
    assert spans(schedule) == [(0, 20), (20, 25), (22, 27)]


def test_whole_outputs_move_and_each_link_has_its_own_time() -> None:
    """A whole output moves, and each link has its own time.

    CN 0 makes pieces of 30 and 10 bits. CN 1 on core 1 needs the first, and gets all 40 bits over links of 10 and 20.
    CN 0 ends at 5; link 0 is busy 5-9, and the last link 5-7, so CN 1 starts at 7.
    """
    paths = {(0, 1): [0, 1], (1, 0): [1, 0], (0, 2): [2], (2, 0): [2], (1, 2): [2], (2, 1): [2]}
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link(10), Link(20), Link(10)], paths)
    nodes = [Node(5, layer=0), Node(3, [(0, INPUT)], layer=1)]
    schedule = run(make_problem(system, [Piece(30, 0), Piece(10, 0)], nodes), [0, 1])
    assert moves(schedule) == [(0, "core_to_core", 5, 7)]
    assert spans(schedule) == [(0, 5), (7, 10)]
    assert schedule.latency_cycles == 10


def test_streams_take_their_links_for_the_whole_node() -> None:
    """A stream takes its link for the whole run of the CN.

    CN 0 (20 cycles) streams 10 bits at 1 a cycle over a link of 10, which nobody else can use until 20. CN 1 on core 1
    fetches 40 bits 20-24 and runs 24-29.
    """
    nodes = [Node(20, [(0, WEIGHT)], streams={WEIGHT: (10, 1)}), Node(5, [(1, WEIGHT)])]
    schedule = run(make_problem(bus_system(2), [Piece(10), Piece(40)], nodes), [0, 1])
    assert spans(schedule) == [(0, 20), (24, 29)]


def test_evicted_space_is_free_before_the_write_ends() -> None:
    """Evicted space is free before the write ends, but the next CN waits for the write.

    Core 0 has 100 bits. CN 0 (0-5) makes A (60 bits) for CN 2, and CN 1 makes B (70 bits). A is evicted 5-11, and CN 1
    runs 11-21. At 21 CN 2 needs A, which does not fit beside B. B has no further use and is evicted 21-28; A comes
    28-34.
    """
    pieces = [Piece(60, 0), Piece(70, 1)]
    nodes = [Node(5, layer=0), Node(10, after=[0], layer=1), Node(4, [(0, INPUT)], after=[1], layer=2)]
    schedule = run(make_problem(bus_system(1, [100]), pieces, nodes), [0, 0, 0])
    assert moves(schedule) == [(0, "eviction", 5, 11), (1, "eviction", 21, 28), (0, "off_chip_fetch", 28, 34)]
    assert spans(schedule) == [(0, 5), (11, 21), (34, 38)]


def test_memory_selection_takes_the_largest_layer_and_number() -> None:
    """Selection by memory takes the deepest layer and the largest number: CNs 1, 3, 0, 2. CN 2 waits for 0, CN
    3 for 1.
    """
    nodes = [Node(10, layer=0), Node(10, layer=0), Node(10, layer=1, after=[0]), Node(10, layer=1, after=[1])]
    problem = make_problem(bus_system(1), [], nodes)
    assert run(problem, [0] * 4, scheduler_candidate_selection="memory").start_cycles.tolist() == [20, 0, 30, 10]
    assert run(problem, [0] * 4).start_cycles.tolist() == [0, 10, 20, 30]


def test_a_core_runs_one_node_at_a_time_in_order() -> None:
    """Every CN of a random problem runs once, after its predecessors and alone on its core, or an error gives a
    reason.
    """
    done = 0
    for seed in range(150):
        problem, allocation = random_problem(seed, 15)
        try:
            schedule = run(problem, allocation.tolist())
        except MappingError:
            continue
        done += 1
        first, successor = problem.edges
        source = np.repeat(np.arange(len(allocation)), np.diff(first))
        assert np.all(schedule.start_cycles[successor] >= schedule.end_cycles[source])
        for core in set(allocation.tolist()):
            own = np.flatnonzero(allocation == core)
            own = own[np.argsort(schedule.start_cycles[own])]
            assert np.all(schedule.start_cycles[own][1:] >= schedule.end_cycles[own][:-1])
    assert done > 100


def test_a_circle_is_told() -> None:
    """Two CNs that wait for each other raise InputError."""
    with pytest.raises(InputError, match="in a cycle"):
        run(make_problem(bus_system(1), [], [Node(5, after=[1]), Node(5, after=[0])]), [0, 0])


def test_words_of_both_ends_are_as_wide_as_those_that_are_read() -> None:
    """25 bits go from words of 10 bits into words of 100: 3 words are read at 1 pJ and 3 written at 2 pJ; 0.5 pJ a bit
    on the link.
    """
    memories = [Memory(1000, 100), Memory(1000, 10)]
    system = make_system([0, 1], memories, [Link(10)], {(0, 1): [0], (1, 0): [0]})
    schedule = run(make_problem(system, [Piece(25)], [Node(4, [(0, WEIGHT)])]), [0])
    assert schedule.energy_terms_pj["off_chip_fetch"].memory_pj == 3 * 1 + 3 * 2
    assert schedule.energy_terms_pj["off_chip_fetch"].link_pj == 25 * 0.5


def test_constants_are_freed_off_chip_when_nobody_needs_them() -> None:
    """60 bits of weights are freed off-chip before 70 bits of results arrive, so the peak is 70 bits, not 130."""
    schedule = run(make_problem(bus_system(1), [Piece(60), Piece(70, 0, True)], [Node(4, [(0, WEIGHT)])]), [0])
    assert schedule.peak_bits.tolist() == [130, 70]


def test_a_memory_sends_from_the_first_core_that_has_a_path() -> None:
    """Cores 0 and 1 share a memory. A piece of core 0 goes to core 2 over the link that only core 1 has."""
    paths = {(1, 2): [0], (3, 0): [1], (0, 3): [1]}
    system = make_system([0, 0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link(10), Link(10)], paths)
    nodes = [Node(5, layer=0), Node(3, [(0, INPUT)], layer=1)]
    schedule = run(make_problem(system, [Piece(20, 0)], nodes), [0, 2])
    assert moves(schedule) == [(0, "core_to_core", 5, 7)]
    without = make_system([0, 0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link(10), Link(10)], {(3, 0): [1]})
    with pytest.raises(MappingError, match="no path from core 0 or 1 to core 2"):
        run(make_problem(without, [Piece(20, 0)], nodes), [0, 2])


def test_an_off_chip_memory_that_is_full_is_told() -> None:
    """Two results of 70 bits in an off-chip memory of 100 bits raise an error; nothing is dropped."""
    pieces, nodes = [Piece(70, 0, True), Piece(70, 1, True)], [Node(4), Node(4)]
    with pytest.raises(MappingError, match="the off-chip memory has no room"):
        run(make_problem(bus_system(1, off_chip=Memory(100)), pieces, nodes), [0, 0])


def test_data_goes_by_way_of_the_off_chip_core_if_that_is_fewer_links() -> None:
    """The way from core 0 to core 1 by the off-chip core has two links instead of three: 40 bits pass links 3 and 4 at
    5-9 and 5-7.
    """
    paths = {(0, 1): [0, 1, 2], (0, 2): [3], (2, 1): [4], (2, 0): [3], (1, 2): [4]}
    links = [Link(40), Link(40), Link(40), Link(10), Link(20)]
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], links, paths)
    nodes = [Node(5, layer=0), Node(3, [(0, INPUT)], layer=1)]
    schedule = run(make_problem(system, [Piece(40, 0)], nodes), [0, 1])
    assert spans(schedule) == [(0, 5), (7, 10)]
    assert schedule.link_bits.sum(axis=0).tolist() == [0, 0, 0, 40, 40]
    del paths[0, 1]
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], links, paths)
    assert spans(run(make_problem(system, [Piece(40, 0)], nodes), [0, 1])) == [(0, 5), (7, 10)]


def test_transfers_that_start_early_do_not_wait_for_their_use() -> None:
    """CNs 1 and 2 run after CN 0 (0-20) and need 40 and 20 bits, which come 16-20 and 20-22, or with the repair 0-4 and
    4-6.
    """
    nodes = [Node(20), Node(5, [(0, WEIGHT)], after=[0]), Node(5, [(1, WEIGHT)], after=[0])]
    problem = make_problem(bus_system(2), [Piece(40), Piece(20)], nodes)
    for repairs, expected in (((), [16, 20]), (("early",), [0, 4]), (("early", "gaps"), [0, 4])):
        schedule = run(problem, [0, 0, 1], model_repairs=repairs)
        assert [start for _, _, start, _ in moves(schedule)] == expected
    with pytest.raises(InputError, match=r"model_repairs: unknown, got gap "):
        run(problem, [0, 0, 1], model_repairs=("gap",))


def test_a_gap_is_filled_if_it_is_long_enough() -> None:
    """The repair fills a gap that is long enough.

    A result leaves 10-12. CN 1 on core 1 fetches 10 bits and 100 bits. Without the repair, the fetches take 12-13 and
    13-23. With the repair, they take 0-1 and 12-22, because the gap 1-10 is too short for the second fetch.
    """
    pieces = [Piece(20, 0, True), Piece(100), Piece(10)]
    nodes = [Node(10), Node(5, [(1, WEIGHT), (2, INPUT)])]
    problem = make_problem(bus_system(2), pieces, nodes)
    first = {row[0]: row[2] for row in moves(run(problem, [0, 1]))}
    filled = {row[0]: row[2] for row in moves(run(problem, [0, 1], model_repairs=("gaps",)))}
    assert first == {0: 10, 2: 12, 1: 13}
    assert filled == {0: 10, 2: 0, 1: 12}


def test_a_tensor_on_its_way_counts_as_there_unless_that_is_exchanged() -> None:
    """CN 1 runs at 1, before its prefetched weights (0-10) have arrived, as in the reference; with the repair it runs
    at 10.
    """
    nodes = [Node(1), Node(5, [(0, WEIGHT)], after=[0])]
    problem = make_problem(bus_system(1), [Piece(100)], nodes)
    early = {"operands_to_prefetch": (WEIGHT,)}
    assert spans(run(problem, [0, 0], **early)) == [(0, 1), (1, 6)]
    assert spans(run(problem, [0, 0], **early, model_repairs=("arrival",))) == [(0, 1), (10, 15)]
