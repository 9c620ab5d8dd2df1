"""What the Snakefile changes of Snakemake: names of jobs that end, and what is known of files that are put back."""

import asyncio
import logging
import os
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tilewright.cli.snakemake_hooks import NamedJobs, keep_what_failed_jobs_had, name_ended_jobs


class Event(Enum):
    """As Snakemake names them."""

    BEGINS, ENDS = "job_info", "job_finished"


def record(text: str, **fields: Any) -> logging.LogRecord:
    """A record with the fields that Snakemake adds."""
    made = logging.LogRecord("snakemake", logging.INFO, "", 0, text, None, None)
    made.__dict__.update(fields)
    return made


def test_a_job_that_ends_says_what_it_said_when_it_began() -> None:
    """Others, and records without these fields, stay as they are."""
    names = NamedJobs()
    begins = record("x", event=Event.BEGINS, jobid=3, rule_msg="map_single mine")
    ends = [record("Finished jobid: 3", event=Event.ENDS, job_id=number) for number in (3, 4)]
    assert all(names.filter(one) for one in (begins, *ends, record("plain")))
    assert [one.msg for one in ends] == ["Finished job 3: map_single mine", "Finished jobid: 3"]
    logger = logging.getLogger("tilewright.tests.named")
    for _ in range(3):
        name_ended_jobs(logger)
    assert len(logger.filters) == 1


def persistence(folder: Path) -> Any:
    """A class like Snakemake's: it copies files without their age and notes every job that ends as their maker."""

    class Persistence:
        def __init__(self) -> None:
            self.notes: dict[str, Any] = {}

        def _get_key(self, file: Any) -> str:
            return str(file)

        def _get_backup_path(self, path: Path) -> Path:
            return folder / f"{path.name}.backup"

        def backup_output(self, path: Path) -> None:
            self._get_backup_path(path).write_bytes(path.read_bytes())

        def restore_output(self, path: Path) -> bool:
            copy = self._get_backup_path(path)
            if not copy.exists():
                return False
            path.write_bytes(copy.read_bytes())
            copy.unlink()
            return True

        def metadata(self, file: Any) -> Any:
            return self.notes.get(str(file))

        def cleanup_metadata(self, file: Any) -> None:
            self.notes.pop(str(file), None)

        def _write_record(self, key: str, note: Any) -> None:
            self.notes[key] = note

        async def finished(self, job: Any) -> None:
            self.notes |= {str(file): "made by the job that failed" for file in job.output}

    return Persistence


def test_a_failed_job_leaves_its_files_as_they_were(tmp_path: Path) -> None:
    """Content, age and what is known of them; a job that succeeds afterwards is noted as ever."""
    kind = persistence(tmp_path)
    for _ in range(2):
        keep_what_failed_jobs_had(kind)
    snakemake, file, unknown = kind(), tmp_path / "a.json", tmp_path / "b.json"
    for path in (file, unknown):
        path.write_text("before")
        os.utime(path, (1000, 1000))
        snakemake.backup_output(path)
        path.write_text("half")
    snakemake.notes[str(file)] = "made before"
    assert snakemake.restore_output(file)
    assert snakemake.restore_output(unknown)
    job = SimpleNamespace(output=[file, unknown, tmp_path / "c.json"])
    asyncio.run(snakemake.finished(job))
    assert [path.read_text() for path in (file, unknown)] == ["before", "before"]
    assert [path.stat().st_mtime for path in (file, unknown)] == [1000, 1000]
    assert snakemake.notes == {
        str(file): "made before",
        str(tmp_path / "c.json"): "made by the job that failed",
    }
    asyncio.run(snakemake.finished(job))
    assert set(snakemake.notes.values()) == {"made by the job that failed"}
    assert not snakemake.restore_output(tmp_path / "c.json")
