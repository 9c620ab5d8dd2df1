"""Stacks as barriers in a whole run: each stack begins after the end of the previous one, and all checks hold."""

from pathlib import Path

from tilewright.multicore.scheduling.result import read_schedule

from tests.unit.multi_core.runs import DUO, chain, run, write_accelerator, write_mapping

STACKS = ["--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]', "--stack-cutoffs", "[0, 1]"]


def test_no_stack_begins_before_the_one_before_has_ended(tmp_path: Path) -> None:
    """A stack begins after the previous one with `barrier` and earlier with `priority`, as the settings say."""
    hardware, network = write_accelerator(tmp_path / "hardware", DUO), chain(tmp_path)
    mapping = write_mapping(tmp_path)
    gaps = {}
    for order in ("priority", "barrier"):
        found = run(tmp_path / order, hardware, network, mapping, STACKS, schedule=["--stack-order", order])
        assert found["settings"]["stack_order"] == order
        artifact = read_schedule(tmp_path / order / "schedule.npz")
        stack, schedule = artifact.problem.graph.stack, artifact.schedule
        assert sorted(set(stack.tolist())) == [0, 1, 2]
        gaps[order] = [
            int(schedule.start_cycles[stack == later].min() - schedule.end_cycles[stack < later].max())
            for later in (1, 2)
        ]
    assert min(gaps["barrier"]) >= 0 > min(gaps["priority"])
