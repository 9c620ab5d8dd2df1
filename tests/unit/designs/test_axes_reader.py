"""Ranges of values by factors and by steps; tables of designs (design sheets), whose faults have file and row."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.base.units import FieldError
from tilewright.designs.axes_reader import geometric, linear, read_sheet
from tilewright.designs.space_reader import read_space

from tests.unit.designs.space_cases import COLUMNS, ROWS, file_of, problems_of

WHOLE = st.integers(1, 200)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (geometric(32, 2048, 2), (32, 64, 128, 256, 512, 1024, 2048)),
        (geometric(32, 100, 2), (32, 64)),
        (geometric(4, 14, 1.5), (4.0, 6.0, 9.0, 13.5)),
        (geometric(0.25, 2, 2), (0.25, 0.5, 1.0, 2.0)),
        (geometric(1.0, 4.0, 2.0), (1, 2, 4)),
        (linear(64, 512, 64), (64, 128, 192, 256, 320, 384, 448, 512)),
        (linear(0.1, 0.5, 0.1), (0.1, 0.2, 0.3, 0.4, 0.5)),
        (linear(-2, 2, 2), (-2, 0, 2)),
        (linear(3, 3, 1), (3,)),
        (linear(3, 3.5, 1), (3,)),
    ],
)
def test_values(found: tuple[float, ...], wanted: tuple[float, ...]) -> None:
    """Ranges include both ends, keep decimal numbers exact, and have whole numbers only if all are whole."""
    assert found == wanted
    assert list(map(type, found)) == list(map(type, wanted))


@given(WHOLE, WHOLE, WHOLE)
def test_whole_steps_are_those_of_range(first: int, length: int, step: int) -> None:
    """Whole steps equal those of Python's `range`."""
    assert linear(first, first + length, step) == tuple(range(first, first + length + 1, step))


@given(WHOLE, st.integers(0, 10**6), st.sampled_from([1.1, 1.25, 1.5, 2, 3, 10]))
def test_factors_are_never_passed(first: int, more: int, factor: float) -> None:
    """Each value is the factor times the previous one, and one more value would exceed the range."""
    found = geometric(first, first + more, factor)
    assert found[0] == first
    assert all(later / earlier == pytest.approx(factor) for earlier, later in itertools.pairwise(found))
    assert found[-1] <= first + more < found[-1] * factor * (1 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((geometric, 1, 8, 1), "factor must be greater than 1"),
        ((geometric, 1, 8, 0.5), "factor must be greater than 1"),
        ((geometric, 0, 8, 2), "must begin above 0"),
        ((geometric, 8, 4, 2), "the range is empty"),
        ((linear, 1, 8, 0), "step must be greater than 0"),
        ((linear, 8, 1, -1), "step must be greater than 0"),
        ((linear, 8, 1, 1), "the range is empty"),
        ((linear, 0, 1, 1e-9), "too many values"),
    ],
)
def test_what_is_no_range(arguments: tuple[object, ...], said: str) -> None:
    """A wrong range is refused with its reason."""
    make, *numbers = arguments
    with pytest.raises(FieldError) as raised:
        make(*numbers)  # type: ignore[operator]
    assert said in str(raised.value)


AXES = f"""
axes:
  rows: {{path: {ROWS}}}
  columns: {{path: {COLUMNS}}}
  memory: {{choices: {{small: {{memories.sram.size: 1024}}, large: {{}}}}}}
designs: designs.tsv
"""


def sheet(folder: Path, text: str, name: str = "designs.tsv") -> Path:
    """Write a sheet, with tabs in place of spaces."""
    path = folder / name
    path.write_text(text if name.endswith(".csv") else text.replace(" ", "\t"))
    return path


def told_of(folder: Path, text: str) -> list[str]:
    """Return the problems of a sheet, without the name of its file."""
    path = sheet(folder, text)
    with pytest.raises(InputError) as raised:
        read_sheet(path)
    return [str(problem).removeprefix(f"{path}:") for problem in raised.value.problems]


def test_designs_are_rows(tmp_path: Path) -> None:
    """The rows of a sheet are designs with axes, choices, dotted paths and names; comments are skipped."""
    sheet(
        tmp_path,
        "rows design memory columns memories.sram.r_cost\n"
        "# a comment\n8 first small 16 0.5\n\n16 second large 16 7\n8 third small 32 0.5\n",
    )
    space = read_space(file_of(tmp_path, AXES))
    assert len(space) == space.count_allowed() == 3
    assert space.value_names == ("rows", "columns", "memory", "memories.sram.r_cost")
    assert [space.design_name(index) for index in range(3)] == ["first", "second", "third"]
    assert [tuple(space.design(index).values.values()) for index in range(3)] == [
        *((8, 16, "small", 0.5), (16, 16, "large", 7), (8, 32, "small", 0.5))
    ]
    hardware = [space.design(index).hardware for index in range(3)]
    assert [one["operational_array"]["sizes"] for one in hardware] == [[8, 16], [16, 16], [8, 32]]
    assert [one["memories"]["sram"]["size"] for one in hardware] == [1024, "128 KiB", 1024]
    assert [one["memories"]["sram"]["r_cost"] for one in hardware] == [0.5, 7, 0.5]


def test_kinds_of_values(tmp_path: Path) -> None:
    """Cells are numbers, true, false or text; a .csv file has commas and may begin with a byte-order mark."""
    path = tmp_path / "it.csv"
    path.write_bytes('a,b,c,d\r\n1,0.5,TRUE,"64 KiB"\r\n1_000,1e-3,false,x\r\n'.encode("utf-8-sig"))
    found = read_sheet(path)
    assert found.columns == ("a", "b", "c", "d")
    assert found.rows == ((1, 0.5, True, "64 KiB"), (1000, 0.001, False, "x"))
    assert (found.names, found.lines) == ((), (2, 3))


def test_without_names_designs_are_counted(tmp_path: Path) -> None:
    """Designs without names are numbered, as in a space of axes."""
    sheet(tmp_path, "rows columns memory\n8 8 small\n16 8 small\n")
    space = read_space(file_of(tmp_path, AXES))
    assert [space.design_name(index) for index in range(2)] == ["it-0", "it-1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["1 the file is empty"]),
        ("rows\n", ["1 holds no design"]),
        ("design\nx\n", ["1 the sheet has no column besides the names of the designs"]),
        (
            "rows columns\n8 9\n8\n8 9 10\n",
            [
                "3 the number of cells differs from the number of columns in the heading, got 1 cells (allowed: 2)",
                "4 the number of cells differs from the number of columns in the heading, got 3 cells (allowed: 2)",
            ],
        ),
        ("rows rows\n8 9\n", ["1 rows: two columns have this name"]),
        ("rows  x\n8 9 10\n", ["1 a column has no name, got column 2"]),
        ("rows\n8\n8x\n", ["3 rows: is not a number, although other values in this column are numbers, got '8x'"]),
        ("rows\n8\nnan\n", ["3 rows: is not a number, although other values in this column are numbers, got 'nan'"]),
        ("rows\n8\n1e999\n", ["3 rows: is not a finite number, got '1e999'"]),
        ("rows columns\n8 9\n 9\n", ["3 rows: no value"]),
        ("rows\n8\n9\n8\n", ["4 repeats the values on line 2: remove one of the two lines"]),
        (
            "rows design\n8 a\n9 a\n10 b/c\n",
            [
                "3 design: repeats the name on line 2",
                "4 design: not a name, got 'b/c' (allowed: letters, digits, _ . + -)",
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_sheet(text: str, said: list[str], tmp_path: Path) -> None:
    """All faults of a sheet are reported in the order of lines."""
    assert told_of(tmp_path, text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "rows columns memori\n8 8 small\n",
            "1 memori: must be the name of an axis, or a dotted path (allowed: rows, columns, memory)",
        ),
        (
            "rows columns memory\n8 8 smal\n",
            "2 memory: no such choice, got 'smal' (allowed: small, large) (did you mean",
        ),
        ("rows columns memory memories.srm.size\n8 8 small 4\n", "1 memories.srm.size: the base file has no such key"),
    ],
)
def test_what_does_not_fit_the_space(text: str, said: str, tmp_path: Path) -> None:
    """Unknown columns and choices of a sheet are refused."""
    path = sheet(tmp_path, text)
    messages = [str(problem) for problem in problems_of(file_of(tmp_path, AXES))]
    assert any(message.startswith(f"{path}:{said}") for message in messages), messages


def test_what_the_file_and_the_sheet_say_twice(tmp_path: Path) -> None:
    """A conflict between file and sheet is refused: repeated values, missing columns, and values of a law."""
    sheet(tmp_path, "rows columns memories.sram.r_cost\n8 8 3\n")
    text = AXES.replace(f"{{path: {ROWS}}}", f"{{path: {ROWS}, values: [3]}}") + "laws: {memories.sram.r_cost: rows}\n"
    path = file_of(tmp_path, text)
    said = [str(problem).removeprefix(f"{path}:") for problem in problems_of(path)]
    assert said == [
        "2 axes.rows.values: must be removed: the design sheet has the values",
        f"4 axes.memory: the design sheet {tmp_path / 'designs.tsv'} has no such column",
        "6 laws.memories.sram.r_cost: conflicts with designs: both set the same value",
    ]


def test_no_sheet(tmp_path: Path) -> None:
    """A missing sheet, a folder and a file that is not text are refused."""
    assert "no such file" in str(problems_of(file_of(tmp_path, AXES))[0])
    with pytest.raises(InputError, match="cannot be read"):
        read_sheet(tmp_path)
    (tmp_path / "designs.tsv").write_bytes(b"rows\n\xff\n")
    with pytest.raises(InputError, match=r"designs\.tsv:2 is not UTF-8 text"):
        read_sheet(tmp_path / "designs.tsv")
