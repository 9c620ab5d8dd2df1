"""Files with one fault each: what is said of them, for tests."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError, Problem

Fault = tuple[str, str, str, str, Sequence[str]]
"""(text of a valid file, what stands there instead, beginning of the last line that is told, path, parts of what is
told)."""


def problems_in(text: str, file: Path, read: Callable[[Path], Any]) -> tuple[Problem, ...]:
    """What is said of a file with this text."""
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read(file)
    return caught.value.problems


def check_fault(fault: Fault, valid: str, file: Path, read: Callable[[Path], Any]) -> None:
    """One fault gives one problem at its path, with the line and the hint that mends it."""
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
