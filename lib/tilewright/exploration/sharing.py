"""What designs of several cores have in common: counts of what was made, and of what was asked for."""

from collections import Counter
from dataclasses import dataclass, field

from tilewright.errors import count_of
from tilewright.search.store import Store

GRAPHS, TABLES = "CN graph", "cost table"
"""What designs share: how a network is cut, and what its computation nodes cost on a core."""


@dataclass
class Sharing:
    """Where mappings of computation nodes are kept between processes, and counts of what designs share."""

    store: Store | None = None
    asked: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)

    def counts(self) -> "Sharing":
        """The counts alone, as they are now."""
        return Sharing(None, self.asked.copy(), self.made.copy())

    def add(self, now: "Sharing", before: "Sharing") -> None:
        """Add what was counted since."""
        self.asked += now.asked - before.asked
        self.made += now.made - before.made

    def __str__(self) -> str:
        """In words: 6 of 40 cost tables made, 34 as in another design."""
        return "; ".join(
            f"{self.made[what]:,} of {count_of(asked, what)} made, {asked - self.made[what]:,} as in another design"
            for what, asked in self.asked.items()
        )
