"""Decision for one design of a space: the chosen design, its price in other measures, its certainty, and changes that
would lead to another choice.

Every number is computed from the table of results. The sentences on the decision can therefore be checked against this
table.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas

from tilewright.base.errors import InputError, Label, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2, ENERGY_PJ
from tilewright.base.objectives import DECISIONS
from tilewright.designs.answer import Answer, values_text
from tilewright.designs.axis_ends import LEAST_GAIN, AxisEnd, axis_ends
from tilewright.designs.columns import ACCESS_CYCLES, DOMINATED_BY, USES
from tilewright.designs.effects import best_first, excess_over, known_measures
from tilewright.designs.extrapolated_memories import extrapolated_note
from tilewright.designs.front import Front
from tilewright.designs.front_odds import FRONT_PROBABILITY, least_probability
from tilewright.designs.results import Measure, energy_parts
from tilewright.designs.slow_memories import are_slow, slow_note

CLOSE = 0.01
"""Limit for close designs, as a share. The objective of a close design exceeds the objective of the chosen design by at
most this share.
"""
LARGEST_FACTOR = 10.0
"""Largest reported factor for a part of the energy. If the part is multiplied or divided by the reported factor,
another design becomes as good as the chosen design.
"""


@dataclass(frozen=True)
class RatedDesign:
    """Design with the values of its axes and laws, as text, and with its measures."""

    name: str
    values: str
    measures: Mapping[str, float]
    """Values of the known measures, by column."""
    slow: str = ""
    """Memories whose access takes longer than a clock cycle, with the longest access time; '' if there are none."""
    access_cycles: float = np.nan
    """Longest known access time of a memory, in clock cycles; NaN if it is not known."""
    extrapolated: str = ""
    """Memories whose costs are extrapolated beyond the table of the library; '' if there are none."""


@dataclass(frozen=True)
class FastDesign:
    """Best design by the objective, among the compared designs in which no access of a memory is known to take longer
    than a clock cycle.
    """

    design: RatedDesign | None
    """The design; None if all compared designs have an access that takes longer than a clock cycle."""
    count: int
    """Number of compared designs in which no access is known to take longer than a clock cycle."""
    excess: float
    """Relative excess of the objective of `design` over the objective of the chosen design; 0 if `design` is None."""


@dataclass(frozen=True)
class ChoiceOfNetwork:
    """Design that would be chosen for one network alone. It is compared with the design that is chosen for all networks
    together.
    """

    network: str
    design: str
    value: float
    """Objective of `design` on the network."""
    chosen: float
    """Objective of the chosen design on the network."""
    excess: float
    """Relative excess of the chosen design over `design` on the network."""


@dataclass(frozen=True)
class NetworkShare:
    """Share of one network in the summed objective of the chosen design."""

    network: str
    share: float
    """Objective on the network, divided by the sum of the objectives on all networks."""
    without: str
    """Design that would be chosen if this network were left out of the sums, among the same compared designs."""


@dataclass(frozen=True)
class EqualWeights:
    """Choice if each network counts equally: the design with the least geometric mean of the objective over the
    networks.
    """

    design: str
    excess: float
    """Relative excess of the chosen design's geometric mean over the geometric mean of `design`."""


@dataclass(frozen=True)
class Price:
    """Price of the chosen design in a measure other than the objective: how far the chosen design is above the design
    that is best in this measure.
    """

    measure: str
    best: RatedDesign
    """Design with the least value of the measure. Among equal designs, it is the first by `best_first`."""
    excess: float
    """Relative excess of the chosen design over the least value of the measure; 0 if the chosen design has the least
    value.
    """
    nearest: RatedDesign | None
    """Best design by the objective, among the designs that are clearly better than the chosen design in the measure. A
    value is clearly better if it is lower by at least the share LEAST_GAIN. None if there are no such designs.
    """
    saving: float
    """Saving of `nearest` in the measure, as a share of the chosen design's value; 0 if `nearest` is None."""
    loss: float
    """Relative excess of the objective of `nearest` over the objective of the chosen design; 0 if `nearest` is None."""
    count: int
    """Number of designs that are clearly better in the measure. A value is clearly better if it is lower by at least
    the share LEAST_GAIN.
    """


@dataclass(frozen=True)
class RunnerUp:
    """Second best design by the objective."""

    design: RatedDesign
    excess: float
    """Relative excess of the second best design over the chosen design, in the objective."""
    equal: int
    """Number of other designs with the same value of the objective as the chosen design."""
    close: int
    """Number of other designs that are close to the chosen design: their objective is higher by at most the share
    CLOSE.
    """


@dataclass(frozen=True)
class CostOdds:
    """Shares of the cost samples: the share in which the chosen design has the least objective, and the share in which
    the second best design has the least objective.
    """

    choice: float
    runner_up: float | None


@dataclass(frozen=True)
class TurningPart:
    """Smallest change of one part of the energy that makes another design as good as the chosen design.

    The part changes by the same factor in all designs.
    """

    column: str
    words: str
    factor: float
    """Factor on the part of the energy. The mappings do not change."""
    design: str


@dataclass(frozen=True)
class BarredDesign:
    """Best design by the objective, among designs that have results but violate a constraint on results."""

    name: str
    unmet: str
    """Constraints that the design violates."""
    saving: float
    """Saving of the design over the chosen design, as a share of the chosen design's objective."""


@dataclass(frozen=True, eq=False)
class Decision:
    """Decision for one design, made by `decision_of`."""

    answer: Answer
    objective: str
    """Column of the measure that the chosen design minimises."""
    choice: RatedDesign
    dominated_by: str
    """Name of a design that dominates the chosen design in the objectives of the front; '' if the chosen design is on
    the front."""
    runner_up: RunnerUp | None
    prices: tuple[Price, ...]
    odds: CostOdds | None
    """Share of cost samples in which the chosen design is best, and share in which the second best design is best. None
    if no costs have ranges, or if the objective does not depend on energies or areas.
    """
    turning: TurningPart | None
    ends: tuple[AxisEnd, ...]
    """Ends of axes (an end is the smallest or the largest value of an axis) at which the objective is lowest. The
    lowest objective at an end is below the lowest objective at every other value of the axis, by at least the share
    LEAST_GAIN.
    """
    fast: FastDesign
    alone: tuple[ChoiceOfNetwork, ...]
    """Choice for each network alone; () if there is only one network, or if the objective is the area."""
    barred: BarredDesign | None
    """Design that a constraint on results excludes. Its objective is below the objective of the chosen design by at
    least the share LEAST_GAIN. None if there is no such design.
    """
    shares: tuple[NetworkShare, ...]
    """Share of each network in the summed objective of the chosen design; () if `alone` is (), or if the sum is 0."""
    equal_weights: EqualWeights | None
    """Choice with equal weights of the networks; None if `alone` is (), or if a value of the objective is 0."""
    searched_again: Mapping[str, float] = field(default_factory=dict)
    """Objective after a search with bounds, by name of the design. It has only the designs that were searched again."""

    @property
    def table_note(self) -> str:
        """Sentences below the table of the decision; '' if there are none."""
        again = "; ".join(f"{name} {self.measure.text(value)}" for name, value in self.searched_again.items())
        told = (
            f"Values are from the search of the space. After a search with bounds, the {self.measure.words} in"
            f" {self.measure.unit} is: {again}."
        )
        return " ".join(filter(None, [self.answer.table_note, told if again else ""]))

    @property
    def front(self) -> Front:
        """Front of all networks together, or of the only network."""
        return self.answer.overall

    @property
    def measure(self) -> Measure:
        """Measure that the chosen design minimises."""
        return self.front.measures[self.objective]

    @property
    def objective_name(self) -> str:
        """Name of the objective, one of DECISIONS."""
        return dict(zip(self.front.measures, DECISIONS, strict=True))[self.objective]

    @property
    def depends_on_costs(self) -> bool:
        """True if the objective depends on energies or areas of the hardware."""
        energy, _, product, area = self.front.measures
        return self.objective in (energy, product, area)

    @property
    def depends_on_mappings(self) -> bool:
        """True unless the objective is the area, which is the only objective that does not depend on mappings."""
        return self.objective != AREA_MM2

    @property
    def held(self) -> str:
        """Words for the parts that stay the same when a cost changes: mappings, or mappings and schedules."""
        is_of_systems = USES[0] in self.front.rows
        return "mappings and schedules" if is_of_systems else "mappings"

    @property
    def depends_on_energy(self) -> bool:
        """True if the objective depends on the energy."""
        energy, _, product, _ = self.front.measures
        return self.objective in (energy, product)

    @property
    def table(self) -> pandas.DataFrame:
        """Table with a row for each design that the decision names: its roles in the decision, its name, the values of
        its axes, and its measures. If `has_slow` is true, the table also has the longest access times in cycles.
        """
        names = self.answer.exploration.axis_names
        values = self.front.rows.set_index("design")[list(names)]
        rows = [
            {"role": role, "design": one.name, **values.loc[one.name].to_dict(), **one.measures}
            | ({ACCESS_CYCLES: one.access_cycles} if self.has_slow else {})
            for role, one in self.named
        ]
        return pandas.DataFrame(rows)

    @property
    def has_slow(self) -> bool:
        """True if a design that the decision names has a memory whose access takes longer than a clock cycle."""
        return any(one.slow for _, one in self.named)

    @property
    def named(self) -> tuple[tuple[str, RatedDesign], ...]:
        """Pairs (text with the roles of the design in the decision, design), one for each design that the decision
        names. The chosen design comes first.
        """
        found: dict[str, tuple[RatedDesign, dict[str, list[str]]]] = {self.choice.name: (self.choice, {"choice": []})}
        if self.runner_up is not None:
            found.setdefault(self.runner_up.design.name, (self.runner_up.design, {}))[1]["runner-up"] = []
        for price in self.prices:
            words = self.front.measures[price.measure].words
            for role, design in (("least", price.best), (f"least {self.measure.words} with less", price.nearest)):
                if design is not None:
                    found.setdefault(design.name, (design, {}))[1].setdefault(role, []).append(words)
        return tuple(
            ("; ".join(f"{role} {', '.join(words)}".strip() for role, words in roles.items()), design)
            for design, roles in found.values()
        )


def decision_of(answer: Answer, objective: str) -> Decision:
    """Decision for the design with the least value of an objective, one of DECISIONS.

    Among equal designs, the rule of `best_first` decides. Raises InputError if no design is compared. For
    the objective area, raises InputError if the area of a compared design is not known.
    """
    front = answer.overall
    key = dict(zip(DECISIONS, front.measures, strict=True))[objective]
    _check(answer, key)
    known = known_measures(front)
    ordered = best_first(front, key)
    rated = _Rated(answer, known)
    chosen = ordered.iloc[0]
    decision = Decision(
        answer,
        key,
        rated.of(chosen),
        str(chosen[DOMINATED_BY]),
        _runner_up(rated, ordered, key),
        tuple(_price(rated, ordered, key, one) for one in known if one != key),
        None,
        None,
        tuple(one for one in axis_ends(front, answer.exploration.axis_values, answer.failures) if one.measure == key),
        _fast(rated, ordered, key),
        tuple(_alone(answer, key, int(chosen["index"]))),
        _barred(front, key, float(chosen[key])),
        *_weights(answer, ordered, key),
    )
    odds = _odds(front, ordered, key) if decision.depends_on_costs else None
    has_equal = decision.runner_up is not None and decision.runner_up.equal > 0
    turning = _turning(answer, ordered, key) if decision.depends_on_energy and not has_equal else None
    return replace(decision, odds=odds, turning=turning)


def decision_object(decision: Decision) -> JsonObject:
    """Decision as JSON values."""
    runner, odds, turning = decision.runner_up, decision.odds, decision.turning
    return {
        "space": decision.answer.exploration.name,
        "objective": decision.objective,
        "compared": decision.front.compared_count,
        "choice": {"design": decision.choice.name, **decision.choice.measures},
        "slow_memories": {one.name: one.slow for _, one in decision.named if one.slow},
        "extrapolated_memories": {one.name: one.extrapolated for _, one in decision.named if one.extrapolated},
        "dominated_by": decision.dominated_by,
        "runner_up": None if runner is None else {"design": runner.design.name, "excess": _finite(runner.excess)},
        "alone": [
            {"network": one.network, "design": one.design, "excess": _finite(one.excess)} for one in decision.alone
        ],
        "network_shares": {one.network: one.share for one in decision.shares},
        "equal_weights": None
        if decision.equal_weights is None
        else {"design": decision.equal_weights.design, "excess": decision.equal_weights.excess},
        "searched_again": dict(decision.searched_again),
        "prices": [
            {
                "measure": one.measure,
                "best": one.best.name,
                "excess": _finite(one.excess),
                "nearest": None if one.nearest is None else one.nearest.name,
                "saving": one.saving,
                "loss": _finite(one.loss),
            }
            for one in decision.prices
        ],
        "odds": None if odds is None else {"choice": odds.choice, "runner_up": odds.runner_up},
        "turning": None
        if turning is None
        else {"column": turning.column, "factor": turning.factor, "design": turning.design},
    }


def _finite(excess: float) -> float | None:
    """Excess as a JSON value; None if it is infinite, because the other value is 0."""
    return None if math.isinf(excess) else excess


@dataclass(frozen=True)
class _Rated:
    answer: Answer
    known: tuple[str, ...]

    def of(self, row: "pandas.Series[Any]") -> RatedDesign:
        """Design in a row of the front."""
        names = self.answer.exploration.value_names
        values = values_text({name: row[name] for name in names}, names)
        measures = {key: float(row[key]) for key in self.known}
        access_cycles = float(row.get(ACCESS_CYCLES, np.nan))
        return RatedDesign(str(row["design"]), values, measures, slow_note(row), access_cycles, extrapolated_note(row))


def _check(answer: Answer, key: str) -> None:
    """Raise InputError if no design is compared. Also raise InputError if `key` is the area and the area of a compared
    design is not known.
    """
    front, name = answer.overall, answer.exploration.name
    if front.compared.empty:
        evaluated = answer.design_count - answer.excluded - answer.exploration.missing
        why = "; ".join(one.sentence for one in answer.causes[:3])
        message = (
            f"no design can be chosen: none of {evaluated:,} evaluated designs has results and meets all constraints"
        )
        nearest = " ".join(answer.nearest_notes).rstrip(".")
        told = f"{message} ({why})" if why else message
        raise InputError([Problem(f"{told}. {nearest}" if nearest else told, path=Label(name))])
    if key not in known_measures(front):
        unknown = int(front.compared[AREA_MM2].isna().sum())
        message = f"the area of {unknown:,} of {len(front.compared):,} compared designs is not given"
        raise InputError([Problem(message, path="objective", value="area", allowed="energy, latency, EDP")])


def _runner_up(rated: _Rated, ordered: pandas.DataFrame, key: str) -> RunnerUp | None:
    if len(ordered) < 2:
        return None
    values = ordered[key].to_numpy(dtype=np.float64)
    others = values[1:]
    excess = excess_over(float(values[1]), float(values[0]))
    close = int((others <= values[0] * (1 + CLOSE)).sum())
    return RunnerUp(rated.of(ordered.iloc[1]), excess, int((others == values[0]).sum()), close)


def _alone(answer: Answer, key: str, chosen: int) -> Iterator[ChoiceOfNetwork]:
    """Choice for each network alone. `chosen` is the index of the design that was chosen for all networks together."""
    if key == AREA_MM2 or len(answer.fronts) == 1:
        return
    for front in answer.fronts[:-1]:
        ordered = best_first(front, key)
        best = ordered.iloc[0]
        value = float(ordered.loc[ordered["index"] == chosen, key].iloc[0])
        least = float(best[key])
        yield ChoiceOfNetwork(front.network, str(best["design"]), least, value, excess_over(value, least))


def _weights(
    answer: Answer, ordered: pandas.DataFrame, key: str
) -> tuple[tuple[NetworkShare, ...], EqualWeights | None]:
    """Pair (shares, choice) for the networks of a decision.

    The shares are those of the networks in the objective of the first design in `ordered`. They are () for a single
    network, for the objective area, and for a sum of 0. The choice is made with equal weights of the networks. It is
    None in the same cases, and also if a value of the objective is 0.
    """
    if key == AREA_MM2 or len(answer.fronts) == 1:
        return (), None
    names, chosen = ordered["design"].tolist(), 0
    columns = [front.rows.set_index("index")[key].loc[ordered["index"]] for front in answer.fronts[:-1]]
    values = np.stack([column.to_numpy(dtype=np.float64) for column in columns], axis=1)
    sums = values.sum(axis=1)
    if not sums[chosen] > 0:
        return (), None
    shares = tuple(
        NetworkShare(front.network, float(own[chosen] / sums[chosen]), str(names[int((sums - own).argmin())]))
        for front, own in zip(answer.fronts[:-1], values.T, strict=True)
    )
    if not (values > 0).all():
        return shares, None
    means = np.log(values).mean(axis=1)
    best = int(means.argmin())
    return shares, EqualWeights(str(names[best]), math.expm1(float(means[chosen] - means[best])))


def _fast(rated: _Rated, ordered: pandas.DataFrame, key: str) -> FastDesign:
    rows = ordered[~are_slow(ordered)]
    if rows.empty:
        return FastDesign(None, 0, 0.0)
    return FastDesign(
        rated.of(rows.iloc[0]), len(rows), excess_over(float(rows[key].iloc[0]), float(ordered[key].iloc[0]))
    )


def _price(rated: _Rated, ordered: pandas.DataFrame, key: str, measure: str) -> Price:
    chosen = float(ordered[measure].iloc[0])
    best = best_first(rated.answer.overall, measure).iloc[0]
    less = ordered[(ordered[measure] <= chosen * (1 - LEAST_GAIN)) & (ordered[measure] < chosen)]
    nearest = None if less.empty else less.iloc[0]
    return Price(
        measure,
        rated.of(best),
        excess_over(chosen, float(best[measure])),
        None if nearest is None else rated.of(nearest),
        0.0 if nearest is None else 1 - float(nearest[measure]) / chosen,
        0.0 if nearest is None else excess_over(float(nearest[key]), float(ordered[key].iloc[0])),
        len(less),
    )


def _barred(front: Front, key: str, chosen: float) -> BarredDesign | None:
    """Design with the lowest objective among the designs that violate a constraint on results. This objective must be
    lower than `chosen`, the objective of the chosen design, by at least the share LEAST_GAIN. Otherwise, the result is
    None.
    """
    below = (front.rows[key] <= chosen * (1 - LEAST_GAIN)) & (front.rows[key] < chosen)
    rows = front.rows[(front.rows["unmet"] != "") & below]
    if rows.empty:
        return None
    row = rows.sort_values([key, "index"], kind="stable").iloc[0]
    return BarredDesign(str(row["design"]), str(row["unmet"]), 1 - float(row[key]) / chosen)


def _odds(front: Front, ordered: pandas.DataFrame, key: str) -> CostOdds | None:
    """Shares of the cost samples: the share in which the chosen design has the least objective, and the share in which
    the second best design has the least objective. None if no costs have ranges.
    """
    if FRONT_PROBABILITY not in front.rows:
        return None
    shares = [least_probability(front.compared, key, index) for index in ordered.index[:2]]
    return CostOdds(shares[0], shares[1] if len(shares) > 1 else None)


def _turning(answer: Answer, ordered: pandas.DataFrame, key: str) -> TurningPart | None:
    """Smallest change of one part of the energy that makes another design as good as the chosen design. None if no
    factor up to LARGEST_FACTOR is enough.
    """
    values = ordered[key].to_numpy(dtype=np.float64)
    lead = values[1:] - values[0]
    found = []
    for column, words in energy_parts(ordered.columns).items():
        part = _part_of_objective(answer, ordered, key, column)
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = 1 + lead / (part[0] - part[1:])
        for place in np.flatnonzero(np.isfinite(factors) & (factors > 0)).tolist():
            factor = float(factors[place])
            found.append((abs(math.log(factor)), column, place, words, factor))
    if not found:
        return None
    size, column, place, words, factor = min(found)
    if size > math.log(LARGEST_FACTOR):
        return None
    return TurningPart(column, words, factor, str(ordered["design"].iloc[place + 1]))


def _part_of_objective(answer: Answer, ordered: pandas.DataFrame, key: str, column: str) -> np.ndarray:
    """Part of the objective that one part of the energy causes, for each design in `ordered`, as an array of shape
    (designs,). `column` is the column of this part of the energy.

    For the energy as objective, the result is this part of the energy. For the EDP, it is this part times the latency.
    The values of all networks are added up.
    """
    exploration = answer.exploration
    table = exploration.table[exploration.table["index"].isin(ordered["index"])]
    part = table[column].fillna(0.0)
    _, latency, _, _ = exploration.measures
    weighted = part if key == ENERGY_PJ else part * table[latency]
    sums = weighted.groupby(table["index"]).sum()
    result: np.ndarray = sums.loc[ordered["index"]].to_numpy(dtype=np.float64)
    return result
