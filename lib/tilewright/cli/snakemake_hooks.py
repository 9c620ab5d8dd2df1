"""What the Snakefile changes of Snakemake in its own process: what it says of jobs that end, and what it knows of files
that it puts back where a job fails."""

import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Any

_IS_HOOK = "_keeps_what_was"


class NamedJobs(logging.Filter):
    """Snakemake's line for a job that has ended says a number and a rule; here it says what the message of the job said
    when it began, which names its run. Records that look otherwise than expected stay as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.message_of: dict[Any, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: nothing is left out."""
        said = record.__dict__
        if said.get("rule_msg") and "jobid" in said:
            self.message_of[said["jobid"]] = str(said["rule_msg"])
        event = getattr(said.get("event"), "value", "")
        if event == "job_finished" and said.get("job_id") in self.message_of:
            record.msg = f"Finished job {said['job_id']}: {self.message_of[said['job_id']]}"
        return True


def name_ended_jobs(logger: logging.Logger) -> None:
    """Have the logger of Snakemake name jobs that have ended; once, however often a Snakefile is read."""
    for old in [found for found in logger.filters if isinstance(found, NamedJobs)]:
        logger.removeFilter(old)
    logger.addFilter(NamedJobs())


def keep_what_failed_jobs_had(persistence: Any) -> None:
    """Have a job that fails leave its files as old as they were, with what is known of how they were made.

    Snakemake copies files of an `update` output back without their age, and notes the failed job as the one that made
    them: the next run would take results of before a change for up to date. `persistence` is Snakemake's class of that
    name.
    """
    if not getattr(persistence.restore_output, _IS_HOOK, False):
        persistence.backup_output = _with_age(persistence.backup_output)
        persistence.restore_output = _noting_what_was(persistence.restore_output)
        persistence.finished = _restoring_what_was(persistence.finished)


def _with_age(backup: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    @wraps(backup)
    def backup_output(self: Any, path: Path) -> None:
        backup(self, path)
        shutil.copystat(path, self._get_backup_path(path))

    return backup_output


def _noting_what_was(restore: Callable[[Any, Path], bool]) -> Callable[[Any, Path], bool]:
    @wraps(restore)
    def restore_output(self: Any, path: Path) -> bool:
        copy_of = self._get_backup_path(path)
        age = copy_of.stat() if copy_of.exists() else None
        is_restored = restore(self, path)
        if is_restored and age:
            os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))
            _put_back(self).add(str(path))
        return is_restored

    setattr(restore_output, _IS_HOOK, True)
    return restore_output


def _restoring_what_was(finish: Callable[[Any, Any], Awaitable[None]]) -> Callable[[Any, Any], Awaitable[None]]:
    @wraps(finish)
    async def finished(self: Any, job: Any) -> None:
        known = {file: copy(self.metadata(file)) for file in job.output if str(file) in _put_back(self)}
        await finish(self, job)
        for file, record in known.items():
            _put_back(self).discard(str(file))
            if record is None:
                self.cleanup_metadata(file)
            else:
                self._write_record(self._get_key(file), record)

    return finished


def _put_back(persistence: Any) -> set[str]:
    """Files that were put back and whose job has not ended yet."""
    found: set[str] = persistence.__dict__.setdefault("_files_put_back", set())
    return found
