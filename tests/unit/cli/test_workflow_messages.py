"""Messages at the end of a run, and changes of the Snakefile to Snakemake."""

import logging
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tilewright.cli.workflow_messages import (
    EndedJob,
    NamedJobs,
    damage_lines,
    duration,
    ending_text,
    jobs_of,
    log_lines,
    name_ended_jobs,
    tell_ending,
)


def job(name: str, run: str = "", **others: Any) -> EndedJob:
    """Return a job with this name."""
    return EndedJob(f"map_single {name}", run, **others)


def test_times_are_for_people() -> None:
    """Durations are printed in the two largest units."""
    assert [duration(seconds) for seconds in (4.21, 59.94, 60, 185, 3599.6, 7805)] == [
        *("4.2 s", "59.9 s", "1 min 0 s", "3 min 5 s", "1 h 0 min", "2 h 10 min")
    ]


def test_a_first_run_says_where_its_results_are(tmp_path: Path) -> None:
    """A first run prints the existing results and how to explain a run."""
    (tmp_path / "single").mkdir()
    (tmp_path / "summary.csv").touch()
    text = ending_text([job("a", "a"), job("b", "b")], 61.0, tmp_path)
    assert text.splitlines() == [
        "done in 1 min 1 s: 2 jobs of 2 runs; there was nothing to reuse",
        f"results: {tmp_path}/summary.csv, {tmp_path}/single/<run>/report/",
        f"to see what limits a run: .venv/bin/tilewright explain {tmp_path}/single/<run>",
    ]
    assert ending_text([], 1, tmp_path / "none").endswith(f"results: {tmp_path}/none/")


def test_what_is_reused_is_counted() -> None:
    """Reused results are counted, and runs that were made again are named if they are few."""
    kept = [job(name, name, was_needed=False) for name in "abc"]
    text = ending_text([*kept, job("d", "d"), job("parse")], 2, Path("results"))
    assert text.startswith("done in 2.0 s: 2 jobs of 1 of 4 runs (d); reused: 3 jobs whose results were up to date\n")
    made = [job(name, name) for name in "defg"]
    assert "4 jobs of 4 of 7 runs; reused" in ending_text([*kept, *made], 2, Path("results"))
    assert "1 job of 0 of 3 runs; reused" in ending_text([*kept, job("summary")], 2, Path("results"))


def test_what_failed_is_told_once_with_its_message(tmp_path: Path) -> None:
    """A failed job is printed once with its message, with the last lines of its log, or without a message."""
    texts = {
        "one": "note: x\nerror: too small\n",
        "two": "error: too small\n",
        "three": "a\n\nb\nc\nd\ne\nf\n",
        "four": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    failed = [job(name, is_done=False, has_failed=True, logs=(str(tmp_path / name),)) for name in (*texts, "five")]
    text = ending_text([*failed, job("six", is_done=False), job("seven")], 2, Path("results"))
    assert text.splitlines() == [
        "Why jobs failed:",
        f"{tmp_path}/one:error: too small",
        *(f"{tmp_path}/three:{line}" for line in "bcdef"),
        f"{tmp_path}/four:map_single four failed without a message in its log: was it killed?",
        f"{tmp_path}/five:map_single five failed without a message in its log: was it killed?",
        "1 job did not run, because a job that it needs failed",
    ]
    assert log_lines(str(tmp_path / "one")) == ["error: too small"]


def test_logs_and_names_of_files_are_lines(tmp_path: Path) -> None:
    """Text of logs and names of files neither controls a terminal nor adds a line."""
    log = tmp_path / "a\x1b[31m\nb.log"
    log.write_text("error: \x1b]0;owned\x07\u202e\n")
    text = ending_text([EndedJob("one", "one", (str(log),), is_done=False, has_failed=True)], 2, Path("results"))
    assert text == f"Why jobs failed:\n{tmp_path}/a\\x1b[31m\\nb.log:error: \\x1b]0;owned\\x07\\u202e"
    assert damage_lines([str(log)])[0].startswith(f"{tmp_path}/a\\x1b[31m\\nb.log: was changed or deleted")


def test_a_run_that_was_stopped_goes_on() -> None:
    """A stopped run prints the number of jobs left."""
    text = ending_text([job("a"), job("b", is_done=False)], 2, Path("results"))
    assert text == "stopped: 1 job left; run the same command again to continue"


@pytest.mark.parametrize("file", [None, "ending"])
def test_jobs_are_those_of_snakemake(file: str | None, tmp_path: Path) -> None:
    """Jobs of Snakemake are printed with their wildcards; a rule that only collects other rules, as `all`, is not."""
    rules = {"map_single": {"run": "mine"}, "parse_hardware": {"hardware": "wide"}, "all": {}}
    made = [
        SimpleNamespace(rule=SimpleNamespace(name=name), wildcards_dict=about, log=[f"{name}.log"])
        for name, about in rules.items()
    ]
    dag = SimpleNamespace(
        jobs=made, needrun=lambda one: one is made[0], noneedrun_finished=lambda one: one is not made[0]
    )
    workflow = SimpleNamespace(dag=dag, scheduler=SimpleNamespace(failed=[made[0]]))
    mapped, parsed = jobs_of(workflow)
    assert mapped == EndedJob("map_single mine", "mine", ("map_single.log",), is_done=False, has_failed=True)
    assert parsed == EndedJob("parse_hardware wide", "", ("parse_hardware.log",), was_needed=False)
    said: list[str] = []
    target = None if file is None else str(tmp_path / file)
    tell_ending(workflow, 1.0, tmp_path, said.append, target)
    assert (said or [(tmp_path / "ending").read_text()])[0].startswith("Why jobs failed:\n")
    assert bool(said) is (file is None)


class Event(Enum):
    """Events with the names of Snakemake."""

    BEGINS, ENDS = "job_info", "job_finished"


def record(text: str, **fields: Any) -> logging.LogRecord:
    """Return a log record with the fields that Snakemake adds."""
    made = logging.LogRecord("snakemake", logging.INFO, "", 0, text, None, None)
    made.__dict__.update(fields)
    return made


def test_a_job_that_ends_says_what_it_said_when_it_began() -> None:
    """The record of an ended job gets the message of its beginning; other records stay unchanged."""
    names = NamedJobs()
    begins = record("x", event=Event.BEGINS, jobid=3, rule_msg="map_single mine")
    ends = [record("Finished jobid: 3", event=Event.ENDS, job_id=number) for number in (3, 4)]
    assert all(names.filter(one) for one in (begins, *ends, record("plain")))
    assert [one.msg for one in ends] == ["Finished job 3: map_single mine", "Finished jobid: 3"]
    logger = logging.getLogger("tilewright.tests.named")
    for _ in range(3):
        name_ended_jobs(logger)
    assert len(logger.filters) == 1
