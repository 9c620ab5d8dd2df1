"""Lists of whole numbers in options, such as `--batches 1,16` and `--contexts 1k,4k,1M`."""

import re
from collections.abc import Sequence

from tilewright.base.errors import InputError, Problem, Problems

_NUMBER = re.compile(r"(0|[1-9][0-9]{0,17})([kM]?)")
_SCALES = {"": 1, "k": 1024, "M": 1024 * 1024}
BATCHES, CONTEXTS = "batches", "contexts"
MOST_SAMPLES, MOST_POINTS = 1024 * 1024, 10_000
"""Limits on input: the largest allowed batch size, and the largest allowed number of contexts in a range
`first:last:how-many`.
"""


def whole_numbers(given: Sequence[object] | str, what: str, option: str, most: int | None = None) -> list[int]:
    """Distinct whole numbers in ascending order, from a text such as `2,4k` or from a list. They must be from 1 to
    `most`; None means no limit.

    In a text, k means 1,024 and M means 1,048,576. `what` names these numbers in messages. Raises InputError with all
    wrong values, each as it was written.
    """
    parts: Sequence[object] = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    read = [(part, _number(part) if isinstance(given, str) else part) for part in parts]
    wrong = [repr(part) for part, value in read if not _is_between(value, most)]
    if wrong or not read:
        between = f"whole numbers from 1 {'on' if most is None else f'to {most:,}'}"
        allowed = f"{between}, such as 512, 4k or 1M" if isinstance(given, str) else between
        values = wrong or ["none"]
        raise InputError(Problem(f"is not a {what}", path=option, value=one, allowed=allowed) for one in values)
    return sorted({value for _, value in read if isinstance(value, int)})


def batches_of(given: Sequence[object] | str) -> list[int]:
    """Distinct batch sizes in ascending order, from the value of the option --batches: a text, or a sequence of
    integers. Raises InputError with all wrong values.
    """
    return whole_numbers(given, "batch", BATCHES, MOST_SAMPLES)


def contexts_of(given: Sequence[object] | str, block: int = 1) -> list[int]:
    """Distinct contexts in ascending order, from the value of the option --contexts: a text, or a sequence of integers.

    A text is a list or a range `first:last:how-many`. The contexts of a range are rounded to multiples of `block`.
    Contexts below `block`, and a range with only one context, are not rounded. Raises InputError with all wrong values.
    """
    if not isinstance(given, str) or ":" not in given:
        return whole_numbers(given, "context", CONTEXTS)
    parts = given.split(":")
    if len(parts) != 3:
        raise InputError([Problem("is not a range", path=CONTEXTS, value=given, allowed="first:last:how-many")])
    from tilewright.tokens.table import spread

    problems = Problems()
    kinds = (("context", None), ("context", None), ("number of contexts", MOST_POINTS))
    found = [
        problems.attempt(whole_numbers, part, what, CONTEXTS, most)
        for part, (what, most) in zip(parts, kinds, strict=True)
    ]
    problems.finish()
    first, last, count = (numbers[0] for numbers in found if numbers)
    return spread(first, last, count, block)


def _number(text: object) -> int | None:
    match = _NUMBER.fullmatch(str(text))
    return int(match[1]) * _SCALES[match[2]] if match else None


def _is_between(value: object, most: int | None) -> bool:
    return type(value) is int and value >= 1 and (most is None or value <= most)
