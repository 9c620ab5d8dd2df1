"""Changes of one number of a hardware file: a port, a memory, a side of the array, an energy (docs/explain.md)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.errors import KeyPath
from tilewright.units import BANDWIDTH_UNITS, NUMBER_PATTERN
from tilewright.yamlfile import YamlDocument, items, table

BANDWIDTH, SIZE, SIDE, ENERGY = "bandwidth", "size", "array side", "energy"
"""Kinds of changes."""
_ARRAYS = ("operational_array", "multipliers")
_UNIT_ENERGIES = ("unit_energy", "multiplier_energy")
_OLD_WIDTHS = {"r_bw": "min_r_granularity", "w_bw": "min_w_granularity"}
"""Widths of older files -> the smallest part of a word."""
_QUANTITY = re.compile(rf"\s*({NUMBER_PATTERN})(\s*\S*)\s*")
_SIGNIFICANT = 12
"""Digits of numbers that have no end."""


@dataclass(frozen=True)
class Change:
    """A number of a hardware file that becomes another one."""

    kind: str
    path: KeyPath
    key: str
    """The path as text, ports by their names."""
    file: str
    line: int
    before: Any
    """As it is written."""
    after: Any
    more: bool
    """Whether the core gets more of something, or cheaper accesses; else something is taken away."""
    also: tuple[tuple[KeyPath, Any], ...] = ()
    """What has to change with it: a word is not narrower than its smallest part."""

    @property
    def settings(self) -> tuple[tuple[KeyPath, Any], ...]:
        """What it sets in the file."""
        return ((self.path, self.after), *self.also)

    @property
    def words(self) -> str:
        """The change for people."""
        return f"{self.key}: {self.before} -> {self.after}"


def possible_changes(document: YamlDocument, factor: Fraction) -> tuple[Change, ...]:
    """All changes of one number of a hardware file by a factor above 1, in the order of the file: what can be more,
    each followed by what can be taken away there. Numbers that would not change or be none are left out."""
    return tuple(_changes(document, factor))


def _changes(document: YamlDocument, factor: Fraction) -> Iterator[Change]:
    for kind, path, smallest in _numbers(table(document.data)):
        before = document.written(path)
        is_energy = kind == ENERGY
        for more in (True,) if is_energy else (True, False):
            after = scaled(before, 1 / factor if is_energy or not more else factor, is_whole=not is_energy)
            if after is None or after == before:
                continue
            also = () if more or smallest is None else _narrower(document, smallest, after)
            yield Change(
                kind, path, document.dotted(path), document.file, document.line_of(path), before, after, more, also
            )


def _numbers(data: Mapping[Any, Any]) -> Iterator[tuple[str, KeyPath, KeyPath | None]]:
    """(kind, path, path of the smallest part of a word or None) of the numbers of a core."""
    for name in _ARRAYS:
        array = table(data.get(name))
        for index, _ in enumerate(items(array.get("sizes"))):
            yield SIDE, (name, "sizes", index), None
        for key in _UNIT_ENERGIES:
            if key in array:
                yield ENERGY, (name, key), None
    for name, memory in table(data.get("memories")).items():
        here: KeyPath = ("memories", name)
        keys = table(memory)
        for kind, key in ((SIZE, "size"), (ENERGY, "r_cost"), (ENERGY, "w_cost")):
            if key in keys:
                yield kind, (*here, key), None
        for key, smallest in _OLD_WIDTHS.items():
            if key in keys:
                yield BANDWIDTH, (*here, key), (*here, smallest)
        for index, port in enumerate(items(keys.get("ports"))):
            if "bandwidth_max" in table(port):
                place = (*here, "ports", index)
                yield BANDWIDTH, (*place, "bandwidth_max"), (*place, "bandwidth_min")


def _narrower(document: YamlDocument, smallest: KeyPath, after: Any) -> tuple[tuple[KeyPath, Any], ...]:
    """The smallest part of a word made as narrow as the word, where it is wider."""
    part, word = (_quantity(value) for value in (document.written(smallest), after))
    return ((smallest, after),) if part is not None and word is not None and part > word else ()


def _quantity(value: Any) -> Fraction | None:
    """A width in bits a cycle; None for what is none."""
    match = _QUANTITY.fullmatch(str(value))
    if isinstance(value, bool) or match is None:
        return None
    unit = match[2].strip()
    scale = BANDWIDTH_UNITS.get(unit, 1 if not unit else None)
    return None if scale is None else Fraction(match[1].replace("_", "")) * scale


def scaled(value: Any, factor: Fraction, *, is_whole: bool) -> Any:
    """A number, or one with a unit as text, times a factor, written alike; None where it is no number, or none is left.

    `is_whole`: numbers without a unit are rounded down to whole ones.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    number = Fraction(match[1].replace("_", "")) * factor
    unit = match[2]
    if is_whole and not unit.strip():
        number = Fraction(int(number))
    if number <= 0:
        return None
    if isinstance(value, int) and number.denominator == 1:
        return int(number)
    if isinstance(value, str):
        return f"{_decimal(number)}{unit}"
    return float(number)


def _decimal(number: Fraction) -> str:
    return str(int(number)) if number.denominator == 1 else f"{float(number):.{_SIGNIFICANT}g}"
