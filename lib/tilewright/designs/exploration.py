"""Results of a space of designs, and what they rest on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas

from tilewright.designs.results import ALL_NETWORKS, OK


@dataclass(frozen=True, eq=False)
class Exploration:
    """The results of a space, and what they rest on."""

    name: str
    axis_names: tuple[str, ...]
    """Names of what is varied."""
    law_names: tuple[str, ...]
    """Names of what follows from that by the laws of the space."""
    objectives: tuple[str, ...]
    """Columns that designs are compared by, of MEASURES."""
    networks: tuple[str, ...]
    assumptions: tuple[str, ...]
    """Assumptions of a comparison, a sentence each: model, search, where data are between layers."""
    table: pandas.DataFrame
    """One row for each design and network, by index of the design, then in the order of the networks.

    `index`, `design`, the values, `network`, `status`, `reason`, the columns of MEASURES, `energy_<term>_pj`,
    `energy_memory_<memory>_pj`, `latency_<part>_cycles`, and `unmet`: the constraint on results that is not met, or ''.
    """
    excluded: Mapping[str, int] = field(default_factory=dict)
    """Designs that a constraint excludes before anything is evaluated, which have no rows, by constraint."""
    missing: int = 0
    """Designs that are not evaluated yet, or not as the space says now, and have no rows."""
    settled: int = 0
    """Designs that are on no front, as a certificate tells, and have no rows."""
    notices: tuple[str, ...] = ()
    """Notices of what was written and not used."""
    others: pandas.DataFrame | None = None
    """Outcomes of all designs that were evaluated, where `table` has some of them alone: `index`, `network`, `status`,
    `reason` and `unmet`, a row for each design and network."""

    @property
    def outcomes(self) -> pandas.DataFrame:
        """Outcome of every design that was evaluated, for each network: columns as in `others`."""
        return self.table if self.others is None else self.others

    def compared_count(self, network: str) -> int:
        """Designs that have results and meet all constraints, for a network or for every one of them."""
        rows = self.outcomes
        if network != ALL_NETWORKS:
            rows = rows[rows["network"] == network]
        is_compared = (rows["status"] == OK) & (rows["unmet"] == "")
        return int(is_compared.groupby(rows["index"]).all().sum())

    @property
    def value_names(self) -> tuple[str, ...]:
        """The values of a design: axes, then laws."""
        return self.axis_names + self.law_names
