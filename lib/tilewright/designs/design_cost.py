"""Cost of a design with one core or several for a network, or the reason why there is none, and counts of shared
work."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.base.errors import InputError, MappingError, count_of
from tilewright.designs.results import INFEASIBLE, INVALID
from tilewright.search.cost_ranges import CostPart
from tilewright.search.store import Store

NO_MAPPING: tuple[dict[str, Any], ...] = ({"name": "default"},)
"""Mapping data for a space without a mapping file; they fix no part of a mapping."""


@dataclass(frozen=True)
class DesignCost:
    """Cost of a design for a network, or the reason why the design has no cost."""

    status: str
    reason: str = ""
    energy_pj: float = np.nan
    latency_cycles: float = np.nan
    area_mm2: float = np.nan
    energy_terms_pj: Mapping[str, float] = field(default_factory=dict)
    """Energy by term of the ledger."""
    memory_energy_pj: Mapping[str, float] = field(default_factory=dict)
    """Energy by memory of the core. The sum over all memories is the energy term of memory accesses."""
    latency_terms_cycles: Mapping[str, float] = field(default_factory=dict)
    """Cycles by part of the latency."""
    further: Mapping[str, float] = field(default_factory=dict)
    """Further columns of the table of results."""
    cost_parts: tuple[CostPart, ...] = ()
    """Parts of the energy and the area that come from a cost law with a range."""

    @classmethod
    def refused(cls, error: InputError | MappingError) -> "DesignCost":
        """Result without costs, because the design is not valid for the network or no mapping fits."""
        if isinstance(error, InputError):
            return cls(INVALID, reason_of(error))
        return cls(INFEASIBLE, reason_of_misfit(error))


def reason_of(error: InputError) -> str:
    """Text of the mistakes in a design, in one line."""
    first, *others = error.problems
    more = f" (and {len(others)} more)" if others else ""
    return " ".join(str(first).split()) + more


def reason_of_misfit(error: MappingError) -> str:
    """Text on why no mapping fits a design: the layers that fail, and the first reason."""
    told, *first = [line.strip().rstrip(":") for line in str(error).splitlines()[:2]]
    return ": ".join([told, *first])


GRAPHS, TABLES = "CN graph", "cost table"
"""Kinds of work that designs share: the graph of the computation nodes (CNs) of a network, and the costs of the CNs on
a core.
"""


@dataclass
class Sharing:
    """Store for mappings of computation nodes that processes share, with counts of the parts that designs share."""

    store: Store | None = None
    asked: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)

    def counts(self) -> "Sharing":
        """Copy of the counts, without the shared parts. Later counting does not change the copy."""
        return Sharing(None, self.asked.copy(), self.made.copy())

    def add(self, now: "Sharing", before: "Sharing") -> None:
        """Add the counts that were made between two copies of the counts, `before` and `now`."""
        self.asked += now.asked - before.asked
        self.made += now.made - before.made

    def __str__(self) -> str:
        """Counts in words: 6 of 40 cost tables made, 34 as in another design."""
        return "; ".join(
            f"{self.made[what]:,} of {count_of(asked, what)} made, {asked - self.made[what]:,} as in another design"
            for what, asked in self.asked.items()
        )
