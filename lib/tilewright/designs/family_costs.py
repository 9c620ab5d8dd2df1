"""Costs of each design of a space as a table, computed family by family (docs/proofs/fronts.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from tilewright.base.measures import AREA_MM2
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.families import Families
from tilewright.designs.pricing import FamilyMembers, FamilyPricer, FigureReader, Prices, members_of
from tilewright.designs.results import INVALID
from tilewright.designs.shard import ShardMaker
from tilewright.designs.space import Space


@dataclass(frozen=True, eq=False)
class FamilyCosts:
    """Costs of the designs of one or several families."""

    table: pandas.DataFrame
    """Table with a row for each design that no constraint excludes before evaluation, sorted by index.

    The columns are `index`, `area_mm2`, `clock_period_ns`, and for each network, by its number n, `status_<n>`,
    `reason_<n>`, `energy_<n>_pj` and `latency_<n>_cycles`.
    """
    excluded: Mapping[str, int]
    """Number of designs that each constraint excludes before evaluation, by constraint."""


PERIOD = "clock_period_ns"
"""Column with the clock period in ns; NaN if it is not known."""


def columns_of(networks: int) -> list[str]:
    """Column names of a table of costs for a number of networks."""
    own = [
        column
        for number in range(networks)
        for column in (f"status_{number}", f"reason_{number}", energy_column(number), latency_column(number))
    ]
    return ["index", AREA_MM2, PERIOD, *own]


def energy_column(network: int) -> str:
    """Name of the energy column of a network. `network` is the number of the network in the space."""
    return f"energy_{network}_pj"


def latency_column(network: int) -> str:
    """Name of the latency column of a network. `network` is the number of the network in the space."""
    return f"latency_{network}_cycles"


class FamilyCoster:
    """Function object that computes the costs of families: one row per design. It reads the networks when it costs the
    first family.
    """

    def __init__(self, space: Space) -> None:
        self.space, self.families = space, Families(space)
        self._reader = FigureReader(space.base)
        self._pricer: FamilyPricer | None = None

    def costs(self, numbers: Sequence[int]) -> FamilyCosts:
        """Costs of the designs in some families. Consecutive families share most of the work."""
        found = [members_of(self.space, self.families[number], self._reader) for number in numbers]
        filled = [members for members in found if len(members.indexes)]
        for members in filled:
            assert members.variants is not None, "memories of a core and ports of a memory have distinct names"
        prices = iter(self.pricer.prices(filled) if filled else [])
        return joined([self._table(one, next(prices) if len(one.indexes) else {}) for one in found], self.space)

    @property
    def pricer(self) -> FamilyPricer:
        """Object that computes the costs of families on the networks of the space. Raises InputError with all mistakes
        in the networks and the mapping file.
        """
        if self._pricer is None:
            evaluators = ShardMaker(self.space).evaluators
            on_one_core = {name: one for name, one in evaluators.items() if isinstance(one, NetworkEvaluator)}
            assert len(on_one_core) == len(evaluators), "spaces of one core"
            self._pricer = FamilyPricer(self.space, on_one_core)
        return self._pricer

    def _table(self, members: FamilyMembers, prices: Mapping[str, Prices]) -> FamilyCosts:
        bad = len(members.invalid)
        columns: dict[str, Any] = {
            "index": np.concatenate([members.indexes, np.array(list(members.invalid), np.int64)]),
            AREA_MM2: np.concatenate([members.area_mm2, np.full(bad, np.nan)]),
            PERIOD: np.concatenate([members.clock_period_ns, np.full(bad, np.nan)]),
        }
        reasons, nothing = list(members.invalid.values()), np.full(bad, np.nan)
        for number, network in enumerate(self.space.networks):
            one = prices.get(network.name, Prices.unknown(0))
            columns[f"status_{number}"] = one.status + [INVALID] * bad
            columns[f"reason_{number}"] = one.reason + reasons
            columns[energy_column(number)] = np.concatenate([one.energy_pj, nothing])
            columns[latency_column(number)] = np.concatenate([one.latency_cycles, nothing])
        return FamilyCosts(pandas.DataFrame(columns, columns=columns_of(len(self.space.networks))), members.excluded)


def joined(parts: Sequence[FamilyCosts], space: Space) -> FamilyCosts:
    """Costs of several parts as one table, sorted by index."""
    excluded: dict[str, int] = {}
    for part in parts:
        for constraint, count in part.excluded.items():
            excluded[constraint] = excluded.get(constraint, 0) + count
    filled = [part.table for part in parts if len(part.table)]
    if not filled:
        return FamilyCosts(pandas.DataFrame(columns=columns_of(len(space.networks))), excluded)
    table = pandas.concat(filled, ignore_index=True)
    return FamilyCosts(table.sort_values("index", ignore_index=True), dict(sorted(excluded.items())))


def make_costs(space: Space) -> Callable[[Sequence[int]], FamilyCosts]:
    """Function that computes the costs of the families with the given indexes. Each process calls `make_costs` once."""
    return FamilyCoster(space).costs
