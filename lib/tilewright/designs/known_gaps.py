"""Gaps of mappings and plans that `explore` found, for a decision: how far results can be from the best."""

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
    """Largest known gap: the share by which the objective could at most be smaller with better mappings or plans."""

    share: float
    designs: int
    """Number of designs whose gaps are known."""
    is_of_runner_up: bool
    """True if the gap is the gap of the runner-up. If false, it is the largest gap of a design on one network."""


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
    """Gap of the runner-up's plan or, for designs of one core, the largest gap of the mappings of a design. None if no
    gap of the decision's objective is known. `goal` is the objective of the search; gaps of mappings hold only for this
    objective.
    """
    assert decision.runner_up is not None
    energy, latency, product, _ = decision.front.measures
    columns = dict(zip((energy, latency, product), PLAN_GAPS, strict=True))
    rows = decision.front.compared
    if PLAN_GAPS[0] in rows and decision.objective in columns:
        row = rows[rows["design"] == decision.runner_up.design.name].iloc[0]
        return KnownGap(float(row[columns[decision.objective]]), len(rows), is_of_runner_up=True)
    table = decision.answer.exploration.table
    if MAPPING_GAP not in table or goal != decision.objective_name:
        return None
    known = table[table[MAPPING_GAP].notna()]
    if known.empty:
        return None
    return KnownGap(float(known[MAPPING_GAP].max()), int(known["index"].nunique()), is_of_runner_up=False)


def needed_gap(decision: Decision) -> float:
    """Share by which the objective of the runner-up must fall to equal the objective of the chosen design."""
    assert decision.runner_up is not None
    key = decision.objective
    return gap_to(decision.choice.measures[key], decision.runner_up.design.measures[key])


def within_gap(decision: Decision, share: float) -> int:
    """Number of compared designs that would be better than the chosen design if their objective fell by the share
    `share`.
    """
    rows = decision.front.compared
    others: pandas.Series = rows.loc[rows["design"] != decision.choice.name, decision.objective]
    return int((others * (1 - share) < decision.choice.measures[decision.objective]).sum())
