"""What became of a file with a mistake."""

from dataclasses import dataclass

from tests.strangers.mistakes import Mistake

REFUSED, CHANGED, TOLD, FREE, SILENT, CRASHED = "refused", "changed", "told", "free", "silent", "crashed"


@dataclass(frozen=True)
class Outcome:
    """What became of it."""

    file: str
    mistake: Mistake
    outcome: str
    said: str
    """What was said of it."""

    @property
    def is_wrong(self) -> bool:
        """Whether it was dropped in silence, ended in a fault of ours, or was refused without a word or a place."""
        if self.outcome == REFUSED:
            return not (any(word in self.said for word in self.mistake.words) or ":" in self.said)
        return self.outcome in (SILENT, CRASHED)
