"""Division of the latency among causes, for each core: compared with a plain count of single cycles, and by hand."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.simulate import Scheduler, simulate
from tilewright.results.multi.bars import CATEGORIES, ScheduleView
from tilewright.results.multi.core_cycles import (
    ARRAY,
    BUSY_CAUSES,
    CALLS,
    COMPUTING,
    FULL_LINK,
    IDLE,
    IDLE_UNITS,
    MOVING,
    NO_ROOM,
    NOT_MADE,
    OFFLOADING,
    ONLOADING,
    STALLS,
    STREAMS,
    TURN,
    core_cycles,
)
from tilewright.results.multi.cores_report import (
    CORE,
    LINK,
    ROOM,
    WORD,
    _doubled,
    limit_lines,
    options_of,
    schedule_limits,
)
from tilewright.results.multi.start_causes import (
    DATA,
    StartCauses,
    start_causes,
)
from tilewright.results.multi.start_causes import (
    LINK as LINK_CAUSE,
)
from tilewright.results.multi.start_causes import (
    MEMORY as MEMORY_CAUSE,
)

from tests.unit.multicore.scheduling.tiny_systems import INPUT
from tests.unit.results.multi.schedule_cases import every_category, pipeline, random_view, within_a_core

WHY = {LINK_CAUSE: FULL_LINK, MEMORY_CAUSE: NO_ROOM}


class PlainView:
    """A schedule as plain lists, which are looked at one cycle at a time."""

    def __init__(self, view: ScheduleView, causes: StartCauses) -> None:
        self.view, self.causes = view, causes
        self.moves = [{name: int(row[name]) for name in row.dtype.names} for row in view.schedule.transfers]
        self.start, self.end = view.schedule.start_cycles.tolist(), view.schedule.end_cycles.tolist()
        graph, problem = view.artifact.graph, view.artifact.problem
        self.producer, self.layer = graph.piece_producer.tolist(), graph.layer.tolist()
        self.needs: list[list[tuple[int, int]]] = []
        self.before: list[set[int]] = []
        for cn in range(view.node_count):
            own = range(int(graph.need_start[cn]), int(graph.need_start[cn + 1]))
            row, core = int(graph.cost_row[cn]), int(view.schedule.allocation[cn])
            needs, before = [], set()
            for need in own:
                piece, operand = int(problem.fetch_order[0][need]), int(problem.fetch_order[1][need])
                streams = operand > 0 and problem.costs.stream_bits[row, core, operand] > 0
                system = view.system
                needs.append((piece, system.off_chip_memory if streams else int(system.core_memory[core, operand])))
                before.add(self.producer[piece])
            edges = graph.order_predecessor[int(graph.order_start[cn]) : int(graph.order_start[cn + 1])]
            self.needs.append(needs)
            self.before.append((before | set(edges.tolist())) - {-1})

    def fetches(self, cn: int) -> list[int]:
        """The latest transfers of the data that a CN reads."""
        found = []
        for piece, memory in self.needs[cn]:
            own = [
                (move["end_cycles"], number)
                for number, move in enumerate(self.moves)
                if (move["piece"], move["target_memory"]) == (piece, memory) and move["end_cycles"] <= self.start[cn]
            ]
            found += [max(own)[1]] if own else []
        return found

    def why(self, cn: int, time: int) -> tuple[str, str]:
        """(cause, what) that keeps a CN from running in the cycle that begins at a time."""
        count = len(self.start)
        ends = [(self.end[one], one) for one in self.before[cn]]
        ends += [(self.moves[one]["end_cycles"], count + one) for one in self.fetches(cn)]
        ready = max([end for end, _ in ends], default=0)
        if time >= ready:
            return WHY.get(int(self.causes.kind[cn]), TURN), ""
        last = min(item for end, item in ends if end == ready)
        return self.made(last) if last < count else self.brought(cn, last - count, time)

    def made(self, maker: int) -> tuple[str, str]:
        """(cause, what) while a node has not ended."""
        return NOT_MADE, self.view.names.layer_names[self.layer[maker]]

    def brought(self, cn: int, transfer: int, time: int) -> tuple[str, str]:
        """(cause, what) while the data of a transfer have not arrived."""
        move, count = self.moves[transfer], len(self.start)
        if time >= move["start_cycles"]:
            return MOVING, CATEGORIES[int(self.view.transfer_category[transfer])]
        kind, item = int(self.causes.kind[count + transfer]), int(self.causes.item[count + transfer])
        if kind == DATA and item >= count:
            return self.brought(cn, item - count, time)
        return self.asked(cn, transfer, time)

    def asked(self, cn: int, transfer: int, time: int) -> tuple[str, str]:
        """(cause, what) while a transfer has not begun."""
        move, count = self.moves[transfer], len(self.start)
        kind, item = int(self.causes.kind[count + transfer]), int(self.causes.item[count + transfer])
        if kind == DATA and item >= count:
            return self.brought(cn, item - count, time)
        maker = self.producer[move["piece"]]
        made = self.end[maker] if maker >= 0 else 0
        begun = max([(self.start[one], -one) for one in self.before[cn]], default=(0, 1))
        fetched = self.fetches(cn)
        earlier = fetched[: fetched.index(transfer)] if transfer in fetched else []
        earlier = [one for one in earlier if self.moves[one]["start_cycles"] <= move["start_cycles"]]
        if begun[0] >= move["start_cycles"]:
            earlier, begun = [], (0, 1)
        latest = max([self.moves[one]["start_cycles"] for one in earlier], default=0)
        if time >= max(made, begun[0], latest):
            return WHY.get(kind, TURN), ""
        if latest > max(made, begun[0]):
            before = next(one for one in reversed(earlier) if self.moves[one]["start_cycles"] == latest)
            return self.asked(cn, before, time)
        return self.made(maker if made >= begun[0] else -begun[1])


def causes_of(view: ScheduleView) -> StartCauses:
    """The start causes of a causal schedule."""
    found = start_causes(view)
    assert found is not None
    return found


def plain_cycles(view: ScheduleView) -> Counter[tuple[str, str, str]]:
    """(core, cause, what) -> cycles, counted one cycle after the other."""
    plain, found = PlainView(view, causes_of(view)), Counter[tuple[str, str, str]]()
    schedule, system = view.schedule, view.system
    for core in range(system.core_count):
        if core == system.off_chip_core:
            continue
        name = view.names.core_names[core]
        own = sorted(np.flatnonzero(schedule.allocation == core).tolist(), key=lambda cn: plain.start[cn])
        for time in range(schedule.latency_cycles):
            cn = next((one for one in own if plain.end[one] > time), None)
            if cn is None:
                found[name, IDLE, ""] += 1
            elif plain.start[cn] <= time:
                row = int(view.artifact.graph.cost_row[cn])
                runs = time - plain.start[cn] < view.artifact.problem.costs.runtime_cycles[row, core]
                found[name, COMPUTING if runs else STREAMS, ""] += 1
            else:
                found[name, *plain.why(cn, time)] += 1
    return found


@pytest.mark.parametrize("seed", range(14))
def test_every_cycle_is_what_a_plain_look_says(seed: int) -> None:
    """Cycles of random schedules equal the plain count; links and memories are compared by cause alone."""
    view = random_view(seed)
    found = Counter[tuple[str, str, str]]()
    for row in core_cycles(view, None):
        found[row.core, row.cause, row.what if row.cause in (NOT_MADE, MOVING) else ""] += row.cycles
    assert found == plain_cycles(view)


@pytest.mark.parametrize("seed", range(40))
def test_cycles_of_a_core_add_up_to_the_latency(seed: int) -> None:
    """The cycles of each core add up to the latency; a wait for a link names the link, and a wait for room the
    memory.
    """
    view = random_view(seed)
    rows, names = core_cycles(view, None), view.names
    sums = Counter[str]()
    for row in rows:
        sums[row.core] += row.cycles
        assert row.cycles > 0
        places = {
            FULL_LINK: names.link_names,
            NO_ROOM: names.memory_names,
            NOT_MADE: names.layer_names,
            MOVING: CATEGORIES,
        }
        assert row.what in places.get(row.cause, ("",))
    cores = [core for number, core in enumerate(names.core_names) if number != view.system.off_chip_core]
    assert sums == dict.fromkeys(cores, view.schedule.latency_cycles)


def test_a_worked_out_schedule() -> None:
    """The cycles of `every_category` equal those worked out by hand.

    For example, core 0 waits 4 cycles for the bus, which carries its weight, then 3 for its input. In 17 to 25 the
    weight of CN 2 moves, after the data of CN 1 (15 to 17) and an eviction.
    """
    found = [
        (row.core[0], row.layer[-11:-10], row.cause, row.what, row.cycles)
        for row in core_cycles(every_category(), None)
    ]
    assert found == [
        ("0", "", IDLE, "", 1),
        ("0", "0", COMPUTING, "", 8),
        ("0", "0", MOVING, "activations from off-chip", 3),
        ("0", "0", FULL_LINK, "link 0", 4),
        ("0", "2", COMPUTING, "", 9),
        ("0", "2", STREAMS, "", 1),
        ("0", "2", MOVING, "weights from off-chip", 8),
        ("0", "2", FULL_LINK, "link 0", 4),
        ("0", "3", COMPUTING, "", 5),
        ("1", "", IDLE, "", 20),
        ("1", "1", COMPUTING, "", 6),
        ("1", "1", NOT_MADE, "/layer0/conv/Conv", 15),
        ("1", "1", MOVING, "activations between cores", 2),
    ]


def cost(total0: int, total1: int, total2: int, spatial_stall: int | None) -> CoreCostRow:
    """A cost row with 2 ideal cycles."""
    return CoreCostRow(0, "", 2, total0, total1, total2, spatial_stall_cycles=spatial_stall)


@pytest.mark.parametrize("runtime", [3, 4, 6])
def test_computing_is_parted_by_the_cost_table(runtime: int) -> None:
    """The cycles in which a CN computes are divided into the parts that the cost table gives.

    On-loading and off-loading are parts only if the runtime includes them. The cycles are not divided if the table does
    not say how many units are idle.
    """
    view = within_a_core()
    assert view.schedule.allocation.tolist() == [0, 0]
    costs = replace(view.artifact.problem.costs, runtime_cycles=np.array([[runtime, -1], [runtime, -1]]))
    problem = replace(view.artifact.problem, costs=costs)
    artifact = replace(view.artifact, problem=problem, schedule=simulate(problem, np.array([0, 0])))
    own = ScheduleView(artifact)
    known = {"core": [cost(3, 4, 6, 1), cost(3, 4, 6, None)]}
    sums = Counter[tuple[str, str]]()
    for row in core_cycles(own, known):
        if row.cause in BUSY_CAUSES:
            sums[row.layer[6:7], row.cause] += row.cycles
    longer = {ONLOADING: 1} if runtime >= 4 else {}
    longer |= {OFFLOADING: 2} if runtime == 6 else {}
    expected = {("0", cause): cycles for cause, cycles in ({ARRAY: 2, IDLE_UNITS: 1} | longer).items()}
    assert sums == expected | {("1", COMPUTING): runtime}
    called = {"core": [replace(row, waiting_cycles=1) for row in known["core"]]}
    causes = {row.cause for row in core_cycles(own, called)}
    assert (CALLS in causes, ONLOADING in causes) == (runtime >= 4, False)
    stalled = {"core": [cost(3, 4, 6, 0), cost(3, 4, 6, 0)]}
    assert {row.cause for row in core_cycles(own, stalled)} >= {ARRAY, STALLS}


def test_no_causes_of_a_model_that_is_not_causal() -> None:
    """A schedule model that is not causal has no causes, since nothing says which event waits for which."""
    view = random_view(0)
    assert core_cycles(ScheduleView(replace(view.artifact, schedule_model="stream-2023")), None) == ()
    assert "stream-2023" in schedule_limits(ScheduleView(replace(view.artifact, schedule_model="stream-2023"))).unknown


def with_options(view: ScheduleView, **stated: object) -> ScheduleView:
    """A view whose provenance has the given options of the schedule."""
    return ScheduleView(replace(view.artifact, provenance={"options": stated}))


@pytest.mark.parametrize("view", [pipeline(3, 6, 2), every_category(), *(random_view(seed) for seed in range(6))])
def test_what_is_doubled_is_played_again(view: ScheduleView) -> None:
    """Each latency is that of a problem with numbers doubled here, and the part that saves most comes first."""
    found, problem = schedule_limits(view), view.artifact.problem
    assert not found.unknown
    assert found.latency_cycles == view.schedule.latency_cycles
    assert {part.kind for part in found.parts} == {CORE, LINK, ROOM, WORD}
    gains = [found.gain_cycles(part) for part in found.parts]
    assert gains == sorted(gains, reverse=True)
    assert [found.gain_cycles(part) for part in found.helpful] == [gain for gain in gains if gain > 0]
    (part,) = (one for one in found.parts if one.kind == CORE)  # all cores of these systems are of one file
    runtime = np.where(problem.costs.runtime_cycles > 0, (problem.costs.runtime_cycles + 1) // 2, -1)
    faster = replace(problem, costs=replace(problem.costs, runtime_cycles=runtime))
    assert simulate(faster, view.schedule.allocation).latency_cycles == part.latency_cycles
    for number, name in enumerate(view.names.link_names):
        links = [one for one in found.parts if (one.kind, one.name) == (LINK, name)]
        assert name.startswith("link")
        widths = problem.system.link_bits_per_cycle.copy()
        widths[number] *= 2
        wider = replace(problem, system=replace(problem.system, link_bits_per_cycle=widths))
        latency = simulate(wider, view.schedule.allocation).latency_cycles
        assert [one.latency_cycles for one in links] == [latency] * bool(view.schedule.link_bits[:, number].sum())


def test_where_no_part_helps_alone_the_fewest_that_do_are_named() -> None:
    """The fewest parts that help together are named if no part helps alone: here the core and the link, the
    best pair.
    """
    view = random_view(43)
    found = schedule_limits(view)
    assert found.helpful == ()
    assert [part.kind for part in found.together] == [CORE, LINK]
    artifact, options = view.artifact, options_of(view.artifact, None)
    assert options is not None
    changes = {(kind, name): change for kind, name, change in _doubled(view)}
    saved = {}
    for one, other in itertools.combinations(changes, 2):
        played = Scheduler(changes[other](changes[one](artifact.problem)), options)(artifact.schedule.allocation)
        saved[one, other] = found.latency_cycles - played.latency_cycles
    pair = tuple((part.kind, part.name) for part in found.together)
    assert saved[pair] == max(saved.values()) == found.gain_cycles(found.together[0]) > 0  # type: ignore[index]
    assert found.verdict.winner == (found.together_words, max(saved.values()))
    assert limit_lines(found)[1] == f"limited by: {found.together_words} together saves 14 cycles, 50.0%"


def test_a_schedule_whose_options_are_wrong_is_not_played() -> None:
    """A schedule gets no verdict if its options do not reproduce it, or if `layers_by_off_chip` names an unknown id."""
    view = next(
        one
        for one in map(random_view, range(40))
        if options_of(with_options(one, share_divisor=1).artifact, None) is None
    )
    assert "do not reproduce it" in schedule_limits(with_options(view, share_divisor=1)).unknown
    assert options_of(with_options(view, layers_by_off_chip=[7]).artifact, None) is None
    assert options_of(with_options(view, layers_by_off_chip=[7]).artifact, [3, 4]) is None


def test_what_is_fetched_ahead_is_found_out() -> None:
    """Options name layer operands, which are converted to memory operands, so that the same transfers are made
    again.
    """
    from tilewright.multicore.scheduling.options import ScheduleOptions

    for seed in range(40):
        view = random_view(seed)
        ahead = simulate(
            view.artifact.problem, view.schedule.allocation, ScheduleOptions(operands_to_prefetch=(INPUT,))
        )
        if not np.array_equal(ahead.start_cycles, view.schedule.start_cycles):
            break
    artifact = replace(view.artifact, schedule=ahead, provenance={"options": {"operands_to_prefetch": ["I"]}})
    options = options_of(artifact, None)
    assert options is not None
    again = simulate(artifact.problem, ahead.allocation, replace(options, record=True))
    assert np.array_equal(again.transfers, ahead.transfers)
