"""Command in its own process, with the cost of this process: wall time, CPU time and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ChildRun:
    """Cost and output of a process that has ended."""

    wall_seconds: float
    """Time in seconds from before the process starts until it has ended."""
    cpu_seconds: float
    """User and system time in seconds of the process, and of the children for which it waited."""
    peak_memory_mb: float
    """Peak resident memory of the process, in 10^6 bytes."""
    output: str
    """Standard output of the process."""


def run_child(command: list[str], environment: dict[str, str] | None = None, cwd: Path | None = None) -> ChildRun:
    """Run `command` to its end. Raises RuntimeError with the end of its standard error if it fails."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, stderr=errors, env={**os.environ, **(environment or {})}, cwd=cwd
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        output.seek(0)
        if process.returncode:
            message = "\n".join(errors.read().splitlines()[-15:])
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{message}")
        kilobyte = 1 if sys.platform == "darwin" else 1024  # macOS reports bytes
        return ChildRun(wall_seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * kilobyte / 1e6, output.read())
