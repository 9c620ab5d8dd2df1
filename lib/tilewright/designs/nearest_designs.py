"""Nearest designs to constraints on results that no design meets."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from tilewright.designs.columns import UNMET_END
from tilewright.designs.exploration import Exploration
from tilewright.designs.laws import ExpressionError, Limit, read_expression
from tilewright.designs.results import OK


class _Miss(NamedTuple):
    """Amount by which a design misses a constraint."""

    share: float
    """Distance from the limit, as a share of the limit; the distance itself if the limit is 0."""
    design: str
    value: float
    constraint: str
    limit: Limit | None
    """Limit of the constraint. None if the distance is not known."""

    @property
    def text(self) -> str:
        """Value of the design, with its distance from the limit, such as `area_mm2 5.2, 30.00% above the limit`."""
        assert self.limit is not None
        side = "above" if self.limit.is_upper else "below"
        away = f"{self.share:.3g} {side} 0" if self.limit.number == 0 else f"{self.share:.2%} {side} the limit"
        return f"{self.limit.name} {self.value:.6g}, {away}"


def nearest_sentences(exploration: Exploration) -> Iterator[str]:
    """Sentences on the nearest designs, if no design with results meets all constraints on results.

    There is a sentence for each constraint that no design meets. If each constraint is met by some design, but all
    constraints together by none, the only sentence names the design whose largest distance from a limit is least. Only
    constraints that compare one result with a number have distances. With several networks, the network with the
    largest distance counts. No sentences if the table has rows of only some designs.
    """
    table = exploration.table
    done = table[table["status"] == OK]
    if done.empty or exploration.others is not None:
        return
    missed = done["unmet"].astype(str).str.split(UNMET_END)
    has_missed = missed.map(any).groupby(done["index"]).any()
    if not has_missed.all():
        return
    misses: dict[int, dict[str, _Miss]] = {}
    for row, texts in zip(done.to_dict("records"), missed, strict=True):
        own = misses.setdefault(int(row["index"]), {})
        for text in filter(None, texts):
            miss = _miss(row, text)
            if miss is None:
                own[text] = _Miss(float("inf"), str(row["design"]), 0.0, text, None)
            elif text not in own or miss.share > own[text].share:
                own[text] = miss
    by_all = [text for text in next(iter(misses.values())) if all(text in own for own in misses.values())]
    for text in by_all:
        nearest = min((own[text] for own in misses.values()), key=lambda miss: miss.share)
        if nearest.share < float("inf"):
            yield f"No design meets `{text}`. The nearest is {nearest.design}: {nearest.text}."
    if not by_all:
        yield from _together(misses)


def _together(misses: Mapping[int, Mapping[str, _Miss]]) -> Iterator[str]:
    """Sentence on the design that comes nearest to meeting all constraints together."""
    own = min(misses.values(), key=lambda one: max(miss.share for miss in one.values()))
    if max(miss.share for miss in own.values()) < float("inf"):
        told = " and ".join(f"`{miss.constraint}` ({miss.text})" for miss in own.values())
        name = next(iter(own.values())).design
        yield f"No design meets all constraints together. The nearest is {name}, which does not meet {told}."


def _miss(row: Mapping[Any, Any], text: str) -> _Miss | None:
    """Amount by which the design of a row misses a constraint. None if the constraint does not compare one result with
    a number, or if the result is not known.
    """
    limit = _limit(text)
    if limit is None or not isinstance(row.get(limit.name), int | float):
        return None
    value = float(row[limit.name])
    if value != value:
        return None
    share = abs(value - limit.number) / (abs(limit.number) or 1.0)
    return _Miss(share, str(row["design"]), value, text, limit)


@cache
def _limit(text: str) -> Limit | None:
    """Limit of a violated constraint. None if the text has no limit, as in `area_mm2 <= 4: area_mm2 is not known`."""
    try:
        return read_expression(text).limit
    except ExpressionError:
        return None
