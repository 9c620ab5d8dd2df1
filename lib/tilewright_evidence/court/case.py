"""Cases of the court and sets of measurements: a case is a measurement with our predictions for it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tilewright.base.errors import InputError, Problem


@dataclass(frozen=True)
class Constant:
    """Constant of a device that is fitted to measurements. A device has at most four of them."""

    name: str
    unit: str
    meaning: str
    value: float
    """Fitted value, rounded to three digits. The rule of the set chooses the rows for the fit."""
    lowest: float
    highest: float
    """Upper end of the range in which the fit searches; `lowest` is the lower end."""


@dataclass(frozen=True)
class Case:
    """Measurement with our predictions for it. Times are in the unit of the set."""

    identity: str
    part: str
    """Name of the part of the set that contains the measurement, such as a device and a kind of work."""
    group: str
    """Origin of the row, such as a layer or a shape of weights. Several rows can have the same origin. If constants
    were fitted to one of them, all of them count as seen.
    """
    measured: float
    bound: float
    """Lower bound of the time: no run of this work on the machine can be faster."""
    estimate: float
    roofline: float
    """Roofline: max(operations / peak, bytes / bandwidth), if each byte is moved once."""
    limited_by: str
    """Name of the machine part that takes most of the time in the estimate."""
    fitted: bool
    """True if constants were fitted to this row."""
    peer: float | None = None
    """Prediction of another tool; None if the set has none."""
    second: float | None = None
    """Further prediction for comparison, such as the sum of two bounds; None if there is none."""
    fastest: float | None = None
    """Shortest of several measurements, which is compared with the bound; None if there is only one measurement."""
    equal: bool | None = None
    """True if the estimate equals the number of the source in every digit; None if this is not checked."""
    explained: str = ""
    """Known reason why the measurement can be below the bound; '' if there is none."""

    @property
    def error(self) -> float:
        """Relative error of the estimate: estimate / measurement - 1."""
        return self.estimate / self.measured - 1.0

    @property
    def breaks_bound(self) -> bool:
        """True if the measurement is below the bound by more than a millionth (for rounding), or the bound is not above
        0.
        """
        fastest = self.measured if self.fastest is None else self.fastest
        return not fastest >= self.bound * (1.0 - 1e-6) > 0.0


Values = Mapping[str, float]
"""Values of constants, by name of the constant."""


class Prepared(Protocol):
    """Row of a set, with all its data that do not depend on the constants."""

    @property
    def is_fitted(self) -> bool:
        """True if the rule of the set chooses the row for the fit."""

    @property
    def drawn_by(self) -> str | None:
        """Text by which the rule chooses rows: rows with equal texts are chosen together.

        None if the rule never chooses this row.
        """

    @property
    def device(self) -> str:
        """Name of the device whose constants the estimate uses; '' if it uses none."""

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Case of the row. `constants` has the constants of each device."""


@dataclass(frozen=True)
class Published:
    """Error that other authors published for their tool. It was measured on other rows than ours."""

    tool: str
    error: str
    of: str
    """Measurements on which the error was computed."""
    source: str


@dataclass(frozen=True)
class CourtSet:
    """Set of measurements with everything that its comparison needs."""

    name: str
    """Name of the set on the command line, and of its folder."""
    title: str
    unit: str
    source: str
    """Source of the measurements: publication, repository and licence."""
    rule: str
    """Rule that chooses the rows for the fit of the constants, in words."""
    constants: Mapping[str, tuple[Constant, ...]]
    """Constants to fit, by device."""
    peer: str
    """Tool whose predictions are in `Case.peer`; '' if there is none."""
    second: str
    """Name of the prediction in `Case.second`; '' if there is none."""
    prepare: Callable[[Sequence[Path]], Sequence[Prepared]]
    """Function that reads the files of the set into rows. It raises InputError with all mistakes."""
    patterns: tuple[str, ...]
    """Patterns of file names: the files in the folder of the set that contain rows."""
    published: tuple[Published, ...] = ()
    """Errors that other authors published for their tools on such machines."""

    def values(self) -> dict[str, dict[str, float]]:
        """Values of the constants, by device and by name of the constant."""
        return {device: {one.name: one.value for one in constants} for device, constants in self.constants.items()}


DATA = Path(__file__).parent / "data"
"""Folder with the samples of the sets and their hardware files."""


def set_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Files with rows in the folder of a set, sorted. Raises InputError if there are none."""
    found = sorted({file for pattern in patterns for file in folder.glob(pattern)})
    if not found:
        raise InputError([Problem("the folder has no files with rows", str(folder), allowed=", ".join(patterns))])
    return found


def in_hundred(text: str, salt: str) -> int:
    """Number from 0 to 99 that depends only on the text and the salt. A rule chooses rows by this number."""
    return int(hashlib.sha256(f"{salt}|{text}".encode()).hexdigest()[:8], 16) % 100
