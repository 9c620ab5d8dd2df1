"""A case of the court: one measurement, with what we say of it; and the files of measurements that cases are read
from, JSON lines or CSV, gzipped or not, each row checked for what is read of it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tilewright.base.errors import InputError, Problem


@dataclass(frozen=True)
class Constant:
    """A number that is fitted to measurements: of a device there are four at most."""

    name: str
    unit: str
    meaning: str
    value: float
    """Value as fitted to the rows that the rule of the set chooses, to three digits."""
    lowest: float
    highest: float
    """Range that is searched."""


@dataclass(frozen=True)
class Case:
    """One measurement with what we say of it. Times are in the unit of the set."""

    identity: str
    part: str
    """Which rows it is counted with: device, kind of work."""
    group: str
    """What rows of one origin share (a layer, a shape of weights): if one of them is fitted, none counts as unseen."""
    measured: float
    bound: float
    """Bound below which no run of the work on the machine can stay."""
    estimate: float
    roofline: float
    """max(operations / peak, bytes / bandwidth), each byte once."""
    limited_by: str
    """What takes most of the time in the estimate."""
    fitted: bool
    """True: the constants were fitted to this row."""
    peer: float | None = None
    """What the other tool said."""
    second: float | None = None
    """Another prediction of that tool's kind, such as the sum of both bounds."""
    fastest: float | None = None
    """The shortest of several measurements, which the bound is held against; None where there is one."""
    equal: bool | None = None
    """Whether the estimate is the figure of the source to its last digit; None where that is no question."""
    explained: str = ""
    """Why the measurement may be below the bound; empty where nothing explains it."""

    @property
    def error(self) -> float:
        """Relative error of the estimate."""
        return self.estimate / self.measured - 1.0

    @property
    def breaks_bound(self) -> bool:
        """True if it was faster than the bound allows, or there is no bound above 0; a millionth is rounding."""
        fastest = self.measured if self.fastest is None else self.fastest
        return not fastest >= self.bound * (1.0 - 1e-6) > 0.0


Values = Mapping[str, float]
"""Values of constants by name."""


class Prepared(Protocol):
    """A row of a set, with what does not depend on the constants."""

    @property
    def is_fitted(self) -> bool:
        """Whether the rule of the set chooses it for the fit."""

    @property
    def drawn_by(self) -> str | None:
        """The text by which the rule draws it, with all other rows of that text; None where it never does."""

    @property
    def device(self) -> str:
        """Whose constants it is estimated with; empty if it needs none."""

    def case(self, constants: Mapping[str, Values]) -> Case:
        """What we say of it, for the constants of each device."""


@dataclass(frozen=True)
class Published:
    """The error that others published of a tool of theirs, on other rows."""

    tool: str
    error: str
    of: str
    """What was measured."""
    source: str


@dataclass(frozen=True)
class CourtSet:
    """A set of measurements."""

    name: str
    """Folder of the set, and its name on the command line."""
    title: str
    unit: str
    source: str
    """Publication, repository and licence."""
    rule: str
    """Which rows the constants are fitted to."""
    constants: Mapping[str, tuple[Constant, ...]]
    """Constants of each device."""
    peer: str
    """Whose figures `Case.peer` are; empty if there are none."""
    second: str
    """What `Case.second` is; empty if nothing."""
    prepare: Callable[[Sequence[Path]], Sequence[Prepared]]
    """Reads the files of the set. Raises InputError with everything that is wrong."""
    patterns: tuple[str, ...]
    """Names of the files of rows in the folder of the set."""
    published: tuple[Published, ...] = ()
    """What others say of tools of theirs on such machines."""

    def values(self) -> dict[str, dict[str, float]]:
        """The constants as they are."""
        return {device: {one.name: one.value for one in constants} for device, constants in self.constants.items()}


DATA = Path(__file__).parent / "data"
"""Samples of the sets, and hardware files."""


def set_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Files of rows in the folder of a set, sorted. Raises InputError if there are none."""
    found = sorted({file for pattern in patterns for file in folder.glob(pattern)})
    if not found:
        raise InputError([Problem("no rows here", str(folder), allowed=", ".join(patterns))])
    return found


def in_hundred(text: str, salt: str) -> int:
    """A number from 0 to 99 that depends on the text and the salt alone, by which rows are chosen."""
    return int(hashlib.sha256(f"{salt}|{text}".encode()).hexdigest()[:8], 16) % 100
