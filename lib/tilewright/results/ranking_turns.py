"""Order of the two best runs of a ranking in energy, latency and EDP, and the changes that would reverse this order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tilewright.base.measures import LATENCY_CYCLES
from tilewright.base.objectives import energy_delay_product
from tilewright.results.order_turn import MEASURES, order_turns, turn_line
from tilewright.results.pareto import BY_TIME, ComparableRuns
from tilewright.results.run_ledger import RunLedger
from tilewright.results.run_point import RunPoint

LedgerOf = Callable[[RunPoint], RunLedger | None]
"""Function that reads the ledger of a run, or returns None if the ledger cannot be read. Only the ledgers of the two
best runs in a measure are read.
"""
COVERS = (
    "best and second: only these two runs are considered, but with a change, a third run can become the first; mappings"
    " and their cycles stay the same; bandwidths, sizes of memories and batches are not considered. For two runs on one"
    " core, `tilewright compare A B` with the folders of A and B also names bandwidths; --search-again finds the change"
    " by new searches, --sizes considers sizes of memories, and --batches 2,4,8 searches with other batches"
)


def with_order_lines(groups: Sequence[ComparableRuns], ledger_of: LedgerOf) -> tuple[ComparableRuns, ...]:
    """Groups of comparable runs, each with sentences (`order_lines`) on the changes that would reverse the order of its
    two best runs in each measure.
    """
    read: dict[int, RunLedger | None] = {}

    def ledger(point: RunPoint) -> RunLedger | None:
        if id(point) not in read:
            read[id(point)] = ledger_of(point)
        return read[id(point)]

    found = []
    for group in groups:
        lines = tuple(_lines(group, ledger))
        found.append(replace(group, order_lines=(*lines, COVERS) if lines else ()))
    return tuple(found)


def _lines(group: ComparableRuns, ledger_of: LedgerOf) -> Iterator[str]:
    if len(group.candidates) < 2:
        return
    for measure in MEASURES:
        best, second = best_two(group, measure)
        pair = ledger_of(best), ledger_of(second)
        names = f"best (A: {best.run}) and second (B: {second.run})"
        if pair[0] is None or pair[1] is None:
            unknown = "it is not known what would reverse the order, because the records cannot be read"
            yield f"{names}: {measure}: {unknown}"
            continue
        by_time = all(point.latency_s for point in (best, second))
        for one in order_turns(pair[0], pair[1]):
            # Among runs of which only some have a clock, cycles are ranked, but two runs with clocks differ in seconds.
            if one.measure == measure and one.first == 0:
                told = one if measure == "energy" else replace(one, others="")
                yield f"{names}: {turn_line(told, by_time)}"


def best_two(group: ComparableRuns, measure: str) -> tuple[RunPoint, RunPoint]:
    """Two runs of a group with the smallest values of a measure. Among runs with equal values, those that come first in
    the group are taken.
    """
    latency = BY_TIME if BY_TIME in group.objectives else LATENCY_CYCLES

    def value(point: RunPoint) -> float:
        time = float(getattr(point, latency))
        values = {"energy": point.energy_pj, "latency": time}
        return values.get(measure, energy_delay_product(point.energy_pj, time))

    best, second = sorted(group.candidates, key=value)[:2]
    return best, second
