"""Results of a space of designs, with the assumptions behind the results."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas

from tilewright.base.measures import AREA_MM2, ENERGY_PJ
from tilewright.designs.clocks import Clocks, clocks_in
from tilewright.designs.results import ALL_NETWORKS, DROPPED, MEASURES, OK, Measure, measures_in_time, order_of_ties


@dataclass(frozen=True, eq=False)
class Exploration:
    """Results of a space of designs, with the assumptions behind the results."""

    name: str
    axis_names: tuple[str, ...]
    """Names of the axes."""
    law_names: tuple[str, ...]
    """Names that the laws of the space define."""
    objectives: tuple[str, ...]
    """Objectives by which designs are compared, as columns of MEASURES."""
    networks: tuple[str, ...]
    assumptions: tuple[str, ...]
    """Assumptions of a comparison, one sentence each. They concern, for example, the model, the search, and the
    memories that keep data between layers.
    """
    table: pandas.DataFrame
    """Table with one row per design and network, sorted by index of the design, then in the order of the networks.

    The columns are `index`, `design`, the values of axes and laws, `network`, `status`, `reason`, the columns of
    MEASURES, `energy_<term>_pj`, `energy_memory_<memory>_pj`, `latency_<part>_cycles`, and `unmet`. `unmet` has
    the constraints that the results violate (`Space.unmet`), or ''.
    """
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Number of designs that each constraint excludes before evaluation, by constraint. These designs have no rows."""
    missing: int = 0
    """Number of designs without rows because they are not evaluated yet, or because their results are out of date."""
    settled: int = 0
    """Number of designs without rows that a certificate proves to be on no Pareto front."""
    axis_values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values of each axis in the space file, including the values of excluded designs."""
    notices: tuple[str, ...] = ()
    """Notices on unused parts of the input."""
    others: pandas.DataFrame | None = None
    """Outcomes of all evaluated designs, if `table` has rows of only some designs; None if it has rows of all designs.

    The columns are `index`, `network`, `status`, `reason` and `unmet`, with one row per design and network.
    """

    given_clocks: Clocks | None = None
    """Relation between the clocks of all compared designs. It is given only if rows of some designs are missing in
    `table`; otherwise, the field is None.
    """

    searched_for: str = ""
    """Objective of the searches for mappings or plans, such as `EDP`; '' if it is not known."""

    def on_network(self, network: str) -> "Exploration":
        """Exploration with the results of one network. Constraints on results then count for this network alone."""
        if self.networks == (network,):
            return self
        only = (
            f"Only {network} is compared, of {len(self.networks)} networks of the space. A design must meet the"
            " constraints on results for this network alone."
        )
        table = self.table[self.table["network"] == network].reset_index(drop=True)
        return replace(self, networks=(network,), table=table, assumptions=(only, *self.assumptions))

    @cached_property
    def clocks(self) -> Clocks:
        """Relation between the clocks of all compared designs."""
        return clocks_in(self.table) if self.given_clocks is None else self.given_clocks

    @cached_property
    def measures(self) -> Mapping[str, Measure]:
        """Measures by which designs are compared, by column, in the order energy, latency, EDP, area.

        If clocks differ, latency and EDP are in time units.
        """
        is_compared = (self.table["status"] == OK) & (self.table["unmet"] == "")
        return measures_in_time(self.table[is_compared]) if self.clocks is Clocks.DIFFER else MEASURES

    @property
    def energies_pj(self) -> list[float]:
        """Energies in pJ of all designs with results, for each network."""
        return [float(energy) for energy in self.table.loc[self.table["status"] == OK, ENERGY_PJ]]

    def best_designs(self) -> list[str]:
        """Lines of text, one for each measure that all designs have. A line names the design with the least sum of this
        measure over the networks. Only designs that have results and meet all constraints on every network are
        considered. The area of a design is counted once. The rule for ties is `order_of_ties`.
        """
        rows = self.table[(self.table["status"] == OK) & (self.table["unmet"] == "")]
        rows = rows[rows.groupby("index")["network"].transform("size") == len(self.networks)]
        if rows.empty:
            return []
        by_design, found = rows.groupby("index"), []
        sums = pandas.DataFrame({"design": by_design["design"].first()})
        for column in self.measures:
            own = by_design[column]
            sums[column] = (own.first() if column == AREA_MM2 else own.sum(min_count=1)).astype(float)
        known = [column for column in self.measures if sums[column].notna().all()]
        for column in known:
            best = sums.sort_values(order_of_ties(column, known), kind="stable").iloc[0]
            measure = self.measures[column]
            least = measure.text(float(best[column]))
            found.append(f"least {measure.words}: design {best['design']} with {least} {measure.unit}")
        return found

    @property
    def compared_by(self) -> tuple[str, ...]:
        """Columns of the measures by which designs are compared, one for each objective of the space."""
        names = dict(zip(MEASURES, self.measures, strict=True))
        return tuple(names[key] for key in self.objectives)

    @property
    def dropped(self) -> int:
        """Number of designs that are not searched, because another design dominates their lower bounds."""
        return int(self.outcomes.loc[self.outcomes["status"] == DROPPED, "index"].nunique())

    @property
    def outcomes(self) -> pandas.DataFrame:
        """Outcomes of all evaluated designs on each network, with at least the columns of `others`."""
        return self.table if self.others is None else self.others

    def compared_count(self, network: str) -> int:
        """Number of designs that have results and meet all constraints on one network. If `network` is ALL_NETWORKS, a
        design counts only if this is true on all networks.
        """
        rows = self.outcomes
        if network != ALL_NETWORKS:
            rows = rows[rows["network"] == network]
        is_compared = (rows["status"] == OK) & (rows["unmet"] == "")
        return int(is_compared.groupby(rows["index"]).all().sum())

    @property
    def value_names(self) -> tuple[str, ...]:
        """Columns with the values of a design: axes, then laws."""
        return self.axis_names + self.law_names
