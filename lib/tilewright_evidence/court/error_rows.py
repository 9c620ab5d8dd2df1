"""Rows from which the error bars of predictions are made: one row for each prediction by the cost model.

A row counts only if no constant was fitted to it or to another row of the same layer. Rows that are predicted by a
reading (a separate model of the machine) are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from tilewright.results.error_bars.table import (
    HOST_DRIVEN,
    MANY_CORE,
    ROW_STATIONARY,
    SEQUENCED,
    limit_of,
)

from tilewright_evidence.court.case import LATENCY, Case, Judged
from tilewright_evidence.court.verdict import seen_groups

CLASS_OF_SET: Mapping[str, str] = {
    "gemmini-rtl": HOST_DRIVEN,
    "tpu-v6e": SEQUENCED,
    "tenstorrent_gemm": MANY_CORE,
    "amd_xdna_gemm": MANY_CORE,
    "eyeriss_v1": ROW_STATIONARY,
}
"""Class of the machines of a set, by name of the set. Only sets that the cost model predicts are listed."""


@dataclass(frozen=True)
class ErrorRow:
    """Row with a prediction by the cost model."""

    set_name: str
    device_class: str
    machine: str
    """Name of the machine, which is unique over all sets."""
    program: str
    """Program that ran the row; unique over all sets."""
    group: str
    """Layer of the row."""
    quantity: str
    has_keys: bool
    """True if the prediction uses keys of calls, commands and requests."""
    limit: str
    predicted: float
    """Predicted time in ns, or predicted power in mW."""
    measured: float
    """Measured time in ns, or measured power in mW."""

    @property
    def error(self) -> float:
        """Error of the prediction: log(measured / predicted)."""
        return log(self.measured / self.predicted)


def error_rows(cases: Mapping[str, Sequence[Case]]) -> list[ErrorRow]:
    """Rows of all sets. `cases` has all cases of each set, by name of the set.

    A row whose hardware file has keys of calls, commands and requests counts twice: with the keys, and with the
    prediction of the cost model alone.
    """
    return [
        row
        for name, own in cases.items()
        for seen in (seen_groups(own),)
        for case in own
        if case.judged is not None and case.group not in seen
        for row in _rows_of(name, case, case.judged)
    ]


def _rows_of(name: str, case: Case, judged: Judged) -> Iterator[ErrorRow]:
    scale = judged.nanoseconds if judged.quantity == LATENCY else 1.0
    ways: list[tuple[Mapping[str, float], float | None]] = [(judged.terms, case.estimate)]
    if judged.alone_terms is not None:
        ways.append((judged.alone_terms, case.alone))
    for terms, predicted in ways:
        if predicted is None:
            continue
        is_alone = terms is not judged.terms or judged.alone_terms is None
        yield ErrorRow(
            set_name=name,
            device_class=CLASS_OF_SET[name],
            machine=f"{name} {judged.machine}",
            program=f"{name} {judged.program}",
            group=case.group,
            quantity=judged.quantity,
            has_keys=not is_alone,
            limit=limit_of(terms) if judged.quantity == LATENCY else "",
            predicted=scale * predicted,
            measured=scale * case.measured,
        )
