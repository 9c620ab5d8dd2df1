"""Operands that stream on some cores and move on others count in the bounds of traffic and energy."""

import random
from dataclasses import replace

import numpy as np
import pytest
from tilewright.multicore.scheduling.bounds.classes import cn_classes
from tilewright.multicore.scheduling.bounds.core_work import traffic_loads
from tilewright.multicore.scheduling.bounds.limits import system_limits
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds, lower_bounds
from tilewright.multicore.scheduling.bounds.streamed_or_moved import off_chip_traffic, streamed_or_moved
from tilewright.multicore.scheduling.bounds.work import fetched_pieces, written_pieces
from tilewright.multicore.scheduling.problem import Booleans, Integers, SchedulingProblem

from tests.unit.multicore.scheduling.bound_attack import target
from tests.unit.multicore.scheduling.tiny_systems import Node, Piece, bus_system, make_problem


def with_streams(problem: SchedulingProblem, bits: Integers) -> SchedulingProblem:
    """The problem with its streamed bits replaced by `bits[row, core, operand]`."""
    rate = np.where(bits > 0, np.maximum(problem.costs.stream_bits_per_cycle, 1), 0)
    return replace(problem, costs=replace(problem.costs, stream_bits=bits, stream_bits_per_cycle=rate))


def test_one_core_has_room_and_the_other_streams() -> None:
    """400 bits in and 200 out over a link of 10 take 60 cycles, wherever they stream.

    The off-chip memory takes 10 pJ to read and 20 pJ to write, the on-chip memory 1 and 2 pJ. A bit on the link takes
    0.5 pJ.
    """
    pieces, streams = [Piece(400), Piece(200, 0, True)], {0: (200, 10), 1: (400, 10)}
    both = make_problem(bus_system(2), pieces, [Node(70, needs=[(0, 1)], streams=streams)])
    found: list[LowerBounds] = []
    for cores in ((), (1,), (0, 1)):
        bits = both.costs.stream_bits.copy()
        bits[:, list(cores)] = 0
        found.append(lower_bounds(with_streams(both, bits)))
    assert [bounds.if_copied.off_chip_traffic_cycles for bounds in found] == [60, 60, 60]
    assert [bounds.energy_pj for bounds in found] == pytest.approx([330, 330, 333])


def traffic_cycles(problem: SchedulingProblem, allowed: Booleans) -> int:
    """Off-chip traffic term of `lower_bounds(problem, allowed).if_copied`, without the slower terms."""
    limits, classes = system_limits(problem.system), cn_classes(problem, allowed, may_stream=False)
    fetched, written = fetched_pieces(problem, classes), written_pieces(problem, classes)
    bits = problem.graph.piece_bits
    loads = traffic_loads(problem, classes, limits, int(bits[fetched].sum()), int(bits[written].sum()))
    return off_chip_traffic(problem, classes, limits, loads, streamed_or_moved(problem, classes, fetched))


@pytest.mark.parametrize("seed", range(16))
def test_traffic_is_no_more_where_what_streamed_fits(seed: int) -> None:
    """The traffic bound of a random problem does not grow when an operand fits a core and no longer streams."""
    draw, aim = random.Random(seed), target(seed)
    problem, graph = aim.problem, aim.problem.graph
    piece, operand = problem.fetch_order
    least = np.zeros(problem.costs.stream_bits.shape, np.int64)
    for cn in range(graph.node_count):
        mine, row = problem.need_cn == cn, int(graph.cost_row[cn])
        whole = np.bincount(operand[mine], graph.piece_bits[piece[mine]], least.shape[2]).astype(np.int64)
        whole[0] = graph.piece_bits[graph.piece_producer == cn].sum()
        least[row] = np.maximum(least[row], whole)
    some = np.array([draw.random() < 0.7 for _ in range(least.size)]).reshape(least.shape)
    streaming = np.arange(least.shape[2]) == draw.randrange(least.shape[2])
    bits = np.where(some & streaming, least, 0)
    before = traffic_cycles(with_streams(problem, bits), aim.allowed)
    assert before == lower_bounds(with_streams(problem, bits), aim.allowed).if_copied.off_chip_traffic_cycles
    places = np.argwhere(bits > 0).tolist()
    for place in draw.sample(places, min(4, len(places))):
        bits = bits.copy()
        bits[tuple(place)] = 0
        now = traffic_cycles(with_streams(problem, bits), aim.allowed)
        assert now <= before
        before = now
