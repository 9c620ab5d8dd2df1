"""Bound of a step of a language model: what limits the time of the step.

Each part of the accelerator, such as a port, a memory or the links, is tried with twice its width. The bound is the
part that saves most time, if it saves at least the share NOTABLE_GAIN of the time. Otherwise, the bound is the smallest
set of parts that save this share if all of them have twice their width. If no set saves this share, the bound is the
kind of cycles that takes most of the time, such as computing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.base.json_values import JsonObject
from tilewright.results.bottlenecks import ARRAY
from tilewright.results.verdict import MOST_SETS, Verdict, smallest_set

COMPUTE = "compute"
"""Name of the bound if the computing arrays limit the step."""
NOTABLE_GAIN = 0.1
"""Smallest saving with which a part of the accelerator (such as a port or the links) is the bound of a step. The saving
is the time that the step saves if the width of the part is doubled, as a share of the step's time.
"""
LEGEND = (
    "the port that saves most time if its width is doubled, and the share of the time that this saves."
    f"\n    If no port saves {NOTABLE_GAIN:.0%}: the smallest set of ports that together save {NOTABLE_GAIN:.0%}."
    "\n    If no set does: the kind of cycles that takes most of the time, and its share: compute (all units of the"
    " array work), spatial stall (units without work), moving data."
)

LEGEND_OF_SEVERAL = (
    "the part (a memory or the links) that saves most time if its width is doubled, and the share of the time it saves."
    f"\n    If none saves {NOTABLE_GAIN:.0%}: the smallest set of memories and links that together save"
    f" {NOTABLE_GAIN:.0%}."
    "\n    If no set does: compute, because even all memories and links together save less than that."
)


@dataclass(frozen=True)
class StepLimit:
    """Bound of a step (what limits the time of the step), with the shares of the time that determine this bound."""

    widths: Verdict
    """Verdict on the shares of the time that doubled widths save. The share of a part is what the step saves if only
    this part has twice its width. If a set of parts bounds the step, the first share is the share of this set.
    """
    kinds: Verdict
    """Verdict on the cycles by kind, such as computing or waiting. It compares nothing if the kinds are not known."""
    parts: tuple[str, ...]
    """Names of the part, or of the parts of the set, that bounds the step. () if no part or set bounds the step."""

    @property
    def verdict(self) -> Verdict:
        """Verdict that names what bounds the step. It is the field `widths` if a part, or a set of parts, bounds the
        step. Otherwise, it is the field `kinds`.
        """
        return self.widths if self.parts else self.kinds

    def row(self, word_of: Mapping[str, str] | None = None) -> JsonObject:
        """Table columns of the bound, by name. `word_of` maps the name of a part to its short name."""
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
    """Share of a latency that is saved if the latency becomes `cycles`.

    The difference is computed first, because `1 - 9 / 10` is less than a tenth in floating point.
    """
    return (latency_cycles - cycles) / latency_cycles


def step_limit(
    latency_cycles: float,
    widths: Mapping[str, float],
    saved_by: Callable[[tuple[str, ...]], float],
    kinds: Mapping[str, float],
    most_sets: int = MOST_SETS,
) -> StepLimit:
    """Bound of a step that takes `latency_cycles`: the parts that limit its time, or the kind that has most cycles.

    `widths` has a share of the time for each part: the share that is saved if only this part is twice as wide.
    `saved_by` returns the share that is saved if all parts of a set are twice as wide. `kinds` has the number of cycles
    of each kind, such as ARRAY for the cycles in which the array works; {} if the kinds are not known.
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
    """Short text that names the bound of a step and its share. `row` has the table columns of the step."""
    parts = row["bound_by_parts"]
    if not parts:
        share = f" {row['bound_by_share']:.1%}" if row["bound_by_share"] else ""
        return f"{row['bound_by']}{share}"
    joined = " together" if " and " in row["bound_by"] else ""
    return f"{row['bound_by']}{joined} -{row['bound_by_share']:.1%}"
