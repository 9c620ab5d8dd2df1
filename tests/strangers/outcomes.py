"""The outcome of a file with a mistake."""

from dataclasses import dataclass

from tests.strangers.mistakes import Mistake

REFUSED, CHANGED, TOLD, FREE, SILENT, CRASHED = "refused", "changed", "told", "free", "silent", "crashed"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a mistake."""

    file: str
    mistake: Mistake
    outcome: str
    said: str
    """The message on the mistake."""

    @property
    def is_wrong(self) -> bool:
        """Whether the mistake was ignored silently, caused a crash, or was refused without naming it or a place."""
        if self.outcome == REFUSED:
            return not (any(word in self.said for word in self.mistake.words) or ":" in self.said)
        return self.outcome in (SILENT, CRASHED)
