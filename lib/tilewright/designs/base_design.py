"""Comparison of the best design with the base design, which has the values of the hardware file on all axes."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.base.errors import KeyPath
from tilewright.base.units import FieldError, parse_size_bits
from tilewright.designs.advice_text import excess_text
from tilewright.designs.answer import Answer
from tilewright.designs.effects import best_first, excess_over
from tilewright.designs.front import Front
from tilewright.designs.space import Space

MOST_TRIED = 10_000
"""Largest number of combinations of axis values that are tried. Of each axis, only values that leave the hardware file
unchanged are tried. Values of an axis that only laws use change nothing in the file, so all of them are tried.
"""


def base_design(space: Space) -> int | None:
    """Index of the design that has the values of the hardware file on all axes. None if there is no such design, or if
    the function would have to try too many designs.
    """
    fitting = [
        [position for position, settings in enumerate(axis.settings) if _are_of_base(space, settings)]
        for axis in space.axes
    ]
    tried = itertools.islice(itertools.product(*fitting), MOST_TRIED)
    indexes = (index for positions in tried if (index := space.index_of(positions)) is not None)
    return next((index for index in indexes if _are_of_base(space, space.outline(index).settings)), None)


def base_sentence(space: Space, front: Front, measure: str) -> str:
    """Sentence that compares the base design with the design that has the least `measure`. The base design has the
    values of the hardware file on all axes. '' if the base design does not exist, or is not among the compared designs.
    """
    index = base_design(space)
    rows = best_first(front, measure)
    own = rows[rows["index"] == index]
    if own.empty:
        return ""
    best, base, unit = rows.iloc[0], own.iloc[0], front.measures[measure]
    excess = excess_over(float(base[measure]), float(best[measure]))
    of_best = (
        excess_text(excess, "more than", f"that of {best['design']}") if excess else "the least of all compared designs"
    )
    told = (
        f"{base['design']} has the values of the hardware file without changes: its {unit.words} is"
        f" {unit.text(base[measure])} {unit.unit}, {of_best}."
    )
    if space.mapping is None:
        told += " The space has no mapping file, so a run of the hardware file with a mapping file has other costs."
    return told


def with_base_design(space: Space, answer: Answer) -> Answer:
    """Answer with a sentence that compares the base design with the design that has the least EDP over all networks.
    The base design has the values of the hardware file on all axes. The answer is unchanged if not all compared designs
    have rows.
    """
    if not answer.overall.is_whole or answer.overall.compared.empty:
        return answer
    _, _, product, _ = answer.overall.measures
    told = base_sentence(space, answer.overall, product)
    return replace(answer, base_notes=(told,) if told else ())


def _are_of_base(space: Space, settings: Sequence[tuple[KeyPath, Any]]) -> bool:
    return all(_is_equal(_value_at(space.base, path), value) for path, value in settings)


def _value_at(data: Any, path: KeyPath) -> Any:
    """Value at a path; None if there is none."""
    for key in path:
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _is_equal(one: Any, other: Any) -> bool:
    """True if two values of a hardware file are equal. Equal sizes can have different units, such as 1 KiB and 8192."""
    if one == other:
        return True
    try:
        return one is not None and other is not None and parse_size_bits(one) == parse_size_bits(other)
    except (FieldError, TypeError, ValueError):
        return False
