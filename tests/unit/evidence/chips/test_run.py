"""The tiny case of cases.py under both models, worked out by hand.

Three lines of 32 bits come over a link of 8 bits, 4 cycles each; weights have 8 and 24 bits. A computation node (CN) of
layer 0 takes one cycle and one for off-loading; a node of layer 1 takes three and one.
"""

from itertools import pairwise
from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright_evidence.chips.case import CaseFiles, SiliconCase, read_case
from tilewright_evidence.chips.run import STREAM_2023_SWITCHES, CaseRun, CaseRunner, Switches, steps

from tests.unit.evidence.chips.cases import MAPPING, core, layer, write_case


def case_of(folder: Path, **changed: object) -> SiliconCase:
    """Read the tiny case."""
    return read_case("tiny", CaseFiles(write_case(folder, **changed)))


def spans(run: CaseRun) -> list[tuple[int, int]]:
    """Return (start, end) of each computation node."""
    return list(zip(run.schedule.start_cycles.tolist(), run.schedule.end_cycles.tolist(), strict=True))


def test_the_case_by_the_rules_of_the_reference(tmp_path: Path) -> None:
    """The reference takes 31 cycles.

    Weights arrive at 0-1, lines at 1-5, 5-9 and 9-13, so layer 0 runs 5-7, 9-11 and 13-15. The first node of layer 1
    needs lines 0 and 1, made at 7 and 11. They move 7-11 and 11-15, and the node runs 15-19. Line 2 moves 15-19; the
    other nodes run 19-23 and 23-27. Results leave 19-23, 23-27 and 27-31.
    """
    run = CaseRunner(case_of(tmp_path)).run(STREAM_2023_SWITCHES)
    assert spans(run) == [(5, 7), (9, 11), (13, 15), (15, 19), (19, 23), (23, 27)]
    assert run.latency_cycles == 31
    assert [run.layer_cycles(place) for place in (0, 1)] == [(1, 1, 1, 2), (3, 3, 3, 4)]


def test_the_case_by_the_default_model(tmp_path: Path) -> None:
    """The default model takes 33 cycles.

    The model counts no off-loading. It counts one cycle in which the first input goes to the array. Layer 1 becomes a
    candidate at 9, when both input lines of its first node have begun. These lines move 9-13 and 13-17, and the node
    runs 17-21. Line 2 moves 17-21; the other nodes run 21-25 and 25-29. Results are moved out 21-25, 25-29 and 29-33.
    """
    run = CaseRunner(case_of(tmp_path)).run(Switches())
    assert spans(run) == [(5, 7), (9, 11), (13, 15), (17, 21), (21, 25), (25, 29)]
    assert run.latency_cycles == 33
    assert check_schedule(run.assembled.problem, run.schedule) == []
    assert run.lower_bound_cycles <= 33
    assert run.busy_cycles.tolist() == [6, 12, 0]
    assert run.compute_cycles == 12
    assert [run.layer_cycles(place) for place in (0, 1)] == [(1, 1, 2, 4), (3, 3, 4, 6)]


def test_registers_limit_the_dataflow_where_the_model_cuts_it(tmp_path: Path) -> None:
    """Registers for two partial sums halve the dataflow only if the model cuts given unrollings.
    The reference of 2023 and the default model keep the dataflow of four pixels.
    """
    workload = [layer(0, 0), layer(1, 0)]
    runner = CaseRunner(case_of(tmp_path, cores__core=core(32), workload=workload))
    assert runner.run(STREAM_2023_SWITCHES).layer_cycles(0)[0] == 1
    assert runner.run(Switches()).layer_cycles(0)[0] == 1
    assert runner.run(Switches(cost_model="corrected-keep_given_unrolling")).layer_cycles(0)[0] == 2


def test_a_part_of_a_dataflow_leaves_the_other_sides_alone(tmp_path: Path) -> None:
    """The core's dataflow is used if no spatial mapping is given; array dimensions that it leaves out stay idle."""
    free = [{key: value for key, value in entry.items() if key != "spatial_mapping"} for entry in MAPPING]
    runner = CaseRunner(case_of(tmp_path, mapping=free))
    assert runner.run(STREAM_2023_SWITCHES).layer_cycles(0)[0] == 1


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        (STREAM_2023_SWITCHES, [2, 4]),
        (Switches(), [2, 4]),
        (Switches(cost_model="corrected-keep_given_unrolling"), [2, 6]),
    ],
)
def test_each_layer_gets_the_best_of_several_dataflows(tmp_path: Path, switches: Switches, expected: list[int]) -> None:
    """Each layer gets the best of several dataflows, in any order of the list.
    Lines of four pixels take 4 / 2 cycles. Kernel rows take 4 * 3 / 3 cycles with the given dataflow. They take 4 * 3 /
    2 if it is cut to the two weights that a port feeds.
    """
    free = [{key: value for key, value in entry.items() if key != "spatial_mapping"} for entry in MAPPING]
    for flows in ([{"D1": ["FY, 3"]}, {"D1": ["OX, 2"]}], [{"D1": ["OX, 2"]}, {"D1": ["FY, 3"]}]):
        case = case_of(tmp_path, mapping=free, cores__core=core(64, flows))
        run = CaseRunner(case).run(switches)
        assert [run.layer_cycles(place)[0] for place in (0, 1)] == expected


def test_steps_lead_from_one_model_to_the_other(tmp_path: Path) -> None:
    """The steps lead from stream-2023 to the default model, and each step changes something."""
    runner = CaseRunner(case_of(tmp_path))
    found = [(text, switches, runner.run(switches).latency_cycles) for text, switches in steps()]
    assert found[0] == ("stream-2023", STREAM_2023_SWITCHES, 31)
    assert found[-1][1:] == (Switches(), 33)
    assert all(one[1] != other[1] for one, other in pairwise(found))


def test_allocations_are_searched_where_there_is_a_choice(tmp_path: Path) -> None:
    """A search over two allowed cores is at least as good as the allocation in the file."""
    free = [{**entry, "core_allocation": [0, 1]} for entry in MAPPING]
    for switches in (STREAM_2023_SWITCHES, Switches()):
        given = CaseRunner(case_of(tmp_path / "given")).run(switches).latency_cycles
        assert CaseRunner(case_of(tmp_path / "free", mapping=free)).run(switches).latency_cycles <= given


def test_a_layer_that_no_core_can_run_is_told_with_the_reason(tmp_path: Path) -> None:
    """A layer that no core can run is an error with the reason: registers that are too small."""
    runner = CaseRunner(case_of(tmp_path, cores__core=core(32)))
    with pytest.raises(
        InputError, match=r"L1 \[0\]: no core can run it \(core 1 \(core\): .*memory 'registers' is too small"
    ):
        runner.run(STREAM_2023_SWITCHES)
