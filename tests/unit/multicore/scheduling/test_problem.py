"""What a scheduling problem accepts, what it derives, and how impossible allocations are told."""

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
    """Two CNs; CN 1 needs a weight, an input and the piece of CN 0."""
    pieces = [Piece(30, 0), Piece(8), Piece(16)]
    return make_problem(bus_system(2), pieces, [Node(5), Node(4, [(0, INPUT), (2, WEIGHT), (1, INPUT)])])


def test_needs_are_fetched_constants_first() -> None:
    """By number within constants and produced pieces, with their operands."""
    piece, operand = small_problem().fetch_order
    assert piece.tolist() == [1, 2, 0]
    assert operand.tolist() == [INPUT, WEIGHT, INPUT]


def test_edges_are_distinct() -> None:
    """Two pieces and an order edge between two CNs are one edge."""
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
    """The problem names the array."""
    problem = small_problem()
    parts = {name: getattr(problem, name) for name in ("graph", "costs", "system")}
    parts[part] = replace(parts[part], **{field: value})
    with pytest.raises(InputError) as raised:
        SchedulingProblem(**parts)
    named = "stream_bits_per_cycle" if field == "stream_bits" else field
    assert [found.path for found in raised.value.problems] == [named]


def test_all_faults_are_told_at_once() -> None:
    """One error with the problems of graph and costs."""
    problem = small_problem()
    graph = replace(problem.graph, piece_bits=np.array([0, 0, 0]), layer=np.zeros(2, np.int64))
    costs = replace(problem.costs, stream_bits=np.full((2, 3, 3), -1))
    with pytest.raises(InputError) as raised:
        SchedulingProblem(graph, costs, problem.system)
    assert {found.path for found in raised.value.problems} >= {"piece_bits", "stream_bits"}


def test_a_core_that_cannot_run_the_node_is_named() -> None:
    """As for the off-chip core and a number that no core has."""
    problem = make_problem(bus_system(2), [], [Node({0: 5})])
    for core in (1, 2, 7, -1):
        with pytest.raises(MappingError, match=f"CN 0 of layer 0 cannot run on core {core}"):
            simulate(problem, np.array([core]))


def test_a_node_that_does_not_fit_is_told_with_its_bits() -> None:
    """60 bits in and 50 out in 100."""
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
    """Core 1 has no path from the off-chip core, or none to it, and something is needed or made there, or streams."""
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
    """One CN that waits for another, and neither needs nor makes anything."""
    system = make_system([0, 1, 2], [Memory(), Memory(), Memory(10**9)], [Link()], {(0, 2): [0], (2, 0): [0]})
    problem = make_problem(system, [Piece(60)], [Node(5, [(0, INPUT)]), Node(5, after=[0])])
    assert simulate(problem, np.array([0, 1])).latency_cycles == 6 + 5 + 5
    assert [finding.cns.tolist() for finding in unfit_for_core(problem, 1) if len(finding.cns)] == [[0]]


def test_an_operand_without_memory_is_told() -> None:
    """A core with no memory for weights."""
    paths = {(0, 1): [0], (1, 0): [0]}
    system = make_system([(0, -1, 0), 1], [Memory(), Memory(10**9)], [Link()], paths)
    problem = make_problem(system, [Piece(60)], [Node(5, [(0, WEIGHT)])])
    with pytest.raises(MappingError, match="core 0 has no memory for operand 1"):
        simulate(problem, np.array([0]))


def test_an_off_chip_memory_that_is_too_small_is_told() -> None:
    """It keeps all. A constant of 60 bits and a result of 50 are more than 100 in any case; in 110 there is room for
    them, but not for 30 more that core 1 gets from core 0 by a detour."""
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
    """Two CNs that wait for each other have no schedule and no bounds."""
    problem = make_problem(bus_system(1), [], [Node(5, after=[1]), Node(5, after=[0])])
    with pytest.raises(InputError, match="in a cycle"):
        simulate(problem, np.array([0, 0]))
    with pytest.raises(InputError, match="in a cycle"):
        lower_bounds(problem)


def test_allocations_and_prefetches_of_the_wrong_size_are_told() -> None:
    """Too few cores; an operand that no core has."""
    problem = small_problem()
    with pytest.raises(InputError, match="must name 2 cores, one for each computation node"):
        simulate(problem, np.array([0]))
    with pytest.raises(InputError, match="is not the number of an operand"):
        simulate(problem, np.array([0, 0]), ScheduleOptions(operands_to_prefetch=(3,)))


def test_a_network_without_nodes_takes_no_time() -> None:
    """No CN, no piece: latency, energy and bounds are 0."""
    problem = make_problem(bus_system(1), [], [])
    schedule = simulate(problem, np.zeros(0, np.int64))
    bounds = lower_bounds(problem)
    assert (schedule.latency_cycles, schedule.energy_pj) == (0, 0)
    assert (bounds.if_copied.latency_cycles, bounds.energy_pj) == (0, 0)


def test_constants_that_no_node_needs_are_off_chip_all_the_time() -> None:
    """No CN, one constant: the schedule keeps the rules."""
    problem = make_problem(bus_system(1), [Piece(40)], [])
    schedule = simulate(problem, np.zeros(0, np.int64))
    assert check_schedule(problem, schedule) == []
    assert schedule.peak_bits.tolist() == [0, 40]


def test_bounds_worked_out_by_hand() -> None:
    """Two cores, link of 10. CN 0 and CN 1: 40 bits each, 10 cycles on core 0, 30 on core 1; CN 2: 8 on core 0.

    Path: fetch 4 + 10 + 8 = 22, then 20 result bits: 2, so 24. Work: with weights w and 1 - w of the cores
    2 min(10 w, 30 - 30 w) + 8 w, best at w = 0.75: 15 + 6 = 21; the least release (CN 2) and tail (CN 0) are 0: 21.
    Traffic: 80 + 20 bits over 10: 10. Before and after CN 2: 2 min(10 w, 30 - 30 w) = 15 from the release 4 on; 8; 2.
    Energy: links 100 × 0.5; fetches 2 × 12; result 21; no on-core energy.
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
    """The same problem. Path: 10 + 8, and data can pass while CNs run. Work 21 and traffic
    10 as above. Before CN 2: 15 of work, then 8.
    """
    nodes = [Node({0: 10, 1: 30}, [(0, WEIGHT)]), Node({0: 10, 1: 30}, [(1, WEIGHT)]), Node({0: 8}, after=[0, 1])]
    bounds = lower_bounds(make_problem(bus_system(2), [Piece(40), Piece(40), Piece(20, 2, True)], nodes))
    assert bounds.critical_path_cycles == 18
    assert bounds.core_work_cycles == 21
    assert bounds.off_chip_traffic_cycles == 10
    assert bounds.before_and_after_cycles == 23
    assert (bounds.latency_cycles, bounds.latency_gap(23), bounds.latency_gap(46)) == (23, 0.0, 0.5)


def test_more_data_can_pass_while_a_slower_core_runs() -> None:
    """40 bits of a constant and 40 of a result over two links of 1, while a CN streams both on core 1 for 50 cycles; on
    core 0 it would run for one. A bound of 40 + 40 - 1 would be wrong.
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
    """Pieces of 500 bits over a link of 10, for a CN of 8 cycles that fetches them on core 0 and streams them on core
    1: not fewer bits, or fewer, or with gaps that a stream leaves out."""
    streams = np.zeros((1, 3, 3), np.int64)
    streams[0, 1, INPUT] = bits
    problem = make_problem(bus_system(2), [Piece(300), Piece(200)], [Node({0: 8, 1: 8}, [(0, INPUT), (1, INPUT)])])
    costs = replace(problem.costs, stream_bits=streams, stream_bits_per_cycle=streams)
    costs.reads_gaps[0, INPUT] = gaps
    assert lower_bounds(replace(problem, costs=costs)).off_chip_traffic_cycles == cycles


def test_the_bound_of_a_transfer_counts_on_a_forced_path() -> None:
    """CN 0 only on core 0 (5), CN 1 only on core 1 (3), 60 bits between them on a link of 10: 5 + 6 + 3."""
    problem = make_problem(bus_system(2), [Piece(60, 0)], [Node({0: 5}), Node({1: 3}, [(0, INPUT)])])
    assert lower_bounds(problem).if_copied.latency_cycles == 14 == simulate(problem, np.array([0, 1])).latency_cycles


def test_what_must_move_between_cores_loads_links() -> None:
    """CNs 0 and 2 only on core 0, CN 1 only on core 1: 40 bits of weights, 60 and 30 between cores, 20 of result, all
    over one link of 10: 15 cycles.

    Energy: 150 × 0.5 on the link; weight 10 + 2, result 1 + 20; 90 bits of words of 1000 bits, read for 1 and written
    for 2 pJ, at least.
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
    """100 bits from core 0 to core 1 over a link of 10, or by the off-chip memory over one of 10 twice: at best as much
    as fills both for the same time, if it could be split: x / 10 = 2 (100 - x) / 10 at x = 66.7: 7 cycles."""
    paths = {(0, 1): [0], (1, 0): [0], (0, 2): [1], (2, 0): [1], (1, 2): [1], (2, 1): [1]}
    memories = [Memory(), Memory(), Memory(10**9, 1000, 10.0, 20.0)]
    system = make_system([0, 1, 2], memories, [Link(), Link()], paths)
    problem = make_problem(system, [Piece(100, 0)], [Node({0: 1}), Node({1: 1}, [(0, INPUT)])])
    assert lower_bounds(problem).if_copied.link_traffic_cycles == 7


def test_a_detour_is_counted_both_ways_and_in_the_off_chip_memory() -> None:
    """100 bits from core 0 to core 1, which have links of 10 to the off-chip core and none to each other.

    CN 0 1 cycle, written in 10, fetched in 10, CN 1 1 cycle: 22, the schedule takes no longer. Energy of a bit: twice
    0.5 on links, words of 1000 bits read for 1 and 10 pJ and written for 20 and 2 pJ.
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
