"""Results of random trials by seed."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts of trials, and the errors found."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add the counts and errors of another tally."""
        self.counts.update(other.counts)
        self.wrong += other.wrong
