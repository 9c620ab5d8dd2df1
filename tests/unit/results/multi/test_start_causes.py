"""Causes of the starts of CNs and transfers: chains of causes lead to time 0 without a gap, and each kind is right."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tilewright.multicore.scheduling.schedule import own_hops
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.start_causes import (
    BEGIN,
    CAUSES,
    COMPUTING,
    CORE,
    DATA,
    LINK,
    MEMORY,
    MOVING,
    NOTHING,
    ORDER,
    OTHER,
    StartCauses,
    latency_chain,
    start_causes,
)

from tests.unit.multicore.scheduling.tiny_systems import WEIGHT, Node, Piece, bus_system, make_problem
from tests.unit.results.multi.schedule_cases import every_category, pipeline, random_view, view_of


def causes_of(view: ScheduleView) -> StartCauses:
    """The start causes of a causal schedule."""
    found = start_causes(view)
    assert found is not None
    return found


def times(view: ScheduleView) -> tuple[list[int], list[int]]:
    """(starts, ends) of all items."""
    schedule, moves = view.schedule, view.schedule.transfers
    starts = [*schedule.start_cycles.tolist(), *moves["start_cycles"].tolist()]
    return starts, [*schedule.end_cycles.tolist(), *moves["end_cycles"].tolist()]


@pytest.mark.parametrize("seed", range(25))
def test_causes_leave_no_gap(seed: int) -> None:
    """A cause ends when its effect begins, or is a CN that begins at the same time as the transfer it lets begin.

    Chains end at time 0.
    """
    view = random_view(seed)
    found, (starts, ends) = causes_of(view), times(view)
    assert len(found.kind) == len(starts)
    for item, (kind, cause) in enumerate(zip(found.kind.tolist(), found.item.tolist(), strict=True)):
        assert (kind == BEGIN) == (cause == NOTHING) == (starts[item] == 0)
        if cause != NOTHING:
            is_begun = item >= view.node_count > cause and starts[cause] == starts[item]
            assert ends[cause] == starts[item] or is_begun
        chain = found.chain(item)
        assert starts[chain[-1]] == 0
        assert len(chain) == len(set(chain))


def needs_of(view: ScheduleView, cn: int) -> list[tuple[int, int]]:
    """(piece, memory) of the data that a CN reads."""
    graph, core = view.artifact.graph, int(view.schedule.allocation[cn])
    own = range(int(graph.need_start[cn]), int(graph.need_start[cn + 1]))
    row = view.system.core_memory[core]
    return [(int(graph.need_piece[need]), int(row[graph.need_operand[need]])) for need in own]


@pytest.mark.parametrize("seed", range(25))
def test_causes_of_nodes_are_what_they_say(seed: int) -> None:
    """The causes of nodes equal those of a plain search in the logs: first data, then the core, else another cause."""
    view = random_view(seed)
    found, schedule, moves = causes_of(view), view.schedule, view.schedule.transfers
    producer, off_chip = view.artifact.graph.piece_producer.tolist(), view.system.off_chip_memory
    for cn in range(view.node_count):
        kind, cause, time = int(found.kind[cn]), int(found.item[cn]), int(schedule.start_cycles[cn])
        if kind == BEGIN:
            continue
        needs = needs_of(view, cn)
        made = {producer[p] for p, _ in needs if producer[p] >= 0 and schedule.end_cycles[producer[p]] == time}
        wanted = {*needs, *((piece, off_chip) for piece, _ in needs)}
        arrived = {
            view.node_count + number
            for number, move in enumerate(moves)
            if move["end_cycles"] == time and (int(move["piece"]), int(move["target_memory"])) in wanted
        }
        same_core = schedule.allocation == schedule.allocation[cn]
        before = set(np.flatnonzero(same_core & (schedule.end_cycles == time)).tolist())
        expected = min(made or arrived or before, default=NOTHING)
        assert (kind in (DATA, CORE)) == (expected != NOTHING)
        if expected != NOTHING:
            assert (kind, cause) == (DATA if made or arrived else CORE, expected)


@pytest.mark.parametrize("seed", range(25))
def test_transfers_that_waited_for_a_link_had_no_width_before(seed: int) -> None:
    """A transfer that waited for a link found too little width in the cycle before.

    The cause used one of the full links. Otherwise, several transfers to the same core start at this time.
    """
    view = random_view(seed)
    found, moves, streams = causes_of(view), view.schedule.transfers, view.schedule.streams
    transfer, link = own_hops(view.schedule, view.system)
    for number in np.flatnonzero(found.kind[view.node_count :] == LINK).tolist():
        cause, time = int(found.item[view.node_count + number]), int(moves["start_cycles"][number])
        if moves["broadcast_of"][number] >= 0:
            continue
        full = set()
        for one in link[transfer == number].tolist():
            on_it = moves[transfer[link == one]]
            lasts = (on_it["start_cycles"] < time) & (on_it["end_cycles"] >= time)
            taken = int(on_it["bits_per_cycle"][lasts].sum())
            own = streams[(streams["link"] == one) & (streams["start_cycles"] < time) & (streams["end_cycles"] >= time)]
            taken += int(own["bits_per_cycle"].sum())
            if view.system.link_bits_per_cycle[one] - taken < moves["bits_per_cycle"][number]:
                full.add(one)
        # What began after it in the queue of a transfer that waited was held up with it.
        behind = (moves["start_cycles"] == time) & (moves["target_core"] == moves["target_core"][number])
        assert full or np.count_nonzero(behind) > 1
        if full and cause >= view.node_count:
            assert full & set(link[transfer == cause - view.node_count].tolist()) or np.count_nonzero(behind) > 1


def test_causes_of_a_worked_out_schedule() -> None:
    """Causes worked out by hand: CN 2 has its weight at 25, but its stream gets the link only after an eviction ends
    at 27.
    """
    view = every_category()
    found = causes_of(view)
    first = view.node_count
    assert [CAUSES[kind] for kind in found.kind[:first]] == ["data", "data", "link", "data"]
    assert found.item[:first].tolist() == [first + 1, first + 2, first + 4, 2]
    moved = ["begin", "link", "data", "link", "link", "link", "link", "data"]
    assert [CAUSES[kind] for kind in found.kind[first:]] == moved
    assert found.item[first:].tolist() == [NOTHING, first, 0, *(first + one for one in (2, 3, 4, 5)), 3]
    assert found.chain(3) == [3, 2, *(first + one for one in (4, 3, 2)), 0, first + 1, first]


def test_a_core_that_is_busy_is_a_cause() -> None:
    """A busy core is a cause, worked out by hand.

    The second CN of a core waits for the first, and the weight of the other core waits for the bus. A transfer for a
    later CN begins when the earlier CN has begun, because its core can then prepare the next CN.
    """
    pieces = [Piece(40), Piece(30), Piece(20)]
    nodes = [Node(9, [(0, WEIGHT)]), Node(5, [(1, WEIGHT)], layer=1), Node(6, [(2, WEIGHT)], layer=2)]
    view = view_of(make_problem(bus_system(2), pieces, nodes), [0, 1, 0])
    found, first = causes_of(view), view.node_count
    assert view.schedule.start_cycles.tolist() == [4, 7, 13]
    assert [CAUSES[kind] for kind in found.kind[:first]] == ["data", "data", "core"]
    assert found.item[2] == 0
    moves = view.schedule.transfers
    assert moves["start_cycles"].tolist() == [0, 4, 7]
    assert [CAUSES[kind] for kind in found.kind[first:]] == ["begin", "link", "link"]


@pytest.mark.parametrize("view", [every_category(), pipeline(2, 3, 2)])
def test_a_chain_adds_up_to_the_start(view: ScheduleView) -> None:
    """Each step of a chain lasts as long as its item, or no time if the item only let the next one begin."""
    found, (starts, ends) = causes_of(view), times(view)
    chain = found.chain(int(np.argmax(view.schedule.end_cycles)))
    spans = [starts[one] - starts[other] for one, other in pairwise(chain)]
    assert sum(spans) == starts[chain[0]]
    assert all(span in (0, ends[other] - starts[other]) for span, other in zip(spans, chain[1:], strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_the_latency_is_a_chain_without_gaps(seed: int) -> None:
    """The chain of the latency goes from cycle 0 to the end without gaps, each stretch in one item."""
    view = random_view(seed)
    parts = latency_chain(view)
    assert [part.start_cycles for part in parts] == [0, *(part.end_cycles for part in parts[:-1])]
    assert parts[-1].end_cycles == sum(part.cycles for part in parts) == view.schedule.latency_cycles
    assert {part.what for part in parts} <= {COMPUTING, MOVING}


def test_the_chain_of_a_worked_out_schedule() -> None:
    """The chain of `every_category`, by hand, ends with the result of CN 3."""
    told = [(part.what, part.place, part.start_cycles) for part in latency_chain(every_category())]
    assert told == [
        (MOVING, "weights from off-chip", 0),
        (MOVING, "activations from off-chip", 4),
        (COMPUTING, "0: core", 7),
        (MOVING, "activations between cores", 15),
        (MOVING, "weights from off-chip", 17),
        (MOVING, "evictions", 25),
        (COMPUTING, "0: core", 27),
        (COMPUTING, "0: core", 37),
        (MOVING, "outputs", 42),
    ]


def test_all_kinds_happen_and_hardly_any_is_unknown() -> None:
    """All kinds of causes occur in random systems, and less than 1 % are `other`, which no rule explains."""
    counts = np.zeros(len(CAUSES), np.int64)
    for seed in range(60):
        counts += np.bincount(causes_of(random_view(seed)).kind, minlength=len(CAUSES))
    assert all(counts[kind] for kind in (BEGIN, DATA, CORE, MEMORY, LINK, ORDER))
    assert counts[OTHER] < 0.01 * counts.sum()


def test_a_schedule_that_is_not_causal_has_no_causes() -> None:
    """A schedule that is not causal has no causes, because something may begin when nothing ends."""
    view = random_view(0)
    assert start_causes(ScheduleView(replace(view.artifact, schedule_model="stream-2023"))) is None
    assert latency_chain(ScheduleView(replace(view.artifact, schedule_model="stream-2023"))) == ()
