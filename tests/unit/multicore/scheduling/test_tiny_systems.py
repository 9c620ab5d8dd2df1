"""Schedules of tiny systems, worked out on paper by the rules of docs/multi-core-model/scheduling.md.

Unless a test says otherwise, links carry 10 bits a cycle at 0.5 pJ a bit. A word has 1000 bits, so each piece is one
word. A word costs 1 pJ to read and 2 pJ to write on chip, 10 and 20 pJ off-chip. Fetching b bits from the off-chip
memory over one link costs 0.5 b on the link and 10 + 2 = 12 pJ in memories. A write to the off-chip memory costs 1 + 20
= 21 pJ in memories.
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
    """The schedule of an allocation, which keeps all invariants."""
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
    """A CN waits for its weight and its input, which share one link.

    The weight of 50 bits comes 0-5, the input of 30 bits 5-8, CN 0 runs 8-15, and the result of 20 bits leaves 15-17.
    Energy in pJ: fetches take 80 × 0.5 = 40 on the link and 2 × 12 = 24 in memories. The result takes 20 × 0.5 = 10 and
    21. The run of the CN takes 3, so the total is 98. The memory holds 50 bits from 0, 80 from 5 and 100 from 8. The
    inputs leave the memory at 15, the result at 17.
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
    """A weight stays for the next CN, whose input is fetched while the first CN runs.

    The weight of 40 bits comes 0-4 and input 1 of 20 bits 4-6; CN 0 runs 6-16. Meanwhile input 2 of 20 bits comes 6-8,
    and CN 1 runs 16-26. Fetches of 80 bits in 3 words cost 40 and 36 pJ.
    """
    nodes = [Node(10, [(0, WEIGHT), (1, INPUT)]), Node(10, [(0, WEIGHT), (2, INPUT)])]
    schedule = run(make_problem(bus_system(1), [Piece(40), Piece(20), Piece(20)], nodes), [0, 0])
    assert spans(schedule) == [(6, 16), (16, 26)]
    assert [move[4:] for move in moves(schedule)] == [(0, 4), (4, 6), (6, 8)]
    assert energy(schedule) == {"off_chip_fetch": (40.0, 36.0)}


def test_data_goes_from_core_to_core() -> None:
    """A piece of 60 bits goes from core 0 to core 1 over their link.

    CN 0 runs 0-5 on core 0, the piece moves 5-11, and CN 1 runs 11-14 on core 1. The link costs 60 × 0.5 = 30, the read
    1 and the write 2 pJ. The copy at home is dropped at 11, because nobody else needs it.
    """
    problem = make_problem(bus_system(2), [Piece(60, 0)], [Node(5), Node(3, [(0, INPUT)])])
    schedule = run(problem, [0, 1])
    assert spans(schedule) == [(0, 5), (11, 14)]
    assert moves(schedule) == [(0, "core_to_core", 0, 1, 5, 11)]
    assert energy(schedule) == {"core_to_core": (30.0, 3.0)}
    assert [values.tolist() for values in schedule.memory_use(0)] == [[0, 11], [60, 0]]


def test_cores_that_share_a_memory_need_no_transfer() -> None:
    """Cores 0 and 1 have the same memory, so CN 1 on core 1 starts when CN 0 on core 0 ends, and nothing moves."""
    system = make_system([0, 0, 1], [Memory(), DRAM], [Link()], {(0, 2): [0], (2, 0): [0], (1, 2): [0], (2, 1): [0]})
    schedule = run(make_problem(system, [Piece(60, 0)], [Node(5), Node(3, [(0, INPUT)])]), [0, 1])
    assert spans(schedule) == [(0, 5), (5, 8)]
    assert schedule.energy_pj == 0


def test_a_bus_serves_one_transfer_at_a_time() -> None:
    """Two cores need 40 bits each over one bus: core 0 gets them 0-4, core 1 4-8; the CNs run 4-10 and 8-14."""
    nodes = [Node(6, [(0, WEIGHT)]), Node(6, [(1, WEIGHT)])]
    schedule = run(make_problem(bus_system(2), [Piece(40), Piece(40)], nodes), [0, 1])
    assert spans(schedule) == [(4, 10), (8, 14)]


def test_narrow_links_share_the_port_of_the_off_chip_memory() -> None:
    """A transfer takes what another leaves of the port's width.

    The port (link 2) carries 16 bits a cycle, each core's own link 10, and each core needs 40 bits. Core 0 gets 10 bits
    a cycle, 0-4. For core 1 the port has 6 left, more than a quarter of 10: ⌈40 / 6⌉ = 7, so 0-7. Both transfers pass
    two links at 0.5: 80 × 0.5 × 2 = 80 pJ.
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
    """A port of 12 leaves 2 bits a cycle, less than a quarter of 10, so core 1 waits: data 4-8, CN 8-14."""
    links = [Link(10), Link(10), Link(12)]
    paths = {(0, 2): [0, 2], (2, 0): [2, 0], (1, 2): [1, 2], (2, 1): [2, 1]}
    system = make_system([0, 1, 2], [Memory(), Memory(), DRAM], links, paths)
    nodes = [Node(6, [(0, WEIGHT)]), Node(6, [(1, WEIGHT)])]
    problem = make_problem(system, [Piece(40), Piece(40)], nodes)
    assert spans(run(problem, [0, 1])) == [(4, 10), (8, 14)]
    # A share of a fifth is allowed: ⌈40 / 2⌉ = 20.
    assert spans(run(problem, [0, 1], share_divisor=5)) == [(4, 10), (20, 26)]


def test_a_bus_broadcasts_a_piece_that_two_cores_want() -> None:
    """A bus broadcasts 40 bits to two cores at once, 0-4, and both CNs run 4-10. Link 20 pJ; one read 10, two
    writes 4.
    """
    nodes = [Node(6, [(0, WEIGHT)]), Node(6, [(0, WEIGHT)])]
    system = bus_system(2, link=Link(10, 0.5, is_broadcast=True))
    schedule = run(make_problem(system, [Piece(40)], nodes), [0, 1])
    assert spans(schedule) == [(4, 10), (4, 10)]
    assert energy(schedule) == {"off_chip_fetch": (20.0, 14.0)}
    assert schedule.transfers["broadcast_of"].tolist() == [-1, 2 * 3 + 0]


def test_eviction_writes_back_and_frees_its_space_when_the_write_ends() -> None:
    """Eviction writes a piece back, and its space is free when the write ends.

    Core 0 has 100 bits. CN 0 (0-5) makes A, 60 bits, for CN 2. CN 1 makes B, 70 bits, for CN 3 on core 1. A is pinned
    until CN 0 ends, then it is written 5-11. CN 1 runs 11-21. At 11 core 0 prepares CN 2, which lacks A. B is pinned
    until 21, then it is evicted, because claims come before transfers: written 21-28. At 28 core 0 has space, and B is
    off-chip. Core 0 was prepared first, so A comes 28-34, then B goes to core 1 34-41. CN 2 runs 34-38, CN 3 41-44.
    In each direction, the link carries 130 bits for 65 pJ. Writes cost 2 × 21, fetches 2 × 12.
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
    """The copy that is cheapest to lose is evicted; a constant is dropped without a write.

    The memory has 100 bits. CNs 0, 2 and 3 need weight W0 (30 bits), CNs 0 and 3 W1 (50), CN 1 W2 (40). W0 comes 0-3,
    W1 3-8, and CN 0 runs 8-18. At 18 CN 1 claims 40 bits. The key of W0 is 2 × 30 = 60, that of W1 1 × 50 = 50, so W1
    is dropped. W2 comes 18-22, and CN 1 runs 22-32. CN 2 needs nothing new and runs 32-42. At 32 W2 is dropped, and W1
    comes again 32-37 for CN 3, which runs 42-52.
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
    """Prefetching brings the weight of CN 2 (80 bits) while CNs 0 and 1 on core 0 make its input.

    CNs 0 and 1 run 0-10 and 10-20. Without prefetching, CN 2 is a candidate from 10 on, when CN 1 has started: weight
    10-18, piece of 20 bits 20-22, CN 2 22-27. With it, the weight comes 0-8 and CN 2 ends at the same time. If CN 1
    takes 2 cycles (10-12), CN 2 runs 20-25 without prefetching (weight 10-18, piece 18-20), and 14-19 with it (piece
    12-14).
    """
    for cycles, plain, ahead in ((10, (22, 27), (22, 27)), (2, (20, 25), (14, 19))):
        nodes = [Node(10), Node(cycles, after=[0]), Node(5, [(0, WEIGHT), (1, INPUT)])]
        problem = make_problem(bus_system(2), [Piece(80), Piece(20, 1)], nodes)
        assert spans(run(problem, [0, 0, 1]))[2] == plain
        schedule = run(problem, [0, 0, 1], operands_to_prefetch=(WEIGHT,))
        assert spans(schedule)[2] == ahead
        assert moves(schedule)[0] == (0, "off_chip_fetch", 2, 1, 0, 8)


def test_an_operand_that_is_too_large_streams_while_the_node_runs() -> None:
    """A CN of 20 cycles streams 100 bits at 5 a cycle, so the ⌈100 / 5⌉ = 20 cycles of the stream add no time.

    The link costs 50 pJ, and the word that is read 10 pJ.
    """
    problem = make_problem(bus_system(1), [Piece(100)], [Node(20, [(0, WEIGHT)], streams={WEIGHT: (100, 5)})])
    schedule = run(problem, [0])
    assert spans(schedule) == [(0, 20)]
    assert moves(schedule) == []
    assert schedule.streams.tolist() == [(0, 0, 0, 20, 5, 100)]
    assert energy(schedule) == {"off_chip_stream": (50.0, 10.0)}
    assert schedule.peak_bits.tolist() == [0, 100]


def test_contention_of_the_off_chip_port_makes_a_streaming_node_longer() -> None:
    """A streaming CN takes longer when the port is shared.

    Two CNs of 20 cycles on two cores stream 140 bits each at 7 a cycle over one link of 10. CN 0 gets 7 and runs 0-20.
    CN 1 gets 3, at least a quarter of 7: ⌈140 / 3⌉ = 47, so 0-47.
    """
    nodes = [Node(20, [(i, WEIGHT)], streams={WEIGHT: (140, 7)}) for i in range(2)]
    schedule = run(make_problem(bus_system(2), [Piece(140), Piece(140)], nodes), [0, 1])
    assert spans(schedule) == [(0, 20), (0, 47)]


def test_a_produced_piece_that_streams_is_written_off_chip_first() -> None:
    """A produced piece that streams is written off-chip first.

    CN 0 (0-5) makes 50 bits, which are written 5-10 as an eviction. CN 1 streams these
    bits in at 10 a cycle, and streams its output of 30 bits out at 2 a cycle. Both streams need 12 bits a cycle of a
    link with 10, so CN 1 takes ⌈80 / 10⌉ = 8 cycles instead of 4: 10-18. The result is off-chip at 18, and nothing else
    moves. Streams cost 80 × 0.5 = 40 on the link, 10 for a word that is read, and 20 for a word that is written. The
    eviction costs 25 on the link and 21 in memories.
    """
    nodes = [Node(5), Node(4, [(0, INPUT)], streams={INPUT: (50, 10), 0: (30, 2)})]
    schedule = run(make_problem(bus_system(1), [Piece(50, 0), Piece(30, 1, True)], nodes), [0, 0])
    assert spans(schedule) == [(0, 5), (10, 18)]
    assert moves(schedule) == [(0, "eviction", 0, 1, 5, 10)]
    assert energy(schedule) == {"off_chip_stream": (40.0, 30.0), "eviction": (25.0, 21.0)}
    assert schedule.latency_cycles == 18


def detour_system(capacities: Sequence[int], direct: Sequence[tuple[int, int]] = ()) -> CoreSystem:
    """Cores with link 0 to the off-chip core; some pairs of cores have link 1 between them."""
    off = len(capacities)
    paths = {pair: [0] for core in range(off) for pair in ((core, off), (off, core))} | {pair: [1] for pair in direct}
    return make_system(range(off + 1), [*map(Memory, capacities), DRAM], [Link(), Link()], paths)


def test_data_between_cores_without_a_path_goes_by_way_of_the_off_chip_memory() -> None:
    """Data between cores without a path go by way of the off-chip memory.

    CN 0 on core 0 (0-5) makes 60 bits, which are written off-chip 5-11 and fetched by core 1 11-17; CN 1 runs 17-20.
    Each way costs 60 × 0.5 = 30 on the link. In memories the write costs 21, the fetch 12. The copy at home is dropped
    at 11, because nobody reads it there.
    """
    problem = make_problem(detour_system([100, 100]), [Piece(60, 0)], [Node(5), Node(3, [(0, INPUT)])])
    schedule = run(problem, [0, 1])
    assert moves(schedule) == [(0, "eviction", 0, 2, 5, 11), (0, "off_chip_fetch", 2, 1, 11, 17)]
    assert spans(schedule) == [(0, 5), (17, 20)]
    assert energy(schedule) == {"eviction": (30.0, 21.0), "off_chip_fetch": (30.0, 12.0)}
    assert [values.tolist() for values in schedule.memory_use(0)] == [[0, 11], [60, 0]]


def test_a_detour_leaves_the_piece_to_those_that_can_have_it_from_its_home() -> None:
    """A detour leaves the piece at home for the cores that can read it there.

    Core 0 has link 1 to core 1 and no link to core 2. CN 0 on core 0 (0-5) makes 60 bits for all three cores. They go
    to core 1 over link 1 5-11, and CN 1 runs 11-14. Meanwhile they are written off-chip over link 0 5-11; core 2
    fetches them 11-17, and CN 2 runs 17-20. CN 3 on core 0 follows CN 2 and finds them at home: 20-22. So core 0 holds
    60 bits from 0 to 22.
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
    """A detour frees the space at home when the write ends.

    Core 0 has 100 bits. CN 0 (0-5) makes A, 60 bits, for CN 2 on core 1. CN 1 on core 0 makes B, 70 bits. A is pinned
    while it is written, 5-11. At 11 A is dropped, and CN 1 claims the space: 11-21. A goes to core 1 11-17, and CN 2
    runs 17-21.
    """
    nodes = [Node(5), Node(10, after=[0]), Node(4, [(0, INPUT)])]
    schedule = run(make_problem(detour_system([100, 100]), [Piece(60, 0), Piece(70, 1)], nodes), [0, 0, 1])
    assert moves(schedule) == [(0, "eviction", 0, 2, 5, 11), (0, "off_chip_fetch", 2, 1, 11, 17)]
    assert spans(schedule) == [(0, 5), (11, 21), (17, 21)]


def test_layers_by_off_chip_leave_the_link_between_cores_to_others() -> None:
    """Layers in `layers_by_off_chip` leave the link between cores to other layers.

    Core 0 has link 1 to core 1, 10 bits a cycle. CN 0 of layer 0 (0-5) and CN 1 of layer 1 (5-10) each make 60 bits for
    core 1. Directly, each piece takes 6 cycles. By way of the off-chip memory, piece 0 is written 5-11 over link 0 and
    fetched 11-17; CN 2 runs 17-20. Piece 1 moves directly once CN 3 is prepared: 17-23. If all CNs run on core 0,
    nothing moves.
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
"""CN 0 on core 0 (0-5) makes 60 bits for CNs 3 and 6. Core 1 runs CNs 1, 2, 3, and core 2 runs CNs 4, 5, 6."""


def test_results_are_fetched_ahead_by_all_that_will_need_them() -> None:
    """All cores that will need a result fetch it ahead with `prefetch_results`.

    Without it, core 1 prepares CN 3 when CN 2 starts, at 20, and has the piece at 26. Core 2 prepares CN 6 at 30 and
    has the piece at 36. With it, core 1 fetches the piece over the bus when it is made, 5-11, and core 2 listens.
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
    """A result is fetched ahead only into free space: CN 1 uses 50 of core 1's 100 bits until 20, then core 1
    fetches.
    """
    system = bus_system(3, [10_000, 100, 10_000], link=Link(is_broadcast=True))
    problem = make_problem(system, [Piece(60, 0), Piece(50, 1)], FETCHED_AHEAD)
    schedule = run(problem, [0, 1, 1, 1, 2, 2, 2], prefetch_results=True)
    assert moves(schedule) == [(0, "core_to_core", 0, 2, 5, 11), (0, "core_to_core", 0, 1, 20, 26)]
    assert spans(schedule)[3] == (26, 28)


def test_what_a_core_could_not_write_back_is_off_chip_before() -> None:
    """A piece is written off-chip early if its next core could not write it back.

    The memory of core 1 has 60 bits. Core 1 can receive from core 0 (link 1) and from the off-chip core (link 0), but
    it cannot send to the off-chip core. CN 0 on core 0 (0-5) makes a piece of 60 bits. The piece goes to core 1 (5-11)
    and off-chip (5-11). CN 1 on core 1 runs 11-14. CN 2 on core 1 needs the space for a weight of 50 bits, so core 1
    drops the piece without a write. The weight is fetched 14-19, and CN 2 runs 19-22. CN 3 needs the piece again: the
    piece is fetched 22-28, and CN 3 runs 28-31.
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
    """A halo that two CNs share moves once.

    CN 0 (0-4) on core 0 makes rows r0, r1, r2 of 20 bits. On core 1, CN 1 needs r0 and r1, CN 2 r1 and r2. r0 moves
    4-6, r1 6-8, and CN 1 runs 8-13. r2 moves 8-10, and CN 2 runs 13-18. 60 bits move, not 80.
    """
    nodes = [Node(4), Node(5, [(0, INPUT), (1, INPUT)]), Node(5, [(1, INPUT), (2, INPUT)])]
    schedule = run(make_problem(bus_system(2), [Piece(20, 0)] * 3, nodes), [0, 1, 1])
    assert spans(schedule) == [(0, 4), (8, 13), (13, 18)]
    assert energy(schedule) == {"core_to_core": (30.0, 9.0)}


def test_selection_by_latency_goes_wide_and_by_memory_goes_deep() -> None:
    """Selection by latency goes through a layer first; selection by memory goes to the deepest layer first.

    On one core, layer 0 has CNs 0, 1, 2, and layer 1 has CN 3 (after 0) and CN 4 (after 1). All take 10 cycles, and CN
    0 runs first. Then the candidates are 1 and 2 (ready at 0) and 3 (ready at 10, the horizon). Latency takes 1, 2, 3,
    4; memory takes 3, 1, 4, 2.
    """
    nodes = [Node(10, layer=0)] * 3 + [Node(10, layer=1, after=[0]), Node(10, layer=1, after=[1])]
    problem = make_problem(bus_system(1), [], nodes)
    assert run(problem, [0] * 5).start_cycles.tolist() == [0, 10, 20, 30, 40]
    deep = simulate(problem, np.zeros(5, np.int64), ScheduleOptions(scheduler_candidate_selection="memory"))
    assert deep.start_cycles.tolist() == [0, 20, 40, 10, 30]


def test_selection_by_memory_finishes_rows_where_the_weights_fit_and_groups_where_they_do_not() -> None:
    """Selection by memory finishes rows if the weights fit, and groups if they do not.

    On one core, layer 0 has two rows of two groups (CNs 0-3, row by row), with a weight of 40 bits for each group.
    Layer 1 has a CN for each row, after both groups of the row. All take 10 cycles, and a weight comes in 40 / 10 = 4
    cycles.

    In 100 bits both weights fit, so row 0 comes first: CN 0 4-14, CN 1 14-24, CN 4 24-34, CN 2 34-44, CN 3 44-54, CN 5
    54-64. In 79 bits the second weight waits for the first, so group 0 comes first: CN 0 4-14, CN 2 14-24, the weight
    of group 1 24-28, CN 1 28-38. Then CN 4 38-48, CN 3 48-58, CN 5 58-68.
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
    """Selection by memory looks at the core that runs the layer, with 100 bits.

    Core 1, with 79 bits, could run the layer but does not, so it has no effect.
    """
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
    """Selection by progress advances all layers together.

    There is one core, and all CNs take 10 cycles. Layer 0 has CNs 0 and 1, and layer 1 has CNs 2 and 3. Layer 2 has CN
    4 (after 0 and 2) and CN 5 (after 1 and 3). CNs 0, 2 and 4 have progress 0, the others 1/2. Of equal progress, the
    deepest layer goes first: CN 2 0-10, CN 0 10-20, CN 4 20-30, CN 3 30-40, CN 1 40-50, CN 5 50-60. By latency, the
    order is 0, 1, 2, 3, 4, 5. By memory, the deeper layer 1 goes first: 2, 3, 0, 4, 1, 5.
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
    """Selection by progress also orders the prefetched constants.

    On one core, layers 0 and 1 have CNs 0, 1 and 2, 3, each with its own weight. By progress the weights come in the
    order 2, 0, 3, 1, by latency in the order of the CNs.
    """
    nodes = [Node(10, [(cn, WEIGHT)], layer=cn // 2) for cn in range(4)]
    problem = make_problem(bus_system(1, [1000]), [Piece(40)] * 4, nodes)

    def fetched(rule: str) -> list[int]:
        options = ScheduleOptions(scheduler_candidate_selection=rule, operands_to_prefetch=(WEIGHT,))
        return simulate(problem, np.zeros(4, np.int64), options).transfers["piece"].tolist()

    assert fetched("progress") == [2, 0, 3, 1]
    assert fetched("latency") == [0, 1, 2, 3]


def test_selection_by_progress_counts_the_steps_of_a_tile_together() -> None:
    """Selection by progress completes each tile before the next one begins.

    On one core, layer 0 has the first steps of two tiles (CNs 0 and 1), then their second steps (CNs 2 and 3). The
    second steps read partial sums. All take 10 cycles.
    """
    nodes = [Node(10, layer=0), Node(10, layer=0), Node(10, [(0, 0)], layer=0), Node(10, [(1, 0)], layer=0)]
    problem = make_problem(bus_system(1, [1000]), [Piece(8, 0), Piece(8, 1)], nodes)
    found = simulate(problem, np.zeros(4, np.int64), ScheduleOptions(scheduler_candidate_selection="progress"))
    assert found.start_cycles.tolist() == [0, 20, 10, 30]


def test_a_tentative_choice_gives_way_to_what_is_ready_earlier() -> None:
    """A tentative choice of a core is replaced by a CN that is ready earlier.

    CN 0 runs 0-100 on core 0. Core 1 tentatively chooses CN 2 (after 0). CN 1 on core 2 starts at 4, with its weight of
    40 bits, and ends at 9. CN 3 (after 1) is a candidate for core 1 at 4 and replaces CN 2: 9-14. CN 2 runs 100-101.
    """
    nodes = [Node(100), Node(5, [(0, WEIGHT)]), Node(1, after=[0]), Node(5, after=[1])]
    schedule = run(make_problem(bus_system(3), [Piece(40)], nodes), [0, 2, 1, 1])
    assert spans(schedule) == [(0, 100), (4, 9), (100, 101), (9, 14)]
