"""Classes for the comparison with measurements by others: sets of measurements, and cases.

A case is a measurement with our predictions for it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tilewright.base.errors import InputError, Problem


@dataclass(frozen=True)
class Constant:
    """Constant of a device that is fitted to measurements. A device has at most four constants."""

    name: str
    unit: str
    meaning: str
    value: float
    """Fitted value, rounded to three digits. A rule (`CourtSet.rule`) chooses the rows for the fit."""
    lowest: float
    highest: float
    """Upper end of the range in which the fit searches; `lowest` is the lower end."""


LATENCY, POWER = "latency", "power"
"""Quantities that the cost model can predict for a row: the values of `Judged.quantity`."""


@dataclass(frozen=True)
class Judged:
    """Prediction of a row by the cost model, in the form that error bars need. A row has no such object if a reading
    predicts it. A reading is an estimate by a separate model of the machine (docs/accuracy.md).
    """

    machine: str
    """Name of the machine. The hardware files of its rows differ only in the memories that hold the data of a layer."""
    program: str
    """Program that ran the row, such as the driver of convolutions. One program can have run on several machines."""
    terms: Mapping[str, float]
    """Terms of the predicted latency in cycles, by name."""
    alone_terms: Mapping[str, float] | None
    """Terms of the latency that the cost model predicts without the keys of calls, commands and requests. None if the
    hardware file has no such keys.
    """
    nanoseconds: float
    """Length of the row's unit of time, in nanoseconds."""
    quantity: str = LATENCY
    """Quantity of the row: LATENCY, or POWER of the chip in mW."""


@dataclass(frozen=True)
class Case:
    """Measurement with our predictions for it. The unit of times is `CourtSet.unit`."""

    identity: str
    part: str
    """Name of the part of the set to which this measurement belongs. A part is, for example, a device and a kind of
    work.
    """
    group: str
    """Origin of the row, such as a layer or a shape of weights.

    Several rows can have the same origin. If constants were fitted to one of these rows, the error statistics leave out
    all of them.
    """
    measured: float
    bound: float
    """Lower bound of the time. No run of this work on the machine can take less time."""
    estimate: float
    roofline: float
    """Roofline: max(operations / peak, bytes / bandwidth). Each byte counts once."""
    limited_by: str
    """Name of the part of the machine that takes most of the time in the estimate."""
    fitted: bool
    """True if constants were fitted to this row."""
    peer: float | None = None
    """Prediction of another tool; None if the set of measurements has no such prediction."""
    second: float | None = None
    """Further prediction for comparison, such as the sum of two bounds; None if there is none."""
    alone: float | None = None
    """Prediction of the cost model without the keys of calls, commands, requests and zeros in the hardware file; None
    if the set of measurements has no such prediction.
    """
    roofline_terms: tuple[float, ...] = ()
    """Triple from which a roofline is fitted (`fit.with_fitted_roofline`): (time to compute at the peak, time to move
    the data at full bandwidth, number of calls). () if no roofline is fitted.
    """
    fitted_roofline: float | None = None
    """Prediction of a roofline with as many fitted constants as the estimate; None if no roofline is fitted."""
    fastest: float | None = None
    """Shortest measurement of the row, which is compared with the bound; None if each row was measured only once."""
    equal: bool | None = None
    """True if the estimate equals the number in the source, in every digit that the source gives; None if this is not
    checked.
    """
    judged: Judged | None = None
    """Prediction of the row by the cost model; None if a reading predicts the row, or if the work of the row is not
    certain.
    """
    explained: str = ""
    """Known reason why the measurement can be below the bound; '' if there is none."""

    @property
    def error(self) -> float:
        """Relative error of the estimate: estimate / measurement - 1."""
        return self.estimate / self.measured - 1.0

    @property
    def breaks_bound(self) -> bool:
        """True if the shortest measurement is below the bound by more than a millionth of the bound, which allows for
        rounding; also true if the bound is not above 0.
        """
        fastest = self.measured if self.fastest is None else self.fastest
        return not fastest >= self.bound * (1.0 - 1e-6) > 0.0


Values = Mapping[str, float]
"""Values of constants, by name of the constant."""


class Prepared(Protocol):
    """Row of a set of measurements, prepared for predictions: it has all data for a prediction except the fitted
    constants.
    """

    @property
    def is_fitted(self) -> bool:
        """True if constants are fitted to this row. The rule of the set of measurements (`CourtSet.rule`) decides
        this.
        """

    @property
    def drawn_by(self) -> str | None:
        """Text from which the rule of the set (`CourtSet.rule`) decides whether constants are fitted to this row. Rows
        with the same text get the same decision. None if constants are never fitted to this row.
        """

    @property
    def device(self) -> str:
        """Name of the device whose constants the estimate uses; '' if it uses none."""

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row with our predictions for it. `constants` has the values of the constants, by
        device.
        """


@dataclass(frozen=True)
class Published:
    """Error that the authors of another tool published for their tool. The measurements of these authors are not rows
    of our set.
    """

    tool: str
    error: str
    of: str
    """Description of the measurements on which the published error was computed."""
    source: str


@dataclass(frozen=True)
class CourtSet:
    """Set of measurements with everything that its comparison needs."""

    name: str
    """Name of the set of measurements. The command line and the folder of the set use this name."""
    title: str
    unit: str
    source: str
    """Source of the measurements: publication, repository and licence."""
    rule: str
    """Description of the rule that chooses the rows for the fit of the constants."""
    constants: Mapping[str, tuple[Constant, ...]]
    """Constants to fit, by device."""
    prepare: Callable[[Sequence[Path]], Sequence[Prepared]]
    """Function that reads the files of the set into rows. It raises InputError with all mistakes."""
    patterns: tuple[str, ...]
    """Glob patterns of the files that contain the rows, relative to the folder of the set."""
    published: tuple[Published, ...] = ()
    """Errors that other authors published for their tools on machines of the same kind."""
    peer: str = ""
    """Tool whose predictions are in `Case.peer`; '' if there is none."""
    second: str = ""
    """Name of the prediction in `Case.second`; '' if there is none."""

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
    """Number from 0 to 99 that depends only on the text and the salt. A rule compares this number with a limit to
    choose rows.
    """
    return int(hashlib.sha256(f"{salt}|{text}".encode()).hexdigest()[:8], 16) % 100
