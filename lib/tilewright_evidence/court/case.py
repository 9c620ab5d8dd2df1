"""Cases of the court, each a measurement with our predictions for it, and sets of measurements."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tilewright.base.errors import InputError, Problem


@dataclass(frozen=True)
class Constant:
    """Number of a device that is fitted to measurements. A device has at most four such constants."""

    name: str
    unit: str
    meaning: str
    value: float
    """Value that was fitted to the rows which the rule of the set chooses, rounded to three digits."""
    lowest: float
    highest: float
    """End of the range in which the fit searches, which begins at `lowest`."""


@dataclass(frozen=True)
class Case:
    """Measurement with our predictions for it. Times are in the unit of the set."""

    identity: str
    part: str
    """Name of the part of the set to which the measurement belongs, for example device and kind of work."""
    group: str
    """Origin that several rows can have in common (a layer, a shape of weights). If constants were fitted to one of
    these rows, none of them counts as unseen.
    """
    measured: float
    bound: float
    """Lower bound: no run of the work on the machine can be faster."""
    estimate: float
    roofline: float
    """Roofline: max(operations / peak, bytes / bandwidth), where each byte is moved once."""
    limited_by: str
    """Part of the machine that takes most of the time in the estimate."""
    fitted: bool
    """Whether the constants were fitted to this row."""
    peer: float | None = None
    """Prediction of the other tool; None if there is none."""
    second: float | None = None
    """Further prediction for comparison, such as the sum of two bounds; None if there is none."""
    fastest: float | None = None
    """Shortest of several measurements, with which the bound is compared; None if there is only one measurement."""
    equal: bool | None = None
    """Whether the estimate is equal to the number of the source to its last digit; None if this is not checked."""
    explained: str = ""
    """Reason why the measurement can be below the bound; '' if there is no reason."""

    @property
    def error(self) -> float:
        """Relative error of the estimate."""
        return self.estimate / self.measured - 1.0

    @property
    def breaks_bound(self) -> bool:
        """Whether the measurement is below the bound by more than a millionth, which allows for rounding, or the bound
        is not above 0.
        """
        fastest = self.measured if self.fastest is None else self.fastest
        return not fastest >= self.bound * (1.0 - 1e-6) > 0.0


Values = Mapping[str, float]
"""Values of constants by name."""


class Prepared(Protocol):
    """Row of a set, with all data that do not depend on the constants."""

    @property
    def is_fitted(self) -> bool:
        """Whether the rule of the set chooses the row for the fit."""

    @property
    def drawn_by(self) -> str | None:
        """Text by which the rule chooses the row: rows with equal texts are chosen together. None if the rule never
        chooses the row.
        """

    @property
    def device(self) -> str:
        """Device whose constants the estimate uses; '' if the estimate uses no constants."""

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Case with our predictions for the row, computed with the constants of each device."""


@dataclass(frozen=True)
class Published:
    """Error that other authors published for their tool, measured on other rows."""

    tool: str
    error: str
    of: str
    """Description of the measurements on which the error was computed."""
    source: str


@dataclass(frozen=True)
class CourtSet:
    """A set of measurements."""

    name: str
    """Name of the set on the command line, which is also the name of its folder."""
    title: str
    unit: str
    source: str
    """Publication, repository and licence."""
    rule: str
    """Description of the rows to which the constants are fitted."""
    constants: Mapping[str, tuple[Constant, ...]]
    """Constants by device."""
    peer: str
    """Name of the tool whose predictions are in `Case.peer`; '' if there is no such tool."""
    second: str
    """Name of the prediction in `Case.second`; '' if there is no such prediction."""
    prepare: Callable[[Sequence[Path]], Sequence[Prepared]]
    """Function that reads the files of the set. It raises InputError with all mistakes."""
    patterns: tuple[str, ...]
    """Patterns of the names of the files with rows in the folder of the set."""
    published: tuple[Published, ...] = ()
    """Errors that other authors published for their tools on such machines."""

    def values(self) -> dict[str, dict[str, float]]:
        """Values of the constants, by device and name."""
        return {device: {one.name: one.value for one in constants} for device, constants in self.constants.items()}


DATA = Path(__file__).parent / "data"
"""Folder with samples of the sets and with hardware files."""


def set_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Files with rows in the folder of a set, sorted. Raises InputError if there are no such files."""
    found = sorted({file for pattern in patterns for file in folder.glob(pattern)})
    if not found:
        raise InputError([Problem("the folder has no files with rows", str(folder), allowed=", ".join(patterns))])
    return found


def in_hundred(text: str, salt: str) -> int:
    """Number from 0 to 99 that depends only on the text and the salt. Rows are chosen by this number."""
    return int(hashlib.sha256(f"{salt}|{text}".encode()).hexdigest()[:8], 16) % 100
