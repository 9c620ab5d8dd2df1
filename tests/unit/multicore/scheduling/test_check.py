"""Faults that `check_schedule` finds: a good schedule with one change violates the rule that the change breaks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tilewright.multicore.scheduling.check.movement import detour_faults
from tilewright.multicore.scheduling.check.rules import check_schedule, faults_by_rule
from tilewright.multicore.scheduling.energy_ledger import ON_CORE, CauseEnergy
from tilewright.multicore.scheduling.options import ScheduleOptions
from tilewright.multicore.scheduling.problem import SchedulingProblem
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
    make_problem,
    make_system,
)

FETCH, STREAM, EVICTION, RESULT, BETWEEN = range(5)
A, B, R = 2, 3, 4


def good_schedule() -> tuple[SchedulingProblem, Schedule]:
    """A schedule on three cores and the off-chip core 3.

    Cores 0 and 1 are on a bus with core 3 (link 0), and core 2 is on link 1 to core 3. All links carry 10 bits a cycle.
    Weight 0 goes to both cores of the bus at once (0-4). CN 0 makes A for CN 2 on core 1. CN 1 on core 1 makes B for CN
    3 on core 2, by a detour. CN 2 streams weight 1 and makes the result R.
    """
    bus = {(i, j): [0] for i in (0, 1, 3) for j in (0, 1, 3) if i != j}
    memories = [Memory(80), Memory(200), Memory(60), Memory(10**6, 1000, 10.0, 20.0)]
    system = make_system(range(4), memories, [Link(10, 0.5, True), Link()], bus | {(2, 3): [1], (3, 2): [1]})
    pieces = [Piece(40), Piece(60), Piece(30, 0), Piece(50, 1), Piece(20, 2, True)]
    nodes = [
        Node(6, [(0, WEIGHT)], energy_pj=3),
        Node(5, [(0, WEIGHT)]),
        Node({1: 6}, [(A, INPUT), (1, WEIGHT)], streams={WEIGHT: (60, 8)}),
        Node({2: 4}, [(B, INPUT)]),
    ]
    problem = make_problem(system, pieces, nodes)
    return problem, simulate(problem, np.array([0, 1, 1, 2]))


def test_the_schedule_that_is_changed_has_everything() -> None:
    """The unchanged schedule keeps all rules, and has transfers of all causes and a listener."""
    problem, schedule = good_schedule()
    assert check_schedule(problem, schedule) == []
    assert sorted(schedule.transfers["cause"].tolist()) == [FETCH, FETCH, FETCH, EVICTION, RESULT, BETWEEN]
    assert np.count_nonzero(schedule.transfers["broadcast_of"] >= 0) == 1
    assert len(schedule.streams) == 1


def test_layers_by_off_chip_are_held_to_their_way() -> None:
    """A result that moves directly between cores is a fault only if its layer must use the off-chip memory."""
    problem, schedule = good_schedule()
    by_layer = replace(problem, graph=replace(problem.graph, layer=np.arange(4)))
    assert detour_faults(by_layer, schedule, (1, 2, 3)) == []
    (fault,) = detour_faults(by_layer, schedule, (0, 1))
    assert fault.startswith("tensor piece 2 of layer 0 moves directly")
    kept = simulate(by_layer, schedule.allocation, ScheduleOptions(layers_by_off_chip=(0, 1)))
    assert detour_faults(by_layer, kept, (0, 1)) == [] == check_schedule(by_layer, kept)


def row_of(schedule: Schedule, log: str, where: dict[str, int]) -> int:
    """The first row of a log with the given values."""
    rows = getattr(schedule, log)
    kept = np.all([rows[name] == value for name, value in where.items()], axis=0)
    return int(np.flatnonzero(kept)[0])


def changed(schedule: Schedule, log: str, where: dict[str, int], column: str, by: int) -> Schedule:
    """The schedule with one number of one row of a log changed."""
    rows = getattr(schedule, log).copy()
    rows[column][row_of(schedule, log, where)] += by
    return replace(schedule, **{log: rows})


WEIGHT_ON_0: dict[str, int] = {"piece": 0, "broadcast_of": -1}
LISTENER: dict[str, int] = {"piece": 0, "broadcast_of": 3 * 4 + 0}
ONE_WAY: dict[str, int] = {"piece": B, "cause": EVICTION}
THE_OTHER: dict[str, int] = {"piece": B, "cause": FETCH}


@pytest.mark.parametrize(
    ("log", "where", "column", "by", "rule", "text"),
    [
        ("transfers", WEIGHT_ON_0, "piece", 1, "data", "CN 0 starts before tensor piece 0 is in memory 0"),
        (
            "transfers",
            {"piece": R},
            "piece",
            -2,
            "data",
            "tensor piece 4 is a result, but is not in the off-chip memory at the end",
        ),
        (
            "transfers",
            ONE_WAY,
            "piece",
            -1,
            "data",
            "tensor piece 3 is sent from memory 3 at cycle .*, before it has arrived there",
        ),
        ("transfers", ONE_WAY, "cause", 1, "data", "of tensor piece 3 has the wrong cause"),
        ("transfers", ONE_WAY, "cause", 1, "energy", "link_bits of eviction"),
        ("transfers", {"cause": BETWEEN}, "source_memory", 1, "data", "has a memory that does not belong to its cores"),
        (
            "transfers",
            {"cause": BETWEEN},
            "target_memory",
            -1,
            "data",
            "has a memory that does not belong to its cores",
        ),
        ("transfers", {"cause": BETWEEN}, "target_core", 1, "data", "of tensor piece 2 has no path"),
        ("transfers", {"cause": BETWEEN}, "source_core", 2, "data", "of tensor piece 2 has no path"),
        (
            "transfers",
            {"piece": R},
            "start_cycles",
            -1,
            "data",
            "has a number of cycles that does not follow from its bits and rate",
        ),
        (
            "transfers",
            THE_OTHER,
            "end_cycles",
            1,
            "data",
            "has a number of cycles that does not follow from its bits and rate",
        ),
        ("transfers", THE_OTHER, "end_cycles", 1, "data", "CN 3 starts before tensor piece 3 is in memory 2"),
        (
            "transfers",
            THE_OTHER,
            "bits_per_cycle",
            -1,
            "data",
            "has a number of cycles that does not follow from its bits and rate",
        ),
        ("transfers", THE_OTHER, "bits_per_cycle", 1, "links", "link 1 carries 11 bits per cycle"),
        ("transfers", {"piece": R}, "bits_per_cycle", 2000, "data", "has a rate above the word width of its memories"),
        ("transfers", LISTENER, "broadcast_of", 1, "data", "refers to a broadcast that does not exist"),
        ("transfers", LISTENER, "broadcast_of", -13, "links", "link 0 carries 20 bits per cycle"),
        ("transfers", LISTENER, "broadcast_of", -13, "energy", "words_read of off_chip_fetch"),
        ("transfers", WEIGHT_ON_0, "piece", 99, "logs", "transfers: piece is out of range"),
        ("transfers", WEIGHT_ON_0, "start_cycles", 10**6, "logs", "transfers are not sorted by time"),
        ("transfers", WEIGHT_ON_0, "bits_per_cycle", -10, "logs", "transfers: bits_per_cycle is not positive"),
        (
            "streams",
            {},
            "cn",
            -1,
            "cores",
            "the stream of CN 1 (60 bits over link 0) does not last exactly as long as the CN",
        ),
        ("streams", {}, "link", 1, "cores", "CN 2: wrong number of streamed bits over link 0"),
        (
            "streams",
            {},
            "start_cycles",
            -1,
            "cores",
            "the stream of CN 2 (60 bits over link 0) does not last exactly as long as the CN",
        ),
        (
            "streams",
            {},
            "end_cycles",
            1,
            "cores",
            "the stream of CN 2 (60 bits over link 0) does not last exactly as long as the CN",
        ),
        (
            "streams",
            {},
            "bits_per_cycle",
            -1,
            "cores",
            "the stream of CN 2 (60 bits over link 0) does not last exactly as long as the CN",
        ),
        ("streams", {}, "bits_per_cycle", 3, "links", "link 0 carries 11 bits per cycle"),
        ("streams", {}, "bits", -1, "cores", "CN 2: wrong number of streamed bits over link 0"),
        ("streams", {}, "cn", 9, "logs", "streams: cn is out of range"),
        ("memory_changes", {"memory": 2}, "time_cycles", 1, "memories", "memory 2: the stored bits differ in time or"),
        (
            "memory_changes",
            {"memory": 0},
            "memory",
            1,
            "memories",
            "memory 0 holds fewer bits at cycle 0 than the 40 bits",
        ),
        ("memory_changes", {"memory": 2}, "change_bits", 1, "memories", "memory 2 holds 1 bits at the end"),
        (
            "memory_changes",
            {"memory": 2},
            "change_bits",
            11,
            "memories",
            "memory 2 holds 61 bits .* can hold 0 to 60",
        ),
        ("memory_changes", {"memory": 2}, "change_bits", -1, "memories", "memory 2: the recorded peak differs"),
        ("memory_changes", {"memory": 2}, "memory", 9, "logs", "memory_changes: memory is out of range"),
    ],
)
def test_a_changed_log_is_found(log: str, where: dict[str, int], column: str, by: int, rule: str, text: str) -> None:
    """A changed number in one row of a log is found."""
    problem, schedule = good_schedule()
    found = faults_by_rule(problem, changed(schedule, log, where, column, by))
    assert found.get(rule), found
    assert any(_matches(text, fault) for fault in found[rule]), found


def _matches(text: str, fault: str) -> bool:
    return all(part in fault for part in text.split(".*"))


@pytest.mark.parametrize(
    ("field", "place", "by", "rule", "text"),
    [
        ("start_cycles", 3, -1, "nodes", "CN 3 runs for 5 cycles, not 4"),
        ("end_cycles", 3, 1, "nodes", "CN 3 runs for 5 cycles, not 4"),
        ("start_cycles", 2, -(10**3), "nodes", "CN 2 has not run"),
        ("start_cycles", 3, -15, "nodes", "CN 3 starts before its predecessor CN 1 ends"),
        ("start_cycles", 3, -1, "data", "CN 3 starts before tensor piece 3 is in memory 2"),
        ("start_cycles", 2, -10, "cores", "CNs 1 and 2 overlap on core 1"),
        ("allocation", 3, -1, "nodes", "CN 3 is on a core that cannot run it"),
        ("allocation", 3, 1, "nodes", "CN 3 is on a core that cannot run it"),
        ("allocation", 0, 2, "data", "CN 0 starts before tensor piece 0 is in memory 2"),
        ("allocation", 3, 5, "logs", "a CN is on a core that does not exist"),
        ("latency_cycles", None, 1, "nodes", "the latency is"),
        ("peak_bits", 0, -1, "memories", "memory 0: the recorded peak differs from the largest number of stored bits"),
        ("link_bits", (BETWEEN, 0), 1, "energy", "link_bits of core_to_core at 0 is 31, but the logs give 30"),
        ("words_read", (FETCH, 3), 1, "energy", "words_read of off_chip_fetch at 3 is 3, but the logs give 2"),
        ("words_written", (RESULT, 3), -1, "energy", "words_written of sink_output at 3 is 0, but the logs give 1"),
    ],
)
def test_a_changed_number_is_found(field: str, place: Any, by: int, rule: str, text: str) -> None:
    """A changed entry of an array, or a changed total, is found."""
    problem, schedule = good_schedule()
    value = getattr(schedule, field)
    if place is None:
        value += by
    else:
        value = value.copy()
        value[place] += by
    found = faults_by_rule(problem, replace(schedule, **{field: value}))
    assert any(text in fault for fault in found[rule]), found


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("part", ["link", "memory"])
def test_a_changed_energy_is_found(cause: str, part: str) -> None:
    """A changed part of the energy of each cause is found, and so is the total that contains it."""
    problem, schedule = good_schedule()
    terms = schedule.energy_terms_pj
    one = terms[cause]
    wrong = CauseEnergy(one.link_pj + (part == "link"), one.memory_pj + (part == "memory"))
    found = faults_by_rule(problem, replace(schedule, energy_terms_pj={**terms, cause: wrong}))["energy"]
    assert any(fault.startswith(f"energy {cause} {part} is") for fault in found)
    assert any(fault.startswith("energy total is") for fault in found)
    missing = {name: energy for name, energy in terms.items() if name != cause}
    assert list(faults_by_rule(problem, replace(schedule, energy_terms_pj=missing))) == ["logs"]


def test_a_changed_energy_on_cores_is_found() -> None:
    """A changed energy on cores is found, and so is the total that contains it."""
    problem, schedule = good_schedule()
    terms = {**schedule.energy_terms_pj, ON_CORE: 4.0}
    found = faults_by_rule(problem, replace(schedule, energy_terms_pj=terms))["energy"]
    assert found[0] == "energy on_core is 4.0 pJ, but the logs give 3.0"
    assert found[1].startswith("energy total is")


@pytest.mark.parametrize("log", ["transfers", "streams", "memory_changes"])
def test_a_row_too_few_or_too_many_is_found(log: str) -> None:
    """Each row of each log is missed if it is removed, and found if it is doubled."""
    problem, schedule = good_schedule()
    rows = getattr(schedule, log)
    for row in range(len(rows)):
        for wrong in (np.delete(rows, row), np.insert(rows, row, rows[row])):
            assert check_schedule(problem, replace(schedule, **{log: wrong})), (log, row)


@pytest.mark.parametrize("pair", [(3, 1), (1, 3)])
def test_a_stream_needs_a_path(pair: tuple[int, int]) -> None:
    """Weight 1 streams to core 1, so a missing path is a fault only in that direction."""
    problem, schedule = good_schedule()
    exists = problem.system.path_exists.copy()
    exists[pair[0] * 4 + pair[1]] = False
    without = SchedulingProblem(problem.graph, problem.costs, replace(problem.system, path_exists=exists))
    found = (
        "CN 2 streams data, but a path between its core and the off-chip core is missing"
        in faults_by_rule(without, schedule)["cores"]
    )
    assert found == (pair == (3, 1))


def test_space_that_is_given_away_too_early_is_found() -> None:
    """CN 0 uses 70 bits: its weight of 40 and its output of 30. Removing the weight a cycle too early is found."""
    problem, schedule = good_schedule()
    rows = schedule.memory_changes.copy()
    lost = np.flatnonzero((rows["memory"] == 0) & (rows["change_bits"] == -40))[0]
    assert rows["time_cycles"][lost] == schedule.end_cycles[0] == 10
    rows["time_cycles"][lost] -= 1
    rows = rows[np.argsort(rows["time_cycles"], kind="stable")]
    found = faults_by_rule(problem, replace(schedule, memory_changes=rows))["memories"]
    assert found == ["memory 0 holds fewer bits at cycle 9 than the 70 bits in use"]


def test_a_schedule_without_logs_cannot_be_checked() -> None:
    """A schedule without logs, or with an array of the wrong shape, gives one fault that says so."""
    problem, schedule = good_schedule()
    found = faults_by_rule(problem, replace(schedule, memory_changes=schedule.memory_changes[:0]))
    assert found == {"logs": ["the schedule was made without logs, so it cannot be checked"]}
    found = faults_by_rule(problem, replace(schedule, end_cycles=schedule.end_cycles[:-1]))
    assert found == {"logs": ["end_cycles has shape (3,), not (4,)"]}
