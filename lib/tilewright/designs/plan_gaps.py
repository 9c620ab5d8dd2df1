"""Gaps between the plans of designs and the lower bounds over every plan, as columns and as sentences."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas

from tilewright.base.errors import count_of
from tilewright.base.measures import EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import energy_delay_product
from tilewright.base.proof import gap_to
from tilewright.designs.columns import PLAN_BOUNDS, PLAN_GAPS, SCHEDULES, START_DESIGN
from tilewright.designs.results import DROPPED

_VALUES = (ENERGY_PJ, LATENCY_CYCLES, EDP_PJ_CYCLES)
"""Columns with the energy, latency and EDP of a design's plan, in the same order as PLAN_BOUNDS and PLAN_GAPS."""
_WORDS = ("energy", "latency", "EDP")


def bound_columns(energy_pj: float, latency_cycles: float) -> dict[str, float]:
    """Values of the columns PLAN_BOUNDS of a design on a network. `energy_pj` and `latency_cycles` are lower bounds;
    the bound of the EDP is their product.
    """
    product = energy_delay_product(energy_pj, latency_cycles)
    return dict(zip(PLAN_BOUNDS, (energy_pj, float(latency_cycles), product), strict=True))


def gap_columns(bounds: Mapping[str, float], values: Mapping[str, float]) -> dict[str, float]:
    """Values of the columns PLAN_GAPS of a design: gaps between its measures `values` and its lower bounds `bounds`,
    both by column.
    """
    triples = zip(PLAN_GAPS, PLAN_BOUNDS, _VALUES, strict=True)
    return {gap: gap_to(bounds[bound], values[value]) for gap, bound, value in triples}


def summed_plan_columns(columns: Iterable[str]) -> list[str]:
    """Names of the columns, among `columns`, that belong to plans and are summed over networks: the lower bounds
    PLAN_BOUNDS and the number of schedules SCHEDULES.
    """
    return [name for name in (*PLAN_BOUNDS, SCHEDULES) if name in set(columns)]


def gaps_of_sums(sums: Mapping[str, np.ndarray]) -> dict[str, Sequence[float] | str]:
    """Values of the columns PLAN_GAPS for sums over networks, and '' as the value of START_DESIGN; {} if the sums have
    no bounds. `sums` has the sums by column, as arrays [design].
    """
    if PLAN_BOUNDS[0] not in sums:
        return {}
    triples = zip(PLAN_GAPS, PLAN_BOUNDS, _VALUES, strict=True)
    found: dict[str, Sequence[float] | str] = {
        gap: [gap_to(least, value) for least, value in zip(sums[bound].tolist(), sums[key].tolist(), strict=True)]
        for gap, bound, key in triples
    }
    return {**found, START_DESIGN: ""}


def gap_sentences(network: str, members: pandas.DataFrame) -> Iterator[str]:
    """Sentence on the gaps between plans and lower bounds, for the designs `members` on the front of `network`. No
    sentence is made if `members` is empty, or if fusion is not searched.
    """
    if members.empty or PLAN_GAPS[0] not in members:
        return
    parts = []
    for gap, words in zip(PLAN_GAPS[:2], _WORDS[:2], strict=True):
        shares = members[gap].tolist()
        parts.append(f"{words} {statistics.median(shares):.1%} (median) and {max(shares):.1%} (largest)")
    yield (
        f"Gaps between the plans of {count_of(len(members), 'design')} on the front of {network} and the lower bounds"
        f" over every plan: {'; '.join(parts)}. The best plan of a design can be better than the found plan by at most"
        f" these shares. Columns {', '.join(PLAN_GAPS)} have the gaps of each design."
    )


def dropped_sentences(table: pandas.DataFrame) -> Iterator[str]:
    """Sentence on the designs that are not searched; no sentence if there are no such designs."""
    rows = table[table["status"] == DROPPED]
    count = int(rows["index"].nunique())
    if count:
        are = "is" if count == 1 else "are"
        yield (
            f"{count_of(count, 'design')} of {table['index'].nunique():,} {are} not searched: the results of another"
            " design dominate the lower bounds over every plan, so the fronts stay the same. Only the searched"
            " designs count in four results: the count of compared designs, the second best designs, the effects of"
            " axes, and the probabilities."
        )
