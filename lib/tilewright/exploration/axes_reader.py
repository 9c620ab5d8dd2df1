"""Reads the axes of a space: from lists, ranges and choices, or from the columns of a design sheet."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.errors import KeyPath, Problem, Problems, nearest_name, shown
from tilewright.exploration.design_sheet import NAME_COLUMN, Sheet
from tilewright.exploration.laws import Value, name_problem
from tilewright.exploration.ranges import geometric, linear
from tilewright.exploration.space import ODDS, RESULTS, USES, Axis
from tilewright.exploration.space_schema import AxisEntry
from tilewright.hardware.dotted_paths import key_path
from tilewright.units import FieldError
from tilewright.validation import whole

RESERVED = (*RESULTS, *USES, *ODDS, NAME_COLUMN, "network")
"""Names of columns beside those of a space."""
_RANGE = ("from", "to", "factor", "step")


@dataclass(frozen=True)
class Setter:
    """Something that sets a value in the base."""

    path: KeyPath
    """What it sets."""
    place: KeyPath
    """Where the file of the space says so."""
    axis: str = ""
    """'' for a law."""
    choice: str = ""
    """The choice of the axis; '' where it has none."""


class AxesReader:
    """Finds what is wrong with axes; what is left of them is what is right."""

    def __init__(self, base: Any, problems: Problems) -> None:
        """`base` is the data of the hardware file, None if it cannot be read."""
        self.base = base
        self.problems = problems
        self.setters: list[Setter] = []

    def grid(self, entries: Mapping[str, AxisEntry | None]) -> tuple[Axis, ...]:
        """The axes of all combinations."""
        found = []
        for name, entry in entries.items():
            self.check_name(("axes", name), name)
            if entry is not None:
                values = self._values(name, entry) if entry.choices is None else tuple(entry.choices)
                if not values and not self.problems.has("axes", name):
                    allowed = "`values`, `choices`, or `from` and `to` with `factor` or `step`"
                    self.problems.at(("axes", name), "has no values", allowed=allowed)
                found.append(Axis(name, values, self._settings(name, entry, values)))
        return tuple(found)

    def sheet(
        self, entries: Mapping[str, AxisEntry | None], sheet: Sheet
    ) -> tuple[tuple[Axis, ...], tuple[tuple[int, ...], ...]]:
        """The axes of a design sheet, and for each design the places of its values in them."""
        axes, columns = [], []
        for name, entry in entries.items():
            self.check_name(("axes", name), name)
            if entry is not None and self._is_of_sheet(name, entry, sheet):
                place = sheet.columns.index(name)
                values = tuple(dict.fromkeys(row[place] for row in sheet.rows))
                axes.append(Axis(name, values, self._sheet_settings(name, entry, values, sheet)))
                columns.append(place)
        for place, column in enumerate(sheet.columns):
            if column not in entries and self._is_path(column, list(entries), sheet):
                values = tuple(dict.fromkeys(row[place] for row in sheet.rows))
                axes.append(Axis(column, values, self._settings_of_column(column, values, sheet)))
                columns.append(place)
        places = [{value: place for place, value in enumerate(axis.values)} for axis in axes]
        rows = [tuple(of[row[column]] for of, column in zip(places, columns, strict=True)) for row in sheet.rows]
        return tuple(axes), tuple(rows)

    def check_name(self, path: KeyPath, name: str) -> None:
        """Record why a name cannot be that of an axis or a law."""
        message = "means something else in tables of designs" if name in RESERVED else name_problem(name)
        if message:
            self.problems.at(path, message, name)

    def key_path(self, place: KeyPath, path: str, axis: str = "", choice: str = "") -> KeyPath | None:
        """What a dotted path at a place of the file sets; None if it sets nothing, which is recorded."""
        found = () if self.base is None else key_path(self.base, path)
        if isinstance(found, Problem):
            self.problems.at(place, f"'{path}': {found.message}", found.value, found.allowed, found.nearest)
            return None
        if found:
            self.setters.append(Setter(found, place, axis, choice))
        return found or None

    def check_setters(self) -> None:
        """Record where two things set one value, or one a part of what the other sets."""
        for place, one in enumerate(self.setters):
            for other in self.setters[:place]:
                is_other_choice = one.axis and one.axis == other.axis and one.choice != other.choice
                shorter, longer = sorted((one.path, other.path), key=len)
                if not is_other_choice and longer[: len(shorter)] == shorter:
                    where = self.problems.places.place_of(other.place)[2] if self.problems.places else ""
                    self.problems.at(one.place, f"sets what {where} sets too")
                    break

    def _values(self, name: str, entry: AxisEntry) -> tuple[Value, ...]:
        path: KeyPath = ("axes", name)
        if "values" in entry.model_fields_set:
            self._refuse(path, entry, _RANGE, "is of a range, not with `values`")
            self.problems.repeated((*path, "values"), entry.values or (), "stands in the list before")
            return tuple(dict.fromkeys(whole(entry.values)))
        given = entry.model_fields_set & set(_RANGE)
        if not given:
            return ()
        for key in (key for key in ("from", "to") if key not in given):
            self.problems.at(path, f"a range needs `{key}`")
        if len(given & {"factor", "step"}) != 1:
            self.problems.at(path, "a range needs one of `factor` and `step`")
        return self._range(path, entry)

    def _range(self, path: KeyPath, entry: AxisEntry) -> tuple[Value, ...]:
        first, last = getattr(entry, "from"), entry.to
        try:
            if first is not None and last is not None and entry.factor is not None and entry.step is None:
                return geometric(first, last, entry.factor)
            if first is not None and last is not None and entry.step is not None and entry.factor is None:
                return linear(first, last, entry.step)
        except FieldError as error:
            self.problems.at(path, error.message, allowed=error.allowed)
        return ()

    def _refuse(self, path: KeyPath, entry: AxisEntry, keys: Sequence[str], message: str) -> None:
        for key in keys:
            if key in entry.model_fields_set:
                self.problems.at((*path, key), message)

    def _settings(
        self, name: str, entry: AxisEntry, values: Sequence[Value]
    ) -> tuple[tuple[tuple[KeyPath, Any], ...], ...]:
        """What each value of an axis sets."""
        if entry.choices is not None:
            message = "not with `choices`, which say what they set"
            self._refuse(("axes", name), entry, ("values", *_RANGE, "path"), message)
            return tuple(self._choice(name, choice, table or {}) for choice, table in entry.choices.items())
        paths = list(self._paths(name, entry))
        return tuple(tuple((path, value) for path in paths) for value in values)

    def _paths(self, name: str, entry: AxisEntry) -> Iterator[KeyPath]:
        paths = entry.path or ()
        for place, path in enumerate(paths):
            where: KeyPath = ("axes", name, "path", place) if len(paths) > 1 else ("axes", name, "path")
            found = self.key_path(where, path, name)
            if found is not None:
                yield found

    def _choice(self, axis: str, choice: str, table: Mapping[str, Any]) -> tuple[tuple[KeyPath, Any], ...]:
        where = ("axes", axis, "choices", choice)
        found = [(self.key_path((*where, path), path, axis, choice), value) for path, value in table.items()]
        return tuple((path, value) for path, value in found if path is not None)

    # design sheets ----------------------------------------------------------------------------------------------------

    def _is_of_sheet(self, name: str, entry: AxisEntry, sheet: Sheet) -> bool:
        self._refuse(("axes", name), entry, ("values", *_RANGE), "values are in the design sheet")
        if name not in sheet.columns:
            message = f"the design sheet {sheet.file} has no such column"
            self.problems.at(("axes", name), message, nearest=nearest_name(name, sheet.columns))
        return name in sheet.columns

    def _sheet_settings(
        self, name: str, entry: AxisEntry, values: Sequence[Value], sheet: Sheet
    ) -> tuple[tuple[tuple[KeyPath, Any], ...], ...]:
        settings = self._settings(name, entry, values)
        if entry.choices is None:
            return settings
        choices = dict(zip(entry.choices, settings, strict=True))
        for value in values:
            if value not in choices:
                line = self._line_of(name, value, sheet)
                allowed, nearest = ", ".join(choices), nearest_name(str(value), list(choices))
                told = Problem("no such choice", sheet.file, line, name, shown(value), allowed, nearest)
                self.problems.found.append(told)
        return tuple(choices.get(str(value), ()) for value in values)

    def _is_path(self, column: str, axes: Sequence[str], sheet: Sheet) -> bool:
        if "." not in column:
            allowed, nearest = ", ".join(axes), nearest_name(column, axes)
            told = Problem("neither an axis nor a dotted path", sheet.file, 1, column, "", allowed, nearest)
            self.problems.found.append(told)
        return "." in column

    def _settings_of_column(
        self, column: str, values: Sequence[Value], sheet: Sheet
    ) -> tuple[tuple[tuple[KeyPath, Any], ...], ...]:
        found = () if self.base is None else key_path(self.base, column)
        if isinstance(found, Problem):
            told = Problem(found.message, sheet.file, 1, column, found.value, found.allowed, found.nearest)
            self.problems.found.append(told)
            return tuple(() for _ in values)
        if found:
            self.setters.append(Setter(found, ("designs",), column))
        return tuple(((found, value),) for value in values)

    @staticmethod
    def _line_of(column: str, value: Value, sheet: Sheet) -> int:
        place = sheet.columns.index(column)
        return next(line for line, row in zip(sheet.lines, sheet.rows, strict=True) if row[place] == value)
