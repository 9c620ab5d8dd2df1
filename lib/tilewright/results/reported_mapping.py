"""Input of the functions that write the report of a run on one core."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.cost.record import LayerRecord
from tilewright.results.records import Summary


@dataclass(frozen=True)
class ReportedMapping:
    """Data of a run on one core. The files of `ONE_CORE_FILES` are made from these data."""

    records: Sequence[LayerRecord]
    summary: Summary
