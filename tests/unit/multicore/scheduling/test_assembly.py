"""Scheduling problems from CN graph, cost tables and accelerator, checked against numbers worked out by hand.

Elements have 8 bits, links carry 64 bits per cycle, an on-chip word has 1024 bits, and CNs take 100 cycles. Bits and
cycles of the tensors of the two convolutions: x of 4 x 6 x 6 (1,152 bits: 18 cycles), w0 of 8 x 4 x 3 x 3 (2,304: 36),
a of 8 x 6 x 6 (2,304: 36), w1 of 4 x 8 x 3 x 3 (2,304: 36), b of 4 x 6 x 6 (1,152: 18).
"""

from dataclasses import fields

import numpy as np
import pytest
from onnx.helper import make_node
from tilewright.base.errors import InputError
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.multicore.nodes.graph import ORDERING
from tilewright.multicore.scheduling.assembled import AssembledProblem
from tilewright.multicore.scheduling.assembly import scheduling_problem
from tilewright.multicore.scheduling.bounds.lower_bounds import lower_bounds
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.core_costs import Stream
from tilewright.multicore.scheduling.problem import CoreSystem
from tilewright.multicore.scheduling.result import schedule_artifact
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.multicore.scheduling.system_assembly import (
    KNOWN_SYSTEMS,
    MEMORY_OPERANDS,
    UNLIMITED_BITS_PER_CYCLE,
    core_system,
)
from tilewright.workload.graph import Workload

from tests.unit.multicore.nodes.networks import IMAGE, SAME, conv, read, two_convolutions
from tests.unit.multicore.scheduling.accelerators import (
    ANY,
    WIDTH,
    accelerator,
    bus,
    core,
    costs,
    cut,
    memory,
    one_way,
    two_cores,
    with_place,
)

OUTPUT, I1, I2, OTHER = range(4)


def assemble(
    workload: Workload, system=None, loops=(), mapping=ANY, runtime="total1", **cost: object
) -> AssembledProblem:
    """The problem of a network whose layers are cut by loops, by default on two linked cores."""
    system = system or two_cores()
    graph = cut(workload, loops)
    table = costs(graph, workload, system, mapping=mapping, **cost)  # type: ignore[arg-type]
    return scheduling_problem(workload, graph, system, mapping, table, runtime)


def test_systems_of_accelerators_are_not_confused() -> None:
    """Each accelerator has its own system. A system that is no longer kept is made again and equals the first."""
    systems = [two_cores(width) for width in (WIDTH, 2 * WIDTH, None, *range(8, 8 + KNOWN_SYSTEMS))]
    made = [core_system(one) for one in systems]
    assert core_system(systems[-1]) is made[-1]
    for one, before in zip(systems, made, strict=True):
        again = core_system(one)
        assert again.memory_names == before.memory_names
        for field in fields(CoreSystem):
            assert np.array_equal(getattr(again.system, field.name), getattr(before.system, field.name)), field.name
    widths = [one.system.link_bits_per_cycle.tolist() for one in made]
    assert len({tuple(found) for found in widths}) == len(systems)


def play(assembled: AssembledProblem, cores: list[int]) -> Schedule:
    """The schedule of an allocation, which keeps all invariants."""
    schedule = simulate(assembled.problem, np.array(cores))
    assert check_schedule(assembled.problem, schedule) == []
    return schedule


def spans(schedule: Schedule) -> list[tuple[int, int]]:
    """(start, end) of each CN."""
    return list(zip(schedule.start_cycles.tolist(), schedule.end_cycles.tolist(), strict=True))


def pieces(assembled: AssembledProblem) -> dict[str, list[tuple[int, int, bool]]]:
    """Tensor -> (bits, producer, whether it is an output of the network) of each of its pieces."""
    graph, names = assembled.problem.graph, assembled.names.tensor_names
    found: dict[str, list[tuple[int, int, bool]]] = {name: [] for name in names}
    for place, tensor in enumerate(assembled.pieces.tensor.tolist()):
        bits, producer = int(graph.piece_bits[place]), int(graph.piece_producer[place])
        found[names[tensor]].append((bits, producer, bool(graph.piece_is_output[place])))
    return found


def needs(assembled: AssembledProblem) -> list[tuple[int, str, int]]:
    """(CN, tensor, memory operand) of each need."""
    problem, names = assembled.problem, assembled.names.tensor_names
    piece, operand = problem.fetch_order
    tensors = [names[tensor] for tensor in assembled.pieces.tensor[piece].tolist()]
    return sorted(zip(problem.need_cn.tolist(), tensors, operand.tolist(), strict=True))


def test_two_convolutions_on_two_cores() -> None:
    """Latency and energy of two convolutions on two cores are those worked out by hand.

    Core 0 fetches w0 and x in 36 + 18 cycles, and CN 0 runs 54-154. Core 1 fetches w1 54-90 and gets a over the link
    154-190. CN 1 runs 190-290, and b goes to the off-chip memory 290-308.

    Energy: 2 CNs of 7. Fetches: 5,760 bits x 0.5 on the port, 18 + 36 + 36 words x 10 read, 2 + 3 + 3 words x 2
    written. a: 2,304 x 0.25, and 3 words read and written, 3 + 6. b: 1,152 x 0.5, 2 words x 1 read, 18 x 20 written.
    """
    assembled = assemble(two_convolutions())
    assert pieces(assembled) == {
        "w0": [(2304, -1, False)],
        "x": [(1152, -1, False)],
        "w1": [(2304, -1, False)],
        "a": [(2304, 0, False)],
        "b": [(1152, 1, True)],
    }
    assert needs(assembled) == [(0, "w0", I2), (0, "x", I1), (1, "a", I1), (1, "w1", I2)]
    schedule = play(assembled, [0, 1])
    assert spans(schedule) == [(54, 154), (190, 290)]
    assert schedule.latency_cycles == 308
    assert schedule.energy_pj == 14 + 2880 + 900 + 16 + 576 + 9 + 576 + 362


def test_cores_that_only_reach_the_off_chip_memory_hand_data_over_there() -> None:
    """Cores without links to each other hand data over through the off-chip memory.

    CN 0 runs 54-154, and w1 is fetched 54-90. a is written 154-190 and fetched 190-226, CN 1 runs 226-326, and b is
    written 326-344. This latency is the lower bound of the allocation.

    Energy of a: 2,304 x 0.5 on the port each way; 3 words read on core 0 (3) and 36 written off-chip (720); 36 read
    there (360) and 3 written on core 1 (6). The fetches cost as with links.
    """
    assembled = assemble(two_convolutions(), accelerator([core("left"), core("right")]))
    schedule = play(assembled, [0, 1])
    assert spans(schedule) == [(54, 154), (226, 326)]
    assert schedule.latency_cycles == 344
    moved = schedule.energy_terms_pj
    assert moved["eviction"] == (1152, 3 + 720)
    assert moved["off_chip_fetch"] == (2880 + 1152, 900 + 16 + 360 + 6)
    assert moved["core_to_core"] == (0, 0)
    own = lower_bounds(assembled.problem, np.array([[True, False, False], [False, True, False]]))
    assert own.if_copied.latency_cycles == 344


def test_on_one_core_nothing_moves_between() -> None:
    """Nothing moves between CNs on one core: CN 0 runs 54-154, w1 is fetched 54-90, CN 1 runs 154-254, b ends
    at 272.
    """
    schedule = play(assemble(two_convolutions()), [0, 0])
    assert spans(schedule) == [(54, 154), (154, 254)]
    assert schedule.latency_cycles == 272


def test_cores_that_share_memory_hand_nothing_over() -> None:
    """Tensor `a` need not move from CN 0 to CN 1 if two cores share one buffer, as on one core."""
    system = accelerator([core("left"), core("right")], sharing=[(0, 1)])
    assembled = assemble(two_convolutions(), system)
    assert assembled.names.memory_names == ("0+1: buffer", "2: dram")
    assert assembled.problem.system.core_memory.tolist() == [[0] * 4, [0] * 4, [1] * 4]
    schedule = play(assembled, [0, 1])
    assert spans(schedule) == [(54, 154), (154, 254)]
    assert schedule.energy_terms_pj["core_to_core"].memory_pj == 0


def test_an_operand_streams() -> None:
    """Weights stream, so only x is fetched, 0-18. CN 0 runs 18-118 while 2,304 bits stream in, CN 1 118-218, b ends at
    236.
    """
    stream = Stream("I2", 2304, 30)
    assembled = assemble(two_convolutions(), streams=[stream])
    table = assembled.problem.costs
    assert table.stream_bits[:, 0].tolist() == [[0, 0, 2304, 0]] * 2
    assert table.stream_bits_per_cycle[:, 0, I2].tolist() == [30, 30]
    schedule = play(assembled, [0, 0])
    assert spans(schedule) == [(18, 118), (118, 218)]
    assert schedule.energy_terms_pj["off_chip_stream"].link_pj == 2 * 2304 * 0.5
    assert schedule.energy_terms_pj["off_chip_stream"].memory_pj == 2 * 36 * 10


def test_a_residual_is_one_piece_for_both_who_read_it() -> None:
    """x is one piece, though both the convolution (I1) and the addition (W, here I2) read it."""
    nodes = [conv("x", "w", "a", **SAME), make_node("Add", ["a", "x"], ["y"], name="y")]
    assembled = assemble(read(nodes, {"x": IMAGE}, {"w": (4, 4, 3, 3)}))
    assert pieces(assembled)["x"] == [(1152, -1, False)]
    assert needs(assembled) == [(0, "w", I2), (0, "x", I1), (1, "a", I1), (1, "x", I2)]
    schedule = play(assembled, [0, 0])
    assert len(schedule.transfers) == 3  # w, x once, y


def test_memory_operands_follow_the_links_of_the_layer() -> None:
    """A mapping entry that links I to I2 and W to I1 changes the operands of the needs."""
    links = (("O", "O"), ("W", "I1"), ("I", "I2"))
    mapping = Mapping((MappingConstraints("a", memory_operand_links=links), MappingConstraints("default")))
    assembled = assemble(two_convolutions(), mapping=mapping)
    assert needs(assembled) == [(0, "w0", I1), (0, "x", I2), (1, "a", I1), (1, "w1", I2)]


def test_a_bias_is_kept_beside_the_weights_and_never_streams() -> None:
    """A bias lies in the memory of I2 and is fetched also where I2 streams."""
    nodes = [make_node("Conv", ["x", "w", "c"], ["a"], name="a", **SAME)]
    memories = memory("weights", ["I2"]), memory("others", ["I1", "O"])
    system = accelerator([core("left", *memories)])
    assembled = assemble(read(nodes, None, {"w": (8, 4, 3, 3), "c": (8,)}), system, streams=[Stream("I2", 2304, 30)])
    assert needs(assembled) == [(0, "c", OTHER), (0, "w", I2), (0, "x", I1)]
    assert assembled.problem.system.core_memory[0].tolist() == [1, 1, 0, 0]
    schedule = play(assembled, [0])
    names = [assembled.names.tensor_names[t] for t in assembled.pieces.tensor[schedule.transfers["piece"]]]
    assert sorted(names) == ["a", "c", "x"]


def test_partial_sums_are_handed_on() -> None:
    """CNs hand partial sums on: a convolution in 2 steps over C, with lines in 2 tiles.

    CNs 0 and 1 make the partial sums that CNs 2 and 3 add to. A tile of 8 x 3 x 6 elements has the precision of partial
    sums. Only CNs 2 and 3 have a final output.
    """
    workload = read([conv("x", "w", "a", **SAME)], None, {"w": (8, 4, 3, 3)})
    assembled = assemble(workload, loops=[("OY", 2), ("C", 2)])
    layer = workload.nodes[0].layer
    assert layer is not None
    sums = 8 * 3 * 6 * layer.bits_of["O"]
    found = pieces(assembled)
    assert found["partial sums of a"] == [(sums, 0, False), (sums, 1, False)]
    assert [(producer, leaves) for _, producer, leaves in found["a"]] == [(2, True), (3, True)]
    assert [need for need in needs(assembled) if need[1].startswith("partial")] == [
        (2, "partial sums of a", OUTPUT),
        (3, "partial sums of a", OUTPUT),
    ]
    assert assembled.names.tensor_kinds == ("weight", "input", "activation", "partial_sum")
    schedule = play(assembled, [0, 0, 0, 0])
    assert schedule.start_cycles[2] >= schedule.end_cycles[0]


def test_edges_are_those_of_the_cn_graph() -> None:
    """The edges of the schedule equal those of the CN graph, with their bits; the CNs of a layer run in order.

    Both layers are cut into lines.
    """
    workload = two_convolutions()
    graph = cut(workload, [("OY", "all")])
    assembled = assemble(workload, loops=[("OY", "all")])
    source, target, bits = schedule_artifact(assembled, play(assembled, [0] * 6 + [1] * 6)).edges
    data = graph.edge_operand != ORDERING
    expected = sorted(zip(graph.edge_source[data], graph.edge_target[data], graph.edge_bits[data], strict=True))
    assert sorted(zip(source, target, bits, strict=True)) == expected
    nodes = assembled.problem.graph
    cns = np.repeat(np.arange(12), np.diff(nodes.order_start)).tolist()
    order = list(zip(nodes.order_predecessor.tolist(), cns, strict=True))
    assert order == [(cn, cn + 1) for cn in range(11) if cn != 5]


def test_what_a_core_cannot_run() -> None:
    """The off-chip core runs no CN. A core does not run an operator that its operator types leave out."""
    system = with_place(two_cores(), 1, operator_types=("vector",))
    assembled = assemble(two_convolutions(), system)
    assert assembled.problem.costs.runtime_cycles.tolist() == [[100, -1, -1]] * 2
    assert assembled.reasons == {(0, 1): "runs vector, not Conv", (1, 1): "runs vector, not Conv"}
    system = with_place(two_cores(), 1, operator_types=("Conv",))
    assert assemble(two_convolutions(), system).problem.costs.runtime_cycles[0].tolist() == [100, 100, -1]


@pytest.mark.parametrize(("runtime", "cycles"), [("total0", 99), ("total1", 100), ("total2", 101)])
def test_runtime_is_what_is_asked_for(runtime: str, cycles: int) -> None:
    """total0 includes stalls, total1 also on-loading, and total2 also off-loading."""
    assert assemble(two_convolutions(), runtime=runtime).problem.costs.runtime_cycles[0, 0] == cycles


def test_links_and_paths() -> None:
    """The single port of the off-chip memory is one link for both directions.

    A link without a limit gets a width that no transfer exceeds.
    """
    system = accelerator([core("a"), core("b"), core("c")], [one_way(0, 1, None), bus(0, 1, 2)])
    found = assemble(two_convolutions(), system).problem.system
    assert found.link_bits_per_cycle.tolist() == [UNLIMITED_BITS_PER_CYCLE, WIDTH, WIDTH]
    assert found.link_is_broadcast.tolist() == [False, True, False]
    assert found.path(0, 3).tolist() == found.path(3, 2).tolist() == [2]
    assert (found.path(0, 1).tolist(), found.path(1, 0).tolist(), found.path(1, 1).tolist()) == ([0], [1], [])
    assert found.off_chip_core == 3
    assert len(MEMORY_OPERANDS) == found.core_memory.shape[1]


def test_words_of_the_ports_that_data_pass() -> None:
    """Outputs are read by the port that hands them up; inputs are written by the port that takes them from above."""
    system = accelerator([core("a", memory("one", ["I1", "O"], width=256), memory("two", ["I2"], width=32))])
    found = assemble(two_convolutions(), system).problem.system
    assert found.memory_read_bits.tolist() == [256, 32, WIDTH]
    assert found.memory_write_bits.tolist() == [256, 32, WIDTH]
    assert found.memory_capacity_bits.tolist() == [100_000, 100_000, 10**9]
    assert found.memory_write_energy_pj.tolist() == [2.0, 2.0, 20.0]


def test_everything_that_does_not_fit_is_told_at_once() -> None:
    """One error reports an unknown runtime, a core file without a table, and one with another graph's table."""
    workload, system = two_convolutions(), two_cores()
    graph = cut(workload)
    table = {"left": costs(graph, workload, system)["left"][:1]}
    with pytest.raises(InputError) as caught:
        scheduling_problem(workload, graph, system, ANY, table, "total3")
    told = str(caught.value)
    assert "cn_runtime: unknown, got total3" in told
    assert "left: the cost table belongs to another CN graph or mapping, got 1 rows" in told
    assert "right: has no cost table" in told


def test_an_accelerator_without_off_chip_memory_is_refused() -> None:
    """An accelerator without an off-chip core is refused, because weights must come from somewhere."""
    system = with_place(two_cores(), 2, role="memory")
    graph = cut(two_convolutions())
    with pytest.raises(InputError, match="has no off-chip core"):
        scheduling_problem(two_convolutions(), graph, system, ANY, costs(graph, two_convolutions(), system))
