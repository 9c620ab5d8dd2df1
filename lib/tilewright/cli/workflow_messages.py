"""Messages of the Snakefile: at the end of each job, and at the end of a run (results, time, reused and failed jobs).

The Snakefile imports this module each time Snakemake parses it, so this module imports little.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.base.harmless import terminal, terminal_lines
from tilewright.base.steps import FRONT, MULTI, REPORT, RESULTS_PAGE, SINGLE, SPACE, SUMMARY
from tilewright.base.unused import UNUSED, capped

FILE_VARIABLE = "TILEWRIGHT_ENDING"
"""Environment variable with the path of a file. If a caller sets it, the text for the end of a run is written to this
file, so that the caller can print other texts first.
"""
LAST_LINES = 5
"""Number of last lines of a log that are shown if the log has no error message."""
MOST_NAMED = 3
"""Limit on the number of runs that a line names."""
_MESSAGE = re.compile(r"(internal )?error:")
_NOT_COUNTED = ("all", "across_runs")
"""Rules that only name other rules and do no work. They are not counted as jobs."""


@dataclass(frozen=True)
class EndedJob:
    """Ended job in a run of the pipeline."""

    name: str
    """Name of the rule, followed by the values of its wildcards, such as the name of the run."""
    run: str = ""
    """Name of the run to which the job belongs; '' if the job belongs to no run or to several runs."""
    logs: tuple[str, ...] = ()
    was_needed: bool = True
    """True if the job had to run, because its results were not up to date."""
    is_done: bool = True
    has_failed: bool = False

    @classmethod
    def of(cls, job: Any, dag: Any, failed: Iterable[Any]) -> "EndedJob":
        """Job made from a job object of Snakemake. `dag` is Snakemake's graph of jobs, and `failed` has the failed
        jobs.
        """
        values = job.wildcards_dict
        about = [str(values[name]) for name in sorted(values)]
        run = str(values.get("run", ""))
        done = dag.noneedrun_finished(job)
        logs = tuple(map(str, job.log))
        return cls(" ".join([job.rule.name, *about]), run, logs, dag.needrun(job), done, job in failed)


def jobs_of(workflow: Any) -> list[EndedJob]:
    """Jobs of a Snakemake workflow that has ended."""
    dag, failed = workflow.dag, getattr(workflow.scheduler, "failed", ())
    counted = (job for job in dag.jobs if job.rule.name not in _NOT_COUNTED)
    return sorted((EndedJob.of(job, dag, failed) for job in counted), key=lambda job: job.name)


def tell_ending(
    workflow: Any,
    seconds: float,
    results: Path,
    write: Callable[[str], object],
    file: str | None,
    unused: Sequence[str] = (),
) -> None:
    """Report how a workflow has ended.

    If `file` is given, the text is written to this file. Otherwise, `write` writes the text. `unused` has notices of
    configuration keys without effect.
    """
    text = ending_text(jobs_of(workflow), seconds, results, unused)
    if file:
        Path(file).write_text(text + "\n", "utf-8")
    else:
        write(text)


def ending_text(jobs: Sequence[EndedJob], seconds: float, results: Path, unused: Sequence[str] = ()) -> str:
    """Text for the end of a run of the pipeline with these jobs. `results` is the folder of the results."""
    if any(not job.is_done for job in jobs):
        return terminal_lines(failure_lines(jobs))
    told = unused_lines(results, sorted({job.run for job in jobs if job.run}), unused)
    return terminal_lines((made_line(jobs, seconds), results_line(results), *explain_line(results), *told))


def unused_lines(results: Path, runs: Sequence[str], unused: Sequence[str] = ()) -> list[str]:
    """Lines on unused input of the configuration, and on unused input in the files of runs (from their summaries).

    The logs of the jobs have the same notices with line numbers. The lines of this function give each notice only once,
    with the names of its runs.
    """
    found: dict[str, list[str]] = {}
    for file in (results / flow / run / SUMMARY for run in runs for flow in (SINGLE, MULTI)):
        with suppress(OSError, ValueError):
            for row in json.loads(file.read_text("utf-8")).get("payload", {}).get(UNUSED, ()):
                text = f"{row['file']} {row['key']}: {row['why']}".strip()
                found.setdefault(text, []).append(file.parent.name)
    rows = [f"{text} ({_some(names)})" for text, names in sorted(found.items())]
    return capped([*unused, *rows])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def made_line(jobs: Sequence[EndedJob], seconds: float) -> str:
    """Line with the duration, the number of jobs that ran, and the number of jobs whose results were up to date."""
    made = [job for job in jobs if job.was_needed]
    runs = {job.run for job in jobs if job.run}
    new = sorted({job.run for job in made if job.run})
    kept = len(jobs) - len(made)
    of_runs = ""
    if runs:
        of_runs = f" of {_count(len(runs), 'run')}" if len(new) == len(runs) else f" of {len(new)} of {len(runs)} runs"
        of_runs += f" ({', '.join(new)})" if new and len(new) < min(len(runs), MOST_NAMED + 1) else ""
    reused = f"reused: {_count(kept, 'job')} whose results were up to date" if kept else "there was nothing to reuse"
    return f"done in {duration(seconds)}: {_count(len(made), 'job')}{of_runs}; {reused}"


def results_line(results: Path) -> str:
    """Line with the paths of the main results that exist."""
    found = [str(results / name) for name in (RESULTS_PAGE, "summary.csv") if (results / name).is_file()]
    found += [f"{results / flow}/<run>/{REPORT}/" for flow in (SINGLE, MULTI) if (results / flow).is_dir()]
    found += [f"{results / kind}/" for kind in (SPACE, FRONT) if (results / kind).is_dir()]
    return f"results: {', '.join(found) or f'{results}/'}"


def explain_line(results: Path) -> list[str]:
    """Line with the command that shows the bottlenecks of a run; [] if there are no runs."""
    flows = [flow for flow in (SINGLE, MULTI) if (results / flow).is_dir()]
    return [f"to see what limits a run: .venv/bin/tilewright explain {results / flows[0]}/<run>"] if flows else []


def failure_lines(jobs: Sequence[EndedJob]) -> list[str]:
    """Lines with the distinct error messages from the logs of failed jobs. If no job failed, one line says that the run
    was stopped.
    """
    failed = [job for job in jobs if job.has_failed]
    waiting = sum(not job.is_done and not job.has_failed for job in jobs)
    if not failed:
        return [f"stopped: {_count(waiting, 'job')} left; run the same command again to continue"]
    said: dict[str, str] = {}
    for job in failed:
        for log in job.logs or ("",):
            for line in log_lines(log) or [f"{job.name} failed without a message in its log: was it killed?"]:
                said.setdefault(line, f"{log}:{line}" if log else line)
    which = "a job that it needs" if waiting == 1 else "jobs that they need"
    rest = [f"{_count(waiting, 'job')} did not run, because {which} failed"] if waiting else []
    return ["Why jobs failed:", *said.values(), *rest]


def log_lines(log: str) -> list[str]:
    """Error messages in a log. If there are none, the last lines of the log."""
    try:
        lines = [line for line in Path(log).read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return []
    return [line for line in lines if _MESSAGE.match(line)] or lines[-LAST_LINES:]


def duration(seconds: float) -> str:
    """Text of a duration, for example 4.2 s, 3 min 5 s, or 2 h 10 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


MOST_DAMAGED = 10
"""Limit on the number of damaged files whose names are printed."""


def damage_lines(files: Sequence[str]) -> list[str]:
    """Lines on files that are missing, or that were changed after tilewright wrote them. The lines are printed before
    these files are made again.
    """
    lines = [
        terminal(f"{file}: was changed or deleted after it was written; it is made again")
        for file in files[:MOST_DAMAGED]
    ]
    rest = len(files) - MOST_DAMAGED
    return [*lines, f"the same holds for {_count(rest, 'further file')}"] if rest > 0 else lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class NamedJobs(logging.Filter):
    """Filter of log records. It completes the line that Snakemake prints at the end of a job.

    The line of Snakemake has only the number and the rule of the job. The filter adds the message from the start of the
    job, which names the run. Other log records stay unchanged.
    """

    def __init__(self) -> None:
        super().__init__()
        self.message_of: dict[Any, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """True for every record, because no record is dropped."""
        said = record.__dict__
        if said.get("rule_msg") and "jobid" in said:
            self.message_of[said["jobid"]] = str(said["rule_msg"])
        event = getattr(said.get("event"), "value", "")
        if event == "job_finished" and said.get("job_id") in self.message_of:
            record.msg = f"Finished job {said['job_id']}: {self.message_of[said['job_id']]}"
        return True


def name_ended_jobs(logger: logging.Logger) -> None:
    """Add a filter `NamedJobs` to the logger of Snakemake. An earlier filter of this class is removed first, because a
    Snakefile can be read several times.
    """
    for old in [found for found in logger.filters if isinstance(found, NamedJobs)]:
        logger.removeFilter(old)
    logger.addFilter(NamedJobs())
