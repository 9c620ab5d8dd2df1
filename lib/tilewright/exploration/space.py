"""A design space: a base accelerator, what is varied in it, what follows from that, and what designs must meet."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

Value = int | float | str


@dataclass(frozen=True)
class Network:
    """A network that every design runs."""

    name: str
    file: Path


@dataclass(frozen=True)
class Design:
    """One accelerator of a space."""

    index: int
    """Position in the space, from 0; the last axis varies fastest."""
    values: dict[str, Value]
    """Of each axis, then of each name that laws define, in the order of the file."""
    hardware: dict[str, Any]
    """The content of its hardware file."""
    excluded_by: str = ""
    """The constraint that it does not meet before anything is evaluated; '' where it meets all."""
    problem: str = ""
    """Why it is no accelerator at all: a law that cannot be computed, such as a division by zero."""
