"""Scheduling problems: checks of their arrays, derived values, and reports of impossible allocations."""

from dataclasses import replace

import numpy as np
import pytest
from tilewright.base.errors import InputError, MappingError
from tilewright.multicore.allocation.space import unfit_for_core
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import SchedulingProblem
from tilewright.multicore.scheduling.simulate import simulate

from tests.unit.multicore.scheduling.tiny_systems import (
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


def small_problem() -> SchedulingProblem:
    """Two CNs, of which CN 1 needs a weight, an input and the piece of CN 0."""
    pieces = [Piece(30, 0), Piece(8), Piece(16)]
    return make_problem(bus_system(2), pieces, [Node(5), Node(4, [(0, INPUT), (2, WEIGHT), (1, INPUT)])])


def test_needs_are_fetched_constants_first() -> None:
    """Constants are fetched first, then produced pieces, each by number and with its operand."""
    piece, operand = small_problem().fetch_order
    assert piece.tolist() == [1, 2, 0]
    assert operand.tolist() == [INPUT, WEIGHT, INPUT]


def test_edges_are_distinct() -> None:
    """Two pieces and an order edge between the same two CNs are one edge."""
    nodes = [Node(5), Node(4, [(0, INPUT), (1, INPUT)], after=[0])]
    problem = make_problem(bus_system(1), [Piece(30, 0), Piece(8, 0)], nodes)
    assert [part.tolist() for part in problem.edges] == [[0, 1, 1], [1]]
    assert problem.predecessor_count.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("graph", "piece_bits", np.array([30, 0, 16])),
        ("graph", "need_piece", np.array([0, 3, 1])),
        ("graph", "need_start", np.array([0, 1, 2])),
        ("graph", "group", np.zeros(3, np.int64)),
        ("graph", "piece_is_output", np.array([False, True, False])),
        ("graph", "cost_row", np.array([0, 2])),
        ("graph", "need_operand", np.array([1, 1, 3])),
        ("costs", "runtime_cycles", np.array([[5, 5, -1], [0, 4, -1]])),
        ("costs", "on_core_energy_pj", np.array([[1, -1.0, 0], [0, 0, 0]])),
        ("costs", "stream_bits", np.ones((2, 3, 3), np.int64)),
        ("system", "link_bits_per_cycle", np.array([0])),
        ("system", "link_energy_pj_per_bit", np.array([np.nan])),
        ("system", "path_link", np.full(6, 1)),
        ("system", "off_chip_core", 3),
        ("system", "core_memory", np.array([[0] * 3, [2] * 3, [2] * 3])),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(part: str, field: str, value: object) -> None:
    """Arrays that do not fit together raise InputError, which names the array."""
    problem = small_problem()
    parts = {name: getattr(problem, name) for name in ("graph", "costs", "system")}
    parts[part] = replace(parts[part], **{field: value})
    with pytest.raises(InputError) as raised:
        SchedulingProblem(**parts)
    named = "stream_bits_per_cycle" if field == "stream_bits" else field
    assert [found.path for found in raised.value.problems] == [named]


def test_all_faults_are_told_at_once() -> None:
    """One error reports the problems of the graph and of the costs."""
    problem = small_problem()
    graph = replace(problem.graph, piece_bits=np.array([0, 0, 0]), layer=np.zeros(2, np.int64))
    costs = replace(problem.costs, stream_bits=np.full((2, 3, 3), -1))
    with pytest.raises(InputError) as raised:
        SchedulingProblem(graph, costs, problem.system)
    assert {found.path for found in raised.value.problems} >= {"piece_bits", "stream_bits"}


def test_a_core_that_cannot_run_the_node_is_named() -> None:
    """The message names the core if it has no cost, if it is the off-chip core, or if it does not exist."""
    problem = make_problem(bus_system(2), [], [Node({0: 5})])
    for core in (1, 2, 7, -1):
        with pytest.raises(MappingError, match=f"CN 0 of layer 0 cannot run on core {core}"):
            simulate(problem, np.array([core]))


def test_a_node_that_does_not_fit_is_told_with_its_bits() -> None:
    """A CN with 60 bits of input and 50 of output does not fit in 100 bits, and the message gives the sum."""
    problem = make_problem(bus_system(1, [100]), [Piece(60), Piece(50, 0)], [Node(5, [(0, WEIGHT)])])
    with pytest.raises(MappingError, match="needs 110 bits in memory 0, which has 100"):
        simulate(problem, np.array([0]))


@pytest.mark.parametrize(
    ("pieces", "node", "source", "target"),
    [
        ([Piece(60)], Node(5, [(0, INPUT)]), 2, 1),
        ([Piece(60, 0)], Node(5), 1, 2),
        ([], Node(5, streams={WEIGHT: (100, 5)}), 2, 1),
        ([], Node(5, streams={0: (100, 5)}), 1, 2),
    ],
)
def test_a_missing_path_is_told(pieces: list[Piece], node: Node, source: int, target: int) -> None:
    """A missing path from or to the off-chip core is reported if core 1 needs data, makes data or streams."""
    for missing in ((source, target), None):
        paths = {pair: [0] for pair in ((0, 2), (2, 0), (1, 2), (2, 1)) if pair != missing}
        system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link()], paths)
        problem = make_problem(system, pieces, [node])
        findings = [text for finding in unfit_for_core(problem, 1) for text in finding.texts]
        if missing is None:
            assert simulate(problem, np.array([1])).latency_cycles > 0
            assert findings == []
            continue
        with pytest.raises(MappingError, match=f"no path from core {source} to core {target}"):
            simulate(problem, np.array([1]))
        assert findings == [f"no path {'from' if source == 2 else 'to'} the off-chip core"]
        assert simulate(problem, np.array([0])).latency_cycles > 0


def test_a_core_without_any_path_runs_what_has_no_data() -> None:
    """A core without any path runs a CN that neither needs nor makes data."""
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link()], {(0, 2): [0], (2, 0): [0]})
    problem = make_problem(system, [Piece(60)], [Node(5, [(0, INPUT)]), Node(5, after=[0])])
    assert simulate(problem, np.array([0, 1])).latency_cycles == 6 + 5 + 5
    assert [finding.cns.tolist() for finding in unfit_for_core(problem, 1) if len(finding.cns)] == [[0]]


def test_an_operand_without_memory_is_told() -> None:
    """A need for an operand without a memory on its core is reported."""
    paths = {(0, 1): [0], (1, 0): [0]}
    system = make_system([(0, -1, 0), 1], [Memory(), Memory(10**9)], [Link()], paths)
    problem = make_problem(system, [Piece(60)], [Node(5, [(0, WEIGHT)])])
    with pytest.raises(MappingError, match="core 0 has no memory for operand 1"):
        simulate(problem, np.array([0]))


def test_an_off_chip_memory_that_is_too_small_is_told() -> None:
    """An off-chip memory that is too small for all data it keeps is reported.

    A constant of 60 bits and a result of 50 bits do not fit in 100. In 110 they fit, but not with 30 bits that core 1
    gets from core 0 by a detour.
    """
    pieces = [Piece(60), Piece(30, 0), Piece(50, 1, True)]
    nodes = [Node(5, [(0, WEIGHT)]), Node(5, [(1, INPUT)])]
    paths = {(0, 2): [0], (2, 0): [0], (1, 2): [0], (2, 1): [0]}
    for capacity, cores, found in (
        (100, [0, 0], "it has 100 bits, but constants and results take 110 bits"),
        (139, [0, 1], "it has 139 bits, but this allocation needs 140 bits"),
        (110, [0, 0], None),
        (140, [0, 1], None),
    ):
        system = make_system([0, 1, 2], [Memory(), Memory(), Memory(capacity)], [Link()], paths)
        problem = make_problem(system, pieces, nodes)
        if found is None:
            assert check_schedule(problem, simulate(problem, np.array(cores))) == []
            continue
        with pytest.raises(MappingError, match=f"the off-chip memory is too small: {found}"):
            simulate(problem, np.array(cores))


def test_a_circle_is_told() -> None:
    """Two CNs that wait for each other raise InputError, for schedules and for bounds."""
    problem = make_problem(bus_system(1), [], [Node(5, after=[1]), Node(5, after=[0])])
    with pytest.raises(InputError, match="in a cycle"):
        simulate(problem, np.array([0, 0]))
    with pytest.raises(InputError, match="in a cycle"):
        lower_bounds(problem)


def test_allocations_and_prefetches_of_the_wrong_size_are_told() -> None:
    """An allocation with too few cores is an error, and so is an unknown operand to prefetch."""
    problem = small_problem()
    with pytest.raises(InputError, match="must name 2 cores, one for each computation node"):
        simulate(problem, np.array([0]))
    with pytest.raises(InputError, match="is not the number of an operand"):
        simulate(problem, np.array([0, 0]), ScheduleOptions(operands_to_prefetch=(3,)))


def test_a_network_without_nodes_takes_no_time() -> None:
    """Latency, energy and bounds are 0 if there are no CNs and pieces."""
    problem = make_problem(bus_system(1), [], [])
    schedule = simulate(problem, np.zeros(0, np.int64))
    bounds = lower_bounds(problem)
    assert (schedule.latency_cycles, schedule.energy_pj) == (0, 0)
    assert (bounds.if_copied.latency_cycles, bounds.energy_pj) == (0, 0)


def test_constants_that_no_node_needs_are_off_chip_all_the_time() -> None:
    """The schedule without CNs keeps the rules, and a constant stays off-chip."""
    problem = make_problem(bus_system(1), [Piece(40)], [])
    schedule = simulate(problem, np.zeros(0, np.int64))
    assert check_schedule(problem, schedule) == []
    assert schedule.peak_bits.tolist() == [0, 40]


def test_bounds_worked_out_by_hand() -> None:
    """Bounds on two cores with a link of 10 bits a cycle equal those worked out by hand.

    CN 0 and CN 1 read 40 bits each, and take 10 cycles on core 0 or 30 on core 1. CN 2 takes 8 cycles on core 0.

    * Critical path: 4 + 10 + 8 = 22 cycles, then 2 cycles for 20 bits of result: 24.
    * Work, with weights w and 1 - w of the two cores: 2 min(10 w, 30 - 30 w) + 8 w is greatest at w = 0.75, where it is
      15 + 6 = 21. The least wait before a CN (CN 2) and the least time after a CN (CN 0) are 0 and add nothing.
    * Traffic: 80 + 20 bits at 10 a cycle: 10.
    * Before and after CN 2: 4 until a CN can begin, 15 for CN 0 and CN 1 (as for the work), 8 for CN 2, 2 for the
      result: 29.
    * Energy: 100 × 0.5 of the link, 2 × 12 of fetches, 21 of the result; there is no on-core energy.
    """
    nodes = [Node({0: 10, 1: 30}, [(0, WEIGHT)]), Node({0: 10, 1: 30}, [(1, WEIGHT)]), Node({0: 8}, after=[0, 1])]
    bounds = lower_bounds(make_problem(bus_system(2), [Piece(40), Piece(40), Piece(20, 2, True)], nodes))
    assert bounds.if_copied.critical_path_cycles == 24
    assert bounds.if_copied.core_work_cycles == 21
    assert bounds.if_copied.off_chip_traffic_cycles == 10
    assert bounds.if_copied.before_and_after_cycles == 29
    assert (bounds.if_copied.latency_cycles, bounds.if_copied.latency_gap(29), bounds.if_copied.latency_gap(58)) == (
        29,
        0.0,
        0.5,
    )
    assert bounds.energy_pj == pytest.approx(50 + 24 + 21, rel=1e-8)


def test_bounds_worked_out_by_hand_if_data_may_stream() -> None:
    """Bounds of the same problem if data may stream, worked out by hand.

    The critical path is 10 + 8, because data can pass while CNs run. The work of 21 and the traffic of 10 stay. Before
    CN 2, there are 15 cycles of work, and CN 2 takes 8: 23.
    """
    nodes = [Node({0: 10, 1: 30}, [(0, WEIGHT)]), Node({0: 10, 1: 30}, [(1, WEIGHT)]), Node({0: 8}, after=[0, 1])]
    bounds = lower_bounds(make_problem(bus_system(2), [Piece(40), Piece(40), Piece(20, 2, True)], nodes))
    assert bounds.critical_path_cycles == 18
    assert bounds.core_work_cycles == 21
    assert bounds.off_chip_traffic_cycles == 10
    assert bounds.before_and_after_cycles == 23
    assert (bounds.latency_cycles, bounds.latency_gap(23), bounds.latency_gap(46)) == (23, 0.0, 0.5)


def test_more_data_can_pass_while_a_slower_core_runs() -> None:
    """A slower core that streams gives data more time to pass, so 40 + 40 - 1 would be a wrong bound.

    On core 1, a CN takes 50 cycles and streams 40 bits of a constant and 40 of a result. The two links carry 1 bit a
    cycle. On core 0 the CN would run for one cycle.
    """
    streams = {INPUT: (40, 1), 0: (40, 1)}
    paths = {(0, 2): [0], (2, 0): [1], (1, 2): [0], (2, 1): [1], (0, 1): [0], (1, 0): [1]}
    memories = [Memory(), Memory(), Memory(10**9, 1000, 10.0, 20.0)]
    system = make_system([0, 1, 2], memories, [Link(1), Link(1)], paths)
    node = Node({0: 1, 1: 50}, [(0, INPUT)], streams=streams)
    problem = make_problem(system, [Piece(40), Piece(40, 0, True)], [node])
    costs = replace(problem.costs, stream_bits=problem.costs.stream_bits.copy())
    costs.stream_bits[0, 0] = 0
    problem = replace(problem, costs=costs)
    assert simulate(problem, np.array([1])).latency_cycles == 50
    assert lower_bounds(problem).latency_cycles <= 50


@pytest.mark.parametrize(("bits", "gaps", "cycles"), [(500, False, 50), (500, True, 0), (499, False, 0)])
def test_data_that_may_stream_count_once_unless_a_stream_can_be_shorter(bits: int, gaps: bool, cycles: int) -> None:
    """Data that may stream count once, unless a stream can be shorter.

    Pieces of 500 bits in all pass a link of 10 bits a cycle for a CN of 8 cycles. The CN fetches them on core 0 and
    streams them on core 1. The stream has as many bits, fewer bits, or gaps that it leaves out.
    """
    streams = np.zeros((1, 3, 3), np.int64)
    streams[0, 1, INPUT] = bits
    problem = make_problem(bus_system(2), [Piece(300), Piece(200)], [Node({0: 8, 1: 8}, [(0, INPUT), (1, INPUT)])])
    costs = replace(problem.costs, stream_bits=streams, stream_bits_per_cycle=streams)
    costs.reads_gaps[0, INPUT] = gaps
    assert lower_bounds(replace(problem, costs=costs)).off_chip_traffic_cycles == cycles


def test_the_bound_of_a_transfer_counts_on_a_forced_path() -> None:
    """CN 0 runs on core 0 (5), CN 1 on core 1 (3), with 60 bits between them on a link of 10: 5 + 6 + 3 cycles."""
    problem = make_problem(bus_system(2), [Piece(60, 0)], [Node({0: 5}), Node({1: 3}, [(0, INPUT)])])
    assert lower_bounds(problem).if_copied.latency_cycles == 14 == simulate(problem, np.array([0, 1])).latency_cycles


def test_what_must_move_between_cores_loads_links() -> None:
    """Data that must move between cores load the link: 15 cycles.

    CNs 0 and 2 run on core 0, and CN 1 on core 1. 40 bits of weights, 60 and 30 between cores and 20 of result pass one
    link of 10. The energy is at least 150 × 0.5 on the link, weight 10 + 2, and result 1 + 20. The 90 bits between
    cores are read for 1 pJ and written for 2 pJ, in words of 1000 bits.
    """
    nodes = [Node({0: 1}, [(0, WEIGHT)]), Node({1: 1}, [(1, INPUT)]), Node({0: 1}, [(2, INPUT)])]
    pieces = [Piece(40), Piece(60, 0), Piece(30, 1), Piece(20, 2, True)]
    problem = make_problem(bus_system(2), pieces, nodes)
    bounds = lower_bounds(problem)
    assert (bounds.if_copied.link_traffic_cycles, bounds.if_copied.off_chip_traffic_cycles) == (15, 6)
    assert bounds.energy_pj == pytest.approx(75 + 12 + 21 + 90 * 3 / 1000, rel=1e-8)
    everywhere = make_problem(bus_system(2), pieces, [Node(1, node.needs) for node in nodes])
    assert lower_bounds(everywhere).if_copied.link_traffic_cycles == 6


def test_a_piece_that_may_go_two_ways_loads_both_links_in_turn() -> None:
    """A piece with two possible ways loads both links in the best ratio: 7 cycles.

    100 bits go from core 0 to core 1 over a link of 10, or twice over another link of 10 by the off-chip memory. The
    time is least if both links are busy equally long: x / 10 = 2 (100 - x) / 10 at x = 66.7.
    """
    paths = {(0, 1): [0], (1, 0): [0], (0, 2): [1], (2, 0): [1], (1, 2): [1], (2, 1): [1]}
    memories = [Memory(), Memory(), Memory(10**9, 1000, 10.0, 20.0)]
    system = make_system([0, 1, 2], memories, [Link(), Link()], paths)
    problem = make_problem(system, [Piece(100, 0)], [Node({0: 1}), Node({1: 1}, [(0, INPUT)])])
    assert lower_bounds(problem).if_copied.link_traffic_cycles == 7


def test_a_detour_is_counted_both_ways_and_in_the_off_chip_memory() -> None:
    """A detour of 100 bits counts on both links and in the off-chip memory: 22 cycles, which a schedule reaches.

    Both cores have a link of 10 to the off-chip core and none to each other. CN 0 takes 1 cycle, writing 10, fetching
    10, and CN 1 takes 1 cycle. Energy of a bit: twice 0.5 on links, and words of 1000 bits read for 1 and 10 pJ and
    written for 20 and 2 pJ.
    """
    paths = {(0, 2): [0], (2, 0): [0], (1, 2): [1], (2, 1): [1]}
    memories = [Memory(), Memory(), Memory(10**9, 1000, 10.0, 20.0)]
    system = make_system([0, 1, 2], memories, [Link(), Link()], paths)
    problem = make_problem(system, [Piece(100, 0)], [Node({0: 1}), Node({1: 1}, [(0, INPUT)])])
    bounds, schedule = lower_bounds(problem), simulate(problem, np.array([0, 1]))
    assert bounds.if_copied.critical_path_cycles == 22 == schedule.latency_cycles
    assert bounds.if_copied.link_traffic_cycles == 10
    assert bounds.energy_pj == pytest.approx(100 * (2 * 0.5 + 33 / 1000), rel=1e-8)
    assert schedule.energy_pj == 100 + 33
