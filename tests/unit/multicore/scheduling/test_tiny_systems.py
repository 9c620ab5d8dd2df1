"""Schedules of tiny systems, worked out on paper by the rules of docs/multi-core-model.md#scheduling.

Unless a test says otherwise: links carry 10 bits per cycle at 0.5 pJ per bit; words have 1000 bits, so that each piece
is one word; a word costs 1 pJ to read and 2 pJ to write on chip, 10 and 20 pJ off-chip. A fetch of b bits from the
off-chip memory over one link thus costs 0.5 b on the link and 10 + 2 = 12 pJ in memories, a write to it 1 + 20 = 21 pJ.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import CoreSystem, SchedulingProblem
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate

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

DRAM = Memory(10**9, 1000, 10.0, 20.0)


def run(problem: SchedulingProblem, allocation: Sequence[int], **options: object) -> Schedule:
    """A schedule that keeps all invariants."""
    schedule = simulate(problem, np.array(allocation), ScheduleOptions(**options))  # type: ignore[arg-type]
    assert check_schedule(problem, schedule) == []
    return schedule


def spans(schedule: Schedule) -> list[tuple[int, int]]:
    """(start, end) of each CN."""
    return list(zip(schedule.start_cycles.tolist(), schedule.end_cycles.tolist(), strict=True))


def moves(schedule: Schedule) -> list[tuple[int, str, int, int, int, int]]:
    """(piece, cause, source memory, target memory, start, end) of each transfer."""
    return [(row[0], CAUSES[row[1]], row[2], row[3], row[6], row[7]) for row in schedule.transfers.tolist()]


def energy(schedule: Schedule) -> dict[str, tuple[float, float]]:
    """(link, memory) energy in pJ of the causes that cost anything."""
    return {name: tuple(schedule.energy_terms_pj[name]) for name in CAUSES if any(schedule.energy_terms_pj[name])}


def test_one_node_waits_for_its_two_constants() -> None:
    """Weight 50 bits: 0-5, input 30 bits: 5-8 (the link is full before). CN 8-15. Result 20 bits: 15-17.

    Energy: fetches 80 × 0.5 = 40 and 2 × 12 = 24; result 20 × 0.5 = 10 and 21; CN 3; in all 98.
    The memory holds 50 from 0, 80 from 5, 100 from 8; inputs leave at 15, the result at 17.
    """
    problem = make_problem(
        bus_system(1), [Piece(50), Piece(30), Piece(20, 0, True)], [Node(7, [(0, WEIGHT), (1, INPUT)], energy_pj=3)]
    )
    schedule = run(problem, [0])
    assert spans(schedule) == [(8, 15)]
    assert schedule.latency_cycles == 17
    assert energy(schedule) == {"off_chip_fetch": (40.0, 24.0), "sink_output": (10.0, 21.0)}
    assert schedule.energy_pj == 98.0
    times, stored = schedule.memory_use(0)
    assert (times.tolist(), stored.tolist()) == ([0, 5, 8, 15, 17], [50, 80, 100, 20, 0])


def test_a_weight_stays_for_the_next_node_and_its_fetch_hides_the_next_input() -> None:
    """Weight 40 bits: 0-4, input 1 (20): 4-6; CN 0 6-16. Meanwhile the core prepares CN 1: input 2 (20): 6-8.

    The weight is there already, so CN 1 starts when CN 0 ends: 16-26. Fetched 80 bits in 3 words: 40 and 36 pJ.
    """
    nodes = [Node(10, [(0, WEIGHT), (1, INPUT)]), Node(10, [(0, WEIGHT), (2, INPUT)])]
    schedule = run(make_problem(bus_system(1), [Piece(40), Piece(20), Piece(20)], nodes), [0, 0])
    assert spans(schedule) == [(6, 16), (16, 26)]
    assert [move[4:] for move in moves(schedule)] == [(0, 4), (4, 6), (6, 8)]
    assert energy(schedule) == {"off_chip_fetch": (40.0, 36.0)}


def test_data_goes_from_core_to_core() -> None:
    """CN 0 on core 0: 0-5 makes 60 bits, sent at 5-11 to core 1, where CN 1 runs 11-14.

    Link 60 × 0.5 = 30; read 1 on core 0, write 2 on core 1. The home is dropped at 11: no copy needs it.
    """
    problem = make_problem(bus_system(2), [Piece(60, 0)], [Node(5), Node(3, [(0, INPUT)])])
    schedule = run(problem, [0, 1])
    assert spans(schedule) == [(0, 5), (11, 14)]
    assert moves(schedule) == [(0, "core_to_core", 0, 1, 5, 11)]
    assert energy(schedule) == {"core_to_core": (30.0, 3.0)}
    assert [values.tolist() for values in schedule.memory_use(0)] == [[0, 11], [60, 0]]


def test_cores_that_share_a_memory_need_no_transfer() -> None:
    """Cores 0 and 1 have the same memory: CN 1 on core 1 starts when CN 0 on core 0 ends, and nothing moves."""
    system = make_system([0, 0, 1], [Memory(), DRAM], [Link()], {(0, 2): [0], (2, 0): [0], (1, 2): [0], (2, 1): [0]})
    schedule = run(make_problem(system, [Piece(60, 0)], [Node(5), Node(3, [(0, INPUT)])]), [0, 1])
    assert spans(schedule) == [(0, 5), (5, 8)]
    assert schedule.energy_pj == 0


def test_a_bus_serves_one_transfer_at_a_time() -> None:
    """Both cores want 40 bits of their own: core 0 0-4, core 1 4-8; CNs 4-10 and 8-14."""
    nodes = [Node(6, [(0, WEIGHT)]), Node(6, [(1, WEIGHT)])]
    schedule = run(make_problem(bus_system(2), [Piece(40), Piece(40)], nodes), [0, 1])
    assert spans(schedule) == [(4, 10), (8, 14)]


def test_narrow_links_share_the_port_of_the_off_chip_memory() -> None:
    """Port (link 2) 16 bits per cycle, own links of the cores 10 each, 40 bits for each core.

    Core 0: 10 bits per cycle, 0-4. Core 1: the port has 6 left, more than a quarter of 10: ⌈40 / 6⌉ = 7, 0-7.
    Link energy: both over two links at 0.5: 80 × 0.5 × 2 = 80.
    """
    links = [Link(10), Link(10), Link(16)]
    paths = {(0, 2): [0, 2], (2, 0): [2, 0], (1, 2): [1, 2], (2, 1): [2, 1]}
    system = make_system([0, 1, 2], [Memory(), Memory(), DRAM], links, paths)
    nodes = [Node(6, [(0, WEIGHT)]), Node(6, [(1, WEIGHT)])]
    schedule = run(make_problem(system, [Piece(40), Piece(40)], nodes), [0, 1])
    assert spans(schedule) == [(4, 10), (7, 13)]
    assert schedule.transfers["bits_per_cycle"].tolist() == [10, 6]
    assert energy(schedule)["off_chip_fetch"] == (80.0, 24.0)


def test_too_small_a_share_is_not_taken() -> None:
    """As above with a port of 12: 2 are left, less than a quarter of 10, so core 1 waits until 4: 4-8, CN 8-14."""
    links = [Link(10), Link(10), Link(12)]
    paths = {(0, 2): [0, 2], (2, 0): [2, 0], (1, 2): [1, 2], (2, 1): [2, 1]}
    system = make_system([0, 1, 2], [Memory(), Memory(), DRAM], links, paths)
    nodes = [Node(6, [(0, WEIGHT)]), Node(6, [(1, WEIGHT)])]
    problem = make_problem(system, [Piece(40), Piece(40)], nodes)
    assert spans(run(problem, [0, 1])) == [(4, 10), (8, 14)]
    # A share of a fifth is allowed: ⌈40 / 2⌉ = 20.
    assert spans(run(problem, [0, 1], share_divisor=5)) == [(4, 10), (20, 26)]


def test_a_bus_broadcasts_a_piece_that_two_cores_want() -> None:
    """The 40 bits go over the bus once, 0-4; both CNs 4-10. Link 20; read once 10, written twice 4."""
    nodes = [Node(6, [(0, WEIGHT)]), Node(6, [(0, WEIGHT)])]
    system = bus_system(2, link=Link(10, 0.5, is_broadcast=True))
    schedule = run(make_problem(system, [Piece(40)], nodes), [0, 1])
    assert spans(schedule) == [(4, 10), (4, 10)]
    assert energy(schedule) == {"off_chip_fetch": (20.0, 14.0)}
    assert schedule.transfers["broadcast_of"].tolist() == [-1, 2 * 3 + 0]


def test_eviction_writes_back_and_frees_its_space_when_the_write_ends() -> None:
    """Core 0 has 100 bits. CN 0 (0-5) makes A, 60 bits, for CN 2; CN 1 makes B, 70 bits, for CN 3 on core 1.

    CN 1 is prepared at 0 but A is pinned until CN 0 ends. At 5 A is evicted: written 5-11. CN 1: 11-21.
    At 11 core 0 prepares CN 2, which lacks A; its claim waits, for B is pinned until 21. Then B may be evicted (nobody
    has it yet, core 1 prepares CN 3 since 11 but claims come before transfers): written 21-28.
    At 28 core 0 has space and B is off-chip. Core 0 was prepared first: A 28-34, then B to core 1 34-41.
    CN 2 34-38, CN 3 41-44. Both ways 130 bits over the link: 65 each; writes 2 × 21, fetches 2 × 12.
    """
    pieces = [Piece(60, 0), Piece(70, 1)]
    nodes = [Node(5), Node(10, after=[0]), Node(4, [(0, INPUT)], after=[1]), Node(3, [(1, INPUT)])]
    schedule = run(make_problem(bus_system(2, [100, 100]), pieces, nodes), [0, 0, 0, 1])
    assert moves(schedule) == [
        (0, "eviction", 0, 2, 5, 11),
        (1, "eviction", 0, 2, 21, 28),
        (0, "off_chip_fetch", 2, 0, 28, 34),
        (1, "off_chip_fetch", 2, 1, 34, 41),
    ]
    assert spans(schedule) == [(0, 5), (11, 21), (34, 38), (41, 44)]
    assert energy(schedule) == {"eviction": (65.0, 42.0), "off_chip_fetch": (65.0, 24.0)}


def test_the_cheapest_to_lose_is_evicted_and_constants_are_just_dropped() -> None:
    """Memory of 100 bits; weights W0 (30 bits, needed by CNs 0, 2 and 3), W1 (50, CNs 0 and 3); W2 (40) for CN 1.

    W0 0-3, W1 3-8, CN 0 8-18. CN 1 claims 40 at 18: keys W0 2 × 30 = 60, W1 1 × 50 = 50: W1 goes, at once, for it is
    off-chip too. W2 18-22, CN 1 22-32; CN 2 is prepared at 22, needs nothing new: 32-42. At 32 W2 is dropped, CN 3 is
    prepared and fetches W1 again: 32-37; CN 3 42-52.
    """
    pieces = [Piece(30), Piece(50), Piece(40)]
    nodes = [
        Node(10, [(0, WEIGHT), (1, WEIGHT)]),
        Node(10, [(2, WEIGHT)], after=[0]),
        Node(10, [(0, WEIGHT)], after=[1]),
        Node(10, [(0, WEIGHT), (1, WEIGHT)], after=[2]),
    ]
    schedule = run(make_problem(bus_system(1, [100]), pieces, nodes), [0, 0, 0, 0])
    assert [(move[0], *move[4:]) for move in moves(schedule)] == [(0, 0, 3), (1, 3, 8), (2, 18, 22), (1, 32, 37)]
    assert spans(schedule) == [(8, 18), (22, 32), (32, 42), (42, 52)]
    assert energy(schedule) == {"off_chip_fetch": (85.0, 48.0)}


def test_prefetching_brings_weights_while_an_input_is_made() -> None:
    """Core 1 needs CN 1's weight (80 bits) for CN 2, which waits for CN 0 and CN 1 on core 0: 0-10, 10-20.

    Without prefetching: CN 2 is a candidate from 10 on (CN 1 has started): weight 10-18, piece of 20 bits 20-22,
    CN 2 22-27. With it: weight 0-8. The end is the same; the link is free from 8 on.
    With CN 1 of 2 cycles (10-12), without: weight 10-18, piece 18-20, CN 2 20-25; with: piece 12-14, CN 2 14-19.
    """
    for cycles, plain, ahead in ((10, (22, 27), (22, 27)), (2, (20, 25), (14, 19))):
        nodes = [Node(10), Node(cycles, after=[0]), Node(5, [(0, WEIGHT), (1, INPUT)])]
        problem = make_problem(bus_system(2), [Piece(80), Piece(20, 1)], nodes)
        assert spans(run(problem, [0, 0, 1]))[2] == plain
        schedule = run(problem, [0, 0, 1], operands_to_prefetch=(WEIGHT,))
        assert spans(schedule)[2] == ahead
        assert moves(schedule)[0] == (0, "off_chip_fetch", 2, 1, 0, 8)


def test_an_operand_that_is_too_large_streams_while_the_node_runs() -> None:
    """CN of 20 cycles streams 100 bits at 5 per cycle: the link has them, 0-20; ⌈100 / 5⌉ = 20 adds nothing.

    Energy: link 100 × 0.5 = 50; off-chip end 1 word read: 10.
    """
    problem = make_problem(bus_system(1), [Piece(100)], [Node(20, [(0, WEIGHT)], streams={WEIGHT: (100, 5)})])
    schedule = run(problem, [0])
    assert spans(schedule) == [(0, 20)]
    assert moves(schedule) == []
    assert schedule.streams.tolist() == [(0, 0, 0, 20, 5, 100)]
    assert energy(schedule) == {"off_chip_stream": (50.0, 10.0)}
    assert schedule.peak_bits.tolist() == [0, 100]


def test_contention_of_the_off_chip_port_makes_a_streaming_node_longer() -> None:
    """Two CNs of 20 cycles on two cores, each streaming 140 bits at 7 per cycle over one link of 10.

    CN 0 gets 7: 0-20. CN 1 gets the 3 left (at least a quarter of 7): ⌈140 / 3⌉ = 47: 0-47.
    """
    nodes = [Node(20, [(i, WEIGHT)], streams={WEIGHT: (140, 7)}) for i in range(2)]
    schedule = run(make_problem(bus_system(2), [Piece(140), Piece(140)], nodes), [0, 1])
    assert spans(schedule) == [(0, 20), (0, 47)]


def test_a_produced_piece_that_streams_is_written_off_chip_first() -> None:
    """CN 0 (0-5) makes 50 bits, written off-chip 5-10 (eviction); CN 1 streams them, 50 at 10 per cycle: 10-18.

    CN 1 streams its output of 30 bits out, too, at 2 per cycle: together 12 on a link of 10, so 10: ⌈80 / 10⌉ = 8
    cycles instead of 4. Its result is off-chip at 18, and nothing else moves.
    Streams: link 80 × 0.5 = 40; 1 word read 10, 1 written 20. Eviction: link 25, memories 21.
    """
    nodes = [Node(5), Node(4, [(0, INPUT)], streams={INPUT: (50, 10), 0: (30, 2)})]
    schedule = run(make_problem(bus_system(1), [Piece(50, 0), Piece(30, 1, True)], nodes), [0, 0])
    assert spans(schedule) == [(0, 5), (10, 18)]
    assert moves(schedule) == [(0, "eviction", 0, 1, 5, 10)]
    assert energy(schedule) == {"off_chip_stream": (40.0, 30.0), "eviction": (25.0, 21.0)}
    assert schedule.latency_cycles == 18


def detour_system(capacities: Sequence[int], direct: Sequence[tuple[int, int]] = ()) -> CoreSystem:
    """Cores that only have link 0 to the off-chip core, but for some pairs that have link 1."""
    off = len(capacities)
    paths = {pair: [0] for core in range(off) for pair in ((core, off), (off, core))} | {pair: [1] for pair in direct}
    return make_system(range(off + 1), [*map(Memory, capacities), DRAM], [Link(), Link()], paths)


def test_data_between_cores_without_a_path_goes_by_way_of_the_off_chip_memory() -> None:
    """CN 0 on core 0 (0-5) makes 60 bits, written off-chip 5-11 (eviction), then core 1 fetches them 11-17; CN 1 17-20.

    Each way 60 × 0.5 = 30 on the link; the write costs 21, the fetch 12. The home is dropped at 11: nobody gets the
    piece from there.
    """
    problem = make_problem(detour_system([100, 100]), [Piece(60, 0)], [Node(5), Node(3, [(0, INPUT)])])
    schedule = run(problem, [0, 1])
    assert moves(schedule) == [(0, "eviction", 0, 2, 5, 11), (0, "off_chip_fetch", 2, 1, 11, 17)]
    assert spans(schedule) == [(0, 5), (17, 20)]
    assert energy(schedule) == {"eviction": (30.0, 21.0), "off_chip_fetch": (30.0, 12.0)}
    assert [values.tolist() for values in schedule.memory_use(0)] == [[0, 11], [60, 0]]


def test_a_detour_leaves_the_piece_to_those_that_can_have_it_from_its_home() -> None:
    """Core 0 sends to core 1 over link 1, to core 2 not at all. CN 0 on core 0 (0-5) makes 60 bits for all three.

    Core 1 has them over link 1 5-11, CN 1 11-14; meanwhile they are written off-chip over link 0, 5-11, and core 2
    fetches them 11-17, CN 2 17-20. CN 3 on core 0, after CN 2, still finds them at home: 20-22. It ends last, so that
    core 0 holds 60 bits from 0 to 22.
    """
    nodes = [Node(5), Node(3, [(0, INPUT)]), Node(3, [(0, INPUT)]), Node(2, [(0, INPUT)], after=[2])]
    schedule = run(make_problem(detour_system([100] * 3, [(0, 1)]), [Piece(60, 0)], nodes), [0, 1, 2, 0])
    assert sorted(moves(schedule)) == [
        (0, "core_to_core", 0, 1, 5, 11),
        (0, "eviction", 0, 3, 5, 11),
        (0, "off_chip_fetch", 3, 2, 11, 17),
    ]
    assert spans(schedule) == [(0, 5), (11, 14), (17, 20), (20, 22)]
    assert [values.tolist() for values in schedule.memory_use(0)] == [[0, 22], [60, 0]]


def test_a_detour_frees_its_space_at_home_when_it_is_written() -> None:
    """Core 0 has 100 bits. CN 0 (0-5) makes A, 60 bits, for CN 2 on core 1; CN 1 on core 0 makes B, 70 bits.

    A is pinned while it is written, 5-11; so CN 1 claims its space at 11, when A is dropped: 11-21. A to core 1 11-17,
    CN 2 17-21.
    """
    nodes = [Node(5), Node(10, after=[0]), Node(4, [(0, INPUT)])]
    schedule = run(make_problem(detour_system([100, 100]), [Piece(60, 0), Piece(70, 1)], nodes), [0, 0, 1])
    assert moves(schedule) == [(0, "eviction", 0, 2, 5, 11), (0, "off_chip_fetch", 2, 1, 11, 17)]
    assert spans(schedule) == [(0, 5), (11, 21), (17, 21)]


def test_layers_by_off_chip_leave_the_link_between_cores_to_others() -> None:
    """Core 0 sends to core 1 over link 1, 10 bits a cycle, which CN 0 (0-5) and CN 1 (5-10) would share.

    CN 0 is of layer 0, CN 1 of layer 1. Directly each piece of 60 bits takes 6 cycles. By way of the off-chip memory
    piece 0 is written 5-11 over link 0 and fetched 11-17; CN 2 17-20. Piece 1 comes directly, once CN 3 is
    prepared: 17-23. On core 0 nothing moves.
    """
    nodes = [Node(5), Node(5), Node(3, [(0, INPUT)]), Node(3, [(1, INPUT)], after=[2])]
    problem = make_problem(detour_system([200, 200], [(0, 1)]), [Piece(60, 0), Piece(60, 1)], nodes)
    layered = replace(problem, graph=replace(problem.graph, layer=np.array([0, 1, 2, 2])))
    direct = run(layered, [0, 0, 1, 1])
    assert moves(direct) == [(0, "core_to_core", 0, 1, 5, 11), (1, "core_to_core", 0, 1, 11, 17)]
    around = run(layered, [0, 0, 1, 1], layers_by_off_chip=(0,))
    assert sorted(moves(around)) == [
        (0, "eviction", 0, 2, 5, 11),
        (0, "off_chip_fetch", 2, 1, 11, 17),
        (1, "core_to_core", 0, 1, 17, 23),
    ]
    assert spans(around) == [(0, 5), (5, 10), (17, 20), (23, 26)]
    assert moves(run(layered, [0] * 4, layers_by_off_chip=(0,))) == []


FETCHED_AHEAD = [
    *(Node(5), Node(20), Node(2), Node(2, [(0, INPUT)])),
    *(Node(30), Node(2), Node(2, [(0, INPUT)])),
]
"""CN 0 on core 0 (0-5) makes a piece of 60 bits. Core 1 runs CN 1, 2, 3, core 2 CN 4, 5, 6; the last ones need it."""


def test_results_are_fetched_ahead_by_all_that_will_need_them() -> None:
    """Without: core 1 prepares CN 3 when CN 2 starts, at 20, and has the piece at 26; core 2 CN 6 at 30, 36.

    With: core 1 fetches it over the bus as soon as it is made, 5-11, and core 2 listens.
    """
    system = bus_system(3, link=Link(is_broadcast=True))
    problem = make_problem(system, [Piece(60, 0)], FETCHED_AHEAD)
    late = run(problem, [0, 1, 1, 1, 2, 2, 2])
    assert moves(late) == [(0, "core_to_core", 0, 1, 20, 26), (0, "core_to_core", 0, 2, 30, 36)]
    assert spans(late) == [(0, 5), (0, 20), (20, 22), (26, 28), (0, 30), (30, 32), (36, 38)]
    ahead = run(problem, [0, 1, 1, 1, 2, 2, 2], prefetch_results=True)
    assert moves(ahead) == [(0, "core_to_core", 0, 1, 5, 11), (0, "core_to_core", 0, 2, 5, 11)]
    assert spans(ahead) == [(0, 5), (0, 20), (20, 22), (22, 24), (0, 30), (30, 32), (32, 34)]
    assert (late.link_bits.sum(), ahead.link_bits.sum()) == (120, 60)


def test_results_are_fetched_ahead_into_space_that_nobody_claims() -> None:
    """Core 1 has 100 bits, of which CN 1 takes 50 until 20; then core 1 claims space for CN 3, and fetches."""
    system = bus_system(3, [10_000, 100, 10_000], link=Link(is_broadcast=True))
    problem = make_problem(system, [Piece(60, 0), Piece(50, 1)], FETCHED_AHEAD)
    schedule = run(problem, [0, 1, 1, 1, 2, 2, 2], prefetch_results=True)
    assert moves(schedule) == [(0, "core_to_core", 0, 2, 5, 11), (0, "core_to_core", 0, 1, 20, 26)]
    assert spans(schedule)[3] == (26, 28)


def test_what_a_core_could_not_write_back_is_off_chip_before() -> None:
    """Core 1 has a path from core 0 (link 1) and from the off-chip core (link 0), none to it; its memory has 60 bits.

    CN 0 on core 0 (0-5) makes 60 bits: to core 1 over link 1 5-11, as the home is there, and off-chip 5-11. CN 1 on
    core 1 11-14. Then CN 2 on core 1 takes all of the memory for a weight of 50 bits, so that the piece is dropped, not
    written: weight 14-19, CN 2 19-22. CN 3 needs the piece again: off-chip 22-28, CN 3 28-31.
    """
    system = make_system(
        range(3), [Memory(), Memory(60), DRAM], [Link(), Link()], {(0, 2): [0], (2, 0): [0], (2, 1): [0], (0, 1): [1]}
    )
    nodes = [Node(5), Node(3, [(0, INPUT)]), Node(3, [(1, WEIGHT)], after=[1]), Node(3, [(0, INPUT)], after=[2])]
    schedule = run(make_problem(system, [Piece(60, 0), Piece(50)], nodes), [0, 1, 1, 1])
    assert sorted(moves(schedule)) == [
        (0, "core_to_core", 0, 1, 5, 11),
        (0, "eviction", 0, 2, 5, 11),
        (0, "off_chip_fetch", 2, 1, 22, 28),
        (1, "off_chip_fetch", 2, 1, 14, 19),
    ]
    assert spans(schedule) == [(0, 5), (11, 14), (19, 22), (28, 31)]


def test_a_halo_that_two_nodes_share_moves_once() -> None:
    """Rows r0, r1, r2 of 20 bits made by CN 0 (0-4) on core 0; on core 1 CN 1 needs r0, r1, CN 2 r1, r2.

    r0 4-6, r1 6-8, CN 1 8-13; r2 for CN 2, prepared from 8 on: 8-10; CN 2 13-18. Moved: 60 bits, not 80.
    """
    nodes = [Node(4), Node(5, [(0, INPUT), (1, INPUT)]), Node(5, [(1, INPUT), (2, INPUT)])]
    schedule = run(make_problem(bus_system(2), [Piece(20, 0)] * 3, nodes), [0, 1, 1])
    assert spans(schedule) == [(0, 4), (8, 13), (13, 18)]
    assert energy(schedule) == {"core_to_core": (30.0, 9.0)}


def test_selection_by_latency_goes_wide_and_by_memory_goes_deep() -> None:
    """One core; layer 0 has CNs 0, 1, 2, layer 1 has CN 3 (after 0), CN 4 (after 1); all 10 cycles.

    At 0: CN 0. At 0, too, the next: candidates 1 and 2 (ready 0) and 3 (ready at 10, the horizon): latency takes 1,
    then 2, then 3 (ready at 10), then 4; memory takes the deepest: 3, then 1, then 4, then 2.
    """
    nodes = [Node(10, layer=0)] * 3 + [Node(10, layer=1, after=[0]), Node(10, layer=1, after=[1])]
    problem = make_problem(bus_system(1), [], nodes)
    assert run(problem, [0] * 5).start_cycles.tolist() == [0, 10, 20, 30, 40]
    deep = simulate(problem, np.zeros(5, np.int64), ScheduleOptions(scheduler_candidate_selection="memory"))
    assert deep.start_cycles.tolist() == [0, 20, 40, 10, 30]


def test_selection_by_memory_finishes_rows_where_the_weights_fit_and_groups_where_they_do_not() -> None:
    """One core; layer 0 in two rows of two groups (CNs 0-3 row by row, a weight of 40 bits for each group); layer 1 has
    a CN for each row, after both groups of it. All 10 cycles.

    A weight comes in 40 / 10 = 4 cycles: CN 0 (group 0, row 0) starts at 4. Memory of 100 bits: both weights fit, so
    row 0 comes first: CN 0 4-14, CN 1 14-24, then layer 1's CN 4 24-34, CN 2 34-44, CN 3 44-54, CN 5 54-64.
    Memory of 79 bits: the second weight waits for the first, so group 0 runs to its end: CN 0 4-14, CN 2 14-24, then
    the weight of group 1 24-28, CN 1 28-38. While it runs CN 4 (ready at its end) is prepared: 38-48, then CN 3 48-58,
    CN 5 58-68.
    """
    nodes = [Node(10, [(group, WEIGHT)], group=group) for _ in range(2) for group in range(2)]
    nodes += [Node(10, layer=1, after=[0, 1]), Node(10, layer=1, after=[2, 3])]
    nodes[2] = replace(nodes[2], after=[0])
    nodes[3] = replace(nodes[3], after=[1])
    pieces = [Piece(40), Piece(40)]
    by_memory = ScheduleOptions(scheduler_candidate_selection="memory")
    starts = {
        capacity: simulate(
            make_problem(bus_system(1, [capacity]), pieces, nodes), np.zeros(6, np.int64), by_memory
        ).start_cycles.tolist()
        for capacity in (100, 79)
    }
    assert starts == {100: [4, 14, 34, 44, 24, 54], 79: [4, 28, 14, 48, 38, 58]}


def test_selection_by_memory_looks_at_the_cores_that_run_the_layer_not_at_those_that_might() -> None:
    """The same on core 0 of 100 bits, whether core 1, of 79, may run the layer or not."""
    nodes = [Node(10, [(group, WEIGHT)], group=group) for _ in range(2) for group in range(2)]
    nodes += [Node(10, layer=1, after=[0, 1]), Node(10, layer=1, after=[2, 3])]
    nodes[2], nodes[3] = replace(nodes[2], after=[0]), replace(nodes[3], after=[1])
    problem = make_problem(bus_system(2, [100, 79]), [Piece(40), Piece(40)], nodes)
    runtime = problem.costs.runtime_cycles.copy()
    runtime[:, 1] = -1
    fixed = replace(problem, costs=replace(problem.costs, runtime_cycles=runtime))
    by_memory = ScheduleOptions(scheduler_candidate_selection="memory")
    for given in (problem, fixed):
        found = simulate(given, np.zeros(6, np.int64), by_memory)
        assert found.start_cycles.tolist() == [4, 14, 34, 44, 24, 54]


def test_selection_by_progress_advances_layers_together() -> None:
    """One core; layers 0 and 1 have CNs 0, 1 and 2, 3; layer 2 has CN 4 (after 0 and 2) and CN 5 (after 1 and 3); all
    10 cycles.

    CNs 0, 2 and 4 have progress 0, the others 1/2. Of equal progress, the deepest layer goes first: CN 2 0-10, CN 0
    10-20, then CN 4 is ready: 20-30. Then CN 3 30-40, CN 1 40-50, CN 5 50-60. By latency, CN 4 waits for all of both
    layers: 0, 1, 2, 3, 4, 5. By memory, layer 1 goes first, because it is deeper: CN 2, CN 3, CN 0, CN 4, CN 1, CN 5.
    """
    nodes = [Node(10, layer=layer) for layer in (0, 0, 1, 1)]
    nodes += [Node(10, layer=2, after=[0, 2]), Node(10, layer=2, after=[1, 3])]
    problem = make_problem(bus_system(1), [], nodes)
    orders = {
        rule: np.argsort(
            simulate(problem, np.zeros(6, np.int64), ScheduleOptions(scheduler_candidate_selection=rule)).start_cycles
        ).tolist()
        for rule in ("latency", "memory", "progress")
    }
    assert orders == {"latency": [0, 1, 2, 3, 4, 5], "memory": [2, 3, 0, 4, 1, 5], "progress": [2, 0, 4, 3, 1, 5]}


def test_selection_by_progress_prefetches_constants_in_its_order() -> None:
    """One core; layers 0 and 1 have CNs 0, 1 and 2, 3, each with a weight of its own. The weights come in the order 2,
    0, 3, 1, by the other rules in the order of the CNs."""
    nodes = [Node(10, [(cn, WEIGHT)], layer=cn // 2) for cn in range(4)]
    problem = make_problem(bus_system(1, [1000]), [Piece(40)] * 4, nodes)

    def fetched(rule: str) -> list[int]:
        options = ScheduleOptions(scheduler_candidate_selection=rule, operands_to_prefetch=(WEIGHT,))
        return simulate(problem, np.zeros(4, np.int64), options).transfers["piece"].tolist()

    assert fetched("progress") == [2, 0, 3, 1]
    assert fetched("latency") == [0, 1, 2, 3]


def test_selection_by_progress_counts_the_steps_of_a_tile_together() -> None:
    """One core; layer 0 has CNs 0 to 3: the first steps of two tiles, then their second steps, which read partial
    sums. All 10 cycles. Each tile is completed before the next begins."""
    nodes = [Node(10, layer=0), Node(10, layer=0), Node(10, [(0, 0)], layer=0), Node(10, [(1, 0)], layer=0)]
    problem = make_problem(bus_system(1, [1000]), [Piece(8, 0), Piece(8, 1)], nodes)
    found = simulate(problem, np.zeros(4, np.int64), ScheduleOptions(scheduler_candidate_selection="progress"))
    assert found.start_cycles.tolist() == [0, 20, 10, 30]


def test_a_tentative_choice_gives_way_to_what_is_ready_earlier() -> None:
    """Core 0: CN 0 0-100. Core 1: CN 2 (after 0) is chosen tentatively at 0; core 2: CN 1 0-5 starts CN 3's data.

    CN 3 on core 1 (after 1; CN 1 starts at 4, when its weight of 40 bits is there, and ends at 9) is a candidate at 4
    and replaces CN 2: 9-14. CN 2: 100-101.
    """
    nodes = [Node(100), Node(5, [(0, WEIGHT)]), Node(1, after=[0]), Node(5, after=[1])]
    schedule = run(make_problem(bus_system(3), [Piece(40)], nodes), [0, 2, 1, 1])
    assert spans(schedule) == [(0, 100), (4, 9), (100, 101), (9, 14)]
