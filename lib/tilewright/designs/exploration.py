"""Results of a space of designs, with the assumptions behind the results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas

from tilewright.designs.clocks import Clocks, clocks_in
from tilewright.designs.results import ALL_NETWORKS, MEASURES, OK, Measure, measures_in_time


@dataclass(frozen=True, eq=False)
class Exploration:
    """Results of a space of designs, with the assumptions behind the results."""

    name: str
    axis_names: tuple[str, ...]
    """Names of the axes."""
    law_names: tuple[str, ...]
    """Names that the laws of the space define."""
    objectives: tuple[str, ...]
    """Columns of MEASURES by which designs are compared."""
    networks: tuple[str, ...]
    assumptions: tuple[str, ...]
    """Assumptions of a comparison, one sentence each: the model, the search, and where data stay between layers."""
    table: pandas.DataFrame
    """Table with one row for each design and network, sorted by the index of the design, then by the order of the
    networks.

    The columns are `index`, `design`, the values of axes and laws, `network`, `status`, `reason`, the columns of
    MEASURES, `energy_<term>_pj`, `energy_memory_<memory>_pj`, `latency_<part>_cycles`, and `unmet`. `unmet` is the
    constraint on results that the design does not meet, or ''.
    """
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Number of designs that each constraint excludes before any design is evaluated. These designs have no rows."""
    missing: int = 0
    """Number of designs that have no rows because they are not evaluated yet or because their results are out of
    date.
    """
    settled: int = 0
    """Number of designs that have no rows because a certificate shows that they are on no front."""
    axis_values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values of each axis in the file of the space, including values of designs that constraints exclude."""
    notices: tuple[str, ...] = ()
    """Notices on parts of the input that are not used."""
    others: pandas.DataFrame | None = None
    """Outcomes of all designs that were evaluated, if `table` has only some of them. The columns are `index`,
    `network`, `status`, `reason` and `unmet`, with a row for each design and network.
    """

    given_clocks: Clocks | None = None
    """Relation of the clocks of all compared designs, if `table` does not have all of them."""

    @cached_property
    def clocks(self) -> Clocks:
        """Relation of the clocks of all compared designs."""
        return clocks_in(self.table) if self.given_clocks is None else self.given_clocks

    @cached_property
    def measures(self) -> Mapping[str, Measure]:
        """Measures by which designs are compared, in the order energy, latency, EDP and area, by the name of the
        column. If clocks differ, latency and EDP are times.
        """
        is_compared = (self.table["status"] == OK) & (self.table["unmet"] == "")
        return measures_in_time(self.table[is_compared]) if self.clocks is Clocks.DIFFER else MEASURES

    @property
    def compared_by(self) -> tuple[str, ...]:
        """Columns of `measures` that the objectives stand for."""
        names = dict(zip(MEASURES, self.measures, strict=True))
        return tuple(names[key] for key in self.objectives)

    @property
    def outcomes(self) -> pandas.DataFrame:
        """Outcomes of all designs that were evaluated, for each network, with at least the columns of `others`."""
        return self.table if self.others is None else self.others

    def compared_count(self, network: str) -> int:
        """Number of designs that have results and meet all constraints, for one network or for all of them."""
        rows = self.outcomes
        if network != ALL_NETWORKS:
            rows = rows[rows["network"] == network]
        is_compared = (rows["status"] == OK) & (rows["unmet"] == "")
        return int(is_compared.groupby(rows["index"]).all().sum())

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the values of a design: axes, then laws."""
        return self.axis_names + self.law_names
