"""Odds of a front if memory costs have ranges: intervals of costs, and probabilities that designs are on the front.

A cost law gives costs with a range of uncertainty. The row of a design lists, for each law, the energy and the area
that come from this law. Each sample draws one random factor per law, and multiplies all costs from the law by this
factor, in all designs. The mappings for the nominal costs are used in all samples.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas

from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, EDP_PJ_S, ENERGY_PJ
from tilewright.designs.columns import ODDS
from tilewright.results.uncertainty import Quantity, Ranges, front_shares, least_share
from tilewright.search.cost_ranges import CostPart

LEAST_ENERGY, MOST_ENERGY, _, _, FRONT_PROBABILITY = ODDS
_START = "range of "
_ENERGY, _EDP, _EDP_IN_TIME, _AREA = " [pj]", " [pj cycles]", " [pj s]", " [mm2]"
_LOW, _HIGH = " [low]", " [high]"

_END_OF = {ENERGY_PJ: _ENERGY, EDP_PJ_CYCLES: _EDP, EDP_PJ_S: _EDP_IN_TIME, AREA_MM2: _AREA}
"""Ending of column names, by measure. A column with this ending has the part of the measure that comes from one cost
law. Measures that do not depend on cost laws are left out.
"""


def part_columns(parts: Sequence[CostPart], latency_cycles: float, latency_s: float | None = None) -> dict[str, float]:
    """Columns of a design's row, for each cost law: the energy, EDP and area that come from the law, and the range of
    its factor.

    Without a latency in seconds, there is no EDP in pJ s.
    """
    found: dict[str, float] = {}
    for part in parts:
        name = _START + part.law
        found[name + _ENERGY] = found.get(name + _ENERGY, 0.0) + part.energy_pj
        found[name + _EDP] = found[name + _ENERGY] * latency_cycles
        if latency_s is not None:
            found[name + _EDP_IN_TIME] = found[name + _ENERGY] * latency_s
        found[name + _AREA] = found.get(name + _AREA, 0.0) + part.area_mm2
        found |= {name + _LOW: part.low, name + _HIGH: part.high}
    return found


def parts_of_row(row: Mapping[Any, Any]) -> tuple[CostPart, ...]:
    """Parts of a design's energy and area that come from cost laws with a range, one for each law; () if there are
    none.
    """
    return tuple(
        CostPart("", law, *(float(row[_START + law + end]) for end in (_ENERGY, _AREA, _LOW, _HIGH)))
        for law in _laws(row)
        if row[_START + law + _LOW] == row[_START + law + _LOW]
    )


def summed_columns(columns: Sequence[str]) -> list[str]:
    """Names of the columns, among `columns`, that contain the energy or the EDP from one cost law. For all networks
    together, the values of these columns are added up.
    """
    names = {*columns}
    made = (_START + law + end for law in _laws(columns) for end in (_ENERGY, _EDP, _EDP_IN_TIME))
    return [name for name in made if name in names]


def with_odds(rows: pandas.DataFrame, objectives: Sequence[str], is_whole: bool) -> pandas.DataFrame:
    """Rows of designs with the additional columns ODDS.

    The columns are the smallest and the largest energy, and the smallest and the largest area. Designs that meet all
    constraints also have the share of samples in which they are on the front. This share is left out if `is_whole` is
    false, because `rows` then lacks designs. If no costs have ranges, the rows are unchanged.
    """
    laws, ranges = _ranges(rows)
    if not laws:
        return rows
    energy, area = _quantity(rows, laws, ENERGY_PJ), _quantity(rows, laws, AREA_MM2)
    found = dict(zip(ODDS, (*energy.ends(ranges), *area.ends(ranges)), strict=False))
    if is_whole:
        is_compared = (rows["unmet"] == "").to_numpy()
        probability = np.full(len(rows), np.nan)
        if is_compared.any() and objectives:
            own = [_quantity(rows, laws, key).of(is_compared) for key in objectives]
            probability[is_compared] = front_shares(own, ranges)
        found[FRONT_PROBABILITY] = probability
    return rows.assign(**found)


def least_probability(rows: pandas.DataFrame, measure: str, index: Any) -> float:
    """Share of the cost samples in which a design has the smallest value of the measure. The row of this design has the
    label `index`.
    """
    laws, ranges = _ranges(rows)
    return least_share(_quantity(rows, laws, measure), ranges, int(rows.index.get_loc(index)))


def _laws(columns: Any) -> list[str]:
    """Names of the cost laws for which a table has columns, in alphabetical order."""
    names = [str(name) for name in columns]
    found = {name.removeprefix(_START).removesuffix(_LOW) for name in names if _is_low(name)}
    return sorted(found)


def _is_low(name: str) -> bool:
    return name.startswith(_START) and name.endswith(_LOW)


def _ranges(rows: pandas.DataFrame) -> tuple[list[str], Ranges]:
    """Pair (cost laws, ranges of their factors). The range of a law is the same for all designs."""
    laws = [law for law in _laws(rows.columns) if rows[_START + law + _LOW].notna().any()]
    ends = [np.array([rows[_START + law + end].dropna().iloc[0] for law in laws], np.float64) for end in (_LOW, _HIGH)]
    return laws, Ranges(*ends)


def _quantity(rows: pandas.DataFrame, laws: Sequence[str], measure: str) -> Quantity:
    """Values of a measure for the designs in `rows`, with the part of each value that comes from each of the cost laws
    `laws`.
    """
    values = rows[measure].to_numpy(dtype=np.float64)
    if measure not in _END_OF:
        return Quantity(values, np.zeros((len(rows), len(laws))))
    shares = rows[[_START + law + _END_OF[measure] for law in laws]].to_numpy(dtype=np.float64)
    return Quantity(values, np.nan_to_num(shares, nan=0.0))
