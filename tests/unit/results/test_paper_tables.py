"""Tables for a paper: units by the largest value, decimals by column, and names that LaTeX prints as they are."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.harmless import latex
from tilewright.results.latex_layout import (
    BREAKING_GAIN,
    POINTS_AN_INCH,
    SIZES,
    layout_of,
    pieces,
    scaled_layout_of,
    text_points,
)
from tilewright.results.paper_notices import noting
from tilewright.results.paper_tables import PaperTable, common_units, paper_tables, write_table
from tilewright.results.sheet import LEAST_POINTS, drawn_for

NAMES = (
    "a_b",
    "50% & more",
    "#1 {x} $y$",
    "~^\\end{tabular}",
    "[1ex]",
    "--",
    "<>|\"'`",
    "rf\u202e_2B",
    "µJ·m²",
    "10⁻⁶ ≤ Σ → 10³",
)
TABLE = pandas.DataFrame(
    {
        "layer": NAMES[:3],
        "mac_count": [118_013_952, 0, 7],
        "energy_pj": [2.654e10, 3.1e4, 0.0],
        "other_energy_pj": [1.0e8, None, 5.0e7],
        "latency_cycles": [2_545_018, 12, 0],
        "edp_pj_cycles": [6.7e16, 3.7e5, 0.0],
        "stall_share": [0.5, 0.00001, -0.25],
    }
)


def read_latex(text: str) -> str:
    """The text that LaTeX prints for the result of `latex`; raises ValueError for anything unknown."""
    names = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">"}
    names |= {"textbar": "|", "char34": '"', "textasciigrave": "`", "textquotesingle": "'"}
    formulas = {
        r"\mu": "µ",
        **{f"^{digit}": sign for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        r"\cdot": "·",
        r"\times": "×",
        "-": "−",
    }
    formulas |= {r"\leq": "≤", r"\geq": "≥", r"\rightarrow": "→", r"\Sigma": "Σ", "^-": "⁻"}
    text = re.sub(r"\\ensuremath\{(.*?)\}", lambda formula: formulas[formula[1]], text)
    found, place = "", 0
    token = re.compile(r"\\([A-Za-z]+(?:34)?)\{\}|\\([{}_%&#$])|\{([\[\]])\}|(-)\{\}|([^\\{}_%&#$~^\[\]<>|\"'`-])")
    while place < len(text):
        match = token.match(text, place)
        if match is None:
            raise ValueError(text[place:])
        command, *others = match.groups()
        found += names[command] if command else next(filter(None, others))
        place = match.end()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_latex_prints_the_name(name: str) -> None:
    """LaTeX prints each character, and takes none for a command, a column, a comment or a ligature."""
    assert read_latex(latex(name)) == name.replace("\u202e", "\\u202e")


def test_random_names_are_printed() -> None:
    """LaTeX prints random names of all printable ASCII characters."""
    rng = np.random.default_rng(11)
    for _ in range(200):
        name = "".join(map(chr, rng.integers(32, 127, 12)))
        assert read_latex(latex(name)) == name


def test_one_unit_for_all_energies() -> None:
    """All energies of the table have one unit, in which the smallest shows two digits.

    Cycles and counts stay whole, and shares are percentages.
    """
    shown = PaperTable.of(TABLE)
    assert shown.headings == (
        *("layer", "mac count", "energy [µJ]", "other energy [µJ]", "latency [cycles]"),
        *("EDP [J cycles]", "stall share [%]"),
    )
    assert shown.rows[0][1:] == ("118,013,952", "26,540.000", "100.0", "2,545,018", "67,000.000", "50.000")
    assert shown.rows[1][1:] == ("0", "0.031", "-", "12", "< 0.001", "0.001")
    assert shown.rows[2][1:] == ("7", "0.000", "50.0", "0", "0.000", "-25.000")
    assert shown.are_numbers == (False, *[True] * 6)


def test_small_numbers_stay_readable() -> None:
    """A column gets, if possible, a unit in which the least number is at least 0.01 and the largest is below 10^5.

    Then no number is written as `< limit`. The largest number is at least 1. The unit of the terminal is preferred.
    """
    rng = np.random.default_rng(8)
    for _ in range(200):
        values = 10 ** rng.uniform(0, 12, 4)
        shown = PaperTable.of(pandas.DataFrame({"energy_pj": values}))
        unit = {"pJ": 1, "nJ": 1e3, "µJ": 1e6, "mJ": 1e9, "J": 1e12}[shown.headings[0].split("[")[1].rstrip("]")]
        assert max(values) >= unit
        could = [
            one for one in (1, 1e3, 1e6, 1e9, 1e12) if min(values) >= 0.01 * one and one <= max(values) < 1e5 * one
        ]
        assert not could or unit == (1e6 if 1e6 in could else max(could))
        assert not could or not any(cell.startswith("<") for (cell,) in shown.rows)


def test_units_and_names_are_those_of_the_terminal() -> None:
    """EDP has capital letters, a latency in seconds is called time, and units given by the caller are preferred."""
    table = pandas.DataFrame(
        {
            "energy_pj": [4.1e9, 6e7],
            "latency_s": [4.8e-3, 1.6e-4],
            "edp_pj_s": [1.3e7, 9e3],
            "latency_cycles": [7, 8],
        }
    )
    usual = {"_pj": (1e6, "µJ"), "_s": (1e-6, "µs"), "_pj_s": (1e3, "nJ s")}
    shown = PaperTable.of(table, usual=usual)
    assert shown.headings == ("energy [µJ]", "time [µs]", "EDP [nJ s]", "latency [cycles]")
    assert shown.rows[1] == ("60", "160", "9.0", "8")
    assert PaperTable.of(table).headings[:2] == ("energy [µJ]", "time [ms]")
    assert PaperTable.of(table * 1e6, usual=usual).headings[0] == "energy [J]"


def test_tables_of_one_report_have_common_units() -> None:
    """Tables of one report have one unit for the EDP, and small numbers in this unit are not rounded to 0."""
    large = pandas.DataFrame({"energy_pj": [4.1e9], "edp_pj_cycles": [3e16], "latency_s": [4e-3]})
    small = pandas.DataFrame({"other_energy_pj": [6e4], "edp_pj_cycles": [5e9], "latency_s": [7e-7]})
    alone = [PaperTable.of(table).headings for table in (large, small)]
    assert [heads[1:] for heads in alone] == [("EDP [J cycles]", "time [ms]"), ("EDP [mJ cycles]", "time [ns]")]
    units = common_units([(large, ()), (small, ())])
    assert [PaperTable.of(table, usual=units).headings for table in (large, small)] == [
        ("energy [µJ]", "EDP [J cycles]", "time [µs]"),
        ("other energy [µJ]", "EDP [J cycles]", "time [µs]"),
    ]
    assert PaperTable.of(small, usual=units).rows == (("0.060", "0.005", "0.700"),)
    only = common_units([(large, ("energy_pj",)), (small, ("latency_s",))])
    assert only == {"_pj": (1e6, "µJ"), "_s": (1e-9, "ns")}


def test_zero_has_no_sign() -> None:
    """A zero has no sign, even if a subtraction of equal numbers made it negative."""
    shown = PaperTable.of(pandas.DataFrame({"energy_pj": [-0.0, 0.0, 1.5e6, -1.5e6, -1.0]}))
    assert [cell for (cell,) in shown.rows] == ["0.000", "0.000", "1.500", "-1.500", "> -0.001"]


def test_no_powers_of_ten() -> None:
    """Cells have no powers of ten, and equal the numbers up to rounding, for numbers of all magnitudes."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        values = 10 ** rng.uniform(0, 15, 5)
        shown = PaperTable.of(pandas.DataFrame({"energy_pj": values}))
        unit = {"pJ": 1, "nJ": 1e3, "µJ": 1e6, "mJ": 1e9, "J": 1e12}[shown.headings[0].split("[")[1].rstrip("]")]
        assert max(values) / unit >= 1
        for (cell,), value in zip(shown.rows, values, strict=True):
            assert "e" not in cell
            if cell.startswith("<"):
                assert 0 < value / unit < float(cell[2:])
            else:
                digits = len(cell.partition(".")[2])
                assert abs(float(cell.replace(",", "")) - value / unit) <= 0.51 * 10**-digits


def test_markdown_and_latex_have_the_same_cells() -> None:
    """Markdown and LaTeX have the same cells in the same order."""
    shown = PaperTable.of(TABLE)
    lines = shown.latex().splitlines()
    assert lines[1] == r"\begin{tabular}{lrrrrrr}"
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    body = [line.removesuffix(r" \\").split(" & ") for line in lines if line.endswith(r" \\")]
    read = [[read_latex(cell).replace("−", "-") for cell in row] for row in body]
    assert read == [list(shown.headings), *map(list, shown.rows)]
    assert shown.markdown().splitlines()[1] == "|---|---:|---:|---:|---:|---:|---:|"
    assert len(shown.markdown().splitlines()) == 2 + len(TABLE)


def test_a_table_of_two_quantities_is_two_tables() -> None:
    """A table of two quantities becomes two tables, so that no column has two units."""
    table = pandas.DataFrame(
        {"quantity": ["energy_pj", "latency_cycles"], "layer": ["a", "b"], "value": [3e6, 7], "share": [0.5, 1.0]}
    )
    found = dict(paper_tables(table))
    assert list(found) == ["-energy_pj", "-latency_cycles"]
    assert found["-energy_pj"].headings == ("layer", "value [µJ]", "share [%]")
    assert found["-latency_cycles"].rows == (("b", "7", "100.0"),)


def test_files(tmp_path: Path) -> None:
    """Markdown and LaTeX files are written for a paper only; the CSV file is the same in both cases."""
    path = tmp_path / "t.csv"
    assert write_table(TABLE, path) == (path,)
    plain = path.read_bytes()
    with drawn_for("column"):
        paths = write_table(TABLE, path, ("layer", "energy_pj", "of_another_table"))
    assert [one.name for one in paths] == ["t.csv", "t.md", "t-column.tex"]
    assert path.read_bytes() == plain
    assert paths[1].read_text().splitlines()[0] == r"| layer | energy \[µJ\] |"


def test_columns_with_one_text_are_told_below() -> None:
    """A column of equal texts is left out of a paper and stated below the table.

    It stays if the table has no other column of texts, or a single row.
    """
    table = pandas.DataFrame({"network": ["a_b"] * 2, "design": ["x", "y"], "objective": ["EDP"] * 2, "rows": [8, 8]})
    shown = PaperTable.of(table)
    assert (shown.headings, shown.same) == (("design", "rows"), ("network a_b", "objective EDP"))
    assert shown.markdown().endswith("\n\nIn all rows: network a_b; objective EDP.\n")
    assert r"% In all rows: network a\_b; objective EDP." in shown.latex(3.4).splitlines()
    assert PaperTable.of(table[["network", "rows"]]).headings == ("network", "rows")
    assert PaperTable.of(table[:1]).headings == ("network", "design", "objective", "rows")
    assert PaperTable.of(table[[]]).latex(3.4) == "% no columns\n"


def random_table(seed: int) -> PaperTable:
    """A table with columns of names and of numbers."""
    rng = np.random.default_rng(seed)
    words = ("memories", "dram", "rw_port_1", "bandwidth_max", "conv1", "least energy", "layer4.0.downsample")
    names = {
        f"name_{place}": [".".join(rng.choice(words, rng.integers(1, 4))) for _ in range(6)]
        for place in range(rng.integers(1, 3))
    }
    ends = ("energy_pj", "latency_cycles", "area_mm2", "sram_kib", "stall_share")
    numbers = {f"x_{end}": (10 ** rng.uniform(0, 9, 6)).tolist() for end in ends[: rng.integers(1, 6)]}
    return PaperTable.of(pandas.DataFrame(names | numbers))


@pytest.mark.parametrize("inches", [3.4, 7.0])
def test_layouts_fit_their_width(inches: float) -> None:
    """Widths of columns and gaps add up to at most the width, and a wider place needs no smaller font."""
    kinds = set()
    for seed in range(60):
        table = random_table(seed)
        layout = layout_of(table.headings, table.rows, table.are_numbers, inches)
        wide = layout_of(table.headings, table.rows, table.are_numbers, 30.0)
        assert (wide.size, any(wide.wrapped_points)) == (SIZES[0], False)
        assert [" ".join(lines) for lines in layout.headings] == list(table.headings)
        kinds.add((layout.does_fit, any(layout.wrapped_points)))
        if not layout.does_fit:
            continue
        total = 2 * layout.size.gap_points * len(table.headings)
        for place, wrapped in enumerate(layout.wrapped_points):
            cells = [row[place] for row in table.rows]
            if wrapped:
                assert not table.are_numbers[place]
                parts = [pieces(cell, layout.break_names) for cell in cells]
                assert ["".join(part) for part in parts] == cells
                cells = [piece for part in parts for piece in part]
            widest = max(text_points(text, layout.size) for text in (*cells, *layout.headings[place]))
            assert wrapped is None or wrapped >= widest * (1 - 1e-9)
            total += wrapped or widest
        assert total <= inches * POINTS_AN_INCH * (1 + 1e-9)
    assert kinds == {(True, False), (True, True), (False, False)} or inches == 7.0


def wide_table(rows: int, columns: int = 12) -> PaperTable:
    """A table with a column of long names and many columns of numbers."""
    names = [f"layer{place}.the_second_feature_pyramid_branch.downsample" for place in range(rows)]
    numbers = {f"long_heading_of_column_{place}": [1.5e6 + place] * rows for place in range(columns)}
    return PaperTable.of(pandas.DataFrame({"name": names, **numbers}), below=["half of the rows."])


def rows_of(text: str) -> list[list[str]]:
    """Cells of the rows of all tables in a LaTeX text, without headings and notes."""
    bodies = re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL)
    return [line.removesuffix(r" \\").split(" & ") for body in bodies for line in body.splitlines()]


def test_a_table_that_is_a_little_too_wide_is_scaled() -> None:
    """A table that is a little too wide is scaled; a comment names the environment for its full size."""
    numbers = {f"x_{place}": [1.5e6, 2.0] for place in range(5)}
    text = PaperTable.of(pandas.DataFrame({"name": ["a", "b"], **numbers})).latex(2.9)
    assert "% needs more than 2.9 inches: place it in table*" in text
    assert r"\ifdim\width>\linewidth" in text
    assert text.count(r"\begin{tabular}") == 1


def test_columns_without_room_are_in_further_tables() -> None:
    """Columns without room go into further tables, each with the names of rows; the note is below the last table."""
    table = wide_table(2, 8)
    assert table.points(3.4) < LEAST_POINTS
    (text,) = table.latex_files(3.4)
    assert r"\resizebox" not in text
    rows = rows_of(text)
    assert len(rows) == 2 * text.count(r"\begin{tabular}")
    assert sum(len(row) - 1 for row in rows) == 2 * 8
    names = {row[0].replace(r"\allowbreak{}", "").partition(r"\strut ")[2].removesuffix(r"\strut}") for row in rows}
    assert {read_latex(name) for name in names} == {row[0] for row in table.rows}
    assert text.rindex("half ") > text.rindex(r"\bottomrule")
    assert text.count(r"\multicolumn") == 1


def test_all_tabulars_of_a_table_have_one_font() -> None:
    """All tabulars of a table are in one group with one font, also a tabular with few columns at the end."""
    for columns in range(3, 12):
        for text in wide_table(3, columns).latex_files(3.4):
            lines = [line for line in text.splitlines() if not line.startswith("%")]
            begins = [line for line in lines if line.startswith(r"\begingroup")]
            assert len(begins) <= 1
            if begins:
                assert (lines[0], lines[-1]) == (begins[0], r"\endgroup")
    assert any(text.count(r"\begin{tabular}") > 1 for text in wide_table(3, 9).latex_files(3.4))


def test_rows_beyond_a_page_are_in_further_files(tmp_path: Path) -> None:
    """Rows beyond a page go into further files, in order, with a notice; files of longer tables are removed.

    A further notice says if there are too many rows.
    """
    frame = pandas.DataFrame({"n": [f"name{place}" for place in range(100)], "energy_pj": np.arange(100.0)})
    with drawn_for("column"), noting() as noted:
        paths = write_table(frame, tmp_path / "t.csv")
        assert [path.name for path in paths] == ["t.csv", "t.md", "t-column.tex", "t-column-2.tex"]
        read = [row[0] for path in paths[2:] for row in rows_of(path.read_text())]
        assert read == frame["n"].tolist()
        assert noted == [
            "t-column.tex: 100 rows and 2 columns need more than one column: 2 files, t-column.tex, t-column-2.tex"
        ]
        write_table(frame[:5], tmp_path / "t.csv")
        assert not paths[3].exists()
        write_table(pandas.concat([frame] * 9), tmp_path / "t.csv")
    (told,) = noted[1:]
    assert told.startswith("t-column.tex: 900 rows are taller than 6 pages; no option leaves out rows: delete the rows")
    assert len(rows_of(paths[2].read_text())) == 900


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_long_names_need_no_small_text(tmp_path: Path) -> None:
    """Tables of long names fit into a column's width and a page's height without scaling, as LaTeX confirms."""
    word = "secondfeaturepyramidbranchofthenetwork"
    tables = [wide_table(rows, columns) for rows in (2, 30, 70) for columns in (1, 4, 9)]
    texts = {place: [f"{word}_{place}_{row}" for row in range(40)] for place in "abcd"}
    tables += [PaperTable.of(pandas.DataFrame({**texts, "energy_pj": np.arange(40.0)}))]
    tables += [PaperTable.of(pandas.DataFrame({"layer": [word * 2] * 3, "latency_cycles": range(3)}))]
    files = [text for table in tables for text in table.latex_files(3.4)]
    assert not any(table.faults(3.4) for table in tables)
    assert not any(r"\resizebox" in text for text in files)
    floats = "".join(f"\\begin{{table}}\\caption{{x}}{text}\\end{{table}}\\clearpage\n" for text in files)
    head = "\\documentclass{article}\\usepackage{booktabs,graphicx,textcomp}\\begin{document}\n"
    box = "\\setlength{\\textwidth}{3.4in}\\setlength{\\columnwidth}{3.4in}\\hsize=3.4in\\parindent=0pt\n"
    (tmp_path / "t.tex").write_text(f"{head}{box}{floats}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert "too large for page" not in done.stdout


def test_the_text_of_a_scaled_table_is_as_large_as_possible() -> None:
    """A table is laid out at the width that gives the largest text after scaling.

    The text is over 1.3 times as large as in a table that is laid out as wide as a page.
    """
    roles = ["choice", "runner-up; least energy; less energy, area", "least latency"]
    numbers = {name: [1885.1, 1757.2, 12930.5] for name in ("energy_pj", "latency_cycles", "edp_pj_cycles")}
    texts = {"role": roles, "design": [f"space-{place:03}" for place in range(3)], "sram": ["256 KiB"] * 2 + ["1 MiB"]}
    table = PaperTable.of(pandas.DataFrame({**texts, "rows": [48] * 3, **numbers, "area_mm2": [2.4, 1.5, 5.7]}))
    shape = table.headings, table.rows, table.are_numbers
    layout, page = scaled_layout_of(*shape, 2.6, 7.0), layout_of(*shape, 7.0)
    widths = [2.6 + 0.1 * step for step in range(45)]
    fitting = {width: layout_of(*shape, width) for width in widths if layout_of(*shape, width).does_fit}
    assert min(fitting) > 2.6
    points, width = max(
        (one.size.points * 2.6 / width / (BREAKING_GAIN if one.break_names else 1.0), -width)
        for width, one in fitting.items()
    )
    assert layout == fitting[-width]
    assert points > 1.3 * page.size.points * 2.6 / 7.0


def test_a_front_has_a_line_for_each_design() -> None:
    """A front has one line for each design, as names of designs are not broken for a few tenths of a point."""
    texts = {"design": [f"space-{place:03}" for place in range(9)], "sram": ["384 KiB", "192 KiB", "1536 KiB"] * 3}
    axes = {"rows": [32] * 9, "columns": [16, 24, 8] * 3, "dram": ["34 GB/s", "17 GB/s", "8.5 GB/s"] * 3}
    numbers = {"energy_pj": [2.6e9, 6e7, 9e8] * 3, "latency_s": [4.8e-3, 1.6e-4, 3e-3] * 3}
    rest = {"edp_pj_s": [1.2e7, 9e3, 2e6] * 3, "area_mm2": [2.585, 1.831, 0.632] * 3}
    shown = PaperTable.of(pandas.DataFrame({**texts, **axes, **numbers, **rest}))
    (text,) = shown.latex_files(3.4)
    assert text.count(r"\begin{tabular}") == 2
    assert r"\resizebox" not in text
    assert "allowbreak" not in text
    assert len(rows_of(text)) == 2 * 9


def decision_table(designs: int) -> PaperTable:
    """A table of a decision with many axes."""
    roles = ["choice; least energy", "runner-up; less area", "least latency; less latency", "least area", "less energy"]
    texts = {"role": roles, "design": [f"space-{place:03}" for place in range(5)], "sram": ["512 KiB"] * 4 + ["1 MiB"]}
    axes = {"rows": [32] * 4 + [8], "columns": [32] * 4 + [8], "cells": ["lstp"] * 4 + ["hp"], "port_bits": [512] * 5}
    numbers = {
        "energy_pj": [2.4e9] * 5,
        "latency_cycles": [2_611_390] * 4 + [35_314_225],
        "edp_pj_cycles": [1.36e17] * 5,
    }
    return PaperTable.of(pandas.DataFrame({**texts, **axes, **numbers, "area_mm2": [8.803] * 5}).iloc[:designs])


@pytest.mark.parametrize("designs", [1, 2, 3, 4])
def test_a_decision_has_readable_text_in_a_column(designs: int) -> None:
    """A decision table with exchanged rows and columns has text of at least 7 points without scaling, and no cell is
    broken.
    """
    table = decision_table(designs)
    turned = table.turned()
    assert turned.points(3.4) >= 7.0
    assert r"\resizebox" not in turned.latex(3.4)
    cells = [[table.headings[place], *(row[place] for row in table.rows)] for place in range(len(table.headings))]
    assert [list(turned.headings[1:]), *map(list, turned.rows)] == [cells[0][1:], *cells[1:]]
    assert "allowbreak" not in turned.latex(3.4)
    assert "space{-}000" not in turned.latex(3.4)
    assert "space-{}000" in turned.latex(3.4)


def test_the_comment_has_the_size_of_scaled_text() -> None:
    """The comment gives the font size after LaTeX has scaled the table."""
    numbers = {f"x_{place}": [1.5e6, 2.0] for place in range(5)}
    table = PaperTable.of(pandas.DataFrame({"name": ["a", "b"], **numbers}))
    size = float(re.findall(r"its text then has ([\d.]+) points", table.latex(2.9))[0])
    layout = scaled_layout_of(table.headings, table.rows, table.are_numbers, 2.9, 7.0)
    assert size == pytest.approx(layout.size.points * 2.9 / layout.inches(table.headings, table.rows), abs=0.05)
    assert LEAST_POINTS <= size < 7.0


def test_files_have_the_larger_text(tmp_path: Path) -> None:
    """Rows and columns are exchanged only in LaTeX, and only if asked."""
    frame = pandas.DataFrame({f"name_{place}": ["a long text", "b"] for place in range(20)})
    with drawn_for("column"):
        for may_turn, columns in ((False, 7), (True, 3)):
            write_table(frame, tmp_path / "t.csv", may_turn=may_turn)
            rows = (tmp_path / "t-column.tex").read_text().splitlines()
            assert (
                next(line for line in rows if "a long text" in line or r"a \allowbreak" in line).count(" & ")
                <= columns - 1
            )
            kinds = next(line for line in rows if line.startswith(r"\begin{tabular}"))
            assert len(kinds.rpartition("{")[2]) - 1 == columns
            assert (tmp_path / "t.md").read_text().splitlines()[1].count("---") == 20


def test_words_and_quantities_are_not_broken() -> None:
    """Lines end between words, and within a name only if the table does not fit otherwise."""
    assert pieces("runner-up; less area", break_names=False) == ["runner-up; ", "less ", "area"]
    assert pieces("rw_port_1", break_names=True) == ["rw_", "port_", "1"]
    assert pieces("512 KiB", break_names=True) == ["512 KiB"]
    assert pieces("array 58.1%; dram rw -1.4%") == ["array ", "58.1%; ", "dram ", "rw ", "-1.4%"]
    assert pieces("layer1.0.conv1") == ["layer1.", "0.", "conv1"]


@given(st.lists(st.one_of(st.from_regex(r"[a-z_]{1,8}[0-9]?\.[0-9]\.[a-z]{1,4}", fullmatch=True),
                          st.from_regex(r"-?[0-9]{1,3}\.[0-9]%", fullmatch=True)), min_size=1, max_size=6))  # fmt: skip
def test_numbers_are_never_broken(words: list[str]) -> None:
    """The pieces of a text make up the text, and each number is in one piece with its sign and percent sign."""
    text = " ".join(words)
    parts = pieces(text)
    assert "".join(parts) == text
    assert [one.strip() for one in parts if "%" in one] == [one for one in words if "%" in one]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_latex_fits_the_column(tmp_path: Path) -> None:
    """LaTeX reports no table that is wider than its place."""
    tables = "\n\n".join(random_table(seed).latex(3.4) for seed in range(60))
    head = "\\documentclass{article}\\usepackage{booktabs,graphicx,textcomp}\\begin{document}\n"
    box = "\\setlength{\\textwidth}{3.4in}\\setlength{\\linewidth}{3.4in}\\hsize=3.4in\\parindent=0pt\n"
    (tmp_path / "t.tex").write_text(f"{head}{box}{tables}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "Overfull" not in done.stdout


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    """A table compiles in a document with the packages that its comment names."""
    table = PaperTable.of(pandas.DataFrame({"layer": NAMES, "energy_pj": [1.0] * len(NAMES)}))
    head = "\\documentclass{article}\\usepackage{booktabs,textcomp}\\begin{document}\n"
    (tmp_path / "t.tex").write_text(f"{head}{table.latex()}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_the_use_of_the_array_has_words() -> None:
    """Headings are words, not names of CSV columns."""
    found = PaperTable.of(pandas.DataFrame({"layer": ["a", "b"], "mac_utilization_with_offloading": [0.5, 0.25]}))
    assert found.headings == ("layer", "use of the array [%]")
