"""What random tries by seed have given."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """What was tried, and what was wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Take another tally in."""
        self.counts.update(other.counts)
        self.wrong += other.wrong
