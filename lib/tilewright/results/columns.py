"""Columns of tables: each column has a name, a meaning, and a function that computes its value.

A table is a tuple of columns over rows of one kind: runs, layers, cores, memories, or links. The tuple defines the CSV
file, the table for notebooks and the list of columns in docs/artifacts/tables.md.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tilewright.base.errors import InputError, Problem

if TYPE_CHECKING:  # pandas is slow to load, and rows alone need none
    import pandas

Thing = TypeVar("Thing")


class _Absent:
    """Type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Value of a column if the object of the row (such as a run) lacks the property that the column shows."""


@dataclass(frozen=True)
class Column(Generic[Thing]):
    """Column of a table, with one number or text for each row (a run, layer, core, memory or link)."""

    key: str
    """Name of the column in tables. The name contains the unit."""
    sentence: str
    """Sentence with the meaning of the column, for documentation. It ends with a period."""
    value: Callable[[Thing], Any]
    """Function that computes the value from the object that the row shows. It returns None if the value is not known,
    and ABSENT if the column does not apply.
    """
    words: str = ""
    """Heading on the page of results; '' for a column that the page does not show."""
    unit: str = ""
    """Unit on the page of results: '' for a text or a plain number, `%` for a share."""
    scale: float = 1.0
    """Divisor that converts a value of the table to the unit of the page of results."""
    is_number: bool = True
    is_cost: bool = False
    """True if smaller values are better. If so, the column can be an axis of a Pareto front."""
    flow: str = ""
    """Flow whose runs have the column (SINGLE or MULTI); '' for both flows."""


@dataclass(frozen=True)
class Columns(Generic[Thing]):
    """Group of columns whose number and names depend on the data, such as one column for each energy term of a run."""

    keys: str
    """Names of the columns for documentation, with a placeholder: `<term>_energy_pj`."""
    sentence: str
    values: Callable[[Thing], Mapping[str, Any]]
    flow: str = ""
    """Flow whose runs have the columns (SINGLE or MULTI); '' for both flows."""


Table = Sequence[Column[Thing] | Columns[Thing]]
"""Columns of a table in order. The rows of the table are objects of one type, such as runs."""


def attribute(key: str, sentence: str) -> Column[Any]:
    """Column that shows the attribute `key` of an object, under the same name. `sentence` is the meaning of the
    column.
    """
    return Column(key, sentence, lambda thing: getattr(thing, key))


def cells(table: Table[Thing], thing: Thing) -> Iterator[tuple[str, Any]]:
    """Pairs (name, value) of the columns that apply to an object, such as a run."""
    for one in table:
        if isinstance(one, Columns):
            yield from one.values(thing).items()
        elif (value := one.value(thing)) is not ABSENT:
            yield one.key, value


def row_of(table: Table[Thing], thing: Thing) -> dict[str, Any]:
    """Values of an object, by column name. Raises InputError if two columns have the same name."""
    row: dict[str, Any] = {}
    for key, value in cells(table, thing):
        if key in row:
            raise InputError([Problem("is the name of two columns", "columns of a table", value=key)])
        row[key] = value
    return row


def frame_of(table: Table[Thing], things: Iterable[Thing]) -> "pandas.DataFrame":
    """Table for CSV files and notebooks, with a row for each object. An empty table has the columns of `fixed_keys`."""
    import pandas

    rows = [row_of(table, thing) for thing in things]
    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=[*fixed_keys(table)])


def fixed_keys(table: Table[Thing]) -> Iterator[str]:
    """Names of the single columns; groups of columns are left out."""
    return (one.key for one in table if isinstance(one, Column))
