"""Tables for a paper: units by the largest value, decimals by column, and names that LaTeX takes for nothing else."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas
import pytest
from tilewright.base.harmless import latex
from tilewright.results.paper_tables import PaperTable, paper_tables, write_table
from tilewright.results.sheet import drawn_for

NAMES = ("a_b", "50% & more", "#1 {x} $y$", "~^\\end{tabular}", "[1ex]", "--", "<>|\"'`", "rf\u202e_2B", "µJ·m²")
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
    """Text that LaTeX prints for what `latex` made; raises ValueError for anything that is not known to be printed."""
    names = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">"}
    names |= {"textbar": "|", "char34": '"', "textasciigrave": "`", "textquotesingle": "'", "textmu": "µ"}
    names |= {"texttwosuperior": "²", "textthreesuperior": "³", "textperiodcentered": "·", "texttimes": "×"}
    names |= {"textminus": "−"}
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
    """Each character is printed, and none is a command, a column, a comment or a ligature."""
    assert read_latex(latex(name)) == name.replace("\u202e", "\\u202e")


def test_random_names_are_printed() -> None:
    """Over all printable ASCII characters."""
    rng = np.random.default_rng(11)
    for _ in range(200):
        name = "".join(map(chr, rng.integers(32, 127, 12)))
        assert read_latex(latex(name)) == name


def test_one_unit_for_all_energies() -> None:
    """By the largest energy of the table; cycles and counts stay whole, shares are percentages."""
    shown = PaperTable.of(TABLE)
    assert shown.headings == (
        *("layer", "mac count", "energy [mJ]", "other energy [mJ]", "latency [cycles]"),
        *("EDP [J cycles]", "stall share [%]"),
    )
    assert shown.rows[0][1:] == ("118,013,952", "26.540", "0.100", "2,545,018", "67,000.000", "50.000")
    assert shown.rows[1][1:] == ("0", "< 0.001", "-", "12", "< 0.001", "0.001")
    assert shown.rows[2][1:] == ("7", "0.000", "0.050", "0", "0.000", "-25.000")
    assert shown.are_numbers == (False, *[True] * 6)


def test_no_powers_of_ten() -> None:
    """Over sizes of all magnitudes, the cell and the number agree to the decimals of the column."""
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
    """Both come from the same texts, in the same order."""
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
    """No column has two units."""
    table = pandas.DataFrame(
        {"quantity": ["energy_pj", "latency_cycles"], "layer": ["a", "b"], "value": [3e6, 7], "share": [0.5, 1.0]}
    )
    found = dict(paper_tables(table))
    assert list(found) == ["-energy_pj", "-latency_cycles"]
    assert found["-energy_pj"].headings == ("layer", "value [µJ]", "share [%]")
    assert found["-latency_cycles"].rows == (("b", "7", "100.0"),)


def test_files(tmp_path: Path) -> None:
    """Only for a paper; the CSV file is the same with and without."""
    path = tmp_path / "t.csv"
    assert write_table(TABLE, path) == (path,)
    plain = path.read_bytes()
    with drawn_for("column"):
        paths = write_table(TABLE, path, ("layer", "energy_pj", "of_another_table"))
    assert [one.name for one in paths] == ["t.csv", "t.md", "t.tex"]
    assert path.read_bytes() == plain
    assert paths[1].read_text().splitlines()[0] == r"| layer | energy \[mJ\] |"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    """In a document with the packages that the table names."""
    table = PaperTable.of(pandas.DataFrame({"layer": NAMES, "energy_pj": [1.0] * len(NAMES)}))
    head = "\\documentclass{article}\\usepackage{booktabs,textcomp}\\begin{document}\n"
    (tmp_path / "t.tex").write_text(f"{head}{table.latex()}\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
