"""A case by both models, worked out on paper: tiny case of cases.py.

Three lines of 32 bits in, over a link of 8 bits: 4 cycles each; weights of 8 and 24 bits. A CN of layer 0 takes one
cycle and one for off-loading, one of layer 1 three and one.
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
    """The tiny case."""
    return read_case("tiny", CaseFiles(write_case(folder, **changed)))


def spans(run: CaseRun) -> list[tuple[int, int]]:
    """(start, end) of each CN."""
    return list(zip(run.schedule.start_cycles.tolist(), run.schedule.end_cycles.tolist(), strict=True))


def test_the_case_by_the_rules_of_the_reference(tmp_path: Path) -> None:
    """Weight 0-1, lines of input 1-5, 5-9, 9-13: layer 0 runs 5-7, 9-11, 13-15.

    CN 0 of layer 1 needs lines 0 and 1, made at 7 and 11: they go 7-11, 11-15, it runs 15-19. Line 2 goes 15-19; 19-23
    and 23-27 run; results 19-23, 23-27, 27-31.
    """
    run = CaseRunner(case_of(tmp_path)).run(STREAM_2023_SWITCHES)
    assert spans(run) == [(5, 7), (9, 11), (13, 15), (15, 19), (19, 23), (23, 27)]
    assert run.latency_cycles == 31
    assert [run.layer_cycles(place) for place in (0, 1)] == [(1, 1, 1, 2), (3, 3, 3, 4)]


def test_the_case_by_the_default_model(tmp_path: Path) -> None:
    """Without off-loading, but with a cycle in which the first input goes to the array. Layer 1 is a candidate when
    both lines have begun (9): 9-13, 13-17, runs 17-21.

    Line 2 goes 17-21; 21-25 and 25-29 run; results 21-25, 25-29, 29-33.
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
    """Registers for two partial sums or four results: four pixels at a time, where nothing is summed up. Where given
    dataflows are cut, they are to as many pixels as there is room for partial sums, but not in the reference of
    2023."""
    workload = [layer(0, 0), layer(1, 0)]
    runner = CaseRunner(case_of(tmp_path, cores__core=core(32), workload=workload))
    assert runner.run(STREAM_2023_SWITCHES).layer_cycles(0)[0] == 1
    assert runner.run(Switches()).layer_cycles(0)[0] == 1
    assert runner.run(Switches(cost_model="corrected-keep_given_unrolling")).layer_cycles(0)[0] == 2


def test_a_part_of_a_dataflow_leaves_the_other_sides_alone(tmp_path: Path) -> None:
    """Without a spatial mapping in the file, the dataflow of the core counts; what it leaves open is not used."""
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
    """Lines of four pixels, two or three rows of the kernel at a time: 4 / 2 cycles, 4 * 3 / 3 where the dataflow is
    not cut to the two weights that a port feeds, else 4 * 3 / 2.
    """
    free = [{key: value for key, value in entry.items() if key != "spatial_mapping"} for entry in MAPPING]
    for flows in ([{"D1": ["FY, 3"]}, {"D1": ["OX, 2"]}], [{"D1": ["OX, 2"]}, {"D1": ["FY, 3"]}]):
        case = case_of(tmp_path, mapping=free, cores__core=core(64, flows))
        run = CaseRunner(case).run(switches)
        assert [run.layer_cycles(place)[0] for place in (0, 1)] == expected


def test_steps_lead_from_one_model_to_the_other(tmp_path: Path) -> None:
    """The first is stream-2023, each other one changes what it says, the last is the default."""
    runner = CaseRunner(case_of(tmp_path))
    found = [(text, switches, runner.run(switches).latency_cycles) for text, switches in steps()]
    assert found[0] == ("stream-2023", STREAM_2023_SWITCHES, 31)
    assert found[-1][1:] == (Switches(), 33)
    assert all(one[1] != other[1] for one, other in pairwise(found))


def test_allocations_are_searched_where_there_is_a_choice(tmp_path: Path) -> None:
    """Both layers may run on both cores: the best is no worse than what the file of the case gives."""
    free = [{**entry, "core_allocation": [0, 1]} for entry in MAPPING]
    for switches in (STREAM_2023_SWITCHES, Switches()):
        given = CaseRunner(case_of(tmp_path / "given")).run(switches).latency_cycles
        assert CaseRunner(case_of(tmp_path / "free", mapping=free)).run(switches).latency_cycles <= given


def test_a_layer_that_no_core_can_run_is_told_with_the_reason(tmp_path: Path) -> None:
    """Registers that are too small for one sum of three lines of four pixels."""
    runner = CaseRunner(case_of(tmp_path, cores__core=core(32)))
    with pytest.raises(
        InputError, match=r"L1 \[0\]: no core can run it \(core 1 \(core\): .*memory 'registers' is too small"
    ):
        runner.run(STREAM_2023_SWITCHES)
