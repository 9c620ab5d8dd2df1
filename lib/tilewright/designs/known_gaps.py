"""Gaps of mappings and plans for decisions, as read from the tables of `explore`.

A gap is the largest share by which better mappings or plans could reduce the objective.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas

from tilewright.base.errors import ArtifactError
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.proof import gap_to
from tilewright.designs.columns import ASSUMES, MAPPING_GAP, PLAN_GAPS
from tilewright.designs.decision import Decision
from tilewright.designs.exploration import Exploration
from tilewright.designs.stamped_tables import read_parquet
from tilewright.designs.table_files import FRONT_STEM, SPACE_STEM

_KEYS = ["index", "network"]
_VALUES = [ENERGY_PJ, LATENCY_CYCLES]


class KnownGap(NamedTuple):
    """Known gap: the largest share by which better mappings or plans could reduce the objective."""

    share: float
    designs: int
    """Number of designs whose gaps are known."""
    is_of_runner_up: bool
    """True if `share` is the gap of the runner-up in the sums over the networks. False if it is the largest gap of any
    design on one network.
    """


def with_known_gaps(exploration: Exploration, folder: Path) -> Exploration:
    """Exploration with the column MAPPING_GAP, taken from the tables in its folder. The column is left out if the
    tables belong to other results, or to a search with other options.
    """
    try:
        table = read_parquet(folder / f"{SPACE_STEM}.parquet")
        front = read_parquet(folder / f"{FRONT_STEM}.parquet")
    except ArtifactError:
        return exploration
    if MAPPING_GAP not in table or ASSUMES not in front or front.empty:
        return exploration
    told = str(front[ASSUMES].iloc[0])
    gaps = table[table[MAPPING_GAP].notna()][[*_KEYS, *_VALUES, MAPPING_GAP]]
    own = exploration.table.merge(gaps, "left", _KEYS, suffixes=("", " of the table"))
    is_known = own[MAPPING_GAP].notna().to_numpy()
    is_equal = np.all([own[key] == own[f"{key} of the table"] for key in _VALUES], axis=0)
    if not all(sentence in told for sentence in exploration.assumptions) or not is_equal[is_known].all():
        return exploration
    found = exploration.table.assign(**{MAPPING_GAP: own[MAPPING_GAP].to_numpy()})
    return replace(exploration, table=found) if is_known.sum() == len(gaps) else exploration


def known_gap(decision: Decision, goal: str) -> KnownGap | None:
    """Gap of the runner-up's plan or mappings. If it is not known, the result is the largest known gap of any design's
    mappings on one network. `goal` is the objective of the search; the gaps of mappings refer to this objective. None
    if no gap of the decision's objective is known.
    """
    assert decision.runner_up is not None
    energy, latency, product, _ = decision.front.measures
    columns = dict(zip((energy, latency, product), PLAN_GAPS, strict=True))
    rows, name = decision.front.compared, decision.runner_up.design.name
    if PLAN_GAPS[0] in rows and decision.objective in columns:
        row = rows[rows["design"] == name].iloc[0]
        return KnownGap(float(row[columns[decision.objective]]), len(rows), is_of_runner_up=True)
    largest, own = largest_gap(decision, goal), own_gaps(decision, goal, name)
    if largest is None or len(own) < len(decision.answer.exploration.networks):
        return largest
    table = decision.answer.exploration.table
    values = table[table["design"] == name].set_index("network")[decision.objective]
    bound = sum(float(values[network]) * (1 - share) for network, share in own.items())
    return KnownGap(gap_to(bound, decision.runner_up.design.measures[decision.objective]), 1, is_of_runner_up=True)


def largest_gap(decision: Decision, goal: str) -> KnownGap | None:
    """Largest known gap of any design's mappings on one network. `goal` is the objective of the search. None if no gap
    of the decision's objective is known.
    """
    known = _gaps(decision, goal)
    if known is None or known.empty:
        return None
    return KnownGap(float(known[MAPPING_GAP].max()), int(known["index"].nunique()), is_of_runner_up=False)


def own_gaps(decision: Decision, goal: str, design: str) -> dict[str, float]:
    """Gaps of the mappings of one design, by network; only networks on which the gap is known."""
    known = _gaps(decision, goal)
    if known is None:
        return {}
    rows = known[known["design"] == design]
    return {str(network): float(gap) for network, gap in zip(rows["network"], rows[MAPPING_GAP], strict=True)}


def _gaps(decision: Decision, goal: str) -> pandas.DataFrame | None:
    """Rows with a known gap of mappings. None if the gaps are not those of the decision's objective."""
    table = decision.answer.exploration.table
    if MAPPING_GAP not in table or goal != decision.objective_name:
        return None
    return table[table[MAPPING_GAP].notna()]


def needed_gap(decision: Decision) -> float:
    """Share by which the objective of the runner-up must fall to equal the objective of the chosen design."""
    assert decision.runner_up is not None
    key = decision.objective
    return gap_to(decision.choice.measures[key], decision.runner_up.design.measures[key])


def within_gap(decision: Decision, share: float) -> int:
    """Number of compared designs that would be better than the chosen design if their objective fell by the share
    `share`.
    """
    return below(decision, share, decision.choice.measures[decision.objective], (decision.choice.name,))


def below(decision: Decision, share: float, limit: float, without: Sequence[str]) -> int:
    """Number of compared designs whose objective would fall below `limit` if the objective fell by the share `share`.
    The designs named `without` do not count.
    """
    rows = decision.front.compared
    others: pandas.Series = rows.loc[~rows["design"].isin(without), decision.objective]
    return int((others * (1 - share) < limit).sum())
