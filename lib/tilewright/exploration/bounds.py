"""Bounds: what each design of a space costs, or costs at least, as a table of families (docs/fronts.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from tilewright.exploration.evaluate import NetworkEvaluator
from tilewright.exploration.families import Families, Family
from tilewright.exploration.figure_reader import FigureReader
from tilewright.exploration.pricing import FamilyPricer, Members, Prices, members_of
from tilewright.exploration.results import INVALID
from tilewright.exploration.shard import ShardMaker
from tilewright.exploration.space import Space

IS_VALUE, GROUP = "is_value", "group"
GROUPS_OF_FAMILY = 2**12
"""Numbers that a family has for its groups."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is known of some designs."""

    table: pandas.DataFrame
    """A row for each design that no constraint excludes, by index: `index`, `group` (designs of a family with equal
    widths, which are valued together), `area_mm2`, `is_value` (what follows are its costs, not bounds of them), and for
    each network, by its place, `status_<n>`, `reason_<n>`, `energy_<n>_pj` and `latency_<n>_cycles`."""
    excluded: Mapping[str, int]
    """Constraint -> designs that it excludes."""


def columns_of(networks: int) -> list[str]:
    """The columns of a table of bounds."""
    own = [
        column
        for number in range(networks)
        for column in (f"status_{number}", f"reason_{number}", energy_column(number), latency_column(number))
    ]
    return ["index", GROUP, "area_mm2", IS_VALUE, *own]


def energy_column(network: int) -> str:
    """Of a network by its place in the space."""
    return f"energy_{network}_pj"


def latency_column(network: int) -> str:
    """Of a network by its place in the space."""
    return f"latency_{network}_cycles"


class BoundsMaker:
    """Makes the rows of families, and the costs of groups. Networks are read when the first family is looked at."""

    def __init__(self, space: Space) -> None:
        self.space, self.families = space, Families(space)
        self._reader = FigureReader(space.base)
        self._pricer: FamilyPricer | None = None

    def bounds(self, number: int) -> Bounds:
        """What the designs of a family cost at least."""
        family = self.families[number]
        members = members_of(self.space, family, self._reader)
        if not len(members.indexes):
            return self._bounds(family, members, {}, np.zeros(0, np.int64))
        if members.variants is None:
            raise AssertionError("names of memories and ports tell them apart")
        prices = self.pricer.bounds(members)
        return self._bounds(family, members, prices, members.variants.width_of)

    def values(self, indexes: Sequence[int]) -> list[tuple[int, list[float], list[float]]]:
        """Of some designs of one family: index, energy and latency on each network (not a number where it has none)."""
        members = members_of(self.space, Family(0, tuple(indexes)), self._reader)
        prices = list(self.pricer.values(members).values())
        return [
            (index, [float(one.energy_pj[i]) for one in prices], [float(one.latency_cycles[i]) for one in prices])
            for i, index in enumerate(members.indexes.tolist())
        ]

    @property
    def pricer(self) -> FamilyPricer:
        """Prices families. Raises InputError with everything that is wrong with networks or mapping."""
        if self._pricer is None:
            evaluators = ShardMaker(self.space).evaluators
            on_one_core = {name: one for name, one in evaluators.items() if isinstance(one, NetworkEvaluator)}
            assert len(on_one_core) == len(evaluators), "spaces of one core"
            self._pricer = FamilyPricer(self.space, on_one_core)
        return self._pricer

    def _bounds(self, family: Family, members: Members, prices: Mapping[str, Prices], width_of: np.ndarray) -> Bounds:
        count, bad = len(members.indexes), len(members.invalid)
        columns: dict[str, Any] = {
            "index": np.concatenate([members.indexes, np.array(list(members.invalid), np.int64)]),
            GROUP: np.concatenate([family.number * GROUPS_OF_FAMILY + width_of, np.full(bad, -1, np.int64)]),
            "area_mm2": np.concatenate([members.area_mm2, np.full(bad, np.nan)]),
        }
        values = [one.is_value for one in prices.values()]
        is_value = np.logical_and.reduce(values) if values else np.ones(0, np.bool_)
        columns[IS_VALUE] = np.concatenate([is_value, np.ones(bad, np.bool_)])
        reasons = list(members.invalid.values())
        for number, name in enumerate(network.name for network in self.space.networks):
            one = prices.get(name)
            columns[f"status_{number}"] = [one.status if one else ""] * count + [INVALID] * bad
            columns[f"reason_{number}"] = [one.reason if one else ""] * count + reasons
            nothing = np.full(bad, np.nan)
            columns[energy_column(number)] = np.concatenate([one.energy_pj if one else np.zeros(0), nothing])
            columns[latency_column(number)] = np.concatenate([one.latency_cycles if one else np.zeros(0), nothing])
        table = pandas.DataFrame(columns, columns=columns_of(len(self.space.networks)))
        return Bounds(table.sort_values("index", ignore_index=True), members.excluded)


def joined(parts: Sequence[Bounds], networks: int) -> Bounds:
    """Bounds of several families together, by index."""
    excluded: dict[str, int] = {}
    for part in parts:
        for constraint, count in part.excluded.items():
            excluded[constraint] = excluded.get(constraint, 0) + count
    filled = [part.table for part in parts if len(part.table)]
    if not filled:
        return Bounds(pandas.DataFrame(columns=columns_of(networks)), excluded)
    table = pandas.concat(filled, ignore_index=True)
    return Bounds(table.sort_values("index", ignore_index=True), dict(sorted(excluded.items())))


def make_bounds(space: Space) -> Callable[[Sequence[int]], Bounds]:
    """What makes the bounds of families by their numbers, in a process of its own."""
    maker = BoundsMaker(space)
    return lambda numbers: joined([maker.bounds(number) for number in numbers], len(space.networks))


def make_values(space: Space) -> Callable[[Sequence[int]], list[tuple[int, list[float], list[float]]]]:
    """What makes the costs of the designs of a group, in a process of its own."""
    return BoundsMaker(space).values
