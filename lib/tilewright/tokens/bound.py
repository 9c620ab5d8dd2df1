"""Bound of a step: the part whose doubled width saves most time, else the fewest parts together, else the kind of
cycles.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.results.bottlenecks import ARRAY
from tilewright.results.verdict import MOST_SETS, Verdict, smallest_set

COMPUTE = "compute"
"""Name of the bound by the array of a core at work."""
NOTABLE_GAIN = 0.1
"""Smallest share of the time that doubling a part's width must save for the part to be the bound."""
LEGEND = (
    f"what of twice the width saves most of the time, with the share, if that is {NOTABLE_GAIN:.0%} or more; else the"
    " fewest that do so together;"
    "\n    else what takes most of the time, with its share: compute (all units of the array work), spatial stall"
    " (units without work), moving data."
)

LEGEND_OF_SEVERAL = (
    f"the memory, or the links, of which twice the width saves most of the time, with the share, if that is"
    f" {NOTABLE_GAIN:.0%} or more;"
    "\n    else the fewest that do so together; else compute: all of them together, twice as wide, save less."
)


@dataclass(frozen=True)
class StepLimit:
    """What bounds a step, with the shares of time that support it."""

    widths: Verdict
    """Shares of the time that twice the width of each part alone would save; the set of parts that bounds the step
    comes first.
    """
    kinds: Verdict
    """Cycles by kind; without rivals where the kinds are not known."""
    parts: tuple[str, ...]
    """Parts that bound the step, one or several together; () where a kind of cycles bounds it."""

    @property
    def verdict(self) -> Verdict:
        """Verdict that decides: on widths, or on kinds of cycles."""
        return self.widths if self.parts else self.kinds

    def row(self, word_of: Mapping[str, str] | None = None) -> JsonObject:
        """Table columns of the bound, by name; `word_of` gives the short name of a part."""
        kinds = self.kinds
        busy = next((one.value / kinds.whole for one in kinds.rivals if one.name == COMPUTE), 0.0)
        if self.parts:
            assert self.widths.winner is not None
            words = dict.fromkeys((word_of or {}).get(part, part) for part in self.parts)
            bound = " and ".join(words), " and ".join(self.parts), self.widths.winner.value / self.widths.whole
        else:
            names = " and ".join(one.name for one in kinds.alike) or COMPUTE
            bound = names, "", kinds.winner.value / kinds.whole if kinds.winner else 0.0
        row: dict[str, Any] = dict(zip(("bound_by", "bound_by_parts", "bound_by_share"), bound, strict=True))
        return row | ({"array_busy": busy} if kinds.rivals else {})


def saved_share(latency_cycles: float, cycles: float) -> float:
    """Share of a latency that a change to `cycles` saves, exact where it is a tenth: 1 - 9 / 10 would be less."""
    return (latency_cycles - cycles) / latency_cycles


def step_limit(
    latency_cycles: float,
    widths: Mapping[str, float],
    saved_by: Callable[[tuple[str, ...]], float],
    kinds: Mapping[str, float],
    most_sets: int = MOST_SETS,
) -> StepLimit:
    """Bound of a step of `latency_cycles`.

    `widths` has the share of the time that twice the width of each part saves; `saved_by` returns this share for
    several parts. `kinds` has the cycles by kind, with those of the array under ARRAY; it is empty where the kinds are
    not known.
    """
    question, unit = "share of the time that twice the width saves", "of the time"
    found = Verdict.of(question, unit, 1.0, widths, "-")
    named = {COMPUTE if name == ARRAY else name: cycles for name, cycles in kinds.items()}
    by_kind = Verdict.of("cycles by kind", "cycles", latency_cycles, named)
    if found.winner is not None and found.winner.value >= NOTABLE_GAIN:
        return StepLimit(found, by_kind, (found.winner.name,))
    together = smallest_set(tuple(widths), saved_by, NOTABLE_GAIN, most_sets) if latency_cycles else None
    if together is None:
        return StepLimit(found, by_kind, ())
    rivals = {" and ".join(together[0]): together[1], **widths}
    return StepLimit(Verdict.of(question, unit, 1.0, rivals, "-"), by_kind, together[0])


def bound_text(row: Mapping[str, Any]) -> str:
    """Short text of what bounds a step, with its share, from the columns of a row."""
    parts = row["bound_by_parts"]
    if not parts:
        share = f" {row['bound_by_share']:.1%}" if row["bound_by_share"] else ""
        return f"{row['bound_by']}{share}"
    joined = " together" if " and " in row["bound_by"] else ""
    return f"{row['bound_by']}{joined} -{row['bound_by_share']:.1%}"
