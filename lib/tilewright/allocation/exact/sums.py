"""Sums over the parts of a network whose terms depend on the cores that some parts run on: what the relaxation of
schedules says of links and energy (docs/allocation.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tilewright.allocation.space import AllocationSpace


class OnCore(NamedTuple):
    """That a part runs on a core."""

    part: int
    core: int


class Condition(NamedTuple):
    """When a term counts: `owner` holds (None: always), and some of `any_of` hold (None: always)."""

    owner: OnCore | None = None
    any_of: frozenset[OnCore] | None = None

    def holds(self, part_cores: Sequence[int]) -> bool:
        """For an allocation, [part] core."""
        owned = self.owner is None or part_cores[self.owner.part] == self.owner.core
        return owned and (self.any_of is None or any(part_cores[part] == core for part, core in self.any_of))


ALWAYS = Condition()


@dataclass
class ConditionalSum:
    """Amounts by the condition under which they count."""

    terms: dict[Condition, float] = field(default_factory=dict)

    def add(self, amount: float, owner: OnCore | None = None, any_of: Iterable[OnCore] | None = None) -> None:
        """Add a term; one whose condition nothing can meet counts nothing."""
        found = None if any_of is None else frozenset(any_of)
        if amount and (found is None or found):
            condition = Condition(owner, found)
            self.terms[condition] = self.terms.get(condition, 0) + amount

    def add_sum(self, other: "ConditionalSum", factor: float = 1) -> None:
        """Add all terms of another sum."""
        for condition, amount in other.terms.items():
            self.add(amount * factor, *condition)

    def value(self, part_cores: Sequence[int]) -> float:
        """For an allocation, [part] core."""
        return sum(amount for condition, amount in self.terms.items() if condition.holds(part_cores))

    def simplified(self, space: AllocationSpace) -> "ConditionalSum":
        """The same sum, where no condition asks for what every allocation of the space has."""
        found = ConditionalSum()
        for (owner, any_of), amount in self.terms.items():
            if any_of is not None and _is_certain(any_of, owner, space):
                any_of = None
            if owner is not None and len(space.choices[owner.part]) == 1:
                owner = None
            found.add(amount, owner, any_of)
        return found


def _is_certain(any_of: frozenset[OnCore], owner: OnCore | None, space: AllocationSpace) -> bool:
    """Whether some of the literals hold in every allocation in which the owner holds."""
    if owner in any_of:
        return True
    cores_of: dict[int, set[int]] = {}
    for part, core in any_of:
        cores_of.setdefault(part, set()).add(core)
    return any(cores >= set(space.choices[part]) for part, cores in cores_of.items())
