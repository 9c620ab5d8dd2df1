"""Cost of a design for a network, or the reason why there is none, and counts of work that designs share."""

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
"""Mapping for a space without a mapping file. It fixes no part of any mapping."""


@dataclass(frozen=True)
class DesignCost:
    """Cost of a design for a network, or the reason why the design has no cost."""

    status: str
    reason: str = ""
    energy_pj: float = np.nan
    latency_cycles: float = np.nan
    area_mm2: float = np.nan
    energy_terms_pj: Mapping[str, float] = field(default_factory=dict)
    """Energy in pJ by term."""
    memory_energy_pj: Mapping[str, float] = field(default_factory=dict)
    """Energy in pJ by memory of the core. The sum over the memories is the energy term of memory accesses. {} for
    several cores.
    """
    latency_terms_cycles: Mapping[str, float] = field(default_factory=dict)
    """Latency in cycles by part."""
    further: Mapping[str, float] = field(default_factory=dict)
    """Values of further columns in the table of results, by column."""
    cost_parts: tuple[CostPart, ...] = ()
    """Parts of the energy and the area, one for each memory whose costs have a range."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts of further columns in the table of results, by column."""

    @classmethod
    def refused(cls, error: InputError | MappingError) -> "DesignCost":
        """Result without costs, for a design that is not valid for the network or has no fitting mapping."""
        if isinstance(error, InputError):
            return cls(INVALID, reason_of(error))
        return cls(INFEASIBLE, reason_of_misfit(error))


def reason_of(error: InputError) -> str:
    """Text on one line with the first mistake in a design, and with the number of further mistakes."""
    first, *others = error.problems
    more = f" (and {len(others)} more)" if others else ""
    return " ".join(str(first).split()) + more


def reason_of_misfit(error: MappingError) -> str:
    """Text on one line that says why no mapping fits a design. It joins the first two lines of `error`: the layers
    without a fitting mapping, and the first reason. Later lines are left out.
    """
    told, *first = [line.strip().rstrip(":") for line in str(error).splitlines()[:2]]
    return ": ".join([told, *first])


GRAPHS, TABLES = "CN graph", "cost table"
"""Kinds of work that designs share.

GRAPHS: making the graph of the computation nodes (CNs) of a network. TABLES: computing the costs of the CNs on a core.
"""


@dataclass
class Sharing:
    """Counts of the work that designs share, with a store of mappings of computation nodes. Several processes can use
    this store.
    """

    store: Store | None = None
    asked: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)

    def counts(self) -> "Sharing":
        """Copy of the counts, without the store. The copy does not change with later counting."""
        return Sharing(None, self.asked.copy(), self.made.copy())

    def add(self, now: "Sharing", before: "Sharing") -> None:
        """Add the work that was counted between two copies of the counts. `before` is the earlier copy, and `now` is
        the later copy.
        """
        self.asked += now.asked - before.asked
        self.made += now.made - before.made

    def __str__(self) -> str:
        """Counts as text, such as: 6 of 40 cost tables made, 34 taken from other designs."""
        return "; ".join(
            f"{self.made[what]:,} of {count_of(asked, what)} made, {asked - self.made[what]:,} taken from other designs"
            for what, asked in self.asked.items()
        )
