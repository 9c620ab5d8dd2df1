"""What a design costs for a network, or why it costs nothing, whatever kind of accelerator it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tilewright.errors import InputError, MappingError
from tilewright.search.cost_ranges import CostPart

NO_MAPPING: tuple[dict[str, Any], ...] = ({"name": "default"},)
"""The mapping of a space that gives none: nothing is fixed."""


@dataclass(frozen=True)
class DesignCost:
    """What a design costs for a network, or why it costs nothing."""

    status: str
    reason: str = ""
    energy_pj: float = np.nan
    latency_cycles: float = np.nan
    area_mm2: float = np.nan
    energy_terms_pj: Mapping[str, float] = field(default_factory=dict)
    """By term of the ledger."""
    memory_energy_pj: Mapping[str, float] = field(default_factory=dict)
    """By memory of the core; together the term of accesses."""
    latency_terms_cycles: Mapping[str, float] = field(default_factory=dict)
    """By part of the latency."""
    further: Mapping[str, float] = field(default_factory=dict)
    """Further columns of the table of results."""
    cost_parts: tuple[CostPart, ...] = ()
    """What of the energy and the area has a range."""


class DesignEvaluator(Protocol):
    """The costs of a network on one design after the other. Results do not depend on the designs before."""

    def cost(self, hardware: dict[str, Any], accelerator: Any) -> DesignCost:
        """The costs on one design, which has been read from `hardware`."""


def reason_of(error: InputError) -> str:
    """What is wrong with a design, in one line."""
    first, *others = error.problems
    more = f" (and {len(others)} more)" if others else ""
    return " ".join(str(first).split()) + more


def reason_of_misfit(error: MappingError) -> str:
    """Why nothing fits a design: which layers, and the first reason."""
    told, *first = [line.strip().rstrip(":") for line in str(error).splitlines()[:2]]
    return ": ".join([told, *first])
