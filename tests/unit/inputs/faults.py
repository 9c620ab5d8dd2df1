"""Files with one fault each, and a check of the message."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError, Problem

Fault = tuple[str, str, str, str, Sequence[str]]
"""Tuple (part of a valid file, its replacement, beginning of the last reported line, path, parts of the message)."""


def problems_in(text: str, file: Path, read: Callable[[Path], Any]) -> tuple[Problem, ...]:
    """Return the problems of a file with this text."""
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read(file)
    return caught.value.problems


def check_fault(fault: Fault, valid: str, file: Path, read: Callable[[Path], Any]) -> None:
    """Assert that one fault gives one problem at its path, with the line and a hint."""
    old, new, line_start, path, parts = fault
    assert valid.count(old) >= 1
    text = valid.replace(old, new, 1)
    problems = problems_in(text, file, read)
    matching = [problem for problem in problems if problem.path == path]
    assert len(matching) == 1, problems
    assert matching[0].file == str(file)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if line.startswith(line_start)]
    assert matching[0].line == lines[-1]
    for part in parts:
        assert part in str(matching[0])
