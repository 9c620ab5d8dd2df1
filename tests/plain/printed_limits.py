"""Statements of verbs on the limit of a run or a layer: the common short text, and sets of ports.

A named kind has its share beside it, and no other kind has a larger share. A named port saves most. A named set of
ports is the smallest that helps, and stands only where no single port helps.
"""

import math
import re
from fractions import Fraction

from tests.plain.plain_runs import PlainRun
from tests.plain.printed_text import SHARE, is_count, is_share
from tests.plain.tally import Tally

LEAST_SHARE = Fraction(1, 100)
"""Share of the latency from which on a port counts as a limit."""
LIMITED = re.compile(rf"(?P<kinds>.+?) (?P<share>{SHARE})(?: each)?(?:[:;] (?P<ports>.+) -(?P<saved>{SHARE}))?$")
TOGETHER = re.compile(
    rf"(?P<ports>.+), together twice as wide, would save (?P<cycles>[\d,]+) cycles, -(?P<share>{SHARE})"
)


class Judge:
    """A run costed by the plain model, and the errors found in statements on it."""

    run: PlainRun

    def __init__(self) -> None:
        self.tally = Tally()

    def expect(self, holds: bool, *what: object) -> bool:
        """Record an error unless the statement holds; returns whether it holds."""
        self.tally.counts["statements"] += 1
        if not holds:
            self.tally.wrong.append(" ".join(map(str, what)))
        return holds

    def judge_limit(self, where: str, text: str, record: int | None) -> None:
        """Check the short text on the limit of a layer, or of all layers."""
        latency = self.run.latency if record is None else float(self.run.costs[record].latency_cycles)
        found = LIMITED.match(text)
        if not self.expect(found is not None, where, "has no number in", text) or found is None:
            return
        kinds, named = self.run.kinds(record), found["kinds"].split(" and ")
        shown = {
            name for name, cycles in kinds.items() if cycles > 0 and is_alike(cycles, max(kinds.values()), latency)
        }
        self.expect(set(named) == shown, where, text, "kinds are", kinds)
        self.expect(
            all(is_share(found["share"], kinds.get(one, math.nan) / latency) for one in named), where, text, kinds
        )
        singles, least = self.run.singles(record), least_cycles(latency)
        best = max(singles.values(), default=0.0)
        if best >= least:
            one = re.fullmatch(r"(.+?)(?: \(or (\d+) others?\))?", found["ports"] or "")
            if not self.expect(one is not None and one[1] in singles, where, text, "a port saves", best) or not one:
                return
            ties = sum(math.isclose(gain, best, rel_tol=1e-12) for gain in singles.values()) - 1
            self.expect(singles[one[1]] == best and int(one[2] or 0) == ties, where, text, singles)
            self.expect(is_share(found["saved"], best / latency), where, text, best / latency)
            return
        smallest = self.run.smallest(least, record)
        if found["ports"] is None:
            self.expect(smallest is None, where, text, "together save", smallest)
            return
        names = found["ports"].removeprefix("together: ").split(" and ")
        saved = self.run.saved(frozenset(tuple(one.split()) for one in names), record)  # type: ignore[misc]
        self.expect(found["ports"].startswith("together: ") and len(names) > 1, where, text, "alone", best)
        self.expect(saved >= least and is_share(found["saved"], saved / latency), where, text, saved / latency)

    def judge_set(self, text: str, record: int | None) -> None:
        """Check the smallest set of ports that helps, where no single port does."""
        latency = self.run.latency if record is None else float(self.run.costs[record].latency_cycles)
        best, least = max(self.run.singles(record).values(), default=0.0), least_cycles(latency)
        found = TOGETHER.search(text)
        if best >= least:
            self.expect(found is None, "explain: a port saves", best, "and", found and found[0])
            return
        smallest = self.run.smallest(least, record) or (self.run.smallest(1e-9, record) if best <= 0 else None)
        if found is None:
            self.expect(smallest is None, "explain: no set is named,", smallest, "saves", record)
            return
        named = frozenset(tuple(one.split()) for one in found["ports"].strip().split(" and "))
        saved = self.run.saved(named, record)  # type: ignore[arg-type]
        self.expect(is_count(found["cycles"], saved), found[0], "saves", saved)
        self.expect(is_share(found["share"], saved / latency), found[0], "saves", saved / latency)
        if smallest is not None or len(named) <= self.run.looked_at:
            is_best = smallest is not None and len(named) == smallest[0] and saved >= smallest[1] * (1 - 1e-9)
            self.expect(is_best, found[0], "smallest are", smallest)


def least_cycles(latency: float, share: Fraction = LEAST_SHARE) -> float:
    """Smallest saving that counts: this share of a latency, computed as an exact fraction, and above 0."""
    return max(float(share * Fraction(latency)), 1e-9)


def is_alike(cycles: float, most: float, whole: float) -> bool:
    """Whether a number has the same printed share as the largest one."""
    return f"{cycles / whole:.1%}" == f"{most / whole:.1%}"
