"""The model `stream-2023` on tiny systems, worked out on paper; systems and costs as in test_tiny_systems.py."""

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
    """A schedule of the 2023 model."""
    return simulate(problem, np.array(allocation), ScheduleOptions(schedule_model="stream-2023", **options))  # type: ignore[arg-type]


def spans(schedule: Schedule) -> list[tuple[int, int]]:
    """(start, end) of each CN."""
    return list(zip(schedule.start_cycles.tolist(), schedule.end_cycles.tolist(), strict=True))


def moves(schedule: Schedule) -> list[tuple[int, str, int, int]]:
    """(piece, cause, start, end) of each transfer."""
    return [(row[0], CAUSES[row[1]], row[6], row[7]) for row in schedule.transfers.tolist()]


def test_transfers_take_a_link_one_after_the_other_smallest_first() -> None:
    """Input 30 bits 0-3, weight 50 bits 3-8, CN 8-15, result 20 bits 15-17. Energy as per bit: 40 + 24, 10 + 21."""
    problem = make_problem(bus_system(1), [Piece(50), Piece(30), Piece(20, 0, True)], [Node(7, [(0, 1), (1, 2)])])
    schedule = run(problem, [0])
    assert moves(schedule) == [(1, "off_chip_fetch", 0, 3), (0, "off_chip_fetch", 3, 8), (2, "sink_output", 15, 17)]
    assert spans(schedule) == [(8, 15)]
    assert schedule.latency_cycles == 17
    assert schedule.energy_pj == 40 + 24 + 10 + 21


def test_transfers_are_as_late_as_useful() -> None:
    """CN 1 (after CN 0, 0-20) needs 40 bits: they come at 20 - 4 = 16, not at 0."""
    problem = make_problem(bus_system(1), [Piece(40)], [Node(20), Node(5, [(0, WEIGHT)], after=[0])])
    schedule = run(problem, [0, 0])
    assert moves(schedule) == [(0, "off_chip_fetch", 16, 20)]
    assert spans(schedule) == [(0, 20), (20, 25)]


def test_gaps_of_links_are_not_filled() -> None:
    """CN 0 (core 0, 0-20), CN 1 after it fetches 40 bits at 16-20; CN 2 (core 1, ready at 20, too) gets its 20-22.

    The link is idle until 16, but the decision for CN 1 comes first.
    """
    nodes = [Node(20), Node(5, [(0, WEIGHT)], after=[0]), Node(5, [(1, WEIGHT)], after=[0])]
    schedule = run(make_problem(bus_system(2), [Piece(40), Piece(20)], nodes), [0, 0, 1])
    assert moves(schedule) == [(0, "off_chip_fetch", 16, 20), (1, "off_chip_fetch", 20, 22)]
    assert spans(schedule) == [(0, 20), (20, 25), (22, 27)]


def test_whole_outputs_move_and_each_link_has_its_own_time() -> None:
    """CN 0 makes pieces of 30 and 10 bits; CN 1 on core 1 needs the first, and gets 40 bits over links of 10 and 20.

    Start 5 (CN 0 ends); link 0: 5-9, link 1, the last: 5-7, so CN 1 starts at 7.
    """
    paths = {(0, 1): [0, 1], (1, 0): [1, 0], (0, 2): [2], (2, 0): [2], (1, 2): [2], (2, 1): [2]}
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link(10), Link(20), Link(10)], paths)
    nodes = [Node(5, layer=0), Node(3, [(0, INPUT)], layer=1)]
    schedule = run(make_problem(system, [Piece(30, 0), Piece(10, 0)], nodes), [0, 1])
    assert moves(schedule) == [(0, "core_to_core", 5, 7)]
    assert spans(schedule) == [(0, 5), (7, 10)]
    assert schedule.latency_cycles == 10


def test_streams_take_their_links_for_the_whole_node() -> None:
    """CN 0 (20 cycles) streams 10 bits at 1 per cycle over the link of 10: nobody else has it until 20.

    CN 1 on core 1 fetches 40 bits at 20-24 and runs 24-29.
    """
    nodes = [Node(20, [(0, WEIGHT)], streams={WEIGHT: (10, 1)}), Node(5, [(1, WEIGHT)])]
    schedule = run(make_problem(bus_system(2), [Piece(10), Piece(40)], nodes), [0, 1])
    assert spans(schedule) == [(0, 20), (24, 29)]


def test_evicted_space_is_free_before_the_write_ends() -> None:
    """Core 0 has 100 bits; CN 0 (0-5) makes A (60 bits) for CN 2; CN 1 makes B (70 bits).

    At 5 A is evicted: 5-11 on the link. The reference waits for the write all the same: CN 1 11-21. At 21 CN 2 needs A
    (60 bits): B leaves nothing free, it fits never: B (no further use) is evicted at 21, 21-28, A comes 28-34.
    """
    pieces = [Piece(60, 0), Piece(70, 1)]
    nodes = [Node(5, layer=0), Node(10, after=[0], layer=1), Node(4, [(0, INPUT)], after=[1], layer=2)]
    schedule = run(make_problem(bus_system(1, [100]), pieces, nodes), [0, 0, 0])
    assert moves(schedule) == [(0, "eviction", 5, 11), (1, "eviction", 21, 28), (0, "off_chip_fetch", 28, 34)]
    assert spans(schedule) == [(0, 5), (11, 21), (34, 38)]


def test_memory_selection_takes_the_largest_layer_and_number() -> None:
    """Layer 0: CNs 0, 1; layer 1: CN 2 (after 0), CN 3 (after 1): 1, 3, 0, 2."""
    nodes = [Node(10, layer=0), Node(10, layer=0), Node(10, layer=1, after=[0]), Node(10, layer=1, after=[1])]
    problem = make_problem(bus_system(1), [], nodes)
    assert run(problem, [0] * 4, scheduler_candidate_selection="memory").start_cycles.tolist() == [20, 0, 30, 10]
    assert run(problem, [0] * 4).start_cycles.tolist() == [0, 10, 20, 30]


def test_a_core_runs_one_node_at_a_time_in_order() -> None:
    """On random problems: every CN once, after its predecessors, none at the same time on a core; or a told reason."""
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
    """Two CNs that wait for each other."""
    with pytest.raises(InputError, match="in a cycle"):
        run(make_problem(bus_system(1), [], [Node(5, after=[1]), Node(5, after=[0])]), [0, 0])


def test_words_of_both_ends_are_as_wide_as_those_that_are_read() -> None:
    """25 bits from a memory of words of 10 into one of 100: 3 words read at 1 pJ, 3 written at 2 pJ; 0.5 pJ a bit."""
    memories = [Memory(1000, 100), Memory(1000, 10)]
    system = make_system([0, 1], memories, [Link(10)], {(0, 1): [0], (1, 0): [0]})
    schedule = run(make_problem(system, [Piece(25)], [Node(4, [(0, WEIGHT)])]), [0])
    assert schedule.energy_terms_pj["off_chip_fetch"].memory_pj == 3 * 1 + 3 * 2
    assert schedule.energy_terms_pj["off_chip_fetch"].link_pj == 25 * 0.5


def test_constants_are_freed_off_chip_when_nobody_needs_them() -> None:
    """60 bits of weights and 70 of results: at the end of the CN the weights are gone, and the peak is 70, not 130."""
    schedule = run(make_problem(bus_system(1), [Piece(60), Piece(70, 0, True)], [Node(4, [(0, WEIGHT)])]), [0])
    assert schedule.peak_bits.tolist() == [130, 70]


def test_a_memory_sends_from_the_first_core_that_has_a_path() -> None:
    """Cores 0 and 1 share a memory; what core 0 makes goes to core 2, to which only core 1 has a link."""
    paths = {(1, 2): [0], (3, 0): [1], (0, 3): [1]}
    system = make_system([0, 0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link(10), Link(10)], paths)
    nodes = [Node(5, layer=0), Node(3, [(0, INPUT)], layer=1)]
    schedule = run(make_problem(system, [Piece(20, 0)], nodes), [0, 2])
    assert moves(schedule) == [(0, "core_to_core", 5, 7)]
    without = make_system([0, 0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link(10), Link(10)], {(3, 0): [1]})
    with pytest.raises(MappingError, match="no path from core 0 or 1 to core 2"):
        run(make_problem(without, [Piece(20, 0)], nodes), [0, 2])


def test_an_off_chip_memory_that_is_full_is_told() -> None:
    """Two results of 70 bits, and room for 100: nothing is thrown away."""
    pieces, nodes = [Piece(70, 0, True), Piece(70, 1, True)], [Node(4), Node(4)]
    with pytest.raises(MappingError, match="the off-chip memory has no room"):
        run(make_problem(bus_system(1, off_chip=Memory(100)), pieces, nodes), [0, 0])


def test_data_goes_by_way_of_the_off_chip_core_if_that_is_fewer_links() -> None:
    """Core 0 to core 1 is three links, and two by the off-chip core 2: 40 bits over the links 3 and 4, 5-9 and 5-7."""
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
    """CNs 1 and 2 after CN 0 (0-20) need 40 and 20 bits: they come 16-20 and 20-22, or 0-4 and 4-6."""
    nodes = [Node(20), Node(5, [(0, WEIGHT)], after=[0]), Node(5, [(1, WEIGHT)], after=[0])]
    problem = make_problem(bus_system(2), [Piece(40), Piece(20)], nodes)
    for repairs, expected in (((), [16, 20]), (("early",), [0, 4]), (("early", "gaps"), [0, 4])):
        schedule = run(problem, [0, 0, 1], model_repairs=repairs)
        assert [start for _, _, start, _ in moves(schedule)] == expected
    with pytest.raises(InputError, match=r"model_repairs: unknown, got gap "):
        run(problem, [0, 0, 1], model_repairs=("gap",))


def test_a_gap_is_filled_if_it_is_long_enough() -> None:
    """A result goes 10-12, CN 1 (core 1) gets 10 and 100 bits: 12-13 and 13-23, or 0-1 and, 1-10 being short, 12-22."""
    pieces = [Piece(20, 0, True), Piece(100), Piece(10)]
    nodes = [Node(10), Node(5, [(1, WEIGHT), (2, INPUT)])]
    problem = make_problem(bus_system(2), pieces, nodes)
    first = {row[0]: row[2] for row in moves(run(problem, [0, 1]))}
    filled = {row[0]: row[2] for row in moves(run(problem, [0, 1], model_repairs=("gaps",)))}
    assert first == {0: 10, 2: 12, 1: 13}
    assert filled == {0: 10, 2: 0, 1: 12}


def test_a_tensor_on_its_way_counts_as_there_unless_that_is_exchanged() -> None:
    """CN 0 runs 0-1; the weights of CN 1 are fetched ahead, 0-10. It runs at 1 as in the reference, or at 10."""
    nodes = [Node(1), Node(5, [(0, WEIGHT)], after=[0])]
    problem = make_problem(bus_system(1), [Piece(100)], nodes)
    early = {"operands_to_prefetch": (WEIGHT,)}
    assert spans(run(problem, [0, 0], **early)) == [(0, 1), (1, 6)]
    assert spans(run(problem, [0, 0], **early, model_repairs=("arrival",))) == [(0, 1), (10, 15)]
